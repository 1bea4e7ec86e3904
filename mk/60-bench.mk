# The bench: one binary, one run, interleaved rounds. Numbers go to stdout and target/bench.tsv.
BENCH_SECONDS ?= 60
BENCH_TSV := target/bench.tsv
BENCH := target/release/tatcell-bench

.PHONY: bench bench-build bench-time bench-count
bench: bench-time bench-count ## Time tatcell beside bare atomics and other crates, count instructions (90 s)

bench-build: lib
	$(CARGO) build --quiet --release -p tatcell-bench

bench-time: bench-build ## Only the times; BENCH_SECONDS= sets how long
	$(BENCH) run --seconds $(BENCH_SECONDS) --lib $(LIB_SO) --tsv $(BENCH_TSV)

# After bench-time also in a parallel make: it appends to the same file.
bench-count: bench-build $(if $(filter bench,$(MAKECMDGOALS)),bench-time) ## Only the instructions per decision (valgrind)
	$(BENCH) count --tsv $(BENCH_TSV)

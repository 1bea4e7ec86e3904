# The bench: one binary, one run, interleaved rounds. It prints a table and the goals; numbers go to target/bench.tsv,
# a chart to target/bench.svg.
BENCH_SECONDS ?= 90
BENCH_ONLY ?=
BENCH_TSV := target/bench.tsv
BENCH_SVG := target/bench.svg
BENCH := target/release/tatcell-bench
BENCH_RUN := $(BENCH) run --seconds $(BENCH_SECONDS) --only "$(BENCH_ONLY)" --lib $(LIB_SO) --tsv $(BENCH_TSV) --svg $(BENCH_SVG)

.PHONY: bench bench-build bench-time bench-count
bench: bench-build ## Time tatcell beside bare atomics and other limiters, count instructions, judge the goals (3 min)
	$(BENCH_RUN) --count

bench-build: lib
	$(CARGO) build --quiet --release -p tatcell-bench

bench-time: bench-build ## Only the times; BENCH_SECONDS= sets how long, BENCH_ONLY= which rows (parts of names)
	$(BENCH_RUN)

bench-count: bench-build ## Only the instructions per decision (valgrind)
	$(BENCH) count

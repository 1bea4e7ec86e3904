# The bench: one binary, one run, interleaved rounds. It prints a table and the goals; numbers go to target/bench.tsv,
# a chart to target/bench.svg.
BENCH_SECONDS ?= 90
BENCH_ONLY ?=
BENCH_TSV := target/bench.tsv
BENCH_SVG := target/bench.svg
BENCH := target/release/tatcell-bench
BENCH_RUN := $(BENCH) run --seconds $(BENCH_SECONDS) --only "$(BENCH_ONLY)" --lib $(LIB_SO) --tsv $(BENCH_TSV) --svg $(BENCH_SVG)

# The peers in C++ and C (benches/peers), each where its tools are; the report names what is not run. pkg-config brings the
# -march=corei7 that DPDK's own libraries are built with; -march=native changes no row by more than the noise.
PEERS := target/bench
PEER_FLAGS := -O3 -fPIC -shared -Wall -Wextra -Werror

.PHONY: bench bench-tools bench-build bench-peers bench-time bench-count
bench: bench-build bench-peers ## Time tatcell beside bare atomics and other limiters, count instructions, judge the goals (3 min)
	$(BENCH_RUN) --count

bench-tools: ## Install what the bench can use and this machine lacks (as root, with apt-get)
	@tests/tools bench

bench-peers: bench-tools ## Build the peers in C++ and C: mutex and unordered_map, DPDK
	@! command -v $(firstword $(CXX)) >/dev/null || $(MAKE) --no-print-directory $(PEERS)/libpeer_map.so
	@! pkg-config --exists libdpdk 2>/dev/null || $(MAKE) --no-print-directory $(PEERS)/libpeer_dpdk.so

$(PEERS)/libpeer_map.so: benches/peers/map.cpp benches/peers/peer.h
	@mkdir -p $(@D)
	$(CXX) -std=c++17 $(PEER_FLAGS) -pedantic -o $@ $<

$(PEERS)/libpeer_dpdk.so: benches/peers/dpdk.c benches/peers/peer.h
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(PEER_FLAGS) $$(pkg-config --cflags libdpdk) -o $@ $< $$(pkg-config --libs libdpdk) -lm

bench-build: lib
	$(CARGO) build --quiet --release -p tatcell-bench

bench-time: bench-build bench-peers ## Only the times; BENCH_SECONDS= sets how long, BENCH_ONLY= which rows (parts of names)
	$(BENCH_RUN)

bench-count: bench-build bench-tools ## Only the instructions per decision (valgrind)
	$(BENCH) count

.PHONY: test-bench
test-bench: bench-build ## A short run of the bench: rows, files and instruction counts; no time decides
	@tests/bench $(LIB_SO)

# Tests and what else judges the tree. A target below counts what its parts report, by mk/count.sh, and goes on after a
# failure: `make test` runs the targets that TESTS names.
COUNT := @mk/count.sh $(MAKE) --keep-going
TESTS := rust-tests races c-tests doc-tests demo-verdict
PACKAGES := package-tests tower-tests python-tests node-tests go-tests release-tests
MODELS := step-worlds loom-models proofs
LONG := long-tests long-models sanitizers dist-tests node-source-tests

.PHONY: demo check test test-c test-models test-packages test-long lint bench cli header dist clean
demo: $(BUILD)/udp_gate ## Attack a UDP server, without the limiter and with it; verdict and demo.svg (half a minute)
	@$(CARGO) run --release --quiet -p tatcell-demo -- --port $(DEMO_PORT) --svg $(DEMO_SVG)

check: ## The one-minute loop: formatting, clippy, unit tests of the library
	@$(CARGO) fmt --check
	@$(CARGO) clippy --quiet --lib --tests --features std,host,capi,heapless,single-core -- -D warnings
	@mk/count.sh mk/rust-tests.sh check

test: install-packages ## All tests of the library in Rust, C and C++, its documents, package and demo (minutes)
	$(COUNT) $(TESTS)

test-c: install-packages ## The library through its C ABI: programs, headers, symbols, the ABI of the last release
	$(COUNT) c-tests

test-models: install-packages ## Every interleaving of small models (step, loom); protocol by Spin, arithmetic by z3
	$(COUNT) $(MODELS)

# Two scripts at a time: most compile on one processor. Each has a folder of its own, and prints when it has ended.
test-packages: install-packages ## Packages: installed, moved, packed, Python, Node, offline, other machines (5 minutes)
	@mk/packages.sh bindings/go/packages packaging/test/packages
	$(COUNT) -j2 --output-sync=target PARALLEL=yes $(PACKAGES)

test-long: install-packages ## The long forms of the Rust tests, sanitizers, Miri (hours); TATCELL_QUICK=1: minutes
	$(COUNT) $(LONG)

lint: ## Formatting, clippy, rustdoc, ORDERING comments and long lines
	@mk/count.sh mk/lint.sh .

bench: lib ## Time tatcell and its peers, count instructions, judge the goals (minutes); make -C dev help has more
	@$(MAKE) -C dev bench

cli: ## Build the command tatcell: cli/target/release/tatcell
	@$(MAKE) -C cli build

header: ## Generate the headers and export lists from src/capi and cluster/src/capi
	@$(MAKE) -C dev header

dist: ## What a release ships, in target/dist: sources, crate, binaries, firmware, Debian packages, checksums
	@packaging/release/dist.sh

clean: ## Remove everything that was built
	rm -rf target bindings/tower/target cli/target cluster/target dev/target firmware/target

# The parts of the targets above.
.PHONY: install-packages rust-tests races c-tests doc-tests package-tests tower-tests python-tests node-tests \
    go-tests release-tests demo-verdict step-worlds loom-models proofs long-tests long-models sanitizers dist-tests \
    node-source-tests
install-packages:
	@mk/packages.sh mk/packages ffi-tests/packages dev/proofs/packages
rust-tests:
	@mk/rust-tests.sh unit
races:
	@mk/rust-tests.sh races
c-tests: lib
	@$(MAKE) -C ffi-tests run-tests
doc-tests: lib
	@mk/docs.sh
package-tests: lib
	@packaging/test/run.sh
tower-tests:
	@packaging/test/tower.sh
python-tests: lib
	@packaging/test/python.sh
node-tests:
	@packaging/test/node.sh
go-tests:
	@mk/packages.sh bindings/go/packages
	@packaging/test/go.sh
release-tests:
	@mk/packages.sh packaging/test/packages
	@packaging/test/release.sh
demo-verdict: $(BUILD)/udp_gate
	@$(CARGO) test -p tatcell-demo
	@$(CARGO) run --release --quiet -p tatcell-demo -- --verdict --port $(DEMO_PORT)
$(BUILD)/udp_gate: demo/udp_gate.c include/tatcell_host.h $(LIB_A)
	@$(CC) -O2 -Wall -Wextra -Iinclude demo/udp_gate.c $(LIB_A) -o $@
step-worlds:
	@mk/rust-tests.sh step
loom-models:
	@mk/rust-tests.sh loom
proofs:
	@$(MAKE) -C dev proofs
long-tests:
	@mk/rust-tests.sh long
# The short form leaves out worlds of the explorer that take gigabytes, and release builds with Debian packages.
long-models:
ifdef TATCELL_QUICK
	@echo 'SKIP step-long: gigabytes; run make long-models without TATCELL_QUICK'
else
	@mk/rust-tests.sh step-long
endif
	@mk/rust-tests.sh loom-long
sanitizers:
	@mk/sanitizers.sh
dist-tests:
ifdef TATCELL_QUICK
	@echo 'SKIP dist-tests: minutes of release builds; run make dist-tests without TATCELL_QUICK'
else
	@mk/packages.sh packaging/test/deb-packages firmware/packages
	@packaging/test/dist.sh
	@packaging/test/deb.sh target/dist-test/dist
endif
node-source-tests:
ifdef TATCELL_QUICK
	@echo 'SKIP node-source-tests: a release build; run make node-source-tests without TATCELL_QUICK'
else
	@packaging/test/node.sh source
endif

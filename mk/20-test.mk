# The tests. Each suite is a target of its own and prints PASS, FAIL and SKIP lines; tests/run sums them up.
SUITES := test-lint test-rust test-loom test-ffi test-package test-docs test-bench test-demo

.PHONY: test test-lint test-rust test-loom test-docs test-long
test: ## Run every test suite (minutes); says what it skipped and why
	@tests/tools
	@MAKE="$(MAKE)" tests/run $(SUITES)

test-lint: ## Formatting, clippy and rustdoc without a warning
	@tests/lint

test-rust: ## Rust tests: semantics, properties, races, kills, the protocol explorer
	$(CARGO) test --quiet --features std,host --no-run
	$(CARGO) test --no-fail-fast --features std,host -- --nocapture --test-threads=2

test-loom: loom

test-docs: lib ## Compile and run every program and command of the documents and the header
	@tests/docs README.md docs/PERFORMANCE.md include/tatcell.h

test-demo: ## Run the demo as a test: its verdict lines are the tests; one more try where the machine was busy
	@$(MAKE) --no-print-directory demo DEMO_SVG=$(BUILD)/demo.svg > $(BUILD)/demo.log 2>&1 \
	    || $(MAKE) --no-print-directory demo DEMO_SVG=$(BUILD)/demo.svg > $(BUILD)/demo.log 2>&1 \
	    || { tail -n 20 $(BUILD)/demo.log; exit 1; }
	@grep -E '^(PASS|FAIL) ' $(BUILD)/demo.log

test-long: ## The long tests: 1e9 oracle decisions, 1e5 kills, the large explorer and loom models
	$(CARGO) test --release --features std -- --ignored --nocapture --test-threads=2
	$(MAKE) loom-long

# Models of the shipped code under loom, every schedule up to a bound. The cfg reaches these commands only.
LOOM := CARGO_TARGET_DIR=target/loom RUSTFLAGS="--cfg tatcell_loom" \
    $(CARGO) test --release --lib --features std -- loom_ --test-threads=2

.PHONY: loom loom-long
loom: ## Check every interleaving of cells and table operations in small models (minutes)
	TATCELL_LOOM= $(LOOM)

loom-long: ## The same with higher bounds (hours)
	TATCELL_LOOM=long $(LOOM)

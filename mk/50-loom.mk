# Models of the shipped code under loom, every schedule up to a bound. The cfg reaches these commands only.
LOOM := CARGO_TARGET_DIR=$(CURDIR)/target/loom RUSTFLAGS="--cfg tatcell_loom" $(CARGO) test --release --lib --features std

# Two processes of one thread each: within one process the models wait for each other's stacks to be mapped.
define loom_run
$(LOOM) --quiet --no-run
@cd target/loom; status=0; \
    TATCELL_LOOM=$(1) $(LOOM) -- loom_insert --test-threads=1 > insert.log 2>&1 & other=$$!; \
    TATCELL_LOOM=$(1) $(LOOM) -- loom_ --skip loom_insert --test-threads=1 > rest.log 2>&1 || status=1; \
    wait $$other || status=1; awk -f ../../tests/loom-lines insert.log rest.log; exit $$status
endef

.PHONY: loom loom-long
loom: ## Check every interleaving of cells and table operations in small models (minutes)
	$(call loom_run,)

loom-long: ## The same with higher bounds (hours)
	$(call loom_run,long)

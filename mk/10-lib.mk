# The C library: one localised object in libtatcell.a, and libtatcell.so with its SONAME.
EXPORTS := include/tatcell.map
LIB_A := $(BUILD)/libtatcell.a
LIB_SO := $(BUILD)/libtatcell.so.$(VERSION)
LIB_SOURCES := Cargo.toml build.rs $(EXPORTS) $(shell find src -name '*.rs')

.PHONY: lib header
lib: $(LIB_A) $(LIB_SO) ## Build libtatcell.a and libtatcell.so

# A raw Rust archive holds the compiler's own objects and clashes with any other Rust archive. This one is a single
# object that defines the exported functions and nothing else.
$(LIB_A): $(LIB_SOURCES)
	@mkdir -p $(BUILD)
	$(CARGO) rustc --quiet --release --lib --features capi --crate-type staticlib
	awk '/^ *tatcell_/{sub(/;.*/,""); print $$1}' $(EXPORTS) > $(BUILD)/exports
	ld -r --gc-sections $$(sed 's/^/-u /' $(BUILD)/exports) -o $(BUILD)/tatcell.o target/release/libtatcell.a
	objcopy --keep-global-symbols=$(BUILD)/exports --strip-debug -R .llvmbc -R .llvmcmd $(BUILD)/tatcell.o
	rm -f $@
	ar rcs $@ $(BUILD)/tatcell.o

# The same object again, so that both libraries hold the same code; rustc's own cdylib would drop the symbol versions.
$(LIB_SO): $(LIB_A)
	$(CC) -shared -nostdlib -o $@ $(BUILD)/tatcell.o -Wl,-soname,libtatcell.so.0 -Wl,--version-script=$(EXPORTS) \
	    -Wl,-z,relro,-z,now,-z,noexecstack -Wl,--build-id
	ln -sf $(notdir $@) $(BUILD)/libtatcell.so.0
	ln -sf $(notdir $@) $(BUILD)/libtatcell.so

header: ## Generate include/tatcell.h from src/capi
	$(CARGO) run --quiet -p tatcell-header -- include/tatcell.h

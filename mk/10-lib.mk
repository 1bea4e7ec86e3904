# The C library: one localised object in libtatcell.a, and libtatcell.so with its SONAME.
EXPORTS := include/tatcell.map
LIB_A := $(BUILD)/libtatcell.a
LIB_SO := $(BUILD)/libtatcell.so.$(VERSION)
# The one place that has it.
ABI := $(shell sed -n 's/^pub const TATCELL_ABI_VERSION: u32 = \(.*\);/\1/p' src/capi/codes.rs)
LIB_SOURCES := Cargo.toml build.rs $(EXPORTS) $(shell find src -name '*.rs')

.PHONY: lib header
lib: $(LIB_A) $(LIB_SO) ## Build libtatcell.a and libtatcell.so

# A raw Rust archive holds the compiler's own objects and clashes with any other Rust archive. This one has two objects,
# which define the exported functions and nothing else: tatcell.o needs memcpy and memset, no more, and tatcell_host.o
# (tatcell_host_*) the C library. A linker takes the second only for programs that use it.
$(LIB_A): $(LIB_SOURCES)
	@mkdir -p $(BUILD)
	$(CARGO) rustc --quiet --release --lib --features capi,host --crate-type staticlib
	awk '/^ *tatcell_/{sub(/;.*/,""); print $$1}' $(EXPORTS) > $(BUILD)/exports
	$(call lib_object,$(BUILD)/tatcell,-v)
	$(call lib_object,$(BUILD)/tatcell_host,)
	rm -f $@
	ar rcs $@ $(BUILD)/tatcell.o $(BUILD)/tatcell_host.o

# One object of the exports that start with tatcell_host_, or with -v of all others. Names that nothing refers to go, such
# as those of C functions that only dropped code called; the mangled names of its own functions stay, for the gates.
define lib_object
grep $(2) '^tatcell_host_' $(BUILD)/exports > $(1).exports
ld -r --gc-sections $$(sed 's/^/-u /' $(1).exports) -o $(1).o target/release/libtatcell.a
objcopy --keep-global-symbols=$(1).exports --strip-unneeded -w --keep-symbol='_ZN*' --keep-symbol='_R*' \
    --keep-symbol='*rust*' --keep-symbol='*nwind*' -R .llvmbc -R .llvmcmd $(1).o
endef

# The same objects, linked without a library of their own: what they need of the C library they take from the program,
# which has one. (cargo would record a NEEDED entry for feature host.)
$(LIB_SO): $(LIB_A)
	$(CC) -shared -nostdlib -Wl,-soname,libtatcell.so.$(ABI) -Wl,--version-script=$(EXPORTS) -Wl,-z,relro,-z,now,-z,noexecstack \
	    -Wl,--build-id \
	    -o $@ $(BUILD)/tatcell.o $(BUILD)/tatcell_host.o
	ln -sf $(notdir $@) $(BUILD)/libtatcell.so.$(ABI)
	ln -sf $(notdir $@) $(BUILD)/libtatcell.so

header: ## Generate tatcell.h, tatcell_host.h, tatcell.ffi.h and tatcell.map from src/capi
	$(CARGO) run --quiet -p tatcell-header -- include

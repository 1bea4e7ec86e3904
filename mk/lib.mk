# The C library in target/c: libtatcell.a of two objects, and libtatcell.so with its SONAME.
#
# A raw Rust archive holds the compiler's own objects and clashes with any other Rust archive. So `ld -r` takes what the
# exports reach into one object, and objcopy makes everything else in it local. tatcell.o needs memcpy and memset, no
# more. tatcell_host.o (the functions tatcell_host_*) needs the C library; a linker takes it only for programs that
# use it. The objects in target/c/named are the same with the names of local functions, for the gates that look for
# panics and locks. The shared library is linked from one object of all exports, so it has each function once.
#
# TARGET builds for another machine, by its Rust name: make lib TARGET=aarch64-unknown-linux-gnu
# CROSS_COMPILE=aarch64-linux-gnu-. CC, LD, AR, OBJCOPY and READELF may be named one by one instead.
CARGO ?= cargo
OBJCOPY ?= $(CROSS_COMPILE)objcopy
READELF ?= $(CROSS_COMPILE)readelf
TARGET ?=
BUILD ?= target/c$(TARGET:%=-%)
ifneq ($(CROSS_COMPILE),)
# Not those that make has by itself.
$(foreach tool,CC:gcc LD:ld AR:ar,$(if $(filter default,$(origin $(firstword $(subst :, ,$(tool))))),\
    $(eval $(firstword $(subst :, ,$(tool))) := $(CROSS_COMPILE)$(lastword $(subst :, ,$(tool))))))
endif
MAP := include/tatcell.map
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
# The one place that has the number of the ABI.
ABI := $(shell sed -n 's/^pub const TATCELL_ABI_VERSION: u32 = \(.*\);/\1/p' src/capi/codes.rs)
LIB_A := $(BUILD)/libtatcell.a
LIB_SO := $(BUILD)/libtatcell.so.$(VERSION)

# A folder of its own: other builds of the crate put an archive with other features at the same place.
RAW := target/lib/$(TARGET:%=%/)release/libtatcell.a
EXPORTS := $(shell sed -n 's/^ *\(tatcell_[a-z0-9_]*\);.*/\1/p' $(MAP))
HOST_EXPORTS := $(filter tatcell_host_%,$(EXPORTS))
CORE_EXPORTS := $(filter-out $(HOST_EXPORTS),$(EXPORTS))
NAMED := $(BUILD)/named
# Less code than a release build of the crate has. Hot functions are inlined by attribute, so the compiler need not
# guess. Loops are not vectorized: those that gain use vectors by hand. No function is copied for one value of an
# argument. docs/decisions/size.md has the figures.
SMALL := -C no-vectorize-loops $(addprefix -C llvm-args=-,inline-threshold=100 funcspec-max-iters=0)

.PHONY: lib
lib: $(LIB_A) $(LIB_SO) ## Build the C library: target/c/libtatcell.a and libtatcell.so
	@echo $(LIB_A) $(LIB_SO)

# A source tarball has the crates that the library needs.
VENDORED := $(addprefix --config ,$(wildcard vendor/config.toml))
$(RAW): Cargo.toml Cargo.lock build.rs mk/lib.mk $(MAP) $(shell find src -name '*.rs')
	$(CARGO) rustc $(VENDORED) --quiet --release --lib --features capi,host --crate-type staticlib --target-dir target/lib \
	    $(TARGET:%=--target %) -- $(SMALL)
	@touch $@

# The first object tells LLVM's linker for which machine it links. On other machines Rust's division of 128 bits names
# the handler of panics that unwind, so there it has one. Nothing calls it.
FIRST := $(if $(TARGET),void rust_eh_personality(void) {})
# For RISC-V `ld -r` drops entries of the table for unwinding and leaves their relocations, at which a later ld crashes.
# So objects for it have no such table.
BROKEN := $(if $(filter riscv%,$(TARGET)),-R .eh_frame)
# For Arm `ld -r` makes one section of two functions of one name, and one table of theirs, at which a later ld crashes.
UNIQUE := $(if $(filter arm%,$(TARGET)),--unique)

# $(call localise,EXPORTS): one object that defines EXPORTS and nothing else.
define localise
	@mkdir -p $(NAMED)
	@printf '%s\n' $(1) > $@.exports
	@echo '$(FIRST)' | $(CC) -O2 -fPIC -c -x c - -o $@.first.o
	@$(LD) -r $(UNIQUE) --gc-sections $@.first.o $(addprefix -u ,$(1)) -o $@ $(RAW)
	@$(OBJCOPY) --keep-global-symbols=$@.exports --strip-debug -R .comment -R .llvmbc -R .llvmcmd $(BROKEN) $@
endef
$(NAMED)/tatcell.o: $(RAW)
	$(call localise,$(CORE_EXPORTS))
$(NAMED)/tatcell_host.o: $(RAW)
	$(call localise,$(HOST_EXPORTS))
$(NAMED)/all.o: $(RAW)
	$(call localise,$(EXPORTS))
# Each function keeps a section of its own, so that a linker takes what is called. The name of that section repeats the
# name of the function, so all get the same short one. Linkers put .text.unlikely apart.
KINDS := \.text\.unlikely|\.text|\.rodata|\.data\.rel\.ro
SECTION := s/^ *\[ *[0-9]*\] ($(KINDS))(\.[^ ]*) .*/--rename-section "\1\2=\1"/p
$(BUILD)/%.o: $(NAMED)/%.o
	@$(READELF) -SW $< | sed -nE '$(SECTION)' | sort -u > $@.sections
	@$(OBJCOPY) --strip-unneeded @$@.sections $< $@
$(LIB_A): $(BUILD)/tatcell.o $(BUILD)/tatcell_host.o
	@rm -f $@ && $(AR) rcs $@ $^
# Linked without a library of its own: what the functions tatcell_host_* need of the C library, the program has.
$(LIB_SO): $(NAMED)/all.o
	@$(CC) -shared -nostdlib -Wl,-soname,libtatcell.so.$(ABI) -Wl,--version-script=$(MAP) \
	    -Wl,-z,relro,-z,now,-z,noexecstack -Wl,--build-id -o $@ $^
	@ln -sf libtatcell.so.$(VERSION) $(BUILD)/libtatcell.so.$(ABI)
	@ln -sf libtatcell.so.$(VERSION) $(BUILD)/libtatcell.so

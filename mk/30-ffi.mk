# The C and C++ suites of ffi-tests/, built into target/ffi. Each prints PASS, FAIL or SKIP lines (see ffi-tests/check.h).
FFI := target/ffi
FFI_C := layout codes growth arguments burst vectors property semantics threads process lease host
FFI_HEADERS := include/tatcell.h include/tatcell_host.h include/tatcell.hpp ffi-tests/check.h ffi-tests/kit.h
FFI_CFLAGS := -std=c11 -D_GNU_SOURCE -Iinclude -pthread $(CFLAGS_STRICT)
FFI_CXXFLAGS := -Iinclude $(CFLAGS_STRICT) -fno-exceptions -fno-rtti
FFI_PLAIN := $(addprefix $(FFI)/plain/,$(FFI_C) cpp17 cpp20 cpp_tables17 cpp_tables20 archives) $(FFI)/shared/semantics
# Only where freestanding.c knows the exit system call.
FFI_MACHINE := $(subst -, ,$(shell $(CC) -dumpmachine))
FFI_PLAIN += $(if $(filter linux,$(FFI_MACHINE)),$(if $(filter x86_64 aarch64,$(FFI_MACHINE)),$(FFI)/freestanding))

.PHONY: test-ffi
test-ffi: lib $(FFI_PLAIN) ## Test the library through its C ABI, from C and C++
	BUILD=$(BUILD) OUT=$(FFI) CC='$(CC)' CXX='$(CXX)' CARGO='$(CARGO)' MAKE='$(MAKE)' ffi-tests/run.sh

# One rule per flavour; the flavour is the folder. The Rust side is not instrumented: asan and tsan watch what the C
# side does and hands over; memcheck sees both.
$(FFI)/plain/%: ffi-tests/%.c $(FFI_HEADERS) $(LIB_A)
	@mkdir -p $(@D)
	$(CC) $(FFI_CFLAGS) $< $(LIB_A) -o $@

$(FFI)/shared/%: ffi-tests/%.c $(FFI_HEADERS) $(LIB_SO)
	@mkdir -p $(@D)
	$(CC) $(FFI_CFLAGS) $< -L$(BUILD) -ltatcell -Wl,-rpath,$(abspath $(BUILD)) -o $@

$(FFI)/asan/%: ffi-tests/%.c $(FFI_HEADERS) $(LIB_A)
	@mkdir -p $(@D)
	$(CC) $(FFI_CFLAGS) -O1 -fsanitize=address,undefined -fno-sanitize-recover=all $< $(LIB_A) -o $@

$(FFI)/tsan/%: ffi-tests/%.c $(FFI_HEADERS) $(LIB_A)
	@mkdir -p $(@D)
	$(CC) $(FFI_CFLAGS) -O1 -fsanitize=thread $< $(LIB_A) -o $@

$(FFI)/plain/cpp17 $(FFI)/plain/cpp20: $(FFI)/plain/cpp%: ffi-tests/cpp.cpp $(FFI_HEADERS) $(LIB_A)
	@mkdir -p $(@D)
	$(CXX) -std=c++$* $(FFI_CXXFLAGS) $< $(LIB_A) -o $@

FFI_TABLES := $(FFI)/plain/cpp_tables17 $(FFI)/plain/cpp_tables20
$(FFI_TABLES): $(FFI)/plain/cpp_tables%: ffi-tests/cpp_tables.cpp $(FFI_HEADERS) $(LIB_A)
	@mkdir -p $(@D)
	$(CXX) -std=c++$* $(FFI_CXXFLAGS) $< $(LIB_A) -o $@

$(FFI)/asan/cpp20 $(FFI)/asan/cpp_tables20: $(FFI)/asan/%20: ffi-tests/%.cpp $(FFI_HEADERS) $(LIB_A)
	@mkdir -p $(@D)
	$(CXX) -std=c++20 $(FFI_CXXFLAGS) -O1 -fsanitize=address,undefined -fno-sanitize-recover=all $< $(LIB_A) -o $@

# A second Rust archive, with std, its own panic handler and allocator.
$(FFI)/libother.a: ffi-tests/other/lib.rs
	@mkdir -p $(@D)
	rustc --edition 2021 --crate-type staticlib --crate-name other -O $< -o $@

$(FFI)/plain/archives: ffi-tests/archives.c $(FFI_HEADERS) $(LIB_A) $(FFI)/libother.a
	@mkdir -p $(@D)
	$(CC) $(FFI_CFLAGS) $< $(LIB_A) $(FFI)/libother.a -ldl -lm -o $@

$(FFI)/freestanding: ffi-tests/freestanding.c include/tatcell.h $(LIB_A)
	@mkdir -p $(@D)
	$(CC) -std=c11 -Iinclude $(CFLAGS_STRICT) -ffreestanding -nostdlib -static -fno-stack-protector $< $(LIB_A) -o $@

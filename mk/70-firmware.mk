# Firmware: localised archives for bare machines, and the tests that run them in QEMU. See firmware/README.md.
FIRMWARE := target/firmware
FIRMWARE_TRIPLES := thumbv6m-none-eabi thumbv7m-none-eabi thumbv7em-none-eabihf \
    riscv32imc-unknown-none-elf riscv32imac-unknown-none-elf
FIRMWARE_LIBS := $(foreach t,$(FIRMWARE_TRIPLES),$(FIRMWARE)/$(t)/libtatcell-single.a $(FIRMWARE)/$(t)/libtatcell-critical.a)
FIRMWARE_SOURCES := Cargo.toml build.rs include/tatcell_small.map firmware/build $(shell find src -name '*.rs')

.PHONY: firmware test-firmware
firmware: $(FIRMWARE_LIBS) ## Build the firmware archives (Cortex-M0 to M4F, RISC-V)

$(FIRMWARE)/%/libtatcell-single.a: $(FIRMWARE_SOURCES)
	firmware/build $* single $@

$(FIRMWARE)/%/libtatcell-critical.a: $(FIRMWARE_SOURCES)
	firmware/build $* critical $@

# `make test` runs it too; without the tools it says what is missing.
SUITES += test-firmware

test-firmware: ## Run the firmware tests in QEMU: gates, example, exactness under interrupts, budgets, same answers
	@firmware/test

# For a Makefile of your own. Set TATCELL (this source tree, after `make -C firmware lib`) and TATCELL_CPU, include this
# file, and use TATCELL_CFLAGS and TATCELL_LIB. TATCELL_SHARING is single (the archive masks interrupts; the default) or
# critical (you write tatcell_critical_enter and tatcell_critical_exit).
TATCELL_SHARING ?= single

# Code of an older core runs on the newer ones; the float ABI must be that of the rest of the firmware.
tatcell-cortex-m0 := thumbv6m-none-eabi
tatcell-cortex-m0plus := thumbv6m-none-eabi
tatcell-cortex-m1 := thumbv6m-none-eabi
tatcell-cortex-m23 := thumbv6m-none-eabi
tatcell-cortex-m3 := thumbv7m-none-eabi
tatcell-cortex-m4 := thumbv7m-none-eabi
tatcell-cortex-m7 := thumbv7m-none-eabi
tatcell-cortex-m33 := thumbv7m-none-eabi
tatcell-cortex-m4-hard := thumbv7em-none-eabihf
tatcell-cortex-m7-hard := thumbv7em-none-eabihf
tatcell-cortex-m33-hard := thumbv7em-none-eabihf
tatcell-rv32imc := riscv32imc-unknown-none-elf
tatcell-rv32imac := riscv32imac-unknown-none-elf

ifndef tatcell-$(TATCELL_CPU)
$(error TATCELL_CPU is "$(TATCELL_CPU)"; known: $(patsubst tatcell-%,%,$(filter tatcell-%,$(.VARIABLES))))
endif
TATCELL_CFLAGS := -I$(TATCELL)/include
TATCELL_LIB := $(TATCELL)/target/firmware/$(tatcell-$(TATCELL_CPU))/libtatcell-$(TATCELL_SHARING).a

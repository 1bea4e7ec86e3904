#!/bin/sh
# Real frames: frames/ on a board with an Ethernet controller polices and shapes UDP flows that come through QEMU's user
# network from 127.0.0.1. tests/frames.py sends them, reads the log of the firmware's decisions and repeats them all.
cd "$(dirname "$0")/.." || exit 1
. tests/claim.sh
need_archives frames && need frames arm-none-eabi-gcc gcc-arm-none-eabi libnewlib-arm-none-eabi &&
    need frames qemu-system-arm qemu-system-arm || exit 0

build() {
    arm-none-eabi-gcc -mthumb -mcpu=cortex-m3 -Os -g -std=c11 -ffreestanding -ffunction-sections -fdata-sections \
        -I../include -Wall -Wextra -Werror -nostartfiles -T frames/an385.ld -Wl,--gc-sections,--fatal-warnings \
        frames/board.c frames/lan9118.c frames/main.c "$archives/thumbv7m-none-eabi/libtatcell-single.a" \
        -o "$work/frames.elf"
}
claim frames_firmware_builds build
[ $failed = 0 ] && { python3 tests/frames.py "$work/frames.elf" || failed=1; }
exit $failed

#!/bin/sh
# Builds the archives, or says what is missing for that; the other scripts skip without them.
cd "$(dirname "$0")/.." || exit 1
. tests/claim.sh
need archives arm-none-eabi-ld binutils-arm-none-eabi && need archives riscv64-unknown-elf-ld \
    binutils-riscv64-unknown-elf || exit 0
for triple in $targets; do
    said=$(./cargo "$triple" '') || { echo "SKIP archives: $said"; exit 0; }
done
claim archives_build make -s lib
exit $failed

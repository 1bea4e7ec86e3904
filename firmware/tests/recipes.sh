#!/bin/sh
# The recipes of RECIPES.md. Those for make and CMake are built and run in QEMU. Zephyr, ESP-IDF, Arduino and PlatformIO
# are not needed here: their files are parsed by CMake, kconfiglib and Python, and their sources are compiled against a
# few lines that declare the functions which they call.
cd "$(dirname "$0")/.." || exit 1
. tests/claim.sh
need_boards recipes || exit 0

board_of() { # CORE
    case $1 in
        cortex-m0) echo microbit ;;
        cortex-m3 | cortex-m4) echo mps2-an385 ;;
        cortex-m4-hard) echo mps2-an386 ;;
        *) echo "$1" ;;
    esac
}

with_make() { # CORE
    make -s -C recipes/make TATCELL="$root" TATCELL_CPU="$1" OUT="$work/make-$1" &&
        ./run "$(board_of "$1")" "$work/make-$1/app.elf"
}
for cpu in cortex-m0 cortex-m3 rv32imc rv32imac; do
    claim "recipe_make_builds_and_runs_on_$cpu" with_make $cpu
done
claim recipe_make_refuses_an_unknown_core \
    refused 'TATCELL_CPU is "z80"' make -n -C recipes/make TATCELL="$root" TATCELL_CPU=z80

configure() { # CORE
    rm -rf "$work/cmake-$1"
    cmake -S recipes/cmake -B "$work/cmake-$1" -DCMAKE_TOOLCHAIN_FILE="$PWD/recipes/cmake/toolchain.cmake" -DCPU="$1"
}
with_cmake() { # CORE
    configure "$1" && cmake --build "$work/cmake-$1" && ./run "$(board_of "$1")" "$work/cmake-$1/app.elf"
}
if need recipe_cmake cmake cmake; then
    for cpu in cortex-m0 cortex-m3 cortex-m4 cortex-m4-hard rv32imc rv32imac; do
        claim "recipe_cmake_builds_and_runs_on_$cpu" with_cmake $cpu
    done
    claim recipe_cmake_refuses_an_unknown_core refused 'no archive for cortex-a53' configure cortex-a53
    # CMake parses a whole file before it runs the first line. Zephyr's file does nothing without CONFIG_TATCELL; the
    # other one stops at the first function of ESP-IDF.
    claim recipe_zephyr_cmake_file_parses cmake -P recipes/zephyr/CMakeLists.txt
    claim recipe_esp_idf_cmake_file_parses refused 'Unknown CMake command "idf_component_register"' \
        cmake -P recipes/esp-idf/tatcell/CMakeLists.txt
fi

# Zephyr reads Kconfig and module.yml with these libraries of Python. On several cores masking is not enough, and 64-bit
# cores use the hosted library.
python=/usr/bin/python3
kconfig() {
    $python - <<'END'
import kconfiglib, os, yaml
build = yaml.safe_load(open("recipes/zephyr/zephyr/module.yml"))["build"]
assert os.path.exists(f"recipes/zephyr/{build['cmake']}/CMakeLists.txt")
yaml.safe_load(open("recipes/esp-idf/tatcell/idf_component.yml"))["targets"]
file = "target/recipes/test.kconfig"
for core, choices, wanted in [  # symbols of the core, symbols that are set, TATCELL TATCELL_CRITICAL TATCELL_SINGLE
    (["CPU_CORTEX_M"], [], "n n n"),
    (["CPU_CORTEX_M"], ["TATCELL"], "y y n"),
    (["RISCV"], ["TATCELL", "TATCELL_SINGLE"], "y n y"),
    (["RISCV", "SMP"], ["TATCELL", "TATCELL_SINGLE"], "y y n"),
    (["RISCV", "64BIT"], ["TATCELL"], "n n n"),
]:
    with open(file, "w") as f:
        for symbol in ["CPU_CORTEX_M", "RISCV", "64BIT", "SMP"]:
            f.write(f"config {symbol}\n\tbool\n\tdefault {'y' if symbol in core else 'n'}\n")
        f.write(f"source \"recipes/zephyr/{build['kconfig']}\"\n")
    tree = kconfiglib.Kconfig(file, warn_to_stderr=False)
    for symbol in choices:
        tree.syms[symbol].set_value(2)
    found = " ".join(tree.syms[s].str_value for s in ["TATCELL", "TATCELL_CRITICAL", "TATCELL_SINGLE"])
    assert found == wanted and not tree.warnings, (core, choices, found, tree.warnings)
END
}
if $python -c 'import kconfiglib, yaml' 2> /dev/null; then
    claim recipe_zephyr_kconfig_and_module_parse kconfig
else
    echo "SKIP recipe_zephyr_kconfig_and_module_parse: apt-get install python3-kconfiglib python3-yaml"
fi

# The functions that the files use, declared and no more.
mkdir -p "$work/include/zephyr" "$work/include/freertos"
echo 'unsigned int irq_lock(void); void irq_unlock(unsigned int key);' > "$work/include/zephyr/kernel.h"
cat > "$work/include/freertos/FreeRTOS.h" <<'EOT'
typedef struct { int owner; } portMUX_TYPE;
#define portMUX_INITIALIZER_UNLOCKED {0}
void portENTER_CRITICAL_SAFE(portMUX_TYPE *mux); void portEXIT_CRITICAL_SAFE(portMUX_TYPE *mux);
EOT
cat > "$work/include/Arduino.h" <<'EOT'
#include <stdint.h>
struct {
    void begin(long); int read(); void print(const char *); void println(const char *); void println(uint32_t);
} Serial;
uint32_t millis(), micros();
int analogRead(int);
EOT
warnings="-Wall -Wextra -Werror -ffreestanding -fsyntax-only -I$work/include -I../include"
claim recipe_zephyr_critical_section_compiles \
    arm-none-eabi-gcc -mthumb -mcpu=cortex-m0 $warnings recipes/zephyr/critical.c
claim recipe_esp_idf_critical_section_compiles \
    riscv64-unknown-elf-gcc -march=rv32imc_zicsr -mabi=ilp32 $warnings recipes/esp-idf/tatcell/critical.c
claim recipe_arduino_sketch_compiles arm-none-eabi-g++ -mthumb -mcpu=cortex-m0plus -std=gnu++11 $warnings \
    -include Arduino.h -x c++ recipes/arduino/tatcell/examples/PerSender/PerSender.ino

# One folder for Arduino and PlatformIO, where each core's archive is that of its target.
assembles() {
    recipes/arduino/assemble "$work/arduino/tatcell" && library=$work/arduino/tatcell &&
        python3 -m json.tool "$library/library.json" > "$work/json" &&
        grep -q '^version=[0-9]' "$library/library.properties" &&
        python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' "$library/select_archive.py" || return
    while read -r folder triple; do
        cmp "$library/src/$folder/libtatcell.a" "$archives/$triple/libtatcell-single.a" || return
    done <<'END'
cortex-m0plus thumbv6m-none-eabi
cortex-m4 thumbv7m-none-eabi
cortex-m4/fpv4-sp-d16-hard thumbv7em-none-eabihf
esp32c3 riscv32imc-unknown-none-elf
esp32c6 riscv32imac-unknown-none-elf
END
}
claim recipe_arduino_library_assembles assembles

# A release has the recipes with what they need, and nothing else of the tree.
released() {
    (cd "$root" && packaging/release/dist.sh firmware) && mkdir -p "$work/release" &&
        tar -C "$work/release" -xf "$root"/target/dist/tatcell-firmware-*.tar.xz || return
    folder=$(echo "$work"/release/tatcell-firmware-*)
    make -s -C "$folder/firmware/recipes/make" TATCELL_CPU=cortex-m0 &&
        ./run microbit "$folder/firmware/recipes/make/build/app.elf" &&
        "$folder/firmware/recipes/arduino/assemble" "$work/release/arduino" &&
        cmp "$archives/thumbv6m-none-eabi/libtatcell-single.a" "$work/release/arduino/src/cortex-m0/libtatcell.a" &&
        grep -q '^siphasher ' "$folder/THIRD-PARTY"
}
if need recipe_of_a_release git git && need recipe_of_a_release xz xz-utils; then
    claim recipe_of_a_release_builds_and_runs released
fi
exit $failed

#!/bin/sh
# Uses the package as its users do, as TAP: packaging/test/run.sh. Installs into a staging folder, builds programs
# against it with pkg-config and CMake, moves the folder and builds them again, uninstalls; the same for the command
# with its man pages and completions; then packs the crate.
set -u
cd "$(dirname "$0")/../.." || exit 1
CC=${CC:-cc} CXX=${CXX:-c++} CARGO=${CARGO:-cargo} MAKE=${MAKE:-make}
root=$PWD out=$PWD/target/package
strict='-Wall -Wextra -Werror -pedantic'
# Neither the caller's folders nor the job server of the make that runs this script.
unset DESTDIR PREFIX LIBDIR INCLUDEDIR DOCDIR BINDIR MANDIR BASHDIR ZSHDIR FISHDIR CLI LD_LIBRARY_PATH PKG_CONFIG_PATH MAKEFLAGS MFLAGS MAKELEVEL
rm -rf "$out" && mkdir -p "$out" || exit 1
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
so=libtatcell.so.1

. mk/tap.sh
run_make() { $MAKE --no-print-directory -s "$@"; }

listed() {
    { for header in include/*.h include/*.hpp; do
        [ "$header" = include/tatcell_small.h ] || echo "usr/$header"
    done
    for file in cmake/tatcell/tatcell-config-version.cmake cmake/tatcell/tatcell-config.cmake libtatcell.a \
        libtatcell.so $so "libtatcell.so.$version" pkgconfig/tatcell.pc; do echo "usr/lib/$file"; done
    printf 'usr/share/doc/tatcell/%s\n' LICENSE-APACHE LICENSE-MIT; } |
        LC_ALL=C sort > "$out/wanted"
    (cd "$1" && find . ! -type d | sed 's|^\./||' | LC_ALL=C sort) | diff "$out/wanted" -
}
linked() { [ "$(readlink -f "$1/usr/lib/libtatcell.so")" = "$1/usr/lib/libtatcell.so.$version" ]; }
modes() {
    find "$1" -type f \( ! -perm -444 -o -perm /022 \) > "$out/wrong"
    cat "$out/wrong"; [ ! -s "$out/wrong" ]
}
no_paths() { fails grep -rnF -e "$root" -e "${HOME:-/nowhere}/" "$1/lib/pkgconfig" "$1/lib/cmake" "$1/include"; }
gone() {
    run_make uninstall "DESTDIR=$1" PREFIX=/usr && [ -z "$(find "$1" ! -type d)" ] &&
        [ ! -e "$1/usr/lib/cmake/tatcell" ] && [ ! -e "$1/usr/share/doc/tatcell" ]
}

# needs FILE, alone FILE: whether it wants the shared library at run time.
needs() { readelf -d "$1" | grep NEEDED | grep -qF "[$so]" || { echo "$1 does not need $so"; return 1; }; }
alone() { ! needs "$1" > /dev/null || { echo "$1 needs $so"; return 1; }; }
hides() { ! nm -D --defined-only "$1" | grep ' tatcell_'; }
# flags OPTION...: of pkg-config. Those of --static get the archive, and dynamic linking again for what follows.
flags() { pkg-config "$@" --cflags --libs tatcell; }
archive() { echo "-Wl,-Bstatic $(flags "$@") -Wl,-Bdynamic"; }
# builds OUT FLAG...: packaging/test/main.c. The flags are several words.
builds() { program=$1; shift; $CC $strict packaging/test/main.c "$@" -o "$program"; }
plugin() { $CC $strict -shared -fPIC packaging/test/plugin.c "$@" -o "$out/plugin.so"; }
load() { $CC $strict packaging/test/load.c -ldl -o "$out/load" && "$out/load" "$out/plugin.so"; }

dynamic() { builds "$out/dynamic" $(flags) && LD_LIBRARY_PATH=$1 "$out/dynamic" && needs "$out/dynamic"; }
# The way of a cross build: the root is a sysroot, and pkg-config must not put it before a path twice.
sysroot() {
    words=$(PKG_CONFIG_SYSROOT_DIR=$1 PKG_CONFIG_LIBDIR=$1/usr/lib/pkgconfig PKG_CONFIG_PATH='' flags) &&
        builds "$out/sysroot" $words && LD_LIBRARY_PATH=$1/usr/lib "$out/sysroot"
}
rpath() { builds "$out/rpath" $(flags) "-Wl,-rpath,$1" && "$out/rpath" && needs "$out/rpath"; }
from_archive() { builds "$out/archive" $(archive --static) && "$out/archive" && alone "$out/archive"; }
cxx() { $CXX -std=c++17 $strict packaging/test/main.cpp $(flags) "-Wl,-rpath,$1" -o "$out/cxx" && "$out/cxx"; }
hidden() { plugin $(archive --static) && load && alone "$out/plugin.so" && hides "$out/plugin.so"; }
# The control: without --static the plugin shows the library's symbols, and both ways to look for them find some.
shown() { plugin $(archive); load; [ $? = 3 ] && fails hides "$out/plugin.so"; }
whole() { builds "$out/static" $(flags) -static && "$out/static"; }

with_pkg_config() {
    root_of=$1 lib=$1/usr/lib place=$2
    if ! have pkg-config; then skip "$place: pkg-config" 'no pkg-config: apt-get install pkg-config'; return; fi
    export PKG_CONFIG_PATH="$lib/pkgconfig"
    check "$place: pkg-config knows the version" test "$(pkg-config --modversion tatcell)" = "$version"
    check "$place: a program needs the shared library by its SONAME" dynamic "$lib"
    check "$place: a program builds in a sysroot" sysroot "$root_of"
    check "$place: a program with an rpath needs no search path" rpath "$lib"
    check "$place: a program with the archive needs no library" from_archive
    check "$place: a C++ program" cxx "$lib"
    check "$place: a plugin hides the archive" hidden
    check "$place: a plugin without --static shows it, the control" shown
    echo 'int main(void) { return 0; }' > "$out/probe.c"
    if $CC -static "$out/probe.c" -o "$out/probe" 2> "$out/log"; then check "$place: a static program" whole
    else skip "$place: a static program" 'no static libc: apt-get install libc6-dev'; fi
    unset PKG_CONFIG_PATH
}

configure() {
    cmake -S packaging/test/cmake -B "$2" "$1" -DCMAKE_BUILD_TYPE=Release \
        "-DCMAKE_C_COMPILER=${CC%% *}" "-DCMAKE_CXX_COMPILER=${CXX%% *}"
}
cmake_programs() {
    configure "$1" "$2" && cmake --build "$2" || return 1
    for language in c cxx; do
        for kind in tatcell static shared; do
            "$2/${language}_$kind" || return 1
            case $kind in static) alone "$2/${language}_$kind" ;; *) needs "$2/${language}_$kind" ;; esac || return 1
        done
    done
    # Plugins with the archive: alone, and through a static library of the user's own.
    for plugin in plugin through; do
        "$2/load_$plugin" && alone "$2/lib$plugin.so" && hides "$2/lib$plugin.so" || return 1
    done
}
# Only the archive is installed: tatcell::tatcell is that one, and there is no tatcell::shared. Without the archive,
# too, CMake finds no package.
archive_only() {
    rm -rf "$2" && cp -a "$1" "$2" && rm "$2"/usr/lib/libtatcell.so* || return 1
    configure "-DCMAKE_PREFIX_PATH=$2/usr" "$2/build" > "$out/said" 2>&1 &&
        grep 'tatcell::shared is not installed' "$out/said" && cmake --build "$2/build" &&
        "$2/build/c_tatcell" && alone "$2/build/c_tatcell" && rm "$2/usr/lib/libtatcell.a" || return 1
    fails configure "-DCMAKE_PREFIX_PATH=$2/usr" "$2/none" > "$out/said" 2>&1 && grep 'neither libtatcell' "$out/said"
}
with_cmake() {
    if ! have cmake; then skip "$2: CMake" 'no cmake: apt-get install cmake'; return; fi
    check "$2: programs and plugins by CMake" cmake_programs "-DCMAKE_PREFIX_PATH=$1/usr" "$out/cmake-$2"
    check "$2: CMake without the shared library" archive_only "$1" "$out/archive-only-$2"
}

# A multiarch folder for libraries, and another one for headers.
multiarch() {
    lib=$out/multiarch/usr/lib/some-linux-gnu
    run_make install "DESTDIR=$out/multiarch" PREFIX=/usr CLI= LIBDIR=/usr/lib/some-linux-gnu \
        INCLUDEDIR=/usr/include/tatcell-0 || return 1
    words=$(PKG_CONFIG_PATH=$lib/pkgconfig flags) && builds "$out/multi" $words &&
        LD_LIBRARY_PATH=$lib "$out/multi" || return 1
    ! have cmake || cmake_programs "-Dtatcell_DIR=$lib/cmake/tatcell" "$out/multiarch/build"
}

stage=$out/stage
check 'make install' run_make install "DESTDIR=$stage" PREFIX=/usr CLI=
check 'exactly the listed files are installed' listed "$stage"
check 'libtatcell.so leads to the library with its version' linked "$stage"
check 'all may read the files, the owner alone may write them' modes "$stage"
check 'no text names a folder of the build' no_paths "$stage/usr"
with_pkg_config "$stage" installed
with_cmake "$stage" installed
mkdir -p "$out/moved" && mv "$stage" "$out/moved/deeper" && stage=$out/moved/deeper
with_pkg_config "$stage" moved
with_cmake "$stage" moved
if have pkg-config; then check 'other folders for libraries and headers' multiarch
else skip 'other folders for libraries and headers' 'no pkg-config: apt-get install pkg-config'; fi
check 'make uninstall leaves nothing' gone "$stage"

# The linker and the tools of FreeBSD are those of LLVM. They make the library with the same exports, and programs run.
exports() { nm -D --defined-only "$1" | awk '$2 == "T" { print $3 }' | sort; }
llvm() {
    run_make lib "BUILD=$out/llvm" LD=ld.lld OBJCOPY=llvm-objcopy READELF=llvm-readelf 'CC=clang -fuse-ld=lld' &&
        exports "target/c/libtatcell.so.$version" > "$out/exports" && [ -s "$out/exports" ] &&
        exports "$out/llvm/libtatcell.so.$version" | diff "$out/exports" - || return 1
    for library in libtatcell.a libtatcell.so; do
        clang -fuse-ld=lld $strict packaging/test/main.c -Iinclude "$out/llvm/$library" -o "$out/llvm/main" &&
            LD_LIBRARY_PATH=$out/llvm "$out/llvm/main" || return 1
    done
}
if have ld.lld && have llvm-objcopy && have llvm-readelf && have clang; then check 'the linker and tools of LLVM' llvm
else skip 'the linker and tools of LLVM' 'not all are there: apt-get install clang lld llvm'; fi

. packaging/test/command.sh

# The crate as a registry would get it: it builds alone, and has its licences, headers and C sources' map.
packed() {
    $CARGO package --quiet --allow-dirty --target-dir "$out/crate" || return 1
    tar -xzf "$out/crate/package/tatcell-$version.crate" -C "$out" &&
        for file in README.md LICENSE-MIT LICENSE-APACHE build.rs include/tatcell.h include/tatcell.map \
            include/tatcell.hpp; do
            cmp "$file" "$out/tatcell-$version/$file" || return 1
        done
}
c_abi() {
    # It is no member of the workspace around it.
    echo '[workspace]' >> "$out/tatcell-$version/Cargo.toml"
    (cd "$out/tatcell-$version" && $CARGO rustc --quiet --lib --features capi,host --crate-type staticlib \
        --target-dir "$out/crate") &&
        nm "$out/crate/debug/libtatcell.a" 2> /dev/null | grep -q ' T tatcell_table_check$'
}
check 'the packed crate builds, and has what it names' packed
check 'the packed crate builds the C library' c_abi
echo "1..$n"

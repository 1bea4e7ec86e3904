#!/usr/bin/env bash
# Installs into a staging folder and uses the package as its users do; then moves the folder and does it again.
OUT=${OUT:-target/ffi/package}
source "$(dirname "$0")/../ffi-tests/lib.sh"
VERSION=${VERSION:?run by make test-package} ABI=${ABI:?} MAKE=${MAKE:-make}
HERE=$PWD STAGE=$PWD/$OUT/stage MOVED=$PWD/$OUT/moved/deeper
rm -rf "$OUT"
mkdir -p "$OUT"

install_to() { $MAKE --no-print-directory -s install DESTDIR="$1" PREFIX=/usr "${@:2}"; }
claim make_install_succeeds install_to "$STAGE"

expected() {
    printf '%s\n' usr/include/tatcell.ffi.h usr/include/tatcell.h usr/include/tatcell.hpp usr/include/tatcell_host.h usr/lib/cmake/tatcell/tatcell-config-version.cmake \
        usr/lib/cmake/tatcell/tatcell-config.cmake usr/lib/libtatcell.a usr/lib/libtatcell.so usr/lib/libtatcell.so.$ABI \
        "usr/lib/libtatcell.so.$VERSION" usr/lib/pkgconfig/tatcell.pc | sort
}
files_of() { (cd "$1" && find . ! -type d | sed 's|^\./||' | sort); }
exact_files() { diff <(expected) <(files_of "$STAGE"); }
claim installed_files_are_exactly_the_listed_ones exact_files

links() { [ "$(readlink -f "$STAGE/usr/lib/libtatcell.so")" = "$STAGE/usr/lib/libtatcell.so.$VERSION" ]; }
claim library_links_lead_to_the_versioned_library links
modes() { [ -z "$(find "$STAGE" -type f ! -perm -444)" ] && [ -z "$(find "$STAGE" -type f -perm /022)" ]; }
claim installed_files_are_readable_by_all_and_writable_by_the_owner modes
no_paths() { ! grep -rIl -e "$HERE" -e "${HOME:-/root}/" "$STAGE/usr/lib/pkgconfig" "$STAGE/usr/lib/cmake" "$STAGE/usr/include"; }
claim installed_text_names_no_folder_of_the_build no_paths

# with_pkg_config ROOT OUT [FLAGS...]: builds and runs the C program with what pkg-config says.
with_pkg_config() {
    local root=$1 out=$2 flags
    shift 2
    flags=$(PKG_CONFIG_PATH=$root/usr/lib/pkgconfig pkg-config --cflags --libs tatcell) || return 1
    $CC -Wall -Wextra -Werror packaging/test/main.c $flags "$@" -o "$out" || return 1
    LD_LIBRARY_PATH=$root/usr/lib "$out"
}
links_shared() { readelf -d "$1" | grep -q 'NEEDED.*libtatcell\.so\.'"$ABI"''; }
links_none() { ! readelf -d "$1" 2>/dev/null | grep -q 'NEEDED.*libtatcell'; }
# A cross build's way: the root is a sysroot, and pkg-config must not put it before a path twice.
with_sysroot() {
    local root=$1 flags
    flags=$(PKG_CONFIG_SYSROOT_DIR=$root PKG_CONFIG_LIBDIR=$root/usr/lib/pkgconfig pkg-config --cflags --libs tatcell) || return 1
    $CC packaging/test/main.c $flags -o "$OUT/sysroot" || return 1
    LD_LIBRARY_PATH=$root/usr/lib "$OUT/sysroot"
}
pkg_config_version() {
    [ "$(PKG_CONFIG_PATH=$1/usr/lib/pkgconfig pkg-config --modversion tatcell)" = "$VERSION" ]
}

# exports FILE: whether a shared object exports anything of the library.
exports() { nm -D --defined-only "$1" | grep -q ' tatcell_'; }
# plugin_with_pkg_config ROOT FLAGS...: a shared object that links the archive, as README says.
plugin_with_pkg_config() {
    local flags
    flags=$(PKG_CONFIG_PATH=$1/usr/lib/pkgconfig pkg-config "${@:2}" --cflags --libs tatcell) || return 1
    $CC -Wall -Wextra -Werror -shared -fPIC packaging/test/plugin.c -Wl,-Bstatic $flags -Wl,-Bdynamic \
        -o "$OUT/plugin.so" && $CC -Wall -Wextra -Werror packaging/test/load.c -ldl -o "$OUT/load"
}
plugin_hides_the_archive() {
    plugin_with_pkg_config "$1" --static && links_none "$OUT/plugin.so" && "$OUT/load" "$OUT/plugin.so" &&
        ! exports "$OUT/plugin.so"
}
# The control: without --static there is something to find, and the loader finds it.
plugin_without_static_shows_it() {
    plugin_with_pkg_config "$1" && exports "$OUT/plugin.so" && { "$OUT/load" "$OUT/plugin.so" 2>/dev/null; [ $? = 3 ]; }
}
# What README says: a program that finds the shared library where it lies, and one that needs none.
program_with_rpath() {
    local flags
    flags=$(PKG_CONFIG_PATH=$1/usr/lib/pkgconfig pkg-config --cflags --libs tatcell) || return 1
    $CC packaging/test/main.c $flags -Wl,-rpath,"$1/usr/lib" -o "$OUT/rpath" && env -u LD_LIBRARY_PATH "$OUT/rpath" &&
        links_shared "$OUT/rpath"
}
program_with_archive() {
    local flags
    flags=$(PKG_CONFIG_PATH=$1/usr/lib/pkgconfig pkg-config --static --cflags --libs tatcell) || return 1
    $CC packaging/test/main.c -Wl,-Bstatic $flags -Wl,-Bdynamic -o "$OUT/archive" &&
        env -u LD_LIBRARY_PATH "$OUT/archive" && links_none "$OUT/archive"
}
cxx_with_pkg_config() {
    local flags
    flags=$(PKG_CONFIG_PATH=$1/usr/lib/pkgconfig pkg-config --cflags --libs tatcell) || return 1
    $CXX -std=c++17 packaging/test/main.cpp $flags -Wl,-rpath,"$1/usr/lib" -o "$OUT/cxx" && "$OUT/cxx"
}

# with_cmake ROOT BUILD: all programs.
with_cmake() {
    cmake -S packaging/test/cmake -B "$2" -DCMAKE_PREFIX_PATH="$1/usr" -DCMAKE_BUILD_TYPE=Release \
        -DCMAKE_C_COMPILER="$CC" -DCMAKE_CXX_COMPILER="$CXX" >"$2.log" 2>&1 &&
        cmake --build "$2" >>"$2.log" 2>&1 || { tail -20 "$2.log"; return 1; }
    local program
    for program in {c,cxx}_{tatcell,static,shared} load_plugin load_through; do
        "$2/$program" || { echo "$program: exit status $?"; return 1; }
    done
    for program in {c,cxx}_{tatcell,shared}; do
        links_shared "$2/$program" || return 1
    done
    for program in {c,cxx}_static libplugin.so libthrough.so; do
        links_none "$2/$program" || return 1
    done
    ! exports "$2/libplugin.so" && ! exports "$2/libthrough.so"
}

# Only the archive is installed: tatcell::tatcell is that one, and there is no tatcell::shared.
cmake_without_the_shared_library() {
    local root=$HERE/$OUT/archive_only
    cp -a "$1" "$root" && rm -f "$root"/usr/lib/libtatcell.so* || return 1
    cmake -S packaging/test/cmake -B "$root/build" -DCMAKE_PREFIX_PATH="$root/usr" -DCMAKE_C_COMPILER="$CC" \
        -DCMAKE_CXX_COMPILER="$CXX" >"$root/log" 2>&1 && cmake --build "$root/build" >>"$root/log" 2>&1 &&
        grep -q 'tatcell::shared is not installed' "$root/log" && "$root/build/c_tatcell" &&
        links_none "$root/build/c_tatcell" || { tail -5 "$root/log"; return 1; }
    rm -f "$root/usr/lib/libtatcell.a"
    ! cmake -S packaging/test/cmake -B "$root/none" -DCMAKE_PREFIX_PATH="$root/usr" >"$root/log" 2>&1 &&
        grep -q 'neither libtatcell' "$root/log"
}

round() {
    local root=$1 when=$2
    if have pkg-config; then
        claim "pkg_config_knows_the_version_$when" pkg_config_version "$root"
        claim "program_builds_with_pkg_config_$when" with_pkg_config "$root" "$OUT/dynamic"
        claim "program_needs_the_soname_$when" links_shared "$OUT/dynamic"
        claim "program_builds_in_a_sysroot_$when" with_sysroot "$root"
        claim "program_with_rpath_runs_without_a_search_path_$when" program_with_rpath "$root"
        claim "program_with_the_archive_needs_no_library_$when" program_with_archive "$root"
        claim "cxx_program_builds_with_pkg_config_$when" cxx_with_pkg_config "$root"
        claim "plugin_hides_the_archive_$when" plugin_hides_the_archive "$root"
        claim "plugin_without_static_shows_it_$when" plugin_without_static_shows_it "$root"
        if echo 'int main(void) { return 0; }' | $CC -static -x c - -o "$OUT/probe" 2>/dev/null; then
            claim "static_program_builds_with_pkg_config_$when" with_pkg_config "$root" "$OUT/static" -static
        else
            skip "static_program_builds_with_pkg_config_$when" "no static libc (apt-get install libc6-dev)"
        fi
    else
        skip "program_builds_with_pkg_config_$when" "pkg-config is not installed (apt-get install pkgconf)"
    fi
    if have cmake; then
        claim "programs_build_with_cmake_$when" with_cmake "$root" "$OUT/cmake-$when"
        claim "cmake_without_the_shared_library_$when" cmake_without_the_shared_library "$root"
        rm -rf "$OUT/archive_only"
    else
        skip "programs_build_with_cmake_$when" "cmake is not installed (apt-get install cmake)"
    fi
}

round "$STAGE" where_it_was_installed
mkdir -p "$(dirname "$MOVED")" && mv "$STAGE" "$MOVED"
round "$MOVED" after_it_was_moved

# A multiarch library folder and another include folder.
multiarch() {
    local root=$HERE/$OUT/multiarch flags
    install_to "$root" LIBDIR=/usr/lib/some-linux-gnu INCLUDEDIR=/usr/include/tatcell-0 || return 1
    flags=$(PKG_CONFIG_PATH=$root/usr/lib/some-linux-gnu/pkgconfig pkg-config --cflags --libs tatcell) || return 1
    $CC packaging/test/main.c $flags -o "$OUT/multiarch/program" || return 1
    LD_LIBRARY_PATH=$root/usr/lib/some-linux-gnu "$OUT/multiarch/program" || return 1
    have cmake || return 0
    cmake -S packaging/test/cmake -B "$OUT/multiarch/build" -Dtatcell_DIR="$root/usr/lib/some-linux-gnu/cmake/tatcell" \
        >"$OUT/multiarch/log" 2>&1 && cmake --build "$OUT/multiarch/build" >>"$OUT/multiarch/log" 2>&1 &&
        "$OUT/multiarch/build/c_static" || { tail -5 "$OUT/multiarch/log"; return 1; }
}
if have pkg-config; then
    claim other_library_and_include_folders_work multiarch
fi

uninstalls() {
    $MAKE --no-print-directory -s uninstall DESTDIR="$MOVED" PREFIX=/usr && [ -z "$(files_of "$MOVED")" ] &&
        [ ! -d "$MOVED/usr/lib/cmake/tatcell" ]
}
claim make_uninstall_removes_every_file uninstalls
done_testing

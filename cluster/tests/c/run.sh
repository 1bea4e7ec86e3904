#!/bin/sh
# The C interface with a redis-server: tests/c/api.c and examples/poll.c as C11, as C++17 and under sanitizers, then
# from what `make install` installs, by pkg-config and by CMake; and the demo's verdict lines. `make test-c` runs it; it
# prints TAP.
set -u
part=c
. tests/tap.sh
lib=$PWD/target/c out=$PWD/target/test-c
strict='-Wall -Wextra -Werror -pedantic'
c11='-std=c11 -D_GNU_SOURCE'
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
map=include/tatcell_cluster.map
# The number of the ABI, from the first node of the list of exports.
abi=$(sed -n '1s/^TATCELL_CLUSTER_\([0-9]*\) .*/\1/p' $map)
rm -rf "$out"
mkdir -p "$out"

exports() {
    sed -n 's/^ *\(tatcell_cluster_[a-z0-9_]*\);.*/\1/p' $map | sort > "$out/wanted"
    nm -D --defined-only "$lib/libtatcell_cluster.so" | awk '{ sub(/@.*/, "", $3); print $3 }' |
        grep -v '^TATCELL_CLUSTER_' | sort -u > "$out/found"
    same exports "$out/wanted" "$out/found"
}

soname() { readelf -d "$lib/libtatcell_cluster.so" | grep -F "SONAME" | grep -F "[libtatcell_cluster.so.$abi]"; }

# compile KIND NAME SOURCE. The Rust side is not instrumented, so the thread sanitizer is kept out of the shared library: it
# watches what the C side does and is handed.
compile() {
    case $1 in
    c11) with="${CC:-cc} $c11 -O2 -x c" ;;
    cxx17) with="${CXX:-c++} -std=c++17 -O2 -x c++" ;;
    asan) with="${CC:-cc} $c11 -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -x c" ;;
    tsan) with="${CC:-cc} $c11 -O1 -g -fsanitize=thread -x c" ;;
    esac
    $with $strict -Iinclude "$3" -x none -L"$lib" -ltatcell_cluster -lpthread -o "$out/$2_$1"
}

# runs PROGRAM LIBRARIES: with an empty store.
runs() {
    LD_LIBRARY_PATH=$2 TSAN_OPTIONS=ignore_noninstrumented_modules=1 \
        timeout 60 tests/store.sh sh -c "'$1' \"\$STORE\""
}

# claim_run NAME PROGRAM LIBRARIES
claim_run() {
    if have redis-server && have redis-cli; then claim "$1" runs "$2" "$3"
    else skip "$1" 'no redis-server or redis-cli: apt-get install redis-server redis-tools'; fi
}

# An unused verdict is a warning, unless TATCELL_IGNORE makes the call. gcc warns when it makes code.
unused() {
    printf '#include <tatcell_cluster.h>\nvoid f(void) { CALL(tatcell_cluster_check(0, 0, 0, 0, 1, 0, 0, 0)); }\n' > "$out/unused.c"
    makes="${CC:-cc} -std=c11 -Werror -Iinclude -c $out/unused.c -o $out/unused.o"
    $makes -DCALL=TATCELL_IGNORE && ! $makes '-DCALL(call)=call'
}
claim an_unused_verdict_is_a_warning unused
claim the_shared_library_exports_the_list_and_no_more exports
claim the_shared_library_is_named_by_its_abi soname
for kind in c11 cxx17 asan tsan; do
    for source in tests/c/api.c examples/poll.c; do
        name=$(basename $source .c)
        if claim "${name}_as_${kind}_compiles" compile $kind "$name" $source; then
            claim_run "${name}_as_${kind}_runs" "$out/${name}_$kind" "$lib"
        fi
    done
done

# What is installed, into a staging folder that is moved afterwards: nothing in it may name where it was.
make_in() { env -u MAKEFLAGS -u MAKELEVEL make --no-print-directory "$1" DESTDIR="$2" PREFIX=/usr; }
listed() {
    sort > "$out/wanted" <<END
usr/include/tatcell_cluster.h
usr/lib/cmake/tatcell_cluster/tatcell_cluster-config-version.cmake
usr/lib/cmake/tatcell_cluster/tatcell_cluster-config.cmake
usr/lib/libtatcell_cluster.a
usr/lib/libtatcell_cluster.so
usr/lib/libtatcell_cluster.so.$abi
usr/lib/libtatcell_cluster.so.$version
usr/lib/pkgconfig/tatcell_cluster.pc
usr/share/doc/tatcell-cluster/LICENSE-APACHE
usr/share/doc/tatcell-cluster/LICENSE-MIT
END
    (cd "$out/stage" && find . ! -type d | sed 's|^\./||' | sort) > "$out/found"
    same files "$out/wanted" "$out/found"
}
with_pkg_config() {
    flags=$(PKG_CONFIG_PATH=$1/pkgconfig pkg-config $2 --cflags --libs tatcell_cluster) || return
    # The archive lies next to the shared library, which the linker prefers.
    [ -z "$2" ] || flags=$(echo "$flags" | sed 's/-ltatcell_cluster/-l:libtatcell_cluster.a/')
    ${CC:-cc} $c11 -pthread $strict examples/poll.c $flags -o "$3"
}
with_cmake() {
    cmake -S tests/c -B "$out/cmake" -DCMAKE_PREFIX_PATH="$1" -DCMAKE_BUILD_TYPE=Release && cmake --build "$out/cmake"
}
gone() { make_in uninstall "$1" && left=$(find "$1" ! -type d) && { [ -z "$left" ] || fault "$left stays"; }; }

if claim make_install_succeeds make_in install "$out/stage"; then
    claim installed_files_are_exactly_the_listed_ones listed
    mv "$out/stage" "$out/moved"
    installed=$out/moved/usr/lib
    for kind in '' --static; do
        name=program_builds_with_pkg_config$(echo $kind | tr - _)
        if ! have pkg-config; then skip "$name" 'no pkg-config: apt-get install pkg-config'
        elif claim "$name" with_pkg_config "$installed" "$kind" "$out/poll$kind"; then
            claim_run "$name"_and_runs "$out/poll$kind" "$installed"
        fi
    done
    if ! have cmake; then skip program_builds_with_cmake 'no cmake: apt-get install cmake'
    elif claim program_builds_with_cmake with_cmake "$out/moved/usr"; then
        claim_run program_of_cmake_runs_with_the_shared_library "$out/cmake/poll_shared" "$installed"
        claim_run program_of_cmake_runs_with_the_archive "$out/cmake/poll_static" /nowhere
    fi
    claim make_uninstall_removes_every_file gone "$out/moved"
fi

# The demo, whose verdict lines are the claims. One that misses a goal gets one more try.
demo() { target/release/tatcell-cluster-demo --svg "$out/cluster.svg" > "$out/demo"; }
if ! have redis-server; then skip demo 'no redis-server: apt-get install redis-server'
else
    demo || { echo '# the demo once more'; demo; }
    while read -r word line; do
        case $word in
        PASS) claim "demo: $line" true ;;
        FAIL) claim "demo: $line" false ;;
        SKIP) skip "demo: $line" 'the machine was busy' ;;
        esac
    done < "$out/demo"
    claim demo_has_its_eight_lines [ "$(grep -c '^PASS\|^FAIL\|^SKIP' "$out/demo")" = 8 ]
fi
done_testing

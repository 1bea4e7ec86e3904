#!/bin/sh
# Runs a command with an empty redis-server of its own on loopback: tests/store.sh COMMAND...
# The command finds the URL of the store in $STORE and its port in $STORE_PORT.
set -u
folder=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM
# Below the ports that the system gives to connections, and outside those of the Rust tests.
STORE_PORT=$((11000 + $$ % 900))
for _ in $(seq 50); do
    STORE_PORT=$((STORE_PORT + 1))
    redis-server --port $STORE_PORT --bind 127.0.0.1 --save '' --appendonly no --dir "$folder" > /dev/null &
    server=$!
    # It ends at once where something else has the port; then that may answer, so the answer must be of this process.
    while kill -0 "$server" 2> /dev/null; do
        if redis-cli -p $STORE_PORT info server 2> /dev/null | grep -q "^process_id:$server"; then
            export STORE_PORT STORE="redis://127.0.0.1:$STORE_PORT/"
            "$@"
            exit
        fi
        sleep 0.02
    done
done
echo 'redis-server does not start' >&2
exit 1

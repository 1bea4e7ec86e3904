#!/bin/sh
# The container files of the servers, built from a fresh clone and run: `make -C cluster test-containers`. It speaks TAP.
#
#   clone    what is committed, without anything that was built
#   build    each file as it is, by buildah, on the images that it names; where those cannot be had it skips
#   run      each image as it is, by podman, without a network: asked from within, as the user that it names, stopped
#
# TATCELL_QUICK=1 tries one server.
set -u
part=containers
. tests/tap.sh
for tool in buildah podman git; do
    have $tool || { skip "$tool" "no $tool: apt-get install buildah podman git"; done_testing; }
done
runtime=
! have runc || runtime='--runtime runc'
had() { podman image exists "$1" || { [ -z "${TATCELL_NO_INSTALL:-}" ] && timeout 300 podman pull --quiet "$1"; }; }
for image in $(sed -n 's/^FROM \([^ ]*\).*/\1/p' throttled/Containerfile envoy/Containerfile | sort -u); do
    had "$image" > "$log" 2>&1 || { skip images "$image cannot be had: podman pull $image"; done_testing; }
done
folder=$(mktemp -d)
trap 'rm -rf "$folder" "$log"' EXIT
git clone --quiet --depth 1 "file://$(git rev-parse --show-toplevel)" "$folder/clone" || exit
mkdir -p "${CARGO_HOME:=$HOME/.cargo}/registry"

# Crates that this machine has are not fetched once more.
build() {
    timeout 3600 buildah build --isolation chroot --network host --volume "$CARGO_HOME/registry:/usr/local/cargo/registry:rw" \
        --file "$folder/clone/cluster/$1/Containerfile" --tag "localhost/$2:test" "$folder/clone"
}

# ask NAME PORT SENT SHOWN AWAITED: from within, where the system has nothing but a shell. SENT is in the words of printf;
# SHOWN makes a line of the answer, which then begins with AWAITED.
ask() {
    for _ in $(seq 100); do
        said=$(podman exec "$1" bash -c \
            "exec 3<>/dev/tcp/127.0.0.1/$2 && printf '$3' >&3 && timeout 10 cat <&3 | $4" 2>&1)
        case $said in "$5"*) return ;; esac
        sleep 0.2
    done
    fault "port $2 says $said, not $5"
}

line="tr -d '\\r' | tr '\\n' ' '"
health='GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n'
# A client's first words in HTTP/2, with no settings; the type of a server's first frame, which is 4, of settings.
http2='PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0'
frame="head -c 4 | od -An -tx1 | cut -d ' ' -f 5"

asked() {
    user=$(podman exec "$2" id -un)
    [ "$user" = nobody ] || fault "it runs as $user" || return
    case $1 in
    throttled)
        ask "$2" 6379 'CL.THROTTLE user123 15 30 60 1\r\nQUIT\r\n' "$line" '*5 :0 :16 :15 :-1 :2' &&
            ask "$2" 9121 "$health" "$line" 'HTTP/1.1 200 OK' ;;
    envoy)
        ask "$2" 8081 "$http2" "$frame" 04 && ask "$2" 9122 "$health" "$line" 'HTTP/1.1 200 OK' ;;
    esac
}

run() {
    name=$2-test-$$ given=
    [ "$1" != envoy ] || given="--volume $folder/clone/cluster/envoy/rules.yaml:/etc/tatcell/rules.yaml:ro"
    # A container may have as much as this process where it may not raise it.
    podman $runtime run --detach --name "$name" --network none --ulimit nofile=1024:1024 --ulimit nproc=1024:1024 $given \
        "localhost/$2:test" || return
    asked "$1" "$name"
    answered=$?
    podman stop --time 20 "$name"
    ended=$(podman inspect --format '{{.State.ExitCode}}' "$name")
    said=$(podman logs "$name" 2>&1)
    podman rm --force "$name"
    [ $answered = 0 ] || return
    [ "$ended" = 0 ] || fault "it ended with $ended: $said" || return
    case $said in *'stopped; '*) ;; *) fault "its last line is missing: $said" ;; esac
}

try() {
    claim "$2: its_container_file_builds_from_a_fresh_clone" build "$1" "$2" &&
        claim "$2: its_container_answers_and_stops" run "$1" "$2"
}

try throttled tatcell-throttled
[ -n "${TATCELL_QUICK:-}" ] || try envoy tatcell-ratelimit
done_testing

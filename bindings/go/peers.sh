#!/bin/sh
# Runs `go` on the module in compare/ with the peers that can be had: peers.sh FOLDER COMMAND...
#
# A peer has a build tag. They come by the module proxy. Without one, GOPATH mode takes what distributions install in
# /usr/share/gocode, and what TATCELL_GOPATH names; a peer that is not there is left out, with a line.
set -u
here=$(cd "$(dirname "$0")" && pwd) folder=${1:?folder to work in}; shift
GO=${GO:-go}
mkdir -p "$folder" && folder=$(cd "$folder" && pwd) || exit 1
rm -rf "$folder/compare" && cp -R "$here/compare" "$folder" && cd "$folder/compare" || exit 1
$GO mod edit -replace "tatcell.example/tatcell=$here" || exit 1
tags=
if $GO mod tidy > "$folder/log" 2>&1; then tags=xtime,throttled,grpc
else
    path=$folder/gopath
    rm -rf "$path" && mkdir -p "$path/src/tatcell.example" && ln -s "$here" "$path/src/tatcell.example/tatcell" &&
        ln -s "$folder/compare" "$path/src/tatcell.example/compare" && cd "$path/src/tatcell.example/compare" || exit 1
    export GO111MODULE=off GOPATH="$path:${TATCELL_GOPATH:-}:/usr/share/gocode" GOFLAGS=
    for peer in xtime=golang.org/x/time/rate throttled=github.com/throttled/throttled/v2/store/memstore \
        grpc=google.golang.org/grpc/health/grpc_health_v1; do
        if $GO list -deps "${peer#*=}" > /dev/null 2> "$folder/log"; then tags=$tags,${peer%%=*}
        else echo "SKIP ${peer#*=}: no module proxy, and no source in GOPATH" >&2; fi
    done
fi
verb=$1; shift
exec $GO "$verb" -tags "${tags#,}" "$@"

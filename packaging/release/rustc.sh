#!/bin/sh
# rustc for a release, as RUSTC_WRAPPER: the programs are the same bytes in whatever folder they are built.
#
# cargo tells crates of one name apart by a hash, which becomes a part of each symbol, and so of their order. For a crate
# that lies outside of the workspace that is built, as the library does, that hash is of its absolute path. So the crates
# of this tree, which have names of their own, get one that is fixed.
rustc=$1
shift
case " $* " in
*' --crate-name tatcell'*)
    for argument; do
        shift
        case $argument in metadata=*) argument=metadata=tatcell ;; esac
        set -- "$@" "$argument"
    done
    ;;
esac
exec "$rustc" "$@"

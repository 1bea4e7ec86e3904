#!/bin/sh
# What the servers are installed with, as far as that can be seen without starting it: their units for systemd and their
# container files. `make test-servers` runs it once the programs are built; it speaks TAP.
set -u
part=files
. tests/tap.sh
built=$PWD/target/debug

# The unit, with the program where it was built: systemd looks whether it can be executed.
unit() {
    file=$1/$2.service copy=$(mktemp -d)/$2.service
    grep -q "^ExecStart=/usr/local/bin/$2 " "$file" || fault "it does not start $2" || return
    # What stops it must be less than what systemd waits for it.
    grep -qx TimeoutStopSec=15 "$file" || fault 'it is not given the time to stop' || return
    # A signal that is not for it must not end the service.
    grep -qx Restart=always "$file" || fault 'it is not started again after every end' || return
    sed "s|/usr/local/bin/$2 |$built/$2 |" "$file" > "$copy"
    # Other units of this machine may have faults of their own; what is only doubtful ends with 0.
    faults=$(systemd-analyze verify "$copy" 2>&1 | grep -F "$2")
    rm -r "$(dirname "$copy")"
    [ -z "$faults" ] || fault "$faults"
}

# What follows a word of a container file, at its last place.
said() { sed -n "s/^$1 //p" "$file" | tail -1; }

# Builds this program, copies it, and starts it by settings that it knows, at the ports that it names, as nobody.
container() {
    file=$1/Containerfile program=$2
    run="cargo build --release --locked --features tls -p $program"
    [ "$(said RUN)" = "$run" ] || fault "it runs $(said RUN)" || return
    [ "$(said WORKDIR)" = /src/cluster ] || fault "it builds in $(said WORKDIR)" || return
    # The package and the feature are there, and the lock file is one that --locked takes.
    "${CARGO:-cargo}" tree --locked --features tls -p "$program" > /dev/null || return
    [ "$(said COPY)" = "--from=build /src/cluster/target/release/$program /usr/local/bin/" ] ||
        fault "it copies $(said COPY)" || return
    [ "$(said ENTRYPOINT)" = "[\"$program\"]" ] || fault "it starts $(said ENTRYPOINT)" || return
    [ "$(said USER)" = nobody ] || fault "it runs as $(said USER)" || return
    help=$("$built/$program" --help)
    # After a title and an empty line, each line is indented.
    ! echo "$help" | sed 1,2d | grep -v '^  ' || fault "$program --help has lost an indent" || return
    settings=$(said CMD | tr -d '[],' | tr '"' ' ')
    for word in $settings; do
        case $word in
        --*) echo "$help" | grep -q -e "$word " || fault "$program has no setting $word" || return ;;
        esac
    done
    ports=$(for word in $settings; do echo "$word" | sed -n 's/^0\.0\.0\.0://p'; done | xargs)
    [ "$(said EXPOSE)" = "$ports" ] || fault "it listens at $ports and exposes $(said EXPOSE)"
}

while read -r folder program; do
    name="$program: systemd_finds_no_fault_in_its_unit"
    if have systemd-analyze; then claim "$name" unit "$folder" "$program"
    else skip "$name" 'no systemd-analyze: apt-get install systemd'; fi
    claim "$program: its_container_file_starts_what_it_builds" container "$folder" "$program"
done <<END
throttled tatcell-throttled
envoy tatcell-ratelimit
END
done_testing

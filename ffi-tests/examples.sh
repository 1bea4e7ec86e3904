#!/bin/sh
# The programs of examples/: gcc and clang compile each without a warning, and each tests itself, by itself or on
# loopback. From the root; environment: CC, CXX, INC, LIB.
. ffi-tests/tap.sh
prefix='examples: '
warnings='-Wall -Wextra -Wconversion -Wshadow -Wpedantic -Werror'

# compiles SOURCE COMPILER OPTIONS...: into $tmp/program.
compiles() {
    source=examples/$1 compiler=$2
    shift 2
    case $source in *.cpp) standard=c++17 ;; *) standard=c11 ;; esac
    $compiler -std=$standard -O2 -I"$INC" "$@" "$source" "$LIB/libtatcell.a" -pthread -o "$tmp/program"
}
short() { [ "$(wc -l < "examples/$1")" -lt 170 ]; }
passes() { timeout 100 "$tmp/program" > "$tmp/printed" 2>&1 || { cat "$tmp/printed"; return 1; }; }

# With a library that lets everything pass, the test of a program must fail. Its calls become 0, which is a pass.
printf '#define tatcell_%s(...) 0\n' ladder_check table_check_ex cell_check_ex sliding_log_check_ex shaper_submit \
    > "$tmp/open.h"
echo '#define tatcell_ladder_check_burst(ladder, table, burst, pass) (*(pass) = UINT64_MAX, 0)' >> "$tmp/open.h"
notices() {
    compiles "$1" "$2" -w -D_GNU_SOURCE -include tatcell.h -include "$tmp/open.h" && fails passes
}

# program SOURCE COMPILER...
program() {
    name=$1
    shift
    claim "${name}_has_less_than_170_lines" short "$name"
    for compiler; do
        if have "$compiler"; then claim "$compiler: ${name}_has_no_warning" compiles "$name" "$compiler" $warnings
        else skip "$compiler: ${name}_has_no_warning" "$compiler is missing: apt-get install $compiler"; fi
    done
    claim "${name}_shows_its_limiter_at_work" passes
    claim "${name}_notices_a_limiter_that_is_open" notices "$name" "$1"
}
program dns_rrl.c gcc clang
program http_429.c gcc clang
program http_429.cpp g++ clang++
program login.c gcc clang
program quota.c gcc clang
program shaper.c gcc clang
program smtp_prefork.c gcc clang

# A real client: what curl makes of the server's answers.
asked() {
    compiles http_429.c "$CC" || return
    mkfifo "$tmp/url"
    timeout 60 "$tmp/program" 0 '2/h burst 2' > "$tmp/url" &
    server=$!
    read -r url < "$tmp/url"
    curl --silent --include --noproxy '*' --max-time 20 --header 'X-API-Key: ann' "$url" "$url" "$url" > "$tmp/got"
    kill $server
    tr -d '\r' < "$tmp/got" |
        sed -n 's/^HTTP\/1.1 \([0-9]*\).*/\1/p; s/^\(Retry-After: \)[1-9][0-9]*$/\1/p' > "$tmp/answers"
    printf '200\n200\n429\nRetry-After: \n' | diff - "$tmp/answers" && grep -q '^RateLimit: "client";r=0;t=' "$tmp/got"
}
if have curl; then claim curl_gets_429_and_retry_after asked
else skip curl_gets_429_and_retry_after 'curl is missing: apt-get install curl'; fi
finish

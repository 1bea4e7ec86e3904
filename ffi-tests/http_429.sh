#!/bin/sh
# examples/http_429.c, built and asked by curl, on a free port of loopback.
#
# The limit is 2 requests at once and one more each 3 seconds. Each claim uses a key of its own, so none waits for
# another. The waits are real, for a client has no other clock. A busy machine may be late; a claim whose answers were
# wrong while it was late is tried again with another key. From the root; environment: CC, INC, LIB.
. ffi-tests/tap.sh
prefix='http_429: '
have curl || { skip a_real_client_is_answered 'curl is missing: apt-get install curl'; finish; exit; }

builds() {
    $CC -std=c11 -O2 -I"$INC" -Wall -Wextra -Werror -pedantic examples/http_429.c "$LIB/libtatcell.a" -o "$tmp/http_429"
}
claim the_example_compiles_without_a_warning builds
[ -x "$tmp/http_429" ] || { finish; exit 1; }

# Starts a server. Sets $server, its process, and $url; what it prints comes out of the pipe $1.
start() {
    mkfifo "$1"
    "$tmp/http_429" -p 0 -u 1 -w 3 -b 2 > "$1" < /dev/null &
    server=$!
    trap 'kill $server 2> /dev/null; rm -rf "$tmp"' EXIT
    exec 3< "$1"
    read -r line <&3
    url=${line#listening on }
}
# Asks with key $1, $2 times over one connection. What came back, headers included, is in $tmp/got.
ask() {
    urls=$(i=0; while [ $i -lt "$2" ]; do echo "$url"; i=$((i + 1)); done)
    if [ -n "$1" ]; then
        curl --silent --show-error --include --noproxy '*' --max-time 20 --header "X-API-Key: $1" $urls
    else
        curl --silent --show-error --include --noproxy '*' --max-time 20 $urls
    fi | tr -d '\r' > "$tmp/got"
    [ "$(grep -c '^HTTP/1.1 ' "$tmp/got")" = "$2" ] || { cat "$tmp/got"; return 1; }
}
# The status of each answer and, sorted, the fields that this file looks at: one answer a line.
# X-RateLimit-Limit is written X-Limit, and so on.
answers() {
    awk '
        function print_answer(    n, f, i, j, t) {
            n = split(fields, f, "\n")
            for (i = 2; i <= n; i++)
                for (j = i; j > 1 && f[j - 1] > f[j]; j--) { t = f[j]; f[j] = f[j - 1]; f[j - 1] = t }
            for (i = 1; i <= n; i++) if (f[i] != "") status = status " " f[i]
            if (status != "") print status
        }
        /^HTTP\/1.1 / { print_answer(); status = $2; fields = "" }
        /^(RateLimit|RateLimit-Policy|Retry-After|X-RateLimit-[A-Za-z]*): / {
            sub(/: /, "=")
            sub(/^X-RateLimit/, "X")
            fields = fields $0 "\n"
        }
        END { print_answer() }' "$tmp/got"
}
statuses() { sed -n 's/^HTTP\/1.1 \([0-9]*\).*/\1/p' "$tmp/got"; }
milliseconds() { date +%s%3N; }

# Runs a claim up to three times: a wrong answer counts only if the machine was not late. The claim sets $late.
in_time() {
    for try in 1 2 3; do
        late=
        "$1" "$1 $try" && return
        [ -n "$late" ] || return
    done
    return 1
}

same_answers() { answers | diff "$tmp/wanted" -; }
fields() {
    began=$(milliseconds)
    ask "$1" 3 || return
    # A second later other seconds would be right.
    [ $(($(milliseconds) - began)) -lt 1000 ] || late=yes
    cat > "$tmp/wanted" << 'EOF'
200 RateLimit-Policy="client";q=2;w=6 RateLimit="client";r=1;t=3 X-Limit=2 X-Remaining=1 X-Reset=3
200 RateLimit-Policy="client";q=2;w=6 RateLimit="client";r=0;t=6 X-Limit=2 X-Remaining=0 X-Reset=6
429 RateLimit-Policy="client";q=2;w=6 RateLimit="client";r=0;t=3 Retry-After=3 X-Limit=2 X-Remaining=0 X-Reset=3
EOF
    same_answers
}
# The grammar of RFC 9651 for a List of Strings, with integers, strings and byte sequences as parameters.
structured() {
    ask structured 3 || return
    string='"([] !#-[^-~]|\\["\\])*"'
    parameter="(;[a-z*][a-z0-9_.*-]*=([0-9]{1,15}|$string|:[A-Za-z0-9+/=]*:))"
    list="$string$parameter*(, $string$parameter*)*"
    [ "$(grep -cE "^RateLimit: $list\$" "$tmp/got")" = 3 ] &&
        [ "$(grep -cE "^RateLimit-Policy: $list\$" "$tmp/got")" = 3 ] &&
        grep -qE '^Retry-After: [0-9]+$' "$tmp/got" || { cat "$tmp/got"; return 1; }
}
keys() {
    for key in one two ''; do
        ask "$key" 2 && [ "$(echo $(statuses))" = '200 200' ] ||
            { echo "key '$key' has no burst of its own"; return 1; }
    done
}
connection() {
    ask connection 20 || return
    passed=$(statuses | grep -c 200)
    [ "$passed" -ge 2 ] && [ "$passed" -lt 20 ] || { echo "$passed of 20 passed"; return 1; }
    fails grep -i '^Connection:' "$tmp/got"
}
waits() {
    ask "$1" 3 || return
    [ "$(answers | sed -n '3s/.*Retry-After=\([0-9]*\).*/\1/p')" = 3 ] || { late=yes; answers; return 1; }
    answered=$(milliseconds)
    sleep 2
    ask "$1" 1 || return
    [ $(($(milliseconds) - answered)) -lt 3000 ] || late=yes
    [ "$(answers | sed -n 's/^429 .*Retry-After=\([0-9]*\).*/\1/p')" = 1 ] || { answers; return 1; }
    # Three seconds after the refusal was read.
    while [ $(($(milliseconds) - answered)) -lt 3000 ]; do sleep 0.1; done
    ask "$1" 1 && [ "$(statuses)" = 200 ] && fails grep Retry-After "$tmp/got"
}
# Uses a server of its own, so that all that it logs is known.
logged() {
    kill $server && wait $server
    start "$tmp/second"
    began=$(milliseconds) refused=0
    while [ $(($(milliseconds) - began)) -lt 2500 ]; do
        ask logged 5 || return
        refused=$((refused + $(statuses | grep -c 429)))
    done
    seconds=$((($(milliseconds) - began) / 1000))
    kill $server
    cat <&3 > "$tmp/log"
    wait $server || { echo 'the server ended with an error'; return 1; }
    fails grep -vE '^refused 127\.0\.0\.1(, and [0-9]+ more were not logged)?$' "$tmp/log" || return
    lines=$(grep -c . "$tmp/log")
    counted=$(awk '{ n += 1 + (/more were not logged/ ? $4 : 0) } END { print n + 0 }' "$tmp/log")
    [ "$lines" -ge 2 ] && [ "$lines" -le $((1 + seconds)) ] && grep -q 'more were not logged' "$tmp/log" &&
        [ "$counted" -le "$refused" ] ||
        { echo "$lines lines in $seconds s, $counted refusals logged, $refused seen"; cat "$tmp/log"; return 1; }
}

start "$tmp/first"
claim answers_200_and_429_with_all_the_fields in_time fields
claim fields_are_structured_fields structured
claim keys_and_addresses_have_limits_of_their_own keys
claim one_connection_takes_several_requests connection
claim who_waits_retry_after_passes_and_a_second_less_does_not in_time waits
claim refusals_are_logged_once_a_second_with_the_count_of_the_others logged
finish

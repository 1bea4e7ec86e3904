#!/bin/sh
# include/tatcell_small.h in each language that it claims, with limits and a table as static data; and what it must
# refuse when it is compiled.
cd "$(dirname "$0")/.." || exit 1
. tests/claim.sh
cc=${CC:-cc} cxx=${CXX:-c++}

compile() { # LANGUAGE STANDARD FILE OPTION...; optimised, as what the compiler could compute must be refused as well
    language=$1 standard=$2 file=$3
    shift 3
    compiler=$cc
    [ "$language" = c ] || compiler=$cxx
    $compiler -x "$language" -std="$standard" -O2 -I../include "$@" -c "tests/small_header/$file" -o /dev/null
}

for standard in c99 c11 c17 c++11 c++17 c++20; do
    claim "small_header_compiles_as_$standard" \
        compile "$(echo "$standard" | tr -d '0-9')" $standard use.c -Wall -Wextra -Werror -pedantic
done
cases=$(sed -n 's/^#.*if defined //p' tests/small_header/refused.c)
for standard in c11 c++17; do
    language=c reason='negative width|not an integer constant'
    [ $standard = c11 ] || language=c++ reason='this limit cannot be represented|multiple of 16|constant expression'
    claim "control_small_header_compiles_a_right_limit_in_$standard" compile $language $standard refused.c -w
    for case in $cases; do
        claim "small_header_refuses_${case}_in_$standard" \
            refused "$reason" compile $language $standard refused.c -w "-D$case"
    done
done
claim small_header_warns_of_a_verdict_that_nobody_looks_at \
    refused 'unused-result' compile c c11 refused.c -Werror -DVERDICT
exit $failed

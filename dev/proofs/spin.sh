#!/bin/sh
# Explores insert.pml with Spin: proofs/spin.sh [long]. TAP.
#
# The model must hold in every state, and must have about as many states as before (four fifths at least): a world that
# was lost, or a caller that never runs, leaves fewer. Each weakened form must fail at the assertion that it breaks. A
# model that finds nothing there finds nothing elsewhere; one that stops at something else has not found it.
set -u
here=$(cd "$(dirname "$0")" && pwd)
out=$here/../target/proofs
n=0

if ! command -v spin > /dev/null; then
    echo 'ok 1 - spin # SKIP spin is missing: apt-get install spin'
    echo '1..1'
    exit
fi

# explore NAME FLAG...: sets states, broken (the assertion, in Spin's words, or nothing) and trouble (why the search
# says nothing).
explore() {
    folder=$out/$1
    shift
    states= broken= trouble=
    mkdir -p "$folder" && cd "$folder" || exit
    if ! spin -a "$@" "$here/insert.pml" > spin.log 2>&1; then trouble='spin failed'; return; fi
    ${CC:-cc} -O1 -w -DSAFETY -DCOLLAPSE -DVECTORSZ=2048 -o pan pan.c 2> spin.log || { trouble='cc failed'; return; }
    ./pan -m1000000 > pan.log 2>&1
    states=$(sed -n 's/^ *\([0-9]*\) states, stored.*/\1/p' pan.log)
    broken=$(sed -n 's/^pan:1: //p' pan.log)
    errors=$(sed -n 's/.*errors: \([0-9]*\).*/\1/p' pan.log)
    if [ -z "$states" ] || [ -z "$errors" ]; then
        trouble="no count of states or errors: $(tail -n 1 pan.log)"
    elif [ "$errors" = 0 ] && grep -q 'Search not completed\|max search depth' pan.log; then
        trouble='the search did not get through'
    elif [ "$errors" != 0 ] && [ -z "$broken" ]; then
        trouble="$errors errors, and none is named"
    fi
}

# told WHY NAME: the test passes if WHY is empty.
told() {
    n=$((n + 1))
    if [ -z "$1" ]; then echo "ok $n - spin: $2"; else echo "not ok $n - spin: $2"; echo "# $1"; failed=1; fi
}

# holds LEAST NAME FLAG...
holds() {
    least=$1 name=$2
    shift
    explore "$@"
    if [ -z "$trouble" ]; then
        if [ -n "$broken" ]; then trouble=$broken
        elif [ "$states" -lt "$least" ]; then trouble="$states states, and there should be $least"
        else echo "# $name: $states states, all of them"; fi
    fi
    told "$trouble" "${name}_holds_in_every_state"
}

# breaks ASSERTION NAME FLAG...
breaks() {
    assertion=$1 name=$2
    shift
    explore "$@"
    if [ -z "$trouble" ]; then
        case $broken in
        "assertion violated $assertion (at depth "*) ;;
        '') trouble="nothing found in $states states" ;;
        *) trouble="$broken, instead of $assertion" ;;
        esac
    fi
    told "$trouble" "${name}_is_found_out"
}

failed=0
if [ "${1-}" = long ]; then
    # Two slots a line, world by world: minutes, and gigabytes of states. 24 382 912, 160 127, 42 993, 3 467 495 and
    # 2 854 193 states.
    holds 20000000 admit_two_keys -DPER_LINE=2 -DWORLD=2
    holds 120000 admit_claims_of_the_dead -DPER_LINE=2 -DWORLD=3
    holds 30000 admit_second_line -DPER_LINE=2 -DWORLD=4
    holds 2500000 inherit_strangers -DPER_LINE=2 -DINHERIT -DWORLD=5
    holds 2000000 inherit_debt_left -DPER_LINE=2 -DINHERIT -DWORLD=6
else
    # One slot a line: 5 214 292, 1 452 469, 90 726, 104 993 and 526 907 states.
    holds 4000000 admit
    holds 1000000 inherit -DINHERIT
    holds 70000 a_chain_that_takes_back -DUNITS=3 -DWORLD=8
    holds 80000 a_chain_whose_word_had_expired -DUNITS=3 -DWORLD=10
    holds 400000 a_chain_beside_a_takeover -DINHERIT -DUNITS=3 -DWORLD=9

    two_words='((((j==to)||(((next>>11)&3)==0))||((next>>13)==1))|| !(((slot[j]>>11)==((next>>11)&3))))'
    debt_lost='((sum+((2*1)*(last-first)))>=((owed+net[1])+net[2]))'
    breaks "$two_words" insert_by_one_swap -DNAIVE
    breaks "$two_words" no_second_look -DNO_SECOND_LOOK
    breaks "$two_words" a_strangers_claim_after_one_look -DFOREIGN_ONCE
    breaks "$two_words" claims_without_a_version -DUNVERSIONED -DRECURS
    breaks "$two_words" higher_claims_stay -DNO_DROP
    breaks "$two_words" a_drop_that_is_lost_is_ignored -DDROP_IGNORED
    # A caller that is alone tries for ever to claim a slot that it has not looked at.
    breaks '(looks<=5)' the_home_line_alone_is_looked_at -DHOME_ONLY
    breaks '(solo||(net[key]<=(((1*64)+last)-first)))' a_store_for_the_swap_of_a_charge -DBLIND_CHARGE
    # The word falls below its claim, and the next claim on it below that.
    breaks '((next&2047)>highest[to])' a_refund_of_the_whole_inserting_charge -DREFUND_WHOLE
    breaks '(verdict==1)' claims_of_the_dead_block -DCLAIMS_BLOCK
    # Of a chain. The last form is harmless: it holds.
    charge_lost='((net[1]==0)||((sum>>1)&1))'
    charge_kept='( !(((slot[k]>>11)==1))||((slot[k]&2047)<=((last+owed)+net[1])))'
    breaks "$charge_lost" a_word_restored_over_others -DUNITS=3 -DWORLD=8 -DRESTORE_BLIND
    breaks "$charge_lost" a_word_restored_and_a_charge_refunded -DUNITS=3 -DWORLD=8 -DRESTORE_TWICE
    breaks "$charge_kept" a_lost_restore_without_a_refund -DUNITS=3 -DWORLD=8 -DRESTORE_ONLY
    breaks "$charge_lost" an_undo_of_a_swap_that_was_lost -DUNITS=3 -DWORLD=8 -DUNDO_UNCHARGED
    breaks "$charge_lost" an_equal_word_taken_for_its_own -DUNITS=3 -DWORLD=8 -DEQUAL_WORD
    holds 80000 a_chain_that_restores_an_expired_word -DUNITS=3 -DWORLD=10 -DRESTORE_EXPIRED
    breaks "$debt_lost" a_word_restored_over_a_takeover -DINHERIT -DUNITS=3 -DWORLD=9 -DRESTORE_BLIND
    breaks "$debt_lost" drops_lose_the_parity -DINHERIT -DPARITY_LOST
    breaks "$debt_lost" a_debt_is_a_free_slot -DINHERIT -DDEBT_FREE
fi
echo "1..$n"
exit $failed

//! Two words of one key that a restore or a migration brings together: the merged word owes at least what either does.

use super::counted::{decision, merge, peek};
use super::gcra::{encode, whole_lead};
use super::state::State;
use crate::answer::{Permit, Tracking};
use crate::limit::params::{random, Params};
use crate::limit::LimitSpec;

/// Returns what remains at `now` of a key that lay `lead` ahead at `then`.
fn remaining(p: &Params, then: u64, lead: u64, now: u64) -> u64 {
    if lead == 0 {
        return p.burst;
    }
    let word = encode(p.clock_q(then), lead, u64::MAX);
    let lead = whole_lead(word, p.clock_q(now), u64::MAX, p.window_q);
    let answer = peek(p, lead, now, 1, 0);
    decision(&answer, p, now, 1, Tracking::Tracked, Permit::NONE).remaining
}

#[test]
fn a_merged_word_never_leaves_more_than_either_of_the_two() {
    let (units, then) = (12, 1 << 40);
    let mut seed = 1;
    for (w, spec) in [100; 3].into_iter().chain([2_000]).zip([
        LimitSpec::fixed_window(units, 100),
        LimitSpec::sliding_counter(units, 100),
        LimitSpec::quota_linear(units, 100),
        LimitSpec::decay(units, 2_000),
    ]) {
        let p = spec.resolution(0).build().expect("limit").0;
        let mut less = 0;
        for _ in 0..20_000 {
            // Absent, or any state within the horizon.
            let [a, b] =
                [0; 2].map(|_| random(&mut seed) % (p.horizon_q + 1) * (random(&mut seed) % 8).min(1));
            let both = merge(p.algorithm(), p.shl as u32, a, b);
            assert_eq!(both, merge(p.algorithm(), p.shl as u32, b, a), "{spec:?}: an order decides");
            assert_eq!(merge(p.algorithm(), p.shl as u32, a, 0), a, "{spec:?}: absence owes something");
            assert!(both <= p.window_q, "{spec:?}: beyond what a word shows");
            for now in [then - 30, then, then + random(&mut seed) % (2 * w), then + 2 * w + 3] {
                let [one, other, merged] = [a, b, both].map(|lead| remaining(&p, then, lead, now));
                assert!(merged <= one.min(other), "{spec:?}: {a:#x} and {b:#x} leave {merged} at {now}");
                less += u64::from(one != other && merged > 0);
            }
        }
        assert!(less > 1_000, "{spec:?}: {less} merged words left anything");
    }
}

/// Two bursty states: the later end and the larger count, not a used-up quota.
#[test]
fn two_quotas_at_any_speed_merge_into_one() {
    let p = LimitSpec::quota_linear(12, 100).resolution(0).build().expect("limit").0;
    let lead = |ahead, aux| State { ahead, aux }.lead(&p);
    for (a, b, both) in
        [((40, 3), (60, 5), (60, 5)), ((40, 7), (60, 5), (60, 7)), ((40, 0), (40, 1), (40, 1))]
    {
        let made = merge(p.algorithm(), p.shl as u32, lead(a.0, a.1), lead(b.0, b.1));
        assert_eq!(made, lead(both.0, both.1), "{a:?} and {b:?}");
    }
}

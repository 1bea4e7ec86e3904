//! Three-colour meters (RFC 2697, RFC 2698, RFC 4115 and the coupling flag of MEF 10.3), as pure functions.
//!
//! ```text
//!   63                     b b-1                      0
//!  [      later : W         |    difference : b        ]     0 = never used: both buckets full
//!
//!          now        earlier                later          now + H       now + H + S
//!  ---------+------------+---------------------+---------------+---------------+-------->
//!   expired  <- lead of it ->                  |               | back. clock   |  expired
//!            <------------- lead --------------> = later - now (mod 2^W)
//!                         <--- |l2 - l1| ------>
//!
//!  l1 = debt of the committed bucket C, in q-units
//!  l2 = debt of the second one:  RFC 2697  of C and E together, which fill like one bucket of CBS + EBS
//!                                RFC 2698  of P
//!                                RFC 4115  of E
//!  later      = now + max(l1, l2) mod 2^W;  wraps after 2^W q-units, seconds to hours
//!  difference = l2 - l1 + bias, in 0..2^b
//! ```
//!
//! A bucket that no rate fills counts the units that it has given, and never drains. Next to a bucket that drains, it
//! is the difference, and `later` is that of the other one. If neither drains, the clock stands still, and all else is
//! as above.
//!
//! Both debts drain with time at one q-unit a q-unit, so between two charges only `later - now` changes. A debt that
//! has drained is 0, and the bucket full. A word that lies more than H + S ahead, or not ahead at all, is that of a
//! full meter. A wrap of the word can therefore only make a false debt, of at most H + S, for a share (H + S) / 2^W of
//! idle times, in words that nobody charged or swept within their span; it never makes a token.
//!
//! An older reading of the clock finds both debts larger, so a clock that steps back by up to S refills nothing. No
//! charge stores a debt below 0, so a charge to a full bucket drains from the reading of that charge on.
//!
//! ```text
//!  fits(l, n, B)   n <= B and l <= ((B - n) * M) >> k: exactly l + n * T <= B * T
//!  charge(n)       (n * M + A) >> k, rounded up
//!
//!  RFC 2697  green   if it came green and fits(l1, n, CBS)           l1 += c, l2 += c
//!            yellow  else if it did not come red and fits(l2 - l1, n, EBS)    l2 += c
//!  RFC 2698  red     if it came red or not fits(l2, n, PBS)
//!            yellow  else                                            l2 += cp
//!            green   if it also came green and fits(l1, n, CBS)      l2 += cp, l1 += cc
//!  RFC 4115  green   if it came green and fits(l1, n, CBS)           l1 += cc
//!            yellow  else if it did not come red and fits(l2, n, EBS)         l2 += ce
//!  coupled   as RFC 4115, after l2 -= (q-units for which C has been full) * CIR / EIR, rounded down
//!  red       otherwise; red stores nothing, and neither does a cost of 0
//! ```
//!
//! Bounds: no colour is better than that of exact buckets with the same history. In any time t, green is at most CBS +
//! t * CIR units, and the other envelopes of each RFC hold likewise. A charge takes at most one q-unit too much, which
//! is 1 / T_q units. So a colour is worse only if the exact buckets hold less than (N + 2) / T_q units more than it
//! needs, where N is the number of charges since the bucket was last full.
//!
//! No step divides, loops or overflows: debts are below 2^63, charges below 2^62.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

use crate::answer::{Colour, Marking, Verdict};
use crate::limit::meter::params::{
    Bucket, MeterParams, FLAG_COUNTS_COMMITTED, FLAG_COUNTS_SECOND, FLAG_COUPLED,
};

/// The state of a meter at some reading of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    /// How far the later of the two times lies ahead, q-units; 0 if both buckets are full, whatever the difference.
    pub lead: u64,
    /// l2 - l1 + bias.
    pub difference: u64,
}

/// l1 and l2, q-units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Debts {
    pub committed: u64,
    pub second: u64,
}

/// The debts of a state; what overflowed a coupled committed bucket is taken off the second one. Without `FLAGGED`, of
/// parameters that have no flag.
#[inline(always)]
pub(crate) const fn debts<const FLAGGED: bool>(p: &MeterParams, state: State) -> Debts {
    if FLAGGED && p.flags & FLAG_COUNTS_COMMITTED != 0 {
        return Debts { committed: state.difference, second: state.lead };
    }
    if FLAGGED && p.flags & FLAG_COUNTS_SECOND != 0 {
        return Debts { committed: state.lead, second: state.difference };
    }
    // How much earlier than the later time each bucket is full: one of both is 0.
    let committed_earlier = state.difference.saturating_sub(p.bias);
    let second_earlier = p.bias.saturating_sub(state.difference);
    let committed = state.lead.saturating_sub(committed_earlier);
    let mut second = state.lead.saturating_sub(second_earlier);
    if FLAGGED && p.flags & FLAG_COUPLED != 0 {
        let full_for = committed_earlier.saturating_sub(state.lead);
        let worth = (full_for as u128).wrapping_mul(p.ratio as u128) >> 32;
        second = if worth < second as u128 { second.wrapping_sub(worth as u64) } else { 0 };
    }
    Debts { committed, second }
}

/// Makes the state of two debts.
///
/// The difference fits its bits: a debt that a charge has raised fits its burst, and the other one is at least 0. For
/// RFC 2697 that is the debt of E. Without `FLAGGED`, of parameters that have no flag.
#[inline(always)]
pub(crate) const fn state<const FLAGGED: bool>(p: &MeterParams, debts: Debts) -> State {
    let Debts { committed, second } = debts;
    if FLAGGED && p.flags & FLAG_COUNTS_COMMITTED != 0 {
        return State { lead: second, difference: committed };
    }
    if FLAGGED && p.flags & FLAG_COUNTS_SECOND != 0 {
        return State { lead: committed, difference: second };
    }
    State {
        lead: if committed > second { committed } else { second },
        difference: second.wrapping_sub(committed).wrapping_add(p.bias),
    }
}

/// Marks a packet of `cost` units that came as `pre`. Returns the answer, and the next state if something is charged.
#[inline(always)]
pub(crate) fn step(p: &MeterParams, now: State, cost: u64, pre: Colour) -> (Marking, Option<State>) {
    match p.flags {
        0 => step_as::<false>(p, now, cost, pre),
        _ => step_as::<true>(p, now, cost, pre),
    }
}

#[inline(always)]
fn step_as<const FLAGGED: bool>(
    p: &MeterParams,
    now: State,
    cost: u64,
    pre: Colour,
) -> (Marking, Option<State>) {
    let before = debts::<FLAGGED>(p, now);
    let (colour, after) = match p.kind {
        2697 => rfc2697(p, before, cost, pre),
        2698 => rfc2698(p, before, cost, pre),
        _ => rfc4115(p, before, cost, pre),
    };
    match colour {
        Colour::Red if is_never(p, cost, pre) => {
            (Marking { verdict: Verdict::Never, colour: Colour::Red }, None)
        }
        Colour::Red => (Marking::of(Colour::Red), None),
        // A cost of 0 only peeks.
        _ if cost == 0 => (Marking::of(colour), None),
        _ => (Marking::of(colour), Some(state::<FLAGGED>(p, after))),
    }
}

/// Returns whether the bucket, with this debt, has `cost` units.
#[inline(always)]
const fn fits(bucket: &Bucket, debt: u64, cost: u64) -> bool {
    match bucket.room(cost) {
        Some(room) => debt <= room,
        None => false,
    }
}

/// One rate: a packet that does not fit C may use E, whose debt is the difference of the two.
#[inline(always)]
fn rfc2697(p: &MeterParams, debts: Debts, cost: u64, pre: Colour) -> (Colour, Debts) {
    let Debts { committed, second } = debts;
    if pre == Colour::Green && fits(&p.committed, committed, cost) {
        let charge = p.committed.charge(cost);
        let after = Debts { committed: committed.wrapping_add(charge), second: second.wrapping_add(charge) };
        return (Colour::Green, after);
    }
    // The difference is at least 0, so `second` is the larger one.
    if pre != Colour::Red && fits(&p.second, second.wrapping_sub(committed), cost) {
        return (Colour::Yellow, Debts { second: second.wrapping_add(p.second.charge(cost)), ..debts });
    }
    (Colour::Red, debts)
}

/// Two rates: P comes first and pays for yellow and green; C pays for green as well.
#[inline(always)]
fn rfc2698(p: &MeterParams, debts: Debts, cost: u64, pre: Colour) -> (Colour, Debts) {
    let Debts { committed, second } = debts;
    if pre == Colour::Red || !fits(&p.second, second, cost) {
        return (Colour::Red, debts);
    }
    let second = second.wrapping_add(p.second.charge(cost));
    if pre == Colour::Green && fits(&p.committed, committed, cost) {
        return (
            Colour::Green,
            Debts { committed: committed.wrapping_add(p.committed.charge(cost)), second },
        );
    }
    (Colour::Yellow, Debts { committed, second })
}

/// Two rates: C comes first, and E takes what C refuses; each packet pays one of them.
#[inline(always)]
fn rfc4115(p: &MeterParams, debts: Debts, cost: u64, pre: Colour) -> (Colour, Debts) {
    let Debts { committed, second } = debts;
    if pre == Colour::Green && fits(&p.committed, committed, cost) {
        let committed = committed.wrapping_add(p.committed.charge(cost));
        return (Colour::Green, Debts { committed, second });
    }
    if pre != Colour::Red && fits(&p.second, second, cost) {
        return (Colour::Yellow, Debts { committed, second: second.wrapping_add(p.second.charge(cost)) });
    }
    (Colour::Red, debts)
}

/// Returns whether the cost is above every burst that a packet of this colour may use. It is never so for a packet that
/// came red: that may use none.
#[inline]
const fn is_never(p: &MeterParams, cost: u64, pre: Colour) -> bool {
    let (committed, second) = (cost > p.committed.burst, cost > p.second.burst);
    match (pre, p.kind) {
        (Colour::Red, _) => false,
        (Colour::Green, 2697 | 4115) => committed && second,
        _ => second,
    }
}

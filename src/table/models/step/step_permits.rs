//! What permits do not promise: two worlds in which a claim word recurs, each next to worlds that hold.
//!
//! A refund lowers a payload, and the permit of the charge that committed a claim excludes that claim. So a refund of a
//! permit of the key's present life does not lower its slot to the claim. Two uses of permits do, and each has its
//! world here. If the shipped code promised more one day, these tests would fail.

use super::check::Check;
use super::search::{breaks, holds};
use super::world::{check, Op, World, NOW, T, X, Y, Z};
use crate::limit::LimitSpec;
use crate::table::FullPolicy;

const SAFE: &[Check] = &[Check::OneLive, Check::ClaimsRise, Check::KeyEnvelope, Check::Progress];
const CLAIM_FALLS: &str = "a claim is not above the earlier ones of its slot";

fn back(of: usize, now: u64) -> Op {
    Op::Refund { of, now }
}

fn reset(now: u64) -> Op {
    Op::Reset { key: X, now }
}

fn units(key: u64, now: u64, cost: u64) -> Op {
    Op::Check { key, now, cost }
}

/// Two permits of one key are refunded oldest first. The first refund lowers the TAT, so the key's slot expires before
/// the second permit does. A stranger has the slot for a while, the key comes back to it, and the second permit, of the
/// earlier life, lowers the slot below the claim of the new one. After a reset the key claims its slot with the same
/// word.
///
/// ```text
///           NOW                        + 2 T               + 3 T
///   slot 0  X: 5 T owed, then 2 T      expired: Y takes it  expired: X again, refund, reset, X again
///   permit  2 T stored, good until NOW + 5 T .............. gives back all that the new life owes
/// ```
fn oldest_first(spec: LimitSpec) -> World {
    // When Y has expired and Z has not.
    const AGAIN: u64 = NOW + 3 * T + 32;
    let w = World::shared(spec, FullPolicy::Deny, 4, &[0, 8]);
    let other = w.live(Z, AGAIN + 1);
    let first = [units(X, NOW, 3), units(X, NOW, 2), back(0, NOW), check(Y, NOW + 2 * T + 16)];
    let again = [check(X, AGAIN), back(1, AGAIN), reset(AGAIN - 2), check(X, AGAIN)];
    w.start(1, other).thread(&[&first[..], &again].concat())
}

#[test]
fn a_permit_of_an_earlier_life_lets_a_claim_recur() {
    let spec = LimitSpec::new(1, T, 5);
    breaks("a permit of an earlier life", &oldest_first(spec), &[Check::ClaimsRise], CLAIM_FALLS);
    // Strict permits have aged by then and give nothing back.
    let checks = &[Check::OneLive, Check::ClaimsRise, Check::KeyEnvelope];
    holds("strict refunds", &oldest_first(spec.strict_refunds()), checks);
}

/// A permit and a reset of the key are used by clocks more than an emission interval behind that of an insert. What the
/// permit gives back by its own reading has drained by the clocks that are ahead, and a claim recurs. No key has two
/// slots in this world. By a clock that is up to date the permit gives back nothing.
fn behind(late: u64) -> World {
    let w = World::shared(LimitSpec::new(1, T, 1), FullPolicy::Deny, 2, &[0, 8]);
    let stranger = w.live(Y, NOW + 4);
    w.start(0, stranger)
        .thread(&[reset(NOW - T - 2), check(X, NOW - 1)])
        .thread(&[check(X, NOW - T - 20), back(0, NOW - late)])
        .thread(&[check(X, NOW - T - 20), reset(NOW - T - 20)])
}

#[test]
fn a_late_refund_of_before_a_reset_lets_a_claim_recur() {
    // The TAT of the late charge lies 20 ticks before `NOW`.
    holds("a late refund of what has drained", &behind(20), SAFE);
    breaks("a late refund", &behind(26), &[Check::ClaimsRise], CLAIM_FALLS);
    holds(
        "a late refund beside two resets",
        &behind(26),
        &[Check::OneLive, Check::KeyEnvelope, Check::Progress],
    );
    holds("one that is up to date", &behind(0), SAFE);
}

//! MUST FAIL: the shipped calls with weakened swaps, each caught in a world where nothing else is wrong.
//!
//! A weakened [`Access`] sees every change of a word and recognises claims, drops and commits by the words. So it
//! breaks a rule of the protocol without a copy of the protocol.

use super::check::Check;
use super::search::{breaks, holds};
use super::step_inserts::{swept, EXACT};
use super::world::{check, Op, World, NOW, T, X, Y, Z};
use crate::limit::LimitSpec;
use crate::sync::access::sealed::Sealed;
use crate::sync::access::{Access, Shared};
use crate::sync::{AtomicU64, Ordering};
use crate::table::layout::policy::FullPolicy;

/// In words with tags of 20 bits.
const CLAIM: u64 = 1 << 63;
const TAG: u64 = 0xf_ffff << 43;

pub(super) fn is_claim(word: u64) -> bool {
    word & CLAIM != 0
}

pub(super) fn is_empty(word: u64) -> bool {
    word & TAG == 0
}

macro_rules! weakened {
    ($(#[$doc:meta])* $name:ident, $exclusive:expr, |$slot:ident, $old:ident, $new:ident| $replace:expr) => {
        $(#[$doc])*
        pub(super) enum $name {}

        impl Sealed for $name {}

        impl Access for $name {
            const EXCLUSIVE: bool = $exclusive;
            type Sharing = ();

            fn replace($slot: &AtomicU64, $old: u64, $new: u64) -> Result<(), u64> {
                $replace
            }

            fn fence() {
                Shared::fence();
            }
        }
    };
}
pub(super) use weakened;

weakened! {
    /// Stores where it should swap.
    Stores, false, |slot, _old, new| {
        // ORDERING: Relaxed; the explorer's order of accesses is sequentially consistent anyway.
        slot.store(new, Ordering::Relaxed);
        Ok(())
    }
}
weakened! {
    /// Stores where it should charge a live word; everything else is as shipped.
    StoresCharges, false, |slot, old, new| if is_claim(old) || is_empty(old) || (old ^ new) & TAG != 0 {
        Shared::replace(slot, old, new)
    } else {
        // ORDERING: as above.
        slot.store(new, Ordering::Relaxed);
        Ok(())
    }
}
weakened! {
    /// Believes that it is the only owner, and commits without a scan after its claim.
    NoLookAfter, true, |slot, old, new| Shared::replace(slot, old, new)
}
weakened! {
    /// Leaves the higher claims of its key in place.
    NoKill, false, |slot, old, new| if is_claim(old) && is_empty(new) {
        Ok(())
    } else {
        Shared::replace(slot, old, new)
    }
}
weakened! {
    /// Continues although a higher claim could not be dropped.
    IgnoresFailedKill, false, |slot, old, new| {
        let replaced = Shared::replace(slot, old, new);
        if is_claim(old) && is_empty(new) { Ok(()) } else { replaced }
    }
}
weakened! {
    /// Drops claims to the word of a slot that never held anything, so that the next claim is no higher.
    DropsToZero, false, |slot, old, new| {
        let is_drop = is_claim(old) && is_empty(new);
        Shared::replace(slot, old, if is_drop { 0 } else { new })
    }
}
weakened! {
    /// Forgets the debt of a dropped takeover.
    LosesParity, false, |slot, old, new| {
        let keeps_debt = is_empty(new) && new & 1 == 1;
        Shared::replace(slot, old, new + u64::from(keeps_debt))
    }
}
weakened! {
    /// Leaves no tombstone when a key is reset.
    NoTombstone, false, |slot, old, new| {
        let is_reset = !is_claim(old) && !is_empty(old) && is_empty(new);
        Shared::replace(slot, old, if is_reset { 0 } else { new })
    }
}

const TWO_LIVE: &str = "two LIVE words of one key";
const OVER: &str = "a key was admitted more than its bucket allows";

#[test]
fn step_must_fail_stores() {
    breaks("stores for swaps", &swept::<Stores>(&[0, 0]), &[Check::OneLive, Check::KeyEnvelope], OVER);
    let live = |w: World<StoresCharges>| {
        let word = w.live(X, NOW + T);
        w.start(0, word)
    };
    let spec = LimitSpec::new(1, T, 2);
    let w = live(World::of(spec, FullPolicy::Admit, 2, &[0, 8]));
    let w = w.thread(&[check(X, NOW)]).thread(&[check(X, NOW)]);
    breaks("a charge by a store", &w, EXACT, OVER);
    let w = live(World::of(spec, FullPolicy::Admit, 2, &[0, 8]));
    let w = w.thread(&[Op::Burst { keys: &[X, Z], now: NOW }]).thread(&[check(X, NOW)]);
    breaks("a burst by stores", &w, EXACT, OVER);
}

#[test]
fn step_must_fail_a_commit_without_a_look_after() {
    breaks("no look after", &swept::<NoLookAfter>(&[0, 10]), &[Check::OneLive], TWO_LIVE);
}

#[test]
fn step_must_fail_claims_left_or_dropped_in_vain() {
    holds("as shipped", &swept::<Shared>(&[0, 0, 10]), EXACT);
    breaks("no kill", &swept::<NoKill>(&[0, 0, 10]), &[Check::OneLive], TWO_LIVE);
    breaks("a failed kill", &swept::<IgnoresFailedKill>(&[0, 0, 10]), &[Check::OneLive], TWO_LIVE);
    let falls = "a claim is not above the earlier ones of its slot";
    breaks("drops to zero", &swept::<DropsToZero>(&[0, 0, 10]), &[Check::OneLive, Check::ClaimsRise], falls);
}

#[test]
fn step_must_fail_a_takeover_that_forgets() {
    // Two threads died inserting one key, each with a debt taken over. Whoever commits one claim drops the other.
    let spec = LimitSpec::new(1, T, 2);
    let w = World::<LosesParity>::of(spec, FullPolicy::Inherit, 2, &[0, 8]);
    let dead = [w.claim(X, NOW + 11), w.claim(X, NOW + 7)];
    let w = w.start(0, dead[0]).start(1, dead[1]).thread(&[check(X, NOW)]).thread(&[check(Y, NOW)]);
    breaks("parity lost", &w, &[Check::OneLive, Check::Conserves], "the set lost debt");
}

#[test]
fn step_must_fail_a_reset_without_a_tombstone() {
    let w = World::<NoTombstone>::of(LimitSpec::new(1, T, 1), FullPolicy::Admit, 2, &[0, 8]);
    let w =
        w.thread(&[check(X, NOW), Op::Reset { key: X, now: NOW }, check(X, NOW)]).thread(&[check(X, NOW)]);
    let falls = "a claim is not above the earlier ones of its slot";
    breaks("no tombstone", &w, &[Check::OneLive, Check::ClaimsRise], falls);
}

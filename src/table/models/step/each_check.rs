//! MUST FAIL: each check alone, in a world in which it must find a fault. A check that could not fail would let every
//! world pass.

use super::check::Check;
use super::search::{answered_singly, breaks};
use super::step_inserts::swept;
use super::step_migrations::{one_dropped, one_twice, weakened as migrated};
use super::weakened::{is_claim, is_empty, weakened, DropsToZero, LosesParity, NoLookAfter, StoresCharges};
use super::world::{check, Op, World, NOW, T, X, Y, Z};
use crate::limit::LimitSpec;
use crate::sync::access::sealed::Sealed;
use crate::sync::access::{Access, Shared};
use crate::sync::AtomicU64;
use crate::table::layout::policy::FullPolicy;

weakened! {
    /// Charges one emission interval more than it was asked for.
    ChargesMore, false, |slot, old, new| {
        let is_new = is_claim(old) && !is_claim(new) && !is_empty(new);
        Shared::replace(slot, old, if is_new { new + T } else { new })
    }
}
weakened! {
    /// Loses each commit of a claim.
    NeverCommits, false, |slot, old, new| if is_claim(old) && !is_claim(new) && !is_empty(new) {
        Err(old)
    } else {
        Shared::replace(slot, old, new)
    }
}
weakened! {
    /// Takes a slot over without the debt in it.
    TakesNoDebt, false, |slot, old, new| {
        let takes_over = is_claim(new) && !is_claim(old) && !is_empty(old);
        Shared::replace(slot, old, if takes_over { new & !1 } else { new })
    }
}

/// Two slots with room for two units each.
fn of_two<A: Access>(policy: FullPolicy) -> World<A> {
    World::of(LimitSpec::new(1, T, 2), policy, 2, &[0, 8])
}

/// A full set in which nothing expires has room for one unit of X, and two threads ask for it.
fn room_for_one<A: Access>() -> World<A> {
    let w = of_two(FullPolicy::Deny);
    let olds = [w.live(X, NOW + T), w.live(Z, NOW + 2 * T)];
    let w = w.start(0, olds[0]).start(1, olds[1]);
    w.thread(&[Op::Counted { keys: &[X, Z], now: NOW }]).thread(&[check(X, NOW)])
}

/// Both keys have a slot and owe nothing. Two threads ask for all that X may have, one of them also for all of Z's.
fn room_for_all<A: Access>() -> World<A> {
    let w = of_two(FullPolicy::Deny);
    let olds = [w.live(X, NOW), w.live(Z, NOW)];
    let (x, z) = (check(X, NOW), check(Z, NOW));
    w.start(0, olds[0]).start(1, olds[1]).thread(&[x, x, z, z]).thread(&[x, x])
}

/// A save during an insert.
fn saved<A: Access>() -> World<A> {
    of_two(FullPolicy::Admit).thread(&[check(X, NOW)]).thread(&[Op::Save { now: NOW }])
}

/// Two threads died inserting one key, each with a debt taken over. Whoever commits one claim drops the other.
fn inherited<A: Access>() -> World<A> {
    let w = of_two(FullPolicy::Inherit);
    let dead = [w.claim(X, NOW + 11), w.claim(X, NOW + 7)];
    w.start(0, dead[0]).start(1, dead[1]).thread(&[check(X, NOW)]).thread(&[check(Y, NOW)])
}

/// A takeover of a stranger's debt, during a save.
fn saved_beside_a_takeover<A: Access>() -> World<A> {
    let w = of_two(FullPolicy::Inherit);
    let olds = [w.live(Z, NOW + T), w.live(4, NOW + 2 * T)];
    w.start(0, olds[0]).start(1, olds[1]).thread(&[check(X, NOW)]).thread(&[Op::Save { now: NOW }])
}

/// Checks that this check alone finds a fault in its world.
fn is_found_out(of: Check) {
    let says = of.broken();
    let (name, checks) = (std::format!("{of:?} alone"), &[of]);
    let _steps = match of {
        Check::OneLive => breaks(&name, &swept::<NoLookAfter>(&[0, 10]), checks, says),
        Check::ClaimsRise => breaks(&name, &swept::<DropsToZero>(&[0, 0, 10]), checks, says),
        Check::KeyEnvelope => breaks(&name, &room_for_all::<StoresCharges>(), checks, says),
        Check::SetEnvelope => breaks(&name, &room_for_all::<StoresCharges>(), checks, says),
        Check::Units(units) => {
            let w =
                World::<StoresCharges>::of(LimitSpec::fixed_window(units, T), FullPolicy::Admit, 1, &[0, 8]);
            let w = w.thread(&[check(X, NOW), check(X, NOW)]).thread(&[check(X, NOW), check(X, NOW)]);
            breaks(&name, &w, checks, says)
        }
        Check::Forgives => breaks(&name, &room_for_one::<StoresCharges>(), checks, says),
        Check::AsCalls => {
            let mut w = room_for_one::<StoresCharges>();
            w.answers = answered_singly(room_for_one::<Shared>()).answers;
            breaks(&name, &w, checks, says)
        }
        Check::NothingExtra | Check::SavedDebts => breaks(&name, &saved::<ChargesMore>(), checks, says),
        Check::Conserves => breaks(&name, &inherited::<LosesParity>(), checks, says),
        Check::SomeoneAdmitted => breaks(&name, &saved::<NeverCommits>(), checks, says),
        Check::SavedAll => breaks(&name, &saved_beside_a_takeover::<TakesNoDebt>(), checks, says),
        Check::MigratedDebts => breaks(&name, &migrated(0, one_twice), checks, says),
        Check::MigratedAll => breaks(&name, &migrated(0, one_dropped), checks, says),
        Check::Progress => breaks(&name, &saved::<NeverCommits>(), checks, "a fresh call of key"),
    };
}

#[test]
fn step_must_fail_each_check() {
    Check::ALL.into_iter().for_each(is_found_out);
}

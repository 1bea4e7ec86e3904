//! A reset and a refund by an old clock reading, during inserts of two keys.
//!
//! Through the public table. See `loom_kit` for what loom does not show. The explorer runs the same calls, more of them
//! in a thread, without weak memory (`step/step_resets.rs`).

use super::loom_kit::{explore, race3, spec, Bound, Memory, NOW, T};
use crate::sync::access::sealed::Sealed;
use crate::sync::access::{Access, Shared};
use crate::sync::AtomicU64;
use crate::table::layout::policy::FullPolicy;

/// The caller's hashes: home line 0 and these tags.
const X: u64 = 1;
const Y: u64 = 2;
/// How old the old reading is.
const AGO: u64 = 8;

/// Leaves no tombstone when a key is reset.
enum NoTombstone {}

impl Sealed for NoTombstone {}

impl Access for NoTombstone {
    const EXCLUSIVE: bool = false;
    type Sharing = ();

    fn replace(slot: &AtomicU64, old: u64, new: u64) -> Result<(), u64> {
        const TAG: u64 = 0xf_ffff << 43;
        let is_reset = old >> 63 == 0 && old & TAG != 0 && new & TAG == 0;
        Shared::replace(slot, old, if is_reset { 0 } else { new })
    }

    fn fence() {
        Shared::fence();
    }
}

/// X owes one unit, with a permit for it. By old readings one thread resets X, and another refunds the unit and then
/// inserts Y. A third one asks for one more unit of X.
fn reset_and_refund<A: Access + 'static>(name: &str, bound: Bound) {
    explore(name, bound, || {
        let memory = Memory::new(spec(4), FullPolicy::Admit);
        // Three slots, so that X finds another one than the tombstone, and Y finds one that X may want too.
        memory.surround(&[0, 1, 8]);
        let limit = memory.limit(&spec(4));
        assert!(memory.check(&limit, NOW - T, X).0);
        let (passed, permit) = memory.check(&limit, NOW, X);
        assert!(passed && permit.stored == T);
        let (a, b, c) = (memory.clone(), memory.clone(), memory.clone());
        let ((), back, passed) = race3(
            move || assert!(a.table_as::<A>().reset_key(NOW - AGO, X), "contended with two rivals"),
            move || {
                let back = b.table_as::<A>().refund(&limit, NOW - AGO, X, &permit);
                assert!(b.check(&limit, NOW, Y).0, "Y was refused");
                back.expect("its own limit").expect("contended with two rivals")
            },
            move || c.check(&limit, NOW, X).0,
        );
        assert!(passed && back <= T + AGO, "X was refused, or got {back} back");
        assert_eq!(memory.lives(Y, NOW), (1, T), "Y's charge");
        // The reset came last, or it came before the last charge of X, of which nothing may be given back.
        match memory.lives(X, NOW) {
            (0, 0) => {}
            (1, lead) => assert_eq!(lead, T, "the refund took from what came after the reset"),
            other => panic!("two live words of X: {other:?}"),
        }
    });
}

/// Does not show: two resets; more preemptions.
#[test]
fn reset_and_refund_by_an_old_reading_beside_inserts_of_two_keys() {
    reset_and_refund::<Shared>("reset/refund/inserts, an old reading", Bound::At(2, 3));
}

/// MUST FAIL: a reset that leaves no tombstone.
#[test]
#[should_panic(expected = "the refund took from what came after the reset")]
fn reset_without_a_tombstone_is_caught() {
    reset_and_refund::<NoTombstone>("MUST FAIL: reset without tombstone", Bound::At(2, 3));
}

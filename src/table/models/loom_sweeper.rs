//! The end of a silence: two threads come, find an old debt that looks new, and empty the table. And a sweep after a
//! pause, next to a charge. See `loom_kit` for what loom does not show.

use std::sync::Arc;

use super::loom_kit::{explore, race, spec, Bound, Memory, NOW, T};
use crate::table::layout::policy::FullPolicy;
use crate::table::upkeep::sweeper::Sweeper;

const X: u64 = 1;

/// Both threads ask for a key whose old word counts once more. One gets the burst: the old debt is gone, and no charge
/// is. Does not show: more than two threads; a swap that takes a new word for the old one because they are equal.
#[test]
fn the_end_of_a_silence_loses_no_charge() {
    // By one clock, and by two that are apart.
    for (name, apart) in [("table: sweeper/check/check", 0), ("table: sweeper/check/check, later", T / 4)] {
        explore(name, Bound::At(1, 2), move || {
            let spec = spec(1);
            let memory = Memory::new(spec, FullPolicy::Admit);
            let limit = memory.limit(&spec);
            let sweeper = Arc::new(Sweeper::new());
            // All bits of the time earlier, and half of the debt.
            let old = NOW.wrapping_sub(memory.table().geometry.layout.mask + 1).wrapping_add(T / 2);
            sweeper.sweep(&memory.table(), old);
            assert!(memory.check(&limit, old, X).0);
            assert!(!memory.check(&limit, NOW, X).0, "the old word has not wrapped");
            let ask = |memory: Arc<Memory>, sweeper: Arc<Sweeper>, now| {
                move || {
                    sweeper.sweep(&memory.table(), now);
                    memory.check(&limit, now, X).0
                }
            };
            let (a, b) = race(
                ask(memory.clone(), sweeper.clone(), NOW),
                ask(memory.clone(), sweeper.clone(), NOW + apart),
            );
            assert_eq!(u8::from(a) + u8::from(b), 1, "an old debt counted, or a charge was lost");
            assert_eq!(memory.lives(X, NOW), (1, if a { T } else { T + apart }));
        });
    }
}

/// A thread sweeps what is due after a pause. Another one charges the slot, so much later that the first one's reading
/// finds the new debt expired. Does not show: more than one part of a table.
#[test]
fn a_sweep_after_a_pause_loses_no_charge() {
    explore("table: sweep/sweep, check", Bound::At(1, 2), || {
        let spec = spec(1);
        let memory = Memory::new(spec, FullPolicy::Admit);
        let limit = memory.limit(&spec);
        let sweeper = Arc::new(Sweeper::new());
        let quarter = memory.table().sweep_interval() / 4;
        sweeper.sweep(&memory.table(), NOW);
        assert!(memory.check(&limit, NOW, X).0);
        let (pause, later) = (NOW + quarter, NOW + 2 * quarter);
        let (a, b) = (memory.clone(), sweeper.clone());
        let sweep = move || b.sweep(&a.table(), pause);
        let (a, b) = (memory.clone(), sweeper.clone());
        let charge = move || {
            b.sweep(&a.table(), later);
            a.check(&limit, later, X).0
        };
        let ((), passes) = race(sweep, charge);
        assert!(passes, "an old debt counted");
        assert_eq!(memory.lives(X, later), (1, T), "the charge was lost");
    });
}

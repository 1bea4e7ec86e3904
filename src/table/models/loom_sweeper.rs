//! The end of a silence: two threads come, find an old debt that looks new, and empty the table. See `loom_kit` for
//! what loom does not show.

use std::sync::Arc;

use super::loom_kit::{explore, race, spec, Bound, Memory, NOW, T};
use crate::table::layout::policy::FullPolicy;
use crate::table::upkeep::sweeper::Sweeper;

const X: u64 = 1;

/// Both threads ask for a key whose old word counts once more. One gets the burst: the old debt is gone, and no charge
/// is. Does not show: more than two threads; a swap that takes a new word for the old one because they are equal.
#[test]
fn the_end_of_a_silence_loses_no_charge() {
    explore("table: sweeper/check/check", Bound::At(1, 2), || {
        let spec = spec(1);
        let memory = Memory::new(spec, FullPolicy::Admit);
        let limit = memory.limit(&spec);
        let sweeper = Arc::new(Sweeper::new());
        // All bits of the time earlier, and half of the debt.
        let old = NOW.wrapping_sub(memory.table().geometry.layout.mask + 1).wrapping_add(T / 2);
        sweeper.sweep(&memory.table(), old);
        assert!(memory.check(&limit, old, X).0);
        assert!(!memory.check(&limit, NOW, X).0, "the old word has not wrapped");
        let ask = |memory: Arc<Memory>, sweeper: Arc<Sweeper>| {
            move || {
                sweeper.sweep(&memory.table(), NOW);
                memory.check(&limit, NOW, X).0
            }
        };
        let (a, b) = race(ask(memory.clone(), sweeper.clone()), ask(memory.clone(), sweeper.clone()));
        assert_eq!(u8::from(a) + u8::from(b), 1, "an old debt counted, or a charge was lost");
        assert_eq!(memory.lives(X, NOW), (1, T));
    });
}

//! Model of the small log: each line is written, reported by a later one, or still counted. `table/models/loom_kit.rs`
//! has the bounds, and says what loom does not show.

use std::sync::Arc;

use super::{SmallLimit32, SmallLog};
use crate::table::models::loom_kit::{explore, race, Bound};

/// Two threads write to a small log and their clocks pass its interval. Each line is written, reported by a written
/// one, or still counted. Does not show: more threads, the wrap of the count.
#[test]
fn lines_of_a_small_log_are_told_of_once_across_an_interval() {
    explore("small log: 2 threads x 2 lines", Bound::Exhaustive, || {
        let limit = SmallLimit32::new(1, 1000, 1).expect("limit");
        let log = Arc::new(SmallLog::new());
        assert_eq!(log.check(&limit, 7), Some(0));
        let (a, b) = (log.clone(), log.clone());
        let (a, b) = race(
            move || [a.check(&limit, 507), a.check(&limit, 1007)],
            move || [b.check(&limit, 507), b.check(&limit, 1007)],
        );
        let lines = [a, b].concat();
        let (told, out) =
            (lines.iter().flatten().sum::<u32>(), lines.iter().filter(|line| line.is_none()).count());
        assert_eq!((told + log.left_out()) as usize, out, "a count was lost or told twice: {lines:?}");
        assert_eq!(out, 3, "not one line an interval: {lines:?}");
    });
}

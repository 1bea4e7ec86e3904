//! A migration as a call of a world: where it goes, and the words that it makes there.

use std::vec::Vec;

use crate::sync::access::Access;
use crate::sync::step_atomic::own;
use crate::sync::Ordering;
use crate::table::handle::Table;
use crate::table::layout::fit::choose;
use crate::table::layout::geometry::{Geometry, HEADER_LINES};
use crate::table::layout::image::Line;
use crate::table::layout::options::TableOptions;

/// Where the migrations of a world go: each into memory of its own.
pub(super) struct Target<A: Access> {
    options: TableOptions,
    lines: usize,
    pub geometry: Geometry,
    how: How<A>,
}

/// Migrates a table into lines with these options at this reading, and returns the words of the new slots.
pub(super) type How<A> = fn(&Table<'_, A>, &[Line], &TableOptions, u64) -> Vec<u64>;

/// Migrates as shipped.
pub(super) fn shipped<A: Access>(
    table: &Table<'_, A>,
    lines: &[Line],
    options: &TableOptions,
    now: u64,
) -> Vec<u64> {
    own(lines);
    let (new, report) = table.migrate(lines, options, now).expect("its own options");
    assert_eq!(report.dropped, 0, "there was room for all: {report:?}");
    let words = new.slots.iter().flat_map(|line| &line.words);
    // ORDERING: Relaxed; nobody else has it.
    words.map(|word| word.load(Ordering::Relaxed)).collect()
}

impl<A: Access> Target<A> {
    pub fn of(options: TableOptions, sets: usize, how: How<A>) -> Target<A> {
        let lines = HEADER_LINES + 2 * sets;
        Target { options, lines, geometry: choose(&options, lines).expect("a geometry"), how }
    }

    pub fn call(&self, table: &Table<'_, A>, now: u64) -> Vec<u64> {
        let lines: Vec<Line> = (0..self.lines).map(|_| Line::EMPTY).collect();
        (self.how)(table, &lines, &self.options, now)
    }

    /// Returns when the debt of a LIVE word of the new table ends, on the callers' clock, as of this reading.
    pub fn until(&self, word: u64, now: u64) -> u64 {
        let Geometry { layout, shr, .. } = &self.geometry;
        let now_q = self.geometry.clock_q(now);
        now_q.wrapping_add(layout.lead(word, now_q)) << shr
    }

    /// Returns when the longest possible debt of the new table ends that begins at this reading.
    pub fn horizon(&self, now: u64) -> u64 {
        let Geometry { horizon, shr, .. } = self.geometry;
        (self.geometry.clock_q(now) + horizon) << shr
    }
}

//! The lines of a limit: sets of eight lines, with the tags of a set in one cache line. A key belongs to one set.

use crate::line::{Line, Taken, When};
use crate::sync::{AtomicU32, AtomicU64, Ordering};

const WAYS: usize = 8;

/// The tags of a set.
#[derive(Debug)]
#[repr(align(64))]
struct Tags([AtomicU64; WAYS]);

/// The lines of one limit.
#[derive(Debug)]
pub(crate) struct Lines {
    tags: Box<[Tags]>,
    lines: Box<[Line]>,
    /// Whether a worker is giving away a line of the set: only one may at a time, so that no key gets two lines.
    giving: Box<[AtomicU32]>,
    /// Nanoseconds after which units that a share admitted have drained, whatever the store knows of them.
    drained_ns: AtomicU64,
}

/// A line that was found, and its number.
#[derive(Clone, Copy)]
pub(crate) struct Found<'a> {
    pub line: &'a Line,
    pub at: &'a AtomicU64,
    pub index: usize,
}

impl Found<'_> {
    pub(crate) fn take(&self, tag: u64, when: When, length: u64) -> Taken {
        self.line.take(self.at, tag, when, length)
    }
}

impl Lines {
    /// Makes room for at least this many keys.
    pub(crate) fn new(keys: usize, drained_ns: u64) -> Lines {
        let sets = keys.div_ceil(WAYS).max(1);
        let tags = || Tags(std::array::from_fn(|_| AtomicU64::new(0)));
        Lines {
            tags: (0..sets).map(|_| tags()).collect(),
            lines: (0..sets * WAYS).map(|_| Line::new()).collect(),
            giving: (0..sets).map(|_| AtomicU32::new(0)).collect(),
            drained_ns: AtomicU64::new(drained_ns),
        }
    }

    /// Records that admitted units may take this long to drain.
    pub(crate) fn drains(&self, drained_ns: u64) {
        // ORDERING: Relaxed; a length, which does not fall.
        self.drained_ns.fetch_max(drained_ns, Ordering::Relaxed);
    }

    pub(crate) fn len(&self) -> usize {
        self.lines.len()
    }

    pub(crate) fn get(&self, index: usize) -> Found<'_> {
        Found { line: &self.lines[index], at: &self.tags[index / WAYS].0[index % WAYS], index }
    }

    /// Returns the first line of the set of a tag.
    fn home(&self, tag: u64) -> usize {
        ((u128::from(tag) * self.tags.len() as u128) >> 64) as usize * WAYS
    }

    /// Returns the line of a key, if it has one.
    #[inline]
    pub(crate) fn find(&self, tag: u64) -> Option<Found<'_>> {
        let home = self.home(tag);
        let set = &self.tags[home / WAYS].0;
        // ORDERING: Relaxed; `take` checks the tag again, after the word.
        let way = set.iter().position(|at| at.load(Ordering::Relaxed) == tag)?;
        Some(self.get(home + way))
    }

    /// Gives a key the line of its set that is useful for the shortest time. Returns `None` if every line is asked for
    /// or must not be forgotten, or if another worker is giving away a line of this set.
    pub(crate) fn give(&self, tag: u64, now: u64) -> Option<Found<'_>> {
        let giving = &self.giving[self.home(tag) / WAYS];
        // ORDERING: Acquire; pairs with the Release of the last giver, so its key is found.
        if giving.swap(1, Ordering::Acquire) != 0 {
            return None;
        }
        let given = self.find(tag).or_else(|| self.give_alone(tag, now));
        // ORDERING: Release; pairs with the swap above.
        giving.store(0, Ordering::Release);
        given
    }

    fn give_alone(&self, tag: u64, now: u64) -> Option<Found<'_>> {
        let home = self.home(tag);
        // ORDERING: Relaxed; a length.
        let drained_ns = self.drained_ns.load(Ordering::Relaxed);
        let free = |index: &usize| {
            let line = &self.lines[*index];
            // ORDERING: Relaxed, both; hints about the time without the store. `change_hands` checks the owner.
            let shared = line.share_used.load(Ordering::Relaxed) != 0
                && line.share.load(Ordering::Relaxed).saturating_add(drained_ns) > now;
            line.is_free() && !shared
        };
        // ORDERING: Relaxed; the choice is only a matter of economy.
        let life = |index: &usize| self.lines[*index].life.load(Ordering::Relaxed);
        let found = self.get((home..home + WAYS).filter(free).min_by_key(life)?);
        // ORDERING: Relaxed; `change_hands` compares with it.
        let from = found.at.load(Ordering::Relaxed);
        // ORDERING: Relaxed, as above. The line gets a second, in which its answer comes.
        found.line.change_hands(found.at, from, tag).then(|| {
            found.line.life.store(now.saturating_add(1_000_000_000), Ordering::Relaxed);
            found
        })
    }
}

#[cfg(all(test, not(tatcell_cluster_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_key_finds_its_line_and_the_least_useful_one_is_given_away() {
        let lines = Lines::new(8, 50);
        for tag in 1..=8u64 {
            let found = lines.give(tag, 100).expect("a line");
            // ORDERING: Relaxed; one thread.
            found.line.life.store(1_000 - tag, Ordering::Relaxed);
            assert_eq!(lines.find(tag).map(|f| f.index), Some(found.index));
        }
        assert!(lines.find(9).is_none());
        let given = lines.give(9, 100).expect("a line").index;
        assert!(lines.find(8).is_none(), "the one of the shortest life was 8's");
        assert_eq!(lines.find(9).map(|f| f.index), Some(given));
    }

    #[test]
    fn lines_that_are_asked_for_or_shared_stay() {
        let lines = Lines::new(8, 50);
        for tag in 1..=8u64 {
            let found = lines.give(tag, 100).expect("a line");
            // ORDERING: Relaxed, both; one thread.
            found.line.share.store(60, Ordering::Relaxed);
            match tag % 2 {
                0 => assert!(found.line.queue()),
                _ => found.line.share_used.store(1, Ordering::Relaxed),
            }
        }
        assert!(lines.give(9, 100).is_none());
        (1..=8).for_each(|tag| assert!(lines.find(tag).is_some()));
        assert!(lines.give(9, 110).is_some(), "what a share admitted has drained");
    }
}

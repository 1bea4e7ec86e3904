//! Migration: makes a fresh table of another geometry that knows the debts of an old one.
//!
//! ```text
//!  high 32 bits of the hash   0                                                    2^32
//!  old table, 2 sets          [            A             |            B            ]
//!  new table, 3 sets          [        0        |        1        |        2       ]
//!  gets the debts of                   A             A and B               B
//! ```
//!
//! A slot knows the tag and the set of its key, and thus a range of hashes. It knows neither the hash nor the home
//! line, because either line of a set may hold any key of the set. So each debt goes into every new set that meets its
//! range. A set has 16 slots: if more debts come together, the largest stay; of one tag the largest stands for all.
//!
//! Invariants:
//! - on the time axis of both tables a key's new lead is its old one or more; less only where the report says so;
//! - a new set depends only on the old sets that it meets. So it is filled in one go, with 16 places on the stack, and
//!   neither order nor number of the parts of a migration matters;
//! - a full set of a table that mints nothing (`Inherit`, `Deny`) also bounds the keys that are not in it: none owes
//!   more than the smallest lead of the set. That is the floor of each new set that meets it. Mostly its debts fill the
//!   new set anyway; where tags merge, the places left get an empty word with that debt (a tombstone under `Deny`);
//! - only LIVE words are copied. An even claim has charged nothing. The debt in an odd claim or an odd EMPTY belongs to
//!   a key without a slot, which only the floor remembers. Tombstones guard a slot, not a key.
//!
//! Progress: bounded, no lock, no heap; only reads the old table. Fewer pairs of sets meet than both tables have sets,
//! and each pair compares 16 words with 16 places: O(slots of both tables). The old table must not decide meanwhile:
//! what it charges after its set was read is lost.

use super::error::TableError;
use super::handle::Table;
use super::layout::fit::choose;
use super::layout::geometry::{Content, HEADER_LINES, MIN_SLOTS};
use super::layout::image;
use super::layout::image::Line;
use super::layout::options::{AttachOptions, TableOptions};
use crate::keys::Hasher;
use crate::sync::access::{Access, Exclusive, Shared};
use crate::sync::Ordering;

mod plan;
mod report;

use plan::Plan;
pub use report::Migrated;

impl<M: Access> Table<'_, M> {
    /// Formats memory as a fresh table that knows the debts of this one, in another geometry: another size, policy,
    /// resolution, horizon or skew, or fewer tag bits. Otherwise like [`init`](Table::init); overwrites the memory.
    ///
    /// There every key owes at least what it owes here, rounded up to the new resolution, except for what the report
    /// counts as dropped, clamped or opened. A whole multiple of the lines drops nothing. Other keys with the same tag
    /// in the range of a debt owe it too. Permits of this table give nothing back in the new one, whose generation is
    /// one higher. Limits must be made anew.
    ///
    /// # Errors
    /// The errors of [`init`](Table::init). [`TableError::BadHashKind`] and [`TableError::WrongSeed`] unless both
    /// tables hash alike (if the caller hashes, it answers for that), [`TableError::TagTooWide`] for more tag bits than
    /// here, [`TableError::BadMode`] for another tick frequency if both tables name one, [`TableError::Overlap`],
    /// [`TableError::BadAlgorithm`] for another algorithm and for tables of overrides, which cannot migrate; tables
    /// that count must also agree in resolution, bits and guard. Nothing is touched then.
    ///
    /// # Concurrency
    /// One caller, before anyone else uses the memory. Stop deciding by this table first: what it charges meanwhile may
    /// be forgiven. Reads this table once or twice, writes the new one once: O(slots of both).
    ///
    /// ```
    /// use tatcell::{LimitSpec, Line, Table, TableOptions};
    /// let (small, large) = ([Line::EMPTY; 34], [Line::EMPTY; 66]);
    /// let spec = LimitSpec::new(10, 1_000_000_000, 20);
    /// let options = TableOptions::new(spec).seed(*b"16 random bytes!");
    /// let old = Table::init(&small, &options)?;
    /// assert!(old.check(&old.limit(&spec)?, 0, b"192.0.2.1", 20)?.passes());
    ///
    /// let (new, report) = old.migrate(&large, &options, 0)?;
    /// assert!(report.is_whole());
    /// assert!(!new.check(&new.limit(&spec)?, 0, b"192.0.2.1", 1)?.passes());
    /// # Ok::<(), tatcell::TableError>(())
    /// ```
    pub fn migrate<'n>(
        &self,
        lines: &'n [Line],
        options: &TableOptions,
        now: u64,
    ) -> Result<(Table<'n, Shared>, Migrated), TableError> {
        self.migrate_as(lines, options, now)
    }

    /// Migrates like [`migrate`](Table::migrate), into a table with one owner.
    ///
    /// # Errors
    /// The errors of [`migrate`](Table::migrate).
    pub fn migrate_exclusive<'n>(
        &self,
        lines: &'n mut [Line],
        options: &TableOptions,
        now: u64,
    ) -> Result<(Table<'n, Exclusive>, Migrated), TableError> {
        self.migrate_as(lines, options, now)
    }

    /// Returns what [`migrate`](Table::migrate) into `lines` lines (header included) would report. Needs no memory and
    /// only reads, so other calls may run meanwhile; takes as much time as the migration.
    ///
    /// # Errors
    /// The errors of [`migrate`](Table::migrate).
    pub fn foresee_migration(
        &self,
        lines: usize,
        options: &TableOptions,
        now: u64,
    ) -> Result<Migrated, TableError> {
        let plan = self.plan(lines, options, now)?;
        let mut report = Migrated::default();
        (0..plan.sets()).for_each(|set| {
            let _ = plan.fill(set, &mut report);
        });
        Ok(report)
    }

    /// Does a part of a migration: the `count` slots of the new table from number `from` on, in whole sets. Adds to the
    /// report and returns the number to continue from, or 0 after the last slot, when the table can be attached as an
    /// `N` one. Start with `from` 0. Continue, in this process or another, with the returned number and the same
    /// options. Nobody may decide by either table in between.
    ///
    /// # Errors
    /// The errors of [`migrate`](Table::migrate); [`TableError::NotReady`] unless the memory holds a migration with
    /// these options that has come as far as `from`.
    pub fn migrate_part<N: Access>(
        &self,
        lines: &[Line],
        options: &TableOptions,
        now: u64,
        from: usize,
        count: usize,
        report: &mut Migrated,
    ) -> Result<usize, TableError> {
        let plan = self.plan(lines.len(), options, now)?;
        let used = plan.to.lines as usize + HEADER_LINES;
        let parts = lines.get(..used).and_then(|used| used.split_at_checked(HEADER_LINES));
        let (head, slots) = parts.ok_or(TableError::TooSmall)?;
        if overlap(self.slots, lines) {
            return Err(TableError::Overlap);
        }
        let mut words = head.iter().flat_map(|line| &line.words);
        let progress = words.next().ok_or(TableError::TooSmall)?;
        let mut rest = words.zip(image::header(&plan.to, N::EXCLUSIVE));
        if from == 0 {
            // ORDERING: Relaxed, both; nobody may use the image before it is published below.
            progress.store(0, Ordering::Relaxed);
            rest.for_each(|(word, value)| word.store(value, Ordering::Relaxed));
        } else {
            // ORDERING: Acquire; pairs with the Release store below by the caller that did the part before this one.
            let reached = progress.load(Ordering::Acquire);
            // ORDERING: Relaxed; single words, after the Acquire load.
            if reached != from as u64 || !rest.all(|(word, value)| word.load(Ordering::Relaxed) == value) {
                return Err(TableError::NotReady);
            }
        }
        let all = slots.len() / 2;
        let end = from.saturating_add(count.max(1)).div_ceil(MIN_SLOTS).min(all);
        for (set, pair) in slots.chunks_exact(2).enumerate().take(end).skip(from / MIN_SLOTS) {
            let words = plan.fill(set as u64, report);
            for (slot, word) in pair.iter().flat_map(|line| &line.words).zip(words.into_iter().flatten()) {
                // ORDERING: Relaxed; published below.
                slot.store(word, Ordering::Relaxed);
            }
        }
        let next = if end < all { end * MIN_SLOTS } else { 0 };
        // Until the last part is done, the word is the number of a slot, which nobody takes for the magic.
        let word = if next == 0 { image::FIRST_WORD } else { next as u64 };
        // ORDERING: Release; pairs with the Acquire load of a caller that attaches or does the next part.
        progress.store(word, Ordering::Release);
        Ok(next)
    }

    pub(crate) fn migrate_as<'n, N: Access>(
        &self,
        lines: &'n [Line],
        options: &TableOptions,
        now: u64,
    ) -> Result<(Table<'n, N>, Migrated), TableError> {
        let mut report = Migrated::default();
        self.migrate_part::<N>(lines, options, now, 0, usize::MAX, &mut report)?;
        let attach = AttachOptions { seed: options.seed, ..AttachOptions::new() };
        Ok((Table::attach_as(lines, &attach)?, report))
    }

    /// Checks a migration and chooses the new geometry; changes nothing.
    fn plan(&self, lines: usize, options: &TableOptions, now: u64) -> Result<Plan<'_>, TableError> {
        let from = self.geometry;
        let mut to = choose(options, lines)?;
        if to.hash != from.hash {
            return Err(TableError::BadHashKind);
        }
        to.seed_check = Hasher::new(options.hash, options.seed.as_ref())?.1;
        if to.seed_check != from.seed_check {
            return Err(TableError::WrongSeed);
        }
        let alike = to.shl == from.shl && to.shr == from.shr && to.guard == from.guard;
        // Words of two sets that became one could be an override and a witness: one of them would be lost.
        let overrides = from.content == Content::Overrides;
        if to.content != from.content || !to.is_gcra() && !alike || overrides {
            return Err(TableError::BadAlgorithm);
        }
        if to.layout.bits < from.layout.bits {
            return Err(TableError::TagTooWide);
        }
        if to.tick_hz != from.tick_hz && to.tick_hz != 0 && from.tick_hz != 0 {
            return Err(TableError::BadMode);
        }
        to.generation = from.generation.wrapping_add(1);
        Ok(Plan::new(self.slots, from, to, now))
    }
}

/// Returns whether the memory of a table with these slots shares a line with `lines`.
fn overlap(slots: &[Line], lines: &[Line]) -> bool {
    let (old, new) = (slots.as_ptr_range(), lines.as_ptr_range());
    // The old header is part of the old table.
    old.start.wrapping_sub(HEADER_LINES) < new.end && new.start < old.end
}

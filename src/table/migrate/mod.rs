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
use super::layout::fit::{choose, limit};
use super::layout::geometry::{Content, HEADER_LINES, MIN_SLOTS};
use super::layout::image;
use super::layout::image::Line;
use super::layout::options::{AttachOptions, TableOptions};
use crate::keys::Hasher;
use crate::sync::access::{Access, Exclusive, Shared};
use crate::sync::{fence, Ordering};

mod plan;
mod report;

use plan::Plan;
pub use report::Migrated;

impl<'m, M: Access> Table<'m, M> {
    /// Formats memory as a fresh table that knows the debts of this one, in another geometry: another size, policy,
    /// resolution, horizon or skew, or fewer tag bits. Otherwise like [`init`](Table::init); overwrites the memory.
    ///
    /// There every key owes at least what it owes here, rounded up to the new resolution, except for what the report
    /// counts as dropped, clamped or opened. A whole multiple of the lines drops nothing. Other keys with the same tag
    /// in the range of a debt owe it too. Permits of this table give nothing back in the new one, whose generation is
    /// one higher. Limits must be made anew.
    ///
    /// A debt keeps its time, so under a higher rate it is worth more units; [`TableOptions::keep_units`] keeps the
    /// units. What is counted stays counted, and a window keeps its end, rounded up to the new unit of time.
    ///
    /// A table does not know the limits of its keys, so the report does not show what another window or half-life does.
    /// A fixed window and a quota keep count and end under any new length. A sliding counter and a decaying level are
    /// read by the length of the limit: under a longer one a key has used less than before, under a shorter one more.
    /// With both limits, `keep_units` keeps the level, and refuses sliding counters of another length.
    ///
    /// # Errors
    /// The errors of [`init`](Table::init). [`TableError::BadHashKind`] and [`TableError::WrongSeed`] unless both
    /// tables hash alike (if the caller hashes, it answers for that), [`TableError::TagTooWide`] for more tag bits than
    /// here, [`TableError::BadMode`] for another clock or tick frequency if both tables name one,
    /// [`TableError::Overlap`], [`TableError::BadAlgorithm`] for another algorithm and for tables of
    /// overrides, which cannot migrate.
    /// [`LimitError::OtherWindow`](crate::LimitError::OtherWindow) if the two limits of `keep_units` have windows of
    /// other lengths, or if a sliding counter would get another unit of time without it. Nothing is touched then.
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

    /// Migrates a table of either kind in its own memory; see [`migrate_in_place`](Table::migrate_in_place).
    pub(crate) fn migrate_in_place_as(
        lines: &'m [Line],
        generation: u64,
        options: &TableOptions,
        now: u64,
    ) -> Result<(Table<'m, M>, Migrated), TableError> {
        let attach = AttachOptions { seed: options.seed, ..AttachOptions::new() };
        let old = Table::<M>::attach_as(lines, &attach)?;
        if old.geometry.generation != generation {
            return Err(TableError::BadMode);
        }
        let plan = old.plan(lines.len(), options, now)?;
        let (head, magic) = image::head(lines).ok_or(TableError::TooSmall)?;
        // Withdraws the image. Of two callers at once only one goes on, and a killed caller leaves no table.
        // ORDERING: Acquire pairs with the Release store of the magic, whose header is compared below. Relaxed if the
        // magic is not there.
        magic
            .compare_exchange(image::FIRST_WORD, 0, Ordering::Acquire, Ordering::Relaxed)
            .map_err(|_| TableError::NotReady)?;
        // The magic does not show whether another caller has migrated since the header was read.
        let known = image::header(&old.geometry, M::EXCLUSIVE);
        let mut words = head.iter().flat_map(|line| &line.words).skip(1).zip(known);
        // ORDERING: Relaxed; single words, after the Acquire above.
        if !words.all(|(word, value)| word.load(Ordering::Relaxed) == value) {
            // ORDERING: Release; pairs with the Acquire load of an attach.
            magic.store(image::FIRST_WORD, Ordering::Release);
            return Err(TableError::BadMode);
        }
        // ORDERING: SeqCst; no word is written before the magic is gone.
        fence(Ordering::SeqCst);
        let mut report = Migrated::default();
        // The number of lines stays the same, so a new set gets the debts of the same old set, and no others.
        for (set, pair) in old.slots.chunks_exact(2).enumerate() {
            let words = plan.fill(set as u64, &mut report);
            for (slot, word) in pair.iter().flat_map(|line| &line.words).zip(words.into_iter().flatten()) {
                // ORDERING: Relaxed; published below.
                slot.store(word, Ordering::Relaxed);
            }
        }
        image::publish(head, magic, &plan.to, M::EXCLUSIVE, false);
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
        // Words of two sets that became one could be an override and a witness: one of them would be lost.
        if to.content != from.content || from.content == Content::Overrides {
            return Err(TableError::BadAlgorithm);
        }
        if to.layout.bits < from.layout.bits {
            return Err(TableError::TagTooWide);
        }
        let differ = |to: u64, from: u64| to != from && to != 0 && from != 0;
        if differ(to.tick_hz, from.tick_hz) || differ(to.clock.into(), from.clock.into()) {
            return Err(TableError::BadMode);
        }
        to.generation = from.generation.wrapping_add(1);
        let limits = match &options.keeps {
            Some([old, new]) => Some([self.limit(old)?.0, limit(&to, new)?.0]),
            None => None,
        };
        Plan::new(self.slots, [from, to], limits, now).map_err(TableError::Limit)
    }
}

impl<'m> Table<'m, Shared> {
    /// Migrates a table in its own memory while nobody calls it. It does what [`migrate`](Table::migrate) does into the
    /// same number of lines, for a caller that has no second memory or must keep the place. `generation` is the present
    /// one of the table ([`TableInfo::generation`](crate::TableInfo::generation)).
    ///
    /// The call withdraws the image before it changes the first word. It publishes the image after the last word, with
    /// a generation that is one higher. So if the caller is killed, nobody can attach or migrate the memory: format it,
    /// or restore a saved image. A second call after success names the old generation and is refused, so no debt is
    /// scaled twice.
    ///
    /// Older permits give nothing back afterwards. [Attach](Table::attach) every other handle again, and make limits by
    /// the new handle.
    ///
    /// ```
    /// use tatcell::{LimitSpec, Line, Table, TableOptions};
    /// let (few, many) = (LimitSpec::new(60, 3_600_000, 60), LimitSpec::new(600, 3_600_000, 600));
    /// let options = TableOptions::new(many).slowest(few).seed(*b"16 random bytes!");
    /// let lines = [Line::EMPTY; 34];
    /// let table = Table::init(&lines, &options)?;
    /// assert!(table.check(&table.limit(&few)?, 0, b"192.0.2.1", 60)?.passes());
    ///
    /// // All callers have stopped.
    /// let to = options.keep_units(few, many);
    /// let (table, report) = Table::migrate_in_place(&lines, table.info().generation, &to, 0)?;
    /// assert!(report.is_whole());
    /// assert_eq!(table.peek(&table.limit(&many)?, 0, table.hash(b"192.0.2.1")?, 1)?.remaining, 540);
    /// # Ok::<(), tatcell::TableError>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`migrate`](Table::migrate) and [`attach`](Table::attach). [`TableError::BadMode`] also for
    /// another generation: the migration is done. [`TableError::NotReady`] also while another caller migrates the
    /// table, and after it was killed. Nothing changes then.
    ///
    /// # Concurrency
    /// One caller, and nobody else uses the table. Reads and writes it once: O(slots).
    pub fn migrate_in_place(
        lines: &'m [Line],
        generation: u64,
        options: &TableOptions,
        now: u64,
    ) -> Result<(Self, Migrated), TableError> {
        Self::migrate_in_place_as(lines, generation, options, now)
    }
}

impl<'m> Table<'m, Exclusive> {
    /// Migrates a table with one owner in its own memory; see [`migrate_in_place`](Table::migrate_in_place).
    ///
    /// # Errors
    /// The errors of [`migrate_in_place`](Table::migrate_in_place).
    pub fn migrate_in_place_exclusive(
        lines: &'m mut [Line],
        generation: u64,
        options: &TableOptions,
        now: u64,
    ) -> Result<(Self, Migrated), TableError> {
        Self::migrate_in_place_as(lines, generation, options, now)
    }
}

/// Returns whether the memory of a table with these slots shares a line with `lines`.
fn overlap(slots: &[Line], lines: &[Line]) -> bool {
    let (old, new) = (slots.as_ptr_range(), lines.as_ptr_range());
    // The old header is part of the old table.
    old.start.wrapping_sub(HEADER_LINES) < new.end && new.start < old.end
}

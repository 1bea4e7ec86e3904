//! Migration: a fresh table in another geometry that knows the debts of an old one.
//!
//! ```text
//!  high 32 bits of the hash   0                                                    2^32
//!  old table, 2 sets          [            A             |            B            ]
//!  new table, 3 sets          [        0        |        1        |        2       ]
//!  gets the debts of                   A             A and B               B
//! ```
//!
//! A slot tells the tag of its key and the set, thus a range of hashes: not the hash, and not the home line, as either
//! line of a set may hold any key of it. So each debt goes into every new set that meets its range. A set has 16 slots:
//! of the debts that come together there the largest stay, and of those with one tag the largest stands for all.
//!
//! Invariants:
//! - a key's new lead is its old one, or more, on the time axis of both tables; less only where the report says so;
//! - what a new set gets depends on the old sets that it meets and on nothing else. So it is filled in one go, with
//!   16 places on the stack, and neither order nor number of the parts of a migration matter;
//! - a full set of a table that mints nothing (`Inherit`, `Deny`) also speaks for keys that are not in it: none owes
//!   more than its smallest lead. That is kept as the floor of each new set that meets it: mostly its debts fill the
//!   new set anyway; where tags merge the places left get an empty word with that debt (a tombstone under `Deny`);
//! - no word but LIVE ones is copied. An even claim has charged nothing; the debt in an odd claim or an odd EMPTY is
//!   that of a key without a slot, which only a full set remembers: the floor. Tombstones guard a slot, not a key.
//!
//! Progress: bounded, no lock, no heap; the old table is only read. Pairs of sets that meet are fewer than the sets of
//! both tables, with 16 words each, each compared with 16 places: O(slots of both tables). Not for a table that decides
//! meanwhile: what it charges after its set was read is lost.

use super::error::TableError;
use super::handle::Table;
use super::layout::fit::{choose, limit};
use super::layout::geometry::{HEADER_LINES, MIN_SLOTS};
use super::layout::image;
use super::layout::image::Line;
use super::layout::options::{AttachOptions, TableOptions};
use crate::keys::Hasher;
use crate::limit::Algorithm;
use crate::sync::access::{Access, Exclusive, Shared};
use crate::sync::{fence, Ordering};

mod plan;
mod report;

use plan::Plan;
pub use report::Migrated;

impl<'m, M: Access> Table<'m, M> {
    /// Formats memory as a fresh table that knows the debts of this one, in another geometry: other size, policy,
    /// resolution, horizon, skew, fewer tag bits. As [`init`](Table::init) otherwise; what was in the memory is gone.
    ///
    /// Every key owes there at least what it owes here, rounded up to the new resolution, but for what the report calls
    /// dropped, clamped or opened. A whole multiple of the lines drops nothing. Strangers that share the range of a
    /// debt and its tag owe it too. Permits of this table are worth nothing in the new one, whose generation is one
    /// higher; limits are made anew.
    ///
    /// A debt keeps its time, so under a higher rate it is worth more units; [`TableOptions::keep_units`] keeps the
    /// units. What is counted stays counted, and a window keeps its end, rounded up to the new unit of time.
    ///
    /// # Errors
    /// As [`Table::init`]. [`TableError::BadHashKind`] and [`TableError::WrongSeed`] unless both tables hash alike
    /// (where the caller hashes, that is the caller's word), [`TableError::TagTooWide`] for more tag bits than here,
    /// [`TableError::BadMode`] for another tick frequency where both name one, [`TableError::Overlap`],
    /// [`TableError::BadAlgorithm`] for another algorithm, and for tables of overrides, which are not moved.
    /// [`LimitError::OtherWindow`](crate::LimitError::OtherWindow): the two limits of `keep_units` have windows of
    /// other lengths, or without it a sliding counter gets another unit of time. Nothing is touched then.
    ///
    /// # Concurrency
    /// One caller, before anyone else uses the memory. Whoever still decides by this table meanwhile may be forgiven
    /// what he charges: stop first. Reads this table once or twice, writes the new one once: O(slots of both).
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

    /// As [`migrate`](Table::migrate), into a table with one owner.
    ///
    /// # Errors
    /// As [`migrate`](Table::migrate).
    pub fn migrate_exclusive<'n>(
        &self,
        lines: &'n mut [Line],
        options: &TableOptions,
        now: u64,
    ) -> Result<(Table<'n, Exclusive>, Migrated), TableError> {
        self.migrate_as(lines, options, now)
    }

    /// Tells what [`migrate`](Table::migrate) into `lines` lines (header included) would report. Needs no memory, only
    /// reads, beside any other call; costs as much time as the migration.
    ///
    /// # Errors
    /// As [`migrate`](Table::migrate).
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
    /// report and returns the number to continue from; 0 once the last slot is done and the table is ready to be
    /// attached as an `N` one. Starts with `from` 0; goes on, in this process or another, with what was returned and
    /// the same options. Nobody decides by either table in between.
    ///
    /// # Errors
    /// As [`migrate`](Table::migrate); [`TableError::NotReady`] where the memory holds no migration of these options
    /// that has come as far as `from`.
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
            // ORDERING: Acquire; pairs with the Release store below of whoever did the part before this one.
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
        // Until the last part is done the word is the number of a slot, which nobody takes for the magic.
        let word = if next == 0 { image::FIRST_WORD } else { next as u64 };
        // ORDERING: Release; pairs with the Acquire load of whoever attaches or does the next part.
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

    /// As [`migrate_in_place`](Table::migrate_in_place), for either sort of table.
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
        // Withdrawn: of two that come at once one goes on, and whoever is killed leaves no table.
        // ORDERING: Acquire pairs with the Release store of the magic, whose header is compared below. Relaxed where
        // the magic is not there.
        magic
            .compare_exchange(image::FIRST_WORD, 0, Ordering::Acquire, Ordering::Relaxed)
            .map_err(|_| TableError::NotReady)?;
        // The magic does not tell whether somebody else has done it since the header was read.
        let known = image::header(&old.geometry, M::EXCLUSIVE);
        let mut words = head.iter().flat_map(|line| &line.words).skip(1).zip(known);
        // ORDERING: Relaxed; single words, after the Acquire above.
        if !words.all(|(word, value)| word.load(Ordering::Relaxed) == value) {
            // ORDERING: Release; pairs with the Acquire load of whoever attaches.
            magic.store(image::FIRST_WORD, Ordering::Release);
            return Err(TableError::BadMode);
        }
        // ORDERING: SeqCst; no word is written before the magic is gone.
        fence(Ordering::SeqCst);
        let mut report = Migrated::default();
        // With as many lines a set gets what it has itself, and nothing else.
        for (set, pair) in old.slots.chunks_exact(2).enumerate() {
            let words = plan.fill(set as u64, &mut report);
            for (slot, word) in pair.iter().flat_map(|line| &line.words).zip(words.into_iter().flatten()) {
                // ORDERING: Relaxed; published below.
                slot.store(word, Ordering::Relaxed);
            }
        }
        image::publish(head, magic, &plan.to, M::EXCLUSIVE);
        Ok((Table::attach_as(lines, &attach)?, report))
    }

    /// Checks a migration and chooses the new geometry; touches nothing.
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
        if to.algorithm != from.algorithm || matches!(from.algorithm, Algorithm::Overrides) {
            return Err(TableError::BadAlgorithm);
        }
        if to.layout.bits < from.layout.bits {
            return Err(TableError::TagTooWide);
        }
        if to.tick_hz != from.tick_hz && to.tick_hz != 0 && from.tick_hz != 0 {
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
    /// Migrates a table that nobody calls in its own memory: as [`migrate`](Table::migrate) into the same number of
    /// lines, for whoever has no second memory or must keep its place. `generation` is that of the table so far
    /// ([`TableInfo::generation`](crate::TableInfo::generation)).
    ///
    /// The image is withdrawn before the first word is changed, and published after the last, with a generation that is
    /// one higher. So if the caller is killed, nobody can attach the memory, and nobody can migrate it again: it must
    /// be formatted, or restored from a saved image. And whoever asks again after it was done names the old generation
    /// and is refused, so no debt is scaled twice.
    ///
    /// Permits of before are worth nothing afterwards. Every other handle is made anew by
    /// [`attach`](Table::attach), and limits by the new handle.
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
    /// As [`migrate`](Table::migrate) and [`attach`](Table::attach). [`TableError::BadMode`] also for another
    /// generation: somebody was faster, or this is done. [`TableError::NotReady`] also while somebody else migrates the
    /// table, and if he was killed. Nothing is changed then.
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
    /// As [`migrate_in_place`](Table::migrate_in_place), of a table with one owner.
    ///
    /// # Errors
    /// As [`migrate_in_place`](Table::migrate_in_place).
    pub fn migrate_in_place_exclusive(
        lines: &'m mut [Line],
        generation: u64,
        options: &TableOptions,
        now: u64,
    ) -> Result<(Self, Migrated), TableError> {
        Self::migrate_in_place_as(lines, generation, options, now)
    }
}

/// Does the memory of a table with these slots share a line with `lines`?
fn overlap(slots: &[Line], lines: &[Line]) -> bool {
    let (old, new) = (slots.as_ptr_range(), lines.as_ptr_range());
    // The old header is part of the old table.
    old.start.wrapping_sub(HEADER_LINES) < new.end && new.start < old.end
}

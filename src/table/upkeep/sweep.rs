//! Running a table: sweep, statistics, iteration, reset of one key.

use crate::algorithms::State;
use crate::sync::access::{Access, Mode};
use crate::sync::{AtomicU64, Ordering};
use crate::table::handle::Table;
use crate::table::layout::geometry::{Content, Geometry, MIN_SLOTS, SLOTS_PER_LINE};
use crate::table::layout::image::Line;
use crate::table::layout::override_word::{is_exemption, is_override, OVERRIDE_BITS};
use crate::table::upkeep::sweeper::Sweeper;

/// Sums up the slots of a table.
///
/// ```
/// use tatcell::{LimitSpec, Line, Table, TableOptions};
/// let spec = LimitSpec::new(10, 1_000_000_000, 20);
/// let lines = [const { Line::EMPTY }; 66];
/// let table = Table::init(&lines, &TableOptions::new(spec).seed(*b"16 random bytes!"))?;
/// let limit = table.limit(&spec)?;
/// assert!(table.check(&limit, 0, b"192.0.2.1", 20)?.passes());
/// let stats = table.stats(500_000_000);
/// assert_eq!((stats.slots, stats.live, stats.longest), (512, 1, 1_500_000_000));
/// # Ok::<(), tatcell::TableError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Load alpha in millionths: live slots / slots. In a table of overrides also the slots that hold the second word
    /// of an override, or one that was lifted.
    pub load_ppm: u64,
    /// Slots that were scanned.
    pub slots: u64,
    /// Slots with a live key; in a table of overrides those with a ban or an exemption.
    pub live: u64,
    /// Inserts in progress, or abandoned and not yet reused.
    pub claims: u64,
    /// Slots whose key has drained: as good as empty.
    pub expired: u64,
    /// Live slots by lead: element k counts leads in (H / 2^(k+1), H / 2^k], the last one all smaller leads.
    pub debt: [u64; 8],
    /// Sets of 16 slots of which a new key could take none: there the policy decides.
    pub full_sets: u64,
    /// The longest debt in ticks, as `reset_after` of [`Slot`] has it; 0 if there is none. In a table of overrides, how
    /// long the longest one lasts.
    pub longest: u64,
    /// In a table of overrides, how many of the live ones are exemptions; the others are bans. Else 0.
    pub exemptions: u64,
}

/// Describes one live slot, as of its load.
///
/// ```
/// use tatcell::{LimitSpec, Line, Table, TableOptions};
/// let (spec, lines) = (LimitSpec::new(10, 1_000, 20), [const { Line::EMPTY }; 66]); // milliseconds
/// let table = Table::init(&lines, &TableOptions::new(spec).seed(*b"16 random bytes!"))?;
/// assert!(table.check(&table.limit(&spec)?, 0, b"192.0.2.1", 20)?.passes());
/// let slot = table.next_live(500, 0).unwrap();
/// assert_eq!(slot.reset_after, 1_500);
/// assert!(table.may_be(&slot, table.hash(b"192.0.2.1")?));
/// # Ok::<(), tatcell::TableError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slot {
    /// The number of the slot.
    pub number: u32,
    /// The tag of its key: the low bits of the hash.
    pub tag: u32,
    /// Ticks until the key's burst is full again; in a table of overrides, until the ban or exemption ends.
    pub reset_after: u64,
}

impl<M: Access> Table<'_, M> {
    /// Empties expired slots among `count` slots from number `from`; returns the number to continue from, 0 after
    /// the last. Needed once in each [`sweep_interval`](Table::sweep_interval), if the table runs for longer than that:
    /// a few slots a call, from a timer or after each burst. Changes no decision.
    ///
    /// # Concurrency
    /// Together with any other call. One load per slot, one swap per expired one.
    pub fn sweep(&self, now: u64, from: usize, count: usize) -> usize {
        self.all_slots().sweep(now, from, count, &Sweeper::at(now))
    }

    /// Makes one key full again at once; an absent key already is. Returns false when contended.
    ///
    /// The slot keeps a tombstone until the debt that it held has drained, at most one horizon. No key gets the slot
    /// until then, and no permit from before the reset gives anything back. A key that has drained by `now` is full
    /// already and stays as it is: to a clock behind `now` the rest of its debt still counts.
    ///
    /// In a table of overrides it [lifts](Table::lift) that of the key.
    ///
    /// # Concurrency
    /// Together with any other call.
    pub fn reset_key(&self, now: u64, hash: u64) -> bool {
        if self.geometry.content == Content::Overrides {
            return self.lift(now, hash).is_ok();
        }
        let (set, tag) = self.place(hash);
        set.reset::<M>(&self.geometry.layout, tag, self.geometry.clock_q(now))
    }
}

impl<M: Mode> Table<'_, M> {
    /// Scans all slots and returns sums.
    ///
    /// # Concurrency
    /// Together with any other call; each word is as of its load. Reads every line once.
    pub fn stats(&self, now: u64) -> Stats {
        let layout = &self.geometry.layout;
        let now_q = self.geometry.clock_q(now);
        let (mut stats, mut longest, mut taken, mut held) = (Stats::default(), 0, 0, 0u64);
        for word in self.slots.iter().flat_map(|line: &Line| &line.words) {
            // ORDERING: Relaxed; single word, value only.
            let word = word.load(Ordering::Relaxed);
            stats.slots = stats.slots.wrapping_add(1);
            let lead = layout.lead(word, now_q);
            taken += u64::from(!layout.is_reusable(word, now_q));
            if stats.slots % MIN_SLOTS as u64 == 0 {
                stats.full_sets = stats.full_sets.wrapping_add((taken == MIN_SLOTS as u64).into());
                taken = 0;
            }
            if layout.is_claim(word) {
                stats.claims = stats.claims.wrapping_add(1);
            } else if layout.is_live(word) && lead != 0 {
                held = held.wrapping_add(1);
                if !self.geometry.counts(word, lead) {
                    continue;
                }
                stats.live = stats.live.wrapping_add(1);
                let is_exemption = self.geometry.content == Content::Overrides && is_exemption(layout, word);
                stats.exemptions = stats.exemptions.wrapping_add(is_exemption.into());
                longest = longest.max(lead);
                // H / 2^(k+1) < lead <= H / 2^k; a lead beyond H (skewed clock) counts as H.
                let mut k = 0;
                let mut above = self.geometry.horizon / 2;
                while k < 7 && lead <= above {
                    above /= 2;
                    k += 1;
                }
                if let Some(n) = stats.debt.get_mut(k) {
                    *n = n.wrapping_add(1);
                }
            } else if layout.is_live(word) {
                stats.expired = stats.expired.wrapping_add(1);
            }
        }
        stats.longest = self.geometry.reset_after(longest, now);
        stats.load_ppm = (held * 1_000_000).checked_div(stats.slots).unwrap_or_else(|| impossible!(0));
        stats
    }

    /// Finds the next live slot at or after number `from`; `None` after the last. Continue from `number + 1`.
    ///
    /// In a table of overrides these are the bans and the exemptions; [`slot_word`](Table::slot_word) says which.
    ///
    /// # Concurrency
    /// Together with any other call; each word is as of its load.
    pub fn next_live(&self, now: u64, from: usize) -> Option<Slot> {
        let g = &self.geometry;
        let now_q = g.clock_q(now);
        (from..self.slots()).find_map(|number| {
            // ORDERING: Relaxed; single word, value only.
            let word = self.word(number)?.load(Ordering::Relaxed);
            let lead = g.layout.lead(word, now_q);
            (g.layout.is_live(word) && lead != 0 && g.counts(word, lead)).then(|| Slot {
                number: number as u32,
                tag: (g.layout.tag_field(word) >> g.layout.bits) as u32,
                reset_after: g.reset_after(lead, now),
            })
        })
    }

    pub(super) fn word(&self, number: usize) -> Option<&AtomicU64> {
        self.slots.get(number / SLOTS_PER_LINE)?.words.get(number % SLOTS_PER_LINE)
    }
}

impl Geometry {
    /// Whether a live word that lies ahead is that of a key. In a table of overrides only bans and exemptions are, not
    /// the second word of one, nor one that was lifted, nor an exemption that has wrapped.
    #[inline(never)]
    pub(super) fn counts(&self, word: u64, lead: u64) -> bool {
        let is_wrapped = || State::split(OVERRIDE_BITS, lead).ahead > self.horizon >> OVERRIDE_BITS;
        self.content != Content::Overrides
            || is_override(&self.layout, word) && !(is_exemption(&self.layout, word) && is_wrapped())
    }

    /// Returns the ticks until a key with this lead has its burst again.
    #[inline(never)]
    fn reset_after(&self, lead: u64, now: u64) -> u64 {
        // An aligned window that is over keeps its slot for this long.
        let kept = (self.guard as u64).wrapping_shl(self.shl as u32);
        let ahead = match self.content {
            // What an override is stands below its time, and nothing keeps its slot for longer.
            Content::Overrides => State::split(OVERRIDE_BITS, lead).ahead.wrapping_shl(OVERRIDE_BITS),
            _ => lead.saturating_sub(kept),
        };
        match lead {
            0 => 0,
            _ => crate::time::ticks_up(ahead, now, self.shl, self.shr),
        }
    }
}

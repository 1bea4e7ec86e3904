//! Sweeps without a timer: each call on a table first sweeps what is due.
//!
//! A word wraps after its span, and a sweep must empty it before. While calls come, they do that. While none comes
//! nobody does, and after a silence of nearly a span nothing tells an old debt from a new one. But every silence that
//! is longer than the longest debt and the skew leaves no debt at all. So the first call after a long one empties the
//! whole table.
//!
//! ```text
//!            swept       now                                    now
//!  -----------|-----------|--------------------|-----------------|------> the caller's clock
//!             |<- pause: sweep what is due  -->|<- silence: forget all -->
//! ```
//!
//! `swept` is the time until which all is swept that was due. A round sweeps every slot once, and four rounds fit the
//! sweep interval. A pause is at most a round, or H, the skew and one part. A slot goes unswept for a round and a
//! pause, which is less than the interval.
//!
//! Who ends a silence decides only when all slots are empty. Others that come meanwhile do not wait: they empty the
//! same slots. The first that has seen all of them moves `swept`, and then all others stop. A slot with a new charge is
//! left alone: its caller saw the new `swept` before, and so does who loads that word. There is one exception: between
//! the load and the swap of a slot, a new word comes that equals the old one in every bit. It must have the same tag,
//! and its TAT must equal that of a span before, to the tick.
//!
//! A reading that is far behind sets `swept` back, with its lowest bit. While that is set, a silence is none: that
//! reading may have come from a thread that was stopped. A call that finds something due clears the bit.
//!
//! Progress: lock-free. After `MAX_LOST` lost swaps others have swept, and the call returns.
#![forbid(unsafe_code)]

use crate::sync::access::{Access, Ways};
use crate::sync::{AtomicU64, Ordering, MAX_LOST};
use crate::table::handle::Table;
use crate::table::layout::geometry::{Geometry, SLOTS_PER_LINE};
use crate::table::layout::image::Line;
use crate::time::ticks_up;

/// Slots of a part of a table, at most. Sweeping a part takes some microseconds.
const PART: usize = 4096;

/// Sweeps a table when calls come, however rarely: instead of a timer that [sweeps](Table::sweep).
///
/// Without sweeps, a client that owes nothing may be refused. Call [`sweep`](Sweeper::sweep) before each call on the
/// table, also before a look at overrides, with the same reading of the clock. Peek at the time that
/// [`peek_time`](Sweeper::peek_time) returns. A table has one `Sweeper`, and processes that share the table share this
/// object, too. It is one word, and zero memory is a fresh one.
///
/// It forgets what was charged without it. Use it in all calls of all processes, or in none.
///
/// To restore a table ([`Table::restore`]), sweep before the save, with the same reading. After the restore, first call
/// `sweep` of a fresh `Sweeper` with that reading plus the offset. Then the time in between may be a silence. Before
/// [`Table::migrate`], sweep the old table. After it, first call `sweep` of a fresh `Sweeper` of the new table with the
/// same reading. Then a silence may follow.
///
/// ```
/// use tatcell::{LimitSpec, Line, Sweeper, Table, TableOptions};
/// const SECOND: u64 = 1_000_000_000;
/// let spec = LimitSpec::new(10, SECOND, 20);
/// let lines = [const { Line::EMPTY }; 66];
/// let table = Table::init(&lines, &TableOptions::new(spec).seed(*b"16 random bytes!"))?;
/// let (limit, sweeper) = (table.limit(&spec)?, Sweeper::new());
///
/// let now = 5 * SECOND;
/// sweeper.sweep(&table, now);
/// assert!(table.check(&limit, now, b"192.0.2.1", 20)?.passes());
/// // No call for nearly 2^43 ns, 2.4 hours. The word has wrapped, and the debt would count once more.
/// let now = now + (1 << 43) - SECOND;
/// assert!(!table.check(&limit, now, b"192.0.2.1", 20)?.passes());
/// sweeper.sweep(&table, now);
/// assert!(table.check(&limit, now, b"192.0.2.1", 20)?.passes());
/// # Ok::<(), tatcell::TableError>(())
/// ```
#[derive(Debug)]
#[repr(transparent)]
pub struct Sweeper {
    /// Until when all is swept that was due: an even time, and the bit [`UNSURE`]. 0 before the first call.
    word: AtomicU64,
}

/// The time was set back: the next silence may be none.
const UNSURE: u64 = 1;

impl Sweeper {
    /// Makes a sweeper of a fresh table.
    #[cfg(not(tatcell_loom))]
    pub const fn new() -> Sweeper {
        Sweeper { word: AtomicU64::new(0) }
    }

    /// Makes a sweeper of a fresh table.
    #[cfg(tatcell_loom)]
    pub fn new() -> Sweeper {
        Sweeper { word: AtomicU64::new(0) }
    }

    /// Sweeps what is due by now, and empties the table if no call came for so long that all its debts are over.
    ///
    /// Most calls only compare. One in a while sweeps 4096 slots, and one after a pause at most the whole table once. A
    /// silence is longer than both a quarter of the [sweep interval](Table::sweep_interval) and the longest debt with
    /// the skew.
    ///
    /// A reading far ahead counts as a silence, and then all keys have their burst again: pass only a monotonic clock,
    /// or a guarded one (`host::ClockGuard`). A reading behind the last one sweeps nothing, until the clock has caught
    /// up. If the clock was set back, debts from before the step then count again. After a step back of more than the
    /// interval, sweeps go on from there.
    ///
    /// # Concurrency
    /// Together with any other call. One caller sweeps what is due; several may empty the table.
    ///
    /// # Cost
    /// Usually one load and some arithmetic, about a third of a check. A part takes some microseconds. Emptying a
    /// million slots takes milliseconds.
    #[inline]
    pub fn sweep<M: Access>(&self, table: &Table<'_, M>, now: u64) {
        // ORDERING: Acquire; pairs with the swap at the end of a silence: who sees the new time sees empty slots.
        let word = self.word.load(Ordering::Acquire);
        // `turn` has no more to do for a reading that is behind, and threads' readings often are.
        let (rounds, late) = (Rounds::of(&table.all_slots()), now.wrapping_sub(word));
        let is_near = late < rounds.every || is_behind(now, word) && late.wrapping_neg() <= rounds.interval;
        if word == 0 || !is_near {
            self.turn(&table.all_slots(), now);
        }
    }

    /// Returns the time at which a [peek](Table::peek) finds no old debt, and changes nothing: now, or during a silence
    /// an earlier time when all debts were over. A departure that the peek returns is then as early as that time.
    ///
    /// ```
    /// use tatcell::{LimitSpec, Line, Sweeper, Table, TableOptions};
    /// const SECOND: u64 = 1_000_000_000;
    /// let spec = LimitSpec::new(10, SECOND, 20);
    /// let lines = [const { Line::EMPTY }; 66];
    /// let table = Table::init(&lines, &TableOptions::new(spec).seed(*b"16 random bytes!"))?;
    /// let (limit, sweeper, hash) = (table.limit(&spec)?, Sweeper::new(), table.hash(b"192.0.2.1")?);
    /// sweeper.sweep(&table, SECOND);
    /// assert!(table.check(&limit, SECOND, b"192.0.2.1", 20)?.passes());
    /// assert_eq!(sweeper.peek_time(&table, 2 * SECOND), 2 * SECOND);
    ///
    /// let now = SECOND + (1 << 43) - SECOND; // 2.4 hours later
    /// assert!(!table.peek(&limit, now, hash, 20)?.passes());
    /// assert!(table.peek(&limit, sweeper.peek_time(&table, now), hash, 20)?.passes());
    /// # Ok::<(), tatcell::TableError>(())
    /// ```
    #[inline]
    pub fn peek_time<M: Access>(&self, table: &Table<'_, M>, now: u64) -> u64 {
        // ORDERING: Acquire; as in `sweep`.
        let word = self.word.load(Ordering::Acquire);
        let (late, pause) = (now.wrapping_sub(word), Rounds::of(&table.all_slots()).pause(&table.geometry));
        let is_silence = word != 0 && word & UNSURE == 0 && late > pause && late <= i64::MAX as u64;
        if is_silence {
            word.wrapping_add(pause)
        } else {
            now
        }
    }

    #[cold]
    #[inline(never)]
    fn turn(&self, table: &Slots<'_>, now: u64) {
        let rounds = Rounds::of(table);
        let pause = rounds.pause(table.geometry);
        for _ in 0..MAX_LOST {
            // ORDERING: Acquire; as in `sweep`.
            let word = self.word.load(Ordering::Acquire);
            let swept = word & !UNSURE;
            let late = now.wrapping_sub(swept);
            let due = late / rounds.every;
            let is_behind = is_behind(now, swept);
            let is_pause = late <= pause;
            let (next, unsure) = if word == 0 {
                (now, 0) // the first call on a fresh table only starts the clock
            } else if is_behind && late.wrapping_neg() <= rounds.interval || due == 0 {
                return;
            } else if is_behind {
                (now, UNSURE) // to this clock, live debts look expired: sweep none
            } else if is_pause {
                (swept.wrapping_add(due.wrapping_mul(rounds.every)), 0)
            } else if word != swept || self.forget(table, word, now) {
                (now, 0)
            } else {
                continue;
            };
            let next = (next & !UNSURE).max(2) | unsure;
            // ORDERING: AcqRel; Release pairs with the loads of the word, for the emptied slots, and Acquire with the
            // swaps of others. Relaxed on failure: the next attempt loads again.
            if self.word.compare_exchange(word, next, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                if word != 0 && !is_behind && (is_pause || word != swept) {
                    self.catch_up(table, now, swept / rounds.every, due);
                }
                return;
            }
        }
    }

    /// Sweeps `count` parts from part `first` on, each at most once.
    ///
    /// It may take so long that live debts look expired to its reading: others charge meanwhile, and their clocks run
    /// on. So each slot is swept by the [latest](Sweeper::latest) time.
    fn catch_up(&self, table: &Slots<'_>, now: u64, first: u64, count: u64) {
        let parts = 1u64 << Rounds::of(table).shift;
        let slots = table.count().div_ceil(parts as usize);
        for part in (0..count.min(parts)).map(|i| first.wrapping_add(i) & (parts - 1)) {
            table.sweep(now, part as usize * slots, slots, self);
        }
    }

    /// Makes one that was swept until this time.
    pub(in crate::table) fn at(swept: u64) -> Sweeper {
        Sweeper { word: AtomicU64::new(swept) }
    }

    /// Returns the later one of a reading and of `swept`.
    #[inline]
    pub(in crate::table) fn latest(&self, now: u64) -> u64 {
        // ORDERING: Acquire; as in `sweep`. The caller that placed the word of a slot saw this time before.
        let swept = self.word.load(Ordering::Acquire) & !UNSURE;
        if is_behind(swept, now) {
            now
        } else {
            swept
        }
    }

    /// Empties all slots at the end of a silence, while the word is this one. Returns false once another caller has.
    fn forget(&self, table: &Slots<'_>, word: u64, now: u64) -> bool {
        let empty = table.geometry.layout.swept(table.geometry.clock_q(now));
        for slot in table.lines.iter().flat_map(|line| &line.words) {
            // ORDERING: Acquire; pairs with the Release of the swap that placed a word. If that is a new charge, its
            // caller saw the end of the silence before, and the next load sees it, too.
            let seen = slot.load(Ordering::Acquire);
            // ORDERING: Acquire; as above.
            if self.word.load(Ordering::Acquire) != word {
                return false;
            }
            if seen != 0 {
                // A swap that fails lost against another one that empties, or against a charge.
                let _ = (table.ways.replace)(slot, seen, empty);
            }
        }
        true
    }
}

impl Default for Sweeper {
    fn default() -> Sweeper {
        Sweeper::new()
    }
}

/// The slots of a table, and how they change.
pub(in crate::table) struct Slots<'t> {
    pub geometry: &'t Geometry,
    pub lines: &'t [Line],
    pub ways: &'static Ways,
}

impl Slots<'_> {
    pub fn count(&self) -> usize {
        self.lines.len() * SLOTS_PER_LINE
    }

    /// Does what [`Table::sweep`] does. Takes the [latest](Sweeper::latest) reading for each slot, after the slot is
    /// read.
    #[inline(never)]
    pub fn sweep(&self, now: u64, from: usize, count: usize, sweeper: &Sweeper) -> usize {
        let layout = &self.geometry.layout;
        let end = from.saturating_add(count).min(self.count());
        let word = |i: usize| self.lines.get(i / SLOTS_PER_LINE)?.words.get(i % SLOTS_PER_LINE);
        for word in (from..end).filter_map(word) {
            // ORDERING: Acquire; pairs with the Release of the swap that placed this word, for the reading below. The
            // swap below decides.
            let seen = word.load(Ordering::Acquire);
            let now_q = self.geometry.clock_q(sweeper.latest(now));
            if layout.is_sweepable(seen, now_q) {
                // If a newer word wins, the slot is in use again.
                let _ = (self.ways.replace)(word, seen, layout.swept(now_q));
            }
        }
        if end >= self.count() {
            0
        } else {
            end
        }
    }
}

impl<M: Access> Table<'_, M> {
    /// Returns its slots, for the cold code of every kind of table.
    #[inline(always)]
    pub(in crate::table) fn all_slots(&self) -> Slots<'_> {
        Slots { geometry: &self.geometry, lines: self.slots, ways: Ways::of::<M>() }
    }
}

/// The parts of a table, a power of two of them, and the ticks from one to the next.
#[derive(Clone, Copy)]
struct Rounds {
    shift: u32,
    every: u64,
    /// The sweep interval.
    interval: u64,
}

impl Rounds {
    #[inline]
    fn of(table: &Slots<'_>) -> Rounds {
        let shift = usize::BITS - ((table.count() - 1) / PART).leading_zeros();
        let interval = table.geometry.sweep_interval();
        Rounds { shift, every: (interval >> (shift + 2)).max(1), interval }
    }

    /// The longest time since `swept` that is no silence. It leaves out the part in which the last call may have been,
    /// and the skew, because a caller with an older reading may still count the debt of that call.
    fn pause(self, g: &Geometry) -> u64 {
        (self.every << self.shift).max(ticks_up(g.layout.window, 0, g.shl, g.shr).saturating_add(self.every))
    }
}

/// Returns whether the first time is before the second one.
#[inline]
const fn is_behind(time: u64, other: u64) -> bool {
    time.wrapping_sub(other) > i64::MAX as u64
}

//! Three-colour markers for the keys of a table. A key has two limits. The second is asked only for packets that the
//! first let pass, or only for packets that it refused.
//!
//! ```text
//!  hash of a key --------------> slot of its committed debt
//!        '-- second_hash --> slot of its second debt: peak or excess
//!
//!             asked first    it refuses        asked next     it refuses     it passes
//!  RFC 2698   peak           red               committed      yellow         green       green has paid both
//!  RFC 4115   committed      asked next        excess         red            yellow      each packet pays one
//!             it passes: green
//!
//!  came yellow: skips the committed limit. Came red: skips both.
//! ```
//!
//! No charge is ever given back, so no undo is needed: what a limit let pass stays charged to it in either colour.
//!
//! Invariants:
//!
//! - **Each envelope is exact.** A packet is green or yellow only after the limits of that colour have charged it, and
//!   each check is exact on its own word. So RFC 2698 never passes more than the peak limit, nor more green than the
//!   committed one; RFC 4115 never more green than the committed limit, nor more yellow than the excess one.
//! - **RFC 4115 is linearizable.** A packet takes effect at the last word that it asks: charges by others between its
//!   two checks only raise the committed debt, which had already refused it.
//! - **RFC 2698 gives the colours of some order of the packets if they have one reading of the clock.** It is the order
//!   in which they asked the committed limit, with the red ones last: at one instant debts only add up, so a packet
//!   that passed the peak limit fits it in any order. With different readings a packet may pass the peak limit before
//!   another one and ask the committed limit after it. Then their colours may be those of no order.
//! - **Contended charges nothing.** But a packet that has paid the peak limit and then loses its swaps on the committed
//!   one is yellow: it is charged, and its colour is no better than it may be.
//!
//! RFC 2697 is not here: the overflow of one of its buckets fills the other, so both must change in one swap.
//! [`Meter`](crate::Meter) has all three RFCs, in one word.
#![forbid(unsafe_code)]

use super::link::TableRef;
use super::pair::fetch_both;
use crate::answer::{Colour, Marking, Verdict};
use crate::keys::second_hash;
use crate::limit::TableLimit;
use crate::sync::Access;
use crate::table::{cost_of, Counters, Known, Request, Table, TableError, MAX_BURST};

/// Marks packets green, yellow or red by two limits of their key: RFC 2698 or RFC 4115 for every key of a table.
///
/// The committed debt of a key lies at its hash, the second one at its [`second_hash`]. Each limit is asked as
/// [`Table::check`] asks it, with its options: a limit in shadow mode never refuses, and a penalty is charged whenever
/// its limit refuses, under RFC 4115 also for yellow packets. Counters count a packet that a shadow limit lets pass as
/// conforming.
///
/// ```
/// use tatcell::{Colour, LimitSpec, Line, Mark, Table, TableOptions};
/// static MEMORY: [Line; 130] = [Line::EMPTY; 130];
///
/// // RFC 2698 for each flow: 1 MB/s and 2000 bytes committed, a peak of 2 MB/s and 4000 bytes; ticks are nanoseconds.
/// let (committed, peak) =
///     (LimitSpec::new(1_000_000, 1_000_000_000, 2_000), LimitSpec::new(2_000_000, 1_000_000_000, 4_000));
/// let table = Table::init(&MEMORY, &TableOptions::new(peak).slowest(committed).seed([7; 16]))?;
/// let (committed, peak) = (table.limit(&committed)?, table.limit(&peak)?);
/// let mark = Mark::rfc2698(&committed, &peak);
/// let flow = table.hash(b"192.0.2.1")?;
/// let colours = [(); 3].map(|()| mark.check(&table, 0, flow, 1_500, Colour::Green).map(|marked| marked.colour));
/// assert_eq!(colours, [Ok(Colour::Green), Ok(Colour::Yellow), Ok(Colour::Red)]);
/// # Ok::<(), tatcell::TableError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Mark<'a> {
    kind: Kind,
    committed: &'a TableLimit,
    second: &'a TableLimit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Rfc2698,
    Rfc4115,
}

/// The limit to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Committed,
    Second,
}

/// The two limits of a packet. (A closure would not be inlined in both places.)
trait Limits {
    /// Charges the packet if it conforms to this limit.
    fn ask(&mut self, side: Side) -> Verdict;
}

/// Asks the limits of a packet and returns its colour.
#[inline(always)]
fn colour_of(kind: Kind, pre: Colour, limits: &mut impl Limits) -> Marking {
    let green = match pre {
        Colour::Green => true,
        Colour::Yellow => false,
        Colour::Red => return Marking::of(Colour::Red),
    };
    let committed_first = green && kind == Kind::Rfc4115;
    let first = limits.ask(if committed_first { Side::Committed } else { Side::Second });
    let asks_next = match first {
        Verdict::Conforming => green && !committed_first,
        Verdict::NonConforming | Verdict::Never => committed_first,
        Verdict::Contended => false,
    };
    let next = if asks_next {
        Some(limits.ask(if committed_first { Side::Second } else { Side::Committed }))
    } else {
        None
    };
    match (first, next) {
        // RFC 2698: whatever the committed limit says, the packet has paid the peak limit.
        (Verdict::Conforming, Some(Verdict::Conforming)) => Marking::of(Colour::Green),
        (Verdict::Conforming, None) if committed_first => Marking::of(Colour::Green),
        (Verdict::Conforming, _) | (_, Some(Verdict::Conforming)) => Marking::of(Colour::Yellow),
        // `Never` only if neither burst is large enough.
        (verdict, Some(Verdict::Never)) => Marking { verdict, colour: Colour::Red },
        (_, Some(verdict)) | (verdict, None) => Marking { verdict, colour: Colour::Red },
    }
}

/// A packet with limits that `Mark::verify_limits` has checked.
struct Packet<'a, M: Access> {
    mark: &'a Mark<'a>,
    table: &'a Table<'a, M>,
    now: u64,
    hash: u64,
    cost: u64,
    counters: Option<&'a mut Counters>,
    /// The word of the committed debt, if it was loaded before the second debt was charged.
    early: Option<Known<'a>>,
}

impl<M: Access> Packet<'_, M> {
    // Out of line: single calls and bursts share it.
    #[inline(never)]
    fn marked(mut self, pre: Colour) -> Marking {
        // Loads both words before the first swap, because the second load would wait for it. If a word changes in
        // between, its swap fails, and a debt that refused still refuses. With one owner no swap waits, and none would
        // notice what the charge of the second debt did to the slot of the first.
        if self.mark.kind == Kind::Rfc2698 && !M::EXCLUSIVE {
            self.early = self.table.known(self.hash);
        }
        colour_of(self.mark.kind, pre, &mut self)
    }
}

impl<M: Access> Limits for Packet<'_, M> {
    #[inline(always)]
    fn ask(&mut self, side: Side) -> Verdict {
        let Packet { mark, table, now, cost, .. } = *self;
        let (limit, hash) = match side {
            Side::Committed => (mark.committed, self.hash),
            Side::Second => (mark.second, second_hash(self.hash)),
        };
        let known = match (side, mark.kind) {
            (Side::Committed, Kind::Rfc2698) if !M::EXCLUSIVE => self.early,
            _ => table.known(hash),
        };
        match known.and_then(|known| table.check_known(known, limit, now, cost)) {
            Some(verdict) => verdict,
            None => {
                let request = Request { limit, now, cost, room: 0 };
                long_way(table, &request, hash, self.counters.as_deref_mut())
            }
        }
    }
}

impl<'a> Mark<'a> {
    /// Makes a marker of RFC 2698. A packet that the peak limit refuses is red. One that it passes is green if the
    /// committed limit passes it too, else yellow. The peak rate must be at least the committed rate.
    pub const fn rfc2698(committed: &'a TableLimit, peak: &'a TableLimit) -> Mark<'a> {
        Mark { kind: Kind::Rfc2698, committed, second: peak }
    }

    /// Makes a marker of RFC 4115. A packet that the committed limit passes is green. One that it refuses is yellow if
    /// the excess limit passes it, else red.
    pub const fn rfc4115(committed: &'a TableLimit, excess: &'a TableLimit) -> Mark<'a> {
        Mark { kind: Kind::Rfc4115, committed, second: excess }
    }

    /// Marks one packet of a key and charges the limits of its colour.
    ///
    /// `now` is the caller's clock in ticks, `cost` in units: the bytes of the packet; 0 peeks and never writes. `pre`
    /// is the colour that it came with; [`Colour::Green`] for colour-blind marking.
    ///
    /// # Errors
    /// [`TableError::ForeignLimit`]; [`TableError::BadAlgorithm`] unless both are GCRA limits;
    /// [`TableError::PeakBelowCommitted`]. Nothing is touched then.
    ///
    /// # Concurrency
    /// Any number of threads and processes; each envelope is exact on every interleaving. RFC 4115 is linearizable, and
    /// RFC 2698 for packets with one clock reading; otherwise racing packets may get the colours of no order.
    ///
    /// # Cost
    /// One or two checks of a table: green is one compare-and-swap under RFC 4115 and two under RFC 2698.
    ///
    /// Source: RFC 2698, RFC 4115.
    pub fn check<'t>(
        &self,
        table: impl Into<TableRef<'t>>,
        now: u64,
        hash: u64,
        cost: u64,
        pre: Colour,
    ) -> Result<Marking, TableError> {
        match table.into() {
            TableRef::Shared(t) => self.mark_one(t, now, hash, cost, pre),
            TableRef::Exclusive(t) => self.mark_one(t, now, hash, cost, pre),
        }
    }

    fn mark_one<M: Access>(
        &self,
        table: &Table<'_, M>,
        now: u64,
        hash: u64,
        cost: u64,
        pre: Colour,
    ) -> Result<Marking, TableError> {
        self.verify_limits(table)?;
        Ok(Packet { mark: self, table, now, hash, cost, counters: None, early: None }.marked(pre))
    }

    /// Refuses limits by which this table cannot mark.
    pub(crate) fn verify_limits<M: Access>(&self, table: &Table<'_, M>) -> Result<(), TableError> {
        table.verify_limit(self.committed)?;
        table.verify_limit(self.second)?;
        if !self.committed.0.is_gcra() || !self.second.0.is_gcra() {
            return Err(TableError::BadAlgorithm);
        }
        // Both limits are of one table, so both are in its q-unit.
        if self.kind == Kind::Rfc2698 && self.second.0.t_q > self.committed.0.t_q {
            return Err(TableError::PeakBelowCommitted);
        }
        Ok(())
    }
}

/// Decides every case but a live key under a plain limit whose first swap won.
#[cold]
#[inline(never)]
fn long_way<M: Access>(
    table: &Table<'_, M>,
    request: &Request<'_>,
    hash: u64,
    counters: Option<&mut Counters>,
) -> Verdict {
    let Some(counters) = counters else {
        return table.check_again(request.limit, request.now, hash, request.cost).verdict();
    };
    let mut made = Counters::default();
    let decision = table.decide_ex(request, hash, Some(&mut made));
    // The verdict belongs to the packet, which is counted once.
    counters.add(&Counters {
        untracked: made.untracked,
        inherited: made.inherited,
        forgiven: made.forgiven,
        inserted: made.inserted,
        ..Counters::default()
    });
    decision.verdict
}

/// Marks up to 64 packets of a table at one instant.
///
/// ```
/// use tatcell::{Colour, LimitSpec, Line, Mark, MarkBurst, Table, TableOptions};
/// static MEMORY: [Line; 130] = [Line::EMPTY; 130];
///
/// // RFC 4115 for each flow: 1 MB/s, 3000 bytes committed and 1500 in excess; ticks are nanoseconds.
/// let committed = LimitSpec::new(1_000_000, 1_000_000_000, 3_000);
/// let excess = LimitSpec::new(1_000_000, 1_000_000_000, 1_500);
/// let table = Table::init(&MEMORY, &TableOptions::new(committed).slowest(excess).seed([7; 16]))?;
/// let (committed, excess) = (table.limit(&committed)?, table.limit(&excess)?);
/// let mark = Mark::rfc4115(&committed, &excess);
/// let mut hashes = [0; 5];
/// table.hash_burst(&mut hashes, |i| [[192, 0, 2, 1], [192, 0, 2, 2]][i / 4])?;
/// let burst = MarkBurst { mark: &mark, now: 0, hashes: &hashes, costs: Some(&[1_500; 5]), pre: None };
/// let mut colours = [Colour::Red; 5];
/// let marked = burst.check(&table, &mut colours, None, &[])?;
/// use Colour::{Green, Red, Yellow};
/// assert_eq!(colours, [Green, Green, Yellow, Red, Green]); // the last one is of another source
/// assert_eq!((marked.pass, marked.colours), (0b10111, [3, 1, 1]));
/// # Ok::<(), tatcell::TableError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct MarkBurst<'a> {
    /// The limits of all packets.
    pub mark: &'a Mark<'a>,
    /// The caller's clock, in ticks.
    pub now: u64,
    /// The hashes of their keys, at most [`MAX_BURST`].
    pub hashes: &'a [u64],
    /// Units of each packet (its bytes), as many as hashes; `None` = one unit each.
    pub costs: Option<&'a [u32]>,
    /// The colour that each packet came with, as many as hashes; `None` = all green, colour-blind.
    pub pre: Option<&'a [Colour]>,
}

/// Reports what a burst was marked as.
///
/// ```
/// use tatcell::Marked;
/// let marked = Marked { pass: 0b0111, colours: [2, 1, 1] }; // of a burst of four packets
/// assert_eq!(marked.pass.count_ones(), marked.colours[0] + marked.colours[1]);
/// let dropped = (0..4).filter(|i| marked.pass >> i & 1 == 0);
/// assert_eq!(dropped.collect::<Vec<_>>(), [3]);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marked {
    /// Bit i is 1 if packet i is green or yellow.
    pub pass: u64,
    /// How many are green, yellow and red.
    pub colours: [u32; 3],
}

impl MarkBurst<'_> {
    /// Marks in order: `colours[i]` becomes the colour of packet i, red also if it is contended. `next` are the hashes
    /// of the next burst, whose lines are prefetched meanwhile.
    ///
    /// The colours equal those of [`Mark::check`] for each packet in the same order, repeated keys included. Counters
    /// of verdicts count each packet once, those of slots (inserted, untracked, inherited, forgiven) each debt.
    ///
    /// # Errors
    /// The errors of [`Mark::check`]; [`TableError::TooManyKeys`] (also for `next`); [`TableError::BadCosts`] unless
    /// there are as many costs and colours as hashes. Nothing is marked then.
    ///
    /// # Concurrency
    /// Like [`Mark::check`]; other threads may act between two packets.
    ///
    /// # Cost
    /// That of single calls, with the cache misses of both debts of all packets overlapped.
    pub fn check<'t>(
        &self,
        table: impl Into<TableRef<'t>>,
        colours: &mut [Colour],
        counters: Option<&mut Counters>,
        next: &[u64],
    ) -> Result<Marked, TableError> {
        self.run(table.into(), colours, counters, (next, true))
    }

    /// Marks like [`check`](MarkBurst::check), for a burst whose hashes were the `next` of the previous call: its lines
    /// are not prefetched again.
    ///
    /// # Errors
    /// The errors of [`check`](MarkBurst::check).
    pub fn check_ahead<'t>(
        &self,
        table: impl Into<TableRef<'t>>,
        colours: &mut [Colour],
        counters: Option<&mut Counters>,
        next: &[u64],
    ) -> Result<Marked, TableError> {
        self.run(table.into(), colours, counters, (next, false))
    }

    pub(crate) fn run(
        &self,
        table: TableRef<'_>,
        colours: &mut [Colour],
        counters: Option<&mut Counters>,
        (next, fetch): (&[u64], bool),
    ) -> Result<Marked, TableError> {
        let count = self.hashes.len();
        if count > MAX_BURST || next.len() > MAX_BURST {
            return Err(TableError::TooManyKeys);
        }
        let costs = self.costs.map_or(count, <[u32]>::len);
        let pre = self.pre.map_or(count, <[Colour]>::len);
        if [costs, pre, colours.len()] != [count; 3] {
            return Err(TableError::BadCosts);
        }
        match table {
            TableRef::Shared(t) => self.mark_all(t, colours, counters, next, fetch),
            TableRef::Exclusive(t) => self.mark_all(t, colours, counters, next, fetch),
        }
    }

    fn mark_all<M: Access>(
        &self,
        table: &Table<'_, M>,
        colours: &mut [Colour],
        mut counters: Option<&mut Counters>,
        next: &[u64],
        fetch: bool,
    ) -> Result<Marked, TableError> {
        let MarkBurst { mark, now, hashes, costs, pre } = *self;
        mark.verify_limits(table)?;
        if fetch {
            fetch_both(table, hashes);
        }
        fetch_both(table, next);
        let mut marked = Marked::default();
        for ((i, &hash), colour) in hashes.iter().enumerate().zip(colours) {
            let cost = costs.map_or(1, |costs| cost_of(costs, i));
            // Red stays red, and nobody is charged.
            let red = || impossible!(Colour::Red);
            let came = pre.map_or(Colour::Green, |pre| pre.get(i).copied().unwrap_or_else(red));
            let counted = counters.as_deref_mut();
            let packet = Packet { mark, table, now, hash, cost, counters: counted, early: None };
            let made = packet.marked(came);
            *colour = made.colour;
            marked.pass |= (made.passes() as u64).wrapping_shl(i as u32);
            if let Some(count) = marked.colours.get_mut(made.colour as usize) {
                *count = count.wrapping_add(1);
            }
            if let Some(counters) = &mut counters {
                counters.count_verdict(made.verdict);
            }
        }
        Ok(marked)
    }
}

#[cfg(all(test, not(tatcell_loom)))]
#[path = "mark_tests.rs"]
mod tests;

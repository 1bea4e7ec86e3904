//! `tatcell_table_mark*`: three-colour marking of the keys of a table, by two limits each.

use core::ffi::c_void;

use super::pair::hash_both;
use crate::answer::{Colour, Marking};
use crate::capi::cell::meter::{colour, finish};
use crate::capi::codes::{table_code, TATCELL_ERR_COUNT, TATCELL_ERR_OPTION, TATCELL_PASS};
use crate::capi::limit::limit::tatcell_limit_t;
use crate::capi::limit::meter_params::{TATCELL_METER_RFC2698, TATCELL_METER_RFC4115};
use crate::capi::pointers::contract::{args, placed, Contract, Grows};
use crate::capi::pointers::places::{Span, Written};
use crate::capi::table::burst::{tatcell_burst_t, two, Before, Source};
use crate::capi::table::check::{hash_of, refused};
use crate::capi::table::handle::{tatcell_table_t, Handle};
use crate::combine::link::either;
use crate::combine::{Mark, MarkBurst, Marked, PairBurst};
use crate::limit::TableLimit;
use crate::table::{Counters, MAX_BURST};

/// Bytes of a tatcell_mark_t in its first release. (The header has it in terms of sizeof.)
const TATCELL_MARK_MIN: usize = 16 + 2 * size_of::<*const u8>();

/// The rule that marks the packets of every key of a table, by two limits of the table. Start from
/// TATCELL_MARK_INIT. The calls only read it.
///
/// The committed debt of a key lies in the table at the hash of the key. Its second debt lies at
/// tatcell_hash_second of that hash. Each limit decides as in tatcell_table_check, with its options. A limit in
/// shadow mode never refuses. A penalty is charged when its limit refuses; under RFC 4115 the committed limit also
/// refuses yellow packets. Counters count a packet that a shadow limit lets pass as conforming.
///
/// TATCELL_METER_RFC2698: a packet that the second limit, the peak, refuses is red. A packet that it passes is
/// green if the committed limit passes it as well, else yellow. TATCELL_METER_RFC4115: a packet that the committed
/// limit passes is green. Of the others, a packet that the second limit, the excess, passes is yellow, and the rest
/// are red.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct tatcell_mark_t {
    /// sizeof(tatcell_mark_t).
    pub size: u32,
    /// Must be 0.
    pub flags: u32,
    /// TATCELL_METER_RFC2698 or TATCELL_METER_RFC4115. RFC 2697 is not possible, because its buckets fill one
    /// another and need one word: see tatcell_meter_check.
    pub kind: u32,
    /// Must be 0.
    pub reserved: u32,
    /// The committed limit, from tatcell_limit_init_table of the table; not NULL.
    pub committed: *const tatcell_limit_t,
    /// The peak limit (RFC 2698, at least as fast as committed) or the excess limit, from tatcell_limit_init_table
    /// of the table; not NULL.
    pub second: *const tatcell_limit_t,
}

// SAFETY: repr(C), its size first, integers and pointers without padding (asserted).
unsafe impl Grows for tatcell_mark_t {
    const FIRST: usize = TATCELL_MARK_MIN;
}
const _: () = assert!(size_of::<tatcell_mark_t>() == TATCELL_MARK_MIN && TATCELL_MARK_MIN % 8 == 0);

/// Makes a mark, whose limits must be the table's.
fn mark<'a>(c: Contract<'a>, table: &Handle, given: &tatcell_mark_t) -> Result<Mark<'a>, i32> {
    if given.flags != 0 || given.reserved != 0 {
        return Err(TATCELL_ERR_OPTION);
    }
    let own = |limit| -> Result<&'a TableLimit, i32> {
        let limit = c.table_limit(limit)?;
        either!(table.table(), t => t.verify_limit(limit)).map_err(|e| refused(e, limit))?;
        Ok(limit)
    };
    let (committed, second) = (own(given.committed)?, own(given.second)?);
    match given.kind {
        TATCELL_METER_RFC2698 => Ok(Mark::rfc2698(committed, second)),
        TATCELL_METER_RFC4115 => Ok(Mark::rfc4115(committed, second)),
        _ => Err(TATCELL_ERR_OPTION),
    }
}

fn mark_one(
    table: &Handle,
    mark: &Mark<'_>,
    now: u64,
    hash: u64,
    cost: u64,
    pre: Colour,
) -> Result<Marking, i32> {
    mark.check(table.table(), now, hash, cost, pre).map_err(table_code)
}

/// Marks one packet of a key green, yellow or red, and charges the limits of its colour.
///
/// Each limit is exact on every interleaving of threads. Under RFC 2698 the peak limit is exact for green and
/// yellow together, and the committed one for green. Under RFC 4115 the committed limit is exact for green, and the
/// excess one for yellow. RFC 4115 gives the colours of some order of the packets; RFC 2698 does so for packets
/// with one reading of the clock. A key uses two slots. If a set is full, the policy of the table decides.
///
/// Sources: RFC 2698, RFC 4115.
///
/// @param table   handle; not NULL.
/// @param mark    started from TATCELL_MARK_INIT; not NULL.
/// @param now     the caller's clock, ticks.
/// @param key     bytes of the key; not NULL, even when empty.
/// @param key_len bytes.
/// @param cost    units: the bytes of the packet; 0 only peeks and never writes.
/// @param pre     the colour that the packet came with; TATCELL_GREEN for colour-blind marking. A colour never gets
///                better.
/// @param colour  gets the packet's colour: TATCELL_GREEN, TATCELL_YELLOW or TATCELL_RED. A packet without verdict
///                is red. NULL = not wanted. Not written on error.
/// @retval 0 green or yellow; charged unless cost is 0.
/// @retval TATCELL_NON_CONFORMING red, as is every packet that came red; nothing is charged except a penalty.
/// @retval TATCELL_NEVER red, and always will be: the cost is above every burst that its incoming colour may use.
/// @retval TATCELL_CONTENDED no verdict; nothing is charged except a penalty.
/// @retval TATCELL_ERR_SIZE the size of mark is not set.
/// @retval TATCELL_ERR_OPTION kind is neither of the two, a flag is unknown, or pre is not a colour.
/// @retval TATCELL_ERR_PEAK kind is RFC 2698, and second is slower than committed.
/// @retval TATCELL_ERR_ALGORITHM the limits are not of GCRA.
/// @retval TATCELL_ERR_HANDLE, TATCELL_ERR_LIMIT, TATCELL_ERR_FOREIGN, TATCELL_ERR_HASH, TATCELL_ERR_NULL,
///         TATCELL_ERR_ALIGN, TATCELL_ERR_KEY_LENGTH as tatcell_table_check. Nothing is changed on error.
/// Thread: any number, unless the table is exclusive. Cost: one or two checks of a table. Since 0.3.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_table_mark(
    table: *const tatcell_table_t,
    mark: *const tatcell_mark_t,
    now: u64,
    key: *const c_void,
    key_len: usize,
    cost: u64,
    pre: u32,
    colour: *mut u32,
) -> i32 {
    args!(
        c,
        table = c.handle(table),
        given = c.options(mark),
        mark = self::mark(c, table, &given),
        key = c.key(key, key_len),
        pre = self::colour(pre),
        out = c.result_if(colour),
        hash = hash_of(table, key),
        made = mark_one(table, &mark, now, hash, cost, pre)
    );
    finish(made, out)
}

/// As tatcell_table_mark, for a hash made by tatcell_table_hash. Since 0.3.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_table_mark_hash(
    table: *const tatcell_table_t,
    mark: *const tatcell_mark_t,
    now: u64,
    hash: u64,
    cost: u64,
    pre: u32,
    colour: *mut u32,
) -> i32 {
    args!(
        c,
        table = c.handle(table),
        given = c.options(mark),
        mark = self::mark(c, table, &given),
        pre = self::colour(pre),
        out = c.result_if(colour),
        made = mark_one(table, &mark, now, hash, cost, pre)
    );
    finish(made, out)
}

/// Marks up to 64 packets at one now, in order. Before that it hashes and prefetches the keys of the next burst.
///
/// The colours and the charges equal those of tatcell_table_mark for each packet in the same order, including
/// repeated keys. burst and next are as for tatcell_table_check_burst, with the differences below. Bit i of
/// burst->pass is 1 if packet i is green or yellow. In burst->counters, the counts of verdicts count each packet
/// once. The counts inserted, untracked, inherited and forgiven count each debt, and a key has two debts.
///
/// @param table   handle; not NULL.
/// @param burst   the burst to mark; its costs are the bytes of the packets. Its limit, limits and decisions are
///                NULL. Not NULL.
/// @param mark    started from TATCELL_MARK_INIT; not NULL.
/// @param pre     the colour that each packet came with, one byte each; NULL = all green, colour-blind.
/// @param colours gets the colour of each packet, one byte each, TATCELL_RED if it is contended; not NULL unless
///                the burst is empty. May be pre.
/// @param counts  three counts, of green, yellow and red packets; the call adds those of this burst. NULL = off.
/// @param next    the burst that the next call will mark or decide, under the same table. NULL = nothing follows.
/// @retval 0 marked.
/// @retval TATCELL_ERR_OPTION as tatcell_table_check_burst and tatcell_table_mark, or burst has a limit, limits or
///         decisions.
/// @retval TATCELL_ERR_OVERLAP an object that the call writes (both bursts, colours, counts, counters) overlaps
///         another object of the call.
/// @retval others as tatcell_table_check_burst and tatcell_table_mark. On error nothing is marked, hashed or
///         changed.
/// Thread: any number, each with its own bursts, unless the table is exclusive. Cost: as single calls, with the
/// cache misses of both debts of all packets overlapped. Since 0.3.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_table_mark_burst(
    table: *const tatcell_table_t,
    burst: *mut tatcell_burst_t,
    mark: *const tatcell_mark_t,
    pre: *const u8,
    colours: *mut u8,
    counts: *mut u64,
    next: *mut tatcell_burst_t,
) -> i32 {
    args!(
        c,
        spans = Ok::<_, i32>([Span::of(burst, 1), Span::of(next, 1), c.reach(mark)]),
        table = c.handle(table),
        () = placed(burst),
        () = two(burst, next),
        given = c.options(mark),
        burst = c.owned_options(burst),
        mut next = c.owned_options_if(next),
        work = Work::new(c, burst, next.as_deref(), (&given, pre, colours, counts), spans, table),
        (made, places) = work.run(table, burst, next.as_deref_mut())
    );
    places.put(&made);
    burst.pass = made.0.pass;
    burst.prepared = 0;
    if let Some(next) = next {
        next.prepared = table.ticket.wrapping_add(next.count.into());
    }
    TATCELL_PASS
}

/// What a burst was marked as, and the colour of each packet.
type Made = (Marked, [Colour; MAX_BURST]);

/// Where the results of a burst go: one byte a packet and three counts.
struct Places<'a> {
    colours: &'a mut [u8],
    counts: &'a mut [u64],
}

impl Places<'_> {
    fn put(self, (marked, colours): &Made) {
        self.colours.iter_mut().zip(colours).for_each(|(place, colour)| *place = *colour as u8);
        let counts = self.counts.iter_mut().zip(marked.colours);
        counts.for_each(|(place, count)| *place = place.wrapping_add(count.into()));
    }
}

/// A call with checked arguments.
struct Work<'a> {
    now: u64,
    source: Source<'a>,
    /// Whether the lines were prefetched.
    fetched: bool,
    /// `None` for an empty burst.
    mark: Option<Mark<'a>>,
    costs: Option<&'a [u32]>,
    /// All green if the caller gave none.
    pre: [Colour; MAX_BURST],
    places: Places<'a>,
    counters: Option<&'a mut Counters>,
    next: Source<'a>,
}

/// How to mark packets, the colours that they came with, and where their colours and the counts of them go.
type Given<'g> = (&'g tatcell_mark_t, *const u8, *mut u8, *mut u64);

impl<'a> Work<'a> {
    fn new(
        c: Contract<'a>,
        burst: &tatcell_burst_t,
        next: Option<&tatcell_burst_t>,
        (given, pre, colours, counts): Given<'_>,
        [this, that, how]: [Span; 3],
        table: &Handle,
    ) -> Result<Work<'a>, i32> {
        let count = burst.count as usize;
        let Before { hashed, fetched } = Before::of(burst, table.ticket);
        if !burst.limit.is_null() || !burst.limits.is_null() || !burst.decisions.is_null() {
            return Err(TATCELL_ERR_OPTION);
        }
        c.result_if(counts)?;
        let counted = Span::of(burst.counters, 1);
        let (coloured, summed) = (Span::of(colours, count), Span::of(counts, 3));
        counted.apart_from(&[this, that])?;
        coloured.apart_from(&[this, that, counted])?;
        summed.apart_from(&[this, that, counted, coloured])?;
        let written = &Written::new(this, [this, that, counted, coloured]);
        let apart = |span: Span| written.apart(span).and_then(|()| summed.apart(span));
        apart(how)?;
        apart(Span::of(burst.costs, count))?;
        for limit in [given.committed, given.second] {
            apart(Span::of(limit, 1))?;
        }
        // Colours may be written over those that packets came with, because all of those are read first.
        Written::new(this, [this, that, counted, summed]).apart(Span::of(pre, count))?;
        if !counts.is_null() {
            // The fifth span that is written; a `Written` has four.
            let sums = &Written::new(summed, [summed; 4]);
            Source::new(c, burst, hashed, sums)?;
            next.map_or(Ok(Source::Empty), |next| Source::new(c, next, false, sums))?;
        }
        let source = Source::new(c, burst, hashed, written)?;
        let next = next.map_or(Ok(Source::Empty), |next| Source::new(c, next, false, written))?;
        let mark = if count == 0 { None } else { Some(mark(c, table, given)?) };
        let costs = if burst.costs.is_null() { None } else { Some(c.array(burst.costs, count)?) };
        let mut came = [Colour::Green; MAX_BURST];
        let bytes: &[u8] = if pre.is_null() { &[] } else { c.array(pre, count)? };
        for (place, byte) in came.iter_mut().zip(bytes) {
            *place = colour((*byte).into())?;
        }
        let places = Places {
            colours: if count == 0 { &mut [] } else { c.buffer(colours, count)? },
            counts: if counts.is_null() { &mut [] } else { c.buffer(counts, 3 * size_of::<u64>())? },
        };
        let counters = c.owned_if(burst.counters)?;
        Ok(Work { now: burst.now, source, fetched, mark, costs, pre: came, places, counters, next })
    }

    /// Hashes the keys that have no hash yet, and marks.
    fn run(
        self,
        table: &Handle,
        burst: &mut tatcell_burst_t,
        next: Option<&mut tatcell_burst_t>,
    ) -> Result<(Made, Places<'a>), i32> {
        let count = burst.count as usize;
        let mut made: Made = (Marked::default(), [Colour::Red; MAX_BURST]);
        let Some(mark) = self.mark else {
            let (_, ahead) = hash_both(table, (burst, self.source), (next, self.next))?;
            PairBurst::fetch(table.table(), ahead);
            return Ok((made, self.places));
        };
        either!(table.table(), t => mark.verify_limits(t)).map_err(table_code)?;
        let (hashes, ahead) = hash_both(table, (burst, self.source), (next, self.next))?;
        let pre = self.pre.get(..count);
        let packets = MarkBurst { mark: &mark, now: self.now, hashes, costs: self.costs, pre };
        let colours = made.1.get_mut(..count).ok_or_else(|| impossible!(TATCELL_ERR_COUNT))?;
        made.0 =
            packets.run(table.table(), colours, self.counters, (ahead, !self.fetched)).map_err(table_code)?;
        Ok((made, self.places))
    }
}

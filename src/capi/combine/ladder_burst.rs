//! `tatcell_ladder_check_burst`: many addresses under a ladder, and overrides before the limits.

use core::ffi::c_void;

use crate::answer::{Decision, Permit};
use crate::capi::codes::{
    table_code, TATCELL_ERR_ADDRESS, TATCELL_ERR_COUNT, TATCELL_ERR_NULL, TATCELL_ERR_OPTION, TATCELL_PASS,
};
use crate::capi::combine::ladder::tatcell_ladder_t;
use crate::capi::decision::tatcell_decision_t;
use crate::capi::pointers::contract::{args, Contract, Grows, Out};
use crate::capi::pointers::lists::Rows;
use crate::capi::pointers::places::{Span, Written};
use crate::capi::table::handle::{tatcell_table_t, Handle};
use crate::capi::table::override_addresses::tatcell_prefix_lengths_t;
use crate::combine::{ChainCounters, LadderBurst, LadderLimits, LadderOverrides, MAX_LINKS};
use crate::keys::Address;
use crate::table::{Counters, Keys, MAX_BURST};

/// Bytes of a tatcell_ladder_burst_t in its first release. (The header has it in terms of sizeof.)
const TATCELL_LADDER_BURST_MIN: usize = 32 + 12 * size_of::<*const u8>();

/// Up to 64 requests of addresses at one instant; a single request is a burst of one. Start from
/// TATCELL_LADDER_BURST_INIT. The calls only read it, so it may be used again and again.
///
/// Set addresses (the first address, with stride bytes from each to the next) or address_pointers (one pointer for
/// each address), and leave the other NULL.
#[repr(C)]
pub struct tatcell_ladder_burst_t {
    /// sizeof(tatcell_ladder_burst_t).
    pub size: u32,
    /// Must be 0.
    pub flags: u32,
    /// Number of requests, 0..64. An empty burst needs no other field.
    pub count: u32,
    /// With decisions: bytes from one decision to the next, sizeof(tatcell_decision_t).
    pub decision_size: u32,
    /// The caller's clock, ticks.
    pub now: u64,
    /// Bytes from one address to the next. It may be negative, or 0 to use one address many times. The call refuses
    /// one that a ptrdiff_t cannot hold (TATCELL_ERR_OPTION).
    pub stride: i64,
    /// Address i is at (const char *)addresses + i * stride, in network order.
    pub addresses: *const c_void,
    /// Address i is at address_pointers[i].
    pub address_pointers: *const *const c_void,
    /// Bytes of each address, 4 or 16; NULL = address_len for every one.
    pub address_lens: *const usize,
    /// Bytes of every address, 4 or 16, unless address_lens is set.
    pub address_len: usize,
    /// Units of each request; NULL = 1 each.
    pub costs: *const u32,
    /// Elastic room of each request, in units of one address: each tier may exceed its burst by this many units times
    /// its multiplier, but no more than its max_room. NULL = none.
    pub rooms: *const u32,
    /// A table of overrides that is asked before the limits; NULL = none.
    pub overrides: *const tatcell_table_t,
    /// The prefix lengths that are asked in overrides, started from TATCELL_PREFIX_LENGTHS_INIT; NULL = the address
    /// itself only.
    pub lengths: *const tatcell_prefix_lengths_t,
    /// Gets the decision of each request, decision_size bytes apart. Their size fields are neither read nor written.
    /// NULL = not wanted.
    pub decisions: *mut tatcell_decision_t,
    /// Gets TATCELL_CHAIN_MAX permits for each request, one for each tier, for tatcell_ladder_refund. NULL = not
    /// wanted.
    pub permits: *mut Permit,
    /// This thread's counters. They count one decision for each request, and each key that it inserts. NULL = off.
    pub counters: *mut Counters,
    /// TATCELL_CHAIN_MAX counters of this thread, one for each tier. They count the tier's own decision, also if
    /// another tier refused, and not that of an override. NULL = off.
    pub tier_counters: *mut Counters,
}

// SAFETY: repr(C), its size first, integers and pointers without padding (asserted).
unsafe impl Grows for tatcell_ladder_burst_t {
    const FIRST: usize = TATCELL_LADDER_BURST_MIN;
}
const _: () = assert!(
    size_of::<tatcell_ladder_burst_t>() == TATCELL_LADDER_BURST_MIN && TATCELL_LADDER_BURST_MIN % 8 == 0
);

/// A call with checked arguments.
struct Work<'a> {
    limits: &'a LadderLimits,
    table: &'a Handle,
    now: u64,
    addresses: [Address; MAX_BURST],
    count: usize,
    costs: Option<&'a [u32]>,
    rooms: Option<&'a [u32]>,
    overrides: Option<LadderOverrides<'a>>,
    decisions: Option<Rows<'a, tatcell_decision_t>>,
    permits: &'a mut [Permit],
    counters: ChainCounters<'a>,
}

impl<'a> Work<'a> {
    fn new(
        c: Contract<'a>,
        (ladder, handle): (*const tatcell_ladder_t, *const tatcell_table_t),
        p: *const tatcell_ladder_burst_t,
        pass: *const u64,
    ) -> Result<Work<'a>, i32> {
        let (limits, table, given) = (c.ladder(ladder)?, c.handle(handle)?, c.options(p)?);
        let count = given.count as usize;
        let (strided, pointers) = (!given.addresses.is_null(), !given.address_pointers.is_null());
        if given.flags != 0 || strided & pointers {
            return Err(TATCELL_ERR_OPTION);
        }
        if count > MAX_BURST {
            return Err(TATCELL_ERR_COUNT);
        }
        if count != 0 && !(strided | pointers) {
            return Err(TATCELL_ERR_NULL);
        }
        let decisions = c.rows(given.decisions, given.decision_size, count)?;
        // What the call writes: decisions, permits and both counters; pass comes last.
        let decided = decisions.map_or(Span::NOTHING, Rows::span);
        let permits = Span::of(given.permits, count.wrapping_mul(MAX_LINKS));
        let (counted, tiers) = (Span::of(given.counters, 1), Span::of(given.tier_counters, MAX_LINKS));
        permits.apart_from(&[decided])?;
        counted.apart_from(&[decided, permits])?;
        tiers.apart_from(&[decided, permits, counted])?;
        Span::of(pass, 1).apart_from(&[decided, permits, counted, tiers])?;
        let written = &Written::new(decided, [decided, permits, counted, tiers]);
        for read in [
            c.reach(p),
            Span::of(ladder, 1),
            Span::of(handle, 1),
            Span::of(given.overrides, 1),
            Span::of(given.costs, count),
            Span::of(given.rooms, count),
            Span::of(given.address_pointers, count),
            Span::of(given.address_lens, count),
        ] {
            written.apart(read)?;
        }
        let mut addresses = [Address::from([0; 4]); MAX_BURST];
        if count != 0 {
            let (first, stride) = (given.addresses, given.stride);
            let (each, lens) = (given.address_pointers, given.address_lens);
            let keys = c.keys((first, stride), each, given.address_len, lens, count)?;
            keys.apart_from(written, count)?;
            for (i, address) in addresses.iter_mut().enumerate().take(count) {
                *address = keys.bytes(i).and_then(Address::new).ok_or(TATCELL_ERR_ADDRESS)?;
            }
        }
        let overrides = if given.overrides.is_null() {
            None
        } else {
            let lengths = c.lengths(given.lengths)?;
            for family in [lengths.v4, lengths.v6] {
                written.apart(Span::of(family.as_ptr(), family.len()))?;
            }
            Some(LadderOverrides { table: c.handle(given.overrides)?.table(), lengths })
        };
        let units = |p: *const u32| if p.is_null() { Ok(None) } else { c.array(p, count).map(Some) };
        let (costs, rooms) = (units(given.costs)?, units(given.rooms)?);
        let (of_permits, of_tiers) = (size_of::<Permit>(), size_of::<Counters>());
        let permits = match given.permits.is_null() {
            true => &mut [],
            false => c.buffer(given.permits, count.wrapping_mul(MAX_LINKS).wrapping_mul(of_permits))?,
        };
        let links = match given.tier_counters.is_null() {
            true => &mut [],
            false => c.buffer(given.tier_counters, MAX_LINKS.wrapping_mul(of_tiers))?,
        };
        let counters = ChainCounters { chain: c.owned_if(given.counters)?, links };
        let now = given.now;
        Ok(Work {
            limits,
            table,
            now,
            addresses,
            count,
            costs,
            rooms,
            overrides,
            decisions,
            permits,
            counters,
        })
    }

    /// By reference, and out of line: a move, and the stack of `new`, would take 4 KiB more.
    #[inline(never)]
    fn run(&mut self, charges: bool) -> Result<u64, i32> {
        let Work { limits, table, now, costs, rooms, overrides, ref mut decisions, .. } = *self;
        let (permits, counters) = (core::mem::take(&mut self.permits), core::mem::take(&mut self.counters));
        let addresses = self.addresses.get(..self.count).ok_or_else(|| impossible!(TATCELL_ERR_COUNT))?;
        let burst = LadderBurst { limits, now, addresses, costs, rooms, overrides };
        if !charges && decisions.is_none() && permits.is_empty() && !counters.any() {
            return burst.verdicts(table.table()).map_err(table_code);
        }
        let each = |i: usize, answer: &Decision, of_tiers: &[Permit; MAX_LINKS]| {
            let places = permits.iter_mut().skip(i.wrapping_mul(MAX_LINKS));
            places.zip(of_tiers).for_each(|(place, permit)| *place = *permit);
            if let Some(decisions) = decisions {
                decisions.put(i, &tatcell_decision_t::of(answer));
            }
        };
        match charges {
            false => burst.check(table.table(), counters, each),
            true => burst.charge(table.table(), counters, each),
        }
        .map_err(table_code)
    }
}

/// Runs a call, and puts its bits.
fn work(made: &mut Result<Work<'_>, i32>, charges: bool, to: Out<'_, u64>) -> i32 {
    match made.as_mut().map_err(|e| *e).and_then(|work| work.run(charges)) {
        Err(e) => e,
        Ok(pass) => {
            to.put(pass);
            TATCELL_PASS
        }
    }
}

/// Decides up to 64 requests of addresses at one now, in order: each as tatcell_ladder_check, with overrides and
/// elastic room. A single request is a burst of one.
///
///     tatcell_ladder_burst_t ask = TATCELL_LADDER_BURST_INIT;
///     tatcell_decision_t decision = TATCELL_DECISION_INIT;
///     uint64_t pass;
///     ask.now = now, ask.count = 1, ask.addresses = &client.sin6_addr, ask.address_len = 16;
///     ask.overrides = &bans, ask.lengths = &lengths;
///     ask.decisions = &decision, ask.decision_size = sizeof decision;
///     if (tatcell_ladder_check_burst(&ladder, &table, &ask, &pass) < 0) return error();
///     if (!(pass & 1)) return refuse(decision.retry_after);
///
/// For each request the longest prefix with an override decides, as from tatcell_table_overridden_address. A banned
/// address is refused (TATCELL_FLAG_BANNED, retry_after until the ban ends). An exempt one passes
/// (TATCELL_FLAG_EXEMPT). Neither is charged, and policy is TATCELL_CHAIN_MAX, which is no tier. Any other address is
/// charged at all its prefixes if it conforms to each, else at none. Room that a refused request took is given back.
///
/// The verdicts and charges equal those of the same single calls in the same order, including repeated addresses. The
/// lines of later addresses are prefetched while one is decided.
///
/// @param ladder from tatcell_ladder_init; not NULL.
/// @param table  handle of the table that the ladder was made for; not NULL.
/// @param burst  started from TATCELL_LADDER_BURST_INIT; not NULL.
/// @param pass   gets a bit for each request: bit i is 1 if request i passes. Not NULL.
/// @retval 0 decided; see pass. A contended request has bit 0.
/// @retval TATCELL_ERR_COUNT more than 64 requests.
/// @retval TATCELL_ERR_ADDRESS an address has neither 4 nor 16 bytes.
/// @retval TATCELL_ERR_OPTION a flag is set, or both addresses and address_pointers.
/// @retval TATCELL_ERR_OVERLAP objects that the call writes (decisions, permits, counters, tier_counters, pass) overlap
///         each other, or objects that it reads. Only pass may lie in one that it reads: it is written last.
/// @retval TATCELL_ERR_ALGORITHM overrides is not a table of overrides; TATCELL_ERR_PREFIX as
///         tatcell_table_overridden_address.
/// @retval others as tatcell_ladder_check. On error nothing is decided, charged or counted.
/// Thread: as tatcell_ladder_check, each with its own counters. Cost: that of single calls, without most of their cache
/// misses; fastest without decisions, permits, counters and rooms; 7 KiB of stack, up to 9 KiB if the limits are not
/// plain. Since 0.4.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_ladder_check_burst(
    ladder: *const tatcell_ladder_t,
    table: *const tatcell_table_t,
    burst: *const tatcell_ladder_burst_t,
    pass: *mut u64,
) -> i32 {
    args!(c, to = c.result(pass));
    work(&mut Work::new(c, (ladder, table), burst, pass), false, to)
}

/// Charges up to 64 requests of addresses after the fact, in order, when the cost is known: all prefixes of each, as
/// tatcell_chain_charge.
///
/// A check of cost 0 before the work asks whether a prefix is in debt. An exempt address is not charged. A banned one
/// is, because it was let through. Rooms have no effect. Permits are for tatcell_ladder_refund.
///
/// @param ladder from tatcell_ladder_init; not NULL.
/// @param table  handle of the table that the ladder was made for; not NULL.
/// @param burst  as for tatcell_ladder_check_burst; not NULL.
/// @param pass   gets a bit for each request: bit i is 0 only if a tier of request i is not charged, because it was
///               contended or its set is full, as in tatcell_chain_charge. Not NULL.
/// @retval 0 charged.
/// @retval others as tatcell_ladder_check_burst. On error nothing is charged or counted.
/// Thread: as tatcell_ladder_check_burst. Cost: for each tier a hash, a scan and a compare-and-swap. Since 0.4.
#[no_mangle]
pub unsafe extern "C" fn tatcell_ladder_charge_burst(
    ladder: *const tatcell_ladder_t,
    table: *const tatcell_table_t,
    burst: *const tatcell_ladder_burst_t,
    pass: *mut u64,
) -> i32 {
    args!(c, to = c.result(pass));
    work(&mut Work::new(c, (ladder, table), burst, pass), true, to)
}

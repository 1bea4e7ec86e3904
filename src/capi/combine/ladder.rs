//! `tatcell_ladder_*`: limits for the prefixes of an address.

use core::ffi::c_void;

use super::ladder_told::{chain_of, check_verdict, check_wanted, Inside};
use crate::answer::Permit;
use crate::capi::codes::{
    limit_code, table_code, TATCELL_END, TATCELL_ERR_LADDER, TATCELL_ERR_OPTION, TATCELL_PASS,
};
use crate::capi::decision::{fill, finish_done, tatcell_decision_t};
use crate::capi::limit::limit::{spec, tatcell_limit_spec_t};
use crate::capi::pointers::contract::{args, inside, placed, Contract, Grows, Plain};
use crate::capi::pointers::places::Span;
use crate::capi::table::handle::tatcell_table_t;
use crate::combine::{LadderLimits, MAX_LINKS};
use crate::keys::{Ladder, Rung};
use crate::limit::LimitSpec;
use crate::table::Counters;

/// One prefix length of a ladder.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct tatcell_rung_t {
    /// Length of the prefix in bits: 0 (all addresses of the family) to 32 or 128.
    pub bits: u32,
    /// The limit of all addresses with one prefix together is this many times the limit of one address; not 0.
    pub multiplier: u32,
}

// SAFETY: repr(C), integers.
unsafe impl Plain for tatcell_rung_t {}

/// Bytes of a tatcell_ladder_spec_t in its first release. (The header has it in terms of sizeof.)
const TATCELL_LADDER_SPEC_MIN: usize = 16 + 2 * size_of::<*const u8>();

/// The prefix lengths that have limits, the longest first. From rung to rung, lengths must fall and multipliers
/// must not fall. A family without rungs has the defaults: IPv4 /32 x1, /24 x32, /20 x256, /18 x768; IPv6 /128 x1,
/// /64 x2, /56 x3, /48 x4, /32 x64.
#[repr(C)]
pub struct tatcell_ladder_spec_t {
    /// sizeof(tatcell_ladder_spec_t).
    pub size: u32,
    /// Must be 0.
    pub flags: u32,
    /// Number of rungs for IPv4, 1..8; 0 = the defaults.
    pub v4_count: u32,
    /// Number of rungs for IPv6, 1..8; 0 = the defaults.
    pub v6_count: u32,
    /// The rungs for IPv4; NULL if v4_count is 0.
    pub v4: *const tatcell_rung_t,
    /// The rungs for IPv6; NULL if v6_count is 0.
    pub v6: *const tatcell_rung_t,
}

// SAFETY: repr(C), its size first, integers and pointers without padding (asserted).
unsafe impl Grows for tatcell_ladder_spec_t {
    const FIRST: usize = TATCELL_LADDER_SPEC_MIN;
}
const _: () = assert!(
    size_of::<tatcell_ladder_spec_t>() == TATCELL_LADDER_SPEC_MIN && TATCELL_LADDER_SPEC_MIN % 8 == 0
);

/// Bytes of a tatcell_ladder_t. This size never changes.
pub const TATCELL_LADDER_SIZE: usize = 2304;
/// Alignment of a tatcell_ladder_t.
pub const TATCELL_LADDER_ALIGN: usize = 8;

/// The limits of all tiers of a ladder, for one table. tatcell_ladder_init initialises it. After that it is
/// read-only, and any number of threads may use it at once. The library refuses a zeroed ladder, and a ladder of
/// another version of the library, with TATCELL_ERR_HANDLE.
#[repr(C, align(8))]
pub struct tatcell_ladder_t {
    /// Private to the library.
    pub opaque: [u64; 288],
}

const _: () = assert!(size_of::<tatcell_ladder_t>() == TATCELL_LADDER_SIZE);
const _: () = assert!(align_of::<tatcell_ladder_t>() == TATCELL_LADDER_ALIGN);
const _: () =
    assert!(size_of::<Inside>() <= TATCELL_LADDER_SIZE && align_of::<Inside>() <= TATCELL_LADDER_ALIGN);

impl<'a> Contract<'a> {
    /// Returns the contents of a ladder.
    pub(super) fn ladder(self, p: *const tatcell_ladder_t) -> Result<&'a LadderLimits, i32> {
        self.marked::<Inside>(inside(p)).map(|inside| &inside.limits)
    }

    /// Returns the ladder of a specification; NULL means the defaults.
    fn rungs(self, p: *const tatcell_ladder_spec_t) -> Result<Ladder, i32> {
        if p.is_null() {
            return Ok(Ladder::DEFAULT);
        }
        let given = self.options(p)?;
        if given.flags != 0 {
            return Err(TATCELL_ERR_OPTION);
        }
        let v4 = self.family(given.v4, given.v4_count, true)?;
        let v6 = self.family(given.v6, given.v6_count, false)?;
        Ladder::new(
            v4.0.get(..v4.1).unwrap_or_else(|| impossible!(&[])),
            v6.0.get(..v6.1).unwrap_or_else(|| impossible!(&[])),
        )
        .map_err(|_| TATCELL_ERR_LADDER)
    }

    /// Returns the rungs of one family, and their number; the defaults if none are given.
    fn family(
        self,
        p: *const tatcell_rung_t,
        count: u32,
        v4: bool,
    ) -> Result<([Rung; MAX_LINKS], usize), i32> {
        let mut each = [Rung { bits: 0, multiplier: 0 }; MAX_LINKS];
        let (count, defaults) = (count as usize, Ladder::DEFAULT);
        if count == 0 {
            let defaults = defaults.rungs(v4);
            each.iter_mut().zip(defaults).for_each(|(to, rung)| *to = *rung);
            return Ok((each, defaults.len()));
        }
        if count > MAX_LINKS {
            return Err(TATCELL_ERR_LADDER);
        }
        for (to, from) in each.iter_mut().zip(self.array(p, count)?) {
            let bits = u8::try_from(from.bits).map_err(|_| TATCELL_ERR_LADDER)?;
            *to = Rung { bits, multiplier: from.multiplier };
        }
        Ok((each, count))
    }

    /// Returns places for the permits of all tiers; NULL means none.
    pub(super) fn permits_if(self, p: *mut Permit) -> Result<&'a mut [Permit], i32> {
        if p.is_null() {
            return Ok(&mut []);
        }
        self.buffer(p, MAX_LINKS * size_of::<Permit>())
    }
}

/// Returns a limit with these units, and everything else as given.
fn with_units(given: &tatcell_limit_spec_t, units: &LimitSpec) -> tatcell_limit_spec_t {
    tatcell_limit_spec_t {
        units: units.units,
        burst: units.burst,
        soft: units.soft,
        max_room: units.max_room,
        max_debt: units.max_debt,
        penalty: units.penalty,
        ..*given
    }
}

/// Computes the table options for a ladder over this limit of one address: the options fastest and slowest.
///
/// @param spec    the limit of one address, started from TATCELL_LIMIT_SPEC_INIT; not NULL.
/// @param rungs   started from TATCELL_LADDER_SPEC_INIT; NULL = the defaults.
/// @param fastest gets the limit of the shortest prefix; started from TATCELL_LIMIT_SPEC_INIT, not NULL.
/// @param slowest gets a limit that is longer than that of every tier; started from TATCELL_LIMIT_SPEC_INIT, not
///                NULL.
/// @retval 0 done.
/// @retval TATCELL_ERR_LADDER a family has more than 8 rungs, a prefix is too long, lengths do not fall, or a
///         multiplier falls or is 0.
/// @retval TATCELL_ERR_REPRESENT a limit times its multiplier exceeds 64 bits.
/// @retval TATCELL_ERR_SIZE, TATCELL_ERR_OPTION a size is not set, or a flag is unknown.
/// @retval TATCELL_ERR_OVERLAP fastest and slowest overlap.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer.
/// Thread: any. Cost: a few multiplications. Since 0.3.
#[no_mangle]
pub unsafe extern "C" fn tatcell_ladder_table_specs(
    spec: *const tatcell_limit_spec_t,
    rungs: *const tatcell_ladder_spec_t,
    fastest: *mut tatcell_limit_spec_t,
    slowest: *mut tatcell_limit_spec_t,
) -> i32 {
    args!(
        c,
        given = c.options(spec),
        ladder = c.rungs(rungs),
        () = c.reach(fastest).apart(c.reach(slowest)),
        fastest = c.report(fastest),
        slowest = c.report(slowest),
        one = self::spec(&given),
        (fast, slow) = ladder.specs(&one).map_err(limit_code)
    );
    fastest.put(&with_units(&given, &fast));
    slowest.put(&with_units(&given, &slow));
    TATCELL_PASS
}

/// Makes the limits of all tiers of a ladder for one table.
///
/// spec is the limit of one address. For each prefix length, units, burst and every other amount of units are
/// multiplied by the multiplier of its rung.
///
/// @param ladder to initialise; not NULL.
/// @param table  handle; not NULL. Its options must be those that tatcell_ladder_table_specs computes.
/// @param spec   the limit of one address, started from TATCELL_LIMIT_SPEC_INIT; not NULL.
/// @param rungs  started from TATCELL_LADDER_SPEC_INIT; NULL = the defaults.
/// @retval 0 done.
/// @retval TATCELL_ERR_TOO_FAST the table's options do not provide for a tier.
/// @retval TATCELL_ERR_HANDLE table is not initialised.
/// @retval TATCELL_ERR_OVERLAP ladder and table overlap.
/// @retval others as tatcell_ladder_table_specs and tatcell_limit_init_table. Nothing is changed on error.
/// Thread: one writer, no reader. Cost: two limits for each rung, and 2.2 KiB of stack; not for the hot path.
/// Since 0.3.
#[no_mangle]
pub unsafe extern "C" fn tatcell_ladder_init(
    ladder: *mut tatcell_ladder_t,
    table: *const tatcell_table_t,
    spec: *const tatcell_limit_spec_t,
    rungs: *const tatcell_ladder_spec_t,
) -> i32 {
    args!(
        c,
        () = placed(ladder),
        from = c.handle(table),
        () = Span::of(ladder, 1).apart(Span::of(table, 1)),
        given = c.options(spec),
        asked = c.rungs(rungs),
        one = self::spec(&given),
        () = LadderLimits::verify(from.table(), &asked, &one).map_err(table_code),
        // Nothing fails any more, so the ladder is made where it lies: a copy would not fit a small stack.
        () = c.buffer(ladder.cast::<u64>(), TATCELL_LADDER_SIZE).map(|words| words.fill(0)),
        made = c.owned(inside::<_, Inside>(ladder).cast_mut()),
        () = made.make(from, &asked, &one)
    );
    TATCELL_PASS
}

/// Decides one request of an address: charges all its prefixes if it conforms to the limit of each, else none.
///
/// out->policy is the number of a tier; the longest prefix is 0. tatcell_ladder_rung returns the prefix length of a
/// tier. Everything else is as for tatcell_chain_check. An IPv4 address may be written as an IPv6 address: see
/// tatcell_address_canonical.
///
/// @param ladder      from tatcell_ladder_init; not NULL.
/// @param table       handle of the table that the ladder was made for; not NULL.
/// @param now         the caller's clock, ticks.
/// @param address     in network order, as in in_addr and in6_addr; not NULL.
/// @param address_len bytes: 4 or 16.
/// @param cost        units; 0 only peeks and never writes.
/// @param out         started from TATCELL_DECISION_INIT; NULL = not wanted.
/// @param permits     an array of TATCELL_CHAIN_MAX permits, for tatcell_ladder_refund; NULL = not wanted.
/// @param counters    this thread's counters; NULL = off.
/// @retval 0, TATCELL_NON_CONFORMING, TATCELL_NEVER, TATCELL_CONTENDED as tatcell_chain_check.
/// @retval TATCELL_ERR_ADDRESS address_len is neither 4 nor 16.
/// @retval TATCELL_ERR_HANDLE ladder or table is not initialised; TATCELL_ERR_FOREIGN ladder is for another table.
/// @retval TATCELL_ERR_HASH the caller hashes for this table.
/// @retval TATCELL_ERR_OVERLAP out, permits and counters overlap.
/// @retval TATCELL_ERR_SIZE out->size is not set.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer. Nothing is changed on error.
/// Thread: any number, unless the table is exclusive. Cost: for each tier a hash, a scan of one or two cache lines
/// and a compare-and-swap; two scans if the limit has options or is not of GCRA. On x86-64 a limit of GCRA without
/// options takes 0.8 KiB of stack, 1.3 KiB if a key is inserted, and 1.8 KiB if out is set. Permits, counters and other
/// limits take about 5 KiB. Since 0.3.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_ladder_check(
    ladder: *const tatcell_ladder_t,
    table: *const tatcell_table_t,
    now: u64,
    address: *const c_void,
    address_len: usize,
    cost: u64,
    out: *mut tatcell_decision_t,
    permits: *mut Permit,
    counters: *mut Counters,
) -> i32 {
    args!(c);
    match out.addr() | permits.addr() | counters.addr() {
        0 => check_verdict(c, inside(ladder), table, now, address, address_len, cost),
        _ => check_wanted(
            c,
            (inside(ladder), table),
            now,
            (address, address_len),
            cost,
            out,
            (permits, counters),
        ),
    }
}

/// Reports how tatcell_ladder_check would decide, without charging anything.
///
/// @param ladder      from tatcell_ladder_init; not NULL.
/// @param table       handle of the table that the ladder was made for; not NULL.
/// @param now         the caller's clock, ticks.
/// @param address     in network order; not NULL.
/// @param address_len bytes: 4 or 16.
/// @param cost        units.
/// @param out         started from TATCELL_DECISION_INIT; not NULL.
/// @retval as tatcell_ladder_check; never TATCELL_CONTENDED.
/// Thread: as tatcell_ladder_check; only reads. Cost: for each tier a hash and a scan. Since 0.3.
#[no_mangle]
pub unsafe extern "C" fn tatcell_ladder_peek(
    ladder: *const tatcell_ladder_t,
    table: *const tatcell_table_t,
    now: u64,
    address: *const c_void,
    address_len: usize,
    cost: u64,
    out: *mut tatcell_decision_t,
) -> i32 {
    args!(
        c,
        limits = c.ladder(ladder),
        table = c.handle(table),
        address = c.address(address, address_len),
        out = c.report(out),
        chain = chain_of(limits, table, &address, cost)
    );
    fill(&chain.peek(now), out)
}

/// Gives back the parts of an address's charges that have not drained since, as its permits prove. Each refunded
/// permit becomes zero.
///
/// @param ladder      from tatcell_ladder_init; not NULL.
/// @param table       handle of the table that was charged; not NULL.
/// @param now         the caller's clock, ticks.
/// @param address     the address that was charged; not NULL.
/// @param address_len bytes: 4 or 16.
/// @param permits     the TATCELL_CHAIN_MAX permits from tatcell_ladder_check; not NULL.
/// @retval 0 done (perhaps nothing was left to give back).
/// @retval TATCELL_CONTENDED the charges whose permits are not zero are still charged; ask again.
/// @retval others as tatcell_ladder_check.
/// Thread: as tatcell_ladder_check. Cost: for each tier a hash and a compare-and-swap. Since 0.3.
#[no_mangle]
pub unsafe extern "C" fn tatcell_ladder_refund(
    ladder: *const tatcell_ladder_t,
    table: *const tatcell_table_t,
    now: u64,
    address: *const c_void,
    address_len: usize,
    permits: *mut Permit,
) -> i32 {
    args!(
        c,
        limits = c.ladder(ladder),
        table = c.handle(table),
        address = c.address(address, address_len),
        permits = c.buffer(permits, MAX_LINKS * size_of::<Permit>()),
        chain = chain_of(limits, table, &address, 0)
    );
    finish_done(chain.refund(now, permits))
}

/// Returns the prefix length that the policy of a decision stands for.
///
/// @param ladder      from tatcell_ladder_init; not NULL.
/// @param address     the address that was decided; not NULL.
/// @param address_len bytes: 4 or 16.
/// @param policy      policy of the decision.
/// @param rung        gets length and multiplier; not NULL.
/// @retval 0 done.
/// @retval TATCELL_END the ladder has no such tier for this address.
/// @retval TATCELL_ERR_ADDRESS, TATCELL_ERR_HANDLE, TATCELL_ERR_NULL, TATCELL_ERR_ALIGN as tatcell_ladder_check.
/// Thread: any. Cost: none. Since 0.3.
#[no_mangle]
pub unsafe extern "C" fn tatcell_ladder_rung(
    ladder: *const tatcell_ladder_t,
    address: *const c_void,
    address_len: usize,
    policy: u32,
    rung: *mut tatcell_rung_t,
) -> i32 {
    args!(c, limits = c.ladder(ladder), address = c.address(address, address_len), out = c.result(rung));
    let Some(tier) = limits.tier(&address, policy) else { return TATCELL_END };
    out.put(tatcell_rung_t { bits: tier.bits.into(), multiplier: tier.multiplier });
    TATCELL_PASS
}

/// Returns sizeof(tatcell_ladder_t) of the linked library, to compare with TATCELL_LADDER_SIZE. Since 0.3.
#[no_mangle]
pub extern "C" fn tatcell_ladder_size() -> usize {
    TATCELL_LADDER_SIZE
}

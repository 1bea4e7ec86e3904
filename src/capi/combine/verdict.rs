//! `tatcell_chain_verdict`, `tatcell_ladder_verdict`: the short way and nothing else, in little stack.

use core::ffi::c_void;

use super::ladder::tatcell_ladder_t;
use super::links::{chain_code, link, tatcell_chain_t, tatcell_link_t};
use crate::capi::codes::{
    table_code, TATCELL_CONTENDED, TATCELL_ERR_LINKS, TATCELL_ERR_NOT_PLAIN, TATCELL_ERR_OPTION,
    TATCELL_NON_CONFORMING, TATCELL_PASS,
};
use crate::capi::pointers::contract::{args, Contract};
use crate::capi::table::handle::tatcell_table_t;
use crate::capi::table::override_addresses::tatcell_prefix_lengths_t;
use crate::combine::{LadderOverrides, MAX_LINKS};

/// Returns the code of a verdict; `None` is contended.
fn code(passes: Option<bool>) -> i32 {
    match passes {
        Some(true) => TATCELL_PASS,
        Some(false) => TATCELL_NON_CONFORMING,
        None => TATCELL_CONTENDED,
    }
}

/// Decides one request under several plain limits like tatcell_chain_check, and returns only the verdict. It never
/// takes the long way of that function, so it fits a small stack, such as that of a kernel.
///
/// A link is plain if it is a 64-bit cell or a key, with a limit of GCRA without options, no extra and no room, and a
/// cost from 1 to the burst, and if no other link has the same cell or key. A link with TATCELL_LINK_OVERRIDES is
/// plain, too.
///
/// @param chain started from TATCELL_CHAIN_INIT, without permits, decisions and counters; not NULL.
/// @param now   the caller's clock, ticks.
/// @retval 0 passes; all links are charged, unless an override exempts the request.
/// @retval TATCELL_NON_CONFORMING does not pass; nothing is charged.
/// @retval TATCELL_CONTENDED a link lost every swap to others; nothing is charged.
/// @retval TATCELL_ERR_NOT_PLAIN a link is not plain; nothing is charged.
/// @retval TATCELL_ERR_SIZE size or link_size is not set.
/// @retval TATCELL_ERR_OPTION as tatcell_chain_check, or permits, decisions or counters are set.
/// @retval others as tatcell_chain_check. Nothing is changed on error.
/// Thread: as tatcell_chain_check. Cost: one scan and one compare-and-swap for each link, only loads if a link refuses;
/// 1.7 KiB of stack at most, as tatcell_chain_check, and 2.7 KiB if the structures are of another size than those of
/// this release. Since 0.4.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_chain_verdict(chain: *const tatcell_chain_t, now: u64) -> i32 {
    args!(c);
    match c.chain_in_place(chain, now) {
        None => not_decided(c, chain, now),
        passes => code(passes),
    }
}

/// Answers for a chain that the short way does not know.
#[inline(never)]
fn not_decided(c: Contract<'_>, chain: *const tatcell_chain_t, now: u64) -> i32 {
    match c.options_in_place(chain) {
        Some(given) if given.link_size as usize == size_of::<tatcell_link_t>() => not_in_place(c, given),
        _ => of_another_size(c, chain, now),
    }
    .unwrap_or_else(|e| e)
}

/// Decides a chain whose structures are of another size than those of this release. The copies take 0.8 KiB of stack.
#[inline(never)]
fn of_another_size(c: Contract<'_>, chain: *const tatcell_chain_t, now: u64) -> Result<i32, i32> {
    let mut known = c.options(chain)?;
    let count = known.count as usize;
    if count == 0 || count > MAX_LINKS {
        return Err(TATCELL_ERR_LINKS);
    }
    let each = c.strided(known.links, known.link_size, count)?;
    let mut links = [each.get(0)?; MAX_LINKS];
    for (i, place) in links.iter_mut().enumerate().take(count).skip(1) {
        *place = each.get(i)?;
    }
    known.size = size_of::<tatcell_chain_t>() as u32;
    known.link_size = size_of::<tatcell_link_t>() as u32;
    known.links = links.as_ptr();
    match c.chain_in_place(&known, now) {
        None => not_in_place(c, &known),
        passes => Ok(code(passes)),
    }
}

/// Returns the error of a chain that the short way does not take, or that it was contended. It repeats the checks of
/// that way and says what is wrong, which would cost every decision.
#[inline(never)]
fn not_in_place(c: Contract<'_>, given: &tatcell_chain_t) -> Result<i32, i32> {
    let told = given.permits.addr() | given.decisions.addr();
    let counted = given.counters.addr() | given.link_counters.addr() | given.reserved_pointer.addr();
    if told | counted != 0 || given.flags | given.reserved != 0 {
        return Err(TATCELL_ERR_OPTION);
    }
    let (first, count) = (given.links, given.count as usize);
    if count == 0 || count > MAX_LINKS {
        return Err(TATCELL_ERR_LINKS);
    }
    let links = c.slice(first, count)?;
    for (i, given) in links.iter().enumerate() {
        let made = link(c, given)?;
        // An override has no limit to be wrong about, and no debt to share.
        if made.overrides_or_limit().map_err(chain_code)? {
            if given.extra | given.room != 0 {
                return Err(TATCELL_ERR_NOT_PLAIN);
            }
            continue;
        }
        let before =
            links.iter().take(i).any(|known| link(c, known).is_ok_and(|known| known.is_debt_of(&made)));
        if before || !made.is_plain() {
            return Err(TATCELL_ERR_NOT_PLAIN);
        }
    }
    Ok(TATCELL_CONTENDED)
}

/// Decides one request of an address under plain limits and overrides like tatcell_ladder_check_burst for one address,
/// and returns only the verdict. It never takes the long way of that function, so it fits a small stack, such as that
/// of a kernel.
///
/// The limits are plain if the limit of one address is one of GCRA without options, and the cost is 1 to its burst. A
/// banned address is refused and an exempt one passes, and neither is charged. While no override was ever stored in the
/// table of overrides, no prefix is looked for there.
///
/// @param ladder      from tatcell_ladder_init; not NULL.
/// @param table       handle of the table that the ladder was made for; not NULL.
/// @param overrides   handle of a table of overrides that is asked before the limits; NULL = none.
/// @param lengths     the prefix lengths that are asked in overrides, started from TATCELL_PREFIX_LENGTHS_INIT; NULL =
///                    the address itself only.
/// @param now         the caller's clock, ticks.
/// @param address     in network order, as in in_addr and in6_addr; not NULL.
/// @param address_len bytes: 4 or 16.
/// @param cost        units.
/// @retval 0 passes; all prefixes are charged, unless the address is exempt.
/// @retval TATCELL_NON_CONFORMING does not pass; nothing is charged.
/// @retval TATCELL_CONTENDED a prefix lost every swap to others; nothing is charged.
/// @retval TATCELL_ERR_NOT_PLAIN the limits are not plain, or the cost is 0 or above the burst; nothing is charged.
/// @retval TATCELL_ERR_ALGORITHM, TATCELL_ERR_PREFIX as tatcell_ladder_check_burst.
/// @retval others as tatcell_ladder_check. Nothing is changed on error.
/// Thread: as tatcell_ladder_check. Cost: for each tier a hash, a scan of one or two cache lines and a
/// compare-and-swap, and a scan for each prefix length that is asked in overrides; 2.2 KiB of stack at most.
/// Since 0.4.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_ladder_verdict(
    ladder: *const tatcell_ladder_t,
    table: *const tatcell_table_t,
    overrides: *const tatcell_table_t,
    lengths: *const tatcell_prefix_lengths_t,
    now: u64,
    address: *const c_void,
    address_len: usize,
    cost: u64,
) -> i32 {
    args!(
        c,
        limits = c.ladder(ladder),
        table = c.handle(table),
        address = c.address(address, address_len),
        overrides = c.overrides(overrides, lengths),
        asked = overrides.as_ref().map_or(Ok(None), LadderOverrides::if_used).map_err(table_code),
        passes = limits.passes(table.table(), now, &address, cost, asked).map_err(table_code)
    );
    if passes.is_none() {
        match limits.are_plain(table.table(), &address, cost) {
            Ok(true) => {}
            Ok(false) => return TATCELL_ERR_NOT_PLAIN,
            Err(e) => return table_code(e),
        }
    }
    code(passes)
}

impl<'a> Contract<'a> {
    /// Returns the overrides that are asked; NULL is none.
    #[inline(always)]
    fn overrides(
        self,
        table: *const tatcell_table_t,
        lengths: *const tatcell_prefix_lengths_t,
    ) -> Result<Option<LadderOverrides<'a>>, i32> {
        if table.is_null() {
            return Ok(None);
        }
        Ok(Some(LadderOverrides { table: self.handle(table)?.table(), lengths: self.lengths(lengths)? }))
    }
}

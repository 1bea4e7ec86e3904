//! Runs over the addresses of a burst, with the lines of those ahead prefetched.
//!
//! ```text
//!  addresses  0   1   2 ...        AHEAD
//!             ^                    ^
//!             decided, in order    hashed, and its lines are prefetched: a ring holds the hashes until then
//! ```
//!
//! If overrides were stored, the ring also has the hashes of the prefixes that are asked for them.
//!
//! Not here: the burst that comes next. To prefetch its first addresses while the last ones of this burst are decided
//! gained nothing (docs/PERFORMANCE.md, Chains and ladders).

use super::ladder_burst::LadderBurst;
use super::ladder_look::hash_all;
use super::ladder_overrides::LadderOverrides;
use super::link::{either, TableRef};
use crate::keys::{Address, MAX_RUNGS};
use crate::table::{Override, TableError, MAX_BURST, PREFIXES_AT_ONCE};

/// How many addresses ahead lines are prefetched, and the ring that holds their hashes.
const AHEAD: usize = 7;
const RING: usize = (AHEAD + 1).next_power_of_two();

/// The hashes of one address.
#[derive(Clone, Copy)]
struct Hashes {
    tiers: [u64; MAX_RUNGS],
    overrides: [u64; PREFIXES_AT_ONCE],
}

impl<'a> LadderBurst<'a> {
    /// Calls `decide` for each request in order, with its address, the hashes of its tiers, and its override. Bit i of
    /// the result is what `decide` returned for request i. Every error shows before the first decision: none depends on
    /// the address.
    #[inline(always)]
    pub(super) fn decide_each(
        &self,
        table: TableRef<'a>,
        mut decide: impl FnMut(
            usize,
            &'a Address,
            &[u64; MAX_RUNGS],
            Option<Override>,
        ) -> Result<bool, TableError>,
    ) -> Result<u64, TableError> {
        self.verify()?;
        let overrides = match &self.overrides {
            Some(overrides) => overrides.if_used()?,
            None => None,
        };
        for limits in [&self.limits.v4, &self.limits.v6] {
            let [first, ..] = limits;
            either!(table, t => t.verify_limit(first))?;
        }
        let mut ring = [Hashes { tiers: [0; MAX_RUNGS], overrides: [0; PREFIXES_AT_ONCE] }; RING];
        for (i, hashes) in ring.iter_mut().enumerate().take(AHEAD) {
            self.fetch(table, overrides, i, hashes)?;
        }
        let mut pass = 0u64;
        for (i, address) in self.addresses.iter().enumerate() {
            let ahead = i.wrapping_add(AHEAD);
            let Some(hashes) = ring.get_mut(ahead % RING) else { break };
            self.fetch(table, overrides, ahead, hashes)?;
            let Some(hashes) = ring.get(i % RING) else { break };
            let found = match overrides {
                Some(overrides) => overrides.look_fetched(self.now, address, &hashes.overrides),
                None => None,
            };
            pass |= u64::from(decide(i, address, &hashes.tiers, found)?).wrapping_shl(i as u32);
        }
        Ok(pass)
    }

    /// Refuses too many addresses, and costs and rooms that are not one for each address.
    fn verify(&self) -> Result<(), TableError> {
        let count = self.addresses.len();
        if count > MAX_BURST {
            return Err(TableError::TooManyKeys);
        }
        if [self.costs, self.rooms].iter().flatten().any(|units| units.len() != count) {
            return Err(TableError::BadCosts);
        }
        Ok(())
    }

    /// Hashes the prefixes of address i, if there is one, and prefetches their lines. Those of overrides come first, as
    /// they are asked first.
    #[inline(never)]
    fn fetch(
        &self,
        table: TableRef<'a>,
        overrides: Option<&LadderOverrides<'a>>,
        i: usize,
        hashes: &mut Hashes,
    ) -> Result<(), TableError> {
        let Some(address) = self.addresses.get(i) else { return Ok(()) };
        if let Some(overrides) = overrides {
            overrides.fetch(address, &mut hashes.overrides);
        }
        // The longest prefix is the one that is often new, so that its second line is read. For the others that line
        // would only keep memory busy: with 1e6 addresses a ladder took 20 to 35 % longer.
        let fetch = |i, hash| match i {
            0 => either!(table, t => t.prefetch(core::slice::from_ref(&hash))),
            _ => either!(table, t => t.prefetch_home(hash)),
        };
        hash_all(table, address, &self.limits.ladder, &mut hashes.tiers, fetch)
    }
}

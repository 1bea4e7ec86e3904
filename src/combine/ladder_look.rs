//! The prefixes of one address under the limits of a ladder: their hashes, and a look at their words.

use super::ladder_overrides::{overridden, LadderOverrides};
use super::link::{either, TableRef, Target};
use super::short::{note, All, Links, Short};
use crate::answer::Decision;
use crate::keys::{Address, Ladder, MAX_RUNGS};
use crate::limit::TableLimit;
use crate::table::{Override, TableError};

/// The tiers of one address, as plain links. It holds the hashes: by reference, as in `Tiers`, a check took 48 bytes of
/// stack more.
pub(super) struct Rungs<'a> {
    pub table: TableRef<'a>,
    pub limits: &'a [TableLimit; MAX_RUNGS],
    pub hashes: [u64; MAX_RUNGS],
    pub count: usize,
    pub cost: u64,
    pub overrides: Option<(&'a LadderOverrides<'a>, &'a Address)>,
    pub order: Order,
}

impl<'a> Links<'a> for Rungs<'a> {
    #[inline(always)]
    fn count(&self) -> usize {
        self.count
    }

    #[inline(always)]
    fn at(&self, i: usize) -> Option<(Target<'a>, u64)> {
        Some((Target::Key(self.table, Some(self.limits.get(i)?), *self.hashes.get(i)?), self.cost))
    }

    /// They were prefetched when they were hashed.
    #[inline(always)]
    fn prefetch(&self, _: usize) {}

    #[inline(always)]
    fn look(&self, now: u64, all: &mut All<'a>) -> Result<bool, Short> {
        look((self.table, self.limits, self.order), &self.hashes, (self.count, self.cost), now, all)
    }

    #[inline(always)]
    fn overridden(&self, now: u64, _: &All<'a>) -> Option<Override> {
        let (overrides, address) = self.overrides?;
        overrides.look(now, address)
    }

    fn told(&self, now: u64, found: Override, to: &mut Decision) -> bool {
        *to = overridden(now, self.cost, found);
        true
    }
}

/// Hashes the prefixes of an address, and calls `fetch` with each as soon as it is hashed.
#[inline(always)]
pub(super) fn hash_all(
    table: TableRef<'_>,
    address: &Address,
    ladder: &Ladder,
    hashes: &mut [u64; MAX_RUNGS],
    fetch: impl Fn(usize, u64),
) -> Result<(), TableError> {
    let (hasher, cuts) = (either!(table, t => &t.hasher), ladder.cuts(address.is_v4()).iter().copied());
    hasher.hash_prefixes(address, cuts, hashes, fetch).ok_or(TableError::BadHashKind)
}

/// In which order a ladder looks at its words.
#[derive(Clone, Copy)]
pub(super) enum Order {
    /// The longest prefix first, so that the first one that refuses is found.
    Longest,
    /// The longest prefix, the shortest, and then those between, where it does not matter which one refuses. Usually
    /// one host or a whole network exceeds its limit.
    Ends,
}

/// Looks at the words of the first `count` keys of one table.
#[inline(always)]
pub(super) fn look<'a>(
    (table, limits, order): (TableRef<'a>, &'a [TableLimit; MAX_RUNGS], Order),
    hashes: &[u64; MAX_RUNGS],
    (count, cost): (usize, u64),
    now: u64,
    all: &mut All<'a>,
) -> Result<bool, Short> {
    let (mut absent, view) = (false, either!(table, t => t.view(now)));
    let (mut i, last) = (0, count.wrapping_sub(1));
    for _ in 0..count {
        let (Some(seen), Some(limit), Some(hash)) = (all.get_mut(i), limits.get(i), hashes.get(i)) else {
            break;
        };
        let place = either!(table, t => t.place(*hash));
        absent |= note(view.look_at(place, limit, cost), i, seen)?;
        i = match order {
            Order::Ends if i == 0 => last,
            Order::Ends if i == last => 1,
            _ => i.wrapping_add(1),
        };
    }
    Ok(absent)
}

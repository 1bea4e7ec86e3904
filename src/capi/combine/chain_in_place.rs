//! A chain of C whose links are all plain, as the short way takes them: where they lie, none of them copied.

use super::links::{tatcell_chain_t, tatcell_link_t, TATCELL_LINK_HASH, TATCELL_LINK_OVERRIDES};
use crate::capi::pointers::contract::Contract;
use crate::cell::Cell;
use crate::combine::link::{either, TableRef, Target};
use crate::combine::short::{self, look_at, note, overriding, All, Links, Look, Seen, Short, MOST};
use crate::combine::{short_cells, MAX_LINKS};
use crate::limit::{Limit, TableLimit};
use crate::table::Override;

impl<'a> Contract<'a> {
    /// Decides a chain of which only the verdict is wanted, and returns whether it passes. Returns `None`, nothing
    /// charged, if anything is wrong with it, if the short way does not know it, or if it was contended. Each path ends
    /// in a tail call of a function out of line, so no two of their frames exist at once.
    #[inline(always)]
    pub(super) fn chain_in_place(self, chain: *const tatcell_chain_t, now: u64) -> Option<bool> {
        let links = self.links_in_place(chain)?;
        if let Some(links) = of_cells::<2>(links) {
            return self.cells_pass(links, now);
        }
        if let Some(links) = of_cells::<3>(links) {
            return self.cells_pass(links, now);
        }
        self.limits_pass(links, now)
    }

    /// Decides two or three links without a table, in registers.
    #[inline(never)]
    fn cells_pass<const N: usize>(self, links: &'a [tatcell_link_t; N], now: u64) -> Option<bool> {
        let mut cells = [None; N];
        for (i, (link, place)) in links.iter().zip(&mut cells).enumerate() {
            // Links of one cell are one charge, so the long way takes them.
            let other = link.extra | link.room | link.cell32.addr() as u64 | u64::from(link.flags);
            if other != 0 || links.iter().take(i).any(|known| known.cell == link.cell) {
                return None;
            }
            let of = (self.cell(link.cell).ok()?, self.limit64(link.limit).ok()?, link.cost);
            *place = short_cells::is_plain(of).then_some(of);
            (*place)?;
        }
        let lost = |known: [Seen<'a>; N], i| {
            short_cells::go_on(&InPlace::<false> { c: self, links, asked: false }, now, &known, i)
        };
        short_cells::decide::<N>(|i| *cells.get(i)?, |_| true, now, lost).passes()
    }

    /// Decides a chain that may have links with tables.
    #[inline(never)]
    fn limits_pass(self, links: &'a [tatcell_link_t], now: u64) -> Option<bool> {
        match self.decide_in_place::<false>(links, now) {
            Some(passes) => passes,
            None => self.overrides_pass(links, now),
        }
    }

    /// Decides a chain with links of overrides.
    #[inline(never)]
    fn overrides_pass(self, links: &'a [tatcell_link_t], now: u64) -> Option<bool> {
        self.decide_in_place::<true>(links, now)?
    }

    /// Decides links that are all of the kinds that are known here; else returns `None`.
    #[inline(always)]
    fn decide_in_place<const OVERRIDES: bool>(
        self,
        links: &'a [tatcell_link_t],
        now: u64,
    ) -> Option<Option<bool>> {
        let mut links = InPlace::<OVERRIDES> { c: self, links, asked: false };
        let mut all = [Seen::Absent; MOST];
        links.take(&mut all)?;
        Some(short::passes_of(&links, now, &mut all))
    }

    /// Returns the links of a chain of which only the verdict is wanted.
    #[inline(always)]
    fn links_in_place(self, chain: *const tatcell_chain_t) -> Option<&'a [tatcell_link_t]> {
        let given = self.options_in_place(chain)?;
        let (count, same) = (given.count as usize, given.link_size as usize == size_of::<tatcell_link_t>());
        let told = given.permits.addr() | given.decisions.addr();
        let counted = given.counters.addr() | given.link_counters.addr() | given.reserved_pointer.addr();
        let asked = told | counted | (given.flags | given.reserved) as usize;
        if asked != 0 || !same || count.wrapping_sub(1) >= MAX_LINKS {
            return None;
        }
        self.slice(given.links, count).ok()
    }
}

/// The links of a chain where they lie. Only if `OVERRIDES` a link may be one of overrides, so that no other chain pays
/// for them.
struct InPlace<'a, const OVERRIDES: bool> {
    c: Contract<'a>,
    links: &'a [tatcell_link_t],
    /// Whether a link names overrides, and some were stored.
    asked: bool,
}

impl<'a, const OVERRIDES: bool> InPlace<'a, OVERRIDES> {
    /// Checks each link once, prefetches its lines, and names it in `all`. `None`: the short way does not know one of
    /// them.
    #[inline(always)]
    fn take(&mut self, all: &mut All<'a>) -> Option<()> {
        if OVERRIDES && self.links.iter().all(|link| link.flags & TATCELL_LINK_OVERRIDES == 0) {
            return None;
        }
        let all = core::cell::Cell::from_mut(all.as_mut_slice()).as_slice_of_cells();
        for ((i, link), place) in self.links.iter().enumerate().zip(all) {
            // Links of one debt are one charge, so the long way takes them.
            let target = if link.table.is_null() {
                let (cell, limit) = self.cell(link)?;
                let target = Target::Cell(cell, limit);
                if !is_bare(link) || !target.is_plain(link.cost) {
                    return None;
                }
                for known in all.iter().take(i) {
                    if matches!(known.get(), Seen::Named(Target::Cell(known, _)) if core::ptr::eq(known, cell))
                    {
                        return None;
                    }
                }
                target
            } else if OVERRIDES && names_overrides(link) {
                let target = self.overrides(link)?;
                self.asked |= asked(link, &target)?;
                target
            } else {
                let (table, limit, hash) = self.key(link)?;
                if !is_bare(link) || !either!(table, t => t.is_plain(limit, link.cost)) {
                    return None;
                }
                for known in all.iter().take(i) {
                    if let Seen::Named(Target::Key(known, _, same)) = known.get() {
                        if same == hash && known.is(&table) {
                            return None;
                        }
                    }
                }
                either!(table, t => t.prefetch(core::slice::from_ref(&hash)));
                Target::Key(table, Some(limit), hash)
            };
            place.set(Seen::Named(target));
        }
        Some(())
    }

    /// Checks a link that has no table.
    #[inline(always)]
    fn cell(&self, link: &tatcell_link_t) -> Option<(&'a Cell, &'a Limit)> {
        Some((self.c.cell(link.cell).ok()?, self.c.limit64(link.limit).ok()?))
    }

    /// Checks a link of a limited key, and hashes that.
    #[inline(always)]
    fn key(&self, link: &tatcell_link_t) -> Option<(TableRef<'a>, &'a TableLimit, u64)> {
        let limit = self.c.table_limit(link.limit).ok()?;
        let (table, hash) = self.hashed(link)?;
        Some((table, limit, hash))
    }

    /// Checks a link of overrides, and hashes its key.
    #[inline(never)]
    fn overrides(&self, link: &tatcell_link_t) -> Option<Target<'a>> {
        let (table, hash) = self.hashed(link)?;
        Some(Target::Key(table, None, hash))
    }

    /// Returns the table of a link and the hash of its key.
    #[inline(always)]
    fn hashed(&self, link: &tatcell_link_t) -> Option<(TableRef<'a>, u64)> {
        let table = self.c.handle(link.table).ok()?.table();
        if link.flags & TATCELL_LINK_HASH != 0 {
            return Some((table, link.hash));
        }
        let key = self.c.key(link.key, link.key_len).ok()?;
        Some((table, either!(table, t => &t.hasher).hash_one(key)?))
    }
}

/// Returns the links if there are N of them and none names a table.
#[inline(always)]
fn of_cells<const N: usize>(links: &[tatcell_link_t]) -> Option<&[tatcell_link_t; N]> {
    let links: &[_; N] = links.try_into().ok()?;
    links.iter().all(|link| link.table.is_null()).then_some(links)
}

/// Returns whether a link of a table is one of overrides.
#[inline(always)]
fn names_overrides(link: &tatcell_link_t) -> bool {
    link.limit.is_null() && link.flags & TATCELL_LINK_OVERRIDES != 0
}

/// Returns whether a link has one cell or one key, and nothing that the short way does not know.
#[inline(always)]
fn is_bare(link: &tatcell_link_t) -> bool {
    let (other, flags) = match link.table.is_null() {
        true => (0, link.flags),
        false => (link.cell.addr(), link.flags & !TATCELL_LINK_HASH),
    };
    link.extra | link.room | (other | link.cell32.addr()) as u64 | u64::from(flags) == 0
}

/// Returns whether the key of a link of overrides can have one; `None` if it is a wrong one. Such links are only asked,
/// so a key may be there twice.
#[inline(never)]
fn asked(link: &tatcell_link_t, target: &Target<'_>) -> Option<bool> {
    let Target::Key(table, None, _) = target else { return None };
    let known = TATCELL_LINK_HASH | TATCELL_LINK_OVERRIDES;
    let others = link.cell.addr() | link.cell32.addr();
    if link.flags & !known != 0 || others != 0 || link.extra | link.room != 0 {
        return None;
    }
    either!(table, t => t.holds_overrides()).ok()?;
    target.prefetch();
    Some(either!(table, t => t.was_used()))
}

impl<'a, const OVERRIDES: bool> Links<'a> for InPlace<'a, OVERRIDES> {
    #[inline(always)]
    fn count(&self) -> usize {
        self.links.len()
    }

    /// Checks it again: only requests that lost a swap or are undone ask.
    #[inline(never)]
    fn at(&self, i: usize) -> Option<(Target<'a>, u64)> {
        let link = self.links.get(i)?;
        let target = if link.table.is_null() {
            let (cell, limit) = self.cell(link)?;
            Target::Cell(cell, limit)
        } else if OVERRIDES && names_overrides(link) {
            self.overrides(link)?
        } else {
            let (table, limit, hash) = self.key(link)?;
            Target::Key(table, Some(limit), hash)
        };
        Some((target, link.cost))
    }

    #[inline(always)]
    fn known(&self, i: usize, seen: &Seen<'a>) -> Option<(Target<'a>, u64)> {
        match seen {
            Seen::Named(target) => Some((*target, self.links.get(i)?.cost)),
            _ => None,
        }
    }

    #[inline(always)]
    fn look(&self, now: u64, all: &mut All<'a>) -> Result<bool, Short> {
        let mut absent = false;
        for ((i, link), seen) in self.links.iter().enumerate().zip(all) {
            // One test finds a key, another one a cell.
            let found = if let Seen::Named(Target::Key(table, Some(limit), hash)) = *seen {
                look_at(table, limit, now, hash, link.cost)
            } else if let Seen::Named(Target::Cell(cell, limit)) = *seen {
                cell.look_at(limit, now, link.cost)
            } else if OVERRIDES && matches!(seen, Seen::Named(Target::Key(_, None, _))) {
                Look::Nothing
            } else {
                return impossible!(Err(Short::Long));
            };
            absent |= note(found, i, seen)?;
        }
        Ok(absent)
    }

    #[inline(always)]
    fn overridden(&self, now: u64, all: &All<'a>) -> Option<Override> {
        if OVERRIDES && self.asked {
            overriding(self, now, all)
        } else {
            None
        }
    }

    /// They were prefetched when they were checked.
    #[inline(always)]
    fn prefetch(&self, _: usize) {}
}

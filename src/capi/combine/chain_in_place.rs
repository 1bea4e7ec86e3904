//! A chain of C whose links are all plain, as the short way takes them: where they lie, none of them copied.

use super::links::{tatcell_chain_t, tatcell_link_t, TATCELL_LINK_HASH};
use crate::capi::pointers::contract::Contract;
use crate::combine::link::{either, Target};
use crate::combine::short::{self, Links};
use crate::combine::MAX_LINKS;

impl Contract<'_> {
    /// Decides a chain of which only the verdict is wanted, and returns whether it passes. Returns `None`, nothing
    /// charged, if anything is wrong with it, or if the short way does not know it. In a frame of its own, which is
    /// gone when the long way begins.
    #[inline(never)]
    pub(super) fn chain_in_place(self, chain: *const tatcell_chain_t, now: u64) -> Option<bool> {
        let mut links = InPlace { c: self, links: &[], names: [0; MAX_LINKS] };
        links.take(chain)?;
        short::passes(&links, now)
    }
}

/// The links of a chain where they lie, all of them plain. The hash of a key is kept; for a cell its address.
struct InPlace<'a> {
    c: Contract<'a>,
    links: &'a [tatcell_link_t],
    names: [u64; MAX_LINKS],
}

impl<'a> InPlace<'a> {
    /// Takes the links of a chain. In place: a hash that was just stored is slow to move.
    #[inline(always)]
    fn take(&mut self, chain: *const tatcell_chain_t) -> Option<()> {
        let c = self.c;
        let given = c.options_in_place(chain)?;
        let (count, same) = (given.count as usize, given.link_size as usize == size_of::<tatcell_link_t>());
        let told = given.permits.addr() | given.decisions.addr();
        let counted = given.counters.addr() | given.link_counters.addr() | given.reserved_pointer.addr();
        if told | counted != 0
            || given.flags | given.reserved != 0
            || count == 0
            || count > MAX_LINKS
            || !same
        {
            return None;
        }
        self.links = c.slice(given.links, count).ok()?;
        for (i, link) in self.links.iter().enumerate() {
            let by_hash = link.flags & TATCELL_LINK_HASH != 0;
            let (name, flags) = match () {
                () if link.table.is_null() => (link.cell.addr() as u64, 0),
                () if by_hash => (link.hash, TATCELL_LINK_HASH),
                () => {
                    let key = c.key(link.key, link.key_len).ok()?;
                    (either!(c.handle(link.table).ok()?.table(), t => &t.hasher).hash_one(key)?, 0)
                }
            };
            *self.names.get_mut(i)? = name;
            let (target, cost) = self.at(i)?;
            let amounts = link.extra | link.room;
            if !link.cell32.is_null() || link.flags != flags || amounts != 0 || !target.is_plain(cost) {
                return None;
            }
            if count > 1 {
                target.prefetch();
            }
            for (j, known) in self.names.iter().enumerate().take(i) {
                // Links of one debt are one charge.
                if *known == name && self.at(j)?.0.is(&target) {
                    return None;
                }
            }
        }
        Some(())
    }
}

impl<'a> Links<'a> for InPlace<'a> {
    #[inline(always)]
    fn count(&self) -> usize {
        self.links.len()
    }

    #[inline(always)]
    fn at(&self, i: usize) -> Option<(Target<'a>, u64)> {
        let (c, link) = (self.c, self.links.get(i)?);
        let target = match (link.cell.is_null(), link.table.is_null()) {
            (false, true) => Target::Cell(c.cell(link.cell).ok()?, c.limit64(link.limit).ok()?),
            (true, false) => {
                let limit = c.table_limit(link.limit).ok()?;
                Target::Key(c.handle(link.table).ok()?.table(), Some(limit), *self.names.get(i)?)
            }
            _ => return None,
        };
        Some((target, link.cost))
    }

    /// They were prefetched when they were checked.
    #[inline(always)]
    fn prefetch(&self, _: usize) {}
}

//! A chain of C whose links are all plain, as the short way takes them: where they lie, none of them copied.

use super::links::{tatcell_chain_t, tatcell_link_t, TATCELL_LINK_HASH, TATCELL_LINK_OVERRIDES};
use crate::capi::pointers::contract::Contract;
use crate::combine::link::{either, Target};
use crate::combine::short::{self, overriding, Links};
use crate::combine::MAX_LINKS;
use crate::table::Override;

impl Contract<'_> {
    /// Decides a chain of which only the verdict is wanted, and returns whether it passes. Returns `None`, nothing
    /// charged, if anything is wrong with it, or if the short way does not know it, or if it was contended.
    #[inline(always)]
    pub(super) fn chain_in_place(self, chain: *const tatcell_chain_t, now: u64) -> Option<bool> {
        match self.limits_in_place(chain, now) {
            None => self.overrides_in_place(chain, now),
            made => made,
        }
    }

    /// Decides a chain without links of overrides. In a frame of its own, which is gone when the long way begins.
    #[inline(never)]
    fn limits_in_place(self, chain: *const tatcell_chain_t, now: u64) -> Option<bool> {
        let mut links = InPlace::<false> { c: self, links: &[], names: [0; MAX_LINKS], asked: false };
        links.take(chain)?;
        short::passes(&links, now)
    }

    /// Decides a chain with links of overrides, in a frame of its own.
    #[inline(never)]
    fn overrides_in_place(self, chain: *const tatcell_chain_t, now: u64) -> Option<bool> {
        let mut links = InPlace::<true> { c: self, links: &[], names: [0; MAX_LINKS], asked: false };
        links.take(chain)?;
        short::passes(&links, now)
    }
}

/// The links of a chain where they lie, all of them plain. The hash of a key is kept; for a cell its address. Only if
/// `OVERRIDES` a link may be one of overrides, so that no other chain pays for them.
struct InPlace<'a, const OVERRIDES: bool> {
    c: Contract<'a>,
    links: &'a [tatcell_link_t],
    names: [u64; MAX_LINKS],
    /// Whether a link names overrides, and some were stored.
    asked: bool,
}

impl<'a, const OVERRIDES: bool> InPlace<'a, OVERRIDES> {
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
        if OVERRIDES && self.links.iter().all(|link| link.flags & TATCELL_LINK_OVERRIDES == 0) {
            return None;
        }
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
                if !OVERRIDES {
                    return None;
                }
                self.asked |= asked(link, &target)?;
                continue;
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

/// Returns whether the key of a link of overrides can have one; `None` if it is another link, or a wrong one. Such
/// links are only asked, so a key may be there twice.
#[inline(never)]
fn asked(link: &tatcell_link_t, target: &Target<'_>) -> Option<bool> {
    let Target::Key(table, None, _) = target else { return None };
    let known = TATCELL_LINK_HASH | TATCELL_LINK_OVERRIDES;
    if link.flags & !known != 0 || !link.cell32.is_null() || link.extra | link.room != 0 {
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

    #[inline(always)]
    fn at(&self, i: usize) -> Option<(Target<'a>, u64)> {
        let (c, link) = (self.c, self.links.get(i)?);
        let target = match (link.cell.is_null(), link.table.is_null()) {
            (false, true) => Target::Cell(c.cell(link.cell).ok()?, c.limit64(link.limit).ok()?),
            (true, false) => {
                let asks = OVERRIDES && link.limit.is_null() && link.flags & TATCELL_LINK_OVERRIDES != 0;
                let limit = if asks { None } else { Some(c.table_limit(link.limit).ok()?) };
                Target::Key(c.handle(link.table).ok()?.table(), limit, *self.names.get(i)?)
            }
            _ => return None,
        };
        Some((target, link.cost))
    }

    #[inline(always)]
    fn overridden(&self, now: u64) -> Option<Override> {
        if OVERRIDES && self.asked {
            overriding(self, now)
        } else {
            None
        }
    }

    /// They were prefetched when they were checked.
    #[inline(always)]
    fn prefetch(&self, _: usize) {}
}

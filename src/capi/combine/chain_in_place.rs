//! A chain of C whose links are all plain, as the short way takes them: where they lie, none of them copied.

use super::links::{tatcell_chain_t, tatcell_link_t, TATCELL_LINK_HASH, TATCELL_LINK_OVERRIDES};
use crate::capi::pointers::contract::Contract;
use crate::capi::table::check::hash_of;
use crate::combine::link::{either, Target};
use crate::combine::short::{self, overriding, Links};
use crate::combine::MAX_LINKS;
use crate::table::Override;

impl Contract<'_> {
    /// Decides a chain of which only the verdict is wanted, and returns whether it passes. Returns `None`, nothing
    /// charged, if anything is wrong with it, or if the short way does not know it, or if it was contended. In a frame
    /// of its own, which is gone when the long way begins.
    #[inline(never)]
    pub(super) fn chain_in_place(self, chain: *const tatcell_chain_t, now: u64) -> Option<bool> {
        short::passes(&InPlace::of(self, chain)?, now)
    }
}

/// The links of a chain where they lie, all of them plain. The hash of a key is kept; for a cell its address.
struct InPlace<'a> {
    c: Contract<'a>,
    links: &'a [tatcell_link_t],
    names: [u64; MAX_LINKS],
    /// Whether a link names overrides, and some were stored.
    asked: bool,
}

impl<'a> InPlace<'a> {
    #[inline(always)]
    fn of(c: Contract<'a>, chain: *const tatcell_chain_t) -> Option<InPlace<'a>> {
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
        let links = c.slice(given.links, count).ok()?;
        let mut made = InPlace { c, links, names: [0; MAX_LINKS], asked: false };
        for (i, link) in links.iter().enumerate() {
            let by_hash = link.flags & TATCELL_LINK_HASH != 0;
            let (name, flags) = match () {
                () if link.table.is_null() => (link.cell.addr() as u64, 0),
                () if by_hash => (link.hash, TATCELL_LINK_HASH),
                () => (hash_of(c.handle(link.table).ok()?, c.key(link.key, link.key_len).ok()?).ok()?, 0),
            };
            *made.names.get_mut(i)? = name;
            let (target, cost) = made.at(i)?;
            let amounts = link.extra | link.room;
            if !link.cell32.is_null() || link.flags != flags || amounts != 0 || !target.is_plain(cost) {
                made.asked |= asked(link, &target)?;
                continue;
            }
            if count > 1 {
                target.prefetch();
            }
            for (j, known) in made.names.iter().enumerate().take(i) {
                // Links of one debt are one charge.
                if *known == name && made.at(j)?.0.is(&target) {
                    return None;
                }
            }
        }
        Some(made)
    }
}

/// Returns whether the key of a link of overrides can have one; `None` if it is another link, or a wrong one. Such links
/// are only asked, so a key may be there twice.
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
                // A link of overrides has no limit.
                let limit = match c.table_limit(link.limit) {
                    Ok(limit) => Some(limit),
                    Err(_) if link.limit.is_null() && link.flags & TATCELL_LINK_OVERRIDES != 0 => None,
                    Err(_) => return None,
                };
                Target::Key(c.handle(link.table).ok()?.table(), limit, *self.names.get(i)?)
            }
            _ => return None,
        };
        Some((target, link.cost))
    }

    #[inline(always)]
    fn overridden(&self, now: u64) -> Option<Override> {
        if self.asked {
            overriding(self, now)
        } else {
            None
        }
    }

    /// They were prefetched when they were checked.
    #[inline(always)]
    fn prefetch(&self, _: usize) {}
}

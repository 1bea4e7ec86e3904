//! The short way of two or three cells and of nothing else, with every word in a register.
//!
//! ```text
//!  short.rs        records in memory: up to eight links of any kind, in loops
//!  short_cells.rs  N cells, N known to the compiler: no record, no loop; a lost swap goes on in short.rs
//! ```
//!
//! A check of a cell takes 35 instructions, so records and loops would cost as much as the checks. The steps, their
//! order and their bounds are those of the short way. A cell is never absent and has no override.

use super::error::ChainError;
use super::link::Target;
use super::prepared::{Asked, PreparedChain};
use super::short::{is_lost, note, swap_rest, Links, Seen, Short, MOST};
use crate::answer::Verdict;
use crate::cell::Cell;
use crate::limit::Limit;

/// A link of a cell: the cell, its limit, and what it costs.
pub(crate) type OfCell<'a> = (&'a Cell, &'a Limit, u64);

/// Decides N links of different cells: charges all of them or none. `link` returns each, and `is_plain` whether the
/// costs from one link on are plain; else the long way decides. If a swap was lost, `lost` goes on from that link with
/// what is known of all.
#[inline(always)]
pub(crate) fn decide<'a, const N: usize>(
    link: impl Fn(usize) -> Option<OfCell<'a>>,
    is_plain: impl Fn(usize) -> bool,
    now: u64,
    lost: impl FnOnce([Seen<'a>; N], usize) -> Short,
) -> Short {
    let mut all = [Seen::Absent; N];
    for (i, seen) in all.iter_mut().enumerate() {
        let Some((cell, limit, cost)) = link(i) else { return Short::Long };
        match note(cell.look_at(limit, now, cost), i, seen) {
            Ok(_) => {}
            // A link behind it that can never pass would decide instead.
            Err(Short::Refused { .. }) if !is_plain(i.wrapping_add(1)) => return Short::Long,
            Err(why) => return why,
        }
    }
    for (i, seen) in all.iter().enumerate() {
        if is_lost(seen) {
            return lost(all, i);
        }
    }
    Short::Passes
}

/// Returns whether one inequality decides a request of this cell.
#[inline(always)]
pub(crate) fn is_plain((cell, limit, cost): OfCell<'_>) -> bool {
    Target::Cell(cell, limit).is_plain(cost)
}

/// Goes on with the swaps from link i on, which has lost its own.
#[cold]
#[inline(never)]
pub(crate) fn go_on<'a>(links: &dyn Links<'a>, now: u64, known: &[Seen<'a>], i: usize) -> Short {
    let mut all = [Seen::Absent; MOST];
    all.iter_mut().zip(known).for_each(|(seen, known)| *seen = *known);
    match swap_rest(links, now, &mut all, i) {
        Ok(()) => Short::Passes,
        Err(why) => why,
    }
}

impl<'a> PreparedChain<'a> {
    /// Decides a request of two or three cells.
    #[inline(never)]
    pub(super) fn cells_verdict(&self, now: u64, costs: Option<&[u64]>) -> Result<Verdict, ChainError> {
        let passes = match self.cells {
            2 => self.cells_pass::<2>(now, costs),
            _ => self.cells_pass::<3>(now, costs),
        };
        match passes {
            Some(true) => Ok(Verdict::Conforming),
            Some(false) => Ok(Verdict::NonConforming),
            None => self.cells_long(now, costs),
        }
    }

    /// Returns the number of links if [`cells_pass`](PreparedChain::cells_pass) decides them, else 0.
    #[allow(dead_code)] // the C layer asks
    #[inline(always)]
    pub(crate) fn cells(&self) -> u8 {
        self.cells
    }

    /// Decides a request of N cells, and returns whether it passes. Returns `None`, nothing charged, if
    /// [`cells_long`](PreparedChain::cells_long) must decide. As many costs as links are given.
    #[inline(always)]
    pub(crate) fn cells_pass<const N: usize>(&self, now: u64, costs: Option<&[u64]>) -> Option<bool> {
        let costs_of = costs.map_or(Some(&[1; N]), |costs| costs.first_chunk::<N>())?;
        let link = |i: usize| match self.links.get(i)?.target {
            Target::Cell(cell, limit) => Some((cell, limit, *costs_of.get(i)?)),
            _ => None,
        };
        let rest = |from: usize| (from..N).all(|i| link(i).is_some_and(is_plain));
        let lost = |known: [Seen<'a>; N], i| go_on(&Asked::of(self, costs), now, &known, i);
        decide::<N>(link, rest, now, lost).passes()
    }

    /// Decides a request of cells by a chain.
    #[cold]
    #[inline(never)]
    pub(crate) fn cells_long(&self, now: u64, costs: Option<&[u64]>) -> Result<Verdict, ChainError> {
        Ok(Asked::of(self, costs).long_way(now)?.verdict)
    }
}

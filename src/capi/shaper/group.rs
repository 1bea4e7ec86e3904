//! `tatcell_group_*`: flows that leave in the order of their eligibility.

use crate::capi::combine::links::{chain_code, link, tatcell_link_t};
use crate::capi::decision::{fill, tatcell_decision_t};
use crate::capi::pointers::contract::{args, inside, placed, Contract, Plain};
use crate::combine::Group;

/// Bytes of a tatcell_group_t.
pub const TATCELL_GROUP_SIZE: usize = 8;
/// Alignment of a tatcell_group_t.
pub const TATCELL_GROUP_ALIGN: usize = 8;

/// A group of flows that leave in the order in which they became eligible (IEEE 802.1Qcr). Its word is the latest
/// departure of any of its flows. All-zero memory (static storage, TATCELL_GROUP_INIT) is a fresh group. Its clock
/// must not wrap.
#[derive(Debug)]
#[repr(C, align(8))]
pub struct tatcell_group_t {
    /// The latest departure, in ticks; 0 = fresh.
    pub word: u64,
}

const _: () = assert!(size_of::<tatcell_group_t>() == TATCELL_GROUP_SIZE);
const _: () = assert!(align_of::<tatcell_group_t>() == TATCELL_GROUP_ALIGN);
const _: () = assert!(size_of::<Group>() == TATCELL_GROUP_SIZE && align_of::<Group>() <= TATCELL_GROUP_ALIGN);

// SAFETY: one word, and every value is a time.
unsafe impl Plain for Group {}

impl<'a> Contract<'a> {
    /// Returns a group that others may use: every access is atomic. NULL is `None`.
    pub(in crate::capi) fn group_if(self, p: *const tatcell_group_t) -> Result<Option<&'a Group>, i32> {
        self.input_if(inside(p))
    }
}

/// Reserves a request of a flow of this group, at the later of now and the group's latest departure.
///
/// The reservation is that of tatcell_cell_reserve at that time. Its departure becomes the latest departure of the
/// group. The wait, from now to out->departure, is at most the limit's max_delay. A request that would wait longer
/// charges nothing and does not change the group. tatcell_shaper_submit does the same and keeps a handle until
/// then.
///
/// @param group the group of the flow; not NULL.
/// @param now   the caller's clock, ticks.
/// @param link  started from TATCELL_LINK_INIT: the flow's cell or key, its limit with a max_delay, and the cost;
///              not NULL.
/// @param out   started from TATCELL_DECISION_INIT; gets departure, or retry_after. Not NULL.
/// @retval 0 reserved.
/// @retval TATCELL_NON_CONFORMING the request would wait longer than max_delay; TATCELL_NEVER, TATCELL_CONTENDED.
///         Nothing is charged.
/// @retval TATCELL_ERR_ALGORITHM the limit is not of GCRA; other algorithms cannot reserve.
/// @retval others as a link of tatcell_chain_check. Nothing is changed on error.
/// Thread: any number on groups, cells and tables. Cost: a load, the reservation, an atomic maximum. Since 0.3.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn tatcell_group_reserve(
    group: *mut tatcell_group_t,
    now: u64,
    link: *const tatcell_link_t,
    out: *mut tatcell_decision_t,
) -> i32 {
    args!(
        c,
        () = placed(group),
        group = c.input(inside::<_, Group>(group)),
        to = c.report(out),
        given = c.options(link),
        link = self::link(c, &given)
    );
    match group.reserve(now, &link) {
        Ok(made) => fill(&made, to),
        Err(e) => chain_code(e),
    }
}

/// Returns sizeof(tatcell_group_t) of the linked library, to compare with TATCELL_GROUP_SIZE. Since 0.3.
#[no_mangle]
pub extern "C" fn tatcell_group_size() -> usize {
    TATCELL_GROUP_SIZE
}

//! Counters of a node.

use std::ffi::c_char;

use super::kit::{self, Grows};
use super::node::tatcell_cluster_t;
use crate::SlotState;

/// slot: the node has not asked for one yet.
pub const TATCELL_CLUSTER_SLOT_NOT_ASKED: u32 = 0;
/// slot: the node holds one, and spends its reserve.
pub const TATCELL_CLUSTER_SLOT_HELD: u32 = 1;
/// slot: the node holds one, and waits until all that the holder before may have spent has drained.
pub const TATCELL_CLUSTER_SLOT_WAITS: u32 = 2;
/// slot: no limit has a reserve, so the node asks for no slot.
pub const TATCELL_CLUSTER_SLOT_NOT_NEEDED: u32 = 3;
/// slot: other nodes hold all slots.
pub const TATCELL_CLUSTER_SLOT_ALL_TAKEN: u32 = 4;
/// slot: another node has taken it, because it was not renewed in time; the node asks for another one soon.
pub const TATCELL_CLUSTER_SLOT_LOST: u32 = 5;
/// slot: the store is away.
pub const TATCELL_CLUSTER_SLOT_AWAY: u32 = 6;
/// slot: the last claim or renewal has no answer.
pub const TATCELL_CLUSTER_SLOT_UNANSWERED: u32 = 7;
/// slot: the store answered the last claim or renewal with an error.
pub const TATCELL_CLUSTER_SLOT_REFUSED: u32 = 8;
/// slot: the node holds one, but could not read the mark of a limit in time.
pub const TATCELL_CLUSTER_SLOT_MARK_UNREAD: u32 = 9;
/// slot: the node holds one, but nodes of another version of tatcell have written the mark of a limit.
pub const TATCELL_CLUSTER_SLOT_OTHER_FORMAT: u32 = 10;

/// Counters of a node since it was opened. They do not count requests that passed from granted units, because that
/// path touches no shared counter. Start from TATCELL_CLUSTER_METRICS_INIT.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(non_camel_case_types)]
pub struct tatcell_cluster_metrics_t {
    /// sizeof(tatcell_cluster_metrics_t); never written.
    pub size: u32,
    /// 1 while the store, or any of its servers, answers; else 0.
    pub up: u32,
    /// 1 while the node may spend its reserve; else 0.
    pub reserve_held: u32,
    /// Whether the node has a slot, and so its reserve, or why not: a TATCELL_CLUSTER_SLOT_ constant. Libraries before
    /// 0.4 leave it 0.
    pub slot: u32,
    /// Requests passed from the reserve.
    pub passed_reserve: u64,
    /// Requests passed after an answer of the store.
    pub passed_answer: u64,
    /// Requests passed from the node's share while the store was away.
    pub passed_share: u64,
    /// Requests passed by TATCELL_CLUSTER_DOWN_OPEN, without a bound.
    pub passed_open: u64,
    /// Requests refused by an earlier answer of the store.
    pub denied_cached: u64,
    /// Requests refused by the store's answer to them.
    pub denied_answer: u64,
    /// Requests refused because the store was away.
    pub denied_down: u64,
    /// Requests that were pending.
    pub pending: u64,
    /// Requests without a verdict, because the keys or the queue of the node were at their limit.
    pub overloaded: u64,
    /// Calls to the store that asked for units.
    pub asks: u64,
    /// Asks that the store granted.
    pub grants: u64,
    /// Units of all grants.
    pub granted_units: u64,
    /// Asks that the store refused.
    pub refusals: u64,
    /// Grants that lapse, because the key already held two.
    pub unplaced: u64,
    /// Units given back to the store.
    pub given_back: u64,
    /// Batches that the store answered.
    pub batches: u64,
    /// Nanoseconds that these batches took.
    pub batch_ns: u64,
    /// Calls sent again because the store did not have the script.
    pub no_script: u64,
    /// Calls sent again to another server of a Redis Cluster.
    pub redirected: u64,
    /// Calls that got no usable answer.
    pub faults: u64,
    /// Broken connections to the store.
    pub outages: u64,
    /// Changes of limits that the node saw.
    pub changes: u64,
}

// SAFETY: repr(C), a u32 first, no padding; any bytes are one.
unsafe impl Grows for tatcell_cluster_metrics_t {
    const FIRST: usize = 16 + 8 * 22;
    const EMPTY: Self = tatcell_cluster_metrics_t {
        size: size_of::<Self>() as u32,
        up: 0,
        reserve_held: 0,
        slot: 0,
        passed_reserve: 0,
        passed_answer: 0,
        passed_share: 0,
        passed_open: 0,
        denied_cached: 0,
        denied_answer: 0,
        denied_down: 0,
        pending: 0,
        overloaded: 0,
        asks: 0,
        grants: 0,
        granted_units: 0,
        refusals: 0,
        unplaced: 0,
        given_back: 0,
        batches: 0,
        batch_ns: 0,
        no_script: 0,
        redirected: 0,
        faults: 0,
        outages: 0,
        changes: 0,
    };
}

fn of_slot(state: SlotState) -> u32 {
    match state {
        SlotState::NotAsked => TATCELL_CLUSTER_SLOT_NOT_ASKED,
        SlotState::Held => TATCELL_CLUSTER_SLOT_HELD,
        SlotState::Waits { .. } => TATCELL_CLUSTER_SLOT_WAITS,
        SlotState::NotNeeded => TATCELL_CLUSTER_SLOT_NOT_NEEDED,
        SlotState::AllTaken => TATCELL_CLUSTER_SLOT_ALL_TAKEN,
        SlotState::Lost => TATCELL_CLUSTER_SLOT_LOST,
        SlotState::Away { .. } => TATCELL_CLUSTER_SLOT_AWAY,
        SlotState::Unanswered => TATCELL_CLUSTER_SLOT_UNANSWERED,
        SlotState::Refused => TATCELL_CLUSTER_SLOT_REFUSED,
        SlotState::MarkUnread => TATCELL_CLUSTER_SLOT_MARK_UNREAD,
        SlotState::OtherFormat => TATCELL_CLUSTER_SLOT_OTHER_FORMAT,
    }
}

const _: () = assert!(size_of::<tatcell_cluster_metrics_t>() == tatcell_cluster_metrics_t::FIRST);

/// Reads the counters of a node.
///
/// @param node    from tatcell_cluster_open; not NULL.
/// @param metrics started from TATCELL_CLUSTER_METRICS_INIT; not NULL.
/// @retval 0 done.
/// @retval TATCELL_CLUSTER_ERR_NULL, TATCELL_CLUSTER_ERR_ALIGN, TATCELL_CLUSTER_ERR_SIZE bad pointer or size field.
/// Thread: any. Cost: reads every counter. Since 0.3.
#[no_mangle]
pub extern "C" fn tatcell_cluster_metrics(
    node: *const tatcell_cluster_t,
    metrics: *mut tatcell_cluster_metrics_t,
) -> i32 {
    let tell = || {
        let of = kit::object(node)?.cluster.metrics();
        let told = tatcell_cluster_metrics_t {
            up: of.up.into(),
            reserve_held: of.reserve_held.into(),
            slot: of_slot(of.slot),
            passed_reserve: of.passed_reserve,
            passed_answer: of.passed_answer,
            passed_share: of.passed_share,
            passed_open: of.passed_open,
            denied_cached: of.denied_cached,
            denied_answer: of.denied_answer,
            denied_down: of.denied_down,
            pending: of.pending,
            overloaded: of.overloaded,
            asks: of.asks,
            grants: of.grants,
            granted_units: of.granted_units,
            refusals: of.refusals,
            unplaced: of.unplaced,
            given_back: of.given_back,
            batches: of.batches,
            batch_ns: of.batch_ns,
            no_script: of.no_script,
            redirected: of.redirected,
            faults: of.faults,
            outages: of.outages,
            changes: of.changes,
            ..tatcell_cluster_metrics_t::EMPTY
        };
        kit::fill(metrics, &told).map(|()| 0)
    };
    kit::code(tell())
}

/// Writes the counters in the text format of Prometheus.
///
/// @param node from tatcell_cluster_open; not NULL.
/// @param text gets them, cut to fit and ended with a zero. NULL = only the length is wanted.
/// @param room bytes of text.
/// @return bytes of the whole text, without the zero; TATCELL_CLUSTER_ERR_NULL or _ALIGN if node is a bad pointer.
/// Thread: any. Cost: allocates the text. Since 0.3.
#[no_mangle]
pub extern "C" fn tatcell_cluster_prometheus(
    node: *const tatcell_cluster_t,
    text: *mut c_char,
    room: usize,
) -> i32 {
    let write = || {
        let mut all = String::new();
        // A string takes all that is written.
        let _ = kit::object(node)?.cluster.metrics().prometheus(&mut all);
        Ok(kit::write_text(text, room, &all) as i32)
    };
    kit::code(write())
}

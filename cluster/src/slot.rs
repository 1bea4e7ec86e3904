//! Claims one of the N slots, and keeps it.
//!
//! ```text
//!   answer     the node believed                    then
//!   claimed    whatever it believed                 a claim: wait from its sending
//!   renewed    it holds this slot, without a gap    a renewal
//!   renewed    anything else                        the answer to an earlier claim was lost: as claimed
//!   held       it holds this slot                   lost
//!   none       it holds no slot                     in doubt: asked first next time, and released with the slot
//! ```
//!
//! "Without a gap" means that the answer came while the slot could not have ended yet. Otherwise it may have ended, and
//! another node may have had it, before a call of this node whose answer was lost claimed it again.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::miss::{Answers, Miss};
use crate::node::Node;
use crate::reserve::{Right, SlotState};
use crate::script::{self, Fault};
use crate::store::{Sent, Store};

/// What the store's thread knows of its slot.
pub(crate) struct Slot {
    prefix: String,
    nodes: u32,
    holder: String,
    ttl: Duration,
    index: Option<u32>,
    /// Slots that the store may have given to this node in an answer that was lost.
    doubt: BTreeSet<u32>,
    first: u32,
    /// When to ask next, by the timer.
    pub next: u64,
}

const CLAIMED: i64 = 1;
const RENEWED: i64 = 2;

/// When a call was sent, and when its answer came or was given up; nanoseconds of the node's clock.
#[derive(Clone, Copy)]
struct Trip {
    sent: u64,
    received: u64,
}

impl Slot {
    pub(crate) fn new(prefix: &str, nodes: u32, holder: String, ttl: Duration, first: u32) -> Slot {
        let (prefix, next) = (prefix.to_owned(), 0);
        Slot { prefix, nodes, holder, ttl, index: None, doubt: BTreeSet::new(), first, next }
    }

    fn key(&self, index: u32) -> String {
        format!("{}:slot:{index}", self.prefix)
    }

    /// Tries the slot again at the next turn, because the store was away.
    pub(crate) fn look_again(&mut self) {
        self.next = 0;
    }

    /// Renews the slot three times in its life, or claims a free one. Skips servers that are away: the next turn tries
    /// again, and a slot that is not renewed ends.
    pub(crate) async fn keep(&mut self, node: &Node, store: &mut Store) {
        if store.wire.timer() < self.next {
            return;
        }
        self.next = store.wire.after(self.ttl / 3);
        let Some(full_ns) = node.full_ns() else { return };
        let (had, mut miss) = (self.index.is_some(), None);
        for index in self.order() {
            let sent = store.wire.now();
            let answer = self.ask(store, index, self.ttl.as_millis() as u64).await;
            let trip = Trip { sent, received: store.wire.now() };
            let code = answer.map_err(|error| miss = Some(error.fault)).ok();
            if self.answered(&node.right, index, code, trip, full_ns) {
                break;
            }
        }
        node.right.found(match (miss, self.index.is_some()) {
            (Some(Fault::Lost), _) => SlotState::Unanswered,
            (Some(_), _) => SlotState::Refused,
            (None, true) => SlotState::Held,
            (None, false) if had => SlotState::Lost,
            (None, false) => SlotState::AllTaken,
        });
        if self.index.is_some() {
            for other in std::mem::take(&mut self.doubt) {
                // If this call is lost, that slot ends by itself.
                let _ = self.ask(store, other, 0).await;
            }
        }
    }

    /// Returns the slots to ask for: its own, or first those that it may have without knowing, and then all others.
    fn order(&self) -> Vec<u32> {
        if let Some(index) = self.index {
            return vec![index];
        }
        let others = (0..self.nodes).map(|i| (self.first + i) % self.nodes);
        self.doubt.iter().copied().chain(others.filter(|i| !self.doubt.contains(i))).collect()
    }

    /// Records an answer; see the top of this file. Returns whether the node has this slot.
    fn answered(&mut self, right: &Right, index: u32, code: Option<i64>, trip: Trip, full_ns: u64) -> bool {
        let px = self.ttl.as_nanos() as u64;
        let Some(code) = code else {
            if self.index.is_none() {
                self.doubt.insert(index);
            }
            return false;
        };
        self.doubt.remove(&index);
        match code {
            RENEWED if self.index == Some(index) && right.may_be_held(trip.received) => {
                right.renewed(trip.sent, px)
            }
            CLAIMED | RENEWED => {
                right.claimed(trip.sent, px, full_ns);
                self.index = Some(index);
            }
            // Another node has it. If this node held it, it is lost; the next turn claims a new one.
            _ => {
                if self.index.take().is_some() {
                    right.lost();
                }
            }
        }
        self.index.is_some()
    }

    async fn ask(&self, store: &mut Store, index: u32, ms: u64) -> Result<i64, Miss> {
        let key = self.key(index);
        let call = |_, by| script::slot(by, key.as_bytes(), &self.holder, ms);
        let answers: Answers<i64> = store.batch(&[key.as_bytes()], Sent::UntilItRan, call).await;
        answers.each.into_iter().next().unwrap_or_else(|| Err(Miss::new(Fault::Other, "no answer")))
    }

    /// Releases the slot, and every slot that the node may have without knowing.
    pub(crate) async fn release(&mut self, node: &Node, store: &mut Store) {
        node.right.lost();
        for index in self.index.take().into_iter().chain(std::mem::take(&mut self.doubt)) {
            // If this call is lost, the slot ends by itself.
            let _ = self.ask(store, index, 0).await;
        }
    }
}

#[cfg(all(test, not(tatcell_cluster_loom)))]
mod tests {
    use super::*;

    const PX: u64 = 1_000;
    const FULL: u64 = 500;

    fn slot(nodes: u32) -> (Slot, Right) {
        (Slot::new("p", nodes, "me".into(), Duration::from_nanos(PX), 1), Right::new())
    }

    fn trip(sent: u64) -> Trip {
        Trip { sent, received: sent + 10 }
    }

    #[test]
    fn a_slot_that_the_store_calls_renewed_is_claimed_if_the_node_did_not_know_of_it() {
        let (mut slot, right) = slot(2);
        assert!(!slot.answered(&right, 1, None, trip(0), FULL), "the answer is lost");
        assert_eq!(slot.order(), [1, 0]);
        assert!(slot.answered(&right, 1, Some(RENEWED), trip(100), FULL));
        assert_eq!((slot.index, slot.doubt.len()), (Some(1), 0));
        assert!(!right.holds(1_099), "it waits");
        assert!(slot.answered(&right, 1, Some(RENEWED), trip(900), FULL));
        assert!(!right.holds(1_599) && right.holds(1_600) && right.holds(1_899) && !right.holds(1_900));
    }

    #[test]
    fn a_slot_that_was_lost_and_came_back_in_an_answer_that_was_lost_waits_again() {
        let (mut slot, right) = slot(1);
        assert!(slot.answered(&right, 0, Some(CLAIMED), trip(0), FULL));
        assert!(slot.answered(&right, 0, Some(RENEWED), trip(900), FULL));
        assert!(right.holds(1_600));
        assert!(!slot.answered(&right, 0, Some(0), trip(1_700), FULL), "another node has it");
        assert!(!slot.answered(&right, 0, None, trip(5_000), FULL));
        assert!(slot.answered(&right, 0, Some(RENEWED), trip(5_100), FULL));
        assert!(!right.holds(5_111) && !right.holds(6_099));
        assert!(slot.answered(&right, 0, Some(RENEWED), trip(6_000), FULL));
        assert!(!right.holds(6_599) && right.holds(6_600));
    }

    /// The node was cut off for longer than its slot lives. Its call claimed the slot anew, and the answer was lost.
    #[test]
    fn a_renewal_after_the_slot_may_have_ended_is_a_claim() {
        let (mut slot, right) = slot(1);
        assert!(slot.answered(&right, 0, Some(CLAIMED), trip(0), FULL));
        assert!(slot.answered(&right, 0, Some(RENEWED), trip(900), FULL));
        assert!(!slot.answered(&right, 0, None, trip(1_950), FULL));
        assert_eq!(slot.index, Some(0), "it may hold it still");
        assert!(slot.answered(&right, 0, Some(RENEWED), trip(2_000), FULL));
        assert!(!right.holds(2_010) && !right.holds(2_999));
        // Sent in time, and answered too late to know.
        let (mut slot, right) = self::slot(1);
        assert!(slot.answered(&right, 0, Some(CLAIMED), trip(0), FULL));
        assert!(slot.answered(&right, 0, Some(RENEWED), Trip { sent: 999, received: 1_000 }, FULL));
        assert!(!right.holds(1_600) && !right.holds(1_998));
    }

    #[test]
    fn all_slots_in_doubt_are_asked_for_first() {
        let (mut slot, right) = slot(4);
        for index in [3, 2] {
            assert!(!slot.answered(&right, index, None, trip(0), FULL));
        }
        assert_eq!(slot.order(), [2, 3, 1, 0]);
        assert!(!slot.answered(&right, 2, Some(0), trip(10), FULL));
        assert!(slot.answered(&right, 3, Some(RENEWED), trip(20), FULL));
        assert_eq!(slot.order(), [3]);
    }
}

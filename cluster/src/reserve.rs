//! A node's right to its reserve: one of N slots in the store, held for a time and renewed.
//!
//! ```text
//!   claimed at the store      held there for PX, counted by the node from the sending of the claim
//!   +--- PX ---+--- until an empty reserve is full ---+--- the node spends its reserve ... while it holds the slot
//! ```
//!
//! The reserve of a node is a token bucket of its own. The bound counts N of them, whoever has them. A node that takes
//! over a slot finds its own table fresh, so it waits until everything that the last holder may have spent has drained.

use std::time::Duration;

use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Says whether a node has a slot, and so its reserve; if not, why not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SlotState {
    /// The node has not asked for a slot yet.
    #[default]
    NotAsked,
    /// It holds a slot, and spends its reserve.
    Held,
    /// It holds a slot, and waits until all that the holder before may have spent has drained.
    Waits {
        /// The rest of the wait.
        left: Duration,
    },
    /// No limit has a reserve, so the node asks for no slot.
    NotNeeded,
    /// Other nodes hold all slots: there are more nodes than slots.
    AllTaken,
    /// Another node has taken the slot, because this node did not renew it in time. It asks for another one at its next
    /// turn.
    Lost,
    /// The store is away.
    Away {
        /// For how long it has been away.
        since: Duration,
    },
    /// The last claim or renewal has no answer: it was lost, or the server that has the slot is away.
    Unanswered,
    /// The store answered the last claim or renewal with an error, for example because it is loading or full; or no
    /// server has the hash slot.
    Refused,
    /// The node holds a slot, but could not read the mark of a limit in time, so it may not spend what it holds.
    MarkUnread,
    /// The same, because nodes of another version of tatcell have written the mark.
    OtherFormat,
}

impl SlotState {
    /// The name of each state, in the order of their numbers.
    pub(crate) const NAMES: [&'static str; 11] = [
        "not_asked",
        "held",
        "waits",
        "not_needed",
        "all_taken",
        "lost",
        "away",
        "unanswered",
        "refused",
        "mark_unread",
        "other_format",
    ];

    /// Returns its number, which is its place among the names.
    pub(crate) fn number(self) -> u32 {
        match self {
            SlotState::NotAsked => 0,
            SlotState::Held => 1,
            SlotState::Waits { .. } => 2,
            SlotState::NotNeeded => 3,
            SlotState::AllTaken => 4,
            SlotState::Lost => 5,
            SlotState::Away { .. } => 6,
            SlotState::Unanswered => 7,
            SlotState::Refused => 8,
            SlotState::MarkUnread => 9,
            SlotState::OtherFormat => 10,
        }
    }
}

/// From when and until when the reserve may be spent, nanoseconds; and why it may not.
#[derive(Debug)]
pub(crate) struct Right {
    from: AtomicU64,
    until: AtomicU64,
    /// The number of the state that the last claims or renewals found.
    found: AtomicU32,
    /// The same of the marks of the limits: `Held` if they were read.
    marks: AtomicU32,
}

impl Right {
    pub(crate) fn new() -> Right {
        Right {
            from: AtomicU64::new(u64::MAX),
            until: AtomicU64::new(0),
            found: AtomicU32::new(SlotState::NotAsked.number()),
            marks: AtomicU32::new(SlotState::Held.number()),
        }
    }

    /// Records what the last claims or renewals found.
    pub(crate) fn found(&self, state: SlotState) {
        // ORDERING: Relaxed; a value.
        self.found.store(state.number(), Ordering::Relaxed);
    }

    /// Records whether the marks of the limits were read.
    pub(crate) fn marks(&self, state: SlotState) {
        // ORDERING: Relaxed; a value.
        self.marks.store(state.number(), Ordering::Relaxed);
    }

    /// Returns the state. `away` is for how long the store has been away, `read` whether all marks were read in time.
    pub(crate) fn state(&self, now: u64, away: Option<Duration>, read: bool) -> SlotState {
        // ORDERING: Acquire; as in `holds`.
        let until = self.until.load(Ordering::Acquire);
        // ORDERING: Relaxed, all; ordered by the load above, and values.
        let from = self.from.load(Ordering::Relaxed);
        let of = |number: u32, state: SlotState| number == state.number();
        let (found, marks) = (self.found.load(Ordering::Relaxed), self.marks.load(Ordering::Relaxed));
        match (now < until, away) {
            (true, _) if now < from => SlotState::Waits { left: Duration::from_nanos(from - now) },
            (true, _) if read => SlotState::Held,
            (_, Some(since)) => SlotState::Away { since },
            (true, _) if of(marks, SlotState::OtherFormat) => SlotState::OtherFormat,
            (true, _) => SlotState::MarkUnread,
            (false, _) => [SlotState::NotAsked, SlotState::AllTaken, SlotState::Lost, SlotState::Refused]
                .into_iter()
                .find(|state| of(found, *state))
                // Also if the last renewal was answered, and the next one is overdue.
                .unwrap_or(SlotState::Unanswered),
        }
    }

    /// Returns whether the reserve may be spent now.
    #[inline]
    pub(crate) fn holds(&self, now: u64) -> bool {
        // ORDERING: Acquire; pairs with the Release of `claimed`: who sees an end sees its beginning.
        let until = self.until.load(Ordering::Acquire);
        // ORDERING: Relaxed; ordered by the load above.
        now < until && now >= self.from.load(Ordering::Relaxed)
    }

    /// Returns whether the slot has not ended yet, for all that this node knows.
    pub(crate) fn may_be_held(&self, now: u64) -> bool {
        // ORDERING: Relaxed; only the store's thread asks, and it writes the time.
        now < self.until.load(Ordering::Relaxed)
    }

    /// Records that a call sent at `sent` claimed the slot.
    pub(crate) fn claimed(&self, sent: u64, px_ns: u64, full_ns: u64) {
        // ORDERING: Relaxed; published by the store below.
        self.from.store(sent.saturating_add(px_ns).saturating_add(full_ns), Ordering::Relaxed);
        self.renewed(sent, px_ns);
    }

    /// Records that the slot was still held.
    pub(crate) fn renewed(&self, sent: u64, px_ns: u64) {
        // ORDERING: Release; pairs with the Acquire of `holds`.
        self.until.store(sent.saturating_add(px_ns), Ordering::Release);
    }

    /// Records that another node has the slot.
    pub(crate) fn lost(&self) {
        // ORDERING: Release; as above.
        self.until.store(0, Ordering::Release);
    }
}

#[cfg(all(test, not(tatcell_cluster_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_reserve_is_spent_only_after_the_wait_and_while_the_slot_is_held() {
        let right = Right::new();
        assert!(!right.holds(0) && !right.holds(u64::MAX - 1));
        right.claimed(1_000, 100, 50);
        assert!(!right.holds(1_050) && !right.holds(1_150), "not renewed in time");
        right.renewed(1_080, 100);
        assert!(!right.holds(1_149) && right.holds(1_150) && right.holds(1_179) && !right.holds(1_180));
        right.claimed(1_200, 100, 50);
        right.renewed(1_280, 100);
        assert!(!right.holds(1_349) && right.holds(1_350), "a new claim waits again");
        right.lost();
        assert!(!right.holds(1_350));
    }

    #[test]
    fn the_reason_is_what_the_claims_found_once_the_slot_has_ended() {
        let right = Right::new();
        let second = Some(Duration::from_secs(1));
        assert_eq!(right.state(5, None, true), SlotState::NotAsked);
        right.claimed(1_000, 100, 50);
        assert_eq!(right.state(1_099, second, false), SlotState::Waits { left: Duration::from_nanos(51) });
        right.found(SlotState::Held);
        assert_eq!(right.state(1_100, None, true), SlotState::Unanswered, "the next renewal is overdue");
        right.renewed(1_080, 100);
        assert_eq!(right.state(1_150, second, true), SlotState::Held, "also while the store is away");
        right.found(SlotState::Unanswered);
        assert_eq!(right.state(1_179, None, true), SlotState::Held, "it has not ended yet");
        let away = SlotState::Away { since: Duration::from_secs(1) };
        assert_eq!((right.state(1_180, second, true), right.state(1_179, second, false)), (away, away));
        right.marks(SlotState::MarkUnread);
        assert_eq!(right.state(1_179, None, false), SlotState::MarkUnread);
        right.marks(SlotState::OtherFormat);
        assert_eq!(right.state(1_179, None, false), SlotState::OtherFormat);
        for state in [SlotState::AllTaken, SlotState::Lost, SlotState::Unanswered, SlotState::Refused] {
            right.found(state);
            assert_eq!(right.state(1_180, None, true), state);
        }
    }
}

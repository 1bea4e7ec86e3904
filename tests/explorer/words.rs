//! Slot words, policies, operations, and the rules that a world can weaken.

/// What a slot holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Empty,
    Claim,
    Live,
}

/// A slot word: `[kind:2][key:2][payload:12]`, all-zero = EMPTY.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Word(pub u16);

impl Word {
    fn new(kind: u16, key: u8, payload: i32) -> Word {
        assert!((0..4096).contains(&payload), "the payload does not fit the model");
        Word(kind << 14 | u16::from(key) << 12 | payload as u16)
    }
    pub fn empty(payload: i32) -> Word {
        Word::new(0, 0, payload)
    }
    pub fn claim(key: u8, version: i32) -> Word {
        Word::new(1, key, version)
    }
    pub fn live(key: u8, tat: i32) -> Word {
        Word::new(2, key, tat)
    }
    pub fn kind(self) -> Kind {
        match self.0 >> 14 {
            0 => Kind::Empty,
            1 => Kind::Claim,
            _ => Kind::Live,
        }
    }
    pub fn key(self) -> u8 {
        (self.0 >> 12 & 3) as u8
    }
    pub fn payload(self) -> i32 {
        i32::from(self.0 & 0xfff)
    }
    pub fn is(self, kind: Kind, key: u8) -> bool {
        self.kind() == kind && self.key() == key
    }
}

impl std::fmt::Debug for Word {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.kind() {
            Kind::Empty => write!(f, "EMPTY({})", self.payload()),
            kind => {
                write!(f, "{kind:?}({},{})", ['x', 'y', 'z', 'w'][usize::from(self.key())], self.payload())
            }
        }
    }
}

/// What a call does when no slot is reusable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    Admit,
    Deny,
    Inherit,
    Sampled,
}

/// Which of the reusable slots an insert takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placement {
    /// The first EMPTY one in search order, else the one that has been expired longest.
    EmptyThenOldest,
    /// The first in search order.
    First,
    /// Any, by the choice of the world.
    Any,
}

/// The shipped rules, or one of them broken on purpose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rules {
    Shipped,
    /// A reusable slot goes straight to LIVE.
    Naive,
    /// The thread's own claim is committed without a scan after it.
    OwnWithoutRescan,
    /// Another thread's claim is committed after the scan that found it.
    ForeignAfterOneScan,
    /// A claim carries `now + G` whatever the slot held; drops, kills and sweeps leave EMPTY(0).
    Unversioned,
    /// Higher claims of the key stay.
    NoKill,
    /// A commit goes ahead although a higher claim could not be killed.
    IgnoreFailedKill,
    /// A claim counts as seen twice when its slot is the same, whatever its version.
    KnownBySlot,
    /// Kills and drops leave an even payload, so a takeover's debt is forgotten.
    ParityLost,
    /// Takeovers take unexpired claims as well.
    EvictClaims,
    /// The charge that commits a claim can give back its whole cost.
    RefundWhole,
    /// A slot that holds the debt of a takeover given up is reused like a free one.
    DebtReusable,
    /// Not a weakening: under Sampled a takeover commits `max(v, now + cost)`, so no payload falls.
    SampledRises,
    /// A refund is `r - cost`, whatever has drained since.
    RefundAll,
    /// The claim with the highest index is committed, and only claims above it are killed.
    OwnFirst,
    /// A reset leaves a LIVE word with a small lead from its own clock.
    ResetFloor,
    /// A tombstone is reusable like any EMPTY word.
    TombstoneReusable,
    /// A takeover takes a tombstone like a debt.
    TombstoneEvictable,
    /// A refund to wherever the key is does not look for tombstones.
    RefundBlind,
    /// A refund to wherever the key is looks for tombstones before it loads the live word.
    RefundLooksFirst,
}

/// What a permit is worth, where there was a choice. The default is what is shipped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Permits {
    /// A refund goes to the slot that its permit names or nowhere. Otherwise, but under Inherit, it goes to wherever
    /// the key is, and looks for tombstones.
    pub own_slot: bool,
    /// A permit is worth what it stored less the time since its charge.
    pub aged: bool,
    /// A tombstone lies above `now + L` too.
    pub high_tombstone: bool,
}

impl Default for Permits {
    fn default() -> Permits {
        Permits { own_slot: true, aged: false, high_tombstone: false }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Op {
    Charge {
        key: u8,
        now: i32,
        units: i32,
    },
    /// Refunds the charge that is operation `of` of the same thread.
    Refund {
        of: usize,
        now: i32,
    },
    Sweep {
        slot: usize,
        now: i32,
    },
    /// Makes a key full again.
    Reset {
        key: u8,
        now: i32,
    },
    /// The permit of a charge of before the world begins, by the reading `read`, that left the TAT `tat` in `slot`.
    Past {
        key: u8,
        units: i32,
        tat: i32,
        slot: usize,
        read: i32,
    },
}

impl Op {
    /// The clock reading.
    pub fn now(&self) -> Option<i32> {
        match self {
            Op::Charge { now, .. }
            | Op::Refund { now, .. }
            | Op::Sweep { now, .. }
            | Op::Reset { now, .. } => Some(*now),
            Op::Past { .. } => None,
        }
    }
}

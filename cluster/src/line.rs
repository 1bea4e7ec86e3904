//! A lease line: what a node holds of one key. Any number of workers and the store's thread share it.
//!
//! ```text
//!   tag      the owner: a hash of the key; 0 while the line changes hands         next to the line, 8 in a cache line
//!   word     generation | low                                                     see piece.rs
//!   lo, hi   two pieces, by parity: the one of the word's generation, and the next one
//!   since    when each of them came: no older reading of the clock takes of it
//!   newest   the generation of the newest piece
//!   owner    FREE | QUEUED | STORE | CHANGING      who may write everything except the word
//! ```
//!
//! **Who may do what.** A worker moves the word by compare-and-swap, and moves it on to the newest piece if the present
//! one is spent. Only the owner writes everything else: the store's thread while it settles an answer, or a worker
//! while the line changes hands. A worker makes a line QUEUED when it asks ahead. The store's thread takes a line that
//! is FREE or QUEUED, and checks the tag once it owns the line. A line changes hands only from FREE.
//!
//! **Invariants.**
//! 1. If a worker read a word and then its own tag, it swaps a word that was its key's. For a change of hands first
//!    makes the tag 0, then gives the word a new generation, then writes the rest, and last the tag of the new key.
//! 2. A generation never comes again (within 256), so a swap of a word of an older one fails, whatever `low` is. Within
//!    a generation `low` may come again, because units are put back; the word is then the same state.
//! 3. A piece is written before its generation is the newest, and over the older piece only after the word has left it.
//!
//! Progress: taking is lock-free and bounded; a worker that lost [`MAX_LOST`] swaps takes nothing and charges nothing.
//! Nobody waits for an owner: a worker that cannot own a line goes on without it.
//!
//! A line is a cache: forgetting it loses units, and never makes any.

use crate::piece::{Piece, Word};
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::waits::Waits;

/// The number of swaps of the word that a worker may lose to others before it takes nothing.
pub(crate) const MAX_LOST: u32 = 8;

const FREE: u32 = 0;
const QUEUED: u32 = 1;
const STORE: u32 = 2;
const CHANGING: u32 = 3;

/// The time for which a worker takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct When {
    /// Its reading of the clock.
    pub reading: u64,
    /// How long a piece may wait.
    pub hold: u64,
}

/// What a worker took from a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// The cost was taken, and ends at `end`; `ahead`: it is time to ask for the next piece.
    Yes { end: u64, ahead: bool },
    /// Not enough is left.
    No,
    /// The line belongs to another key by now.
    Other,
}

/// The state of one key on a node: two cache lines.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Line {
    word: AtomicU64,
    lo: [AtomicU64; 2],
    hi: [AtomicU64; 2],
    since: [AtomicU64; 2],
    newest: AtomicU64,
    /// The next piece is asked for once `low` is above this.
    mark: AtomicU64,
    /// A cost c is refused until this + c T without an ask; 0 = no refusal.
    pub(crate) denied: AtomicU64,
    /// The time until which the line is useful, nanoseconds.
    pub(crate) life: AtomicU64,
    /// The place from which a node without a store spends its share, nanoseconds.
    pub(crate) share: AtomicU64,
    /// The time until which the key is decided as if the store were away, though a part of the store is there.
    pub(crate) share_until: AtomicU64,
    owner: AtomicU32,
    /// Units offered since the last ask.
    pub(crate) offered: AtomicU32,
    /// Units that have waited since the last answer.
    pub(crate) waits: Waits,
    /// Whether the share was used since the store was last asked.
    pub(crate) share_used: AtomicU32,
}

impl Line {
    pub(crate) fn new() -> Line {
        let zero = || AtomicU64::new(0);
        let small = || AtomicU32::new(0);
        Line {
            word: AtomicU64::new(Word::spent(0).pack()),
            lo: [zero(), zero()],
            hi: [zero(), zero()],
            since: [zero(), zero()],
            newest: zero(),
            mark: zero(),
            denied: zero(),
            life: zero(),
            share: zero(),
            share_until: zero(),
            owner: small(),
            offered: small(),
            waits: Waits::new(),
            share_used: small(),
        }
    }

    /// Takes `length` nanoseconds of what `tag` holds here and has not lapsed, from a piece that had come before the
    /// reading.
    #[inline]
    pub(crate) fn take(&self, at: &AtomicU64, tag: u64, when: When, length: u64) -> Taken {
        let floor = when.reading.saturating_sub(when.hold);
        for _ in 0..MAX_LOST {
            // ORDERING: Acquire; pairs with the swaps of others: tag and pieces are at least as new as this word.
            let old = self.word.load(Ordering::Acquire);
            // ORDERING: Acquire; pairs with the Release that gave the line to this key. After the word: invariant 1.
            if at.load(Ordering::Acquire) != tag {
                return Taken::Other;
            }
            let word = Word::unpack(old);
            let side = usize::from(word.generation & 1);
            // ORDERING: Acquire; a value of another generation does no harm, because the swap then fails.
            let hi = self.hi[side].load(Ordering::Acquire);
            if let Some(next) = word.take(hi, floor, length) {
                // ORDERING: Acquire; as above.
                if when.reading < self.since[side].load(Ordering::Acquire) {
                    return Taken::No;
                }
                if self.swap(old, next) {
                    // ORDERING: Relaxed, both; at worst an ask goes out early or late.
                    let ahead = next.low > self.mark.load(Ordering::Relaxed)
                        && self.newest.load(Ordering::Relaxed) == u64::from(next.generation);
                    return Taken::Yes { end: next.low, ahead };
                }
                continue;
            }
            // ORDERING: Acquire; pairs with the Release of `publish`: the newest piece is written.
            let newest = self.newest.load(Ordering::Acquire) as u8;
            if newest == word.generation {
                return Taken::No;
            }
            // ORDERING: Acquire; written before `newest`.
            let low = self.lo[usize::from(newest & 1)].load(Ordering::Acquire);
            self.swap(old, Word { generation: newest, low });
        }
        Taken::No
    }

    /// Puts up to `length` nanoseconds back that `tag` took of the piece that the word is at, as whole units of
    /// `unit_ns`. Returns how many units: none of what has lapsed, and none of a piece before. See [`Word::put_back`].
    pub(crate) fn put_back(&self, at: &AtomicU64, tag: u64, when: When, (units, unit_ns): (u64, u64)) -> u64 {
        let floor = when.reading.saturating_sub(when.hold);
        for _ in 0..MAX_LOST {
            // ORDERING: Acquire, all; as in `take`.
            let old = self.word.load(Ordering::Acquire);
            if at.load(Ordering::Acquire) != tag {
                return 0;
            }
            let word = Word::unpack(old);
            let side = usize::from(word.generation & 1);
            // ORDERING: as above.
            let (lo, hi) = (self.lo[side].load(Ordering::Acquire), self.hi[side].load(Ordering::Acquire));
            let Some((next, units)) = word.put_back((lo.max(floor), hi), units, unit_ns) else { return 0 };
            if self.swap(old, next) {
                return units;
            }
        }
        0
    }

    /// Returns the nanoseconds that `tag` could take here now, of both pieces.
    pub(crate) fn left(&self, at: &AtomicU64, tag: u64, when: When) -> [u64; 2] {
        let floor = when.reading.saturating_sub(when.hold);
        // ORDERING: Acquire; as in `take`.
        let word = Word::unpack(self.word.load(Ordering::Acquire));
        // ORDERING: Acquire; as in `take`.
        if at.load(Ordering::Acquire) != tag {
            return [0, 0];
        }
        // ORDERING: Acquire; pairs with the Release of `publish`.
        let newest = self.newest.load(Ordering::Acquire) as u8;
        let of = |generation: u8, low: u64| {
            // ORDERING: Relaxed; a value.
            let hi = self.hi[usize::from(generation & 1)].load(Ordering::Relaxed);
            hi.saturating_sub(low.max(floor))
        };
        // ORDERING: Relaxed; a value.
        let next = || of(newest, self.lo[usize::from(newest & 1)].load(Ordering::Relaxed));
        [of(word.generation, word.low), if newest == word.generation { 0 } else { next() }]
    }

    #[inline]
    fn swap(&self, old: u64, new: Word) -> bool {
        // ORDERING: AcqRel; passes on what this worker saw of the pieces. Relaxed on failure: the loop reads it again.
        self.word.compare_exchange(old, new.pack(), Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Adds a piece, which came at `now`, after those that are held; at `mark` the next one is asked for. Returns false
    /// if two pieces are held already: then this one lapses. Only the owner calls it.
    pub(crate) fn publish(&self, piece: Piece, now: u64, mark: u64) -> bool {
        // ORDERING: Relaxed; only owners write it, and taking ownership is Acquire.
        let newest = self.newest.load(Ordering::Relaxed) as u8;
        // ORDERING: Acquire; pairs with the swap that left the older piece.
        if Word::unpack(self.word.load(Ordering::Acquire)).generation != newest {
            return false;
        }
        let next = newest.wrapping_add(1);
        let side = usize::from(next & 1);
        // ORDERING: Relaxed; published by the Release below.
        self.lo[side].store(piece.lo, Ordering::Relaxed);
        // ORDERING: Relaxed; as above.
        self.hi[side].store(piece.hi, Ordering::Relaxed);
        // ORDERING: Relaxed; as above.
        self.since[side].store(now, Ordering::Relaxed);
        // ORDERING: Relaxed; a hint.
        self.mark.store(mark, Ordering::Relaxed);
        // ORDERING: Release; pairs with the Acquire of `take`: a worker that sees the generation sees its piece.
        self.newest.store(u64::from(next), Ordering::Release);
        true
    }

    /// Takes all that is left of the newest piece above `floor`, and leaves nothing of any piece; returns its length in
    /// nanoseconds. Only the owner calls it, when the node closes.
    pub(crate) fn seize(&self, floor: u64) -> u64 {
        // ORDERING: Relaxed; only owners write it.
        let newest = self.newest.load(Ordering::Relaxed) as u8;
        let side = usize::from(newest & 1);
        // ORDERING: AcqRel; what workers took before it counts, and what they try after it fails.
        let word = Word::unpack(self.word.swap(Word::spent(newest).pack(), Ordering::AcqRel));
        // ORDERING: Relaxed; written by owners.
        let begins = self.lo[side].load(Ordering::Relaxed);
        let low = if word.generation == newest { word.low } else { begins };
        // ORDERING: Relaxed; as above.
        self.hi[side].load(Ordering::Relaxed).saturating_sub(low.max(floor))
    }

    /// Gives the line to another key. Returns false if an ask is under way, or if another worker was faster.
    pub(crate) fn change_hands(&self, at: &AtomicU64, from: u64, to: u64) -> bool {
        if !self.own(FREE, CHANGING) {
            return false;
        }
        // ORDERING: Acquire; only owners write it, and this thread owns the line.
        if at.load(Ordering::Acquire) != from {
            self.disown();
            return false;
        }
        // ORDERING: Release; before the word: a worker that sees the new generation sees that the key is gone.
        at.store(0, Ordering::Release);
        // ORDERING: Relaxed; only owners write it.
        let next = (self.newest.load(Ordering::Relaxed) as u8).wrapping_add(1);
        // ORDERING: AcqRel; orders the tag above before it, and what follows after it.
        self.word.swap(Word::spent(next).pack(), Ordering::AcqRel);
        // ORDERING: Relaxed, all; nobody reads them under a tag of 0, and the Release below publishes them.
        self.newest.store(u64::from(next), Ordering::Relaxed);
        for field in self.lo.iter().chain(&self.hi).chain(&self.since) {
            field.store(0, Ordering::Relaxed);
        }
        for field in [&self.mark, &self.denied, &self.share, &self.share_until] {
            field.store(0, Ordering::Relaxed);
        }
        // ORDERING: Relaxed; as above.
        for field in [&self.offered, &self.share_used] {
            field.store(0, Ordering::Relaxed);
        }
        self.waits.anew();
        // ORDERING: Release; pairs with the Acquire of `take`.
        at.store(to, Ordering::Release);
        self.disown();
        true
    }

    /// Marks that an ask goes into the queue, and starts the count of what waits for it. Returns false if an ask is
    /// there already, or if the line is owned.
    pub(crate) fn queue(&self) -> bool {
        let first = self.own(FREE, QUEUED);
        if first {
            self.waits.anew();
        }
        first
    }

    /// Undoes `queue`: the queue did not take the ask.
    pub(crate) fn unqueue(&self) {
        self.own(QUEUED, FREE);
    }

    /// Returns whether nobody asks for it or owns it; that may change at any time.
    pub(crate) fn is_free(&self) -> bool {
        // ORDERING: Relaxed; a hint.
        self.owner.load(Ordering::Relaxed) == FREE
    }

    /// Makes the store's thread the owner, if the line still belongs to this key.
    pub(crate) fn own_for_store(&self, at: &AtomicU64, tag: u64) -> bool {
        if !self.own(FREE, STORE) && !self.own(QUEUED, STORE) {
            return false;
        }
        // ORDERING: Acquire; only owners write it, and this thread owns the line.
        let same = at.load(Ordering::Acquire) == tag;
        if !same {
            self.disown();
        }
        same
    }

    /// Ends the ownership.
    pub(crate) fn disown(&self) {
        // ORDERING: Release; pairs with the Acquire of the next owner.
        self.owner.store(FREE, Ordering::Release);
    }

    fn own(&self, from: u32, to: u32) -> bool {
        // ORDERING: Acquire; pairs with the Release of the last owner. Relaxed on failure: nothing is read then.
        self.owner.compare_exchange(from, to, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }
}

#[cfg(all(test, tatcell_cluster_loom))]
#[path = "loom_line.rs"]
mod loom_line;

#[cfg(all(test, not(tatcell_cluster_loom)))]
#[path = "line_tests.rs"]
mod line_tests;

//! A timing wheel: handles in slots of time, in the caller's memory.
//!
//! ```text
//!  memory, 64-bit words
//!  [ bits: S / 64 ][ slots: S ][ nodes: 3 * P ]
//!
//!  bit k    1 = slot k holds something; a summary of up to 64 such words lies in the handle
//!  slot     [ last : 32 ][ first : 32 ]                           numbers of nodes from 1; valid where its bit is 1
//!  node     [ handle : 64 ][ departure : 64 ][ level : 32 ][ next : 32 ]                            next 0 = the last
//!
//!            base                                                base + S * g
//!  ----------+------+------+------+------+--  ..  --+------+------+----------> departures
//!            | k    | k+1  | k+2  |                        | k-1  |             slot = departure / g mod S
//!            '------ g ticks each                          '------'
//! ```
//!
//! g is the granularity, a power of two, as S is: a slot is found by a shift and a mask, and times may wrap at 2^64. A
//! slot is a list, first in, first out. The next handle comes from the first slot from base on that holds anything: two
//! words of bits and a count of trailing zeros.
//!
//! Invariants:
//!
//! - every handle lies in a slot of `base..base + S * g`; base moves up, at most to now, and never past a handle;
//! - **never early**: a handle is released at a now that is at or after its departure;
//! - **late by less than g**: everything before it in its slot is due before the slot ends;
//! - **in order**: of two handles, the one with the earlier departure comes out first, unless both departures lie in
//!   one slot: then the one that was put in first. So handles whose departures never fall (those of one flow) come out
//!   in the order in which they were put in;
//! - a departure that has passed goes to the slot of now; a now that lies behind an earlier one counts as that one.
//!
//! Progress: no loop in any call. One owner; nothing is shared.
//!
//! Source: Varghese and Lauck, "Hashed and hierarchical timing wheels" (SOSP 1987); one wheel a core for shaping:
//! Saeed and others, "Carousel" (SIGCOMM 2017).
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

use super::error::ShaperError;

/// The smallest number of slots of a [`Wheel`].
pub const MIN_SLOTS: usize = 64;
/// The largest number of slots of a [`Wheel`].
pub const MAX_SLOTS: usize = 4096;

/// Words of a node.
const NODE: usize = 3;
/// Slots for each word of bits.
const BITS: usize = 64;

/// Returns the 64-bit words of memory that a wheel of `slots` slots needs for `handles` handles; saturates.
///
/// ```
/// assert_eq!(tatcell::wheel_words(256, 1000), 4 + 256 + 3 * 1000);
/// ```
pub const fn wheel_words(slots: usize, handles: usize) -> usize {
    words_of_bits(slots).saturating_add(slots).saturating_add(handles.saturating_mul(NODE))
}

/// Describes what waits in a wheel: a handle of the caller's, when it may leave, and how far it has come.
///
/// ```
/// use tatcell::{wheel_words, ShaperError, Waiting, Wheel};
/// let mut memory = [0; wheel_words(64, 2)];
/// let mut wheel = Wheel::new(&mut memory, 64, 16, 0)?;
/// let packet = Waiting { handle: 7, departure: 500, level: 0 };
/// wheel.insert(0, packet)?;
/// assert_eq!(wheel.release(500), Some(packet));
/// # Ok::<(), ShaperError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// The caller's own value: an index, a pointer, a file descriptor.
    pub handle: u64,
    /// The tick from which it may leave.
    pub departure: u64,
    /// The number of limits that it has passed before this one, for [`Shaper::forward`](crate::Shaper::forward).
    pub level: u32,
}

/// Keeps handles until their departures, and releases them in that order.
///
/// For departures that are decided elsewhere; a [`Shaper`](crate::Shaper) also reserves. The memory is the caller's,
/// and only the owner of the wheel uses it.
///
/// ```
/// use tatcell::{wheel_words, ShaperError, Waiting, Wheel};
/// // 64 slots of 16 ticks, for 10 handles; the clock reads 1000.
/// let mut memory = [0; wheel_words(64, 10)];
/// let mut wheel = Wheel::new(&mut memory, 64, 16, 1000)?;
/// wheel.insert(1000, Waiting { handle: 7, departure: 1500, level: 0 })?;
/// wheel.insert(1000, Waiting { handle: 8, departure: 1100, level: 0 })?;
/// assert_eq!(wheel.next_departure(), Some(1100)); // sleep until then
/// assert_eq!(wheel.release(1099), None);
/// assert_eq!(wheel.release(1100).map(|due| due.handle), Some(8));
/// assert_eq!(wheel.insert(1100, Waiting { handle: 9, departure: 2200, level: 0 }), Err(ShaperError::TooFar));
/// # Ok::<(), ShaperError>(())
/// ```
#[derive(Debug)]
pub struct Wheel<'a> {
    bits: &'a mut [u64],
    slots: &'a mut [u64],
    nodes: &'a mut [u64],
    /// Bit w is 1 if word w of the bits is not 0.
    summary: u64,
    /// The start of the first slot, in ticks; a multiple of the granularity.
    base: u64,
    /// The latest reading of the clock, at or after base.
    latest: u64,
    /// The granularity is 2^shift ticks.
    shift: u32,
    /// A node that was given back, or 0. Each such node names the next in its third word.
    free: u32,
    /// The number of nodes that were ever used.
    used: u32,
    len: u32,
}

impl<'a> Wheel<'a> {
    /// Makes an empty wheel in `memory` of `slots` slots (a power of two from 64 to 4096) of `granularity` ticks each
    /// (a power of two), for as many handles as fit ([`wheel_words`]). `now` is a reading of the clock.
    ///
    /// # Errors
    /// [`ShaperError::BadSlots`], [`BadGranularity`](ShaperError::BadGranularity), [`TooSmall`](ShaperError::TooSmall),
    /// [`TooLarge`](ShaperError::TooLarge). The memory is not touched then.
    ///
    /// # Cost
    /// Writes a word for every 64 slots.
    pub fn new(
        memory: &'a mut [u64],
        slots: usize,
        granularity: u64,
        now: u64,
    ) -> Result<Wheel<'a>, ShaperError> {
        if !slots.is_power_of_two() || !(MIN_SLOTS..=MAX_SLOTS).contains(&slots) {
            return Err(ShaperError::BadSlots);
        }
        let shift = granularity.trailing_zeros();
        if !granularity.is_power_of_two() || shift.saturating_add(slots.trailing_zeros()) > 61 {
            return Err(ShaperError::BadGranularity);
        }
        if memory.len() < wheel_words(slots, 1) {
            return Err(ShaperError::TooSmall);
        }
        if memory.len() >= wheel_words(slots, u32::MAX as usize) {
            return Err(ShaperError::TooLarge);
        }
        let Some((bits, rest)) = memory.split_at_mut_checked(words_of_bits(slots)) else {
            return Err(ShaperError::TooSmall);
        };
        let Some((slots, nodes)) = rest.split_at_mut_checked(slots) else {
            return Err(ShaperError::TooSmall);
        };
        bits.fill(0);
        let base = now.wrapping_shr(shift).wrapping_shl(shift);
        Ok(Wheel { bits, slots, nodes, summary: 0, base, latest: now, shift, free: 0, used: 0, len: 0 })
    }

    /// Returns the number of handles that wait.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Returns whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the most handles that can wait.
    pub fn capacity(&self) -> usize {
        self.nodes.len().wrapping_div(NODE)
    }

    /// Returns the ticks of a slot: a handle is released late by less than this.
    pub fn granularity(&self) -> u64 {
        1u64.wrapping_shl(self.shift)
    }

    /// Returns how far ahead of now a departure may lie, in ticks: one slot less than all of them.
    pub fn horizon(&self) -> u64 {
        (self.slots.len() as u64).wrapping_sub(1).wrapping_shl(self.shift)
    }

    /// Checks that a handle with any departure up to `delay` ticks after `now` can be put in.
    ///
    /// # Errors
    /// [`ShaperError::Full`], [`TooFar`](ShaperError::TooFar), [`Behind`](ShaperError::Behind).
    pub fn has_room(&self, now: u64, delay: u64) -> Result<(), ShaperError> {
        if self.len() >= self.capacity() {
            return Err(ShaperError::Full);
        }
        if delay > self.horizon() {
            return Err(ShaperError::TooFar);
        }
        let now = self.later(now);
        self.base_for(now, now.wrapping_add(delay)).map(drop)
    }

    /// Returns the latest reading of the clock: this one, or that of an earlier call.
    pub(super) fn later(&self, now: u64) -> u64 {
        self.latest.wrapping_add(ahead(now, self.latest))
    }

    /// Puts a handle in, to be released from its departure on. A departure that has passed counts as `now`; a `now`
    /// that lies behind that of an earlier call counts as that one.
    ///
    /// # Errors
    /// [`ShaperError::Full`], [`TooFar`](ShaperError::TooFar), [`Behind`](ShaperError::Behind).
    ///
    /// # Cost
    /// O(1): five or six words of the memory written, no loop.
    pub fn insert(&mut self, now: u64, waiting: Waiting) -> Result<(), ShaperError> {
        if self.len() >= self.capacity() {
            return Err(ShaperError::Full);
        }
        let now = self.later(now);
        let due = now.wrapping_add(ahead(waiting.departure, now));
        let base = self.base_for(now, due)?;
        let node = self.take_node().ok_or(ShaperError::Full)?;
        (self.base, self.latest) = (base, now);
        let place = self.place(due);
        if let Some([handle, departure, link]) = node_of(self.nodes, node) {
            (*handle, *departure) = (waiting.handle, waiting.departure);
            *link = pair(waiting.level, 0);
        }
        let holds = self.holds(place);
        if let Some(slot) = self.slots.get_mut(place) {
            let (last, first) = if holds { halves(*slot) } else { (node, node) };
            *slot = pair(node, first);
            if holds {
                if let Some([_, _, link]) = node_of(self.nodes, last) {
                    *link = pair(halves(*link).0, node);
                }
            }
        }
        self.mark(place);
        self.len = self.len.wrapping_add(1);
        Ok(())
    }

    /// Takes out the next handle that is due at `now`; `None` if none is.
    ///
    /// Call again until there is none, or as often as time allows: what is due stays due.
    ///
    /// # Cost
    /// O(1), no loop.
    pub fn release(&mut self, now: u64) -> Option<Waiting> {
        let departure = self.next_departure()?;
        if ahead(departure, now) != 0 {
            return None;
        }
        self.take()
    }

    /// Takes out the first handle, due or not; `None` if nothing waits. For shutting down.
    ///
    /// # Cost
    /// O(1), no loop.
    pub fn take(&mut self) -> Option<Waiting> {
        let place = self.first()?;
        let (last, node) = halves(*self.slots.get(place)?);
        let [handle, departure, link] = node_of(self.nodes, node)?;
        let (level, next) = halves(*link);
        let taken = Waiting { handle: *handle, departure: *departure, level };
        *link = self.free as u64;
        self.free = node;
        self.len = self.len.wrapping_sub(1);
        if next == 0 {
            self.unmark(place);
        } else if let Some(slot) = self.slots.get_mut(place) {
            *slot = pair(last, next);
        }
        Some(taken)
    }

    /// Returns the departure of the handle that is released next: when to come back. `None` if nothing waits.
    ///
    /// No other handle is released before that tick, although one behind it in its slot may have an earlier departure.
    pub fn next_departure(&self) -> Option<u64> {
        let (_, node) = halves(*self.slots.get(self.first()?)?);
        self.nodes.get(first_word(node).wrapping_add(1)).copied()
    }

    /// Returns the slot of a time.
    fn place(&self, time: u64) -> usize {
        time.wrapping_shr(self.shift) as usize & self.slots.len().wrapping_sub(1)
    }

    /// Returns where the first slot must start so that this departure, which is not before now, has a slot.
    fn base_for(&self, now: u64, departure: u64) -> Result<u64, ShaperError> {
        let (slots, shift) = (self.slots.len() as u64, self.shift);
        let reaches = |base: u64| ahead(departure, base).wrapping_shr(shift) < slots;
        if reaches(self.base) {
            return Ok(self.base);
        }
        // Base may move up to now, but not past what waits.
        let passed = ahead(now, self.base).wrapping_shr(shift);
        if !reaches(self.base.wrapping_add(passed.wrapping_shl(shift))) {
            return Err(ShaperError::TooFar);
        }
        let start = self.place(self.base);
        let mask = slots.wrapping_sub(1);
        let empty = self.first().map_or(passed, |place| place.wrapping_sub(start) as u64 & mask);
        let base = self.base.wrapping_add(passed.min(empty).wrapping_shl(shift));
        if reaches(base) {
            Ok(base)
        } else {
            Err(ShaperError::Behind)
        }
    }

    /// Returns the first slot from base on that holds anything.
    fn first(&self) -> Option<usize> {
        let start = self.place(self.base);
        let (word, bit) = word_and_bit(start);
        let here = self.bits.get(word)? & u64::MAX.wrapping_shl(bit);
        if here != 0 {
            return Some(at(word, here));
        }
        // First the words behind this one, then those from the first on. This one, for its lower bits, comes last.
        let behind = self.summary & (u64::MAX - 1).wrapping_shl(word as u32);
        let from = if behind != 0 { behind } else { self.summary };
        if from == 0 {
            return None;
        }
        let word = from.trailing_zeros() as usize;
        Some(at(word, *self.bits.get(word)?))
    }

    fn holds(&self, place: usize) -> bool {
        let (word, bit) = word_and_bit(place);
        self.bits.get(word).is_some_and(|bits| bits.wrapping_shr(bit) & 1 != 0)
    }

    fn mark(&mut self, place: usize) {
        let (word, bit) = word_and_bit(place);
        if let Some(bits) = self.bits.get_mut(word) {
            *bits |= 1u64.wrapping_shl(bit);
            self.summary |= 1u64.wrapping_shl(word as u32);
        }
    }

    fn unmark(&mut self, place: usize) {
        let (word, bit) = word_and_bit(place);
        if let Some(bits) = self.bits.get_mut(word) {
            *bits &= !1u64.wrapping_shl(bit);
            if *bits == 0 {
                self.summary &= !1u64.wrapping_shl(word as u32);
            }
        }
    }

    /// Takes a node that nothing uses: one that was given back, else one that was never used.
    fn take_node(&mut self) -> Option<u32> {
        if self.free == 0 {
            if self.used as usize >= self.capacity() {
                return None;
            }
            self.used = self.used.wrapping_add(1);
            return Some(self.used);
        }
        let node = self.free;
        let [_, _, link] = node_of(self.nodes, node)?;
        self.free = halves(*link).1;
        Some(node)
    }
}

/// Returns how far `time` lies ahead of `from`, 0 if it lies behind. Times may wrap: 2^63 or more ahead is behind.
pub(super) const fn ahead(time: u64, from: u64) -> u64 {
    let ticks = time.wrapping_sub(from);
    if ticks >> 63 == 0 {
        ticks
    } else {
        0
    }
}

/// Returns the words of bits for this many slots.
const fn words_of_bits(slots: usize) -> usize {
    slots / BITS
}

/// Returns word and bit of a slot among the bits.
const fn word_and_bit(place: usize) -> (usize, u32) {
    (place / BITS, (place % BITS) as u32)
}

/// Returns the slot of the lowest bit of a word.
const fn at(word: usize, bits: u64) -> usize {
    word.wrapping_mul(BITS).wrapping_add(bits.trailing_zeros() as usize)
}

/// Returns where a node starts. Nodes are numbered from 1.
const fn first_word(node: u32) -> usize {
    (node as usize).wrapping_sub(1).wrapping_mul(NODE)
}

/// Returns the words of a node.
fn node_of(nodes: &mut [u64], node: u32) -> Option<&mut [u64; NODE]> {
    let start = first_word(node);
    nodes.get_mut(start..start.wrapping_add(NODE))?.try_into().ok()
}

const fn pair(high: u32, low: u32) -> u64 {
    (high as u64) << 32 | low as u64
}

const fn halves(word: u64) -> (u32, u32) {
    ((word >> 32) as u32, word as u32)
}

//! Puts records into the order of their times, within a window.
//!
//! A server writes a line when a request ends, and several workers write at once. So records are held until one comes
//! that is newer by the window. Records in order, which is nearly all, wait in a queue at no cost; the others in a
//! heap.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// A record with all that is counted of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Its time, in nanoseconds.
    pub time: u64,
    /// Its number in the input: of equal times the first comes first.
    pub number: u64,
    /// Its units.
    pub cost: u64,
    /// The hash of its key.
    pub hash: u64,
    /// The hashes of the prefixes of its address that limits count by.
    pub wide: [u64; RUNGS],
    /// The number of its key, or [`NO_KEY`](super::keys::NO_KEY).
    pub key: u32,
    /// Whether its address is one of IPv4, if a ladder asks.
    pub is_v4: bool,
}

impl Held {
    /// Returns the hash that a limit counts by: 0 means the key itself, and from 1 on the prefixes.
    pub fn hash_of(&self, place: usize) -> u64 {
        match place.checked_sub(1) {
            None => self.hash,
            Some(wide) => self.wide[wide],
        }
    }
}

/// Most prefixes that limits count by, besides the key itself.
pub const RUNGS: usize = 8;

/// Most records that wait; if more lie in one window, the oldest leave it early. There is one more between a push and a
/// pop. So neither the queue nor the heap has room for more than 2^21 records, 40 bytes each. If limits count by
/// prefixes, there are 64 bytes more for each record, and 4 for its place.
pub const MOST: usize = (1 << 21) - 1;
const _: () = assert!(size_of::<Waiting>() == 40);

/// A record that waits. The hashes of its prefixes stand elsewhere: few plans have any.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    time: u64,
    number: u64,
    cost: u64,
    hash: u64,
    key: u32,
    /// Twice the place of the hashes of its prefixes, and 1 more if its address is one of IPv4.
    place: u32,
}
const _: () = assert!(MOST < (NOWHERE >> 1) as usize);
/// The place of a record whose hashes are all 0.
const NOWHERE: u32 = u32::MAX - 1;

/// Holds records for a window of time.
pub struct Order {
    window: u64,
    newest: u64,
    left: u64,
    queue: VecDeque<Waiting>,
    heap: BinaryHeap<Reverse<Waiting>>,
    /// The hashes of prefixes, and the places there that are free.
    wide: Vec<[u64; RUNGS]>,
    free: Vec<u32>,
    /// Records that came later than the window allows. Each counts at the time of the last record before it.
    pub late: u64,
    /// Records that left early, because too many waited.
    pub early: u64,
    /// The window that would have been long enough for all, in nanoseconds; 0 if no record was late.
    pub needed: u64,
}

impl Order {
    /// Starts with a window in nanoseconds.
    pub fn new(window: u64) -> Order {
        let (queue, heap) = (VecDeque::new(), BinaryHeap::new());
        let (wide, free) = (Vec::new(), Vec::new());
        Order { window, newest: 0, left: 0, queue, heap, wide, free, late: 0, early: 0, needed: 0 }
    }

    /// Takes a record.
    pub fn push(&mut self, mut held: Held) {
        if held.time < self.left {
            self.late += 1;
            self.needed = self.needed.max((self.newest - held.time).saturating_add(1));
            held.time = self.left;
        }
        self.newest = self.newest.max(held.time);
        let waiting = self.wait(&held);
        match self.queue.back() {
            Some(last) if last.time > held.time => self.heap.push(Reverse(waiting)),
            _ => self.queue.push_back(waiting),
        }
    }

    /// Puts the hashes of prefixes away.
    fn wait(&mut self, held: &Held) -> Waiting {
        let Held { time, number, cost, hash, wide, key, is_v4 } = *held;
        let place = if wide == [0; RUNGS] {
            NOWHERE
        } else if let Some(place) = self.free.pop() {
            self.wide[place as usize] = wide;
            place << 1
        } else {
            self.wide.push(wide);
            (self.wide.len() as u32 - 1) << 1
        };
        Waiting { time, number, cost, hash, key, place: place | u32::from(is_v4) }
    }

    /// Takes them back.
    fn leave(&mut self, waiting: Waiting) -> Held {
        let Waiting { time, number, cost, hash, key, place } = waiting;
        let (place, is_v4) = (place & NOWHERE, place & 1 == 1);
        let wide = match place {
            NOWHERE => [0; RUNGS],
            place => {
                self.free.push(place >> 1);
                self.wide[place as usize >> 1]
            }
        };
        Held { time, number, cost, hash, wide, key, is_v4 }
    }

    /// Returns the oldest record, if it has waited for long enough; with `all`, in any case.
    pub fn pop(&mut self, all: bool) -> Option<Held> {
        let from_heap = match (self.queue.front(), self.heap.peek()) {
            (Some(queue), Some(Reverse(heap))) => heap < queue,
            (None, Some(_)) => true,
            (Some(_), None) => false,
            (None, None) => return None,
        };
        let oldest =
            if from_heap { self.heap.peek().map(|held| held.0) } else { self.queue.front().copied() }?;
        let full = self.queue.len() + self.heap.len() > MOST;
        if !all && self.newest - oldest.time < self.window {
            if !full {
                return None;
            }
            self.early += 1;
        }
        if from_heap {
            self.heap.pop();
        } else {
            self.queue.pop_front();
        }
        self.left = oldest.time;
        Some(self.leave(oldest))
    }

    /// Renumbers the keys of what waits.
    pub fn renumber(&mut self, to: &[u32]) {
        let new = |key: u32| to.get(key as usize).copied().unwrap_or(key);
        self.queue.iter_mut().for_each(|held| held.key = new(held.key));
        let heap = std::mem::take(&mut self.heap).into_iter();
        self.heap = heap.map(|Reverse(held)| Reverse(Waiting { key: new(held.key), ..held })).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(window: u64, times: &[u64]) -> (Vec<(u64, u64)>, u64, u64) {
        let mut order = Order::new(window);
        let mut out = Vec::new();
        for (number, time) in times.iter().enumerate() {
            order.push(Held {
                time: *time,
                number: number as u64,
                cost: 1,
                hash: 0,
                wide: [0; RUNGS],
                key: 0,
                is_v4: false,
            });
            out.extend(std::iter::from_fn(|| order.pop(false)).map(|held| (held.time, held.number)));
        }
        out.extend(std::iter::from_fn(|| order.pop(true)).map(|held| (held.time, held.number)));
        (out, order.late, order.needed)
    }

    #[test]
    fn what_is_within_the_window_comes_out_in_order() {
        let mut state = 1u64;
        for _ in 0..200 {
            let mut times = Vec::new();
            for step in 0..300u64 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                times.push(1_000 + step * 3 - (state >> 40) % 50);
            }
            let (out, late, _) = sorted(60, &times);
            let mut want: Vec<_> =
                times.iter().enumerate().map(|(number, time)| (*time, number as u64)).collect();
            want.sort();
            assert_eq!((out, late), (want, 0));
        }
    }

    #[test]
    fn what_comes_too_late_is_counted_and_keeps_its_units() {
        let (out, late, needed) = sorted(10, &[100, 150, 90, 200]);
        assert_eq!((late, needed), (1, 61));
        assert_eq!(out, [(100, 0), (100, 2), (150, 1), (200, 3)]);
    }

    #[test]
    fn what_waits_comes_out_as_it_went_in() {
        let mut order = Order::new(60);
        let held = |number: u64| Held {
            // Some come late, some have no prefix.
            time: 1_000 + number * 3 - number % 7 * 5,
            number,
            cost: number + 1,
            hash: !number,
            wide: std::array::from_fn(|rung| if number.is_multiple_of(4) { 0 } else { number << rung }),
            key: number as u32,
            is_v4: number.is_multiple_of(3),
        };
        let mut out = Vec::new();
        for number in 0..500 {
            order.push(held(number));
            out.extend(std::iter::from_fn(|| order.pop(false)));
        }
        assert!(order.wide.len() < 40, "places are used again: {}", order.wide.len());
        out.extend(std::iter::from_fn(|| order.pop(true)));
        out.sort_by_key(|held| held.number);
        assert_eq!((out, order.late), ((0..500).map(held).collect::<Vec<_>>(), 0));
    }

    #[test]
    fn the_window_that_is_named_is_long_enough() {
        let times = [500, 400, 480, 300, 200, 260, 100];
        let (_, late, needed) = sorted(10, &times);
        assert_eq!((late, needed), (4, 401));
        assert_eq!(sorted(needed, &times).1, 0);
    }

    #[test]
    fn what_waits_never_doubles_beyond_the_bound() {
        let mut order = Order::new(60);
        for number in 0..MOST as u64 + 10 {
            let (hash, wide) = (0, [0; RUNGS]);
            order.push(Held { time: 1, number, cost: 1, hash, wide, key: 0, is_v4: false });
            while order.pop(false).is_some() {}
        }
        assert_eq!((order.early, order.queue.len()), (10, MOST));
        assert!(order.queue.capacity() <= 1 << 21, "{}", order.queue.capacity());
    }

    #[test]
    fn without_a_window_nothing_waits() {
        let mut order = Order::new(0);
        order.push(Held { time: 5, number: 0, cost: 1, hash: 0, wide: [0; RUNGS], key: 0, is_v4: false });
        assert_eq!(order.pop(false).map(|held| held.time), Some(5));
    }
}

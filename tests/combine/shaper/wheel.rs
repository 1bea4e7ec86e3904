//! The wheel against a sorted list with unbounded time.

use std::collections::BTreeMap;

use crate::common::{cases, Rng};
use tatcell::{wheel_words, Shaper, ShaperError, Waiting, Wheel};

/// What waits, by (slot of unbounded time, order of arrival).
struct List {
    waiting: BTreeMap<(u128, u64), (u64, u128)>,
    slots: u128,
    granularity: u128,
    capacity: usize,
    latest: u128,
    arrivals: u64,
}

impl List {
    fn insert(&mut self, now: u128, handle: u64, departure: u128) -> Result<(), ShaperError> {
        if self.waiting.len() == self.capacity {
            return Err(ShaperError::Full);
        }
        let now = self.latest.max(now);
        let (slot, present) = (departure.max(now) / self.granularity, now / self.granularity);
        if slot - present >= self.slots {
            return Err(ShaperError::TooFar);
        }
        let oldest = self.waiting.keys().next().map_or(present, |(slot, _)| *slot);
        if slot - oldest.min(present) >= self.slots {
            return Err(ShaperError::Behind);
        }
        self.latest = now;
        self.arrivals += 1;
        self.waiting.insert((slot, self.arrivals), (handle, departure));
        Ok(())
    }

    fn release(&mut self, now: u128) -> Option<(u64, u128)> {
        let first = self.waiting.first_entry()?;
        (first.get().1 <= now).then(|| first.remove())
    }
}

struct World {
    start: u128,
    list: List,
    next: u64,
    out: u64,
}

impl World {
    fn new(rng: &mut Rng, slots: usize, granularity: u64, capacity: usize) -> World {
        // Some start just before the 64-bit clock wraps, some at 0.
        let start = match rng.below(3) {
            0 => 0,
            1 => rng.scaled(62) as u128,
            _ => u64::MAX as u128 - rng.scaled(30) as u128,
        };
        let list = List {
            waiting: BTreeMap::new(),
            slots: slots as u128,
            granularity: granularity as u128,
            capacity,
            latest: start,
            arrivals: 0,
        };
        World { start, list, next: 0, out: 0 }
    }
}

/// One world of random size: inserts, releases of a bounded number, looks, taking out; the clock creeps, jumps over
/// several turns of the wheel and steps back.
fn play(rng: &mut Rng, steps: u64, seen: &mut BTreeMap<&'static str, u64>) {
    let (slots, granularity) = (64 << rng.below(7), 1u64 << rng.below(12));
    let capacity = rng.within(1, 60) as usize;
    let mut w = World::new(rng, slots, granularity, capacity);
    let mut memory = vec![rng.next(); wheel_words(slots, capacity) + rng.below(3) as usize];
    let mut wheel = Wheel::new(&mut memory, slots, granularity, w.start as u64).expect("a wheel");
    assert_eq!((wheel.capacity(), wheel.granularity()), (capacity, granularity));
    let turn = slots as u64 * granularity;
    assert_eq!(wheel.horizon(), turn - granularity);
    let mut top = w.start;
    for _ in 0..steps {
        top += match rng.below(40) {
            0 => rng.below(4 * turn) as u128,
            1..=3 => rng.below(turn) as u128,
            4..=15 => rng.below(2 * granularity) as u128,
            _ => 0,
        };
        // Not before the start: unbounded time does not go below it.
        let back = if rng.one_in(8) { rng.below(2 * turn) as u128 } else { 0 };
        let now = (top - back.min(top)).max(w.start);
        match rng.below(10) {
            0..=4 => {
                let departure = match rng.below(8) {
                    0 => now,
                    1 => now.saturating_sub(rng.below(turn) as u128).max(w.start),
                    2 => now + rng.below(3 * turn) as u128,
                    3 => now + (turn - granularity) as u128 - (rng.below(3) as u128),
                    _ => now + rng.below(turn - granularity + 1) as u128,
                };
                let delay = departure.saturating_sub(w.list.latest.max(now)) as u64;
                let room = wheel.has_room(now as u64, delay);
                let waiting =
                    Waiting { handle: w.next, departure: departure as u64, level: w.next as u32 % 5 };
                let (got, want) = (wheel.insert(now as u64, waiting), w.list.insert(now, w.next, departure));
                assert_eq!(got, want);
                assert!(room.is_err() || got.is_ok(), "room for {delay}, but {got:?}");
                w.next += u64::from(got.is_ok());
                let what = match got {
                    Ok(()) => "in",
                    Err(ShaperError::Full) => "full",
                    Err(ShaperError::TooFar) => "far",
                    Err(ShaperError::Behind) => "behind",
                    Err(e) => panic!("{e}"),
                };
                *seen.entry(what).or_default() += 1;
            }
            5..=8 => {
                for _ in 0..rng.scaled(6) {
                    let (got, want) = (wheel.release(now as u64), w.list.release(now));
                    let got_pair = got.map(|due| (due.handle, due.departure));
                    assert_eq!(got_pair, want.map(|(handle, departure)| (handle, departure as u64)));
                    let Some(due) = got else { break };
                    assert_eq!(due.level, due.handle as u32 % 5);
                    assert!(want.is_some_and(|(_, departure)| departure <= now), "early");
                    w.out += 1;
                    *seen.entry("out").or_default() += 1;
                }
                // Late by less than a slot: whatever is left and was due before this slot is behind the bound alone.
                if wheel.release(now as u64).is_none() {
                    let slot = now / granularity as u128;
                    assert!(w.list.waiting.keys().all(|(due, _)| *due >= slot), "late");
                } else {
                    w.list.release(now);
                    w.out += 1;
                }
            }
            _ => {
                let first = w.list.waiting.values().next();
                assert_eq!(wheel.next_departure(), first.map(|(_, departure)| *departure as u64));
                assert_eq!((wheel.len(), wheel.is_empty()), (w.list.waiting.len(), first.is_none()));
                if rng.one_in(20) {
                    let want = w.list.waiting.pop_first().map(|(_, (handle, _))| handle);
                    assert_eq!(wheel.take().map(|due| due.handle), want);
                    w.out += u64::from(want.is_some());
                }
            }
        }
    }
    let left: Vec<u64> = std::iter::from_fn(|| wheel.take()).map(|due| due.handle).collect();
    assert_eq!(left, w.list.waiting.values().map(|(handle, _)| *handle).collect::<Vec<_>>());
    assert_eq!(w.out + left.len() as u64, w.next, "lost, or given out twice");
    assert!(wheel.is_empty() && wheel.release(u64::MAX / 2).is_none());
}

#[test]
fn a_wheel_gives_out_what_a_sorted_list_does() {
    let seen = std::cell::RefCell::new(BTreeMap::new());
    cases(400, |rng| play(rng, 1_500, &mut seen.borrow_mut()));
    let seen = seen.into_inner();
    println!("wheel: {seen:?}");
    for what in ["in", "out", "full", "far", "behind"] {
        assert!(seen.get(what).is_some_and(|&n| n > 1_000), "{what} was hardly reached");
    }
}

/// Within a slot, the first in is the first out, though its departure is the later one; from slot to slot by departure.
#[test]
fn order_is_by_slot_and_then_by_arrival() {
    let mut memory = [0; wheel_words(64, 8)];
    let mut wheel = Wheel::new(&mut memory, 64, 16, 0).unwrap();
    for (handle, departure) in [(0, 40), (1, 33), (2, 20), (3, 900), (4, 47)] {
        wheel.insert(0, Waiting { handle, departure, level: 0 }).unwrap();
    }
    let mut order = Vec::new();
    while let Some(now) = wheel.next_departure() {
        order.push((wheel.release(now).unwrap().handle, now));
    }
    assert_eq!(order, [(2, 20), (0, 40), (1, 33), (4, 47), (3, 900)]);
}

#[test]
fn a_delay_up_to_the_horizon_has_room() {
    let mut memory = [0; wheel_words(64, 1)];
    let mut wheel = Wheel::new(&mut memory, 64, 16, 5).unwrap();
    let horizon = wheel.horizon();
    assert_eq!(horizon, 63 * 16);
    assert_eq!(wheel.has_room(5, horizon), Ok(()));
    assert_eq!(wheel.has_room(5, horizon + 1), Err(ShaperError::TooFar));
    wheel.insert(5, Waiting { handle: 1, departure: 5 + horizon, level: 0 }).unwrap();
    assert_eq!(wheel.has_room(5, 0), Err(ShaperError::Full));
}

/// What was decided elsewhere waits in a shaper as in its wheel.
#[test]
fn a_shaper_keeps_what_was_decided_elsewhere() {
    let mut memory = [0; wheel_words(64, 2)];
    let mut shaper = Shaper::new(&mut memory, 64, 16, 0).unwrap();
    let [late, early] =
        [(7, 500, 2), (8, 40, 1)].map(|(handle, departure, level)| Waiting { handle, departure, level });
    assert_eq!([shaper.insert(0, late), shaper.insert(0, early)], [Ok(()); 2]);
    assert_eq!(shaper.insert(0, late), Err(ShaperError::Full));
    assert_eq!((shaper.release(39), shaper.release(40), shaper.release(499)), (None, Some(early), None));
    assert_eq!((shaper.take(), shaper.take()), (Some(late), None), "due or not");
}

#[test]
fn what_cannot_be_a_wheel_is_refused() {
    let mut memory = vec![7; wheel_words(64, 4)];
    let mut made = |slots, granularity| Wheel::new(&mut memory, slots, granularity, 0).map(drop);
    for slots in [0, 1, 32, 63, 65, 100, 4095, 8192, usize::MAX] {
        assert_eq!(made(slots, 1), Err(ShaperError::BadSlots), "{slots} slots");
    }
    for granularity in [0, 3, 1_000_000, 1 << 56, 1 << 63, u64::MAX] {
        assert_eq!(made(64, granularity), Err(ShaperError::BadGranularity), "{granularity} ticks");
    }
    assert_eq!(made(64, 1 << 55), Ok(()));
    assert_eq!(made(128, 1), Err(ShaperError::TooSmall));
    let mut memory = vec![7; wheel_words(64, 1) - 1];
    assert_eq!(Wheel::new(&mut memory, 64, 1, 0).map(drop), Err(ShaperError::TooSmall));
    assert!(memory.iter().all(|&word| word == 7), "touched");
    assert_eq!(wheel_words(usize::MAX, usize::MAX), usize::MAX);
}

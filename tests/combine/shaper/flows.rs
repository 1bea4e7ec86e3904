//! Flows of a shaper against the textbook's queue, and against their own rates.

use std::collections::VecDeque;

use crate::common::{cases, memory, Rng};
use tatcell::{
    wheel_words, Cell, Cell32, Chain, ChainError, FullPolicy, Limit, LimitSpec, Link, Shaper, ShaperError,
    Table, TableLimit, TableOptions, Verdict,
};

/// A queue of Q places that is served at one job every T: what the leaky bucket as a queue is defined as.
struct Textbook {
    interval: u64,
    places: u64,
    /// When the last job that was taken in leaves.
    last: Option<u64>,
}

impl Textbook {
    /// When a job that comes now leaves; None: all places are taken.
    fn arrive(&mut self, now: u64) -> Option<u64> {
        let leaves = self.last.map_or(now, |last| now.max(last + self.interval));
        if leaves - now > self.places * self.interval {
            return None;
        }
        self.last = Some(leaves);
        Some(leaves)
    }
}

/// What a shaper runs on: cells of one limit, or keys of a table.
enum Keys<'a> {
    Cells(&'a [Cell], &'a Limit),
    Table(&'a Table<'a>, &'a TableLimit),
}

impl Keys<'_> {
    fn link(&self, key: usize) -> Link<'_> {
        match self {
            Keys::Cells(cells, limit) => Link::cell(&cells[key], limit, 1),
            Keys::Table(table, limit) => Link::key(*table, limit, &key.to_le_bytes(), 1).unwrap(),
        }
    }
}

/// Random flows of unit jobs: departures are the textbook's, each handle comes out once, in its flow's order, on time,
/// and no flow ever has more waiting than its places.
fn play(rng: &mut Rng, keys: &Keys<'_>, count: usize, (interval, places): (u64, u64), refused: &mut u64) {
    let coarse = (interval * places).next_power_of_two() / 1024;
    let granularity = coarse.max(1 << rng.below(9));
    let reach = (2 * interval * places).div_ceil(granularity) + 2;
    let slots = (reach as usize).next_power_of_two().clamp(64, 4096);
    let mut words = vec![0; wheel_words(slots, 4_000)];
    let mut now = rng.scaled(40);
    let mut latest = now;
    let mut shaper = Shaper::new(&mut words, slots, granularity, now).unwrap();
    let mut books: Vec<Textbook> = (0..count).map(|_| Textbook { interval, places, last: None }).collect();
    let mut waiting: Vec<VecDeque<(u64, u64)>> = vec![VecDeque::new(); count];
    let mut released: Vec<Vec<u64>> = vec![Vec::new(); count];
    let (mut handle, mut late) = (0u64, 0);
    let delay_of_caller = rng.pick(&[0, granularity, 5 * interval]);
    for _ in 0..4_000 {
        now += match rng.below(4) {
            0 => rng.below(delay_of_caller + 1),
            1 => rng.below(interval / 2 + 1),
            _ => 0,
        };
        let stale = if rng.one_in(10) { rng.below(now - latest + interval + 1).min(now) } else { 0 };
        while let Some(due) = shaper.release(now) {
            let key = due.handle as usize % count;
            let (first, departure) = waiting[key].pop_front().expect("given out, though nothing waits");
            assert_eq!((due.handle, due.departure), (first, departure), "out of its flow's order");
            assert!(departure <= now, "early");
            late = late.max(now - departure);
            released[key].push(now);
        }
        for (flow, waiting) in waiting.iter().enumerate() {
            let ahead = waiting.iter().filter(|(_, departure)| *departure > now).count() as u64;
            assert!(ahead <= places, "flow {flow} has {ahead} waiting");
            assert!(waiting.iter().all(|(_, departure)| departure + granularity > now), "late by a slot");
        }
        let key = rng.below(count as u64) as usize;
        let handle_of_key = handle * count as u64 + key as u64;
        let made = shaper.submit(now - stale, &keys.link(key), handle_of_key).unwrap();
        // A reading that is behind counts as the latest one that was taken in.
        let at = latest.max(now - stale);
        match books[key].arrive(at) {
            Some(leaves) => {
                latest = at;
                assert_eq!((made.verdict, made.departure), (Verdict::Conforming, leaves));
                waiting[key].push_back((handle_of_key, leaves));
                handle += 1;
            }
            None => {
                assert_eq!(made.verdict, Verdict::NonConforming);
                let wait = books[key].last.unwrap() + interval - at;
                assert_eq!(made.retry_after, wait - places * interval);
                *refused += 1;
            }
        }
    }
    let left: usize = waiting.iter().map(VecDeque::len).sum();
    assert_eq!(shaper.wheel().len(), left, "lost");
    // In any time t of what was given out: (t + how late the latest was) / T + 1.
    for flow in &released {
        for (i, from) in flow.iter().enumerate() {
            for (j, to) in flow.iter().enumerate().skip(i) {
                let units = (j - i + 1) as u64;
                assert!(units <= (to - from + late) / interval + 1, "{units} units in {} ticks", to - from);
            }
        }
    }
}

#[test]
fn departures_of_flows_are_those_of_the_textbook_s_queue() {
    let refused = std::cell::Cell::new(0);
    cases(60, |rng| {
        // Whole ticks, so that nothing is rounded: a queue of Q places is a delay of Q * T.
        let (interval, places) = (1 << rng.within(10, 16), rng.within(1, 30));
        let spec = LimitSpec::new(1, interval, 1).max_delay(places * interval);
        let count = rng.within(1, 12) as usize;
        let mut all = 0;
        if rng.one_in(2) {
            let limit = spec.build().unwrap();
            let cells: Vec<Cell> = (0..count).map(|_| Cell::new()).collect();
            play(rng, &Keys::Cells(&cells, &limit), count, (interval, places), &mut all);
        } else {
            let lines = memory(66);
            let options = TableOptions::new(spec).seed([3; 16]).policy(FullPolicy::Deny);
            let table = Table::init(&lines, &options).unwrap();
            let limit = table.limit(&spec).unwrap();
            play(rng, &Keys::Table(&table, &limit), count, (interval, places), &mut all);
        }
        refused.set(refused.get() + all);
    });
    assert!(refused.get() > 1_000, "hardly any queue was full");
}

/// With a burst of B, the first B leave at once, and as many as the delay is long wait.
#[test]
fn a_burst_does_not_wait_and_the_delay_bounds_the_queue() {
    let limit = LimitSpec::new(1, 100, 3).max_delay(400).build().unwrap();
    let cell = Cell::new();
    let mut words = [0; wheel_words(64, 20)];
    let mut shaper = Shaper::new(&mut words, 64, 16, 0).unwrap();
    let departures: Vec<_> = (0..9)
        .map(|i| shaper.submit(0, &Link::cell(&cell, &limit, 1), i).unwrap())
        .filter(|made| made.passes())
        .map(|made| made.departure)
        .collect();
    assert_eq!(departures, [0, 0, 0, 100, 200, 300, 400]);
    assert_eq!(shaper.submit(0, &Link::cell(&cell, &limit, 4), 9).unwrap().verdict, Verdict::Never);
    assert_eq!(shaper.wheel().len(), 7);
}

/// Refused by name: cells and wheel are as they were.
fn refuses(shaper: &mut Shaper<'_>, cells: [&Cell; 2], now: u64, link: &Link<'_>, want: ShaperError) {
    let before = (cells.map(Cell::word), shaper.wheel().len());
    assert_eq!(shaper.submit(now, link, 7), Err(want));
    assert_eq!((cells.map(Cell::word), shaper.wheel().len()), before);
}

/// What the shaper refuses by name reserved nothing: the cell is as it was, and nothing more waits.
#[test]
fn what_finds_no_place_reserves_nothing() {
    let limit = LimitSpec::new(1, 100, 1).max_delay(900).build().unwrap();
    let far = LimitSpec::new(1, 100, 1).max_delay(16 * 63 + 1).build().unwrap();
    let window = Limit::fixed_window(5, 100).unwrap();
    let (cell, other) = (Cell::new(), Cell::new());
    let cells = [&cell, &other];
    let mut words = [0; wheel_words(64, 3)];
    let mut shaper = Shaper::new(&mut words, 64, 16, 0).unwrap();
    refuses(&mut shaper, cells, 0, &Link::cell(&other, &far, 1), ShaperError::TooFar);
    refuses(
        &mut shaper,
        cells,
        0,
        &Link::cell(&other, &window, 1),
        ShaperError::Chain(ChainError::BadAlgorithm),
    );
    assert!(shaper.submit(0, &Link::cell(&cell, &limit, 1), 0).unwrap().passes());
    // The first waits still when the slots no longer reach from there to now and 900 more.
    for (now, handle) in [(100, 1), (107, 2)] {
        assert!(shaper.submit(now, &Link::cell(&cell, &limit, 1), handle).unwrap().passes());
    }
    refuses(&mut shaper, cells, 107, &Link::cell(&cell, &limit, 1), ShaperError::Full);
    assert_eq!(shaper.release(127).map(|due| due.handle), Some(0));
    assert_eq!(shaper.release(127).map(|due| due.handle), Some(1));
    refuses(&mut shaper, cells, 1_100, &Link::cell(&cell, &limit, 1), ShaperError::Behind);
    assert_eq!(shaper.release(1_100).map(|due| due.handle), Some(2));
    assert!(shaper.submit(1_100, &Link::cell(&cell, &limit, 1), 3).unwrap().passes());
}

#[test]
fn a_limit_of_another_table_is_refused() {
    let (a, b) = (memory(66), memory(66));
    let spec = LimitSpec::new(1, 1 << 20, 1).max_delay(1 << 21);
    let slow = LimitSpec::new(1, 1 << 30, 1).max_delay(1 << 31);
    let one = Table::init(&a, &TableOptions::new(spec).seed([1; 16])).unwrap();
    let two = Table::init(&b, &TableOptions::new(slow).seed([1; 16])).unwrap();
    let limit = two.limit(&slow).unwrap();
    let mut words = [0; wheel_words(64, 3)];
    let mut shaper = Shaper::new(&mut words, 64, 1 << 26, 0).unwrap();
    let made = shaper.submit(0, &Link::key(&one, &limit, b"k", 1).unwrap(), 1);
    assert_eq!(made, Err(ShaperError::Chain(ChainError::ForeignLimit)));
    assert!(shaper.wheel().is_empty());
}

/// A chain departs at the latest of its links, and what one of them refuses charges none.
#[test]
fn a_chain_waits_for_the_latest_of_its_links() {
    let fast = LimitSpec::new(1, 10, 1).max_delay(50).build().unwrap();
    let slow = LimitSpec::new(1, 100, 1).max_delay(200).build32().unwrap();
    let (cell, small) = (Cell::new(), Cell32::new());
    let chain = Chain::new(&[Link::cell(&cell, &fast, 1), Link::cell32(&small, &slow, 1)]).unwrap();
    let mut words = [0; wheel_words(64, 8)];
    let mut shaper = Shaper::new(&mut words, 64, 4, 0).unwrap();
    let made: Vec<_> = (0..4).map(|i| shaper.submit_chain(0, &chain, i).unwrap()).collect();
    assert_eq!([made[0].departure, made[1].departure, made[2].departure], [0, 100, 200]);
    assert_eq!((made[3].verdict, made[3].policy, made[3].retry_after), (Verdict::NonConforming, 1, 100));
    let order: Vec<_> =
        std::iter::from_fn(|| shaper.next_departure().map(|now| (shaper.release(now).unwrap().handle, now)))
            .collect();
    assert_eq!(order, [(0, 0), (1, 100), (2, 200)]);
    // One slot less than the longer of both delays.
    let mut words = [0; wheel_words(64, 8)];
    let mut short = Shaper::new(&mut words, 64, 2, 0).unwrap();
    let word = cell.word();
    assert_eq!(short.submit_chain(0, &chain, 9), Err(ShaperError::TooFar));
    assert_eq!(cell.word(), word);
}

/// Two shapers of two cores on one cell: together they keep its rate, and each its order.
#[test]
fn shapers_share_a_cell() {
    const EACH: u64 = 2_000;
    let limit = LimitSpec::new(1, 64, 1).max_delay(64 * 2 * EACH).build().unwrap();
    let cell = Cell::new();
    let run = |_: usize| {
        let mut words = vec![0; wheel_words(4096, EACH as usize)];
        let mut shaper = Shaper::new(&mut words, 4096, 64, 0).unwrap();
        let mut contended = 0;
        for handle in 0..EACH {
            let mut made = shaper.submit(0, &Link::cell(&cell, &limit, 1), handle).unwrap();
            while made.verdict == Verdict::Contended {
                contended += 1;
                made = shaper.submit(0, &Link::cell(&cell, &limit, 1), handle).unwrap();
            }
            assert!(made.passes());
        }
        let mut out = Vec::new();
        while let Some(due) = shaper.release(u64::MAX / 2) {
            assert_eq!(due.handle, out.len() as u64, "out of order");
            out.push(due.departure);
        }
        (out, contended)
    };
    let mut all = std::thread::scope(|s| {
        let other = s.spawn(|| run(1));
        let (mut mine, _) = run(0);
        mine.extend(other.join().unwrap().0);
        mine
    });
    all.sort_unstable();
    assert_eq!(all, (0..2 * EACH).map(|i| i * 64).collect::<Vec<_>>(), "a place twice, or none");
}

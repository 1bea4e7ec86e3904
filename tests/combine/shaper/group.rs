//! Groups against the formulas of IEEE 802.1Qcr, and against their own promise among threads.

use crate::common::{cases, memory, Rng};
use tatcell::{
    wheel_words, Cell, Cell32, ChainError, Decision, ExclusiveCell, Group, Limit, LimitSpec, Link, Shaper,
    Table, TableOptions, Verdict,
};

/// The eligibility time computation of 802.1Qcr, in ticks of the bucket's byte time: one byte is `t` ticks.
struct Standard {
    t: i128,
    committed_burst: i128,
    max_residence: i128,
    bucket_empty: i128,
}

impl Standard {
    fn new(t: u64, burst: u64, max_residence: u64) -> Standard {
        let (t, committed_burst) = (t as i128, burst as i128);
        Standard {
            t,
            committed_burst,
            max_residence: max_residence as i128,
            bucket_empty: -committed_burst * t,
        }
    }

    /// The eligibility time of a frame, or None where it is discarded. `group` is the group's.
    fn frame(&mut self, arrival: i128, length: i128, group: &mut i128) -> Option<i128> {
        let length_recovery = length * self.t;
        let empty_to_full = self.committed_burst * self.t;
        let scheduler_eligibility = self.bucket_empty + length_recovery;
        let bucket_full = self.bucket_empty + empty_to_full;
        let eligibility = arrival.max(*group).max(scheduler_eligibility);
        if eligibility > arrival + self.max_residence {
            return None;
        }
        *group = eligibility;
        self.bucket_empty = if eligibility < bucket_full {
            scheduler_eligibility
        } else {
            scheduler_eligibility + eligibility - bucket_full
        };
        Some(eligibility)
    }
}

/// CIR = 1 byte a tick, CBS = 3000, frames of 1500 at 0, 0, 0, 5000.
#[test]
fn the_vector_of_the_study_holds() {
    let limit = LimitSpec::new(1, 1, 3_000).max_delay(100_000).build().unwrap();
    let (group, cell) = (Group::new(), Cell::new());
    let mut standard = Standard::new(1, 3_000, 100_000);
    let mut of_group = 0;
    for (arrival, eligible, empty) in [(0, 0, -1_500), (0, 0, 0), (0, 1_500, 1_500), (5_000, 5_000, 3_500)] {
        let made = group.reserve(arrival, &Link::cell(&cell, &limit, 1_500)).unwrap();
        assert_eq!((made.verdict, made.departure), (Verdict::Conforming, eligible));
        assert_eq!(standard.frame(arrival as i128, 1_500, &mut of_group), Some(eligible as i128));
        assert_eq!((standard.bucket_empty, group.eligible()), (empty, eligible));
    }
}

/// Where flows of a trace keep their state.
enum Place<'a> {
    Cells(Vec<Cell>, Vec<Limit>),
    Table(&'a Table<'a>, Vec<tatcell::TableLimit>),
}

impl Place<'_> {
    fn link(&self, flow: usize, cost: u64) -> Link<'_> {
        match self {
            Place::Cells(cells, limits) => Link::cell(&cells[flow], &limits[flow], cost),
            Place::Table(table, limits) => Link::key(*table, &limits[flow], &[flow as u8], cost).unwrap(),
        }
    }
}

/// A trace of flows of one group with rates of their own: each frame gets the standard's time, or is discarded where it
/// discards it.
fn play(rng: &mut Rng, specs: &[(u64, u64, u64)], place: &Place<'_>, seen: &mut [u64; 3]) {
    let group = Group::new();
    let mut of_group = 0;
    let mut flows: Vec<Standard> =
        specs.iter().map(|&(t, burst, residence)| Standard::new(t, burst, residence)).collect();
    let longest = specs.iter().map(|(t, burst, _)| t * burst).max().unwrap();
    let mut now = rng.scaled(30);
    let mut last = 0;
    for _ in 0..rng.within(5, 40) {
        now += if rng.one_in(2) { 0 } else { rng.below(longest / 2 + 2) };
        let flow = rng.below(specs.len() as u64) as usize;
        let length = rng.within(1, specs[flow].1 + 1);
        let made = group.reserve(now, &place.link(flow, length)).unwrap();
        if length > specs[flow].1 {
            assert_eq!(made.verdict, Verdict::Never);
            seen[2] += 1;
            continue;
        }
        let before = of_group;
        match flows[flow].frame(now as i128, length as i128, &mut of_group) {
            Some(eligible) => {
                assert_eq!((made.verdict, made.departure as i128), (Verdict::Conforming, eligible));
                assert!(made.departure >= last, "out of the group's order");
                last = made.departure;
                seen[0] += 1;
            }
            None => {
                assert_eq!((made.verdict, made.departure), (Verdict::NonConforming, 0));
                // At now + retry it is accepted, and not a tick before.
                let twin = || Standard { ..flows[flow] };
                let (at, mut of) = ((now + made.retry_after) as i128, before);
                assert!(twin().frame(at, length as i128, &mut of).is_some());
                assert!(twin().frame(at - 1, length as i128, &mut of).is_none());
                seen[1] += 1;
            }
        }
        assert_eq!(group.eligible() as i128, of_group);
    }
}

#[test]
fn groups_compute_what_802_1qcr_computes() {
    let seen = std::cell::Cell::new([0; 3]);
    cases(20_000, |rng| {
        let count = rng.within(1, 4) as usize;
        // Emission intervals of whole q-units, so that nothing is rounded.
        let specs: Vec<(u64, u64, u64)> = (0..count)
            .map(|_| {
                let (t, burst) = (rng.within(1, 60), rng.within(1, 3_000));
                (t, burst, rng.below(2 * t * burst + 2))
            })
            .collect();
        let spec =
            |&(t, burst, residence): &(u64, u64, u64)| LimitSpec::new(1, t, burst).max_delay(residence);
        let limits = specs.iter().map(|s| spec(s).build().unwrap()).collect();
        let place = Place::Cells((0..count).map(|_| Cell::new()).collect(), limits);
        let mut all = seen.get();
        play(rng, &specs, &place, &mut all);
        seen.set(all);
    });
    println!("802.1Qcr: {:?} frames eligible, discarded, longer than the burst", seen.get());
    assert!(seen.get().iter().all(|&n| n > 1_000));
}

#[test]
fn groups_of_keys_compute_the_same() {
    let seen = std::cell::Cell::new([0; 3]);
    cases(1_000, |rng| {
        let count = rng.within(1, 4) as usize;
        let specs: Vec<(u64, u64, u64)> =
            (0..count).map(|_| (1 << rng.within(4, 6), rng.within(100, 3_000), rng.below(100_000))).collect();
        let spec =
            |&(t, burst, residence): &(u64, u64, u64)| LimitSpec::new(1, t, burst).max_delay(residence);
        let lines = memory(66);
        let (fast, slow) = (LimitSpec::new(1, 16, 3_000), LimitSpec::new(1, 64, 3_000).max_delay(200_000));
        let table = Table::init(&lines, &TableOptions::new(fast).slowest(slow).seed([9; 16])).unwrap();
        let limits = specs.iter().map(|s| table.limit(&spec(s)).unwrap()).collect();
        let mut all = seen.get();
        play(rng, &specs, &Place::Table(&table, limits), &mut all);
        seen.set(all);
    });
    assert!(seen.get().iter().take(2).all(|&n| n > 500), "{:?}", seen.get());
}

/// A unit of time that is coarser than a tick: never before the group, and within one such unit of the standard.
#[test]
fn coarse_limits_never_leave_before_the_group() {
    cases(2_000, |rng| {
        let shift = rng.within(1, 6) as u32;
        let (unit, t) = (1u64 << shift, rng.within(1, 20) << shift);
        let limit = LimitSpec::new(1, t, 50).max_delay(40 * t).resolution(-(shift as i8)).build().unwrap();
        let (group, cell) = (Group::new(), Cell::new());
        let (mut standard, mut of_group) = (Standard::new(t, 50, 40 * t), 0);
        let mut now = rng.scaled(20);
        for _ in 0..20 {
            now += rng.below(3 * t);
            group.raise(now + rng.below(t));
            let before = group.eligible();
            of_group = of_group.max(before as i128);
            let cost = rng.within(1, 5);
            let made = group.reserve(now, &Link::cell(&cell, &limit, cost)).unwrap();
            let wanted = standard.frame(now as i128, cost as i128, &mut of_group);
            if let (true, Some(wanted)) = (made.passes(), wanted) {
                assert!(made.departure >= before);
                assert!((made.departure as i128 - wanted).unsigned_abs() < 2 * unit as u128);
            } else {
                break;
            }
        }
    });
}

#[test]
fn a_shaper_gives_a_group_out_in_its_order() {
    // Flow 0 has used its burst; flow 1 could leave at once, and waits behind it.
    let limit = LimitSpec::new(1, 1, 3_000).max_delay(10_000).build().unwrap();
    let (group, cells) = (Group::new(), [Cell::new(), Cell::new()]);
    let mut words = vec![0; wheel_words(1024, 100)];
    let mut shaper = Shaper::new(&mut words, 1024, 16, 0).unwrap();
    for (handle, flow) in [0, 0, 0, 1, 0, 1].into_iter().enumerate() {
        let link = Link::cell(&cells[flow], &limit, 1_500);
        assert!(shaper.submit_in(0, &group, &link, handle as u64).unwrap().passes());
    }
    let mut out = Vec::new();
    while let Some(now) = shaper.next_departure() {
        out.push((shaper.release(now).unwrap().handle, now));
    }
    assert_eq!(out, [(0, 0), (1, 0), (2, 1_500), (3, 1_500), (4, 3_000), (5, 3_000)]);
    let fixed = Limit::fixed_window(5, 100).unwrap();
    let made = group.reserve(0, &Link::cell(&cells[0], &fixed, 1));
    assert_eq!(made, Err(ChainError::BadAlgorithm));
    group.reset();
    assert_eq!(group.eligible(), 0);
}

/// A flow in shadow mode waits for its group, and neither for its own limit nor the group for it.
#[test]
fn a_flow_in_shadow_mode_holds_nobody_of_its_group_up() {
    let spec = LimitSpec::new(1, 1, 1_500).max_delay(4_000);
    let [plain, trial] = [spec, spec.shadow()].map(|spec| spec.build().unwrap());
    let (group, cells) = (Group::new(), [Cell::new(), Cell::new()]);
    let send = |limit, flow: usize| {
        let made = group.reserve(0, &Link::cell(&cells[flow], limit, 1_500)).unwrap();
        assert!(made.passes());
        (made.departure, made.flags, made.retry_after)
    };
    assert_eq!([send(&plain, 0), send(&plain, 0)], [(0, 0, 0), (1_500, 0, 0)]);
    assert_eq!(send(&trial, 1), (1_500, 0, 0), "as any flow of the group");
    assert_eq!(send(&trial, 1), (1_500, Decision::SHADOW, 3_000));
    assert_eq!(send(&trial, 1), (1_500, Decision::SHADOW, 500), "of 4500, the last one would be refused");
    assert_eq!(send(&plain, 0), (3_000, 0, 0), "the group is where its limits have sent it");
}

/// The extra of a link is charged behind what it reserves, and told; without one nothing more is.
#[test]
fn an_extra_is_charged_once_the_reservation_stands() {
    let limit = LimitSpec::new(1, 100, 10).max_delay(100).build().unwrap();
    for (extra, left) in [(0, 9), (3, 6), (50, 0)] {
        let (group, cell) = (Group::new(), Cell::new());
        let made = group.reserve(0, &Link::cell(&cell, &limit, 1).extra(extra)).unwrap();
        let seen = cell.peek(&limit, 0, 0);
        assert_eq!((made.departure, made.remaining, seen.remaining), (0, left, left), "{extra}");
        assert_eq!((made.next_unit, made.reset_after), (seen.next_unit, seen.reset_after), "{extra}");
    }
}

/// Threads with a flow each: departures that a thread is told never fall, nor below what had been told to all before.
#[test]
fn threads_of_a_group_see_it_rise() {
    let limit = LimitSpec::new(1, 10, 4).max_delay(1 << 40).build().unwrap();
    let group = Group::new();
    let highest = std::thread::scope(|s| {
        let threads: Vec<_> = (0..3)
            .map(|_| {
                s.spawn(|| {
                    let (cell, mut last) = (Cell::new(), 0);
                    for now in 0..20_000 {
                        let told = group.eligible();
                        let made = group.reserve(now, &Link::cell(&cell, &limit, 1)).unwrap();
                        assert!(made.departure >= last.max(told), "fell");
                        last = made.departure;
                        assert!(group.eligible() >= last);
                    }
                    last
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).max().unwrap()
    });
    assert_eq!(group.eligible(), highest);
}

/// A reservation from a tick on is one that comes then, in every form of cell: the same departure, the same debt.
#[test]
fn reserving_from_a_tick_on_is_reserving_then() {
    let passed = std::cell::Cell::new(0);
    cases(3_000, |rng| {
        let (interval, burst) = (rng.within(1, 1_000), rng.within(1, 20));
        let spec = LimitSpec::new(1, interval, burst).max_delay(rng.below(30 * interval));
        let later = LimitSpec::new(1, interval, burst).max_delay(100 * interval);
        let (limit, limit32) = (spec.build().unwrap(), spec.build32().unwrap());
        let (then, then32) = (later.build().unwrap(), later.build32().unwrap());
        let (cell, small, mut own) = (Cell::new(), Cell32::new(), ExclusiveCell::new());
        let (twin, twin32) = (Cell::new(), Cell32::new());
        let mut now = rng.scaled(30);
        for _ in 0..20 {
            now += rng.below(2 * interval);
            let from = now + rng.below(10 * interval);
            let cost = rng.within(1, burst);
            let made = cell.reserve_from(&limit, now, from, cost);
            let wanted = twin.reserve(&then, from, cost);
            let fits = wanted.departure - now <= limit.max_delay().unwrap();
            assert_eq!(made.passes(), fits, "departs at {}, now {now}", wanted.departure);
            assert_eq!(made, own.reserve_from(&limit, now, from, cost));
            let narrow = small.reserve_from(&limit32, now, from, cost);
            let wanted32 = twin32.reserve(&then32, from, cost);
            if !made.passes() || !narrow.passes() {
                return;
            }
            assert_eq!((made.departure, narrow.departure), (wanted.departure, wanted32.departure));
            assert_eq!((cell.word(), small.word()), (twin.word(), twin32.word()));
            passed.set(passed.get() + 1);
        }
    });
    assert!(passed.get() > 5_000, "{} passed", passed.get());
}

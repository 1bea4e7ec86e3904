//! Cancelled reservations, and the exclusive cell compared with the shared one.

use crate::common::Rng;
use tatcell::{Cell, Cell32, ExclusiveCell, Outcome, SmallLimit, SmallLimit32};

/// The most by which departures (ticks, cost) exceed a token bucket of `units` per `period` and this burst, in ticks
/// times `units`.
fn excess(departures: &mut [(u64, u32)], units: u64, period: u64, burst: u64) -> i128 {
    departures.sort_unstable();
    let (mut tat, mut most) = (0i128, i128::MIN);
    for &(at, cost) in departures.iter() {
        let now = i128::from(at) * i128::from(units);
        tat = tat.max(now) + i128::from(cost) * i128::from(period);
        most = most.max(tat - now - i128::from(burst * period));
    }
    most
}

#[test]
fn departures_conform_whichever_places_are_given_up() {
    let mut rng = Rng(0x5eed_0201);
    let (mut cancelled, mut freed) = (0, 0);
    for round in 0..3_000 {
        let (units, period, burst) = (rng.within(1, 9), rng.within(1, 4_000), rng.within(1, 6));
        let delay = rng.within(1, 10) * period / units;
        let (Ok(limit), Ok(limit32)) = (
            SmallLimit::shaped(units, period, burst, delay),
            SmallLimit32::shaped(units, period, burst, delay),
        ) else {
            continue;
        };
        let (cell, cell32) = (Cell::new(), Cell32::new());
        // 32-bit ticks wrap on the way.
        let mut now = (1 << 32) - rng.below(40 * period);
        let (mut left, mut left32) = (Vec::new(), Vec::new());
        // Those that wait: tick, wait, cost.
        let (mut line, mut line32) = (Vec::<(u64, u64, u32)>::new(), Vec::<(u64, u64, u32)>::new());
        for _ in 0..200 {
            now += rng.below(period / units + 2) * rng.below(2);
            for (line, left) in [(&mut line, &mut left), (&mut line32, &mut left32)] {
                left.extend(line.iter().filter(|p| p.0 + p.1 <= now).map(|p| (p.0 + p.1, p.2)));
                line.retain(|p| p.0 + p.1 > now);
            }
            let cost = rng.within(1, burst) as u32;
            if rng.below(3) > 0 {
                if let Ok(wait) = cell.reserve_small(&limit, now, cost) {
                    line.push((now, wait, cost));
                }
                if let Ok(wait) = cell32.reserve_small(&limit32, now as u32, cost) {
                    line32.push((now, wait.into(), cost));
                }
            }
            if rng.below(3) == 0 {
                let pick = rng.next() as usize;
                if !line.is_empty() {
                    let (then, wait, cost) = line.swap_remove(pick % line.len());
                    let owed = cell.debt(&limit, now);
                    let back = cell.cancel_small(&limit, now, then, wait, cost).unwrap();
                    assert!(back <= owed, "round {round}");
                    cancelled += 1;
                    freed += u32::from(back > 0);
                }
                if !line32.is_empty() {
                    let (then, wait, cost) = line32.swap_remove(pick % line32.len());
                    cell32.cancel_small(&limit32, now as u32, then as u32, wait as u32, cost).unwrap();
                }
            }
        }
        // Departures are told in whole ticks, rounded up; what a place owed is known to a tick.
        let slack = if period % units == 0 { 0 } else { 2 * i128::from(units) };
        for (width, line, left) in [(64, line, &mut left), (32, line32, &mut left32)] {
            left.extend(line.iter().map(|p| (p.0 + p.1, p.2)));
            let excess = excess(left, units, period, burst);
            assert!(
                excess <= slack,
                "round {round}, {width} bits, {units} per {period}, burst {burst}: {excess} above the limit"
            );
        }
    }
    assert!(cancelled > 10_000 && freed > cancelled / 4, "{freed} of {cancelled} places were free again");
}

#[test]
fn the_last_place_is_undone_and_one_with_others_behind_it_is_not() {
    let limit = SmallLimit32::shaped(1, 100, 1, 500).unwrap();
    let cell = Cell32::new();
    let reserve = |now| cell.reserve_small(&limit, now, 1);
    assert_eq!(
        (reserve(1_000), reserve(1_000), reserve(1_010), reserve(1_020)),
        (Ok(0), Ok(100), Ok(190), Ok(280))
    );
    assert_eq!(cell.cancel_small(&limit, 1_050, 1_010, 190, 1), Ok(0), "another waits behind it");
    assert_eq!(cell.cancel_small(&limit, 1_060, 1_020, 280, 1), Ok(100), "the last one");
    assert_eq!(reserve(1_060), Ok(240), "its place is free again");
    assert_eq!(cell.cancel_small(&limit, 1_299, 1_060, 240, 1), Ok(100), "until it has left");
    assert_eq!(cell.cancel_small(&limit, 1_299, 1_000, 100, 1), Ok(0), "long gone");
    assert_eq!(
        cell.cancel_small(&limit, 1_299, 1_060, 240, 2),
        Ok(0),
        "more than a burst was never reserved"
    );

    // One that could leave at once: what has not drained, unless another waits behind it.
    let cell = Cell32::new();
    assert_eq!(cell.reserve_small(&limit, 0, 1), Ok(0));
    assert_eq!(cell.cancel_small(&limit, 30, 0, 0, 1), Ok(70));
    assert_eq!((cell.reserve_small(&limit, 30, 1), cell.reserve_small(&limit, 30, 1)), (Ok(0), Ok(100)));
    assert_eq!(cell.cancel_small(&limit, 30, 30, 0, 1), Ok(0));
    let two = SmallLimit32::shaped(1, 100, 2, 500).unwrap();
    let cell = Cell32::new();
    assert_eq!((cell.reserve_small(&two, 0, 1), cell.reserve_small(&two, 50, 1)), (Ok(0), Ok(0)));
    assert_eq!(cell.cancel_small(&two, 50, 0, 0, 1), Ok(50), "the other half has drained");
}

#[test]
fn the_cell_of_one_owner_answers_and_stores_as_the_shared_one() {
    let mut rng = Rng(0x5eed_0202);
    for round in 0..1_000 {
        let (units, period, burst) = (rng.within(1, 50), rng.within(1, 5_000), rng.within(1, 40));
        let Ok(limit) = SmallLimit::shaped(units, period, burst, rng.below(3_000)) else { continue };
        let (shared, mut own) = (Cell::new(), ExclusiveCell::new());
        let mut now = 1_000_000;
        let mut places = vec![(now, 0, 1)];
        for step in 0..80 {
            let cost = rng.within(1, burst + 1) as u32;
            let what = format!("round {round} step {step}, {units} per {period}, burst {burst}, cost {cost}");
            let (then, wait, of) = places[rng.below(places.len() as u64) as usize];
            match rng.below(8) {
                0 => assert_eq!(
                    own.check_small(&limit, now, cost),
                    shared.check_small(&limit, now, cost),
                    "{what}"
                ),
                1 => assert_eq!(
                    own.charge_small(&limit, now, cost),
                    shared.charge_small(&limit, now, cost),
                    "{what}"
                ),
                2 => {
                    let back = shared.refund_small(&limit, now, then, of);
                    assert_eq!(own.refund_small(&limit, now, then, of), back, "{what}");
                }
                3 => {
                    let back = shared.cancel_small(&limit, now, then, wait, of);
                    assert_eq!(own.cancel_small(&limit, now, then, wait, of), back, "{what}");
                }
                4 => {
                    let ticks = rng.below(4 * period);
                    shared.set_debt(&limit, now, ticks);
                    own.set_debt(&limit, now, ticks);
                }
                _ => {
                    let wait = shared.reserve_small(&limit, now, cost);
                    assert_eq!(own.reserve_small(&limit, now, cost), wait, "{what}");
                    places.extend(wait.map(|wait| (now, wait, cost)));
                }
            }
            assert_eq!(own.word(), shared.word(), "{what}");
            assert_eq!(own.debt(&limit, now), shared.debt(&limit, now), "{what}");
            now += rng.below(period * 2 / units + 2);
        }
    }
    let limit = SmallLimit::new(1, 100, 3).unwrap();
    let mut own = ExclusiveCell::new();
    assert_eq!(own.charge_small(&limit, 0, 4), Err(Outcome::Never));
    own.set_debt(&limit, 0, 250);
    assert_eq!(own.debt(&limit, 50), 200);
}

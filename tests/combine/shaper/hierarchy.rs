//! Hierarchies: a reservation far ahead harms an aggregate, and a request that asks it on arrival does not.

use crate::common::Rng;
use tatcell::{wheel_words, Cell, Chain, Limit, LimitSpec, Link, Shaper};

/// Ticks a second: milliseconds.
const SECOND: u64 = 1_000;
const SECONDS: u64 = 20_000;

/// Flow A asks twice a second, evenly, and may have one each 5 s, waiting up to 183 s: it is overloaded. Flow B asks
/// 0.75 times a second, at random (Poisson), and may have 2. The tenant of both has 1 a second.
struct World {
    flows: [Limit; 2],
    tenant: Limit,
    cells: [Cell; 2],
    tenant_cell: Cell,
    /// (time, flow), in order.
    arrivals: Vec<(u64, usize)>,
}

impl World {
    fn new() -> World {
        let mut rng = Rng(0x5eed);
        let mut arrivals: Vec<(u64, usize)> = (0..SECONDS * 2).map(|i| (i * SECOND / 2, 0)).collect();
        let mut at = 0.0;
        while at < (SECONDS * SECOND) as f64 {
            let uniform = (rng.below(1 << 52) + 1) as f64 / (1u64 << 52) as f64;
            at -= uniform.ln() * SECOND as f64 / 0.75;
            arrivals.push((at as u64, 1));
        }
        arrivals.sort_unstable();
        let limit = |units, seconds, wait: u64| {
            LimitSpec::new(units, seconds * SECOND, 1).max_delay(wait * SECOND).build().unwrap()
        };
        World {
            flows: [limit(1, 5, 183), limit(2, 1, 400)],
            tenant: limit(1, 1, 400),
            cells: [Cell::new(), Cell::new()],
            tenant_cell: Cell::new(),
            arrivals,
        }
    }

    fn flow(&self, flow: usize) -> Link<'_> {
        Link::cell(&self.cells[flow], &self.flows[flow], 1)
    }

    fn tenant(&self) -> Link<'_> {
        Link::cell(&self.tenant_cell, &self.tenant, 1)
    }
}

/// What came of one way to combine the limits: all that left, as (tick, number of its arrival).
struct Outcome {
    /// Mean seconds that B's requests waited.
    mean: f64,
    /// Most units that left the tenant beyond `1 + t * rate`, over all windows t.
    excess: f64,
    refused_at_tenant: u64,
}

fn outcome(world: &World, mut left: Vec<(u64, u64)>, refused_at_tenant: u64) -> Outcome {
    left.sort_unstable();
    let came = |i: u64| world.arrivals[i as usize];
    let waits: Vec<u64> =
        left.iter().filter(|(_, i)| came(*i).1 == 1).map(|(at, i)| at - came(*i).0).collect();
    assert!(waits.len() > SECONDS as usize / 2, "hardly anything of B left");
    let mean = waits.iter().sum::<u64>() as f64 / waits.len() as f64 / SECOND as f64;
    // n units in t conform iff n <= 1 + t: the largest rise of n - t.
    let (mut lowest, mut excess) = (f64::MAX, f64::MIN);
    for (n, (at, _)) in left.iter().enumerate() {
        let drift = n as f64 - *at as f64 / SECOND as f64;
        lowest = lowest.min(drift);
        excess = excess.max(drift - lowest);
    }
    Outcome { mean, excess, refused_at_tenant }
}

/// A slot of the wheel.
const G: u64 = 128;

/// Each limit is asked when the request gets there.
fn event_driven() -> Outcome {
    let world = World::new();
    let mut words = vec![0; wheel_words(4096, 2_000)];
    let mut shaper = Shaper::new(&mut words, 4096, G, 0).unwrap();
    let (mut left, mut refused) = (Vec::new(), 0);
    let mut run = |shaper: &mut Shaper<'_>, until: u64| {
        while let Some(now) = shaper.next_departure().filter(|now| *now <= until) {
            let due = shaper.release(now).unwrap();
            match due.level {
                0 => refused += u64::from(!shaper.forward(now, due, &world.tenant()).unwrap().passes()),
                _ => left.push((now, due.handle)),
            }
        }
    };
    for (i, &(now, flow)) in world.arrivals.iter().enumerate() {
        run(&mut shaper, now);
        let made = shaper.submit(now, &world.flow(flow), i as u64).unwrap();
        assert!(flow == 0 || made.passes());
    }
    run(&mut shaper, u64::MAX / 2);
    outcome(&world, left, refused)
}

/// The tenant is charged at once, for the time at which the flow lets the request go.
fn at_the_flow_s_future() -> Outcome {
    let world = World::new();
    let (mut left, mut refused) = (Vec::new(), 0);
    for (i, &(now, flow)) in world.arrivals.iter().enumerate() {
        let first = world.cells[flow].reserve(&world.flows[flow], now, 1);
        if first.passes() {
            match world.tenant_cell.reserve_from(&world.tenant, now, first.departure, 1) {
                then if then.passes() => left.push((then.departure, i as u64)),
                _ => refused += 1,
            }
        }
    }
    outcome(&world, left, refused)
}

/// Both are charged at the arrival, and the later departure holds.
fn at_arrival() -> Outcome {
    let world = World::new();
    let mut left = Vec::new();
    for (i, &(now, flow)) in world.arrivals.iter().enumerate() {
        let made = Chain::new(&[world.flow(flow), world.tenant()]).unwrap().reserve(now).unwrap();
        if made.passes() {
            left.push((made.departure, i as u64));
        }
    }
    outcome(&world, left, 0)
}

#[test]
fn an_overloaded_flow_poisons_a_tenant_that_is_charged_at_its_future_and_no_other() {
    let (event, future, arrival) = (event_driven(), at_the_flow_s_future(), at_arrival());
    for (what, made) in [("event driven", &event), ("flow's future", &future), ("all at arrival", &arrival)] {
        println!("{what}: B waits {:.1} s, the tenant sends {:.1} too many", made.mean, made.excess);
    }
    assert_eq!((event.refused_at_tenant, future.refused_at_tenant), (0, 0));
    assert!((5.0..10.0).contains(&event.mean), "event driven: {:.2}", event.mean);
    assert!((180.0..200.0).contains(&future.mean), "flow's future: {:.2}", future.mean);
    assert!(arrival.mean < 10.0, "all at arrival: {:.2}", arrival.mean);
    // What is given out is late by less than a slot; its departures exceed nothing.
    assert!(event.excess < G as f64 / SECOND as f64, "event driven: {:.2}", event.excess);
    // Why charging all at arrival is no hierarchy: what a flow holds back comes when others use the tenant.
    assert!(arrival.excess > 0.5, "all at arrival: {:.2}", arrival.excess);
}

/// Three levels: a flow's rate, its tenant's and the port's hold for what comes out, order and number too.
#[test]
fn flow_tenant_and_port_hold_together() {
    const FLOWS_A_TENANT: usize = 3;
    let [flow, tenant, port] =
        [400, 200, 120].map(|interval| LimitSpec::new(1, interval, 1).max_delay(200_000).build().unwrap());
    let flows: Vec<Cell> = (0..2 * FLOWS_A_TENANT).map(|_| Cell::new()).collect();
    let (tenants, port_cell) = ([Cell::new(), Cell::new()], Cell::new());
    let mut words = vec![0; wheel_words(4096, 4_000)];
    let mut shaper = Shaper::new(&mut words, 4096, G, 0).unwrap();
    let mut rng = Rng(7);
    let mut out: Vec<(u64, u64)> = Vec::new();
    let (mut now, mut number, mut accepted) = (0, 0u64, 0);
    let mut next = vec![0u64; flows.len()];
    while number < 3_000 || shaper.next_departure().is_some() {
        now += rng.below(50);
        while let Some(due) = shaper.release(now) {
            let of = due.handle as usize % flows.len();
            let link = match due.level {
                0 => Link::cell(&tenants[of / FLOWS_A_TENANT], &tenant, 1),
                1 => Link::cell(&port_cell, &port, 1),
                level => {
                    assert_eq!(level, 2);
                    out.push((now, due.handle));
                    continue;
                }
            };
            assert!(shaper.forward(now, due, &link).unwrap().passes());
        }
        if number < 3_000 {
            let of = rng.below(flows.len() as u64) as usize;
            let handle = next[of] * flows.len() as u64 + of as u64;
            let made = shaper.submit(now, &Link::cell(&flows[of], &flow, 1), handle).unwrap();
            if made.passes() {
                next[of] += 1;
                accepted += 1;
            }
            number += 1;
        }
    }
    assert_eq!(out.len(), accepted, "lost");
    let holds = |who: &dyn Fn(u64) -> bool, interval: u64, levels: u64| {
        let times: Vec<u64> = out.iter().filter(|(_, handle)| who(*handle)).map(|(at, _)| *at).collect();
        assert!(times.len() > 100);
        for (i, from) in times.iter().enumerate() {
            for (j, to) in times.iter().enumerate().skip(i) {
                let late = levels * (G + 50);
                assert!((j - i + 1) as u64 <= (to - from + late) / interval + 1, "{i}..{j} of {interval}");
            }
        }
    };
    holds(&|_| true, 120, 1);
    for of in 0..2 {
        holds(&|handle| handle as usize % flows.len() / FLOWS_A_TENANT == of, 200, 60);
    }
    for (of, expected) in next.iter().enumerate() {
        let order: Vec<u64> =
            out.iter().map(|(_, h)| *h).filter(|h| *h as usize % flows.len() == of).collect();
        let wanted: Vec<u64> = (0..*expected).map(|i| i * flows.len() as u64 + of as u64).collect();
        assert_eq!(order, wanted, "flow {of} out of order");
    }
}

//! What seeds from [`FROM`] on draw in addition: worlds in which faults meet that seldom do so by themselves. Seeds
//! below [`FROM`] stay the worlds in which kept seeds found their faults.

use crate::clock::{Time, MS, SECOND};
use crate::plan::{grow, Edition, Fault, Limit, Plan, Shape, What, BACK_FROM, LATER_FROM};
use crate::random::Random;

/// The first of these seeds.
pub const FROM: u64 = 100_000;

/// Draws from numbers of its own.
pub(crate) fn draw(plan: &mut Plan) {
    let mut random = Random::new(plan.seed ^ 0x1a7e_0f5e_ed5a_1173);
    lighten(&mut random, plan);
    // Such a world has its own faults already.
    if plan.faults.iter().any(|fault| matches!(fault.what, What::ClaimLost { .. })) {
        return;
    }
    match random.below(100) {
        0..=4 => unheard(&mut random, plan),
        5..=8 => slow_debt(&mut random, plan),
        9..=13 => long_pieces(&mut random, plan),
        14..=19 => late_answers(&mut random, plan),
        20..=25 => old_readings(&mut random, plan),
        26..=33 => two_primaries(&mut random, plan),
        34..=41 => clocks_apart(&mut random, plan),
        42..=49 => other_version(&mut random, plan),
        // So that half of the worlds are large.
        _ if random.chance(if plan.seed < BACK_FROM { 150 } else { 250 }) => grow(&mut random, plan),
        _ => {}
    }
}

/// Lowers the rates and the load: a world shows as much with a quarter of the decisions, and four are played meanwhile.
fn lighten(random: &mut Random, plan: &mut Plan) {
    for limit in &mut plan.limits {
        limit.units /= 2;
        // A smaller one would be strict.
        limit.burst = if limit.burst >= 24 { limit.burst / 2 } else { limit.burst };
    }
    plan.lull = random.of(&[3, 4, 7]) * SECOND;
    plan.visit = random.of(&[3, 10]);
    // Each node reads the marks three times in it.
    plan.delay =
        random.of(&[300 * MS, SECOND, SECOND, 3 * SECOND, 3 * SECOND, 3 * SECOND, 3 * SECOND, 3 * SECOND]);
    let most = plan.limits.iter().map(|limit| limit.units).max().unwrap_or(1);
    let offered = most * random.of(&[2, 3]) / plan.hosts as u64;
    plan.gap = (SECOND * (plan.visit + 1) / 2 / offered.max(1)).clamp(5 * MS, SECOND);
}

fn add(plan: &mut Plan, at: Time, until: Time, what: What) {
    plan.faults.push(Fault { at, until: until.min(plan.length), what });
}

/// Makes the world large: 20 s, three hosts.
fn large(plan: &mut Plan) {
    plan.length = 20 * SECOND;
    plan.hosts = plan.hosts.max(3);
}

/// Replaces the faults by a change to `to`. Returns who is asked for it, and when.
fn only_change(random: &mut Random, plan: &mut Plan, to: Limit) -> (usize, Time) {
    large(plan);
    plan.limits.truncate(1);
    plan.limits.push(to);
    let (node, at) = (random.below(plan.hosts as u64) as usize, random.within(9 * SECOND, 12 * SECOND));
    plan.faults.clear();
    add(plan, at, at + 1, What::Change { node, to: 1 });
    (node, at)
}

fn other_host(random: &mut Random, plan: &Plan, host: usize) -> usize {
    (host + random.within(1, plan.hosts as u64 - 1) as usize) % plan.hosts
}

/// A node that holds much is cut off before a change to much less, and does not hear of it.
fn unheard(random: &mut Random, plan: &mut Plan) {
    let reserve = random.of(&[(500, 500), (100, 900)]);
    plan.limits[0] = Limit { units: random.of(&[64, 100]), burst: random.of(&[64, 100]), reserve };
    let to = Limit { units: 8, burst: random.of(&[3, 8]), reserve: random.of(&[reserve, (0, 0)]) };
    (plan.delay, plan.ttl, plan.lull) = (300 * MS, random.of(&[2, 4]) * SECOND, 0);
    let (node, at) = only_change(random, plan, to);
    let cut = other_host(random, plan, node);
    let begins = at - random.within(10 * MS, 100 * MS);
    let what = What::Cut { node: Some(cut), to_server: random.chance(500) };
    add(plan, begins, at + random.within(SECOND, 4 * SECOND), what);
}

/// A change to a much lower rate, but not to a smaller burst.
fn slow_debt(random: &mut Random, plan: &mut Plan) {
    let (burst, reserve) = (random.of(&[40, 64, 100]), random.of(&[(0, 0), (50, 250)]));
    plan.limits[0] = Limit { units: random.of(&[64, 100]), burst, reserve };
    let to = Limit { units: 8, burst: burst + random.below(20), reserve };
    only_change(random, plan, to);
}

/// A change to a much higher rate, of which a piece of before would be many units. It comes into force while the nodes
/// hold such pieces: when they have just begun to ask for a key that owes nothing.
fn long_pieces(random: &mut Random, plan: &mut Plan) {
    let reserve = random.of(&[(0, 0), (50, 250)]);
    plan.limits[0] = Limit { units: 8, burst: 8 * random.within(3, 6), reserve };
    (plan.delay, plan.lull, plan.visit, plan.gap) = (SECOND, 4 * SECOND, 10, 20 * MS);
    let to = Limit { units: random.of(&[64, 100]), burst: random.of(&[16, 24]), reserve };
    only_change(random, plan, to);
    let at = 9 * SECOND + random.below(150 * MS);
    plan.faults.iter_mut().for_each(|fault| (fault.at, fault.until) = (at, at + 1));
}

/// The answers to one node come late, and the others begin to ask after it.
fn late_answers(random: &mut Random, plan: &mut Plan) {
    large(plan);
    (plan.lull, plan.apart) = (4 * SECOND, random.within(50 * MS, 200 * MS));
    (plan.timeout, plan.visit, plan.gap) = (250 * MS, 30, 50 * MS);
    plan.limits.truncate(1);
    plan.limits[0] = Limit { units: 100, burst: random.of(&[16, 34, 50]), reserve: (0, 0) };
    plan.faults.clear();
    add(plan, 0, plan.length, What::Delay { node: Some(0), most: 120 * MS });
}

/// Workers read their clock when a key has just been used up, and call when its burst has come back.
fn old_readings(random: &mut Random, plan: &mut Plan) {
    plan.lull = 4 * SECOND;
    plan.length = plan.length.max(3 * plan.lull);
    let turn = random.within(1, plan.length / plan.lull - 1);
    let at = turn * plan.lull - random.within(MS, 100 * MS);
    let node = random.below(plan.hosts as u64) as usize;
    let what = What::WorkersStop { node, count: random.within(10, 60) };
    add(plan, at, at + random.within(200 * MS, 1_900 * MS), what);
}

/// The store is divided, and the nodes with it.
fn two_primaries(random: &mut Random, plan: &mut Plan) {
    large(plan);
    plan.shape = Shape::Sentinel;
    plan.faults.truncate(random.below(4) as usize);
    let left = random.within(1, (1 << plan.hosts) - 2) as u32;
    let at = random.within(3 * SECOND, 12 * SECOND);
    add(plan, at, at + random.within(500 * MS, 7 * SECOND), What::TwoPrimaries { left });
}

/// The servers' clocks differ, and keys go from one to another.
fn clocks_apart(random: &mut Random, plan: &mut Plan) {
    large(plan);
    plan.shape = random.of(&[Shape::Sentinel, Shape::Cluster(2), Shape::Cluster(3)]);
    plan.faults.truncate(random.below(4) as usize);
    let servers = if let Shape::Cluster(servers) = plan.shape { servers } else { 2 };
    let most = random.of(&[MS, 100 * MS, SECOND, 3_600 * SECOND]);
    for server in 0..servers {
        let by = random.below(most) as i64;
        add(plan, 0, 1, What::OneServerSet { server, by: if random.chance(500) { by } else { -by } });
        if random.chance(300) {
            let ppm = random.within(950_000, 1_050_000);
            add(plan, 0, plan.length, What::OneServerRuns { server, ppm });
        }
    }
    for _ in 0..random.within(1, 3) {
        let at = random.within(3 * SECOND, 15 * SECOND);
        let what = match plan.shape {
            Shape::Cluster(_) => {
                let from = random.below(10_000) as usize;
                What::SlotsMove { from, count: 6_000, to: random.below(servers as u64) as usize }
            }
            _ => What::Promoted { lag: 0 },
        };
        add(plan, at, at + random.within(50 * MS, 2 * SECOND), what);
    }
}

/// Nodes are replaced by some of another version.
fn other_version(random: &mut Random, plan: &mut Plan) {
    large(plan);
    plan.faults.truncate(random.below(4) as usize);
    let node = random.below(plan.hosts as u64) as usize;
    let is_later = plan.seed >= LATER_FROM && plan.seed.is_multiple_of(2);
    let to = if is_later { Edition::Later } else { Edition::Before };
    if random.chance(300) {
        // All of them, but one that is back before the others.
        for host in (0..plan.hosts).filter(|host| *host != node) {
            add(plan, 0, plan.length, What::NodeUpgraded { node: host, to });
        }
        return add(plan, 0, random.within(6 * SECOND, 10 * SECOND), What::NodeUpgraded { node, to });
    }
    let (at, until) = (random.within(0, 8 * SECOND), random.within(9 * SECOND, plan.length));
    add(plan, at, until, What::NodeUpgraded { node, to });
}

//! The counting algorithms beside their definitions: decisions shared among all algorithms in all forms, 1e9 in
//! `mk/rust-tests.sh long`.

use super::lives::{life, Counts, FORMS, KINDS, NAMES};
use super::sliding_log::{Clock, Oracle};
use crate::common::{seed_from_environment, size_from, Rng, Seed};
use crate::long::tally::{blocks, Tally};
use crate::long::SIZE;
use tatcell::{Cell, ExclusiveCell, ExclusiveSlidingLog, Permit, SlidingLog};

/// Steps of a life, of keys or of a log.
const STEPS: u64 = 4_000;
/// Decisions of a life in each form, or a few more: bursts make more of a step.
const DECISIONS: u64 = 5_600;

const ALL: usize = KINDS.len() * NAMES.len();

/// A life of the algorithm that the seed says, its counts where they belong.
fn any_life(seed: u64) -> [u64; ALL] {
    let kind = seed as usize % KINDS.len();
    let mut counts = [0; ALL];
    counts[kind * NAMES.len()..][..NAMES.len()].copy_from_slice(&life(seed, kind, STEPS));
    counts
}

#[test]
fn decisions_of_the_algorithms_that_count_are_those_of_their_definitions() {
    let size = size_from("TATCELL_DECISIONS", SIZE);
    let each = size / (KINDS.len() * FORMS) as u64;
    let counts = blocks(each.div_ceil(DECISIONS) * KINDS.len() as u64, any_life);
    let mut sum = 0;
    for (title, counts) in KINDS.iter().zip(counts.chunks(NAMES.len())) {
        // What quota-linear makes of a change the definition does not say; and see `lives::DECAY`.
        let changes = if *title == "quota-linear" { 0 } else { each / 1_000 };
        let refunds = if *title == "decay" { 0 } else { each / 200 };
        let least = [each, each, each, each, each / 4, refunds, changes, each / 2, each / 10];
        let counts: Counts = counts.try_into().expect("as many as names");
        sum += Tally { names: NAMES, least }.hold(title, counts);
    }
    assert!(sum >= size || seed_from_environment().is_some(), "{sum} of {size}");
}

const OF_LOGS: [&str; 6] = [
    "SlidingLog",
    "ExclusiveSlidingLog",
    "by clocks behind *",
    "refunds of something *",
    "passed *",
    "refused *",
];

/// A log in both forms beside the list of what was admitted. By a clock that is behind the list says less: what passes
/// leaves no window with more than its units, what is refused finds that many in its window.
fn log(seed: u64) -> [u64; 6] {
    let _shown = Seed(seed);
    let mut rng = Rng(seed);
    let n = 1 + rng.scaled(5) as usize;
    let window = rng.pick(&[1, 2, 3, 10, 1_000, 60_000, 1 << 30]) * rng.within(1, 7);
    let skew = rng.pick(&[0, 1, window / 2, window]);
    let start = (1 << 20) + 40 * window + rng.scaled(61);
    let mut clock = Clock { top: start, now: start, window, skew };
    let (shared, mut own): (Vec<Cell>, _) =
        ((0..n).map(|_| Cell::new()).collect(), vec![ExclusiveCell::new(); n]);
    let (mut oracle, mut newest, mut counts) = (Oracle::default(), 0, [0; 6]);
    let mut last: Option<(u64, Permit)> = None;
    let log = SlidingLog::new(&shared, window).unwrap().skew(skew).unwrap();
    let mut twin = ExclusiveSlidingLog::new(&mut own, window).unwrap().skew(skew).unwrap();
    for _ in 0..STEPS {
        clock.step(&mut rng);
        let now = clock.now;
        if let Some((at, permit)) = last.take_if(|_| rng.one_in(16)) {
            let back = log.refund(now, &permit).unwrap();
            assert_eq!(twin.refund(now, &permit), Some(back));
            assert_eq!(
                back,
                u64::from(at as i128 > now as i128 - window as i128),
                "not its own unit at {now}"
            );
            if back == 1 {
                oracle.refund(at, window);
                counts[3] += 1;
            }
        }
        let inside = oracle.inside(now, window);
        let made = log.check_ex(now);
        assert_eq!(twin.check(now), made.outcome(), "{n} in {window} at {now}");
        let passes = made.passes();
        if now >= newest {
            assert_eq!(passes, inside < n, "{inside} of {n} in the window of {window} before {now}");
            assert_eq!(made.remaining, (n - inside - usize::from(passes)) as u64, "{n} in {window} at {now}");
        } else {
            assert!(
                passes || inside >= n,
                "refused with {inside} of {n} in the window of {window} before {now}"
            );
            counts[2] += 1;
        }
        if passes {
            oracle.admit(now);
            assert!(oracle.holds(now, window, n), "more than {n} in a window of {window} around {now}");
            newest = now.max(newest);
            last = Some((now, made.permit));
        }
        counts[usize::from(!passes) + 4] += 1;
        counts[0] += 1;
        counts[1] += 1;
        oracle.forget(clock.top as i128 - skew as i128 - 3 * window as i128);
    }
    counts
}

#[test]
fn decisions_of_sliding_logs_are_those_of_the_list() {
    let size = size_from("TATCELL_DECISIONS", SIZE) / 20;
    let least = [size, size, size / 40, size / 50, size / 4, size / 4];
    Tally { names: OF_LOGS, least }.hold("sliding log", blocks(size.div_ceil(STEPS), log));
}

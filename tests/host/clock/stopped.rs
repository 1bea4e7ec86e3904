//! Processes that are stopped between reading the clock and asking, and go on with an old reading.
//!
//! SIGSTOP stops a process and not a thread, so the workers are forked over one shared mapping. Each reads the real
//! monotonic clock, works for some microseconds, as a server parses a request, and then asks, by a single call or by a
//! burst. The parent stops random workers for 20 to 200 ms at random moments, and continues them. (The choices have a
//! fixed seed, but what they hit has not.) Only the real clock and real time show a stopped process as such.
//!
//! The bound is exact: B + (last - first) / T, by the parent's readings before the first and after the last worker. All
//! readings are of one clock that never falls, on whatever processor, so those of the workers lie between these two. An
//! old one only makes the answer stricter, as `clock/mod.rs` derives. For that every reading must be used within the
//! skew, which every worker measures. If the machine held one back for longer, the run proves nothing and is repeated.
//!
//! Nothing is left behind: workers end when told to, at a deadline of their own, with the parent, or when `Workers` is
//! dropped, which kills them.

use super::workers::Workers;
use super::{monotonic, Rate, DEFAULT_SKEW};
use crate::common::{hash_of, size_from, Rng, Seed};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::Mutex;
use tatcell::{AttachOptions, Burst, Cell, Limit, LimitSpec, Line, NextBurst, Outcome, Table, TableOptions};

/// The first is hot; each has a set of its own.
const KEYS: usize = 4;
const SLOT_LINES: u32 = 8;
const LINES: usize = 2 + SLOT_LINES as usize;
const MS: u64 = 1_000_000;
const BURST: u64 = 20;
/// Bytes: what 10 Gbit/s are in a millisecond.
const FRAME: u64 = 1_250_000;

/// A clock, and what makes its limits.
#[derive(Clone, Copy)]
struct Ticks {
    read: fn() -> u64,
    per_second: u64,
    /// How far the readings of two processors at one instant may be apart.
    apart: u64,
    /// Longest stop, in ms.
    stop: u64,
}

impl Ticks {
    const MONOTONIC: Ticks = Ticks { read: monotonic, per_second: 1_000 * MS, apart: 0, stop: 200 };

    /// 1000 a second.
    const fn keyed(&self) -> Rate {
        Rate { units: 1_000, period: self.per_second, burst: BURST }
    }

    /// 10 Gbit/s in bytes, for a 64-bit cell: its span is below a year.
    const fn bytes(&self) -> Rate {
        Rate { units: 1_000 * FRAME, period: self.per_second, burst: BURST * FRAME }
    }
}

/// What parent and workers share. All zero is its start.
#[repr(C)]
struct Shared {
    lines: [Line; LINES],
    cell: Cell,
    over: AtomicU64,
    /// Units admitted of each key.
    keyed: [AtomicU64; KEYS],
    /// Of these, by bursts.
    burst: AtomicU64,
    bytes: AtomicU64,
    /// How old the oldest reading was when it had been used, in ticks.
    oldest: AtomicU64,
    /// Readings that were older than a burst time when they had been used.
    late: AtomicU64,
}

fn map() -> &'static Shared {
    let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    // SAFETY: a fresh shared mapping, zeroed, page-aligned, never unmapped; zero bytes are a valid `Shared`.
    unsafe {
        let at = libc::mmap(std::ptr::null_mut(), size_of::<Shared>(), prot, flags, -1, 0);
        assert_ne!(at, libc::MAP_FAILED);
        &*at.cast::<Shared>()
    }
}

fn key(i: usize) -> u64 {
    hash_of(2 * i as u32, SLOT_LINES, 1 + i as u32)
}

/// A worker. Allocates nothing, as a forked child of a threaded process must not.
fn work(shared: &'static Shared, ticks: Ticks, byte_limit: &Limit, seed: u64, deadline: u64) -> i32 {
    let rate = ticks.keyed();
    let Ok(table) = Table::attach(&shared.lines, &AttachOptions::new()) else { return 3 };
    let Ok(limit) = table.limit(&rate.spec()) else { return 4 };
    let mut rng = Rng(seed);
    while shared.over.load(SeqCst) == 0 {
        let now = (ticks.read)();
        if now > deadline {
            return 5;
        }
        (0..rng.below(200)).for_each(|_| std::hint::spin_loop());
        // Half for the hot key, an eighth for the others, the rest for the cell.
        let i = (rng.below(24) as usize).saturating_sub(11);
        if i < KEYS && rng.below(2) == 0 {
            // Its key twice, and the hot one in between.
            let keys = [i, 0, i];
            match Burst::new(&limit, now, &keys.map(key)).check(&table, None, NextBurst::NONE) {
                Ok(pass) => {
                    for (n, &k) in keys.iter().enumerate() {
                        shared.keyed[k].fetch_add(pass >> n & 1, SeqCst);
                    }
                    shared.burst.fetch_add(u64::from(pass.count_ones()), SeqCst);
                }
                Err(_) => return 9,
            }
        } else if i < KEYS {
            match table.check_hash(&limit, now, key(i), 1) {
                Ok(Outcome::Conforming) => _ = shared.keyed[i].fetch_add(1, SeqCst),
                Ok(_) => {}
                Err(_) => return 6,
            }
        } else if shared.cell.check(byte_limit, now, FRAME).passes() {
            shared.bytes.fetch_add(FRAME, SeqCst);
        }
        // Read after the call took effect: a counter of another processor may be behind.
        let age = (ticks.read)().saturating_sub(now);
        shared.oldest.fetch_max(age, Relaxed);
        shared.late.fetch_add(u64::from(age > rate.burst_time()), Relaxed);
    }
    0
}

/// What came of a run.
struct Run {
    keyed: [u64; KEYS],
    burst: u64,
    bytes: u64,
    most: u64,
    most_bytes: u64,
    stops: u64,
    late: u64,
    oldest: u64,
    /// Of the table and of the cell, in ticks.
    skew: [u64; 2],
}

impl Run {
    /// Runs workers on a fresh table and cell for a time. Default options, or a skew of one burst time.
    fn new(ticks: Ticks, ms: u64, seed: u64, one_burst_time: bool) -> Run {
        // One run at a time: two would hold each other back.
        static ALONE: Mutex<()> = Mutex::new(());
        let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
        let _shown = Seed(seed);
        let (shared, rates) = (map(), [ticks.keyed(), ticks.bytes()]);
        let mut options = TableOptions::new(rates[0].spec()).caller_hash();
        let mut bytes: LimitSpec = rates[1].spec();
        if one_burst_time {
            options = options.skew(rates[0].burst_time());
            bytes = bytes.skew(rates[1].burst_time());
        }
        let table = Table::init(&shared.lines, &options).unwrap();
        let byte_limit = bytes.build().unwrap();
        let mut rng = Rng(seed);
        let first = (ticks.read)();
        let deadline = first + ticks.per_second / 1_000 * (ms + 10_000);
        let mut workers =
            Workers::start(|i| work(shared, ticks, &byte_limit, seed << 8 | i as u64, deadline));
        let stops = workers.stop_some(ms, ticks.stop, &mut rng);
        shared.over.store(1, SeqCst);
        assert!(workers.ended(), "a worker does not end");
        let elapsed = (ticks.read)() - first + 2 * ticks.apart;
        let run = Run {
            keyed: std::array::from_fn(|i| shared.keyed[i].load(SeqCst)),
            burst: shared.burst.load(SeqCst),
            bytes: shared.bytes.load(SeqCst),
            most: rates[0].most_within(elapsed),
            most_bytes: rates[1].most_within(elapsed),
            stops,
            late: shared.late.load(SeqCst),
            oldest: shared.oldest.load(SeqCst),
            skew: [table.limit(&rates[0].spec()).unwrap().info().skew, byte_limit.info().skew],
        };
        run.tell(ticks, seed);
        run
    }

    fn tell(&self, ticks: Ticks, seed: u64) {
        let ms = |t: u64| t / (ticks.per_second / 1_000);
        let Run { keyed, burst, most, bytes, most_bytes, stops, late, .. } = self;
        print!("seed {seed}, skew {:?} ms: {keyed:?} admitted, at most {most}; ", self.skew.map(ms));
        print!("{burst} of them by bursts; ");
        println!(
            "{bytes} B, at most {most_bytes}; {stops} stops, {late} late, oldest {} ms",
            ms(self.oldest)
        );
    }

    fn check(&self) {
        for (i, &n) in self.keyed.iter().enumerate() {
            assert!(n <= self.most, "key {i}: {n} admitted, at most {}", self.most);
        }
        assert!(self.bytes <= self.most_bytes, "{} bytes admitted, at most {}", self.bytes, self.most_bytes);
    }
}

/// Runs under default options, five times at most, until every reading was used within the skew, and checks that run.
/// `None`: there was no such run.
fn default_options_admit_at_most_the_bound(ticks: Ticks, ms: u64, seed: u64) -> Option<()> {
    let mut runs = (0..5).map(|i| Run::new(ticks, ms, seed + i, false));
    let run = runs.find(|run| run.oldest + ticks.apart <= DEFAULT_SKEW)?;
    run.check();
    // The stops fell between clock and call, and somebody was asked.
    assert!(run.late > run.stops / 4, "{} late calls of {} stops", run.late, run.stops);
    assert!(run.keyed.iter().all(|&n| n > BURST) && run.bytes > ticks.bytes().burst, "{:?}", run.keyed);
    // Both forms had their share.
    let all = run.keyed.iter().sum::<u64>();
    assert!(run.burst > all / 10 && run.burst < all / 10 * 9, "{} of {all} by bursts", run.burst);
    Some(())
}

const HELD_BACK: &str =
    "in none of five runs were all readings used within the skew: the machine is too busy";

/// The same with a skew of one burst time exceeds the bound, of the hot key and of the cell; at most 40 runs, since a
/// busy machine may run no worker beside one that is stopped.
fn one_burst_time_mints(ticks: Ticks, ms: u64, seed: u64) {
    let (mut hot, mut bytes) = (false, false);
    for run in (0..40).map(|i| Run::new(ticks, ms, seed + i, true)) {
        hot |= run.keyed[0] > run.most;
        bytes |= run.bytes > run.most_bytes;
        if hot && bytes {
            return;
        }
    }
    panic!("hot key above its bound: {hot}, cell: {bytes}; the test cannot fail");
}

#[test]
fn workers_stopped_between_clock_and_call_admit_at_most_the_bound() {
    default_options_admit_at_most_the_bound(Ticks::MONOTONIC, 2_000, 1).expect(HELD_BACK);
}

#[test]
fn control_stopped_workers_mint_under_a_skew_of_one_burst_time() {
    one_burst_time_mints(Ticks::MONOTONIC, 1_000, 100);
}

/// Readings of the processor's own counter, which the processors of a host share to within less than `apart`.
#[cfg(feature = "host")]
#[test]
fn workers_stopped_between_counter_and_call_admit_at_most_the_bound() {
    use tatcell::host::{counter, TickClock};
    const NAME: &str = "stopped::workers_stopped_between_counter_and_call_admit_at_most_the_bound";
    let Ok(clock) = TickClock::calibrate(10 * MS) else {
        return println!("SKIP {NAME}: this processor has no counter of constant rate");
    };
    let per_second = clock.ticks_per_sec();
    let ticks = Ticks { read: counter, per_second, apart: per_second / 1_000, stop: 100 };
    if default_options_admit_at_most_the_bound(ticks, 1_000, 200).is_none() {
        // 2^30 ticks of a fast counter are less than half a second.
        println!("SKIP {NAME}: {HELD_BACK}");
    }
}

#[test]
#[ignore = "a minute: thirty times as long, in runs of ten seconds"]
fn long_workers_stopped_between_clock_and_call_admit_at_most_the_bound() {
    for seed in 0..size_from("TATCELL_STOP_RUNS", 6) {
        default_options_admit_at_most_the_bound(Ticks::MONOTONIC, 10_000, 1_000 + 10 * seed)
            .expect(HELD_BACK);
    }
}

//! Processes that share one table and are killed at any instruction: nothing is over-admitted, and no key is stuck.
//!
//! Workers are forked over one shared mapping. They insert and charge thousands of fresh keys, one at a time and in
//! bursts, while the parent kills and replaces them. Within an era time advances by a tick per request, and the
//! workers' clocks are a few ticks apart, so that keys of the previous era expire for some and not for others. A worker
//! counts an admission after the table has granted it. A kill in between loses the count and never the charge, so
//! `counted <= charged <= burst` must hold for every key, whoever dies when.
//!
//! The long form, 1e5 kills in six worlds at once (`cargo test --release --test kill -- --ignored`, AMD EPYC of family
//! 26, 2026-11-23, two cores that others used too): 100 013 kills, 273 of workers stopped for up to a second before, 85
//! 358 637 admissions, 3 922 claims left behind, no key over its burst and none stuck; 663 s of processor time.
//!
//! If the processor has AVX-512, every worker checks that its searches use it: loom and the explorer do not.
#![cfg(all(target_os = "linux", target_has_atomic = "64"))]

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/search.rs"]
mod search;

use common::{size_from, Rng, Seed};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use tatcell::{
    AttachOptions, Burst, FullPolicy, LimitSpec, Line, NextBurst, Outcome, Request, Table, TableLimit,
    TableOptions, Tracking,
};

const WORKERS: usize = 4;
/// One in this number of deaths is that of a worker that was stopped for up to a second first.
const STOPS: u64 = 256;
const KEYS: usize = 1_500;
/// 4096 slots.
const LINES: usize = 514;
/// More ticks than an era has requests.
const T: u64 = 1 << 24;
const B: u64 = 3;
const SPEC: LimitSpec = LimitSpec::new(1, T, B);

/// What parent and workers share. All zero is its start.
#[repr(C)]
struct Shared {
    lines: [Line; LINES],
    era: AtomicU64,
    /// The time: a tick a request.
    clock: AtomicU64,
    /// Set by each worker when it starts to work.
    started: [AtomicU64; WORKERS],
    counted: [AtomicU32; KEYS],
    /// Calls of the final check that went wrong.
    wrong: AtomicU64,
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

/// A worker's reading: they are a few ticks apart.
fn now(shared: &Shared, worker: usize) -> u64 {
    shared.clock.fetch_add(1, Relaxed) + worker as u64
}

fn options() -> TableOptions {
    TableOptions::new(SPEC).caller_hash().resolution(0).policy(FullPolicy::Deny)
}

fn key(era: u64, i: usize) -> u64 {
    Rng(era << 16 | i as u64).next()
}

/// Runs until killed. Allocates nothing, as a forked child of a threaded process must not.
fn work(shared: &'static Shared, worker: usize, seed: u64) -> ! {
    let Ok(table) = Table::attach(&shared.lines, &AttachOptions::new()) else { exit(3) };
    let Ok(limit) = table.limit(&SPEC) else { exit(4) };
    let mut rng = Rng(seed);
    let era = shared.era.load(SeqCst);
    shared.started[worker].store(seed, SeqCst);
    if search::takes_avx512(&options(), &SPEC) != search::expects_avx512() {
        exit(5);
    }
    loop {
        // Neighbours in the same order as the others, from a random place: rivals meet on fresh keys.
        let first = rng.below(KEYS as u64) as usize;
        for i in (first..first + 32).map(|i| i % KEYS) {
            if rng.one_in(2) {
                if let Ok(Outcome::Conforming) = table.check_hash(&limit, now(shared, worker), key(era, i), 1)
                {
                    shared.counted[i].fetch_add(1, SeqCst);
                }
            } else {
                // As many again by a burst, the first one twice.
                let at = [i, (i + 1) % KEYS, i, (i + 2) % KEYS, (i + 3) % KEYS];
                let hashes = at.map(|i| key(era, i));
                let burst = Burst::new(&limit, now(shared, worker), &hashes);
                let pass = burst.check(&table, None, NextBurst::NONE).unwrap_or(0);
                for (_, i) in at.iter().enumerate().filter(|(bit, _)| pass >> bit & 1 == 1) {
                    shared.counted[*i].fetch_add(1, SeqCst);
                }
            }
            // Keys that nobody counts come and go, so that whoever dies dies in an insert.
            for _ in 0..4 {
                let (hash, now) = (rng.next(), now(shared, worker));
                let request = Request { limit: &limit, now, cost: 1, room: 0 };
                if let Ok(d) = table.check_ex(&request, hash, None) {
                    let _ = table.refund(&limit, now, hash, &d.permit);
                }
            }
        }
    }
}

fn exit(code: i32) -> ! {
    // SAFETY: ends a forked child at once.
    unsafe { libc::_exit(code) }
}

fn spawn(child: impl FnOnce()) -> i32 {
    // SAFETY: the child only makes calls that need no lock and ends by `_exit` or a kill.
    match unsafe { libc::fork() } {
        0 => {
            // A test that fails leaves nobody behind.
            // SAFETY: no pointers; the signal comes when the parent has ended.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
            child();
            exit(0)
        }
        pid => {
            assert!(pid > 0, "fork failed");
            pid
        }
    }
}

/// Kills children of this test at once and waits for them.
fn kill(pids: &[i32]) {
    for &pid in pids {
        // SAFETY: `pid` is a child of this process that has not been waited for.
        unsafe { libc::kill(pid, libc::SIGKILL) };
    }
    for &pid in pids {
        let mut status = 0;
        // SAFETY: as above.
        unsafe { assert_eq!(libc::waitpid(pid, &mut status, 0), pid) };
        assert!(libc::WIFSIGNALED(status), "a worker ended by itself: {status:#x}");
    }
}

/// Waits until one of these workers has begun, whose seeds these are; gives the first from `from` on.
fn begun(shared: &Shared, from: usize, seed: impl Fn(usize) -> u64) -> usize {
    let begun = |w: &usize| shared.started[*w].load(SeqCst) == seed(*w);
    loop {
        if let Some(w) = (from..from + WORKERS).map(|w| w % WORKERS).find(begun) {
            return w;
        }
        // Asleep and not yielding: who sleeps is woken before those who have worked meanwhile, on a busy machine, too.
        std::thread::sleep(std::time::Duration::from_micros(20));
    }
}

/// Stops a worker for a random time, up to a second, while the others work; then it goes on, or dies as it stands.
fn stop(pid: i32, rng: &mut Rng) {
    // SAFETY: `pid` is a child of this process that has not been waited for.
    unsafe { libc::kill(pid, libc::SIGSTOP) };
    std::thread::sleep(std::time::Duration::from_micros(rng.scaled(20)));
    if rng.one_in(2) {
        // SAFETY: as above.
        unsafe { libc::kill(pid, libc::SIGCONT) };
        (0..rng.scaled(14)).for_each(|_| std::hint::spin_loop());
    }
}

/// Counts the claims that the dead have left, none of which outlives its lifetime.
fn orphans(shared: &Shared, table: &Table<'_>, era: u64) -> u64 {
    let (info, latest) = (table.info(), now(shared, WORKERS));
    assert!(info.resolution == 0 && info.tag_bits == 20);
    let mask = (1u64 << 43) - 1;
    // Even versions, and a claim or two dropped in its slot before.
    let most = info.claim_lifetime + 16;
    let claims = common::words(&shared.lines)[16..].iter().map(|w| w.load(Relaxed)).filter(|w| w >> 63 == 1);
    let ahead = claims.map(|claim| claim.wrapping_sub(latest) & mask);
    ahead
        .inspect(|ahead| assert!(*ahead <= most || *ahead > mask / 2, "a claim of {ahead} in era {era}"))
        .count() as u64
}

/// In a copy of the memory, when all debts and claims have expired: every slot of a set with a claim of the dead takes
/// a new key.
fn orphans_block_no_slot(shared: &Shared, latest: u64) {
    let copy = common::memory(LINES);
    let pairs = common::words(&copy).iter().zip(common::words(&shared.lines));
    pairs.for_each(|(to, from)| to.store(from.load(Relaxed), Relaxed));
    let table = Table::attach(&copy, &AttachOptions::new()).unwrap();
    let limit = table.limit(&SPEC).unwrap();
    let is_claim = |word: &AtomicU64| word.load(Relaxed) >> 63 == 1;
    let sets = common::words(&shared.lines)[16..].chunks(16).enumerate();
    for (set, _) in sets.filter(|(_, words)| words.iter().any(is_claim)) {
        for tag in 0..16 {
            let hash = common::hash_of(set as u32 * 2, LINES as u32 - 2, 0x8_0000 + tag);
            let request = Request { limit: &limit, now: latest + 2 * B * T, cost: 1, room: 0 };
            let d = table.check_ex(&request, hash, None).unwrap();
            assert!(
                d.passes() && d.tracking == Tracking::Tracked,
                "set {set}: a claim of the dead blocks a slot"
            );
        }
    }
}

/// Nobody runs: every key is within its burst, and answers.
fn check_era(shared: &Shared, table: &Table<'_>, limit: &TableLimit, (era, start): (u64, u64)) -> u64 {
    let (mut total, now) = (0, now(shared, WORKERS));
    let most = B + (now - start) / T;
    for i in 0..KEYS {
        let counted = shared.counted[i].swap(0, SeqCst) as u64;
        let left = table.peek(limit, now, key(era, i), 0).unwrap().remaining;
        assert!(counted + left <= most, "era {era} key {i}: {counted} admitted, {left} left of {most}");
        total += counted;
    }
    // One burst time later every key is whole.
    for i in (era as usize % 8..KEYS).step_by(8) {
        let d = table.peek(limit, now + B * T, key(era, i), 0).unwrap();
        assert_eq!(d.remaining, B, "era {era} key {i}: stuck");
    }
    // Some of them to the end: a verdict at once, exactly what is left, and no more.
    for i in (era as usize % 16..KEYS).step_by(16) {
        let hash = key(era, i);
        let left = table.peek(limit, now, hash, 0).unwrap().remaining;
        let mut passed = 0;
        loop {
            let request = Request { limit, now, cost: 1, room: 0 };
            let d = table.check_ex(&request, hash, None).unwrap();
            assert_ne!(d.outcome(), Outcome::Contended, "era {era} key {i}: stuck");
            if !d.passes() {
                assert!(passed == left || d.tracking == Tracking::Untracked, "era {era} key {i}");
                break;
            }
            passed += 1;
        }
    }
    total
}

/// A process that comes later: every key of the last era gets a verdict, and its full burst after idling.
fn check_afterwards(shared: &'static Shared, era: u64) {
    let pid = spawn(|| {
        let Ok(table) = Table::attach(&shared.lines, &AttachOptions::new()) else { exit(3) };
        let Ok(limit) = table.limit(&SPEC) else { exit(4) };
        for i in 0..KEYS {
            let (hash, soon) = (key(era, i), now(shared, 0));
            let late = soon + (2 + i as u64) * (B * T + 2);
            let first = table.check_hash(&limit, soon, hash, 1);
            let then = table.check_ex(&Request { limit: &limit, now: late, cost: B, room: 0 }, hash, None);
            let full = then.is_ok_and(|d| d.passes() && d.tracking == Tracking::Tracked);
            if !full || !matches!(first, Ok(Outcome::Conforming | Outcome::NonConforming { .. })) {
                shared.wrong.fetch_add(1, SeqCst);
            }
        }
    });
    let mut status = 0;
    // SAFETY: a child of this process.
    unsafe { assert_eq!(libc::waitpid(pid, &mut status, 0), pid) };
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "{status:#x}");
    assert_eq!(shared.wrong.load(SeqCst), 0, "keys are stuck");
}

/// Kills this many workers at their work, in worlds that run beside each other: most of the time goes by while the
/// killed wait for a processor to die on.
fn kill_workers(kills: u64, worlds: u64) {
    let seed = size_from("TATCELL_KILL_SEED", 9);
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..worlds)
            .map(|world| {
                scope.spawn(move || kill_in_a_world(kills.div_ceil(worlds), Rng(seed + world).next()))
            })
            .collect();
        let killed = all.into_iter().map(|world| world.join().expect("its panic says why"));
        println!("{} kills in {worlds} worlds", killed.sum::<u64>());
    });
}

/// Kills a number of workers, a few of them in each era, and checks every key of every era.
fn kill_in_a_world(kills: u64, seed: u64) -> u64 {
    let _shown = Seed(seed);
    let shared = map();
    let table = Table::init(&shared.lines, &options()).unwrap();
    let limit = table.limit(&SPEC).unwrap();
    assert_eq!(search::takes_avx512(&options(), &SPEC), search::expects_avx512());
    let mut rng = Rng(seed);
    let (mut admitted, mut claims, mut killed, mut stops, mut era) = (0, 0, 0u64, 0, 0u64);
    while killed < kills {
        era += 1;
        shared.era.store(era, SeqCst);
        // What the era before has charged has drained by now, but for a tick or so.
        let start = shared.clock.fetch_add(B * T, SeqCst) + B * T;
        let seed = |w: usize, life: u64| era << 16 | life << 8 | w as u64;
        let mut lives = [1u64; WORKERS];
        let mut pids: [i32; WORKERS] = std::array::from_fn(|w| spawn(|| work(shared, w, seed(w, 1))));
        // Some die and are replaced while the others go on, then all die at once.
        let some = rng.below(6);
        for last in (0..=some).map(|i| i == some) {
            let w = begun(shared, rng.below(WORKERS as u64) as usize, |w| seed(w, lives[w]));
            (0..rng.below(1 << 13)).for_each(|_| std::hint::spin_loop());
            if rng.one_in(size_from("TATCELL_STOPS", STOPS)) {
                stop(pids[w], &mut rng);
                stops += 1;
            }
            if !last {
                kill(&pids[w..=w]);
                lives[w] += 1;
                pids[w] = spawn(|| work(shared, w, seed(w, lives[w])));
            }
        }
        // One that has not begun yet dies, too, but shows nothing.
        let at_work = (0..WORKERS).filter(|w| shared.started[*w].load(SeqCst) == seed(*w, lives[*w])).count();
        kill(&pids);
        killed += some + at_work as u64;
        claims += orphans(shared, &table, era);
        orphans_block_no_slot(shared, now(shared, WORKERS));
        admitted += check_era(shared, &table, &limit, (era, start));
    }
    check_afterwards(shared, era);
    let with = if search::expects_avx512() { "AVX-512" } else { "the search of every processor" };
    println!(
        "{killed} kills in {era} eras, {stops} stops, with {with}: {admitted} admissions, {claims} claims left behind"
    );
    assert!(
        admitted > killed && claims > killed / 200,
        "the workers did something, and the dead left something"
    );
    killed
}

#[test]
fn killed_workers_over_admit_nothing_and_leave_no_key_stuck() {
    kill_workers(size_from("TATCELL_KILLS", 10_000), 2);
}

#[test]
#[ignore = "a minute: 1e5 kills"]
fn a_hundred_thousand_kills_over_admit_nothing_either() {
    kill_workers(size_from("TATCELL_KILLS", 100_000), 6);
}

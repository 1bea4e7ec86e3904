//! Processes that share one table and are killed at any instruction: nothing is over-admitted and no key is stuck.
//!
//! Workers are forked over one shared mapping and insert and charge fresh keys by the thousand while the parent kills
//! and replaces them. Time stands still within an era but for a few ticks between the workers' clocks, so that the
//! keys of the era before expire for some and not for others. A worker counts an admission after the table has
//! granted it: a kill in between loses the count and never the charge, so `counted <= charged <= burst` must hold for
//! every key, whenever anybody dies.
#![cfg(all(target_os = "linux", target_has_atomic = "64"))]

mod common;

use common::{size_from, Rng};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use tatcell::{
    AttachOptions, FullPolicy, LimitSpec, Line, Outcome, Request, Table, TableLimit, TableOptions, Tracking,
};

const WORKERS: usize = 2;
const KEYS: usize = 1_500;
/// 4096 slots.
const LINES: usize = 514;
const T: u64 = 1 << 12;
const B: u64 = 3;
const SPEC: LimitSpec = LimitSpec::new(1, T, B);

/// What parent and workers share. All zero is its start.
#[repr(C)]
struct Shared {
    lines: [Line; LINES],
    era: AtomicU64,
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

fn now(era: u64, worker: usize) -> u64 {
    // An era later what was fully charged has just drained, to within the clocks' differences.
    (1 << 20) + era * (B * T + 2) + worker as u64
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
    for _ in 0..200 {
        // A run of neighbours in the same order as the others, from a random place: rivals meet on fresh keys.
        let first = rng.below(KEYS as u64) as usize;
        for i in (first..first + 32).map(|i| i % KEYS) {
            if let Ok(Outcome::Conforming) = table.check_hash(&limit, now(era, worker), key(era, i), 1) {
                shared.counted[i].fetch_add(1, SeqCst);
            }
        }
    }
    loop {
        // SAFETY: no arguments; waits for the kill.
        unsafe { libc::pause() };
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

/// Waits until a worker has begun.
fn begun(shared: &Shared, worker: usize, seed: u64) {
    while shared.started[worker].load(SeqCst) != seed {
        // SAFETY: no arguments; gives the processor away.
        unsafe { libc::sched_yield() };
    }
}

/// Nobody runs: every key is within its burst, and answers.
fn check_era(shared: &Shared, table: &Table<'_>, limit: &TableLimit, era: u64) -> u64 {
    let mut total = 0;
    for i in 0..KEYS {
        let counted = shared.counted[i].swap(0, SeqCst) as u64;
        let left = table.peek(limit, now(era, 0), key(era, i), 0).unwrap().remaining;
        assert!(counted + left <= B, "era {era} key {i}: {counted} admitted, {left} left of {B}");
        total += counted;
    }
    // Some of them to the end: a verdict at once, exactly what is left, and no more.
    for i in (era as usize % 16..KEYS).step_by(16) {
        let (hash, now) = (key(era, i), now(era, WORKERS));
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
            let (hash, late) = (key(era, i), now(era + 2 + i as u64, 0));
            let first = table.check_hash(&limit, now(era, WORKERS), hash, 1);
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

/// Kills this many workers, a few of them in each era, and checks every key of every era.
fn kill_workers(kills: u64) {
    let shared = map();
    let options = TableOptions::new(SPEC).caller_hash().policy(FullPolicy::Deny);
    let table = Table::init(&shared.lines, &options).unwrap();
    let limit = table.limit(&SPEC).unwrap();
    let mut rng = Rng(9);
    let (mut admitted, mut claims, mut killed, mut era) = (0, 0, 0u64, 0u64);
    while killed < kills {
        era += 1;
        shared.era.store(era, SeqCst);
        let seed = |w: usize, life: u64| era << 16 | life << 8 | w as u64;
        let mut lives = [1u64; WORKERS];
        let mut pids: [i32; WORKERS] = std::array::from_fn(|w| spawn(|| work(shared, w, seed(w, 1))));
        // Some die and are replaced while the others go on, then all die at once.
        let some = rng.below(6);
        for last in (0..=some).map(|i| i == some) {
            let w = rng.below(WORKERS as u64) as usize;
            begun(shared, w, seed(w, lives[w]));
            (0..rng.scaled(14)).for_each(|_| std::hint::spin_loop());
            if !last {
                kill(&pids[w..=w]);
                lives[w] += 1;
                pids[w] = spawn(|| work(shared, w, seed(w, lives[w])));
            }
        }
        kill(&pids);
        killed += some + WORKERS as u64;
        claims += common::words(&shared.lines)[16..].iter().filter(|w| w.load(Relaxed) >> 63 == 1).count();
        admitted += check_era(shared, &table, &limit, era);
    }
    check_afterwards(shared, era);
    println!("{killed} kills in {era} eras: {admitted} admissions, {claims} claims left behind");
    assert!(admitted > killed, "the workers did something");
}

#[test]
fn killed_workers_over_admit_nothing_and_leave_no_key_stuck() {
    kill_workers(size_from("TATCELL_KILLS", 10_000));
}

#[test]
#[ignore = "a minute: 1e5 kills"]
fn a_hundred_thousand_kills_over_admit_nothing_either() {
    kill_workers(size_from("TATCELL_KILLS", 100_000));
}

//! Plays a schedule: sends what is due, takes what has been answered, sleeps for about half a millisecond.
//!
//! One thread does both, so that the load program takes little of a small machine. Reply times therefore
//! include up to half a millisecond of waiting to be read, with the limiter on and off alike.

use crate::net::{clock_ns, Net, BURST};
use crate::schedule::Event;
use crate::stats::Stats;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Mutex;
use std::time::Duration;

/// No divisor of any source's interval, so that every source meets the gate's bursts at every stage.
const TICK_NS: u64 = 487_000;

/// Set by SIGINT and SIGTERM; every loop of the program ends soon after.
pub static STOP: AtomicBool = AtomicBool::new(false);

/// What a function says that ended early because of `STOP`.
pub const STOPPED: &str = "stopped";

/// Returns whether the user has asked for the end.
pub fn stopping() -> bool {
    STOP.load(Relaxed)
}

/// Lets this thread sleep to within microseconds of what it asks for.
pub fn sleep_precisely() {
    // SAFETY: sets a property of the calling thread only.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_000u64, 0u64, 0u64, 0u64) };
}

fn take_answers(net: &mut Net, stats: &Mutex<Stats>) {
    loop {
        let now_ns = clock_ns();
        let mut stats = stats.lock().expect("stats lock");
        if net.receive(|answer| stats.on_answer(answer, now_ns)) < BURST {
            return;
        }
    }
}

/// Sends the events at their times after `start_ns`, takes answers until `end_ns`, and returns how many it sent.
/// Setting `give_up` ends it early.
pub fn play(
    net: &mut Net,
    events: &[Event],
    start_ns: u64,
    end_ns: u64,
    stats: &Mutex<Stats>,
    give_up: &AtomicBool,
) -> usize {
    let mut next = 0;
    while !stopping() && !give_up.load(Relaxed) {
        let now_ns = clock_ns();
        if now_ns >= end_ns {
            break;
        }
        let elapsed_us = now_ns.saturating_sub(start_ns) / 1_000;
        let due = events[next..].iter().take(BURST).take_while(|e| u64::from(e.at_us) <= elapsed_us).count();
        if due > 0 {
            let batch = &events[next..next + due];
            let taken = net.send(batch, now_ns);
            let mut stats = stats.lock().expect("stats lock");
            batch[..taken].iter().for_each(|e| stats.on_sent(e.source, now_ns));
            stats.max_lag_us = stats.max_lag_us.max(elapsed_us - u64::from(batch[0].at_us));
            if taken == 0 {
                stats.send_errors += 1;
            }
            next += taken.max(1);
        }
        take_answers(net, stats);
        if due < BURST {
            std::thread::sleep(Duration::from_nanos(TICK_NS - now_ns % TICK_NS));
        }
    }
    next
}

/// Sends the events over and over as fast as the system takes them until `end_ns`, for the calibration.
pub fn flood(net: &mut Net, events: &[Event], end_ns: u64, stats: &Mutex<Stats>) {
    for batch in events.chunks(BURST).cycle() {
        let now_ns = clock_ns();
        if now_ns >= end_ns || stopping() {
            return;
        }
        let taken = net.send(batch, now_ns);
        let mut locked = stats.lock().expect("stats lock");
        batch[..taken].iter().for_each(|e| locked.on_sent(e.source, now_ns));
        drop(locked);
        take_answers(net, stats);
    }
}

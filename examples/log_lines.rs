//! Lines of the crate `log` at a limited rate: two a second in each place, three at once, and how many were left out.
//!
//! The logger is ten lines here, by a clock that is simulated, so that every run prints the same; in a program it is
//! env_logger, or whatever is installed. The exit status is 0 only if the lines are those that they must be.
//!
//! ```text
//! cargo run --example log_lines
//! ```

use std::process::ExitCode;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use log::{Level, LevelFilter, Log, Metadata, Record};
use tatcell::log_limited;

/// Milliseconds; they wrap on the way, as a tick counter does.
static NOW_MS: AtomicU32 = AtomicU32::new(u32::MAX - 700);
const HZ: u64 = 1_000;

/// Prints each line, and counts those of either level.
struct Lines {
    warnings: AtomicU32,
    errors: AtomicU32,
}

static LINES: Lines = Lines { warnings: AtomicU32::new(0), errors: AtomicU32::new(0) };

impl Log for Lines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, line: &Record<'_>) {
        let count = if line.level() == Level::Error { &self.errors } else { &self.warnings };
        count.fetch_add(1, Relaxed);
        println!("{:>10} {} {}", NOW_MS.load(Relaxed), line.level(), line.args());
    }

    fn flush(&self) {}
}

fn queue_full(length: u32) -> u32 {
    // Each place that logs has a limit of its own.
    if let Some(left_out) = log_limited!(NOW_MS.load(Relaxed), 2 per 1.secs(), HZ, burst 3) {
        log::warn!("queue full at {length} ({left_out} more were not logged)");
        return left_out;
    }
    0
}

fn link_down() -> u32 {
    if let Some(left_out) = log_limited!(NOW_MS.load(Relaxed), 1 per 1.minutes(), HZ, burst 1) {
        log::error!("link down ({left_out} more were not logged)");
        return left_out;
    }
    0
}

fn main() -> ExitCode {
    if log::set_logger(&LINES).is_err() {
        return ExitCode::FAILURE;
    }
    log::set_max_level(LevelFilter::Warn);
    let (mut told, mut down) = (0, 0);
    // 100 s: for 2 s of them the queue is full in each millisecond, and each second the link is found down.
    for ms in 0..100_000 {
        if ms < 2_000 || ms == 99_999 {
            told += queue_full(64);
        }
        if ms % 1_000 == 0 {
            down += link_down();
        }
        NOW_MS.fetch_add(1, Relaxed);
    }
    // Written or told: each of the 2001 lines, and of the 100 all up to the one that was written last.
    let warnings = LINES.warnings.load(Relaxed);
    let right = warnings == 7 && warnings + told == 2_001 && LINES.errors.load(Relaxed) == 2 && down == 59;
    ExitCode::from(u8::from(!right))
}

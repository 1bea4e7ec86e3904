//! Sends the same arrivals through every algorithm. Writes units admitted over time as a picture, and a table of the
//! worst window, the memory per key and the time per decision.
//!
//! Checks what the documentation says of each algorithm, and ends with an error if that is wrong. Times decide nothing.
//!
//! ```text
//!  tatcell-compare [compare.svg]
//! ```

mod limiters;
mod picture;
mod streams;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use limiters::{Limiter, ALL};
use streams::{worst, Stream, SECOND, UNITS};

/// What came of one stream.
pub struct Run {
    pub stream: Stream,
    /// The instants at which each limiter let a unit pass.
    pub admitted: Vec<Vec<u64>>,
}

fn run(stream: Stream) -> Run {
    let pass = |limiter: &Limiter| {
        let mut decide = (limiter.fresh)();
        // A clock that starts at 0 would be a special case; whole seconds keep aligned windows where they are.
        let later = |at: &u64| decide(at + 1_000 * SECOND);
        stream.arrivals.iter().copied().filter(later).collect()
    };
    let admitted = ALL.iter().map(pass).collect();
    Run { stream, admitted }
}

/// Nanoseconds a decision of the stream that is refused half of the time, of the best of a few rounds.
fn time(limiter: &Limiter, arrivals: &[u64]) -> f64 {
    let round = |_| {
        let mut decide = (limiter.fresh)();
        let start = Instant::now();
        let passed = (0..200).flat_map(|turn| arrivals.iter().map(move |at| at + (turn << 33)));
        let (passed, all) = passed.fold((0u64, 0u64), |(n, all), at| (n + u64::from(decide(at)), all + 1));
        assert!(passed > 0);
        start.elapsed().as_nanos() as f64 / all as f64
    };
    (0..5).map(round).fold(f64::INFINITY, f64::min)
}

/// Prints a claim and whether it holds.
fn claim(holds: bool, text: String) -> bool {
    println!("{} {text}", if holds { "PASS" } else { "FAIL" });
    holds
}

fn main() -> ExitCode {
    let path = std::env::args_os().nth(1).map_or_else(|| PathBuf::from("compare.svg"), PathBuf::from);
    let runs: Vec<Run> = streams::all().into_iter().map(run).collect();

    println!("limit {UNITS} a second; for each stream: units admitted, and the most in any second\n");
    print!("{:<22}", "");
    runs.iter().for_each(|run| print!("{:>14}", run.stream.name));
    println!("{:>12}{:>10}", "bytes/key", "ns");
    let overload = &runs[1].stream.arrivals;
    for (i, limiter) in ALL.iter().enumerate() {
        print!("{:<22}", limiter.name);
        for run in &runs {
            let admitted = &run.admitted[i];
            print!("{:>14}", format!("{} / {}", admitted.len(), worst(admitted, SECOND)));
        }
        println!("{:>12}{:>10.1}", limiter.bytes, time(limiter, overload));
    }
    println!();

    let mut good = true;
    for (i, limiter) in ALL.iter().enumerate() {
        let most = runs.iter().map(|run| worst(&run.admitted[i], SECOND)).max().unwrap_or(0);
        let text = format!("{}: at most {} units in any second (seen: {most})", limiter.name, limiter.bound);
        good &= claim(most <= limiter.bound, text);
    }
    let of = |stream: usize, name: &str| {
        ALL.iter().position(|limiter| limiter.name == name).map(|i| &runs[stream].admitted[i])
    };
    if let Some(edge) = of(2, "fixed window, aligned") {
        let twice = worst(edge, SECOND / 25);
        let text = format!("fixed window: both bursts around a border pass, {twice} units in 40 ms");
        good &= claim(twice == 2 * UNITS, text);
    }
    if let Some(admitted) = of(1, "gcra, burst 100") {
        // A client at a times the limit spends q in q / (a - 1) of its requests' time: q * a / (a - 1) units, here 2 q.
        let first = admitted.iter().zip(overload).take_while(|(a, b)| a == b).count() as u64;
        let text =
            format!("gcra: {first} units at twice the limit before the first refusal, q * a / (a - 1) = 200");
        good &= claim(first.abs_diff(2 * UNITS) <= 1, text);
    }

    if let Some(admitted) = of(1, "quota-linear") {
        // The quota, then nothing until its window is over, then one unit after the other.
        let first = admitted.iter().zip(overload).take_while(|(a, b)| a == b).count() as u64;
        let later = admitted.iter().filter(|at| (2 * SECOND..3 * SECOND).contains(*at)).count() as u64;
        let text = format!("quota-linear: {first} units at once, and {later} a second from then on");
        good &= claim(first == UNITS && later.abs_diff(UNITS) <= 1, text);
    }
    if let Some(exact) = of(2, "sliding log") {
        let most = worst(exact, SECOND);
        good &= claim(
            most == UNITS,
            format!("sliding log: exactly {most} units in the worst second of the edge"),
        );
    }

    if let Err(e) = picture::draw(&path, &runs) {
        eprintln!("compare: {e}");
        return ExitCode::FAILURE;
    }
    println!("\npicture: {}", path.display());
    if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

//! Plays seeds of worlds.
//!
//! With `--state`, the worlds are played in ranges. The first line of the file names this program by the digest of its
//! file, the first seed and the choice of worlds; a file of others is refused. Each range gets a line: its seeds, and
//! `well`, `failed`, or `stopped` if `--most` left seeds out. A seed that fails is printed with the fewest faults with
//! which it still fails. The exit status is then 1.

use std::fs::File;
use std::io::{Read, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{value_parser, Parser};
use tatcell_cluster_sim::kept::KEPT;
use tatcell_cluster_sim::lua::Scripts;
use tatcell_cluster_sim::plan::Plan;
use tatcell_cluster_sim::play::{play, settles, shrink, Outcome, Tally};

#[global_allocator]
static MEMORY: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Plays seeds of worlds: a range, the kept ones, or one
#[derive(Parser)]
struct Args {
    /// The first seed of a range
    #[arg(long, value_name = "N", requires = "to", required_unless_present_any = ["kept", "seed"])]
    from: Option<u64>,
    /// The seed behind its last one
    #[arg(long, value_name = "N", requires = "from")]
    to: Option<u64>,
    /// Threads
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u64).range(1..))]
    jobs: u64,
    /// Stops a thread after this many failures
    #[arg(long, value_name = "N", default_value_t = 5)]
    most: u64,
    #[command(flatten)]
    choice: Choice,
    /// Goes on after the last range that the file has
    #[arg(long, value_name = "FILE")]
    state: Option<String>,
    /// The seeds that once found a fault
    #[arg(long, conflicts_with_all = ["from", "seed"])]
    kept: bool,
    /// One, with what happens in it
    #[arg(long, value_name = "N", conflicts_with = "from")]
    seed: Option<u64>,
    /// Without what happens in it
    #[arg(long, requires = "seed")]
    quiet: bool,
}

/// The worlds of a range that are played.
#[derive(clap::Args)]
struct Choice {
    /// Only worlds with a fault of each of these kinds
    #[arg(long, value_name = "KIND,KIND", value_delimiter = ',')]
    with: Vec<String>,
    /// Only worlds whose liveness is looked at
    #[arg(long)]
    lively: bool,
    /// A line for each world, to compare two builds
    #[arg(long)]
    each: bool,
}

impl Choice {
    fn has(&self, plan: &Plan) -> bool {
        plan.has(&self.with) && (!self.lively || settles(plan).is_some())
    }
}

/// Prints how a seed goes, with the fewest faults if it fails. Returns whether it is well.
fn one(seed: u64, lua: &mut Scripts, tell: bool) -> bool {
    let plan = Plan::of(seed);
    let outcome = play(&plan, lua, false);
    if outcome.wrong.is_empty() {
        if tell {
            println!("{plan:#?}");
            play(&plan, lua, true).found.story.iter().for_each(|line| println!("{line}"));
            outcome.checks.iter().for_each(|check| println!("{check:?}"));
        }
        return true;
    }
    println!("seed {seed} FAILS: {}", outcome.wrong.join("; "));
    let least = shrink(&plan, lua);
    let outcome = play(&least, lua, true);
    println!("  the least: {}", outcome.wrong.join("; "));
    if tell {
        outcome.found.story.iter().for_each(|line| println!("{line}"));
        outcome.checks.iter().for_each(|check| println!("{check:?}"));
    }
    let Plan { hosts, slots, shape, down, length, .. } = &least;
    println!(
        "  {hosts} hosts, {slots} slots, {shape:?}, {down:?}, {} s, {:?}",
        length / 1_000_000_000,
        least.limits
    );
    for fault in &least.faults {
        println!("  {:.3} to {:.3} s: {:?}", fault.at as f64 / 1e9, fault.until as f64 / 1e9, fault.what);
    }
    false
}

fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |digest, byte| {
        (digest ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Returns all that a world showed, as counts and the FNV-1a of the rest.
fn line_of(outcome: &Outcome) -> String {
    let Outcome { found, checks, wrong } = outcome;
    let rest = format!("{:?} {:?} {:?} {checks:?} {wrong:?}", found.admitted, found.seen, found.open);
    let digest = fnv(rest.as_bytes());
    format!("{} {} {} {} {digest:016x}", found.decisions, found.calls, found.steps, found.admitted.len())
}

/// How the worlds of a range went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Went {
    Well,
    Failed,
    /// So many failed that the rest was left out.
    Stopped,
}

/// Returns the processor's time of this thread, as Linux counts it; elsewhere the time since `begun`.
fn spent(begun: Instant) -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns = text.split(' ').next().and_then(|ns| ns.parse().ok());
    ns.map_or(begun.elapsed(), Duration::from_nanos)
}

/// Plays every `step`th seed of a range; stops after `most` failures. Returns the sums, the failures and the time.
fn range(
    from: u64,
    to: u64,
    step: u64,
    most: u64,
    choice: &Choice,
) -> Result<(Tally, u64, Duration), String> {
    let begun = Instant::now();
    let mut lua = Scripts::new().map_err(|error| error.to_string())?;
    let (mut tally, mut failed) = (Tally::default(), 0);
    for seed in (from..to).step_by(step as usize) {
        let plan = Plan::of(seed);
        if !choice.has(&plan) {
            continue;
        }
        let outcome = play(&plan, &mut lua, false);
        tally.add(&plan, &outcome);
        if choice.each {
            println!("{seed} {}", line_of(&outcome));
        }
        if !outcome.wrong.is_empty() {
            one(seed, &mut lua, false);
            failed += 1;
            if failed >= most {
                println!("stopped; resume with --from {}", seed + 1);
                break;
            }
        }
        if (seed + 1) % 1_000 == 0 {
            eprintln!("at seed {}", seed + 1);
        }
    }
    Ok((tally, failed, spent(begun)))
}

/// Plays a range on `jobs` threads, and prints the sums.
fn ranges(from: u64, to: u64, jobs: u64, most: u64, choice: &Choice) -> Result<Went, String> {
    let parts: Result<Vec<(Tally, u64, Duration)>, String> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..jobs).map(|job| scope.spawn(move || range(from + job, to, jobs, most, choice))).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|_| Err("a world panicked".to_owned()))
        };
        threads.into_iter().map(join).collect()
    });
    let parts = parts?;
    let failed: u64 = parts.iter().map(|(_, failed, _)| failed).sum();
    let stopped = parts.iter().any(|(_, failed, _)| *failed >= most);
    let minutes = parts.iter().map(|(.., spent)| spent.as_secs_f64()).sum::<f64>() / 60.0;
    let tally = parts.into_iter().fold(Tally::default(), |sum, (part, ..)| sum.and(part));
    println!("seeds {from} to {to}: {tally}");
    println!(
        "{:.0} worlds and {:.1} million decisions a minute of one core; {failed} failed",
        tally.worlds as f64 / minutes,
        tally.decisions as f64 / minutes / 1e6
    );
    if tally.worlds == 0 {
        return Err("no world was played: is the range empty, or a kind of fault misspelt?".to_owned());
    }
    Ok(match failed {
        0 => Went::Well,
        _ if stopped => Went::Stopped,
        _ => Went::Failed,
    })
}

/// How many seeds a range of the long form has.
const PART: u64 = 10_000;

/// Plays the ranges that the file does not have yet. Returns whether all are well, also those that it had. `what` names
/// the program and the choice of worlds: a range that others played says nothing about these.
fn long(
    path: &str,
    what: &str,
    (from, to): (u64, u64),
    mut play: impl FnMut(u64, u64) -> Result<Went, String>,
) -> Result<bool, String> {
    let said = |error: std::io::Error| format!("{path}: {error}");
    let mut file = File::options().create(true).append(true).read(true).open(path).map_err(said)?;
    let mut known = String::new();
    file.read_to_string(&mut known).map_err(said)?;
    let first = format!("from {from} {what}");
    if known.is_empty() {
        writeln!(file, "{first}").map_err(said)?;
    } else if known.lines().next() != Some(&first) {
        return Err(format!(
            "{path}: its ranges are of another program, start or choice of worlds: move it away"
        ));
    }
    let end = |line: &str| line.split(' ').nth(1)?.parse::<u64>().ok();
    let mut next = known.lines().skip(1).filter_map(end).fold(from, u64::max);
    let mut all_well = known.lines().skip(1).all(|line| line.ends_with(" well"));
    while next < to {
        let end = (next + PART).min(to);
        let went = play(next, end)?;
        let word = match went {
            Went::Well => "well",
            Went::Failed => "failed",
            Went::Stopped => "stopped",
        };
        writeln!(file, "{next} {end} {word}").map_err(said)?;
        (next, all_well) = (end, all_well && went == Went::Well);
    }
    let how = if all_well { "all are well" } else { "not all are well: see its lines" };
    println!("{path}: seeds {from} to {next}, {how}");
    Ok(all_well)
}

fn run(args: &Args) -> Result<bool, String> {
    let Args { jobs, most, choice, .. } = args;
    let mut lua = Scripts::new().map_err(|error| error.to_string())?;
    if let Some(seed) = args.seed {
        return Ok(one(seed, &mut lua, !args.quiet));
    }
    let (Some(from), Some(to)) = (args.from, args.to) else {
        let failed = KEPT.iter().filter(|(_, seed)| !one(*seed, &mut lua, false)).count();
        println!("{} kept seeds, {failed} failed", KEPT.len());
        return Ok(failed == 0);
    };
    let Some(path) = &args.state else {
        return ranges(from, to, *jobs, *most, choice).map(|went| went == Went::Well);
    };
    let program = std::env::current_exe().and_then(std::fs::read);
    let program = fnv(&program.map_err(|error| format!("this program's file: {error}"))?);
    let Choice { with, lively, .. } = choice;
    let what = format!("program {program:016x} with {with:?} lively {lively}");
    long(path, &what, (from, to), |from, to| ranges(from, to, *jobs, *most, choice))
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(said) => {
            eprintln!("{said}");
            ExitCode::from(2)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_form_goes_on_where_it_stopped() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("state").to_str().expect("a name").to_owned();
        let mut played = Vec::new();
        let stops = long(&path, "this", (5, 50_000), |from, to| {
            played.push((from, to));
            if from > 20_000 {
                Err("stopped".to_owned())
            } else {
                Ok(Went::Well)
            }
        });
        assert_eq!(stops, Err("stopped".to_owned()));
        let mut again = Vec::new();
        let all_well = long(&path, "this", (5, 35_000), |from, to| {
            again.push((from, to));
            Ok(if from == 20_005 { Went::Stopped } else { Went::Well })
        });
        // Another program, and another start.
        for (what, from) in [("that", 5), ("this", 4)] {
            let said = long(&path, what, (from, 35_000), |_, _| panic!("it plays")).expect_err("refused");
            assert!(said.starts_with(&path) && said.contains("another program"), "{said}");
        }
        assert_eq!(long(&path, "this", (5, 35_000), |_, _| panic!("it plays")), Ok(false));
        let known = std::fs::read_to_string(&path).expect("the file");
        assert_eq!(played, [(5, 10_005), (10_005, 20_005), (20_005, 30_005)]);
        assert_eq!(again, [(20_005, 30_005), (30_005, 35_000)]);
        assert_eq!(all_well, Ok(false));
        let ranges = "5 10005 well\n10005 20005 well\n20005 30005 stopped\n30005 35000 well\n";
        assert_eq!(known, format!("from 5 this\n{ranges}"));
    }
}

//! The arguments, and the plan that they make.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use tatcell::{FullPolicy, Ladder};

use crate::check::CheckArguments;
use crate::emit::{Emitted, Form, Several, Wanted};
use crate::failure::Failure;
use crate::input_args::InputArguments;
use crate::limit::{counts_bytes, ladder, Chained, Rung};
use crate::plan::curve::Rate;
use crate::plan::limits::{LimitReport, TableReport};
use crate::plan::report::Report;
use crate::plan::Plan;
use crate::replay::ReplayArguments;
use crate::show_args::ShowArguments;
use crate::size::SizeArguments;
use crate::units::duration;
use crate::words::{about, plural};

/// Rate limits for operators: which limit a log would have needed, and whom a limit would have refused.
#[derive(Parser, Debug)]
#[command(name = "tatcell", version, max_term_width = 100)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Which limit a log would have needed, and whom a limit would have refused
    Plan(Box<PlanArguments>),
    /// What a server decides of the requests of a log, next to what the library says
    Replay(Box<ReplayArguments>),
    /// What is in a table that runs, or in a saved image; also bans, exempts and resets keys
    Show(Box<ShowArguments>),
    /// How large a table must be for a limit and its keys, and what fits one table
    Size(SizeArguments),
    /// What the limits of a configuration mean, and which are not kept or never decide
    Check(CheckArguments),
}

const EXIT: &str = "Exit codes:
  0  the answer is complete
  1  it breaks a bound: --max-refused, --max-hit, or a good key (--good) is refused; or more keys
     than --max-keys are hit, so nobody knows whether --max-hit is kept
  2  the arguments cannot be used
  3  an input cannot be read; the message has its file, line and column

Memory:
  A key takes 200 to 280 bytes with seven rates, and 25 to 40 for each further rate. A limit takes with each policy 10 \
  to 50 bytes for each key, 8 bytes a slot for its table (--slots), and up to 24 MiB for when keys were refused. A \
  limit by prefixes or a ladder takes 70 more for each prefix; beyond --max-keys of them it counts a sample. Beyond \
  --max-keys the keys are sampled, and the output says so; good keys (--good) come on top. A record that waits to be \
  sorted takes up to 80 bytes, with prefixes up to 150; at most 2 million wait. A key that is listed (--top) takes up \
  to 800 bytes for each limit, and on a page (--report) 12 KiB.";

/// The file of `--report`. A run that is interrupted leaves none.
pub struct Page {
    name: String,
    /// If the file was there before.
    file: Option<File>,
}

impl Page {
    /// Tries whether the page can be written.
    fn open(name: &str) -> io::Result<Page> {
        let file = match Page::create(name) {
            // In some folders files can be made, and not removed.
            Ok(new) => fs::remove_file(name).is_err().then_some(new),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                Some(OpenOptions::new().write(true).open(name)?)
            }
            Err(error) => return Err(error),
        };
        Ok(Page { name: name.into(), file })
    }

    /// Makes a new file; one that is there, and a link, are an error.
    fn create(name: &str) -> io::Result<File> {
        OpenOptions::new().write(true).create_new(true).open(name)
    }

    /// Writes the page, in place of what was there. If that fails, a new file goes away again.
    pub fn write(self, text: &str) -> io::Result<()> {
        let is_new = self.file.is_none();
        let mut file = self.file.map_or_else(|| Page::create(&self.name), Ok)?;
        // What is no file, such as a pipe, has no length.
        if file.metadata()?.is_file() {
            file.set_len(0)?;
        }
        let written = file.write_all(text.as_bytes());
        if is_new && written.is_err() {
            let _ = fs::remove_file(&self.name);
        }
        written
    }
}

const EMIT: &str = "--emit needs one --limit and one --policy: those of the configuration";

/// What happens to a new key whose set is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Policy {
    /// It passes untracked.
    Admit,
    /// It takes over the smallest debt.
    Inherit,
    /// It waits for a slot.
    Deny,
    /// It passes; one in 16 takes over the smallest debt and forgives it.
    Sampled,
}

/// Arguments of `tatcell plan`.
#[derive(Args, Debug)]
#[command(after_help = EXIT)]
pub struct PlanArguments {
    /// What to read.
    #[command(flatten)]
    pub input: InputArguments,

    /// A rate for which to find the burst that each key needs; may be repeated
    #[arg(short, long, value_name = "RATE", default_values = ["0.5/s", "1/s", "2/s", "5/s", "10/s", "20/s", "50/s"])]
    pub rate: Vec<String>,

    /// A limit to replay, such as "10/s burst 20", "sliding 100/min", "fixed 100/min", "quota 1000/h" or "decay 10/s
    /// burst 100"; several with "and" between must all pass, "/24,56 50/s burst 200" counts by prefixes; may be
    /// repeated
    #[arg(short, long, value_name = "LIMIT")]
    pub limit: Vec<String>,

    /// The tiers of each limit "ladder 10/s burst 20", up to 8 of IPv4 and after a comma up to 8 of IPv6: a prefix
    /// length and how many times the limit of one address it has; without this the library's default ladder
    #[arg(long, value_name = "TIERS", value_parser = ladder)]
    pub ladder: Option<Ladder>,

    /// What a full set of the table does with a new key; each limit is replayed with each policy
    #[arg(short, long, value_enum, value_delimiter = ',', default_value = "admit")]
    pub policy: Vec<Policy>,

    /// The chance of a full set for which a size of the table is recommended, in billionths
    #[arg(long, value_name = "PPB", default_value_t = 1000)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub target: u64,

    /// The share of keys that the smallest limit leaves alone
    #[arg(long, value_name = "PERCENT", default_value = "99")]
    pub spare: String,

    /// A key that the smallest limit leaves alone, as the output shows keys; may be repeated
    #[arg(short, long, value_name = "KEY")]
    pub good: Vec<String>,

    /// The length of the windows of which the worst is reported
    #[arg(long, value_name = "TIME", default_value = "1min", value_parser = duration)]
    pub window: Duration,

    /// How many keys to list
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    pub top: usize,

    /// Write JSON
    #[arg(long)]
    pub json: bool,

    /// Also write the answer as a page with pictures; FILE.svg: only the picture of traffic over time under the first
    /// limit
    #[arg(long, value_name = "FILE")]
    pub report: Option<String>,

    /// Write the configuration that does what the one --limit says, instead of the answer; with --json next to it
    #[arg(long, value_enum, value_name = "FORM")]
    pub emit: Option<Form>,

    /// End with 1 if a limit refuses a larger share of the records than this
    #[arg(long, value_name = "PERCENT", value_parser = most)]
    pub max_refused: Option<f64>,

    /// End with 1 if a limit refuses more keys than this
    #[arg(long, value_name = "COUNT")]
    pub max_hit: Option<u64>,
}

/// Reads percents that are a bound.
fn most(text: &str) -> Result<f64, String> {
    let percents = text.parse().ok().filter(|percents| (0.0..=100.0).contains(percents));
    percents.ok_or_else(|| format!("{text:?} is no share: use percents from 0 to 100"))
}

/// Reads percents as millionths, without rounding.
fn percent(text: &str) -> Result<u64, String> {
    let fail =
        || format!("--spare {text:?}: use percents from 0 to 100 with at most four decimals, such as 99.9");
    let number = text.trim().trim_end_matches('%').trim_end();
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || whole.len() > 3 || decimals.len() > 4 || !digits(whole) || !digits(decimals) {
        return Err(fail());
    }
    let ppm: u64 = format!("{whole}{decimals:0<4}").parse().map_err(|_| fail())?;
    if ppm > 1_000_000 {
        return Err(fail());
    }
    Ok(ppm)
}

impl PlanArguments {
    /// Makes the plan.
    pub fn plan(&self) -> Result<Plan, Failure> {
        let rates: Result<_, _> = self.rate.iter().map(|text| Rate::parse(text)).collect();
        let ladder = self.ladder.unwrap_or_default();
        let limit = |text: &String| Chained::parse(text)?.with_ladder(&ladder);
        let limits: Vec<_> =
            self.limit.iter().map(limit).collect::<Result<_, _>>().map_err(Failure::Usage)?;
        if self.ladder.is_some() && limits.iter().all(|limit| limit.ladder.is_none()) {
            let what = "--ladder is for a limit that begins with this word: --limit \"ladder 10/s burst 20\"";
            return Err(Failure::Usage(what.into()));
        }
        let in_bytes = self.rate.iter().chain(&self.limit).find(|text| counts_bytes(text));
        if let (None, Some(text)) = (&self.input.cost, in_bytes) {
            return Err(Failure::Usage(format!(
                "{text:?} counts bytes: give --cost bytes, or another field"
            )));
        }
        if self.report.as_deref().is_some_and(|file| file.ends_with(".svg")) && self.limit.is_empty() {
            let what = "--report FILE.svg shows what a limit refuses: give --limit, or write a page";
            return Err(Failure::Usage(what.into()));
        }
        if self.window.is_zero() {
            return Err(Failure::Usage("--window 0: use a time above 0, such as 1min".into()));
        }
        Ok(Plan {
            rates: rates.map_err(Failure::Usage)?,
            limits,
            policies: self.policy.iter().map(|policy| (*policy).into()).collect(),
            spare_ppm: percent(&self.spare).map_err(Failure::Usage)?,
            good: self.good.clone(),
            target_ppb: self.target,
            window: self.window,
            top: self.top,
            ..self.input.plan()?
        })
    }

    /// Opens the file of `--report` before anything is read. It must not be one of the inputs.
    pub fn open_report(&self) -> Result<Option<Page>, Failure> {
        let Some(file) = &self.report else { return Ok(None) };
        if file == "-" {
            let what = "--report -: a page is a file, because the answer is on the standard output: name one";
            return Err(Failure::Usage(what.into()));
        }
        let one =
            |name: &str| fs::metadata(name).ok().filter(Metadata::is_file).map(|it| (it.dev(), it.ino()));
        let same = |other: &str| one(file).is_some_and(|file| one(other) == Some(file));
        for (is_same, what) in [
            (self.input.files.iter().any(|input| same(input)), "also read"),
            (same("/dev/stdout"), "also the standard output"),
        ] {
            if is_same {
                return Err(Failure::Usage(format!(
                    "--report {file}: the file is {what}: give another name"
                )));
            }
        }
        Page::open(file).map(Some).map_err(|error| Failure::Input(format!("{file}: {error}")))
    }

    /// Writes the configuration that `--emit` asks for, with a table that is large enough for the keys in debt.
    pub fn emitted(&self, plan: &Plan, report: Option<&Report>) -> Result<Option<Emitted>, Failure> {
        let Some(form) = self.emit else { return Ok(None) };
        let ([limit], [policy]) = (&plan.limits[..], &plan.policies[..]) else {
            return Err(Failure::Usage(EMIT.into()));
        };
        let fail = |what: String| Failure::Usage(format!("--emit {}: {:?} {what}", form.name(), limit.text));
        if let ([Rung { lengths: Some((v4, v6)), .. }], None) = (&limit.rungs[..], &limit.ladder) {
            return Err(fail(format!("counts by prefixes of its own: use --key address/{v4},{v6} instead")));
        }
        let tables: Vec<_> = match report.and_then(|report| report.limits.first()) {
            Some(LimitReport { links, table, .. }) if links.is_empty() => vec![Some(table)],
            Some(LimitReport { links, .. }) => links.iter().map(|link| Some(&link.table)).collect(),
            None => vec![None; limit.rungs.len()],
        };
        // A key that met a full set is not among those in debt, so nobody knows how many there were.
        if let Some(table) = tables.iter().flatten().find(|table| table.met_full_set > 0) {
            let met = plural(table.met_full_set, "record");
            return Err(fail(format!(
                "needs a larger table: {met} met a full set of the {} slots; replay it with more --slots",
                table.slots
            )));
        }
        // As many as are enough, and no table of a few slots.
        let slots = |table: &Option<&TableReport>| {
            let bytes = table.map_or(0, |table| table.recommended_bytes);
            (bytes / 8).saturating_sub(16).max(1024).next_power_of_two()
        };
        let slots: Vec<u64> = tables.iter().map(slots).collect();
        let one_in = tables.iter().flatten().map(|table| table.one_in).max().unwrap_or(1);
        let (key, cost, policy) = (&plan.key, self.input.cost.as_deref(), *policy);
        let emitted = match (&limit.rungs[..], &slots[..]) {
            ([Rung { asked, lengths: None }], [slots]) => {
                Wanted { limit: asked, key, cost, policy, slots: *slots, one_in }.emit(form)
            }
            _ => Several { limit, key, cost, policy, slots: &slots, one_in }.emit(form),
        };
        emitted.map(Some).map_err(Failure::Usage)
    }

    /// Says whether the answer keeps to the bounds that the caller set.
    pub fn judge(&self, report: &Report) -> Result<(), Failure> {
        for limit in &report.limits {
            let share = limit.refused_share * 100.0;
            if let Some(most) = self.max_refused.filter(|most| share > *most) {
                let what =
                    format!("{} refuses {share:.4} % of the records; --max-refused is {most} %", limit.limit);
                return Err(Failure::Bound(what));
            }
            if let Some(most) = self.max_hit.filter(|most| limit.keys_hit > *most) {
                let what = format!(
                    "{} hits {}{}; --max-hit is {most}",
                    limit.limit,
                    about(limit.keys_hit_one_in > 1),
                    plural(limit.keys_hit, "key")
                );
                return Err(Failure::Bound(what));
            }
            // So many are hit that they were sampled, too.
            if let (Some(most), 2..) = (self.max_hit, limit.keys_hit_one_in) {
                return Err(Failure::Bound(format!(
                    "{} hits about {} keys, by a sample: whether these are at most the {most} of --max-hit is not \
                     known; --max-keys {} counts them",
                    limit.limit,
                    limit.keys_hit,
                    limit.keys_hit.saturating_add(limit.keys_hit / 2)
                )));
            }
            if let Some(key) = limit.good_hit.first() {
                return Err(Failure::Bound(format!("{} refuses the good key {key}", limit.limit)));
            }
        }
        Ok(())
    }
}

impl From<Policy> for FullPolicy {
    fn from(policy: Policy) -> FullPolicy {
        match policy {
            Policy::Admit => FullPolicy::Admit,
            Policy::Inherit => FullPolicy::Inherit,
            Policy::Deny => FullPolicy::Deny,
            Policy::Sampled => FullPolicy::Sampled,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_sound() {
        use clap::CommandFactory;
        Arguments::command().debug_assert();
    }

    #[test]
    fn percents_are_read_exactly() {
        assert_eq!(percent("99"), Ok(990_000));
        assert_eq!(percent("99.95%"), Ok(999_500));
        assert_eq!(percent("100"), Ok(1_000_000));
        assert!(percent("100.1").is_err() && percent("-1").is_err() && percent("1.00001").is_err());
    }
}

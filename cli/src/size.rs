//! How large a table must be for a limit and its keys, and what fits one table.

use std::fmt;

use clap::Args;
use serde::Serialize;
use tatcell::{
    full_set_ppb, lines_for_load, Algorithm, FitPart, LimitSpec, Line, Table, TableError, TableFit,
    TableOptions,
};

use crate::failure::Failure;
use crate::limit::{largest_burst, Asked};
use crate::units::HZ;
use crate::words::{bytes, chance, interval, percent, plural, span};

const EXIT: &str = "Exit codes:
  0  the limits fit one table, and the answer says how large it must be
  1  they do not fit, or no table is large enough; the message says what helps
  2  the arguments cannot be used

Memory:
  The table is not made, so the answer takes no memory to speak of.";

/// Arguments of `tatcell size`.
#[derive(Args, Debug)]
#[command(after_help = EXIT)]
pub struct SizeArguments {
    /// A limit of the table, such as "10/s burst 20" or "sliding 100/min"; may be repeated, for keys with other limits
    #[arg(short, long, value_name = "LIMIT", required = true)]
    pub limit: Vec<String>,

    /// How many keys that owe nothing come in a second
    #[arg(short, long, value_name = "COUNT", required_unless_present = "always")]
    pub new_keys: Option<u64>,

    /// How many keys are always in debt
    #[arg(short, long, value_name = "COUNT")]
    pub always: Option<u64>,

    /// How many units a new key spends; without this its whole burst, which is the most
    #[arg(short, long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub units: Option<u64>,

    /// The chance that a new key finds its set full, in billionths
    #[arg(long, value_name = "PPB", default_value_t = 1000)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub target: u64,

    /// Bits of a slot that tell keys apart
    #[arg(long, value_name = "BITS", default_value_t = 20, value_parser = clap::value_parser!(u32).range(12..=24))]
    pub tag_bits: u32,

    /// Write JSON
    #[arg(long)]
    pub json: bool,
}

/// The answer of `tatcell size`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Size {
    /// The version of this structure.
    pub version: u32,
    /// The limits.
    pub limits: Vec<LimitSize>,
    /// Keys that come in a second.
    pub new_keys: u64,
    /// Keys that are always in debt.
    pub always: u64,
    /// For how long a key holds its slot at most, in seconds.
    pub hold_seconds: f64,
    /// Most keys in debt at a time.
    pub live: u64,
    /// The chance of a full set that was asked for.
    pub target_chance: f64,
    /// Slots of the table.
    pub slots: u64,
    /// Bytes of the table.
    pub bytes: u64,
    /// Keys in debt / slots.
    pub load: f64,
    /// The chance of a full set at this load.
    pub full_set_chance: f64,
    /// The chance that a new key is taken for another one.
    pub mistaken_chance: f64,
    /// Bytes of a table for keys of which each spends one unit.
    pub bytes_of_one_unit: u64,
    /// What fits one word.
    pub fit: Fit,
}

/// One limit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LimitSize {
    /// As it was written.
    pub limit: String,
    /// The time of one unit at the rate, in seconds.
    pub emission_interval_seconds: f64,
    /// Most units at one instant.
    pub burst: u64,
    /// For how long a key holds its slot, in seconds.
    pub hold_seconds: f64,
    /// For how long it holds the slot with what it spends, and with one unit, in nanoseconds.
    #[serde(skip)]
    times: (u128, u128),
    #[serde(skip)]
    is_gcra: bool,
}

/// What fits one word of the table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fit {
    /// Bits that tell keys apart.
    pub tag_bits: u32,
    /// The most with which the limits fit; 0 if they do not fit with the fewest.
    pub most_tag_bits: u32,
    /// The longest debt and the difference of clocks, in seconds.
    pub needed_seconds: f64,
    /// What a word holds of both.
    pub available_seconds: f64,
    /// The part of the limits that is too large, if they do not fit.
    pub too_large: Option<&'static str>,
    /// The largest burst that fits at the rate of the limit with the longest debt.
    pub largest_burst: Option<u64>,
}

/// Returns the name of what is too large.
pub fn part(part: FitPart) -> &'static str {
    match part {
        FitPart::Burst => "burst",
        FitPart::Room => "room",
        FitPart::Delay => "delay",
        FitPart::Debt => "debt",
        FitPart::Penalty => "penalty",
        FitPart::Skew => "skew",
        FitPart::Window => "window",
        FitPart::Count => "count",
        _ => "limit",
    }
}

/// Says in words that limits do not fit one table, and what helps.
pub fn too_large(fit: &TableFit) -> Option<String> {
    let part = part(fit.culprit?);
    let cure = match fit.tag_bits {
        0 => format!("give each limit a table of its own, or take a smaller {part}"),
        bits => format!("take {bits} tag bits, or a smaller {part}"),
    };
    Some(format!(
        "debt and difference of clocks need {}, most of it for the {part}; a word holds {}: {cure}",
        span(fit.needed.into()),
        span(fit.available.into())
    ))
}

fn usage(error: TableError) -> Failure {
    Failure::Usage(format!("the limits have no table in common: {error}"))
}

/// Returns the longest debt of a limit in nanoseconds, as the library counts it.
fn longest(spec: &LimitSpec) -> Result<u64, Failure> {
    Ok(TableOptions::new(*spec).skew(0).fit().map_err(usage)?.needed)
}

/// The options of the table that has all of them: the one whose units come fastest, and the one with the longest debt.
fn options(asked: &[Asked]) -> Result<TableOptions, Failure> {
    let (mut fastest, mut slowest) = (asked[0].spec, asked[0].spec);
    for Asked { spec, .. } in asked {
        let ((units, period, _), (most, least, _)) = (spec.numbers(), fastest.numbers());
        if u128::from(period) * u128::from(most) < u128::from(least) * u128::from(units) {
            fastest = *spec;
        }
        if longest(spec)? > longest(&slowest)? {
            slowest = *spec;
        }
    }
    Ok(TableOptions::new(fastest).slowest(slowest))
}

impl LimitSize {
    fn new(asked: &Asked, spent: Option<u64>) -> Result<LimitSize, Failure> {
        let info =
            asked.spec.build().map_err(|error| Failure::Usage(format!("{}: {error}", asked.text)))?.info();
        let time = |units: u64| (u128::from(units) * u128::from(info.period)).div_ceil(info.units.into());
        let (burst, gcra) = (info.burst, info.algorithm == Algorithm::Gcra);
        let whole = u128::from(longest(&asked.spec)?);
        let hold = if gcra { time(spent.unwrap_or(burst).min(burst)) } else { whole };
        let one = if gcra { time(1) } else { whole };
        Ok(LimitSize {
            limit: asked.text.clone(),
            emission_interval_seconds: info.period as f64 / info.units as f64 / HZ as f64,
            burst,
            hold_seconds: hold as f64 / HZ as f64,
            times: (hold, one),
            is_gcra: gcra,
        })
    }
}

/// The bytes for `new` keys a second that hold a slot for `hold`, and for `always` keys that hold one all the time.
fn memory(new: u64, always: u64, hold: u128, target: u64) -> (u64, u64) {
    let coming = u128::from(new).saturating_mul(hold).div_ceil(u128::from(HZ));
    let live = u64::try_from(coming).unwrap_or(u64::MAX).saturating_add(always);
    (live, lines_for_load(live.max(1), target) as u64 * 64)
}

impl SizeArguments {
    /// Answers.
    pub fn size(&self) -> Result<Size, Failure> {
        let is_several = |text: &&String| {
            let text = text.trim_start();
            text.starts_with("ladder ") || text.starts_with('/') || text.contains(" and ")
        };
        if let Some(text) = self.limit.iter().find(is_several) {
            return Err(Failure::Usage(format!(
                "--limit {text:?}: size takes the limit of one key, such as \"10/s burst 20\": repeat --limit for \
                 limits of one table, and ask once for each table; a ladder has a key for each of its lengths"
            )));
        }
        let asked = self.limit.iter().map(|text| Asked::parse(text)).collect::<Result<Vec<_>, _>>();
        let asked = asked.map_err(Failure::Usage)?;
        let limits =
            asked.iter().map(|asked| LimitSize::new(asked, self.units)).collect::<Result<Vec<_>, _>>()?;
        let options = options(&asked)?.tag_bits(self.tag_bits);
        let fit = options.fit().map_err(usage)?;
        if fit.culprit.is_none() {
            let lines = [const { Line::EMPTY }; 4];
            let table = Table::init(&lines, &options.seed([0; 16])).map_err(usage)?;
            for Asked { spec, text } in &asked {
                let why =
                    |error| Failure::Usage(format!("{text:?} has no place next to the others: {error}"));
                table.limit(spec).map_err(why)?;
            }
        }
        let (new, always) = (self.new_keys.unwrap_or(0), self.always.unwrap_or(0));
        let hold = limits.iter().map(|limit| limit.times.0).max().unwrap_or(0);
        let one = limits.iter().map(|limit| limit.times.1).max().unwrap_or(0);
        let (live, bytes) = memory(new, always, hold, self.target);
        if bytes == 0 {
            return Err(Failure::Bound(format!(
                "no table is large enough for {}: give several tables a part of the keys each, or a shorter burst",
                plural(live, "key")
            )));
        }
        let slots = bytes / 8 - 16;
        let ppm = u64::try_from(u128::from(live) * 1_000_000 / u128::from(slots)).unwrap_or(u64::MAX);
        let load = live as f64 / slots as f64;
        let slowest =
            asked.iter().zip(&limits).max_by_key(|(_, limit)| limit.times.0).map(|(asked, _)| asked.spec);
        let is_gcra = limits.iter().all(|limit| limit.is_gcra);
        Ok(Size {
            version: 1,
            new_keys: new,
            always,
            hold_seconds: hold as f64 / HZ as f64,
            live,
            target_chance: self.target as f64 / 1e9,
            slots,
            bytes,
            load,
            full_set_chance: full_set_ppb(ppm) as f64 / 1e9,
            mistaken_chance: 16.0 * load / f64::from(1u32 << self.tag_bits),
            bytes_of_one_unit: memory(new, always, one, self.target).1,
            fit: Fit {
                tag_bits: self.tag_bits,
                most_tag_bits: fit.tag_bits,
                needed_seconds: fit.needed as f64 / HZ as f64,
                available_seconds: fit.available as f64 / HZ as f64,
                too_large: fit.culprit.map(part),
                largest_burst: slowest.filter(|_| is_gcra).and_then(|spec| largest_burst(options, spec)),
            },
            limits,
        })
    }

    /// Says whether the limits fit.
    pub fn judge(&self, size: &Size) -> Result<(), Failure> {
        let Fit { most_tag_bits, .. } = size.fit;
        let Some(part) = size.fit.too_large else { return Ok(()) };
        Err(Failure::Bound(match most_tag_bits {
            0 => format!(
                "the limits do not fit one table: give each a table of its own, or take a smaller {part}"
            ),
            bits => format!(
                "the limits do not fit with {} tag bits: take {bits}, or a smaller {part}",
                self.tag_bits
            ),
        }))
    }
}

fn seconds(seconds: f64) -> String {
    span((seconds * 1e9).round() as u128)
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for limit in &self.limits {
            writeln!(
                f,
                "{}: one unit in {}, {} at once; a key holds a slot for up to {}",
                limit.limit,
                interval(limit.emission_interval_seconds * 1e9),
                limit.burst,
                seconds(limit.hold_seconds)
            )?;
        }
        if self.new_keys > 0 {
            write!(f, "{} a second", plural(self.new_keys, "new key"))?;
            let and =
                if self.always > 0 { format!(" and {} always in debt", self.always) } else { String::new() };
            writeln!(f, "{and}: at most {} in debt at a time", plural(self.live, "key"))?;
        } else {
            writeln!(f, "{} in debt at a time", plural(self.live, "key"))?;
        }
        writeln!(
            f,
            "  {} ({} slots) are enough for a chance of a full set of {}",
            bytes(self.bytes),
            self.slots,
            chance(self.target_chance)
        )?;
        writeln!(f, "  load {}, chance of a full set {}", percent(self.load), chance(self.full_set_chance))?;
        if self.bytes_of_one_unit != self.bytes {
            writeln!(f, "  {} would be enough if each key spent one unit", bytes(self.bytes_of_one_unit))?;
        }
        let Fit { tag_bits, most_tag_bits, needed_seconds, available_seconds, too_large, largest_burst } =
            &self.fit;
        writeln!(
            f,
            "Tag of {tag_bits} bits: a new key is taken for another with a chance of {}",
            if self.mistaken_chance == 0.0 { "0".into() } else { format!("{:.1e}", self.mistaken_chance) }
        )?;
        writeln!(
            f,
            "  debt and difference of clocks need {}; a word holds {}",
            seconds(*needed_seconds),
            seconds(*available_seconds)
        )?;
        match (too_large, most_tag_bits) {
            (None, most) => writeln!(f, "  the limits fit one table, with up to {most} tag bits")?,
            (Some(part), 0) => writeln!(f, "  the limits do not fit one table; the {part} needs most")?,
            (Some(part), most) => {
                writeln!(f, "  the limits fit with up to {most} tag bits; the {part} needs most")?
            }
        }
        match largest_burst {
            Some(burst) => writeln!(f, "  the largest burst that fits is {burst}"),
            None => Ok(()),
        }
    }
}

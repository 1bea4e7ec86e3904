//! What a limit means, in numbers and in words.

use std::fmt;

use serde::Serialize;

use crate::units::HZ;
use crate::words::{interval, plural, span, wrap};

/// A limit of a configuration.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Meaning {
    /// What it is called there.
    pub name: String,
    /// Where it stands: file, line and column, as far as they are known.
    pub place: String,
    /// What it counts by.
    pub key: String,
    /// Units in a period: the rate that is kept, not the one that is written.
    pub units: u64,
    /// That period, in seconds.
    pub period_seconds: f64,
    /// Most units that conform at one instant after idle, and so are passed or delayed.
    pub burst: u64,
    /// How many of these pass without a delay.
    pub at_once: u64,
    /// The time of one unit, in seconds.
    pub emission_interval_seconds: f64,
    /// The time in which a whole burst drains, in seconds.
    pub horizon_seconds: f64,
    /// Most units in windows of time.
    pub worst: Vec<Worst>,
    /// What else there is to say.
    pub more: Vec<String>,
    /// The period in nanoseconds.
    #[serde(skip)]
    pub period: u64,
}

/// Most units in a window of time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Worst {
    /// The length of the window, in seconds.
    pub seconds: u64,
    /// The most units that pass in any such window.
    pub units: u64,
}

const WINDOWS: [(u64, &str); 4] = [(1, "second"), (60, "minute"), (3_600, "hour"), (86_400, "day")];

/// Multiplies and divides, rounded down; saturates.
fn times(a: u64, b: u64, by: u64) -> u64 {
    u64::try_from(u128::from(a) * u128::from(b) / u128::from(by.max(1))).unwrap_or(u64::MAX)
}

impl Meaning {
    /// Makes the numbers of a limit. `rate` is units and a period in nanoseconds, `bursts` what conforms at one instant
    /// and what of that passes without a delay.
    pub fn new(name: &str, place: &str, key: &str, rate: (u64, u64), bursts: (u64, u64)) -> Meaning {
        let ((units, period), (burst, at_once)) = (rate, bursts);
        // In a window w at most R * w pass, and what passes at once: whoever waits comes at the rate. The two shortest
        // windows in which the rate gives a unit say most.
        let in_window = |seconds: u64| times(units, seconds * HZ, period);
        let worst = WINDOWS.iter().filter(|(seconds, _)| in_window(*seconds) > 0).take(2);
        let worst = worst.map(|(seconds, _)| Worst {
            seconds: *seconds,
            units: in_window(*seconds).saturating_add(at_once),
        });
        let interval = period as f64 / units.max(1) as f64 / HZ as f64;
        Meaning {
            name: name.into(),
            place: place.into(),
            key: key.into(),
            units,
            period_seconds: period as f64 / HZ as f64,
            burst,
            at_once,
            emission_interval_seconds: interval,
            horizon_seconds: interval * burst as f64,
            worst: worst.collect(),
            more: Vec::new(),
            period,
        }
    }

    /// Whether this limit refuses or delays whatever the other one would: its rate is not above the other's, and
    /// neither are its bursts. Then its debt, in units, is never below the other's.
    pub fn is_at_least_as_strict_as(&self, other: &Meaning) -> bool {
        let (a, b) = (
            u128::from(self.units) * u128::from(other.period),
            u128::from(other.units) * u128::from(self.period),
        );
        a <= b && self.burst <= other.burst && self.at_once <= other.at_once
    }

    /// Returns how long as many units take, in words.
    fn time_of(&self, units: u64) -> String {
        span(u128::from(times(units, self.period, self.units)))
    }
}

fn article(name: &str) -> &'static str {
    if name == "hour" {
        "an"
    } else {
        "a"
    }
}

/// A rate, in the shortest unit of time in which it is a whole number, else in the shortest in which it is about one.
pub fn rate(units: u64, period: u64) -> String {
    let in_window = |seconds: u64| u128::from(units) * u128::from(seconds) * u128::from(HZ);
    let period = u128::from(period.max(1));
    for (seconds, name) in WINDOWS {
        let all = in_window(seconds);
        if all.is_multiple_of(period) && all >= period {
            return format!("{} {} {name}", all / period, article(name));
        }
    }
    let near = WINDOWS.iter().find(|(seconds, _)| in_window(*seconds) * 2 >= period).unwrap_or(&WINDOWS[3]);
    let value = format!("{:.3}", in_window(near.0) as f64 / period as f64);
    format!("{} {} {}", value.trim_end_matches('0').trim_end_matches('.'), article(near.1), near.1)
}

impl fmt::Display for Meaning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {} by {}", self.place, self.name, self.key)?;
        if self.units == 0 {
            writeln!(f, "  nothing passes")?;
            return self.more.iter().try_for_each(|more| writeln!(f, "  {more}"));
        }
        writeln!(
            f,
            "  {}: one unit in {}",
            rate(self.units, self.period),
            interval(self.emission_interval_seconds * 1e9)
        )?;
        match self.burst - self.at_once {
            0 => writeln!(f, "  {} at once after idle; whoever sends more is refused", self.burst)?,
            more => writeln!(
                f,
                "  {} at once after idle; {more} more wait for their turn, up to {}; whoever sends more is refused",
                self.at_once,
                self.time_of(more)
            )?,
        }
        writeln!(
            f,
            "  after a full burst the next unit passes in {}, and all of it again in {}",
            interval(self.emission_interval_seconds * 1e9),
            self.time_of(self.burst)
        )?;
        let names = |seconds: u64| {
            WINDOWS.iter().find(|window| window.0 == seconds).map_or("window", |window| window.1)
        };
        let worst: Vec<_> = self
            .worst
            .iter()
            .map(|worst| format!("{} in any {}", worst.units, names(worst.seconds)))
            .collect();
        if !worst.is_empty() {
            writeln!(f, "  at most {}", worst.join(", "))?;
        }
        self.more.iter().try_for_each(|more| writeln!(f, "  {more}"))
    }
}

/// What the check says of a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A limit cannot be kept as it is written.
    NotKept,
    /// A limit never decides, because another one on the same key is at least as strict.
    Shadowed,
    /// Something that is easily taken for something else.
    Note,
}

/// One thing that the check says.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// What sort of thing.
    pub kind: Kind,
    /// Where.
    pub place: String,
    /// What it is, and the change that helps.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::NotKept => "cannot be kept",
            Kind::Shadowed => "never decides",
            Kind::Note => "note",
        };
        writeln!(f, "{}", wrap(&format!("{}: {kind}: {}", self.place, self.what)))
    }
}

/// The answer of `tatcell check`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Checked {
    /// The version of this structure.
    pub version: u32,
    /// What was read.
    pub config: String,
    /// Its format.
    pub format: String,
    /// Its limits.
    pub limits: Vec<Meaning>,
    /// What there is to say about them.
    pub findings: Vec<Finding>,
}

impl Checked {
    /// Starts without limits.
    pub fn new(config: &str, format: &str) -> Checked {
        Checked {
            version: 1,
            config: config.into(),
            format: format.into(),
            limits: Vec::new(),
            findings: Vec::new(),
        }
    }

    /// Adds something to say.
    pub fn say(&mut self, kind: Kind, place: impl Into<String>, what: impl Into<String>) {
        self.findings.push(Finding { kind, place: place.into(), what: what.into() });
    }

    /// Returns how many limits cannot be kept or never decide.
    pub fn faults(&self) -> u64 {
        self.findings.iter().filter(|finding| finding.kind != Kind::Note).count() as u64
    }
}

impl fmt::Display for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} ({}): {}", self.config, self.format, plural(self.limits.len() as u64, "limit"))?;
        self.limits.iter().try_for_each(|limit| write!(f, "\n{limit}"))?;
        if !self.findings.is_empty() {
            writeln!(f)?;
        }
        self.findings.iter().try_for_each(|finding| write!(f, "{finding}"))
    }
}

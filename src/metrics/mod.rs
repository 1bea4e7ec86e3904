//! Counters and statistics of tables as text for Prometheus and OpenMetrics.
//!
//! ```text
//!  # TYPE tatcell_requests_total counter
//!  # HELP tatcell_requests_total Requests by verdict.
//!  tatcell_requests_total{table="pages",verdict="conforming"} 1000
//!  tatcell_requests_total{table="pages",verdict="non_conforming"} 3
//! ```
//!
//! # What there is
//!
//! Every sample has the label `table`. A family without a sample is left out.
//!
//! | Family | From | What it counts |
//! |---|---|---|
//! | `tatcell_requests_total{verdict}` | counters | requests: each has one of the five verdicts |
//! | `tatcell_soft_requests_total` | counters | conforming requests above the soft threshold |
//! | `tatcell_full_set_requests_total{outcome}` | counters | requests of new keys whose set was full |
//! | `tatcell_new_keys_total` | counters | new keys that got a slot |
//! | `tatcell_slots` | statistics | slots |
//! | `tatcell_live_keys` | statistics | slots with a live key |
//! | `tatcell_overrides{kind}` | statistics, info | in a table of overrides: the live keys, by `ban` and `exemption` |
//! | `tatcell_expired_keys` | statistics | slots whose key has drained, and that nobody has swept or taken |
//! | `tatcell_claims` | statistics | inserts in progress, and abandoned ones |
//! | `tatcell_full_sets` | statistics | sets of 16 slots of which a new key could take none |
//! | `tatcell_full_set_probability` | statistics | the chance that a new key finds its set full, at this load |
//! | `tatcell_longest_debt_seconds` | statistics, info | the time until the key that owes most has its burst again |
//! | `tatcell_table_memory_bytes` | info | bytes of the table, header included |
//! | `tatcell_table_info{algorithm,policy,tag_bits}` | info | always 1 |
//!
//! A table of overrides has no longest debt. The longest debt needs `tick_hz` of the info. A label value may be any
//! text: quotes, backslashes and ends of lines are escaped. All samples of a family stand together, as both formats
//! ask, so one call writes all tables.
//!
//! Nothing is allocated, and no floating point is used: a fraction has nine decimal places.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

mod family;

use core::fmt::{self, Write};

pub(crate) use family::write;

use crate::limit::Algorithm;
use crate::table::{full_set_ppb, Counters, FullPolicy, Stats, TableInfo};
use crate::text::Text;

/// The two formats of the text.
///
/// ```
/// use tatcell::metrics::Format;
/// // What a scraper asks for in its field Accept.
/// let accept = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.1";
/// let format = if accept.contains("openmetrics") { Format::OpenMetrics } else { Format::Prometheus };
/// assert_eq!(format.content_type(), "application/openmetrics-text; version=1.0.0; charset=utf-8");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// The text format of Prometheus, version 0.0.4.
    #[default]
    Prometheus,
    /// OpenMetrics 1.0. It names units, and ends with `# EOF`: what a program adds stands before it.
    OpenMetrics,
}

impl Format {
    /// Returns the value of the header field Content-Type.
    pub const fn content_type(self) -> &'static str {
        match self {
            Format::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// What is said of one table: its name, and those of counters, statistics and info that the caller has.
///
/// ```
/// use tatcell::metrics::{write_text, Format, TableMetrics};
/// use tatcell::{Counters, LimitSpec, Line, Request, Table, TableOptions};
///
/// let memory = [Line::EMPTY; 34];
/// let spec = LimitSpec::new(10, 1_000, 20); // ticks are milliseconds
/// let options = TableOptions::new(spec).seed(*b"16 random bytes!").tick_hz(1_000);
/// let table = Table::init(&memory, &options)?;
/// let (limit, mut counters) = (table.limit(&spec)?, Counters::default());
/// let request = Request { limit: &limit, now: 0, cost: 5, room: 0 };
/// table.check_ex(&request, table.hash(b"192.0.2.1")?, Some(&mut counters))?;
///
/// let mut text = String::new(); // any core::fmt::Write
/// let stats = table.stats(0);
/// let pages = TableMetrics::new("pages").counters(&counters).stats(&stats).info(&table.info());
/// write_text(&[pages], Format::Prometheus, &mut text)?;
/// assert!(text.contains("tatcell_requests_total{table=\"pages\",verdict=\"conforming\"} 1\n"));
/// assert!(text.contains("tatcell_longest_debt_seconds{table=\"pages\"} 0.500000000\n"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableMetrics<'a> {
    name: &'a str,
    counters: Option<Counters>,
    stats: Option<Stats>,
    info: Option<Said>,
    is_older: bool,
}

/// The part of a table's info that the text has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub algorithm: &'static str,
    pub policy: &'static str,
    pub tag_bits: u32,
    pub bytes: u64,
    pub tick_hz: u64,
}

/// Returns the names of an algorithm (`None`: overrides) and of a policy.
pub(crate) const fn names(algorithm: Option<Algorithm>, policy: FullPolicy) -> (&'static str, &'static str) {
    let algorithm = match algorithm {
        Some(Algorithm::Gcra) => "gcra",
        Some(Algorithm::FixedWindow) => "fixed_window",
        Some(Algorithm::SlidingCounter) => "sliding_counter",
        Some(Algorithm::QuotaLinear) => "quota_linear",
        Some(Algorithm::Decay) => "decay",
        _ => "overrides",
    };
    let policy = match policy {
        FullPolicy::Admit => "admit",
        FullPolicy::Inherit => "inherit",
        FullPolicy::Deny => "deny",
        FullPolicy::Sampled => "sampled",
    };
    (algorithm, policy)
}

impl<'a> TableMetrics<'a> {
    /// Makes metrics that have only a name, for the label `table`. Each table of a call needs another name.
    pub const fn new(name: &'a str) -> TableMetrics<'a> {
        TableMetrics { name, counters: None, stats: None, info: None, is_older: false }
    }

    /// Adds what was counted: the sum of all threads.
    pub const fn counters(mut self, counters: &Counters) -> TableMetrics<'a> {
        self.counters = Some(*counters);
        self
    }

    /// Adds the statistics of one moment.
    pub const fn stats(mut self, stats: &Stats) -> TableMetrics<'a> {
        self.stats = Some(*stats);
        self
    }

    /// Adds what the table is. If the caller knows a `tick_hz` that the table does not, set it in the info first.
    pub const fn info(self, info: &TableInfo) -> TableMetrics<'a> {
        let algorithm = if info.overrides { None } else { Some(info.algorithm) };
        let (algorithm, policy) = names(algorithm, info.policy);
        let (tag_bits, bytes, tick_hz) = (info.tag_bits, info.image_bytes, info.tick_hz);
        self.said(Said { algorithm, policy, tag_bits, bytes, tick_hz })
    }

    pub(crate) const fn said(mut self, info: Said) -> TableMetrics<'a> {
        self.info = Some(info);
        self
    }

    /// The statistics came in a structure that ends before full sets, the longest debt and exemptions.
    #[cfg(feature = "capi")]
    pub(crate) const fn of_older_header(mut self) -> TableMetrics<'a> {
        self.is_older = true;
        self
    }

    /// Returns the statistics if they have full sets, the longest debt and exemptions.
    fn newer(&self) -> Option<&Stats> {
        self.stats.as_ref().filter(|_| !self.is_older)
    }

    /// Whether the table is one of overrides, as far as the info says.
    fn is_overrides(&self) -> bool {
        self.info.is_some_and(|info| info.algorithm == names(None, FullPolicy::Deny).0)
    }

    /// Returns the longest debt in seconds and billionths, rounded down; `None` if nobody knows what a tick is.
    fn longest(&self) -> Option<(u64, u32)> {
        let (ticks, hz) = (self.newer()?.longest, self.info?.tick_hz);
        let rest = u128::from(ticks.checked_rem(hz)?).wrapping_mul(1_000_000_000);
        // Below 10^9, because the rest is below the frequency.
        Some((ticks.checked_div(hz)?, rest.checked_div(hz.into())? as u32))
    }

    /// Returns the chance of a full set in billionths.
    fn full_set(&self) -> Option<u64> {
        Some(full_set_ppb(self.stats?.load_ppm))
    }
}

/// Writes the metrics of these tables.
///
/// ```
/// use tatcell::metrics::{write_text, Format, TableMetrics};
/// use tatcell::Counters;
/// let mut text = String::new();
/// let tables = ["pages", "logins"].map(|name| TableMetrics::new(name).counters(&Counters::default()));
/// write_text(&tables, Format::OpenMetrics, &mut text)?;
/// assert!(text.contains("tatcell_new_keys_total{table=\"logins\"} 0\n") && text.ends_with("# EOF\n"));
/// # Ok::<(), core::fmt::Error>(())
/// ```
///
/// # Errors
/// Those of `out`, which then holds a part of the text.
pub fn write_text<W: Write + ?Sized>(
    tables: &[TableMetrics<'_>],
    format: Format,
    out: &mut W,
) -> fmt::Result {
    let mut sink = |text: &str| out.write_str(text);
    write(tables.len(), &|i| tables.get(i).copied(), format, &mut Text(&mut sink))
}

//! How a limit is divided between the store and the reserves of the nodes, and which form it has.
//!
//! ```text
//!   limit     rate R, burst B, at most N nodes; reserved shares phi_R of the rate, phi_B of the burst
//!   reserve   each node:  rate phi_R R / N        burst K = floor(phi_B B / N)
//!   store                 rate R_s = (1 - phi_R) R   burst B_s = B - N K
//!
//!   leased    a granted piece may wait hold = B_s T / 8 on a node, and the store grants M = B_s T - hold
//!   strict    hold = 0, M = B_s T: every decision is a script call
//! ```
//!
//! The rates and the bursts add up to R and B, and each part is bounded by its own rate and burst. So all parts
//! together admit at most R w + B in any window w. If a node has no reserve (K = 0), the store keeps that part.
//!
//! A limit is leased if pieces are useful: B_s is at least 8 units, and the hold at least two round trips, or a piece
//! would lapse on its way. T is rounded up for the store, and down to nanoseconds for the pieces, which then lie within
//! what was granted.
#![warn(clippy::arithmetic_side_effects)]

use std::time::Duration;

use tatcell::{FullPolicy, LimitSpec, Line, Table, TableOptions};

use crate::axis::{Span, Q_PER_US};

/// The most units of one grant: times the fraction of a unit's time, it stays below 2^52 in the script.
pub const MAX_GRANT: u64 = (1 << 26) - 1;

/// The longest debt, in microseconds (71 years): added to the server's clock, it stays below 2^53 in the script.
const MAX_DEBT_US: u64 = 1 << 51;

/// The longest debt of a leased limit, in nanoseconds (208 days): pieces are placed in 56 bits.
const MAX_LEASED_NS: u64 = 1 << 54;

/// The highest rate, in units per second: one unit takes a nanosecond.
const MAX_PER_SECOND: u128 = 1_000_000_000;

/// The most nodes that can share a limit.
pub const MAX_NODES: u32 = 4_096;

const MILLE: u32 = 1_000;

/// Describes a limit that several nodes share.
///
/// It has units per period, a burst of at least 1 (the most units that pass at one instant after idle), and the share
/// of both that is set aside for the nodes' own reserves: by default 5 % of the rate and 25 % of the burst.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedLimit {
    pub(crate) name: String,
    units: u64,
    period: Duration,
    burst: u64,
    reserve_rate: u32,
    reserve_burst: u32,
}

/// Says why a limit cannot be shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LimitError {
    /// The name is empty, longer than 64 bytes, or has a character other than letters, digits, `-`, `_` and `.`.
    Name,
    /// The limit has 0 units per period, so nothing would ever pass.
    ZeroUnits,
    /// The period is 0.
    ZeroPeriod,
    /// The burst is 0, so nothing would ever pass. The least is 1.
    ZeroBurst,
    /// More than 1e9 units a second.
    RateTooHigh,
    /// The burst takes more than 2^51 microseconds to drain.
    DebtTooLong,
    /// No node, or more than [`MAX_NODES`].
    Nodes,
    /// A reserve takes 1000 per mille or more: nothing would be left to the store.
    ReserveTooLarge,
}

impl std::fmt::Display for LimitError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            LimitError::Name => "the name must be 1 to 64 letters, digits, '-', '_' or '.'",
            LimitError::ZeroUnits => "a limit of 0 units passes nothing; give at least 1",
            LimitError::ZeroPeriod => "a period of 0 has no rate; give at least 1 ns",
            LimitError::ZeroBurst => "a burst of 0 passes nothing; give at least 1",
            LimitError::RateTooHigh => "the rate is above 1e9 units a second; count in larger units",
            LimitError::DebtTooLong => {
                "the burst takes more than 71 years to drain; raise the rate or lower the burst"
            }
            LimitError::Nodes => "the number of nodes must be 1 to 4096",
            LimitError::ReserveTooLarge => "a reserve must be below 1000 per mille: the store needs a part",
        })
    }
}

impl std::error::Error for LimitError {}

/// Describes the reserve of one node: a limit of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserve {
    /// Units per `period_ns`.
    pub units: u64,
    /// The period in nanoseconds.
    pub period_ns: u64,
    /// Units at one instant.
    pub burst: u64,
    /// Nanoseconds in which an empty reserve becomes full, rounded up.
    pub full_ns: u64,
}

/// Holds a divided limit: what the store grants and how, and what each node has by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// The time of one unit at the store, rounded up.
    pub unit: Span,
    /// The burst of the store, in units.
    pub burst: u64,
    /// How far the TAT may lie ahead after a grant: the store's burst less the hold.
    pub lead: Span,
    /// How long a piece may wait on a node before it lapses, nanoseconds; 0 if strict.
    pub hold_ns: u64,
    /// The time of one unit of a piece, nanoseconds, rounded down.
    pub unit_ns: u64,
    /// Whether every decision is its own script call.
    pub strict: bool,
    /// The fewest units of an ask.
    pub min: u64,
    /// The most units of an ask: a quarter of what the store may grant.
    pub most: u64,
    /// The largest cost that can ever conform.
    pub largest_cost: u64,
    /// The reserve of each node, if it has one.
    pub reserve: Option<Reserve>,
}

impl SharedLimit {
    /// Starts a limit of `units` per `period` with a burst. The name identifies it among the limits of one prefix.
    pub fn new(name: &str, units: u64, period: Duration, burst: u64) -> SharedLimit {
        SharedLimit { name: name.to_owned(), units, period, burst, reserve_rate: 50, reserve_burst: 250 }
    }

    /// Sets aside this many per mille of rate and burst for the reserves of all nodes together. If either is 0, there
    /// is no reserve, and nodes ask the store about every key.
    pub fn reserve(mut self, rate_per_mille: u32, burst_per_mille: u32) -> Self {
        (self.reserve_rate, self.reserve_burst) = (rate_per_mille, burst_per_mille);
        self
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the units per period, the period and the burst.
    pub fn parameters(&self) -> (u64, Duration, u64) {
        (self.units, self.period, self.burst)
    }

    /// Writes everything except the name, for the store and for errors.
    pub(crate) fn text(&self) -> String {
        let SharedLimit { units, period, burst, reserve_rate, reserve_burst, .. } = self;
        format!("{units} per {} ns, burst {burst}, reserve {reserve_rate}/{reserve_burst}", period.as_nanos())
    }

    /// Parses what [`text`](Self::text) wrote; returns `None` for any other text.
    pub(crate) fn of_text(name: &str, text: &str) -> Option<SharedLimit> {
        let (units, rest) = text.split_once(" per ")?;
        let (period, rest) = rest.split_once(" ns, burst ")?;
        let (burst, reserve) = rest.split_once(", reserve ")?;
        let (reserve_rate, reserve_burst) = reserve.split_once('/')?;
        let ns: u128 = period.parse().ok()?;
        let (seconds, below) = (u64::try_from(ns / 1_000_000_000).ok()?, (ns % 1_000_000_000) as u32);
        Some(SharedLimit {
            name: name.to_owned(),
            units: units.parse().ok()?,
            period: Duration::new(seconds, below),
            burst: burst.parse().ok()?,
            reserve_rate: reserve_rate.parse().ok()?,
            reserve_burst: reserve_burst.parse().ok()?,
        })
    }

    /// Divides the limit between the store and at most `nodes` reserves. `round_trip` is how long an ask may take while
    /// the store is well: the hold of a leased limit must be at least two of it.
    ///
    /// # Errors
    /// [`LimitError`] names the first problem.
    pub fn split(&self, nodes: u32, round_trip: Duration) -> Result<Split, LimitError> {
        self.validate(nodes)?;
        let (k, reserve, per_mille) = self.reserve_of(nodes);
        let burst = self.burst.saturating_sub(k.saturating_mul(u64::from(nodes)));
        // T = period * 1000 / (units * per mille) ns, and 1000 ns are a microsecond. A period is below 2^94 ns.
        let period = self.period.as_nanos().checked_mul(Q_PER_US).ok_or(LimitError::DebtTooLong)?;
        let unit = period.div_ceil(u128::from(self.units).saturating_mul(u128::from(per_mille)).max(1));
        let full = unit.checked_mul(u128::from(self.burst)).ok_or(LimitError::DebtTooLong)?;
        if full / Q_PER_US > u128::from(MAX_DEBT_US) {
            return Err(LimitError::DebtTooLong);
        }
        let full = unit.saturating_mul(u128::from(burst));
        Ok(form(unit, full, burst, reserve, round_trip))
    }

    fn validate(&self, nodes: u32) -> Result<(), LimitError> {
        let sound = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let second = Duration::from_secs(1).as_nanos();
        if self.name.is_empty() || self.name.len() > 64 || !self.name.chars().all(sound) {
            Err(LimitError::Name)
        } else if self.units == 0 {
            Err(LimitError::ZeroUnits)
        } else if self.period.is_zero() {
            Err(LimitError::ZeroPeriod)
        } else if self.burst == 0 {
            Err(LimitError::ZeroBurst)
        } else if nodes == 0 || nodes > MAX_NODES {
            Err(LimitError::Nodes)
        } else if self.reserve_rate >= MILLE || self.reserve_burst >= MILLE {
            Err(LimitError::ReserveTooLarge)
        } else if u128::from(self.units).saturating_mul(second)
            > MAX_PER_SECOND.saturating_mul(self.period.as_nanos())
        {
            Err(LimitError::RateTooHigh)
        } else {
            Ok(())
        }
    }

    /// Returns the burst of a node's reserve, the reserve, and the per mille of the rate that the store keeps.
    fn reserve_of(&self, nodes: u32) -> (u64, Option<Reserve>, u32) {
        let all = u128::from(self.burst).saturating_mul(u128::from(self.reserve_burst)) / 1_000;
        let k = u64::try_from(all.checked_div(u128::from(nodes)).unwrap_or(0)).unwrap_or(0);
        match self.node_reserve(k, nodes) {
            Some(reserve) => (k, Some(reserve), MILLE.saturating_sub(self.reserve_rate)),
            None => (0, None, MILLE),
        }
    }

    /// Returns the reserve of a node; `None` if it would have no burst or no rate, or if a table could not hold it.
    fn node_reserve(&self, burst: u64, nodes: u32) -> Option<Reserve> {
        let units = self.units.checked_mul(u64::from(self.reserve_rate))?;
        let period =
            self.period.as_nanos().checked_mul(u128::from(MILLE).saturating_mul(u128::from(nodes)))?;
        let period_ns = u64::try_from(period).ok()?;
        let full = u128::from(burst).checked_mul(period)?.checked_next_multiple_of(u128::from(units))?;
        let full_ns = u64::try_from(full.checked_div(u128::from(units))?).ok()?;
        let reserve = Reserve { units, period_ns, burst, full_ns };
        (burst > 0 && Table::init(&[Line::EMPTY; 4], &reserve.table_options([0; 16])).is_ok())
            .then_some(reserve)
    }
}

impl Reserve {
    /// Returns the limit of each key in the table of a node, in nanoseconds.
    pub(crate) fn limit(&self) -> LimitSpec {
        LimitSpec::new(self.units, self.period_ns, self.burst)
    }

    /// Returns the options of a node's table: a key that finds its set full gets no reserve.
    pub(crate) fn table_options(&self, seed: [u8; 16]) -> TableOptions {
        TableOptions::new(self.limit()).seed(seed).policy(FullPolicy::Deny)
    }
}

fn form(unit: u128, full: u128, burst: u64, reserve: Option<Reserve>, round_trip: Duration) -> Split {
    let span = Span::from_q;
    let hold = full / 8;
    let needed = u64::try_from(round_trip.as_nanos().saturating_mul(2)).unwrap_or(u64::MAX);
    let strict = burst < 8 || span(hold).ns_down() < needed || span(full).ns_down() >= MAX_LEASED_NS;
    let lead = if strict { full } else { full.saturating_sub(hold) };
    let cap = u64::try_from(lead.checked_div(unit).unwrap_or(0)).unwrap_or(u64::MAX);
    let largest_cost = cap.min(MAX_GRANT);
    // The units that come in 5 ms, or an eighth of the lead if that is less.
    let in_5_ms = Q_PER_US.saturating_mul(5_000).checked_div(unit).unwrap_or(0);
    let in_5_ms = u64::try_from(in_5_ms).unwrap_or(u64::MAX);
    Split {
        unit: span(unit),
        burst,
        lead: span(lead),
        hold_ns: if strict { 0 } else { span(hold).ns_down() },
        unit_ns: span(unit).ns_down(),
        strict,
        min: if strict { 1 } else { in_5_ms.clamp(1, (largest_cost / 8).max(1)) },
        most: (largest_cost / 4).max(1),
        largest_cost,
        reserve,
    }
}

impl Split {
    /// Returns the lead, in microseconds, above which there is no debt: the server's clock was set back.
    pub fn clamp_us(&self) -> u64 {
        self.lead.us().saturating_mul(2).saturating_add(1_000_000)
    }
}

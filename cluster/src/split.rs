//! How a limit is divided between the store and the reserves of the nodes, and which of its forms it gets.
//!
//! ```text
//!   limit     rate R, burst B, at most N nodes; reserved shares phi_R of the rate, phi_B of the burst
//!   reserve   each node:  rate phi_R R / N        burst K = floor(phi_B B / N)
//!   store                 rate R_s = (1 - phi_R) R   burst B_s = B - N K
//!
//!   leased    hold = B_s T / 8 is what a granted piece may wait on a node, and M = B_s T - hold what the store grants
//!   strict    hold = 0, M = B_s T: every decision is a script call
//! ```
//!
//! The rates and the bursts add up to R and B, and the envelope of each part is its own rate and burst; so all parts
//! together admit at most R w + B in any window w. What a reserve cannot have (K = 0) is not taken from the store.
//!
//! A limit is leased where a piece is of use: B_s is at least 8 units, and the hold at least two round trips, within
//! which a piece would lapse on its way. T is rounded up for the store, and down to nanoseconds for the pieces, which
//! then lie within what was granted.
#![warn(clippy::arithmetic_side_effects)]

use std::time::Duration;

use tatcell::{FullPolicy, LimitSpec, Line, Table, TableOptions};

use crate::axis::{Span, Q_PER_US};

/// Most units of one grant: the fraction of a unit's time by it stays below 2^52 in the script.
pub const MAX_GRANT: u64 = (1 << 26) - 1;

/// Longest debt, in microseconds (71 years): the server's clock plus it stays below 2^53 in the script.
const MAX_DEBT_US: u64 = 1 << 51;

/// Longest debt of a leased limit, in nanoseconds (208 days): pieces are placed in 56 bits.
const MAX_LEASED_NS: u64 = 1 << 54;

/// Highest rate, units a second: one unit takes a nanosecond.
const MAX_PER_SECOND: u128 = 1_000_000_000;

/// Most nodes that share a limit.
pub const MAX_NODES: u32 = 4_096;

const MILLE: u32 = 1_000;

/// A limit that several nodes share.
///
/// Units per period, a burst of at least 1 (the most units that pass at one instant after idle), and how much of both
/// is set aside for the nodes' own reserves: 5 % of the rate and 25 % of the burst, if nothing else is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedLimit {
    pub(crate) name: String,
    units: u64,
    period: Duration,
    burst: u64,
    reserve_rate: u32,
    reserve_burst: u32,
}

/// Why a limit cannot be shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LimitError {
    /// The name is empty, longer than 64 bytes, or holds something else than letters, digits, `-`, `_` and `.`.
    Name,
    /// No units in a period: nothing would ever pass.
    ZeroUnits,
    /// The period is 0.
    ZeroPeriod,
    /// The burst is 0: nothing would ever pass. The least is 1.
    ZeroBurst,
    /// More than 1e9 units a second.
    RateTooHigh,
    /// The burst takes more than 2^51 microseconds to drain.
    DebtTooLong,
    /// No node, or more than [`MAX_NODES`].
    Nodes,
    /// A reserved share is 1000 per mille or more: nothing would be left to the store.
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

/// The reserve of one node: a limit of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserve {
    /// Units per `period_ns`.
    pub units: u64,
    /// Nanoseconds.
    pub period_ns: u64,
    /// Units at one instant.
    pub burst: u64,
    /// Nanoseconds in which an empty reserve is full again, rounded up.
    pub full_ns: u64,
}

/// A limit divided: what the store gives out and how, and what each node has by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// Time of one unit at the store, rounded up.
    pub unit: Span,
    /// Burst of the store, units.
    pub burst: u64,
    /// How far the TAT may lie ahead after a grant: the store's burst less the hold.
    pub lead: Span,
    /// How long a piece may wait on a node before it lapses, nanoseconds; 0 where strict.
    pub hold_ns: u64,
    /// Time of one unit of a piece, nanoseconds, rounded down.
    pub unit_ns: u64,
    /// Whether every decision is a script call of its own.
    pub strict: bool,
    /// Fewest units asked for.
    pub min: u64,
    /// Most units asked for: a quarter of what the store may grant.
    pub most: u64,
    /// Largest cost that can ever conform.
    pub largest_cost: u64,
    /// The reserve of each node, if it has one.
    pub reserve: Option<Reserve>,
}

impl SharedLimit {
    /// Starts a limit of `units` per `period` with a burst. The name tells limits of one prefix apart in the store.
    pub fn new(name: &str, units: u64, period: Duration, burst: u64) -> SharedLimit {
        SharedLimit { name: name.to_owned(), units, period, burst, reserve_rate: 50, reserve_burst: 250 }
    }

    /// Sets aside so many per mille of rate and burst for the reserves of all nodes together; 0 for either is none,
    /// and the store is asked about every key.
    pub fn reserve(mut self, rate_per_mille: u32, burst_per_mille: u32) -> Self {
        (self.reserve_rate, self.reserve_burst) = (rate_per_mille, burst_per_mille);
        self
    }

    /// Tells the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Tells the units per period, the period and the burst.
    pub fn parameters(&self) -> (u64, Duration, u64) {
        (self.units, self.period, self.burst)
    }

    /// Writes all but the name, for the store and for errors.
    pub(crate) fn text(&self) -> String {
        let SharedLimit { units, period, burst, reserve_rate, reserve_burst, .. } = self;
        format!("{units} per {} ns, burst {burst}, reserve {reserve_rate}/{reserve_burst}", period.as_nanos())
    }

    /// Reads what [`text`](Self::text) wrote; None where it did not.
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

    /// Divides the limit between the store and at most `nodes` reserves. `round_trip` is how long an ask may take
    /// where the store is well: two of it must fit into the hold of a leased limit.
    ///
    /// # Errors
    /// [`LimitError`] names the first thing that is wrong.
    pub fn split(&self, nodes: u32, round_trip: Duration) -> Result<Split, LimitError> {
        self.validate(nodes)?;
        let (k, reserve, per_mille) = self.reserve_of(nodes);
        let burst = self.burst.saturating_sub(k.saturating_mul(u64::from(nodes)));
        // T = period * 1000 / (units * per mille) ns, and 1000 ns are a microsecond. A period has less than 2^94 ns.
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

    /// Burst of a node's reserve, the reserve, and the per mille of the rate that the store keeps.
    fn reserve_of(&self, nodes: u32) -> (u64, Option<Reserve>, u32) {
        let all = u128::from(self.burst).saturating_mul(u128::from(self.reserve_burst)) / 1_000;
        let k = u64::try_from(all.checked_div(u128::from(nodes)).unwrap_or(0)).unwrap_or(0);
        match self.node_reserve(k, nodes) {
            Some(reserve) => (k, Some(reserve), MILLE.saturating_sub(self.reserve_rate)),
            None => (0, None, MILLE),
        }
    }

    /// The reserve of a node; none where it would have no burst or no rate, or where a table could not hold it.
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
    /// The limit of each key in the table of a node, in nanoseconds.
    pub(crate) fn limit(&self) -> LimitSpec {
        LimitSpec::new(self.units, self.period_ns, self.burst)
    }

    /// The table of a node: a key that finds its set full is not given a reserve.
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
    // What comes in 5 ms, where an eighth of the lead is more than that.
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
    /// A lead above it, in microseconds, is no debt but a server's clock that was set back.
    pub fn clamp_us(&self) -> u64 {
        self.lead.us().saturating_mul(2).saturating_add(1_000_000)
    }
}

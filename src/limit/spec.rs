//! The specification of a limit with all its options, before it is validated for a word.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

use super::algorithm::Algorithm;
use super::error::LimitError;

/// Describes a limit with all its options, before it is validated for a word.
///
/// The plain limit is [`Limit::new`](crate::Limit::new); this is for the rest. Each option that needs room above the
/// burst (elastic room, delay, debt, penalty) lengthens the horizon H of the limit by the largest of them.
///
/// ```
/// use tatcell::LimitSpec;
/// // 100 packets a second, 50 at once, ticks are nanoseconds; warn above 40; shape up to 20 ms.
/// let limit = LimitSpec::new(100, 1_000_000_000, 50).soft(40).max_delay(20_000_000).build().unwrap();
/// # let _ = limit;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitSpec {
    pub(crate) units: u64,
    pub(crate) period: u64,
    pub(crate) burst: u64,
    pub(crate) soft: u64,
    pub(crate) max_room: u64,
    pub(crate) max_delay: u64,
    pub(crate) max_debt: u64,
    pub(crate) penalty: u64,
    pub(crate) skew: Option<u64>,
    pub(crate) shift: Option<i8>,
    pub(crate) epoch: u32,
    pub(crate) heal: bool,
    pub(crate) shadow: bool,
    pub(crate) strict_refunds: bool,
    pub(crate) algorithm: Algorithm,
    pub(crate) phase: Option<u64>,
}

impl LimitSpec {
    /// Starts a specification: `units` per `period` ticks, at most `burst` units at one instant after idle.
    pub const fn new(units: u64, period: u64, burst: u64) -> LimitSpec {
        LimitSpec {
            units,
            period,
            burst,
            soft: 0,
            max_room: 0,
            max_delay: 0,
            max_debt: 0,
            penalty: 0,
            skew: None,
            shift: None,
            epoch: 0,
            heal: false,
            shadow: false,
            strict_refunds: false,
            algorithm: Algorithm::Gcra,
            phase: None,
        }
    }

    /// Starts a token bucket: `tokens` flow in per `period` ticks, and it holds `capacity` of them. It starts full.
    ///
    /// The same limit as [`new`](Self::new) under its other name: GCRA, a token bucket and a leaky bucket as a meter
    /// give equal answers to every request ([`Decision::tokens`](crate::Decision::tokens)).
    pub const fn token_bucket(tokens: u64, period: u64, capacity: u64) -> LimitSpec {
        LimitSpec::new(tokens, period, capacity)
    }

    /// Starts a leaky bucket as a meter: `units` leak out per `period` ticks, and it is `depth` units deep. It starts
    /// empty.
    ///
    /// The same limit as [`new`](Self::new) under its other name: see [`token_bucket`](Self::token_bucket) and
    /// [`Decision::level`](crate::Decision::level). The leaky bucket as a queue is
    /// [`Cell::reserve`](crate::Cell::reserve).
    pub const fn leaky_bucket(units: u64, period: u64, depth: u64) -> LimitSpec {
        LimitSpec::new(units, period, depth)
    }

    /// Starts a fixed window: at most `units` in `window` ticks, which start with the first request after the last
    /// window ended ([`aligned`](Self::aligned): at fixed times).
    ///
    /// Up to `2 * units` may pass in a window's length: all of one window at its end, all of the next at its start.
    /// GCRA with the same units, period and burst has the same bound and no borders.
    ///
    /// The window ends on a whole unit of time of the resolution, so it is longer than asked for by less than one. For
    /// 64-bit cells and tables. Has soft, room and debt; no delay, penalty or heal.
    pub const fn fixed_window(units: u64, window: u64) -> LimitSpec {
        LimitSpec { algorithm: Algorithm::FixedWindow, ..LimitSpec::new(units, window, units) }
    }

    /// Starts a sliding window counter: about `units` in any `window` ticks, from the counts of two windows, of which
    /// the previous one weighs as much as is still in sight.
    ///
    /// An approximation: up to `2 * units - 1` may pass in a window's length where they come in bursts, and a request
    /// may be refused that a log of all stamps would pass. The windows follow each other from a key's first request on.
    /// GCRA with the same units, period and burst has the same bound, is exact by its own definition and has more bits
    /// for its time.
    ///
    /// The window is rounded up to a whole unit of time of the resolution. A refund gives back to the current window
    /// alone. For 64-bit cells and tables; the bits of the window in units of time and of the largest count are at
    /// most 62 together. Has soft, room and debt (which lasts two windows at most); no delay, penalty or heal.
    ///
    /// ```
    /// use tatcell::{Cell, LimitSpec};
    /// let limit = LimitSpec::sliding_counter(100, 1_000).build().unwrap();
    /// let cell = Cell::new();
    /// assert!(cell.check(&limit, 5_000, 100).passes());
    /// // A quarter of a window later a quarter of those is out of sight.
    /// assert_eq!(cell.peek(&limit, 6_250, 1).remaining, 25);
    /// ```
    pub const fn sliding_counter(units: u64, window: u64) -> LimitSpec {
        LimitSpec { algorithm: Algorithm::SlidingCounter, ..LimitSpec::new(units, window, units) }
    }

    /// Starts a quota-linear limit: a `quota` at any speed in `window` ticks, which start with the first request; a key
    /// that uses it up before their end gets one unit after the other at `quota / window` from their end on, until it
    /// has paused for long enough to have the whole quota again.
    ///
    /// So a greedy key gets exactly the quota in its first window, where a bucket of that size gives it up to twice as
    /// much, and does not come in bursts afterwards. Up to `2 * quota` may pass in a window's length all the same, by
    /// a key that stops just short of its quota. A request of the whole quota that starts a window does not count as
    /// using it up: such a key gets the next one at its end. With a quota of 1 every request is of this sort.
    ///
    /// Time is counted in units of the resolution, the window is rounded up to whole ones, and 1 / rate to a 2^-b part
    /// of one, b being the bits of the quota: never faster than asked for. A refund gives back to a window whose quota
    /// is not used up. For 64-bit cells and tables. Has soft; no room, delay, debt, penalty or heal.
    ///
    /// ```
    /// use tatcell::{Cell, LimitSpec};
    /// let limit = LimitSpec::quota_linear(10, 1_000).build().unwrap();
    /// let cell = Cell::new();
    /// assert_eq!((0..20).filter(|now| cell.check(&limit, 5_000 + now, 1).passes()).count(), 10);
    /// // From the end of the window on, one unit every 100 ticks.
    /// let refused = cell.peek(&limit, 5_500, 1);
    /// assert_eq!((refused.retry_after, cell.peek(&limit, 5_500, 2).retry_after), (500, 600));
    /// ```
    pub const fn quota_linear(quota: u64, window: u64) -> LimitSpec {
        LimitSpec { algorithm: Algorithm::QuotaLinear, ..LimitSpec::new(quota, window, quota) }
    }

    /// Starts a decaying level: every request adds its cost to a level that halves in every `half_life` ticks, and
    /// conforms iff the level is then at most `units`.
    ///
    /// The exponentially weighted count: recent requests weigh fully, those of a half-life ago half. After idle `units`
    /// pass at one instant; a client that takes what it is given then gets `units * ln 2 / half_life`, so for a rate r
    /// and a burst b take `units = b` and `half_life = 0.69 * b / r`. From empty to nearly full again is a matter of a
    /// few half-lives, and full to the last unit it is when the level has fallen below 2^-10 units: 10 half-lives after
    /// a single unit. Take at least 10 units; a limit of 1 passes one request in 10 half-lives.
    ///
    /// Never above the exact level (but for 2^-10 units that are forgotten); at worst a client that never pauses gets
    /// `units / half_life` too little, the half-life in units of time: of those it must have 100 for each unit, so
    /// that is below 1 %. For 64-bit cells and tables, up to 2^31 - 1 units, debt and room included. Has soft, room and
    /// debt; no delay, penalty or heal. A refund gives back what has not decayed of the charge.
    ///
    /// ```
    /// use tatcell::{Cell, LimitSpec};
    /// // 100 at once, and 10 a second from a client that never pauses; ticks are nanoseconds.
    /// let limit = LimitSpec::decay(100, 6_931_471_806).build()?;
    /// let cell = Cell::new();
    /// assert_eq!((0..200).filter(|_| cell.check(&limit, 5, 1).passes()).count(), 100);
    /// let half_life_later = 5 + 6_931_471_806;
    /// assert_eq!(cell.peek(&limit, half_life_later + 10, 1).remaining, 50);
    /// # Ok::<(), tatcell::LimitError>(())
    /// ```
    pub const fn decay(units: u64, half_life: u64) -> LimitSpec {
        LimitSpec { algorithm: Algorithm::Decay, ..LimitSpec::new(units, half_life, units) }
    }

    /// The same numbers under another algorithm; the constructors above say what they mean there.
    #[allow(dead_code)] // the C layer asks
    pub(crate) const fn algorithm(mut self, algorithm: Algorithm) -> Self {
        self.algorithm = algorithm;
        self
    }

    /// Lets fixed windows start at `phase`, `phase + window`, `phase + 2 * window` ticks and so on, for all keys alike:
    /// with a clock that counts from midnight and a phase of 0, on the hour. `phase` is below the window.
    pub const fn aligned(mut self, phase: u64) -> Self {
        self.phase = Some(phase);
        self
    }

    /// Flags conforming decisions whose debt is above this many units ([`Decision::SOFT`](crate::Decision::SOFT)).
    pub const fn soft(mut self, units: u64) -> Self {
        self.soft = units;
        self
    }

    /// Allows calls to ask for up to this many units of elastic room above the burst.
    pub const fn max_room(mut self, units: u64) -> Self {
        self.max_room = units;
        self
    }

    /// Lets `reserve` promise departures up to this many ticks away.
    pub const fn max_delay(mut self, ticks: u64) -> Self {
        self.max_delay = ticks;
        self
    }

    /// Lets `charge` build a debt of up to this many units above the burst.
    pub const fn max_debt(mut self, units: u64) -> Self {
        self.max_debt = units;
        self
    }

    /// Charges denied requests too, until the debt is this many units above the burst.
    ///
    /// The floor keeps one client from locking itself out for ever. With 1 and unit costs this is the penalty of
    /// Finch's linear limiter: at most one cost beyond full.
    pub const fn penalty(mut self, units: u64) -> Self {
        self.penalty = units;
        self
    }

    /// Tolerates a clock that steps back by up to this many ticks. A longer step forgives the debt of the word.
    ///
    /// A thread that is stopped between reading its clock and calling counts as such a step, and so does a coarse or
    /// cached clock beside a fine one. Default: an eighth of the span where that exceeds a year of nanoseconds;
    /// otherwise a 64th of the span, at most 2^30 ticks, and at least the horizon.
    ///
    /// A reading from the future locks its key until the clock gets there, for at most the horizon and this. So state
    /// it for wall clocks and coarse ticks, of which the default is days and more.
    pub const fn skew(mut self, ticks: u64) -> Self {
        self.skew = Some(ticks);
        self
    }

    /// Fixes the resolution: one q-unit is `2^-shift` ticks; negative is coarser than the clock.
    ///
    /// Limits that are exchanged for one another under traffic must have the same resolution. With a negative one the
    /// caller's clock itself must not wrap: 64 bits of nanoseconds last 584 years. A 32-bit limit gets a negative one
    /// only here.
    pub const fn resolution(mut self, shift: i8) -> Self {
        self.shift = Some(shift);
        self
    }

    /// Marks permits with this number; a refund of another epoch credits nothing.
    pub const fn epoch(mut self, epoch: u32) -> Self {
        self.epoch = epoch;
        self
    }

    /// Treats a word that is impossibly far ahead of `now` (the clock was stepped back by more than the skew) as a
    /// full debt of one burst instead of forgiving it.
    ///
    /// 64-bit cells with a resolution of at most 9 only, whose span exceeds a year of nanoseconds. The resolution
    /// chosen for a fast limit is finer (22 for 50e9 a second in nanoseconds), and then this is
    /// [`BadHeal`](crate::LimitError::BadHeal): fix a coarser one with [`resolution`](Self::resolution), at the price
    /// of precision.
    pub const fn heal(mut self) -> Self {
        self.heal = true;
        self
    }

    /// Passes what would have been denied, flagged ([`Decision::SHADOW`](crate::Decision::SHADOW)) and uncharged.
    pub const fn shadow(mut self) -> Self {
        self.shadow = true;
        self
    }

    /// Makes several refunds of one key safe in any order: what a permit can give back drains from the moment of its
    /// charge on, as if no debt had lain before it.
    ///
    /// Without this a refund gives back all that has not drained, which is exact for one charge, and for several as
    /// long as the newest is refunded first. Refunded oldest first, the older refund moves the newer charge forward
    /// without its permit knowing, and the newer refund can then give back what has drained already: at most one cost
    /// a refund. Choose this where a key can have several permits outstanding and their order is not yours.
    pub const fn strict_refunds(mut self) -> Self {
        self.strict_refunds = true;
        self
    }

    /// The checks that do not depend on a word.
    pub(crate) const fn validate(&self) -> Result<(), LimitError> {
        if self.units == 0 {
            Err(LimitError::ZeroRate)
        } else if self.period == 0 {
            Err(LimitError::ZeroPeriod)
        } else if self.burst == 0 {
            Err(LimitError::ZeroBurst)
        } else if self.soft > self.burst {
            Err(LimitError::BadSoft)
        } else {
            Ok(())
        }
    }
}

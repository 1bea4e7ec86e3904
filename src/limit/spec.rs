//! The specification of a limit with all its options, before it is validated for a word.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

use core::time::Duration;

use super::algorithm::Algorithm;
use super::error::LimitError;

/// Describes a limit with all its options, before it is validated for a word.
///
/// For a limit without options [`Limit::new`](crate::Limit::new) is shorter. Elastic room, delay, debt and penalty need
/// space above the burst: the largest of them lengthens the horizon H of the limit.
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
    /// Starts a specification: `units` per `period` ticks, and at most `burst` units at one instant after idle.
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

    /// Returns units, period and burst, as [`new`](Self::new) takes them: what a text said.
    ///
    /// ```
    /// use tatcell::LimitSpec;
    /// assert_eq!(LimitSpec::parse("30/m burst 16", 1)?.numbers(), (30, 60, 16));
    /// # Ok::<(), tatcell::ParseError>(())
    /// ```
    pub const fn numbers(&self) -> (u64, u64, u64) {
        (self.units, self.period, self.burst)
    }

    /// Starts a limit of `units` a second for a clock of nanoseconds, with a burst of as many:
    /// [`burst`](Self::burst) sets another.
    ///
    /// ```
    /// use tatcell::LimitSpec;
    /// assert_eq!(LimitSpec::per_second(10).burst(20), LimitSpec::new(10, 1_000_000_000, 20));
    /// ```
    pub const fn per_second(units: u64) -> LimitSpec {
        LimitSpec::per(units, Duration::from_secs(1))
    }

    /// Starts a limit of `units` in a `period` for a clock of nanoseconds, with a burst of as many:
    /// [`burst`](Self::burst) sets another. A period of more than 584 years is too long for any word.
    ///
    /// ```
    /// use {core::time::Duration, tatcell::LimitSpec};
    /// assert_eq!(LimitSpec::per(5, Duration::from_secs(900)), LimitSpec::new(5, 900_000_000_000, 5));
    /// ```
    pub const fn per(units: u64, period: Duration) -> LimitSpec {
        let nanos = period.as_nanos();
        LimitSpec::new(units, if nanos > u64::MAX as u128 { u64::MAX } else { nanos as u64 }, units)
    }

    /// Sets the most units that conform at one instant after idle, the first one included. GCRA only: in windows and
    /// levels it is the units.
    pub const fn burst(mut self, units: u64) -> Self {
        self.burst = units;
        self
    }

    /// Starts a token bucket: it holds `capacity` tokens, and `tokens` flow in per `period` ticks. It starts full.
    ///
    /// This is the same limit as [`new`](Self::new): GCRA, a token bucket and a leaky bucket as a meter give the same
    /// answer to every request ([`Decision::tokens`](crate::Decision::tokens)).
    pub const fn token_bucket(tokens: u64, period: u64, capacity: u64) -> LimitSpec {
        LimitSpec::new(tokens, period, capacity)
    }

    /// Starts a leaky bucket as a meter: it is `depth` units deep, and `units` leak out per `period` ticks. It starts
    /// empty.
    ///
    /// This is the same limit as [`new`](Self::new): see [`token_bucket`](Self::token_bucket) and
    /// [`Decision::level`](crate::Decision::level). The leaky bucket as a queue is
    /// [`Cell::reserve`](crate::Cell::reserve).
    pub const fn leaky_bucket(units: u64, period: u64, depth: u64) -> LimitSpec {
        LimitSpec::new(units, period, depth)
    }

    /// Starts a fixed window: at most `units` in `window` ticks. The first request after the last window has ended
    /// starts the next ([`aligned`](Self::aligned) windows start at fixed times).
    ///
    /// Up to `2 * units` may pass within a window's length: all of one window at its end, all of the next at its start.
    /// GCRA with the same units, period and burst has the same bound and no borders.
    ///
    /// The window ends on a whole unit of time of the resolution, so it may be longer than asked for by less than one
    /// unit. For 64-bit cells and tables. Options: soft, room and debt; no delay, penalty or heal.
    pub const fn fixed_window(units: u64, window: u64) -> LimitSpec {
        LimitSpec { algorithm: Algorithm::FixedWindow, ..LimitSpec::new(units, window, units) }
    }

    /// Starts a sliding window counter: about `units` in any `window` ticks. It counts two windows; the previous one
    /// weighs as much as the share of it that is still in sight.
    ///
    /// This is an approximation. If requests come in bursts, up to `2 * units - 1` may pass within a window's length;
    /// and a request may be refused that a log of all stamps would pass. Windows follow each other from a key's first
    /// request on. GCRA with the same units, period and burst has the same bound, is exact by its own definition and
    /// has more bits for its time.
    ///
    /// The window is rounded up to a whole unit of time of the resolution. A refund gives back only to the current
    /// window. For 64-bit cells and tables; the window in units of time and the largest count have at most 62 bits
    /// together. Options: soft, room and debt (which lasts two windows at most); no delay, penalty or heal.
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

    /// Starts a quota-linear limit: a key may use `quota` at any speed in `window` ticks from its first request on. A
    /// key that uses it up earlier then gets single units at the rate `quota / window`, from the end of the window on.
    /// Once the key has paused for long enough, it has the whole quota again.
    ///
    /// So a greedy key gets exactly the quota in its first window, where a bucket of that size gives it up to twice as
    /// much, and it sends no bursts afterwards. A key that stops just short of its quota may still get up to
    /// `2 * quota` within a window's length. A single request of the whole quota that starts a window does not count as
    /// using it up: such a key gets the next quota at its end. With a quota of 1 every request is of this sort.
    ///
    /// The window is rounded up to whole units of time of the resolution, and 1 / rate to a 2^-b part of one, where b
    /// is the bits of the quota: never faster than asked for. A refund gives back only to a window whose quota is not
    /// used up. For 64-bit cells and tables. Option: soft; no room, delay, debt, penalty or heal.
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

    /// Starts a decaying level, which halves in every `half_life` ticks. A request conforms iff the level plus its cost
    /// is at most `units`, and then adds its cost to the level.
    ///
    /// This is an exponentially weighted count: a request of a half-life ago counts half. After idle `units` pass at
    /// one instant; a client that never pauses then gets `units * ln 2 / half_life`. So for a rate r and a burst b
    /// choose `units = b` and `half_life = 0.69 * b / r`. A client that has used all gets most of it back in a few
    /// half-lives, and the last unit when the level has fallen below 2^-10 units: 10 half-lives after a single unit.
    /// Choose at least 10 units; a limit of 1 passes one request in 10 half-lives.
    ///
    /// The limit never admits more than the exact level would, except for the 2^-10 units that are forgotten. A client
    /// that never pauses gets at most a share of `units / half_life` too little. A half-life must have at least 100
    /// units of time per unit, so that is below 1 %. For 64-bit cells and tables, up to 2^31 - 1 units, debt and room
    /// included. Options: soft, room and debt; no delay, penalty or heal. A refund gives back what has not decayed.
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

    /// Returns the same numbers for another algorithm; the constructors above say what they mean there.
    #[allow(dead_code)] // the C layer asks
    pub(crate) const fn algorithm(mut self, algorithm: Algorithm) -> Self {
        self.algorithm = algorithm;
        self
    }

    /// Makes fixed windows start at `phase`, `phase + window`, `phase + 2 * window` ticks and so on, for all keys: with
    /// a clock from midnight and a phase of 0, on the hour. `phase` is below the window.
    pub const fn aligned(mut self, phase: u64) -> Self {
        self.phase = Some(phase);
        self
    }

    /// Flags requests that conform with a debt above this many units ([`Decision::SOFT`](crate::Decision::SOFT)).
    pub const fn soft(mut self, units: u64) -> Self {
        self.soft = units;
        self
    }

    /// Allows calls to ask for up to this many units of elastic room above the burst.
    pub const fn max_room(mut self, units: u64) -> Self {
        self.max_room = units;
        self
    }

    /// Lets `reserve` promise departures up to this many ticks ahead.
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
    /// That cap keeps a client from locking itself out for ever. With 1 and unit costs this is the penalty of Finch's
    /// linear limiter: at most one cost beyond full.
    pub const fn penalty(mut self, units: u64) -> Self {
        self.penalty = units;
        self
    }

    /// Tolerates a clock that steps back by up to this many ticks. A longer step forgives the debt of the word.
    ///
    /// A thread that is stopped between reading its clock and calling counts as such a step, and so does a coarse or
    /// cached clock next to a fine one. Default: an eighth of the span where that exceeds a year of nanoseconds;
    /// otherwise a 64th of the span, at most 2^30 ticks, and at least the horizon.
    ///
    /// A reading from the future locks its key until the clock gets there, for at most the horizon and this. So state
    /// it for wall clocks and coarse ticks, of which the default is days and more.
    pub const fn skew(mut self, ticks: u64) -> Self {
        self.skew = Some(ticks);
        self
    }

    /// Fixes the resolution: one q-unit is `2^-shift` ticks, so a negative `shift` is coarser than the clock.
    ///
    /// Limits that are exchanged for one another under traffic must have the same resolution. With a negative one the
    /// caller's clock itself must not wrap: 64 bits of nanoseconds last 584 years. A 32-bit limit gets a negative one
    /// only here.
    pub const fn resolution(mut self, shift: i8) -> Self {
        self.shift = Some(shift);
        self
    }

    /// Marks permits with this number; a permit of another epoch credits nothing.
    pub const fn epoch(mut self, epoch: u32) -> Self {
        self.epoch = epoch;
        self
    }

    /// Treats a word that is impossibly far ahead of `now` (the clock stepped back by more than the skew) as a full
    /// debt of one burst instead of forgiving it.
    ///
    /// This is for 64-bit cells with a resolution of at most 9, whose span exceeds a year of nanoseconds. The
    /// resolution that is chosen for a fast limit is finer (22 for 50e9 a second in nanoseconds), which gives
    /// [`BadHeal`](crate::LimitError::BadHeal). To use `heal` there, fix a coarser [`resolution`](Self::resolution),
    /// which is less precise.
    pub const fn heal(mut self) -> Self {
        self.heal = true;
        self
    }

    /// Passes requests that would be denied, flagged ([`Decision::SHADOW`](crate::Decision::SHADOW)) and uncharged.
    ///
    /// A reservation leaves at once, at `now` (or at its `from`, if that is later). If it would have waited, it is
    /// flagged and charged as without shadow mode, and `retry_after` is that wait, counted from `now`. So the limit
    /// tells what its queue would be. If it would have been refused, it is flagged and not charged.
    pub const fn shadow(mut self) -> Self {
        self.shadow = true;
        self
    }

    /// Makes several refunds of one key safe in any order: what a permit can give back drains from the moment of its
    /// charge on, as if there had been no debt before it.
    ///
    /// Without this option a refund gives back all that has not drained. That is exact for one charge, and for several
    /// if the newest is refunded first. If an older charge is refunded first, the newer one drains earlier, and its
    /// permit does not know that: its refund can give back what has drained already, at most one cost per refund.
    /// Choose this option if a key can have several permits outstanding and you do not control their order.
    pub const fn strict_refunds(mut self) -> Self {
        self.strict_refunds = true;
        self
    }

    /// Makes the checks that do not depend on a word.
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

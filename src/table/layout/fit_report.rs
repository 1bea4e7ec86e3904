//! What fits one table: how many tag bits, and which part of the limits is in the way.
#![forbid(unsafe_code)]

use super::fit;
use super::geometry::table_width;
use super::options::TableOptions;
use crate::limit::algorithm::bits_of;
use crate::limit::window::{most, Frame};
use crate::limit::{rate, Algorithm, LimitError, LimitSpec};
use crate::table::error::TableError;
use crate::time::ceil_div;

/// Lines of a table that no choice depends on.
const ANY_LINES: usize = 64;
/// Units of the word in an emission interval, and in a window, at the coarsest resolution that a table accepts.
const PRECISE: u64 = 1 << 10;
const COARSEST_WINDOW: u64 = 1 << 5;

/// Reports what fits one table: made by [`TableOptions::fit`].
///
/// ```
/// use tatcell::{LimitSpec, TableOptions};
/// let (fast, slow) = (LimitSpec::per_second(1_000_000), LimitSpec::new(100, 86_400_000_000_000, 100)); // a day
/// assert_eq!(TableOptions::new(fast).slowest(fast).fit()?.tag_bits, 24);
/// assert!(TableOptions::new(fast).slowest(slow).fit()?.tag_bits < 24);
/// # Ok::<(), tatcell::TableError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableFit {
    /// The most tag bits with which the limits fit one word, 12..=24. 0 if they do not fit with 12: use one table for
    /// each limit, and ask both in a [`Chain`](crate::Chain).
    pub tag_bits: u32,
    /// The resolution of a table with that many tag bits: one q-unit is 2^-resolution ticks.
    pub resolution: i32,
    /// The longest debt of the limits and the skew, in ticks. The skew is at least as long as the debt unless the
    /// options set it.
    pub needed: u64,
    /// The longest debt and skew together, in ticks, that a word with the options' tag bits holds at the coarsest
    /// resolution that the fastest limit allows.
    pub available: u64,
    /// The part that takes most of what is needed, if the limits do not fit with the options' tag bits: make this one
    /// smaller.
    pub culprit: Option<FitPart>,
}

/// A part of a table's limits that takes room in the word.
///
/// ```
/// use tatcell::{FitPart, LimitSpec, TableOptions};
/// let (fast, slow) = (LimitSpec::per_second(100_000_000), LimitSpec::per_second(1));
/// let culprit = |slow| TableOptions::new(fast).slowest(slow).fit().map(|fit| fit.culprit);
/// assert_eq!(culprit(slow)?, None);
/// assert_eq!(culprit(slow.max_debt(400))?, Some(FitPart::Debt)); // make that smaller, or use two tables
/// # Ok::<(), tatcell::TableError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[repr(u32)]
pub enum FitPart {
    /// The burst of a limit.
    Burst = 1,
    /// Its `max_room`.
    Room = 2,
    /// Its `max_delay`.
    Delay = 3,
    /// Its `max_debt`.
    Debt = 4,
    /// Its `penalty`.
    Penalty = 5,
    /// The skew of the options.
    Skew = 6,
    /// The window or half-life of a limit that counts.
    Window = 7,
    /// The largest count of such a limit.
    Count = 8,
}

impl core::fmt::Display for TableFit {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let TableFit { tag_bits, needed, available, .. } = self;
        let part = match self.culprit {
            None => return write!(f, "the limits fit, with up to {tag_bits} tag bits"),
            Some(FitPart::Burst) => "burst",
            Some(FitPart::Room) => "room",
            Some(FitPart::Delay) => "delay",
            Some(FitPart::Debt) => "debt",
            Some(FitPart::Penalty) => "penalty",
            Some(FitPart::Skew) => "skew",
            Some(FitPart::Window) => "window",
            Some(FitPart::Count) => "count",
        };
        write!(
            f,
            "horizon and skew need {needed} ticks, most of them for the {part}; this word has {available}: "
        )?;
        match tag_bits {
            0 => write!(f, "use two tables in a chain, or a smaller {part}"),
            _ => write!(f, "use {tag_bits} tag bits, or a smaller {part}"),
        }
    }
}

/// Returns units of a limit in ticks, rounded up; saturates.
const fn ticks(spec: &LimitSpec, units: u64) -> u64 {
    let ticks = ceil_div(units as u128 * spec.period as u128, spec.units as u128);
    if ticks > u64::MAX as u128 {
        u64::MAX
    } else {
        ticks as u64
    }
}

/// Returns the longest debt of a limit in ticks, and the part that takes most of it.
const fn debt(spec: &LimitSpec) -> (u64, FitPart) {
    if !matches!(spec.algorithm, Algorithm::Gcra) {
        let windows = match spec.algorithm {
            Algorithm::FixedWindow => 1,
            Algorithm::Decay => bits_of(most(spec)) as u64 + 11,
            _ => 2,
        };
        return (spec.period.saturating_mul(windows), FitPart::Window);
    }
    let burst = ticks(spec, spec.burst);
    let extras = [
        (ticks(spec, spec.max_room), FitPart::Room),
        (spec.max_delay, FitPart::Delay),
        (ticks(spec, spec.max_debt), FitPart::Debt),
        (ticks(spec, spec.penalty), FitPart::Penalty),
    ];
    let (mut extra, mut part, mut i) = (0, FitPart::Burst, 0);
    while i < extras.len() {
        if extras[i].0 > extra {
            extra = extras[i].0;
            if extra > burst {
                part = extras[i].1;
            }
        }
        i += 1;
    }
    (burst.saturating_add(extra), part)
}

/// Returns 2^bits q-units of 2^-shift ticks in ticks; saturates.
const fn reach(bits: u32, shift: i32) -> u64 {
    match bits as i32 - shift {
        log if log >= 64 => u64::MAX,
        log if log < 0 => 0,
        log => 1 << log,
    }
}

/// Returns the ticks that a word of `bits` bits holds at the coarsest resolution that the limits allow.
const fn room(options: &TableOptions, bits: u32) -> u64 {
    let (fast, slow) = (&options.fastest, &options.slowest);
    if let Algorithm::Gcra = fast.algorithm {
        // One bit in eight is left free of false debts: see `table_width`.
        let bits = bits - table_width(bits, 0).spare;
        let mut shift = -62;
        while shift < 62 {
            let (a, b) = (
                rate::emission_q(fast.units, fast.period, shift),
                rate::emission_q(slow.units, slow.period, shift),
            );
            if a >= PRECISE && b >= PRECISE {
                return reach(bits, shift);
            }
            shift += 1;
        }
        return 0;
    }
    let (a, b) = (Frame::of(fast).aux, Frame::of(slow).aux);
    let aux = if a > b { a } else { b };
    let shortest = if fast.period < slow.period { fast.period } else { slow.period };
    let mut z = 0;
    while shortest >> (z + 1) >= COARSEST_WINDOW {
        z += 1;
    }
    match bits.checked_sub(aux + 2) {
        Some(field) => reach(field, -z),
        None => 0,
    }
}

/// Chooses a geometry with this many tag bits, and returns its resolution; `None` if the limits do not fit.
const fn with(options: &TableOptions, tag_bits: u32) -> Result<Option<i32>, TableError> {
    match fit::choose(&TableOptions { tag_bits, ..*options }, ANY_LINES) {
        Ok(g) => Ok(Some(g.resolution())),
        Err(TableError::SpanTooShort) | Err(TableError::Limit(LimitError::TooManyUnits)) => Ok(None),
        Err(e) => Err(e),
    }
}

impl TableOptions {
    /// Reports whether these limits fit one table, with how many tag bits, and which part is in the way if not.
    ///
    /// The memory and the seed play no role. `Display` says the same as a sentence, with the change that helps.
    ///
    /// # Errors
    /// A [`TableError`] that more room in the word would not cure: a bad limit, two algorithms.
    ///
    /// ```
    /// use tatcell::{FitPart, LimitSpec, TableOptions};
    /// let (fast, slow) = (LimitSpec::per_second(10_000_000), LimitSpec::per_second(1).burst(60));
    /// let fit = TableOptions::new(fast).slowest(slow).fit()?;
    /// assert_eq!((fit.tag_bits, fit.culprit), (19, Some(FitPart::Burst)));
    /// # Ok::<(), tatcell::TableError>(())
    /// ```
    pub const fn fit(&self) -> Result<TableFit, TableError> {
        let options = TableOptions { seed: Some([0; 16]), ..*self };
        let fits = match with(&options, self.tag_bits) {
            Ok(made) => made.is_some(),
            Err(e) => return Err(e),
        };
        let (mut tag_bits, mut resolution, mut bits) = (0, 0, 24);
        while bits >= 12 {
            if let Ok(Some(made)) = with(&options, bits) {
                (tag_bits, resolution) = (bits, made);
                break;
            }
            bits -= 1;
        }
        let ((a, part_a), (b, part_b)) = (debt(&self.fastest), debt(&self.slowest));
        let (longest, part) = if a > b { (a, part_a) } else { (b, part_b) };
        let skew = match self.skew {
            Some(skew) => skew,
            None => longest,
        };
        let bits = 63 - self.tag_bits;
        let available = room(self, bits);
        let needed = longest.saturating_add(skew);
        // A count is in the way if the time alone would fit.
        let counts = !matches!(self.fastest.algorithm, Algorithm::Gcra | Algorithm::Decay);
        let part = if skew > longest {
            FitPart::Skew
        } else if counts && available < needed && room(self, bits + Frame::of(&self.slowest).aux) >= needed {
            FitPart::Count
        } else {
            part
        };
        Ok(TableFit {
            tag_bits,
            resolution,
            needed,
            available,
            culprit: if fits { None } else { Some(part) },
        })
    }
}

#[cfg(all(test, not(tatcell_loom)))]
mod tests {
    use super::*;
    use std::string::ToString;

    fn fit(options: TableOptions) -> TableFit {
        options.fit().expect("limits that are valid")
    }

    /// Over limits of all sizes: what is reported is what a table accepts, and the numbers say why it refuses.
    #[test]
    fn limits_fit_with_as_many_tag_bits_as_reported_and_no_more() {
        let (mut fits, mut refused, mut never) = (0, 0, 0);
        for rate in [1, 1_000, 1_000_000, 100_000_000] {
            for seconds in [1, 60, 3_600, 86_400] {
                for tag_bits in [12, 20, 24] {
                    let slow = LimitSpec::per_second(1);
                    for slow in
                        [slow.burst(seconds), slow.max_debt(seconds), slow.max_delay(seconds * 1_000_000_000)]
                    {
                        let options =
                            TableOptions::new(LimitSpec::per_second(rate)).slowest(slow).tag_bits(tag_bits);
                        let made = |bits| fit::choose(&options.seed([7; 16]).tag_bits(bits), 64).is_ok();
                        let report = fit(options);
                        assert_eq!(report.culprit.is_none(), made(tag_bits), "{options:?}");
                        assert_eq!(report.tag_bits, (12..=24).filter(|bits| made(*bits)).max().unwrap_or(0));
                        if report.culprit.is_some() {
                            assert!(report.needed > report.available, "{options:?}: {report:?}");
                            refused += 1;
                        } else {
                            fits += 1;
                        }
                        never += usize::from(report.tag_bits == 0);
                    }
                }
            }
        }
        assert!(fits > 20 && refused > 20 && never > 5, "{fits} fit, {refused} do not, {never} with no tag");
    }

    #[test]
    fn the_largest_part_is_named() {
        let (fast, slow) = (LimitSpec::per_second(100_000_000), LimitSpec::per_second(1));
        let culprit = |slow| fit(TableOptions::new(fast).slowest(slow)).culprit;
        assert_eq!(culprit(slow), None);
        assert_eq!(culprit(slow.burst(400)), Some(FitPart::Burst));
        assert_eq!(culprit(slow.max_room(400)), Some(FitPart::Room));
        assert_eq!(culprit(slow.max_delay(400_000_000_000)), Some(FitPart::Delay));
        assert_eq!(culprit(slow.max_debt(400)), Some(FitPart::Debt));
        assert_eq!(culprit(slow.penalty(400)), Some(FitPart::Penalty));
        assert_eq!(fit(TableOptions::new(fast).skew(1 << 50)).culprit, Some(FitPart::Skew));
        let counted = |spec| fit(TableOptions::new(spec).tag_bits(24)).culprit;
        assert_eq!(counted(LimitSpec::fixed_window(1 << 20, 1_000)), None);
        assert_eq!(counted(LimitSpec::sliding_counter(1 << 18, 1 << 40)), Some(FitPart::Count));
        assert_eq!(counted(LimitSpec::fixed_window(5, 1 << 62)), Some(FitPart::Window));
        assert_eq!(
            TableOptions::new(LimitSpec::new(0, 1, 1)).fit(),
            Err(TableError::Limit(LimitError::ZeroRate))
        );
    }

    #[test]
    fn a_report_is_a_sentence_with_the_change_that_helps() {
        let slow = LimitSpec::per_second(1).burst(60);
        let text = |rate| fit(TableOptions::new(LimitSpec::per_second(rate)).slowest(slow)).to_string();
        assert_eq!(text(1), "the limits fit, with up to 24 tag bits");
        assert!(text(10_000_000).ends_with("use 19 tag bits, or a smaller burst"), "{}", text(10_000_000));
        assert!(
            text(100_000_000_000).ends_with("use two tables in a chain, or a smaller burst"),
            "{}",
            text(100_000_000_000)
        );
    }
}

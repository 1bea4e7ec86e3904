//! Limits as arguments have them: a rate and a burst, or another algorithm; or several of these.

use tatcell::{Algorithm, LimitSpec};

use crate::units::HZ;

/// A limit, as the arguments have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// How it was written.
    pub text: String,
    /// What that means.
    pub spec: LimitSpec,
}

impl Asked {
    /// Reads a limit: a rate and a burst, `10/s burst 20`, or the word of another algorithm before it: `fixed 100/min`,
    /// `sliding 100/min`, `quota 1000/h`, `decay 10/s burst 100`.
    pub fn parse(text: &str) -> Result<Asked, String> {
        let fail = |what: String| format!("limit {text:?}: {what}");
        let (word, rest) = match text.trim_start().split_once(' ') {
            Some((word, rest)) if word.bytes().all(|byte| byte.is_ascii_alphabetic()) => {
                (word, rest.trim_start())
            }
            _ => ("gcra", text),
        };
        // The parser counts bytes from the start of its own text.
        let before = text.len() - rest.len();
        let plain = LimitSpec::parse(rest, HZ).map_err(|mut error| {
            error.position += before;
            fail(error.to_string())
        })?;
        let info = plain.build().map_err(|error| fail(error.to_string()))?.info();
        let (units, period) = (info.units, info.period);
        if rest.contains("burst") && matches!(word, "fixed" | "sliding" | "quota") {
            return Err(fail(format!(
                "{word} has no burst: its units may come at once, as in \"{word} 100/min\""
            )));
        }
        let spec = match word {
            "gcra" => plain,
            "fixed" => LimitSpec::fixed_window(units, period),
            "sliding" => LimitSpec::sliding_counter(units, period),
            "quota" => LimitSpec::quota_linear(units, period),
            "decay" => {
                // A client that never pauses gets units * ln 2 in a half-life: as much as the rate.
                let half_life = info.burst as f64 * period as f64 / units as f64 * std::f64::consts::LN_2;
                LimitSpec::decay(info.burst, half_life.round() as u64)
            }
            _ => return Err(fail(format!("{word:?} is none of gcra, fixed, sliding, quota and decay"))),
        };
        spec.build().map_err(|error| fail(error.to_string()))?;
        Ok(Asked { text: text.trim().into(), spec })
    }
}

impl Asked {
    /// Whether it is a rate and a burst.
    pub fn is_gcra(&self) -> bool {
        self.spec.build().is_ok_and(|limit| limit.info().algorithm == Algorithm::Gcra)
    }
}

/// Most limits of a chain.
pub const MOST: usize = tatcell::MAX_LINKS;

/// A limit of the plan: one, or several that a request must all conform to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chained {
    /// How it was written.
    pub text: String,
    /// The limits.
    pub rungs: Vec<Rung>,
}

/// One of several limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rung {
    /// The limit.
    pub asked: Asked,
    /// The lengths of the prefixes that it counts by, if it does not count by the key of the plan.
    pub lengths: Option<(u8, u8)>,
}

impl Chained {
    /// Reads limits with `and` between: `10/s burst 20 and 100/min burst 100`. One that begins with lengths counts by
    /// prefixes of the address: `5/s burst 20 and /24,56 50/s burst 200`.
    pub fn parse(text: &str) -> Result<Chained, String> {
        let rung = |part: &str| {
            let part = part.trim();
            let (lengths, rest) = match part.strip_prefix('/') {
                Some(lengths) => {
                    lengths.split_once(' ').ok_or(format!("limit {part:?}: no limit after the lengths"))?
                }
                None => ("", part),
            };
            let lengths = if lengths.is_empty() { None } else { Some(crate::key::lengths(lengths)?) };
            Ok(Rung { asked: Asked::parse(rest)?, lengths })
        };
        let rungs = text.split(" and ").map(rung).collect::<Result<Vec<_>, String>>()?;
        if rungs.len() > MOST {
            return Err(format!("limit {text:?}: at most {MOST} limits at a time"));
        }
        Ok(Chained { text: text.trim().into(), rungs })
    }
}

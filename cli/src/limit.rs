//! Limits as arguments have them: a rate and a burst, or another algorithm.

use tatcell::LimitSpec;

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

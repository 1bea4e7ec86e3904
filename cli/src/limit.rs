//! Limits as arguments have them: a rate and a burst, or another algorithm; or several of these.

use tatcell::{Algorithm, Ladder, LimitSpec, Rung as Tier, TableOptions};

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
    /// Returns the rule by which it decides.
    pub fn algorithm(&self) -> Algorithm {
        self.spec.build().map_or(Algorithm::Gcra, |limit| limit.info().algorithm)
    }

    /// Whether it is a rate and a burst.
    pub fn is_gcra(&self) -> bool {
        self.algorithm() == Algorithm::Gcra
    }
}

/// Whether a limit is written in bytes, as in `1.5MiB/s burst 5MB`.
pub fn counts_bytes(text: &str) -> bool {
    let numbers = text.split(['/', ' ']).filter(|word| word.starts_with(|c: char| c.is_ascii_digit()));
    numbers.into_iter().any(|word| word.ends_with('B'))
}

/// Returns the largest burst with which this limit fits one word of a table.
pub fn largest_burst(options: TableOptions, spec: LimitSpec) -> Option<u64> {
    let fits = |burst| {
        let fit = options.slowest(spec.burst(burst)).fit();
        fit.is_ok_and(|fit| fit.culprit.is_none())
    };
    let (mut low, mut high) = (0, 1 << 62);
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        *(if fits(middle) { &mut low } else { &mut high }) = middle;
    }
    (low > 0).then_some(low)
}

/// Most limits of a chain.
pub const MOST: usize = tatcell::MAX_LINKS;

/// A limit of the plan: one, or several that a request must all conform to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chained {
    /// How it was written.
    pub text: String,
    /// The limits. Of a ladder, that of one address for each length.
    pub rungs: Vec<Rung>,
    /// The lengths and their multipliers, if it is a ladder.
    pub ladder: Option<Ladder>,
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
    /// prefixes of the address: `5/s burst 20 and /24,56 50/s burst 200`. `ladder 10/s burst 20` is a limit of one
    /// address, and for its networks the multiples of the library's default ladder.
    pub fn parse(text: &str) -> Result<Chained, String> {
        if let Some(rest) = text.trim_start().strip_prefix("ladder ") {
            return Chained::on(&Ladder::DEFAULT, text.trim(), rest.trim());
        }
        let rung = |part: &str| {
            let part = part.trim();
            let (lengths, rest) = match part.strip_prefix('/') {
                Some(lengths) => {
                    lengths.split_once(' ').ok_or(format!("limit {part:?}: no limit after the lengths"))?
                }
                None => ("", part),
            };
            let lengths = if lengths.is_empty() { None } else { Some(crate::key::lengths(lengths)?) };
            let asked = Asked::parse(rest)?;
            let options = TableOptions::new(if asked.is_gcra() { asked.spec.burst(1) } else { asked.spec });
            let fit = options.slowest(asked.spec).fit();
            if fit.is_ok_and(|fit| fit.culprit.is_some()) {
                let what = match asked.algorithm() {
                    Algorithm::Gcra => {
                        let most = largest_burst(options, asked.spec).unwrap_or(1);
                        format!("its burst; at this rate {most} fits")
                    }
                    Algorithm::Decay => "its burst: take a smaller one, or count in larger units".into(),
                    _ => "its units in this time: take fewer, or count in larger ones".into(),
                };
                return Err(format!("limit {rest:?}: no word of a table holds {what}"));
            }
            Ok(Rung { asked, lengths })
        };
        let rungs = text.split(" and ").map(rung).collect::<Result<Vec<_>, String>>()?;
        if rungs.len() > MOST {
            return Err(format!("limit {text:?}: at most {MOST} limits at a time"));
        }
        Ok(Chained { text: text.trim().into(), rungs, ladder: None })
    }

    /// Takes another ladder, if it is a limit of one.
    pub fn with_ladder(self, ladder: &Ladder) -> Result<Chained, String> {
        match self.text.strip_prefix("ladder ") {
            Some(rest) => Chained::on(ladder, &self.text, rest),
            None => Ok(self),
        }
    }

    fn on(ladder: &Ladder, text: &str, limit: &str) -> Result<Chained, String> {
        if limit.contains(" and ") {
            return Err(format!("limit {text:?}: a ladder stands alone: give the other limit by itself"));
        }
        let asked = Asked::parse(limit)?;
        let (v4, v6) = (ladder.rungs(true), ladder.rungs(false));
        // The shorter family repeats its last length, by which it is not asked again.
        let bits = |rungs: &[Tier], at: usize| rungs.get(at).or(rungs.last()).map_or(0, |rung| rung.bits);
        let lengths = (0..v4.len().max(v6.len())).map(|at| (bits(v4, at), bits(v6, at)));
        let rungs = lengths.map(|lengths| Rung { asked: asked.clone(), lengths: Some(lengths) }).collect();
        Ok(Chained { text: text.into(), rungs, ladder: Some(*ladder) })
    }
}

/// Reads the tiers of a ladder, those of IPv4 and after a comma those of IPv6, the longest prefix first: each a length
/// and how many times the limit of one address it has, as in `32 24x32 20x256, 128 64x2 56x3`.
pub fn ladder(text: &str) -> Result<Ladder, String> {
    let fail = |what: String| format!("{text:?}: {what}");
    let tier = |word: &str| {
        let (bits, multiplier) = word.split_once('x').unwrap_or((word, "1"));
        match (bits.trim_start_matches('/').parse(), multiplier.parse()) {
            (Ok(bits), Ok(multiplier)) => Ok(Tier { bits, multiplier }),
            _ => Err(fail(format!("{word:?} is no tier: use a length and a multiplier, as in 24x32"))),
        }
    };
    let tiers = |text: &str| text.split_whitespace().map(tier).collect::<Result<Vec<_>, _>>();
    let (v4, v6) = text.split_once(',').ok_or_else(|| {
        fail("give the tiers of IPv4, a comma, and those of IPv6: \"32 24x32, 128 64x2\"".into())
    })?;
    Ladder::new(&tiers(v4)?, &tiers(v6)?).map_err(|error| fail(error.to_string()))
}

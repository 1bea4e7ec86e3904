//! The configuration that does what a limit of the plan says, in the form of each program.
//!
//! A form that cannot say the limit exactly is refused, with the change that helps: somebody would take a configuration
//! that is nearly the limit for it.

mod code;
mod programs;
mod several;

pub use self::several::Several;

use clap::ValueEnum;
use serde::Serialize;
use tatcell::FullPolicy;

use crate::key::KeySpec;
use crate::limit::Asked;
use crate::units::HZ;

/// The program for which a configuration is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// nginx with the module of tatcell
    Nginx,
    /// Rules of Envoy's rate limit service
    Envoy,
    /// HAProxy with the module for Lua
    Haproxy,
    /// The policer for XDP and tc
    Xdp,
    /// The policer for DPDK
    Dpdk,
    /// A file of C
    C,
    /// A module of Rust
    Rust,
    /// Settings and calls of tatcell-throttled
    Throttled,
}

/// A configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Emitted {
    /// The program for which it is.
    pub form: String,
    /// Its text.
    pub text: String,
}

/// What is to be done.
pub struct Wanted<'a> {
    /// The limit.
    pub limit: &'a Asked,
    /// What it counts by.
    pub key: &'a KeySpec,
    /// The field that is the cost of a record, if it is not 1.
    pub cost: Option<&'a str>,
    /// What a full set does.
    pub policy: FullPolicy,
    /// The slots that are enough.
    pub slots: u64,
    /// The slots were found by counting one key in this many.
    pub one_in: u64,
}

/// A rate with a period of whole seconds, in lowest terms, and a burst.
#[derive(Clone, Copy)]
pub(crate) struct Numbers {
    pub(crate) units: u64,
    pub(crate) seconds: u64,
    pub(crate) burst: u64,
}

impl Numbers {
    pub(crate) fn of(limit: &Asked) -> Result<Numbers, String> {
        let (units, period, burst) = limit.spec.numbers();
        let gcd = |mut a: u128, mut b: u128| {
            while b != 0 {
                (a, b) = (b, a % b);
            }
            a
        };
        // units / period ticks are units * HZ / period a second.
        let (over, under) = (u128::from(units) * u128::from(HZ), u128::from(period));
        let by = gcd(over, under);
        let number =
            |n: u128| u64::try_from(n / by).map_err(|_| format!("{:?} has too large numbers", limit.text));
        Ok(Numbers { units: number(over)?, seconds: number(under)?, burst })
    }

    /// The rate as the library reads it.
    fn rate(&self, unit: &str) -> String {
        let Numbers { units, seconds, .. } = self;
        match seconds {
            1 => format!("{units}{unit}/s"),
            60 => format!("{units}{unit}/m"),
            3_600 => format!("{units}{unit}/h"),
            86_400 => format!("{units}{unit}/d"),
            _ => format!("{units}{unit}/{seconds}s"),
        }
    }
}

impl Form {
    /// Returns its name in the arguments.
    pub fn name(self) -> String {
        self.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned())
    }
}

impl Wanted<'_> {
    /// Writes the configuration.
    pub fn emit(&self, form: Form) -> Result<Emitted, String> {
        let fail = |what: String| format!("--emit {}: {what}", form.name());
        let text = match form {
            Form::C => Ok(self.c()),
            Form::Rust => Ok(self.rust()),
            _ => rate_and_burst(self.limit).and_then(|()| self.program(form, &Numbers::of(self.limit)?)),
        };
        Ok(Emitted { form: form.name(), text: text.map_err(fail)? })
    }

    fn program(&self, form: Form, numbers: &Numbers) -> Result<String, String> {
        match form {
            Form::Nginx => self.nginx(numbers),
            Form::Envoy => self.envoy(numbers),
            Form::Haproxy => self.haproxy(numbers),
            Form::Xdp => self.xdp(numbers),
            Form::Dpdk => self.dpdk(numbers),
            Form::Throttled => self.throttled(numbers),
            Form::C => Ok(self.c()),
            Form::Rust => Ok(self.rust()),
        }
    }

    /// The comment that says where the configuration comes from.
    fn head(&self, comment: &str) -> String {
        head(comment, &self.limit.text, self.key, self.cost, self.one_in)
    }

    fn policy(&self) -> &'static str {
        match self.policy {
            FullPolicy::Admit => "admit",
            FullPolicy::Inherit => "inherit",
            FullPolicy::Deny => "deny",
            FullPolicy::Sampled => "sampled",
        }
    }

    /// The lengths of the prefix of the source that is the whole key, for programs that count by nothing else.
    fn source(&self) -> Result<(u8, u8), String> {
        self.key.prefix().filter(|_| self.key.fields() == ["address"]).ok_or_else(|| {
            format!("it counts by the source: use --key address, not {}", self.key.fields().join("+"))
        })
    }

    /// Whether a packet costs its bytes.
    fn counts_bytes(&self) -> Result<bool, String> {
        match self.cost {
            None => Ok(false),
            Some("bytes") => Ok(true),
            Some(cost) => Err(format!("a packet costs 1 or its bytes: use --cost bytes, not {cost}")),
        }
    }

    /// A request costs one.
    fn costs_one(&self) -> Result<(), String> {
        match self.cost {
            None => Ok(()),
            Some(cost) => Err(format!("a request costs 1 there: leave --cost {cost} out")),
        }
    }
}

/// The comment that says where a configuration comes from.
fn head(comment: &str, limit: &str, key: &KeySpec, cost: Option<&str>, one_in: u64) -> String {
    let cost = cost.map_or(String::new(), |cost| format!(", and a request costs its {cost}"));
    let sample = match one_in {
        0 | 1 => String::new(),
        many => format!(" One key in {many} was counted, so how large a table must be is an estimate."),
    };
    let key = key.words().join(" and ");
    format!("{comment} {}\n", in_comment(&format!("{limit} by {key}{cost}: from tatcell plan.{sample}")))
}

/// A text for a comment of any language, which it does not end: of one line, and only with characters that are seen.
fn in_comment(text: &str) -> String {
    let is_seen = |c: char| c == ' ' || c.is_ascii_graphic() || c.is_alphanumeric();
    text.chars().map(|c| if is_seen(c) { c.to_string() } else { c.escape_default().to_string() }).collect()
}

/// A text for a comment of C, which has no end of its own and no start of another one.
fn in_c_comment(text: &str) -> String {
    in_comment(text).replace("*/", "* /").replace("/*", "/ *")
}

/// Refuses a limit that is not a rate and a burst: the servers and the policers have no other.
fn rate_and_burst(limit: &Asked) -> Result<(), String> {
    match limit.is_gcra() {
        true => Ok(()),
        false => Err(format!(
            "{:?} is not a rate and a burst, such as \"10/s burst 20\", and it has no other limits: --emit c and \
             --emit rust have them",
            limit.text
        )),
    }
}

impl std::fmt::Display for Emitted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

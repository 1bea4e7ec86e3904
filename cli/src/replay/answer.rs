//! What came of a replay. The text and the JSON are both made from it.

use std::fmt;

use serde::Serialize;

use crate::plan::report::InputReport;
use crate::words::{percent, plural};

/// What was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The request passes.
    Passed,
    /// It does not.
    Refused,
}

impl Side {
    pub(super) fn of(passed: bool) -> Side {
        if passed {
            Side::Passed
        } else {
            Side::Refused
        }
    }

    fn name(self) -> &'static str {
        match self {
            Side::Passed => "passed",
            Side::Refused => "refused",
        }
    }
}

/// What came of a replay.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Answer {
    /// The layout of this answer; a number is not used again for another meaning.
    pub version: u32,
    /// The server.
    pub server: String,
    /// The limit.
    pub limit: String,
    /// What was read.
    pub input: Option<InputReport>,
    /// Requests that were answered.
    pub sent: u64,
    /// Requests that were not.
    pub failed: u64,
    /// Why the first of these was not.
    pub first_failure: Option<String>,
    /// Whether the replay stopped early, because too many requests in a row got no answer.
    pub ended_early: bool,
    /// Records that were not sent: no request can be what they say.
    pub unsendable: u64,
    /// Why the first of these was not.
    pub first_unsendable: Option<String>,
    /// Records that were not sent: their keys are not in the sample.
    pub left_out: u64,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// How long a request took, in microseconds.
    pub mean_us: u64,
    /// How long the slowest one took.
    pub slowest_us: u64,
    /// How late a request was sent, in milliseconds, at most.
    pub behind_ms: u64,
    /// Requests that the server refused.
    pub server_refused: u64,
    /// Requests that the library refused.
    pub library_refused: u64,
    /// Requests that only one of them refused.
    pub differ: u64,
    /// Decisions of the server that the limit cannot make at any time at which the request was on its way. Null if the
    /// limit is not a rate and a burst.
    pub impossible: Option<u64>,
    /// Keys of the requests.
    pub keys_asked: u64,
    /// Keys of requests that only one of them refused.
    pub keys_that_differ: u64,
    /// The keys that differ most, then those that were refused most.
    pub keys: Vec<KeyAnswer>,
    /// The first decisions that differ or are impossible.
    pub first_differences: Vec<Difference>,
}

/// What was decided of one key.
#[derive(Clone, Debug, Serialize)]
pub struct KeyAnswer {
    /// The key.
    pub key: String,
    /// Its requests.
    pub requests: u64,
    /// Those that the server refused.
    pub server_refused: u64,
    /// Those that the library refused.
    pub library_refused: u64,
    /// Those that only one of them refused.
    pub differ: u64,
    /// Those of which the server decided as the limit cannot.
    pub impossible: Option<u64>,
}

/// A request of which the two do not say the same, or of which the server decided as the limit cannot.
#[derive(Clone, Debug, Serialize)]
pub struct Difference {
    /// Its number in the input.
    pub record: u64,
    /// Its key.
    pub key: String,
    /// When it was sent, in milliseconds since the start.
    pub sent_ms: f64,
    /// When the answer came.
    pub answered_ms: f64,
    /// What the server decided.
    pub server: Side,
    /// What the library says.
    pub library: Side,
    /// Whether the limit can decide as the server did, at some time between.
    pub possible: Option<bool>,
}

impl Answer {
    pub(super) fn new(server: &str, limit: &str, impossible: Option<u64>) -> Answer {
        Answer {
            version: 1,
            server: server.into(),
            limit: limit.trim().into(),
            impossible,
            ..Answer::default()
        }
    }

    /// The share of `count` in what was sent.
    fn share(&self, count: u64) -> f64 {
        count as f64 / self.sent.max(1) as f64
    }

    fn decisions(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (who, refused) in [("server ", self.server_refused), ("library", self.library_refused)] {
            writeln!(f, "  the {who} refused {refused} ({})", percent(self.share(refused)))?;
        }
        let same = self.sent - self.differ;
        write!(f, "  they say the same of {same} of {}", plural(self.sent, "request"))?;
        if self.differ > 0 {
            write!(f, "; {} of {} differ", self.differ, plural(self.keys_that_differ, "key"))?;
        }
        writeln!(f)?;
        match self.impossible {
            Some(0) if self.differ > 0 => {
                writeln!(
                    f,
                    "  the limit explains all of them: the server decided at another moment of the way"
                )
            }
            Some(0) => Ok(()),
            Some(odd) => writeln!(f, "  {} of the server the limit cannot make", plural(odd, "decision")),
            None => writeln!(
                f,
                "  whether the time of the way explains them is told for a rate and a burst alone"
            ),
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(input) = &self.input {
            input.fmt(f)?;
        }
        writeln!(f, "\n{} with {}", self.server, self.limit)?;
        writeln!(
            f,
            "  {} of {} in {:.1} s; a request took {} us, the slowest {} us",
            plural(self.sent, "request"),
            plural(self.keys_asked, "key"),
            self.seconds,
            self.mean_us,
            self.slowest_us
        )?;
        if self.behind_ms > 0 {
            writeln!(f, "  requests were sent up to {} ms late", self.behind_ms)?;
        }
        if self.left_out > 0 {
            let what = plural(self.left_out, "record");
            writeln!(f, "  {what} were not sent: their keys are beyond --max-keys")?;
        }
        if let Some(why) = &self.first_unsendable {
            writeln!(f, "  {} cannot be sent, the first: {why}", plural(self.unsendable, "record"))?;
        }
        if let Some(why) = &self.first_failure {
            writeln!(f, "  {} without an answer, the first: {why}", plural(self.failed, "request"))?;
        }
        if self.ended_early {
            writeln!(f, "  the last of these one after the other: the others of the log were not sent")?;
        }
        self.decisions(f)?;
        if !self.keys.is_empty() {
            writeln!(
                f,
                "\n  {:<40}{:>10}{:>10}{:>10}{:>8}",
                "key", "requests", "server", "library", "differ"
            )?;
        }
        for key in &self.keys {
            let KeyAnswer { key, requests, server_refused, library_refused, differ, .. } = key;
            writeln!(f, "  {key:<40}{requests:>10}{server_refused:>10}{library_refused:>10}{differ:>8}")?;
        }
        if !self.first_differences.is_empty() {
            writeln!(f, "\nThe first differences:")?;
        }
        for difference in &self.first_differences {
            let Difference { record, key, sent_ms, answered_ms, server, library, possible } = difference;
            let explained = match possible {
                Some(true) => "; explained",
                Some(false) => "; the limit cannot",
                None => "",
            };
            let (server, library) = (server.name(), library.name());
            writeln!(
                f,
                "  record {record}: {key}, sent at {sent_ms:.3} ms and answered at {answered_ms:.3} ms: \
                 the server {server}, the library {library}{explained}"
            )?;
        }
        Ok(())
    }
}

//! Sends the requests of a log to a server that runs, and says what it decides next to what the library says.
//!
//! Requests go one after the other over one connection, at the times of the log, or as fast as the server answers. The
//! library is asked for the same keys at the times at which the requests were on their way, so both see the same
//! traffic, whatever the speed.

mod answer;
mod grpc;
mod judge;
mod server;

use std::io::IsTerminal;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use clap::Args;
use tatcell::FullPolicy;

use self::answer::{Answer, Difference, KeyAnswer, Side};
use self::judge::{Asked, Bounds, Judge};
use self::server::{Connection, Server, Unanswered};
use crate::failure::Failure;
use crate::input_args::InputArguments;
use crate::limit::{counts_bytes, Chained};
use crate::plan::keys::{keep, Keys, NO_KEY};
use crate::plan::order::Held;
use crate::plan::replay::{Common, Replay};
use crate::plan::report::{InputReport, Report};
use crate::plan::{Each, Far, NoMore, Plan};
use crate::progress::{bar, Progress};
use crate::units::duration;
use crate::words::plural;

const EXIT: &str = "Exit codes:
  0  the server has decided as the limit says, as far as that can be told
  1  it has not: no time at which a request was on its way explains a decision
  2  the arguments cannot be used
  3  an input cannot be read, the server not be asked, or a request has no answer

Memory:
  A key takes up to 190 bytes, the library's table 8 bytes a slot (--slots). Beyond --max-keys a sample of the keys is \
  sent. A record that waits to be sorted takes up to 80 bytes; at most 2 million wait.";

/// Failures one after the other that end a replay. The answer is then of the requests before.
const HOPELESS: u64 = 20;

/// How fast a log is sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Speed {
    /// So many times as fast as its times say.
    Times(f64),
    /// As fast as the server answers.
    Max,
}

fn speed(text: &str) -> Result<Speed, String> {
    if text == "max" {
        return Ok(Speed::Max);
    }
    let factor = text.parse().ok().filter(|factor: &f64| (1e-3..=1e9).contains(factor));
    factor.map(Speed::Times).ok_or_else(|| format!("{text:?} is no speed: use a number above 0, or max"))
}

/// Arguments of `tatcell replay`.
#[derive(Args, Debug)]
#[command(after_help = EXIT)]
pub struct ReplayArguments {
    /// What to read.
    #[command(flatten)]
    pub input: InputArguments,

    /// The server: redis://HOST:PORT is asked by CL.THROTTLE, grpc://HOST:PORT/DOMAIN as Envoy asks its rate limit
    /// service, http://HOST:PORT/PATH by GET, with an address of the key as X-Forwarded-For, and a path of the key
    /// instead of PATH; 429 and 503 are refusals
    #[arg(long, value_name = "URL")]
    pub to: String,

    /// An entry of the descriptor, for grpc://: NAME has the next part of the key, NAME=VALUE what is written here.
    /// Without this each part is an entry: remote_address, masked_remote_address for a network, else the name of the
    /// field
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub entry: Vec<String>,

    /// The limit that the server has, such as "10/s burst 20"; CL.THROTTLE sends it with each request
    #[arg(short, long, value_name = "LIMIT")]
    pub limit: String,

    /// How many times as fast as in the log requests are sent; max: as fast as the server answers
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = speed)]
    pub speed: Speed,

    /// The server may be on another machine
    #[arg(long)]
    pub remote: bool,

    /// How wrong the server's clock may be; without this 1ms, and 10ms for HTTP
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub clock_error: Option<Duration>,

    /// How long to wait for an answer
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    pub timeout: Duration,

    /// How many keys and differences to list
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    pub top: usize,

    /// Write JSON
    #[arg(long)]
    pub json: bool,
}

/// What is known of a key.
#[derive(Clone, Copy, Default)]
struct State {
    requests: u64,
    refused: u64,
    differ: u64,
    odd: u64,
    bounds: Bounds,
}

/// How far the replay is: requests, and seconds since the first of the log that was sent.
type Sent = Arc<(AtomicU64, AtomicU64)>;

struct Sending<'a> {
    plan: &'a Plan,
    server: Server,
    connection: Option<Connection>,
    speed: Speed,
    top: usize,
    library: Replay,
    /// None if the limit is not one rate and one burst.
    judge: Option<Judge>,
    /// The start, and the same as the library's clock has it.
    start: Instant,
    epoch: u64,
    first: Option<u64>,
    states: Vec<State>,
    answer: Answer,
    failures_in_a_row: u64,
    spent: Duration,
    far: Sent,
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// A URL without the name and the password in it.
fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("//") else { return url.into() };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit('@').next().unwrap_or(authority);
    format!("{scheme}//{host}{path}")
}

impl ReplayArguments {
    /// Sends the requests, and returns what was decided.
    pub fn replay(&self) -> Result<Answer, Failure> {
        let plan = self.input.plan()?;
        let limit = Chained::parse(&self.limit).map_err(Failure::Usage)?;
        if limit.ladder.is_some() {
            let what =
                "a replay has no ladder: a server has a limit for each of its lengths; replay one at a time";
            return Err(Failure::Usage(format!("--limit {:?}: {what}", self.limit)));
        }
        if self.timeout.is_zero() {
            return Err(Failure::Usage("--timeout 0: use a time above 0, such as 5s".into()));
        }
        if let (None, true) = (&self.input.cost, counts_bytes(&self.limit)) {
            return Err(Failure::Usage(format!(
                "{:?} counts bytes: give --cost bytes, or another field",
                self.limit
            )));
        }
        if limit.rungs.iter().any(|rung| rung.lengths.is_some()) {
            let what = "a replay counts by one key: use --key address/24,56 and a limit without lengths";
            return Err(Failure::Usage(format!("--limit {:?}: {what}", self.limit)));
        }
        let asked = (self.input.cost.as_deref(), &self.entry[..]);
        let server = Server::new(&self.to, &limit, &plan.key, asked, self.remote, self.timeout)?;
        let clock_error = self.clock_error.unwrap_or(server.clock_error());
        let judge = match &limit.rungs[..] {
            [one] if one.asked.is_gcra() => Some(Judge::new(&one.asked.spec, clock_error)),
            _ => None,
        };
        let common =
            Common { seed: plan.seed, slots: plan.slots, window: plan.window, max_keys: plan.max_keys };
        let places = vec![0; limit.rungs.len()];
        let library = Replay::new(limit, &places, FullPolicy::Admit, &common).map_err(Failure::Usage)?;
        let to = without_password(&self.to);
        let (counted, files) = (Far::default(), &plan.files);
        let text = counted.text(files);
        let progress = Progress::start(move || format!("counting {}", text()));
        let is_file = |name: &String| std::fs::metadata(name).is_ok_and(|data| data.is_file());
        // What can be read twice is counted, for the progress.
        let all = match std::io::stderr().is_terminal() && files.iter().all(is_file) {
            true => Some(plan.stream(&counted, &mut NoMore)?.counts.records),
            false => None,
        };
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let mut sending = Sending {
            plan: &plan,
            server,
            connection: None,
            speed: self.speed,
            top: self.top,
            library,
            answer: Answer::new(&to, &self.limit, judge.is_some().then_some(0)),
            judge,
            start: Instant::now(),
            epoch: nanoseconds(now),
            first: None,
            states: Vec::new(),
            failures_in_a_row: 0,
            spent: Duration::ZERO,
            far: Sent::default(),
        };
        let far = Arc::clone(&sending.far);
        progress.says(move || {
            // ORDERING: Relaxed, both; single numbers, which nothing else depends on.
            let (sent, since) = (far.0.load(Ordering::Relaxed), far.1.load(Ordering::Relaxed));
            let bar = all.map_or(String::new(), |all| bar("", sent, all) + ", ");
            format!("{bar}{}, {since} s of the log", plural(sent, "request"))
        });
        let found = plan.stream(&Far::default(), &mut sending)?;
        let input = Report::new(&plan, &found).input;
        Ok(sending.finish(input, &found.keys))
    }

    /// Says whether the server keeps to the limit.
    pub fn judge(&self, answer: &Answer) -> Result<(), Failure> {
        match answer.impossible {
            Some(odd) if odd > 0 => Err(Failure::Bound(format!(
                "{} decided {odd} of {} times as {} cannot have",
                answer.server, answer.sent, self.limit
            ))),
            _ => match (&answer.first_failure, &answer.first_unsendable) {
                (Some(why), _) => Err(Failure::Input(format!(
                    "{}: {} of {} requests have no answer, the first: {why}{}",
                    answer.server,
                    answer.failed,
                    answer.sent + answer.failed,
                    if answer.ended_early { "; the others of the log were not sent" } else { "" }
                ))),
                (None, Some(why)) if answer.sent == 0 => Err(Failure::Input(format!(
                    "{}: no request can be sent, the first: {why}",
                    answer.server
                ))),
                _ => Ok(()),
            },
        }
    }
}

impl Each for Sending<'_> {
    fn record(&mut self, held: &Held, keys: &Keys) -> Result<(), Failure> {
        if self.is_done() {
            return Ok(());
        }
        if held.key == NO_KEY {
            self.answer.left_out += 1;
            return Ok(());
        }
        self.wait(held.time)?;
        let texts = self.plan.key.texts(keys.bytes(held.key as usize));
        let sent = nanoseconds(self.start.elapsed());
        let verdict = self.ask(&texts, held.cost);
        let answered = nanoseconds(self.start.elapsed());
        let asked = Asked { sent, answered, cost: held.cost };
        let key = held.key as usize;
        if key >= self.states.len() {
            self.states.resize(key + 1, State::default());
        }
        let passed = match verdict {
            Ok(passed) => passed,
            Err(Unanswered::Unsendable(what)) => {
                self.answer.unsendable += 1;
                self.answer.first_unsendable.get_or_insert(what);
                return Ok(());
            }
            Err(Unanswered::Failed(what)) => {
                if let Some(judge) = &self.judge {
                    judge.unknown(&mut self.states[key].bounds);
                }
                return self.failed(what);
            }
        };
        self.failures_in_a_row = 0;
        self.spent += Duration::from_nanos(answered - sent);
        self.answer.slowest_us = self.answer.slowest_us.max((answered - sent) / 1000);
        let halfway = Held { time: self.epoch + sent + (answered - sent) / 2, ..*held };
        let library = self.library.ask(&halfway, keys.one_in()).map_err(Failure::Usage)?;

        let state = &mut self.states[key];
        let possible = self.judge.as_ref().map(|judge| judge.can_be(&mut state.bounds, asked, passed));
        state.requests += 1;
        state.refused += u64::from(!passed);
        state.odd += u64::from(possible == Some(false));
        state.differ += u64::from(passed != library);
        let answer = &mut self.answer;
        answer.sent += 1;
        answer.server_refused += u64::from(!passed);
        answer.library_refused += u64::from(!library);
        answer.differ += u64::from(passed != library);
        if let (Some(odd), Some(false)) = (&mut answer.impossible, possible) {
            *odd += 1;
        }
        if (passed != library || possible == Some(false)) && answer.first_differences.len() < self.top {
            answer.first_differences.push(Difference {
                record: held.number + 1,
                key: self.plan.key.show(keys.bytes(key)),
                sent_ms: sent as f64 / 1e6,
                answered_ms: answered as f64 / 1e6,
                server: Side::of(passed),
                library: Side::of(library),
                possible,
            });
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.answer.ended_early
    }

    fn keep(&mut self, to: &[u32]) {
        let known = self.states.len().min(to.len());
        keep(&mut self.states, 1, &to[..known]);
        self.library.keep(to);
    }
}

impl Sending<'_> {
    /// Waits until a request of this time is due. The first one connects.
    fn wait(&mut self, time: u64) -> Result<(), Failure> {
        if self.first.is_none() {
            // A server may close a connection on which nothing comes, so it is not made while the input is counted or
            // sorted.
            let failed = |what| Failure::Input(format!("{}: {what}", self.answer.server));
            self.connection = Some(self.server.connect().map_err(failed)?);
            // From here on time counts.
            self.start = Instant::now();
        }
        let since = Duration::from_nanos(time - *self.first.get_or_insert(time));
        // ORDERING: Relaxed, both; single numbers, which nothing else depends on.
        self.far.0.store(self.answer.sent, Ordering::Relaxed);
        self.far.1.store(since.as_secs(), Ordering::Relaxed);
        let Speed::Times(factor) = self.speed else { return Ok(()) };
        let due = since.div_f64(factor);
        let elapsed = self.start.elapsed();
        if due > elapsed {
            std::thread::sleep(due - elapsed);
        } else {
            let behind = u64::try_from((elapsed - due).as_millis()).unwrap_or(u64::MAX);
            self.answer.behind_ms = self.answer.behind_ms.max(behind);
        }
        Ok(())
    }

    fn ask(&mut self, texts: &[Vec<u8>], cost: u64) -> Result<bool, Unanswered> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.server.connect()?,
        };
        let verdict = self.server.ask(&mut connection, texts, cost);
        if !matches!(verdict, Err(Unanswered::Failed(_))) {
            self.connection = Some(connection);
        }
        verdict
    }

    /// Counts a request without an answer.
    fn failed(&mut self, what: String) -> Result<(), Failure> {
        self.answer.failed += 1;
        self.failures_in_a_row += 1;
        if self.answer.sent == 0 {
            return Err(Failure::Input(format!("{}: {what}", self.answer.server)));
        }
        self.answer.ended_early = self.failures_in_a_row >= HOPELESS;
        self.answer.first_failure.get_or_insert(what);
        Ok(())
    }

    fn finish(mut self, input: InputReport, keys: &Keys) -> Answer {
        let seconds = self.start.elapsed().as_secs_f64();
        let answer = &mut self.answer;
        answer.seconds = seconds;
        answer.mean_us = (self.spent.as_micros() as u64).checked_div(answer.sent).unwrap_or(0);
        answer.keys_asked = self.states.iter().filter(|state| state.requests > 0).count() as u64;
        answer.keys_that_differ = self.states.iter().filter(|state| state.differ > 0).count() as u64;
        let mut order: Vec<_> = (0..self.states.len()).collect();
        let library = &self.library;
        let states = &self.states;
        order.retain(|key| states[*key].refused + states[*key].differ + library.refused(*key) > 0);
        order.sort_by_key(|key| {
            let state = &states[*key];
            std::cmp::Reverse((state.odd, state.differ, state.refused))
        });
        let key_answer = |key: &usize| KeyAnswer {
            key: self.plan.key.show(keys.bytes(*key)),
            requests: states[*key].requests,
            server_refused: states[*key].refused,
            library_refused: library.refused(*key),
            differ: states[*key].differ,
            impossible: self.judge.is_some().then_some(states[*key].odd),
        };
        answer.keys = order.iter().take(self.top).map(key_answer).collect();
        answer.input = Some(input);
        self.answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_shown() {
        for (url, want) in [
            ("redis://:secret@127.0.0.1:6379", "redis://127.0.0.1:6379"),
            ("redis://ann:se@cret@localhost/", "redis://localhost/"),
            ("http://127.0.0.1:80/a@b", "http://127.0.0.1:80/a@b"),
            ("nonsense", "nonsense"),
        ] {
            assert_eq!(without_password(url), want);
        }
    }

    #[test]
    fn a_speed_is_a_number_or_max() {
        assert_eq!((speed("2.5"), speed("max")), (Ok(Speed::Times(2.5)), Ok(Speed::Max)));
        for bad in ["0", "-1", "nan", "inf", "fast", ""] {
            assert!(speed(bad).is_err(), "{bad}");
        }
    }
}

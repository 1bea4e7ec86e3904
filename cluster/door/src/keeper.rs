//! Decides requests: by tables of this process, or by a node of a cluster that shares its limits through a store.

use std::collections::HashMap;
use std::str::FromStr;
use std::time::{Duration, Instant};

use tatcell::host::{now_ns, Clock};
use tatcell::{Counters, Decision, FullPolicy, Verdict};
use tatcell_cluster::{Cluster, Down, LimitId, OpenError, SharedLimit};

use crate::published::Published;
use crate::short::short;
use crate::{Settings, Tables, TablesLimit, Time};

/// A node gives up after a quarter of a second without an answer: a try that took this long met a silent store.
const SILENT: Duration = Duration::from_millis(200);
/// How long a server asks a silent store again at its start.
const PATIENCE: Duration = Duration::from_secs(2);

/// Describes a limit of a server: a rate and a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rate {
    /// Units per period.
    pub units: u64,
    /// The period in seconds.
    pub period: u64,
    /// The most units that pass at one instant after idle.
    pub burst: u64,
}

impl Rate {
    /// Returns the nanoseconds until this many units have come, rounded up; saturates.
    fn time_of(&self, units: u64) -> u64 {
        let ns = u128::from(self.period) * 1_000_000_000 * u128::from(units);
        u64::try_from(ns.div_ceil(u128::from(self.units.max(1)))).unwrap_or(u64::MAX)
    }
}

/// Answers a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Whether the request passes.
    pub passes: bool,
    /// Whether the same cost can ever pass.
    pub ever: bool,
    /// The units that would pass now. With a store: those that this node would pass without asking, so never too many.
    pub remaining: u64,
    /// Nanoseconds until the same cost passes, if nothing else arrives; 0 if it passed or never will.
    pub retry_after: u64,
    /// Nanoseconds until the whole burst is there again; with a store, an upper bound.
    pub reset_after: u64,
    /// Whether the key found no place, and the policy decided.
    pub untracked: bool,
    /// Whether `remaining` and `reset_after` are only bounds, because the store knows them and was not asked.
    pub bound: bool,
}

impl Answer {
    /// Makes the answer of a decision by the tables.
    fn of(decision: &Decision) -> Answer {
        let (passes, ever) = (decision.passes(), decision.verdict != Verdict::Never);
        Answer {
            passes,
            ever,
            remaining: decision.remaining,
            retry_after: if passes || !ever { 0 } else { decision.retry_after },
            reset_after: decision.reset_after,
            untracked: decision.tracking != tatcell::Tracking::Tracked,
            bound: false,
        }
    }
}

/// Says why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undecided {
    /// The store did not answer in time.
    Late,
    /// Too many requests came at once.
    Overloaded,
}

impl std::fmt::Display for Undecided {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Undecided::Late => "the store did not answer in time; nothing was decided",
            Undecided::Overloaded => "too many requests at once; nothing was decided",
        })
    }
}

/// Holds a limit that a keeper has made.
#[derive(Clone, Copy, Debug)]
pub enum Limit {
    /// A limit of the tables.
    Local(TablesLimit),
    /// A limit of the cluster.
    Shared(LimitId, Rate),
}

/// Decides requests.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // there is one
pub enum Keeper {
    /// The tables of this process, and where their counts are shared.
    Local(Tables, Option<Published>),
    /// A node of a cluster, and how long a request waits for the store.
    Shared {
        /// The node.
        node: Cluster,
        /// Its limits.
        limits: HashMap<Rate, LimitId>,
        /// The longest wait.
        wait: Duration,
        /// Where the counts are shared.
        counts: Option<Published>,
    },
}

/// Holds the settings with which a keeper is opened.
#[derive(Clone, Debug)]
pub struct KeeperSettings {
    keys: usize,
    policy: FullPolicy,
    counters: Option<Published>,
    store: Option<Store>,
}

#[derive(Clone, Debug)]
struct Store {
    url: String,
    nodes: u32,
    prefix: String,
    wait: Duration,
    down: Down,
    reserve: bool,
}

/// A number of keys in debt at one time that tables can hold.
struct Keys(usize);

impl FromStr for Keys {
    type Err = String;

    fn from_str(text: &str) -> Result<Keys, String> {
        let keys = text.parse::<usize>().map_err(|error| error.to_string())?;
        Tables::lines(keys)?;
        Ok(Keys(keys))
    }
}

/// A setting that has only a few words.
struct Word<T>(T);

macro_rules! words {
    ($of:ty: $($word:literal = $value:expr),+) => {
        impl FromStr for Word<$of> {
            type Err = &'static str;

            fn from_str(text: &str) -> Result<Self, &'static str> {
                match text {
                    $($word => Ok(Word($value)),)+
                    _ => Err(concat!("one of", $(" ", $word),+)),
                }
            }
        }
    };
}

words!(FullPolicy: "admit" = FullPolicy::Admit, "inherit" = FullPolicy::Inherit, "deny" = FullPolicy::Deny,
    "sampled" = FullPolicy::Sampled);
words!(Down: "reserve" = Down::Reserve, "share" = Down::Share, "open" = Down::Open);

impl KeeperSettings {
    /// The part of `--help` that lists these settings.
    pub const HELP: &'static str = "  --keys N            keys in debt at one time (100000), each 16 bytes
                      for each kind of limit, with a store 500 bytes for each limit
  --when-full WORD    for a new key whose set is full: admit (default), inherit, deny, sampled
  --counters NAME     shares the counts with other programs: a name in shared memory, as in /limits, or a path
                      that no other server has; they start from 0 with the server
  --store URL         redis://[user:password@]host:port/ shares the limits with other nodes
  --nodes N           most nodes that share them; the same for all nodes
  --store-prefix TEXT the beginning of each key in the store (tatcell)
  --store-wait TIME   longest wait for the store's answer (20ms)
  --when-down WORD    while the store is away: reserve (default, exact), share, open
  --reserve BOOL      nodes have reserves (true); with false the store grants every unit
";

    /// Takes these settings.
    ///
    /// # Errors
    /// Those of [`Settings::one`]; and settings of a store without a store.
    pub fn take(settings: &mut Settings) -> Result<KeeperSettings, String> {
        let keys = settings.or("keys", Keys(100_000))?.0;
        let policy = settings.or("when_full", Word(FullPolicy::Admit))?.0;
        let counters = settings.one("counters")?.map(Published::new);
        let Some(url) = settings.one("store")? else {
            return Ok(KeeperSettings { keys, policy, counters, store: None });
        };
        let nodes =
            settings.one("nodes")?.ok_or("with a store, give nodes: how many share the limits at most")?;
        let prefix = settings.or("store_prefix", "tatcell".to_owned())?;
        let wait = settings.or("store_wait", Time(Duration::from_millis(20)))?.0;
        let down = settings.or("when_down", Word(Down::Reserve))?.0;
        let reserve = settings.or("reserve", true)?;
        let store = Some(Store { url, nodes, prefix, wait, down, reserve });
        Ok(KeeperSettings { keys, policy, counters, store })
    }

    /// Returns whether a store shares the limits.
    pub fn shares(&self) -> bool {
        self.store.is_some()
    }

    /// Leaves the counters out: nothing is shared by name, and nothing is set to 0.
    #[must_use]
    pub fn uncounted(self) -> KeeperSettings {
        KeeperSettings { counters: None, ..self }
    }

    /// Opens the keeper. A cluster knows only these rates; tables accept any.
    ///
    /// # Errors
    /// A line that says what is wrong and what to do.
    pub fn open(&self, rates: &[Rate]) -> Result<Keeper, String> {
        if let Some(counters) = &self.counters {
            counters.open()?;
        }
        let Some(store) = &self.store else {
            return Ok(Keeper::Local(Tables::new(self.keys, self.policy)?, self.counters.clone()));
        };
        let name = |rate: &Rate| format!("{}.{}s.{}", rate.units, rate.period, rate.burst);
        let builder = || {
            let mut builder = Cluster::builder(&store.url, store.nodes);
            builder = builder.prefix(&store.prefix).keys(self.keys).when_down(store.down);
            for rate in rates {
                let limit =
                    SharedLimit::new(&name(rate), rate.units, Duration::from_secs(rate.period), rate.burst);
                builder = builder.limit(if store.reserve { limit } else { limit.reserve(0, 0) });
            }
            builder
        };
        // A store may be silent for a moment.
        let start = Instant::now();
        let node = loop {
            let before = start.elapsed();
            match builder().open() {
                Err(OpenError::Unreachable(_)) if (before + SILENT..PATIENCE).contains(&start.elapsed()) => {}
                opened => break opened.map_err(|e| format!("{e}"))?,
            }
        };
        let limits = rates.iter().filter_map(|rate| Some((*rate, node.limit(&name(rate))?))).collect();
        Ok(Keeper::Shared { node, limits, wait: store.wait, counts: self.counters.clone() })
    }
}

/// Reads the clock for tables, in nanoseconds. It stands still while the system sleeps.
pub fn now() -> u64 {
    now_ns(Clock::Monotonic).unwrap_or(0)
}

impl Keeper {
    /// Makes a limit, or finds it among those that the keeper was opened with.
    ///
    /// # Errors
    /// Text: the limit cannot be kept, or the cluster does not have it.
    pub fn limit(&self, rate: &Rate) -> Result<Limit, String> {
        match self {
            Keeper::Local(tables, _) => {
                let period = rate.period.checked_mul(1_000_000_000).ok_or("the period is above 584 years")?;
                tables.limit(rate.units, period, rate.burst).map(Limit::Local)
            }
            Keeper::Shared { limits, .. } => {
                let known = limits.get(rate).map(|id| Limit::Shared(*id, *rate));
                let why = "not one of the limits that this server shares with others: add it to the settings";
                known.ok_or_else(|| why.into())
            }
        }
    }

    /// Decides a request for a key; waits for the store up to the configured time. `now` is a reading of [`now`].
    ///
    /// # Errors
    /// [`Undecided`]; nothing was charged.
    pub async fn decide(&self, limit: &Limit, key: &[u8], cost: u64, now: u64) -> Result<Answer, Undecided> {
        match (self, limit) {
            (Keeper::Shared { node, wait, counts, .. }, Limit::Shared(id, rate)) => {
                let key = &short(key);
                let verdict = match cost {
                    // A request of cost 0 only peeks, which is no reason to ask the store.
                    0 => tatcell_cluster::Verdict::Pass,
                    cost => node.acquire_async(*id, key, cost, *wait).await,
                };
                if let Some(counts) = counts {
                    counts.add(&counted(verdict));
                }
                shared(verdict, node.left(*id, key), rate)
            }
            (_, Limit::Local(limit)) => Keeper::decide_now(limit, key, cost, now),
            // A limit of another keeper, from before a change.
            (Keeper::Local(..), Limit::Shared(..)) => Err(Undecided::Overloaded),
        }
    }

    /// Decides a request by the tables, which takes no time.
    ///
    /// # Errors
    /// [`Undecided::Overloaded`]; nothing was charged.
    pub fn decide_now(limit: &TablesLimit, key: &[u8], cost: u64, now: u64) -> Result<Answer, Undecided> {
        let decision = Tables::check(limit, key, cost, now).ok_or(Undecided::Overloaded)?;
        Ok(Answer::of(&decision))
    }

    /// Gives up to `units` back to a key: by the tables as far as it still owes them, and behind a store as far as this
    /// node still holds them. Returns its state, and how many it got.
    ///
    /// # Errors
    /// [`Undecided`]; nothing was given back.
    pub fn credit(
        &self,
        limit: &Limit,
        key: &[u8],
        units: u64,
        now: u64,
    ) -> Result<(Answer, u64), Undecided> {
        match (self, limit) {
            (Keeper::Shared { node, .. }, Limit::Shared(id, rate)) => {
                let key = &short(key);
                let back = node.give_back(*id, key, units);
                Ok((shared(tatcell_cluster::Verdict::Pass, node.left(*id, key), rate)?, back))
            }
            (_, Limit::Local(limit)) => Keeper::credit_now(limit, key, units, now),
            // A limit of another keeper, from before a change.
            (Keeper::Local(..), Limit::Shared(..)) => Err(Undecided::Overloaded),
        }
    }

    /// Gives up to `units` back to a key of the tables, as far as it still owes them. Returns its state, and how many
    /// it got: none where full sets take slots over (`--when-full inherit` and `sampled`), because there the debt of a
    /// slot may be another key's.
    ///
    /// # Errors
    /// [`Undecided::Overloaded`]; nothing was given back.
    pub fn credit_now(
        limit: &TablesLimit,
        key: &[u8],
        units: u64,
        now: u64,
    ) -> Result<(Answer, u64), Undecided> {
        let decision = limit.credit(key, units, now).ok_or(Undecided::Overloaded)?;
        Ok((Answer::of(&decision), decision.units))
    }

    /// Does the work that is due once a second.
    pub fn every_second(&self) {
        let (counts, sum) = match self {
            Keeper::Local(tables, counts) => {
                tables.sweep(now());
                (counts, tables.counts())
            }
            Keeper::Shared { counts, .. } => (counts, Counters::default()),
        };
        if let Some(counts) = counts {
            counts.publish(sum);
        }
    }

    /// Writes the metrics of the keeper.
    pub fn metrics(&self, out: &mut String) {
        match self {
            Keeper::Local(tables, _) => tables.metrics(now(), out),
            Keeper::Shared { node, .. } => {
                let _ = node.metrics().prometheus(out);
            }
        }
    }

    /// Closes the keeper: a node gives back what it holds. Waits for that, up to `timeout`.
    pub fn close(self, timeout: Duration) {
        if let Keeper::Shared { node, .. } = self {
            node.shutdown(timeout);
        }
    }
}

/// Returns what a verdict of a node counts.
fn counted(verdict: tatcell_cluster::Verdict) -> Counters {
    use tatcell_cluster::Verdict::{Deny, Never, Pass};
    match verdict {
        Pass => Counters { conforming: 1, ..Counters::default() },
        Deny { .. } => Counters { non_conforming: 1, ..Counters::default() },
        Never => Counters { never: 1, ..Counters::default() },
        // Too many requests at once, or no answer in time: there is no verdict.
        _ => Counters { contended: 1, ..Counters::default() },
    }
}

/// Converts the verdict of a node.
fn shared(verdict: tatcell_cluster::Verdict, left: u64, rate: &Rate) -> Result<Answer, Undecided> {
    use tatcell_cluster::Verdict::{Deny, Never, Overloaded, Pass, Pending};
    let left = left.min(rate.burst);
    let answer = |passes, ever, retry: Duration| Answer {
        passes,
        ever,
        remaining: if passes { left } else { 0 },
        retry_after: u64::try_from(retry.as_nanos()).unwrap_or(u64::MAX),
        reset_after: rate.time_of(if passes { rate.burst - left } else { rate.burst }),
        untracked: false,
        bound: true,
    };
    match verdict {
        Pass => Ok(answer(true, true, Duration::ZERO)),
        Deny { retry_after } => Ok(answer(false, true, retry_after)),
        Never => Ok(answer(false, false, Duration::ZERO)),
        Overloaded => Err(Undecided::Overloaded),
        Pending => Err(Undecided::Late),
        _ => Err(Undecided::Overloaded),
    }
}

//! Decides one request: which rules its descriptors match, what their limits say, and the answer.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use tatcell_door::{now, pages, Answer, Keeper, KeeperSettings, Limit, Rate, Undecided};
use tonic::Status;

use crate::api::{Code, RateLimitRequest, RateLimitResponse, Unit};
use crate::asked::{label, replace, Asked, Summary, NOTHING};
use crate::fields::{DESCRIPTORS, ENTRIES, TOO_MANY};
use crate::json;
use crate::past::{Locks, Pasts};
use crate::read::{self, Make, Source};
use crate::rules::{Counters, Pass, Rules};

/// The rules in force, and the keeper of their limits.
#[derive(Debug)]
struct InForce {
    rules: Arc<Rules>,
    counters: Registry,
    /// The rules before, and the number of reloads.
    pasts: Pasts,
    epoch: u32,
    keeper: Arc<Keeper>,
    /// The rates that a cluster was opened with.
    rates: Vec<Rate>,
}

/// Says how the service answers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Nothing is ever refused.
    pub shadow: bool,
    /// The answer has header fields for the client.
    pub headers: bool,
}

/// Implements the service.
#[derive(Debug)]
pub struct RateLimit {
    in_force: RwLock<Arc<InForce>>,
    /// Held by a reload, so that one comes after the other.
    reloading: Mutex<()>,
    locks: Locks,
    seen: Seen,
    options: Options,
    settings: KeeperSettings,
}

/// Counters of the rules in force, by domain and path; the counters of a rule that stays survive a reload.
type Registry = HashMap<(String, String), Arc<Counters>>;

#[derive(Debug, Default)]
struct Seen {
    requests: AtomicU64,
    over: AtomicU64,
    malformed: AtomicU64,
    undecided: AtomicU64,
    untracked: AtomicU64,
    unknown_domain: AtomicU64,
    unmatched: AtomicU64,
    unkept: AtomicU64,
    returned: AtomicU64,
    unreturned: AtomicU64,
    reloads: AtomicU64,
    failed_reloads: AtomicU64,
}

/// Collects the rates of rules, before a keeper exists.
struct Rates(Vec<Rate>);

impl Make for Rates {
    fn pass(&mut self, requests: u32, unit: Unit) -> Result<Pass, String> {
        let rate = unit.rate(requests);
        if requests > 0 && !self.0.contains(&rate) {
            self.0.push(rate);
        }
        Ok(Pass::All)
    }

    fn counters(&mut self, _: &str, _: &str) -> Arc<Counters> {
        Arc::default()
    }

    fn note(&mut self, _: String) {}
}

/// Makes the limits with a keeper.
struct Limits<'a> {
    keeper: &'a Keeper,
    before: Option<&'a Registry>,
    counters: Registry,
}

impl Make for Limits<'_> {
    fn pass(&mut self, requests: u32, unit: Unit) -> Result<Pass, String> {
        Pass::some(requests, unit, self.keeper)
    }

    fn counters(&mut self, domain: &str, path: &str) -> Arc<Counters> {
        let name = (domain.to_owned(), path.to_owned());
        let before = self.before.and_then(|before| before.get(&name)).cloned();
        self.counters.entry(name).or_insert_with(|| before.unwrap_or_default()).clone()
    }

    fn note(&mut self, text: String) {
        eprintln!("tatcell-ratelimit: note: {text}");
    }
}

impl RateLimit {
    /// Starts with these rules.
    ///
    /// # Errors
    /// A line: that of the file, or what is wrong with the store.
    pub fn open(sources: &[Source], settings: KeeperSettings, options: Options) -> Result<RateLimit, String> {
        let (in_force, _) = Self::make(sources, &settings, None)?;
        let in_force = RwLock::new(Arc::new(in_force));
        Ok(RateLimit {
            in_force,
            reloading: Mutex::default(),
            locks: Locks::default(),
            seen: Seen::default(),
            options,
            settings,
        })
    }

    fn make(
        sources: &[Source],
        settings: &KeeperSettings,
        old: Option<&InForce>,
    ) -> Result<(InForce, bool), String> {
        let mut rates = Rates(Vec::new());
        read::rules(sources, &mut rates)?;
        let Rates(rates) = rates;
        let kept = old.filter(|old| !settings.shares() || rates.iter().all(|rate| old.rates.contains(rate)));
        let (keeper, rates) = match kept {
            Some(old) => (old.keeper.clone(), old.rates.clone()),
            None if settings.shares() && rates.is_empty() => {
                return Err(
                    "no rule has a limit that the store could share: add a rate_limit, or give no store"
                        .into(),
                )
            }
            None => (Arc::new(settings.open(&rates)?), rates),
        };
        let before = old.map(|old| &old.counters);
        let mut limits = Limits { keeper: &keeper, before, counters: Registry::default() };
        let mut rules = read::rules(sources, &mut limits)?;
        let counters = limits.counters;
        let (mut pasts, mut epoch, mut changed) = (Pasts::default(), 0, false);
        if let Some(old) = old.filter(|_| !settings.shares()) {
            (pasts, epoch) = (old.pasts.clone(), old.epoch.wrapping_add(1));
            changed = rules.follow(&old.rules, epoch);
        }
        Ok((InForce { rules: Arc::new(rules), counters, pasts, epoch, keeper, rates }, changed))
    }

    /// Puts other rules in force; keys keep the units that they have used. On an error the old rules stay.
    ///
    /// # Errors
    /// Those of [`open`](RateLimit::open).
    pub fn reload(&self, sources: Result<Vec<Source>, String>) -> Result<(), String> {
        self.reload_at(sources, now)
    }

    /// Reloads at this reading of the clock.
    ///
    /// # Errors
    /// Those of [`reload`](RateLimit::reload).
    pub fn reload_at(
        &self,
        sources: Result<Vec<Source>, String>,
        clock: impl Fn() -> u64,
    ) -> Result<(), String> {
        let _one = self.reloading.lock().unwrap_or_else(PoisonError::into_inner);
        let old = self.in_force();
        match sources.and_then(|s| Self::make(&s, &self.settings, Some(&old))) {
            Ok((mut made, changed)) => {
                // No decision by the tables is under way under the write lock.
                let mut in_force = self.in_force.write().unwrap_or_else(PoisonError::into_inner);
                if changed {
                    made.pasts = old.pasts.and(&old.rules, clock());
                }
                *in_force = Arc::new(made);
                drop(in_force);
                Counters::add(&self.seen.reloads, 1);
                Ok(())
            }
            Err(why) => {
                Counters::add(&self.seen.failed_reloads, 1);
                Err(why)
            }
        }
    }

    fn in_force(&self) -> Arc<InForce> {
        self.in_force.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the present keeper of the limits.
    pub fn keeper(&self) -> Arc<Keeper> {
        self.in_force().keeper.clone()
    }

    /// Decides a request. It charges descriptors one by one: if one is over its limit, the others stay charged.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for requests that no proxy sends. UNAVAILABLE if the store did not answer in time: then the
    /// proxy's `failure_mode_deny` decides.
    pub async fn decide(&self, request: RateLimitRequest) -> Result<RateLimitResponse, Status> {
        self.decide_at(request, now()).await
    }

    /// Decides a request at this reading of the clock.
    ///
    /// # Errors
    /// Those of [`decide`](RateLimit::decide).
    pub async fn decide_at(&self, request: RateLimitRequest, now: u64) -> Result<RateLimitResponse, Status> {
        Counters::add(&self.seen.requests, 1);
        let answer = match self.by_tables(&request, now, &self.seen) {
            Some(answer) => answer,
            None => self.by_store(request, now).await,
        };
        match &answer {
            Ok(response) => {
                Counters::add(&self.seen.over, u64::from(response.overall_code() == Code::OverLimit))
            }
            Err(status) if status.code() == tonic::Code::Unavailable => {
                Counters::add(&self.seen.undecided, 1)
            }
            Err(_) => Counters::add(&self.seen.malformed, 1),
        }
        answer
    }

    /// Decides by tables, if there is no store. Holds the read lock: see [`crate::past`].
    fn by_tables(
        &self,
        request: &RateLimitRequest,
        now: u64,
        seen: &Seen,
    ) -> Option<Result<RateLimitResponse, Status>> {
        let in_force = self.in_force.read().unwrap_or_else(PoisonError::into_inner);
        if let Keeper::Shared { .. } = &*in_force.keeper {
            return None;
        }
        Some(ask(&in_force, request, seen).and_then(|asked| {
            let answers = asked.iter().map(|asked| {
                let Some((limit, hits)) = asked.limited() else {
                    Counters::add(&seen.unreturned, asked.back);
                    return Ok(NOTHING);
                };
                let (Limit::Local(limit), key) = (limit, asked.key()) else {
                    return Err(Undecided::Overloaded);
                };
                if asked.rule.is_some() {
                    in_force.pasts.carry((&asked.parts, &key), limit, now, &self.locks)?;
                }
                if asked.back == 0 {
                    return Keeper::decide_now(limit, &key, hits, now);
                }
                let (answer, back) = Keeper::credit_now(limit, &key, asked.back, now)?;
                Counters::add(&seen.returned, back);
                Counters::add(&seen.unreturned, asked.back - back.min(asked.back));
                Ok(answer)
            });
            self.response(&asked, answers.collect(), seen)
        }))
    }

    /// Decides by the store, one descriptor after the other.
    async fn by_store(&self, request: RateLimitRequest, now: u64) -> Result<RateLimitResponse, Status> {
        let in_force = self.in_force();
        let seen = &self.seen;
        let mut asked = ask(&in_force, &request, seen)?;
        // While the store is awaited, only what it is asked for is kept.
        drop(request);
        asked.iter_mut().for_each(|asked| asked.parts.shrink_to_fit());
        let mut answers = Vec::with_capacity(asked.len());
        for asked in &asked {
            let answer = match asked.limited() {
                None => {
                    Counters::add(&seen.unreturned, asked.back);
                    Ok(NOTHING)
                }
                Some((limit, hits)) if asked.back == 0 => {
                    in_force.keeper.decide(limit, &asked.parts, hits, now).await
                }
                Some((limit, _)) => {
                    in_force.keeper.credit(limit, &asked.parts, asked.back, now).map(|(answer, back)| {
                        Counters::add(&seen.returned, back);
                        Counters::add(&seen.unreturned, asked.back.saturating_sub(back));
                        answer
                    })
                }
            };
            match answer {
                Ok(answer) => answers.push(answer),
                Err(why) => return self.response(&[], Err(why), seen),
            }
        }
        self.response(&asked, Ok(answers), seen)
    }

    /// Makes the response of answers; counts them.
    fn response(
        &self,
        asked: &[Asked<'_>],
        answers: Result<Vec<Answer>, Undecided>,
        seen: &Seen,
    ) -> Result<RateLimitResponse, Status> {
        let answers = answers.map_err(|why| Status::unavailable(why.to_string()))?;
        let mut summary = Summary::default();
        let mut statuses = Vec::with_capacity(asked.len());
        for (asked, answer) in asked.iter().zip(&answers) {
            Counters::add(&seen.unmatched, asked.pass.is_none().into());
            Counters::add(&seen.untracked, answer.untracked.into());
            let status = asked.status(answer);
            summary.add(asked, &status);
            statuses.push(status);
        }
        let over = summary.over() && !self.options.shadow;
        let code = if over { Code::OverLimit } else { Code::Ok };
        let headers = if self.options.headers { summary.headers(&statuses) } else { Vec::new() };
        Ok(RateLimitResponse { overall_code: code.into(), statuses, response_headers_to_add: headers })
    }

    /// Returns the page of this target, if there is one: see `json.rs`.
    pub fn page(&self, target: &str) -> Option<pages::Own> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        if path != "/json" {
            return None;
        }
        if query.is_empty() {
            return Some(("200 OK", json::rules(&self.in_force().rules)));
        }
        let Some((domain, descriptor)) = json::key(query) else {
            return Some(("400 Bad Request", json::error("ask for /json?domain=DOMAIN&KEY=VALUE")));
        };
        let request = RateLimitRequest { domain, descriptors: vec![descriptor], hits_addend: 0 };
        // Looking is no request: it is counted nowhere.
        Some(match self.by_tables(&request, now(), &Seen::default()) {
            Some(Ok(response)) => ("200 OK", json::state(&response)),
            Some(Err(status)) => json::failed(&status),
            None => ("501 Not Implemented", json::error("only the store knows the key: ask for /json alone")),
        })
    }

    /// Counts a request that cannot be read.
    pub(crate) fn count_malformed(&self) {
        Counters::add(&self.seen.requests, 1);
        Counters::add(&self.seen.malformed, 1);
    }

    /// Returns the number of requests so far.
    pub fn requests(&self) -> u64 {
        // ORDERING: Relaxed; a value.
        self.seen.requests.load(Ordering::Relaxed)
    }

    /// Writes the counters.
    pub fn metrics(&self, out: &mut String) {
        let seen = &self.seen;
        // ORDERING: Relaxed; values only.
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        for (name, help, counter) in [
            ("requests", "Requests.", &seen.requests),
            ("over_limit", "Requests answered with OVER_LIMIT.", &seen.over),
            ("malformed", "Malformed requests, answered with an error.", &seen.malformed),
            ("undecided", "Requests not decided in time, answered with an error.", &seen.undecided),
            (
                "untracked",
                "Descriptors decided by when_full: the set of a new key was full.",
                &seen.untracked,
            ),
            ("unknown_domain", "Requests for a domain without rules.", &seen.unknown_domain),
            ("unmatched", "Descriptors without a limit.", &seen.unmatched),
            ("returned", "Negative hits that were given back.", &seen.returned),
            (
                "unreturned",
                "Negative hits that were not given back: nothing was owed, or not here.",
                &seen.unreturned,
            ),
            (
                "unkept_overrides",
                "Limits in descriptors that cannot be kept; the rule's limit applied.",
                &seen.unkept,
            ),
            ("reloads", "Reloads of the rules.", &seen.reloads),
            ("failed_reloads", "Reloads of the rules that failed.", &seen.failed_reloads),
        ] {
            let name = format!("tatcell_ratelimit_{name}_total");
            pages::sample(out, "counter", &name, help, &[("", read(counter))]);
        }
        let name = "tatcell_ratelimit_hits_total";
        pages::sample(out, "counter", name, "Hits under each rule.", &[]);
        let in_force = self.in_force();
        let mut rules: Vec<_> = in_force.counters.iter().collect();
        rules.sort_by_key(|(key, _)| *key);
        for ((domain, rule), counters) in rules {
            for (outcome, counter) in
                [("within", &counters.within), ("over", &counters.over), ("shadow", &counters.shadow)]
            {
                let (domain, rule, value) = (label(domain), label(rule), read(counter));
                let _ = writeln!(out, "{name}{{domain={domain},rule={rule},outcome=\"{outcome}\"}} {value}");
            }
        }
        in_force.keeper.metrics(out);
    }
}

/// Finds the limits that apply to the descriptors of a request.
fn ask<'r>(in_force: &'r InForce, request: &RateLimitRequest, seen: &Seen) -> Result<Vec<Asked<'r>>, Status> {
    if request.domain.is_empty() {
        return Err(Status::invalid_argument("the domain is empty"));
    }
    let entries: usize = request.descriptors.iter().map(|descriptor| descriptor.entries.len()).sum();
    if !(1..=DESCRIPTORS).contains(&request.descriptors.len()) || entries > ENTRIES {
        return Err(Status::invalid_argument(TOO_MANY));
    }
    let level = in_force.rules.domains.get(&request.domain);
    Counters::add(&seen.unknown_domain, level.is_none().into());
    let mut asked = Vec::with_capacity(request.descriptors.len());
    for descriptor in &request.descriptors {
        let hits = descriptor.hits_addend.unwrap_or(request.hits_addend.max(1).into());
        asked.push(match level {
            None => Asked::default(),
            Some(level) => {
                let asked = Asked::new(&request.domain, level, descriptor, hits, &in_force.keeper);
                Counters::add(&seen.unkept, asked.unkept.into());
                asked
            }
        });
    }
    replace(&mut asked);
    Ok(asked)
}

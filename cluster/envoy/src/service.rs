//! Decides one request: which rules its descriptors match, what their limits say, and the answer.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use tatcell_door::{now, pages, Answer, Keeper, KeeperSettings, Rate};
use tonic::Status;

use crate::api::{
    Code, CurrentLimit, Descriptor, DescriptorStatus, HeaderValue, Override, RateLimitRequest,
    RateLimitResponse, Unit,
};
use crate::read::{self, Make, Source};
use crate::rules::{push, Counters, Pass, Rule, RuleLimit, Rules};

/// The most descriptors of a request, and entries of a descriptor: far more than proxies send.
const MOST: usize = 100;

/// The rules in force, and the keeper of their limits.
#[derive(Debug)]
struct InForce {
    rules: Rules,
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
    counters: Registry,
    seen: Seen,
    options: Options,
    settings: KeeperSettings,
}

/// Counters by domain and path; the counters of a rule survive a reload.
type Registry = Mutex<HashMap<(String, String), Arc<Counters>>>;

#[derive(Debug, Default)]
struct Seen {
    requests: AtomicU64,
    over: AtomicU64,
    malformed: AtomicU64,
    undecided: AtomicU64,
    untracked: AtomicU64,
    unknown_domain: AtomicU64,
    unmatched: AtomicU64,
    reloads: AtomicU64,
    failed_reloads: AtomicU64,
}

/// Collects the rates of rules, before a keeper exists.
struct Rates(Vec<Rate>);

impl Make for Rates {
    fn pass(&mut self, requests: u32, unit: Unit) -> Result<Pass, &'static str> {
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
struct Limits<'a>(&'a Keeper, &'a Registry);

impl Make for Limits<'_> {
    fn pass(&mut self, requests: u32, unit: Unit) -> Result<Pass, &'static str> {
        Pass::some(requests, unit, self.0)
    }

    fn counters(&mut self, domain: &str, path: &str) -> Arc<Counters> {
        let mut registry = self.1.lock().unwrap_or_else(PoisonError::into_inner);
        registry.entry((domain.to_owned(), path.to_owned())).or_default().clone()
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
        let counters = Registry::default();
        let in_force = Self::make(sources, &settings, &counters, None)?;
        let in_force = RwLock::new(Arc::new(in_force));
        Ok(RateLimit { in_force, counters, seen: Seen::default(), options, settings })
    }

    fn make(
        sources: &[Source],
        settings: &KeeperSettings,
        counters: &Registry,
        old: Option<&InForce>,
    ) -> Result<InForce, String> {
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
        let rules = read::rules(sources, &mut Limits(&keeper, counters))?;
        Ok(InForce { rules, keeper, rates })
    }

    /// Puts other rules in force; keys keep their debts. On an error the old rules stay.
    ///
    /// # Errors
    /// Those of [`open`](RateLimit::open).
    pub fn reload(&self, sources: Result<Vec<Source>, String>) -> Result<(), String> {
        let old = self.in_force();
        let made = sources.and_then(|s| Self::make(&s, &self.settings, &self.counters, Some(&old)));
        match made {
            Ok(made) => {
                *self.in_force.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(made);
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
    pub async fn decide(&self, request: &RateLimitRequest) -> Result<RateLimitResponse, Status> {
        Counters::add(&self.seen.requests, 1);
        let answer = self.try_decide(request).await;
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

    async fn try_decide(&self, request: &RateLimitRequest) -> Result<RateLimitResponse, Status> {
        if request.domain.is_empty() {
            return Err(Status::invalid_argument("the domain is empty"));
        }
        if !(1..=MOST).contains(&request.descriptors.len())
            || request.descriptors.iter().any(|d| d.entries.len() > MOST)
        {
            return Err(Status::invalid_argument(
                "a request must have 1 to 100 descriptors, each with at most 100 entries",
            ));
        }
        let in_force = self.in_force();
        let Some(level) = in_force.rules.domains.get(&request.domain) else {
            Counters::add(&self.seen.unknown_domain, 1);
            let statuses = request.descriptors.iter().map(|_| no_limit()).collect();
            return Ok(RateLimitResponse { overall_code: Code::Ok.into(), statuses, ..Default::default() });
        };
        let mut asked = Vec::with_capacity(request.descriptors.len());
        for descriptor in &request.descriptors {
            let mut key = Vec::with_capacity(64);
            push(&mut key, &request.domain);
            asked.push(match &descriptor.limit {
                Some(limit) => Asked::overridden(descriptor, limit, key, &in_force.keeper)?,
                None => Asked::by_rule(level.matched(descriptor, &mut key), key),
            });
        }
        replace(&mut asked);
        let mut summary = Summary::default();
        let mut statuses = Vec::with_capacity(asked.len());
        for (asked, descriptor) in asked.iter().zip(&request.descriptors) {
            let hits = descriptor.hits_addend.unwrap_or(request.hits_addend.max(1).into());
            let status = self.status(&in_force.keeper, asked, hits).await?;
            summary.add(asked, &status);
            statuses.push(status);
        }
        let over = summary.over() && !self.options.shadow;
        let code = if over { Code::OverLimit } else { Code::Ok };
        let headers = if self.options.headers { summary.headers(&statuses) } else { Vec::new() };
        Ok(RateLimitResponse { overall_code: code.into(), statuses, response_headers_to_add: headers })
    }

    async fn status(
        &self,
        keeper: &Keeper,
        asked: &Asked<'_>,
        hits: u64,
    ) -> Result<DescriptorStatus, Status> {
        let (requests, unit, answer) = match asked.pass.as_deref() {
            None => {
                Counters::add(&self.seen.unmatched, 1);
                return Ok(no_limit());
            }
            Some(Pass::All) => {
                asked.count(hits, false);
                return Ok(DescriptorStatus { limit_remaining: u32::MAX, ..no_limit() });
            }
            Some(Pass::None(unit)) => (0, *unit, NOTHING),
            Some(Pass::Some(requests, unit, limit)) => {
                let answer = keeper.decide(limit, &asked.key, hits, now()).await;
                (*requests, *unit, answer.map_err(|why| Status::unavailable(why.to_string()))?)
            }
        };
        Counters::add(&self.seen.untracked, answer.untracked.into());
        asked.count(hits, !answer.passes);
        let ok = answer.passes || asked.shadow();
        let name = asked.limit.map_or(String::new(), |limit| limit.name.clone());
        // Over the limit: the time until the same cost passes. Never: the time until the whole limit is there again.
        let until = if answer.passes || !answer.ever { answer.reset_after } else { answer.retry_after };
        Ok(DescriptorStatus {
            code: if ok { Code::Ok } else { Code::OverLimit }.into(),
            current_limit: Some(CurrentLimit { requests_per_unit: requests, unit: unit.into(), name }),
            limit_remaining: u32::try_from(answer.remaining).unwrap_or(u32::MAX),
            duration_until_reset: Some(prost_types::Duration {
                seconds: (until / 1_000_000_000) as i64,
                nanos: (until % 1_000_000_000) as i32,
            }),
        })
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
                "Descriptors decided by when_full, for new keys whose set was full.",
                &seen.untracked,
            ),
            ("unknown_domain", "Requests for a domain without rules.", &seen.unknown_domain),
            ("unmatched", "Descriptors without a limit.", &seen.unmatched),
            ("reloads", "Reloads of the rules.", &seen.reloads),
            ("failed_reloads", "Reloads of the rules that failed.", &seen.failed_reloads),
        ] {
            let name = format!("tatcell_ratelimit_{name}_total");
            pages::sample(out, "counter", &name, help, &[("", read(counter))]);
        }
        let name = "tatcell_ratelimit_hits_total";
        pages::sample(out, "counter", name, "Hits under each rule.", &[]);
        let registry = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rules: Vec<_> = registry.iter().collect();
        rules.sort_by_key(|(key, _)| *key);
        for ((domain, rule), counters) in rules {
            for (outcome, counter) in
                [("within", &counters.within), ("over", &counters.over), ("shadow", &counters.shadow)]
            {
                let (domain, rule, value) = (label(domain), label(rule), read(counter));
                let _ = writeln!(out, "{name}{{domain={domain},rule={rule},outcome=\"{outcome}\"}} {value}");
            }
        }
        drop(registry);
        self.keeper().metrics(out);
    }
}

/// Quotes the value of a label.
fn label(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

/// The answer of a limit of 0.
const NOTHING: Answer =
    Answer { passes: false, ever: false, remaining: 0, retry_after: 0, reset_after: 0, untracked: false };

fn no_limit() -> DescriptorStatus {
    DescriptorStatus { code: Code::Ok.into(), ..Default::default() }
}

/// The rule and the limit that apply to a descriptor.
struct Asked<'r> {
    rule: Option<&'r Rule>,
    limit: Option<&'r RuleLimit>,
    pass: Option<Cow<'r, Pass>>,
    key: Vec<u8>,
}

impl<'r> Asked<'r> {
    fn by_rule(rule: Option<&'r Rule>, key: Vec<u8>) -> Asked<'r> {
        let limit = rule.and_then(|rule| rule.limit.as_ref());
        Asked { rule, limit, pass: limit.map(|limit| Cow::Borrowed(&limit.pass)), key }
    }

    /// Applies the limit that the proxy sent.
    fn overridden(
        descriptor: &Descriptor,
        limit: &Override,
        mut key: Vec<u8>,
        keeper: &Keeper,
    ) -> Result<Asked<'r>, Status> {
        for entry in &descriptor.entries {
            push(&mut key, &entry.key);
            push(&mut key, &entry.value);
        }
        let pass = Pass::some(limit.requests_per_unit, limit.unit(), keeper);
        let pass =
            pass.map_err(|why| Status::invalid_argument(format!("the limit in a descriptor: {why}")))?;
        Ok(Asked { rule: None, limit: None, pass: Some(Cow::Owned(pass)), key })
    }

    fn shadow(&self) -> bool {
        self.rule.is_some_and(|rule| rule.shadow)
    }

    fn count(&self, hits: u64, over: bool) {
        let Some(limit) = self.limit else { return };
        let counter = match (over, self.shadow()) {
            (false, _) => &limit.counters.within,
            (true, false) => &limit.counters.over,
            (true, true) => &limit.counters.shadow,
        };
        Counters::add(counter, hits);
    }
}

/// Removes the limits that others replace.
fn replace(asked: &mut [Asked<'_>]) {
    let replaced: Vec<&String> =
        asked.iter().filter_map(|a| a.limit).flat_map(|limit| &limit.replaces).collect();
    if replaced.is_empty() {
        return;
    }
    for asked in asked {
        if asked.limit.is_some_and(|limit| !limit.name.is_empty() && replaced.contains(&&limit.name)) {
            (asked.limit, asked.pass) = (None, None);
        }
    }
}

/// The result of all descriptors together.
#[derive(Default)]
struct Summary {
    over: usize,
    quotas: usize,
    quotas_over: usize,
    /// The status with the least left; one that is over its limit comes first.
    tightest: Option<(bool, u32, usize)>,
    at: usize,
}

impl Summary {
    fn add(&mut self, asked: &Asked<'_>, status: &DescriptorStatus) {
        let over = status.code() == Code::OverLimit;
        let quota = asked.limit.is_some() && asked.rule.is_some_and(|rule| rule.quota);
        self.quotas += usize::from(quota);
        self.quotas_over += usize::from(quota && over);
        self.over += usize::from(over && !quota);
        if status.current_limit.is_some() {
            let this = (!over, status.limit_remaining, self.at);
            self.tightest = Some(self.tightest.map_or(this, |before| before.min(this)));
        }
        self.at += 1;
    }

    fn over(&self) -> bool {
        self.over > 0 || self.quotas > 0 && self.quotas == self.quotas_over
    }

    fn headers(&self, statuses: &[DescriptorStatus]) -> Vec<HeaderValue> {
        let Some(status) = self.tightest.and_then(|(.., at)| statuses.get(at)) else { return Vec::new() };
        let limit = status.current_limit.as_ref().map_or(0, |limit| limit.requests_per_unit);
        let until = status.duration_until_reset.unwrap_or_default();
        let header = |key: &str, value: String| HeaderValue { key: key.into(), value };
        vec![
            header("ratelimit-limit", limit.to_string()),
            header("ratelimit-remaining", status.limit_remaining.to_string()),
            header("ratelimit-reset", (until.seconds + i64::from(until.nanos > 0)).to_string()),
        ]
    }
}

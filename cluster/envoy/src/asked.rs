//! One descriptor of a request: its rule and its limit; and the answer of all descriptors together.

use std::borrow::Cow;

use tatcell_door::{Answer, Keeper, Limit};

use crate::api::{Code, CurrentLimit, Descriptor, DescriptorStatus, HeaderValue};
use crate::fields::{DESCRIPTORS, ENTRIES};
use crate::grpc::MAX_REQUEST;
use crate::read::NAME;
use crate::rules::{key_of, push, Counters, Level, Pass, Rule, RuleLimit, SENT};

/// The most bytes that a request holds while it waits for the store.
pub(crate) const WAITING: usize = DESCRIPTORS
    * (size_of::<Asked<'static>>() + size_of::<Limit>() + size_of::<Answer>() + size_of::<u32>() + NAME)
    + ENTRIES * 2 * size_of::<u32>()
    + MAX_REQUEST;

/// The most bytes of an answer, as it is made. As it is sent, its buffer has less than twice the bytes.
pub(crate) const ANSWER: usize = DESCRIPTORS * (size_of::<DescriptorStatus>() + 2 * NAME);

/// The answer of a limit of 0.
pub(crate) const NOTHING: Answer = Answer {
    passes: false,
    ever: false,
    remaining: 0,
    retry_after: 0,
    reset_after: 0,
    untracked: false,
    bound: false,
};

fn no_limit() -> DescriptorStatus {
    DescriptorStatus { code: Code::Ok.into(), ..Default::default() }
}

/// The rule and the limit that apply to a descriptor.
#[derive(Default)]
pub(crate) struct Asked<'r> {
    pub rule: Option<&'r Rule>,
    pub limit: Option<&'r RuleLimit>,
    pub pass: Option<Cow<'r, Pass>>,
    /// The domain and the entries.
    pub parts: Vec<u8>,
    /// Whether the proxy sent a limit that cannot be kept.
    pub unkept: bool,
    /// Units that are to be given back. Then nothing is charged.
    pub back: u64,
    hits: u64,
}

impl<'r> Asked<'r> {
    /// Finds what applies. A limit that the proxy sent replaces the rule's, unless it cannot be kept or its unit is
    /// unknown.
    pub fn new(
        domain: &str,
        level: &'r Level,
        descriptor: &Descriptor,
        hits: u64,
        keeper: &Keeper,
    ) -> Asked<'r> {
        let (hits, back) = if descriptor.is_negative_hits { (0, hits) } else { (hits, 0) };
        let mut unkept = false;
        if let Some(limit) = &descriptor.limit {
            match Pass::some(limit.requests_per_unit, limit.unit(), keeper) {
                Ok(pass) => {
                    let parts = all_parts(domain, descriptor);
                    let pass = Some(Cow::Owned(pass));
                    return Asked { pass, parts, hits, back, ..Asked::default() };
                }
                Err(_) => unkept = true,
            }
        }
        let mut parts = Vec::with_capacity(64);
        push(&mut parts, domain);
        let rule = level.matched(descriptor, &mut parts);
        let limit = rule.and_then(|rule| rule.limit.as_ref());
        let pass = limit.map(|limit| Cow::Borrowed(&limit.pass));
        Asked { rule, limit, pass, parts, unkept, back, hits }
    }

    /// Returns the limit that must be asked, and the cost.
    pub fn limited(&self) -> Option<(&Limit, u64)> {
        match self.pass.as_deref()? {
            Pass::Some(_, _, limit) => Some((limit, self.hits)),
            Pass::All | Pass::None(_) => None,
        }
    }

    /// Returns the key of the tables.
    pub fn key(&self) -> Vec<u8> {
        match self.pass.as_deref() {
            Some(Pass::Some(requests, unit, _)) => {
                key_of(&self.parts, *requests, *unit, self.limit.map_or(SENT, |limit| limit.epoch))
            }
            _ => self.parts.clone(),
        }
    }

    /// Returns the status of this answer; counts the hits.
    pub fn status(&self, answer: &Answer) -> DescriptorStatus {
        let (requests, unit) = match self.pass.as_deref() {
            None => return no_limit(),
            Some(Pass::All) => {
                self.count(false);
                return DescriptorStatus { limit_remaining: u32::MAX, ..no_limit() };
            }
            Some(Pass::None(unit)) => (0, *unit),
            Some(Pass::Some(requests, unit, _)) => (*requests, *unit),
        };
        // Nothing fits into a limit of 0.
        let passes = answer.passes || requests == 0 && self.hits == 0;
        self.count(!passes);
        let ok = passes || self.shadow() || self.back > 0;
        let name = self.limit.map_or(String::new(), |limit| limit.name.clone());
        // Over the limit: the time until the same cost passes. Nothing if no wait helps, or if the store alone knows.
        let until = match (answer.passes, answer.ever) {
            (true, _) => (!answer.bound).then_some(answer.reset_after),
            (false, ever) => ever.then_some(answer.retry_after),
        };
        DescriptorStatus {
            code: if ok { Code::Ok } else { Code::OverLimit }.into(),
            current_limit: Some(CurrentLimit { requests_per_unit: requests, unit: unit.into(), name }),
            limit_remaining: u32::try_from(answer.remaining).unwrap_or(u32::MAX),
            duration_until_reset: until.map(|until| prost_types::Duration {
                seconds: (until / 1_000_000_000) as i64,
                nanos: (until % 1_000_000_000) as i32,
            }),
        }
    }

    fn shadow(&self) -> bool {
        self.rule.is_some_and(|rule| rule.shadow)
    }

    fn count(&self, over: bool) {
        let Some(limit) = self.limit else { return };
        let counter = match (over, self.shadow()) {
            (false, _) => &limit.counters.within,
            (true, false) => &limit.counters.over,
            (true, true) => &limit.counters.shadow,
        };
        Counters::add(counter, self.hits);
    }
}

/// Returns the key of a limit that the proxy sent: it has no rule that could join values. Its last byte tells it from
/// that of a rule, with which it shares nothing, also behind a store.
fn all_parts(domain: &str, descriptor: &Descriptor) -> Vec<u8> {
    let mut parts = Vec::with_capacity(64);
    push(&mut parts, domain);
    for entry in &descriptor.entries {
        push(&mut parts, &entry.key);
        push(&mut parts, &entry.value);
    }
    parts.push(b'+');
    parts
}

/// Removes the limits that others replace.
pub(crate) fn replace(asked: &mut [Asked<'_>]) {
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
pub(crate) struct Summary {
    over: usize,
    quotas: usize,
    quotas_over: usize,
    /// The status with the least left; one that is over its limit comes first.
    tightest: Option<(bool, u32, usize)>,
    at: usize,
}

impl Summary {
    pub fn add(&mut self, asked: &Asked<'_>, status: &DescriptorStatus) {
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

    pub fn over(&self) -> bool {
        self.over > 0 || self.quotas > 0 && self.quotas == self.quotas_over
    }

    /// Returns the header fields of the tightest limit: those that are known.
    pub fn headers(&self, statuses: &[DescriptorStatus]) -> Vec<HeaderValue> {
        let Some(status) = self.tightest.and_then(|(.., at)| statuses.get(at)) else { return Vec::new() };
        let limit = status.current_limit.as_ref().map_or(0, |limit| limit.requests_per_unit);
        let header = |key: &str, value: String| HeaderValue { key: key.into(), value };
        let mut headers = vec![header("ratelimit-limit", limit.to_string())];
        let until = status.duration_until_reset;
        if until.is_some() || status.code() == Code::OverLimit {
            headers.push(header("ratelimit-remaining", status.limit_remaining.to_string()));
        }
        if let Some(until) = until {
            headers.push(header("ratelimit-reset", (until.seconds + i64::from(until.nanos > 0)).to_string()));
        }
        headers
    }
}

/// Quotes the value of a label.
pub(crate) fn label(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

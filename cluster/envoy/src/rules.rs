//! The rules: domains, and in each domain a tree of rules over keys and values.
//!
//! A descriptor goes down the tree, one level per entry. Among the rules for an entry's key, the one with its value
//! comes first, then the first pattern that matches, then the one without a value. The limit is that of the level at
//! which the entries end. A descriptor with more or fewer entries than the tree has levels matches nothing.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use tatcell_door::{Keeper, Limit, Rate};

use crate::api::{Descriptor, Unit};
use crate::pattern::Pattern;

/// Holds all domains.
#[derive(Debug, Default)]
pub struct Rules {
    /// The domains by name.
    pub domains: HashMap<String, Level>,
}

/// Holds the rules of one level, by their keys.
#[derive(Debug, Default)]
pub struct Level {
    keys: HashMap<String, OfKey>,
}

#[derive(Debug, Default)]
struct OfKey {
    values: HashMap<String, Rule>,
    patterns: Vec<(Pattern, Rule)>,
    any: Option<Rule>,
}

/// Describes one rule.
#[derive(Debug, Default)]
pub struct Rule {
    /// Its limit, if it has one of its own.
    pub limit: Option<RuleLimit>,
    /// Whether requests over its limit are only counted.
    pub shadow: bool,
    /// Whether its limit is a quota: the answer is over the limit only if all quotas are.
    pub quota: bool,
    /// The pattern that replaces the value, if all matching values share the limit.
    pub shared: Option<String>,
    /// The level below.
    pub below: Level,
}

/// Describes the limit of a rule.
#[derive(Debug)]
pub struct RuleLimit {
    /// What the limit lets pass.
    pub pass: Pass,
    /// Its name, for `replaces`.
    pub name: String,
    /// The names of limits that do not apply if this one does.
    pub replaces: Vec<String>,
    /// The counters of this limit.
    pub counters: Arc<Counters>,
    /// The reload that brought this limit to its rule; part of the key, so that each limit of a rule has keys of its
    /// own.
    pub epoch: u32,
    /// Where it stands: file, line and column.
    pub place: String,
}

/// Says what a limit lets pass.
#[derive(Clone, Debug)]
pub enum Pass {
    /// Everything.
    All,
    /// Nothing: a limit of 0.
    None(Unit),
    /// This many per unit.
    Some(u32, Unit, Box<Limit>),
}

/// Counts the hits of one limit.
#[derive(Debug, Default)]
pub struct Counters {
    /// Within the limit.
    pub within: AtomicU64,
    /// Over it, and refused.
    pub over: AtomicU64,
    /// Over it, but passed by the shadow mode.
    pub shadow: AtomicU64,
}

impl Counters {
    /// Adds hits to a counter.
    pub fn add(counter: &AtomicU64, hits: u64) {
        // ORDERING: Relaxed; value only.
        counter.fetch_add(hits, Ordering::Relaxed);
    }
}

impl Rules {
    /// Compares with the rules before these. A limit that stands at the same place with the same number keeps its
    /// epoch, and the others begin this one. Returns whether any descriptor may have got another limit.
    pub fn follow(&mut self, before: &Rules, epoch: u32) -> bool {
        let mut changed = self.domains.len() != before.domains.len();
        for (name, level) in &mut self.domains {
            changed |= level.follow(before.domains.get(name), epoch);
        }
        changed
    }

    /// Returns the rule that counts requests under these parts. A pattern that values share matches itself, unless no
    /// value reaches it.
    pub fn counted(&self, parts: &[u8]) -> Option<&Rule> {
        let (domain, mut parts) = next(parts)?;
        let (mut level, mut last) = (self.domains.get(domain)?, None);
        while !parts.is_empty() {
            let (key, rest) = next(parts)?;
            let (value, rest) = next(rest)?;
            let rule = level.find(key, value).filter(|rule| rule.counts_as(value) == value)?;
            (level, last, parts) = (&rule.below, Some(rule), rest);
        }
        last
    }

    /// Returns the longest time in which a limit drains, in seconds.
    pub fn longest(&self) -> u64 {
        self.domains.values().map(Level::longest).max().unwrap_or(0)
    }
}

/// The names of the units, by their numbers from 1.
const UNITS: [&str; 7] = ["second", "minute", "hour", "day", "month", "year", "week"];

impl Unit {
    /// Returns a unit by its name in a configuration.
    pub fn named(name: &str) -> Option<Unit> {
        let at = UNITS.iter().position(|known| known.eq_ignore_ascii_case(name))?;
        Unit::try_from(at as i32 + 1).ok()
    }

    /// Returns its name.
    pub fn name(self) -> &'static str {
        UNITS.get((self as usize).wrapping_sub(1)).unwrap_or(&"unknown")
    }

    /// Returns its seconds, as the reference service defines them; 0 for none.
    pub fn seconds(self) -> u64 {
        match self {
            Unit::Unknown => 0,
            Unit::Second => 1,
            Unit::Minute => 60,
            Unit::Hour => 3_600,
            Unit::Day => 86_400,
            Unit::Week => 7 * 86_400,
            Unit::Month => 30 * 86_400,
            Unit::Year => 365 * 86_400,
        }
    }

    /// Returns the rate of `requests` per unit, with all of them as the burst.
    pub fn rate(self, requests: u32) -> Rate {
        Rate { units: requests.into(), period: self.seconds(), burst: requests.into() }
    }
}

impl Pass {
    /// Makes a limit of `requests` per unit.
    ///
    /// # Errors
    /// Those of [`Keeper::limit`]; or the unit is unknown.
    pub fn some(requests: u32, unit: Unit, keeper: &Keeper) -> Result<Pass, String> {
        match (requests, unit) {
            (_, Unit::Unknown) => Err("the unit is unknown".into()),
            (0, unit) => Ok(Pass::None(unit)),
            (requests, unit) => Ok(Pass::Some(requests, unit, Box::new(keeper.limit(&unit.rate(requests))?))),
        }
    }
}

impl Pass {
    /// Returns whether both are the same number in the same unit.
    fn is_like(&self, other: &Pass) -> bool {
        match (self, other) {
            (Pass::All, Pass::All) => true,
            (Pass::None(a), Pass::None(b)) => a == b,
            (Pass::Some(a, of_a, _), Pass::Some(b, of_b, _)) => (a, of_a) == (b, of_b),
            _ => false,
        }
    }
}

impl Level {
    /// Adds a rule. Returns false if there is one for this key and value.
    pub fn add(&mut self, key: &str, value: Option<&str>, rule: Rule) -> bool {
        let of_key = self.keys.entry(key.to_owned()).or_default();
        match value.map(|value| (value, Pattern::new(value))) {
            None if of_key.any.is_some() => return false,
            None => of_key.any = Some(rule),
            Some((_, Some(pattern))) if of_key.patterns.iter().any(|(known, _)| *known == pattern) => {
                return false
            }
            Some((_, Some(pattern))) => of_key.patterns.push((pattern, rule)),
            Some((value, None)) if of_key.values.contains_key(value) => return false,
            Some((value, None)) => drop(of_key.values.insert(value.to_owned(), rule)),
        }
        true
    }

    fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.keys.values().flat_map(OfKey::rules)
    }

    /// Adds the rules of this level and below that have a limit, with their paths.
    pub fn list<'r>(&'r self, path: &str, out: &mut Vec<(String, &'r Rule)>) {
        let mut add = |key: &str, value: Option<&str>, rule: &'r Rule| {
            let own = value.map_or(key.to_owned(), |value| format!("{key}_{value}"));
            let path = if path.is_empty() { own } else { format!("{path}.{own}") };
            rule.below.list(&path, out);
            if rule.limit.is_some() {
                out.push((path, rule));
            }
        };
        for (key, of) in &self.keys {
            of.values.iter().for_each(|(value, rule)| add(key, Some(value), rule));
            of.patterns.iter().for_each(|(pattern, rule)| add(key, Some(&pattern.text()), rule));
            of.any.iter().for_each(|rule| add(key, None, rule));
        }
    }

    /// Adds the rules of this level and below that no descriptor reaches, each with the rule that matches first: an
    /// earlier pattern matches all their values. Both are written as key and value.
    pub fn unreached(&self, out: &mut Vec<(String, String)>) {
        for (key, of) in &self.keys {
            let mut earlier: Vec<&Pattern> = Vec::new();
            for (pattern, _) in &of.patterns {
                // A star of the later pattern can only be matched by one of the earlier pattern, as any text it stands
                // for can.
                let text = pattern.text();
                let first = earlier.iter().find(|earlier| earlier.matches(&text));
                out.extend(first.map(|first| (format!("{key}_{text}"), format!("{key}_{}", first.text()))));
                earlier.push(pattern);
            }
            let all = earlier.iter().find(|pattern| pattern.matches("*"));
            out.extend(
                all.filter(|_| of.any.is_some()).map(|all| (key.clone(), format!("{key}_{}", all.text()))),
            );
        }
        self.rules().for_each(|rule| rule.below.unreached(out));
    }

    fn longest(&self) -> u64 {
        let own = |rule: &Rule| match rule.limit.as_ref().map(|limit| &limit.pass) {
            Some(Pass::Some(_, unit, _)) => unit.seconds(),
            _ => 0,
        };
        self.rules().map(|rule| own(rule).max(rule.below.longest())).max().unwrap_or(0)
    }

    fn follow(&mut self, before: Option<&Level>, epoch: u32) -> bool {
        let mut changed = self.keys.len() != before.map_or(0, |level| level.keys.len());
        for (key, of_key) in &mut self.keys {
            let before = before.and_then(|level| level.keys.get(key));
            changed |= of_key.values.len() != before.map_or(0, |of| of.values.len())
                || of_key.patterns.len() != before.map_or(0, |of| of.patterns.len())
                || of_key.any.is_some() != before.is_some_and(|of| of.any.is_some());
            for (value, rule) in &mut of_key.values {
                changed |= rule.follow(before.and_then(|of| of.values.get(value)), epoch);
            }
            // The first pattern that matches counts, so another order is a change.
            for (at, (pattern, rule)) in of_key.patterns.iter_mut().enumerate() {
                let same = before.and_then(|of| of.patterns.get(at)).filter(|(known, _)| known == pattern);
                changed |= rule.follow(same.map(|(_, rule)| rule), epoch);
            }
            if let Some(rule) = &mut of_key.any {
                changed |= rule.follow(before.and_then(|of| of.any.as_ref()), epoch);
            }
        }
        changed
    }

    fn find(&self, key: &str, value: &str) -> Option<&Rule> {
        let of_key = self.keys.get(key)?;
        let pattern = || of_key.patterns.iter().find(|(pattern, _)| pattern.matches(value));
        let exact = of_key.values.get(value);
        exact.or_else(|| pattern().map(|(_, rule)| rule)).or(of_key.any.as_ref())
    }

    /// Returns the rule at which a descriptor ends; fills `key` with the key that counts its requests.
    pub fn matched(&self, descriptor: &Descriptor, key: &mut Vec<u8>) -> Option<&Rule> {
        let (mut level, mut last) = (self, None);
        for entry in &descriptor.entries {
            let rule = level.find(&entry.key, &entry.value)?;
            push(key, &entry.key);
            push(key, rule.counts_as(&entry.value));
            (level, last) = (&rule.below, Some(rule));
        }
        last
    }
}

impl OfKey {
    fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.values.values().chain(self.patterns.iter().map(|(_, rule)| rule)).chain(&self.any)
    }
}

impl Rule {
    /// Returns the value under which requests of this one count.
    fn counts_as<'v>(&'v self, value: &'v str) -> &'v str {
        self.shared.as_deref().unwrap_or(value)
    }

    fn follow(&mut self, before: Option<&Rule>, epoch: u32) -> bool {
        let limit_before = before.and_then(|rule| rule.limit.as_ref());
        let changed = match (&mut self.limit, limit_before) {
            (Some(limit), Some(before)) if limit.pass.is_like(&before.pass) => {
                limit.epoch = before.epoch;
                false
            }
            (Some(limit), _) => {
                limit.epoch = epoch;
                true
            }
            (None, before) => before.is_some(),
        };
        let shared = before.is_none_or(|before| before.shared != self.shared);
        self.below.follow(before.map(|rule| &rule.below), epoch) || changed || shared
    }
}

/// Adds a part to the key that counts requests. No two lists of parts give the same key.
pub fn push(key: &mut Vec<u8>, part: &str) {
    key.extend_from_slice(&(part.len() as u32).to_le_bytes());
    key.extend_from_slice(part.as_bytes());
}

/// Splits off the first part.
fn next(parts: &[u8]) -> Option<(&str, &[u8])> {
    let (length, rest) = parts.split_first_chunk()?;
    let (part, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    Some((std::str::from_utf8(part).ok()?, rest))
}

/// The epoch of limits that proxies send along.
pub const SENT: u32 = u32::MAX;

/// Returns the key under which tables keep what these parts owe to one limit: two limits of the same parts share
/// nothing. Behind a store the limit's name tells them apart, and the parts those that a proxy sent: there the parts
/// are the key.
pub fn key_of(parts: &[u8], requests: u32, unit: Unit, epoch: u32) -> Vec<u8> {
    let numbers = [unit as u32, requests, epoch];
    [parts, &numbers.map(u32::to_le_bytes).concat()].concat()
}

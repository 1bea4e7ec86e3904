//! The rules: domains, and in each domain a tree of rules over keys and values.
//!
//! A descriptor goes down the tree, one level per entry. Among the rules for an entry's key, the one with its value
//! comes first, then the first pattern that matches, then the one without a value. The limit is that of the level at
//! which the entries end. A descriptor with more or fewer entries than the tree has levels matches nothing.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use tatcell_door::{Keeper, Limit, Rate};

use crate::api::{Descriptor, Entry, Unit};
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

impl Unit {
    /// Returns a unit by its name in a configuration.
    pub fn named(name: &str) -> Option<Unit> {
        let names = ["second", "minute", "hour", "day", "month", "year", "week"];
        let at = names.iter().position(|known| known.eq_ignore_ascii_case(name))?;
        Unit::try_from(at as i32 + 1).ok()
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
    pub fn some(requests: u32, unit: Unit, keeper: &Keeper) -> Result<Pass, &'static str> {
        match (requests, unit) {
            (_, Unit::Unknown) => Err("the unit is unknown"),
            (0, unit) => Ok(Pass::None(unit)),
            (requests, unit) => Ok(Pass::Some(requests, unit, Box::new(keeper.limit(&unit.rate(requests))?))),
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

    fn find(&self, entry: &Entry) -> Option<&Rule> {
        let of_key = self.keys.get(&entry.key)?;
        let pattern = || of_key.patterns.iter().find(|(pattern, _)| pattern.matches(&entry.value));
        let exact = of_key.values.get(&entry.value);
        exact.or_else(|| pattern().map(|(_, rule)| rule)).or(of_key.any.as_ref())
    }

    /// Returns the rule at which a descriptor ends; fills `key` with the key that counts its requests.
    pub fn matched(&self, descriptor: &Descriptor, key: &mut Vec<u8>) -> Option<&Rule> {
        let (mut level, mut last) = (self, None);
        for entry in &descriptor.entries {
            let rule = level.find(entry)?;
            push(key, &entry.key);
            push(key, rule.shared.as_deref().unwrap_or(&entry.value));
            (level, last) = (&rule.below, Some(rule));
        }
        last
    }
}

/// Adds a part to the key that counts requests. No two lists of parts give the same key.
pub fn push(key: &mut Vec<u8>, part: &str) {
    key.extend_from_slice(&(part.len() as u32).to_le_bytes());
    key.extend_from_slice(part.as_bytes());
}

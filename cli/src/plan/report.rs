//! The answer. The text and the JSON are both made from it, so they have the same numbers.

use std::collections::BTreeSet;

use serde::Serialize;
use tatcell::FullPolicy;

use super::replay::{bytes_for, Load};
use super::{Found, Plan};
use crate::input::time;
use crate::limit::Rung;

/// All answers of a plan.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The layout of this report; a number is not used again for another meaning.
    pub version: u32,
    /// What was read.
    pub input: InputReport,
    /// For each rate, what bursts its keys needed.
    pub rates: Vec<RateReport>,
    /// The keys that need the largest bursts at the middle one of the rates.
    pub neediest: Vec<KeyReport>,
    /// The good keys.
    pub good: Vec<KeyReport>,
    /// For each limit and policy, what they would have done.
    pub limits: Vec<LimitReport>,
}

/// What was read.
#[derive(Clone, Debug, Serialize)]
pub struct InputReport {
    /// The files.
    pub files: Vec<String>,
    /// Their formats.
    pub formats: Vec<String>,
    /// What a key is.
    pub key: Vec<String>,
    /// The field that is the cost, or 1.
    pub cost: String,
    /// Records that count.
    pub records: u64,
    /// How many keys there are; an estimate if `one_in` is above 1.
    pub keys: u64,
    /// Keys whose numbers were kept.
    pub keys_kept: u64,
    /// One in so many keys was kept, and stands for as many.
    pub one_in: u64,
    /// The first and last time.
    pub first: String,
    /// The last time.
    pub last: String,
    /// The time between these, in seconds.
    pub seconds: f64,
    /// The unit of the times in the input, in nanoseconds.
    pub grain_ns: u64,
    /// Whether times are those at which requests ended, as far as the format says.
    pub stamps_end: bool,
    /// Records that came later than the window for sorting.
    pub late: u64,
    /// Records that left that window early, because too many were in it.
    pub early: u64,
    /// Records whose path has not the form of the key.
    pub other_paths: u64,
    /// Records that could not be read.
    pub bad: u64,
    /// The first of those, with their places.
    pub first_bad: Vec<String>,
    /// The seed, in hexadecimal digits: the same seed gives the same answer.
    pub seed: String,
    /// About how many bytes of memory the keys took.
    pub memory_bytes: u64,
}

/// What bursts a rate needs.
#[derive(Clone, Debug, Serialize)]
pub struct RateReport {
    /// The rate.
    pub rate: String,
    /// The burst with which half of the keys are never refused.
    pub p50: u64,
    /// The same for 90 % of them.
    pub p90: u64,
    /// The same for 99 %.
    pub p99: u64,
    /// The same for 99.9 %.
    pub p999: u64,
    /// With this burst nobody is refused.
    pub max: u64,
    /// Whether `max` is a least number.
    pub max_is_least: bool,
    /// By fewer units than this a needed burst may be too small or too large, because of the unit of the times.
    pub uncertain: u64,
    /// The burst that leaves the stated share of the keys alone, and every good key.
    pub smallest: u64,
    /// The keys that this burst refuses now and then.
    pub smallest_hits: u64,
    /// The good key that needs most, if there is one.
    pub good_needs: Option<u64>,
}

/// One key.
#[derive(Clone, Debug, Serialize)]
pub struct KeyReport {
    /// The key.
    pub key: String,
    /// Its records.
    pub records: u64,
    /// The burst that it needs at each rate.
    pub needed: Vec<u64>,
}

/// What a limit would have done.
#[derive(Clone, Debug, Serialize)]
pub struct LimitReport {
    /// The limit.
    pub limit: String,
    /// What a full set does.
    pub policy: String,
    /// Requests that would have been refused.
    pub refused: u64,
    /// The same as a share of all.
    pub refused_share: f64,
    /// Keys of which at least one request would have been refused.
    pub keys_hit: u64,
    /// The same as a share of all.
    pub keys_hit_share: f64,
    /// Good keys that would have been hit.
    pub good_hit: Vec<String>,
    /// The window with the most refused, if any was refused.
    pub worst: Option<WindowReport>,
    /// Who would have been refused most.
    pub top_refused: Vec<RefusedReport>,
    /// The table that was asked; of several limits that of the first.
    pub table: TableReport,
    /// Of several limits that a request must all conform to, what each did; else empty.
    pub links: Vec<LinkReport>,
    /// By how much its rate is slower than asked for, in billionths.
    pub rate_error_ppb: u64,
}

/// One of several limits that a request must all conform to.
#[derive(Clone, Debug, Serialize)]
pub struct LinkReport {
    /// The limit.
    pub limit: String,
    /// Requests that it refused, as the first that did.
    pub refused: u64,
    /// Its table.
    pub table: TableReport,
}

/// A window of time.
#[derive(Clone, Debug, Serialize)]
pub struct WindowReport {
    /// Its start.
    pub start: String,
    /// Its length, in seconds.
    pub seconds: f64,
    /// Requests refused in it.
    pub refused: u64,
    /// All requests in it.
    pub records: u64,
}

/// A key that would have been refused.
#[derive(Clone, Debug, Serialize)]
pub struct RefusedReport {
    /// The key.
    pub key: String,
    /// How many of its requests.
    pub refused: u64,
    /// All its requests.
    pub records: u64,
}

/// A table.
#[derive(Clone, Debug, Serialize)]
pub struct TableReport {
    /// Its slots.
    pub slots: u64,
    /// Its bytes.
    pub bytes: u64,
    /// The most keys that were in debt at a time.
    pub peak_live: u64,
    /// The same as a share of the slots.
    pub peak_load: f64,
    /// The chance that a new key then finds its set full.
    pub full_set_chance: f64,
    /// Requests that met a full set: passed or refused without a slot, under another key's debt, or over a forgiven
    /// one.
    pub met_full_set: u64,
    /// The chance for which `recommended_bytes` is.
    pub target_chance: f64,
    /// The bytes of the smallest table that meets it at the peak.
    pub recommended_bytes: u64,
}

/// Returns the name of a policy, as the arguments have it.
pub fn policy_name(policy: FullPolicy) -> &'static str {
    match policy {
        FullPolicy::Admit => "admit",
        FullPolicy::Inherit => "inherit",
        FullPolicy::Deny => "deny",
        FullPolicy::Sampled => "sampled",
    }
}

fn share(part: u64, all: u64) -> f64 {
    if all == 0 {
        0.0
    } else {
        part as f64 / all as f64
    }
}

/// The least value that at least so many millionths of the weights do not exceed. `sorted` has each value and weight.
fn quantile(sorted: &[(u64, u64)], all: u64, ppm: u64) -> u64 {
    let rank = (u128::from(all) * u128::from(ppm)).div_ceil(1_000_000).max(1);
    let mut sum = 0;
    let reached = sorted.iter().find(|(_, weight)| {
        sum += u128::from(*weight);
        sum >= rank
    });
    reached.or(sorted.last()).map_or(1, |(value, _)| *value)
}

impl Report {
    pub(super) fn new(plan: &Plan, found: &Found) -> Report {
        let keys: u64 = (0..found.keys.len()).map(|key| found.keys.weight(key)).sum();
        Report {
            version: 1,
            input: InputReport::new(plan, found, keys),
            rates: (0..plan.rates.len()).map(|rate| RateReport::new(plan, found, keys, rate)).collect(),
            neediest: neediest(plan, found),
            good: good(found),
            limits: (0..found.replays.len()).map(|at| LimitReport::new(plan, found, keys, at)).collect(),
        }
    }
}

impl InputReport {
    fn new(plan: &Plan, found: &Found, keys: u64) -> InputReport {
        let counts = &found.counts;
        let (first, last) = counts.span.unwrap_or_default();
        InputReport {
            files: plan.files.clone(),
            formats: counts.formats.clone(),
            key: plan.key.fields().to_vec(),
            cost: plan.how.wants.cost.clone().unwrap_or("1".into()),
            records: counts.records,
            keys,
            keys_kept: found.keys.len() as u64,
            one_in: found.keys.one_in(),
            first: time::show(first),
            last: time::show(last),
            seconds: (last - first) as f64 / 1e9,
            grain_ns: counts.grain,
            stamps_end: counts.stamps_end,
            late: found.late.0,
            early: found.late.1,
            other_paths: counts.other_paths,
            bad: counts.bad,
            first_bad: counts.first_bad.clone(),
            seed: plan.seed.iter().map(|byte| format!("{byte:02x}")).collect(),
            memory_bytes: (found.keys.memory() + found.curves.memory()) as u64,
        }
    }
}

impl RateReport {
    fn new(plan: &Plan, found: &Found, keys: u64, rate: usize) -> RateReport {
        let mut sorted: Vec<_> = (0..found.keys.len())
            .map(|key| (found.curves.needed(key, rate), found.keys.weight(key)))
            .collect();
        sorted.sort_unstable();
        let at = |ppm: u64| quantile(&sorted, keys, ppm);
        let seen = found.good.iter().filter_map(|(_, key)| *key);
        let good_needs = seen.map(|key| found.curves.needed(key as usize, rate)).max();
        let smallest = at(plan.spare_ppm).max(good_needs.unwrap_or(1));
        RateReport {
            rate: plan.rates[rate].text.clone(),
            p50: at(500_000),
            p90: at(900_000),
            p99: at(990_000),
            p999: at(999_000),
            max: sorted.last().map_or(1, |(needed, _)| *needed),
            max_is_least: (0..found.keys.len()).any(|key| found.curves.is_least(key, rate)),
            uncertain: if found.counts.grain <= 1 {
                0
            } else {
                plan.rates[rate].units_in(found.counts.grain)
            },
            smallest,
            smallest_hits: sorted
                .iter()
                .filter(|(needed, _)| *needed > smallest)
                .map(|(_, weight)| weight)
                .sum(),
            good_needs,
        }
    }
}

impl KeyReport {
    fn new(plan_key: String, found: &Found, key: Option<usize>) -> KeyReport {
        let needed = |rate| key.map_or(0, |key| found.curves.needed(key, rate));
        KeyReport {
            key: plan_key,
            records: key.map_or(0, |key| found.curves.records(key)),
            needed: (0..found.curves.rates.len()).map(needed).collect(),
        }
    }
}

/// The largest of so many values, the first first. `at_least` of 1 leaves zeros out.
fn largest(count: usize, all: usize, value: impl Fn(usize) -> u64) -> Vec<usize> {
    let mut best = BTreeSet::new();
    for key in 0..all {
        let value = value(key);
        if value > 0 {
            best.insert((std::cmp::Reverse(value), key));
            if best.len() > count {
                best.pop_last();
            }
        }
    }
    best.into_iter().map(|(_, key)| key).collect()
}

fn neediest(plan: &Plan, found: &Found) -> Vec<KeyReport> {
    if plan.rates.is_empty() {
        return Vec::new();
    }
    let keys = largest(plan.top, found.keys.len(), |key| found.curves.needed(key, plan.rates.len() / 2));
    keys.into_iter()
        .map(|key| KeyReport::new(plan.key.show(found.keys.bytes(key)), found, Some(key)))
        .collect()
}

fn good(found: &Found) -> Vec<KeyReport> {
    found
        .good
        .iter()
        .map(|(text, key)| KeyReport::new(text.clone(), found, key.map(|key| key as usize)))
        .collect()
}

impl LimitReport {
    fn new(plan: &Plan, found: &Found, keys: u64, at: usize) -> LimitReport {
        let replay = &found.replays[at];
        let (refused, asked) = replay.totals();
        let hit = (0..found.keys.len()).filter(|key| replay.refused(*key) > 0);
        let keys_hit: u64 = hit.map(|key| found.keys.weight(key)).sum();
        let counters = &replay.counters;
        let met = counters.untracked + counters.inherited + counters.forgiven;
        let loads: Vec<_> = replay.loads().collect();
        let table = |load: &Load| TableReport::new(load, plan.target_ppb, met);
        let top = largest(plan.top, found.keys.len(), |key| replay.refused(key));
        let link = |(load, rung): (&Load, &Rung)| LinkReport {
            limit: match rung.lengths {
                Some((v4, v6)) => format!("/{v4},{v6} {}", rung.asked.text),
                None => rung.asked.text.clone(),
            },
            refused: load.refused,
            table: table(load),
        };
        LimitReport {
            limit: replay.asked.text.clone(),
            policy: policy_name(replay.policy).into(),
            refused,
            refused_share: share(refused, asked),
            keys_hit,
            keys_hit_share: share(keys_hit, keys),
            good_hit: found
                .good
                .iter()
                .filter(|(_, key)| key.is_some_and(|key| replay.refused(key as usize) > 0))
                .map(|(text, _)| text.clone())
                .collect(),
            worst: (replay.worst.refused > 0).then(|| WindowReport {
                start: time::show(replay.worst.start),
                seconds: plan.window.as_secs_f64(),
                refused: replay.worst.refused,
                records: replay.worst.requests,
            }),
            top_refused: top
                .into_iter()
                .map(|key| RefusedReport {
                    key: plan.key.show(found.keys.bytes(key)),
                    refused: replay.refused(key),
                    records: found.curves.records(key),
                })
                .collect(),
            table: table(&loads[0]),
            links: match &loads[..] {
                [_] => Vec::new(),
                several => several.iter().zip(&replay.asked.rungs).map(link).collect(),
            },
            rate_error_ppb: loads.iter().map(|load| load.rate_error_ppb).max().unwrap_or(0),
        }
    }
}

impl TableReport {
    fn new(load: &Load, target_ppb: u64, met_full_set: u64) -> TableReport {
        TableReport {
            slots: load.slots as u64,
            bytes: load.bytes as u64,
            peak_live: load.peak_live,
            peak_load: load.ppm as f64 / 1e6,
            full_set_chance: load.full_ppb as f64 / 1e9,
            met_full_set,
            target_chance: target_ppb as f64 / 1e9,
            recommended_bytes: bytes_for(load.peak_live, target_ppb) as u64,
        }
    }
}

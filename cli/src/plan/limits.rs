//! What a limit would have done.

use std::collections::BTreeSet;

use serde::Serialize;
use tatcell::FullPolicy;

use super::replay::{bytes_for, Load};
use super::tiers::Tier;
use super::timeline::Timeline;
use super::{Found, Plan};
use crate::input::time;
use crate::limit::Rung;

/// What a limit would have done.
#[derive(Clone, Debug, Serialize)]
pub struct LimitReport {
    /// The limit.
    pub limit: String,
    /// Its rate in units a second, if it is one rate and one burst.
    pub per_second: Option<f64>,
    /// Its burst.
    pub burst: Option<u64>,
    /// What a full set does.
    pub policy: String,
    /// Requests that would have been refused.
    pub refused: u64,
    /// The same as a share of all.
    pub refused_share: f64,
    /// Keys of which at least one request would have been refused: of all keys, also if only a sample was kept.
    pub keys_hit: u64,
    /// For how many keys each of these stands. Above 1 they are more than `--max-keys`, and their number is an
    /// estimate.
    pub keys_hit_one_in: u64,
    /// The keys that were hit as a share of all; an estimate if that of all keys is one.
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
    /// What each tier of a ladder refused; empty for any other limit.
    pub tiers: Vec<TierReport>,
    /// By how much its rate is slower than asked for, in billionths.
    pub rate_error_ppb: u64,
    /// What came and what was refused over time.
    pub timeline: TimelineReport,
    /// When those who are refused most were refused.
    pub hours: HoursReport,
}

/// What came and what was refused over time.
#[derive(Clone, Debug, Serialize)]
pub struct TimelineReport {
    /// The length of a part of time, in seconds.
    pub part_seconds: f64,
    /// When each part begins.
    pub starts: Vec<String>,
    /// Requests in each part.
    pub came: Vec<u64>,
    /// How many of them were refused.
    pub refused: Vec<u64>,
}

/// When keys were refused.
#[derive(Clone, Debug, Serialize)]
pub struct HoursReport {
    /// The length of a part of time, in seconds.
    pub part_seconds: f64,
    /// When each part begins.
    pub starts: Vec<String>,
    /// The keys that were refused most.
    pub keys: Vec<KeyHours>,
    /// Whether more keys were refused than their times were kept of.
    pub is_cut: bool,
}

/// When a key was refused.
#[derive(Clone, Debug, Serialize)]
pub struct KeyHours {
    /// The key.
    pub key: String,
    /// Its refused requests in each part of time.
    pub refused: Vec<u64>,
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

/// A tier of a ladder.
#[derive(Clone, Debug, Serialize)]
pub struct TierReport {
    /// Its family, and the length of its prefix.
    pub prefix: String,
    /// How many times the limit of one address its limit is.
    pub multiplier: u32,
    /// Requests that it refused, as the first that did.
    pub refused: u64,
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
    /// For how many keys each of these stands. Above 1 their number is an estimate, and so are the load, the chance and
    /// the recommended bytes.
    pub one_in: u64,
    /// Those keys as a share of the slots.
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

/// The `count` largest of `all` values; equal ones in their order. Zeros are left out.
pub(super) fn largest(count: usize, all: usize, value: impl Fn(usize) -> u64) -> Vec<usize> {
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

fn share(part: u64, all: u64) -> f64 {
    if all == 0 {
        0.0
    } else {
        part as f64 / all as f64
    }
}

impl LimitReport {
    pub(super) fn new(plan: &Plan, found: &Found, keys: u64, at: usize) -> LimitReport {
        let (replay, timeline) = (&found.replays[at], &found.timelines[at]);
        let (refused, asked) = replay.totals();
        let keys_hit = replay.hit.count();
        let loads: Vec<_> = replay.loads(found.keys.one_in()).collect();
        let table = |load: &Load| TableReport::new(load, plan.target_ppb);
        let top = largest(plan.top, found.keys.len(), |key| replay.refused(key));
        let link = |(load, rung): (&Load, &Rung)| LinkReport {
            limit: match rung.lengths {
                Some((v4, v6)) => format!("/{v4},{v6} {}", rung.asked.text),
                None => rung.asked.text.clone(),
            },
            refused: load.refused,
            table: table(load),
        };
        let alone = match &replay.asked.rungs[..] {
            [Rung { asked, lengths: None }] if asked.is_gcra() => Some(asked.spec.numbers()),
            _ => None,
        };
        LimitReport {
            limit: replay.asked.text.clone(),
            per_second: alone.map(|(units, period, _)| units as f64 / period as f64 * 1e9),
            burst: alone.map(|(.., burst)| burst),
            policy: policy_name(replay.policy).into(),
            refused,
            refused_share: share(refused, asked),
            keys_hit,
            keys_hit_one_in: replay.hit.one_in(),
            // An estimate of all keys may be too low.
            keys_hit_share: share(keys_hit, keys).min(1.0),
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
            timeline: TimelineReport::new(timeline),
            hours: HoursReport::new(plan, found, timeline, &top),
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
            tiers: replay.tiers().map(TierReport::from).collect(),
            rate_error_ppb: loads.iter().map(|load| load.rate_error_ppb).max().unwrap_or(0),
        }
    }
}

impl From<Tier> for TierReport {
    fn from(tier: Tier) -> TierReport {
        let family = if tier.is_v4 { "IPv4" } else { "IPv6" };
        TierReport {
            prefix: format!("{family} /{}", tier.bits),
            multiplier: tier.multiplier,
            refused: tier.refused,
        }
    }
}

impl TableReport {
    fn new(load: &Load, target_ppb: u64) -> TableReport {
        TableReport {
            slots: load.slots as u64,
            bytes: load.bytes as u64,
            peak_live: load.peak_live,
            one_in: load.one_in,
            peak_load: load.ppm as f64 / 1e6,
            full_set_chance: load.full_ppb as f64 / 1e9,
            met_full_set: load.met_full_set,
            target_chance: target_ppb as f64 / 1e9,
            recommended_bytes: bytes_for(load.peak_live, target_ppb) as u64,
        }
    }
}

/// The starts of `count` parts of time.
fn starts(start: u64, width: u64, count: usize) -> Vec<String> {
    (0..count as u64).map(|part| time::show(start.saturating_add(part * width))).collect()
}

impl TimelineReport {
    fn new(timeline: &Timeline) -> TimelineReport {
        let (start, width, parts) = timeline.parts();
        let (came, refused): (Vec<_>, Vec<_>) = parts.unzip();
        TimelineReport {
            part_seconds: width as f64 / 1e9,
            starts: starts(start, width, came.len()),
            came,
            refused,
        }
    }
}

impl HoursReport {
    fn new(plan: &Plan, found: &Found, timeline: &Timeline, top: &[usize]) -> HoursReport {
        let (start, width, count) = timeline.columns();
        let of_key = |key: &usize| {
            let refused = timeline.refused(*key as u32).iter().map(|count| u64::from(*count));
            let refused: Vec<_> = refused.chain(std::iter::repeat(0)).take(count).collect();
            KeyHours { key: plan.key.show(found.keys.bytes(*key)), refused }
        };
        HoursReport {
            part_seconds: width as f64 / 1e9,
            starts: starts(start, width, count),
            keys: top.iter().filter(|key| !timeline.refused(**key as u32).is_empty()).map(of_key).collect(),
            is_cut: timeline.is_cut,
        }
    }
}

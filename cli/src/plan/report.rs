//! The answer. The text and the JSON are both made from it, so they have the same numbers.

use data_encoding::HEXLOWER;
use serde::Serialize;

use super::limits::{largest, LimitReport};
use super::{Found, Plan};
use crate::input::time;
use crate::units::seconds;

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
    /// Their records.
    pub records_kept: u64,
    /// One key in this many was kept, and stands for all of them. If it is above 1, `rates`, `neediest`, and
    /// `top_refused` and `hours` of limits are of the kept keys alone; what is counted by record is not.
    pub one_in: u64,
    /// The first and last time.
    pub first: String,
    /// The last time.
    pub last: String,
    /// The time between these, in seconds.
    pub seconds: f64,
    /// The unit of the times in the input, in nanoseconds: that of the input whose times are the coarsest.
    pub grain_ns: u64,
    /// Whether times are those at which requests ended, as far as the format says.
    pub stamps_end: bool,
    /// The fields that were subtracted from times, with their unit, because these are those of ends.
    pub subtracted: Vec<String>,
    /// Records that came later than the window for sorting.
    pub late: u64,
    /// The `--sort` that would have been long enough for them, if there are any.
    pub sort_needed: Option<String>,
    /// Records that left that window early, because too many were in it.
    pub early: u64,
    /// Records whose path has not the form of the key.
    pub other_paths: u64,
    /// What was of another kind than a request, such as packets that are not IP.
    pub others: u64,
    /// The first of these, with its place.
    pub first_other: Option<String>,
    /// Where inputs could not be read any further: what came before counts.
    pub cut: Vec<String>,
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
    /// The same in units a second.
    pub per_second: f64,
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
    /// Whether `max` is a least number: not all keys were kept, or costs are too large.
    pub max_is_least: bool,
    /// The largest burst that a table holds, if `max` is larger.
    pub largest_burst: Option<u64>,
    /// By how many billionths a table with this burst is slower than the rate: the bursts allow for that.
    pub rate_error_ppb: u64,
    /// By fewer units than this a needed burst may be too small or too large, because of the unit of the times.
    pub uncertain: u64,
    /// The burst that leaves the stated share of the keys alone, and every good key.
    pub smallest: u64,
    /// The keys that this burst refuses now and then; an estimate if not all keys were kept.
    pub smallest_hits: u64,
    /// The good key that needs most, if there is one.
    pub good_needs: Option<u64>,
    /// How many keys need a burst of up to 1, 2, 4, 8 and so on, and more than the one before.
    pub peaks: Vec<PeakReport>,
}

/// Keys that need about the same burst.
#[derive(Clone, Debug, Serialize)]
pub struct PeakReport {
    /// The largest burst that they need.
    pub burst: u64,
    /// How many they are.
    pub keys: u64,
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

/// The least value that at least `ppm` millionths of the weights do not exceed. `sorted` has each value and weight.
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
    pub(crate) fn new(plan: &Plan, found: &Found) -> Report {
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
            records_kept: (0..found.keys.len()).map(|key| found.curves.records(key)).sum(),
            one_in: found.keys.one_in(),
            first: time::show(first),
            last: time::show(last),
            seconds: (last - first) as f64 / 1e9,
            grain_ns: counts.grain.max(1),
            stamps_end: counts.stamps_end,
            subtracted: counts.subtracted.clone(),
            late: found.late.0,
            sort_needed: (found.late.0 > 0 && found.late.1 == 0).then(|| seconds(found.sort_needed)),
            early: found.late.1,
            others: counts.others,
            first_other: counts.first_other.clone(),
            cut: counts.cut.clone(),
            other_paths: counts.other_paths,
            bad: counts.bad,
            first_bad: counts.first_bad.clone(),
            seed: HEXLOWER.encode(&plan.seed),
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
        let max = sorted.last().map_or(1, |(needed, _)| *needed);
        let of = &found.curves.rates[rate];
        RateReport {
            rate: of.text.clone(),
            per_second: of.units as f64 / of.period as f64 * 1e9,
            p50: at(500_000),
            p90: at(900_000),
            p99: at(990_000),
            p999: at(999_000),
            max,
            max_is_least: found.keys.one_in() > 1
                || (0..found.keys.len()).any(|key| found.curves.is_least(key, rate)),
            largest_burst: of.largest_burst(max),
            rate_error_ppb: of.error_ppb(max),
            uncertain: if found.counts.grain <= 1 { 0 } else { of.units_in(found.counts.grain) },
            smallest,
            smallest_hits: sorted
                .iter()
                .filter(|(needed, _)| *needed > smallest)
                .map(|(_, weight)| weight)
                .sum(),
            good_needs,
            peaks: peaks(&sorted),
        }
    }
}

/// Counts values by powers of two. `sorted` has each value and weight.
fn peaks(sorted: &[(u64, u64)]) -> Vec<PeakReport> {
    let mut peaks: Vec<PeakReport> = Vec::new();
    for (needed, weight) in sorted {
        while peaks.last().is_none_or(|last| last.burst < *needed) {
            let burst = peaks.last().map_or(1, |last| last.burst.saturating_mul(2));
            peaks.push(PeakReport { burst, keys: 0 });
        }
        if let Some(last) = peaks.last_mut() {
            last.keys += weight;
        }
    }
    peaks
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

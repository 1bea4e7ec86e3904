//! The limits of the servers: Envoy's rules, and the settings of `tatcell-throttled`. The servers' own readers read
//! both.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use tatcell::FullPolicy;
use tatcell_cluster::SharedLimit;
use tatcell_door::{Keeper, Rate, Settings, Tables};
use tatcell_ratelimit::api::Unit;
use tatcell_ratelimit::read::{self, Make};
use tatcell_ratelimit::rules::{Counters, Pass, Rule};
use tatcell_throttled::server::ServerSettings;

use super::blocks::MOST;
use super::meaning::{Checked, Kind, Meaning};
use crate::failure::Failure;
use crate::units::HZ;

/// What the server would make: its tables say whether they keep a limit.
struct Parts {
    keeper: Keeper,
    notes: Vec<String>,
}

impl Make for Parts {
    fn pass(&mut self, requests: u32, unit: Unit) -> Result<Pass, String> {
        Pass::some(requests, unit, &self.keeper)
    }

    fn counters(&mut self, _domain: &str, _path: &str) -> Arc<Counters> {
        Arc::default()
    }

    fn note(&mut self, text: String) {
        self.notes.push(text);
    }
}

/// Divides "file:1:2: what" into the place and the rest.
fn placed(note: &str) -> (&str, &str) {
    note.split_once(": ").unwrap_or(("", note))
}

fn of_rule(domain: &str, path: &str, rule: &Rule) -> Option<Meaning> {
    let limit = rule.limit.as_ref()?;
    let key = format!("the values of {path}");
    let mut meaning = match &limit.pass {
        Pass::All => return None,
        Pass::None(unit) => Meaning::new(path, &limit.place, &key, (0, unit.seconds() * HZ), (0, 0)),
        Pass::Some(requests, unit, _) => {
            let Rate { units, period, burst } = unit.rate(*requests);
            Meaning::new(path, &limit.place, &key, (units, period * HZ), (burst, burst))
        }
    };
    meaning.name = format!("{domain} {path}");
    if rule.shadow {
        meaning.more.push("shadow_mode: it counts what it would refuse, and refuses nothing".into());
    }
    if rule.quota {
        meaning.more.push("quota_mode: a request is over the limit only if all quotas are".into());
    }
    if rule.shared.is_some() {
        meaning.more.push("share_threshold: all values of the pattern share one debt".into());
    }
    if !limit.replaces.is_empty() {
        meaning.more.push(format!("it takes the place of {}", limit.replaces.join(", ")));
    }
    Some(meaning)
}

/// Checks Envoy's rules: a file, or a folder of them.
pub fn envoy(config: &str, out: &mut Checked) -> Result<(), Failure> {
    let mut notes = Vec::new();
    let sources =
        read::sources(&[config.to_owned()], &[], &mut |note| notes.push(note)).map_err(Failure::Input)?;
    let keeper = Keeper::Local(Tables::new(1, FullPolicy::Admit).map_err(Failure::Input)?, None);
    let mut parts = Parts { keeper, notes };
    let rules = read::rules(&sources, &mut parts).map_err(Failure::Input)?;
    for note in &parts.notes {
        let (place, what) = placed(note);
        out.say(Kind::Note, place, what);
    }
    let mut domains: Vec<_> = rules.domains.iter().collect();
    domains.sort_by_key(|(name, _)| *name);
    for (domain, level) in domains {
        let mut listed = Vec::new();
        level.list("", &mut listed);
        listed.sort_by(|(a, _), (b, _)| a.cmp(b));
        let mut unreached = Vec::new();
        level.unreached(&mut unreached);
        unreached.sort();
        for (rule, first) in unreached {
            let what =
                format!("{domain} {rule}: {first} stands before it and matches all its values: put it first");
            out.say(Kind::Shadowed, config, what);
        }
        let meanings: Vec<_> = listed
            .iter()
            .filter_map(|(path, rule)| Some((path, *rule, of_rule(domain, path, rule)?)))
            .collect();
        // The rules that each one stands below. Their paths do not say it: a value may have a dot.
        let mut ancestors = HashMap::<*const Rule, Vec<usize>>::new();
        for (number, (_, by, _)) in meanings.iter().enumerate() {
            let mut below = Vec::new();
            by.below.list("", &mut below);
            below.iter().for_each(|(_, rule)| ancestors.entry(*rule).or_default().push(number));
        }
        for (path, rule, meaning) in &meanings {
            let decides = |rule: &Rule| !rule.shadow && !rule.quota;
            let above = ancestors.get(&std::ptr::from_ref(*rule)).into_iter().flatten();
            let above = above.map(|number| &meanings[*number]).find(|(_, by, strict)| {
                decides(by) && decides(rule) && strict.is_at_least_as_strict_as(meaning)
            });
            if let Some((above, _, strict)) = above {
                let what = format!(
                    "{path} never decides for requests that Envoy also sends as {above} ({}): that one \
                    has no higher rate, no larger burst, and counts at least as much",
                    strict.place
                );
                out.say(Kind::Note, &*meaning.place, what);
            }
        }
        out.limits.extend(meanings.into_iter().map(|(_, _, meaning)| meaning));
    }
    Ok(())
}

/// For each limit another one that is at least as strict, if there is one. The bursts pass at once.
fn stricter(limits: &[Meaning]) -> Vec<Option<&Meaning>> {
    let order = |a: &Meaning, b: &Meaning| {
        let rate = |a: &Meaning, b: &Meaning| u128::from(a.units) * u128::from(b.period);
        rate(a, b).cmp(&rate(b, a)).then(a.burst.cmp(&b.burst))
    };
    let mut sorted: Vec<_> = (0..limits.len()).collect();
    sorted.sort_by(|a, b| order(&limits[*a], &limits[*b]));
    let (mut found, mut least) = (vec![None; limits.len()], None::<&Meaning>);
    for same in sorted.chunk_by(|a, b| order(&limits[*a], &limits[*b]).is_eq()) {
        let first = &limits[same[0]];
        // The same rate and burst, with other numbers.
        let other = same.iter().map(|at| &limits[*at]).find(|other| *other != first);
        for at in same {
            let twin = if limits[*at] == *first { other } else { Some(first) };
            found[*at] = least.filter(|least| least.burst <= first.burst).or(twin);
        }
        if least.is_none_or(|least| first.burst < least.burst) {
            least = Some(first);
        }
    }
    found
}

/// Checks the settings of `tatcell-throttled`.
pub fn throttled(config: &str, out: &mut Checked) -> Result<(), Failure> {
    let mut text = String::new();
    File::open(config)
        .and_then(|file| file.take(MOST as u64).read_to_string(&mut text))
        .map_err(|error| Failure::Input(format!("{config}: {error}")))?;
    let read = || Settings::file(config, &text);
    // What is said of several settings names no line.
    let fail = |what: String| match what.starts_with(&format!("{config}:")) {
        true => Failure::Input(what),
        false => Failure::Input(format!("{config}: {what}")),
    };
    let settings = read().and_then(ServerSettings::take).map_err(fail)?;
    // What the server's own settings keep to themselves.
    let shared = |mut settings: Settings| -> Result<(u32, bool), String> {
        Ok((settings.or("nodes", 1)?, settings.or("reserve", true)?))
    };
    let (nodes, reserve) = read().and_then(shared).map_err(fail)?;
    let limits = settings.limits();
    if limits.is_empty() {
        let what =
            "no shared limits: each CL.THROTTLE brings its own; kept is every limit with a burst of at most \
            4294967296, of which no unit takes less than 0.125 ns, and which drains within 36 years";
        out.say(Kind::Note, config, what);
    }
    let mut given = HashMap::<_, u64>::new();
    limits.iter().for_each(|rate| *given.entry((rate.units, rate.period, rate.burst)).or_default() += 1);
    let mut said = HashSet::new();
    for rate in limits {
        let Rate { units, period, burst } = *rate;
        let call = format!("CL.THROTTLE key {} {units} {period}", burst - 1);
        let meaning = Meaning::new(&call, config, "key", (units, period.saturating_mul(HZ)), (burst, burst));
        // Limits of settings are those of a store, so the cluster divides them among its nodes.
        let limit = SharedLimit::new("limit", units, Duration::from_secs(period), burst);
        let limit = if reserve { limit } else { limit.reserve(0, 0) };
        if let Err(why) = limit.split(nodes, Duration::ZERO) {
            out.say(Kind::NotKept, config, format!("{call}: {why}"));
        }
        let same = given[&(units, period, burst)];
        if same > 1 && said.insert((units, period, burst)) {
            out.say(Kind::Shadowed, config, format!("{call} is given {same} times: remove all but one"));
        }
        out.limits.push(meaning);
    }
    let limits = std::mem::take(&mut out.limits);
    for (meaning, strict) in limits.iter().zip(stricter(&limits)) {
        if let Some(strict) = strict {
            let what = format!(
                "{} never decides for keys of which {} is asked, too: that one has no higher rate and \
                no larger burst",
                meaning.name, strict.name
            );
            out.say(Kind::Note, config, what);
        }
    }
    out.limits = limits;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stricter_limit_is_found_wherever_there_is_one() {
        let mut state = 3u64;
        let mut next = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            1 + (state >> 33) % below
        };
        for _ in 0..500 {
            let limits: Vec<_> = (0..12)
                .map(|_| {
                    let (units, period, burst) = (next(4), next(4), next(4));
                    let name = format!("{burst} {units} {period}");
                    Meaning::new(&name, "a.toml", "key", (units, period * HZ), (burst, burst))
                })
                .collect();
            for (limit, found) in limits.iter().zip(stricter(&limits)) {
                let is_stricter = |other: &&Meaning| *other != limit && other.is_at_least_as_strict_as(limit);
                assert_eq!(found.is_some(), limits.iter().any(|other| is_stricter(&other)), "{limit:?}");
                assert!(found.is_none_or(|found| is_stricter(&found)), "{limit:?} {found:?}");
            }
        }
    }
}

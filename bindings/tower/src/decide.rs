//! The limits of a layer with their tables, and the decision of one request: one [`Chain`] of all that apply to it.

use http::request::Parts;
use smallvec::SmallVec;
use tatcell::host::{self, now_ns, Clock, HostError, OwnedTable};
use tatcell::{
    Chain, ChainCounters, Counters, Decision, Ladder, LadderLimits, LimitInfo, Link, Permit, Request,
    TableLimit, TableOptions, MAX_LINKS,
};

use crate::counts::Counts;
use crate::error::OpenError;
use crate::key::{peer_of, Client, Key};
use crate::limit::{By, Limit, NoKey};

/// The table of one limit, and its tiers: one, or those of a ladder.
pub(crate) struct Rule {
    pub name: String,
    pub table: OwnedTable,
    by: Source,
    no_key: Option<NoKey>,
    /// Whether the key needs the address of the peer.
    of_peer: bool,
    shadow: bool,
    tiers: Vec<Tier>,
    /// The index of the first tier among the counters.
    first: usize,
}

enum Source {
    Key(Box<dyn Key>),
    /// The tiers of IPv4 come first.
    Ladder(Ladder, Client),
}

/// One limit as clients see it.
pub(crate) struct Tier {
    pub name: String,
    pub limit: TableLimit,
    pub info: LimitInfo,
}

impl Tier {
    fn new(name: String, limit: TableLimit) -> Tier {
        Tier { name, limit, info: limit.info() }
    }
}

/// A limit that a request meets: the rule, its tier, and the hash of the key.
#[derive(Clone, Copy)]
pub(crate) struct Asked {
    pub rule: u8,
    pub tier: u8,
    hash: u64,
}

/// What was charged and could be given back.
#[derive(Default)]
pub(crate) struct Charged {
    asked: SmallVec<[Asked; MAX_LINKS]>,
    permits: SmallVec<[Permit; MAX_LINKS]>,
}

/// All limits that a request meets, with the decision of each. Filled in place: it is too large to move.
#[derive(Default)]
pub(crate) struct Decided {
    pub whole: Option<Decision>,
    pub asked: SmallVec<[Asked; MAX_LINKS]>,
    pub each: SmallVec<[Decision; MAX_LINKS]>,
}

/// Says what happens to a request.
pub(crate) enum Fate {
    /// It conforms, or no limit applies to it.
    Passes,
    /// A limit refuses it.
    Refused(Decision),
    /// The rule refuses requests without a key.
    NoKey(usize),
    /// The rule needs the address of the peer, and the server passes on none.
    NoPeer(usize),
}

impl Rule {
    /// Opens the table of a limit. Its counters begin at index `first`.
    pub fn open(limit: Limit, first: usize) -> Result<Rule, OpenError> {
        let Limit { name, spec, by, keys, policy, no_key, shadow } = limit;
        let spec = if shadow { spec.shadow() } else { spec };
        let (mut of_peer, mut valid) = (matches!(by, By::Ladder(..)), true);
        if let By::Key(key) = &by {
            key.clients(&mut |client| (of_peer, valid) = (true, valid && client.is_valid()));
        }
        if !valid {
            return Err(OpenError::BadPrefix(name));
        }
        let failed = |error| OpenError::Table { limit: name.clone(), error };
        let (options, multiplier) = match &by {
            By::Key(_) => (TableOptions::new(spec), 1),
            By::Ladder(ladder, _) => (
                ladder.table_options(&spec).map_err(|error| failed(error.into()))?,
                [true, false]
                    .iter()
                    .flat_map(|v4| ladder.rungs(*v4))
                    .map(|rung| rung.multiplier)
                    .max()
                    .unwrap_or(1),
            ),
        };
        let opened = OwnedTable::open_with(&options.policy(policy), &spec, keys);
        let table = opened.map_err(|error| match (error, options.fit()) {
            (host::OpenError::Host(HostError::BadSize), _) => OpenError::Keys { limit: name.clone(), keys },
            // Other algorithms also need bits for units, and then there may be room enough for the time.
            (host::OpenError::Table(_), Ok(fit)) if fit.culprit.is_some() && fit.needed > fit.available => {
                OpenError::TooFast { limit: name.clone(), fit, multiplier }
            }
            _ => failed(error),
        })?;
        let (by, tiers) = match by {
            By::Key(key) => (Source::Key(key), vec![Tier::new(name.clone(), *table.limit())]),
            By::Ladder(ladder, client) => {
                let limits =
                    LadderLimits::new(table.table(), &ladder, &spec).map_err(|error| failed(error.into()))?;
                // Both families have prefixes of some lengths, such as 32.
                let of_family = |v4, family| {
                    let tiers = ladder.rungs(v4).iter().zip(limits.limits(v4));
                    let name = &name;
                    tiers
                        .map(move |(rung, limit)| Tier::new(format!("{name}/{family}/{}", rung.bits), *limit))
                };
                let tiers = of_family(true, "v4").chain(of_family(false, "v6")).collect();
                (Source::Ladder(ladder, client), tiers)
            }
        };
        Ok(Rule { name, table, by, no_key, of_peer, shadow, tiers, first })
    }

    /// The most links that a request has here.
    pub fn links(&self) -> usize {
        match &self.by {
            Source::Key(_) => 1,
            Source::Ladder(ladder, _) => ladder.rungs(true).len().max(ladder.rungs(false).len()),
        }
    }

    pub fn hash(&self, key: &[u8]) -> u64 {
        // Never an error: the options leave the hash to the table.
        self.table.table().hash(key).unwrap_or(0)
    }

    /// Adds what a request asks of this rule. Returns false if the request has no key.
    fn ask(&self, rule: u8, request: &Parts, asked: &mut SmallVec<[Asked; MAX_LINKS]>) -> bool {
        match &self.by {
            Source::Key(key) => {
                let hash = key.hash(request, &|key| self.hash(key));
                asked.extend(hash.map(|hash| Asked { rule, tier: 0, hash }));
                hash.is_some()
            }
            Source::Ladder(ladder, client) => {
                let Some(address) = client.address(request) else { return false };
                let v4 = address.is_v4();
                let first = if v4 { 0 } else { ladder.rungs(true).len() };
                asked.extend(ladder.rungs(v4).iter().enumerate().map(|(i, rung)| {
                    let hash = self.hash(address.prefix(rung.bits).as_ref());
                    Asked { rule, tier: (first + i) as u8, hash }
                }));
                true
            }
        }
    }
}

/// Returns the first name that an earlier one is equal to.
fn first_twice<'a>(mut names: impl Iterator<Item = &'a String>) -> Option<&'a String> {
    let mut seen = Vec::new();
    names.find(|name| {
        let twice = seen.contains(name);
        seen.push(*name);
        twice
    })
}

/// Decides for all limits of a layer.
pub(crate) struct Rules {
    rules: Vec<Rule>,
    counts: Counts,
}

/// The counters of the whole layer, and those of requests without a key; those of the tiers follow.
pub(crate) const WHOLE: usize = 0;
pub(crate) const KEYLESS: usize = 1;

impl Rules {
    pub fn open(limits: Vec<Limit>) -> Result<Rules, OpenError> {
        let (mut rules, mut first) = (Vec::new(), KEYLESS + 1);
        for limit in limits {
            let rule = Rule::open(limit, first)?;
            first += rule.tiers.len();
            rules.push(rule);
        }
        match rules.iter().map(Rule::links).sum() {
            0 => return Err(OpenError::NoLimit),
            links if links > MAX_LINKS => return Err(OpenError::TooManyLimits(links)),
            _ => {}
        }
        let tiers = rules.iter().flat_map(|rule| &rule.tiers).map(|tier| &tier.name);
        let twice = first_twice(rules.iter().map(|rule| &rule.name)).or(first_twice(tiers));
        match twice {
            Some(name) => Err(OpenError::SameName(name.clone())),
            None => Ok(Rules { rules, counts: Counts::new(first) }),
        }
    }

    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    pub fn tier(&self, asked: &Asked) -> &Tier {
        &self.rules[usize::from(asked.rule)].tiers[usize::from(asked.tier)]
    }

    pub fn counters(&self, thing: usize) -> Counters {
        self.counts.sum(thing)
    }

    /// Returns the name and the counters of each tier.
    pub fn tier_counters(&self) -> impl Iterator<Item = (&str, Counters)> {
        self.rules.iter().flat_map(|rule| {
            let tiers = rule.tiers.iter().enumerate();
            tiers.map(|(i, tier)| (tier.name.as_str(), self.counts.sum(rule.first + i)))
        })
    }

    /// Decides a request at this reading of the clock, and counts it. A clock that cannot be read limits nobody.
    pub fn decide(&self, request: &Parts, now: Option<u64>, decided: &mut Decided) -> Fate {
        let Decided { whole, asked, each } = decided;
        for (i, rule) in self.rules.iter().enumerate() {
            if rule.ask(i as u8, request, asked) {
                continue;
            }
            let no_peer = rule.no_key.is_none() && rule.of_peer && peer_of(request).is_none();
            let refuses = (no_peer || rule.no_key == Some(NoKey::Refuse)) && !rule.shadow;
            let (conforming, non_conforming) = (u64::from(!refuses), u64::from(refuses));
            self.counts.add(KEYLESS, Counters { conforming, non_conforming, ..Counters::default() });
            match rule.no_key {
                _ if refuses && no_peer => return Fate::NoPeer(i),
                _ if refuses => return Fate::NoKey(i),
                None | Some(NoKey::Share) if !no_peer => {
                    asked.push(Asked { rule: i as u8, tier: 0, hash: rule.hash(b"") });
                }
                _ => {}
            }
        }
        let Some(now) = now else { return Fate::Passes };
        self.sweep(now);
        let mut chain = Counters::default();
        if let [one] = asked.as_slice() {
            // What a chain of one link would answer, without the chain.
            let (table, limit) = (self.rules[usize::from(one.rule)].table.table(), &self.tier(one).limit);
            *whole =
                table.check_ex(&Request { limit, now, cost: 1, room: 0 }, one.hash, Some(&mut chain)).ok();
            each.extend(*whole);
            self.count(one, chain);
        } else {
            let mut links: SmallVec<[Counters; MAX_LINKS]> =
                asked.iter().map(|_| Counters::default()).collect();
            let counters = ChainCounters { chain: Some(&mut chain), links: &mut links };
            *whole =
                self.chain(asked, |made| made.check_ex(now, counters, |_, decision| each.push(*decision)));
            asked.iter().zip(links).for_each(|(asked, link)| self.count(asked, link));
        }
        self.counts.add(WHOLE, chain);
        match whole {
            Some(whole) if !whole.passes() => Fate::Refused(*whole),
            _ => Fate::Passes,
        }
    }

    /// Sweeps what is due: a word that nobody sweeps wraps, and then an old debt counts once more.
    fn sweep(&self, now: u64) {
        self.rules.iter().for_each(|rule| rule.table.sweep(now));
    }

    /// Adds to the counters of a tier.
    fn count(&self, asked: &Asked, more: Counters) {
        self.counts.add(self.rules[usize::from(asked.rule)].first + usize::from(asked.tier), more);
    }

    /// Runs a call on the chain of these limits; `None` if there are none.
    fn chain<T>(&self, asked: &[Asked], call: impl FnOnce(&Chain<'_>) -> T) -> Option<T> {
        let link = |asked: &Asked| {
            let rule = &self.rules[usize::from(asked.rule)];
            Link::hash(rule.table.table(), &rule.tiers[usize::from(asked.tier)].limit, asked.hash, 1)
        };
        let links: SmallVec<[Link<'_>; MAX_LINKS]> = asked.iter().map(link).collect();
        // Each key has one limit, and there are at most `MAX_LINKS`: so only an empty chain is an error.
        Chain::new(&links).ok().map(|chain| call(&chain))
    }

    /// Gives back what a request was charged.
    pub fn refund(&self, charged: &mut Charged) {
        if let Ok(now) = now_ns(Clock::Monotonic) {
            self.sweep(now);
            // False after the 64 lost swaps of each of several tries: then the charge drains.
            self.chain(&charged.asked, |chain| chain.refund(now, &mut charged.permits));
        }
    }
}

impl Decided {
    /// Returns what a refund needs.
    pub fn charged(&self) -> Charged {
        Charged {
            asked: self.asked.iter().copied().collect(),
            permits: self.each.iter().map(|decision| decision.permit).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tatcell::LimitSpec;

    /// Each silence ends when the words of its client have just wrapped, or long after. A ladder has several of them.
    #[test]
    fn a_client_that_owes_nothing_passes_after_any_silence() {
        let spec = LimitSpec::parse("10/s burst 20", 1_000_000_000).expect("a limit");
        for limit in [
            Limit::new("clients", spec, crate::key::peer()),
            Limit::ladder("clients", spec, Ladder::DEFAULT, crate::key::peer()),
        ] {
            let rules = Rules::open(vec![limit]).expect("rules");
            let client = std::net::SocketAddr::from(([192, 0, 2, 1], 40_000));
            let (request, ()) =
                http::Request::builder().extension(client).body(()).expect("a request").into_parts();
            let passes = |now| matches!(rules.decide(&request, now, &mut Decided::default()), Fate::Passes);
            let (second, wrap) = (1_000_000_000u64, 1u64 << 43);
            let mut now = second;
            for silence in
                [wrap - second, 3_600 * second, 3 * 3_600 * second, 5 * wrap - second, 8_640_000 * second]
            {
                let passed = (0..21).filter(|_| passes(Some(now))).count();
                assert_eq!(passed, 20, "{now}");
                now += silence;
            }
        }
    }
}

//! The limits of a configuration of nginx: where `limit_req` and `tatcell` put zones to use.
//!
//! `limit_req` counts a burst and a delay without the first request. Both are converted here, so that all limits have
//! the numbers of this library.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::blocks::{Directive, Word};
use super::meaning::{Checked, Kind, Meaning};
use super::zones::{nginx_number, number, parameter, zone, Module, Zone};
use crate::failure::Failure;
use crate::words::cut;

/// A directive that puts a zone to use.
struct Use<'d> {
    module: Module,
    word: &'d Word,
    zone: String,
    burst: Option<u64>,
    /// `None` for `nodelay`.
    delay: Option<u64>,
    cost: Option<String>,
}

/// The directives of a block that put zones to use.
#[derive(Default)]
struct Uses<'d> {
    all: Vec<Use<'d>>,
    /// Which of them uses a zone of a module.
    known: HashMap<(usize, String), usize>,
    /// How many are of this module.
    of_tatcell: usize,
}

impl<'d> Uses<'d> {
    fn add(&mut self, found: Use<'d>) -> Result<(), Failure> {
        let zone = (found.module as usize, found.zone.clone());
        if let Some(first) = self.known.get(&zone) {
            let first = self.all[*first].word.place();
            let what = format!("zone {:?} is here twice, first at {first}: remove one", found.zone);
            return Err(found.word.wrong(what));
        }
        if found.module == Module::Tatcell {
            if self.of_tatcell == MOST_ZONES {
                return Err(found.word.wrong("more than 8 zones of tatcell in one place: remove some"));
            }
            self.of_tatcell += 1;
        }
        self.known.insert(zone, self.all.len());
        self.all.push(found);
        Ok(())
    }
}

fn put_to_use(directive: &Directive, module: Module) -> Result<Use<'_>, Failure> {
    let delay = Some(if module == Module::Tatcell { 1 } else { 0 });
    let mut found =
        Use { module, word: &directive.name, zone: String::new(), burst: None, delay, cost: None };
    for word in &directive.words {
        let (name, value) = parameter(word);
        match (name, module) {
            ("zone=", _) => found.zone = value.into(),
            ("burst=", _) => found.burst = Some(number(word, value, module)?),
            ("delay=", _) => found.delay = Some(number(word, value, module)?),
            ("nodelay", _) => found.delay = None,
            ("cost=", Module::Tatcell) => {
                if !value.contains('$') && nginx_number(value).is_none() {
                    return Err(
                        word.wrong_at(5, format!("{value:?} is no cost: write a number or a variable"))
                    );
                }
                found.cost = Some(value.into());
            }
            _ => {
                return Err(
                    word.wrong(format!("unknown parameter {:?} of {}", word.text, directive.name.text))
                )
            }
        }
    }
    match found.zone.is_empty() {
        true => Err(directive.name.wrong(format!("{} has no zone=", directive.name.text))),
        false => Ok(found),
    }
}

/// The most zones of the module in one place.
const MOST_ZONES: usize = 8;

/// Whether a flag says so.
fn is_on(word: Option<&str>) -> bool {
    word.is_some_and(|word| word.eq_ignore_ascii_case("on"))
}

/// What a block inherits.
#[derive(Clone, Default)]
struct Level {
    path: String,
    /// The zones of `limit_req` and of `tatcell` that apply here.
    zones: [Rc<Vec<String>>; 2],
    dry: [bool; 2],
}

/// Most zones that a note lists.
const LOST: usize = 8;
/// Characters of a name of a block, a zone or a key that are shown.
const SHOWN: usize = 60;
/// Characters of the names of blocks in each other that are shown.
const PATH: usize = 240;

/// A zone that a block puts to use.
struct Seen {
    /// The module and the name.
    zone: (usize, String),
    cost: String,
    /// Its number in the answer.
    limit: usize,
    /// Whether it refuses or delays anything by the rate of its zone.
    decides: bool,
}

struct Check<'c> {
    zones: HashMap<(usize, String), Zone>,
    /// The zones of each block that has uses of its own. A block without any has those of a block above it.
    places: Vec<Vec<Seen>>,
    out: &'c mut Checked,
}

/// Checks a configuration.
pub fn check(config: &str, directives: &[Directive], out: &mut Checked) -> Result<(), Failure> {
    let mut check = Check { zones: HashMap::new(), places: Vec::new(), out };
    check.collect(directives)?;
    check.level(directives, &Level::default())?;
    check.shadows();
    let mut zones: Vec<_> = check.zones.into_values().collect();
    zones.sort_by(|a, b| (&a.word.file, a.word.line).cmp(&(&b.word.file, b.word.line)));
    zones.iter().for_each(|zone| zone.judge(out));
    if zones.is_empty() {
        return Err(Failure::Input(format!("{config}: no limit_req_zone and no tatcell_zone")));
    }
    Ok(())
}

impl Check<'_> {
    fn collect(&mut self, directives: &[Directive]) -> Result<(), Failure> {
        for directive in directives {
            let module = match &*directive.name.text {
                "limit_req_zone" => Module::LimitReq,
                "tatcell_zone" => Module::Tatcell,
                _ => {
                    self.collect(&directive.block)?;
                    continue;
                }
            };
            let zone = zone(directive, module)?;
            self.zones.insert((module as usize, zone.name.clone()), zone);
        }
        Ok(())
    }

    fn level(&mut self, directives: &[Directive], above: &Level) -> Result<(), Failure> {
        let mut level = above.clone();
        let (mut uses, mut off) = (Uses::default(), None::<&Word>);
        for directive in directives {
            let first = directive.words.first().map(|word| &*word.text);
            match (&*directive.name.text, first) {
                ("limit_req", _) => uses.add(put_to_use(directive, Module::LimitReq)?)?,
                ("tatcell", Some("off")) if directive.words.len() == 1 => {
                    level.zones[1] = Rc::default();
                    if off.replace(&directive.name).is_some() {
                        return Err(directive.name.wrong("tatcell off is here twice: remove one"));
                    }
                }
                ("tatcell", _) => uses.add(put_to_use(directive, Module::Tatcell)?)?,
                ("limit_req_dry_run", _) => level.dry[0] = is_on(first),
                ("tatcell_dry_run", _) => level.dry[1] = is_on(first),
                _ => {}
            }
        }
        let uses = uses.all;
        let tatcell = uses.iter().any(|found| found.module == Module::Tatcell);
        if let Some(off) = off.filter(|_| tatcell) {
            return Err(off.wrong("tatcell off stands next to another tatcell: remove one"));
        }
        for module in [Module::LimitReq, Module::Tatcell] {
            let mut own = uses.iter().filter(|found| found.module == module).peekable();
            let Some(at) = own.peek().map(|found| found.word.place()) else { continue };
            let own: Vec<_> = own.map(|found| found.zone.clone()).collect();
            let here: HashSet<_> = own.iter().collect();
            let mut lost = level.zones[module as usize].iter().filter(|zone| !here.contains(zone));
            let names: Vec<_> =
                lost.by_ref().take(LOST).map(|zone| format!("{:?}", cut(zone, SHOWN))).collect();
            if !names.is_empty() {
                let what = format!(
                    "{} has {} of its own, so those of the level above do not apply: {}{}",
                    if level.path.is_empty() { "this level" } else { &level.path },
                    module.name(),
                    names.join(", "),
                    if lost.next().is_some() { " and others" } else { "" }
                );
                self.out.say(Kind::Note, at, what);
            }
            level.zones[module as usize] = Rc::new(own);
        }
        self.uses(&uses, &level)?;
        for directive in directives.iter().filter(|directive| !directive.block.is_empty()) {
            let mut below = level.clone();
            let words = directive.words.iter().map(|word| &*word.text);
            let own: Vec<_> = std::iter::once(&*directive.name.text).chain(words).collect();
            let name = directive.block.iter().find(|inner| inner.name.text == "server_name");
            let name = name
                .and_then(|name| name.words.first())
                .map_or(String::new(), |name| format!(" {}", name.text));
            if directive.name.text != "http" {
                let gap = if below.path.is_empty() { "" } else { ", " };
                let own = cut(&own.join(" "), SHOWN) + &cut(&name, SHOWN);
                let path = format!("{}{gap}{own}", below.path);
                let more = path.chars().count().saturating_sub(PATH);
                // The innermost blocks say most, so a long path loses its start.
                below.path = if more == 0 {
                    path
                } else {
                    "\u{2026}".chars().chain(path.chars().skip(more)).collect()
                };
            }
            self.level(&directive.block, &below)?;
        }
        Ok(())
    }

    fn uses(&mut self, uses: &[Use<'_>], level: &Level) -> Result<(), Failure> {
        let mut here = Vec::new();
        for found in uses {
            let module = found.module;
            let Some(zone) = self.zones.get_mut(&(module as usize, found.zone.clone())) else {
                let what = format!("no {}_zone defines the zone {:?}", module.name(), found.zone);
                return Err(found.word.wrong(what));
            };
            zone.used = true;
            let name = format!("{} zone={}", module.name(), cut(&zone.name, SHOWN));
            let name = if level.path.is_empty() { name } else { format!("{name} in {}", level.path) };
            // limit_req counts a burst and a delay without the first request.
            let first = u64::from(module == Module::LimitReq);
            let burst = first + found.burst.unwrap_or(if first == 1 { 0 } else { zone.burst });
            if first == 1 && burst > u64::MAX / 1000 {
                let what = "nginx counts thousandths of a request in 64 bits, so it keeps another burst than this one";
                self.out.say(Kind::NotKept, found.word.place(), what);
            }
            let at_once = found.delay.map_or(burst, |delay| delay + first);
            if at_once > burst && module == Module::Tatcell {
                return Err(found
                    .word
                    .wrong(format!("delay={at_once} is above burst={burst}: write nodelay")));
            } else if at_once > burst && found.delay.is_some_and(|delay| delay > 1) {
                let what = "the delay is above the burst: nothing waits, which nodelay says plainly";
                self.out.say(Kind::Note, found.word.place(), what);
            }
            if zone.counts_bytes && found.cost.is_none() {
                let what = format!(
                    "zone {:?} counts bytes, so this needs a cost, as in cost=$request_length",
                    zone.name
                );
                return Err(found.word.wrong(what));
            }
            let (place, key) = (found.word.place(), cut(&zone.key, PATH));
            let mut meaning = Meaning::new(&name, &place, &key, zone.rate, (burst, at_once.min(burst)));
            zone.widen(burst, at_once.min(burst));
            if first == 1 && burst == 1 {
                meaning.more.push(
                    "limit_req without a burst refuses the second of two requests that come at once".into(),
                );
            }
            if zone.by {
                meaning.more.push("rate_by gives keys other rates; this one is for the others".into());
            }
            if level.dry[module as usize] {
                meaning.more.push("dry run: it counts what it would refuse, and refuses nothing".into());
            }
            let cost = found.cost.as_deref().unwrap_or("1");
            if cost != "1" {
                meaning.more.push(format!("a request costs {} units", cut(cost, SHOWN)));
            }
            let decides = !level.dry[module as usize] && !zone.by;
            let (zone, cost) = ((module as usize, zone.name.clone()), cost.to_owned());
            here.push(Seen { zone, cost, limit: self.out.limits.len(), decides });
            self.out.limits.push(meaning);
        }
        self.places.push(here);
        Ok(())
    }

    /// Says which zones never decide where they are put to use.
    fn shadows(&mut self) {
        let (limits, mut used, mut groups) = (&self.out.limits, HashMap::<_, Vec<_>>::new(), Vec::new());
        for here in &self.places {
            // Those of the same key and module: only these can shadow each other.
            let mut of_key = HashMap::<_, Vec<&Seen>>::new();
            for seen in here {
                used.entry(&seen.zone).or_default().push((groups.len(), seen));
                let others = of_key.entry((seen.zone.0, &*self.zones[&seen.zone].key)).or_default();
                others.extend(seen.decides.then_some(seen));
            }
            groups.push(of_key);
        }
        let costs =
            self.places.iter().map(|here| here.iter().map(|seen| (&seen.zone, &*seen.cost)).collect());
        let costs: Vec<HashMap<_, _>> = costs.collect();
        // `by` shadows `one` at a place if it refuses or delays whatever `one` would, and if its zone also counts all
        // that the other zone counts, at other places too: otherwise the other zone may hold debts that it does not
        // know. The two modules charge on their own, so each counts what the other one refuses.
        let counts_all = |one: &Seen, by: &Seen| {
            used[&one.zone].iter().all(|(at, seen)| costs[*at].get(&by.zone) == Some(&&*seen.cost))
        };
        let is_strict = |by: &Seen, one: &Seen| limits[by.limit].is_at_least_as_strict_as(&limits[one.limit]);
        let mut findings = Vec::new();
        for (zone, places) in &used {
            // Whether another zone counts all that this one counts, and this one all that it counts: the same at each
            // place.
            let (mut over, mut under) = (HashMap::new(), HashMap::new());
            for (at, one) in places.iter().filter(|(_, one)| one.decides) {
                let group = &groups[*at][&(zone.0, &*self.zones[*zone].key)];
                let strict = group.iter().find(|by| {
                    by.limit != one.limit
                        && is_strict(by, one)
                        && *over.entry(&by.zone).or_insert_with(|| counts_all(one, by))
                        // If two are equal, the second never decides.
                        && (by.limit < one.limit
                            || !is_strict(one, by)
                            || !*under.entry(&by.zone).or_insert_with(|| counts_all(by, one)))
                });
                findings.extend(strict.map(|by| (one.limit, by.limit)));
            }
        }
        findings.sort_unstable();
        for (one, by) in findings {
            let (one, by) = (&self.out.limits[one], &self.out.limits[by]);
            let what = format!(
                "{}: {} on the same key ({}) has no higher rate and no larger burst: remove this one, or give it a \
                 smaller burst",
                one.name, by.name, by.place
            );
            let place = one.place.clone();
            self.out.say(Kind::Shadowed, place, what);
        }
    }
}

//! The limits of a configuration of nginx: where `limit_req` and `tatcell` put zones to use.
//!
//! `limit_req` counts a burst and a delay without the first request. Both are converted here, so that all limits have
//! the numbers of this library.

use std::collections::HashMap;

use super::blocks::{Directive, Word};
use super::meaning::{Checked, Kind, Meaning};
use super::zones::{nginx_number, number, parameter, zone, Module, Zone};
use crate::failure::Failure;

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

impl<'d> Use<'d> {
    /// Adds it to the others of its block.
    fn add_to(self, uses: &mut Vec<Use<'d>>) -> Result<(), Failure> {
        let same = uses.iter().filter(|other| other.module == self.module);
        if let Some(first) = same.clone().find(|other| other.zone == self.zone) {
            let what =
                format!("zone {:?} is here twice, first at {}: remove one", self.zone, first.word.place());
            return Err(self.word.wrong(what));
        }
        if self.module == Module::Tatcell && same.count() == MOST_ZONES {
            return Err(self.word.wrong("more than 8 zones of tatcell in one place: remove some"));
        }
        uses.push(self);
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
    zones: [Vec<String>; 2],
    dry: [bool; 2],
}

/// A zone that a block puts to use.
struct Seen {
    /// The module and the name.
    zone: (usize, String),
    cost: String,
    meaning: Meaning,
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
        let (mut uses, mut off) = (Vec::<Use<'_>>::new(), None::<&Word>);
        for directive in directives {
            let first = directive.words.first().map(|word| &*word.text);
            match (&*directive.name.text, first) {
                ("limit_req", _) => put_to_use(directive, Module::LimitReq)?.add_to(&mut uses)?,
                ("tatcell", Some("off")) if directive.words.len() == 1 => {
                    level.zones[1].clear();
                    if off.replace(&directive.name).is_some() {
                        return Err(directive.name.wrong("tatcell off is here twice: remove one"));
                    }
                }
                ("tatcell", _) => put_to_use(directive, Module::Tatcell)?.add_to(&mut uses)?,
                ("limit_req_dry_run", _) => level.dry[0] = is_on(first),
                ("tatcell_dry_run", _) => level.dry[1] = is_on(first),
                _ => {}
            }
        }
        let tatcell = uses.iter().any(|found| found.module == Module::Tatcell);
        if let Some(off) = off.filter(|_| tatcell) {
            return Err(off.wrong("tatcell off stands next to another tatcell: remove one"));
        }
        for module in [Module::LimitReq, Module::Tatcell] {
            let mut own = uses.iter().filter(|found| found.module == module).peekable();
            let Some(at) = own.peek().map(|found| found.word.place()) else { continue };
            let own: Vec<_> = own.map(|found| found.zone.clone()).collect();
            let lost: Vec<_> =
                level.zones[module as usize].iter().filter(|zone| !own.contains(zone)).collect();
            if !lost.is_empty() {
                let lost: Vec<_> = lost.into_iter().map(|zone| format!("{zone:?}")).collect();
                let what = format!(
                    "{} has {} of its own, so those of the level above do not apply: {}",
                    if level.path.is_empty() { "this level" } else { &level.path },
                    module.name(),
                    lost.join(", ")
                );
                self.out.say(Kind::Note, at, what);
            }
            level.zones[module as usize] = own;
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
                below.path = format!("{}{gap}{}{name}", below.path, own.join(" "));
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
            let name = match level.path.is_empty() {
                true => format!("{} zone={}", module.name(), zone.name),
                false => format!("{} zone={} in {}", module.name(), zone.name, level.path),
            };
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
            let mut meaning =
                Meaning::new(&name, &found.word.place(), &zone.key, zone.rate, (burst, at_once.min(burst)));
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
                meaning.more.push(format!("a request costs {cost} units"));
            }
            let decides = !level.dry[module as usize] && !zone.by;
            let (zone, cost) = ((module as usize, zone.name.clone()), cost.to_owned());
            here.push(Seen { zone, cost, meaning: meaning.clone(), decides });
            self.out.limits.push(meaning);
        }
        self.places.push(here);
        Ok(())
    }

    /// Says which zones never decide where they are put to use.
    fn shadows(&mut self) {
        let mut known = HashMap::new();
        for here in &self.places {
            for (at, one) in here.iter().enumerate() {
                // If two are equal, the second never decides.
                let strict = here.iter().enumerate().find(|(other, by)| {
                    self.is_shadowed(one, by, &mut known)
                        && (*other < at || !self.is_shadowed(by, one, &mut known))
                });
                if let Some((_, by)) = strict {
                    let what = format!(
                        "{}: {} on the same key ({}) has no higher rate and no larger burst: remove this one, or give \
                         it a smaller burst",
                        one.meaning.name, by.meaning.name, by.meaning.place
                    );
                    self.out.say(Kind::Shadowed, &*one.meaning.place, what);
                }
            }
        }
    }

    /// Whether `by`, at the same place, refuses or delays whatever `one` would. Its zone must also count all that the
    /// other zone counts, at other places too: otherwise the other zone may hold debts that it does not know. The two
    /// modules charge on their own, so each counts what the other one refuses. `known`: whether a zone counts all that
    /// another one counts, which is the same at each place.
    fn is_shadowed<'s>(
        &self,
        one: &'s Seen,
        by: &'s Seen,
        known: &mut HashMap<[&'s (usize, String); 2], bool>,
    ) -> bool {
        let is_next_to = |here: &Vec<Seen>| {
            let mut uses = here.iter().filter(|found| found.zone == one.zone);
            uses.all(|found| here.iter().any(|other| other.zone == by.zone && other.cost == found.cost))
        };
        one.zone != by.zone
            && one.zone.0 == by.zone.0
            && one.decides
            && by.decides
            && by.meaning.key == one.meaning.key
            && by.meaning.is_at_least_as_strict_as(&one.meaning)
            && *known.entry([&one.zone, &by.zone]).or_insert_with(|| self.places.iter().all(is_next_to))
    }
}

//! What nginx refuses of the directives that limit, before their parameters count: unknown names, wrong places, too
//! few or too many words, values that are none, directives that a block has twice.
//!
//! A file with a block `http`, `events`, `stream` or `mail` is a whole configuration. Every other file is taken for a
//! part that is included somewhere, so at its top each directive may stand.

use std::collections::{HashMap, HashSet};

use super::blocks::{is_whole, limits, Directive, Word};
use super::zones::{module_rate, nginx_number, nginx_time, zone_size};
use crate::failure::Failure;
use crate::words::plural;

/// Where directives stand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The top of a part of a configuration.
    Part,
    /// The top of a whole configuration, `events`, `mail`.
    Outside,
    Http,
    Server,
    Location,
    /// `if`, `limit_except` and `upstream`.
    Inner,
    Stream,
    /// Lines that are no directives: `map`, `geo`, `types`.
    Data,
}

/// What the words of a directive must be.
enum Value {
    /// Others look at it.
    Any,
    Flag,
    Status,
    /// A time of nginx.
    Time,
    One(&'static [&'static str]),
    /// One or more of these, `off` alone.
    Some(&'static [&'static str]),
    /// Nothing, or `json`, `prometheus` and `top=N`.
    Stats,
}

struct Rule {
    name: &'static str,
    /// How many words it takes.
    words: (usize, usize),
    places: &'static [Place],
    value: Value,
}

const MAIN: &[Place] = &[Place::Http];
const ANYWHERE: &[Place] = &[Place::Http, Place::Server, Place::Location];
const LEVELS: Value = Value::One(&["info", "notice", "warn", "error"]);

const fn rule(name: &'static str, words: (usize, usize), places: &'static [Place], value: Value) -> Rule {
    Rule { name, words, places, value }
}

const RULES: [Rule; 20] = [
    rule("limit_req_zone", (3, 3), MAIN, Value::Any),
    rule("limit_req", (1, 3), ANYWHERE, Value::Any),
    rule("limit_req_log_level", (1, 1), ANYWHERE, LEVELS),
    rule("limit_req_status", (1, 1), ANYWHERE, Value::Status),
    rule("limit_req_dry_run", (1, 1), ANYWHERE, Value::Flag),
    rule("limit_conn_zone", (2, 2), MAIN, Value::Any),
    rule("limit_conn", (2, 2), ANYWHERE, Value::Any),
    rule("limit_conn_log_level", (1, 1), ANYWHERE, LEVELS),
    rule("limit_conn_status", (1, 1), ANYWHERE, Value::Status),
    rule("limit_conn_dry_run", (1, 1), ANYWHERE, Value::Flag),
    rule("tatcell_zone", (2, usize::MAX), MAIN, Value::Any),
    rule("tatcell_rates", (2, 2), MAIN, Value::Any),
    rule("tatcell", (1, usize::MAX), ANYWHERE, Value::Any),
    rule("tatcell_dry_run", (1, 1), ANYWHERE, Value::Flag),
    rule("tatcell_status", (1, 1), ANYWHERE, Value::Status),
    rule("tatcell_log_level", (1, 1), ANYWHERE, LEVELS),
    rule("tatcell_log_interval", (1, 1), ANYWHERE, Value::Time),
    rule("tatcell_undecided", (1, 1), ANYWHERE, Value::One(&["pass", "refuse"])),
    rule("tatcell_headers", (1, usize::MAX), ANYWHERE, {
        Value::Some(&["ratelimit", "policy", "retry_after", "x", "off"])
    }),
    rule("tatcell_stats", (0, 2), &[Place::Location], Value::Stats),
];

/// Returns the place that a block opens.
fn opened(name: &str, place: Place) -> Place {
    match (name, place) {
        ("http", Place::Outside) => Place::Http,
        ("stream", Place::Outside) => Place::Stream,
        (_, Place::Outside) => Place::Outside,
        (_, Place::Stream) => Place::Stream,
        ("server", Place::Http | Place::Part) => Place::Server,
        ("location", Place::Server | Place::Location | Place::Part) => Place::Location,
        ("if" | "limit_except" | "upstream", _) => Place::Inner,
        _ => Place::Data,
    }
}

/// Checks a configuration, and removes the blocks whose lines are no directives.
pub fn check(directives: &mut [Directive]) -> Result<(), Failure> {
    let whole = directives.iter().any(|directive| directive.is_block && is_whole(&directive.name.text));
    let mut memory = Memory::default();
    level(directives, if whole { Place::Outside } else { Place::Part }, &mut memory)?;
    match memory.conns.iter().find(|word| whole && !memory.known.contains_key(&word.text)) {
        Some(word) => Err(word.wrong(format!("no limit_conn_zone defines the zone {:?}", word.text))),
        None => Ok(()),
    }
}

/// Shared memory by its name, and the zones that `limit_conn` names.
#[derive(Default)]
struct Memory {
    known: HashMap<String, (Word, &'static str)>,
    conns: Vec<Word>,
}

impl Memory {
    /// Takes a zone in: each has a name of its own, whatever it is for.
    fn add(&mut self, directive: &Directive, name: &'static str) -> Result<(), Failure> {
        let zones = directive.words.iter().filter_map(|word| word.text.strip_prefix("zone="));
        let Some((zone, _)) = zones.filter_map(|zone| zone.split_once(':')).next_back() else {
            return Ok(());
        };
        if let Some((first, by)) = self.known.get(zone) {
            let by = if *by == name { String::new() } else { format!(", by {by}") };
            return Err(directive.name.wrong(format!("zone {zone:?} is already at {}{by}", first.place())));
        }
        self.known.insert(zone.into(), (directive.name.clone(), name));
        Ok(())
    }
}

fn level(directives: &mut [Directive], place: Place, memory: &mut Memory) -> Result<(), Failure> {
    let mut seen = HashSet::new();
    for directive in directives {
        let name = directive.name.text.clone();
        if limits(&name) && !(place == Place::Stream && name.starts_with("limit_conn")) {
            let rule = RULES.iter().find(|rule| rule.name == name);
            let rule = rule.ok_or_else(|| directive.name.wrong(format!("unknown directive {name:?}")))?;
            rule.check(directive, place)?;
            match (rule.name, &rule.value) {
                ("limit_req_zone" | "limit_conn_zone" | "tatcell_zone", _) => {
                    expression(&directive.words[0])?;
                    memory.add(directive, rule.name)?;
                    if rule.name == "limit_conn_zone" {
                        conn_zone(directive)?;
                    }
                }
                ("tatcell_rates", _) => rates(directive)?,
                ("limit_conn", _) => {
                    conn(directive)?;
                    let zone = &directive.words[0];
                    if !seen.insert(format!("limit_conn {}", zone.text)) {
                        return Err(zone.wrong(format!("zone {:?} is here twice: remove one", zone.text)));
                    }
                    memory.conns.push(zone.clone());
                }
                (_, Value::Any | Value::Some(_)) => {}
                _ if !seen.insert(name.clone()) => {
                    return Err(directive.name.wrong(format!("{name} is here twice: remove one")));
                }
                _ => {}
            }
        }
        if (&*name, place) == ("http", Place::Outside) && !seen.insert(name.clone()) {
            return Err(directive.name.wrong("http is here twice: remove one"));
        }
        match opened(&name, place) {
            Place::Data => directive.block.clear(),
            inner => level(&mut directive.block, inner, memory)?,
        }
    }
    Ok(())
}

impl Rule {
    fn check(&self, directive: &Directive, place: Place) -> Result<(), Failure> {
        let (name, words) = (&directive.name, &directive.words);
        if place != Place::Part && !self.places.contains(&place) {
            let where_ = match self.places {
                [Place::Http] => "in http",
                [Place::Location] => "in a location",
                _ => "in http, server or location",
            };
            return Err(name.wrong(format!("{} cannot stand here: it stands {where_}", self.name)));
        }
        let is_block = self.name == "tatcell_rates";
        if directive.is_block != is_block {
            let what = if is_block { "has no block" } else { "takes no block: end it with \";\"" };
            return Err(name.wrong(format!("{} {what}", self.name)));
        }
        let (least, most) = self.words;
        if words.len() < least || words.len() > most {
            let takes = match most {
                usize::MAX => format!("at least {}", plural(least as u64, "parameter")),
                _ if least == most => plural(most as u64, "parameter"),
                _ => format!("{least} to {most} parameters"),
            };
            // The first one that is too many, as far as there is one.
            let word = words.get(most).unwrap_or(name);
            return Err(word.wrong(format!(
                "{} has {} parameters, and takes {takes}",
                self.name,
                words.len()
            )));
        }
        for word in words {
            let text = &*word.text;
            let top = || text.strip_prefix("top=").and_then(nginx_number).is_some_and(|top| top <= 64);
            // nginx compares them without case, but for those of tatcell_stats.
            let is = |known: &&str| known.eq_ignore_ascii_case(text);
            let known = |known: &[&str]| known.iter().any(is).then_some(()).ok_or(known.join(", "));
            let right = match &self.value {
                Value::Any => Ok(()),
                Value::Flag if ["on", "off"].iter().any(is) => Ok(()),
                Value::Flag => Err("on or off".into()),
                Value::Status if nginx_number(text).is_some_and(|status| (400..600).contains(&status)) => {
                    Ok(())
                }
                Value::Status => Err("400 to 599".into()),
                Value::Time => nginx_time(text).map(|_| ()).ok_or("a time, as in 1s".into()),
                Value::One(words) => known(words),
                Value::Some(_) if is(&"off") && words.len() > 1 => Err("off alone, or not at all".into()),
                Value::Some(words) => known(words),
                Value::Stats if ["json", "prometheus"].contains(&text) || top() => Ok(()),
                Value::Stats => Err("json, prometheus or top=0 to top=64".into()),
            };
            right.map_err(|write| {
                word.wrong(format!("{text:?} is no value of {}: write {write}", self.name))
            })?;
        }
        Ok(())
    }
}

/// Checks the variables of a text, as far as that can be without knowing which there are.
fn expression(word: &Word) -> Result<(), Failure> {
    let text = word.text.as_bytes();
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'$', &text[at..]) {
        let start = at + found;
        let is_bracket = text.get(start + 1) == Some(&b'{');
        let name = start + 1 + usize::from(is_bracket);
        let length =
            text[name..].iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
        at = name + length;
        if length == 0 {
            return Err(word.wrong_at(start, "no name of a variable stands behind this $"));
        }
        if is_bracket && text.get(at) != Some(&b'}') {
            return Err(word.wrong_at(start, "the bracket of this variable is not closed"));
        }
    }
    Ok(())
}

/// Checks the zone of `limit_conn_zone`.
fn conn_zone(directive: &Directive) -> Result<(), Failure> {
    let word = &directive.words[1];
    match word.text.strip_prefix("zone=") {
        Some(text) => zone_size(word, text, 32_768).map(|_| ()),
        None => Err(word.wrong(format!("unknown parameter {:?} of limit_conn_zone", word.text))),
    }
}

/// Checks the number of `limit_conn`.
fn conn(directive: &Directive) -> Result<(), Failure> {
    let word = &directive.words[1];
    match nginx_number(&word.text) {
        Some(1..65_536) => Ok(()),
        _ => Err(word.wrong(format!("{:?} is not a number of connections: write 1 to 65535", word.text))),
    }
}

/// Checks the lines of `tatcell_rates`.
fn rates(directive: &Directive) -> Result<(), Failure> {
    let (source, variable) = (&directive.words[0], &directive.words[1]);
    expression(source)?;
    if variable.text.len() < 2 || !variable.text.starts_with('$') {
        return Err(variable.wrong(format!("{:?} is not a variable: write a $ before it", variable.text)));
    }
    let mut seen = HashSet::new();
    for line in &directive.block {
        let Some(first) = line.words.first() else {
            return Err(line
                .name
                .wrong("write a value, a rate and maybe a burst, as in gold 100r/s burst=200"));
        };
        let text = line.words.iter().map(|word| &*word.text).collect::<Vec<_>>().join(" ");
        if text != "unlimited" {
            module_rate(first, &text)?;
        }
        if !line.name.text.starts_with('~') && !seen.insert(line.name.text.to_lowercase()) {
            return Err(line.name.wrong(format!("{:?} is here twice: remove one", line.name.text)));
        }
    }
    Ok(())
}

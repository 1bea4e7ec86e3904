//! The zones of a configuration of nginx: `limit_req_zone` and `tatcell_zone`.
//!
//! nginx takes `limit_req`'s rate as whole thousandths of a request a second.

use tatcell::{LimitSpec, TableOptions};

use super::blocks::{Directive, Word};
use super::meaning::{rate, Checked, Kind};
use crate::failure::Failure;
use crate::size::too_large;
use crate::units::HZ;
use crate::words::{bytes, percent, plural};

/// Units and nanoseconds.
type Rate = (u64, u64);

/// How far the clocks of workers may differ in a zone that does not say it, in nanoseconds.
const SKEW: u64 = 60 * HZ;
/// The longest text of a rate of the module.
const RATE: usize = 47;
/// About how many bytes a key takes in a zone of `limit_req`.
const STATE: u64 = 128;

#[derive(Clone, Copy, PartialEq, Eq)]
/// What limits.
pub enum Module {
    LimitReq,
    Tatcell,
}

impl Module {
    /// Returns the name of its directive.
    pub fn name(self) -> &'static str {
        match self {
            Module::LimitReq => "limit_req",
            Module::Tatcell => "tatcell",
        }
    }
}

/// A zone.
pub struct Zone {
    /// What limits by it.
    pub module: Module,
    /// Its name.
    pub name: String,
    /// What it counts by.
    pub key: String,
    /// The directive.
    pub word: Word,
    /// Units and nanoseconds.
    pub rate: (u64, u64),
    /// What is written, if the rate that is kept differs.
    pub written: Option<(u64, u64)>,
    /// Whether it counts bytes.
    pub counts_bytes: bool,
    /// Its burst, if a use has none.
    pub burst: u64,
    /// Its size.
    pub bytes: u64,
    /// Whether keys have rates of their own.
    pub by: bool,
    /// Bits that tell keys apart.
    pub tag_bits: u32,
    /// How far clocks may differ, in nanoseconds.
    pub skew: Option<u64>,
    /// Whether a directive uses it.
    pub used: bool,
    /// The longest that any use asks for.
    pub longest: Option<LimitSpec>,
}

/// Divides a word into the name of a parameter with its `=`, and the value; a word without `=` is a name alone.
pub fn parameter(word: &Word) -> (&str, &str) {
    word.text.split_at(word.text.find('=').map_or(word.text.len(), |at| at + 1))
}

/// Reads a number as nginx does: digits alone.
pub fn nginx_number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse::<u64>().ok().filter(|number| digits && *number <= i64::MAX as u64)
}

/// Reads a number of a parameter, from 1. That of `limit_req` may be any that nginx has.
pub fn number(word: &Word, text: &str, module: Module) -> Result<u64, Failure> {
    let most = if module == Module::LimitReq { i64::MAX as u64 } else { (1 << 31) - 1 };
    nginx_number(text).filter(|number| (1..=most).contains(number)).ok_or_else(|| {
        word.wrong_at(word.text.len() - text.len(), format!("{text:?} is not a number from 1 to {most}"))
    })
}

/// The name and the size of `zone=NAME:SIZE`, of at least `least` bytes.
pub fn zone_size(word: &Word, text: &str, least: u64) -> Result<(String, u64), Failure> {
    let fail = || word.wrong(format!("{:?}: write zone=NAME:SIZE, as in zone=clients:10m", word.text));
    let (name, size) = text.split_once(':').ok_or_else(fail)?;
    let (digits, unit) = match size.as_bytes().last() {
        Some(b'k' | b'K') => (&size[..size.len() - 1], 1 << 10),
        Some(b'm' | b'M') => (&size[..size.len() - 1], 1 << 20),
        _ => (size, 1),
    };
    let count = nginx_number(digits).and_then(|count| count.checked_mul(unit));
    match (name, count) {
        ("", _) | (_, None) => Err(fail()),
        (_, Some(bytes)) if bytes < least => {
            Err(word.wrong(format!("zone {name:?} is too small: give it {}k", least >> 10)))
        }
        (_, Some(bytes)) => Ok((name.into(), bytes)),
    }
}

/// Does the same for a zone of this module.
fn named(word: &Word, text: &str, module: Module) -> Result<(String, u64), Failure> {
    let least = if module == Module::LimitReq { 32_768 } else { 98_304 };
    let (name, bytes) = zone_size(word, text, least)?;
    let fits = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    match module == Module::LimitReq || name.chars().all(fits) {
        true => Ok((name, bytes)),
        false => Err(word.wrong_at(5, format!("zone name {name:?}: write letters, digits, _ - and ."))),
    }
}

/// A rate of `limit_req`: what is kept, and what is written. nginx keeps whole thousandths of a request a second.
fn thousandths(word: &Word, text: &str) -> Result<(Rate, Rate), Failure> {
    let (digits, seconds) = match text.strip_suffix("r/m") {
        Some(digits) => (digits, 60),
        None => (text.strip_suffix("r/s").unwrap_or(text), 1),
    };
    // nginx counts thousandths.
    let written = nginx_number(digits).filter(|units| (1..=i64::MAX as u64 / 1000).contains(units));
    let Some(units) = written else {
        let what = format!(
            "{text:?} is no rate of limit_req: write a whole number and r/s or r/m, as in 30r/m for 0.5"
        );
        return Err(word.wrong_at(5, what));
    };
    Ok(((units * 1000 / seconds, 1000 * HZ), (units, seconds * HZ)))
}

/// A rate of the module, in which k, m and g before a B are powers of 1024.
pub fn module_rate(word: &Word, text: &str) -> Result<(LimitSpec, bool, bool), Failure> {
    if text.len() > RATE {
        return Err(word.wrong(format!("a rate has at most {RATE} bytes")));
    }
    let mut plain = String::new();
    let mut at = Vec::new();
    for (byte, c) in text.char_indices() {
        let is_size = matches!(c, 'k' | 'm' | 'g') && text[byte + 1..].starts_with('B');
        at.extend(std::iter::repeat_n(byte, 1 + usize::from(is_size)));
        plain.push(if is_size { c.to_ascii_uppercase() } else { c });
        plain.extend(is_size.then_some('i'));
    }
    let spec = LimitSpec::parse(&plain, HZ).map_err(|error| {
        let byte = at.get(error.position).copied().unwrap_or(text.len());
        let why = error.to_string();
        let why = why.split_once(": ").map_or(&*why, |(_, why)| why);
        word.wrong_at(word.text.len() - text.len() + byte, why)
    })?;
    let counts_bytes = text.split('/').next().is_some_and(|amount| amount.contains('B'));
    Ok((spec, text.contains("burst"), counts_bytes))
}

/// Reads a time as nginx does, in nanoseconds: numbers with units, the largest first, as in `1h30m`. A number without a
/// unit is seconds, and ends the time. nginx also has years, months and weeks, which are above any time that we read.
pub fn nginx_time(text: &str) -> Option<u64> {
    const UNITS: [(&str, u64); 5] =
        [("d", 86_400 * HZ), ("h", 3_600 * HZ), ("m", 60 * HZ), ("s", HZ), ("ms", HZ / 1000)];
    let (mut rest, mut all, mut units) = (text, 0u64, &UNITS[..]);
    loop {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, after) = rest.split_at(digits);
        let letters = after.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (unit, after) = after.split_at(letters);
        let unit = if unit.is_empty() && after.is_empty() { "s" } else { unit };
        let at = units.iter().position(|(name, _)| *name == unit)?;
        all = number.parse::<u64>().ok()?.checked_mul(units[at].1)?.checked_add(all)?;
        (rest, units) = (after, &units[at + 1..]);
        if rest.is_empty() {
            return Some(all);
        }
    }
}

/// Reads a directive that makes a zone.
pub fn zone(directive: &Directive, module: Module) -> Result<Zone, Failure> {
    let fail = |what: &str| directive.name.wrong(format!("{} {what}", directive.name.text));
    let (key, words) = directive.words.split_first().ok_or_else(|| fail("has no key: name a variable"))?;
    let mut zone = Zone {
        module,
        name: String::new(),
        key: key.text.replace(['{', '}'], "").replace("$binary_remote_addr", "$remote_addr"),
        word: directive.name.clone(),
        rate: (1, HZ),
        written: None,
        counts_bytes: false,
        burst: 1,
        bytes: 0,
        by: false,
        tag_bits: 20,
        skew: None,
        used: false,
        longest: None,
    };
    let mut has_rate = module == Module::LimitReq;
    let mut places: Vec<&Word> = Vec::new();
    let unknown =
        |word: &Word| word.wrong(format!("unknown parameter {:?} of {}", word.text, directive.name.text));
    for word in words {
        let (name, value) = parameter(word);
        match (name.trim_end_matches('='), module) {
            _ if !name.ends_with('=') => return Err(unknown(word)),
            ("zone", _) => (zone.name, zone.bytes) = named(word, value, module)?,
            ("rate", Module::LimitReq) => {
                let (kept, written) = thousandths(word, value)?;
                (zone.rate, zone.written) = (kept, Some(written));
            }
            ("rate", Module::Tatcell) => {
                let (spec, bursts, counts_bytes) = module_rate(word, value)?;
                let (units, period, burst) = spec.numbers();
                (zone.rate, zone.counts_bytes, has_rate) = ((units, period), counts_bytes, true);
                zone.burst = if bursts { burst } else { zone.burst };
            }
            ("burst", Module::Tatcell) => zone.burst = number(word, value, module)?,
            ("tag_bits", Module::Tatcell) => {
                zone.tag_bits = u32::try_from(number(word, value, module)?).unwrap_or(u32::MAX);
                if !(12..=24).contains(&zone.tag_bits) {
                    return Err(word.wrong("write 12 to 24 tag bits"));
                }
            }
            ("skew", Module::Tatcell) => {
                let time = nginx_time(value).filter(|time| (1..=86_400 * HZ).contains(time));
                let fail =
                    || word.wrong_at(5, format!("{value:?}: write a time up to a day, as in skew=60s"));
                zone.skew = Some(time.ok_or_else(fail)?);
            }
            ("rate_by", Module::Tatcell) if value.len() > 1 && value.starts_with('$') => zone.by = true,
            ("rate_by", Module::Tatcell) => {
                return Err(word.wrong_at(8, format!("{value:?} is no variable, as in rate_by=$plan_rate")))
            }
            // Where others look: they change no limit.
            ("seed", Module::Tatcell) => {}
            ("table" | "counters", Module::Tatcell) if value.len() > 1 && value.starts_with('/') => {
                if let Some(first) = places.iter().find(|first: &&&Word| parameter(first).1 == value) {
                    let what = format!("{} has this name, too: give one of them another", first.text);
                    return Err(word.wrong(what));
                }
                places.push(word);
            }
            ("table" | "counters", Module::Tatcell) => {
                let what =
                    format!("{value:?} is no name of shared memory and no path: it begins with a slash");
                return Err(word.wrong_at(name.len(), what));
            }
            ("policy", Module::Tatcell) if ["admit", "inherit", "deny", "sampled"].contains(&value) => {}
            _ => return Err(unknown(word)),
        }
    }
    match (zone.name.is_empty(), has_rate) {
        (true, _) => Err(fail("has no zone=: add it, as in zone=clients:1m")),
        (_, false) => Err(fail("has no rate=: add it, as in rate=10r/s")),
        _ => Ok(zone),
    }
}

impl Zone {
    /// Takes the limit of a use into account.
    pub fn widen(&mut self, burst: u64, at_once: u64) {
        let spec = LimitSpec::new(self.rate.0, self.rate.1, at_once);
        let wait = u128::from(burst - at_once) * u128::from(self.rate.1) / u128::from(self.rate.0);
        let spec = spec.max_delay(u64::try_from(wait).unwrap_or(u64::MAX));
        let longest =
            |spec: &LimitSpec| TableOptions::new(*spec).skew(0).fit().map_or(u64::MAX, |fit| fit.needed);
        if self.longest.as_ref().is_none_or(|known| longest(known) < longest(&spec)) {
            self.longest = Some(spec);
        }
    }

    /// Says what there is to say of the zone.
    pub fn judge(&self, out: &mut Checked) {
        let place = self.word.place();
        if !self.used {
            out.say(Kind::Note, &*place, format!("zone {:?} is used nowhere: it limits nothing", self.name));
        }
        let of_client = ["$http_", "$arg_", "$cookie_"].iter().find(|name| self.key.contains(*name));
        if let Some(name) = of_client {
            let what = format!(
                "the key of zone {:?} has {name}...: a client can send another one with each request, \
                and then has a full burst each time; add $binary_remote_addr to the key",
                self.name
            );
            out.say(Kind::Note, &*place, what);
        }
        match self.module {
            Module::LimitReq => self.judge_limit_req(&place, out),
            Module::Tatcell => self.judge_tatcell(&place, out),
        }
    }

    fn judge_limit_req(&self, place: &str, out: &mut Checked) {
        if let Some((units, period)) = self.written {
            let (kept, written) = (self.rate.0 as f64 / 1000.0, units as f64 / period as f64 * HZ as f64);
            let less = 1.0 - kept / written;
            if less > 0.001 {
                let what = format!(
                    "nginx keeps whole thousandths of a request a second, so zone {:?} gets {} \
                    instead of {}: {} less; tatcell_zone keeps it",
                    self.name,
                    rate(self.rate.0, self.rate.1),
                    rate(units, period),
                    percent(less)
                );
                out.say(Kind::NotKept, place, what);
            }
        }
        let what = format!(
            "zone {:?} of {} has room for about {}; when it is full, nginx forgets the debts of others",
            self.name,
            bytes(self.bytes),
            plural(self.bytes / STATE, "key")
        );
        out.say(Kind::Note, place, what);
    }

    fn judge_tatcell(&self, place: &str, out: &mut Checked) {
        let fastest = LimitSpec::new(self.rate.0, self.rate.1, 1);
        let own = LimitSpec::new(self.rate.0, self.rate.1, self.burst);
        let options = TableOptions::new(fastest).slowest(self.longest.unwrap_or(own)).tag_bits(self.tag_bits);
        let tried = match self.skew {
            Some(skew) => options.skew(skew),
            None => options.skew(SKEW),
        };
        let mut fit = tried.fit();
        if self.skew.is_none() && fit.is_ok_and(|fit| fit.culprit.is_some()) {
            fit = options.fit();
        }
        match fit {
            Err(error) => out.say(Kind::NotKept, place, format!("zone {:?}: {error}", self.name)),
            Ok(fit) => {
                if let Some(what) = too_large(&fit) {
                    out.say(Kind::NotKept, place, format!("zone {:?}: {what}", self.name));
                }
            }
        }
        let what = format!(
            "zone {:?} of {} has room for {} in debt; keep it half empty",
            self.name,
            bytes(self.bytes),
            plural(self.bytes / 8, "key")
        );
        out.say(Kind::Note, place, what);
    }
}

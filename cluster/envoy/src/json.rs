//! The page `/json`: the rules in force, and what one key has left.
//!
//! `/json` lists every limit. `/json?domain=edge&user=alice` shows what a request with the domain `edge` and the entry
//! `("user", "alice")` would find; several entries follow one another. Looking charges nothing.

use std::fmt::Write;

use crate::api::{Descriptor, Entry, RateLimitResponse, Unit};
use crate::rules::{Pass, Rule, Rules};

/// Returns the list of the limits.
pub(crate) fn rules(rules: &Rules) -> String {
    let mut lines = Vec::new();
    for (domain, level) in &rules.domains {
        let mut list = Vec::new();
        level.list("", &mut list);
        lines.extend(list.iter().map(|(path, rule)| line(domain, path, rule)));
    }
    lines.sort();
    format!("[\n{}\n]\n", lines.join(",\n"))
}

fn line(domain: &str, path: &str, rule: &Rule) -> String {
    let mut text = format!("{{\"domain\": {}, \"rule\": {}", quoted(domain), quoted(path));
    match rule.limit.as_ref().map(|limit| &limit.pass) {
        Some(Pass::Some(requests, unit, _)) => limit(&mut text, *requests, *unit),
        Some(Pass::None(unit)) => limit(&mut text, 0, *unit),
        _ => text.push_str(", \"unlimited\": true"),
    }
    for (name, yes) in [("shadow_mode", rule.shadow), ("quota_mode", rule.quota)] {
        if yes {
            let _ = write!(text, ", \"{name}\": true");
        }
    }
    text + "}"
}

fn limit(text: &mut String, requests: u32, unit: Unit) {
    let _ = write!(text, ", \"unit\": \"{}\", \"requests_per_unit\": {requests}", unit.name());
}

/// Parses the query of a key: its domain and its entries.
pub(crate) fn key(query: &str) -> Option<(String, Descriptor)> {
    let mut pairs = query.split('&').map(|pair| {
        let (key, value) = pair.split_once('=')?;
        Some((decoded(key)?, decoded(value)?))
    });
    let (_, domain) = pairs.next()?.filter(|(key, _)| key == "domain")?;
    let entries = pairs.map(|pair| pair.map(|(key, value)| Entry { key, value }));
    let entries: Vec<Entry> = entries.collect::<Option<_>>()?;
    Some((domain, Descriptor { entries, hits_addend: Some(0), ..Descriptor::default() }))
}

/// Returns what a key has left.
pub(crate) fn state(response: &RateLimitResponse) -> String {
    let Some(status) = response.statuses.first() else { return "{}\n".into() };
    let Some(current) = &status.current_limit else { return "{\"limit\": null}\n".into() };
    let mut text = format!("{{\"remaining\": {}", status.limit_remaining);
    limit(&mut text, current.requests_per_unit, current.unit());
    if let Some(until) = &status.duration_until_reset {
        let _ = write!(text, ", \"full_in_seconds\": {}.{:09}", until.seconds, until.nanos);
    }
    text + "}\n"
}

/// Returns a text of JSON.
fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c < ' ' => drop(write!(out, "\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Returns the page of an error.
pub fn error(what: &str) -> String {
    format!("{{\"error\": {}}}\n", quoted(what))
}

/// Returns the page of a request that was not decided: it is wrong, or it may be sent again.
pub fn failed(status: &tonic::Status) -> tatcell_door::pages::Own {
    let line = match status.code() {
        tonic::Code::InvalidArgument => "400 Bad Request",
        _ => "503 Service Unavailable",
    };
    (line, error(status.message()))
}

/// Decodes `%41` and `+`.
fn decoded(text: &str) -> Option<String> {
    let (mut out, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((byte, more)) = rest.split_first() {
        rest = more;
        out.push(match byte {
            b'+' => b' ',
            b'%' => {
                let (digits, more) = rest.split_at_checked(2)?;
                rest = more;
                // The parser would take a sign.
                if !digits.iter().all(u8::is_ascii_hexdigit) {
                    return None;
                }
                u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?
            }
            byte => *byte,
        });
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_wrong_request_is_a_bad_one() {
        let busy = tonic::Status::unavailable("too many requests at once; nothing was decided");
        let page = "{\"error\": \"too many requests at once; nothing was decided\"}\n";
        assert_eq!(failed(&busy), ("503 Service Unavailable", page.to_owned()));
        let wrong = tonic::Status::invalid_argument("the domain is empty");
        assert_eq!(failed(&wrong), ("400 Bad Request", "{\"error\": \"the domain is empty\"}\n".to_owned()));
    }

    #[test]
    fn texts_are_quoted_and_queries_decoded() {
        assert_eq!(quoted("a\"b\\\n\u{e9}"), "\"a\\\"b\\\\\\u000a\u{e9}\"");
        let (domain, descriptor) = key("domain=a%2Fb&user=x+y&z=%c3%a9").expect("a key");
        assert_eq!((domain.as_str(), descriptor.entries.len()), ("a/b", 2));
        assert_eq!((&*descriptor.entries[0].value, &*descriptor.entries[1].value), ("x y", "\u{e9}"));
        for wrong in
            ["", "user=x", "domain", "domain=a&x", "domain=%4", "domain=%zz", "domain=%+f", "domain=%ff"]
        {
            assert!(key(wrong).is_none(), "{wrong}");
        }
    }
}

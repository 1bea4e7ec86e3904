//! What a limit counts by: an address or its prefix, a column, a path, or several of these.
//!
//! ```text
//! key  = part { "+" part }
//! part = NAME | NAME "/" v4bits [ "," v6bits ] | "path" ":" segments | "path" "=" pattern
//! ```
//!
//! `address` alone is the whole address. A name with lengths is an address too: `http_x_forwarded_for/24,56`. `path` is
//! the path without its query; `path:2` its first two segments; `path=/user/*/posts` only paths of that form, as one
//! key.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use memchr::memchr;
use tatcell::Address;

use crate::words::{escaped, unescaped};

/// A part of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// A prefix of an address.
    Address {
        /// Its length in IPv4.
        v4: u8,
        /// Its length in IPv6.
        v6: u8,
    },
    /// A field as it is.
    Text,
    /// So many segments of a path.
    Path {
        /// As many; all if it is the largest number.
        segments: usize,
    },
    /// Paths of one form.
    Pattern(Vec<String>),
}

/// How the key of a record is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySpec {
    parts: Vec<Part>,
    fields: Vec<String>,
}

/// Why a record has no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoKey {
    /// Its path has not the form that the key asks for.
    OtherPath,
    /// The value with this index is no address.
    NoAddress(usize),
}

/// Reads the lengths of prefixes: that of IPv4, and after a comma that of IPv6.
pub fn lengths(text: &str) -> Result<(u8, u8), String> {
    let (v4, v6) = text.split_once(',').unwrap_or((text, "128"));
    let bits = |text: &str, most: u8| match text.parse() {
        Ok(bits) if bits <= most => Ok(bits),
        _ => Err(format!("prefix length {text:?}: use 0 to {most}, as in address/24,56")),
    };
    Ok((bits(v4, 32)?, bits(v6, 128)?))
}

impl KeySpec {
    /// Reads the text of a key.
    pub fn parse(text: &str) -> Result<KeySpec, String> {
        let mut spec = KeySpec { parts: Vec::new(), fields: Vec::new() };
        for part in text.split('+') {
            let (field, part) = if let Some(pattern) = part.strip_prefix("path=") {
                if !pattern.starts_with('/') {
                    return Err(format!(
                        "path pattern {pattern:?}: it begins with a slash, as in path=/user/*/posts"
                    ));
                }
                ("path", Part::Pattern(pattern.split('/').skip(1).map(str::to_string).collect()))
            } else if let Some(count) = part.strip_prefix("path:") {
                let segments = count.parse().ok().filter(|count| *count > 0);
                let segments =
                    segments.ok_or(format!("path:{count}: use the number of segments, as in path:2"))?;
                ("path", Part::Path { segments })
            } else if part == "path" {
                ("path", Part::Path { segments: usize::MAX })
            } else if let Some((name, bits)) = part.split_once('/') {
                let (v4, v6) = lengths(bits)?;
                (name, Part::Address { v4, v6 })
            } else if part == "address" || part == "destination" {
                (part, Part::Address { v4: 32, v6: 128 })
            } else {
                (part, Part::Text)
            };
            if field.is_empty() {
                return Err(format!(
                    "key {text:?} has an empty part; use names with + between, as in address+path:1"
                ));
            }
            spec.fields.push(field.to_string());
            spec.parts.push(part);
        }
        Ok(spec)
    }

    /// Returns the same key with another prefix of its address.
    pub fn with_lengths(&self, (v4, v6): (u8, u8)) -> Result<KeySpec, String> {
        let mut wide = self.clone();
        let mut found = wide.parts.iter_mut().filter(|part| matches!(part, Part::Address { .. }));
        match (found.next(), found.next()) {
            (Some(part), None) => *part = Part::Address { v4, v6 },
            _ => {
                return Err("a limit for prefixes needs a key with one address, such as --key address".into())
            }
        }
        Ok(wide)
    }

    /// Returns whether the address of a record is one of IPv4. `binary`: addresses are bytes, not text.
    pub fn is_v4(&self, values: &[Vec<u8>], binary: bool) -> bool {
        let mut parts = self.parts.iter().zip(values);
        let value = parts.find_map(|(part, value)| matches!(part, Part::Address { .. }).then_some(value));
        let address = value.and_then(|value| if binary { Address::new(value) } else { address(value) });
        address.is_some_and(|address| address.is_v4())
    }

    /// Returns its parts, one for each field.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Returns the lengths of the prefix, if an address is all of the key.
    pub fn prefix(&self) -> Option<(u8, u8)> {
        match self.parts[..] {
            [Part::Address { v4, v6 }] => Some((v4, v6)),
            _ => None,
        }
    }

    /// Returns its parts as [`parse`](Self::parse) reads them.
    pub fn words(&self) -> Vec<String> {
        let word = |(field, part): (&String, &Part)| match part {
            Part::Address { v4: 32, v6: 128 } if field == "address" || field == "destination" => {
                field.clone()
            }
            Part::Address { v4, v6: 128 } => format!("{field}/{v4}"),
            Part::Address { v4, v6 } => format!("{field}/{v4},{v6}"),
            Part::Text | Part::Path { segments: usize::MAX } => field.clone(),
            Part::Path { segments } => format!("{field}:{segments}"),
            Part::Pattern(pattern) => format!("{field}=/{}", pattern.join("/")),
        };
        self.fields.iter().zip(&self.parts).map(word).collect()
    }

    /// Returns the fields that it needs of each record.
    pub fn fields(&self) -> &[String] {
        &self.fields
    }

    /// Writes the key of a record. `binary`: addresses are bytes, not text.
    pub fn write(&self, values: &[Vec<u8>], binary: bool, key: &mut Vec<u8>) -> Result<(), NoKey> {
        key.clear();
        let alone = self.parts.len() == 1;
        for (index, (part, value)) in self.parts.iter().zip(values).enumerate() {
            let text: &[u8] = match part {
                Part::Address { v4, v6 } => {
                    let address = if binary { Address::new(value) } else { address(value) };
                    let address = address.ok_or(NoKey::NoAddress(index))?;
                    let prefix = address.prefix_of(*v4, *v6).ok_or(NoKey::NoAddress(index))?;
                    key.extend_from_slice(prefix.as_ref());
                    continue;
                }
                Part::Text => value,
                Part::Path { segments } => cut(path(value), *segments),
                Part::Pattern(pattern) => {
                    if !fits(path(value), pattern) {
                        return Err(NoKey::OtherPath);
                    }
                    // One key for all paths of this form.
                    b""
                }
            };
            if !alone {
                // A length, so that the parts of two keys cannot run into each other.
                key.extend_from_slice(&(text.len() as u32).to_le_bytes());
            }
            key.extend_from_slice(text);
        }
        Ok(())
    }

    /// Shows a key as text: its parts, with a space between. Bytes that are not UTF-8 are shown as `\xff`, and a space
    /// in one of several parts as `\x20`.
    pub fn show(&self, key: &[u8]) -> String {
        let space = if self.parts.len() == 1 { " " } else { "\\x20" };
        let shown = |text: &Vec<u8>| escaped(text).replace(' ', space);
        self.texts(key).iter().map(shown).collect::<Vec<_>>().join(" ")
    }

    /// Returns the parts of a key: addresses as text, and other parts as they were.
    pub fn texts(&self, key: &[u8]) -> Vec<Vec<u8>> {
        let mut rest = key;
        let mut texts = Vec::new();
        let alone = self.parts.len() == 1;
        for part in &self.parts {
            if let Part::Address { .. } = part {
                let [family, bits, bytes @ ..] = rest else { break };
                let count = usize::from(*bits).div_ceil(8);
                let (bytes, after) = bytes.split_at(count.min(bytes.len()));
                rest = after;
                let (address, whole) = if *family == 4 {
                    let mut all = [0; 4];
                    all[..bytes.len()].copy_from_slice(bytes);
                    (IpAddr::V4(Ipv4Addr::from(all)), 32)
                } else {
                    let mut all = [0; 16];
                    all[..bytes.len()].copy_from_slice(bytes);
                    (IpAddr::V6(Ipv6Addr::from(all)), 128)
                };
                let text = if *bits == whole { address.to_string() } else { format!("{address}/{bits}") };
                texts.push(text.into_bytes());
                continue;
            }
            let text = if alone {
                rest
            } else {
                let Some((length, after)) = rest.split_first_chunk::<4>() else { break };
                let (text, after) = after.split_at((u32::from_le_bytes(*length) as usize).min(after.len()));
                rest = after;
                text
            };
            texts.push(match part {
                Part::Pattern(pattern) => format!("/{}", pattern.join("/")).into_bytes(),
                _ => text.to_vec(),
            });
        }
        texts
    }

    /// Reads a key that a person wrote, as [`show`](Self::show) writes it.
    pub fn read(&self, text: &str) -> Result<Vec<u8>, String> {
        let mut values: Vec<Vec<u8>> = match self.parts.len() {
            1 => vec![text.as_bytes().to_vec()],
            _ => text.split(' ').map(|word| word.as_bytes().to_vec()).collect(),
        };
        if values.len() != self.parts.len() {
            return Err(format!(
                "key {text:?} has {} parts, the key of this plan {}",
                values.len(),
                self.parts.len()
            ));
        }
        let backslash = || format!("key {text:?}: a backslash is written as two, and \\xff is a byte");
        for (value, part) in values.iter_mut().zip(&self.parts) {
            match (part, memchr(b'/', value)) {
                // A network may be written with its length.
                (Part::Address { .. }, Some(slash)) => value.truncate(slash),
                (Part::Address { .. }, None) => {}
                _ => *value = unescaped(value).ok_or_else(backslash)?,
            }
        }
        let mut key = Vec::new();
        self.write(&values, false, &mut key).map_err(|_| format!("key {text:?} is none of this plan"))?;
        Ok(key)
    }
}

/// Reads an address as logs have it: alone, with a port (`192.0.2.1:80`, `[2001:db8::1]:80`, `192.0.2.1#53`) or a zone
/// (`fe80::1%eth0`), or the last of a list, which is the one that the nearest proxy has seen. A zone is left out.
pub fn address(text: &[u8]) -> Option<Address> {
    if let Some(v4) = v4(text) {
        return Some(Address::from(v4));
    }
    // Those before the last one may be any bytes.
    let last = text.rsplit(|byte| *byte == b',').next()?;
    let last = std::str::from_utf8(last).ok()?.trim();
    let alone = |text: &str| match text.split_once('%') {
        Some((address, _)) => address.parse::<Ipv6Addr>().ok().map(|address| Address::from(address.octets())),
        None => text.parse::<IpAddr>().ok().map(Address::from),
    };
    alone(last).or_else(|| match last.strip_prefix('[') {
        Some(rest) => alone(rest.split(']').next()?),
        None => {
            let at = last.rfind('#').or_else(|| last.rfind(':'))?;
            alone(&last[..at])
        }
    })
}

/// Four numbers of at most three digits: most addresses of most logs.
fn v4(text: &[u8]) -> Option<[u8; 4]> {
    if text.len() > 15 {
        return None;
    }
    let (mut bytes, mut part, mut number, mut digits) = ([0; 4], 0, 0u32, 0);
    for byte in text {
        match byte {
            b'0'..=b'9' => {
                number = number * 10 + u32::from(byte - b'0');
                digits += 1;
            }
            b'.' if digits > 0 && part < 3 => {
                bytes[part] = u8::try_from(number).ok()?;
                (part, number, digits) = (part + 1, 0, 0);
            }
            _ => return None,
        }
        if digits > 3 {
            return None;
        }
    }
    bytes[part] = u8::try_from(number).ok()?;
    (part == 3 && digits > 0).then_some(bytes)
}

/// The path of a request's target: without its query and its fragment.
fn path(target: &[u8]) -> &[u8] {
    let end = memchr::memchr2(b'?', b'#', target).unwrap_or(target.len());
    &target[..end]
}

/// The first segments of a path.
fn cut(path: &[u8], segments: usize) -> &[u8] {
    if segments == usize::MAX {
        return path;
    }
    let slashes = memchr::memchr_iter(b'/', path).skip(usize::from(path.starts_with(b"/")));
    let end = slashes.into_iter().nth(segments - 1).unwrap_or(path.len());
    &path[..end]
}

/// Whether each segment is the pattern's, where `*` is any one and a last `**` any rest.
fn fits(path: &[u8], pattern: &[String]) -> bool {
    let mut segments = path.strip_prefix(b"/").unwrap_or(path).split(|byte| *byte == b'/');
    for (index, want) in pattern.iter().enumerate() {
        if want == "**" && index + 1 == pattern.len() {
            return true;
        }
        match segments.next() {
            Some(segment) if want == "*" || segment == want.as_bytes() => {}
            _ => return false,
        }
    }
    segments.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(spec: &str, values: &[&str]) -> Result<String, NoKey> {
        let spec = KeySpec::parse(spec).expect("a key");
        let values: Vec<_> = values.iter().map(|value| value.as_bytes().to_vec()).collect();
        let mut key = Vec::new();
        spec.write(&values, false, &mut key)?;
        assert_eq!(KeySpec::parse(&spec.words().join("+")).as_ref(), Ok(&spec));
        let shown = spec.show(&key);
        assert_eq!(spec.read(&shown).as_deref(), Ok(&key[..]), "{shown} is read back");
        Ok(shown)
    }

    #[test]
    fn each_kind_of_key_is_made_and_shown() {
        for (spec, values, want) in [
            ("address", &["192.0.2.7"][..], "192.0.2.7"),
            ("address", &["::ffff:192.0.2.7"], "192.0.2.7"),
            ("address", &["192.0.2.7:4711"], "192.0.2.7"),
            ("address", &["192.0.2.7#4711"], "192.0.2.7"),
            ("address", &["[2001:db8::7]:4711"], "2001:db8::7"),
            ("address", &["10.0.0.1, 2001:db8::7"], "2001:db8::7"),
            ("address", &["fe80::7%eth0"], "fe80::7"),
            ("address", &["[fe80::7%eth0]:4711"], "fe80::7"),
            ("address/24,56", &["192.0.2.7"], "192.0.2.0/24"),
            ("address/24,56", &["2001:db8:1:2ff::7"], "2001:db8:1:200::/56"),
            ("address/0", &["192.0.2.7"], "0.0.0.0/0"),
            ("user", &["ann"], "ann"),
            ("path", &["/a/b?c=d"], "/a/b"),
            ("path:1", &["/a/b?c=d"], "/a"),
            ("path:2", &["/a/b/"], "/a/b"),
            ("path:9", &["/a/b"], "/a/b"),
            ("address/24+path:1", &["192.0.2.7", "/a/b"], "192.0.2.0/24 /a"),
            ("user+host", &["ann", "example.com"], "ann example.com"),
            ("user", &["ann b"], "ann b"),
            ("user+address", &["ann b ", "192.0.2.7"], "ann\\x20b\\x20 192.0.2.7"),
            ("path=/a b/*+user", &["/a b/c", "ann"], "/a\\x20b/* ann"),
        ] {
            assert_eq!(key(spec, values).as_deref(), Ok(want), "{spec} {values:?}");
        }
        let pattern = KeySpec::parse("path=/user/*/posts").expect("a key");
        let mut bytes = Vec::new();
        assert_eq!(pattern.write(&[b"/user/7/posts?x".to_vec()], false, &mut bytes), Ok(()));
        assert_eq!(pattern.show(&bytes), "/user/*/posts");
        for other in ["/user/7", "/user/7/posts/1", "/users/7/posts"] {
            assert_eq!(pattern.write(&[other.into()], false, &mut bytes), Err(NoKey::OtherPath), "{other}");
        }
        let rest = KeySpec::parse("path=/user/**").expect("a key");
        assert_eq!(rest.write(&[b"/user/7/posts".to_vec()], false, &mut bytes), Ok(()));
    }

    #[test]
    fn bytes_that_are_no_text_stay_and_look_different() {
        let spec = KeySpec::parse("user+address").expect("a key");
        let mut key = Vec::new();
        let mut shown = |user: &[u8], address: &[u8]| {
            spec.write(&[user.to_vec(), address.to_vec()], false, &mut key).expect("a key");
            assert_eq!(spec.texts(&key)[0], user);
            assert_eq!(spec.read(&spec.show(&key)).as_ref(), Ok(&key), "it is read back");
            spec.show(&key)
        };
        // The address is that of the nearest proxy, whatever the client has sent before.
        assert_eq!(shown(b"a\xff\\", b"\xff\xfe, 192.0.2.7"), "a\\xff\\\\ 192.0.2.7");
        assert_eq!(shown(b"a\xfe\n", b"192.0.2.7"), "a\\xfe\\n 192.0.2.7");
        assert_eq!(shown("\u{fffd}é".as_bytes(), b"192.0.2.7"), "\u{fffd}é 192.0.2.7");
        assert_eq!(shown("O'\"\0\t\u{7f}".as_bytes(), b"192.0.2.7"), "O\\'\\\"\\0\\t\\u{7f} 192.0.2.7");
        for bad in ["a\\", "\\q", "\\x1", "\\xg0", "\\x+f", "\\u{+41}", "\\u{110000}", "\\u0041"] {
            let why = spec.read(&format!("{bad} 192.0.2.7")).expect_err(bad);
            assert!(why.contains("backslash"), "{why}");
        }
    }

    #[test]
    fn parts_do_not_run_into_each_other() {
        let spec = KeySpec::parse("a+b").expect("a key");
        let (mut one, mut two) = (Vec::new(), Vec::new());
        spec.write(&[b"xy".to_vec(), b"z".to_vec()], false, &mut one).expect("a key");
        spec.write(&[b"x".to_vec(), b"yz".to_vec()], false, &mut two).expect("a key");
        assert_ne!(one, two);
    }

    #[test]
    fn what_is_no_address_has_no_key() {
        for text in
            ["", "-", "192.0.2", "192.0.2.256", "192.0.2.1.1", "unix:", "example.com", "1..2.3", "0192.0.2.1"]
        {
            assert_eq!(key("address", &[text]), Err(NoKey::NoAddress(0)), "{text}");
        }
    }

    #[test]
    fn a_bad_key_is_refused_with_its_reason() {
        for (text, want) in [
            ("address/33", "prefix length \"33\": use 0 to 32"),
            ("address/24,129", "prefix length \"129\": use 0 to 128"),
            ("path:0", "path:0: use the number of segments"),
            ("path=a", "path pattern \"a\": it begins with a slash"),
            ("a++b", "key \"a++b\" has an empty part"),
        ] {
            let error = KeySpec::parse(text).expect_err(text);
            assert!(error.starts_with(want), "{error}");
        }
    }
}

//! A JSON object a line: JSON logs of nginx, Caddy, Envoy, and any other, with fields named by their path.
//!
//! `request.remote_ip` is the field `remote_ip` of the object `request`, or the field of that name; the first one if a
//! line has both. A number keeps its text, so a time loses no digit. Texts in an array, as Caddy writes headers, are
//! one text with a comma and a space between. Only what is asked for is decoded.
//!
//! A line may have bytes that are not UTF-8: servers write what clients send. The structure is then read from a copy
//! that has a question mark for each of them, and values are decoded from the line itself.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{time, Fields};
use crate::failure::Problem;
use crate::record::{cost, Record, Wants};

/// What people call a value, and where formats have it, best first.
const ALSO: [(&str, &[&str]); 6] = [
    (
        "address",
        &[
            "address",
            "remote_addr",
            "client_ip",
            "remote_ip",
            "request.client_ip",
            "request.remote_ip",
            "src_ip",
            "ip",
            "client",
            "downstream_remote_address",
            "clientip",
        ],
    ),
    ("path", &["path", "request_uri", "uri", "request.uri", "url"]),
    ("method", &["method", "request_method", "request.method"]),
    ("host", &["host", "http_host", "request.host", "authority"]),
    ("bytes", &["bytes", "body_bytes_sent", "bytes_sent", "size"]),
    (
        "time",
        &[
            "msec",
            "ts",
            "time",
            "timestamp",
            "@timestamp",
            "start_time",
            "time_iso8601",
            "time_local",
            "time_unix",
        ],
    ),
];

/// The durations that are known to be in seconds, and to be written at the end with a time of that name: nginx's, and
/// Caddy's. Others may be milliseconds of a time that is the start, as Envoy's.
const DURATIONS: [&str; 2] = ["request_time", CADDY_DURATION];
const CADDY_DURATION: &str = "duration";
const CADDY_TIME: &str = "ts";
/// What only Caddy has next to these.
const CADDY: &str = "request.uri";

/// One value that is asked for: the paths where it may stand.
struct Wanted {
    name: String,
    paths: Vec<String>,
}

impl Wanted {
    fn new(name: &str) -> Wanted {
        let also = ALSO.iter().find(|(called, _)| *called == name).map(|(_, also)| *also);
        let paths = also.map_or(vec![name.into()], |also| also.iter().map(|path| (*path).into()).collect());
        Wanted { name: name.to_string(), paths }
    }
}

/// What is left of a path below a field: empty, if the path is its name. A name may have points, too. Nothing is below
/// the end of a path, also no field with an empty name: so no line is read deeper than paths are long.
fn below<'a>(path: &'a str, field: &str) -> Option<&'a str> {
    let rest = path.strip_prefix(field).filter(|_| !path.is_empty())?;
    if rest.is_empty() {
        Some(rest)
    } else {
        rest.strip_prefix('.')
    }
}

/// For each value that is asked for: the rank of its path, where it begins in the line, and the bytes.
type Best = Vec<Option<(usize, usize, Vec<u8>)>>;

/// A line as text of the same length.
fn readable(line: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(line) {
        return Cow::Borrowed(text);
    }
    let mut text = String::new();
    for chunk in line.utf8_chunks() {
        text += chunk.valid();
        text.extend(chunk.invalid().iter().map(|_| '?'));
    }
    Cow::Owned(text)
}

/// What is wrong with a line, without the place that the parser says.
fn no_object(error: &serde_json::Error) -> String {
    let what = error.to_string();
    format!("no JSON object: {}", what.split(" at line ").next().unwrap_or(&what))
}

/// A reader of lines that are JSON objects.
pub struct Json {
    /// The key's fields, the time, the duration of nginx, that of Caddy and what shows Caddy, the cost.
    wanted: Vec<Wanted>,
    fields: usize,
    has_cost: bool,
    /// Whether the time of a line may be that of its head.
    by_head: bool,
    /// The best path found for each so far in this line, and its value.
    best: Best,
    subtracted: Option<&'static str>,
    /// Whether the time of the last line is that of the start.
    is_start: bool,
}

impl Json {
    /// Prepares a reader for what is wanted.
    pub fn new(wants: &Wants) -> Json {
        let mut wanted: Vec<_> = wants.fields.iter().map(|name| Wanted::new(name)).collect();
        wanted.push(Wanted::new(wants.time.as_deref().unwrap_or("time")));
        wanted.extend(DURATIONS.iter().chain([&CADDY]).map(|name| Wanted::new(name)));
        wanted.extend(wants.cost.as_deref().map(Wanted::new));
        let best = wanted.iter().map(|_| None).collect();
        Json {
            fields: wants.fields.len(),
            has_cost: wants.cost.is_some(),
            by_head: wants.time.as_deref().is_none_or(|name| name == "time"),
            wanted,
            best,
            subtracted: None,
            is_start: false,
        }
    }

    /// Returns the column at which a wanted value of the last line begins.
    pub fn column(&self, field: usize) -> usize {
        self.best[field].as_ref().map_or(1, |(_, at, _)| at + 1)
    }

    /// Whether records so far had neither a duration nor the time of their start.
    pub fn stamps_end(&self) -> bool {
        self.subtracted.is_none() && !self.is_start
    }

    /// The field that was subtracted from times.
    pub fn subtracted(&self) -> Option<&'static str> {
        self.subtracted
    }

    /// Reads a line. `head`: the time before it.
    pub fn read(&mut self, line: &[u8], head: Option<u64>, record: &mut Record) -> Result<(), Problem> {
        let text = readable(line);
        self.best.iter_mut().for_each(|best| *best = None);
        let live: Vec<_> = self
            .wanted
            .iter()
            .enumerate()
            .flat_map(|(index, wanted)| {
                wanted.paths.iter().enumerate().map(move |(rank, path)| Live { index, rank, path })
            })
            .collect();
        walk((line, &text), &text, &live, &mut self.best)
            .map_err(|error| Problem::at(error.column().max(1), no_object(&error)))?;
        let missing = |index: usize| Problem::at(1, format!("no field {:?}", self.wanted[index].name));
        for index in 0..self.fields {
            let (.., value) = self.best[index].as_ref().ok_or_else(|| missing(index))?;
            record.set(index, value);
        }
        let time = self.fields;
        let (stamp, named) = match &self.best[time] {
            Some((rank, _, when)) => (
                time::parse(when)
                    .ok_or_else(|| Problem::at(1, format!("no time: {}", Fields::quote(when))))?,
                self.wanted[time].paths[*rank].rsplit('.').next().unwrap_or(""),
            ),
            None => (head.filter(|_| self.by_head).ok_or_else(|| missing(time))?, ""),
        };
        self.is_start = Fields::is_start(named);
        let is_caddy = named == CADDY_TIME && self.best[time + 3].is_some();
        let known = [!self.is_start, is_caddy && !self.is_start];
        // Text is a duration with a unit of its own ("1.5s"), and then left alone. Seconds of Caddy have decimals: it
        // writes whole numbers if its duration_format is another unit.
        let is_seconds = |name: &str, text: &[u8]| name != CADDY_DURATION || text.contains(&b'.');
        let durations =
            DURATIONS.iter().zip(known).zip(&self.best[time + 1..]).filter(|((_, known), _)| *known);
        let mut found = durations.filter_map(|((name, _), best)| {
            let (.., text) = best.as_ref().filter(|(.., text)| is_seconds(name, text))?;
            Some((*name, time::seconds(text)?))
        });
        let duration = found.next().map_or(0, |(name, duration)| {
            self.subtracted = Some(name);
            duration
        });
        record.ended(stamp, duration);
        if self.has_cost {
            let (.., text) = self.best[time + 4].as_ref().ok_or_else(|| missing(time + 4))?;
            record.cost = cost(text).ok_or_else(|| {
                Problem::at(1, format!("no whole number of units: {}", Fields::quote(text)))
            })?;
        }
        Ok(())
    }
}

/// A path that may still be found below the object that is being read.
#[derive(Clone, Copy)]
struct Live<'a> {
    index: usize,
    rank: usize,
    path: &'a str,
}

/// Returns where a part of a text begins: their addresses say it.
fn offset(whole: &str, part: &str) -> usize {
    part.as_ptr() as usize - whole.as_ptr() as usize
}

/// Finds the values below one object, which is a part of a line. `of`: the line, and the same as text.
fn walk(of: (&[u8], &str), text: &str, live: &[Live<'_>], best: &mut Best) -> Result<(), serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_str(text);
    Object { of, live, best }.deserialize(&mut reader)?;
    reader.end()
}

struct Object<'a, 'b> {
    of: (&'b [u8], &'b str),
    live: &'b [Live<'a>],
    best: &'b mut Best,
}

impl<'de> DeserializeSeed<'de> for Object<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Object<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<Cow<'de, str>>()? {
            let below: Vec<_> = self
                .live
                .iter()
                .filter_map(|live| Some(Live { path: below(live.path, &name)?, ..*live }))
                .collect();
            if below.is_empty() {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let raw = map.next_value::<&RawValue>()?.get();
            if raw.starts_with('{') {
                walk(self.of, raw, &below, self.best).map_err(serde::de::Error::custom)?;
                continue;
            }
            let at = offset(self.of.1, raw);
            for live in below.iter().filter(|live| live.path.is_empty()) {
                let best = &mut self.best[live.index];
                if raw != "null" && best.as_ref().is_none_or(|(rank, ..)| *rank > live.rank) {
                    *best = Some((live.rank, at, plain(&self.of.0[at..at + raw.len()])));
                }
            }
        }
        Ok(())
    }
}

/// The bytes of a leaf: what a string says, and what the strings of an array say, else as it is written.
fn plain(raw: &[u8]) -> Vec<u8> {
    if raw.starts_with(b"[") {
        let texts = serde_json::Deserializer::from_slice(raw).deserialize_seq(Texts);
        return texts.map_or_else(|_| raw.to_vec(), |texts| texts.join(&b", "[..]));
    }
    match raw.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")) {
        Some(inner) if !inner.contains(&b'\\') => inner.to_vec(),
        Some(_) => serde_json::Deserializer::from_slice(raw)
            .deserialize_bytes(Bytes)
            .unwrap_or_else(|_| raw.to_vec()),
        None => raw.to_vec(),
    }
}

/// Takes the strings of an array.
struct Texts;

impl<'de> Visitor<'de> for Texts {
    type Value = Vec<Vec<u8>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of strings")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Vec<Vec<u8>>, A::Error> {
        let mut texts = Vec::new();
        while let Some(text) = array.next_element_seed(Bytes)? {
            texts.push(text);
        }
        Ok(texts)
    }
}

/// Takes the bytes of a string, which need not be UTF-8.
struct Bytes;

impl<'de> DeserializeSeed<'de> for Bytes {
    type Value = Vec<u8>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Vec<u8>, D::Error> {
        reader.deserialize_bytes(self)
    }
}

impl Visitor<'_> for Bytes {
    type Value = Vec<u8>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
        Ok(bytes.to_vec())
    }
}

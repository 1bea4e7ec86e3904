//! Lines of text between fixed marks: nginx, Apache, HAProxy, Envoy, BIND, Unbound, and formats of one's own.
//!
//! A pattern is written as in nginx's `log_format`: `$name` stands for a value, everything else for itself. A value
//! ends where the text that follows it in the pattern begins; between double quotes a quote after a backslash does not
//! end it. A value before `:$..port` ends at the last colon before the end of the port, because addresses of IPv6 have
//! colons, too. What a line has behind the pattern is left alone. A known pattern without a time is one of lines behind
//! a head of syslog, which has the time.

use memchr::memmem::Finder;

use super::syslog::{behind_head, head as head_of, Head};
use super::{time, Fields, Format};
use crate::failure::Problem;
use crate::key::address;
use crate::record::{cost, Record, Wants};

/// The patterns of a known format: each start with each rest, of which a line takes the first that fits.
struct Known {
    format: Format,
    starts: &'static [&'static str],
    rests: &'static [&'static str],
}

const KNOWN: [Known; 6] = [
    Known {
        format: Format::Combined,
        starts: &[r#"$remote_addr $ident $remote_user [$time_local] "$request" $status $body_bytes_sent"#],
        rests: &[r#" "$http_referer" "$http_user_agent""#, ""],
    },
    Known {
        format: Format::Vhost,
        starts: &["$server:$port "],
        rests: &[concat!(
            r#"$remote_addr $ident $remote_user [$time_local] "$request" $status $body_bytes_sent "#,
            r#""$http_referer" "$http_user_agent""#,
        )],
    },
    Known {
        format: Format::Haproxy,
        // Behind a head that is not known. It comes last: a client may send what looks like it.
        starts: &["", "$before[$pid]: "],
        rests: &[
            concat!(
                "$client:$client_port [$time] $frontend $backend/$server $timers $status $bytes $rest ",
                r#""$request""#,
            ),
            "$client:$client_port [$time] $frontend $backend/$server $timers $bytes $rest",
        ],
    },
    Known {
        format: Format::Envoy,
        starts: &[r#"[$time] "$request" $status $flags $bytes_received $bytes $duration_ms $upstream_ms "#],
        rests: &[r#""$x_forwarded_for" "$user_agent" "$request_id" "$host" "$upstream""#],
    },
    Known {
        format: Format::Bind,
        // Its category and its severity are options; without a time, behind a head.
        starts: &[
            "$time queries: info: client ",
            "$time queries: client ",
            "$time info: client ",
            "$time client ",
            "queries: info: client ",
            "queries: client ",
            "info: client ",
            "client ",
        ],
        rests: &[
            "@$object $client ($q)$view: query: $name $class $type $flags",
            "$client ($q)$view: query: $name $class $type $flags",
        ],
    },
    Known {
        format: Format::Unbound,
        starts: &["[$time] unbound[$pid] ", "unbound[$pid] ", "[$pid] "],
        rests: &[
            "info: $client $name $type $class",
            "query: $client $name $type $class",
            "reply: $client $name $type $class",
        ],
    },
];

/// Where a value stands in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Take {
    Value(usize),
    /// The method or the path of `GET /path HTTP/1.1`.
    Method(usize),
    Path(usize),
}

struct Mark {
    /// What ends the value; empty for the rest of the line.
    end: Finder<'static>,
    length: usize,
    first: u8,
    quoted: bool,
    /// Whether the value has no space: in known formats the client and the process. So no head is taken for a client,
    /// and nothing that a client sends for a process.
    one_word: bool,
    /// What ends the port that follows, if the value ends at the last colon before it.
    port: Option<Finder<'static>>,
}

/// One pattern, and what it is asked for.
pub struct Pattern {
    start: Vec<u8>,
    marks: Vec<Mark>,
    takes: Vec<Take>,
    /// The value that is the time; `None` if the head of the line has it.
    time: Option<usize>,
    /// The duration of the request in seconds, if its time is its end, and whether a line had one.
    duration: Option<usize>,
    seen_duration: bool,
    /// Whether the time is that of the end, and no field says how long before it the request began.
    stamps_end: bool,
    /// The last two values before the time of combined, of which only the user may have spaces.
    three: Option<(usize, usize)>,
    /// Unbound's client, which must be an address: what it says of its own work may have as many words.
    client: Option<usize>,
    cost: Option<Take>,
    /// Scratch: where each value begins and ends.
    found: Vec<(usize, usize)>,
    /// Whether the line that was read last fits.
    fits: bool,
}

/// The patterns of which a line has one.
pub struct Patterns {
    all: Vec<Pattern>,
    is_own: bool,
    /// How many lines were replies of Unbound.
    replies: u64,
}

impl Patterns {
    /// Compiles the patterns of a format.
    pub fn known(format: Format, wants: &Wants) -> Result<Patterns, String> {
        let known = KNOWN.iter().filter(|known| known.format == format);
        let known = known.flat_map(|known| known.starts.iter().map(|start| (start, known.rests)));
        let known = known.flat_map(|(start, rests)| rests.iter().map(move |rest| format!("{start}{rest}")));
        let (mut compiled, mut wrong) = (Vec::new(), None);
        for pattern in known {
            match Pattern::new(&pattern, wants, true) {
                Ok(pattern) => compiled.push(pattern),
                // A pattern of the format may lack a field that another one has.
                Err(why) => wrong = wrong.or(Some(why)),
            }
        }
        match wrong {
            Some(why) if compiled.is_empty() => Err(why),
            _ => Ok(Patterns { all: compiled, is_own: false, replies: 0 }),
        }
    }

    /// Compiles a format of one's own.
    pub fn own(pattern: &str, wants: &Wants) -> Result<Patterns, String> {
        Ok(Patterns { all: vec![Pattern::new(pattern, wants, false)?], is_own: true, replies: 0 })
    }

    /// Reads a line with or without a head, and returns the length of the head that was left out. A format of one's own
    /// may have values for the head, so it reads the whole line first. That counts, unless the first value reaches
    /// beyond the head, so that no value is for the head; or only behind the head a time is next to that of the head. A
    /// head without a year has the year that puts it next to the time of the record, however old the log is.
    pub fn read_line(&mut self, line: &[u8], now: &mut u64, record: &mut Record) -> Result<usize, Problem> {
        if self.is_own && self.read(line, None, record).is_ok() {
            let Some(head) = head_of(line, record.stamp) else { return Ok(0) };
            let [Pattern { start, found, .. }, ..] = &self.all[..] else { return Ok(0) };
            let is_next = |head: Head, record: &Record| {
                head.time.is_none_or(|time| time.abs_diff(record.stamp) < time::DAY)
            };
            if !start.is_empty() || found[0].1 <= head.length {
                if !is_next(head, record) {
                    if self.read(&line[head.length..], None, record).is_ok()
                        && head_of(line, record.stamp).is_some_and(|head| is_next(head, record))
                    {
                        return Ok(head.length);
                    }
                    self.read(line, None, record)?;
                }
                return Ok(0);
            }
        }
        behind_head(line, now, |text, time| self.read(text, time, record))
    }

    /// Reads a line by the first pattern that fits. `head`: the time before it. The message is that of the pattern that
    /// fits furthest.
    pub fn read(&mut self, line: &[u8], head: Option<u64>, record: &mut Record) -> Result<(), Problem> {
        let mut worst: Option<Problem> = None;
        for pattern in &mut self.all {
            match pattern.read(line, head, record) {
                Ok(is_query) => {
                    self.replies += u64::from(!is_query);
                    return Ok(());
                }
                Err(problem) if worst.as_ref().is_none_or(|worst| worst.column < problem.column) => {
                    worst = Some(problem);
                }
                Err(_) => {}
            }
        }
        Err(worst.unwrap_or_else(|| Problem::at(1, "no pattern")))
    }

    /// Returns the column at which a wanted value of the last line begins.
    pub fn column(&self, field: usize) -> usize {
        // Those before the one that fits have been tried, those behind it have not.
        self.all.iter().find(|pattern| pattern.fits).map_or(1, |pattern| pattern.column(pattern.takes[field]))
    }

    /// Returns how many lines were replies, which ask nothing and make no record.
    pub fn replies(&self) -> u64 {
        self.replies
    }

    /// Whether a record's time is that of its end, because the format has no duration.
    pub fn stamps_end(&self) -> bool {
        self.all.iter().all(|pattern| pattern.stamps_end)
    }

    /// The field that was subtracted from times.
    pub fn subtracted(&self) -> Option<&'static str> {
        self.all.iter().any(|pattern| pattern.seen_duration).then_some("request_time")
    }
}

/// What people call a value, and the names that formats have for it, best first.
const ALSO: [(&str, &[&str]); 4] = [
    ("address", &["remote_addr", "client", "client_ip", "x_forwarded_for", "http_x_forwarded_for"]),
    ("bytes", &["body_bytes_sent", "bytes_sent"]),
    ("user_agent", &["http_user_agent"]),
    ("host", &["http_host", "server"]),
];
const TIMES: [&str; 4] = ["msec", "time_iso8601", "time_local", "time"];

/// Splits a pattern into the text before the first value, and each name with the text behind it.
fn split(pattern: &str) -> Result<(String, Vec<(String, String)>), String> {
    let mut parts = pattern.split('$');
    let start = parts.next().unwrap_or("").to_string();
    let mut names = Vec::new();
    for part in parts {
        // nginx also writes ${name}.
        let (name, rest) = match part.strip_prefix('{').and_then(|part| part.split_once('}')) {
            Some(found) => found,
            None => part
                .split_at(part.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(part.len())),
        };
        if name.is_empty() {
            return Err("a $ of the log format has no name behind it".into());
        }
        names.push((name.to_string(), rest.to_string()));
    }
    if let Some(pair) = names.windows(2).find(|pair| pair[0].1.is_empty()) {
        return Err(format!(
            "${} and ${} of the log format have nothing between them: no reader can part them",
            pair[0].0, pair[1].0
        ));
    }
    if names.is_empty() {
        return Err("the log format has no $name".into());
    }
    Ok((start, names))
}

impl Pattern {
    /// Compiles a pattern for what is wanted of each line. `by_head`: it may lack a time.
    fn new(pattern: &str, wants: &Wants, by_head: bool) -> Result<Pattern, String> {
        let (start, names) = split(pattern)?;
        let place = |name: &str| names.iter().position(|(known, _)| known == name);
        let any = |name: &str| {
            let name = name.trim_start_matches('$');
            let also = ALSO.iter().find(|(called, _)| *called == name).map_or(&[][..], |(_, also)| also);
            place(name).or_else(|| also.iter().find_map(|name| place(name)))
        };
        let known = || {
            let asked = [
                ("address", any("address").is_some()),
                ("path", place("request").is_some() && any("path").is_none()),
                ("method", place("request").is_some() && any("method").is_none()),
            ];
            let asked = asked.into_iter().filter(|(name, is_there)| *is_there && place(name).is_none());
            let names = names.iter().map(|(name, _)| name.as_str());
            asked.map(|(name, _)| name).chain(names).collect::<Vec<_>>().join(", ")
        };
        let take = |name: &str| match (any(name), name) {
            (Some(at), _) => Ok(Take::Value(at)),
            (None, "path") => place("request_uri")
                .or(place("uri"))
                .map(Take::Value)
                .or(place("request").map(Take::Path))
                .ok_or_else(|| Fields::missing(name, &known())),
            (None, "method") => place("request_method")
                .map(Take::Value)
                .or(place("request").map(Take::Method))
                .ok_or_else(|| Fields::missing(name, &known())),
            (None, _) => Err(Fields::missing(name, &known())),
        };
        let time = match &wants.time {
            Some(name) => any(name),
            None => TIMES.iter().find_map(|name| place(name)),
        };
        if time.is_none() && !(by_head && wants.time.as_deref().is_none_or(|name| name == "time")) {
            let want = wants.time.as_deref().unwrap_or("time_local, msec, time_iso8601 or time");
            return Err(Fields::missing(want, &known()));
        }
        let begins = time.is_some_and(|time| Fields::is_start(&names[time].0));
        // What Unbound says of its own work shows the format, too, but is no query.
        let is_unbound = by_head && names.last().is_some_and(|(name, _)| name == "class");
        let is_query = is_unbound && !wants.fields.is_empty();
        let after = names.iter().skip(1).map(Some).chain([None]);
        let marks = names.iter().zip(after).scan(start.clone(), |before, ((name, after), next)| {
            let port = next.filter(|(name, _)| after == ":" && name.ends_with("port"));
            let port = port.map(|(_, end)| Finder::new(end).into_owned());
            let quoted = before.ends_with('"') && after.starts_with('"');
            let one_word = by_head && (port.is_some() || name == "pid");
            *before = after.clone();
            let first = after.bytes().next().unwrap_or(b'\n');
            Some(Mark {
                end: Finder::new(after).into_owned(),
                length: after.len(),
                first,
                quoted,
                one_word,
                port,
            })
        });
        Ok(Pattern {
            marks: marks.collect(),
            takes: wants.fields.iter().map(|name| take(name)).collect::<Result<_, _>>()?,
            time,
            duration: place("request_time").filter(|_| !begins),
            seen_duration: false,
            stamps_end: place("request_time").is_none() && !begins,
            three: place("ident")
                .zip(place("remote_user"))
                .filter(|_| by_head || place("remote_addr") == Some(0)),
            client: place("client").filter(|_| is_query),
            cost: wants.cost.as_deref().map(take).transpose()?,
            found: vec![(0, 0); names.len()],
            fits: false,
            start: start.into_bytes(),
        })
    }

    /// Returns the column at which a value of the last line begins.
    fn column(&self, take: Take) -> usize {
        let (Take::Value(index) | Take::Method(index) | Take::Path(index)) = take;
        self.found[index].0 + 1
    }

    /// Reads a line. `head`: the time before it. False if it is a reply.
    fn read(&mut self, line: &[u8], head: Option<u64>, record: &mut Record) -> Result<bool, Problem> {
        self.fits = false;
        if self.time.is_none() && head.is_none() {
            return Err(Problem::at(1, "no time, neither here nor in a head of syslog"));
        }
        if !line.starts_with(&self.start) {
            return Err(Problem::at(
                1,
                format!("{:?} should stand here", String::from_utf8_lossy(&self.start)),
            ));
        }
        let mut at = self.start.len();
        for (mark, found) in self.marks.iter().zip(&mut self.found) {
            let rest = &line[at..];
            let is_whole = |length: &usize| !mark.one_word || !rest[..*length].contains(&b' ');
            let length = mark.find(rest).filter(is_whole).ok_or_else(|| {
                let end = String::from_utf8_lossy(mark.end.needle());
                Problem::at(at + 1, format!("{end:?} should follow"))
            })?;
            *found = (at, at + length);
            at += length + mark.length;
        }
        let value = |index: usize| &line[self.found[index].0..self.found[index].1];
        if let Some((second, third)) = self.three.filter(|(second, _)| value(*second) != b"-") {
            if value(third).contains(&b' ') {
                return Err(Problem::at(
                    self.found[second].0 + 1,
                    "too many values before the time: for a log that begins with the server, --format vhost",
                ));
            }
        }
        if let Some(client) = self.client {
            if address(value(client)).is_none() {
                let what = format!("address is no address: {}", Fields::quote(value(client)));
                return Err(Problem::at(self.found[client].0 + 1, what));
            }
            // A reply has more behind the class.
            if value(self.found.len() - 1).contains(&b' ') {
                return Ok(false);
            }
        }
        let stamp = match self.time {
            Some(at) => time::parse(value(at)).ok_or_else(|| {
                let what = format!("no time: {}", Fields::quote(value(at)));
                Problem::at(self.found[at].0 + 1, what)
            })?,
            None => head.unwrap_or_default(),
        };
        // `-` where there was none.
        let duration = self.duration.and_then(|index| time::seconds(value(index)));
        record.ended(stamp, duration.unwrap_or(0));
        let get = |take: Take| match take {
            Take::Value(index) => value(index),
            Take::Method(index) => value(index).split(|byte| *byte == b' ').next().unwrap_or(b""),
            Take::Path(index) => {
                let request = value(index);
                request.split(|byte| *byte == b' ').nth(1).unwrap_or(request)
            }
        };
        if let Some(take) = self.cost {
            let text = get(take);
            record.cost = cost(text).ok_or_else(|| {
                let what = format!("no whole number of units: {}", Fields::quote(text));
                Problem::at(self.column(take), what)
            })?;
        }
        for (index, take) in self.takes.iter().enumerate() {
            record.set(index, get(*take));
        }
        self.fits = true;
        self.seen_duration |= duration.is_some();
        Ok(true)
    }
}

impl Mark {
    /// Where the value ends in the text that begins with it.
    fn find(&self, text: &[u8]) -> Option<usize> {
        if let Some(port) = &self.port {
            let end = if port.needle().is_empty() { text.len() } else { port.find(text)? };
            return memchr::memrchr(b':', &text[..end]);
        }
        if !self.quoted {
            return match self.length {
                0 => Some(text.len()),
                1 => memchr::memchr(self.first, text),
                _ => self.end.find(text),
            };
        }
        memchr::memchr_iter(b'"', text).find(|at| {
            let slashes = text[..*at].iter().rev().take_while(|byte| **byte == b'\\').count();
            slashes % 2 == 0 && text[*at..].starts_with(self.end.needle())
        })
    }
}

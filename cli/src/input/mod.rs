//! Reading logs and captures: from a file or a pipe, compressed or not, in a format that is named or found.

mod capture;
mod dnstap;
mod json;
mod packed;
mod packet;
mod pattern;
mod syslog;
mod table;
pub mod time;

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::Arc;

use self::capture::Capture;
use self::dnstap::Dnstap;
use self::json::Json;
use self::packed::{foreign, head, unpack, Bytes, Counted, Head, HEAD};
use self::pattern::Patterns;
use self::syslog::{behind_head, head as head_of};
use self::table::Csv;
use crate::failure::{Failure, Problem};
use crate::record::{Record, Wants};

/// The formats that can be named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// nginx and Apache: combined or common.
    Combined,
    /// Apache's vhost_combined: the server and its port before combined.
    Vhost,
    /// One JSON object a line, also of Caddy and Envoy.
    Json,
    /// Columns that the first line names.
    Csv,
    /// HAProxy's option httplog or tcplog.
    Haproxy,
    /// Envoy's default text.
    Envoy,
    /// BIND's query log.
    Bind,
    /// Unbound's log-queries.
    Unbound,
    /// Packets: pcap or pcapng.
    Pcap,
    /// DNS queries in Frame Streams.
    Dnstap,
}

impl Format {
    /// Returns the name that `--format` takes.
    pub fn name(self) -> &'static str {
        match self {
            Format::Combined => "combined",
            Format::Vhost => "vhost",
            Format::Json => "json",
            Format::Csv => "csv",
            Format::Haproxy => "haproxy",
            Format::Envoy => "envoy",
            Format::Bind => "bind",
            Format::Unbound => "unbound",
            Format::Pcap => "pcap",
            Format::Dnstap => "dnstap",
        }
    }
}

/// What came next.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// The record was read.
    Record,
    /// There was one, but it cannot be used.
    Bad(Problem),
    /// A packet that is not IP, or that has no port.
    Other(Problem),
    /// The input is at its end.
    End,
}

/// How to read an input.
#[derive(Clone, Debug, Default)]
pub struct How {
    /// The format, if it is named.
    pub format: Option<Format>,
    /// A format of one's own, in the words of nginx.
    pub log_format: Option<String>,
    /// What is needed of each record.
    pub wants: Wants,
}

/// Texts that several formats share.
pub(crate) struct Fields;

impl Fields {
    fn missing(name: &str, known: &str) -> String {
        format!("no field {name:?} in this format; it has {known}")
    }

    /// A value for a message: its start, if it is long.
    pub(crate) fn quote(value: &[u8]) -> String {
        let text = String::from_utf8_lossy(&value[..value.len().min(60)]).into_owned();
        format!("{text:?}")
    }

    /// Whether a field of this name has the time at which a request began.
    fn is_start(name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        name.contains("start") || name.contains("begin")
    }

    /// For packets and queries, whose time has no name.
    fn one_time(wants: &Wants) -> Result<(), Failure> {
        match wants.time.as_deref() {
            None | Some("time") => Ok(()),
            Some(other) => {
                Err(Failure::Usage(format!("no field {other:?} for --time: this format has one time")))
            }
        }
    }
}

type Source = BufReader<Bytes>;

enum Reader {
    /// Nothing, or nothing that can be read.
    Empty(Option<String>),
    Patterns(Source, Patterns),
    Json(Source, Box<Json>),
    Csv(Box<Csv<Source>>),
    Packets(Box<Capture<Source>>),
    Dnstap(Box<Dnstap<Source>>),
}

/// An open input.
pub struct Input {
    /// Its name, for messages.
    pub name: String,
    /// Its format.
    pub format: Option<Format>,
    reader: Reader,
    line: Vec<u8>,
    number: u64,
    /// The length of the head of the last line, and the time that tells the year of the next one.
    head: usize,
    now: u64,
}

/// The longest line, and the longest row of CSV. A longer one is a bad record.
const LINE: usize = 1 << 20;
const TOO_LONG: &str = "longer than 1 MiB";

/// How files of text begin that come from Windows.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

impl Input {
    /// Opens a file, or the standard input for `-`. `read` counts its bytes, as they are in the file.
    pub fn open(name: &str, how: &How, read: &Arc<AtomicU64>) -> Result<Input, Failure> {
        let fail = |error: io::Error| Failure::Input(format!("{name}: {error}"));
        let (name, raw): (_, Bytes) = match name {
            "-" => ("(standard input)", Box::new(io::stdin())),
            file => (file, Box::new(File::open(Path::new(file)).map_err(fail)?)),
        };
        Input::new(name, Box::new(Counted { inner: raw, read: Arc::clone(read) }), how)
    }

    /// Opens any source of bytes.
    pub fn new(name: &str, raw: Box<dyn Read + Send>, how: &How) -> Result<Input, Failure> {
        let fail = |error: io::Error| Failure::Input(format!("{name}: {error}"));
        let made = match unpack(head(raw).map_err(fail)?) {
            Ok(Head { start, cut: None, .. }) if start.len() < HEAD && is_blank(&start) => {
                Ok((how.format, Reader::Empty(None)))
            }
            Ok(Head { start, input, cut }) => {
                let source = BufReader::with_capacity(1 << 18, input);
                match (reader(&start, source, how), cut) {
                    // There is too little of it.
                    (Err(Failure::Input(_)), Some(cut)) => Ok((how.format, Reader::Empty(Some(cut)))),
                    (made, _) => made,
                }
            }
            Err(error) => Ok((how.format, Reader::Empty(Some(error.to_string())))),
        };
        let in_file = |failure: Failure| match failure {
            Failure::Usage(what) => Failure::Usage(format!("{name}: {what}")),
            Failure::Input(what) => Failure::Input(format!("{name}:{what}")),
            other => other,
        };
        let (format, reader) = made.map_err(in_file)?;
        let (line, number, head, now) = (Vec::new(), 0, 0, time::now());
        Ok(Input { name: name.into(), format, reader, line, number, head, now })
    }

    /// Returns the line of the last record, or its number where there are no lines.
    pub fn line(&self) -> u64 {
        match &self.reader {
            Reader::Csv(csv) => csv.line(),
            Reader::Packets(packets) => packets.number(),
            Reader::Dnstap(queries) => queries.number(),
            _ => self.number,
        }
    }

    /// Says what is wrong with a value of the last record: that of the field with this index.
    pub fn wrong(&self, field: usize, what: String) -> Problem {
        let (line, column) = match &self.reader {
            Reader::Csv(csv) => csv.place_of(field),
            Reader::Json(_, json) => (self.number, self.head + json.column(field)),
            Reader::Patterns(_, patterns) => (self.number, self.head + patterns.column(field)),
            _ => (self.line(), 0),
        };
        Problem { line, column, what }
    }

    /// Returns whether there is nothing in it, also once it is decompressed.
    pub fn is_empty(&self) -> bool {
        matches!(self.reader, Reader::Empty(None))
    }

    /// Returns how many messages were passed over, because they ask nothing.
    pub fn passed_over(&self) -> u64 {
        match &self.reader {
            Reader::Dnstap(queries) => queries.passed_over(),
            Reader::Patterns(_, patterns) => patterns.replies(),
            _ => 0,
        }
    }

    /// Returns the unit in which the input says that it counts time, in nanoseconds: 1 if it does not say.
    pub fn grain(&self) -> u64 {
        match &self.reader {
            Reader::Packets(packets) => packets.grain(),
            _ => 1,
        }
    }

    /// Returns the field, in seconds, that has been subtracted from times, because they are those of ends.
    pub fn subtracted(&self) -> Option<&'static str> {
        match &self.reader {
            Reader::Patterns(_, patterns) => patterns.subtracted(),
            Reader::Json(_, json) => json.subtracted(),
            Reader::Csv(csv) => csv.subtracted(),
            _ => None,
        }
    }

    /// Returns whether the addresses of records are bytes, not text.
    pub fn is_binary(&self) -> bool {
        matches!(self.reader, Reader::Packets(_) | Reader::Dnstap(_))
    }

    /// Returns whether the time of a record is that of its end, as far as the format is known.
    pub fn stamps_end(&self) -> bool {
        match (&self.reader, self.format) {
            // Apache stamps the start, nginx the end: the lines look alike.
            (Reader::Patterns(_, patterns), Some(Format::Combined) | None) => patterns.stamps_end(),
            (Reader::Json(_, json), _) => json.stamps_end(),
            (Reader::Csv(csv), _) => csv.stamps_end(),
            _ => false,
        }
    }

    /// Reads the next record. An error says where the input cannot be read any further.
    pub fn next(&mut self, record: &mut Record) -> Result<Next, Failure> {
        let result = match &mut self.reader {
            Reader::Empty(None) => Ok(Next::End),
            Reader::Empty(Some(error)) => Err(Failure::Input(format!("1: {error}"))),
            Reader::Csv(csv) => csv.next(record),
            Reader::Packets(packets) => packets.next(record),
            Reader::Dnstap(queries) => queries.next(record),
            Reader::Patterns(source, patterns) => {
                next_text(source, &mut self.line, &mut self.number, |line| {
                    // A line of a header.
                    if line.starts_with(b"#") {
                        return Ok(false);
                    }
                    let replies = patterns.replies();
                    self.head = patterns.read_line(line, &mut self.now, record)?;
                    Ok(patterns.replies() == replies)
                })
            }
            Reader::Json(source, json) => next_text(source, &mut self.line, &mut self.number, |line| {
                self.head = behind_head(line, &mut self.now, |text, time| json.read(text, time, record))?;
                Ok(true)
            }),
        };
        result.map_err(|failure| Failure::Input(format!("{}:{failure}", self.name)))
    }
}

/// A line that was read.
enum Line {
    Text,
    /// One that is too long; its rest is passed over.
    TooLong,
    End,
}

/// Reads a line with its end.
fn next_line(source: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<Line> {
    line.clear();
    if source.by_ref().take(LINE as u64).read_until(b'\n', line)? == 0 {
        return Ok(Line::End);
    }
    if line.len() < LINE || line.last() == Some(&b'\n') {
        return Ok(Line::Text);
    }
    source.skip_until(b'\n')?;
    Ok(Line::TooLong)
}

/// A line without its end.
fn trim(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Reads the next line that is not empty, as a record. `read` returns false for one that is passed over.
fn next_text(
    source: &mut Source,
    line: &mut Vec<u8>,
    number: &mut u64,
    mut read: impl FnMut(&[u8]) -> Result<bool, Problem>,
) -> Result<Next, Failure> {
    loop {
        *number += 1;
        let found = match next_line(source, line) {
            Ok(Line::Text) => match trim(line) {
                b"" => Ok(false),
                text => read(text),
            },
            Ok(Line::TooLong) => Err(Problem::at(1, TOO_LONG)),
            Ok(Line::End) => return Ok(Next::End),
            Err(error) => return Err(Failure::Input(format!("{number}: {error}"))),
        };
        return Ok(match found {
            Ok(false) => continue,
            Ok(true) => Next::Record,
            Err(problem) => Next::Bad(Problem { line: *number, ..problem }),
        });
    }
}

/// Finds the format, from the start of the input, and makes its reader.
fn reader(mut start: &[u8], mut source: Source, how: &How) -> Result<(Option<Format>, Reader), Failure> {
    let wants = &how.wants;
    let is_binary = matches!(how.format, Some(Format::Pcap | Format::Dnstap)) || binary(start).is_some();
    let is_text = !is_binary || how.log_format.is_some();
    if let Some(what) = foreign(start, is_text) {
        return Err(Failure::Input(format!("1:1: {what}")));
    }
    if is_text {
        if let Some(rest) = start.strip_prefix(BYTE_ORDER_MARK) {
            start = rest;
            // It is in the buffer: the start was read before.
            source.fill_buf().map_err(|error| Failure::Input(format!("1: {error}")))?;
            source.consume(BYTE_ORDER_MARK.len());
        }
    }
    if let Some(pattern) = &how.log_format {
        let pattern = Patterns::own(pattern, wants).map_err(Failure::Usage)?;
        return Ok((None, Reader::Patterns(source, pattern)));
    }
    let format = match how.format {
        Some(format) => format,
        None => find(start, wants).ok_or_else(|| {
            let first = start.split(|byte| *byte == b'\n').next().unwrap_or(b"");
            let first = Fields::quote(first);
            Failure::Input(format!("1:1: no known format: {first}; name it by --format or --log-format"))
        })?,
    };
    let reader = match format {
        Format::Pcap => Reader::Packets(Box::new(Capture::new(source, wants)?)),
        Format::Dnstap => Reader::Dnstap(Box::new(Dnstap::new(source, wants)?)),
        Format::Json => Reader::Json(source, Box::new(Json::new(wants))),
        Format::Csv => {
            let first = start.split(|byte| *byte == b'\n').next().unwrap_or(b"");
            Reader::Csv(Box::new(Csv::new(source, table::delimiter(first).unwrap_or(b','), wants)?))
        }
        _ => Reader::Patterns(source, Patterns::known(format, wants).map_err(Failure::Usage)?),
    };
    Ok((Some(format), reader))
}

/// Whether there is nothing in a whole input but ends of lines.
fn is_blank(start: &[u8]) -> bool {
    start.strip_prefix(BYTE_ORDER_MARK).unwrap_or(start).trim_ascii().is_empty()
}

/// Finds a format that is not text, by its first bytes.
fn binary(start: &[u8]) -> Option<Format> {
    let magic = start.first_chunk::<4>().map(|bytes| u32::from_le_bytes(*bytes));
    if let Some(0xa1b2_c3d4 | 0xd4c3_b2a1 | 0xa1b2_3c4d | 0x4d3c_b2a1 | 0x0a0d_0d0a) = magic {
        return Some(Format::Pcap);
    }
    dnstap::is_start(start).then_some(Format::Dnstap)
}

/// Guesses the format: by its first bytes, or as the one whose patterns fit most of the first lines.
fn find(start: &[u8], wants: &Wants) -> Option<Format> {
    if let Some(format) = binary(start) {
        return Some(format);
    }
    let lines: Vec<_> = start.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).take(20).collect();
    let now = time::now();
    let is_object = |line: &[u8], _| match line.trim_ascii_start().starts_with(b"{") {
        true => Ok(()),
        false => Err(Problem::at(1, "no object")),
    };
    if behind_head(lines.first()?, &mut { now }, is_object).is_ok() {
        return Some(Format::Json);
    }
    // Only the shape counts here, so that a field that is missing gets a message of its own.
    let shape = Wants::default();
    let mut record = Record::new(&shape);
    let fits = |format: Format| {
        let mut patterns = Patterns::known(format, &shape).ok()?;
        // What fits behind a head counts more than what takes the head for a value.
        let fits = |line: &&[u8]| match behind_head(line, &mut { now }, |text, time| {
            patterns.read(text, time, &mut record)
        }) {
            Ok(0) if head_of(line, now).is_some() => 1,
            Ok(_) => 2,
            Err(_) => 0,
        };
        Some((lines.iter().map(fits).sum::<u32>(), format)).filter(|(count, _)| *count > 0)
    };
    let text =
        [Format::Combined, Format::Vhost, Format::Haproxy, Format::Envoy, Format::Bind, Format::Unbound];
    // Of equals the first.
    let best =
        text.into_iter().filter_map(fits).reduce(|best, next| if next.0 > best.0 { next } else { best });
    let header = || table::is_header(lines[0], wants).then_some(Format::Csv);
    best.map(|(_, format)| format).or_else(header)
}

//! Reading logs and captures: from a file or a pipe, compressed or not, in a format that is named or found.

mod capture;
mod dnstap;
mod json;
mod packed;
mod packet;
mod pattern;
mod table;
pub mod time;

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use self::capture::Capture;
use self::dnstap::Dnstap;
use self::json::Json;
use self::packed::{head, Counted};
use self::pattern::Pattern;
use self::table::Csv;
use crate::failure::{Failure, Problem};
use crate::record::{Record, Wants};

/// The formats that can be named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// nginx and Apache: combined or common.
    Combined,
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
struct Fields;

impl Fields {
    fn missing(name: &str, known: &str) -> String {
        format!("no field {name:?} in this format; it has {known}")
    }

    /// A value for a message: its start, if it is long.
    fn quote(value: &[u8]) -> String {
        let text = String::from_utf8_lossy(&value[..value.len().min(60)]).into_owned();
        format!("{text:?}")
    }
}

type Source = BufReader<Box<dyn Read + Send>>;

enum Reader {
    Patterns(Source, Vec<Pattern>),
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
    read: Arc<AtomicU64>,
    /// Its size, if it is a file.
    pub size: Option<u64>,
}

/// The longest line. A longer one is a bad record; its rest is read as if it were further lines.
const LINE: u64 = 1 << 20;

impl Input {
    /// Opens a file, or the standard input for `-`.
    pub fn open(name: &str, how: &How) -> Result<Input, Failure> {
        let fail = |error: io::Error| Failure::Input(format!("{name}: {error}"));
        let (raw, size): (Box<dyn Read + Send>, _) = if name == "-" {
            (Box::new(io::stdin()), None)
        } else {
            let file = File::open(Path::new(name)).map_err(fail)?;
            let size = file.metadata().ok().filter(|data| data.is_file()).map(|data| data.len());
            (Box::new(file), size)
        };
        let mut input = Input::new(if name == "-" { "(standard input)" } else { name }, raw, how)?;
        input.size = size;
        Ok(input)
    }

    /// Opens any source of bytes.
    pub fn new(name: &str, raw: Box<dyn Read + Send>, how: &How) -> Result<Input, Failure> {
        let fail = |error: io::Error| Failure::Input(format!("{name}: {error}"));
        let read = Arc::new(AtomicU64::new(0));
        let counted = Box::new(Counted { inner: raw, read: Arc::clone(&read) });
        let (mut start, mut input) = head(counted).map_err(fail)?;
        if start.starts_with(&[0x1f, 0x8b]) {
            (start, input) = head(Box::new(flate2::read::MultiGzDecoder::new(input))).map_err(fail)?;
        } else if start.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
            (start, input) = head(Box::new(zstd::Decoder::new(input).map_err(fail)?)).map_err(fail)?;
        }
        let in_file = |failure: Failure| match failure {
            Failure::Usage(what) => Failure::Usage(format!("{name}: {what}")),
            Failure::Input(what) => Failure::Input(format!("{name}: {what}")),
            other => other,
        };
        let source = BufReader::with_capacity(1 << 18, input);
        let (format, reader) = reader(&start, source, how).map_err(in_file)?;
        Ok(Input { name: name.into(), format, reader, line: Vec::new(), number: 0, read, size: None })
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

    /// Returns how many bytes of the file have been read.
    pub fn bytes_read(&self) -> u64 {
        // ORDERING: Relaxed; a single number, which nothing else depends on.
        self.read.load(Ordering::Relaxed)
    }

    /// Returns whether the addresses of records are bytes, not text.
    pub fn is_binary(&self) -> bool {
        matches!(self.reader, Reader::Packets(_) | Reader::Dnstap(_))
    }

    /// Returns whether the time of a record is that of its end, as far as the format is known.
    pub fn stamps_end(&self) -> bool {
        match (&self.reader, self.format) {
            // Apache stamps the start, nginx the end: the lines look alike.
            (Reader::Patterns(_, patterns), Some(Format::Combined) | None) => {
                patterns.iter().all(Pattern::stamps_end)
            }
            (Reader::Json(_, json), _) => json.stamps_end(),
            _ => false,
        }
    }

    /// Reads the next record.
    pub fn next(&mut self, record: &mut Record) -> Result<Next, Failure> {
        match &mut self.reader {
            Reader::Csv(csv) => csv.next(record).map_err(|failure| self.named(failure)),
            Reader::Packets(packets) => packets.next(record).map_err(|failure| self.named(failure)),
            Reader::Dnstap(queries) => queries.next(record).map_err(|failure| self.named(failure)),
            Reader::Patterns(source, patterns) => loop {
                match next_line(source, &mut self.line, &mut self.number) {
                    Ok(true) => {}
                    Ok(false) => return Ok(Next::End),
                    Err(error) => return Err(self.cut(&error)),
                }
                if self.line.is_empty() || self.line.starts_with(b"#") {
                    continue;
                }
                // The message is that of the pattern that fits furthest.
                let mut worst: Option<Problem> = None;
                for pattern in patterns.iter_mut() {
                    match pattern.read(&self.line, record) {
                        Ok(()) => return Ok(Next::Record),
                        Err(problem) if worst.as_ref().is_none_or(|worst| worst.column < problem.column) => {
                            worst = Some(problem);
                        }
                        Err(_) => {}
                    }
                }
                let problem = worst.unwrap_or_else(|| Problem::at(1, "no pattern"));
                return Ok(Next::Bad(Problem { line: self.number, ..problem }));
            },
            Reader::Json(source, json) => loop {
                match next_line(source, &mut self.line, &mut self.number) {
                    Ok(true) => {}
                    Ok(false) => return Ok(Next::End),
                    Err(error) => return Err(self.cut(&error)),
                }
                if self.line.is_empty() {
                    continue;
                }
                return Ok(match json.read(&self.line, record) {
                    Ok(()) => Next::Record,
                    Err(problem) => Next::Bad(Problem { line: self.number, ..problem }),
                });
            },
        }
    }

    fn named(&self, failure: Failure) -> Failure {
        Failure::Input(format!("{}: {failure}", self.name))
    }

    fn cut(&self, error: &io::Error) -> Failure {
        Failure::Input(format!("{}:{}: {error}", self.name, self.number + 1))
    }
}

/// Reads a line without its end. False at the end of the input.
fn next_line(source: &mut Source, line: &mut Vec<u8>, number: &mut u64) -> io::Result<bool> {
    line.clear();
    if source.by_ref().take(LINE).read_until(b'\n', line)? == 0 {
        return Ok(false);
    }
    *number += 1;
    if line.last() == Some(&b'\n') {
        line.pop();
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    Ok(true)
}

fn patterns(format: Format, wants: &Wants) -> Result<Vec<Pattern>, String> {
    let known = pattern::KNOWN.iter().filter(|(name, _)| *name == format.name());
    let compiled: Vec<_> = known.map(|(_, pattern)| Pattern::new(pattern, wants)).collect();
    // A pattern of the format may lack a field that another one has.
    if compiled.iter().all(Result::is_err) {
        return compiled.into_iter().next().unwrap_or(Err("no pattern".into())).map(|pattern| vec![pattern]);
    }
    Ok(compiled.into_iter().flatten().collect())
}

/// Finds the format, from the start of the input, and makes its reader.
fn reader(start: &[u8], source: Source, how: &How) -> Result<(Option<Format>, Reader), Failure> {
    let wants = &how.wants;
    if let Some(pattern) = &how.log_format {
        let pattern = Pattern::new(pattern, wants).map_err(Failure::Usage)?;
        return Ok((None, Reader::Patterns(source, vec![pattern])));
    }
    let format = match how.format {
        Some(format) => format,
        None => find(start, wants).ok_or_else(|| {
            let first = start.split(|byte| *byte == b'\n').next().unwrap_or(b"");
            let first = if start.is_empty() { "the input is empty".into() } else { Fields::quote(first) };
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
        _ => Reader::Patterns(source, patterns(format, wants).map_err(Failure::Usage)?),
    };
    Ok((Some(format), reader))
}

/// Guesses the format: by its first bytes, or as the one whose patterns fit most of the first lines.
fn find(start: &[u8], wants: &Wants) -> Option<Format> {
    let magic = start.first_chunk::<4>().map(|bytes| u32::from_le_bytes(*bytes));
    if let Some(0xa1b2_c3d4 | 0xd4c3_b2a1 | 0xa1b2_3c4d | 0x4d3c_b2a1 | 0x0a0d_0d0a) = magic {
        return Some(Format::Pcap);
    }
    if dnstap::is_start(start) {
        return Some(Format::Dnstap);
    }
    let lines: Vec<_> = start.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).take(20).collect();
    if lines.first()?.trim_ascii_start().starts_with(b"{") {
        return Some(Format::Json);
    }
    // Only the shape counts here, so that a field that is missing gets a message of its own.
    let shape = Wants::default();
    let mut record = Record::new(&shape);
    let fits = |format: Format| {
        let mut patterns = patterns(format, &shape).ok()?;
        let mut fits =
            |line: &&&[u8]| patterns.iter_mut().any(|pattern| pattern.read(line, &mut record).is_ok());
        Some((lines.iter().filter(&mut fits).count(), format)).filter(|(count, _)| *count > 0)
    };
    let text = [Format::Combined, Format::Haproxy, Format::Envoy, Format::Bind, Format::Unbound];
    // Of equals the first.
    let best =
        text.into_iter().filter_map(fits).reduce(|best, next| if next.0 > best.0 { next } else { best });
    let header = || table::is_header(lines[0], wants).then_some(Format::Csv);
    best.map(|(_, format)| format).or_else(header)
}

//! CSV with named columns. The first line names them; a comma, semicolon or tab parts them.
//!
//! A row may have several lines, between quotes. The lines of a row are kept until it ends, at most 1 MiB. If a quote
//! does not end until there, only the line where it began is a bad record: the others are read again, as rows of one
//! line each.

use std::io::{self, BufRead};

use csv_core::{ReadRecordResult, Reader, ReaderBuilder, Terminator};

use super::{next_line, time, trim, Fields, Line, Next, LINE, TOO_LONG};
use crate::failure::{Failure, Problem};
use crate::record::{cost, Record, Wants};

const ALSO: [(&str, &[&str]); 3] = [
    ("address", &["remote_addr", "client_ip", "client", "ip", "src", "src_ip", "source"]),
    ("path", &["request_uri", "uri", "url"]),
    ("time", &["timestamp", "ts", "@timestamp", "date", "msec", "time_iso8601", "time_local"]),
];
/// The column that nginx's variable of this name has: seconds, up to a time that is the end.
const DURATION: &str = "request_time";
/// nginx's times.
const ENDS: [&str; 3] = ["msec", "time_iso8601", "time_local"];

const OPEN: &str = "a quote begins here and does not end";

/// Returns where a column of a row begins; the end of the row, if it has fewer.
fn begin(row: &[u8], mark: u8, column: usize) -> usize {
    let (mut found, mut quoted, mut first) = (0, false, true);
    for (at, byte) in row.iter().enumerate() {
        if found == column {
            return at;
        }
        match byte {
            b'"' if quoted || first => quoted = !quoted,
            // A quote that is doubled ends the quotes and begins them again.
            b'"' if at > 0 && row[at - 1] == b'"' => quoted = true,
            b'\r' | b'\n' if !quoted => return at,
            byte if *byte == mark && !quoted => {
                (found, first) = (found + 1, true);
                continue;
            }
            _ => {}
        }
        first = false;
    }
    row.len()
}

/// What came of the lines of a row.
enum Row {
    Whole,
    /// A line that is too long.
    TooLong,
    /// A quote begins at this line and column in bytes, and does not end.
    Open(u64, usize),
    End,
}

/// Columns of which it is known where they end; a column behind these cannot be named.
const COLUMNS: usize = 4096;
/// Where the ends of further columns are written.
const FURTHER: usize = 64;

/// The rows of a source, one at a time.
struct Rows<R> {
    source: R,
    parser: Reader,
    mark: u8,
    /// The line that was read last, and its number.
    line: Vec<u8>,
    number: u64,
    /// The lines of the row, and the number of the first.
    lines: Vec<u8>,
    first: u64,
    /// Lines in which a quote did not end, how many of their bytes have been read again, and whether a line that is too
    /// long follows them.
    again: Vec<u8>,
    done: usize,
    long_follows: bool,
    /// The columns without their quotes, where each ends, and how many they are.
    text: Vec<u8>,
    ends: Vec<usize>,
    columns: usize,
}

impl<R: BufRead> Rows<R> {
    fn new(source: R, mark: u8) -> Rows<R> {
        Rows {
            source,
            parser: ReaderBuilder::new().delimiter(mark).terminator(Terminator::Any(b'\n')).build(),
            mark,
            line: Vec::new(),
            number: 0,
            lines: Vec::new(),
            first: 0,
            again: Vec::new(),
            done: 0,
            long_follows: false,
            text: Vec::new(),
            ends: vec![0; COLUMNS + FURTHER],
            columns: 0,
        }
    }

    /// Returns a column of the row.
    fn column(&self, column: usize) -> Option<&[u8]> {
        let start = if column == 0 { 0 } else { *self.ends.get(column - 1)? };
        let is_there = column < self.columns.min(COLUMNS);
        is_there.then(|| &self.text[start..self.ends[column]])
    }

    /// Returns the line and the column in bytes at which a column of the row begins.
    fn place(&self, column: usize) -> (u64, usize) {
        let before = &self.lines[..begin(&self.lines, self.mark, column)];
        let ends = memchr::memchr_iter(b'\n', before).count() as u64;
        let of_line = memchr::memrchr(b'\n', before).map_or(before.len(), |end| before.len() - end - 1);
        (self.first + ends, of_line + 1)
    }

    fn next_line(&mut self) -> io::Result<Line> {
        let found = if self.done < self.again.len() {
            let mut rest = &self.again[self.done..];
            let found = next_line(&mut rest, &mut self.line);
            self.done = self.again.len() - rest.len();
            found
        } else if std::mem::take(&mut self.long_follows) {
            Ok(Line::TooLong)
        } else {
            next_line(&mut self.source, &mut self.line)
        };
        self.number += 1;
        let length = trim(&self.line).len();
        self.line.truncate(length);
        self.line.push(b'\n');
        found
    }

    /// Reads a row that is not empty.
    fn next(&mut self) -> io::Result<Row> {
        self.lines.clear();
        (self.columns, self.first) = (0, 0);
        let (mut written, mut first_length) = (0, 0);
        loop {
            let is_again = self.done < self.again.len();
            let line = self.next_line()?;
            if self.lines.is_empty() {
                match line {
                    Line::Text if self.line.len() == 1 => continue,
                    Line::Text => {}
                    Line::TooLong => {
                        self.first = self.number;
                        return Ok(Row::TooLong);
                    }
                    Line::End => return Ok(Row::End),
                }
                (self.first, first_length) = (self.number, self.line.len());
            } else if !matches!(line, Line::Text) || self.lines.len() + self.line.len() > LINE {
                return Ok(self.open(first_length, line));
            }
            self.lines.extend_from_slice(&self.line);
            // No column is longer than what it is read from.
            self.text.resize(self.text.len().max(self.lines.len() + 1), 0);
            let mut input = &self.line[..];
            loop {
                let ends = &mut self.ends[self.columns.min(COLUMNS)..];
                let (result, read, wrote, ended) =
                    self.parser.read_record(input, &mut self.text[written..], ends);
                input = &input[read..];
                (written, self.columns) = (written + wrote, self.columns + ended);
                match result {
                    ReadRecordResult::Record => return Ok(Row::Whole),
                    ReadRecordResult::OutputEndsFull => {}
                    _ => break,
                }
            }
            if is_again {
                let (line, column) = self.place(self.columns);
                self.parser.reset();
                return Ok(Row::Open(line, column));
            }
        }
    }

    /// Gives up a row whose quote does not end: all of its lines but the first are read again, and the one that came
    /// last.
    fn open(&mut self, first_length: usize, last: Line) -> Row {
        let (line, column) = self.place(self.columns);
        self.again = self.lines.split_off(first_length);
        self.done = 0;
        match last {
            Line::Text => self.again.extend_from_slice(&self.line),
            Line::TooLong => self.long_follows = true,
            Line::End => {}
        }
        self.number = self.first;
        self.parser.reset();
        Row::Open(line, column)
    }
}

/// The columns of the first line that are wanted.
pub struct Csv<R> {
    rows: Rows<R>,
    fields: Vec<usize>,
    time: usize,
    duration: Option<usize>,
    seen_duration: bool,
    stamps_end: bool,
    cost: Option<usize>,
}

/// Guesses what parts the columns: what the first line has most of.
pub fn delimiter(line: &[u8]) -> Option<u8> {
    let count = |mark: u8| line.iter().filter(|byte| **byte == mark).count();
    [b',', b';', b'\t'].into_iter().max_by_key(|mark| count(*mark)).filter(|mark| count(*mark) > 0)
}

/// Whether a first line names a column of time.
pub fn is_header(line: &[u8], wants: &Wants) -> bool {
    let Some(mark) = delimiter(line) else { return false };
    let line = String::from_utf8_lossy(line);
    let names: Vec<_> =
        line.trim().split(mark as char).map(|name| name.trim_matches('"').to_string()).collect();
    find(&names, wants.time.as_deref().unwrap_or("time")).is_some()
}

fn find(names: &[String], name: &str) -> Option<usize> {
    let place = |name: &str| names.iter().position(|known| known.eq_ignore_ascii_case(name));
    let also = ALSO.iter().find(|(called, _)| *called == name).map_or(&[][..], |(_, also)| also);
    place(name).or_else(|| also.iter().find_map(|name| place(name)))
}

impl<R: BufRead> Csv<R> {
    /// Reads the first line and finds the columns.
    pub fn new(input: R, mark: u8, wants: &Wants) -> Result<Csv<R>, Failure> {
        let mut rows = Rows::new(input, mark);
        match rows.next().map_err(|error| Failure::Input(format!("1: {error}")))? {
            Row::Whole | Row::End => {}
            Row::TooLong => return Err(Failure::Input(format!("{}: {TOO_LONG}", rows.first))),
            Row::Open(line, column) => return Err(Failure::Input(format!("{line}:{column}: {OPEN}"))),
        }
        let header = (0..).map_while(|column| rows.column(column));
        let names: Vec<_> =
            header.map(|name| String::from_utf8_lossy(name.trim_ascii()).into_owned()).collect();
        let column = |name: &str| {
            find(&names, name).ok_or_else(|| Failure::Usage(Fields::missing(name, &names.join(", "))))
        };
        let time = column(wants.time.as_deref().unwrap_or("time"))?;
        let duration = column(DURATION).ok().filter(|_| !Fields::is_start(&names[time]));
        Ok(Csv {
            fields: wants.fields.iter().map(|name| column(name)).collect::<Result<_, _>>()?,
            time,
            duration,
            seen_duration: false,
            stamps_end: duration.is_none() && ENDS.contains(&&*names[time].to_ascii_lowercase()),
            cost: wants.cost.as_deref().map(column).transpose()?,
            rows,
        })
    }

    /// Returns the line and the column at which a wanted value of the last row begins; column 0 if it is not known.
    pub fn place_of(&self, field: usize) -> (u64, usize) {
        self.rows.place(self.fields[field])
    }

    /// Returns the line of the last row.
    pub fn line(&self) -> u64 {
        self.rows.first
    }

    /// Whether the time is that of the end, and no column says when it began.
    pub fn stamps_end(&self) -> bool {
        self.stamps_end
    }

    /// The column that was subtracted from times.
    pub fn subtracted(&self) -> Option<&'static str> {
        self.seen_duration.then_some(DURATION)
    }

    /// Reads a row.
    pub fn next(&mut self, record: &mut Record) -> Result<Next, Failure> {
        let bad = |(line, column), what: &str| Ok(Next::Bad(Problem { line, column, what: what.into() }));
        match self.rows.next() {
            Ok(Row::Whole) => {}
            Ok(Row::TooLong) => return bad((self.rows.first, 1), TOO_LONG),
            Ok(Row::Open(line, column)) => return bad((line, column), OPEN),
            Ok(Row::End) => return Ok(Next::End),
            Err(error) => return Err(Failure::Input(format!("{}: {error}", self.rows.number))),
        }
        match self.read(record) {
            Ok(()) => Ok(Next::Record),
            Err((column, what)) => bad(self.rows.place(column), &what),
        }
    }

    /// Reads the wanted columns; a failure has the column.
    fn read(&mut self, record: &mut Record) -> Result<(), (usize, String)> {
        let value = |column: usize| {
            self.rows.column(column).ok_or_else(|| {
                (column, format!("{} columns, and column {} is wanted", self.rows.columns, column + 1))
            })
        };
        let when = value(self.time)?;
        let stamp = time::parse(when.trim_ascii())
            .ok_or_else(|| (self.time, format!("no time: {}", Fields::quote(when))))?;
        // `-` where there was none.
        let duration = self.duration.and_then(|column| time::seconds(value(column).ok()?.trim_ascii()));
        record.ended(stamp, duration.unwrap_or(0));
        for (index, column) in self.fields.iter().enumerate() {
            record.set(index, value(*column)?);
        }
        if let Some(column) = self.cost {
            let text = value(column)?;
            record.cost = cost(text.trim_ascii())
                .ok_or_else(|| (column, format!("no whole number of units: {}", Fields::quote(text))))?;
        }
        self.seen_duration |= duration.is_some();
        Ok(())
    }
}

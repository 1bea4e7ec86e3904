//! CSV with named columns. The first line names them; a comma, semicolon or tab parts them.

use std::io::Read;

use csv::{ByteRecord, Reader, ReaderBuilder};

use super::{time, Fields, Next};
use crate::failure::{Failure, Problem};
use crate::record::{cost, Record, Wants};

const ALSO: [(&str, &[&str]); 3] = [
    ("address", &["remote_addr", "client_ip", "client", "ip", "src", "src_ip", "source"]),
    ("path", &["request_uri", "uri", "url"]),
    ("time", &["timestamp", "ts", "@timestamp", "date", "msec", "time_iso8601", "time_local"]),
];

/// Bytes that are kept at least, so that a message can say where in its row a column begins.
const KEPT: usize = 1 << 16;

/// An input, and the bytes that were read last.
struct Kept<R> {
    input: R,
    bytes: Vec<u8>,
    /// How many bytes stand before these.
    before: u64,
}

impl<R: Read> Read for Kept<R> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let count = self.input.read(to)?;
        if self.bytes.len() > 2 * KEPT {
            self.before += (self.bytes.len() - KEPT) as u64;
            self.bytes.drain(..self.bytes.len() - KEPT);
        }
        self.bytes.extend_from_slice(&to[..count]);
        Ok(count)
    }
}

fn lines(text: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', text).count() as u64
}

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

/// The columns of the first line that are wanted.
pub struct Csv<R> {
    reader: Reader<Kept<R>>,
    mark: u8,
    row: ByteRecord,
    fields: Vec<usize>,
    time: usize,
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

impl<R: Read> Csv<R> {
    /// Reads the first line and finds the columns.
    pub fn new(input: R, mark: u8, wants: &Wants) -> Result<Csv<R>, Failure> {
        let mut reader = ReaderBuilder::new().delimiter(mark).flexible(true).from_reader(Kept {
            input,
            bytes: Vec::new(),
            before: 0,
        });
        let header = reader.byte_headers().map_err(|error| Failure::Input(error.to_string()))?;
        let names: Vec<_> =
            header.iter().map(|name| String::from_utf8_lossy(name.trim_ascii()).into_owned()).collect();
        let column = |name: &str| {
            find(&names, name).ok_or_else(|| Failure::Usage(Fields::missing(name, &names.join(", "))))
        };
        Ok(Csv {
            fields: wants.fields.iter().map(|name| column(name)).collect::<Result<_, _>>()?,
            time: column(wants.time.as_deref().unwrap_or("time"))?,
            cost: wants.cost.as_deref().map(column).transpose()?,
            reader,
            mark,
            row: ByteRecord::new(),
        })
    }

    /// Returns the line and the column at which a wanted value of the last row begins; column 0 if it is not known.
    pub fn place_of(&self, field: usize) -> (u64, usize) {
        self.place(self.fields[field])
    }

    /// Returns the line of the last row.
    pub fn line(&self) -> u64 {
        let more = self.bytes().map_or(0, |(_, lines)| lines);
        self.row.position().map_or(0, |position| position.line() + more)
    }

    /// Reads a row.
    pub fn next(&mut self, record: &mut Record) -> Result<Next, Failure> {
        match self.reader.read_byte_record(&mut self.row) {
            Ok(true) => {}
            Ok(false) => return Ok(Next::End),
            Err(error) => return Err(Failure::Input(error.to_string())),
        }
        Ok(match self.read(record) {
            Ok(()) => Next::Record,
            Err((column, what)) => {
                let (line, column) = self.place(column);
                Next::Bad(Problem { line, column, what })
            }
        })
    }

    /// Returns the bytes of the last row and what follows it, and how many lines end before them: those of empty lines,
    /// and the rest of the end of the line before. None if the row is so long that its start is not kept.
    fn bytes(&self) -> Option<(&[u8], u64)> {
        let kept = self.reader.get_ref();
        let start = self.row.position()?.byte().checked_sub(kept.before)?;
        let bytes = kept.bytes.get(usize::try_from(start).ok()?..)?;
        let ends = bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        Some((&bytes[ends..], lines(&bytes[..ends])))
    }

    /// Returns the line and the column in bytes at which a column of the row begins; 0 if that is not known.
    fn place(&self, column: usize) -> (u64, usize) {
        let Some((row, _)) = self.bytes() else { return (self.line(), 0) };
        let before = &row[..begin(row, self.mark, column)];
        let of_line = memchr::memrchr(b'\n', before).map_or(before.len(), |end| before.len() - end - 1);
        (self.line() + lines(before), of_line + 1)
    }

    /// Reads the wanted columns; a failure has the column.
    fn read(&self, record: &mut Record) -> Result<(), (usize, String)> {
        let value = |column: usize| {
            self.row.get(column).ok_or_else(|| {
                (column, format!("{} columns, and column {} is wanted", self.row.len(), column + 1))
            })
        };
        let when = value(self.time)?;
        let stamp = time::parse(when.trim_ascii())
            .ok_or_else(|| (self.time, format!("no time: {}", Fields::quote(when))))?;
        record.ended(stamp, 0);
        for (index, column) in self.fields.iter().enumerate() {
            record.set(index, value(*column)?);
        }
        if let Some(column) = self.cost {
            let text = value(column)?;
            record.cost = cost(text.trim_ascii())
                .ok_or_else(|| (column, format!("no whole number of units: {}", Fields::quote(text))))?;
        }
        Ok(())
    }
}

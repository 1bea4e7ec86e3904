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

/// The columns of the first line that are wanted.
pub struct Csv<R> {
    reader: Reader<R>,
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
        let mut reader = ReaderBuilder::new().delimiter(mark).flexible(true).from_reader(input);
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
            row: ByteRecord::new(),
        })
    }

    /// Returns the line of the last row.
    pub fn line(&self) -> u64 {
        self.row.position().map_or(0, |position| position.line())
    }

    /// Reads a row.
    pub fn next(&mut self, record: &mut Record) -> Result<Next, Failure> {
        match self.reader.read_byte_record(&mut self.row) {
            Ok(true) => {}
            Ok(false) => return Ok(Next::End),
            Err(error) => return Err(Failure::Input(error.to_string())),
        }
        let line = self.line();
        Ok(match self.read(record) {
            Ok(()) => Next::Record,
            Err(what) => Next::Bad(Problem { line, column: 0, what }),
        })
    }

    fn read(&self, record: &mut Record) -> Result<(), String> {
        let value = |column: usize| {
            self.row
                .get(column)
                .ok_or_else(|| format!("{} columns, and column {} is wanted", self.row.len(), column + 1))
        };
        let when = value(self.time)?;
        let stamp = time::parse(when.trim_ascii())
            .ok_or_else(|| format!("column {}: no time: {}", self.time + 1, Fields::quote(when)))?;
        record.ended(stamp, 0);
        for (index, column) in self.fields.iter().enumerate() {
            record.set(index, value(*column)?);
        }
        if let Some(column) = self.cost {
            let text = value(column)?;
            record.cost = cost(text.trim_ascii()).ok_or_else(|| {
                format!("column {}: no whole number of units: {}", column + 1, Fields::quote(text))
            })?;
        }
        Ok(())
    }
}

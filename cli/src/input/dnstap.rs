//! Queries of a dnstap file: protobuf messages in frames (Frame Streams).
//!
//! Only what clients ask counts: messages of the types `CLIENT_QUERY` and `AUTH_QUERY`. Answers, and what a resolver
//! asks itself, are passed over. The fields are `address`, `name`, `type`, `protocol` and `bytes` (of the query).
//! Addresses are not text here but 4 or 16 bytes.

use std::io::{self, BufRead};

use super::{Fields, Next};
use crate::failure::{Failure, Problem};
use crate::record::{Record, Wants};

const NAMES: [&str; 5] = ["address", "name", "type", "protocol", "bytes"];
/// The longest frame: a DNS message has at most 64 KiB.
const LONGEST: u32 = 1 << 18;

/// The start of a file: a control frame, its length, and that it is the first.
pub fn is_start(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0; 4]) && bytes.get(8..12) == Some(&[0, 0, 0, 2])
}

/// A reader of frames.
pub struct Dnstap<R> {
    source: R,
    fields: Vec<usize>,
    has_cost: bool,
    frame: Vec<u8>,
    number: u64,
    passed_over: u64,
}

/// What is known of a query.
#[derive(Default)]
struct Query<'a> {
    kind: u64,
    protocol: u64,
    address: &'a [u8],
    seconds: Option<u64>,
    nanoseconds: u64,
    message: &'a [u8],
}

/// A value of protobuf.
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// Takes `count` bytes, if they are there.
fn take<'a>(rest: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, after) = rest.split_at_checked(count)?;
    *rest = after;
    Some(taken)
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for place in 0..10 {
        let byte = take(rest, 1)?[0];
        number |= u64::from(byte & 0x7f).checked_shl(7 * place).unwrap_or(0);
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// Calls for each field of a message. None if it is damaged.
fn each<'a>(mut rest: &'a [u8], mut field: impl FnMut(u64, Value<'a>)) -> Option<()> {
    while !rest.is_empty() {
        let tag = varint(&mut rest)?;
        let value = match tag & 7 {
            0 => Value::Number(varint(&mut rest)?),
            1 => Value::Number(u64::from_le_bytes(take(&mut rest, 8)?.try_into().ok()?)),
            2 => {
                let length = usize::try_from(varint(&mut rest)?).ok()?;
                Value::Bytes(take(&mut rest, length)?)
            }
            5 => Value::Number(u64::from(u32::from_le_bytes(take(&mut rest, 4)?.try_into().ok()?))),
            _ => return None,
        };
        field(tag >> 3, value);
    }
    Some(())
}

fn query(frame: &[u8]) -> Option<Query<'_>> {
    let (mut found, mut message) = (Query::default(), &[][..]);
    each(frame, |number, value| {
        if let (14, Value::Bytes(bytes)) = (number, value) {
            message = bytes;
        }
    })?;
    each(message, |number, value| match (number, value) {
        (1, Value::Number(kind)) => found.kind = kind,
        (3, Value::Number(protocol)) => found.protocol = protocol,
        (4, Value::Bytes(address)) => found.address = address,
        (8, Value::Number(seconds)) => found.seconds = Some(seconds),
        (9, Value::Number(nanoseconds)) => found.nanoseconds = nanoseconds,
        (10, Value::Bytes(message)) => found.message = message,
        _ => {}
    })?;
    Some(found)
}

/// The name that a DNS message asks for, in lower case without the last dot, and the type.
fn question(message: &[u8]) -> Option<(Vec<u8>, u16)> {
    let (mut rest, mut name) = (message.get(12..)?, Vec::new());
    loop {
        let length = take(&mut rest, 1)?[0];
        if length == 0 {
            break;
        }
        // A question has no pointers: nothing stands before it.
        if length > 63 {
            return None;
        }
        if !name.is_empty() {
            name.push(b'.');
        }
        name.extend(take(&mut rest, usize::from(length))?.to_ascii_lowercase());
    }
    Some((name, u16::from_be_bytes(take(&mut rest, 2)?.try_into().ok()?)))
}

fn type_name(number: u16) -> String {
    const KNOWN: [(u16, &str); 14] = [
        (1, "A"),
        (2, "NS"),
        (5, "CNAME"),
        (6, "SOA"),
        (12, "PTR"),
        (15, "MX"),
        (16, "TXT"),
        (28, "AAAA"),
        (33, "SRV"),
        (43, "DS"),
        (48, "DNSKEY"),
        (65, "HTTPS"),
        (252, "AXFR"),
        (255, "ANY"),
    ];
    let known = KNOWN.iter().find(|(known, _)| *known == number);
    known.map_or_else(|| format!("TYPE{number}"), |(_, name)| (*name).into())
}

impl<R: BufRead> Dnstap<R> {
    /// Prepares a reader for what is wanted.
    pub fn new(source: R, wants: &Wants) -> Result<Dnstap<R>, Failure> {
        Fields::one_time(wants)?;
        let column = |name: &String| {
            let place = NAMES.iter().position(|known| known == name);
            place.ok_or_else(|| Failure::Usage(Fields::missing(name, &NAMES.join(", "))))
        };
        let fields = wants.fields.iter().map(column).collect::<Result<_, _>>()?;
        match wants.cost.as_deref() {
            None | Some("bytes") => {}
            Some(other) => {
                let what = format!("a query costs 1 or its bytes: no field {other:?} for --cost");
                return Err(Failure::Usage(what));
            }
        }
        Ok(Dnstap {
            source,
            fields,
            has_cost: wants.cost.is_some(),
            frame: Vec::new(),
            number: 0,
            passed_over: 0,
        })
    }

    /// Returns the number of the last message, from 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Returns how many messages were no queries of clients.
    pub fn passed_over(&self) -> u64 {
        self.passed_over
    }

    fn word(&mut self) -> io::Result<u32> {
        let mut word = [0; 4];
        self.source.read_exact(&mut word)?;
        Ok(u32::from_be_bytes(word))
    }

    /// Reads a frame of data. False at the end of the input, which is no error between two frames: a program that is
    /// killed writes no last one, and behind the last frame of a file that of another one may begin.
    fn frame(&mut self) -> io::Result<bool> {
        loop {
            if self.source.fill_buf()?.is_empty() {
                return Ok(false);
            }
            let mut length = self.word()?;
            let is_control = length == 0;
            if is_control {
                length = self.word()?;
            }
            if length > LONGEST {
                let what = format!("a frame of {length} bytes is longer than any message");
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            }
            self.frame.resize(length as usize, 0);
            self.source.read_exact(&mut self.frame)?;
            if !is_control {
                return Ok(true);
            }
        }
    }

    /// Reads until the next query.
    pub fn next(&mut self, record: &mut Record) -> Result<Next, Failure> {
        loop {
            match self.frame() {
                Ok(true) => self.number += 1,
                Ok(false) => return Ok(Next::End),
                Err(error) => {
                    let what = match error.kind() {
                        io::ErrorKind::UnexpectedEof => "the input ends inside of this message".into(),
                        _ => error.to_string(),
                    };
                    return Err(Failure::Input(format!("{}: {what}", self.number + 1)));
                }
            }
            let bad = |what: &str| Next::Bad(Problem { line: self.number, column: 0, what: what.into() });
            let Some(query) = query(&self.frame) else { return Ok(bad("no dnstap message")) };
            if !matches!(query.kind, 1 | 5) {
                self.passed_over += 1;
                continue;
            }
            let Some(seconds) = query.seconds else { return Ok(bad("the query has no time")) };
            let Some(time) = seconds.checked_mul(1_000_000_000) else { return Ok(bad("no time: too large")) };
            record.ended(time.saturating_add(query.nanoseconds), 0);
            let bytes = query.message.len() as u64;
            record.cost = if self.has_cost { bytes } else { 1 };
            for (index, field) in self.fields.iter().enumerate() {
                match field {
                    0 => record.set(index, query.address),
                    1 | 2 => {
                        let Some((name, number)) = question(query.message) else {
                            return Ok(bad("the query has no question"));
                        };
                        let value = if *field == 1 { name } else { type_name(number).into_bytes() };
                        record.set(index, &value);
                    }
                    3 => record.set(index, query.protocol.to_string().as_bytes()),
                    _ => record.set(index, bytes.to_string().as_bytes()),
                }
            }
            return Ok(Next::Record);
        }
    }
}

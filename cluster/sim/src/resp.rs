//! The protocol, from the server's side: commands as lists of texts, and replies.

use std::io::Write;

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A word.
    Status(String),
    /// An error, beginning with its code.
    Error(String),
    /// A number.
    Int(i64),
    /// A text.
    Bulk(Vec<u8>),
    /// Nothing.
    Nil,
    /// A list.
    Array(Vec<Reply>),
}

impl Reply {
    /// Returns a text.
    pub fn text(text: &str) -> Reply {
        Reply::Bulk(text.as_bytes().to_vec())
    }

    /// Appends its bytes.
    pub fn write(&self, into: &mut Vec<u8>) {
        // A vector takes everything.
        let _ = match self {
            Reply::Status(text) => write!(into, "+{text}\r\n"),
            Reply::Error(text) => write!(into, "-{text}\r\n"),
            Reply::Int(n) => write!(into, ":{n}\r\n"),
            Reply::Nil => into.write_all(b"$-1\r\n"),
            Reply::Bulk(text) => {
                let _ = write!(into, "${}\r\n", text.len());
                into.extend_from_slice(text);
                into.write_all(b"\r\n")
            }
            Reply::Array(list) => {
                let begun = write!(into, "*{}\r\n", list.len());
                list.iter().for_each(|item| item.write(into));
                begun
            }
        };
    }
}

/// The words of a command.
pub type Words<'a> = Vec<&'a [u8]>;

/// Takes the next whole command from the bytes that came. `None` if it is not there yet; an error if it is none.
pub fn command(bytes: &[u8]) -> Result<Option<(Words<'_>, usize)>, &'static str> {
    let mut at = 0;
    let Some(count) = number(bytes, &mut at, b'*')? else { return Ok(None) };
    let mut words = Vec::with_capacity(count);
    for _ in 0..count {
        let Some(length) = number(bytes, &mut at, b'$')? else { return Ok(None) };
        let Some(word) = bytes.get(at..at + length) else { return Ok(None) };
        if bytes.len() < at + length + 2 {
            return Ok(None);
        }
        words.push(word);
        at += length + 2;
    }
    Ok(Some((words, at)))
}

fn number(bytes: &[u8], at: &mut usize, kind: u8) -> Result<Option<usize>, &'static str> {
    let Some(rest) = bytes.get(*at..) else { return Ok(None) };
    let end = rest.iter().position(|byte| *byte == b'\r').filter(|end| rest.get(end + 1) == Some(&b'\n'));
    let Some(end) = end else { return Ok(None) };
    let digits = rest[..end].strip_prefix(&[kind]).and_then(|digits| std::str::from_utf8(digits).ok());
    *at += end + 2;
    digits.and_then(|digits| digits.parse().ok()).map(Some).ok_or("ERR Protocol error")
}

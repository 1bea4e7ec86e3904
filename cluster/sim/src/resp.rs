//! The protocol, from the server's side: commands as lists of texts, and replies.

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
        let line = |into: &mut Vec<u8>, kind: u8, text: &[u8]| {
            into.push(kind);
            into.extend_from_slice(text);
            into.extend_from_slice(b"\r\n");
        };
        let number = |into: &mut Vec<u8>, kind: u8, n: i64| {
            into.push(kind);
            digits(into, n);
            into.extend_from_slice(b"\r\n");
        };
        match self {
            Reply::Status(text) => line(into, b'+', text.as_bytes()),
            Reply::Error(text) => line(into, b'-', text.as_bytes()),
            Reply::Int(n) => number(into, b':', *n),
            Reply::Nil => line(into, b'$', b"-1"),
            Reply::Bulk(text) => {
                number(into, b'$', text.len() as i64);
                into.extend_from_slice(text);
                into.extend_from_slice(b"\r\n");
            }
            Reply::Array(list) => {
                number(into, b'*', list.len() as i64);
                list.iter().for_each(|item| item.write(into));
            }
        }
    }
}

/// Appends a number; most of what a world writes are numbers, and the formatter of the library takes longer.
fn digits(into: &mut Vec<u8>, n: i64) {
    if n < 0 {
        into.push(b'-');
    }
    let (mut rest, mut text, mut at) = (n.unsigned_abs(), [0; 20], 20);
    loop {
        at -= 1;
        text[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    into.extend_from_slice(&text[at..]);
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
    *at += end + 2;
    let digits = rest[..end].strip_prefix(&[kind]).filter(|digits| (1..=9).contains(&digits.len()));
    let value = digits.and_then(|digits| {
        digits.iter().try_fold(0, |n, byte| byte.is_ascii_digit().then(|| n * 10 + usize::from(byte - b'0')))
    });
    value.map(Some).ok_or("ERR Protocol error")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_and_read_as_the_library_does() {
        for n in [0, 1, 9, 10, 4_096, i64::MAX, -1, i64::MIN] {
            let mut text = Vec::new();
            Reply::Int(n).write(&mut text);
            assert_eq!(text, format!(":{n}\r\n").into_bytes());
        }
        let words = command(b"*2\r\n$3\r\nGET\r\n$10\r\n0123456789\r\n*1").expect("a command");
        assert_eq!(words, Some((vec![&b"GET"[..], b"0123456789"], 30)));
        for part in [&b"*2\r\n$3\r\nGET\r\n$1"[..], b"*2\r\n$3\r\nGE", b"*"] {
            assert_eq!(command(part), Ok(None));
        }
        for wrong in [&b"+OK\r\n"[..], b"*x\r\n", b"*\r\n", b"*1\r\n$-1\r\n", b"*9999999999\r\n"] {
            assert!(command(wrong).is_err());
        }
    }
}

//! RESP, the protocol of Redis: commands in, replies out. Nothing is copied on the way in.
//!
//! A command is an array of bulk strings, or a line of words ("inline"). It has at most [`MAX_ARGS`] words and
//! [`MAX_COMMAND`] bytes. A longer or malformed one gets an error, and then the connection ends.

/// The most words of a command.
pub const MAX_ARGS: usize = 32;

/// The most bytes of a command, with all its headers.
pub const MAX_COMMAND: usize = 64 * 1024;
const LONG: ProtocolError = "a command is longer than 64 KiB";

/// The most bytes of a line: a header, or an inline command.
const MAX_LINE: usize = 4 * 1024;

/// Holds the words of a command.
#[derive(Clone, Copy, Debug)]
pub struct Args<'a> {
    words: [&'a [u8]; MAX_ARGS],
    count: usize,
}

impl<'a> Args<'a> {
    fn new() -> Args<'a> {
        Args { words: [&[]; MAX_ARGS], count: 0 }
    }

    fn push(&mut self, word: &'a [u8]) -> Result<(), ProtocolError> {
        *self.words.get_mut(self.count).ok_or("a command has more than 32 words")? = word;
        self.count += 1;
        Ok(())
    }
}

impl<'a> std::ops::Deref for Args<'a> {
    type Target = [&'a [u8]];

    fn deref(&self) -> &[&'a [u8]] {
        &self.words[..self.count]
    }
}

/// Says why bytes are not a command.
pub type ProtocolError = &'static str;

/// Parses the first command: its words (none for an empty one) and its length. Returns `None` if it is incomplete.
///
/// # Errors
/// The bytes can never become a command.
pub fn parse(bytes: &[u8]) -> Result<Option<(Args<'_>, usize)>, ProtocolError> {
    let parsed = match bytes.first() {
        None => Ok(None),
        Some(b'*') => array(bytes),
        Some(_) => inline(bytes),
    };
    match parsed {
        Ok(None) if bytes.len() >= MAX_COMMAND => Err(LONG),
        parsed => parsed,
    }
}

fn array(bytes: &[u8]) -> Result<Option<(Args<'_>, usize)>, ProtocolError> {
    let mut args = Args::new();
    let Some((count, mut at)) = header(bytes, 1)? else { return Ok(None) };
    let count = count.ok_or("invalid multibulk length")?;
    if count > MAX_ARGS as i64 {
        return Err("invalid multibulk length");
    }
    for _ in 0..count {
        match bytes.get(at) {
            None => return Ok(None),
            Some(b'$') => {}
            Some(_) => return Err("expected '$'"),
        }
        let Some((length, begin)) = header(bytes, at + 1)? else { return Ok(None) };
        let length = length.and_then(|l| usize::try_from(l).ok()).filter(|l| *l <= MAX_COMMAND);
        let end = begin + length.ok_or("invalid bulk length")?;
        if end + 2 > MAX_COMMAND {
            return Err(LONG);
        }
        match bytes.get(end..end + 2) {
            None => return Ok(None),
            Some(b"\r\n") => args.push(&bytes[begin..end])?,
            Some(_) => return Err("expected the end of a line after a word"),
        }
        at = end + 2;
    }
    Ok(Some((args, at)))
}

/// Returns the number between `from` and the end of its line (`None` if it is not one), and where the next line begins.
fn header(bytes: &[u8], from: usize) -> Result<Option<(Option<i64>, usize)>, ProtocolError> {
    const DIGITS: usize = 20;
    let rest = bytes.get(from..).unwrap_or_default();
    match rest.iter().take(DIGITS + 1).position(|byte| *byte == b'\r') {
        Some(end) if end + 1 == rest.len() => Ok(None),
        Some(end) if rest[end + 1] == b'\n' => Ok(Some((integer(&rest[..end]), from + end + 2))),
        None if rest.len() <= DIGITS => Ok(None),
        _ => Err("invalid length"),
    }
}

/// Parses a whole number as clients write it.
pub fn integer(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn inline(bytes: &[u8]) -> Result<Option<(Args<'_>, usize)>, ProtocolError> {
    let Some(end) = bytes.iter().take(MAX_LINE).position(|byte| *byte == b'\n') else {
        return if bytes.len() < MAX_LINE { Ok(None) } else { Err("too big inline request") };
    };
    let line = &bytes[..end];
    if line.iter().any(|byte| matches!(byte, b'"' | b'\'')) {
        return Err("quotes in an inline command; send an array");
    }
    let mut args = Args::new();
    for word in line.split(|byte| byte.is_ascii_whitespace()).filter(|word| !word.is_empty()) {
        args.push(word)?;
    }
    Ok(Some((args, end + 1)))
}

/// Returns the first 64 bytes of a word, for an error.
pub fn shown(word: &[u8]) -> String {
    String::from_utf8_lossy(&word[..word.len().min(64)]).into_owned()
}

/// Writes a command, as clients do.
pub fn command(out: &mut Vec<u8>, args: &Args<'_>) {
    array_of(out, args.len());
    args.iter().for_each(|word| bulk(out, word));
}

/// Writes a status.
pub fn simple(out: &mut Vec<u8>, text: &str) {
    line(out, b'+', text);
}

/// Writes an error; its first word is the code.
pub fn error(out: &mut Vec<u8>, text: &str) {
    line(out, b'-', text);
}

fn line(out: &mut Vec<u8>, kind: u8, text: &str) {
    out.push(kind);
    out.extend(text.bytes().map(|byte| if byte.is_ascii_control() { b' ' } else { byte }));
    out.extend_from_slice(b"\r\n");
}

/// Writes a number.
pub fn number(out: &mut Vec<u8>, value: i64) {
    headed(out, b':', value);
}

/// Begins an array.
pub fn array_of(out: &mut Vec<u8>, length: usize) {
    headed(out, b'*', length as i64);
}

/// Begins a map of this many pairs, which clients of RESP2 get as an array.
pub fn map_of(out: &mut Vec<u8>, resp3: bool, pairs: usize) {
    headed(out, if resp3 { b'%' } else { b'*' }, if resp3 { pairs } else { pairs * 2 } as i64);
}

/// Writes a bulk string.
pub fn bulk(out: &mut Vec<u8>, text: &[u8]) {
    headed(out, b'$', text.len() as i64);
    out.extend_from_slice(text);
    out.extend_from_slice(b"\r\n");
}

/// Writes a null.
pub fn null(out: &mut Vec<u8>, resp3: bool) {
    out.extend_from_slice(if resp3 { b"_\r\n" } else { b"$-1\r\n" });
}

/// Writes a number without the formatting of the standard library, which takes as long as a decision.
fn headed(out: &mut Vec<u8>, kind: u8, value: i64) {
    let mut text = [0; 24];
    let mut at = text.len() - 2;
    text[at..].copy_from_slice(b"\r\n");
    let mut rest = value.unsigned_abs();
    loop {
        at -= 1;
        text[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        at -= 1;
        text[at] = b'-';
    }
    out.push(kind);
    out.extend_from_slice(&text[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(bytes: &[u8]) -> Option<(Vec<Vec<u8>>, usize)> {
        let (args, used) = parse(bytes).expect("a command")?;
        Some((args.iter().map(|w| w.to_vec()).collect(), used))
    }

    #[test]
    fn a_command_is_whole_at_its_last_byte_and_not_before() {
        let array = b"*3\r\n$4\r\nECHO\r\n$0\r\n\r\n$5\r\na\r\nb\n\r\nrest";
        let whole = array.len() - 4;
        (0..whole).for_each(|end| assert_eq!(words(&array[..end]), None, "{end}"));
        let expected = vec![b"ECHO".to_vec(), b"".to_vec(), b"a\r\nb\n".to_vec()];
        assert_eq!(words(array), Some((expected, whole)));
        let line = b"  PING \t x \r\nrest";
        (1..13).for_each(|end| assert_eq!(words(&line[..end]), None, "{end}"));
        assert_eq!(words(line), Some((vec![b"PING".to_vec(), b"x".to_vec()], 13)));
        for empty in [&b"\r\n"[..], b"\n", b"*0\r\n", b"*-1\r\n"] {
            assert_eq!(words(empty), Some((vec![], empty.len())));
        }
    }

    #[test]
    fn what_can_never_be_a_command_is_refused() {
        let long = [b"*1\r\n$4\r\n".to_vec(), vec![b'x'; 20]].concat();
        let line = vec![b'x'; MAX_LINE];
        let piece = [&b"$9000\r\n"[..], &[b'y'; 9_000], b"\r\n"].concat();
        let many = [b"*9\r\n".to_vec(), piece.repeat(9)].concat();
        let words = b"x ".repeat(MAX_ARGS + 1);
        for wrong in [
            &b"*x\r\n"[..],
            b"*33\r\n",
            b"*99999999999999999999\r\n",
            b"*999999999999999999999999999",
            b"*1\rx",
            b"*1\r\nPING\r\n",
            b"*1\r\n$-1\r\n",
            b"*1\r\n$65537\r\n",
            b"*1\r\n$x\r\n",
            &long,
            &line,
            &many,
            &[&words[..], b"\r\n"].concat(),
            b"GET \"a b\"\r\n",
        ] {
            assert!(parse(wrong).is_err(), "{}", String::from_utf8_lossy(wrong));
        }
    }

    #[test]
    fn numbers_are_written_as_the_standard_library_writes_them() {
        for value in [0, 1, -1, 9, 10, 16, 99, 100, i64::MAX, i64::MIN, 1 << 40] {
            let mut out = Vec::new();
            number(&mut out, value);
            assert_eq!(String::from_utf8(out), Ok(format!(":{value}\r\n")));
        }
        let mut out = Vec::new();
        error(&mut out, "ERR a\r\nb");
        map_of(&mut out, false, 7);
        map_of(&mut out, true, 7);
        assert_eq!(out, b"-ERR a  b\r\n*14\r\n%7\r\n");
    }
}

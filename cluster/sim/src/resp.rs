//! The protocol, from the server's side: commands as lists of texts, and replies.

use redis_protocol::resp2::decode::decode_range;
use redis_protocol::resp2::encode::encode;
pub use redis_protocol::resp2::types::OwnedFrame as Reply;
use redis_protocol::resp2::types::{RangeFrame, Resp2Frame};

/// Returns a text.
pub fn text(text: &str) -> Reply {
    Reply::BulkString(text.as_bytes().to_vec())
}

/// Appends the bytes of a reply.
pub fn write(reply: &Reply, into: &mut Vec<u8>) {
    let from = into.len();
    into.resize(from + reply.encode_len(false), 0);
    encode(&mut into[from..], reply, false).expect("it has the length of the reply");
}

/// The words of a command.
pub type Words<'a> = Vec<&'a [u8]>;

/// Takes the next whole command from the bytes that came. `None` if it is not there yet; an error if it is none.
pub fn command(bytes: &[u8]) -> Result<Option<(Words<'_>, usize)>, &'static str> {
    let wrong = "ERR Protocol error";
    let Some((frame, length)) = decode_range(bytes).map_err(|_| wrong)? else { return Ok(None) };
    let RangeFrame::Array(words) = frame else { return Err(wrong) };
    let word = |word| match word {
        RangeFrame::BulkString((from, to)) => Ok(&bytes[from..to]),
        _ => Err(wrong),
    };
    Ok(Some((words.into_iter().map(word).collect::<Result<_, _>>()?, length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_whole_or_not_there_yet_or_none() {
        let words = command(b"*2\r\n$3\r\nGET\r\n$10\r\n0123456789\r\n*1").expect("a command");
        assert_eq!(words, Some((vec![&b"GET"[..], b"0123456789"], 30)));
        for part in [&b"*2\r\n$3\r\nGET\r\n$1"[..], b"*2\r\n$3\r\nGE", b"*"] {
            assert_eq!(command(part), Ok(None));
        }
        for wrong in [&b"+OK\r\n"[..], b"*x\r\n", b"*\r\n", b"*1\r\n$-1\r\n"] {
            assert!(command(wrong).is_err());
        }
    }
}

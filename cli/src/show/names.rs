//! Keys as text, and their hashes in a table.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use data_encoding::HEXLOWER_PERMISSIVE;
use tatcell::{Address, Mode, Slot, Table};

use crate::failure::{Failure, Problem};
use crate::progress::{bar, short, Progress};

/// How a text names a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum As {
    /// An address (its 4 or 16 bytes), a network such as 192.0.2.0/24, or else text.
    Auto,
    /// The bytes of the text.
    Text,
    /// Hexadecimal digits, two a byte.
    Hex,
}

/// Returns the hash of the key that a text names.
pub fn hash<M: Mode>(table: &Table<'_, M>, text: &str, form: As) -> Result<u64, String> {
    let made = match form {
        As::Text => table.hash(text.as_bytes()),
        As::Hex | As::Auto if text.trim().is_empty() => {
            return Err("the key is empty; --as text takes it as text".into());
        }
        As::Hex => table.hash(&bytes(text)?),
        As::Auto => match address(text)? {
            Some((address, None)) => table.hash(address.bytes()),
            Some((address, Some(bits))) => table.prefix_hash(&address, bits, bits),
            None => table.hash(text.as_bytes()),
        },
    };
    made.map_err(|error| error.to_string())
}

/// Reads an address, or a network with its length; `None` if the text is neither.
fn address(text: &str) -> Result<Option<(Address, Option<u8>)>, String> {
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits)),
        None => (text, None),
    };
    let Ok(address) = address.parse::<IpAddr>() else {
        return match is_nearly_an_address(address) {
            true => Err(format!("{text:?} is no address and no network; --as text takes it as text")),
            false => Ok(None),
        };
    };
    let most = if address.is_ipv4() { 32 } else { 128 };
    let bits = match bits {
        None => None,
        Some(bits) => match bits.parse() {
            Ok(bits) if bits <= most => Some(bits),
            _ => return Err(format!("{text:?}: a network of {address} has 0 to {most} bits")),
        },
    };
    let octets = match address {
        IpAddr::V4(address) => Address::new(&address.octets()),
        IpAddr::V6(address) => Address::new(&address.octets()),
    };
    Ok(octets.map(|address| (address, bits)))
}

/// Whether a text was probably meant as an address: one that is mistyped, or has a port or a zone.
fn is_nearly_an_address(text: &str) -> bool {
    let host = text.trim_start_matches('[').split(['%', ']']).next().unwrap_or(text);
    let is_number = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'.' | b':');
    (host.len() < text.len() && host.parse::<IpAddr>().is_ok())
        || (host.contains(['.', ':']) && host.bytes().all(is_number))
}

fn bytes(text: &str) -> Result<Vec<u8>, String> {
    let bytes = HEXLOWER_PERMISSIVE.decode(text.as_bytes());
    bytes.map_err(|_| format!("{text:?} is no key in hexadecimal digits, two a byte"))
}

/// Most names that are listed for one slot.
const NAMES: usize = 4;
/// The longest line of a file with keys, without its end.
const LINE: usize = 1 << 16;

/// Finds whose the slots may be among the keys of a file, one a line. Memory: only the names that it returns.
pub fn candidates<M: Mode>(
    table: &Table<'_, M>,
    slots: &[Slot],
    file: &str,
    form: As,
    progress: &Progress,
) -> Result<Vec<Vec<String>>, Failure> {
    let fail = |error: std::io::Error| Failure::Input(format!("{file}: {error}"));
    let input = File::open(file).map_err(fail)?;
    let all = input.metadata().ok().filter(|data| data.is_file()).map(|data| data.len());
    let read = Arc::new(AtomicU64::new(0));
    let (name, shared) = (file.to_owned(), Arc::clone(&read));
    progress.says(move || {
        // ORDERING: Relaxed, here and below; a single number, which nothing else depends on.
        let read = shared.load(Ordering::Relaxed);
        all.map_or_else(|| format!("{} {} MB", short(&name), read / 1_000_000), |all| bar(&name, read, all))
    });
    let mut input = BufReader::new(input);
    let mut found = vec![Vec::new(); slots.len()];
    let mut line = Vec::new();
    for number in 1.. {
        let wrong = |column, what: &str| {
            Failure::Input(Problem { line: number, column, what: what.into() }.in_file(file))
        };
        line.clear();
        // With "\r\n" at its end.
        if input.by_ref().take(LINE as u64 + 2).read_until(b'\n', &mut line).map_err(fail)? == 0 {
            break;
        }
        let key = line.strip_suffix(b"\n").map_or(&line[..], |key| key.strip_suffix(b"\r").unwrap_or(key));
        if key.len() > LINE {
            return Err(wrong(1, "a line has at most 65536 bytes"));
        }
        // ORDERING: as above.
        read.fetch_add(line.len() as u64, Ordering::Relaxed);
        let text = std::str::from_utf8(&line)
            .map_err(|error| wrong(error.valid_up_to() + 1, "not UTF-8: write such keys with --as hex"))?;
        let column = text.len() - text.trim_start().len() + 1;
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let hash = hash(table, text, form).map_err(|what| wrong(column, &what))?;
        for (names, slot) in found.iter_mut().zip(slots) {
            if names.len() < NAMES && table.may_be(slot, hash) && !names.iter().any(|name| name == text) {
                names.push(text.to_owned());
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_networks_are_told_from_text() {
        let length =
            |text| address(text).map(|found| found.map(|(address, bits)| (address.bytes().len(), bits)));
        assert_eq!(length("192.0.2.1"), Ok(Some((4, None))));
        assert_eq!(length("2001:db8::/48"), Ok(Some((16, Some(48)))));
        assert_eq!(length("user/7"), Ok(None));
        assert_eq!(length("api key"), Ok(None));
        assert!(length("192.0.2.0/33").is_err() && length("192.0.2.0/x").is_err());
        for meant in ["192.0.2.256", "192.0.2.1:80", "192.0.2/24", "fe80::1%eth0", "[2001:db8::1]:443"] {
            assert!(length(meant).is_err(), "{meant}");
        }
        for text in ["12345", "example.com", "ann@example.com", "100%", "[x]"] {
            assert_eq!(length(text), Ok(None), "{text}");
        }
    }

    #[test]
    fn hexadecimal_digits_are_bytes() {
        assert_eq!(bytes("00fF"), Ok(vec![0, 255]));
        assert!(bytes("0").is_err() && bytes("0g").is_err() && bytes("é").is_err());
    }
}

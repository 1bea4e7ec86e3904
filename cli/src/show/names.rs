//! Keys as text, and their hashes in a table.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::IpAddr;

use tatcell::{Address, Mode, Slot, Table};

use crate::failure::{Failure, Problem};

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
    let Ok(address) = address.parse::<IpAddr>() else { return Ok(None) };
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

fn bytes(text: &str) -> Result<Vec<u8>, String> {
    let fail = || format!("{text:?} is no key in hexadecimal digits, two a byte");
    if !text.len().is_multiple_of(2) || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(fail());
    }
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).map_err(|_| fail())).collect()
}

/// Most names that are listed for one slot.
const NAMES: usize = 4;

/// Finds whose the slots may be among the keys of a file, one a line. Memory: only the names that it returns.
pub fn candidates<M: Mode>(
    table: &Table<'_, M>,
    slots: &[Slot],
    file: &str,
    form: As,
) -> Result<Vec<Vec<String>>, Failure> {
    let fail = |error: std::io::Error| Failure::Input(format!("{file}: {error}"));
    let mut found = vec![Vec::new(); slots.len()];
    for (number, line) in (1..).zip(BufReader::new(File::open(file).map_err(fail)?).lines()) {
        let line = line.map_err(fail)?;
        let text = line.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let hash = hash(table, text, form)
            .map_err(|what| Failure::Input(Problem { line: number, column: 1, what }.in_file(file)))?;
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
    }

    #[test]
    fn hexadecimal_digits_are_bytes() {
        assert_eq!(bytes("00fF"), Ok(vec![0, 255]));
        assert!(bytes("0").is_err() && bytes("0g").is_err() && bytes("é").is_err());
    }
}

//! Keys for a store: a node and its store keep each key whole, so they get no long one.

use std::borrow::Cow;

/// The most bytes of a key behind a store.
pub const KEY: usize = 256;

const DIGEST: usize = 40;

/// Returns a key as the store gets it: a key with fewer than 256 bytes itself, and for a longer one its first 216
/// bytes and the digest (SHA-1) of the whole, which are 256 bytes. So it differs from every key that is not long.
/// Nobody can find another key with the digest of a given one. SHA-1 collides: whoever chooses both keys can make two
/// that share one limit, which gives them no more than one key has.
pub fn short(key: &[u8]) -> Cow<'_, [u8]> {
    if key.len() < KEY {
        return Cow::Borrowed(key);
    }
    let digest = sha1_smol::Sha1::from(key).digest().to_string();
    Cow::Owned([&key[..KEY - DIGEST], digest.as_bytes()].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_keys_become_short_ones_and_none_becomes_another() {
        let of = |length: usize, last: u8| [&vec![b'k'; length - 1][..], &[last]].concat();
        for key in [&b""[..], b"user", &of(255, b'a')] {
            assert_eq!(short(key), key);
        }
        let long: Vec<Vec<u8>> =
            [256, 257, 60_000].iter().flat_map(|n| [of(*n, b'a'), of(*n, b'b')]).collect();
        let mut names: Vec<_> = long.iter().map(|key| short(key).into_owned()).collect();
        assert!(names.iter().all(|name| name.len() == KEY && name.starts_with(&[b'k'; KEY - DIGEST])));
        // One that another program computed: printf 'k%.0s' $(seq 256) | sha1sum
        assert!(short(&[b'k'; 256]).ends_with(b"490d7286e1a2aa9f9820231a3f622a6aaf886981"));
        names.sort();
        names.dedup();
        assert_eq!(names.len(), long.len());
    }
}

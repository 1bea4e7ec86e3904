//! The fields of a request that this service knows, by their numbers: the current version of Envoy's API.
//!
//! A reader of protobuf skips what it does not know. A field of a later version may change what a request means, as the
//! one that makes hits negative did, and a service that skips it would charge what is to be given back. So an unknown
//! field is an error that names it.

use prost::bytes::Buf;
use prost::encoding::{decode_key, decode_varint, skip_field, DecodeContext, WireType};

/// The most descriptors of a request, and entries of all of them: far more than proxies send.
pub const DESCRIPTORS: usize = 100;
/// See [`DESCRIPTORS`].
pub const ENTRIES: usize = 1_000;

/// The error of a request with more, or with no descriptor.
pub(crate) const TOO_MANY: &str = "a request must have 1 to 100 descriptors with at most 1000 entries in all";

/// The fields of a message.
#[derive(Debug)]
pub(crate) struct Known {
    name: &'static str,
    /// The number of each field, and the message that it holds.
    fields: &'static [(u32, Option<&'static Known>)],
}

pub(crate) const REQUEST: Known =
    Known { name: "RateLimitRequest", fields: &[(1, None), (2, Some(&DESCRIPTOR)), (3, None)] };

const DESCRIPTOR: Known = Known {
    name: "RateLimitDescriptor",
    fields: &[(1, Some(&ENTRY)), (2, Some(&OVERRIDE)), (3, Some(&WRAPPED)), (4, None)],
};

const ENTRY: Known = Known { name: "RateLimitDescriptor.Entry", fields: &[(1, None), (2, None)] };

const OVERRIDE: Known =
    Known { name: "RateLimitDescriptor.RateLimitOverride", fields: &[(1, None), (2, None)] };

const WRAPPED: Known = Known { name: "google.protobuf.UInt64Value", fields: &[(1, None)] };

/// The most messages in a request: descriptors, their entries, and for each descriptor a limit and hits. An empty entry
/// has two bytes here and 48 in memory, so a request with more is refused before it is read.
const MESSAGES: usize = DESCRIPTORS + ENTRIES + 2 * DESCRIPTORS;

impl Known {
    /// Finds a field that is not known, and counts messages. What is malformed is left to the parser.
    ///
    /// # Errors
    /// The message and the number of the field; or there are too many messages.
    pub(crate) fn check(&self, bytes: &[u8]) -> Result<(), String> {
        let mut left = MESSAGES;
        self.within(bytes, &mut left)
    }

    /// Checks a message of a request that may have `left` more.
    fn within(&self, mut bytes: &[u8], left: &mut usize) -> Result<(), String> {
        while bytes.has_remaining() {
            let Ok((number, kind)) = decode_key(&mut bytes) else { return Ok(()) };
            let Some((_, inner)) = self.fields.iter().find(|(known, _)| *known == number) else {
                return Err(format!(
                    "{} has a field {number}, which this version does not know: it may change what is asked",
                    self.name
                ));
            };
            if kind != WireType::LengthDelimited {
                if skip_field(kind, number, &mut bytes, DecodeContext::default()).is_err() {
                    return Ok(());
                }
                continue;
            }
            let Ok(length) = decode_varint(&mut bytes) else { return Ok(()) };
            let Some((field, rest)) = usize::try_from(length).ok().and_then(|n| bytes.split_at_checked(n))
            else {
                return Ok(());
            };
            if let Some(inner) = inner {
                *left = left.checked_sub(1).ok_or(TOO_MANY)?;
                inner.within(field, left)?;
            }
            bytes = rest;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;
    use crate::api::{Descriptor, Entry, Override, RateLimitRequest};

    /// A request with every field.
    fn whole() -> RateLimitRequest {
        let descriptor = Descriptor {
            entries: vec![Entry { key: "user".into(), value: "a".into() }; 2],
            limit: Some(Override { requests_per_unit: 7, unit: 3 }),
            hits_addend: Some(1 << 40),
            is_negative_hits: true,
        };
        RateLimitRequest { domain: "d".into(), descriptors: vec![descriptor; 2], hits_addend: 9 }
    }

    #[test]
    fn every_field_of_the_api_is_known_and_any_other_is_named() {
        let bytes = whole().encode_to_vec();
        assert_eq!(REQUEST.check(&bytes), Ok(()));
        assert_eq!(REQUEST.check(&[]), Ok(()));
        // A number, a text, and eight and four bytes, in each message.
        let field = |number: u8, kind: u8, value: &[u8]| [&[number << 3 | kind], value].concat();
        let unknown =
            [field(9, 0, &[1]), field(9, 2, &[2, b'h', b'i']), field(9, 1, &[0; 8]), field(9, 5, &[0; 4])];
        let within = |number: u8, inner: Vec<u8>| [field(number, 2, &[inner.len() as u8]), inner].concat();
        for unknown in unknown {
            for (message, bytes) in [
                ("RateLimitRequest", unknown.clone()),
                ("RateLimitDescriptor", within(2, unknown.clone())),
                ("RateLimitDescriptor.Entry", within(2, within(1, unknown.clone()))),
                ("RateLimitDescriptor.RateLimitOverride", within(2, within(2, unknown.clone()))),
                ("google.protobuf.UInt64Value", within(2, within(3, unknown.clone()))),
            ] {
                let said = REQUEST.check(&[&whole().encode_to_vec()[..], &bytes].concat());
                let begin = format!("{message} has a field 9, ");
                assert!(said.as_ref().is_err_and(|why| why.starts_with(&begin)), "{message}: {said:?}");
            }
        }
    }

    #[test]
    fn no_bytes_of_any_kind_do_harm() {
        let whole = whole().encode_to_vec();
        for end in 0..whole.len() {
            // Cut short: the parser says what is wrong.
            assert_eq!(REQUEST.check(&whole[..end]), Ok(()));
            for byte in 0..=255 {
                let mut bytes = whole.clone();
                bytes[end] = byte;
                let _ = REQUEST.check(&bytes);
            }
        }
        // Messages without end.
        let descriptors =
            RateLimitRequest { descriptors: vec![Descriptor::default(); 1_301], ..Default::default() };
        let full = Descriptor { entries: vec![Entry::default(); 13], ..Default::default() };
        let entries = RateLimitRequest { descriptors: vec![full; 100], ..Default::default() };
        for many in [descriptors, entries] {
            assert_eq!(REQUEST.check(&many.encode_to_vec()), Err(TOO_MANY.to_owned()));
        }
        // Groups in groups, without end.
        let _ = REQUEST.check(&[0x0b; 10_000]);
    }
}

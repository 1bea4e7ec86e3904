//! The hash of a key, which a table needs; and the prefixes of an address, which are keys.

pub(crate) mod aes;

mod address;
mod hash;
mod ladder;
mod prefixes;

pub use address::{Address, PrefixKey};
pub(crate) use hash::{home_line, home_of, Hasher, NoHasher};
pub use hash::{second_hash, HashKind};
pub(crate) use ladder::MAX_RUNGS;
pub use ladder::{Ladder, LadderError, Rung};
pub(crate) use prefixes::Cut;

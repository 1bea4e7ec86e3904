//! From a key to what a table needs of it: its hash. And from an address to its prefixes, which are keys.

pub(crate) mod aes;

mod address;
mod hash;
mod ladder;

pub use address::{Address, PrefixKey};
pub(crate) use hash::{home_line, home_of, Hasher, NoHasher};
pub use hash::{second_hash, HashKind};
pub(crate) use ladder::MAX_RUNGS;
pub use ladder::{Ladder, LadderError, Rung};

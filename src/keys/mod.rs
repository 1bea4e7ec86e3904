//! From a key to what a table needs of it: its hash.

pub(crate) mod aes;
mod hash;

pub use hash::HashKind;
pub(crate) use hash::{home_line, Hasher, NoHasher};

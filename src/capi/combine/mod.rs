//! Several limits for one request: chains, the prefixes of an address, pairs and colours of a key.

mod address;
pub(super) mod chain;
mod chain_in_place;
mod ladder;
mod ladder_told;
mod mark;
mod pair;

//! Several limits for one request: chains, the prefixes of an address, pairs and colours of a key.

mod address;
mod burst_elastic;
mod chain;
mod chain_in_place;
mod ladder;
mod ladder_burst;
mod ladder_told;
pub(super) mod links;
mod mark;
mod pair;
mod prepared;
mod verdict;

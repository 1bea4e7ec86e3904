//! Tests of combined limits: chains, marks, prefixes, shapers; and the figures of the guide.

#[path = "../common/mod.rs"]
mod common;

mod chain;
mod elastic;
mod guide;
mod ladder_bursts;
mod mark;
mod prefixes;
mod prepared;
mod shaper;
mod takeovers;

//! Tests of keyed tables: every call, full sets, hashes, images, overrides, migrations.

#[path = "../common/mod.rs"]
mod common;

mod borders;
mod bursts;
mod calls;
mod credits;
mod elastic_bursts;
mod few_threads;
mod full;
mod hash;
mod image;
mod metrics;
mod migrate;
mod numbers;
mod options;
mod override_addresses;
mod overrides;
mod pair_burst;
mod permits;
mod second_line;
mod sweeper;

//! Decisions beside oracles: 1e7 for each test by day, 1e9 in `mk/rust-tests.sh long`. These are of GCRA. Counting
//! algorithms have theirs in `counted/long.rs`, meters and marks in `meters/properties.rs` and in `combine/mark.rs`.
//!
//! The environment sets the sizes: TATCELL_DECISIONS here, TATCELL_KILLS in `kill` (1e5), TATCELL_RACES in `race`. Each
//! form and kind of call has a share, which is printed and must reach a minimum. Seeds are numbers from 0. A failing
//! seed is printed, and TATCELL_SEED runs it alone:
//!
//! `TATCELL_SEED=0x2a cargo test --release --test cell -- --nocapture live_for_days`

mod calls;
mod lives;
mod streams;
pub mod tally;

use crate::common::size_from;
use tally::{blocks, Tally};

/// Decisions of a test by day.
pub const SIZE: u64 = 10_000_000;

#[test]
fn decisions_equal_the_exact_bucket() {
    const STEPS: u64 = 10_000;
    let size = size_from("TATCELL_DECISIONS", SIZE);
    // Three forms a step, but for a 32-bit cell that sits out.
    let count = size.div_ceil(3 * STEPS - 100);
    let tally = Tally { names: streams::FORMS, least: [count * STEPS, size / 10 * 3, count * STEPS] };
    let sum = tally.hold("streams", blocks(count, |seed| streams::stream(seed, STEPS)));
    assert!(sum >= size || crate::common::seed_from_environment().is_some(), "{sum} of {size}");
}

#[test]
fn decisions_of_keys_that_live_for_days_equal_the_exact_bucket() {
    let size = size_from("TATCELL_DECISIONS", SIZE);
    let count = size.div_ceil(lives::DECISIONS);
    let tally = Tally { names: lives::NAMES, least: lives::SHARES.map(|share| size / 1_000 * share) };
    let sum = tally.hold("lives", blocks(count, lives::life));
    assert!(sum >= size || crate::common::seed_from_environment().is_some(), "{sum} of {size}");
}

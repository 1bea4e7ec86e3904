//! The seam of a simulation: a node whose time, streams and random numbers come from outside, and the shipped code
//! otherwise. This module adds no logic; without the feature `sim` it is not there.
//!
//! [`node`] makes the handle of a node, and the [`Machine`] that would run on its thread. Whoever simulates steps the
//! machine at its deadline and with each event, does its actions, and decides requests by the handle in between.

use std::sync::atomic::AtomicU64;
use std::sync::mpsc::Receiver;
use std::sync::Arc;
use std::time::Duration;

pub use redis::ConnectionAddr;

use crate::clock::NodeClock;
use crate::random::{Random, Seeds};
use crate::{Builder, ChangeError, Cluster, LimitId, OpenError, SharedLimit, Verdict};

pub use crate::machine::Machine;
pub use crate::wire::{Action, Event, LinkId, Now};

/// Makes a node that nobody runs. Its handle reads `clock`, which the caller sets. Nothing is read from the system.
///
/// # Errors
/// Those of wrong options. The machine reports later whether the store can be used.
pub fn node(builder: Builder, seed: u64, clock: Arc<AtomicU64>) -> Result<(Cluster, Machine), OpenError> {
    let seeds = Seeds::Given(Random::new(seed));
    let (node, opening, jobs) = builder.parts(NodeClock::given(clock), seeds, None)?;
    Ok((Cluster::new(node.clone(), None), Machine::new(node, opening, jobs)))
}

/// Decides like [`Cluster::acquire`], and returns where the answer comes if the verdict is Pending. A dropped receiver
/// counts as a timeout.
pub fn ask(
    cluster: &Cluster,
    limit: LimitId,
    key: &[u8],
    cost: u64,
    reading: u64,
) -> (Verdict, Option<Receiver<Verdict>>) {
    cluster.ask(limit, key, cost, reading)
}

/// Asks for a change like [`Cluster::change`], and returns where the answer comes.
///
/// # Errors
/// [`ChangeError`] says why the change cannot be asked for.
pub fn change(
    cluster: &Cluster,
    to: SharedLimit,
) -> Result<Receiver<Result<Duration, ChangeError>>, ChangeError> {
    cluster.ask_for_change(to)
}

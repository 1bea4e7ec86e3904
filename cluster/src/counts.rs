//! The counters of a node, and their text form.

use crate::reserve::SlotState;
use crate::sync::{AtomicU64, Ordering};

macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counts what a node has done since it was opened. Requests that pass by a lease line are not counted, because
        /// that path touches no shared memory.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Metrics {
            $($(#[$doc])* pub $name: u64,)*
            /// Whether the store answers.
            pub up: bool,
            /// Whether the reserve may be spent.
            pub reserve_held: bool,
            /// Whether the node has a slot; if not, why not.
            pub slot: SlotState,
        }

        #[derive(Debug)]
        pub(crate) struct Counts { $(pub(crate) $name: AtomicU64,)* }

        impl Counts {
            pub(crate) fn new() -> Counts {
                Counts { $($name: AtomicU64::new(0),)* }
            }

            pub(crate) fn read(&self, up: bool, reserve_held: bool, slot: SlotState) -> Metrics {
                // ORDERING: Relaxed; values only.
                Metrics { $($name: self.$name.load(Ordering::Relaxed),)* up, reserve_held, slot }
            }
        }

        impl Metrics {
            /// Writes the counters in the text format of Prometheus. The line `tatcell_cluster_slot` of the present
            /// [`SlotState`] has the value 1, and the others have 0.
            pub fn prometheus(&self, out: &mut impl std::fmt::Write) -> std::fmt::Result {
                $(writeln!(out, concat!("tatcell_cluster_", stringify!($name), "_total {}"), self.$name)?;)*
                writeln!(out, "tatcell_cluster_up {}", u8::from(self.up))?;
                writeln!(out, "tatcell_cluster_reserve_held {}", u8::from(self.reserve_held))?;
                for (state, name) in (0..).zip(SlotState::NAMES) {
                    let is = u8::from(state == self.slot.number());
                    writeln!(out, "tatcell_cluster_slot{{state=\"{name}\"}} {is}")?;
                }
                Ok(())
            }
        }
    };
}

counts! {
    /// Passed from the reserve.
    passed_reserve,
    /// Passed after an answer of the store.
    passed_answer,
    /// Passed by a node's share while the store was away.
    passed_share,
    /// Passed by [`Down::Open`](crate::Down::Open): beyond every bound.
    passed_open,
    /// Refused by an earlier answer of the store.
    denied_cached,
    /// Refused by an answer of the store.
    denied_answer,
    /// Refused because the store was away.
    denied_down,
    /// Told to wait for an answer.
    pending,
    /// Refused because no line or no place in the queue was left.
    overloaded,
    /// Calls that asked for units.
    asks,
    /// Asks that were granted.
    grants,
    /// Units granted.
    granted_units,
    /// Asks that were refused.
    refusals,
    /// Grants that found two pieces held, and so lapse.
    unplaced,
    /// Units given back.
    given_back,
    /// Batches that the store answered.
    batches,
    /// Nanoseconds that those batches took.
    batch_ns,
    /// Calls that were sent again, because the store did not have the script.
    no_script,
    /// Calls that were sent again, to another server of a Redis Cluster.
    redirected,
    /// Calls without an answer that decides.
    faults,
    /// Connections to the store that broke.
    outages,
    /// Changes of limits that this node saw.
    changes,
}

/// Counts one.
#[inline]
pub(crate) fn count(counter: &AtomicU64) {
    add(counter, 1);
}

#[inline]
pub(crate) fn add(counter: &AtomicU64, n: u64) {
    // ORDERING: Relaxed; value only.
    counter.fetch_add(n, Ordering::Relaxed);
}

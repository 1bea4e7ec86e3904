//! The explorer: runs the shipped table one atomic access at a time, through every schedule of small worlds.
//!
//! ```text
//!  set of a key      home line  w . . . . . . .     w  a word that the world watches: an access to it is a step
//!                    its pair   w w . . . . . .     .  a claim that outlives the world: nobody takes or frees it
//! ```
//!
//! A world is a table of one set with two or three free slots, and two to four threads with a list of calls each:
//! single and burst checks, chains, refunds by the permits of earlier calls, resets, sweeps, saves, migrations into
//! memory of their own. The calls are those of [`Table`](crate::table::handle::Table), not a copy of the protocol:
//! the explorer runs what is shipped, except for the vector searches. It checks every state:
//!
//! - at most one LIVE word a key, under every policy but Sampled;
//! - every claim lies above all earlier ones of its slot, so no claim word recurs;
//! - no key is admitted more than its bucket, or its windows, allow between the first and the last clock reading
//!   used, once more for each reset, and for each call of another key by a clock that is an emission interval ahead;
//! - where debts are forgiven, no more is charged than the slots hold, once more for each forgiven debt that was
//!   counted;
//! - if a world asks for it, bursts in groups have the verdicts of single calls in some order of the threads;
//! - a migrated table has a key once a set, owing no more than was charged, and no less than was owed when the
//!   migration began;
//! - no word carries more debt than was charged, so refused and contended calls charge nothing;
//! - from every state each unfinished call ends if it runs alone, and so do fresh calls of a present and of an absent
//!   key: a refused one writes nothing, and once all has drained they are admitted. A thread that dies is one that
//!   does not run again, so this covers the death of any threads at any step.
//!
//! Weakened forms ([`weakened`]) run the same calls with an [`Access`](crate::sync::Access) that swaps wrongly, and
//! each must be caught. Each check, run alone, finds a fault in some world ([`each_check`]). Not shown: weak memory
//! (the models in `loom_*.rs`), clocks further apart than the skew, more slots and threads than these worlds have.
//! docs/ARCHITECTURE.md says what a model of the protocol once found in larger worlds.
//!
//! `RUSTFLAGS="--cfg tatcell_step" cargo test --profile loom --lib --features std step_`

mod calls;
mod check;
mod each_check;
mod migrated;
mod migration;
mod search;
mod state;
mod step_chain_forms;
mod step_chains;
mod step_counts;
mod step_forms;
mod step_groups;
mod step_in_place;
mod step_inserts;
mod step_migrations;
mod step_permits;
mod step_resets;
mod weakened;
mod world;

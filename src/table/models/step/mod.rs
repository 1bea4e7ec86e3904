//! The explorer: the shipped table, one atomic access a step, through every schedule of small worlds.
//!
//! ```text
//!  set of a key      home line  w . . . . . . .     w  a word that the world watches: an access to it is a step
//!                    its pair   w w . . . . . .     .  a claim that outlives the world: nobody takes or frees it
//! ```
//!
//! A world is a table of one set, two or three of whose slots are free to be used, and two to four threads with a list
//! of calls each: single and burst checks, refunds by the permits of earlier calls, resets, sweeps, saves,
//! migrations into memory of their own. The calls are those of [`Table`](crate::table::handle::Table), not a copy of
//! the protocol: what is explored is what is shipped, but for its vector searches. Every state is looked at:
//!
//! - at most one LIVE word a key, under every policy but Sampled;
//! - every claim lies above all earlier ones of its slot, so no claim word recurs;
//! - no key is admitted more than its bucket, or its windows, allow between the first and the last clock reading used,
//!   once more for each reset, and for each call of another key by a clock that is an emission interval ahead;
//! - where debts are forgiven, no more is charged than the slots hold, and once more for each debt that was counted;
//! - bursts by groups, where a world asks, have the verdicts of single calls in some order of the threads;
//! - a table made by a migration has a key once a set, owing no more than was charged, and no less than was owed when
//!   the migration began;
//! - no word carries more debt than was charged, so refused and contended calls charge nothing;
//! - from every state every unfinished call ends when it runs alone, and fresh calls of a present and of an absent key
//!   end: a refused one writes nothing, and once all has drained they are admitted. A thread that dies is one that is
//!   not run again, so this covers the death of any threads at any step.
//!
//! Weakened forms ([`weakened`]) run the same calls with an [`Access`](crate::sync::Access) that swaps wrongly, and
//! each must be caught; each check, run alone, finds a world to be wrong ([`each_check`]). What is not shown: weak
//! memory (the models in `loom_*.rs`), clocks apart by more than the skew, more slots and threads than these worlds
//! have. What a model of the protocol once found in larger worlds is told in docs/ARCHITECTURE.md.
//!
//! `RUSTFLAGS="--cfg tatcell_step" cargo test --profile loom --lib --features std step_`

mod calls;
mod check;
mod each_check;
mod migrated;
mod migration;
mod search;
mod state;
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

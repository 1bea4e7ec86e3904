//! The shipped code under a checker: the loom model checker, the step explorer, and tests with many threads or lost
//! swaps. Nothing else imports this module, but models in other parts of the crate use [`loom_kit`].

#[cfg(tatcell_loom)]
mod loom_attach;
#[cfg(tatcell_loom)]
mod loom_bursts;
#[cfg(tatcell_loom)]
mod loom_counts;
#[cfg(tatcell_loom)]
mod loom_every;
#[cfg(tatcell_loom)]
mod loom_full;
#[cfg(tatcell_loom)]
mod loom_groups;
#[cfg(tatcell_loom)]
mod loom_insert;
#[cfg(tatcell_loom)]
pub(crate) mod loom_kit;
#[cfg(tatcell_loom)]
mod loom_ops;
#[cfg(tatcell_loom)]
mod loom_overrides;
#[cfg(tatcell_loom)]
mod loom_resets;
#[cfg(tatcell_loom)]
mod loom_saves;
#[cfg(tatcell_loom)]
mod loom_sweeper;
#[cfg(tatcell_loom)]
mod loom_weak;
#[cfg(not(any(tatcell_loom, tatcell_step)))]
mod lost_tests;
#[cfg(not(tatcell_loom))]
mod reset_tests;
#[cfg(not(any(tatcell_loom, tatcell_step)))]
mod schedule_tests;
#[cfg(not(any(tatcell_loom, tatcell_step)))]
mod settle_tests;
#[cfg(tatcell_step)]
mod step;
#[cfg(not(any(tatcell_loom, tatcell_step)))]
mod sweeper_tests;

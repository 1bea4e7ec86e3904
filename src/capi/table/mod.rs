//! Tables: [`handle`] makes one and finds it again, [`check`] and the other files are what is done with it.

pub(super) mod burst;
mod change;
mod charge;
pub(super) mod check;
pub(super) mod handle;
mod info;
mod limit;
mod migrate;
mod options;
mod overrides;
mod top;
mod upkeep;

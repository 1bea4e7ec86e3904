//! Tables: [`handle`] makes one and finds it again; [`check`] and the other files use it.

mod attach;
pub(super) mod burst;
mod change;
mod charge;
pub(super) mod check;
mod counted;
mod fit;
pub(super) mod handle;
mod info;
mod limit;
mod metrics;
mod migrate;
pub(super) mod options;
pub(super) mod override_addresses;
mod overrides;
mod refund;
pub(super) mod seen;
mod top;
pub(in crate::capi) mod upkeep;

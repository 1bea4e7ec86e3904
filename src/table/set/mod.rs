//! The 16 slots of one key: how its word is found, changed and inserted.

pub(super) mod attempt;
pub(super) mod insert;
mod insert_contended;
pub(super) mod search;
#[allow(clippy::module_inception)] // the file of the type `Set`
pub(super) mod set;

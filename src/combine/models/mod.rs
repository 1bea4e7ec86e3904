//! The shipped code of chains, marks and groups under loom, the model checker. Nothing imports this module.

mod loom_chain;
mod loom_group;
mod loom_mark;
mod loom_short;

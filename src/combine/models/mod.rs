//! The shipped code of chains, marks and groups under the model checker loom. Nothing imports this room.

mod loom_chain;
mod loom_group;
mod loom_mark;

//! `tatcell`, a command for operators: which limit a log would have needed, and whom a limit would have refused.
//!
//! The program is [`args`] and what that names. [`plan`] reads records ([`input`]), makes a key of each ([`key`]), puts
//! them in order and asks the library. [`show`] looks into tables. Both use only the public API of `tatcell`.

pub mod args;
pub mod check;
pub mod emit;
pub mod failure;
pub mod input;
pub mod input_args;
pub mod key;
pub mod limit;
pub mod plan;
pub mod progress;
pub mod record;
pub mod replay;
pub mod show;
pub mod show_args;
pub mod size;
pub mod units;
pub mod words;

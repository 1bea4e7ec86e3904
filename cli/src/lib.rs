//! `tatcell`, a command for operators: which limit a log would have needed, and whom a limit would have refused.
//!
//! The program is [`args`] and [`plan`]: it reads records ([`input`]), makes a key of each ([`key`]), puts them in
//! order
//! and asks the library. It uses the public API of `tatcell` and nothing else of it.

pub mod args;
pub mod failure;
pub mod input;
pub mod key;
pub mod plan;
pub mod record;

//! The code that both servers of tatcell share.
//!
//! - [`start`], [`Settings`]: a file and flags of the same names; errors name the place.
//! - [`Tables`]: limits of any rate in memory of a fixed size, by the tables of the core.
//! - [`Keeper`]: decides, by those tables or by a node of a cluster.
//! - [`listen`], [`accept`]: connections, with patience. [`Signals`]: the graceful [`Stop`], and reloads.
//! - [`pages`]: metrics and health over HTTP.

mod accept;
mod counted;
mod keeper;
pub mod pages;
mod published;
mod settings;
mod short;
mod stop;
mod tables;

pub use accept::{accept, listen};
pub use keeper::{now, Answer, Keeper, KeeperSettings, Limit, Rate, Undecided};
pub use settings::{start, Settings, Time};
pub use stop::{HangUps, Signals, Stop};
pub use tables::{Tables, TablesLimit};
pub use tatcell::LimitSpec;

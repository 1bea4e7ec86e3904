//! What is wrong with a layer that does not open.

use std::fmt;

use tatcell::TableFit;

/// Says why a layer could not be opened.
///
/// ```
/// use tatcell::{Ladder, LimitSpec};
/// use tatcell_tower::{key, Limit, OpenError, RateLimitLayer};
///
/// let nets = |name: &str| Limit::ladder(name, LimitSpec::per_second(10), Ladder::DEFAULT, key::peer());
/// let error = RateLimitLayer::builder().limit(nets("a")).limit(nets("b")).open().unwrap_err();
/// assert_eq!(error, OpenError::TooManyLimits(10));
/// assert_eq!(RateLimitLayer::new(nets("\n")).unwrap_err(), OpenError::BadName("\n".into()));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenError {
    /// The layer has no limit.
    NoLimit,
    /// A request could meet this many limits; 8 are possible. Each prefix length of a ladder is one.
    TooManyLimits(usize),
    /// The name of a limit has a character outside of 0x20 to 0x7e.
    BadName(String),
    /// Two limits have this name, or two tiers of ladders: their counters could not be told apart.
    SameName(String),
    /// The key of the limit with this name takes more bits than an address has: 0 to 32 of IPv4, 0 to 128 of IPv6.
    BadPrefix(String),
    /// No table has room for this many keys.
    Keys {
        /// The name of the limit.
        limit: String,
        /// What [`Limit::keys`](crate::Limit::keys) asked for.
        keys: usize,
    },
    /// The limit does not fit the words of a table.
    TooFast {
        /// The name of the limit.
        limit: String,
        /// How much room it needs, in nanoseconds, and how much there is.
        fit: TableFit,
        /// The largest multiplier of its ladder, or 1: the fastest tier is this many times as fast as the limit.
        multiplier: u32,
    },
    /// The table of a limit could not be opened.
    Table {
        /// The name of the limit.
        limit: String,
        /// What the table said.
        error: tatcell::host::OpenError,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::NoLimit => f.write_str("the layer has no limit: add one"),
            OpenError::TooManyLimits(links) => {
                write!(
                    f,
                    "a request could meet {links} limits, at most 8: shorten a ladder, or use two layers"
                )
            }
            OpenError::BadName(name) => {
                write!(
                    f,
                    "the name {name:?} has a character outside of 0x20 to 0x7e: clients see it in a field"
                )
            }
            OpenError::SameName(name) => {
                write!(f, "two limits have the name {name:?}: give each one its own, and each ladder")
            }
            OpenError::BadPrefix(limit) => {
                write!(f, "limit {limit}: a prefix has 0 to 32 bits of IPv4, and 0 to 128 bits of IPv6")
            }
            OpenError::Keys { limit, keys } => {
                let so_many = if *keys == 0 { "" } else { ", and no table is so large" };
                write!(
                    f,
                    "limit {limit}: keys is {keys}{so_many}: pass how many are in debt at the same time"
                )
            }
            OpenError::TooFast { limit, fit, multiplier } => {
                let (needed, available) = (fit.needed / 1_000_000, fit.available / 1_000_000);
                let part = fit.culprit.map_or_else(String::new, |part| format!("{part:?}").to_lowercase());
                write!(
                    f,
                    "limit {limit}: it needs {needed} ms of horizon, and a table has {available} ms at "
                )?;
                match multiplier {
                    1 => write!(f, "this rate: make its {part} smaller, or the rate lower"),
                    _ => write!(
                        f,
                        "{multiplier} times the rate, as the ladder's widest prefix has: make the {part} or that \
                         multiplier smaller, or the rate lower"
                    ),
                }
            }
            OpenError::Table { limit, error } => write!(f, "the table of limit {limit}: {error}"),
        }
    }
}

impl std::error::Error for OpenError {}

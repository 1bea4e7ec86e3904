//! Why a chain cannot be made.

/// Says why a chain cannot be made. Nothing was touched.
///
/// ```
/// use tatcell::{Cell, Chain, ChainError, Limit, Link};
/// let (cell, slow, fast) = (Cell::new(), Limit::new(1, 1_000, 5)?, Limit::new(9, 1_000, 9)?);
/// let error = Chain::new(&[Link::cell(&cell, &slow, 1), Link::cell(&cell, &fast, 1)]).unwrap_err();
/// assert_eq!(error, ChainError::TwoLimits); // each limit needs a cell of its own
/// # Ok::<(), tatcell::LimitError>(())
/// ```
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChainError {
    /// The chain has no link.
    Empty,
    /// The chain has more than [`MAX_LINKS`](crate::MAX_LINKS) links.
    TooManyLinks,
    /// The limit of a link was made for another table.
    ForeignLimit,
    /// One cell or key has two limits, which would share one debt. Give each limit a cell of its own, or put a class of
    /// your own in front of the bytes of the key.
    TwoLimits,
    /// The costs of one cell or key together exceed 64 bits.
    BadCost,
    /// A limit is not a GCRA limit, so nothing can be reserved; or a link of overrides names a table of debts.
    BadAlgorithm,
    /// A link to reserve has elastic room.
    BadRoom,
    /// A request of a prepared chain has not as many hashes or costs as the chain has links, or a burst has more than
    /// 64 requests.
    BadCount,
}

impl core::fmt::Display for ChainError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            ChainError::Empty => "the chain has no link: give at least one",
            ChainError::TooManyLinks => "the chain has more than 8 links",
            ChainError::ForeignLimit => "the limit was made for another table: make it for this one",
            ChainError::TwoLimits => "one cell or key has two limits: give each limit its own cell or key",
            ChainError::BadCost => "the costs of one cell or key exceed 64 bits together",
            ChainError::BadRoom => "a reservation has no elastic room: give the limit a max_delay",
            ChainError::BadCount => "give one hash and one cost for each link, and at most 64 requests",
            ChainError::BadAlgorithm => "a limit's algorithm cannot reserve: use GCRA",
        })
    }
}

impl core::error::Error for ChainError {}

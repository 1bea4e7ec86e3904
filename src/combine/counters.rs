//! The counters of a call of a chain.

use crate::table::Counters;

/// The counters of a call of a [`Chain`](crate::Chain): of the chain as one decision, and of each link. Made from an
/// `Option<&mut Counters>` where the links are not counted.
///
/// ```
/// use tatcell::{limit, Cell, Chain, ChainCounters, Counters, Limit, Link};
/// static FEW: Limit = limit!(10 per 1_000, burst 2);
/// static ALL: Limit = limit!(10 per 1_000, burst 9);
/// let cells = [Cell::new(), Cell::new()];
/// let chain = Chain::new(&[Link::cell(&cells[0], &FEW, 3), Link::cell(&cells[1], &ALL, 3)])?;
/// let mut links = [Counters::default(); 2];
/// let _ = chain.check_ex(0, ChainCounters { chain: None, links: &mut links }, |_, _| ());
/// assert_eq!((links[0].never, links[1].conforming), (1, 1)); // 3 units are more than the first burst
/// # Ok::<(), tatcell::ChainError>(())
/// ```
#[derive(Debug, Default)]
pub struct ChainCounters<'a> {
    /// Counts one decision for the chain, and each key that it inserts.
    pub chain: Option<&'a mut Counters>,
    /// Counts for link i in `links[i]`, as a call for this link alone would: its own decision (that which `each` gets),
    /// also if another link decided, and the key that it inserts. Links that are one charge count once, for the first
    /// of them. If the request is exempt and not banned, only links of overrides count: nobody asks the limits. Links
    /// without counters here are not counted.
    pub links: &'a mut [Counters],
}

impl<'a> From<Option<&'a mut Counters>> for ChainCounters<'a> {
    fn from(chain: Option<&'a mut Counters>) -> ChainCounters<'a> {
        ChainCounters { chain, links: &mut [] }
    }
}

impl ChainCounters<'_> {
    pub(crate) fn any(&self) -> bool {
        self.chain.is_some() || !self.links.is_empty()
    }
}

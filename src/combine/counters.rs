//! The counters of a call of a chain.

use crate::table::Counters;

/// The counters of a call of a [`Chain`](crate::Chain): of the chain as one decision, and of each link. Made from an
/// `Option<&mut Counters>` where the links are not counted.
#[derive(Debug, Default)]
pub struct ChainCounters<'a> {
    /// Counts one decision for the chain, and each key that it inserts.
    pub chain: Option<&'a mut Counters>,
    /// Counts for link i in `links[i]`, as a call for this link alone would: its own decision (that which `each` gets),
    /// also if another link decided, and the key that it inserts. Links that are one charge count once, for the first
    /// of them. If the request is exempt, only links of overrides count: nobody asks the limits. Links without counters
    /// here are not counted.
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

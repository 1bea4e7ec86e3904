//! A fixture: a table, its limit, its stream and its time; and the hashes of its keys.

use tatcell::{Access, Shared, Table, TableLimit};

use crate::keys::{key, key4, Stream};

/// The table's own hash of a key.
#[inline(always)]
pub fn keyed<M: Access>(table: &Table<'static, M>, id: u64) -> u64 {
    table.hash(&key(id)).unwrap_or(0)
}

/// The same of a 4-byte key.
#[inline(always)]
pub fn keyed4<M: Access>(table: &Table<'static, M>, id: u64) -> u64 {
    table.hash(&key4(id)).unwrap_or(0)
}

/// A hash that costs next to nothing, as one that a network card delivers.
#[inline(always)]
pub fn mix64<M: Access>(_: &Table<'static, M>, id: u64) -> u64 {
    let z = (id + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ z >> 32).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 32
}

pub struct Fixture<M: Access> {
    pub table: Table<'static, M>,
    pub limit: TableLimit,
    pub stream: Stream,
    pub now: u64,
    /// The last new key of a churn; what new keys of a staggered stream are moved on by.
    pub fresh: u64,
}

impl Fixture<Shared> {
    /// The same table with a stream of its own.
    pub fn with(&self, stream: Stream) -> Fixture<Shared> {
        Fixture { table: self.table, limit: self.limit, stream, now: self.now, fresh: 0 }
    }
}

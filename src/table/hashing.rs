//! The hashes of keys and of prefixes, with the table's secret.

use crate::keys::{Address, HashKind};
use crate::sync::access::Mode;
use crate::table::error::TableError;
use crate::table::handle::Table;

impl<M: Mode> Table<'_, M> {
    /// Hashes a key with the table's secret. Tables with the same seed and kind of hash give a key the same hash.
    ///
    /// # Errors
    /// [`TableError::BadHashKind`] if the caller hashes; [`TableError::MissingSeed`] if a read-only handle has no seed.
    #[inline(always)]
    pub fn hash(&self, key: &[u8]) -> Result<u64, TableError> {
        self.hasher.hash(key).ok_or_else(|| self.no_hash())
    }

    /// Hashes the prefix of an address: `v4` bits of an IPv4 address, `v6` bits of an IPv6 one. It is the hash of
    /// [`Address::prefix`].
    ///
    /// # Errors
    /// [`TableError::BadPrefix`] if the address has fewer bits; as [`hash`](Table::hash).
    pub fn prefix_hash(&self, address: &Address, v4: u8, v6: u8) -> Result<u64, TableError> {
        let (bits, most) = if address.is_v4() { (v4, 32) } else { (v6, 128) };
        if bits > most {
            return Err(TableError::BadPrefix);
        }
        self.hasher.hash_prefix(address, bits).ok_or_else(|| self.no_hash())
    }

    /// The error of a call that needs a hash, where there is none.
    fn no_hash(&self) -> TableError {
        if M::IMAGE.is_none() && self.geometry.hash != HashKind::Caller {
            TableError::MissingSeed
        } else {
            TableError::BadHashKind
        }
    }
}

//! The keys of a burst from C, which come in more shapes than one.
//!
//! Keys of 4 or 16 bytes at fixed distances are read by value in one loop. Keys of any other shape are hashed one by
//! one from their bytes.

use crate::sync::access::Access;
use crate::table::error::TableError;
use crate::table::handle::Table;

/// Where the keys of a burst come from.
pub(crate) trait Keys {
    /// Returns a function that reads key i by value, if all keys have N bytes and lie at fixed distances.
    fn reader<const N: usize>(&self) -> Option<impl Fn(usize) -> [u8; N] + Copy>;

    /// The bytes of key i; `None` if there is no such key.
    fn bytes(&self, i: usize) -> Option<&[u8]>;
}

impl<M: Access> Table<'_, M> {
    /// Hashes as many keys as `hashes` has places.
    pub(crate) fn hash_keys(&self, hashes: &mut [u64], keys: &impl Keys) -> Result<(), TableError> {
        if let Some(key) = keys.reader::<16>() {
            self.hash_burst(hashes, key)
        } else if let Some(key) = keys.reader::<4>() {
            self.hash_burst(hashes, key)
        } else {
            hashes.iter_mut().enumerate().try_for_each(|(i, hash)| {
                *hash = self.hash(keys.bytes(i).ok_or(TableError::TooManyKeys)?)?;
                Ok(())
            })
        }
    }

    /// Hashes the keys and prefetches their lines.
    pub(crate) fn prepare_keys(&self, hashes: &mut [u64], keys: &impl Keys) -> Result<(), TableError> {
        if let Some(key) = keys.reader::<16>() {
            self.prepare(hashes, key)
        } else if let Some(key) = keys.reader::<4>() {
            self.prepare(hashes, key)
        } else {
            self.hash_keys(hashes, keys)?;
            self.prefetch(hashes);
            Ok(())
        }
    }
}

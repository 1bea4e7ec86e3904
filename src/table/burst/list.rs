//! Bursts with more than one shape of key, or a limit a key: what the C ABI needs beyond `burst.rs`.
//!
//! Keys of 4 or 16 bytes at fixed distances are read by value in one loop, any other list of keys by its bytes. A burst
//! whose requests have limits of their own, or whose full answers are wanted, is decided one by one, after its lines
//! were asked for.

use super::scalar::Burst;
use crate::answer::Decision;
use crate::limit::TableLimit;
use crate::sync::access::Access;
use crate::table::calls::full_answer::Request;
use crate::table::counters::Counters;
use crate::table::error::TableError;
use crate::table::handle::Table;

/// Where the keys of a burst come from.
pub(crate) trait Keys {
    /// Reads keys by value, where all of them have N bytes and lie at fixed distances.
    fn reader<const N: usize>(&self) -> Option<impl Fn(usize) -> [u8; N] + Copy>;

    /// The bytes of key i; `None` if there is no such key.
    fn bytes(&self, i: usize) -> Option<&[u8]>;
}

impl<M: Access> Table<'_, M> {
    /// Hashes as many keys as there are places.
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

    /// As [`hash_keys`](Table::hash_keys), and starts loading the lines of each key as soon as it is hashed.
    pub(crate) fn prepare_keys(&self, hashes: &mut [u64], keys: &impl Keys) -> Result<(), TableError> {
        if let Some(key) = keys.reader::<16>() {
            self.prepare_burst(hashes, key)
        } else if let Some(key) = keys.reader::<4>() {
            self.prepare_burst(hashes, key)
        } else {
            self.hash_keys(hashes, keys)?;
            self.prefetch(hashes);
            Ok(())
        }
    }

    /// Hashes the keys of the next burst, and decides one that was prefetched before while the lines of the next are
    /// asked for.
    pub(crate) fn check_then_keys(
        &self,
        burst: &Burst<'_>,
        counters: Option<&mut Counters>,
        next: &mut [u64],
        keys: &impl Keys,
    ) -> Result<u64, TableError> {
        self.burst_ready(burst)?;
        self.hash_keys(next, keys)?;
        Ok(self.decide_prepared(burst, counters, next))
    }

    /// Decides one by one, under limits of this table; `each` gets the answers in order.
    pub(crate) fn decide_each<'l>(
        &self,
        now: u64,
        hashes: &[u64],
        request: impl Fn(usize) -> Option<(&'l TableLimit, u64)>,
        mut counters: Option<&mut Counters>,
        each: Option<impl Fn(usize, &Decision)>,
    ) -> u64 {
        let mut pass = 0u64;
        for (i, &hash) in hashes.iter().enumerate() {
            let Some((limit, cost)) = request(i) else { break };
            let passes = if counters.is_none() && each.is_none() {
                self.check_owned(limit, now, hash, cost).passes()
            } else {
                let request = Request { limit, now, cost, room: 0 };
                let decision = self.decide_ex(&request, hash, counters.as_deref_mut());
                if let Some(each) = &each {
                    each(i, &decision);
                }
                decision.passes()
            };
            pass |= (passes as u64).wrapping_shl(i as u32);
        }
        pass
    }
}

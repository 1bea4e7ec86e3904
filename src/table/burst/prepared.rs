//! Bursts whose lines were asked for before: a caller that knows its keys early asks early, and pays once.
//!
//! ```text
//!  prepare_burst            hash 0, prefetch 0, hash 1, prefetch 1 ... hash n-1, prefetch n-1
//!  check_burst_prefetched                                              decide 0 1 2 ... n-1, nothing is asked for
//!  check_burst_then                                                    prefetch next 0, decide 0, prefetch next 1 ...
//! ```
//!
//! The first miss starts when the first key is hashed, not when the last one is, so a lone burst waits less for its
//! first line; and with other work in between, or another burst, it does not wait at all.

use super::scalar::Burst;
use crate::keys::{aes, Hasher};
use crate::sync::access::Access;
use crate::table::counters::Counters;
use crate::table::error::TableError;
use crate::table::handle::Table;
use crate::table::layout::geometry::MAX_BURST;

impl<M: Access> Table<'_, M> {
    /// Hashes many keys of one length, and starts loading the lines of each as soon as it is hashed: `hashes[i]`
    /// becomes the hash of `key(i)`. For [`check_burst_prefetched`](Table::check_burst_prefetched).
    ///
    /// ```
    /// # use tatcell::{Burst, Line, LimitSpec, Table, TableOptions};
    /// # static MEMORY: [Line; 66] = [Line::EMPTY; 66];
    /// # let spec = LimitSpec::new(10, 1_000_000_000, 20);
    /// # let table = Table::init(&MEMORY, &TableOptions::new(spec).seed([7; 16]))?;
    /// # let limit = table.limit(&spec)?;
    /// # let sources = [[192, 0, 2, 1], [192, 0, 2, 2]];
    /// let mut hashes = [0; 2];
    /// table.prepare_burst(&mut hashes, |i| sources[i])?;
    /// // ... parse the packets, read the clock ...
    /// let burst = Burst { limit: &limit, now: 1_000, hashes: &hashes, costs: None, last: 0 };
    /// assert_eq!(table.check_burst_prefetched(&burst, None)?, 0b11);
    /// # Ok::<(), tatcell::TableError>(())
    /// ```
    ///
    /// # Errors
    /// [`TableError::BadHashKind`] where the caller hashes, unless there is nothing to hash.
    pub fn prepare_burst<const N: usize>(
        &self,
        hashes: &mut [u64],
        key: impl Fn(usize) -> [u8; N],
    ) -> Result<(), TableError> {
        if let Hasher::Short(keys) | Hasher::Aes(keys) = &self.hasher {
            hashes.iter_mut().enumerate().for_each(|(i, place)| {
                *place = aes::hash(keys, &key(i));
                self.prefetch(core::slice::from_ref(place));
            });
            return Ok(());
        }
        // SipHash takes as long as a miss lasts, key by key; a loop with it here would make the library larger.
        self.hash_burst(hashes, key)?;
        self.prefetch(hashes);
        Ok(())
    }

    /// Decides up to 64 requests as [`check_burst`](Table::check_burst) does, and asks for no line: for hashes whose
    /// lines were asked for by [`prepare_burst`](Table::prepare_burst) or [`prefetch`](Table::prefetch). The verdicts
    /// are the same where they were not; it takes longer.
    ///
    /// # Errors
    /// As [`check_burst`](Table::check_burst); nothing is decided or counted then.
    pub fn check_burst_prefetched(
        &self,
        burst: &Burst<'_>,
        counters: Option<&mut Counters>,
    ) -> Result<u64, TableError> {
        self.burst_ready(burst)?;
        Ok(self.decide_prepared(burst, counters, &[]))
    }

    /// As [`check_burst_prefetched`](Table::check_burst_prefetched) and, in between, starts loading the lines of
    /// `next`: for hashes that are at hand before their burst is decided, while the one ahead of it is.
    ///
    /// [`check_burst_ahead`](Table::check_burst_ahead) makes the hashes, too.
    ///
    /// ```
    /// # use tatcell::{Burst, Line, LimitSpec, Table, TableOptions};
    /// # static MEMORY: [Line; 66] = [Line::EMPTY; 66];
    /// # let spec = LimitSpec::new(10, 1_000_000_000, 2);
    /// # let table = Table::init(&MEMORY, &TableOptions::new(spec).caller_hash())?;
    /// # let limit = table.limit(&spec)?;
    /// let bursts = [[3_u64 << 62, 7 << 40], [3 << 62, 3 << 62]]; // keyed hashes of your own
    /// let mut pass = 0; // verdicts of the last burst
    /// table.prefetch(&bursts[0]);
    /// for (i, hashes) in bursts.iter().enumerate() {
    ///     let burst = Burst { limit: &limit, now: 1_000, hashes, costs: None, last: pass };
    ///     let next = bursts.get(i + 1).map_or(&[][..], |next| next);
    ///     pass = table.check_burst_then(&burst, None, next)?;
    /// }
    /// assert_eq!(pass, 0b01); // the third request of the key with a burst of 2
    /// # Ok::<(), tatcell::TableError>(())
    /// ```
    ///
    /// # Errors
    /// As [`check_burst`](Table::check_burst), and [`TableError::TooManyKeys`] for more than 64 next hashes; nothing is
    /// decided or counted then.
    pub fn check_burst_then(
        &self,
        burst: &Burst<'_>,
        counters: Option<&mut Counters>,
        next: &[u64],
    ) -> Result<u64, TableError> {
        self.burst_ready(burst)?;
        if next.len() > MAX_BURST {
            return Err(TableError::TooManyKeys);
        }
        Ok(self.decide_prepared(burst, counters, next))
    }
}

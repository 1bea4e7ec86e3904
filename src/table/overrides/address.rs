//! Overrides of addresses and networks, however they are written.
//!
//! ```text
//!  ban 192.0.2.0/24            -> key of a prefix -> override        one override for each network
//!  ask ::ffff:192.0.2.1        -> 192.0.2.1 -> /32, /24, /16 ...     one probe for each length that is asked
//! ```
//!
//! Not here: which lengths have overrides. The table does not know them, so the caller names them.

use super::Override;
use crate::keys::{Address, Cut};
use crate::sync::access::Access;
use crate::table::error::TableError;
use crate::table::handle::Table;

/// The most prefixes of an address whose lines are prefetched together.
pub(crate) const AT_ONCE: usize = 8;

/// The lengths of the prefixes that are asked for an address, in any order: one probe each.
///
/// ```
/// use tatcell::{Line, PrefixLengths, Table, TableOptions};
/// let lines = [const { Line::EMPTY }; 66];
/// let table = Table::init(&lines, &TableOptions::overrides(86_400_000).seed(*b"16 random bytes!"))?;
/// table.ban_address(0, [192, 0, 2, 0], 24, 64, 60_000)?;
/// let networks = PrefixLengths { v4: &[32, 24], v6: &[128, 64] };
/// assert!(table.overridden_address(0, [192, 0, 2, 1], networks)?.is_some());
/// assert!(table.overridden_address(0, [192, 0, 2, 1], PrefixLengths::WHOLE)?.is_none());
/// # Ok::<(), tatcell::TableError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefixLengths<'a> {
    /// For IPv4 addresses: 0 (all of them) to 32.
    pub v4: &'a [u8],
    /// For IPv6 addresses: 0 to 128.
    pub v6: &'a [u8],
}

impl PrefixLengths<'static> {
    /// The address itself and nothing else: /32 and /128.
    pub const WHOLE: PrefixLengths<'static> = PrefixLengths { v4: &[32], v6: &[128] };
}

impl<'a> PrefixLengths<'a> {
    /// Returns the lengths that are asked for this address.
    #[inline(always)]
    fn of(&self, address: &Address) -> &'a [u8] {
        if address.is_v4() {
            self.v4
        } else {
            self.v6
        }
    }
}

impl<M: Access> Table<'_, M> {
    /// Bans an address, or all addresses of its network, until a time: `v4` bits of an IPv4 address, `v6` bits of an
    /// IPv6 one. See [`ban`](Table::ban).
    ///
    /// An IPv4 address may be written as an IPv6 one ([`Address`]). For a network that people write, take the address
    /// and the bits of [`Address::network`], for both families. `::/0` is no network of IPv4 addresses.
    ///
    /// ```
    /// use tatcell::{Address, Line, Override, PrefixLengths, Table, TableOptions};
    /// static MEMORY: [Line; 130] = [Line::EMPTY; 130];
    ///
    /// let table = Table::init(&MEMORY, &TableOptions::overrides(86_400_000).seed([7; 16]))?;
    /// let mapped = |last| Address::from([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, last]);
    /// table.ban_address(1_000, mapped(1), 24, 64, 61_000)?;
    /// table.exempt_address(1_000, [192, 0, 2, 9], 32, 128, 61_000)?;
    /// let asked = PrefixLengths { v4: &[32, 24], v6: &[128, 64] };
    /// let banned = Some((Override::Banned { retry_after: 60_000 }, 24));
    /// assert_eq!(table.overridden_address(1_000, [192, 0, 2, 2], asked)?, banned);
    /// // The longest prefix wins.
    /// let exempt = Some((Override::Exempt { left: 60_000 }, 32));
    /// assert_eq!(table.overridden_address(1_000, mapped(9), asked)?, exempt);
    /// # Ok::<(), tatcell::TableError>(())
    /// ```
    ///
    /// # Errors
    /// As [`ban`](Table::ban); [`TableError::BadPrefix`] if the address has fewer bits; [`TableError::BadHashKind`]
    /// where the caller hashes.
    ///
    /// # Concurrency
    /// As [`ban`](Table::ban).
    pub fn ban_address(
        &self,
        now: u64,
        address: impl Into<Address>,
        v4: u8,
        v6: u8,
        until: u64,
    ) -> Result<(), TableError> {
        self.ban(now, self.prefix_hash(&address.into(), v4, v6)?, until)
    }

    /// Exempts an address, or all addresses of its network, until a time: see [`exempt`](Table::exempt) and
    /// [`ban_address`](Table::ban_address).
    ///
    /// # Errors
    /// As [`exempt`](Table::exempt) and [`ban_address`](Table::ban_address).
    ///
    /// # Concurrency
    /// As [`ban`](Table::ban).
    pub fn exempt_address(
        &self,
        now: u64,
        address: impl Into<Address>,
        v4: u8,
        v6: u8,
        until: u64,
    ) -> Result<(), TableError> {
        self.exempt(now, self.prefix_hash(&address.into(), v4, v6)?, until)
    }

    /// Ends the override of an address or network at once, and says whether there was one: see [`lift`](Table::lift).
    /// Overrides of longer and shorter prefixes stay.
    ///
    /// # Errors
    /// As [`lift`](Table::lift) and [`ban_address`](Table::ban_address).
    ///
    /// # Concurrency
    /// As [`ban`](Table::ban).
    pub fn lift_address(
        &self,
        now: u64,
        address: impl Into<Address>,
        v4: u8,
        v6: u8,
    ) -> Result<bool, TableError> {
        self.lift(now, self.prefix_hash(&address.into(), v4, v6)?)
    }

    /// Tells whether an address is banned or exempt at `now`, for how long, and by a prefix of how many bits. The
    /// longest prefix with an override decides, of those that `lengths` names. Reads only.
    ///
    /// # Errors
    /// As [`overridden`](Table::overridden); [`TableError::BadPrefix`] for a length above 32 or 128;
    /// [`TableError::BadHashKind`] where the caller hashes.
    ///
    /// # Concurrency
    /// As [`ban`](Table::ban). Cost: one load while no override was ever stored; else a hash and a probe for each
    /// length, the lines of up to 8 of them prefetched together.
    pub fn overridden_address(
        &self,
        now: u64,
        address: impl Into<Address>,
        lengths: PrefixLengths<'_>,
    ) -> Result<Option<(Override, u8)>, TableError> {
        if !self.asks(lengths)? {
            return Ok(None);
        }
        Ok(self.look_address(now, &address.into(), lengths))
    }

    /// Checks what does not depend on the address, and returns whether any address can have an override.
    #[inline(always)]
    pub(crate) fn asks(&self, lengths: PrefixLengths<'_>) -> Result<bool, TableError> {
        self.holds_overrides()?;
        // A length that no address of either family has is a mistake, whichever family is asked.
        if lengths.v4.iter().any(|bits| *bits > 32) || lengths.v6.iter().any(|bits| *bits > 128) {
            return Err(TableError::BadPrefix);
        }
        if !self.hasher.is_own() {
            return Err(TableError::BadHashKind);
        }
        Ok(self.was_used())
    }

    /// Looks for the longest prefix with an override. `asks` has checked the lengths.
    #[inline(always)]
    pub(crate) fn look_address(
        &self,
        now: u64,
        address: &Address,
        lengths: PrefixLengths<'_>,
    ) -> Option<(Override, u8)> {
        self.look_for(now, address, lengths.of(address), None)
    }

    /// Returns the override of the longest of these prefixes and the one found before.
    #[inline(never)]
    fn look_for(
        &self,
        now: u64,
        address: &Address,
        lengths: &[u8],
        mut found: Option<(Override, u8)>,
    ) -> Option<(Override, u8)> {
        for lengths in lengths.chunks(AT_ONCE) {
            let mut hashes = [0; AT_ONCE];
            self.fetch_prefixes(address, lengths, &mut hashes);
            found = self.longest(now, lengths, &hashes, found);
        }
        found
    }

    /// Hashes the first [`AT_ONCE`] prefixes that are asked for an address, and prefetches their lines.
    #[inline(always)]
    pub(crate) fn fetch_address(
        &self,
        address: &Address,
        lengths: PrefixLengths<'_>,
        hashes: &mut [u64; AT_ONCE],
    ) {
        self.fetch_prefixes(address, lengths.of(address), hashes);
    }

    #[inline(always)]
    fn fetch_prefixes(&self, address: &Address, lengths: &[u8], hashes: &mut [u64; AT_ONCE]) {
        let fetch = |_, hash| self.prefetch(core::slice::from_ref(&hash));
        let cuts = lengths.iter().map(|bits| Cut::new(address.is_v4(), *bits));
        // `asks` has tested that the table hashes.
        self.hasher.hash_prefixes(address, cuts, hashes, fetch).unwrap_or_else(|| impossible!(()))
    }

    /// Looks like [`look_address`](Table::look_address), with the hashes that [`fetch_address`](Table::fetch_address)
    /// made.
    #[inline(always)]
    pub(crate) fn look_fetched(
        &self,
        now: u64,
        address: &Address,
        lengths: PrefixLengths<'_>,
        hashes: &[u64; AT_ONCE],
    ) -> Option<(Override, u8)> {
        let (first, rest) = lengths.of(address).split_at(lengths.of(address).len().min(AT_ONCE));
        let found = self.longest(now, first, hashes, None);
        match rest {
            [] => found,
            rest => self.look_for(now, address, rest, found),
        }
    }

    #[inline(always)]
    fn longest(
        &self,
        now: u64,
        lengths: &[u8],
        hashes: &[u64; AT_ONCE],
        mut found: Option<(Override, u8)>,
    ) -> Option<(Override, u8)> {
        for (hash, &bits) in hashes.iter().zip(lengths) {
            if found.is_none_or(|(_, longest)| bits > longest) {
                found = self.look(now, *hash).map(|made| (made, bits)).or(found);
            }
        }
        found
    }
}

//! What a table is made with.

use super::policy::FullPolicy;
use crate::keys::HashKind;
use crate::limit::{LimitSpec, OVERRIDE_BITS};

/// Describes a table. Sizes come from the memory, the rest from here.
///
/// ```
/// use tatcell::{FullPolicy, LimitSpec, TableOptions};
/// let per_client = LimitSpec::new(10, 1_000_000_000, 20);
/// let options = TableOptions::new(per_client).seed([7; 16]).policy(FullPolicy::Inherit);
/// # let _ = options;
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TableOptions {
    pub(crate) fastest: LimitSpec,
    pub(crate) slowest: LimitSpec,
    pub(crate) policy: FullPolicy,
    pub(crate) hash: HashKind,
    pub(crate) seed: Option<[u8; 16]>,
    pub(crate) tag_bits: u32,
    pub(crate) shift: Option<i8>,
    pub(crate) skew: Option<u64>,
    pub(crate) lifetime: Option<u64>,
    pub(crate) tick_hz: u64,
    pub(crate) guard: Option<u64>,
    pub(crate) overrides: bool,
    pub(crate) zeroed: bool,
    pub(crate) keeps: Option<[LimitSpec; 2]>,
}

impl TableOptions {
    /// Starts options for a table in which every key has this limit.
    pub const fn new(limit: LimitSpec) -> TableOptions {
        TableOptions {
            fastest: limit,
            slowest: limit,
            policy: FullPolicy::Admit,
            hash: HashKind::SipHash13,
            seed: None,
            tag_bits: 20,
            shift: None,
            skew: None,
            lifetime: None,
            tick_hz: 0,
            guard: None,
            overrides: false,
            zeroed: false,
            keeps: None,
        }
    }

    /// Starts options for a table of [overrides](crate::Table::ban): bans and exemptions of keys until a time, at most
    /// `longest` ticks ahead.
    ///
    /// Its unit of time is the finest in which `longest` fits the word: with the default tag of 20 bits one tick
    /// below 2^38 - 1 of them (8.7 years of milliseconds), 2^17 ticks for a year of nanoseconds (131 us). The policy is
    /// [`FullPolicy::Deny`]: an override is never dropped for another.
    pub const fn overrides(longest: u64) -> TableOptions {
        let options = TableOptions::new(LimitSpec::fixed_window((1 << OVERRIDE_BITS) - 1, longest));
        TableOptions { overrides: true, policy: FullPolicy::Deny, ..options }
    }

    /// Names the limit with the longest horizon, where keys have different limits (`new` names the fastest).
    pub const fn slowest(mut self, limit: LimitSpec) -> Self {
        self.slowest = limit;
        self
    }

    /// Chooses what happens when a set is full.
    pub const fn policy(mut self, policy: FullPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Gives the secret seed of the hash: 16 bytes from the system's random source, never a constant.
    pub const fn seed(mut self, seed: [u8; 16]) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Lets the caller hash; see [`HashKind::Caller`].
    pub const fn caller_hash(self) -> Self {
        self.hash(HashKind::Caller)
    }

    /// Chooses the hash. [`HashKind::is_available`] tells whether this processor can compute it.
    pub const fn hash(mut self, kind: HashKind) -> Self {
        self.hash = kind;
        self
    }

    /// Sets the tag width, 12..=24 bits (default 20). A stranger is mistaken for a live key with chance
    /// 16 * 2^-bits at full load; each bit less doubles the span of the word.
    pub const fn tag_bits(mut self, bits: u32) -> Self {
        self.tag_bits = bits;
        self
    }

    /// Fixes the resolution of all limits of the table: one q-unit is `2^-shift` ticks.
    pub const fn resolution(mut self, shift: i8) -> Self {
        self.shift = Some(shift);
        self
    }

    /// Sets how far callers' clocks may be apart or step back, in ticks. A reading that is older than this finds a key
    /// expired and full. Default: a 64th of the span, at most 2^30 ticks, and at least the horizon.
    pub const fn skew(mut self, ticks: u64) -> Self {
        self.skew = Some(ticks);
        self
    }

    /// Sets the claim lifetime, in ticks (default: one; never less than two q-units): how long a thread that was
    /// stopped inside an insert keeps the slot from others. Larger than the usual clock difference between threads
    /// saves retries.
    pub const fn claim_lifetime(mut self, ticks: u64) -> Self {
        self.lifetime = Some(ticks);
        self
    }

    /// Tables of [aligned](LimitSpec::aligned) windows: by how many ticks the clocks of callers may differ (default: an
    /// eighth of the window, or the skew where that is less). A slot is kept this much longer than its window: else a
    /// caller whose clock is ahead could reuse the slot of a key whose window is not over for another one.
    pub const fn guard(mut self, ticks: u64) -> Self {
        self.guard = Some(ticks);
        self
    }

    /// Says how many ticks of the callers' clock make a second, for those who attach (default: 0, unsaid). Nothing is
    /// computed from it.
    pub const fn tick_hz(mut self, hz: u64) -> Self {
        self.tick_hz = hz;
        self
    }

    /// Keeps units in a [migration](crate::Table::migrate), where every key of the old table has the limit `old` and
    /// every key of the new one `new`: a key that has used 60 units of `old` has used 60 of `new`, or all of them if
    /// that is fewer. Without this a debt keeps its time, so under a higher rate it is worth more units.
    ///
    /// Each word is scaled once, rounded up: to what a charge of so many units at the time of the migration would have
    /// stored. A word does not tell its limit, so this is for tables of one limit; limits of one rate with different
    /// bursts are one limit here, if `new` is the one with the largest burst and allowances. Where keys have several
    /// limits, [change](crate::Table::change) them one by one.
    pub const fn keep_units(mut self, old: LimitSpec, new: LimitSpec) -> Self {
        self.keeps = Some([old, new]);
        self
    }

    /// Promises that the memory is all zero, as a system gives it: init then writes the header alone, and a page is
    /// touched first when a key of it comes.
    ///
    /// Writing the slots of memory that was never touched takes the system's page faults, 0.4 to 2.5 s a GiB of small
    /// pages; zero slots are empty ones, so there is nothing to write. Leave it out, or touch the memory before the
    /// first request, where no decision may wait for a fault (0.1 to 1 us a small page, up to some 0.1 ms a huge one),
    /// and where the memory must be there: a page that the system cannot give ends the process at its first request.
    ///
    /// A header that is not zero is refused ([`TableError::BadMode`](crate::TableError::BadMode)): an old table is not
    /// taken for fresh memory. The slots are not looked at, for that would touch them. Whatever they hold is a valid
    /// word, so a broken promise costs verdicts, not memory safety: strangers' debts, until they have drained.
    pub const fn zeroed(mut self) -> Self {
        self.zeroed = true;
        self
    }
}

/// What an attaching or restoring process brings and expects. What it names must be so in the image; the rest is as the
/// image says. Nothing in the image is overridden.
#[derive(Clone, Copy, Debug, Default)]
pub struct AttachOptions {
    pub(crate) seed: Option<[u8; 16]>,
    pub(crate) policy: Option<FullPolicy>,
    pub(crate) tick_hz: Option<u64>,
}

impl AttachOptions {
    /// Expects nothing, brings nothing: enough where the caller hashes.
    pub const fn new() -> AttachOptions {
        AttachOptions { seed: None, policy: None, tick_hz: None }
    }

    /// Brings the secret seed that the table was made with.
    pub const fn seed(mut self, seed: [u8; 16]) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Expects this full-set policy.
    pub const fn policy(mut self, policy: FullPolicy) -> Self {
        self.policy = Some(policy);
        self
    }

    /// Expects the table to have been made for a clock of this frequency.
    pub const fn tick_hz(mut self, hz: u64) -> Self {
        self.tick_hz = Some(hz);
        self
    }
}

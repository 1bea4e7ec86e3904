//! The options of a new table, and those of a caller who attaches.

use super::clock::TableClock;
use super::override_word::OVERRIDE_BITS;
use super::policy::FullPolicy;
use crate::keys::HashKind;
use crate::limit::LimitSpec;

/// Describes a new table, except for its size: that comes from the memory.
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
    pub(crate) clock: TableClock,
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
            clock: TableClock::Unknown,
            guard: None,
            overrides: false,
            zeroed: false,
            keeps: None,
        }
    }

    /// Starts options for a table of [overrides](crate::Table::ban): bans and exemptions of keys until a time, at most
    /// `longest` ticks ahead.
    ///
    /// Its unit of time is the finest in which `longest` fits the word. With the default tag of 20 bits that is one
    /// tick below 2^38 - 1 ticks (8.7 years of milliseconds), and 2^17 ticks (131 us) for a year of nanoseconds. The
    /// policy is [`FullPolicy::Deny`]: no override is dropped for another.
    pub const fn overrides(longest: u64) -> TableOptions {
        let options = TableOptions::new(LimitSpec::fixed_window((1 << OVERRIDE_BITS) - 1, longest));
        TableOptions { overrides: true, policy: FullPolicy::Deny, ..options }
    }

    /// Sets the limit with the longest horizon, if keys have different limits (`new` takes the fastest).
    pub const fn slowest(mut self, limit: LimitSpec) -> Self {
        self.slowest = limit;
        self
    }

    /// Sets what happens when a set is full.
    pub const fn policy(mut self, policy: FullPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the secret seed of the hash: 16 bytes from the system's random source, never a constant.
    pub const fn seed(mut self, seed: [u8; 16]) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Lets the caller hash; see [`HashKind::Caller`].
    pub const fn caller_hash(self) -> Self {
        self.hash(HashKind::Caller)
    }

    /// Sets the hash. [`HashKind::is_available`] returns whether this processor can compute it.
    pub const fn hash(mut self, kind: HashKind) -> Self {
        self.hash = kind;
        self
    }

    /// Sets the tag width, 12..=24 bits (default 20). At full load a new key is mistaken for a live one with chance 16
    /// * 2^-bits. Each bit less doubles the span of the word.
    pub const fn tag_bits(mut self, bits: u32) -> Self {
        self.tag_bits = bits;
        self
    }

    /// Sets the resolution of all limits of the table: one q-unit is `2^-shift` ticks.
    pub const fn resolution(mut self, shift: i8) -> Self {
        self.shift = Some(shift);
        self
    }

    /// Sets how far callers' clocks may be apart or step back, in ticks. A reading that is older than this finds a key
    /// expired and full. Default: a 64th of the span, at most 2^30 ticks, and at least the horizon. That is 12 days of
    /// milliseconds: state it for wall clocks and coarse ticks, as a reading from the future locks its key until the
    /// clock gets there, for at most the horizon and this.
    pub const fn skew(mut self, ticks: u64) -> Self {
        self.skew = Some(ticks);
        self
    }

    /// Sets the claim lifetime, in ticks (default: one; never less than two q-units): how long a thread that was
    /// stopped inside an insert keeps others from the slot. A lifetime above the usual clock difference of threads
    /// saves retries.
    pub const fn claim_lifetime(mut self, ticks: u64) -> Self {
        self.lifetime = Some(ticks);
        self
    }

    /// Sets by how many ticks callers' clocks may differ in a table of [aligned](LimitSpec::aligned) windows (default:
    /// an eighth of the window, or the skew if that is less). A slot is kept this much longer than its window.
    /// Otherwise a caller whose clock is ahead could give the slot of a key to another one before its window is over.
    pub const fn guard(mut self, ticks: u64) -> Self {
        self.guard = Some(ticks);
        self
    }

    /// Sets how many ticks of the callers' clock make a second, for those who attach (default: 0, unknown).
    ///
    /// A table of windows takes the finest unit of time with which a word lasts 1024 windows and a year, and then the
    /// windows still have 1024 units each; else the finest that lasts 64 windows. Without the frequency, a year counts
    /// only if the windows are whole seconds of nanoseconds (multiples of 10^9).
    pub const fn tick_hz(mut self, hz: u64) -> Self {
        self.tick_hz = hz;
        self
    }

    /// Names the callers' clock, for programs that only look at the table: then they know what time it is (default:
    /// unknown). Libraries before 0.4 refuse an image that names its clock.
    pub const fn clock(mut self, clock: TableClock) -> Self {
        self.clock = clock;
        self
    }

    /// Keeps units in a [migration](crate::Table::migrate): every key of the old table has the limit `old`, and every
    /// key of the new one has `new`. A key that has used 60 units of `old` has used 60 of `new`, or all of them if that
    /// is fewer. Without this a debt keeps its time, so under a higher rate it is worth more units.
    ///
    /// Each word is scaled once, rounded up, to what a charge of as many units at the time of the migration would have
    /// stored. A word does not say its limit, so this is for tables of one limit. Limits of one rate with different
    /// bursts are one limit here; then `new` is the one with the largest burst and allowances. If keys have several
    /// limits, [change](crate::Table::change) them one by one.
    pub const fn keep_units(mut self, old: LimitSpec, new: LimitSpec) -> Self {
        self.keeps = Some([old, new]);
        self
    }

    /// Promises that the memory is all zero, as the system returns it. Then init writes only the header, and a page is
    /// first touched when one of its keys arrives.
    ///
    /// Writing slots of untouched memory takes the system's page faults, 0.4 to 2.5 s a GiB with small pages. Zero
    /// slots are empty, so nothing needs to be written. If no decision may wait for a fault (0.1 to 1 us for a small
    /// page, up to about 0.1 ms for a huge one), omit this option or touch the memory before the first request. Omit it
    /// also if the memory must exist: if the system cannot provide a page, the process ends at its first request.
    ///
    /// A header that is not zero is refused ([`TableError::BadMode`](crate::TableError::BadMode)), so that no old table
    /// is taken for fresh memory. The slots are not read, because that would touch them. Any value of a slot is a valid
    /// word, so a broken promise costs wrong verdicts, not memory safety: keys get foreign debts until those drain.
    pub const fn zeroed(mut self) -> Self {
        self.zeroed = true;
        self
    }
}

/// Says what a caller who attaches or restores brings and expects. The image must match each expectation, and it
/// decides everything else. Nothing here overrides the image.
///
/// ```
/// use tatcell::{AttachOptions, LimitSpec, Line, Table, TableError, TableOptions};
/// let (spec, lines) = (LimitSpec::new(10, 1_000, 20), [const { Line::EMPTY }; 66]);
/// Table::init(&lines, &TableOptions::new(spec).seed([7; 16]))?; // another process
/// assert!(Table::attach(&lines, &AttachOptions::new().seed([7; 16])).is_ok());
/// assert!(matches!(Table::attach(&lines, &AttachOptions::new().seed([8; 16])), Err(TableError::WrongSeed)));
/// # Ok::<(), tatcell::TableError>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct AttachOptions {
    pub(crate) seed: Option<[u8; 16]>,
    pub(crate) policy: Option<FullPolicy>,
    pub(crate) tick_hz: Option<u64>,
}

impl AttachOptions {
    /// Starts options that bring and expect nothing, which is enough if the caller hashes.
    pub const fn new() -> AttachOptions {
        AttachOptions { seed: None, policy: None, tick_hz: None }
    }

    /// Sets the secret seed that the table was made with.
    pub const fn seed(mut self, seed: [u8; 16]) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Expects this policy for full sets.
    pub const fn policy(mut self, policy: FullPolicy) -> Self {
        self.policy = Some(policy);
        self
    }

    /// Expects a table that was made for a clock of this frequency.
    pub const fn tick_hz(mut self, hz: u64) -> Self {
        self.tick_hz = Some(hz);
        self
    }
}

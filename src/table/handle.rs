//! The handle of a table: a private copy of the geometry, a reference to the caller's memory, and what all calls need.

use core::marker::PhantomData;

use super::error::TableError;
use super::layout::fit;
use super::layout::geometry::{Geometry, HEADER_LINES, SLOTS_PER_LINE};
use super::layout::image;
use super::layout::image::Line;
use super::layout::options::{AttachOptions, TableOptions};
use super::layout::policy::FullPolicy;
use super::layout::word::Tag;
use super::set::attempt::{Ask, Done};
use super::set::search::{Avx2, Avx512};
use super::set::set::Set;
use crate::algorithms::{Call, Op, Operation};
use crate::keys::aes::AesKeys;
use crate::keys::{home_of, Hasher};
use crate::limit::{LimitSpec, TableLimit};
use crate::sync::access::{Access, Exclusive, Mode, ReadOnly, Shared};

/// Decides requests for many keys in the caller's memory. Threads and processes share it unless `M` is [`Exclusive`].
///
/// The handle is small and private (geometry, seed, pointer): copy or rebuild it freely. All state is in the lines.
///
/// ```
/// use tatcell::{Line, LimitSpec, Outcome, Table, TableOptions};
/// static MEMORY: [Line; 66] = [Line::EMPTY; 66]; // header of 2 + 64 lines = 512 slots, 8 bytes each
///
/// let spec = LimitSpec::new(10, 1_000_000_000, 20); // 10 a second, 20 at once, ticks in ns
/// let options = TableOptions::new(spec).seed(*b"16 random bytes!"); // take them from getrandom()
/// let table = Table::init(&MEMORY, &options)?;
/// let limit = table.limit(&spec)?;
/// assert_eq!(table.check(&limit, 0, b"192.0.2.1", 20)?, Outcome::Conforming);
/// assert_eq!(table.check(&limit, 0, b"192.0.2.1", 1)?, Outcome::NonConforming { retry_after: 100_000_000 });
/// # Ok::<(), tatcell::TableError>(())
/// ```
pub struct Table<'m, M: Mode = Shared> {
    pub(crate) slots: &'m [Line],
    /// The header, of which only one word is read after the handle is made: see `unused`.
    pub(super) head: &'m [Line],
    pub(crate) geometry: Geometry,
    pub(crate) hasher: Hasher,
    /// The AVX-512 search, if this processor has it.
    pub(crate) wide: Option<Avx512>,
    /// AVX2, for groups of requests where there is no AVX-512.
    #[cfg_attr(not(tatcell_sse2), allow(dead_code))] // only groups use it; so with the next field
    pub(super) half: Option<Avx2>,
    /// Whether a burst goes in groups from its first request on, even if most of its requests pass.
    #[cfg_attr(not(tatcell_sse2), allow(dead_code))]
    pub(super) at_once: bool,
    #[allow(dead_code)] // copied, never read: see `Zeros`
    filled: [u8; FILL],
    /// The fingerprint of this table's limits if one tick is one q-unit of a TAT, else a value that no limit has. Never
    /// 0, because an uninitialised C limit has 0.
    pub(crate) whole: u64,
    /// The fingerprint of this table's limits if they are GCRA limits, else a value that no limit has.
    pub(super) timed: u64,
    /// The value of `whole` if the hasher is [`Hasher::Short`], else a value that no limit has: for the shortest path.
    short: u64,
    /// Number of slot lines, as the factor of a 64-bit multiplication.
    lines: u64,
    // A shared table is Sync and Send if its words are. An exclusive one must be neither shared nor copied.
    mode: PhantomData<M::Held>,
}

/// Padding that completes the fields of `Table` without whole words to one word, so that no byte stays unset.
const FILL: usize =
    size_of::<u64>() - size_of::<Option<Avx512>>() - size_of::<Option<Avx2>>() - size_of::<bool>();
const _: () = assert!(
    size_of::<(Option<Avx512>, Option<Avx2>, bool, [u8; FILL])>() == size_of::<u64>(),
    "a table has bytes that nothing fills"
);

/// Decides like a shared [`Table`], for one owner, by plain loads and stores.
///
/// ```
/// use tatcell::{ExclusiveTable, Line, LimitSpec, Outcome, TableOptions};
/// let (spec, mut lines) = (LimitSpec::new(10, 1_000, 20), [const { Line::EMPTY }; 66]); // milliseconds
/// let table = ExclusiveTable::init_exclusive(&mut lines, &TableOptions::new(spec).seed(*b"16 random bytes!"))?;
/// let limit = table.limit(&spec)?;
/// assert!(table.check(&limit, 0, b"192.0.2.1", 20)?.passes());
/// assert_eq!(table.check(&limit, 0, b"192.0.2.1", 1)?, Outcome::NonConforming { retry_after: 100 });
/// # Ok::<(), tatcell::TableError>(())
/// ```
pub type ExclusiveTable<'m> = Table<'m, Exclusive>;

/// Looks at a table, and changes nothing: for reports and monitors. Its calls never store, so the memory may be mapped
/// for reading alone (`host::ReadOnlyMemory`). Only [`hash`](Table::hash) needs the seed.
///
/// ```
/// use tatcell::{AttachOptions, Line, LimitSpec, ReadOnlyTable, Table, TableError, TableOptions};
/// let memory = [const { Line::EMPTY }; 66];
/// let spec = LimitSpec::new(10, 1_000_000_000, 20);
/// let table = Table::init(&memory, &TableOptions::new(spec).seed(*b"16 random bytes!"))?;
/// assert!(table.check(&table.limit(&spec)?, 0, b"192.0.2.1", 20)?.passes());
///
/// let seen = ReadOnlyTable::attach_read_only(&memory, &AttachOptions::new())?;
/// assert_eq!(seen.stats(0).live, 1);
/// assert_eq!(seen.stats(0).longest, 2_000_000_000);
/// assert_eq!(seen.hash(b"192.0.2.1"), Err(TableError::MissingSeed));
/// # Ok::<(), TableError>(())
/// ```
pub type ReadOnlyTable<'m> = Table<'m, ReadOnly>;

// SAFETY: sending moves the only owner. The type is neither Sync nor Clone, so one owner remains.
unsafe impl Send for Table<'_, Exclusive> {}

// SAFETY: besides plain data a table holds one reference, which may go where a reference to the words may go. (The impl
// above removes the automatic impl of this type too.)
unsafe impl<'m> Send for Table<'m, Shared> where &'m [Line]: Send {}
// SAFETY: as above.
unsafe impl<'m> Send for Table<'m, ReadOnly> where &'m [Line]: Send {}

impl Clone for Table<'_, Shared> {
    fn clone(&self) -> Self {
        *self
    }
}
impl Copy for Table<'_, Shared> {}
impl Clone for Table<'_, ReadOnly> {
    fn clone(&self) -> Self {
        *self
    }
}
impl Copy for Table<'_, ReadOnly> {}

impl core::fmt::Debug for Table<'_, Shared> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        // The seed is a secret, so it is not printed.
        f.debug_struct("Table").field("geometry", &self.geometry).finish_non_exhaustive()
    }
}

impl<'m> Table<'m, Shared> {
    /// Formats memory as a fresh table in which all keys are absent. The magic is published last.
    ///
    /// The first two lines hold the header, the others the slots. An odd line at the end stays unused.
    ///
    /// # Errors
    /// Returns a [`TableError`] and leaves the memory untouched if there is too little memory, the limits do not fit
    /// one word, the seed is missing, an option is bad, or a header that should be zero is not.
    ///
    /// # Concurrency
    /// One caller, before anyone else uses the memory. Other processes [`attach`](Table::attach) afterwards.
    ///
    /// # Cost
    /// Writes all of the memory, unless the options say that it is [zero](TableOptions::zeroed). Detects the
    /// processor's features as [`attach`](Table::attach) does.
    pub fn init(lines: &'m [Line], options: &TableOptions) -> Result<Self, TableError> {
        Self::init_as(lines, options)
    }

    /// Attaches to a table that another thread or process has initialised in this memory.
    ///
    /// # Errors
    /// [`TableError::NotReady`] until the initialising process has published the image: try again. Every other error
    /// names what does not match: version, geometry, seed or mode.
    ///
    /// # Cost
    /// Reads two lines and hashes the seed: 0.05 to 0.15 us on a 2.5 GHz Xeon. Detecting the features of an x86-64
    /// processor adds one to three CPUID instructions, which a virtual machine traps: 0.8 us each on that one, more on
    /// others. With feature `std` or `host` a process detects once. Without them the library keeps no state, so each
    /// call detects three times, and [`HashKind::Aes`](crate::HashKind::Aes) adds one CPUID. Keep the handle; do not
    /// attach on the hot path.
    pub fn attach(lines: &'m [Line], options: &AttachOptions) -> Result<Self, TableError> {
        Self::attach_as(lines, options)
    }

    /// Fills memory from an image made by [`save`](Table::save). `clock_offset` is the reading of the new clock minus
    /// what the old clock would read at the same moment, so time that passed in between counts as idle time.
    ///
    /// # Errors
    /// The errors of [`attach`](Table::attach), and [`TableError::BufferTooSmall`] unless the memory has exactly as
    /// many lines as the image.
    pub fn restore(
        lines: &'m [Line],
        image: &[u64],
        options: &AttachOptions,
        clock_offset: i64,
    ) -> Result<Self, TableError> {
        Self::restore_as(lines, image, options, clock_offset)
    }
}

impl<'m> Table<'m, ReadOnly> {
    /// Attaches to a table only to look at it, whether it is shared or exclusive.
    ///
    /// # Errors
    /// The errors of [`attach`](Table::attach), but a missing seed is none.
    ///
    /// # Concurrency
    /// During any call of others. On targets with 64-bit atomics all reads are relaxed loads, so it may be read-only.
    pub fn attach_read_only(lines: &'m [Line], options: &AttachOptions) -> Result<Self, TableError> {
        Self::attach_as(lines, options)
    }
}

impl<'m> Table<'m, Exclusive> {
    /// Formats memory as a fresh table with one owner, like [`Table::init`]. Later calls use plain loads and stores.
    ///
    /// # Errors
    /// The errors of [`Table::init`].
    pub fn init_exclusive(lines: &'m mut [Line], options: &TableOptions) -> Result<Self, TableError> {
        Self::init_as(lines, options)
    }

    /// Takes over an exclusive table that is already in this memory. Refuses a shared image.
    ///
    /// # Errors
    /// The errors of [`Table::attach`]; [`TableError::BadMode`] for a shared image.
    pub fn attach_exclusive(lines: &'m mut [Line], options: &AttachOptions) -> Result<Self, TableError> {
        Self::attach_as(lines, options)
    }

    /// Fills memory from a saved exclusive image, like [`Table::restore`].
    ///
    /// # Errors
    /// The errors of [`Table::restore`].
    pub fn restore_exclusive(
        lines: &'m mut [Line],
        image: &[u64],
        options: &AttachOptions,
        clock_offset: i64,
    ) -> Result<Self, TableError> {
        Self::restore_as(lines, image, options, clock_offset)
    }
}

impl<'m, M: Access> Table<'m, M> {
    pub(crate) fn init_as(lines: &'m [Line], options: &TableOptions) -> Result<Self, TableError> {
        if options.keeps.is_some() {
            return Err(TableError::NothingToKeep);
        }
        let mut geometry = fit::choose(options, lines.len())?;
        let (hasher, check) = Hasher::new(options.hash, options.seed.as_ref())?;
        geometry.seed_check = check;
        let image = used(lines, &geometry)?;
        if !options.zeroed {
            image::format(image, &geometry, M::EXCLUSIVE, |_| 0);
        } else if !image::format_zeroed(image, &geometry, M::EXCLUSIVE) {
            return Err(TableError::BadMode);
        }
        Self::over(image, geometry, hasher)
    }

    pub(crate) fn restore_as(
        lines: &'m [Line],
        image: &[u64],
        options: &AttachOptions,
        offset: i64,
    ) -> Result<Self, TableError> {
        let (geometry, hasher) = image::restore(lines, image, options, M::EXCLUSIVE, offset)?;
        Self::over(lines, geometry, hasher)
    }

    /// Makes a limit in this table's q-unit. Different keys may have different limits.
    ///
    /// # Errors
    /// [`TableError::Limit`] for an invalid specification; [`TableError::LimitTooFast`] if the limit is faster or has a
    /// longer horizon than the table's options provided for.
    pub fn limit(&self, spec: &LimitSpec) -> Result<TableLimit, TableError> {
        fit::limit(&self.geometry, spec)
    }

    /// Returns a limit that every request conforms to, for exempt keys. It uses no slot.
    pub fn unlimited(&self) -> TableLimit {
        self.geometry.unlimited()
    }

    /// Refuses a limit of another geometry, which would misread the slots.
    #[inline(always)]
    pub(crate) fn verify_limit(&self, limit: &TableLimit) -> Result<(), TableError> {
        if limit.0.fingerprint == self.geometry.fingerprint {
            Ok(())
        } else {
            Err(TableError::ForeignLimit)
        }
    }

    /// Returns the round keys of the shortest path if `limit` may take it: the limit belongs to this table, a q-unit is
    /// a tick, and keys are hashed in registers. One comparison tests all of that: an indirect jump by hash kind took
    /// six instructions.
    ///
    /// # Safety
    /// The library must have made the limit, so that no caller wrote its fingerprint. The C layer, whose limits may
    /// hold any bytes, asks its own handle instead.
    #[inline(always)]
    pub(crate) unsafe fn short(&self, limit: &TableLimit) -> Option<&AesKeys> {
        if limit.0.fingerprint != self.short {
            return None;
        }
        match &self.hasher {
            Hasher::Short(keys) => Some(keys),
            // SAFETY: only `over` makes handles. It sets `short` to the fingerprint of limits for this hasher only,
            // else to a value that no limit has. The caller guarantees that the library made this limit.
            _ => unsafe { core::hint::unreachable_unchecked() },
        }
    }

    /// Runs an operation under a limit of this table.
    #[inline(always)]
    pub(crate) fn run(&self, hash: u64, now: u64, op: &Op<'_>) -> Done {
        if !op.p.is_gcra() {
            return self.run_count(hash, now, op);
        }
        self.run_as(hash, self.now_q(now), op)
    }

    /// Runs an operation on words that hold a count. Out of line, so that chains keep their registers.
    #[cold]
    #[inline(never)]
    fn run_count(&self, hash: u64, now: u64, op: &Op<'_>) -> Done {
        self.run_as(hash, self.geometry.clock_q(now), &Call::new(op, now))
    }

    #[inline(always)]
    pub(super) fn run_as<O: Operation>(&self, hash: u64, now_q: u64, op: &O) -> Done {
        self.run_in(self.place(hash), hash, now_q, op)
    }

    #[inline(always)]
    pub(super) fn run_in<O: Operation>(
        &self,
        (set, tag): (Set<'m, SLOTS_PER_LINE>, Tag),
        hash: u64,
        now_q: u64,
        op: &O,
    ) -> Done {
        let Ask { layout, policy, tag, now_q, op, sample, .. } = self.ask(tag, hash, now_q, op);
        set.run::<M, _>(layout, policy, tag, now_q, op, sample)
    }

    /// Bundles a request of one key with what the table knows about it.
    #[inline(always)]
    pub(super) fn ask<'a, O: Operation + ?Sized>(
        &'a self,
        tag: Tag,
        hash: u64,
        now_q: u64,
        op: &'a O,
    ) -> Ask<'a, O> {
        // Samples one request in 16, independent of set and tag, by the high bits of a product of hash and clock.
        let sample = (hash ^ now_q).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60 == 0;
        let Geometry { layout, policy, .. } = &self.geometry;
        Ask { layout, policy: *policy, tag, now_q, op, sample, kept: 0 }
    }
}

impl<'m, M: Mode> Table<'m, M> {
    pub(crate) fn attach_as(lines: &'m [Line], options: &AttachOptions) -> Result<Self, TableError> {
        let header = image::load(lines).ok_or(TableError::TooSmall)?;
        let (geometry, hasher) = image::read(&header, lines.len(), options, M::IMAGE)?;
        Self::over(used(lines, &geometry)?, geometry, hasher)
    }

    fn over(image: &'m [Line], geometry: Geometry, hasher: Hasher) -> Result<Self, TableError> {
        let (head, slots) = image.split_at_checked(HEADER_LINES).ok_or(TableError::TooSmall)?;
        // The bounds of every later index rely on this.
        if slots.len() != geometry.lines as usize || geometry.lines < 2 {
            return Err(TableError::BadGeometry);
        }
        let (own, none) = (geometry.fingerprint, !geometry.fingerprint);
        let timed = if geometry.is_gcra() { own } else { none };
        let whole = if geometry.resolution() == 0 { timed } else { none };
        let lines = geometry.lines as u64;
        let short = if matches!(hasher, Hasher::Short(_)) { whole } else { none };
        let (wide, half) = (Avx512::detect(), Avx2::detect());
        let (at_once, filled, mode) = (crate::cpu::groups_pay(), [0; FILL], PhantomData);
        Ok(Table {
            slots,
            head,
            geometry,
            hasher,
            wide,
            half,
            at_once,
            filled,
            whole,
            timed,
            short,
            lines,
            mode,
        })
    }

    /// Copies the image into `out` and returns the number of words written. If nobody uses the table, the copy is
    /// exact; else each word is as of the moment of its load. Words that have expired at `now` are left out.
    /// [`image_words`](Table::image_words) returns how many words `out` needs.
    ///
    /// # Errors
    /// [`TableError::BufferTooSmall`] if `out` is shorter than that.
    pub fn save(&self, now: u64, out: &mut [u64]) -> Result<usize, TableError> {
        let g = &self.geometry;
        image::save(self.slots, g, self.is_exclusive(), g.clock_q(now), out)
    }

    /// Whether the image has one owner at a time.
    pub(crate) fn is_exclusive(&self) -> bool {
        M::IMAGE.unwrap_or(self.geometry.exclusive)
    }

    /// Returns the number of words of a saved image.
    pub fn image_words(&self) -> usize {
        (self.slots.len() + HEADER_LINES) * SLOTS_PER_LINE
    }

    /// Returns the number of slots of the table.
    pub fn slots(&self) -> usize {
        self.slots.len() * SLOTS_PER_LINE
    }

    /// Returns the policy for full sets.
    pub fn policy(&self) -> FullPolicy {
        self.geometry.policy
    }

    /// Returns the resolution s of this table: one q-unit is `2^-s` ticks.
    pub fn resolution(&self) -> i32 {
        self.geometry.resolution()
    }

    /// Returns the ticks within which every slot should be [swept](Table::sweep) once. A key that stays away longer
    /// may, for a small share of idle times, meet a false debt that drains. Saturates.
    pub fn sweep_interval(&self) -> u64 {
        self.geometry.sweep_interval()
    }

    /// The clock of the hot path: GCRA's. Elsewhere see `Geometry::clock_q`.
    #[inline(always)]
    pub(crate) fn now_q(&self, now: u64) -> u64 {
        crate::time::now_q(now, self.geometry.shl, self.geometry.shr)
    }

    /// Returns the set and the tag of a hash.
    #[inline(always)]
    pub(crate) fn place(&self, hash: u64) -> (Set<'m, SLOTS_PER_LINE>, Tag) {
        let home = home_of(hash, self.lines);
        // SAFETY: multiply-shift gives home < lines. `lines` is even, so home ^ 1 < lines too. `over` checked that the
        // slice has exactly `lines` lines.
        let (line, next) = unsafe { (self.slots.get_unchecked(home), self.slots.get_unchecked(home ^ 1)) };
        let set = Set { home: &line.words, next: &next.words, line: home as u32 };
        (set, self.geometry.layout.tag(hash))
    }
}

/// Returns the lines that a geometry uses, header included.
fn used<'m>(lines: &'m [Line], g: &Geometry) -> Result<&'m [Line], TableError> {
    lines.get(..g.lines as usize + HEADER_LINES).ok_or(TableError::TooSmall)
}

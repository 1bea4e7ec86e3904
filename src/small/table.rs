//! The keyed table for small machines: 32-bit arithmetic throughout, one limit, exclusive or shared by masking.
//!
//! ```text
//!  slot    [ tag : 32 ][ TAT : 32 ]     8 bytes; all zero = empty; the TAT is a 32-bit cell word of the same limit
//!  memory  set 0: 16 slots | set 1: 16 slots | ...     64 slots = 512 bytes of .bss
//!  key -> HalfSipHash-1-3 -> set + tag (see hash.rs); a key lives in one slot of its set
//! ```
//!
//! Promise: each key gets the exact answer of its own 32-bit cell, as long as its set is not full and no two keys have
//! the same 32-bit hash (16 * 2^-30 for a new key, with 4 sets). The [`FullPolicy`] answers for a full set, and the
//! table counts such answers.
//!
//! How it differs from the big [`Table`](crate::Table), and why. One masked section (or the one owner) searches a set,
//! decides and stores, so there is no claim, no version and no retry. Ticks of 32 bits instead of 43-bit payloads keep
//! every operation one instruction on a 32-bit core. One limit per table keeps H and S with the words. It is no image:
//! it cannot be attached to, saved, or shared between processes.
//!
//! An expired slot equals an absent key, so nothing is deleted. But a 32-bit clock wraps, and a key that stays away for
//! nearly a whole wrap may meet a debt of at most H + S. A [`sweep`](SmallTable::sweep) once per
//! [`sweep_interval`](SmallLimit32::sweep_interval) prevents that. The table never over-admits.

use core::cell::UnsafeCell;
use core::marker::PhantomData;

use super::cell::Small32;
use super::hash::half_sip_13;
use super::limit::SmallLimit32;
use crate::answer::Outcome;
use crate::sync::masked::{self, Masked};
use crate::sync::{Access, Exclusive, Shared};
use crate::table::{FullPolicy, TableError};

/// The slots of one set.
const WAYS: usize = 16;

#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Raw {
    tag: u32,
    tat: u32,
}

/// Holds one key of a [`SmallTable`]: all zero is empty.
///
/// ```
/// use tatcell::SmallSlot;
/// let slots = [SmallSlot::EMPTY; 64]; // memory of zeros; a static one lies in .bss
/// assert_eq!(size_of_val(&slots), 512);
/// ```
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct SmallSlot(Masked<Raw>);

impl SmallSlot {
    /// An empty slot.
    #[allow(clippy::declare_interior_mutable_const)] // intended: `[SmallSlot::EMPTY; N]` makes N separate slots
    pub const EMPTY: SmallSlot = SmallSlot(Masked(UnsafeCell::new(Raw { tag: 0, tat: 0 })));
}

/// A pointer to the slots, which is shared as they are.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Slots<T>(*const T);

// SAFETY: a pointer to something that may be shared; it is never written.
unsafe impl<T: Sync> Sync for Slots<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Send for Slots<T> {}

/// A table without its memory; C calls it tatcell_small_table_t.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Head {
    limit: SmallLimit32,
    slots: Slots<SmallSlot>,
    /// Sets of 16 slots, 1 to 2^16.
    sets: u32,
    /// A [`FullPolicy`] number.
    policy: u32,
    /// All zero: not seeded yet.
    seed: Masked<[u32; 2]>,
    /// Requests of new keys that met a full set. Wraps.
    full: Masked<u32>,
}

impl Head {
    /// # Safety
    /// The same as for [`Head::check`].
    #[inline(always)]
    pub unsafe fn seed<const MASKED: bool>(&self, seed: &[u8; 8]) {
        let [a, b, c, d, e, f, g, h] = *seed;
        let seed = [u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h])];
        // SAFETY: nobody else is in the section, or this caller is the only owner.
        section::<MASKED, _>(|| unsafe { self.seed.0.get().write(seed) });
    }

    /// Returns the hash of a key; `None` without a seed, because an unkeyed table would show which keys collide.
    ///
    /// The seed must not be set at the same time. A separate function, so that its stack frame is gone while deciding.
    #[inline(never)]
    pub fn hash(&self, key: &[u8]) -> Option<u32> {
        // SAFETY: the seed is set once, before keys are hashed.
        let seed = unsafe { self.seed.0.get().read_volatile() };
        if seed[0] | seed[1] == 0 {
            None
        } else {
            Some(half_sip_13(seed, key))
        }
    }

    /// Decides one request of a hashed key.
    ///
    /// # Safety
    /// There are `sets` times 16 slots. If not `MASKED`, nobody else uses this table meanwhile.
    #[inline(never)]
    pub unsafe fn check<const MASKED: bool>(&self, now: u32, hash: u32, cost: u32) -> Small32 {
        let limit = &self.limit;
        if cost > limit.burst {
            return Small32::NEVER;
        }
        let (now_q, charge) = (limit.now_q(now), limit.charge(cost));
        let tag = if hash == 0 { 1 } else { hash };
        let set = self.set(hash);
        // SAFETY: that of the caller.
        section::<MASKED, _>(|| unsafe { self.decide(set, tag, now_q, charge) })
    }

    /// Returns the first slot of the set of a hash.
    #[inline(always)]
    fn set(&self, hash: u32) -> *mut Raw {
        let set = (hash >> 16).wrapping_mul(self.sets) >> 16;
        // hash >> 16 < 2^16, so set < sets: inside the slots.
        self.slots.0.wrapping_add(set as usize * WAYS).cast_mut().cast()
    }

    /// Finds the key or a place for it, and decides.
    ///
    /// # Safety
    /// `set` points to 16 slots; nobody else uses them or the counter meanwhile.
    #[inline(always)]
    unsafe fn decide(&self, set: *mut Raw, tag: u32, now_q: u32, charge: u32) -> Small32 {
        let limit = &self.limit;
        let look = charge == 0;
        // SAFETY: 16 slots, which are this caller's alone until it returns.
        let set = unsafe { core::slice::from_raw_parts_mut(set, WAYS) };
        for slot in set.iter_mut() {
            if slot.tag == tag {
                let (answer, next) = limit.take(slot.tat, now_q, || charge);
                if let (Some(tat), false) = (next, look) {
                    slot.tat = tat;
                }
                return answer;
            }
        }
        if look {
            return Small32(0);
        }
        let (mut place, mut least) = (0, u32::MAX);
        for (i, slot) in set.iter().enumerate() {
            // An empty slot holds the empty word, whose lead is 0.
            let lead = limit.lead(slot.tat, now_q);
            if lead < least {
                (place, least) = (i, lead);
                if lead == 0 {
                    break;
                }
            }
        }
        let Some(slot) = set.get_mut(place) else { return Small32::NEVER };
        if least != 0 {
            // SAFETY: this caller's alone.
            unsafe { *self.full.0.get() = (*self.full.0.get()).wrapping_add(1) };
            if self.policy == FullPolicy::Deny as u32 {
                // Wait for the first slot that drains.
                return Small32(limit.ticks_up(least.wrapping_neg()));
            }
            if self.policy != FullPolicy::Inherit as u32 {
                return Small32(0);
            }
        }
        let base = if least == 0 { 0 } else { slot.tat };
        let (answer, next) = limit.take(base, now_q, || charge);
        if let Some(tat) = next {
            *slot = Raw { tag, tat };
        }
        answer
    }

    /// Empties every slot that has long expired, one slot at a time.
    ///
    /// # Safety
    /// The same as for [`Head::check`].
    #[inline(always)]
    pub unsafe fn sweep<const MASKED: bool>(&self, now: u32) {
        let now_q = self.limit.now_q(now);
        for i in 0..self.sets as usize * WAYS {
            let slot: *mut Raw = self.slots.0.wrapping_add(i).cast_mut().cast();
            section::<MASKED, _>(|| {
                // SAFETY: inside the slots, which are this caller's alone.
                unsafe {
                    if self.limit.is_idle((*slot).tat, now_q) {
                        slot.write(Raw { tag: 0, tat: 0 });
                    }
                }
            });
        }
    }
}

/// Runs `f` in a masked section, or plainly for an owner.
#[inline(always)]
fn section<const MASKED: bool, R>(f: impl FnOnce() -> R) -> R {
    if MASKED {
        masked::with(f)
    } else {
        f()
    }
}

/// Limits many keys in 16 to 2^20 slots by one limit, with 32-bit ticks.
///
/// [`Exclusive`] (the default): one owner, plain loads and stores. [`Shared`]: interrupts and tasks use it at once, and
/// each call is one masked section, of the kind that the firmware chose (see `single-core`, `critical-section` and
/// `critical-section-c` in the list of features). Without such a choice it is not `Sync`.
///
/// ```
/// use tatcell::{FullPolicy, Outcome, SmallLimit32, SmallSlot, SmallTable};
/// const LIMIT: SmallLimit32 = match SmallLimit32::new(10, 1_000, 3) {
///     Ok(limit) => limit, // 10 a second in milliseconds, 3 at once
///     Err(_) => panic!("cannot be represented"),
/// };
/// let mut slots = [SmallSlot::EMPTY; 64]; // 512 bytes
/// let mut table = SmallTable::new(&mut slots, LIMIT, FullPolicy::Inherit)?;
/// table.seed(*b"8 random"); // from the device's random source, once
/// assert_eq!(table.check(0, &[192, 0, 2, 1], 3)?, Outcome::Conforming);
/// assert_eq!(table.check(0, &[192, 0, 2, 1], 1)?, Outcome::NonConforming { retry_after: 100 });
/// assert_eq!(table.check(0, &[192, 0, 2, 7], 1)?, Outcome::Conforming);
/// # Ok::<(), tatcell::TableError>(())
/// ```
#[derive(Debug)]
pub struct SmallTable<'m, M: Access = Exclusive> {
    head: Head,
    memory: PhantomData<(&'m [SmallSlot], M::Sharing)>,
}

// SAFETY: the one owner moves, and the slots with it.
unsafe impl Send for SmallTable<'_, Exclusive> {}

impl<'m> SmallTable<'m, Exclusive> {
    /// Makes a table over its own slots. If they are [`SmallSlot::EMPTY`], all keys are absent.
    ///
    /// # Errors
    /// `TooSmall` below 16 slots, `TooLarge` above 2^20 (a remainder below 16 stays unused); `NotSmall` for
    /// [`FullPolicy::Sampled`].
    pub const fn new(
        slots: &'m mut [SmallSlot],
        limit: SmallLimit32,
        policy: FullPolicy,
    ) -> Result<Self, TableError> {
        Self::over(slots, limit, policy)
    }
}

impl<'m> SmallTable<'m, Shared> {
    /// Makes a table that interrupts and tasks use at once; see [`new`](SmallTable::new). Every table over the same
    /// slots must have the same limit.
    ///
    /// # Errors
    /// Those of [`new`](SmallTable::new).
    pub const fn shared(
        slots: &'m [SmallSlot],
        limit: SmallLimit32,
        policy: FullPolicy,
    ) -> Result<Self, TableError> {
        Self::over(slots, limit, policy)
    }
}

impl<'m, M: Access> SmallTable<'m, M> {
    const fn over(slots: &[SmallSlot], limit: SmallLimit32, policy: FullPolicy) -> Result<Self, TableError> {
        let sets = slots.len() / WAYS;
        if sets == 0 {
            return Err(TableError::TooSmall);
        }
        if sets > 1 << 16 {
            return Err(TableError::TooLarge);
        }
        if matches!(policy, FullPolicy::Sampled) {
            return Err(TableError::NotSmall);
        }
        let head = Head {
            limit,
            slots: Slots(slots.as_ptr()),
            sets: sets as u32,
            policy: policy as u32,
            seed: Masked(UnsafeCell::new([0; 2])),
            full: Masked(UnsafeCell::new(0)),
        };
        Ok(SmallTable { head, memory: PhantomData })
    }

    /// Hashes a key with the table's secret.
    ///
    /// # Errors
    /// `MissingSeed` before [`seed`](SmallTable::seed).
    #[inline]
    pub fn hash(&self, key: &[u8]) -> Result<u32, TableError> {
        self.head.hash(key).ok_or(TableError::MissingSeed)
    }

    /// Returns the limit of every key.
    pub const fn limit(&self) -> &SmallLimit32 {
        &self.head.limit
    }
}

macro_rules! operations {
    ($mode:ident, $masked:literal, $me:ident, ($($recv:tt)+)) => {
        impl SmallTable<'_, $mode> {
            /// Sets the secret seed: 8 random bytes of this device, before the first key. There is no default.
            pub fn seed($($recv)+, seed: [u8; 8]) {
                // SAFETY: the slots were given whole; the type has this mode.
                unsafe { $me.head.seed::<$masked>(&seed) }
            }

            /// Decides one request of a key and charges it if it conforms.
            ///
            /// # Errors
            /// `MissingSeed` before [`seed`](SmallTable::seed).
            ///
            /// # Concurrency
            /// That of the mode. Cost: one hash, and a search of 16 slots.
            #[inline]
            pub fn check($($recv)+, now: u32, key: &[u8], cost: u32) -> Result<Outcome, TableError> {
                let hash = $me.hash(key)?;
                Ok($me.check_hash(now, hash, cost))
            }

            /// Decides one request of a key like `check`, but always with an outcome: `Never` if the table has no seed.
            #[inline]
            pub fn decide($($recv)+, now: u32, key: &[u8], cost: u32) -> Outcome {
                match $me.head.hash(key) {
                    Some(hash) => $me.check_hash(now, hash, cost),
                    None => Outcome::Never,
                }
            }

            /// Decides one request like `check`, by a hash of [`hash`](SmallTable::hash) or another keyed 32-bit hash.
            #[inline]
            pub fn check_hash($($recv)+, now: u32, hash: u32, cost: u32) -> Outcome {
                // SAFETY: as above.
                unsafe { $me.head.check::<$masked>(now, hash, cost) }.outcome()
            }

            /// Empties slots that have long expired, so that a wrapped clock cannot read them as a debt. It changes
            /// no answer. Call it once per [`sweep_interval`](SmallLimit32::sweep_interval).
            pub fn sweep($($recv)+, now: u32) {
                // SAFETY: as above.
                unsafe { $me.head.sweep::<$masked>(now) }
            }

            /// Returns how many requests of new keys have met a full set since the table was made. Wraps.
            pub fn full($($recv)+) -> u32 {
                // SAFETY: as above.
                section::<$masked, _>(|| unsafe { $me.head.full.0.get().read() })
            }
        }
    };
}

operations!(Exclusive, false, self, (&mut self));
operations!(Shared, true, self, (&self));

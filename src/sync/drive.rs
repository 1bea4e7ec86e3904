//! The loops that change one word: load, decide, compare and swap, a bounded number of times.
//!
//! [`update64`] and [`update32`] change every cell. [`step64`] and [`step32`] do the same for firmware, but count all
//! attempts together: on a Cortex-M3 a second counter takes 12 bytes, which the budget of the small forms does not
//! have. If a masked section protects the word, there is no loop at all.

use super::{AtomicU32, AtomicU64, Ordering};

/// The number of compare-and-swaps that a call may lose to other callers before it returns `Contended`.
///
/// A short check ([`Cell::check`](crate::Cell::check), [`Table::check_hash`](crate::Table::check_hash) and each request
/// of a burst) makes attempts of its own before it starts to count. So it may lose one swap more; in a burst two more
/// if its key is in the second line of its set, and yet one more in a group of eight.
///
/// A call that reaches the bound has charged nothing. The caller decides whether to drop, pass or ask again. If the
/// library let such requests pass, it would over-admit; if it retried for ever, one core could stall another.
///
/// ```
/// use tatcell::{Cell, Limit, Outcome, MAX_LOST};
/// let (cell, limit) = (Cell::new(), Limit::new(1, 1_000, 5)?);
/// let passes = match cell.check(&limit, 0, 1) {
///     Outcome::Conforming => true,
///     Outcome::Contended => false, // lost to others more than MAX_LOST times: drop the request
///     Outcome::NonConforming { .. } | Outcome::Never => false,
/// };
/// assert!(passes && MAX_LOST == 8); // nobody else was there
/// # Ok::<(), tatcell::LimitError>(())
/// ```
pub const MAX_LOST: u32 = 8;

/// The number of spurious failures (LL/SC targets) that a call tolerates in addition. They are not losses to a rival.
const MAX_SPURIOUS: u32 = 64;

/// Waits after a lost swap: 16 spin hints after the first loss, 32 after each later one. That is tenths of a
/// microsecond, and a few microseconds in all. Meanwhile the rival keeps the line and makes many swaps on it, instead
/// of one per transfer.
#[cfg(tatcell_back_off)]
#[cold]
#[inline(never)]
pub(crate) fn back_off(lost: u32) {
    for _ in 0..8u32.wrapping_shl(lost.min(2)) {
        core::hint::spin_loop();
    }
}

/// Does nothing where a wait cannot help: an interrupt has ended before the code that it interrupted runs.
#[cfg(not(tatcell_back_off))]
#[inline(always)]
pub(crate) fn back_off(_: u32) {}

macro_rules! update {
    ($(#[$doc:meta])* $name:ident, $atomic:ident, $int:ty) => {
        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $name<A>(word: &$atomic, mut step: impl FnMut($int) -> (A, Option<$int>)) -> Option<A> {
            // ORDERING: Relaxed; the word is the whole state and orders nothing else.
            let mut old = word.load(Ordering::Relaxed);
            let (mut lost, mut spurious) = (0, 0);
            loop {
                let (answer, next) = step(old);
                let Some(next) = next else { return Some(answer) };
                // ORDERING: Relaxed on both sides; as above.
                match word.compare_exchange_weak(old, next, Ordering::Relaxed, Ordering::Relaxed) {
                    Ok(_) => return Some(answer),
                    Err(found) => {
                        if found == old {
                            spurious += 1;
                        } else {
                            lost += 1;
                        }
                        old = found;
                    }
                }
                if lost >= MAX_LOST || spurious >= MAX_SPURIOUS {
                    return None;
                }
                if cfg!(tatcell_back_off) && lost != 0 {
                    back_off(lost);
                    // ORDERING: Relaxed; as above. The word may have changed during the wait.
                    old = word.load(Ordering::Relaxed);
                }
            }
        }
    };
}

update! {
    /// Maps a 32-bit word to an answer and the word to store, until a swap succeeds; see [`update64`].
    update32, AtomicU32, u32
}
update! {
    /// Maps a 64-bit word to an answer and the word to store, until a swap succeeds. Returns `None`, and has stored
    /// nothing, after [`MAX_LOST`] lost swaps.
    update64, AtomicU64, u64
}

/// Adds to a 64-bit word, mod 2^64, and returns the word before. It has no loop and cannot fail, even under an attack.
#[inline(always)]
pub(crate) fn add64(word: &AtomicU64, n: u64) -> u64 {
    // ORDERING: Relaxed; the word is the whole state and orders nothing else.
    word.fetch_add(n, Ordering::Relaxed)
}

/// Clears the bits of a 64-bit word that `mask` has not. It has no loop and cannot fail.
#[inline(always)]
pub(crate) fn and64(word: &AtomicU64, mask: u64) {
    // ORDERING: Relaxed; the word is the whole state and orders nothing else.
    word.fetch_and(mask, Ordering::Relaxed);
}

/// Raises a 64-bit word to `n` if it is lower. It has no loop and cannot fail.
#[inline(always)]
pub(crate) fn max64(word: &AtomicU64, n: u64) {
    // ORDERING: Relaxed; the word is the whole state and orders nothing else.
    word.fetch_max(n, Ordering::Relaxed);
}

/// Adds to a 32-bit word, mod 2^32. It has no loop and cannot fail.
#[inline(always)]
pub(crate) fn add32(word: &AtomicU32, n: u32) {
    // ORDERING: Relaxed; the word is the whole state and orders nothing else.
    word.fetch_add(n, Ordering::Relaxed);
}

/// Returns a 32-bit word and sets it to 0. It has no loop and cannot fail.
#[inline(always)]
pub(crate) fn take32(word: &AtomicU32) -> u32 {
    // ORDERING: Relaxed; as above.
    word.swap(0, Ordering::Relaxed)
}

/// The number of attempts of a small step. An attempt fails if an interrupt changed the word, or spuriously (LL/SC).
#[allow(dead_code)] // unused where both widths are masked
const MAX_TRIES: u32 = 16;

macro_rules! small_step {
    ($(#[$doc:meta])* $name:ident, $atomic:ident, $int:ty, $masked:ident) => {
        $(#[$doc])*
        #[cfg(not($masked))]
        #[inline(always)]
        pub(crate) fn $name<A>(word: &$atomic, f: impl Fn($int) -> (A, Option<$int>)) -> Option<A> {
            let mut tries = MAX_TRIES;
            loop {
                // ORDERING: Relaxed; the word is the whole state and orders nothing else.
                let old = word.load(Ordering::Relaxed);
                let (answer, next) = f(old);
                let Some(next) = next else { return Some(answer) };
                // ORDERING: Relaxed on both sides; as above.
                let swapped = word.compare_exchange_weak(old, next, Ordering::Relaxed, Ordering::Relaxed);
                if swapped.is_ok() {
                    return Some(answer);
                }
                tries -= 1;
                if tries == 0 {
                    return None;
                }
            }
        }
    };
}

small_step! {
    /// Maps a 32-bit word to an answer and the word to store. Returns `None` if contended: nothing was stored.
    step32, AtomicU32, u32, tatcell_masked32
}
small_step! {
    /// Maps a 64-bit word to an answer and the word to store; see [`step32`].
    step64, AtomicU64, u64, tatcell_masked64
}

/// Maps a 32-bit word to an answer and the word to store, in one masked section: it is never contended.
#[cfg(tatcell_masked32)]
#[inline(always)]
pub(crate) fn step32<A>(word: &AtomicU32, f: impl Fn(u32) -> (A, Option<u32>)) -> Option<A> {
    Some(word.step(f))
}

/// Maps a 64-bit word to an answer and the word to store, in one masked section: it is never contended.
#[cfg(tatcell_masked64)]
#[inline(always)]
pub(crate) fn step64<A>(word: &AtomicU64, f: impl Fn(u64) -> (A, Option<u64>)) -> Option<A> {
    Some(word.step(f))
}

#[cfg(all(test, not(any(tatcell_loom, tatcell_step))))]
mod tests {
    use super::*;

    /// A rival adds 16 to the word during each of the first `rivals` attempts. None of these additions may be lost, and
    /// a call that reaches the bound must not change the word.
    macro_rules! beside_a_rival {
        ($update:ident, $atomic:ident) => {
            for rivals in 0..=MAX_LOST + 2 {
                let word = $atomic::new(1);
                let mut left = rivals;
                let done = $update(&word, |old| {
                    if left > 0 {
                        left -= 1;
                        // ORDERING: Relaxed; one thread.
                        word.fetch_add(16, Ordering::Relaxed);
                    }
                    (old, Some(old + 1))
                });
                let (found, own) = (1 + 16 * rivals.min(MAX_LOST), u32::from(rivals < MAX_LOST));
                assert_eq!(done, (own == 1).then_some(found.into()), "{rivals} lost");
                // ORDERING: Relaxed; one thread.
                assert_eq!(word.load(Ordering::Relaxed), (found + own).into(), "{rivals} lost");
            }
        };
    }

    #[test]
    fn a_step_whose_word_has_changed_is_worked_out_anew() {
        beside_a_rival!(update32, AtomicU32);
        beside_a_rival!(update64, AtomicU64);
    }

    #[test]
    fn what_is_taken_is_what_was_added() {
        let word = AtomicU32::new(u32::MAX);
        for (n, total) in [(3, 2), (0, 0), (u32::MAX, u32::MAX), (7, 7)] {
            add32(&word, n);
            assert_eq!([take32(&word), take32(&word)], [total, 0]);
        }
    }
}

//! Leases: one core takes units of a shared cell in advance and spends them with plain loads and stores.
//!
//! ```text
//!  time axis of one shared cell, in q-units
//!
//!        now                                                     TAT        now + D
//!  -------+------[##### lease 1 #####]--[## lease 2 ##]--[#######]------------+------->
//!          spent  low             high                    taken   <- available ->
//!
//!  Lease   batch:32 mode:32 | cell | since | life | base | low | high | ahead        64 bytes, one cache line
//!          since, life   ticks: taken at `since`, nothing left from `since + life` on (life 0 = holds nothing)
//!          low, high     the piece that is left, in q-units after `base` = the q-clock at `since`
//! ```
//!
//! A charge of cost c moves the TAT of a cell from `max(TAT, now)` up by `c * T`: the request gets that piece of the
//! time axis. A lease takes a longer piece in one swap and hands it out in order. But a request at time x only gets
//! what lies **at or above x**: what time has passed lapses. That is the whole difference from a plain token cache, and
//! it makes the lease exact.
//!
//! **Bound.** Let any number N of leases, of any batch, and any number of plain callers share a cell with burst B and
//! emission interval T. In every window of Δ ticks they together admit at most
//!
//! ```text
//!     B + floor(Δ / T)   units:   the bound of the cell alone; leases add nothing, whatever they hoard.
//! ```
//!
//! Proof. (1) The pieces that requests get are disjoint: swaps give disjoint pieces of the axis, because each starts at
//! or above the TAT it replaces and ends at the TAT it stores; a lease hands out disjoint parts of its piece, and gives
//! back only a part that no request got and that ends at the TAT. (2) The piece of a request at x lies in [x, x + D]:
//! the lower end by the rule above; the upper end because the lease took it at some y <= x, when the swap stored a TAT
//! of at most y + D. (3) So the pieces of all requests in [s, s + Δ] are disjoint parts of [s, s + Δ + D], and `units *
//! T <= D + Δ`. With D = B * T that is the bound. It holds in the callers' own readings of the clock, on every
//! interleaving; clocks that are σ apart add σ / T, as for the cell. It holds for all windows at once: the admitted
//! requests in order of time, replayed on a fresh cell, all conform (the tests do this).
//!
//! For comparison, a cache that keeps its units until they are spent admits up to `B + Δ / T + N * batch`, reached by
//! cores that hoard. There the units of an idle core are lost to the others; here they lapse after at most D.
//!
//! **Refusals.** If a lease cannot pay a request, it asks the cell for exactly the missing part. So a request is
//! refused only if the cell itself cannot give it. The cell is poorer than without leases by at most what other leases
//! took and did not spend: at most N batches at one instant.
//!
//! The argument fails if the TAT falls below pieces that leases hold: [`Cell::reset`], a refund to the cell,
//! [`Cell::change`] to a smaller debt, or a new cell at the address of the old one, by which a lease knows it. Give the
//! lease back, or make a new one, before the cell is replaced. Each of these admits, from that moment on and on top of
//! the bound, at most what the leases held above the new TAT: at most N batches, once.
//!
//! How much a lease takes in advance doubles at each refill, up to the batch. It is never more than half of what the
//! cell has left (the rest is for others). It halves if part of the last piece lapsed while the cell was more than half
//! empty, so that a core with rare requests does not waste what others need. A lease that takes nothing in advance is
//! the plain check.
//!
//! Progress: a request that the lease can pay is wait-free and touches no shared memory. A refill is one bounded swap
//! loop of the cell; at its bound the answer is `Contended` with nothing charged.
//!
//! Not for [`Cell32`](crate::Cell32) and tables: their words are too narrow to take units in advance. Limits with heal,
//! shadow or penalty are passed to the cell each time.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

use super::cell::Cell;
use crate::algorithms::gcra::{encode, fits, plain, whole_lead, Plain};
use crate::answer::Outcome;
use crate::limit::params::Params;
use crate::limit::Limit;
use crate::time::{now_q, ticks_down};

const MASK: u64 = u64::MAX;

/// Takes units of a shared [`Cell`] in advance for one owner, who spends them without touching the cell.
///
/// Give each core or thread its own lease: 64 bytes, on a cache line of its own (`#[repr(align(64))]` around it) if
/// cores must not slow each other down. It may be used with another cell or another limit at any time: what it held of
/// another cell, or in another resolution, lapses. It cannot be cloned, because that would spend units twice. All-zero
/// memory is a valid lease that holds nothing.
///
/// ```
/// use tatcell::{limit, Cell, Lease, Limit, Outcome};
/// static LIMIT: Limit = limit!(1 per 1_000, burst 100);
/// static CELL: Cell = Cell::new(); // shared by all cores
///
/// let (mut core0, mut core1) = (Lease::with_batch(8), Lease::with_batch(8));
/// let mut passed = 0;
/// while core0.check(&CELL, &LIMIT, 0, 1).passes() {
///     passed += 1;
/// }
/// while core1.check(&CELL, &LIMIT, 0, 1).passes() {
///     passed += 1;
/// }
/// assert_eq!(passed, 100); // the burst, whoever spends it
/// assert_eq!(core1.check(&CELL, &LIMIT, 0, 1), Outcome::NonConforming { retry_after: 1_000 });
/// ```
#[derive(Debug, Default)]
#[repr(C, align(8))]
pub struct Lease {
    /// The most units to take in advance; 0 = a sixteenth of the burst.
    batch: u32,
    /// Resolution, flags and kind of the limit that the piece was taken under.
    mode: u32,
    /// Address of the cell that the piece was taken from.
    cell: u64,
    /// The tick at which it was taken.
    since: u64,
    /// Ticks from then until all of it has lapsed; 0 = nothing is held.
    life: u64,
    /// The q-clock at `since`.
    base: u64,
    /// What is left of the piece: from `low` to `high`, q-units after `base`.
    low: u64,
    high: u64,
    /// Units wanted in advance at the last refill; the next one doubles or halves it.
    ahead: u64,
}

impl Lease {
    /// Makes a lease that takes at most a sixteenth of the burst in advance.
    pub const fn new() -> Lease {
        Lease::with_batch(0)
    }

    /// Makes a lease that takes at most `batch` units in advance (0 = a sixteenth of the burst).
    ///
    /// A larger batch makes refills rarer and lets one core keep more from the others for a while; it never admits
    /// more. While the cell is nearly full, units lapse `batch * T` after they were taken. To ask the cell once in n
    /// requests at a share u of the rate, choose `batch >= n * cost / u`.
    pub const fn with_batch(batch: u32) -> Lease {
        Lease { batch, mode: 0, cell: 0, since: 0, life: 0, base: 0, low: 0, high: 0, ahead: 0 }
    }

    /// Decides one request, from what the lease holds or, for the missing part, from the cell.
    ///
    /// The answer is that of [`Cell::check`]: cost 0 peeks and charges nothing (it conforms while the lease holds
    /// something, otherwise the cell decides), and `retry_after` is exact if nothing else happens to the cell.
    ///
    /// # Concurrency
    /// One owner of the lease, any number of threads on the cell. While the lease can pay, no shared memory is touched;
    /// otherwise one compare-and-swap on the cell, or one load if refused. Cost: O(1), no division.
    #[inline]
    pub fn check(&mut self, cell: &Cell, limit: &Limit, now: u64, cost: u64) -> Outcome {
        match self.spend(cell, limit, now, cost) {
            true => Outcome::Conforming,
            false => self.ask(cell, limit, now, cost),
        }
    }

    /// Pays from what the lease holds, if it can, without touching shared memory.
    #[inline(always)]
    pub(crate) fn spend(&mut self, cell: &Cell, limit: &Limit, now: u64, cost: u64) -> bool {
        let p = &limit.0;
        if now.wrapping_sub(self.since) >= self.life || self.cell != address(cell) || self.mode != mode(p) {
            return false;
        }
        // The piece is younger than its life, so the q-clock has not passed `high`, let alone wrapped. The resolution
        // comes from the mode, which is in a register by now.
        let [shl, shr, ..] = self.mode.to_ne_bytes();
        let age = now_q(now, shl, shr).wrapping_sub(self.base);
        let low = if self.low > age { self.low } else { age };
        match cost.checked_mul(p.t_q).and_then(|charge| low.checked_add(charge)) {
            Some(next) if next <= self.high => {
                self.low = next;
                true
            }
            _ => false,
        }
    }

    /// Decides a request that [`spend`](Self::spend) could not pay.
    #[inline(always)]
    pub(crate) fn ask(&mut self, cell: &Cell, limit: &Limit, now: u64, cost: u64) -> Outcome {
        let p = &limit.0;
        if self.life == 0 {
            // Nothing is held. A refusal changes nothing, so it is decided here, without a swap. A cell too poor to
            // lend anything in advance is checked as if there were no lease.
            let lead = whole_lead(cell.word(), p.now_q(now), MASK, p.window_q);
            match plain(p, lead, cost) {
                Plain::Wait(q) => return Outcome::NonConforming { retry_after: p.ticks_up(q, now) },
                Plain::Store(next) if p.burst_q.wrapping_sub(next) >> 1 < next.wrapping_sub(lead) => {
                    return cell.check(limit, now, cost);
                }
                _ => {}
            }
        }
        self.refill(cell, limit, now, cost)
    }

    /// Asks the cell for what the lease cannot pay, and for more in advance.
    #[cold]
    #[inline(never)]
    fn refill(&mut self, cell: &Cell, limit: &Limit, now: u64, cost: u64) -> Outcome {
        let p = &limit.0;
        if p.flags != 0 || p.t_q == 0 || cost == 0 || cost > p.burst {
            // Options, no limit at all, a peek, or a cost that can never conform: the cell decides alone.
            return cell.check(limit, now, cost);
        }
        let mine = self.cell == address(cell) && self.mode == mode(p);
        let now_q = p.now_q(now);
        let low = self.low_at(cell, p, now);
        let held = self.high.saturating_sub(low);
        // cost <= burst, so this is at most burst_q < 2^62.
        let charge = cost.wrapping_mul(p.t_q);
        if charge <= held {
            // Only after the clock stepped back; `spend` handles the common case.
            self.low = low.wrapping_add(charge);
            return Outcome::Conforming;
        }
        let need = charge.wrapping_sub(held);
        let lapsed = mine && self.life != 0 && low > self.low;
        let most = self.most(p);
        let last = match self.ahead {
            _ if !mine => 0,
            ahead if ahead < most => ahead,
            _ => most,
        };
        let grown = last.saturating_mul(2).saturating_add(cost);
        let grown = if grown < most { grown } else { most };

        let taken = cell.update(|word| {
            let lead = whole_lead(word, now_q, MASK, p.window_q);
            let first = match fits(lead, need, p.burst_q) {
                Ok(first) => first,
                Err(over) => return (Err(over), None),
            };
            let next = if lapsed && first > p.burst_q >> 1 { last >> 1 } else { grown };
            // Whole units, so that no lease is left with a part of one; at most 64 rounds. next <= burst: no overflow.
            let half = p.burst_q.wrapping_sub(first) >> 1;
            let mut ahead = next;
            while ahead.wrapping_mul(p.t_q) > half {
                ahead >>= 1;
            }
            // What would not pay one more such request is left to the others.
            let ahead = if ahead < cost { 0 } else { ahead.wrapping_mul(p.t_q) };
            let high = first.wrapping_add(ahead);
            (Ok((first, high, next)), Some(encode(now_q, high, MASK)))
        });
        match taken {
            Some(Ok((low, high, next))) => {
                let life = if low == high { 0 } else { p.ticks_up(high, now) };
                let (cell, mode) = (address(cell), mode(p));
                *self = Lease {
                    batch: self.batch,
                    mode,
                    cell,
                    since: now,
                    life,
                    base: now_q,
                    low,
                    high,
                    ahead: next,
                };
                Outcome::Conforming
            }
            Some(Err(over)) => {
                if held == 0 {
                    self.life = 0;
                    self.ahead = if lapsed { last >> 1 } else { last };
                }
                // The missing part shrinks with time until the held piece starts to lapse, then stands still, and
                // shrinks again when the whole piece has lapsed.
                let until_lapse = self.base.wrapping_add(low).wrapping_sub(now_q);
                let wait = if over <= until_lapse { over } else { over.wrapping_add(held) };
                Outcome::NonConforming { retry_after: p.ticks_up(wait, now) }
            }
            None => Outcome::Contended,
        }
    }

    /// Gives what is left back to the cell, before a core goes idle. Afterwards the lease holds nothing.
    ///
    /// Returns the ticks of debt removed, rounded down. Only a piece after which nobody was charged can be given back,
    /// because a cell that falls below another lease's piece would admit it twice. Otherwise returns 0, and what was
    /// held lapses with time, as in a lease that is never used again.
    ///
    /// # Concurrency
    /// Like [`check`](Self::check). Cost: one compare-and-swap or one load.
    pub fn give_back(&mut self, cell: &Cell, limit: &Limit, now: u64) -> u64 {
        let p = &limit.0;
        let now_q = p.now_q(now);
        let low = self.low_at(cell, p, now);
        let held = self.high.saturating_sub(low);
        let (base, high) = (self.base, self.high);
        self.life = 0;
        if held == 0 {
            return 0;
        }
        let top = encode(base.wrapping_add(high), 0, MASK);
        // At least 0, because `low_at` is never below the clock.
        let lead = base.wrapping_add(low).wrapping_sub(now_q);
        let rest = encode(now_q, lead, MASK);
        // `None` only after 64 spurious failures: then the piece lapses.
        let given = cell.update(|word| if word == top { (held, Some(rest)) } else { (0, None) }).unwrap_or(0);
        ticks_down(given, p.shl, p.shr)
    }

    /// Returns how many units the lease could spend at `now` without asking the cell. Divides; not for the hot path.
    pub fn held(&self, cell: &Cell, limit: &Limit, now: u64) -> u64 {
        let p = &limit.0;
        let held = self.high.saturating_sub(self.low_at(cell, p, now));
        // t_q is 0 only for an unlimited limit, of which nothing is taken in advance.
        held.checked_div(p.t_q).unwrap_or(0)
    }

    /// Returns the low end of what is left at `now`, in q-units after `base`; `high` if nothing is.
    fn low_at(&self, cell: &Cell, p: &Params, now: u64) -> u64 {
        if self.life == 0 || self.cell != address(cell) || self.mode != mode(p) {
            return self.high;
        }
        let age = now.wrapping_sub(self.since);
        let low = if age < self.life {
            let age_q = p.now_q(now).wrapping_sub(self.base);
            if self.low > age_q {
                self.low
            } else {
                age_q
            }
        } else {
            // Too old, or the clock stepped back. After a step within the skew the piece keeps its place, as a TAT
            // does. A longer step forgives the debt of the cell, and so what was taken from it goes too.
            let skew = p.window_q.saturating_sub(self.high);
            let back = ticks_down(skew, p.shl, p.shr);
            if age.wrapping_neg() <= back {
                self.low
            } else {
                self.high
            }
        };
        if low < self.high {
            low
        } else {
            self.high
        }
    }

    /// Returns the batch in units, at most the burst.
    fn most(&self, p: &Params) -> u64 {
        let batch = self.batch as u64;
        match batch {
            0 => p.burst >> 4,
            _ if batch < p.burst => batch,
            _ => p.burst,
        }
    }
}

/// Identifies the cell: a lease never spends one cell's units on another.
#[inline(always)]
fn address(cell: &Cell) -> u64 {
    core::ptr::from_ref(cell).addr() as u64
}

/// Returns what must be equal for a piece of the axis to mean the same: resolution and flags (none). Never 0, because
/// `bits` is not. These four bytes are adjacent in Params, so they are read and compared at once.
#[inline(always)]
fn mode(p: &Params) -> u32 {
    u32::from_ne_bytes([p.shl, p.shr, p.flags, p.bits])
}

const _: () = assert!(core::mem::size_of::<Lease>() == 64);

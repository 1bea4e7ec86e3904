//! `tatcell_decision_t`, and how answers leave the library.

use super::codes::{verdict_code, TATCELL_CONTENDED, TATCELL_NON_CONFORMING, TATCELL_PASS};
use super::pointers::contract::{Grows, Out, Plain, Report};
use crate::answer::{Decision, Outcome, Permit, Tracking};

/// tracking: the key has its own slot. The answer is exact.
pub const TATCELL_TRACKED: u32 = 0;
/// tracking: the set was full and the table's policy decided. Nothing is stored.
pub const TATCELL_UNTRACKED: u32 = 1;
/// tracking: the set was full. The key took over the slot with the smallest debt, or was measured against that
/// debt.
pub const TATCELL_INHERITED: u32 = 2;
/// tracking: the set was full. The key took over a slot, and its debt was forgiven.
pub const TATCELL_FORGIVEN: u32 = 3;

const _: () = assert!(TATCELL_TRACKED == Tracking::Tracked as u32);
const _: () = assert!(TATCELL_UNTRACKED == Tracking::Untracked as u32);
const _: () = assert!(TATCELL_INHERITED == Tracking::Inherited as u32);
const _: () = assert!(TATCELL_FORGIVEN == Tracking::Forgiven as u32);

/// decision flags: the request passes above the soft threshold.
pub const TATCELL_FLAG_SOFT: u32 = 1;
/// decision flags: the request passes, or a reservation leaves without a wait, only because the limit is in shadow
/// mode. It is not charged, unless it is a reservation that would have waited (see TATCELL_LIMIT_SHADOW).
pub const TATCELL_FLAG_SHADOW: u32 = 2;
/// decision flags: the request passes inside the elastic room of the call.
pub const TATCELL_FLAG_ELASTIC: u32 = 4;
/// decision flags: the request is refused because its key is banned until now + retry_after. Only a chain with a
/// link of overrides, and a tatcell_ladder_burst_t with overrides, set it.
pub const TATCELL_FLAG_BANNED: u32 = 8;
/// decision flags: the request passes because its key is exempt. Nothing is charged. Only a chain with a link of
/// overrides, and a tatcell_ladder_burst_t with overrides, set it.
pub const TATCELL_FLAG_EXEMPT: u32 = 16;

const _: () = assert!(TATCELL_FLAG_SOFT == Decision::SOFT);
const _: () = assert!(TATCELL_FLAG_SHADOW == Decision::SHADOW);
const _: () = assert!(TATCELL_FLAG_ELASTIC == Decision::ELASTIC);
const _: () = assert!(TATCELL_FLAG_BANNED == Decision::BANNED);
const _: () = assert!(TATCELL_FLAG_EXEMPT == Decision::EXEMPT);

/// Bytes of a tatcell_permit_t. This size never changes.
pub const TATCELL_PERMIT_SIZE: usize = 64;
const _: () = assert!(size_of::<Permit>() == TATCELL_PERMIT_SIZE);
// SAFETY: numbers without padding (asserted).
unsafe impl Plain for Permit {}
/// Bytes of a tatcell_decision_t in its first release: the least size that a library accepts.
pub const TATCELL_DECISION_MIN: usize = 144;

/// The full answer to one request: the verdict, the remaining units, when to retry, and the permit for a refund.
///
/// Times are ticks after now, except departure, which is a reading of the clock. Amounts are units. Every field is
/// valid for every verdict except TATCELL_CONTENDED. A contended call had no consistent reading, so all its amounts
/// except burst are 0.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct tatcell_decision_t {
    /// sizeof(tatcell_decision_t); never written.
    pub size: u32,
    /// 0, TATCELL_NON_CONFORMING, TATCELL_NEVER or TATCELL_CONTENDED.
    pub verdict: i32,
    /// Any of the TATCELL_FLAG_ flags.
    pub flags: u32,
    /// How the table accounted for the request: a constant of TATCELL_TRACKED to TATCELL_FORGIVEN.
    pub tracking: u32,
    /// If one call checks several limits: the index of the limit that decided. 0 otherwise.
    pub policy: u32,
    /// Always 0.
    pub reserved: u32,
    /// Units that the request asked for.
    pub cost: u64,
    /// The burst: the most units that conform at one instant after idle.
    pub burst: u64,
    /// Units that would conform right after this decision, rounded down.
    pub remaining: u64,
    /// Ticks until the same cost conforms: 0 if it conforms, UINT64_MAX if it never does. With TATCELL_FLAG_SHADOW,
    /// the value that a refusal would have reported, or the wait that a reservation was spared.
    pub retry_after: u64,
    /// Ticks until remaining grows by one; 0 if the burst is full.
    pub next_unit: u64,
    /// Ticks until the whole burst is available again, rounded up.
    pub reset_after: u64,
    /// Tick at which the request may leave: now, or later for a reservation; 0 if it does not pass.
    pub departure: u64,
    /// The proof of what was charged, for a refund.
    pub permit: Permit,
    /// Whole units that the call charged, or that a refund gave back, rounded down; 0 if none. A charge may take less
    /// than cost. The penalty of a refused request does not count. Since 0.4.
    pub units: u64,
    /// 1 if a peek of cost 0 found a debt above the burst. It asked for nothing, so it refuses nobody, and the HTTP
    /// fields have no Retry-After: right for a status page. Otherwise 0. Since 0.4.
    pub in_debt: u32,
    /// Always 0. Since 0.4.
    pub reserved2: u32,
}

// SAFETY: repr(C), its size first, integers without padding (asserted).
unsafe impl Grows for tatcell_decision_t {
    const FIRST: usize = TATCELL_DECISION_MIN;
}
const _: () = assert!(size_of::<tatcell_decision_t>() == 24 + 7 * 8 + 64 + 16);

impl tatcell_decision_t {
    #[inline(always)]
    pub(super) fn of(d: &Decision) -> tatcell_decision_t {
        tatcell_decision_t {
            size: 0,
            verdict: verdict_code(d.verdict),
            flags: d.flags,
            tracking: d.tracking as u32,
            policy: d.policy,
            reserved: 0,
            cost: d.cost,
            burst: d.burst,
            remaining: d.remaining,
            retry_after: d.retry_after,
            next_unit: d.next_unit,
            reset_after: d.reset_after,
            departure: d.departure,
            permit: d.permit,
            units: d.units,
            in_debt: d.in_debt.into(),
            reserved2: 0,
        }
    }

    /// Sets each field but the size, one after the other: no copy is made before.
    #[inline(always)]
    fn set(&mut self, d: &Decision) {
        self.verdict = verdict_code(d.verdict);
        (self.flags, self.tracking) = (d.flags, d.tracking as u32);
        (self.policy, self.reserved) = (d.policy, 0);
        (self.cost, self.burst) = (d.cost, d.burst);
        (self.remaining, self.retry_after) = (d.remaining, d.retry_after);
        (self.next_unit, self.reset_after) = (d.next_unit, d.reset_after);
        (self.departure, self.permit) = (d.departure, d.permit);
        (self.units, self.in_debt, self.reserved2) = (d.units, d.in_debt.into(), 0);
    }
}

/// Fills a decision in and returns the code of its verdict. Out of line, because a dozen functions end with it.
#[inline(never)]
pub(super) fn fill(made: &Decision, out: Report<'_, tatcell_decision_t>) -> i32 {
    match out.whole() {
        Ok(to) => to.set(made),
        Err(out) => out.put(&tatcell_decision_t::of(made)),
    }
    verdict_code(made.verdict)
}

/// Does the same as [`fill`], if the caller wants the decision.
pub(super) fn fill_if(made: &Decision, out: Option<Report<'_, tatcell_decision_t>>) -> i32 {
    match out {
        Some(out) => fill(made, out),
        None => verdict_code(made.verdict),
    }
}

/// Writes the retry time and returns the code of an outcome.
///
/// Each match tests one condition: four cases at once would be an indirect jump in every function that ends here.
#[inline(always)]
pub(super) fn finish(outcome: Outcome, retry_after: Option<Out<'_, u64>>) -> i32 {
    let (code, ticks) = match outcome {
        Outcome::Conforming => (TATCELL_PASS, 0),
        Outcome::NonConforming { retry_after } => (TATCELL_NON_CONFORMING, retry_after),
        other => rare(other),
    };
    if let Some(out) = retry_after {
        out.put(ticks);
    }
    code
}

#[cold]
#[inline(never)] // otherwise it becomes part of every function that ends with `finish`
fn rare(outcome: Outcome) -> (i32, u64) {
    (verdict_code(outcome.verdict()), outcome.retry_after())
}

/// Writes what a refund gave back; `None` means contended.
pub(super) fn finish_refund(back: Option<u64>, credited: Option<Out<'_, u64>>) -> i32 {
    if let Some(out) = credited {
        out.put(back.unwrap_or(0));
    }
    match back {
        Some(_) => TATCELL_PASS,
        None => TATCELL_CONTENDED,
    }
}

/// Ends a function that either did its work or was contended.
pub(super) fn finish_done(done: bool) -> i32 {
    if done {
        TATCELL_PASS
    } else {
        TATCELL_CONTENDED
    }
}

/// Returns sizeof(tatcell_permit_t) of the linked library, to compare with TATCELL_PERMIT_SIZE. Since 0.2.
#[no_mangle]
pub extern "C" fn tatcell_permit_size() -> usize {
    TATCELL_PERMIT_SIZE
}

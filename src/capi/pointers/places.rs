//! Where the objects of a call lie, and whether two of them overlap. Addresses only: nothing is dereferenced.

use crate::capi::codes::TATCELL_ERR_OVERLAP;

/// Where something lies. Without bytes it overlaps nothing.
#[derive(Clone, Copy)]
pub(in crate::capi) struct Span {
    from: usize,
    bytes: usize,
}

impl Span {
    pub(in crate::capi) const NOTHING: Span = Span { from: 0, bytes: 0 };

    #[inline(always)]
    pub(in crate::capi) fn of<T>(p: *const T, count: usize) -> Span {
        Span::bytes(p, count.saturating_mul(size_of::<T>()))
    }

    #[inline(always)]
    pub(in crate::capi) fn bytes<T>(p: *const T, bytes: usize) -> Span {
        Span { from: p.addr(), bytes: if p.is_null() { 0 } else { bytes } }
    }

    /// Returns the smallest span around both. Without bytes the other adds nothing.
    #[inline(always)]
    fn and(self, other: Span) -> Span {
        if other.bytes == 0 {
            return self;
        }
        let from = self.from.min(other.from);
        let end = self.from.wrapping_add(self.bytes).max(other.from.wrapping_add(other.bytes));
        Span { from, bytes: end.wrapping_sub(from) }
    }

    /// Refuses a span that overlaps this one.
    #[inline(always)]
    pub(in crate::capi) fn apart(self, other: Span) -> Result<(), i32> {
        let apart = other.from.wrapping_sub(self.from) >= self.bytes
            && self.from.wrapping_sub(other.from) >= other.bytes;
        if apart || self.bytes == 0 || other.bytes == 0 {
            Ok(())
        } else {
            Err(TATCELL_ERR_OVERLAP)
        }
    }

    /// Does the same as [`apart`](Self::apart) for several spans.
    pub(in crate::capi) fn apart_from(self, others: &[Span]) -> Result<(), i32> {
        others.iter().try_for_each(|other| self.apart(*other))
    }
}

/// What a call writes, and a span around all of it: most of what a call reads lies outside that span.
#[derive(Clone, Copy)]
pub(in crate::capi) struct Written {
    hull: Span,
    each: [Span; 4],
}

impl Written {
    #[inline(always)]
    pub(in crate::capi) fn new(first: Span, each: [Span; 4]) -> Written {
        let hull = each.iter().fold(first, |hull, span| hull.and(*span));
        Written { hull, each }
    }

    /// Refuses a span that overlaps any of it.
    #[inline(always)]
    pub(in crate::capi) fn apart(&self, other: Span) -> Result<(), i32> {
        if self.hull.apart(other).is_ok() {
            return Ok(());
        }
        self.apart_one_by_one(other)
    }

    #[cold]
    #[inline(never)]
    fn apart_one_by_one(self, other: Span) -> Result<(), i32> {
        other.apart_from(&self.each)
    }
}

/// Refuses two objects that overlap. NULL overlaps nothing.
#[inline(always)]
pub(in crate::capi) fn apart<T, U>(a: *const T, b: *const U) -> Result<(), i32> {
    // They overlap if b - a is below the first's size or, mod 2^n, less than the second's size below 0: one comparison.
    let far = b.addr().wrapping_sub(a.addr()).wrapping_add(size_of::<U>()).wrapping_sub(1);
    if far >= size_of::<T>() + size_of::<U>() - 1 || a.is_null() || b.is_null() {
        Ok(())
    } else {
        Err(TATCELL_ERR_OVERLAP)
    }
}

//! The arguments of a check, tested together: nearly every call passes one test instead of one each.
//!
//! If anything is wrong there is no answer, and the caller tests each argument by itself to find out what.

use core::ptr::NonNull;

use super::contract::{Contract, Marked, Out, Plain};
use super::places::apart;

/// An object with its mark, another object, and a place for a result that may not be wanted.
type Three<'a, T, U, V> = (&'a T, U, Option<Out<'a, V>>);

/// An object that only this call uses, another object, one with its mark, and such a place.
type Four<'a, T, U, V, W> = (&'a mut T, &'a U, &'a V, Option<Out<'a, W>>);

impl<'a> Contract<'a> {
    /// Does the same as [`marked`](Self::marked), [`input`](Self::input) and [`result_if`](Self::result_if) for three
    /// pointers, with one test of their alignment. Returns `None` if one of them is refused.
    #[inline(always)]
    pub(in crate::capi) fn together<T: Marked, U: Plain, V>(
        self,
        p: *const T,
        q: *const U,
        out: *mut V,
    ) -> Option<Three<'a, T, &'a U, V>> {
        self.together_by((0, T::MARK), p, q, out)
    }

    /// Does the same as [`together`](Self::together) for an object that has this mark as its word `at`.
    #[inline(always)]
    pub(in crate::capi) fn together_by<T: Marked, U: Plain, V>(
        self,
        mark: (usize, u64),
        p: *const T,
        q: *const U,
        out: *mut V,
    ) -> Option<Three<'a, T, &'a U, V>> {
        let (p, out) = self.all(mark, p, q, out, 0)?;
        // SAFETY: not NULL, aligned, and any bytes are a U; the contract: valid, quiet.
        Some((p, unsafe { &*q }, out))
    }

    /// Does the same as [`together`](Self::together), but the second object is [`owned`](Self::owned).
    #[inline(always)]
    pub(in crate::capi) fn together_owned<T: Marked, U: Plain, V>(
        self,
        p: *const T,
        q: *mut U,
        out: *mut V,
    ) -> Option<Three<'a, T, &'a mut U, V>> {
        let (p, out) = self.all((0, T::MARK), p, q.cast_const(), out, 0)?;
        // SAFETY: not NULL, aligned, and any bytes are a U; the contract: valid, quiet, alone.
        Some((p, unsafe { &mut *q }, out))
    }

    /// Does the same as [`owned`](Self::owned), [`input`](Self::input), [`marked`](Self::marked) and
    /// [`result_if`](Self::result_if) for four pointers, with one test of their alignment. The first must overlap
    /// neither of the next two. Returns `None` if one of them is refused.
    #[inline(always)]
    pub(in crate::capi) fn together_apart<T: Plain, U: Plain, V: Marked, W>(
        self,
        own: *mut T,
        p: *const U,
        q: *const V,
        out: *mut W,
    ) -> Option<Four<'a, T, U, V, W>> {
        const { assert!(align_of::<T>() <= 8) };
        let (q, out) = self.all((0, V::MARK), q, p, out, own.addr())?;
        if own.is_null() || apart(own, p).is_err() || apart(own, q).is_err() {
            return None;
        }
        // SAFETY: not NULL, aligned, and any bytes are a T and a U; the contract: valid, quiet, the first alone.
        let (own, p) = unsafe { (&mut *own, &*p) };
        Some((own, p, q, out))
    }

    /// Returns the first and the last of three pointers if all are good and the address `more` is aligned too. Word
    /// `at` of the first is `mark`, which only an initialised object has there.
    #[inline(always)]
    fn all<T: Marked, U, V>(
        self,
        (at, mark): (usize, u64),
        p: *const T,
        q: *const U,
        out: *mut V,
        more: usize,
    ) -> Option<(&'a T, Option<Out<'a, V>>)> {
        const { assert!(align_of::<T>() <= 8 && align_of::<U>() <= 8 && align_of::<V>() <= 8) };
        if (p.addr() | q.addr() | out.addr() | more) % 8 != 0 || p.is_null() || q.is_null() {
            return None;
        }
        // SAFETY: not NULL, aligned, `at` lies in a T, and any bytes are a number; the contract: valid, quiet.
        if unsafe { p.cast::<u64>().add(at).read() } != mark {
            return None;
        }
        let out = NonNull::new(out).map(|to| Out { to, c: self });
        // SAFETY: not NULL, aligned, and the mark says that it is a T; the contract: valid, quiet.
        Some((unsafe { &*p }, out))
    }
}

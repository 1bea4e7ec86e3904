//! What stays with an object after the call: memory, and the objects that it names.

use core::ffi::c_void;

use super::contract::{possible, Contract, Plain};
use crate::table::Line;

// SAFETY: atomics of numbers.
unsafe impl Plain for Line {}

impl Contract<'_> {
    /// Returns memory that stays with a handle, its only user.
    pub(in crate::capi) fn kept<T: Plain + 'static>(
        self,
        p: *mut T,
        bytes: usize,
    ) -> Result<&'static mut [T], i32> {
        possible(p, bytes)?;
        // SAFETY: not NULL, aligned, of a possible length, and any bytes are a T; the contract: valid as long as the
        // handle, whose owner is the only one to have this memory.
        Ok(unsafe { core::slice::from_raw_parts_mut(p, bytes / size_of::<T>()) })
    }

    /// Returns the contract of what an object keeps: it is valid as long as that object, and quiet.
    #[inline(always)]
    pub(in crate::capi) fn staying(self) -> Contract<'static> {
        // SAFETY: the contract, which says so of everything that an object keeps a pointer to.
        unsafe { Contract::of(&()) }
    }

    /// Returns table memory, which stays with the handle: the only one to have these lines.
    pub(in crate::capi) fn lines(self, p: *mut c_void, bytes: usize) -> Result<&'static [Line], i32> {
        let p = p.cast::<Line>();
        possible(p, bytes)?;
        self.staying().slice(p, bytes / size_of::<Line>())
    }
}

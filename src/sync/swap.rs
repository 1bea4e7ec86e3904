//! A swap of one word that is worked out first and made later, for requests that change several words or none.

use super::access::{Access, Shared};
use super::AtomicU64;

/// A word that was seen in a slot, and the word that a charge makes of it.
#[derive(Clone, Copy)]
pub(crate) struct Swap<'a> {
    pub slot: &'a AtomicU64,
    pub word: u64,
    pub next: u64,
}

/// What a request finds when it looks at its word.
pub(crate) enum Look<'a> {
    /// The request conforms.
    Fits(Swap<'a>),
    /// The key has no word, and the request conforms to a full burst.
    Absent,
    /// There is nothing to charge.
    Nothing,
    /// The request does not conform: the word lies this many q-units ahead.
    Refuses(u64),
    /// One inequality does not decide.
    Other,
}

impl Swap<'_> {
    /// Stores the next word, unless the slot holds another word than the one that was seen.
    ///
    /// It compares in exclusive tables, too: one request may have two keys that share a slot.
    #[inline(always)]
    pub fn store(&self) -> bool {
        Shared::replace(self.slot, self.word, self.next).is_ok()
    }

    /// Stores the word that was seen, unless the slot holds another word than the next one.
    pub fn take_back(&self) -> bool {
        Shared::replace(self.slot, self.next, self.word).is_ok()
    }
}

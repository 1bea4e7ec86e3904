//! The results of a batch of calls, and why a call has none.

use crate::error::OpenError;
use crate::script::Fault;

/// Says why a call has no answer that decides.
#[derive(Clone, Debug)]
pub(crate) struct Miss {
    pub fault: Fault,
    /// Since when the key's server is away, nanoseconds; `None` if it is there.
    pub since: Option<u64>,
    /// What the server or the system said.
    pub said: String,
}

/// The result of each call of a batch, and how many calls were sent again: with their text, or to another server.
pub(crate) struct Answers<T> {
    pub each: Vec<Result<T, Miss>>,
    pub with_text: u64,
    pub redirected: u64,
}

impl Miss {
    pub(crate) fn new(fault: Fault, said: &str) -> Miss {
        Miss { fault, since: None, said: said.to_owned() }
    }
}

impl From<Miss> for OpenError {
    fn from(miss: Miss) -> OpenError {
        OpenError::of(miss.fault, miss.said)
    }
}

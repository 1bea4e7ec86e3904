//! Errors, with a code by which JavaScript chooses what to throw: `lib/native.js`.

use tatcell::host::HostError;

/// The error that a call throws. The status is RANGE, CLOSED, ENOENT, or an errno in digits.
pub(crate) type Failed = napi::Error<String>;

/// Some argument must change.
pub(crate) fn wrong(text: impl ToString) -> Failed {
    napi::Error::new("RANGE".to_owned(), text)
}

/// The object is no more.
pub(crate) fn closed() -> Failed {
    napi::Error::new("CLOSED".to_owned(), "the limiter is closed: make a new one")
}

/// The system or its memory is in the way.
pub(crate) fn host(error: HostError) -> Failed {
    let code = match error {
        HostError::System(errno) => errno.to_string(),
        HostError::Absent => "ENOENT".to_owned(),
        _ => "RANGE".to_owned(),
    };
    napi::Error::new(code, error)
}

/// The same, with what it is about in front.
pub(crate) fn about(what: &str, error: HostError) -> Failed {
    let Failed { status, reason, .. } = host(error);
    napi::Error::new(status, format!("{what}: {reason}"))
}

//! A macro for states that the code before it rules out.

/// Marks a state that the code before it rules out. Builds with debug assertions (tests, fuzzers) panic here. All other
/// builds return `$answer`, because the library never panics.
///
/// The answer must be safe for the caller: an empty slice, an uncharged request, the key's own line.
macro_rules! impossible {
    ($answer:expr) => {
        if cfg!(debug_assertions) {
            panic!("a state that cannot be: {}", stringify!($answer))
        } else {
            $answer
        }
    };
}

#[cfg(all(test, debug_assertions))]
mod tests {
    #[test]
    #[should_panic(expected = "a state that cannot be: 0")]
    fn a_test_sees_an_impossible_state() {
        let _: usize = [1usize; 0].first().copied().unwrap_or_else(|| impossible!(0));
    }
}

//! A macro for states that the code before it rules out.

/// Stands where the code before rules out a state. Builds with debug assertions (tests, fuzzers) panic there. All other
/// builds go on with the stated answer, because the library never panics.
///
/// The answer refuses or does nothing. It never stands for another key, slot or request:
///
/// - `None` or an error: the call is refused or contended, and nobody is charged;
/// - an empty slice: nothing is read, written or decided;
/// - 0: an empty word, no debt, nothing counted;
/// - a cost above every burst, a length above every key's: the request is refused;
/// - the bytes or lines of the caller's own key.
macro_rules! impossible {
    ($answer:expr) => {
        if $crate::impossible::panics() {
            panic!("a state that cannot be: {}", stringify!($answer))
        } else {
            $answer
        }
    };
}

/// Does an impossible state panic here?
#[inline(always)]
pub(crate) fn panics() -> bool {
    #[cfg(test)]
    if tests::ANSWERED.get() {
        return false;
    }
    cfg!(debug_assertions)
}

#[cfg(test)]
pub(crate) mod tests {
    use core::cell::Cell;

    std::thread_local! {
        pub(super) static ANSWERED: Cell<bool> = const { Cell::new(false) };
    }

    /// Calls `f` as a build without debug assertions does: with the answers of impossible states.
    pub(crate) fn answered<R>(f: impl FnOnce() -> R) -> R {
        ANSWERED.set(true);
        let made = f();
        ANSWERED.set(false);
        made
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "a state that cannot be: 0")]
    fn a_test_sees_an_impossible_state() {
        let first = || [1usize; 0].first().copied().unwrap_or_else(|| impossible!(0));
        assert_eq!(answered(first), 0);
        first();
    }
}

//! Values with `*`, which stands for any number of any characters.

/// A pattern, split at its stars.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern(Vec<Box<str>>);

impl Pattern {
    /// Returns `None` if the text has no star.
    pub(crate) fn new(text: &str) -> Option<Pattern> {
        text.contains('*').then(|| Pattern(text.split('*').map(Box::from).collect()))
    }

    /// Returns its text.
    pub(crate) fn text(&self) -> String {
        self.0.join("*")
    }

    /// Returns whether the pattern matches the whole value. The parts are found from the left, each at its first place.
    pub(crate) fn matches(&self, value: &str) -> bool {
        let [first, middle @ .., last] = &self.0[..] else { return false };
        let Some(rest) = value.strip_prefix(&**first) else { return false };
        let Some(mut rest) = rest.strip_suffix(&**last) else { return false };
        middle.iter().all(|part| match rest.split_once(&**part) {
            Some((_, after)) => {
                rest = after;
                true
            }
            None => false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_anything_between_the_parts() {
        let matches = |pattern: &str, value| Pattern::new(pattern).expect("a star").matches(value);
        for (pattern, value) in [
            ("value*", "value"),
            ("value*", "value1"),
            ("*", ""),
            ("*", "anything"),
            ("/api/*/action", "/api/123/action"),
            ("/api/*/action", "/api//action"),
            ("/api/*/r/*/action", "/api/v1/r/12/action"),
            ("*b*", "abc"),
            ("a**c", "abc"),
            ("a*a", "aa"),
            ("a*a*a", "aaa"),
            ("ab*bc*cd", "abXbcbcYcd"),
        ] {
            assert!(matches(pattern, value), "{pattern} {value}");
        }
        for (pattern, value) in [
            ("value*", "valu"),
            ("/api/*/action", "/api/123/other"),
            ("/api/*/action", "/api/action"),
            ("a*a", "a"),
            ("a*a*a", "aa"),
            ("ab*bc", "abc"),
            ("a*b*c*d", "acbd"),
        ] {
            assert!(!matches(pattern, value), "{pattern} {value}");
        }
        assert_eq!(Pattern::new("plain"), None);
    }
}

//! The files that an `include` of nginx names.

use std::path::{Path, PathBuf};

/// The files that a pattern with `*`, `?` and `[...]` names, sorted; a path without these as it is.
pub fn matching(pattern: &Path) -> Vec<PathBuf> {
    let is_pattern = |text: &str| text.contains(['*', '?', '[']);
    let mut found = vec![PathBuf::new()];
    for part in pattern.components() {
        let text = part.as_os_str().to_string_lossy();
        if !is_pattern(&text) {
            found.iter_mut().for_each(|path| path.push(part));
            continue;
        }
        let mut next = Vec::new();
        for folder in &found {
            let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
            let names =
                names.filter(|name| !name.starts_with('.') && is_like(name.as_bytes(), text.as_bytes()));
            next.extend(names.map(|name| folder.join(name)));
        }
        next.sort();
        found = next;
    }
    found.retain(|path| path.is_file() || !is_pattern(&pattern.to_string_lossy()));
    found
}

/// The length of a class such as `[a-z]` or `[!0-9]` at the start of a pattern, and whether the byte is in it.
fn class(pattern: &[u8], byte: u8) -> Option<(usize, bool)> {
    let is_not = matches!(pattern.get(1), Some(b'!' | b'^'));
    let start = 1 + usize::from(is_not);
    // A bracket at the start of the class is a part of it.
    let end = start + 1 + memchr::memchr(b']', pattern.get(start + 1..)?)?;
    let (mut rest, mut fits) = (&pattern[start..end], false);
    while let Some((first, after)) = rest.split_first() {
        (rest, fits) = match after {
            [b'-', last, after @ ..] => (after, fits || (*first..=*last).contains(&byte)),
            after => (after, fits || *first == byte),
        };
    }
    Some((end + 1, fits != is_not))
}

/// Whether a name has the form of a pattern. The last `*` takes in one more byte whenever the rest does not match.
fn is_like(name: &[u8], pattern: &[u8]) -> bool {
    let (mut n, mut p, mut star) = (0, 0, None);
    while n < name.len() {
        let class = pattern.get(p).filter(|byte| **byte == b'[').and_then(|_| class(&pattern[p..], name[n]));
        match (pattern.get(p), class) {
            (Some(b'*'), _) => {
                star = Some((p, n));
                p += 1;
            }
            (_, Some((length, true))) => (n, p) = (n + 1, p + length),
            (Some(byte), None) if *byte == b'?' || *byte == name[n] => (n, p) = (n + 1, p + 1),
            _ => {
                let Some((at, taken)) = star else { return false };
                (star, n, p) = (Some((at, taken + 1)), taken + 1, at + 1);
            }
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_names() {
        for (name, pattern, want) in [
            ("a.conf", "*.conf", true),
            ("a.conf.bak", "*.conf", false),
            ("default", "*", true),
            ("site1", "site?", true),
            ("site", "site?", false),
            ("aXbYb", "a*b", true),
            ("aXbYc", "a*b", false),
            ("a7.conf", "a[0-9].conf", true),
            ("ab.conf", "a[0-9].conf", false),
            ("ab.conf", "*[!0-9].conf", true),
            ("a7.conf", "*[!0-9].conf", false),
            ("a.conf", "[abc].conf", true),
            ("[abc].conf", "[abc].conf", false),
            ("x]", "x[]a]", true),
            ("x[", "x[", true),
        ] {
            assert_eq!(is_like(name.as_bytes(), pattern.as_bytes()), want, "{name} {pattern}");
        }
    }
}

//! Reads configurations of nginx into directives and blocks, with the places of all words; follows `include`.
//!
//! Words, quotes, escapes and comments are those of nginx. All files together have at most [`MOST`] bytes. Blocks are
//! at most [`DEEPEST`] deep, and so are files that include each other.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::failure::{Failure, Problem};

/// Most bytes of all files together.
pub const MOST: usize = 64 << 20;
/// Most blocks in each other, and most files that include each other.
pub const DEEPEST: usize = 64;

/// A word and where it stands.
#[derive(Clone, Debug)]
pub struct Word {
    /// The text, without quotes.
    pub text: String,
    /// Its file.
    pub file: Rc<str>,
    /// Its line, from 1.
    pub line: u64,
    /// Its column in bytes, from 1.
    pub column: usize,
}

/// A directive.
#[derive(Clone, Debug)]
pub struct Directive {
    /// Its name.
    pub name: Word,
    /// Its parameters.
    pub words: Vec<Word>,
    /// Whether it has a block.
    pub is_block: bool,
    /// What its block has.
    pub block: Vec<Directive>,
}

impl Word {
    /// Returns the place, as compilers print it.
    pub fn place(&self) -> String {
        format!("{}:{}:{}", self.file, self.line, self.column)
    }

    /// Says what is wrong with this word.
    pub fn wrong(&self, what: impl Into<String>) -> Failure {
        self.wrong_at(0, what)
    }

    /// Says what is wrong, from a byte of the word on.
    pub fn wrong_at(&self, byte: usize, what: impl Into<String>) -> Failure {
        let problem = Problem { line: self.line, column: self.column + byte, what: what.into() };
        Failure::Input(problem.in_file(&self.file))
    }
}

enum Token {
    Word(Word),
    /// One of `;`, `{` and `}`.
    Mark(u8, Word),
}

struct Reader<'t> {
    text: &'t [u8],
    file: Rc<str>,
    at: usize,
    line: u64,
    line_start: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn bump(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        if byte == b'\n' {
            self.line += 1;
            self.line_start = self.at;
        }
        Some(byte)
    }

    fn here(&self) -> Word {
        let column = self.at - self.line_start + 1;
        Word { text: String::new(), file: self.file.clone(), line: self.line, column }
    }

    fn token(&mut self) -> Result<Option<Token>, Failure> {
        loop {
            match self.peek() {
                None => return Ok(None),
                Some(b'#') => {
                    while self.peek().is_some_and(|byte| byte != b'\n') {
                        self.bump();
                    }
                }
                Some(byte) if byte.is_ascii_whitespace() => drop(self.bump()),
                Some(byte @ (b';' | b'{' | b'}')) => {
                    let word = self.here();
                    self.bump();
                    return Ok(Some(Token::Mark(byte, word)));
                }
                Some(quote @ (b'"' | b'\'')) => {
                    return self.quoted(quote).map(|word| Some(Token::Word(word)))
                }
                Some(_) => return Ok(Some(Token::Word(self.plain()))),
            }
        }
    }

    fn quoted(&mut self, quote: u8) -> Result<Word, Failure> {
        let (start, mut text) = (self.here(), Vec::new());
        self.bump();
        loop {
            match self.bump() {
                None => return Err(start.wrong("a quote opens here and nothing closes it")),
                Some(b'\\') => text.extend(escaped(self.bump())),
                Some(byte) if byte == quote => break,
                Some(byte) => text.push(byte),
            }
        }
        if self.peek().is_some_and(|byte| !byte.is_ascii_whitespace() && !b";{)".contains(&byte)) {
            return Err(self.here().wrong("a space or \";\" should stand behind the quote"));
        }
        Ok(Word { text: String::from_utf8_lossy(&text).into_owned(), ..start })
    }

    fn plain(&mut self) -> Word {
        let (start, mut text) = (self.here(), Vec::new());
        while let Some(byte) = self.peek() {
            match byte {
                // In `${name}` the brace opens no block, and none ends inside of a word.
                b'{' if text.last() == Some(&b'$') => {}
                b';' | b'{' => break,
                _ if byte.is_ascii_whitespace() => break,
                _ => {}
            }
            self.bump();
            if byte == b'\\' {
                text.extend(escaped(self.bump()));
            } else {
                text.push(byte);
            }
        }
        Word { text: String::from_utf8_lossy(&text).into_owned(), ..start }
    }

    /// Leaves out a block of Lua: its braces are not those of nginx.
    fn lua(&mut self, open: &Word) -> Result<(), Failure> {
        let mut depth = 1;
        while let Some(byte) = self.bump() {
            match byte {
                b'{' => depth += 1,
                b'}' => depth -= 1,
                b'[' if self.long_bracket() => {}
                b'-' if self.peek() == Some(b'-') => {
                    self.bump();
                    if self.peek() == Some(b'[') {
                        self.bump();
                        if self.long_bracket() {
                            continue;
                        }
                    }
                    while self.peek().is_some_and(|byte| byte != b'\n') {
                        self.bump();
                    }
                }
                b'"' | b'\'' => {
                    while let Some(next) = self.bump() {
                        match next {
                            b'\\' => drop(self.bump()),
                            _ if next == byte || next == b'\n' => break,
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
            if depth == 0 {
                return Ok(());
            }
        }
        Err(open.wrong("a block opens here and nothing closes it"))
    }
}

impl Reader<'_> {
    /// Leaves out a text of Lua in long brackets, `[[...]]` or `[=[...]=]`, of which the first bracket has been read.
    /// False if there is none.
    fn long_bracket(&mut self) -> bool {
        let rest = &self.text[self.at..];
        let level = rest.iter().take_while(|byte| **byte == b'=').count();
        if rest.get(level) != Some(&b'[') {
            return false;
        }
        let close = [&b"]"[..], &b"=".repeat(level), b"]"].concat();
        let end =
            memchr::memmem::find(&rest[level..], &close).map_or(rest.len(), |at| at + level + close.len());
        for _ in 0..end {
            self.bump();
        }
        true
    }
}

fn escaped(byte: Option<u8>) -> Vec<u8> {
    match byte {
        Some(byte @ (b'"' | b'\'' | b'\\')) => vec![byte],
        Some(b't') => vec![b'\t'],
        Some(b'r') => vec![b'\r'],
        Some(b'n') => vec![b'\n'],
        Some(byte) => vec![b'\\', byte],
        None => vec![b'\\'],
    }
}

/// Whether a directive is one of those that limit.
pub fn limits(name: &str) -> bool {
    ["limit_req", "limit_conn", "tatcell"].iter().any(|start| name.starts_with(start))
}

/// Whether a block makes a file a whole configuration.
pub fn is_whole(name: &str) -> bool {
    ["http", "events", "stream", "mail"].contains(&name)
}

/// Whether a directive says anything about limits. A list of a million addresses does not, and takes no memory.
fn is_kept(name: &str) -> bool {
    limits(name) || name == "server_name"
}

/// Reads the directives of a file and of what it includes that say something about limits.
pub struct Files {
    /// The folder that `include` starts from: that of the first file.
    folder: PathBuf,
    bytes: usize,
}

impl Files {
    /// Reads a configuration.
    pub fn read(path: &str) -> Result<Vec<Directive>, Failure> {
        let folder = Path::new(path).parent().map(Path::to_path_buf).unwrap_or_default();
        let mut files = Files { folder, bytes: 0 };
        files.file(path, 0).map_err(|error| match error {
            Ok(failure) => failure,
            Err(error) => Failure::Input(format!("{path}: {error}")),
        })
    }

    /// The inner error is one of the system.
    fn file(&mut self, path: &str, deep: usize) -> Result<Vec<Directive>, Result<Failure, std::io::Error>> {
        let mut text = Vec::new();
        let most = (MOST - self.bytes) as u64 + 1;
        File::open(path).and_then(|file| file.take(most).read_to_end(&mut text)).map_err(Err)?;
        self.bytes += text.len();
        if self.bytes > MOST {
            return Err(Ok(Failure::Input(format!(
                "{path}: all files together have more than {MOST} bytes"
            ))));
        }
        let reader = Reader { text: &text, file: path.into(), at: 0, line: 1, line_start: 0 };
        self.directives(reader, deep).map_err(Ok)
    }

    fn directives(&mut self, mut reader: Reader<'_>, deep: usize) -> Result<Vec<Directive>, Failure> {
        // The blocks that are open: what they have so far, and the directive that opened each.
        let mut open: Vec<(Directive, Vec<Directive>)> = Vec::new();
        // A line of such a block is a value and a rate.
        let is_rate = |open: &[(Directive, _)]| {
            open.last().is_some_and(|(directive, _)| directive.name.text == "tatcell_rates")
        };
        let (mut done, mut words) = (Vec::new(), Vec::<Word>::new());
        while let Some(token) = reader.token()? {
            match token {
                Token::Word(word) => words.push(word),
                Token::Mark(b';', mark) => {
                    if words.is_empty() {
                        return Err(mark.wrong("unexpected \";\""));
                    }
                    let name = words.remove(0);
                    match (&*name.text, &words[..]) {
                        ("include", [pattern]) => done.extend(self.include(pattern, deep)?),
                        (text, _) if is_kept(text) || is_rate(&open) => done.push(Directive {
                            name,
                            words: std::mem::take(&mut words),
                            is_block: false,
                            block: Vec::new(),
                        }),
                        _ => {}
                    }
                    words.clear();
                }
                Token::Mark(b'{', mark) => {
                    if words.is_empty() {
                        return Err(mark.wrong("unexpected \"{\""));
                    }
                    let name = words.remove(0);
                    let words = std::mem::take(&mut words);
                    let directive = Directive { name, words, is_block: true, block: Vec::new() };
                    if directive.name.text.ends_with("_by_lua_block") {
                        reader.lua(&mark)?;
                    } else if open.len() + deep >= DEEPEST {
                        return Err(mark.wrong(format!("blocks are more than {DEEPEST} deep")));
                    } else {
                        open.push((directive, std::mem::take(&mut done)));
                    }
                }
                Token::Mark(_, mark) => {
                    if let Some(word) = words.first() {
                        return Err(word.wrong(format!("\"{}\" has no \";\" before the \"}}\"", word.text)));
                    }
                    let Some((mut directive, before)) = open.pop() else {
                        return Err(mark.wrong("unexpected \"}\": no block is open"));
                    };
                    directive.block = std::mem::replace(&mut done, before);
                    let name = &*directive.name.text;
                    if !directive.block.is_empty() || is_kept(name) || is_whole(name) {
                        done.push(directive);
                    }
                }
            }
        }
        if let Some(word) = words.first() {
            return Err(word.wrong(format!("\"{}\" has no \";\" before the end of the file", word.text)));
        }
        match open.pop() {
            Some((directive, _)) => Err(directive
                .name
                .wrong(format!("\"{}\" opens a block that nothing closes", directive.name.text))),
            None => Ok(done),
        }
    }

    fn include(&mut self, pattern: &Word, deep: usize) -> Result<Vec<Directive>, Failure> {
        if deep + 1 >= DEEPEST {
            return Err(pattern.wrong(format!("files include each other more than {DEEPEST} deep")));
        }
        let mut all = Vec::new();
        for path in matching(&self.folder.join(&pattern.text)) {
            let read = self.file(&path.to_string_lossy(), deep + 1);
            all.extend(read.map_err(|error| match error {
                Ok(failure) => failure,
                Err(error) => pattern.wrong(format!("cannot include {}: {error}", path.display())),
            })?);
        }
        Ok(all)
    }
}

/// The files that a pattern with `*`, `?` and `[...]` names, sorted; a path without these as it is.
fn matching(pattern: &Path) -> Vec<PathBuf> {
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

//! Reads configurations of nginx into directives and blocks, with the places of all words; follows `include`.
//!
//! Words, quotes, escapes and comments are those of nginx. All files together have at most [`MOST`] bytes. Blocks are
//! at most [`DEEPEST`] deep, and so are files that include each other.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::glob::matching;
use crate::failure::{Failure, Problem};

/// Most bytes of all files together.
pub const MOST: usize = 64 << 20;
/// Most blocks in each other, and most files that include each other.
pub const DEEPEST: usize = 64;
/// The longest word as it is written, and so the longest name of a zone: nginx refuses a longer one, too.
const LONGEST: usize = 4095;
/// Words of a directive that are kept, if it is none of those that limit: no other has a meaning here.
const WORDS: usize = 16;

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
                Some(first) => {
                    let start = self.at;
                    let word = match first {
                        b'"' | b'\'' => self.quoted(first)?,
                        _ => self.plain(),
                    };
                    // nginx does not count the first quote.
                    if self.at - start - usize::from(first == b'"' || first == b'\'') > LONGEST {
                        return Err(word.wrong(format!("a word of nginx has at most {LONGEST} bytes")));
                    }
                    return Ok(Some(Token::Word(word)));
                }
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

/// The directive that names a server. The answer shows its first word.
const NAME: &str = "server_name";

/// Reads the directives of a file and of what it includes that say something about limits.
pub struct Files {
    /// The folder that `include` starts from: that of the first file.
    folder: PathBuf,
    bytes: usize,
    /// The blocks that make a file a whole configuration and are empty. Two of one name show that it is there twice.
    empty: Vec<String>,
}

impl Files {
    /// Reads a configuration.
    pub fn read(path: &str) -> Result<Vec<Directive>, Failure> {
        let folder = Path::new(path).parent().map(Path::to_path_buf).unwrap_or_default();
        let mut files = Files { folder, bytes: 0, empty: Vec::new() };
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
        let is_first_name = |text: &str, done: &[Directive]| {
            text == NAME && done.iter().all(|before| before.name.text != NAME)
        };
        let (mut done, mut words) = (Vec::new(), Vec::<Word>::new());
        while let Some(token) = reader.token()? {
            match token {
                Token::Word(word) if words.len() < WORDS || limits(&words[0].text) => words.push(word),
                Token::Word(_) => {}
                Token::Mark(b';', mark) => {
                    if words.is_empty() {
                        return Err(mark.wrong("unexpected \";\""));
                    }
                    let name = words.remove(0);
                    match (&*name.text, &words[..]) {
                        ("include", [pattern]) => done.extend(self.include(pattern, deep)?),
                        (text, _) if limits(text) || is_rate(&open) || is_first_name(text, &done) => {
                            let words = std::mem::take(&mut words);
                            done.push(Directive { name, words, is_block: false, block: Vec::new() });
                        }
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
                    // A list of a million addresses says nothing about limits, nor do the names of a million servers.
                    let says = directive.block.iter().any(|inner| inner.name.text != NAME);
                    if says || limits(&directive.name.text) || self.is_new_whole(&directive.name.text) {
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

    /// Whether an empty block makes a file a whole configuration, and not two of its name are there.
    fn is_new_whole(&mut self, name: &str) -> bool {
        let is_new = is_whole(name) && self.empty.iter().filter(|known| *known == name).count() < 2;
        self.empty.extend(is_new.then(|| name.to_owned()));
        is_new
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

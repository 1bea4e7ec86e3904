//! One source file, as far as the rules need it: its tokens, the paths that it names, and what it declares.
//!
//! Not a parser of Rust: macros are read as they stand, unexpanded, and a path is what looks like one.

use std::collections::{BTreeMap, BTreeSet};

/// A path as written, `["crate", "sync", "AtomicU64"]`, with the line it stands in.
#[derive(Clone, Debug)]
pub struct Named {
    pub path: Vec<String>,
    pub line: usize,
    /// Inline modules around it, from the outside in.
    pub inside: Vec<String>,
}

#[derive(Debug)]
pub struct Source {
    /// From the root of the repository: `src/table/set.rs`.
    pub file: String,
    /// Identifiers, `::`, single marks and strings (with their first quote), and their lines; no comments.
    pub tokens: Vec<(String, usize)>,
    /// What `use` brings into scope, by the name that it has here; `pub use` too.
    pub imports: BTreeMap<String, Vec<Vec<String>>>,
    /// Everything that the file names by a path, `pub use` left out: those names pass through.
    pub named: Vec<Named>,
    /// What `pub use` hands on: name here, path.
    pub passed_on: Vec<(String, Named)>,
    /// Files declared by `mod name;`.
    pub children: BTreeSet<String>,
    /// Functions that other files can call, as `.name(..)`, on a type that this file does not define.
    pub methods: BTreeSet<String>,
    /// Every function of the file.
    pub functions: Vec<String>,
}

impl Source {
    pub fn read(file: &str, text: &str) -> Source {
        let mut source = Source {
            file: file.into(),
            tokens: tokens(text),
            imports: BTreeMap::new(),
            named: Vec::new(),
            passed_on: Vec::new(),
            children: BTreeSet::new(),
            methods: BTreeSet::new(),
            functions: Vec::new(),
        };
        source.read_paths();
        source.read_methods();
        source
    }

    /// `crate`, `table`, `search`, `line` for src/table/search/line.rs; the folder for mod.rs.
    pub fn module(&self) -> Vec<String> {
        let inner = self.file.strip_prefix("src/").unwrap_or(&self.file);
        let inner = inner.strip_suffix(".rs").unwrap_or(inner);
        let mut parts: Vec<String> = inner.split('/').map(String::from).collect();
        match parts.last().map(String::as_str) {
            Some("mod" | "lib") => drop(parts.pop()),
            // `set_tests.rs` is the module `tests` of `set.rs`, `mod_tests.rs` that of the folder.
            Some(last) if last.ends_with("_tests") => {
                let of = last.trim_end_matches("_tests").to_string();
                parts.pop();
                if of != "mod" {
                    parts.push(of);
                }
                parts.push("tests".into());
            }
            _ => {}
        }
        parts
    }

    /// Folder or file right below src.
    pub fn room(&self) -> String {
        let inner = self.file.strip_prefix("src/").unwrap_or(&self.file);
        inner.split(['/', '.']).next().unwrap_or("").into()
    }

    /// Compiled for tests only.
    pub fn is_test(&self) -> bool {
        let name = self.file.rsplit('/').next().unwrap_or("");
        name.starts_with("loom_") || name.ends_with("_tests.rs")
    }

    fn token(&self, at: usize) -> &str {
        self.tokens.get(at).map_or("", |(token, _)| token)
    }

    fn read_paths(&mut self) {
        let (mut at, mut depth) = (0, 0);
        let mut inside: Vec<(String, usize)> = Vec::new();
        while at < self.tokens.len() {
            let (token, line) = self.tokens[at].clone();
            match token.as_str() {
                "{" => depth += 1,
                "}" => {
                    depth -= 1;
                    inside.retain(|(_, outside)| *outside < depth);
                }
                "mod" if self.token(at + 2) == ";" => drop(self.children.insert(self.token(at + 1).into())),
                "mod" if self.token(at + 2) == "{" => inside.push((self.token(at + 1).into(), depth)),
                "use" if !matches!(self.token(at + 1), "<" | "") => {
                    let public = self.is_public(at);
                    let around: Vec<String> = inside.iter().map(|(name, _)| name.clone()).collect();
                    let mut found = Vec::new();
                    at = self.use_tree(at + 1, Vec::new(), &mut found);
                    for (name, path) in found {
                        // As seen from the file: what an inline module takes from the file is there anyway.
                        let supers = path.iter().take_while(|part| *part == "super").count();
                        if name != "*" && (supers == 0 || supers > around.len()) {
                            let path = path[around.len().min(supers)..].to_vec();
                            self.imports.entry(name.clone()).or_default().push(path);
                        }
                        let named = Named { path, line, inside: around.clone() };
                        match public {
                            true => self.passed_on.push((name, named)),
                            false => self.named.push(named),
                        }
                    }
                    continue;
                }
                // Not `pub(in crate::table)`.
                _ if self.token(at + 1) == "::" && !matches!(self.before(at), "::" | "in") => {
                    let mut path = vec![token];
                    while self.token(at + 1) == "::" && is_name(self.token(at + 2)) {
                        path.push(self.token(at + 2).into());
                        at += 2;
                    }
                    let inside = inside.iter().map(|(name, _)| name.clone()).collect();
                    self.named.push(Named { path, line, inside });
                }
                _ => {}
            }
            at += 1;
        }
    }

    fn before(&self, at: usize) -> &str {
        at.checked_sub(1).map_or("", |at| self.token(at))
    }

    /// Is the item that starts here `pub`, in whatever scope?
    fn is_public(&self, at: usize) -> bool {
        let mut at = at;
        while matches!(self.before(at), "const" | "unsafe") {
            at -= 1;
        }
        if self.before(at) == ")" {
            while at > 0 && self.token(at) != "(" {
                at -= 1;
            }
        }
        self.before(at) == "pub"
    }

    /// Reads `a::{b, c as d}` from `at` on; gives (name here, path) and where it ends.
    fn use_tree(&self, at: usize, stem: Vec<String>, found: &mut Vec<(String, Vec<String>)>) -> usize {
        let (mut at, mut path) = (at, stem);
        loop {
            match self.token(at) {
                "{" => {
                    at += 1;
                    while !matches!(self.token(at), "}" | "") {
                        at = self.use_tree(at, path.clone(), found);
                        if self.token(at) == "," {
                            at += 1;
                        }
                    }
                    return at + 1;
                }
                "::" => at += 1,
                "as" => {
                    found.push((self.token(at + 1).into(), path));
                    return at + 2;
                }
                token if is_name(token) || token == "*" || token == "$" => {
                    path.push(token.into());
                    at += 1;
                }
                _ => {
                    if path.last().is_some_and(|last| last == "self") && path.len() > 1 {
                        path.pop();
                    }
                    let name = path.last().cloned().unwrap_or_default();
                    found.push((name, path));
                    return at;
                }
            }
        }
    }

    fn read_methods(&mut self) {
        let mut own = BTreeSet::new();
        for at in 0..self.tokens.len() {
            if matches!(self.token(at), "struct" | "enum" | "union" | "trait") {
                own.insert(self.token(at + 1).to_string());
            }
        }
        let (mut at, mut depth, mut foreign) = (0, 0usize, None);
        while at < self.tokens.len() {
            match self.token(at) {
                "{" => depth += 1,
                "}" => {
                    depth = depth.saturating_sub(1);
                    foreign = foreign.filter(|outside| *outside < depth);
                }
                "impl"
                    if foreign.is_none() && !matches!(self.before(at), "(" | ":" | "," | ">" | "<" | "&") =>
                {
                    let end = (at..self.tokens.len()).find(|at| self.token(*at) == "{").unwrap_or(at);
                    let head: Vec<&str> = (at..end).map(|at| self.token(at)).collect();
                    if !head.contains(&"for") && !head.iter().any(|name| own.contains(*name)) {
                        foreign = Some(depth);
                    }
                }
                "fn" if is_name(self.token(at + 1)) => {
                    let name = self.token(at + 1).to_string();
                    if foreign.is_some() && self.is_public(at) {
                        self.methods.insert(name.clone());
                    }
                    self.functions.push(name);
                }
                _ => {}
            }
            at += 1;
        }
    }

    /// Names that are called as methods, with the line of the first call.
    pub fn calls(&self) -> BTreeMap<&str, usize> {
        let mut calls = BTreeMap::new();
        for at in 2..self.tokens.len() {
            let dotted = self.token(at - 2) == "." && matches!(self.token(at), "(" | "::");
            if dotted && is_name(self.token(at - 1)) {
                calls.entry(self.token(at - 1)).or_insert(self.tokens[at].1);
            }
        }
        calls
    }

    /// Is the name written in code, `use` lines and declarations of modules left out?
    pub fn mentions(&self, name: &str) -> bool {
        let mut in_use = false;
        (0..self.tokens.len()).any(|at| {
            match self.token(at) {
                "use" => in_use = true,
                ";" => in_use = false,
                _ => {}
            }
            !in_use && self.token(at) == name && self.before(at) != "mod"
        })
    }

    /// The conditions of all `cfg` attributes and macros, spaces taken out, with their lines.
    pub fn conditions(&self) -> Vec<(String, usize)> {
        let mut conditions = Vec::new();
        for at in 0..self.tokens.len() {
            if !matches!(self.token(at), "cfg" | "cfg_attr") || !matches!(self.token(at + 1), "(" | "!") {
                continue;
            }
            let (mut text, mut depth) = (String::new(), 0);
            for next in at + 1..self.tokens.len() {
                let token = self.token(next);
                depth += (token == "(") as usize;
                depth -= (token == ")") as usize;
                if depth == 0 && token != "!" || depth == 1 && token == "," && self.token(at) == "cfg_attr" {
                    break;
                }
                if !(depth == 1 && token == "(" || token == "!") {
                    text += token;
                }
            }
            conditions.push((text, self.tokens[at].1));
        }
        conditions
    }
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Splits a text into tokens; comments, numbers, characters and lifetimes are dropped.
fn tokens(text: &str) -> Vec<(String, usize)> {
    let chars: Vec<char> = text.chars().collect();
    let (mut tokens, mut at, mut line) = (Vec::new(), 0, 1);
    let get = |at: usize| chars.get(at).copied().unwrap_or('\0');
    while at < chars.len() {
        let start = at;
        match chars[at] {
            '/' if get(at + 1) == '/' => {
                while at < chars.len() && chars[at] != '\n' {
                    at += 1;
                }
            }
            '/' if get(at + 1) == '*' => {
                let mut depth = 0;
                loop {
                    match (get(at), get(at + 1)) {
                        ('/', '*') => (depth, at) = (depth + 1, at + 2),
                        ('*', '/') => (depth, at) = (depth - 1, at + 2),
                        _ => at += 1,
                    }
                    if depth == 0 || at >= chars.len() {
                        break;
                    }
                }
            }
            '"' => {
                at += 1;
                while at < chars.len() && chars[at] != '"' {
                    at += 1 + (chars[at] == '\\') as usize;
                }
                at += 1;
                tokens.push((chars[start..at.min(chars.len())].iter().collect(), line));
            }
            '\'' if get(at + 1) == '\\' || get(at + 2) == '\'' => {
                at += 2;
                while at < chars.len() && chars[at] != '\'' {
                    at += 1;
                }
                at += 1;
            }
            '\'' => {
                at += 1;
                while get(at).is_alphanumeric() || get(at) == '_' {
                    at += 1;
                }
            }
            c if c.is_ascii_digit() => {
                while get(at).is_alphanumeric() || get(at) == '_' {
                    at += 1;
                }
            }
            c if c.is_alphabetic() || c == '_' => {
                while get(at).is_alphanumeric() || get(at) == '_' {
                    at += 1;
                }
                let word: String = chars[start..at].iter().collect();
                // A raw string: r"..", br#".."#.
                let hashes = chars[at..].iter().take_while(|c| **c == '#').count();
                if matches!(word.as_str(), "r" | "br" | "cr") && get(at + hashes) == '"' {
                    let end: String = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
                    let rest: String = chars[at + hashes + 1..].iter().collect();
                    let inner = rest.find(&end).map_or(rest.chars().count(), |i| rest[..i].chars().count());
                    at += hashes + 1 + inner + end.len();
                    tokens.push(("\"".into(), line));
                } else if !(matches!(word.as_str(), "b" | "c") && matches!(get(at), '"' | '\'')) {
                    tokens.push((word, line));
                }
            }
            ':' if get(at + 1) == ':' => {
                at += 2;
                tokens.push(("::".into(), line));
            }
            c => {
                at += 1;
                if !c.is_whitespace() {
                    tokens.push((c.into(), line));
                }
            }
        }
        line += chars[start..at.min(chars.len())].iter().filter(|c| **c == '\n').count();
    }
    tokens
}

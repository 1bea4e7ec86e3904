//! The layout of the sources, as far as the compiler does not check it: which module may import which.
//!
//! [`FOLDERS`] is the rule; docs/ARCHITECTURE.md draws it. In each folder an entry (a file, or a folder with all that
//! is in it) may import the entries listed with it, and each of those stands above it in the list: imports run one way.
//! The file that declares a folder's modules (`lib.rs`, `mod.rs`) may import all of them, and no entry but tests
//! imports from it. Files import one another without circles too.
//!
//! An import is a path in code that starts with `crate` or `super`, in a `use` or not. Comments do not count.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The folders whose imports are ruled, each with its entries, a line each: `name: what it may import`. A new file or
/// folder needs a line. `lib` there means names that the crate exports.
const FOLDERS: &[(&str, &str)] = &[
    (
        "src",
        "impossible:
         sync:
         time:
         cpu:        sync
         limit:      time
         answer:     limit
         keys:       cpu
         algorithms: limit answer
         http:       time limit answer
         cell:       sync time limit answer algorithms
         table:      sync time cpu limit answer keys algorithms
         combine:    sync limit answer keys cell table
         host:       table
         small:      sync limit answer algorithms cell table
         capi:       limit answer keys algorithms http cell table combine host",
    ),
    (
        "src/table",
        "counters:
         error:
         layout:    error
         set:       layout
         handle:    error layout set
         calls:     counters error layout set handle
         migrate:   error layout handle
         overrides: error layout set handle
         upkeep:    error layout handle
         burst:     counters error layout set handle calls
         models:    counters error layout set handle calls overrides burst",
    ),
    (
        "src/capi",
        "codes:
         pointers:    codes
         decision:    codes pointers
         host:        codes pointers
         limit:       codes pointers
         cell:        codes pointers decision limit
         refusal:     codes pointers decision limit
         table:       codes pointers decision limit
         combine:     codes pointers decision limit cell table
         shaper:      codes pointers decision limit combine
         codes_tests: codes decision host refusal combine shaper",
    ),
    (
        "src/combine",
        "error:
         link:          error
         chain:         error link
         ladder_limits: link chain
         pair:          link chain
         shaper:        error link chain
         mark:          link pair
         models:        mark",
    ),
    (
        "src/cell",
        "cell:
         meter:
         refusal:
         lease:       cell
         sliding_log: cell
         models:      cell meter sliding_log",
    ),
    (
        "src/algorithms",
        "exp2:
         log_gate:
         meters:
         sliding_log:
         state:
         decay:           exp2 state
         fixed_window:    state
         gcra:            state
         quota_linear:    state
         sliding_counter: state
         counted:         state decay fixed_window gcra quota_linear sliding_counter
         w16_tests:       decay gcra
         merge_tests:     state gcra counted",
    ),
    (
        "cluster/src",
        "axis:
         clock:
         link:
         log:
         loom_line:
         map:
         piece:
         random:
         sync:
         tls:
         counts:             sync
         model_tests:        piece
         reserve:            sync
         share:              sync
         split:              axis
         waits:              sync
         demand:             split
         line:               piece sync waits
         script:             split
         capacity_tests:     piece random demand
         error:              split script
         lines:              sync line
         verdict:            split script
         answers:            sync verdict
         endpoint:           link map tls error
         limit_version:      axis sync share split script error lines
         limit_versions:     sync split limit_version
         model_change_tests: piece model_tests limit_version
         store:              clock link map random script error endpoint
         node:               clock sync counts reserve split line lines verdict answers limit_version \
                             limit_versions store
         cluster:            sync counts split verdict limit_version node
         mark:               sync counts split script error verdict limit_version store node
         settle:             piece random sync counts demand line script lines verdict limit_version store node
         slot:               script store node
         capi:               cluster lib
         store_thread:       log sync counts script store node mark settle slot
         open:               clock log random sync tls counts reserve split script error lines verdict \
                             answers endpoint limit_version limit_versions store node cluster mark slot store_thread",
    ),
];

/// Roots of crates: their files import one another without circles, name atomics only in `sync`, and stay short.
/// The tools in `dev` can be added here, and ruled by a table above.
const CRATES: &[&str] = &["src", "cluster/src"];

/// What models import beyond the table: the helpers that all of them share.
const MODELS_IMPORT: &str = "table";

/// Longest file in lines, longest line in columns.
const LINES: usize = 450;
const COLUMNS: usize = 120;

/// A source file: its path, and its text with comments and strings blanked out.
struct Source {
    file: String,
    code: String,
    /// `table`, `set`, `insert` for src/table/set/insert.rs; the folder for mod.rs.
    module: Vec<String>,
}

/// A folder's table, read.
struct Folder<'a> {
    path: &'a str,
    entries: Vec<(&'a str, Vec<&'a str>)>,
}

impl<'a> Folder<'a> {
    fn read((path, table): &(&'a str, &'a str)) -> Folder<'a> {
        let lines = table.lines().filter_map(|line| line.split_once(':'));
        let entry = |(name, may): (&'a str, &'a str)| (name.trim(), may.split_whitespace().collect());
        Folder { path, entries: lines.map(entry).collect() }
    }

    fn has(&self, name: &str) -> bool {
        self.entries.iter().any(|(entry, _)| *entry == name)
    }
}

/// A path that a file names, from the root of its crate.
struct Import {
    path: Vec<String>,
    line: usize,
}

impl Source {
    fn all<T: AsRef<str>>(texts: &[(T, T)]) -> Vec<Source> {
        let files: BTreeSet<&str> = texts.iter().map(|(file, _)| file.as_ref()).collect();
        let source = |(file, text): &(T, T)| {
            let file = file.as_ref();
            let inner = file.find("src/").map_or(file, |at| &file[at + 4..]).trim_end_matches(".rs");
            let mut module: Vec<String> = inner.split('/').map(String::from).collect();
            let last = module.last().cloned().unwrap_or_default();
            if matches!(last.as_str(), "mod" | "lib" | "main") {
                module.pop();
            }
            // `set_tests.rs` is the module `tests` of `set.rs`, `mod_tests.rs` that of the folder.
            if let Some(of) = last.strip_suffix("_tests") {
                if files.contains(file.replace("_tests.rs", ".rs").as_str()) {
                    module.pop();
                    module.extend((of != "mod").then(|| of.to_string()));
                    module.push("tests".into());
                }
            }
            Source { file: file.into(), code: blanked(text.as_ref()), module }
        };
        texts.iter().map(source).collect()
    }

    /// The crate's root folder: all up to `src`.
    fn root(&self) -> &str {
        self.file.find("src/").map_or("", |at| &self.file[..at + 3])
    }

    fn is_model(&self) -> bool {
        self.file.contains("/models/") || self.file.contains("loom_")
    }

    fn is_test(&self) -> bool {
        self.is_model() || self.file.ends_with("tests.rs")
    }

    /// The paths that start with `crate` or `super`, those of groups one by one.
    fn imports(&self) -> Vec<Import> {
        let mut found = Vec::new();
        let (mut line, mut depth) = (0, 0);
        let mut at = 0;
        for text in self.code.split_inclusive('\n') {
            line += 1;
            // An inline module (`mod tests {`) is one level deeper, until its brace closes in the first column.
            if !text.starts_with(' ')
                && text.split(' ').any(|word| word == "mod")
                && text.trim_end().ends_with('{')
            {
                depth = 1;
            } else if text.starts_with('}') {
                depth = 0;
            }
            for start in ["crate::", "super::"] {
                for (offset, _) in text.match_indices(start) {
                    let before = text[..offset].chars().next_back();
                    if before.is_some_and(|c| c.is_alphanumeric() || "_:$".contains(c)) {
                        continue;
                    }
                    let mut paths = Vec::new();
                    tree(&self.code[at + offset..], &mut Vec::new(), &mut paths);
                    found.extend(
                        paths
                            .into_iter()
                            .filter_map(|path| Some(Import { path: self.resolved(path, depth)?, line })),
                    );
                }
            }
            at += text.len();
        }
        found
    }

    /// The path from the crate's root; `None` if it stays inside the file.
    fn resolved(&self, path: Vec<String>, depth: usize) -> Option<Vec<String>> {
        if path[0] == "crate" {
            return Some(path[1..].to_vec());
        }
        let supers = path.iter().take_while(|part| *part == "super").count();
        let mut module = self.module.clone();
        for _ in 0..supers.checked_sub(depth).filter(|up| *up > 0)? {
            module.pop();
        }
        module.extend(path[supers..].iter().cloned());
        Some(module)
    }
}

/// Reads a path, or a group of them, and returns what is left of the text.
fn tree<'a>(mut text: &'a str, before: &mut Vec<String>, paths: &mut Vec<Vec<String>>) -> &'a str {
    let depth = before.len();
    loop {
        text = text.trim_start();
        if let Some(inner) = text.strip_prefix('{') {
            text = inner;
            while !text.is_empty() && !text.starts_with('}') {
                text = tree(text, before, paths).trim_start().trim_start_matches(',').trim_start();
            }
            before.truncate(depth);
            return text.strip_prefix('}').unwrap_or(text);
        }
        let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
        before.extend((end > 0).then(|| text[..end].to_string()));
        text = text[end..].trim_start_matches('*');
        match text.strip_prefix("::") {
            Some(rest) => text = rest,
            None => break,
        }
    }
    paths.push(before.iter().filter(|part| *part != "self").cloned().collect());
    before.truncate(depth);
    // An alias is not part of the path.
    match text.trim_start().strip_prefix("as ") {
        Some(alias) => alias.trim_start().trim_start_matches(|c: char| c.is_alphanumeric() || c == '_'),
        None => text,
    }
}

/// The text with comments, strings and characters as spaces.
fn blanked(text: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(c) = rest.chars().next() {
        let end = match c {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '"' => {
                let mut escaped = true;
                let closes = |c: char| {
                    let closes = c == '"' && !escaped;
                    escaped = c == '\\' && !escaped;
                    closes
                };
                rest.find(closes).map_or(rest.len(), |at| at + 1)
            }
            '\'' if rest[1..].starts_with('\\') => 4.min(rest.len()),
            '\'' if rest[1..].starts_with('"') => 3,
            _ => {
                out.push(c);
                rest = &rest[c.len_utf8()..];
                continue;
            }
        };
        out.extend(rest[..end].chars().map(|c| if c == '\n' { c } else { ' ' }));
        rest = &rest[end..];
    }
    out
}

/// The faults of all sources, each a line that says what to do.
fn faults(sources: &[Source], folders: &[Folder<'_>]) -> Vec<String> {
    let mut faults = Vec::new();
    let files: BTreeMap<(String, Vec<String>), usize> = sources
        .iter()
        .enumerate()
        .map(|(i, source)| ((source.root().into(), source.module.clone()), i))
        .collect();
    let mut edges = vec![BTreeSet::new(); sources.len()];
    for (i, source) in sources.iter().enumerate() {
        for import in source.imports() {
            let mut full = vec![source.root().to_string()];
            full.extend(import.path.iter().cloned());
            for folder in folders {
                faults.extend(fault_of(source, &import, &full.join("/"), folder));
            }
            // The longest path that is a file.
            let target = (1..=import.path.len())
                .rev()
                .find_map(|n| files.get(&(source.root().to_string(), import.path[..n].to_vec())));
            edges[i].extend(target.filter(|to| **to != i));
        }
        let outside = ["core::sync", "std::sync", "portable_atomic", "loom::sync"];
        let code = source.code.split("\nmod tests {").next().unwrap_or("");
        if source.root() == "src" && !source.is_test() && !source.file.contains("/sync") {
            faults.extend(
                outside
                    .iter()
                    .filter(|name| code.contains(*name))
                    .map(|name| format!("{}: {name} outside of sync: use crate::sync", source.file)),
            );
        }
    }
    for folder in folders {
        for source in sources {
            let Some(entry) = entry_of(&source.file, folder.path) else { continue };
            if !is_face(entry) && !folder.has(tested(entry, folder)) {
                faults.push(format!("{}: {entry} is not in the table of {}", source.file, folder.path));
            }
        }
    }
    let mut circles = Circles { edges: &edges, path: Vec::new(), done: BTreeSet::new(), found: None };
    (0..sources.len()).for_each(|i| circles.visit(i));
    if let Some(circle) = circles.found {
        let names: Vec<_> = circle.iter().map(|i| sources[*i].file.as_str()).collect();
        faults.push(format!("a circle of imports: {}", names.join(" -> ")));
    }
    faults.sort();
    faults.dedup();
    faults
}

/// The entry of a folder that a file or module belongs to: the first part of its path below.
fn entry_of<'a>(file: &'a str, folder: &str) -> Option<&'a str> {
    file.strip_prefix(folder)?.strip_prefix('/')?.split(['/', '.']).next()
}

fn is_face(entry: &str) -> bool {
    matches!(entry, "mod" | "lib" | "main" | "mod_tests")
}

/// The entry that a file of tests belongs to, if it has no line of its own.
fn tested<'a>(entry: &'a str, folder: &Folder<'_>) -> &'a str {
    if folder.has(entry) {
        entry
    } else {
        entry.trim_end_matches("_tests")
    }
}

fn fault_of(source: &Source, import: &Import, full: &str, folder: &Folder<'_>) -> Option<String> {
    let from = tested(entry_of(&source.file, folder.path)?, folder);
    let to = entry_of(full, folder.path)?;
    let shared = folder.path == "src" && source.is_model() && to == MODELS_IMPORT;
    let test = shared || (source.is_test() && !folder.has(to));
    if is_face(from) || from == to || test {
        return None;
    }
    let (_, may) = folder.entries.iter().find(|(name, _)| *name == from)?;
    let from_face = !folder.has(to) && may.contains(&"lib");
    (!from_face && !may.contains(&to)).then(|| {
        let (file, line, path) = (&source.file, import.line, import.path.join("::"));
        format!("{file}:{line}: {from} may not import {path} ({})", folder.path)
    })
}

/// Looks for a way along the imports that ends where it began.
struct Circles<'a> {
    edges: &'a [BTreeSet<usize>],
    path: Vec<usize>,
    done: BTreeSet<usize>,
    found: Option<Vec<usize>>,
}

impl Circles<'_> {
    fn visit(&mut self, file: usize) {
        if let Some(at) = self.path.iter().position(|seen| *seen == file) {
            self.found = Some(self.path[at..].to_vec());
        } else if self.found.is_none() && !self.done.contains(&file) {
            self.path.push(file);
            for next in &self.edges[file] {
                self.visit(*next);
            }
            self.path.pop();
            self.done.insert(file);
        }
    }
}

/// Every Rust file below a folder of the repository, in order.
fn read(folder: &str, found: &mut Vec<(String, String)>) {
    let Ok(entries) = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)) else { return };
    for entry in entries.flatten() {
        let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            read(&name, found);
        } else if name.ends_with(".rs") {
            found.push((name, std::fs::read_to_string(entry.path()).expect("a text")));
        }
    }
}

#[test]
fn the_sources_keep_to_the_layout() {
    let mut texts = Vec::new();
    CRATES.iter().for_each(|root| read(root, &mut texts));
    texts.sort();
    assert!(CRATES.iter().all(|root| texts.iter().any(|(file, _)| file.starts_with(root))), "no sources");
    let folders: Vec<_> = FOLDERS.iter().map(Folder::read).collect();
    let mut wrong = faults(&Source::all(&texts), &folders);
    for (file, text) in &texts {
        if text.lines().count() > LINES {
            wrong.push(format!("{file}: more than {LINES} lines: split it"));
        }
        if let Some(line) = text.lines().position(|line| line.chars().count() > COLUMNS) {
            wrong.push(format!("{file}:{}: more than {COLUMNS} columns: wrap it", line + 1));
        }
    }
    assert!(wrong.is_empty(), "{} faults\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn each_entry_imports_those_above_it_alone() {
    for folder in FOLDERS.iter().map(Folder::read) {
        for (i, (name, may)) in folder.entries.iter().enumerate() {
            for other in may {
                let above = *other == "lib" || folder.entries[..i].iter().any(|(above, _)| above == other);
                assert!(above, "{}: {name} may import {other}, which does not stand above it", folder.path);
            }
        }
    }
}

/// Breaks each rule once, in made-up sources.
#[test]
fn each_fault_is_found() {
    let table = [Folder::read(&("src", "sync:\ntable:\ncell: sync"))];
    let faults_of = |files: &[(&str, &str)]| faults(&Source::all(files), &table);
    let sound: &[(&str, &str)] = &[
        ("src/lib.rs", "mod cell;\npub use cell::Cell;"),
        ("src/sync.rs", "pub use core::sync::atomic::AtomicU64; // crate::cell"),
        (
            "src/cell/mod.rs",
            "use crate::sync::AtomicU64;\nmod tests {\n    use super::*;\n    use core::sync::atomic;\n}",
        ),
        ("src/cell/models/loom_cells.rs", "use crate::table::models::kit;\nconst S: &str = \"crate::lib\";"),
    ];
    assert_eq!(faults_of(sound), Vec::<String>::new());
    let cases: &[(&str, &str, &str)] = &[
        (
            "src/sync.rs",
            "use crate::{\n    cell::{self, Cell as Word},\n};",
            "src/sync.rs:1: sync may not import cell (src)",
        ),
        (
            "src/sync.rs",
            "fn f() -> super::cell::Cell {}",
            "src/sync.rs:1: sync may not import cell::Cell (src)",
        ),
        (
            "src/cell/a.rs",
            "type A = super::super::table::A;",
            "src/cell/a.rs:1: cell may not import table::A (src)",
        ),
        ("src/cell/a.rs", "use crate::Limit;", "src/cell/a.rs:1: cell may not import Limit (src)"),
        ("src/cell/a.rs", "use core::sync::atomic::AtomicU64;", "core::sync outside of sync"),
        ("src/misc.rs", "", "src/misc.rs: misc is not in the table of src"),
    ];
    for (file, text, fault) in cases {
        let found = faults_of(&[(file, text)]);
        assert!(found.iter().any(|found| found.contains(fault)), "{file}: {text}: {found:?}");
    }
    let circle =
        faults_of(&[("src/cell/a.rs", "use super::b::B;"), ("src/cell/b.rs", "use crate::cell::a::A;")]);
    assert_eq!(circle, ["a circle of imports: src/cell/a.rs -> src/cell/b.rs"]);
}

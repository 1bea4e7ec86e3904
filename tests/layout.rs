//! The sources keep to the layout of the tree: who may name whom, no circles, atomics in one room, short files and
//! lines, and one name for each condition. `ROOMS` below is the rule; docs/ARCHITECTURE.md draws it.
//!
//! A name counts where it is written in code: `use` lines and paths that start with `crate`, `super` or a child
//! module, followed through `pub use` to the file that defines it; methods that one file adds to a type of another
//! count as naming that file. Comments and the links in them do not count. A `pub use` hands a name on: it counts for
//! the rooms, and for circles only where the file uses the name itself. What macros make is not seen.

#[path = "layout/graph.rs"]
mod graph;
#[path = "layout/source.rs"]
mod source;

use std::collections::BTreeMap;
use std::path::Path;

use graph::Graph;

/// The rooms of src from the top down, each with what it may name: rooms above it, or single files of them.
const ROOMS: &[(&str, &[&str])] = &[
    ("time", &[]),
    ("sync", &[]),
    ("cpu", &["sync"]),
    ("limit", &["time"]),
    ("answer", &["time", "limit"]),
    ("algorithms", &["time", "limit", "answer"]),
    ("http", &["time", "limit", "answer"]),
    ("keys", &["cpu"]),
    ("cell", &["time", "sync", "limit", "answer", "algorithms"]),
    ("table", &["time", "sync", "cpu", "limit", "answer", "algorithms", "keys"]),
    // Of sync only the mode of a table.
    ("combine", &["sync/access", "limit", "answer", "keys", "cell", "table"]),
    // Cells have small forms too; of the table only what a caller chooses or is told.
    ("small", &["sync", "limit", "answer", "algorithms", "cell", "table/policy", "table/error"]),
    // The memory that it gives is made of lines.
    ("host", &["table/image"]),
    (
        "capi",
        &[
            "time",
            "sync",
            "cpu",
            "limit",
            "answer",
            "algorithms",
            "http",
            "keys",
            "cell",
            "table",
            "combine",
            "small",
            "host",
        ],
    ),
    (
        "lib",
        &[
            "time",
            "sync",
            "cpu",
            "limit",
            "answer",
            "algorithms",
            "http",
            "keys",
            "cell",
            "table",
            "combine",
            "small",
            "host",
            "capi",
        ],
    ),
];

/// Files for tests (`*_tests.rs`, `loom_*.rs`, `mod tests`) may also name these: what all models stand on.
const TESTS_MAY_NAME: &[&str] = &["table/loom_kit"];

/// Of the algorithms' room: what all may name (states, powers of two), and the list that names all. No algorithm names
/// another.
const ALGORITHMS_SHARE: &[&str] = &["algorithms/state.rs", "algorithms/any.rs", "algorithms/exp2.rs"];

/// What an algorithm may not say, as whole words: it is a pure function.
const IMPURE: &[&str] = &[
    "unsafe",
    "sync",
    "Ordering",
    "AtomicU32",
    "AtomicU64",
    "UnsafeCell",
    "Instant",
    "SystemTime",
    "host",
    "asm",
];

/// Longest file of src, in lines, and longest line of the folders below, in columns.
const LINES: usize = 450;
const COLUMNS: usize = 120;

/// Files that may be longer, with the reason.
const LONG_FILES: &[(&str, &str)] = &[];

/// Folders whose lines are short. In Markdown the rows of tables may be longer.
const FOLDERS: &[&str] = &[
    "src",
    "tests",
    "include",
    "ffi-tests",
    "benches",
    "demo",
    "examples",
    "tools",
    "docs",
    "cluster",
    "fuzz",
];

/// Kinds of files whose lines are as long as their data.
const DATA: &[&str] = &["tsv", "svg", "lock", "abi", "hex"];

/// What is not yet as it should be: beginning of the file's name, and rule. A line that excuses nothing is a fault.
const LATER: &[(&str, &str)] = &[];

/// A rule that a file breaks.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Fault {
    file: String,
    rule: &'static str,
    what: String,
}

/// All files are `(name from the root, text)`.
fn faults(files: &[(String, String)]) -> Vec<Fault> {
    let sources: Vec<_> =
        files.iter().filter(|(file, _)| file.starts_with("src/") && file.ends_with(".rs")).cloned().collect();
    let graph = Graph::of(&sources);
    let mut faults = Vec::new();
    let mut fault = |file: &str, rule, what| faults.push(Fault { file: file.into(), rule, what });
    rooms(&graph, &mut fault);
    for circle in graph.circles() {
        fault(&graph.sources[circle[0]].file, "circle", graph.describe(&circle));
    }
    words(&graph, &mut fault);
    conditions(&graph, &mut fault);
    lengths(files, &mut fault);
    faults.sort();
    faults
}

type Report<'a> = dyn FnMut(&str, &'static str, String) + 'a;

fn rooms(graph: &Graph, fault: &mut Report<'_>) {
    for source in &graph.sources {
        if !ROOMS.iter().any(|(room, _)| *room == source.room()) {
            fault(&source.file, "room", format!("no room {} in the table of rooms", source.room()));
        }
    }
    for edge in &graph.edges {
        let (from, to) = (&graph.sources[edge.from], &graph.sources[edge.to]);
        let (here, there) = (from.room(), to.room());
        let may = ROOMS.iter().find(|(room, _)| *room == here).map_or(&[][..], |(_, may)| may);
        let tests_may = if edge.test { TESTS_MAY_NAME } else { &[] };
        let named = to.file.trim_start_matches("src/").trim_end_matches(".rs");
        let named = named.strip_suffix("/mod").unwrap_or(named);
        if here != there && !may.iter().chain(tests_may).any(|may| *may == there || *may == named) {
            fault(
                &from.file,
                "room",
                format!("line {}: {} is in {}, which {here} does not name", edge.line, edge.path, to.file),
            );
        }
        if here == "algorithms"
            && there == here
            && !to.file.ends_with("/mod.rs")
            && !ALGORITHMS_SHARE.iter().any(|file| to.file.ends_with(file) || from.file.ends_with(file))
            && !edge.test
            && !edge.passed_on
        {
            fault(&from.file, "pure", format!("line {}: {} is of a sibling", edge.line, edge.path));
        }
    }
}

/// Atomics are named in `sync`, and nothing impure in `algorithms`. Tests may count with atomics of their own.
fn words(graph: &Graph, fault: &mut Report<'_>) {
    for source in graph.sources.iter().filter(|source| !source.is_test()) {
        let room = source.room();
        for named in &source.named {
            let path = named.path.join("::");
            let outside = ["core::sync", "std::sync", "portable_atomic", "loom::sync"];
            if room != "sync" && outside.iter().any(|start| path.starts_with(start)) {
                fault(&source.file, "atomics", format!("line {}: {path} outside of sync", named.line));
            }
        }
        if room == "algorithms" {
            for (token, line) in source.tokens.iter().filter(|(token, _)| IMPURE.contains(&token.as_str())) {
                fault(&source.file, "pure", format!("line {line}: {token}"));
            }
        }
    }
}

/// A condition on the target that stands in two places has a name, and so has everything about Miri.
fn conditions(graph: &Graph, fault: &mut Report<'_>) {
    let mut seen: BTreeMap<String, (String, usize)> = BTreeMap::new();
    for source in &graph.sources {
        for (condition, line) in source.conditions() {
            if condition.contains("miri") {
                fault(
                    &source.file,
                    "condition",
                    format!("line {line}: {condition}: build.rs names what Miri is kept from"),
                );
            }
            if condition.contains("target_") && condition.contains(',') {
                // What is asked, or its contrary.
                let asked =
                    condition.strip_prefix("not(").and_then(|c| c.strip_suffix(')')).unwrap_or(&condition);
                if let Some((file, other)) = seen.insert(asked.into(), (source.file.clone(), line)) {
                    fault(
                        &source.file,
                        "condition",
                        format!("line {line}: {asked} also in {file}, line {other}: name it in build.rs"),
                    );
                }
            }
        }
    }
}

fn lengths(files: &[(String, String)], fault: &mut Report<'_>) {
    for (file, text) in files {
        let lines = text.lines().count();
        if file.starts_with("src/") && lines > LINES && !LONG_FILES.iter().any(|(long, _)| long == file) {
            fault(file, "lines", format!("{lines} lines, {LINES} at most"));
        }
        let kind = file.rsplit('.').next().unwrap_or("");
        for (i, line) in text.lines().enumerate().filter(|_| !DATA.contains(&kind)) {
            let columns = line.chars().count();
            let row = kind == "md" && line.trim_start().starts_with('|');
            if columns > COLUMNS && !row {
                fault(file, "columns", format!("line {}: {columns} columns, {COLUMNS} at most", i + 1));
            }
        }
    }
}

/// Every text file below a folder of the repository.
fn read(folder: &Path, name: &str, files: &mut Vec<(String, String)>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let (path, name) = (entry.path(), format!("{name}/{}", entry.file_name().to_string_lossy()));
        if path.is_dir() {
            if entry.file_name() != "target" {
                read(&path, &name, files);
            }
        } else if let Ok(text) = std::fs::read_to_string(&path) {
            files.push((name, text));
        }
    }
}

fn repository() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    FOLDERS.iter().for_each(|folder| read(&root.join(folder), folder, &mut files));
    files.sort();
    files
}

#[test]
fn the_sources_keep_to_the_layout() {
    let files = repository();
    assert!(files.iter().any(|(file, _)| file == "src/lib.rs"), "no sources found");
    let mut wrong = Vec::new();
    let mut excused = vec![0; LATER.len()];
    for fault in faults(&files) {
        let excuse =
            LATER.iter().position(|(file, rule)| fault.file.starts_with(file) && fault.rule == *rule);
        match excuse {
            Some(i) => excused[i] += 1,
            None => wrong.push(format!("{}: {}: {}", fault.file, fault.rule, fault.what)),
        }
    }
    for ((file, rule), _) in LATER.iter().zip(&excused).filter(|(_, count)| **count == 0) {
        wrong.push(format!("{file}: {rule}: nothing left to excuse, take the line out of LATER"));
    }
    for (file, _) in LONG_FILES {
        if !files.iter().any(|(name, text)| name == file && text.lines().count() > LINES) {
            wrong.push(format!("{file}: lines: not long, take it out of LONG_FILES"));
        }
    }
    assert!(wrong.is_empty(), "{} faults\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn arrows_between_rooms_run_one_way() {
    for (i, (room, may)) in ROOMS.iter().enumerate() {
        for named in *may {
            let top = named.split('/').next().unwrap_or("");
            let at = ROOMS.iter().position(|(room, _)| *room == top).expect("a room of the table");
            assert!(at < i, "{room} may name {named}, which is not above it");
            assert!(top != "capi" || *room == "lib", "{room} names capi");
        }
    }
}

/// Faults of made-up sources, as "file: rule".
fn found(files: &[(&str, &str)]) -> Vec<String> {
    let files: Vec<_> = files.iter().map(|(file, text)| (file.to_string(), text.to_string())).collect();
    faults(&files).iter().map(|fault| format!("{}: {}", fault.file, fault.rule)).collect()
}

#[test]
fn sound_sources_have_no_fault() {
    let row = format!("| {} |", "x".repeat(COLUMNS));
    let sound = [
        ("src/lib.rs", "mod cell;\nmod limit;\nmod sync;\npub use cell::Cell;\npub use limit::Limit;"),
        ("src/limit/mod.rs", "mod spec;\npub use spec::Spec;\npub struct Limit;"),
        ("src/limit/spec.rs", "/// Builds a [`Limit`](crate::Cell).\npub struct Spec; // crate::cell::Cell"),
        ("src/sync/mod.rs", "pub use core::sync::atomic::AtomicU64;"),
        (
            "src/cell/mod.rs",
            "use crate::limit::Limit;\nuse crate::sync::AtomicU64;\npub struct Cell(AtomicU64, Limit);\n\
             #[cfg(test)]\nmod tests { use super::*; const SAID: &str = \"crate::capi::Code\"; }",
        ),
        ("src/cell/loom_cells.rs", "use crate::Cell;\nuse crate::table::loom_kit::race;"),
        ("src/table/mod.rs", "pub mod loom_kit;"),
        ("src/table/loom_kit.rs", "use std::sync::Arc;\npub fn race() {}"),
        ("docs/GUIDE.md", &row),
    ];
    assert_eq!(found(&sound), Vec::<String>::new());
}

#[test]
fn each_fault_is_found() {
    let long = format!("// {}\n", "x".repeat(COLUMNS));
    let many = "//\n".repeat(LINES + 1);
    /// What is wrong, the sources, where and what the fault is.
    type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a [&'a str]);
    let cases: &[Case<'_>] = &[
        (
            "an arrow up",
            &[("src/limit/mod.rs", "use crate::cell::Cell;"), ("src/cell/mod.rs", "pub struct Cell;")],
            &["src/limit/mod.rs: room"],
        ),
        (
            "an arrow up in a path, a type or a macro",
            &[
                ("src/limit/mod.rs", "macro_rules! m { () => { $crate::cell::make() } }"),
                ("src/answer/mod.rs", "pub fn f() -> super::cell::Cell { todo() }"),
                ("src/cell/mod.rs", "pub struct Cell;"),
            ],
            &["src/answer/mod.rs: room", "src/limit/mod.rs: room"],
        ),
        (
            "a name that the root hands on",
            &[
                ("src/lib.rs", "mod cell;\npub use cell::Cell;"),
                ("src/time.rs", "use crate::{Cell as Word};"),
                ("src/cell/mod.rs", "pub struct Cell;"),
            ],
            &["src/time.rs: room"],
        ),
        (
            "a file of a room where another one is allowed",
            &[
                ("src/small/mod.rs", "use crate::table::{policy::Policy, set::Set};"),
                ("src/table/mod.rs", "mod policy;\nmod set;"),
                ("src/table/policy.rs", "pub enum Policy {}"),
                ("src/table/set.rs", "pub struct Set;"),
            ],
            &["src/small/mod.rs: room"],
        ),
        (
            "capi named",
            &[("src/host/mod.rs", "use crate::capi::Code;"), ("src/capi/mod.rs", "pub struct Code;")],
            &["src/host/mod.rs: room"],
        ),
        ("a room that nobody knows", &[("src/misc/mod.rs", "")], &["src/misc/mod.rs: room"]),
        (
            "a circle of three files",
            &[
                ("src/table/mod.rs", "mod a;\nmod b;\nmod c;\npub use c::C;"),
                ("src/table/a.rs", "use super::b::B;\npub struct A(B);"),
                ("src/table/b.rs", "use super::C;\npub struct B(C);"),
                ("src/table/c.rs", "pub struct C(*const crate::table::a::A);"),
            ],
            &["src/table/a.rs: circle"],
        ),
        (
            "a circle of a folder and its file",
            &[
                ("src/cell/mod.rs", "mod lease;\npub use lease::Lease;\npub struct Cell(Lease);"),
                ("src/cell/lease.rs", "use super::Cell;\npub struct Lease;"),
            ],
            &["src/cell/mod.rs: circle"],
        ),
        (
            "a circle through a method",
            &[
                ("src/table/mod.rs", "mod set;\nmod insert;\nmod settle;"),
                ("src/table/set.rs", "pub struct Set;"),
                ("src/table/insert.rs", "use super::set::Set;\npub struct Ask;\nfn run(s: &Set) { s.settle(Ask) }"),
                (
                    "src/table/settle.rs",
                    "use super::{insert::Ask, set::Set};\nimpl Set { pub(super) fn settle(&self, _: Ask) {} }",
                ),
            ],
            &["src/table/insert.rs: circle"],
        ),
        (
            "an algorithm that is not pure",
            &[
                ("src/algorithms/mod.rs", "pub mod one;\npub mod two;"),
                ("src/algorithms/one.rs", "use super::two::Two;"),
                ("src/algorithms/two.rs", "pub struct Two;\nfn f(p: *const u8) -> u8 { unsafe { *p } }"),
            ],
            &["src/algorithms/one.rs: pure", "src/algorithms/two.rs: pure"],
        ),
        (
            "atomics outside of sync",
            &[
                ("src/cell/mod.rs", "use core::sync::atomic::{AtomicU64, Ordering};"),
                ("src/table/mod.rs", "fn f(x: &portable_atomic::AtomicU64) {}"),
            ],
            &["src/cell/mod.rs: atomics", "src/cell/mod.rs: atomics", "src/table/mod.rs: atomics"],
        ),
        (
            "a condition without a name",
            &[
                ("src/time.rs", "#[cfg(all(unix, target_os = \"linux\"))] fn f() {}\n#[cfg(miri)] fn g() {}"),
                ("src/cpu.rs", "#[cfg(not(all(unix, target_os = \"linux\")))] fn f() {}"),
            ],
            &["src/cpu.rs: condition", "src/time.rs: condition"],
        ),
        (
            "long lines",
            &[("src/time.rs", &long), ("tests/run", &long), ("docs/GUIDE.md", &long), ("tests/data/a.tsv", &long)],
            &["docs/GUIDE.md: columns", "src/time.rs: columns", "tests/run: columns"],
        ),
        ("a long file", &[("src/time.rs", &many), ("tests/long.rs", &many)], &["src/time.rs: lines"]),
    ];
    for (what, files, faults) in cases {
        assert_eq!(found(files), *faults, "{what}");
    }
}

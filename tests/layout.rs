//! The layout of the sources, as far as the compiler does not check it: which module may import which.
//!
//! [`ROOMS`] is the rule, and docs/ARCHITECTURE.md describes it. An import is a path in code that starts with `crate`
//! or `super`. It leaves its file's module in one folder, from one entry (a file, or a folder with all that is in it)
//! to another, and there the rule is applied. Folders without a rule may not have circles either. The file that
//! declares a folder's modules (`lib.rs`, `mod.rs`) may import all of them. Tests and models may import anything.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Folders, each with its entries in order. An entry may import those on the lines above its own; with a colon, only
/// those that follow the colon. `lib` there means names that the crate exports. A new file or folder needs a place.
const ROOMS: &str = "
src
    impossible:
    text:
    time:
    sync:
    cpu: sync
    limit: time
    answer: limit
    algorithms: limit answer
    http: text time limit answer
    keys: cpu
    cell: time sync limit answer algorithms
    table: time sync cpu limit answer algorithms keys
    metrics: text limit table
    combine: sync limit answer keys cell table
    small: sync limit answer algorithms cell table
    host: limit answer table
    capi: text limit answer algorithms http keys cell table metrics combine host
src/table
    counters error
    layout
    set
    handle
    hashing
    calls migrate overrides upkeep
    burst
src/capi
    codes
    pointers
    decision limit
    cell refusal table
    host: codes pointers limit table
    combine
    shaper
cluster/src
    axis log map piece random sync tls
    bell clock reserve streams
    counts share split waits wire
    demand line script
    error lines link verdict
    answers endpoint limit_version miss
    limit_versions store
    node
    cluster mark settle slot
    capi: cluster lib
    store_thread
    opening
    machine
    driver
    open
    sim: clock random machine wire lib
cli/src
    failure progress record units words
    key
    input
    limit
    emit: key limit units
    plan
    input_args
    replay
    show: failure progress words
    show_args: failure progress units words show
    size: failure limit units words
    check: failure size units words
    args
cli/src/input
    time packed packet
    capture: packet lib
    syslog: time lib
    dnstap json table: time lib
    pattern: syslog time lib
cli/src/show
    clock: lib
    names: lib
    counts: lib
    info: clock counts lib
    dump: clock lib
    top: clock dump names lib
    serve: clock lib
    change: clock names lib
cli/src/emit
    code programs: lib
    several: code lib
cli/src/replay
    judge:
    grpc: lib
    server: grpc lib
    answer: lib
cli/src/check
    glob: lib
    blocks: glob lib
    meaning: lib
    zones
    grammar: blocks zones lib
    nginx servers
cli/src/plan
    keys order
    curve live tiers timeline
    replay: keys live order tiers lib
    merge: lib
    reading: curve keys merge order replay timeline lib
    limits: keys replay tiers timeline lib
    report: curve keys limits order replay lib
    charts: limits report
    text html: charts limits order report lib
";

/// Most lines of a file.
const LINES: usize = 450;

/// A folder's entries: the line of each, and what it may import if that is not all above it.
type Room<'a> = BTreeMap<&'a str, (usize, Option<Vec<&'a str>>)>;

fn rooms(text: &str) -> BTreeMap<&str, Room<'_>> {
    let (mut rooms, mut folder) = (BTreeMap::<_, Room<'_>>::new(), "");
    for (number, line) in text.lines().enumerate() {
        if !line.starts_with(' ') {
            folder = line;
            continue;
        }
        let room = rooms.entry(folder).or_default();
        let (names, may) = match line.split_once(':') {
            Some((name, may)) => (name, Some(may.split_whitespace().collect::<Vec<_>>())),
            None => (line, None),
        };
        for other in may.iter().flatten() {
            let is_above = *other == "lib" || room.contains_key(other);
            assert!(is_above, "{folder}: {names} may import {other}, which does not stand above it");
        }
        room.extend(names.split_whitespace().map(|name| (name, (number, may.clone()))));
    }
    rooms
}

/// The module of a file: its path, that of the folder for `mod.rs`.
fn module(file: &str) -> Vec<&str> {
    let mut parts: Vec<_> = file.trim_end_matches(".rs").split('/').collect();
    if matches!(parts.last(), Some(&("mod" | "lib" | "main"))) {
        parts.pop();
    }
    parts
}

fn is_test(file: &str) -> bool {
    file.ends_with("tests.rs") || file.contains("/models/") || file.contains("/loom_")
}

fn is_path(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == ':'
}

/// Reads a path, or those of a group one by one, and returns the text behind them.
fn paths<'a>(text: &'a str, base: &str, found: &mut Vec<String>) -> &'a str {
    let (path, mut rest) = text.split_at(text.find(|c| !is_path(c)).unwrap_or(text.len()));
    let path = format!("{base}{path}");
    if let Some(group) = rest.strip_prefix('{') {
        rest = group.trim_start();
        while !rest.is_empty() && !rest.starts_with('}') {
            rest = paths(rest, &path, found).trim_start_matches(|c: char| c == ',' || c.is_whitespace());
        }
        return rest.strip_prefix('}').unwrap_or(rest);
    }
    found.push(path);
    // An alias or a star.
    rest.trim_start_matches(|c| c != ',' && c != '}')
}

/// The imports of a module, each with its line and its path from the root.
fn imports(module: &[&str], code: &str) -> Vec<(usize, Vec<String>)> {
    let root = module.iter().position(|part| *part == "src").map_or(0, |at| at + 1);
    let mut imports = Vec::new();
    for (at, _) in code.match_indices("crate::").chain(code.match_indices("super::")) {
        if code[..at].ends_with(|c| is_path(c) || c == '$') {
            continue;
        }
        let mut found = Vec::new();
        paths(&code[at..], "", &mut found);
        for path in &found {
            let path: Vec<_> = path.split("::").filter(|part| !matches!(*part, "" | "self")).collect();
            let up = path.iter().take_while(|part| **part == "super").count();
            let (base, rest) = if up == 0 { (root, 1) } else { (module.len().saturating_sub(up), up) };
            let to = module[..base].iter().chain(&path[rest..]).map(|part| part.to_string());
            imports.push((code[..at].matches('\n').count() + 1, to.collect()));
        }
    }
    imports
}

/// The faults of the sources, each a line that says where.
fn faults(texts: &[(String, String)], rooms: &BTreeMap<&str, Room<'_>>) -> Vec<String> {
    let modules: BTreeSet<_> = texts.iter().map(|(file, _)| module(file)).collect();
    let known = |path: &[String]| {
        modules.iter().any(|module| module.len() >= path.len() && path.iter().eq(&module[..path.len()]))
    };
    let mut faults = Vec::new();
    let mut edges = BTreeMap::<String, BTreeSet<String>>::new();
    for (file, text) in texts.iter().filter(|(file, _)| !is_test(file)) {
        if text.lines().count() > LINES {
            faults.push(format!("{file}: more than {LINES} lines: split it"));
        }
        let code: Vec<_> = text.lines().map(|line| line.split("//").next().unwrap_or("")).collect();
        let code = code.join("\n");
        let code = code.split("\nmod tests").next().unwrap_or("");
        let outside = ["core::sync", "std::sync", "portable_atomic", "loom::sync"];
        if file.starts_with("src/") && !file.starts_with("src/sync/") {
            let named = outside.iter().filter(|name| code.contains(*name));
            faults.extend(named.map(|name| format!("{file}: {name} outside of sync: use crate::sync")));
        }
        let from = module(file);
        for depth in 1..from.len() {
            let (folder, entry) = (from[..depth].join("/"), from[depth]);
            if rooms.get(&*folder).is_some_and(|room| !room.contains_key(entry)) {
                faults.push(format!("{file}: {entry} has no place in {folder}"));
            }
        }
        for (line, to) in imports(&from, code) {
            let depth = from.iter().zip(&to).take_while(|(from, to)| *from == to).count();
            let (Some(entry), Some(target)) = (from.get(depth), to.get(depth)) else { continue };
            let folder = from[..depth].join("/");
            let is_entry = known(&to[..=depth]);
            if is_entry {
                let of = |entry: &str| format!("{folder}/{entry}");
                edges.entry(of(entry)).or_default().insert(of(target));
            }
            let Some(room) = rooms.get(&*folder) else { continue };
            let is_above = |line: usize| room.get(&**target).is_some_and(|(above, _)| *above < line);
            let may = match room.get(entry) {
                Some((_, Some(may))) => may.contains(&if is_entry { &**target } else { "lib" }),
                Some((line, None)) => is_above(*line),
                None => true,
            };
            if !may {
                faults.push(format!(
                    "{file}:{line}: {entry} may not import {} ({folder})",
                    to[depth..].join("::")
                ));
            }
        }
    }
    // An entry that imports none of the others, or that none of them imports, has no part in a circle.
    let is_end = |edges: &BTreeMap<String, BTreeSet<String>>, entry: &String| {
        !edges[entry].iter().any(|to| edges.contains_key(to)) || !edges.values().any(|to| to.contains(entry))
    };
    while let Some(end) = edges.keys().find(|entry| is_end(&edges, entry)).cloned() {
        edges.remove(&end);
    }
    faults.extend((!edges.is_empty()).then(|| format!("a circle of imports among {:?}", edges.keys())));
    faults
}

/// Every Rust file below a folder of the repository.
fn read(folder: &str, found: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)).expect("a folder") {
        let entry = entry.expect("an entry");
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
    ["src", "cluster/src", "cli/src"].iter().for_each(|root| read(root, &mut texts));
    let wrong = faults(&texts, &rooms(ROOMS));
    assert!(wrong.is_empty(), "{} faults\n{}", wrong.len(), wrong.join("\n"));
}

/// Breaks each rule once, in made-up sources.
#[test]
fn each_fault_is_found() {
    let rooms = rooms("src\n    sync:\n    table:\n    cell: sync lib\nsrc/cell\n    a\n    b c");
    let found = |files: &[(&str, &str)]| {
        let texts: Vec<_> = files.iter().map(|(file, text)| (file.to_string(), text.to_string())).collect();
        faults(&texts, &rooms)
    };
    let rest =
        [("src/cell/a.rs", ""), ("src/cell/b.rs", ""), ("src/cell/c.rs", ""), ("src/table/mod.rs", "")];
    let sound = [
        ("src/lib.rs", "mod cell;\npub use crate::cell::Cell;"),
        ("src/sync/mod.rs", "pub use core::sync::atomic::AtomicU64; // crate::cell"),
        ("src/cell/mod.rs", "use crate::cell::b::B;\nmod tests {\n    use crate::table::Table;\n}"),
        ("src/cell/b.rs", "use super::a::{self, A};\nuse crate::{sync::{AtomicU64, fence}, Limit};"),
        ("src/cell/b_tests.rs", "use crate::table::Table;"),
    ];
    assert_eq!(found(&[&rest[..], &sound].concat()), Vec::<String>::new());
    let long = "\n".repeat(LINES + 1);
    for (file, text, fault) in [
        (
            "src/sync/mod.rs",
            "\nuse crate::{\n    cell::{self, C as D},\n};",
            "2: sync may not import cell (src)",
        ),
        ("src/sync/mod.rs", "fn f() -> super::cell::Cell {}", "sync may not import cell::Cell (src)"),
        ("src/cell/a.rs", "type A = super::super::table::A;", "cell may not import table::A (src)"),
        ("src/cell/a.rs", "use super::b::B;", "a may not import b::B (src/cell)"),
        ("src/cell/b.rs", "use super::c::C;", "b may not import c::C (src/cell)"),
        ("src/table/t.rs", "use crate::Limit;", "table may not import Limit (src)"),
        ("src/table/t.rs", "use core::sync::atomic::AtomicU64;", "core::sync outside of sync"),
        ("src/table/t.rs", &long, "more than 450 lines"),
        ("src/misc.rs", "", "misc has no place in src"),
        ("src/cell/d.rs", "", "d has no place in src/cell"),
        ("src/table/t.rs", "use super::u::U;", "circle of imports among [\"src/table/t\", \"src/table/u\"]"),
    ] {
        let other = ("src/table/u.rs", "use crate::table::t::T;");
        let found = found(&[&rest[..], &[other, ("src/table/t.rs", ""), (file, text)]].concat());
        assert!(found.iter().any(|found| found.contains(fault)), "{file}: {text}: {found:?}");
    }
}

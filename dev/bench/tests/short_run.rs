//! A short run of the bench: rows decide what their names say, its files are complete, goals are judged. No test
//! depends on a time. The rows in C need `make lib` and `make -C dev own-peers`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Rows of every kind, by parts of their names.
const ROWS: &str =
    "cell.,floor.cmp,floor.load,floor.denied,floor.store,floor1e3.,table1e3.,c.conforming,c.single1e3,\
                    c.floor,threads.denied,threads.floorown,peer.governor,peer1e3.foldhash";

/// One row of every kind must be in the file.
const KINDS: [&str; 4] = ["cell.conforming", "table1e3.ahead64", "peer.governor_denied", "c.single1e3"];

/// An empty folder of this test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// What the bench printed. It fails if a row decides something else than its name says.
fn bench(arguments: &[&str]) -> String {
    let done = Command::new(env!("CARGO_BIN_EXE_tatcell-bench")).arg("run").args(arguments).output();
    let done = done.expect("the bench starts");
    let text = String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned();
    assert!(done.status.success(), "{}\n{text}", done.status);
    text
}

/// The report, the table and the chart of one run, which all tests share.
fn run() -> &'static [String; 3] {
    static RUN: OnceLock<[String; 3]> = OnceLock::new();
    RUN.get_or_init(|| {
        let (folder, root) = (folder("short_run"), Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
        let path = |path: PathBuf| path.to_str().expect("a path of UTF-8").to_owned();
        let (tsv, svg) = (path(folder.join("bench.tsv")), path(folder.join("bench.svg")));
        let lib = path(root.join("target/c/libtatcell.so"));
        let text = bench(&["--seconds", "1", "--only", ROWS, "--lib", &lib, "--tsv", &tsv, "--svg", &svg]);
        let read = |path: &str| std::fs::read_to_string(path).expect("the run has written it");
        [text, read(&tsv), read(&svg)]
    })
}

#[test]
fn every_row_decides_what_its_name_says() {
    run();
}

#[test]
fn the_table_has_rows_of_every_kind() {
    let rows: Vec<&str> = run()[1].lines().filter_map(|line| line.split('\t').next()).collect();
    let lost: Vec<&str> = KINDS.into_iter().filter(|kind| !rows.contains(kind)).collect();
    assert!(lost.is_empty(), "without {lost:?}");
}

#[test]
fn the_chart_is_well_formed() {
    roxmltree::Document::parse(&run()[2]).expect("XML");
}

#[test]
fn the_goals_are_judged() {
    let goal = run()[0].lines().find(|line| line.contains("cell.conforming / floor.cmpxchg"));
    let goal = goal.expect("a goal in the report");
    assert!(goal.contains("met") || goal.contains("MISSED"), "{goal}");
}

#[test]
fn a_run_is_compared_with_the_baseline_of_its_own_processor_alone() {
    let folder = folder("compared");
    let compared = |table: &str| {
        std::fs::write(folder.join("then.tsv"), table).expect("a file");
        let baseline = folder.to_str().expect("a path of UTF-8");
        bench(&["--seconds", "0", "--only", "floor.cmp", "--baseline", baseline])
    };
    let table = &run()[1];
    let same = compared(table);
    assert!(same.contains("COMPARED with ") && same.contains(" rows in common, "), "{same}");
    assert!(!same.contains(" 0 rows in common"), "{same}");
    for field in ["family", "model", "features"] {
        let mark = format!("# {field}: ");
        assert!(table.contains(&mark), "{table}");
        let text = compared(&table.replace(&mark, &format!("{mark}9")));
        assert!(text.contains("no baseline of this processor"), "{text}");
    }
}

//! `tatcell size`: against numbers that are known, and against tables of the library.

use std::process::{Command, Output};

use serde_json::Value;
use tatcell::{lines_for_load, LimitSpec, Line, Table, TableOptions};

use crate::program::PROGRAM;

fn run(arguments: &[&str]) -> Output {
    Command::new(PROGRAM).arg("size").args(arguments).output().expect("the program runs")
}

fn json(arguments: &[&str]) -> Value {
    let output = run(&[arguments, &["--json"]].concat());
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{arguments:?}: {error}: {output:?}"))
}

#[test]
fn keys_a_second_and_the_time_of_their_debt_make_the_size() {
    // 20 units at 5 a second hold a slot for 4 s; so 1000 a second are 4000 at a time, and 200 if each spends one.
    let size = json(&["-l", "5/s burst 20", "-n", "1000"]);
    assert_eq!((&size["live"], &size["hold_seconds"]), (&4000.into(), &4.0.into()));
    assert_eq!(size["bytes"], 64 * lines_for_load(4000, 1000));
    assert_eq!(size["bytes_of_one_unit"], 64 * lines_for_load(200, 1000));
    assert_eq!(size["slots"].as_u64().map(|slots| 8 * slots + 128), size["bytes"].as_u64());
    let chance = size["full_set_chance"].as_f64().expect("a number");
    assert!(chance > 5e-7 && chance <= 1e-6, "{chance}");
    assert_eq!(json(&["-l", "5/s burst 20", "-n", "1000", "-u", "5"])["live"], 1000);
    assert_eq!(json(&["-l", "5/s burst 20", "-n", "1000", "-a", "50"])["live"], 4050);
    assert_eq!(json(&["-l", "5/s burst 20", "-a", "50"])["live"], 50);
    // A fixed window holds its slot until it ends, a sliding one for two.
    assert_eq!(json(&["-l", "fixed 100/min", "-n", "10"])["live"], 600);
    assert_eq!(json(&["-l", "sliding 100/min", "-n", "10"])["live"], 1200);
    // The limit with the longest debt counts.
    assert_eq!(json(&["-l", "100/s burst 10", "-l", "1/s burst 60", "-n", "10"])["live"], 600);
}

/// The largest burst is one that a table of the library takes, and one more is one that it refuses.
#[test]
fn what_fits_is_what_a_table_takes() {
    for (rate, units) in [("100000000/s", 100_000_000), ("1000000/s", 1_000_000)] {
        for bits in [12u32, 20, 24] {
            let size = json(&["-l", &format!("{rate} burst 1"), "-n", "1", "--tag-bits", &bits.to_string()]);
            let largest = size["fit"]["largest_burst"].as_u64().expect("a burst");
            let takes = |burst| {
                let fast = LimitSpec::new(units, 1_000_000_000, 1);
                let options = TableOptions::new(fast).slowest(fast.burst(burst)).tag_bits(bits).seed([1; 16]);
                let lines = [const { Line::EMPTY }; 4];
                Table::init(&lines, &options).is_ok()
            };
            assert!(takes(largest) && !takes(largest + 1), "{rate}, {bits} bits: {largest}");
        }
    }
}

#[test]
fn what_does_not_fit_ends_with_1_and_the_change_that_helps() {
    let output = run(&["-l", "10000000/s", "-l", "1/s burst 60", "-n", "1"]);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("do not fit with 20 tag bits: take 19, or a smaller burst"), "{message}");
    assert!(!output.stdout.is_empty(), "the answer comes first");
    assert_eq!(
        run(&["-l", "10000000/s", "-l", "1/s burst 60", "-n", "1", "--tag-bits", "19"]).status.code(),
        Some(0)
    );
    let output = run(&["-l", "1/s burst 60", "-n", "1000000000000"]);
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && message.contains("no table is large enough for"), "{message}");
}

#[test]
fn arguments_that_cannot_be_used_end_with_2() {
    for (arguments, want) in [
        (&["-n", "1"][..], "--limit <LIMIT>"),
        (&["-l", "1/s"], "--new-keys <COUNT>"),
        (&["-l", "1/fortnight", "-n", "1"], "limit \"1/fortnight\": byte 2: not a unit of time"),
        (&["-l", "1/s", "-n", "1", "--tag-bits", "11"], "11 is not in 12..=24"),
        (&["-l", "1/s", "-n", "1", "--target", "0"], "0 is not in 1..=1000000000"),
        (&["-l", "1/s", "-l", "fixed 1/s", "-n", "1"], "\"fixed 1/s\" has no place next to the others: "),
    ] {
        let output = run(arguments);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.contains(want), "{arguments:?}: {message}");
    }
}

#[test]
fn text_has_the_numbers_of_the_json() {
    let arguments = ["-l", "5/s burst 20", "-n", "1000"];
    let text = String::from_utf8(run(&arguments).stdout).expect("text");
    let size = json(&arguments);
    for want in [
        format!("({} slots)", size["slots"]),
        format!("at most {} keys in debt", size["live"]),
        format!("with up to {} tag bits", size["fit"]["most_tag_bits"]),
        format!("the largest burst that fits is {}", size["fit"]["largest_burst"]),
    ] {
        assert!(text.contains(&want), "{want:?} in\n{text}");
    }
}

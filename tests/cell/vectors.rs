//! Test vectors of other projects and standards, replayed through every form.

use crate::common::forms::{self, Form};
use tatcell::{LimitSpec, Outcome};

/// Copied from the shared sample of peers' own tests; the last column names the source.
const PEERS: &str = include_str!("../data/vectors.tsv");

struct Row {
    vector: String,
    t_ns: u64,
    burst: u64,
    now_ns: u64,
    cost: u32,
    verdict: String,
    remaining: u64,
    reset_ns: u64,
    retry: String,
    line: usize,
}

fn rows() -> Vec<Row> {
    let parse = |(line, text): (usize, &str)| {
        let f: Vec<&str> = text.split('\t').collect();
        assert_eq!(f.len(), 11, "line {line}: 11 columns");
        let number = |i: usize| f[i].parse().unwrap_or_else(|_| panic!("line {line}, column {i}"));
        Row {
            vector: f[0].into(),
            t_ns: number(1),
            burst: number(2),
            now_ns: number(4),
            cost: number(5) as u32,
            verdict: f[6].into(),
            remaining: number(7),
            reset_ns: number(8),
            retry: f[9].into(),
            line,
        }
    };
    let rows: Vec<Row> = PEERS
        .lines()
        .enumerate()
        .map(|(i, l)| (i + 1, l))
        .filter(|(_, l)| !l.starts_with('#'))
        .map(parse)
        .collect();
    assert!(rows.len() >= 37, "the whole sample");
    rows
}

/// Replays all rows with ticks of `tick_ns`, offset by `start` ticks, through the forms that `which` names.
fn replay(tick_ns: u64, start: u64, which: &[&str]) {
    let mut replayed = std::collections::BTreeMap::new();
    let mut forms: Vec<Box<dyn Form>> = Vec::new();
    let mut current = String::new();
    for row in rows() {
        if row.vector != current {
            current = row.vector.clone();
            forms = forms::all(&LimitSpec::new(1, row.t_ns / tick_ns, row.burst));
            forms.retain(|f| which.contains(&f.name()));
            assert_eq!(forms.len(), which.len(), "{current}: a form does not fit");
        }
        for time in [row.t_ns, row.now_ns, row.reset_ns] {
            assert_eq!(time % tick_ns, 0, "line {}: not a whole tick", row.line);
        }
        let now = start.wrapping_add(row.now_ns / tick_ns);
        let retry = match row.retry.as_str() {
            "" => 0,
            "never" => u64::MAX,
            ns => ns.parse::<u64>().unwrap() / tick_ns,
        };
        let outcome = match row.verdict.as_str() {
            "ok" => Outcome::Conforming,
            "deny" => Outcome::NonConforming { retry_after: retry },
            "never" => Outcome::Never,
            other => panic!("line {}: verdict {other}", row.line),
        };
        for form in &mut forms {
            let place = format!("line {} {} {}", row.line, row.vector, form.name());
            let peek = form.peek(now, row.cost);
            assert_eq!(peek.outcome(), outcome, "{place}: peek");
            let d = form.check_ex(now, row.cost, 0);
            assert_eq!(d.outcome(), outcome, "{place}");
            assert_eq!(d.burst, row.burst, "{place}: limit");
            assert_eq!(d.remaining, row.remaining, "{place}: remaining");
            assert_eq!(d.reset_after, row.reset_ns / tick_ns, "{place}: reset");
            assert_eq!(d.retry_after, retry, "{place}: retry");
            *replayed.entry(form.name()).or_insert(0) += 1;
        }
    }
    assert!(replayed.values().all(|&n| n >= 37), "{replayed:?}");
}

#[test]
fn peers_vectors_hold_in_every_form_at_nanosecond_ticks() {
    // A 32-bit word of nanoseconds spans 4.3 s, less than the vectors last: it replays them in milliseconds below.
    replay(1, 0, &["Cell", "ExclusiveCell", "Table", "ExclusiveTable"]);
    replay(1, 1 << 40, &["Cell", "ExclusiveCell", "Table", "ExclusiveTable"]);
}

#[test]
fn peers_vectors_hold_in_every_form_at_millisecond_ticks() {
    // Every time of the sample is a whole millisecond (asserted), so the short word loses nothing.
    let every = ["Cell", "ExclusiveCell", "Cell32", "Table", "ExclusiveTable"];
    replay(1_000_000, 0, &every);
    replay(1_000_000, u32::MAX as u64 - 3_000, &every);
    replay(1_000_000, u64::MAX - 3_000, &every);
}

#[test]
fn peers_vectors_hold_for_the_short_outcome_too() {
    for row in rows().iter().filter(|r| r.vector == "A1-A4") {
        // Every prefix afresh: the plain path must leave the same state behind.
        for mut form in forms::all(&LimitSpec::new(1, row.t_ns / 1_000_000, row.burst)) {
            for earlier in rows().iter().filter(|r| r.vector == "A1-A4" && r.line <= row.line) {
                let outcome = form.check(earlier.now_ns / 1_000_000, earlier.cost);
                assert_eq!(
                    outcome.passes(),
                    earlier.verdict == "ok",
                    "{} line {}",
                    form.name(),
                    earlier.line
                );
            }
            let after = form.peek(row.now_ns / 1_000_000, 0);
            assert_eq!((after.remaining, after.reset_after), (row.remaining, row.reset_ns / 1_000_000));
        }
    }
}

#[test]
fn itu_i371_vector_gives_c_c_c_c_n() {
    // T = 10 and tau = 15, so L = tau + T = 25: units of 5 ticks, burst 5, requests of two units.
    let vector = [(0, true, 10), (12, true, 22), (18, true, 32), (20, true, 42), (25, false, 42)];
    for mut form in forms::all(&LimitSpec::new(1, 5, 5)) {
        for (now, conforms, tat) in vector {
            let d = form.check_ex(now, 2, 0);
            assert_eq!(d.passes(), conforms, "{} at {now}", form.name());
            assert_eq!(now + d.reset_after, tat, "{} at {now}: TAT", form.name());
        }
        assert_eq!(form.check(25, 2), Outcome::NonConforming { retry_after: 2 }, "{}", form.name());
        assert_eq!(form.check(27, 2), Outcome::Conforming, "{}", form.name());
    }
}

#[test]
fn linear_limiter_admits_q_a_over_a_minus_1() {
    // A client at a times the rate passes until q * a / (a - 1) requests (vector V5; the last interval is discrete:
    // the n-th request comes at (n - 1) T / a, so n (a - 1) <= q a - 1).
    for (q, a) in [(10u64, 2u64), (100, 2), (100, 3), (64, 5), (1000, 2), (20, 4)] {
        let t = 60 * a;
        for mut form in forms::all(&LimitSpec::new(1, t, q)) {
            let mut passed = 0;
            while form.check(passed * (t / a), 1).passes() {
                passed += 1;
            }
            assert_eq!(passed, (q * a - 1) / (a - 1), "{} q {q} a {a}", form.name());
            assert!(passed.abs_diff(q * a / (a - 1)) <= 1, "{} q {q} a {a}", form.name());
        }
    }
}

#[test]
fn ieee_802_1qcr_eligibility_times_are_departures() {
    // CIR 1 byte a tick, CBS 3000, frames of 1500 at 0, 0, 0 and 5000; bucketEmpty = TAT - CBS.
    let spec = LimitSpec::new(1, 1, 3_000).max_delay(10_000);
    let vector = [(0u64, 0u64, -1500i64), (0, 0, 0), (0, 1500, 1500), (5000, 5000, 3500)];
    for mut form in forms::all(&spec) {
        for (arrival, eligible, empty) in vector {
            let d = form.reserve(arrival, 1500);
            assert_eq!((d.outcome(), d.departure), (Outcome::Conforming, eligible), "{}", form.name());
            let tat = arrival + form.peek(arrival, 0).reset_after;
            assert_eq!(tat as i64 - 3_000, empty, "{}", form.name());
        }
    }
}

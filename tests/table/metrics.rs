//! The text for Prometheus: what it says, to the byte.

use tatcell::metrics::{write_text, Format, TableMetrics};
use tatcell::{Counters, LimitSpec, Line, Stats, Table, TableInfo, TableOptions};

fn text(tables: &[TableMetrics<'_>], format: Format) -> String {
    let mut out = String::new();
    write_text(tables, format, &mut out).expect("a String takes all");
    out
}

/// The info of a small table whose ticks are these.
fn info(tick_hz: u64) -> TableInfo {
    let memory = [Line::EMPTY; 4];
    let options = TableOptions::new(LimitSpec::new(10, 1_000, 20)).seed([7; 16]).tick_hz(tick_hz);
    Table::init(&memory, &options).expect("a table").info()
}

fn counters() -> Counters {
    Counters {
        conforming: 1,
        soft: 2,
        shadow: 3,
        non_conforming: u64::MAX,
        never: 5,
        contended: 6,
        untracked: 7,
        inherited: 8,
        forgiven: 9,
        inserted: 10,
        reserved: [99; 6],
    }
}

fn stats() -> Stats {
    let debt = [99; 8];
    let counts =
        Stats { slots: 16, live: 8, claims: 1, expired: 2, full_sets: 3, exemptions: 3, ..Stats::default() };
    Stats { load_ppm: 500_000, debt, longest: 2_500, ..counts }
}

const PROMETHEUS: &str = r#"# TYPE tatcell_requests_total counter
# HELP tatcell_requests_total Requests by verdict.
tatcell_requests_total{table="pages",verdict="conforming"} 1
tatcell_requests_total{table="pages",verdict="non_conforming"} 18446744073709551615
tatcell_requests_total{table="pages",verdict="never"} 5
tatcell_requests_total{table="pages",verdict="shadow"} 3
tatcell_requests_total{table="pages",verdict="contended"} 6
# TYPE tatcell_soft_requests_total counter
# HELP tatcell_soft_requests_total Conforming requests above the soft threshold.
tatcell_soft_requests_total{table="pages"} 2
# TYPE tatcell_full_set_requests_total counter
# HELP tatcell_full_set_requests_total Requests of new keys whose set was full, by what the policy did.
tatcell_full_set_requests_total{table="pages",outcome="untracked"} 7
tatcell_full_set_requests_total{table="pages",outcome="inherited"} 8
tatcell_full_set_requests_total{table="pages",outcome="forgiven"} 9
# TYPE tatcell_new_keys_total counter
# HELP tatcell_new_keys_total New keys that got a slot.
tatcell_new_keys_total{table="pages"} 10
# TYPE tatcell_slots gauge
# HELP tatcell_slots Slots of the table.
tatcell_slots{table="pages"} 16
# TYPE tatcell_live_keys gauge
# HELP tatcell_live_keys Slots with a live key.
tatcell_live_keys{table="pages"} 8
# TYPE tatcell_expired_keys gauge
# HELP tatcell_expired_keys Slots whose key has drained; as good as empty.
tatcell_expired_keys{table="pages"} 2
# TYPE tatcell_claims gauge
# HELP tatcell_claims Inserts in progress, and abandoned ones.
tatcell_claims{table="pages"} 1
# TYPE tatcell_full_sets gauge
# HELP tatcell_full_sets Sets of 16 slots of which a new key could take none.
tatcell_full_sets{table="pages"} 3
# TYPE tatcell_full_set_probability gauge
# HELP tatcell_full_set_probability The chance that a new key finds its set full, at this load.
tatcell_full_set_probability{table="pages"} 0.004529832
# TYPE tatcell_longest_debt_seconds gauge
# HELP tatcell_longest_debt_seconds Time until the key that owes most has its burst again.
tatcell_longest_debt_seconds{table="pages"} 2.500000000
# TYPE tatcell_table_memory_bytes gauge
# HELP tatcell_table_memory_bytes Bytes of the table, header included.
tatcell_table_memory_bytes{table="pages"} 256
# TYPE tatcell_table_info gauge
# HELP tatcell_table_info What the table is.
tatcell_table_info{table="pages",algorithm="gcra",policy="admit",tag_bits="20"} 1
"#;

fn pages() -> TableMetrics<'static> {
    TableMetrics::new("pages").counters(&counters()).stats(&stats()).info(&info(1_000))
}

#[test]
fn the_text_says_all_that_was_given_and_no_reserved_field() {
    assert_eq!(tatcell::full_set_ppb(500_000), 4_529_832);
    assert_eq!(text(&[pages()], Format::Prometheus), PROMETHEUS);
}

#[test]
fn open_metrics_names_families_and_units_and_ends() {
    let mut want = PROMETHEUS.replace("# TYPE tatcell_table_info gauge", "# TYPE tatcell_table_info info");
    for name in ["requests", "soft_requests", "full_set_requests", "new_keys"] {
        want = want.replace(&format!(" tatcell_{name}_total "), &format!(" tatcell_{name} "));
    }
    want = want.replace(" tatcell_table_info ", " tatcell_table ");
    for unit in ["tatcell_longest_debt_seconds", "tatcell_table_memory_bytes"] {
        let line = format!("# TYPE {unit} gauge\n");
        let name = unit.rsplit('_').next().unwrap_or_default();
        want = want.replace(&line, &format!("{line}# UNIT {unit} {name}\n"));
    }
    assert_eq!(text(&[pages()], Format::OpenMetrics), want + "# EOF\n");
    assert_eq!(text(&[], Format::OpenMetrics), "# EOF\n");
    assert_eq!(text(&[], Format::Prometheus), "");
}

#[test]
fn the_samples_of_a_family_stand_together_and_what_nobody_gave_is_left_out() {
    let tables = [
        TableMetrics::new("only a name"),
        TableMetrics::new("counted").counters(&Counters::default()),
        TableMetrics::new("seen").stats(&stats()),
        TableMetrics::new("both").counters(&Counters::default()).stats(&stats()),
    ];
    let text = text(&tables, Format::Prometheus);
    let samples = |name: &str| -> Vec<_> {
        let start = format!("{name}{{table=\"");
        text.lines().filter_map(|line| line.strip_prefix(&*start)?.split('"').next()).collect()
    };
    assert_eq!(samples("tatcell_new_keys_total"), ["counted", "both"]);
    assert_eq!(samples("tatcell_slots"), ["seen", "both"]);
    // What a tick is, nobody said.
    assert_eq!(samples("tatcell_longest_debt_seconds"), [""; 0]);
    assert!(!text.contains("tatcell_table_") && !text.contains("only a name"));
    let families = text.lines().filter(|line| line.starts_with("# TYPE")).count();
    assert_eq!((families, text.matches("# HELP").count()), (10, 10));
    let mut last = "";
    let mut seen = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split('{').next().expect("a name");
        assert!(name == last || !seen.contains(&name), "{name} comes twice");
        seen.push(name);
        last = name;
    }
}

#[test]
fn names_are_escaped() {
    let metrics = TableMetrics::new("a\"b\\c\nd\u{fc}").stats(&stats());
    let text = text(&[metrics], Format::Prometheus);
    assert!(text.contains("tatcell_slots{table=\"a\\\"b\\\\c\\nd\u{fc}\"} 16\n"), "{text}");
    assert!(text.lines().all(|line| line.starts_with('#') || line.ends_with(|c: char| c.is_ascii_digit())));
}

#[test]
fn debts_are_seconds_of_any_clock_rounded_down() {
    for (longest, hz, want) in [
        (0, 1, "0.000000000"),
        (1, 3, "0.333333333"),
        (u64::MAX, 1, "18446744073709551615.000000000"),
        (u64::MAX - 1, u64::MAX, "0.999999999"),
        (u64::MAX, 1_000_000_000, "18446744073.709551615"),
    ] {
        let metrics = TableMetrics::new("t").stats(&Stats { longest, ..stats() }).info(&info(hz));
        let want = format!("tatcell_longest_debt_seconds{{table=\"t\"}} {want}\n");
        assert!(text(&[metrics], Format::Prometheus).contains(&want), "{longest} {hz}");
    }
}

#[test]
fn a_chance_is_at_most_one() {
    for (load_ppm, want) in [(0, "0.000000000"), (1_000_000_000, "0.999000063"), (u64::MAX, "0.999000063")] {
        let metrics = TableMetrics::new("t").stats(&Stats { load_ppm, ..stats() });
        let want = format!("tatcell_full_set_probability{{table=\"t\"}} {want}");
        let text = text(&[metrics], Format::Prometheus);
        assert!(text.contains(&want), "{load_ppm}: {text}");
    }
}

/// The live keys of a table of overrides are bans and exemptions, and no debts.
#[test]
fn a_table_of_overrides_has_bans_and_exemptions_instead_of_debts() {
    let lines = [Line::EMPTY; 4];
    let options = TableOptions::overrides(1_000).seed([9; 16]).tick_hz(1_000);
    let table = Table::init(&lines, &options).unwrap();
    let metrics = TableMetrics::new("t").stats(&stats()).info(&table.info());
    let text = text(&[metrics], Format::OpenMetrics);
    for sample in ["live_keys{table=\"t\"} 8", "overrides{table=\"t\",kind=\"ban\"} 5"] {
        assert!(text.contains(&format!("tatcell_{sample}\n")), "{text}");
    }
    assert!(text.contains("tatcell_overrides{table=\"t\",kind=\"exemption\"} 3\n"), "{text}");
    assert!(!text.contains("debt"), "{text}");
}

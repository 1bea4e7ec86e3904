//! The figures of docs/GUIDE.md and docs/PITFALLS.md: the library writes what it reports of limits and tables, and the
//! page must contain it, in words. Measured times are not included.

use tatcell::http::{Field, Fields, Policy};
use tatcell::{
    full_set_ppb, lines_for_load, Cell, Cell32, Ladder, LimitSpec, Line, Rung, SlidingLog, Table, TableError,
    TableInfo, TableOptions,
};

const SECOND: u64 = 1_000_000_000;
const MINUTE: u64 = 60 * SECOND;
const YEAR: u64 = 8_766 * 60 * MINUTE;

fn page(name: &str) -> String {
    let path = format!("{}/docs/{name}.md", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).expect("a page")
}

/// Whether the guide says so, whatever its line breaks.
fn says(words: &str) {
    says_in("GUIDE", words);
}

fn says_in(name: &str, words: &str) {
    let text = page(name).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains(words), "{name} does not say: {words}");
}

/// The cells of the row of a table that begins so.
fn row(first: &str) -> Vec<String> {
    row_in("GUIDE", first)
}

fn row_in(name: &str, first: &str) -> Vec<String> {
    let text = page(name);
    let mut rows = text.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    let row = rows.find(|row| row.split(" | ").next() == Some(first)).expect("a row of the page");
    row.split(" | ").skip(1).map(|cell| cell.trim_matches(['|', ' ']).to_owned()).collect()
}

fn memory() -> Vec<Line> {
    (0..6).map(|_| Line::new()).collect()
}

fn table(options: TableOptions) -> TableInfo {
    let lines = memory();
    let info = Table::init(&lines, &options.seed([7; 16])).expect("a table").info();
    info
}

/// A skew in the words of the guide: nanoseconds to two or three digits, and whether it is the horizon.
fn skew(ns: u64, horizon: u64) -> String {
    let (seconds, ms) = (ns as f64 / 1e9, ns as f64 / 1e6);
    let words = match ns {
        YEAR.. => format!("{:.0} years", ns as f64 / YEAR as f64),
        _ if ns % SECOND == 0 => format!("{seconds:.0} s"),
        SECOND.. => format!("{seconds:.2} s"),
        10_000_000.. => format!("{ms:.0} ms"),
        _ => format!("{ms:.1} ms"),
    };
    if ns == horizon {
        words + " (H)"
    } else {
        words
    }
}

#[test]
fn the_guide_names_the_default_skews() {
    for (name, units, burst) in [
        ("10 a second, burst 20", 10, 20),
        ("1000 a second, burst 20", 1_000, 20),
        ("10 Gbit/s in bytes, burst 64 000", 1_250_000_000, 64_000),
        ("100 Gbit/s in bytes, burst 64 000", 12_500_000_000, 64_000),
        ("400 Gbit/s in bytes, burst 64 000", 50_000_000_000, 64_000),
    ] {
        let spec = LimitSpec::new(units, SECOND, burst);
        let cell = spec.build().expect("a limit").info();
        let of = |tag_bits| table(TableOptions::new(spec).tag_bits(tag_bits));
        let (usual, narrow) = (of(20), of(12));
        assert_eq!(table(TableOptions::new(spec)), usual, "20 tag bits are the default");
        let skews = [
            skew(cell.skew, cell.horizon),
            skew(usual.skew, usual.horizon),
            skew(narrow.skew, narrow.horizon),
        ];
        assert_eq!(row(name), skews, "{name}");
    }
}

/// A default skew counts ticks: what that is of milliseconds, and what a reading from the future then costs.
#[test]
fn the_guide_names_the_skew_of_milliseconds() {
    let spec = LimitSpec::new(10, 1_000, 5);
    let skew = table(TableOptions::new(spec)).skew;
    says(&format!(
        "2^30 of them are a second of nanoseconds, {:.0} minutes of microseconds, and {:.1} days of milliseconds.",
        skew as f64 / 60e6,
        skew as f64 / 86_400e3
    ));
    let cell = |rate| LimitSpec::new(rate, 1_000, 5).build().expect("a limit").info().skew;
    assert_eq!([skew, cell(8)], [1 << 30; 2]);
    assert!(cell(7) > 100_000 * (YEAR / 1_000_000));
    says("A 64-bit cell in milliseconds has more than 100 000 years if its rate is below 8 a second.");
    const DAY: u64 = 86_400_000;
    for (options, days, locked) in [
        (TableOptions::new(spec), 5, 5 * DAY),
        (TableOptions::new(spec), 13, 0),
        (TableOptions::new(spec).skew(5_000), 5, 0),
    ] {
        let lines = memory();
        let table = Table::init(&lines, &options.seed([7; 16])).expect("a table");
        let (limit, now, key) =
            (table.limit(&spec).expect("a limit"), 1 << 40, table.hash(b"key").expect("a hash"));
        assert!(table.check_hash(&limit, now + days * DAY, key, 5).expect("a verdict").passes());
        let wait = table.check_hash(&limit, now, key, 1).expect("a verdict").retry_after();
        assert_eq!(wait, if locked == 0 { 0 } else { locked + 100 }, "{days} days ahead");
    }
}

#[test]
fn the_guide_names_the_chances_of_full_sets_and_a_size() {
    let chance = |ppm| format!("{:.1e}", full_set_ppb(ppm) as f64 / 1e9);
    let loads = row("alpha");
    let ppm = loads.iter().map(|load| (load.parse::<f64>().expect("a load") * 1e6).round() as u64);
    assert_eq!(row("full set"), ppm.map(chance).collect::<Vec<_>>());
    assert!(loads.len() > 4);
    let bytes = (64 * lines_for_load(100_000, 1_000)) as f64;
    says(&format!(
        "100 000 busy keys and one full set in a million new keys take {:.1} MB, {:.1} bytes a busy key",
        bytes / 1e6,
        bytes / 1e5
    ));
}

#[test]
fn the_guide_names_the_bits_of_tags_and_their_chances() {
    let options = TableOptions::new(LimitSpec::new(10, SECOND, 5)).seed([7; 16]);
    let lines = memory();
    let takes = |bits| !matches!(Table::init(&lines, &options.tag_bits(bits)), Err(TableError::BadTagBits));
    let taken: Vec<u32> = (0..64).filter(|bits| takes(*bits)).collect();
    let (least, most) = (taken.first().copied().unwrap_or(0), taken.last().copied().unwrap_or(0));
    assert_eq!(taken.len() as u32, most - least + 1);
    says(&format!("{} by default, {least} to {most}.", table(options).tag_bits));
    let chance = |bits: u32| 16.0 / f64::from(1u32 << bits);
    says(&format!("({:.1e} with 20, {:.1} % with 12)", chance(20), 100.0 * chance(12)));
}

#[test]
fn the_guide_names_how_often_to_sweep() {
    let words = |ns: u64| match ns {
        0..SECOND => format!("{:.0} ms", ns as f64 / 1e6),
        SECOND..10_000_000_000 => format!("{:.1} s", ns as f64 / 1e9),
        10_000_000_000..600_000_000_000 => format!("{:.0} s", ns as f64 / 1e9),
        600_000_000_000..6_000_000_000_000 => format!("{:.0} minutes", ns as f64 / MINUTE as f64),
        6_000_000_000_000..1_000_000_000_000_000 => format!("{:.1} hours", ns as f64 / MINUTE as f64 / 60.0),
        _ => format!("{:.0} days", ns as f64 / MINUTE as f64 / 1_440.0),
    };
    for (name, units, burst) in [
        ("up to 600 000 a second, bursts of a few seconds", 10, 20),
        ("up to 600 000 a second, bursts of a few seconds", 600_000, 2_000_000),
        ("1 Gbit/s in bytes", 125_000_000, 64_000),
        ("10 Gbit/s in bytes", 1_250_000_000, 64_000),
        ("100 Gbit/s in bytes", 12_500_000_000, 64_000),
        ("400 Gbit/s in bytes", 50_000_000_000, 64_000),
    ] {
        let spec = LimitSpec::new(units, SECOND, burst);
        let interval = |bits| words(table(TableOptions::new(spec).tag_bits(bits)).sweep_interval);
        assert_eq!(row(name), [interval(20), interval(12)], "{name}");
    }
    let overrides = |longest| table(TableOptions::overrides(longest)).sweep_interval;
    let year_ms = YEAR / 1_000_000;
    says(&format!(
        "`sweep_interval` ({} minutes for nanoseconds and a minute at most, {} years for milliseconds and a year)",
        overrides(MINUTE) / MINUTE,
        overrides(year_ms) / year_ms
    ));
}

#[test]
fn the_guide_names_the_units_of_overrides() {
    let unit = |longest| {
        let resolution = table(TableOptions::overrides(longest)).resolution;
        1u64 << u32::try_from(-resolution).expect("a tick or more")
    };
    let bits = (30..50).find(|bits| unit(1 << bits) > 1).expect("a longest one in ticks");
    let first = (0..4).map(|below| (1u64 << bits) - below).take_while(|longest| unit(*longest) > 1).last();
    let below = (1 << bits) - first.expect("it is one");
    assert_eq!(unit((1 << bits) - below), 2);
    says(&format!(
        "below 2^{bits} - {below} ticks, the unit is a tick; else it is the smallest power of two that suffices"
    ));
    says(&format!("({} us for a year of nanoseconds)", unit(YEAR) / 1_000));
}

#[test]
fn the_guide_names_the_default_claim_lifetime() {
    for (period, units) in [(SECOND, 10), (SECOND, 1_000), (100, 10), (3, 1), (1 << 50, 1)] {
        let spec = LimitSpec::new(units, period, 5);
        let info = table(TableOptions::new(spec));
        // Two q-units, which are ticks, parts of a tick or several.
        let two = if info.resolution > 0 { 1 } else { 2 << -info.resolution };
        assert_eq!(info.claim_lifetime, two, "{units} in {period}");
        let half = period / units / 2;
        let longest = table(TableOptions::new(spec).claim_lifetime(half)).claim_lifetime;
        assert!(longest >= half && longest < half + two, "{longest} for {half}");
    }
    let spec = LimitSpec::new(10, SECOND, 5);
    let lines = memory();
    let above = TableOptions::new(spec).seed([7; 16]).claim_lifetime(SECOND / 10 / 2 + 1);
    assert!(Table::init(&lines, &above).is_err(), "more than half of the emission interval");
    says(
        "by default one tick, but at least two q-units, and at most half of the smallest emission interval.",
    );
}

#[test]
fn the_guide_names_the_default_rungs() {
    for (family, v4) in [("IPv4", true), ("IPv6", false)] {
        let rungs = Ladder::DEFAULT;
        let words = |rung: &Rung| format!("/{} x{}", rung.bits, rung.multiplier);
        let rungs: Vec<String> = rungs.rungs(v4).iter().map(words).collect();
        let named: Vec<String> = row(family).into_iter().filter(|cell| !cell.is_empty()).collect();
        assert_eq!(named, rungs, "{family}");
    }
}

#[test]
fn the_guide_names_sizes_and_spans() {
    says(&format!("`Cell32`, {} bytes each", size_of::<Cell32>()));
    let whole = LimitSpec::new(10, 1_000, 5).build32().expect("a limit").info();
    assert_eq!(
        (whole.resolution, u32::try_from(whole.span).is_ok()),
        (0, true),
        "a unit is a tick: {whole:?}"
    );
    says(&format!("after 2^32 units of the word ({:.0} days of milliseconds)", 2f64.powi(32) / 86_400_000.0));
    let stamps = [const { Cell::new() }; 5];
    let log = SlidingLog::new(&stamps, MINUTE).expect("a log");
    says(&format!("a `SlidingLog`, {} bytes a unit", size_of_val(&stamps) as u64 / log.units()));
    says(&format!("64 bits of nanoseconds last {} years", u64::MAX / YEAR));
}

#[test]
fn the_guide_names_quota_and_window_of_its_limit() {
    let limit = LimitSpec::new(30, MINUTE, 3).build().expect("a limit");
    let policy = Policy::new("client").expect("a name").limit(&limit.info());
    let mut field = String::new();
    let policies = [policy];
    let fields = Fields::new(SECOND, &policies).expect("fields");
    fields.write_value(Field::RateLimitPolicy, &mut field).expect("a String takes all");
    let item = field.split_once(';').map_or("", |(_, item)| item);
    says(&format!("\"30 a minute, 3 at once\" is `{item}`"));
    // A whole quota at once.
    let cell = Cell::new();
    let refused = (0..30).filter(|_| !cell.check(&limit, 0, 1).passes()).count();
    says(&format!("with `q=30;w=60` {refused} of its requests would be refused"));
}

/// Seconds in the words of the pitfalls: two digits or more, and `exact` for none.
fn time(seconds: f64) -> String {
    const UNITS: [(&str, f64); 8] = [
        ("years", 31_557_600.0),
        ("days", 86_400.0),
        ("h", 3_600.0),
        ("min", 60.0),
        ("s", 1.0),
        ("ms", 1e-3),
        ("us", 1e-6),
        ("ns", 1e-9),
    ];
    let unit = UNITS.iter().find(|(_, unit)| seconds >= 2.0 * unit);
    unit.map_or("exact".into(), |(name, unit)| {
        let count = seconds / unit;
        let digits = if count < 9.95 { 1 } else { 0 };
        format!("{count:.digits$} {name}")
    })
}

#[test]
fn the_pitfalls_name_how_often_to_sweep_and_how_late_windows_end() {
    const NS: u64 = SECOND;
    let bytes = |gigabit: u64, of: u64| LimitSpec::new(gigabit * 125_000_000 / of, NS, 64_000 / of);
    for (name, hz, spec) in [
        ("10 a second, burst 20; ns", NS, LimitSpec::new(10, NS, 20)),
        ("the same; ticks of a 3 GHz processor", 3 * NS, LimitSpec::new(10, 3 * NS, 20)),
        ("the same; us", 1_000_000, LimitSpec::new(10, 1_000_000, 20)),
        ("the same; ms", 1_000, LimitSpec::new(10, 1_000, 20)),
        ("1 Gbit/s in bytes, burst 64 000; ns", NS, bytes(1, 1)),
        ("10 Gbit/s; ns", NS, bytes(10, 1)),
        ("10 Gbit/s in units of 64 bytes; ns", NS, bytes(10, 64)),
        ("400 Gbit/s; ns", NS, bytes(400, 1)),
        ("100 a second, sliding counter; ns", NS, LimitSpec::sliding_counter(100, NS)),
        ("the same counter; ms", 1_000, LimitSpec::sliding_counter(100, 1_000)),
        ("1 million in 30 days, fixed window; ms", 1_000, LimitSpec::fixed_window(1_000_000, 2_592_000_000)),
    ] {
        let of = |tag_bits| {
            let info = table(TableOptions::new(spec).tag_bits(tag_bits));
            [info.sweep_interval, info.skew, info.border_error].map(|ticks| time(ticks as f64 / hz as f64))
        };
        assert_eq!(row_in("PITFALLS", name), [of(20), of(12)].concat(), "{name}");
    }
}

#[test]
fn the_pitfalls_name_the_tag_bits_that_fit() {
    let most = |millions: u64, burst| {
        let fastest = LimitSpec::new(millions * 1_000_000, SECOND, 20);
        let options = TableOptions::new(fastest).slowest(LimitSpec::new(1, SECOND, burst)).seed([7; 16]);
        let lines = memory();
        let fits = |bits: &u32| Table::init(&lines, &options.tag_bits(*bits)).is_ok();
        (12..=24).rev().find(fits)
    };
    let ten = [60, 3_600].map(|burst| most(10, burst).expect("some bits"));
    says_in(
        "PITFALLS",
        &format!(
            "10 million a second fit next to \"1 a second, burst 60\" with up to {} tag bits, and next to a burst of \
             3600 with up to {}. 100 million do not fit next to the latter.",
            ten[0], ten[1]
        ),
    );
    assert_eq!(most(100, 3_600), None);
}

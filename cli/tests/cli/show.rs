//! `tatcell show`: what it says about a table that the test makes, and what it changes.

use std::ffi::CString;
use std::fs;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tatcell::host::{unlink, Memory, SharedCounters};
use tatcell::{AttachOptions, LimitSpec, Override, Table, TableClock, TableOptions};

use crate::folder;
use crate::program::PROGRAM;

const SEED: [u8; 16] = *b"16 random bytes!";
const SECOND: u64 = 1_000_000_000;
/// The time at which keys were charged.
const NOW: u64 = 1 << 50;

/// Shared memory of one test.
struct Named(String);

impl Named {
    fn new(test: &str) -> Named {
        let named = Named(format!("/tatcell-cli-{}-{test}", std::process::id()));
        let _ = unlink(&named.text());
        named
    }

    fn text(&self) -> CString {
        CString::new(self.0.clone()).expect("a name")
    }

    fn memory(&self, lines: usize) -> Memory {
        Memory::create(&self.text(), 64 * lines, 0o600).expect("memory")
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        let _ = unlink(&self.text());
    }
}

fn spec() -> LimitSpec {
    LimitSpec::new(10, SECOND, 20)
}

/// A table in which 198.51.100.7 owes 20 units, "key" 9, and 30 addresses one each.
fn debts(named: &Named, options: TableOptions) -> Memory {
    let memory = named.memory(66);
    {
        let table = Table::init(memory.lines(), &options.seed(SEED)).expect("a table");
        let limit = table.limit(&spec()).expect("a limit");
        let charge = |key: &[u8], cost| {
            assert!(table.check(&limit, NOW, key, cost).expect("a check").passes());
        };
        charge(&[198, 51, 100, 7], 20);
        charge(b"key", 9);
        (0..30).for_each(|host| charge(&[192, 0, 2, host], 1));
    }
    memory
}

fn known() -> TableOptions {
    TableOptions::new(spec()).clock(TableClock::Monotonic).tick_hz(SECOND)
}

fn show(arguments: &[&str]) -> Output {
    Command::new(PROGRAM).arg("show").args(arguments).stdin(Stdio::null()).output().expect("the program runs")
}

/// The output of a call that succeeds.
fn text(arguments: &[&str]) -> String {
    let output = show(arguments);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), &*message), (Some(0), ""), "{arguments:?}");
    String::from_utf8(output.stdout).expect("text")
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&text(&[arguments, &["--json"]].concat())).expect("JSON")
}

/// The exit code and the message of a call that fails.
fn fails(arguments: &[&str]) -> (Option<i32>, String) {
    let output = show(arguments);
    assert!(output.stdout.is_empty(), "{arguments:?}");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_table_says_what_it_is_and_how_full_without_its_seed() {
    let named = Named::new("info");
    let _memory = debts(&named, known());
    let clock = NOW.to_string();
    let said = json(&[&*named.0, "--clock", &clock]);
    assert_eq!(said["geometry"]["slots"], 512);
    assert_eq!(said["geometry"]["bytes"], 66 * 64);
    assert_eq!(said["geometry"]["content"], "debts (GCRA)");
    assert_eq!(said["geometry"]["clock"], "monotonic");
    assert_eq!(said["load"]["live"], 32);
    assert_eq!(said["load"]["full_sets"], 0);
    assert_eq!(said["load"]["longest_debt"], 2 * SECOND);
    assert_eq!(said["load"]["longest_debt_seconds"], 2.0);
    let words = text(&[&*named.0, "--clock", &clock]);
    for want in
        ["512 slots, 4224 bytes", "32 live keys, load 6.25 %", "longest debt: 2 s", "clock: monotonic"]
    {
        assert!(words.contains(want), "{want}\n{words}");
    }
    // The image names its clock. By it these debts lie in the future, or are long gone; the program finds no error.
    assert!(json(&[&*named.0])["load"]["now"]["ticks"].as_u64().is_some_and(|ticks| ticks > 0));
    // All drained two seconds later.
    let later = (NOW + 2 * SECOND).to_string();
    assert_eq!(json(&[&*named.0, "--clock", &later])["load"]["live"], 0);
}

#[test]
fn the_longest_debts_are_named_from_a_list_of_keys() {
    let named = Named::new("top");
    let _memory = debts(&named, known());
    let folder = folder("top");
    let (keys, seed) = (folder.join("keys"), folder.join("seed"));
    fs::write(&keys, "# seen today\n192.0.2.77\n198.51.100.7\n\nkey\n198.51.100.8\n").expect("a file");
    fs::write(&seed, SEED).expect("a file");
    let (keys, seed, clock) =
        (keys.to_str().expect("a name"), seed.to_str().expect("a name"), NOW.to_string());
    let base = [&*named.0, "top", "--count", "2", "--clock", &clock];

    let bare = json(&base);
    assert_eq!(bare["top"].as_array().map(Vec::len), Some(2));
    assert_eq!(
        (&bare["top"][0]["debt"], &bare["top"][1]["debt"]),
        (&(2 * SECOND).into(), &(SECOND / 10 * 9).into())
    );
    assert!(!text(&base).contains("may be"));
    // More than there are slots are all of them.
    let most = json(&[&*named.0, "top", "--count", "18446744073709551615", "--clock", &clock]);
    assert_eq!(most["top"].as_array().map(Vec::len), Some(32));

    let named_ones = json(&[&base[..], &["--candidates", keys, "--seed-file", seed]].concat());
    assert_eq!(named_ones["top"][0]["may_be"], serde_json::json!(["198.51.100.7"]));
    assert_eq!(named_ones["top"][1]["may_be"], serde_json::json!(["key"]));
    // The seed may also come through a descriptor, as digits.
    fs::write(seed, "31362072616e646f6d20627974657321\n").expect("a file");
    let show = format!("'{PROGRAM}' show {} top --count 1 --clock {clock}", named.0);
    let command = format!("exec 7< '{seed}'; {show} --candidates '{keys}' --seed-fd 7");
    let output = Command::new("sh").args(["-c", &command]).output().expect("a shell");
    assert!(String::from_utf8_lossy(&output.stdout).contains("198.51.100.7"), "{output:?}");

    let (code, message) = fails(&[&base[..], &["--candidates", keys]].concat());
    assert_eq!((code, message.contains("--candidates needs the seed")), (Some(2), true), "{message}");
    // A key that cannot be read is named by its line.
    for (bytes, want) in [
        (&b"192.0.2.1\n  192.0.2.256\n"[..], "keys:2:3: \"192.0.2.256\" is no address"),
        (b"192.0.2.1\nab\xff\n", "keys:2:3: not UTF-8: write such keys with --as hex"),
        (&[b'x'; 100_000], "keys:1:1: a line has at most 65536 bytes"),
        (&[&[b'x'; 65_537][..], b"\n"].concat(), "keys:1:1: a line has at most 65536 bytes"),
    ] {
        fs::write(keys, bytes).expect("a file");
        let (code, message) = fails(&[&base[..], &["--candidates", keys, "--seed-file", seed]].concat());
        assert_eq!((code, message.contains(want)), (Some(3), true), "{message}");
    }
    for end in ["", "\n", "\r\n"] {
        fs::write(keys, "x".repeat(65_536) + end).expect("a file");
        json(&[&base[..], &["--candidates", keys, "--seed-file", seed]].concat());
    }
    fs::write(keys, "192.0.2.1\n192.0.2.0/33\n").expect("a file");
    let (code, message) = fails(&[&base[..], &["--candidates", keys, "--seed-file", seed]].concat());
    assert_eq!(code, Some(3));
    assert!(
        message.contains("keys:2:1: \"192.0.2.0/33\": a network of 192.0.2.0 has 0 to 32 bits"),
        "{message}"
    );
    fs::write(seed, b"another 16 bytes").expect("a file");
    assert_eq!(fails(&[&base[..], &["--seed-file", seed]].concat()).0, Some(2));
}

#[test]
fn each_word_is_decoded() {
    let named = Named::new("dump");
    let memory = debts(&named, known());
    let table = Table::attach(memory.lines(), &AttachOptions::new().seed(SEED)).expect("a table");
    assert!(table.reset_key(NOW, table.hash(b"key").expect("a hash")));
    let clock = NOW.to_string();
    let lines = text(&[&*named.0, "dump", "--json", "--clock", &clock]);
    let words: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(words.iter().all(|word| word["version"] == 1));
    let count = |kind: &str| words.iter().filter(|word| word["kind"] == kind).count();
    assert_eq!((count("live"), count("tombstone"), words.len()), (31, 1, 32));
    // What is decoded is the word.
    let tag_bits = 20;
    for word in &words {
        let bits =
            word["word"].as_str().and_then(|text| u64::from_str_radix(&text[2..], 16).ok()).expect("a word");
        let payload = bits & ((1 << (63 - tag_bits)) - 1);
        assert_eq!(word["payload"], payload);
        assert_eq!(word["tag"], bits >> (63 - tag_bits) & ((1 << tag_bits) - 1));
        assert_eq!(word["lead"], payload.wrapping_sub(NOW) & ((1 << (63 - tag_bits)) - 1));
    }
    assert_eq!(text(&[&*named.0, "dump", "--clock", &clock]).lines().count(), 33);
    assert_eq!(text(&[&*named.0, "dump", "--all", "--clock", &clock]).lines().count(), 513);
}

#[test]
fn a_screen_comes_as_often_as_asked_and_clears_no_file() {
    let named = Named::new("watch");
    let _memory = debts(&named, known());
    let clock = NOW.to_string();
    let base = [&*named.0, "watch", "--interval", "0", "--rounds", "3", "--clock", &clock];
    let screens = text(&base);
    assert_eq!(screens.matches("longest debt: 2 s").count(), 3);
    assert!(!screens.contains('\x1b'));
    let lines = text(&[&base[..], &["--json"]].concat());
    assert_eq!(lines.lines().count(), 3);
    let last: Value = serde_json::from_str(lines.lines().last().expect("a line")).expect("JSON");
    assert_eq!((&last["load"]["live"], &last["top"][0]["debt"]), (&32.into(), &(2 * SECOND).into()));
}

#[test]
fn counters_that_a_program_shares_are_summed() {
    let (named, counts) = (Named::new("counts"), Named::new("counts-2"));
    let _memory = debts(&named, known());
    let mut shared = SharedCounters::open(&counts.text(), 3, 0o600).expect("counters");
    let [first, second, _] = shared.blocks() else { panic!("three blocks") };
    (first.conforming, first.shadow, first.soft, second.non_conforming, second.never) = (5, 2, 1, 30, 4);
    let clock = NOW.to_string();
    let base = [&*named.0, "--counters", &*counts.0, "--clock", &clock];
    let said = json(&base);
    assert_eq!((&said["counts"]["passed"], &said["counts"]["refused"]), (&7.into(), &34.into()));
    assert_eq!(said["counts"]["per_second"], Value::Null);
    let alone = json(&["--counters", &*counts.0]);
    assert_eq!((&alone["version"], &alone["passed"]), (&1.into(), &7.into()));
    let screens = text(&[&base[..], &["watch", "--interval", "1ms", "--rounds", "2"]].concat());
    assert_eq!(screens.matches("counted: 7 passed, 34 refused").count(), 2);
    // Nothing is counted meanwhile.
    assert_eq!(screens.matches("a second: 0.0 passed, 0.0 refused").count(), 1);
    let (code, message) = fails(&[&*named.0, "--counters", &*named.0, "--clock", &clock]);
    assert_eq!((code, message.contains("holds no counters")), (Some(3), true), "{message}");
}

#[test]
fn keys_are_banned_exempt_and_reset_with_the_seed_only() {
    let named = Named::new("change");
    let memory = named.memory(66);
    let overrides = TableOptions::overrides(100 * SECOND).tick_hz(SECOND).clock(TableClock::Realtime);
    let table = Table::init(memory.lines(), &overrides.seed(SEED)).expect("a table");
    let seed = folder("change").join("seed");
    fs::write(&seed, SEED).expect("a file");
    let clock = NOW.to_string();
    let with = ["--clock", &clock, "--seed-file", seed.to_str().expect("a name")];
    let hash = |key: &[u8]| table.hash(key).expect("a hash");

    let done = json(&[&[&*named.0, "ban", "192.0.2.1", "--for", "10s"][..], &with[..]].concat());
    assert_eq!((&done["now"], &done["until"]), (&"banned".into(), &(NOW + 10 * SECOND).into()));
    assert!(matches!(table.overridden(NOW, hash(&[192, 0, 2, 1])), Ok(Some(Override::Banned { .. }))));
    text(&[&[&*named.0, "exempt", "--as", "text", "192.0.2.2", "--for", "1min"][..], &with[..]].concat());
    assert!(matches!(table.overridden(NOW, hash(b"192.0.2.2")), Ok(Some(Override::Exempt { .. }))));
    let network = table.prefix_hash(&tatcell::Address::new(&[192, 0, 2, 0]).expect("an address"), 24, 0);
    text(&[&[&*named.0, "ban", "192.0.2.0/24", "--for", "10s"][..], &with[..]].concat());
    assert!(table.overridden(NOW, network.expect("a hash")).expect("a table of overrides").is_some());
    let words = text(&[&[&*named.0, "reset", "192.0.2.1"][..], &with[..]].concat());
    assert_eq!(words, format!("{}: 192.0.2.1 is reset\n", named.0));
    let words = text(&[&[&*named.0, "reset", "192.0.2.1"][..], &with[..]].concat());
    assert_eq!(words, format!("{}: 192.0.2.1 had no override: nothing is changed\n", named.0));
    assert_eq!(table.overridden(NOW, hash(&[192, 0, 2, 1])), Ok(None));
    let kinds = text(&[&*named.0, "dump", "--clock", &clock]);
    assert!(
        kinds.contains(" ban ") && kinds.contains(" exemption ") && kinds.contains(" witness "),
        "{kinds}"
    );

    let (code, message) = fails(&[&*named.0, "ban", "192.0.2.1", "--for", "10s", "--clock", &clock]);
    assert_eq!(
        (code, &*message),
        (Some(2), "tatcell: a change needs the seed of the table: --seed-file or --seed-fd\n")
    );
    assert_eq!(done["version"], 1);
    for (time, want) in [
        ("1h", "--for 60 min: an override of this table ends within 100 s"),
        ("0", "--for 0: use a time above 0"),
    ] {
        let ban = [&[&*named.0, "ban", "192.0.2.9", "--for", time][..], &with[..]].concat();
        let (code, message) = fails(&ban);
        assert_eq!((code, message.contains(want)), (Some(2), true), "{message}");
    }
    // By another clock than that of the image a ban would end at another time.
    let (code, message) = fails(&[&*named.0, "ban", "192.0.2.9", "--for", "1s", "--clock", "monotonic"]);
    assert_eq!(code, Some(2), "{message}");
    let other = [&*named.0, "ban", "192.0.2.9", "--for", "1s", with[2], with[3], "--clock", "monotonic"];
    let (code, message) = fails(&other);
    let want = "--clock monotonic: the image says that its callers read realtime: leave --clock out";
    assert_eq!((code, message.contains(want)), (Some(2), true), "{message}");
    assert_eq!(fails(&[&*named.0, "--clock", "monotonic"]).0, Some(2));
    // A variable of a script may be empty.
    for empty in
        [&["ban", "", "--for", "10s"][..], &["ban", " ", "--for", "10s"], &["reset", "", "--as", "hex"]]
    {
        let (code, message) = fails(&[&[&*named.0][..], empty, &with[..]].concat());
        assert_eq!((code, message.contains("the key is empty; --as text")), (Some(2), true), "{message}");
    }
    // What was meant as an address is not taken as text.
    for meant in ["192.0.2.256", "192.0.2.1:80", "fe80::1%eth0", "192.0.2/24"] {
        let (code, message) = fails(&[&[&*named.0, "ban", meant, "--for", "10s"][..], &with[..]].concat());
        assert_eq!((code, message.contains("is no address and no network; --as text")), (Some(2), true));
    }
    text(&[&[&*named.0, "ban", "192.0.2.256", "--for", "10s", "--as", "text"][..], &with[..]].concat());
}

#[test]
fn bans_and_exemptions_are_counted_and_told_apart() {
    let named = Named::new("overrides");
    let memory = named.memory(66);
    let overrides = TableOptions::overrides(100 * SECOND).tick_hz(SECOND).clock(TableClock::Realtime);
    let table = Table::init(memory.lines(), &overrides.seed(SEED)).expect("a table");
    let hash = |key: &[u8]| table.hash(key).expect("a hash");
    let clock = NOW.to_string();
    let with = ["--clock", &clock];
    let load = || json(&[&[&*named.0][..], &with].concat())["load"].clone();
    let counts =
        |load: &Value| ["live", "bans", "exemptions"].map(|name| load[name].as_u64().expect("a count"));
    let top = || json(&[&[&*named.0, "top"][..], &with].concat())["top"].clone();
    assert_eq!(counts(&load()), [0; 3]);
    for (key, time) in [(&b"a"[..], 10), (b"b", 40), (b"c", 20)] {
        table.ban(NOW, hash(key), NOW + time * SECOND).expect("a ban");
    }
    table.exempt(NOW, hash(b"d"), NOW + 30 * SECOND).expect("an exemption");
    let found = load();
    assert_eq!(counts(&found), [4, 3, 1]);
    // Each takes two slots of 512.
    assert_eq!(found["load"].as_f64(), Some(0.015625));
    let kinds: Vec<_> = top().as_array().expect("rows").iter().map(|row| row["kind"].clone()).collect();
    assert_eq!(kinds, ["ban", "exemption", "ban", "ban"]);
    let words = text(&[&[&*named.0][..], &with].concat());
    assert!(words.contains("  3 bans, 1 exemption, load 1.5"), "{words}");
    assert!(
        words.contains("  the last of them ends in 40 s\n") && words.contains("overrides up to"),
        "{words}"
    );
    assert!(!words.contains("debt"), "{words}");
    let rows = text(&[&[&*named.0, "top"][..], &with].concat());
    assert!(rows.contains("  ban             40 s\n") && rows.contains("  exemption       30 s\n"), "{rows}");
    // What is lifted is no ban, although its slots are held until it would have ended.
    for key in [b"a", b"b", b"d"] {
        assert_eq!(table.lift(NOW, hash(key)), Ok(true));
    }
    assert_eq!((counts(&load()), top().as_array().map(Vec::len)), ([1, 1, 0], Some(1)));
    let screen = text(&[&[&*named.0, "watch", "--rounds", "1"][..], &with].concat());
    assert!(screen.contains("1 ban, 0 exemptions") && screen.contains("ends in 20 s"), "{screen}");
    table.lift(NOW, hash(b"c")).expect("a lift");
    assert_eq!(counts(&load()), [0; 3]);
    let rows = text(&[&[&*named.0, "top"][..], &with].concat());
    assert!(rows.contains("No key is banned, and none is exempt."), "{rows}");
    let dump = text(&[&[&*named.0, "dump"][..], &with].concat());
    let kinds = ["lifted", "witness", "ban"].map(|kind| dump.matches(&format!("  {kind} ")).count());
    assert_eq!(kinds, [4, 4, 0], "{dump}");
    // One that has ended is none, in the unit of time in which it ends, too.
    table.ban(NOW, hash(b"e"), NOW + 1).expect("a ban");
    for tick in 0..100_000u64 {
        let now = NOW + tick;
        let is_banned = table.overridden(now, hash(b"e")).expect("a table of overrides").is_some();
        assert_eq!(table.stats(now).live, u64::from(is_banned), "at {tick}");
    }
}

#[test]
fn a_ban_in_a_table_of_debts_is_refused_and_a_reset_is_not() {
    let named = Named::new("debts");
    let memory = debts(&named, known());
    let seed = folder("debts").join("seed");
    fs::write(&seed, SEED).expect("a file");
    let clock = NOW.to_string();
    let with = ["--clock", &clock, "--seed-file", seed.to_str().expect("a name")];
    let (code, message) = fails(&[&[&*named.0, "ban", "key", "--for", "1s"][..], &with[..]].concat());
    assert_eq!(code, Some(2));
    assert!(message.contains("bans and exemptions go into a table of overrides"), "{message}");
    let reset = [&[&*named.0, "reset", "198.51.100.7"][..], &with[..]].concat();
    let done = json(&reset);
    assert_eq!((&done["now"], &done["changed"]), (&"reset".into(), &true.into()));
    let done = json(&reset);
    assert_eq!((&done["now"], &done["changed"]), (&"reset".into(), &false.into()));
    assert_eq!(text(&reset), format!("{}: 198.51.100.7 had no debt: nothing is changed\n", named.0));
    let table = Table::attach(memory.lines(), &AttachOptions::new().seed(SEED)).expect("a table");
    let limit = table.limit(&spec()).expect("a limit");
    assert!(table.check(&limit, NOW, &[198, 51, 100, 7], 20).expect("a check").passes());
}

#[test]
fn what_cannot_be_shown_says_why() {
    let named = Named::new("why");
    let memory = debts(&named, TableOptions::new(spec()));
    // The image names no clock: the geometry is an answer, everything else asks for it.
    assert_eq!(json(&[&*named.0])["load"], Value::Null);
    assert!(text(&[&*named.0]).contains("Name the clock with --clock"));
    let (code, message) = fails(&[&*named.0, "top"]);
    assert_eq!(code, Some(2));
    assert!(message.contains("name it with --clock"), "{message}");
    // Ticks that nobody knows stay ticks.
    assert!(text(&[&*named.0, "top", "--clock", &NOW.to_string()]).contains("2000000000 ticks"));
    assert!(text(&[&*named.0]).contains("debts up to 2000000000 ticks"));
    assert!(text(&[&*named.0, "--clock", "raw"]).contains("debts up to 2 s; clocks may differ by 2 s"));
    assert!(
        text(&[&*named.0, "top", "--clock", &NOW.to_string(), "--tick-hz", "1000000"]).contains("33.3 min")
    );
    for clock in [&["--clock", "5"][..], &[]] {
        let given = [&[&*named.0, "--tick-hz", "1000000"][..], clock].concat();
        assert!(text(&given).contains("debts up to 33.3 min"), "{}", text(&given));
    }
    drop(memory);

    let (code, message) = fails(&["/tatcell-cli-no-such-table"]);
    assert_eq!(code, Some(3));
    assert!(message.contains("there is no such name in shared memory"), "{message}");
    let file = folder("why").join("file");
    fs::write(&file, [b'x'; 4096]).expect("a file");
    let (code, message) = fails(&[file.to_str().expect("a name")]);
    let want = "it holds no initialised table: it is none, or the program has not made it yet";
    assert_eq!((code, message.contains(want)), (Some(3), true), "{message}");
    fs::write(&file, [b'x'; 33]).expect("a file");
    let (code, message) = fails(&[file.to_str().expect("a name")]);
    let want = "it is no table: the smallest has 256 bytes";
    assert_eq!((code, message.contains(want)), (Some(3), true), "{message}");
    assert_eq!(fails(&[&*named.0, "--clock", "moon"]).0, Some(2));
    assert_eq!(fails(&[&*named.0, "--tick-hz", "0"]).0, Some(2));
}

//! The most memory that each command takes, next to what the README and --help say.

use std::fmt::Write;
use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};

use tatcell::{LimitSpec, Line, Table, TableOptions};

use crate::folder;
use crate::program::PROGRAM;
use crate::replay::Throttled;

/// The program itself: its code, its stack, and buffers for reading.
const BASE: u64 = 12 << 20;

/// The most memory that a command has had when its answer is made, in bytes. The answer must be longer than a pipe
/// holds, so that the program still waits while its peak is read.
fn peak(arguments: &[&str]) -> u64 {
    peak_of(arguments, &[0])
}

/// The same for a command that may end with one of these codes.
fn peak_of(arguments: &[&str], codes: &[i32]) -> u64 {
    peak_and_answer(arguments, codes).0
}

fn peak_and_answer(arguments: &[&str], codes: &[i32]) -> (u64, String) {
    let mut child = Command::new(PROGRAM)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program runs");
    let mut answer = child.stdout.take().expect("its answer");
    let mut text = vec![0];
    answer.read_exact(&mut text).expect("a first byte");
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).expect("its state");
    answer.read_to_end(&mut text).expect("the answer");
    let code = child.wait().expect("its end").code().expect("a code");
    assert!(codes.contains(&code), "{arguments:?} ended with {code}");
    assert!(text.len() > 1 << 17, "{} bytes fit into a pipe", text.len());
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    (kib * 1024, String::from_utf8_lossy(&text).into_owned())
}

const KEYS: u64 = 200_000;

/// Addresses that come one after the other, 10 a second: those of a window are few.
fn addresses() -> impl Iterator<Item = String> {
    (0..KEYS).map(|key| format!("10.{}.{}.{}", key >> 16, (key >> 8) & 255, key & 255))
}

#[cfg(target_os = "linux")]
#[test]
fn a_plan_takes_as_much_memory_as_the_readme_says() {
    let file = folder("memory").join("access.log");
    let mut log = String::new();
    for (at, address) in addresses().enumerate() {
        writeln!(log, "{address} {}.{}", 1_700_000_000 + at / 10, at % 10).expect("a string");
    }
    fs::write(&file, log).expect("a file");
    let name = file.to_str().expect("a name");
    let of = |most: u64| {
        let most = most.to_string();
        let format = ["--log-format", "$remote_addr $msec", "--slots", "65536", "--top", "1000", "--json"];
        let limit = ["-l", "1/min burst 2", "--max-keys", &most];
        peak(&[&["plan", name][..], &format, &limit].concat())
    };
    // Seven rates, one limit, and its table.
    let bytes = |keys: u64| keys * (400 + 32) + 65_536 * 8;
    let (all, sample) = (of(KEYS), of(KEYS / 10));
    assert!(all > KEYS * 200 && all < BASE + bytes(KEYS), "{all}");
    // While half of the keys are dropped, both the old and the new numbers are there.
    assert!(sample < BASE + 2 * bytes(KEYS / 10), "{sample}");
}

/// What an input takes that is open: buffers, and those of its compression.
const OPEN: u64 = 768 << 10;

#[cfg(target_os = "linux")]
#[test]
fn many_inputs_at_a_time_take_as_much_memory_as_the_readme_says() {
    let folder = folder("memory-inputs");
    let keys = 50_000;
    let mut inputs = Vec::new();
    for part in 0..100 {
        let mut log = String::new();
        for (at, address) in addresses().take(keys).enumerate().filter(|(at, _)| at % 100 == part) {
            writeln!(log, "{address} {}.{}", 1_700_000_000 + at / 10, at % 10).expect("a string");
        }
        let file = folder.join(format!("{part}.log.gz"));
        let mut out = flate2::write::GzEncoder::new(
            fs::File::create(&file).expect("a file"),
            flate2::Compression::fast(),
        );
        std::io::Write::write_all(&mut out, log.as_bytes()).expect("written");
        out.finish().expect("written");
        inputs.push(file.to_str().expect("a name").to_owned());
    }
    let inputs: Vec<_> = inputs.iter().map(String::as_str).collect();
    let format = ["--log-format", "$remote_addr $msec", "--slots", "65536", "--top", "1000", "--json"];
    let found = peak(&[&["plan"][..], &inputs, &format].concat());
    assert!(found < BASE + keys as u64 * 400 + 100 * OPEN, "{found}");
}

/// The most records that wait to be sorted.
const MOST: usize = (1 << 21) - 1;

#[cfg(target_os = "linux")]
#[test]
fn a_full_window_takes_as_much_memory_as_the_readme_says_and_no_sort_helps() {
    let (file, keys) = (folder("memory-window").join("access.log"), 5_000);
    let rows = |time: u64, count: usize| -> String {
        let rows: Vec<_> = addresses().take(keys).map(|address| format!("{address} {time}\n")).collect();
        rows.iter().map(String::as_str).cycle().take(count).collect()
    };
    // In one second more records than may wait, and behind them one that is older.
    let full = rows(1_700_000_001, MOST + 1_000) + &rows(1_700_000_000, 1);
    fs::write(&file, full).expect("a file");
    let name = file.to_str().expect("a name");
    let plan = ["plan", name, "--log-format", "$remote_addr $msec", "--top", "5000"];
    let (found, answer) = peak_and_answer(&plan, &[0]);
    assert!(found > MOST as u64 * 40 && found < BASE + keys as u64 * 400 + MOST as u64 * 80, "{found}");
    let want =
        "1 record came too late to be sorted, and counted when the line before it did; more than 2097151 \
                records lie in the window of --sort.\n";
    assert!(answer.contains(want) && !answer.contains("would sort all"), "{}", &answer[..2_000]);
    // Too many that are older.
    let mut log = fs::OpenOptions::new().append(true).open(&file).expect("the log");
    std::io::Write::write_all(&mut log, rows(1_700_000_000, 50_000).as_bytes()).expect("written");
    let output = Command::new(PROGRAM).args(plan).output().expect("the program runs");
    let message = String::from_utf8_lossy(&output.stderr);
    let want = "50001 of 2148152 records came too late to be sorted, and the answer would be wrong: more than 2097151 \
                records lie in the window of --sort: sort the input first\n";
    assert!(output.status.code() == Some(3) && message.ends_with(want), "{message}");
    fs::remove_file(&file).expect("it is large");
}

#[cfg(target_os = "linux")]
#[test]
fn a_quote_that_does_not_end_takes_no_memory() {
    let file = folder("memory-quote").join("log.csv.gz");
    let mut out =
        flate2::write::GzEncoder::new(fs::File::create(&file).expect("a file"), flate2::Compression::fast());
    let mut write = |text: &str| std::io::Write::write_all(&mut out, text.as_bytes()).expect("written");
    write("time,address,ua\n");
    let keys = 2_000;
    addresses().take(keys).for_each(|address| write(&format!("1700000000,{address},x\n")));
    write("1700000000,192.0.2.1,\"");
    let row = "y".repeat(999) + "\n";
    (0..16_000).for_each(|_| write(&row));
    write(&"z".repeat(16 << 20));
    out.finish().expect("written");
    let name = file.to_str().expect("a name");
    let found = peak(&["plan", name, "--slots", "65536", "--top", "2000", "--json"]);
    assert!(found < BASE + keys as u64 * 400 + (8 << 20), "{found}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_look_into_a_table_keeps_what_it_lists() {
    let folder = folder("memory-show");
    let spec = LimitSpec::new(1, 3_600_000_000_000, 2);
    let lines: Vec<Line> = (0..(1 << 15) + 2).map(|_| Line::new()).collect();
    let table = Table::init(&lines, &TableOptions::new(spec).seed(*b"16 random bytes!")).expect("a table");
    let limit = table.limit(&spec).expect("a limit");
    for address in addresses().take(100_000) {
        let key = address.parse::<std::net::Ipv4Addr>().expect("an address").octets();
        let _ = table.check(&limit, 1 << 50, &key, 1).expect("a check");
    }
    let mut image = vec![0; table.image_words()];
    table.save(1 << 50, &mut image).expect("an image");
    let image: Vec<u8> = image.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let path = |name: &str| folder.join(name).to_str().expect("a name").to_owned();
    fs::write(path("image"), &image).expect("a file");
    fs::write(path("seed"), *b"16 random bytes!").expect("a file");
    fs::write(path("seen"), addresses().collect::<Vec<_>>().join("\n")).expect("a file");
    let (table, seed, seen, now) = (path("image"), path("seed"), path("seen"), (1u64 << 50).to_string());
    let top = ["show", &table, "top", "--count", "1000", "--clock", &now, "--json"];
    let found = peak(&[&top[..], &["--candidates", &seen, "--seed-file", &seed]].concat());
    assert!(found < BASE + image.len() as u64 + 1000 * 1024, "{found} with {} of the table", image.len());
}

#[cfg(target_os = "linux")]
#[test]
fn long_keys_take_no_more_than_the_readme_says() {
    let file = folder("memory-long").join("access.log");
    let (keys, long) = (20_000u64, "x".repeat(1_000));
    let mut log = String::new();
    for key in 0..keys {
        writeln!(log, "{} /{key}/{long}", 1_700_000_000 + key / 1_000).expect("a string");
    }
    fs::write(&file, log).expect("a file");
    let name = file.to_str().expect("a name");
    let format = ["--log-format", "$msec $path", "-k", "path", "--top", "1000", "--json"];
    let found = peak(&[&["plan", name][..], &format, &["--max-keys", "20000"]].concat());
    // While half of the keys are dropped, both are there; and the vectors have room for as many again.
    assert!(found < BASE + 2 * keys * 400 + 4 * keys * 128, "{found}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_replay_takes_as_much_memory_as_the_readme_says() {
    let server = Throttled::with("listen = '127.0.0.1:0'\nkeys = 65536");
    let file = folder("memory-replay").join("access.log");
    let (keys, limit) = (20_000, "1/h burst 1");
    // Each key twice, so that each is refused once, and is listed.
    let log: String = addresses().take(keys).map(|key| format!("{key} 1700000000\n").repeat(2)).collect();
    fs::write(&file, log).expect("a file");
    let name = file.to_str().expect("a name");
    let of = |most: &str| {
        let format = ["--log-format", "$remote_addr $msec", "--slots", "65536", "--top", "2000", "--json"];
        let to = ["--to", &server.1, "-l", limit, "--speed", "max", "--max-keys", most];
        peak_of(&[&["replay", name][..], &format, &to].concat(), &[0, 1])
    };
    let waiting = 2 * keys as u64 * 40;
    let (all, sample) = (of("20000"), of("2000"));
    assert!(all < BASE + 65_536 * 8 + waiting + keys as u64 * 150, "{all}");
    assert!(sample < BASE + 65_536 * 8 + waiting + 2 * 2_000 * 150, "{sample}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_check_takes_as_much_memory_as_the_readme_says() {
    let folder = folder("memory-check");
    let write = |name: &str, text: String| {
        let path = folder.join(name);
        fs::write(&path, &text).expect("a file");
        (path.to_str().expect("a name").to_owned(), text.len() as u64)
    };
    let places: String =
        (0..5_000).map(|at| format!("  location /{at} {{ limit_req zone=a burst=20; }}\n")).collect();
    let zone = "limit_req_zone $binary_remote_addr zone=a:10m rate=10r/s;\n";
    let rule = |at| format!("  - key: k{at}\n    rate_limit: {{unit: minute, requests_per_unit: {at}}}\n");
    let rules: String = (1..5_000).map(rule).collect();
    // What says nothing about limits takes no memory.
    let addresses: String = addresses().map(|address| format!("  {address} 1;\n")).collect();
    for (name, text) in [
        ("nginx.conf", format!("{zone}geo $list {{\n{addresses}}}\nserver {{\n{places}}}\n")),
        ("rules.yaml", format!("domain: d\ndescriptors:\n{rules}")),
    ] {
        let (name, length) = write(name, text);
        let found = peak(&["check", &name, "--json"]);
        assert!(found < BASE + length + 5_000 * 4096, "{found} for {length} bytes of {name}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_size_takes_no_memory_to_speak_of() {
    let limits: Vec<String> = (1..=2_000).map(|rate| format!("--limit={rate}/s burst 20")).collect();
    let limits: Vec<&str> = limits.iter().map(|limit| &**limit).collect();
    // A table of 20 GiB.
    let found = peak(&[&["size", "--new-keys", "100000000", "--json"], &limits[..]].concat());
    assert!(found < BASE, "{found}");
}

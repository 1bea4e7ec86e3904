//! The most memory that each command takes, next to what the README and --help say.

use std::fmt::Write;
use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};

use tatcell::{LimitSpec, Line, Table, TableOptions};

use crate::folder;
use crate::program::PROGRAM;
use crate::replay::Throttled;

/// What of the program itself is its own: its stack, and buffers for reading.
const OWN: u64 = 3 << 20;

/// The most memory of its own that a command has had when its answer is made, in bytes: all but the pages of files,
/// which the kernel maps as it likes. The answer must be longer than a pipe holds, so that the program still waits
/// while its peak is read.
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
    let bytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a number");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
    };
    (bytes("VmHWM:") - bytes("RssFile:"), String::from_utf8_lossy(&text).into_owned())
}

/// What a key takes with seven rates, more of it for a limit, and the times at which it was refused.
const KEY: u64 = 280;
const LIMIT: u64 = 50;
const TIMES: u64 = 24 << 20;
/// What a key takes that is listed, and on a page.
const LISTED: u64 = 800;
const ON_A_PAGE: u64 = 12 << 10;

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
    let bytes = |keys: u64| keys * (KEY + LIMIT) + 65_536 * 8 + 1000 * LISTED;
    let (all, sample) = (of(KEYS), of(KEYS / 10));
    assert!(all > KEYS * 200 && all < OWN + bytes(KEYS), "{all}");
    assert!(sample < OWN + bytes(KEYS / 10), "{sample}");
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
    assert!(found < OWN + keys as u64 * KEY + 1000 * LISTED + 100 * OPEN, "{found}");
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
    assert!(
        found > MOST as u64 * 40 && found < OWN + keys as u64 * (KEY + LISTED) + MOST as u64 * 80,
        "{found}"
    );
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
    assert!(found < OWN + keys as u64 * (KEY + LISTED) + (8 << 20), "{found}");
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
    assert!(found < OWN + 1000 * (200 + 4 * 64), "{found} besides {} of the table", image.len());
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
    // One key in eight is left, and those have at most 128 bytes for each that may be.
    assert!(found < OWN + keys / 8 * KEY + 1000 * (LISTED + 1000) + 2 * keys * 128, "{found}");
    // Of keys of 1 MiB one is there, and a few more while they are read.
    let long = "x".repeat(1_040_000);
    let log: String = (0..64).map(|key| format!("1700000000 /{key}/{long}\n")).collect();
    let log = log + &"1700000000 /\n".repeat(9);
    fs::write(&file, log).expect("a file");
    let rates: Vec<_> = (1..400).flat_map(|rate| ["-r".to_owned(), format!("{rate}/s")]).collect();
    let rates: Vec<_> = rates.iter().map(String::as_str).collect();
    let found = peak(&[&["plan", name][..], &format, &rates, &["--max-keys", "100"]].concat());
    assert!(found < OWN + 100 * 400 * 40 + (8 << 20), "{found}");
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
    let rest = OWN + 65_536 * 8 + 2 * keys as u64 * 80 + 2_000 * LISTED;
    let (all, sample) = (of("20000"), of("2000"));
    assert!(all < rest + keys as u64 * 190, "{all}");
    assert!(sample < rest + 2_000 * 190, "{sample}");
    // The rest is the same in both; the sample has more than a thousand keys to list.
    assert!(all - sample < (keys as u64 - 2_000) * 190 + 1_000 * LISTED, "{all} and {sample}");
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
        assert!(found < OWN + 3 * length + 5_000 * 4096, "{found} for {length} bytes of {name}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn long_names_and_what_limits_nothing_take_no_memory_in_a_check() {
    let file = folder("memory-check-names").join("nginx.conf");
    let name = file.to_str().expect("a name");
    let (uses, long) = (2_000, "x".repeat(3_000));
    let zone = |name: &str, key: &str| format!("limit_req_zone $k{key} zone={name}:32k rate=10r/s;\n");
    let many = |text: &dyn Fn(u64) -> String| (0..uses).map(text).collect::<String>();
    let places = many(&|at| format!("location /{at} {{ limit_req zone=a; }}\n"));
    let zones = many(&|at| zone(&format!("z{at}"), &at.to_string()));
    let of_server = many(&|at| format!("limit_req zone=z{at};\n"));
    for text in [
        // Blocks with long names in each other, and a long key.
        format!(
            "{}{}{places}{}",
            zone("a", &long),
            format!("location /{long} {{\n").repeat(20),
            "}".repeat(20)
        ),
        // Each place has a limit of its own, so as many of the level above do not apply.
        format!("{}{zones}server {{ {of_server} {places} }}", zone("a", "")),
        // Many words, many servers and many empty blocks.
        format!("{}geo $list {{ {}; }}\nserver {{ {places} }}", zone("a", ""), "word ".repeat(300_000)),
        format!("{}server {{ {places} }}\n{}", zone("a", ""), "server { server_name a; }\n".repeat(60_000)),
        format!("http {{ {} {places} }}\n{}", zone("a", ""), "mail {}\n".repeat(200_000))
            .replace("location", "server { location")
            .replace("; }", "; } }"),
    ] {
        fs::write(&file, &text).expect("a file");
        let found = peak(&["check", name, "--json"]);
        let most = OWN + 3 * text.len() as u64 + 2 * uses * 4096;
        assert!(found < most, "{found} for {} bytes of {:.60}", text.len(), text);
    }
    // A rule of Envoy's takes its names more than once.
    let rule = |at| format!("  - key: k{at}\n    rate_limit: {{unit: minute, requests_per_unit: {at}}}\n");
    let rules: String = (1..=uses).map(rule).collect();
    let file = file.with_extension("yaml");
    fs::write(&file, format!("domain: d\ndescriptors:\n- key: {long}\n  descriptors:\n{rules}"))
        .expect("a file");
    let found = peak(&["check", file.to_str().expect("a name"), "--json"]);
    assert!(found < OWN + uses * (4096 + 4 * 3_000), "{found}");
    // Lists that have no effect.
    let lists = "a,".repeat(100_000);
    fs::write(
        &file,
        format!("domain: d\ndescriptors:\n- key: k\n  metadata: [{lists}]\n  descriptors:\n{rules}"),
    )
    .expect("a file");
    let found = peak(&["check", file.to_str().expect("a name"), "--json"]);
    assert!(found < OWN + uses * 4096 + 100_000 * 400, "{found}");
}

#[cfg(target_os = "linux")]
#[test]
fn limits_prefixes_lists_and_a_page_take_what_the_readme_says() {
    let folder = folder("memory-limits");
    let (file, keys) = (folder.join("access.log"), 60_000);
    let log: String = addresses()
        .take(keys)
        .enumerate()
        .map(|(at, key)| format!("{key} {}\n", 1_700_000_000 + at / 1_000))
        .collect();
    fs::write(&file, log).expect("a file");
    let name = file.to_str().expect("a name");
    let format = ["--log-format", "$remote_addr $msec", "--slots", "65536", "--json"];
    let of = |more: &[&str]| peak(&[&["plan", name][..], &format, more].concat());
    let (all, table) = (OWN + keys as u64 * KEY, 65_536 * 8);
    // All are listed.
    let listed = of(&["--top", "60000"]);
    assert!(listed < all + keys as u64 * LISTED, "{listed}");
    let further: Vec<_> = (1..=20).flat_map(|rate| ["-r".to_owned(), format!("{rate}/s")]).collect();
    let further: Vec<_> = further.iter().map(String::as_str).chain(["--top", "1000"]).collect();
    let rates = of(&further);
    assert!(rates < all + keys as u64 * 13 * 40 + 1000 * LISTED, "{rates}");
    // As many prefixes as addresses, which the key does not tell apart; and two of each in a ladder.
    let prefixes = of(&["--key", "address/26", "-l", "/32 1000/s burst 1000000", "--top", "1000"]);
    assert!(prefixes < OWN + keys as u64 * 70 + table + 1000 * LISTED, "{prefixes}");
    let ladder = ["-l", "ladder 1/s burst 1000", "--ladder", "32 31x2, 128", "--top", "1000"];
    let ladder = of(&[&["--key", "address/26"][..], &ladder].concat());
    assert!(ladder < OWN + keys as u64 * 3 / 2 * 70 + table + 1000 * LISTED, "{ladder}");
    // Each key is refused half an hour after the other ones, and all are on the page.
    let keys = 2_000;
    let hour = |hour: usize| {
        addresses().take(keys).map(move |key| format!("{key} {}\n", 1_700_000_000 + hour * 1_800))
    };
    fs::write(&file, (0..48).flat_map(hour).collect::<String>()).expect("a file");
    let page = folder.join("page.html");
    let page = ["--report", page.to_str().expect("a name"), "-l", "1/d burst 1", "--top", "2000"];
    let found = of(&page);
    let refused = keys as u64 * (KEY + LIMIT + LISTED) + TIMES / 32 + table;
    assert!(found < OWN + refused + 1_000 * ON_A_PAGE, "{found}");
    // Of long keys a part.
    let (keys, long) = (200, "<".repeat(20_000));
    let log: String = (0..3 * keys).map(|at| format!("{} /{}{long}\n", 1_700_000_000, at % keys)).collect();
    fs::write(&file, log).expect("a file");
    let plan = ["plan", name, "--log-format", "$msec $path", "-k", "path", "--top", "200"];
    let output = Command::new(PROGRAM).args(plan).args(&page[..4]).output().expect("the program runs");
    let found = fs::metadata(page[1]).expect("a page").len();
    assert!(output.status.success() && found < keys * ON_A_PAGE, "{found}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_size_takes_no_memory_to_speak_of() {
    let limits: Vec<String> = (1..=2_000).map(|rate| format!("--limit={rate}/s burst 20")).collect();
    let limits: Vec<&str> = limits.iter().map(|limit| &**limit).collect();
    // A table of 20 GiB.
    let found = peak(&[&["size", "--new-keys", "100000000", "--json"], &limits[..]].concat());
    assert!(found < OWN, "{found}");
}

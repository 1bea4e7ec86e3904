//! The program: exit codes, messages, text and JSON.

use std::fs;
use std::io::Write;
use std::process::{Command, Output, Stdio};

use crate::folder;
use crate::logs::incident;

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_tatcell");

fn run(arguments: &[&str]) -> Output {
    Command::new(PROGRAM).args(arguments).stdin(Stdio::null()).output().expect("the program runs")
}

/// The exit code and the message.
fn fails(arguments: &[&str]) -> (Option<i32>, String) {
    let output = run(arguments);
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

pub const LINE: &str = "192.0.2.1 - - [14/Nov/2023:22:13:20 +0000] \"GET / HTTP/1.1\" 200 10 \"-\" \"x\"\n";

#[test]
fn an_answer_ends_with_0_and_goes_to_the_output_only() {
    let file = folder("answer").join("access.log");
    fs::write(&file, LINE.repeat(3)).expect("a file");
    let output = run(&["plan", file.to_str().expect("a name")]);
    assert_eq!((output.status.code(), &*output.stderr), (Some(0), &b""[..]));
    assert!(String::from_utf8_lossy(&output.stdout).contains("3 records of 1 key (address)"));
}

#[test]
fn a_broken_bound_ends_with_1_after_the_answer() {
    let file = folder("bound").join("access.log");
    fs::write(&file, LINE.repeat(10)).expect("a file");
    let name = file.to_str().expect("a name");
    let limit = ["plan", name, "-l", "1/s burst 4"];
    for (more, want) in [
        (&["--max-refused", "50"][..], "1/s burst 4 refuses 60.0000 % of the records; --max-refused is 50 %"),
        (&["--max-hit", "0"], "1/s burst 4 hits 1 key; --max-hit is 0"),
        (&["--good", "192.0.2.1"], "1/s burst 4 refuses the good key 192.0.2.1"),
    ] {
        let output = run(&[&limit[..], more].concat());
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), &*message), (Some(1), &*format!("tatcell: {want}\n")));
        assert!(!output.stdout.is_empty());
    }
    assert_eq!(fails(&[&limit[..], &["--max-refused", "60", "--max-hit", "1"]].concat()).0, Some(0));
}

#[test]
fn a_bound_that_a_sample_does_not_show_to_be_kept_is_broken() {
    let file = folder("bound-sample").join("access.log");
    let lines = (0..2_000u64).map(|key| {
        let address = format!("10.0.{}.{}", key / 250, key % 250);
        // One in a hundred sends ten, and is refused.
        LINE.replace("192.0.2.1", &address).repeat(if key % 100 == 0 { 10 } else { 1 })
    });
    fs::write(&file, lines.collect::<String>()).expect("a file");
    let name = file.to_str().expect("a name");
    for (most_keys, most_hit, code, want) in [
        // Of a sample of the keys, those that are refused are all counted.
        ("100", "20", 0, ""),
        ("100", "19", 1, "tatcell: 1/s burst 4 hits 20 keys; --max-hit is 19\n"),
        ("100", "0", 1, "tatcell: 1/s burst 4 hits 20 keys; --max-hit is 0\n"),
        // If they are too many, too, nobody knows how many they are.
        (
            "10",
            "1000",
            1,
            " keys, by a sample: whether these are at most the 1000 of --max-hit is not known; ",
        ),
        ("10", "0", 1, " keys; --max-hit is 0\n"),
    ] {
        let limit = ["plan", name, "-l", "1/s burst 4", "--max-keys", most_keys, "--max-hit", most_hit];
        let output = run(&[&limit[..], &["--seed", "000102030405060708090a0b0c0d0e0f"]].concat());
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{most_keys} {most_hit}: {message}");
        assert!(
            message.contains(want) && message.is_empty() == want.is_empty(),
            "{most_keys} {most_hit}: {message}"
        );
    }
}

#[cfg(target_os = "linux")]
#[test]
fn an_answer_that_cannot_be_written_is_a_failure() {
    let file = folder("full").join("access.log");
    fs::write(&file, LINE).expect("a file");
    let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("a full device");
    let output =
        Command::new(PROGRAM).arg("plan").arg(&file).stdout(full).output().expect("the program runs");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(3) && message.contains("cannot write the answer"), "{message}");
}

#[test]
fn an_empty_file_among_others_is_left_out() {
    let folder = folder("empty");
    let name = |file: &str| folder.join(file).to_str().expect("a name").to_owned();
    fs::write(name("access.log"), "").expect("a file");
    fs::write(name("access.log.1"), LINE.repeat(3)).expect("a file");
    let output = run(&["plan", &name("access.log"), &name("access.log.1")]);
    assert_eq!((output.status.code(), &*String::from_utf8_lossy(&output.stderr)), (Some(0), ""));
    assert!(String::from_utf8_lossy(&output.stdout).contains("3 records of 1 key (address)"));
    // One that alone is empty is an error: a guard must not pass because a log is missing.
    let (code, message) = fails(&["plan", &name("access.log"), &name("access.log")]);
    assert!(code == Some(3) && message.contains("the input is empty"), "{message}");
}

#[test]
fn bad_arguments_end_with_2_and_a_message_that_helps() {
    let file = folder("arguments").join("access.log");
    fs::write(&file, LINE).expect("a file");
    let name = file.to_str().expect("a name");
    for (arguments, want) in [
        (&[][..], "Usage: tatcell"),
        (&["plan"], "required arguments were not provided"),
        (&["plan", name, "-l", "10/fortnight"], "limit \"10/fortnight\": byte 3: not a unit of time"),
        (&["plan", name, "-l", "sliding 10/fortnight"], "byte 11: not a unit of time"),
        (&["plan", name, "-l", "ten 10/s"], "\"ten\" is none of gcra, fixed, sliding, quota and decay"),
        (&["plan", name, "-l", "fixed 10/s burst 3"], "fixed has no burst"),
        (&["plan", name, "-r", "10/s burst 3"], "a rate has no burst"),
        (&["plan", name, "-k", "address/33"], "prefix length \"33\": use 0 to 32"),
        (
            &["plan", name, "-k", "colour"],
            "no field \"colour\" in this format; it has address, path, method, remote",
        ),
        (&["plan", name, "--spare", "101"], "--spare \"101\": use percents from 0 to 100"),
        (&["plan", name, "--sort", "10"], "\"10\" is no time"),
        (&["plan", name, "--seed", "12"], "\"12\" is no seed: use 32 hexadecimal digits"),
        (
            &["plan", name, "--seed", "+00102030405060708090a0b0c0d0e0f0"],
            "is no seed: use 32 hexadecimal digits",
        ),
        (
            &["plan", name, "--log-format", "$a$msec"],
            "$a and $msec of the log format have nothing between them",
        ),
        (&["plan", name, "--log-format", "$a $b"], "no field \"time_local, msec, time_iso8601 or time\""),
        (&["plan", name, "--good", "nobody"], "key \"nobody\" is none of this plan"),
        (&["plan", name, "--report", "traffic.svg"], "--report FILE.svg shows what a limit refuses"),
        (&["plan", name, "--slots", "0"], "--slots 0: use 1 to 1073741824 slots"),
        (&["plan", name, "--window", "0"], "--window 0: use a time above 0"),
        (&["plan", name, "--max-refused", "nan"], "\"nan\" is no share: use percents from 0 to 100"),
        (&["plan", name, "--max-refused", "101"], "\"101\" is no share: use percents from 0 to 100"),
        (&["plan", name, "-r", "1MB/s"], "\"1MB/s\" counts bytes: give --cost bytes"),
        (&["plan", name, "-l", "1MiB/s burst 5MB"], "\"1MiB/s burst 5MB\" counts bytes: give --cost bytes"),
        (&["plan", name, "--target", "0"], "0 is not in 1..=1000000000"),
        (&["plan", name, "--target", "99999999999"], "is not in 1..=1000000000"),
        (
            &["plan", name, "-l", "7/s burst 2000000000"],
            "limit \"7/s burst 2000000000\": no word of a table holds its burst; at this rate 5043631",
        ),
        (
            &["plan", name, "-l", "sliding 1000000/s"],
            "no word of a table holds its units in this time: take fewer",
        ),
        (
            &["plan", name, "-l", "decay 1000000/s burst 300000000"],
            "no word of a table holds its burst: take a smaller one",
        ),
        (&["plan", name, "--good", "a\\qb", "-k", "path"], "a backslash is written as two"),
        (&["plan", name, "--report", name], "the file is also read: give another name"),
        (&["plan", name, "--report", "-"], "--report -: a page is a file"),
        (&["plan", "-", name, "-"], "- is given twice: the standard input can be read once"),
        (
            &["size", "-n", "1", "-l", "ladder 5/s"],
            "size takes the limit of one key, such as \"10/s burst 20\"",
        ),
        (&["size", "-n", "1", "-l", "5/s and 9/min"], "size takes the limit of one key"),
        (&["size", "-n", "1", "-l", "/24 5/s"], "size takes the limit of one key"),
        (
            &["replay", name, "--to", "http://127.0.0.1:9/", "-l", "ladder 5/s"],
            "a replay has no ladder: a server has a limit for each of its lengths",
        ),
        (
            &["replay", name, "--to", "http://127.0.0.1:9/", "-l", "5/s", "--timeout", "0"],
            "--timeout 0: use a time above 0",
        ),
        (&["replay", name, "--to", "http://127.0.0.1:9/", "-l", "5kB/s"], "counts bytes: give --cost bytes"),
    ] {
        let (code, message) = fails(arguments);
        assert_eq!(code, Some(2), "{arguments:?}: {message}");
        assert!(message.contains(want), "{arguments:?}: {message}");
    }
}

#[test]
fn a_page_that_cannot_be_written_is_refused_before_the_input_is_read() {
    let folder = folder("report-early");
    let file = folder.join("access.log");
    fs::write(&file, LINE).expect("a file");
    let name = file.to_str().expect("a name");
    // Nothing of the answer is written, although the log can be read.
    let output = run(&["plan", name, "--report", "/nonexistent/x.html"]);
    assert_eq!((output.status.code(), &*output.stdout), (Some(3), &b""[..]));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.starts_with("tatcell: /nonexistent/x.html: No such file"), "{message}");
    // The input is not overwritten, by whatever name.
    let (link, hard) = (folder.join("link"), folder.join("hard"));
    std::os::unix::fs::symlink(&file, &link).expect("a link");
    fs::hard_link(&file, &hard).expect("a link");
    for other in [&link, &hard] {
        assert_eq!(fails(&["plan", name, "--report", other.to_str().expect("a name")]).0, Some(2));
        assert_eq!(fs::read_to_string(&file).expect("the log"), LINE);
    }
    // Nor is the answer.
    let answer = folder.join("answer");
    let same = Command::new(PROGRAM)
        .args(["plan", name, "--report", answer.to_str().expect("a name")])
        .stdout(fs::File::create(&answer).expect("a file"))
        .status();
    assert_eq!(same.expect("the program runs").code(), Some(2));
    // A page that comes to nothing leaves no file, and one that was there before is as it was.
    let (none, kept) = (folder.join("none.html"), folder.join("kept.html"));
    fs::write(&kept, "kept").expect("a file");
    for page in [&none, &kept] {
        let page = page.to_str().expect("a name");
        assert_eq!(fails(&["plan", "/nonexistent/log", "--report", page]).0, Some(3));
    }
    assert_eq!((none.exists(), fs::read_to_string(&kept).ok().as_deref()), (false, Some("kept")));
    assert_eq!(
        fails(&[
            "plan",
            name,
            "-l",
            "1/s",
            "--good",
            "192.0.2.9",
            "--report",
            kept.to_str().expect("a name")
        ])
        .0,
        Some(0)
    );
    // A longer page that was there before leaves nothing behind.
    let page = folder.join("page.html");
    fs::write(&page, "x".repeat(1 << 20)).expect("a file");
    assert!(run(&["plan", name, "--report", page.to_str().expect("a name")]).status.success());
    let text = fs::read_to_string(&page).expect("the page");
    assert!(text.starts_with('<') && text.trim_end().ends_with("</html>"), "{} bytes", text.len());
}

#[test]
fn a_run_that_is_interrupted_leaves_no_page() {
    let page = folder("report-interrupted").join("page.html");
    let start = || {
        Command::new(PROGRAM)
            .args(["plan", "-", "--report", page.to_str().expect("a name")])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program runs")
    };
    let mut child = start();
    // More than a pipe holds: so it reads, and has tried the page.
    let mut pipe = child.stdin.take().expect("a pipe");
    pipe.write_all(LINE.repeat(1 << 14).as_bytes()).expect("a pipe that is read");
    // What has come there meanwhile stays.
    fs::write(&page, "another").expect("a file");
    drop(pipe);
    assert_eq!(child.wait().expect("a child").code(), Some(3));
    assert_eq!(fs::read_to_string(&page).expect("a file"), "another");
    fs::remove_file(&page).expect("a file");
    let mut child = start();
    let mut pipe = child.stdin.take().expect("a pipe");
    pipe.write_all(LINE.repeat(1 << 14).as_bytes()).expect("a pipe that is read");
    child.kill().expect("a child");
    child.wait().expect("a child");
    assert!(!page.exists());
}

#[test]
fn an_address_that_is_none_has_its_line_and_column() {
    let folder = folder("no-address");
    let combined = "192.0.2.1 - ann [14/Nov/2023:22:13:20 +0000] \"GET /a HTTP/1.1\" 200 1 \"-\" \"x\"";
    let haproxy = "192.0.2.1:4711 [14/Nov/2023:22:13:20.123] in b/s 1 200 9 - - \"GET / HTTP/1.1\"";
    let envoy = "[2023-11-14T22:13:20.310Z] \"GET / HTTP/2\" 204 - 154 20 226 100 \"10.0.3.2\" \"n\" \"c\" \"l\" \"t\"";
    for (line, key, place) in [
        (combined, "remote_user/32", "1:13: remote_user is no address: \"ann\""),
        (
            r#"{"ts":1,"a":{"ip":"x"},"request":{"remote_ip":"z"}}"#,
            "address",
            "1:47: address is no address: \"z\"",
        ),
        (r#"{"ts":1,"b":"\u00e9","ip":"\u00e9"}"#, "ip/32", "1:27: ip is no address: \"é\""),
        (
            "time,user\n1700000000,192.0.2.1\n1700000000,\"ann\"\n",
            "user/24",
            "3:12: user is no address: \"ann\"",
        ),
        ("14-Nov-2023 22:13:20.123 client @0x7 x#5 (e): query: e IN A +", "address", "1:38: address is no"),
        ("[1700000000] unbound[1:0] info: x e. A IN", "address", "1:33: address is no address: \"x\""),
        (haproxy, "backend/32", "1:46: backend is no address: \"b\""),
        (envoy, "host/32", "1:84: host is no address: \"l\""),
    ] {
        let file = folder.join("log");
        fs::write(&file, line).expect("a file");
        let (code, message) = fails(&["plan", file.to_str().expect("a name"), "-k", key, "--strict"]);
        let want = format!("tatcell: {}:{place}", file.display());
        assert!(code == Some(3) && message.starts_with(&want), "{message} not {want}");
    }
    let file = folder.join("log");
    let name = file.to_str().expect("a name");
    let own = ["--log-format", "a $who - $msec", "-k", "who/32", "--strict"];
    fs::write(&file, "a x - 1700000000\n").expect("a file");
    let (code, message) = fails(&[&["plan", name], &own[..]].concat());
    assert!(code == Some(3) && message.contains("log:1:3: who is no address"), "{message}");
}

#[test]
fn an_input_that_cannot_be_read_ends_with_3_and_its_place() {
    let folder = folder("inputs");
    let file = |name: &str, text: &str| {
        fs::write(folder.join(name), text).expect("a file");
        folder.join(name).to_str().expect("a name").to_string()
    };
    let strange = file("strange", "what is this\n");
    let empty = file("empty", "");
    let broken = file(
        "broken",
        &format!("{LINE}{LINE}192.0.2.1 - - [no time] \"GET / HTTP/1.1\" 200 1 \"-\" \"-\"\n"),
    );
    let good = file("good", &LINE.repeat(2));
    let json = file("json", "{\"time\":1,\"ip\":\"192.0.2.1\"}\n{\"time\":1,\n");
    let cut = file("cut.gz", "\u{1f}");
    fs::write(&cut, [0x1f, 0x8b, 8, 0, 0, 0]).expect("a file");
    for (arguments, want) in [
        (&["plan", "/nonexistent/log"][..], "/nonexistent/log: No such file".to_string()),
        (
            &["plan", &strange],
            format!("{strange}:1:1: no known format: \"what is this\"; name it by --format"),
        ),
        (&["plan", &empty], format!("{empty}:1:1: no known format: the input is empty")),
        (&["plan", &broken, "--strict"], format!("{broken}:3:16: no time: \"no time\"")),
        (&["plan", &json, "--strict"], format!("{json}:2:")),
        (&["plan", &cut], format!("{cut}:1: ")),
        (&["plan", &good, "-k", "path=/none"], "none of 2 paths has the form".into()),
    ] {
        let (code, message) = fails(arguments);
        assert_eq!(code, Some(3), "{arguments:?}: {message}");
        assert!(message.contains(&*want), "{arguments:?}: {message}");
    }
    // Without --strict it is counted, with its place.
    let output = run(&["plan", &broken]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 record could not be read."), "{text}");
    assert!(text.contains(&format!("{broken}:3:16: no time")), "{text}");
}

#[test]
fn a_pipe_is_read_as_a_file_is() {
    let log = incident().combined();
    let file = folder("pipe").join("access.log");
    fs::write(&file, &log).expect("a file");
    let common = ["--seed", "000102030405060708090a0b0c0d0e0f", "-l", "5/s burst 20", "--json"];
    let of_file = run(&[&["plan", file.to_str().expect("a name")], &common[..]].concat());
    let mut child = Command::new(PROGRAM)
        .args(["plan", "-"])
        .args(common)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program runs");
    let mut pipe = child.stdin.take().expect("a pipe");
    let writer = std::thread::spawn(move || pipe.write_all(log.as_bytes()));
    let of_pipe = child.wait_with_output().expect("it ends");
    writer.join().expect("a thread").expect("all is read");
    let without_files = |output: &Output| {
        let mut json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        json["input"]["files"].take();
        json
    };
    assert_eq!(without_files(&of_file), without_files(&of_pipe));
}

#[test]
fn text_and_json_have_the_same_numbers() {
    let file = folder("numbers").join("access.log");
    fs::write(&file, incident().combined()).expect("a file");
    let arguments = ["plan", file.to_str().expect("a name"), "-l", "2/s burst 15", "-l", "sliding 100/min"];
    let seed = ["--seed", "000102030405060708090a0b0c0d0e0f"];
    let text = String::from_utf8(run(&[&arguments[..], &seed].concat()).stdout).expect("text");
    let json = run(&[&arguments[..], &seed, &["--json"]].concat()).stdout;
    let json: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
    let words: Vec<_> = text.split(|c: char| !c.is_alphanumeric() && c != '.' && c != '_').collect();
    let mut numbers = 0;
    let mut has = |value: &serde_json::Value| {
        let number = value.as_u64().expect("a number").to_string();
        assert!(words.contains(&&*number), "{number} is not in\n{text}");
        numbers += 1;
    };
    ["records", "keys"].iter().for_each(|name| has(&json["input"][name]));
    for rate in json["rates"].as_array().expect("rates") {
        ["p50", "p90", "p99", "p999", "max", "smallest"].iter().for_each(|name| has(&rate[name]));
    }
    for limit in json["limits"].as_array().expect("limits") {
        ["refused", "keys_hit"].iter().for_each(|name| has(&limit[name]));
        ["refused", "records"].iter().for_each(|name| has(&limit["worst"][name]));
        ["slots", "peak_live"].iter().for_each(|name| has(&limit["table"][name]));
        for key in limit["top_refused"].as_array().expect("keys") {
            has(&key["refused"]);
        }
    }
    assert!(numbers > 50, "{numbers}");
}

#[test]
fn rotated_files_may_come_in_any_order() {
    let folder = folder("rotated");
    let log = incident().combined();
    let lines: Vec<_> = log.lines().collect();
    let (old, new) = lines.split_at(lines.len() / 2);
    let write = |name: &str, lines: &[&str]| {
        fs::write(folder.join(name), lines.join("\n") + "\n").expect("a file");
        folder.join(name).to_str().expect("a name").to_string()
    };
    let (whole, old, new) = (write("whole", &lines), write("log.1", old), write("log", new));
    let answer = |files: &[&str]| {
        let output =
            run(&[&["plan"], files, &["--json", "--seed", "000102030405060708090a0b0c0d0e0f"]].concat());
        let mut json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        json["input"]["files"].take();
        json
    };
    assert_eq!(answer(&[&new, &old]), answer(&[&whole]));
}

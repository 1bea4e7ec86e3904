//! Inputs as they come: of several servers, cut, damaged, with what no format has, or made to mislead.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::folder;
use crate::program::PROGRAM;

const T: u64 = 1_700_000_000;

/// A folder of files of one test.
struct Files(PathBuf);

impl Files {
    fn new(name: &str) -> Files {
        Files(folder(&format!("inputs-{name}")))
    }

    /// Writes a file, and returns its path.
    fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        let path = self.0.join(name);
        fs::write(&path, bytes).expect("a file");
        path.to_str().expect("a name").into()
    }
}

/// The exit code, the answer and the message.
fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(PROGRAM)
        .arg("plan")
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("the program runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// The answer at one request a second.
fn plan(files: &[&str], more: &[&str]) -> Value {
    let rate = ["--json", "--seed", "00112233445566778899aabbccddeeff", "--rate", "1/s"];
    let (code, answer, message) = run(&[files, &rate, more].concat());
    assert_eq!((code, &*message), (Some(0), ""), "{files:?} {more:?}");
    serde_json::from_str(&answer).expect("JSON")
}

/// The message of a plan that ends with this code.
fn fails(code: i32, arguments: &[&str]) -> String {
    let (found, answer, message) = run(arguments);
    assert_eq!((found, &*answer), (Some(code), ""), "{arguments:?}: {message}");
    message
}

/// Records, keys, and the burst that the neediest key needs at 1/s.
fn numbers(json: &Value) -> (u64, u64, u64) {
    let number = |value: &Value| value.as_u64().expect("a number");
    (number(&json["input"]["records"]), number(&json["input"]["keys"]), number(&json["rates"][0]["max"]))
}

/// What is said of a record that could not be read.
fn first_bad(json: &Value) -> &str {
    json["input"]["first_bad"][0].as_str().unwrap_or("nothing is bad")
}

/// The time of nginx and Apache.
fn clock(time: u64) -> String {
    let since = time - 1_699_920_000;
    let (day, hour, minute) = (14 + since / 86_400, since / 3600 % 24, since / 60 % 60);
    format!("{day:02}/Nov/2023:{hour:02}:{minute:02}:{:02} +0000", since % 60)
}

fn line(address: &str, time: u64) -> String {
    format!("{address} - - [{}] \"GET / HTTP/1.1\" 200 5 \"-\" \"x\"\n", clock(time))
}

/// A hundred requests of one client, one a second.
fn steady() -> String {
    (0..100).map(|at| line("192.0.2.1", T + at)).collect()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(bytes).expect("memory");
    out.finish().expect("memory")
}

#[test]
fn a_duration_is_subtracted_only_from_the_time_of_an_end_and_in_seconds() {
    let files = Files::new("duration");
    let rows = |row: &dyn Fn(u64) -> String| (0..600).map(row).collect::<String>();
    let subtracted = |json: &Value| json["input"]["subtracted"].to_string();
    // Envoy's and Istio's time is that of the start, and their durations are milliseconds.
    let envoy = rows(&|at| {
        let (minute, second, duration) = (13 + at / 60, at % 60, [3, 900, 20, 300][at as usize % 4]);
        format!(
            "{{\"start_time\":\"2023-11-14T22:{minute:02}:{second:02}.000Z\",\"path\":\"/a\",\"duration\":{duration},\
             \"downstream_remote_address\":\"192.0.2.1:4711\"}}\n"
        )
    });
    let json = plan(&[&files.file("envoy", envoy)], &["--limit", "1/s burst 3"]);
    assert_eq!((numbers(&json), &json["limits"][0]["refused"]), ((600, 1, 1), &0.into()));
    assert_eq!((subtracted(&json), &json["input"]["stamps_end"]), ("[]".into(), &false.into()));
    // Nobody knows what this program means.
    let other = rows(&|at| {
        format!("{{\"time\":{},\"ip\":\"192.0.2.1\",\"duration\":{}}}\n", T + at, 1500 + at % 2 * 9)
    });
    let json = plan(&[&files.file("other", other)], &[]);
    assert_eq!((numbers(&json), subtracted(&json)), ((600, 1, 1), "[]".into()));
    assert_eq!(json["input"]["first"], "2023-11-14T22:13:20Z");
    // Requests that begin each second, and take 2 ms or 2 s: nginx, and Caddy.
    let end = |at: u64| format!("{}.{:03}", T + at + [0, 2][at as usize % 2], [2, 0][at as usize % 2]);
    let took = |at: u64| ["0.002", "2.000"][at as usize % 2];
    let nginx = rows(&|at| {
        format!(
            "{{\"msec\":\"{}\",\"remote_addr\":\"192.0.2.1\",\"request_time\":\"{}\"}}\n",
            end(at),
            took(at)
        )
    });
    let caddy = rows(&|at| {
        let request = "{\"remote_ip\":\"192.0.2.1\",\"uri\":\"/\"}";
        format!("{{\"ts\":{},\"request\":{request},\"duration\":{}}}\n", end(at), took(at))
    });
    let csv = rows(&|at| format!("{},192.0.2.1,{}\n", end(at), took(at)));
    let csv = format!("msec,remote_addr,request_time\n{csv}");
    for (name, text, field) in
        [("nginx", nginx, "request_time"), ("caddy", caddy, "duration"), ("csv", csv, "request_time")]
    {
        let file = files.file(name, text);
        let json = plan(&[&file], &[]);
        assert_eq!(
            (numbers(&json), subtracted(&json)),
            ((600, 1, 1), format!("[\"{field} (seconds)\"]")),
            "{name}"
        );
        let (_, text, _) = run(&[&file]);
        assert!(text.contains(&format!("Times are whole milliseconds, less {field} (seconds)")), "{text}");
    }
    // Whole numbers of Caddy are milliseconds or nanoseconds.
    let request = "{\"remote_ip\":\"192.0.2.1\",\"uri\":\"/\"}";
    let caddy = rows(&|at| {
        format!("{{\"ts\":{}.5,\"request\":{request},\"duration\":{}}}\n", T + at, 17 + at % 2 * 9_000)
    });
    let json = plan(&[&files.file("caddy-ms", caddy)], &[]);
    assert_eq!((numbers(&json), subtracted(&json)), ((600, 1, 1), "[]".into()));
    assert_eq!(json["input"]["stamps_end"], true);
    // The same without it: the plan says which times these are.
    let ends = rows(&|at| format!("{},192.0.2.1\n", end(at)));
    let json = plan(&[&files.file("ends", format!("msec,remote_addr\n{ends}"))], &[]);
    assert_eq!((&json["input"]["stamps_end"], subtracted(&json)), (&true.into(), "[]".into()));
}

#[test]
fn a_port_is_no_part_of_an_address() {
    let files = Files::new("port");
    let haproxy = |prefix: &str| {
        let line = |at: u64| {
            let port = 1024 + at * 7;
            let time = clock(T + at / 50).replace(" +0000", ".000");
            let rest = "web app/s1 0/0/1/2/3 200 5 - - ---- 1/1/0/0/0 0/0 \"GET / H\"";
            format!("{prefix}2001:db8::1:{port} [{time}] {rest}\n")
        };
        (0..600).map(line).collect::<String>()
    };
    for prefix in ["", "Nov 14 22:13:20 host haproxy[1401]: "] {
        let json = plan(&[&files.file("haproxy", haproxy(prefix))], &["--key", "client_port+address"]);
        assert_eq!((&json["input"]["records"], &json["input"]["keys"]), (&600.into(), &600.into()));
        let json = plan(&[&files.file("haproxy", haproxy(prefix))], &[]);
        assert_eq!((&json["input"]["keys"], &json["neediest"][0]["key"]), (&1.into(), &"2001:db8::1".into()));
    }
    // So it is in a format of one's own.
    let own: String = (0..100).map(|at| format!("{} 2001:db8::1:{} x\n", T + at, 1000 + at)).collect();
    let file = files.file("own", own);
    for format in ["$msec $remote_addr:$remote_port $rest", "$msec $remote_addr:${remote_port} x"] {
        assert_eq!(numbers(&plan(&[&file], &["--log-format", format])), (100, 1, 1));
    }
}

#[test]
fn a_log_that_begins_with_the_server_is_not_taken_for_its_client() {
    let files = Files::new("vhost");
    for server in ["127.0.1.1:80", "[::1]:443", "2001:db8::80:80", "www.example.com:443"] {
        let log: String = (0..1000)
            .map(|at| format!("{server} {}", line(&format!("203.0.113.{}", at % 200), T + at / 100)))
            .collect();
        let file = files.file("log", log);
        let json = plan(&[&file], &[]);
        assert_eq!(
            (json["input"]["formats"].to_string(), numbers(&json)),
            ("[\"vhost\"]".into(), (1000, 200, 1)),
            "{server}"
        );
        assert_eq!(json["input"]["stamps_end"], false, "Apache writes the time of the start");
        let message = fails(3, &[&file, "--format", "combined"]);
        assert!(message.contains("log:1000:") && message.contains("--format vhost"), "{message}");
        assert!(message.contains("none of 1000 records could be read"), "{message}");
    }
    // The names of a server that asks its clients for them, and a user with a space in the name.
    let named = steady().replace("192.0.2.1 - -", "192.0.2.1 ann bob")
        + &line("2001:db8::1", T).replace("- -", "- a b");
    let json = plan(&[&files.file("named", named)], &[]);
    assert_eq!(
        (json["input"]["formats"].to_string(), numbers(&json)),
        ("[\"combined\"]".into(), (101, 2, 1))
    );
    let (code, ..) = run(&[&files.file("v6", line("2001:db8::1", T)), "--key", "server"]);
    assert_eq!(code, Some(2), "a line of combined has no server");
}

/// An IPv4 header with the start of UDP.
fn ip4(host: u8) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, host, 198, 51, 100, 1];
    packet.extend([4, 210, 0, 53, 0, 8, 0, 0]);
    packet
}

/// A capture of such packets with this in front, one a second.
fn capture(link: u32, before: &[u8], hosts: impl Iterator<Item = u8>) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, link] {
        file.extend(u32::to_le_bytes(word));
    }
    for (at, host) in hosts.enumerate() {
        let packet = [before, &ip4(host)].concat();
        for word in [T as u32 + at as u32, 0, packet.len() as u32, packet.len() as u32] {
            file.extend(word.to_le_bytes());
        }
        file.extend(packet);
    }
    file
}

#[test]
fn the_address_is_found_behind_each_kind_of_link() {
    let files = Files::new("links");
    let ethernet = |rest: &[u8]| [&[2; 12], rest].concat();
    let cooked = |rest: &[u8]| [&[0, 0, 0, 1, 0, 6][..], &[1; 8], rest].concat();
    let cooked2 = |kind: [u8; 2], rest: &[u8]| [&kind[..], &[0; 18], rest].concat();
    for (link, before) in [
        (1, ethernet(&[8, 0])),
        (1, ethernet(&[0x88, 0xa8, 0, 5, 0x81, 0, 0x40, 0x64, 8, 0])),
        // PPPoE, MPLS with two labels.
        (1, ethernet(&[0x88, 0x64, 0x11, 0, 0, 1, 0, 30, 0, 0x21])),
        (1, ethernet(&[0x88, 0x47, 0, 1, 0, 0x40, 0, 1, 1, 0x40])),
        (113, cooked(&[8, 0])),
        // The tag of a VLAN looks like the version of IP.
        (113, cooked(&[0x81, 0, 0x40, 0x64, 8, 0])),
        (276, cooked2([8, 0], &[])),
        (276, cooked2([0x81, 0], &[0x60, 0x64, 8, 0])),
        (9, vec![0xff, 3, 0, 0x21]),
        (9, vec![0x21]),
        (50, vec![0xff, 3, 0, 0x21]),
        (104, vec![0x0f, 0, 8, 0]),
        (0, vec![2, 0, 0, 0]),
        (108, vec![0, 0, 0, 2]),
        (101, vec![]),
    ] {
        let json = plan(&[&files.file("links.pcap", capture(link, &before, 1..=10))], &["--strict"]);
        assert_eq!(numbers(&json), (10, 10, 1), "link {link}, {before:x?}");
        assert_eq!(json["neediest"][0]["key"].as_str().map(|key| key.starts_with("192.0.2.")), Some(true));
    }
    // What is something else is passed over, and counted apart.
    let others = [
        (1, ethernet(&[8, 6]), "not IP: type 0x0806"),
        (1, ethernet(&[0x88, 0x64, 0x11, 0, 0, 1, 0, 30, 0xc0, 0x21]), "not IP: protocol 0xc021 of PPP"),
        (1, ethernet(&[0x88, 0x47, 0, 1, 1, 0x40, 0, 0, 0, 0]), "not IP behind MPLS"),
        (113, cooked(&[8, 6]), "not IP: type 0x0806"),
        (276, cooked2([0x81, 0], &[0x40, 0x64, 8, 6]), "not IP: type 0x0806"),
        (0, vec![7, 0, 0, 0], "not IP: family 7"),
    ];
    for (link, before, want) in others {
        let mut file = capture(link, &before, 1..=100);
        let message = fails(3, &[&files.file("others.pcap", &file)]);
        assert!(
            message.contains(&format!("none of 100 packets counts, the first: {}", want_at(&files, want))),
            "{message}"
        );
        // More than a plan bears of what cannot be read.
        (0..14).for_each(|_| file.extend(&capture(link, &before, 1..=100)[24..]));
        let good = match link {
            1 => capture(1, &ethernet(&[8, 0]), 1..=10),
            113 => capture(113, &cooked(&[8, 0]), 1..=10),
            276 => capture(276, &cooked2([8, 0], &[]), 1..=10),
            _ => capture(0, &[2, 0, 0, 0], 1..=10),
        };
        file.extend(&good[24..]);
        let json = plan(&[&files.file("others.pcap", file)], &["--strict", "--sort", "5min"]);
        assert_eq!(
            (numbers(&json), &json["input"]["others"], &json["input"]["bad"]),
            ((10, 10, 1), &1500.into(), &0.into())
        );
        assert_eq!(json["input"]["first_other"], want_at(&files, want));
    }
    let message = fails(3, &[&files.file("wlan.pcap", capture(105, &[], (0..1000).map(|_| 1)))]);
    assert!(
        message.contains("link type 105 is not known; known are 0 and 108 (BSD loopback), 1 (Ethernet)"),
        "{message}"
    );
    // ICMP has no ports: a packet without them has no such key.
    let mut icmp = capture(101, &[], 1..=20);
    (0..10).for_each(|packet| icmp[24 + packet * 44 + 16 + 9] = 1);
    let json = plan(&[&files.file("icmp.pcap", icmp)], &["--key", "source_port", "--strict"]);
    assert_eq!((numbers(&json).0, &json["input"]["others"]), (10, &10.into()));
}

fn want_at(files: &Files, what: &str) -> String {
    format!("{}:1: {what}", files.0.join("others.pcap").display())
}

/// A little-endian pcapng file with one interface of raw IP, whose options if_tsresol and if_tsoffset are these; one
/// packet a second.
fn pcapng(resolution: u8, offset: i64, stamp: impl Fn(u64) -> u64) -> Vec<u8> {
    let block = |kind: u32, body: &[u8]| {
        let length = (body.len() as u32 + 12).to_le_bytes();
        [&kind.to_le_bytes()[..], &length, body, &length].concat()
    };
    let mut file =
        block(0x0a0d_0d0a, &[0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255]);
    let options =
        [&[9, 0, 1, 0, resolution, 0, 0, 0, 14, 0, 8, 0][..], &offset.to_le_bytes(), &[0; 4]].concat();
    file.extend(block(1, &[&[101, 0, 0, 0, 0, 0, 0, 0][..], &options].concat()));
    for at in 0..100 {
        let (stamp, packet) = (stamp(at), ip4(7));
        let words = [0, (stamp >> 32) as u32, stamp as u32, packet.len() as u32, packet.len() as u32];
        file.extend(block(6, &[&words.map(u32::to_le_bytes).concat()[..], &packet].concat()));
    }
    file
}

#[test]
fn a_capture_counts_time_as_it_says() {
    let files = Files::new("resolution");
    for (resolution, grain, stamp) in [
        (6u8, 1_000, (|at| (T + at) * 1_000_000) as fn(u64) -> u64),
        (9, 1, |at| (T + at) * 1_000_000_000 + 1),
        (0, 1_000_000_000, |at| T + at),
        (0x80, 1_000_000_000, |at| T + at),
        (0x8a, 976_563, |at| ((T + at) << 10) + 1),
        (0x80 + 33, 1, |at| ((T + at) << 33) + (1 << 10)),
    ] {
        let json = plan(&[&files.file("log.pcapng", pcapng(resolution, 0, stamp))], &[]);
        assert_eq!(numbers(&json), (100, 1, 1), "{resolution:#x}");
        assert!(json["input"]["grain_ns"].as_u64() >= Some(grain), "{resolution:#x}: {}", json["input"]);
        let first = json["input"]["first"].as_str().expect("a time");
        assert!(first.starts_with("2023-11-14T22:13:20"), "{resolution:#x}: {first}");
    }
    let (_, text, _) = run(&[&files.file("log.pcapng", pcapng(0x8a, 0, |at| ((T + at) << 10) + 1))]);
    assert!(text.contains("Times are in steps of 976563 ns."), "{text}");
    let message = fails(3, &[&files.file("log.pcapng", pcapng(99, 0, |at| at)), "--strict"]);
    assert!(message.contains("log.pcapng:1: interface 0 has no known unit of time"), "{message}");
}

#[test]
fn a_packet_whose_time_is_out_of_range_is_bad_and_ends_nothing() {
    let files = Files::new("out-of-range");
    // The first 40 lie before 1970, or the last 40 behind what a time holds.
    for (offset, stamp) in [
        (-1_000, (|at| at + 960) as fn(u64) -> u64),
        (i64::MAX / 500_000_000 - 1_000, |at| if at < 60 { at } else { 1_000 + at }),
    ] {
        let json = plan(&[&files.file("log.pcapng", pcapng(0, offset, stamp))], &[]);
        assert_eq!((numbers(&json), &json["input"]["bad"]), ((60, 1, 1), &40.into()), "{offset}");
        assert_eq!(json["input"]["seconds"].as_f64(), Some(59.0), "{offset}");
        assert!(first_bad(&json).ends_with(": its time is out of range"), "{}", first_bad(&json));
    }
}

#[test]
fn the_logs_of_several_servers_are_one() {
    let files = Files::new("servers");
    let of = |start: u64| (0..1800).map(|at| line("192.0.2.1", T + start + at * 2)).collect::<String>();
    let (one, two) = (files.file("srv1.log", of(0)), files.file("srv2.log.gz", gzip(of(1).as_bytes())));
    for inputs in [[&*one, &*two], [&*two, &*one]] {
        let json = plan(&inputs, &[]);
        assert_eq!((numbers(&json), &json["input"]["late"]), ((3600, 1, 1), &0.into()));
    }
    // So is a pipe.
    let command = format!("zcat < {two} | {PROGRAM} plan {one} - --rate 1/s --json");
    let output = Command::new("sh").args(["-c", &command]).output().expect("a shell");
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((numbers(&json), &json["input"]["late"]), ((3600, 1, 1), &0.into()));
    // A server whose log is a day later, and one whose log is a little out of order.
    let mut lines: Vec<_> = (0..900).map(|at| line("192.0.2.1", T + 86_400 + at * 2)).collect();
    lines.chunks_exact_mut(2).for_each(|pair| pair.swap(0, 1));
    let day = files.file("day.log", lines.concat());
    let (json, late) = (plan(&[&day, &one, &two], &[]), Value::from(0));
    assert_eq!((numbers(&json), &json["input"]["late"]), ((4500, 1, 1), &late));
}

#[test]
fn more_inputs_than_can_be_open_are_refused_with_what_helps() {
    let files = Files::new("many");
    let text = line("192.0.2.1", T) + &line("192.0.2.1", T + 1000);
    let names: Vec<_> = (0..257).map(|at| files.file(&format!("{at}.log"), &text)).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    assert_eq!(numbers(&plan(&names[1..], &[])).0, 512);
    let message = fails(3, &names);
    assert!(message.contains("more than 256 inputs overlap in time: merge some of them first"), "{message}");
    // Those that follow each other are any number.
    let rotated: Vec<_> =
        (0..300).map(|at| files.file(&format!("r{at}.log"), line("192.0.2.1", T + at))).collect();
    let rotated: Vec<_> = rotated.iter().map(String::as_str).collect();
    assert_eq!(numbers(&plan(&rotated, &[])), (300, 1, 1));
}

#[test]
fn a_log_out_of_order_is_refused_with_the_sort_that_helps() {
    let files = Files::new("order");
    let back: String = (0..500).map(|at| line("192.0.2.1", T + 10_000 - at * 10)).collect();
    let future = line("192.0.2.9", T + 864_000) + &line("192.0.2.9", T + 864_010) + &steady();
    for (name, log, late) in [("back.log", back, "498 of 500"), ("future.log", future, "100 of 102")] {
        let file = files.file(name, log);
        let message = fails(3, &[&file]);
        let (before, after) = message.split_once("--sort ").expect("a flag");
        assert!(
            before.contains(&format!("{late} records came more than 5 s after a newer one")),
            "{message}"
        );
        let sort = after.split_whitespace().next().expect("a time");
        let json = plan(&[&file], &["--sort", sort]);
        assert_eq!((numbers(&json).2, &json["input"]["late"]), (1, &0.into()), "{name}: {sort}");
    }
    // One in a hundred is counted, and said.
    let few = steady() + &line("192.0.2.1", T + 10);
    let file = files.file("few.log", few);
    let json = plan(&[&file], &[]);
    assert_eq!((&json["input"]["late"], &json["input"]["sort_needed"]), (&1.into(), &"90s".into()));
    let (_, text, _) = run(&[&file]);
    assert!(
        text.contains("1 record came later than --sort allows") && text.contains("--sort 90s would sort all"),
        "{text}"
    );
    assert_eq!(plan(&[&file], &["--sort", "90s"])["input"]["late"], 0);
    let fewer = files.file(
        "fewer.log",
        steady()[line("192.0.2.1", T).len() * 2..].to_string() + &line("192.0.2.1", T + 10),
    );
    assert!(fails(3, &[&fewer]).contains("1 of 99 records"));
}

#[test]
fn a_quote_that_does_not_end_spoils_one_row() {
    let files = Files::new("quote");
    let row = |at: u64, agent: &str| format!("{},192.0.2.{},{agent}\n", T + at, at % 5);
    let table = |rows: &dyn Fn(u64) -> String| {
        format!("time,address,ua\n{}", (0..1000).map(rows).collect::<String>())
    };
    let text = table(&|at| row(at, if at == 10 { "\"x" } else { "x" }));
    let json = plan(&[&files.file("quote.csv", &text)], &[]);
    assert_eq!((numbers(&json), &json["input"]["bad"]), ((999, 5, 1), &1.into()));
    let place = "quote.csv:12:22: a quote begins here and does not end";
    assert!(first_bad(&json).ends_with(place), "{}", first_bad(&json));
    assert!(fails(3, &[&files.file("quote.csv", text), "--strict"]).contains(place));
    // A quote that begins in a later line of its row, and a row whose lines are more than 1 MiB.
    let later = table(&|at| row(at, if at == 10 { "\"a\nb\",\"c" } else { "x" }));
    let json = plan(&[&files.file("quote.csv", later)], &[]);
    assert!(first_bad(&json).contains("quote.csv:13:4: a quote begins here"), "{}", first_bad(&json));
    assert_eq!(numbers(&json).0, 989 + 10);
    let wide = "y".repeat(30_000);
    let long = table(&|at| {
        row(
            at,
            if at == 10 {
                "\"x"
            } else if at < 60 {
                &wide
            } else {
                "x\""
            },
        )
    });
    let json = plan(&[&files.file("quote.csv", long)], &[]);
    assert_eq!((numbers(&json), &json["input"]["bad"]), ((999, 5, 1), &1.into()));
    // Rows of several lines, as they should be.
    let quoted = table(&|at| row(at, "\"a \"\"b\"\", c\r\nd\""));
    assert_eq!(numbers(&plan(&[&files.file("quote.csv", quoted)], &["--strict"])), (1000, 5, 1));
}

#[test]
fn the_coarsest_clock_says_how_uncertain_a_burst_is() {
    let files = Files::new("grain");
    let seconds: String = (0..100).map(|at| format!("192.0.2.1 {}\n", T + at / 10)).collect();
    let exact: String = (0..10).map(|at| format!("192.0.2.2 {}.{:03}\n", T + 20 + at, at * 7)).collect();
    let (seconds, exact) = (files.file("sec.log", seconds), files.file("ms.log", exact));
    let uncertain = |files: &[&str]| {
        let json = plan(files, &["--log-format", "$remote_addr $msec", "--rate", "10/s"]);
        json["rates"][1]["uncertain"].as_u64().expect("a number")
    };
    assert_eq!((uncertain(&[&seconds]), uncertain(&[&exact])), (10, 1));
    assert_eq!((uncertain(&[&seconds, &exact]), uncertain(&[&exact, &seconds])), (10, 10));
}

#[test]
fn what_is_empty_once_it_is_decompressed_is_left_out() {
    let files = Files::new("empty");
    let good = files.file("good.log", steady());
    let nothing = zstd::encode_all(&b""[..], 1).expect("memory");
    for (name, bytes) in [
        ("empty.gz", gzip(b"")),
        ("empty.zst", nothing),
        ("blank", b"\r\n\n".to_vec()),
        ("bom", b"\xef\xbb\xbf".to_vec()),
    ] {
        let empty = files.file(name, bytes);
        for more in [&[][..], &["--format", "combined"], &["--strict"]] {
            assert_eq!(numbers(&plan(&[&good, &empty], more)), (100, 1, 1), "{name}");
        }
        let message = fails(3, &[&empty]);
        assert!(
            message.ends_with(&format!("{name}:1:1: no known format: the input is empty\n")),
            "{message}"
        );
        fails(3, &[&empty, &empty]);
    }
}

#[test]
fn a_cut_or_damaged_input_counts_as_far_as_it_can_be_read() {
    let files = Files::new("cut");
    let mut random = crate::Random(3);
    let mut client = || format!("192.0.2.{}", random.below(250));
    let log: String = (0..20_000).map(|at| line(&client(), T + at / 3)).collect();
    let csv: String = (0..20_000).map(|at| format!("{},{}\n", T + at / 3, client())).collect();
    let csv = format!("time,address\n{csv}");
    let json: String =
        (0..20_000).map(|at| format!("{{\"time\":{},\"ip\":\"{}\"}}\n", T + at / 3, client())).collect();
    let pcap = capture(101, &[], (0..20_000).map(|at| (at % 250) as u8));
    let mut damaged = pcap.clone();
    damaged[24 + 10_000 * 44 + 8..][..4].copy_from_slice(&u32::MAX.to_le_bytes());
    let half = |bytes: &[u8]| bytes[..bytes.len() / 2].to_vec();
    let zstd = |bytes: &[u8]| zstd::encode_all(bytes, 1).expect("memory");
    let mut behind = gzip(log.as_bytes());
    behind.extend(b"what is this");
    for (name, bytes, least, words) in [
        ("log.gz", half(&gzip(log.as_bytes())), 5_000, "incomplete deflate stream"),
        ("log.zst", half(&zstd(log.as_bytes())), 2_000, "incomplete frame"),
        ("small.gz", half(&gzip(&log.as_bytes()[..60_000])), 100, "incomplete deflate stream"),
        ("csv.gz", half(&gzip(csv.as_bytes())), 5_000, "incomplete deflate stream"),
        ("json.gz", half(&gzip(json.as_bytes())), 5_000, "incomplete deflate stream"),
        ("pcap", pcap[..pcap.len() - 5].to_vec(), 19_999, "the capture ends inside of this packet"),
        ("pcap.gz", half(&gzip(&pcap)), 5_000, "incomplete deflate stream"),
        (
            "damaged",
            damaged,
            10_000,
            "the capture is damaged: a block or packet says that it is longer than 1 MiB",
        ),
        ("behind.gz", behind, 20_000, "invalid gzip header"),
    ] {
        let file = files.file(name, bytes);
        let json = plan(&[&file], &[]);
        let (records, cut) = (numbers(&json).0, json["input"]["cut"][0].as_str().unwrap_or("not cut"));
        assert!(records >= least && records <= 20_000, "{name}: {records}");
        let more = if name.starts_with("csv") { 2 } else { 1 };
        assert_eq!(cut, format!("{file}:{}: {words}", records + more), "{name}");
        assert_eq!(
            (&json["input"]["bad"], json["input"]["cut"].as_array().map(Vec::len)),
            (&0.into(), Some(1))
        );
        let (_, text, _) = run(&[&file]);
        assert!(
            text.contains(&format!("could not be read to its end; what comes before counts: {cut}.")),
            "{text}"
        );
        assert_eq!(fails(3, &[&file, "--strict"]), format!("tatcell: {cut}\n"));
    }
    // Nothing of it can be read: an error, but not of the others.
    let nothing = files.file("nothing.gz", &gzip(log.as_bytes())[..12]);
    assert!(fails(3, &[&nothing]).contains("nothing.gz:1: "));
    let json = plan(&[&nothing, &files.file("good.log", steady())], &[]);
    assert_eq!((numbers(&json), json["input"]["cut"].as_array().map(Vec::len)), ((100, 1, 1), Some(1)));
    // Zeros behind the end are padding.
    let padded =
        [gzip(log.as_bytes()), vec![0; 512], gzip(line("192.0.2.1", T + 9000).as_bytes()), vec![0; 40_000]];
    let json = plan(&[&files.file("padded.gz", padded.concat())], &["--strict"]);
    assert_eq!((numbers(&json).0, json["input"]["cut"].to_string()), (20_001, "[]".into()));
}

#[test]
fn the_latest_time_is_counted() {
    let text = format!("time,address\n{T},192.0.2.1\n{0},192.0.2.1\n{0},192.0.2.1\n", u64::MAX);
    let json = plan(&[&Files::new("latest").file("log.csv", text)], &["--limit", "1/s burst 5"]);
    assert_eq!(numbers(&json), (3, 1, 2));
}

#[test]
fn a_line_that_is_too_long_is_one_bad_record() {
    let files = Files::new("long");
    // Its rest is a line of another client.
    let smuggled = "A".repeat(1 << 20) + &line("198.51.100.9", T + 50);
    let text =
        steady() + &smuggled + &"B".repeat(3 << 20) + "\nbad line here\n" + &line("192.0.2.1", T + 100);
    let json = plan(&[&files.file("long.log", text)], &[]);
    assert_eq!((numbers(&json), &json["input"]["bad"]), ((101, 1, 1), &3.into()));
    let bad = json["input"]["first_bad"].to_string();
    for place in ["long.log:101:1: longer than 1 MiB", "long.log:102:1: longer than 1 MiB", "long.log:103:"] {
        assert!(bad.contains(place), "{bad}");
    }
    let row = |at: u64| format!("{},192.0.2.1\n", T + at);
    let smuggled = "A".repeat(1 << 20) + &row(2);
    let text = format!("time,address\n{}{smuggled}\"x\n{}{smuggled}nothing\n{}", row(0), row(1), row(2));
    let json = plan(&[&files.file("long.csv", text)], &[]);
    assert_eq!((numbers(&json), &json["input"]["bad"]), ((3, 1, 1), &4.into()));
    let bad = json["input"]["first_bad"].to_string();
    for place in
        ["long.csv:3:1: longer than 1 MiB", "long.csv:4:1: a quote begins", "long.csv:6:1: longer than 1 MiB"]
    {
        assert!(bad.contains(place), "{bad}");
    }
}

/// With log-replies each query of Unbound has a second line. A log of replies alone says what to turn on.
#[test]
fn replies_of_unbound_are_passed_over() {
    let files = Files::new("replies");
    let line = |at: u64, text: &str| format!("[{}] unbound[7:0] info: {text}\n", T + at);
    let reply = |at| line(at, "192.0.2.1 example.com. A IN NOERROR 0.010000 0 55");
    let both: String = (0..50).map(|at| line(at, "192.0.2.1 example.com. A IN") + &reply(at)).collect();
    let replies: String = (0..2_000).map(reply).collect();
    for log in [both.clone(), replies.clone() + &both] {
        let json = plan(&[&files.file("both.log", log), "--sort", "1h"], &["--strict"]);
        assert_eq!((numbers(&json).0, &json["input"]["bad"]), (50, &0.into()));
    }
    let advice = "none of 2000 replies of Unbound counts: turn log-queries on";
    let message = fails(3, &[&files.file("replies.log", &replies)]);
    assert!(message.contains(advice), "{message}");
    let start = line(0, "start of service (unbound 1.17.1).");
    let message = fails(3, &[&files.file("start.log", start + &replies)]);
    assert!(
        message.contains("start.log:1:33: address is no address") && message.contains(advice),
        "{message}"
    );
}

#[test]
fn packets_have_one_time() {
    let files = Files::new("time");
    let file = files.file("log.pcap", capture(101, &[], 1..=10));
    assert_eq!(numbers(&plan(&[&file], &["--time", "time"])).0, 10);
    let message = fails(2, &[&file, "--time", "nonsense"]);
    assert!(message.contains("no field \"nonsense\" for --time: this format has one time"), "{message}");
    let start = [0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 2];
    let message = fails(2, &[&files.file("log.dnstap", start), "--time", "nonsense"]);
    assert!(message.contains("no field \"nonsense\" for --time"), "{message}");
}

#[test]
fn the_marks_of_windows_are_no_part_of_a_text() {
    let files = Files::new("windows");
    let rows = |row: &dyn Fn(u64) -> String| (0..10).map(row).collect::<String>();
    let texts = [
        ("combined", rows(&|at| line("192.0.2.1", T + at))),
        ("csv", format!("time,address\n{}", rows(&|at| format!("{},192.0.2.1\n", T + at)))),
        ("json", rows(&|at| format!("{{\"time\":{},\"ip\":\"192.0.2.1\"}}\n", T + at))),
        ("haproxy", rows(&|at| format!("192.0.2.1:7 [14/Nov/2023:22:13:{}.000] a b/c 1 2 x\n", 20 + at))),
        (
            "envoy",
            rows(&|at| {
                let rest = "\"GET / H\" 200 - 1 2 3 4 \"192.0.2.1\" \"a\" \"b\" \"c\" \"d\"";
                format!("[2023-11-14T22:13:{}Z] {rest}\n", 20 + at)
            }),
        ),
        (
            "bind",
            rows(&|at| {
                format!("14-Nov-2023 22:13:{}.000 client 192.0.2.1#5 (e): query: e IN A +\n", 20 + at)
            }),
        ),
        ("unbound", rows(&|at| format!("[{}] unbound[1:0] info: 192.0.2.1 e. A IN\n", T + at))),
    ];
    for (format, text) in texts {
        for named in [&[][..], &["--format", format]] {
            let marked = ["\u{feff}", &text].concat();
            for bytes in [marked.as_bytes().to_vec(), gzip(marked.as_bytes())] {
                let json = plan(&[&files.file(format, bytes)], &[named, &["--strict"]].concat());
                assert_eq!(
                    (numbers(&json), json["input"]["formats"].to_string()),
                    ((10, 1, 1), format!("[\"{format}\"]"))
                );
            }
        }
        let units =
            |swap: fn(u16) -> [u8; 2], text: &str| text.encode_utf16().flat_map(swap).collect::<Vec<_>>();
        for bytes in [
            units(u16::to_le_bytes, &text),
            units(u16::to_be_bytes, &text),
            units(u16::to_le_bytes, &["\u{feff}", &text].concat()),
        ] {
            let message = fails(3, &[&files.file(format, bytes)]);
            assert!(
                message.ends_with("1:1: the text is UTF-16: convert it by iconv -f UTF-16 -t UTF-8\n"),
                "{message}"
            );
        }
    }
}

#[test]
fn what_another_program_must_unpack_is_named() {
    let files = Files::new("foreign");
    for (name, start, want) in [
        ("log.xz", &b"\xfd7zXZ\0\0\x04\xe6\xd6\xb4F"[..], "xz"),
        ("log.bz2", b"BZh91AY&SY\x8e\xa8\x57\x03", "bzip2"),
    ] {
        let file = files.file(name, start);
        let want = format!("it is compressed by {want}: unpack it as in {want} -dc FILE | tatcell plan -");
        for format in [&[][..], &["--format", "pcap"], &["--format", "json"]] {
            let message = fails(3, &[&[&*file][..], format].concat());
            assert_eq!(message, format!("tatcell: {file}:1:1: {want}\n"), "{format:?}");
        }
    }
}

#[test]
fn a_message_shows_the_start_of_a_long_value() {
    let files = Files::new("value");
    let text = steady() + &line(&"x".repeat(900_000), T) + &line("a\u{1b}[31m\"b", T);
    let json = plan(&[&files.file("value.log", text)], &[]);
    assert_eq!((numbers(&json).0, &json["input"]["bad"]), (100, &2.into()));
    let bad = json["input"]["first_bad"].as_array().expect("messages");
    let want = format!("value.log:101:1: address is no address: \"{}\"", "x".repeat(60));
    assert!(bad[0].as_str().expect("text").ends_with(&want), "{}", bad[0].to_string().len());
    assert!(bad[1].as_str().expect("text").ends_with("is no address: \"a\\u{1b}[31m\\\"b\""), "{}", bad[1]);
    assert!(Path::new(&files.0).exists());
}

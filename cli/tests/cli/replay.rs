//! `tatcell replay`: against tatcell-throttled, and against servers of HTTP whose decisions the tests know.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use serde_json::Value;

use crate::folder;
use crate::logs::{Log, PRECISE};
use crate::program::PROGRAM;

/// Names the settings of the server that this program is in place of its tests.
const SETTINGS: &str = "TATCELL_TEST_THROTTLED";

#[test]
#[ignore = "it is the server that others start"]
fn throttled() {
    use tatcell_door::{Settings, Signals};
    let Ok(settings) = std::env::var(SETTINGS) else { return };
    let settings =
        Settings::file(SETTINGS, &settings).and_then(tatcell_throttled::server::ServerSettings::take);
    let signals = Signals::listen().expect("signals");
    tatcell_throttled::listen::run(settings.expect("settings"), signals).expect("a server");
}

/// tatcell-throttled, until it is dropped.
pub struct Throttled(Child, pub String);

impl Throttled {
    pub fn start() -> Throttled {
        Throttled::with("listen = '127.0.0.1:0'\nkeys = 4096")
    }

    /// Starts it with the settings of this text.
    pub fn with(settings: &str) -> Throttled {
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args(["replay::throttled", "--exact", "--ignored", "--nocapture"])
            .env(SETTINGS, settings)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a server");
        let mut lines = BufReader::new(child.stderr.take().expect("its lines")).lines();
        let address = lines.find_map(|line| Some(line.ok()?.split_once("listening at ")?.1.to_owned()));
        let url = format!("redis://{}", address.expect("an address"));
        // It may go on to write there.
        std::thread::spawn(move || lines.for_each(drop));
        Throttled(child, url)
    }
}

impl Drop for Throttled {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What a server of HTTP has seen of each key: requests, and those that it refused.
type Seen = Arc<Mutex<BTreeMap<String, (u64, u64)>>>;

/// A token bucket in nanoseconds, as slow as it is written.
struct Bucket {
    tokens: f64,
    last: Instant,
}

/// Starts a server that refuses by a rate a second and a burst, with a status. A key is the header and the path.
fn http(rate: f64, burst: f64, status: u16) -> (String, Seen) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    let seen = Seen::default();
    let shared = Arc::clone(&seen);
    std::thread::spawn(move || {
        let mut buckets = BTreeMap::new();
        for stream in listener.incoming().map_while(Result::ok) {
            serve(stream, &mut buckets, &shared, (rate, burst, status));
        }
    });
    (url, seen)
}

/// One connection, to its end.
fn serve(
    stream: TcpStream,
    buckets: &mut BTreeMap<String, Bucket>,
    seen: &Seen,
    (rate, burst, status): (f64, f64, u16),
) {
    stream.set_nodelay(true).expect("no delay");
    let mut answers = stream.try_clone().expect("the stream");
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    while let Some(request) = lines.next() {
        let path = request.split(' ').nth(1).expect("a path").to_owned();
        let mut from = String::new();
        for line in lines.by_ref().take_while(|line| !line.is_empty()) {
            if let Some((_, value)) = line.split_once(": ").filter(|(name, _)| *name == "x-forwarded-for") {
                from = value.to_owned();
            }
        }
        let key = format!("{from} {path}").trim().to_owned();
        let now = Instant::now();
        let bucket = buckets.entry(key.clone()).or_insert(Bucket { tokens: burst, last: now });
        bucket.tokens = burst.min(bucket.tokens + (now - bucket.last).as_secs_f64() * rate);
        bucket.last = now;
        let passes = bucket.tokens >= 1.0;
        bucket.tokens -= f64::from(u8::from(passes));
        let mut seen = seen.lock().expect("what was seen");
        let counts = seen.entry(key).or_default();
        *counts = (counts.0 + 1, counts.1 + u64::from(!passes));
        let status = if passes { 200 } else { status };
        if write!(answers, "HTTP/1.1 {status} x\r\nContent-Length: 2\r\n\r\nok").is_err() {
            return;
        }
    }
}

pub fn replay(file: &Path, to: &str, limit: &str, more: &[&str]) -> Output {
    Command::new(PROGRAM)
        .arg("replay")
        .arg(file)
        .args(["--log-format", PRECISE, "--to", to, "--limit", limit])
        .args(more)
        .output()
        .expect("the program runs")
}

/// The exit code and the JSON.
pub fn json(file: &Path, to: &str, limit: &str, more: &[&str]) -> (Option<i32>, Value) {
    let output = replay(file, to, limit, &[more, &["--json"]].concat());
    let text = String::from_utf8_lossy(&output.stderr);
    (output.status.code(), serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{text}")))
}

/// Thirty seconds: a monitor, a page with its images, a crawler, and people behind one address.
pub fn log() -> Log {
    let mut log = Log::default();
    log.steady("192.0.2.1", 500, 0, 30_000)
        .bursty("192.0.2.2", 25, 5_000, 0, 30_000)
        .crawler("203.0.113.9", 20, 3_000, 27_000)
        .nat("198.51.100.80", 12, 2_000, 0, 30_000);
    log
}

pub fn file(name: &str, log: &Log) -> std::path::PathBuf {
    let file = folder(name).join("access.log");
    fs::write(&file, log.precise()).expect("a file");
    file
}

pub fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// What must hold whatever was decided.
pub fn adds_up(json: &Value, log: &Log) {
    assert_eq!((number(&json["sent"]), number(&json["failed"])), (log.len(), 0), "{json}");
    for side in ["server_refused", "library_refused", "differ"] {
        let keys = json["keys"].as_array().expect("keys").iter();
        assert_eq!(keys.map(|key| number(&key[side])).sum::<u64>(), number(&json[side]), "{side}: {json}");
    }
}

#[test]
fn throttled_decides_as_the_library_says_at_any_speed() {
    let (log, server) = (log(), Throttled::start());
    let file = file("replay-throttled", &log);
    // At ten times its speed the crawler comes with 200/s, so four of five of its requests are refused.
    for (speed, limit, least) in [("10", "40/s burst 20", 50), ("max", "1/min burst 30", 400)] {
        let (code, json) = json(&file, &server.1, limit, &["--speed", speed]);
        adds_up(&json, &log);
        assert_eq!((code, &json["impossible"]), (Some(0), &0.into()), "{json}");
        // One decision may differ because a request was on its way for a while; the sums hardly do.
        let (server, library) = (number(&json["server_refused"]), number(&json["library_refused"]));
        assert!(server > least && server.abs_diff(library) * 50 < log.len(), "{json}");
        assert!(speed == "max" || json["seconds"].as_f64() >= Some(2.9), "{json}");
    }
    // The keys of two replays are not the same ones: what the first has used up, the second has again.
    let (_, again) = json(&file, &server.1, "1/min burst 30", &["--speed", "max"]);
    assert_eq!(again["impossible"], 0, "{again}");
}

/// A server closes a connection on which nothing comes, and a long log takes its time.
#[test]
fn the_server_is_connected_to_when_the_first_record_is_due() {
    let file = folder("replay-connect").join("log.csv");
    fs::write(&file, "time,address\n1700000000,192.0.2.1\nnever,192.0.2.1\n").expect("a file");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("a listener");
    let url = format!("redis://{}", listener.local_addr().expect("an address"));
    let output = Command::new(PROGRAM)
        .args(["replay", file.to_str().expect("a name"), "--strict", "--to", &url, "-l", "1/s"])
        .args(["--timeout", "1s"])
        .output()
        .expect("the program runs");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(3) && message.contains("log.csv:3:1: "), "{message}");
    assert!(listener.accept().is_err(), "it has connected");
}

#[test]
fn a_server_that_does_not_answer_is_late_in_each_protocol() {
    let file = folder("replay-late").join("log.csv");
    fs::write(&file, "time,address\n1700000000,192.0.2.1\n").expect("a file");
    // The system takes the connections, and nobody answers.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let place = listener.local_addr().expect("an address");
    // This one begins an answer, and does not end it.
    let stalled = TcpListener::bind("127.0.0.1:0").expect("a port");
    let begun = stalled.local_addr().expect("an address");
    std::thread::spawn(move || {
        let mut open = Vec::new();
        for mut stream in stalled.incoming().map_while(Result::ok) {
            let _ = stream.write_all(b"HTTP/1.1 200 x\r\nContent-Length: 10\r\n\r\nok");
            open.push(stream);
        }
    });
    for url in [
        format!("redis://{place}"),
        format!("http://{place}/"),
        format!("http://{begun}/"),
        format!("grpc://{place}/edge"),
    ] {
        let output = Command::new(PROGRAM)
            .args(["replay", file.to_str().expect("a name"), "--to", &url, "-l", "1/s", "--timeout", "50ms"])
            .output()
            .expect("the program runs");
        let message = String::from_utf8_lossy(&output.stderr);
        let is_late =
            message.contains("no answer within 50ms") || message.contains("no connection within 50ms");
        assert!(output.status.code() == Some(3) && is_late, "{message}");
    }
}

#[test]
fn units_are_charged_by_throttled() {
    let file = folder("replay-cost").join("log.csv");
    // At one instant: 4 of 10 units fit twice, 3 once, and then 5 fit no more.
    let rows = ["4", "4", "3", "2", "5", "1"].map(|cost| format!("1700000000,ann b,{cost}\n"));
    fs::write(&file, format!("time,user,cost\n{}", rows.concat())).expect("a file");
    let server = Throttled::start();
    let output = Command::new(PROGRAM)
        .args(["replay", file.to_str().expect("a name"), "-k", "user", "-c", "cost", "--to", &server.1])
        .args(["-l", "1/h burst 10", "--speed", "max", "--json"])
        .output()
        .expect("the program runs");
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    // 4, 4 and 2 pass; 3, 5 and 1 do not.
    let key = &json["keys"][0];
    assert_eq!(
        (key["key"].as_str(), &key["server_refused"], &key["differ"]),
        (Some("ann b"), &3.into(), &0.into())
    );
    assert_eq!((output.status.code(), &json["impossible"]), (Some(0), &0.into()), "{json}");
}

#[test]
fn parts_of_a_key_stay_apart() {
    let file = folder("replay-parts").join("log.csv");
    fs::write(&file, "time,user,name\n1700000000,a b,c\n1700000000,a,b c\n").expect("a file");
    let server = Throttled::start();
    let output = Command::new(PROGRAM)
        .args(["replay", file.to_str().expect("a name"), "-k", "user+name", "--to", &server.1])
        .args(["-l", "1/h burst 1", "--speed", "max", "--json"])
        .output()
        .expect("the program runs");
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&json["keys_asked"], &json["server_refused"]), (&2.into(), &0.into()), "{json}");
}

#[test]
fn a_server_of_http_is_counted_as_it_counts_itself() {
    let log = log();
    let file = file("replay-http", &log);
    for status in [429, 503] {
        let (url, seen) = http(40.0, 20.0, status);
        let (code, json) = json(&file, &url, "40/s burst 20", &["--speed", "10"]);
        adds_up(&json, &log);
        assert_eq!((code, &json["impossible"]), (Some(0), &0.into()), "{json}");
        let seen = seen.lock().expect("what was seen");
        assert_eq!(seen.len(), 4, "{seen:?}");
        for key in json["keys"].as_array().expect("keys") {
            let name = format!("{} /", key["key"].as_str().expect("a key"));
            let counts = (number(&key["requests"]), number(&key["server_refused"]));
            assert_eq!(Some(&counts), seen.get(&name), "{name}");
        }
        // As many as a slow machine sees, too: five of each burst, and most of the crawler's.
        assert!(number(&json["server_refused"]) > 50, "{json}");
    }
}

#[test]
fn a_server_with_another_limit_is_found_out_with_its_key() {
    let log = log();
    let file = file("replay-other", &log);
    for (rate, burst) in [(40.0, 12.0), (40.0, 28.0), (20.0, 20.0), (80.0, 20.0)] {
        let (url, _) = http(rate, burst, 429);
        let output = replay(&file, &url, "40/s burst 20", &["--speed", "10"]);
        let text = String::from_utf8_lossy(&output.stdout);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{rate}/s burst {burst}: {text}{message}");
        assert!(message.contains("times as 40/s burst 20 cannot have"), "{message}");
        assert!(text.contains("the limit cannot") && text.contains("  203.0.113.9  "), "{text}");
    }
}

#[test]
fn paths_and_headers_of_the_key_are_sent() {
    let file = folder("replay-paths").join("access.log");
    let line = |host: &str, path: &str| format!("{host} 1700000000.000 \"GET {path} HTTP/1.1\" 200 1\n");
    let lines = [line("192.0.2.1", "/a?x=1"), line("192.0.2.1", "/b|c"), line("2001:db8::7", "/a")];
    fs::write(&file, lines.concat()).expect("a file");
    for (key, want) in [
        ("address+path", &["192.0.2.1 /a", "192.0.2.1 /b%7Cc", "2001:db8::7 /a"][..]),
        ("path", &["/a", "/b%7Cc"]),
        ("address/24,56", &["192.0.2.0 /", "2001:db8:: /"]),
    ] {
        let (url, seen) = http(1.0, 10.0, 429);
        let (code, json) = json(&file, &url, "1/s burst 10", &["-k", key, "--speed", "max"]);
        assert_eq!((code, number(&json["sent"])), (Some(0), 3), "{json}");
        let seen = seen.lock().expect("what was seen");
        assert_eq!(seen.keys().collect::<Vec<_>>(), want, "{key}");
    }
}

/// Replays lines of a log with `--key path` and 1/s burst 2, while what is above that is answered with 500.
fn targets(name: &str, targets: &[&str]) -> (Output, Value) {
    let file = folder(name).join("access.log");
    let line = |target: &&str| format!("192.0.2.1 1700000000.000 \"OPTIONS {target} HTTP/1.1\" 200 1\n");
    fs::write(&file, targets.iter().map(line).collect::<String>()).expect("a file");
    let output =
        replay(&file, &http(0.001, 2.0, 500).0, "1/s burst 2", &["-k", "path", "--speed", "max", "--json"]);
    let json = serde_json::from_slice(&output.stdout).unwrap_or_default();
    (output, json)
}

#[test]
fn requests_without_an_answer_are_counted_and_end_in_3() {
    let (output, json) = targets("replay-unanswered", &["/a"; 4]);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), &json["failed"]), (Some(3), &2.into()), "{message}");
    assert!(message.contains("2 of 4 requests have no answer, the first: it answered 500"), "{message}");
}

/// A server that dies midway: what it decided before is the answer.
#[test]
fn what_was_decided_before_a_server_died_is_still_told() {
    // From the third request on there is no answer that counts.
    let (output, json) = targets("replay-died", &["/a"; 40]);
    let message = String::from_utf8_lossy(&output.stderr);
    let counts = ["sent", "failed", "server_refused"].map(|count| json[count].as_u64());
    assert_eq!((output.status.code(), counts), (Some(3), [Some(2), Some(20), Some(0)]), "{message}");
    assert_eq!((&json["ended_early"], &json["keys_asked"]), (&true.into(), &1.into()), "{json}");
    let want =
        "20 of 22 requests have no answer, the first: it answered 500; the others of the log were not sent";
    assert!(message.contains(want), "{message}");
}

#[test]
fn requests_that_cannot_be_sent_do_not_end_a_replay() {
    let (output, json) = targets("replay-unsendable", &[&["*"; 25][..], &["/a"]].concat());
    let message = String::from_utf8_lossy(&output.stderr);
    let counts = ["sent", "failed", "unsendable"].map(|count| json[count].as_u64());
    assert_eq!(counts, [Some(1), Some(0), Some(25)], "{message}");
    assert_eq!(output.status.code(), Some(0), "{message}");
    // If none can be sent, nothing is known of the server.
    let (output, _) = targets("replay-unsent", &["*"; 2]);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{message}");
    assert!(message.contains("no request can be sent, the first: \"*\" is no path"), "{message}");
}

#[test]
fn what_cannot_be_asked_says_why() {
    let file = file("replay-fails", &log());
    let (broken, _) = http(1.0, 1.0, 500);
    let gone = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    for (to, limit, code, want) in [
        ("http://192.0.2.1/", "1/s", 2, "192.0.2.1 is not this machine"),
        ("redis://192.0.2.1/", "1/s", 2, "give --remote if it may"),
        ("http://127.0.0.1/", "ten", 2, "limit \"ten\""),
        ("http://127.0.0.1/", "/24 1/s", 2, "use --key address/24,56"),
        (&format!("http://{gone}/"), "1/s", 3, "onnection refused"),
        (&format!("redis://{gone}/"), "1/s", 3, "onnection refused"),
        // The second request and those that follow have no answer that counts.
        (&broken, "1/s", 3, "it answered 500"),
    ] {
        let output = replay(&file, to, limit, &["--speed", "max", "-k", "path"]);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{to}: {message}");
        assert!(message.contains(want), "{to}: {message}");
    }
}

#[test]
fn beyond_max_keys_a_sample_is_sent_and_said() {
    let mut log = Log::default();
    log.attack("192.0.2.", 200, 1_000, 0, 3_000);
    let file = file("replay-sample", &log);
    let (url, seen) = http(1000.0, 100.0, 429);
    let more = ["--speed", "max", "--max-keys", "50"];
    let (_, json) = json(&file, &url, "1000/s burst 100", &more);
    let (sent, left_out) = (number(&json["sent"]), number(&json["left_out"]));
    assert_eq!(sent + left_out, log.len(), "{json}");
    let asked: u64 = seen.lock().expect("what was seen").values().map(|counts| counts.0).sum();
    assert!(asked == sent && left_out > 300, "{json}");
}

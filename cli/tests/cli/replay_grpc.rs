//! `tatcell replay` against tatcell-ratelimit, as Envoy asks it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::folder;
use crate::program::PROGRAM;
use crate::replay::{adds_up, file, json, log, number, replay};
use crate::serve::Running;

const RULES: &str = "\
domain: edge
descriptors:
  - key: remote_address
    rate_limit: {unit: second, requests_per_unit: 40}
  - key: masked_remote_address
    rate_limit: {unit: minute, requests_per_unit: 30}
  - key: route
    value: login
    descriptors:
      - key: user
        rate_limit: {unit: hour, requests_per_unit: 10}
";

/// The program as the tests of the servers build it. Without it a line says how to get it.
fn program(test: &str) -> Option<PathBuf> {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cluster/target/debug/tatcell-ratelimit");
    if !program.exists() {
        println!("SKIP {test}: no tatcell-ratelimit: make -C cluster test-programs");
        return None;
    }
    Some(program)
}

/// tatcell-ratelimit with these rules, until it is dropped, and its URL.
pub fn ratelimit(test: &str, rules: &str, more: &[&str]) -> Option<(Running, String)> {
    let program = program(test)?;
    let file = folder(&format!("{test}-rules")).join("rules.yaml");
    fs::write(&file, rules).expect("a file");
    let mut command = Command::new(program);
    command.arg("--rules").arg(file).args(["--listen", "127.0.0.1:0", "--keys", "4096"]).args(more);
    let mut running = Running(command.stderr(Stdio::piped()).spawn().expect("a server"));
    let mut lines = BufReader::new(running.0.stderr.take().expect("its lines")).lines();
    let address = lines.find_map(|line| Some(line.ok()?.split_once("listening at ")?.1.to_owned()));
    let url = format!("grpc://{}/edge", address.expect("an address"));
    // It may go on to write there.
    std::thread::spawn(move || lines.for_each(drop));
    Some((running, url))
}

#[test]
fn ratelimit_decides_as_the_library_says_at_any_speed() {
    let Some((_running, url)) = ratelimit("replay-ratelimit", RULES, &[]) else { return };
    let log = log();
    let file = file("replay-ratelimit", &log);
    let networks = ["--key", "address/24", "--speed", "max"];
    for (limit, more, least) in
        [("40/s burst 40", &["--speed", "10"][..], 50), ("30/min burst 30", &networks, 400)]
    {
        let (code, json) = json(&file, &url, limit, more);
        adds_up(&json, &log);
        assert_eq!((code, &json["impossible"]), (Some(0), &0.into()), "{json}");
        let (server, library) = (number(&json["server_refused"]), number(&json["library_refused"]));
        assert!(server > least && server.abs_diff(library) * 50 < log.len(), "{json}");
    }
}

#[test]
fn ratelimit_with_another_limit_is_found_out() {
    for limit in ["40/s burst 25", "40/s burst 60", "20/s burst 40"] {
        let Some((_running, url)) = ratelimit("replay-ratelimit-other", RULES, &[]) else { return };
        let file = file("replay-ratelimit-other", &log());
        let output = replay(&file, &url, limit, &["--speed", "10"]);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{limit}: {message}");
        assert!(message.contains("cannot have"), "{message}");
    }
}

/// Replays rows of `user,cost` at one instant, with these entries.
fn rows(test: &str, url: &str, rows: &[&str], more: &[&str]) -> (Option<i32>, Value, String) {
    let file = folder(test).join("log.csv");
    let rows: String = rows.iter().map(|row| format!("1700000000,{row}\n")).collect();
    fs::write(&file, format!("time,user,cost\n{rows}")).expect("a file");
    let output = Command::new(PROGRAM)
        .args(["replay", file.to_str().expect("a name"), "-k", "user", "-c", "cost", "--to", url])
        .args(["-l", "10/h burst 10", "--speed", "max", "--json"])
        .args(more)
        .output()
        .expect("the program runs");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), serde_json::from_slice(&output.stdout).unwrap_or_default(), message)
}

#[test]
fn entries_and_units_are_sent_to_ratelimit_as_they_are_named() {
    let Some((_running, url)) = ratelimit("replay-entries", RULES, &[]) else { return };
    let login = ["--entry", "route=login", "--entry", "user"];
    // 4, 4 and 2 of ann pass; 3, 5 and 1 do not, nor does what is more than the burst and than 32 bits.
    let costs = ["4", "4", "3", "2", "5", "1", "9000000000"].map(|cost| format!("ann,{cost}"));
    let costs: Vec<_> = costs.iter().map(String::as_str).chain(["bob,10"]).collect();
    let (code, json, message) = rows("replay-entries", &url, &costs, &login);
    assert_eq!(
        (code, &json["impossible"], &json["differ"]),
        (Some(0), &0.into(), &0.into()),
        "{message}{json}"
    );
    assert_eq!((&json["keys_asked"], &json["server_refused"]), (&2.into(), &4.into()), "{json}");
    // What no rule limits is said, and not counted as passed.
    let other = url.replace("/edge", "/other");
    for (url, entries) in [(&url, &["--entry", "user"][..]), (&url, &[]), (&other, &login)] {
        let (code, _, message) = rows("replay-entries", url, &["ann,1"], entries);
        assert_eq!(code, Some(3), "{message}");
        assert!(message.contains("it has no limit for this descriptor"), "{message}");
    }
    // A status of gRPC is shown.
    let name = format!("{}=x", "n".repeat(40_000));
    let (code, _, message) = rows("replay-entries", &url, &["ann,1"], &["--entry", &name, "--entry", "user"]);
    assert_eq!(code, Some(3), "{message}");
    assert!(message.contains("gRPC status "), "{message}");
}

#[test]
fn ratelimit_may_close_a_connection_between_two_requests() {
    let Some((_running, url)) = ratelimit("replay-idle", RULES, &["--idle", "100ms"]) else { return };
    let file = folder("replay-idle").join("log.csv");
    fs::write(&file, "time,address\n1700000000,192.0.2.1\n1700000001,192.0.2.1\n1700000002,192.0.2.1\n")
        .expect("a file");
    let output = Command::new(PROGRAM)
        .args(["replay", file.to_str().expect("a name"), "--to", &url, "-l", "40/s burst 40", "--json"])
        .output()
        .expect("the program runs");
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(
        (output.status.code(), &json["sent"], &json["failed"]),
        (Some(0), &3.into(), &0.into()),
        "{json}"
    );
}

#[test]
fn what_cannot_be_asked_by_grpc_says_why() {
    let file = file("replay-grpc-fails", &log());
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let silent = listener.local_addr().expect("an address");
    let gone = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let more = ["--speed", "max", "--timeout", "200ms"];
    for (to, entry, code, want) in [
        (format!("grpc://{gone}/edge"), "address", 3, "onnection refused"),
        // It takes the connection, and says nothing.
        (format!("grpc://{silent}/edge"), "address", 3, "no answer within 200ms"),
        (format!("grpc://{silent}"), "address", 2, "use grpc://HOST:PORT/DOMAIN"),
        (format!("grpc://{silent}/edge"), "route=login", 2, "give --entry NAME for each part"),
        (format!("http://{silent}/edge"), "address", 2, "--entry is for grpc://"),
    ] {
        let output = replay(&file, &to, "1/s", &[&more[..], &["--entry", entry]].concat());
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{to}: {message}");
        assert!(message.contains(want), "{to}: {message}");
    }
}

//! `tatcell show --serve`: what it serves, and when it does not.

use std::ffi::CString;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use tatcell::host::{now_ns, unlink, Clock, Memory, SharedCounters};
use tatcell::{FullPolicy, LimitSpec, Request, Table, TableClock, TableOptions};

use crate::program::PROGRAM;

const SECOND: u64 = 1_000_000_000;
/// The longest wait for a program.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A name in shared memory, gone with the test.
pub struct Name(pub String);

impl Name {
    pub fn new(test: &str) -> Name {
        let name = Name(format!("/tatcell-serve-{}-{test}", std::process::id()));
        let _ = unlink(&name.text());
        name
    }

    pub fn text(&self) -> CString {
        CString::new(self.0.clone()).expect("a name")
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        let _ = unlink(&self.text());
    }
}

/// A table whose callers read the system's clock, with `keys` keys in debt for a minute.
pub fn table(name: &Name, keys: u32) -> Memory {
    let memory = Memory::create(&name.text(), 64 * 6, 0o600).expect("memory");
    {
        let spec = LimitSpec::new(1, 60 * SECOND, 1);
        let options = TableOptions::new(spec).seed(*b"16 random bytes!").policy(FullPolicy::Deny);
        let options = options.clock(TableClock::Monotonic).tick_hz(SECOND);
        let table = Table::init(memory.lines(), &options).expect("a table");
        let limit = table.limit(&spec).expect("a limit");
        let now = now_ns(Clock::Monotonic).expect("a clock");
        for key in 0..keys {
            let hash = table.hash(&key.to_le_bytes()).expect("a hash");
            let _ = table
                .check_ex(&Request { limit: &limit, now, cost: 1, room: 0 }, hash, None)
                .expect("a check");
        }
    }
    memory
}

/// A process that ends with the test.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the server on a free port; returns its address.
pub fn serve(arguments: &[&str]) -> (Running, String) {
    let mut command = Command::new(PROGRAM);
    command.arg("show").args(arguments).args(["--serve", "127.0.0.1:0"]).stderr(Stdio::piped());
    let mut running = Running(command.spawn().expect("the program runs"));
    let mut lines = BufReader::new(running.0.stderr.take().expect("its messages")).lines();
    let line = lines.next().expect("a line").expect("text");
    let address =
        line.strip_prefix("tatcell: metrics at http://").and_then(|rest| rest.strip_suffix("/metrics"));
    let address = address.unwrap_or_else(|| panic!("{line}")).to_owned();
    (running, address)
}

/// Asks for a page; returns the status, the type of the content, and the text.
pub fn get(address: &str, path: &str, accept: &str) -> (u16, String, String) {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\n{accept}connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("a socket");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer");
    let answer = String::from_utf8(answer).expect("text");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer}"));
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).expect("a status");
    let kind = head.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("content-type").then(|| value.to_owned())
    });
    let body = match head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
        true => unchunked(body),
        false => body.to_owned(),
    };
    (status, kind.unwrap_or_default(), body)
}

/// The text of chunks, as long answers of Prometheus have.
fn unchunked(mut rest: &str) -> String {
    let mut text = String::new();
    while let Some((length, after)) = rest.split_once("\r\n") {
        let length = usize::from_str_radix(length.trim(), 16).expect("a length");
        text += &after[..length];
        rest = after[length..].trim_start_matches("\r\n");
    }
    text
}

const OPEN_METRICS: &str = "Accept: application/openmetrics-text;version=1.0.0;q=0.75,text/plain;q=0.5\r\n";

#[test]
fn load_and_counters_are_served_in_both_formats_until_a_signal() {
    let (name, counts) = (Name::new("page"), Name::new("page-counts"));
    let _memory = table(&name, 3);
    let mut counters = SharedCounters::open(&counts.text(), 2, 0o600).expect("counters");
    counters.blocks()[0].conforming = 3;
    counters.blocks()[1].non_conforming = 4;
    let (mut running, address) = serve(&[&name.0, "--counters", &counts.0]);
    let (status, kind, text) = get(&address, "/metrics", "");
    assert_eq!((status, &*kind), (200, "text/plain; version=0.0.4; charset=utf-8"));
    let has = |text: &str, metric: &str, labels: &str, value: &str| {
        let line = format!("{metric}{{table=\"{}\"{labels}}} {value}", name.0);
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    };
    has(&text, "tatcell_requests_total", ",verdict=\"conforming\"", "3");
    has(&text, "tatcell_requests_total", ",verdict=\"non_conforming\"", "4");
    has(&text, "tatcell_live_keys", "", "3");
    has(&text, "tatcell_slots", "", "32");
    has(&text, "tatcell_table_info", ",algorithm=\"gcra\",policy=\"deny\",tag_bits=\"20\"", "1");
    let debt =
        text.lines().find_map(|line| line.strip_prefix("tatcell_longest_debt_seconds{")?.split(' ').nth(1));
    let debt: f64 = debt.and_then(|debt| debt.parse().ok()).expect("a debt");
    assert!((1.0..=60.0).contains(&debt), "{debt}");
    // The next answer has what was counted meanwhile.
    counters.blocks()[0].conforming = 5;
    let (status, kind, text) = get(&address, "/metrics", OPEN_METRICS);
    assert_eq!((status, &*kind), (200, "application/openmetrics-text; version=1.0.0; charset=utf-8"));
    has(&text, "tatcell_requests_total", ",verdict=\"conforming\"", "5");
    assert!(text.contains("# TYPE tatcell_requests counter\n") && text.ends_with("# EOF\n"));
    assert_eq!(get(&address, "/healthz", "").0, 200);
    assert_eq!(get(&address, "/", "").0, 404);
    // Silent connections do not keep others away.
    let silent: Vec<_> = (0..80).map(|_| TcpStream::connect(&address).expect("a connection")).collect();
    assert_eq!(get(&address, "/metrics", "").0, 200);
    drop(silent);
    let pid = running.0.id().to_string();
    assert!(Command::new("kill").arg(&pid).status().expect("kill").success());
    assert_eq!(running.0.wait().expect("an end").code(), Some(0));
}

#[test]
fn bans_and_exemptions_are_served_by_their_kind() {
    let name = Name::new("overrides");
    let memory = Memory::create(&name.text(), 64 * 66, 0o600).expect("memory");
    let options = TableOptions::overrides(1 << 40).tick_hz(1_000_000_000).clock(TableClock::Monotonic);
    let table = Table::init(memory.lines(), &options.seed([7; 16])).expect("a table");
    let now = now_ns(Clock::Monotonic).expect("a clock");
    for key in 0..5u8 {
        let hash = table.hash(&[key]).expect("a hash");
        let until = now + (1 << 39);
        if key < 3 { table.ban(now, hash, until) } else { table.exempt(now, hash, until) }.expect("room");
    }
    table.lift(now, table.hash(&[0]).expect("a hash")).expect("a lift");
    let (_running, address) = serve(&[&name.0]);
    let text = get(&address, "/metrics", "").2;
    for (kind, count) in [("ban", 2), ("exemption", 2)] {
        let line = format!("tatcell_overrides{{table=\"{}\",kind=\"{kind}\"}} {count}\n", name.0);
        assert!(text.contains(&line), "{text}");
    }
    assert!(text.contains(&format!("tatcell_live_keys{{table=\"{}\"}} 4\n", name.0)), "{text}");
    assert!(!text.contains("longest_debt"), "{text}");
}

#[test]
fn counters_alone_are_shown_and_served_under_their_name() {
    let counts = Name::new("alone");
    let mut counters = SharedCounters::open(&counts.text(), 1, 0o600).expect("counters");
    counters.blocks()[0].never = 7;
    let output =
        Command::new(PROGRAM).args(["show", "--counters", &counts.0]).output().expect("the program runs");
    assert!(String::from_utf8_lossy(&output.stdout).contains("0 passed, 7 refused"), "{output:?}");
    let (_running, address) = serve(&["--counters", &counts.0]);
    let text = get(&address, "/metrics", "").2;
    assert!(text.contains(&format!("{{table=\"{}\",verdict=\"never\"}} 7\n", counts.0)), "{text}");
    assert!(!text.contains("tatcell_slots"));
}

#[test]
fn a_table_that_goes_away_is_an_error_until_it_comes_back() {
    let name = Name::new("away");
    let memory = table(&name, 2);
    let (_running, address) = serve(&[&name.0]);
    assert!(get(&address, "/metrics", "").2.contains("tatcell_live_keys{"));
    drop(memory);
    unlink(&name.text()).expect("a name");
    let (status, _, text) = get(&address, "/metrics", "");
    assert_eq!((status, text.contains("there is no such name in shared memory")), (503, true), "{text}");
    let _memory = table(&name, 5);
    let line = format!("tatcell_live_keys{{table=\"{}\"}} 5\n", name.0);
    assert!(get(&address, "/metrics", "").2.contains(&line));
}

#[test]
fn what_cannot_be_served_ends_the_start() {
    let name = Name::new("absent");
    let fails = |arguments: &[&str]| {
        let output = Command::new(PROGRAM).arg("show").args(arguments).stdin(Stdio::null()).output();
        let Output { status, stderr, .. } = output.expect("the program runs");
        (status.code(), String::from_utf8_lossy(&stderr).into_owned())
    };
    let serve = ["--serve", "127.0.0.1:0"];
    let (code, message) = fails(&[&[&*name.0][..], &serve].concat());
    assert!(code == Some(3) && message.contains("there is no such name"), "{message}");
    let _memory = table(&name, 1);
    let (code, message) = fails(&[&[&*name.0][..], &serve, &["top"]].concat());
    assert!(code == Some(2) && message.contains("--serve takes no command"), "{message}");
    let (code, message) = fails(&["--serve", &*name.0]);
    assert!(code == Some(2) && message.contains("TABLE stands before --serve"), "{message}");
    let (code, message) = fails(&[&*name.0, "--serve", "here"]);
    assert!(code == Some(2) && message.contains("invalid socket address"), "{message}");
    let (code, message) = fails(&["--clock", "monotonic"]);
    assert!(code == Some(2) && message.contains("<TABLE>"), "{message}");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let (code, message) = fails(&[&*name.0, "--serve", &address]);
    assert!(code == Some(3) && message.contains(&address), "{message}");
}

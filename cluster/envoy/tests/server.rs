//! The service as a process: what it serves, what it reloads, and what it reports when it stops.

#![allow(unsafe_code)] // libc::fcntl

mod common;

use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prost::Message;

use common::{refused, request, Client, Rules, Server, PROGRAM};

const RULES: &str = "
domain: edge
descriptors:
  - key: user
    rate_limit: {unit: day, requests_per_unit: 10}
";

fn hits(server: &Server, outcome: &str) -> u64 {
    server.metric(&format!(
        "tatcell_ratelimit_hits_total{{domain=\"edge\",rule=\"user\",outcome=\"{outcome}\"}}"
    ))
}

#[test]
fn a_client_of_grpc_is_answered_and_counted() {
    let rules = Rules::new(RULES);
    let server = rules.start(&["--headers", "true"]);
    let client = Client::to(&server.address);
    for left in (0..10).rev() {
        assert_eq!(client.left("edge", &["user=a"]), (true, vec![left]));
    }
    assert_eq!(client.left("edge", &["user=a", "user=b"]), (false, vec![0, 9]));
    assert_eq!((hits(&server, "within"), hits(&server, "over")), (11, 1));
    assert!(client.ask(request("", &["user=a"])).is_err_and(|e| e.code() == tonic::Code::InvalidArgument));
    assert_eq!(server.metric("tatcell_ratelimit_malformed_total"), 1);
    assert!(common::http(&server.metrics, "/healthz").0.contains("200"));
}

#[test]
fn a_page_shows_the_rules_in_force_and_one_keys_state() {
    let rules = Rules::new(RULES);
    let server = rules.start(&[]);
    let client = Client::to(&server.address);
    (0..4).for_each(|_| drop(client.left("edge", &["user=a/b"])));
    let page = |target: &str| common::http(&server.metrics, target).1;
    let rule = "{\"domain\": \"edge\", \"rule\": \"user\", \"unit\": \"day\", \"requests_per_unit\": 10}";
    assert_eq!(page("/json"), format!("[\n{rule}\n]\n"));
    for _ in 0..2 {
        let state = page("/json?domain=edge&user=a%2Fb");
        let begin = "{\"remaining\": 6, \"unit\": \"day\", \"requests_per_unit\": 10, \"full_in_seconds\": 3";
        assert!(state.starts_with(begin), "{state}");
    }
    assert_eq!(page("/json?domain=edge&x=y"), "{\"limit\": null}\n");
    assert_eq!(page("/json?domain=other&x=y"), "{\"limit\": null}\n");
    // Looking is no request.
    for name in ["unknown_domain", "unmatched", "malformed"] {
        assert_eq!(server.metric(&format!("tatcell_ratelimit_{name}_total")), 0, "{name}");
    }
    assert_eq!(server.metric("tatcell_ratelimit_requests_total"), 4);
    let (head, body) = common::http(&server.metrics, "/json?user=a");
    assert!(head.contains(" 400 ") && body.contains("error"), "{head} {body}");
    let mut whole = String::new();
    let mut stream = std::net::TcpStream::connect(&server.metrics).expect("the pages");
    write!(stream, "GET /json HTTP/1.1\r\n\r\n").expect("a request");
    stream.read_to_string(&mut whole).expect("a page");
    assert!(whole.contains("content-type: application/json\r\n"), "{whole}");
}

#[test]
fn rules_are_read_anew_and_what_keys_have_used_stays_used() {
    let rules = Rules::new(RULES);
    let server = rules.start(&[]);
    let client = Client::to(&server.address);
    (0..6).for_each(|_| drop(client.left("edge", &["user=a"])));
    // 6 of 10 are 6 of 20.
    rules.write(&RULES.replace("10", "20").replace("edge", "edge # and more"));
    server.signal(libc::SIGHUP);
    server.line_with("the rules were reloaded");
    assert_eq!(client.left("edge", &["user=a"]), (true, vec![13]));
    assert_eq!(hits(&server, "within"), 7, "the counters go on");
    // What is wrong stays out.
    rules.write(&RULES.replace("day", "fortnight"));
    server.signal(libc::SIGHUP);
    let said = server.line_with("the old rules stay in force: ");
    assert!(said.contains("rules.yaml:5:24: 'fortnight' is not a unit"), "{said}");
    assert_eq!(client.left("edge", &["user=a"]), (true, vec![12]));
    std::fs::remove_file(rules.path()).expect("removed");
    server.signal(libc::SIGHUP);
    assert!(server.line_with("the old rules stay in force: ").contains("cannot read"));
    assert_eq!(client.left("edge", &["user=a"]), (true, vec![11]));
    let (good, bad) =
        (server.metric("tatcell_ratelimit_reloads_total"), "tatcell_ratelimit_failed_reloads_total");
    assert_eq!((good, server.metric(bad)), (1, 2));
}

#[test]
fn rules_are_read_anew_when_their_files_change() {
    let rules = Rules::new(RULES);
    // As Kubernetes mounts a ConfigMap: a link to a link that is swapped.
    let (link, data) = (rules.0.join("mounted.yaml"), rules.0.join("..data"));
    for (folder, requests) in [("..1", "10"), ("..2", "20")] {
        std::fs::create_dir(rules.0.join(folder)).expect("a folder");
        let file = rules.0.join(folder).join("mounted.yaml");
        std::fs::write(file, RULES.replace("10", requests)).expect("a file");
    }
    std::os::unix::fs::symlink("..1", &data).expect("a link");
    std::os::unix::fs::symlink("..data/mounted.yaml", &link).expect("a link");
    let path = link.to_string_lossy().into_owned();
    let server = Server::start_program(PROGRAM, &["--rules", &path, "--watch", "20ms"]);
    let client = Client::to(&server.address);
    (0..6).for_each(|_| drop(client.left("edge", &["user=a"])));
    let swapped = rules.0.join("..new");
    std::os::unix::fs::symlink("..2", &swapped).expect("a link");
    std::fs::rename(&swapped, &data).expect("swapped");
    server.line_with("the rules were reloaded");
    assert_eq!(client.left("edge", &["user=a"]), (true, vec![13]));
    // What is wrong is said once, and what is right again is read.
    std::fs::write(rules.0.join("..2/mounted.yaml"), "domain: [").expect("a file");
    server.line_with("the old rules stay in force: ");
    std::fs::write(rules.0.join("..2/mounted.yaml"), RULES.replace("10", "30")).expect("a file");
    server.line_with("the rules were reloaded");
    assert_eq!(client.left("edge", &["user=a"]), (true, vec![22]));
    assert_eq!(server.metric("tatcell_ratelimit_reloads_total"), 2);
    // Each look tries again.
    assert!(server.metric("tatcell_ratelimit_failed_reloads_total") >= 1);
}

#[test]
fn a_reload_in_the_middle_of_a_rewrite_keeps_the_rules_of_that_file() {
    let rules = Rules::new(RULES);
    let (folder, file) = (rules.0.to_string_lossy().into_owned(), rules.path());
    for settings in [&["--rules", folder.as_str()][..], &["--rules", &folder, "--watch", "20ms"]] {
        rules.write(RULES);
        let server = Server::start_program(PROGRAM, settings);
        let (client, watches) = (Client::to(&server.address), settings.len() > 2);
        let put = |name: &str, text: Option<&[u8]>| {
            let (new, name) = (rules.0.join("new"), rules.0.join(name));
            match text {
                Some(text) => std::fs::write(&new, text).expect("a file"),
                None => std::os::unix::fs::symlink("gone", &new).expect("a link"),
            }
            std::fs::rename(&new, name).expect("renamed");
        };
        let mut left = 10;
        // Truncated, only its first remark, cut within a character, and its link to a file that has gone.
        for (text, why) in [
            (Some(&b""[..]), "it is empty"),
            (Some(b"# The limits of the edge\n"), "it is empty"),
            (Some(b"domain: edge # \xc3"), "it ends within a character of UTF-8"),
            (None, "there is no such file"),
        ] {
            put("rules.yaml", text);
            // A file that never was in force is left out, and keeps nothing back.
            put("stray.yaml", text);
            put("other.yaml", Some(format!("domain: other # {left}\n").as_bytes()));
            if !watches {
                server.signal(libc::SIGHUP);
            }
            let said = server.line_with("the old rules stay in force: ");
            assert_eq!(said, format!("cannot read {file}: {why}; remove it if its rules must go"));
            left -= 1;
            assert_eq!(client.left("edge", &["user=a"]), (true, vec![left]), "{why}");
            put("rules.yaml", Some(RULES.as_bytes()));
            if !watches {
                server.signal(libc::SIGHUP);
            }
            server.line_with("the rules were reloaded");
        }
        // Its name is gone, and so are its rules.
        std::fs::remove_file(&file).expect("removed");
        if !watches {
            server.signal(libc::SIGHUP);
        }
        server.line_with("the rules were reloaded");
        assert_eq!(client.left("edge", &["user=a"]), (true, vec![0]), "no limit");
    }
}

#[test]
fn a_check_leaves_the_counters_alone() {
    use tatcell::host::{unlink, ReadOnlyCounters};
    let rules = Rules::new(RULES);
    let name = format!("/tatcell-check-{}", std::process::id());
    let text = std::ffi::CString::new(name.clone()).expect("a name");
    let check = || {
        let settings = ["--rules", &rules.path(), "--counters", &name, "--check", "true"];
        let output = std::process::Command::new(PROGRAM).args(settings).output().expect("the program");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    check();
    assert!(ReadOnlyCounters::attach(&text).is_err(), "the check made them");
    let server = rules.start(&["--counters", &name]);
    let client = Client::to(&server.address);
    (0..3).for_each(|_| drop(client.left("edge", &["user=a"])));
    check();
    server.signal(libc::SIGTERM);
    server.ended();
    check();
    let sum = ReadOnlyCounters::attach(&text).expect("counters").sum();
    unlink(&text).expect("a name");
    assert_eq!(sum.conforming, 3);
}

#[test]
fn negative_hits_are_given_back_and_fields_of_other_versions_are_refused() {
    let rules = Rules::new(RULES);
    let server = rules.start(&[]);
    let client = Client::to(&server.address);
    (0..6).for_each(|_| drop(client.left("edge", &["user=a"])));
    let back = |user: &str, hits: Option<u64>| {
        let mut asked = request("edge", &[user]);
        (asked.descriptors[0].is_negative_hits, asked.descriptors[0].hits_addend) = (true, hits);
        let response = client.ask(asked).expect("an answer");
        assert_eq!(response.overall_code, 1);
        response.statuses[0].limit_remaining
    };
    assert_eq!((back("user=a", Some(4)), back("user=a", None), back("user=a", Some(0))), (8, 9, 9));
    let metric = |name: &str| server.metric(&format!("tatcell_ratelimit_{name}_total"));
    assert_eq!((metric("returned"), metric("unreturned")), (5, 0));
    // A key that owes nothing gets nothing, and no place; nor does a key without a rule.
    assert_eq!(back("user=b", Some(4)), 10);
    assert_eq!(server.metric("tatcell_live_keys{table=\"2^10 ns\"}"), 1);
    back("other=x", Some(2));
    assert_eq!((metric("returned"), metric("unreturned")), (5, 6));
    assert_eq!(client.left("edge", &["user=b"]), (true, vec![9]));
    // A field that this version does not have, in the request and in a descriptor.
    for unknown in [&[0x48, 1][..], &[0x12, 2, 0x48, 1]] {
        let bytes = [&request("edge", &["user=a"]).encode_to_vec()[..], unknown].concat();
        let status = client.ask_bytes(bytes).expect_err("no answer");
        assert_eq!(status.code(), tonic::Code::InvalidArgument);
        assert!(status.message().contains("has a field 9"), "{status:?}");
    }
    assert_eq!(metric("malformed"), 2);
}

#[test]
fn a_hang_up_while_it_starts_kills_nobody_and_rules_that_became_a_pipe_are_refused() {
    let rules = Rules::new(RULES);
    let pipe = rules.0.join("pipe");
    assert!(common::hang_up_at_the_settings(PROGRAM, &pipe), "SIGHUP killed it");
    let server = rules.start(&[]);
    std::fs::remove_file(rules.path()).expect("removed");
    std::fs::rename(&pipe, rules.path()).expect("renamed");
    server.signal(libc::SIGHUP);
    assert!(server.line_with("the old rules stay in force: ").contains("it is not a file"));
    server.signal(libc::SIGTERM);
    assert_eq!(server.ended(), "0 requests, all answered");
}

/// Linux's, which the crate of the C library does not have here.
const F_SETSIG: libc::c_int = 10;

/// A lease on a file: until its holder gives it back, whoever opens the file waits.
struct Lease(std::fs::File);

impl Lease {
    fn take(path: &str) -> Option<Lease> {
        let file = std::fs::OpenOptions::new().write(true).open(path).expect("the file");
        // SAFETY: a descriptor of this process. The signal that asks for the lease is one that nobody heeds.
        let taken = unsafe {
            libc::fcntl(file.as_raw_fd(), F_SETSIG, libc::SIGURG) == 0
                && libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_WRLCK) == 0
        };
        taken.then_some(Lease(file))
    }

    /// Whether someone waits. The system takes the lease away after 45 s.
    fn is_wanted(&self) -> bool {
        // SAFETY: a descriptor of this process.
        unsafe { libc::fcntl(self.0.as_raw_fd(), libc::F_GETLEASE) == libc::F_RDLCK }
    }
}

#[test]
fn a_stop_does_not_wait_for_a_reload_that_hangs() {
    let rules = Rules::new(RULES);
    let server = rules.start(&[]);
    let Some(lease) = Lease::take(&rules.path()) else {
        return common::skip("the file system of temporary files has no leases");
    };
    server.signal(libc::SIGHUP);
    let begun = std::time::Instant::now();
    while !lease.is_wanted() {
        assert!(begun.elapsed() < common::PATIENCE, "no reload");
        std::thread::sleep(Duration::from_millis(5));
    }
    server.signal(libc::SIGTERM);
    assert_eq!(server.ended(), "0 requests, all answered");
    assert!(lease.is_wanted(), "the reload ended");
}

#[test]
fn rules_that_are_nested_without_end_are_refused_and_the_service_goes_on() {
    let rules = Rules::new(RULES);
    let server = rules.start(&[]);
    let client = Client::to(&server.address);
    for deep in ["- ".repeat(5_000), "[".repeat(5_000), "{a: ".repeat(5_000), "? ".repeat(5_000)] {
        rules.write(&format!("domain: d\ndescriptors:\n  {deep}\n"));
        server.signal(libc::SIGHUP);
        let said = server.line_with("the old rules stay in force: ");
        assert!(said.contains("rules.yaml:3:") && said.contains("nested more than 128 deep"), "{said}");
        assert!(client.left("edge", &["user=a"]).0);
    }
}

#[test]
fn a_stop_answers_every_request_that_was_begun() {
    let rules = Rules::new(&RULES.replace("10", "1000000"));
    let server = rules.start(&[]);
    let answered = AtomicU64::new(0);
    let address = server.address.clone();
    let last = std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let client = Client::to(&address);
                while client.ask(request("edge", &["user=a"])).is_ok() {
                    // ORDERING: Relaxed; a value, read after the join.
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let begun = std::time::Instant::now();
        // ORDERING: Relaxed; a value.
        while answered.load(Ordering::Relaxed) <= 50 {
            assert!(begun.elapsed() < common::PATIENCE, "nothing is answered");
            std::thread::sleep(Duration::from_millis(100));
        }
        server.signal(libc::SIGTERM);
        server.ended()
    });
    // ORDERING: Relaxed; the threads have ended.
    let answered = answered.load(Ordering::Relaxed);
    assert_eq!(last, format!("{answered} requests, all answered"));
}

#[test]
fn a_stop_is_no_error_while_nothing_is_under_way() {
    let rules = Rules::new(RULES);
    for _ in 0..10 {
        let server = rules.start(&[]);
        server.signal(libc::SIGTERM);
        assert_eq!(server.ended(), "0 requests, all answered");
    }
}

#[test]
fn what_is_wrong_is_said_and_nothing_starts() {
    let rules = Rules::new(&RULES.replace("day", "fortnight"));
    let path = rules.path();
    for (settings, said) in [
        (&["--rules", path.as_str()][..], "rules.yaml:5:24: 'fortnight' is not a unit"),
        (&["--rules", "/does/not/exist"], "cannot read /does/not/exist"),
        (&[], "give the rules"),
        (&["--rules", &path, "--listne", "x"], "there is no setting listne"),
        (&["--rules", &path, "--headers", "yes"], "--headers: headers: \"yes\""),
    ] {
        let line = refused(PROGRAM, settings);
        assert!(line.starts_with("tatcell-ratelimit: ") && line.contains(said), "{settings:?}: {line}");
    }
    rules.write(RULES);
    let shared = ["--rules", &path, "--store", "redis://127.0.0.1:1/", "--nodes", "2"];
    assert!(refused(PROGRAM, &shared).contains("the store does not answer"));
    let check = std::process::Command::new(PROGRAM).args(["--rules", &path, "--check", "true"]).status();
    assert!(check.is_ok_and(|status| status.success()));
    let server = rules.start(&[]);
    let taken = ["--rules", &path, "--listen", &server.address];
    assert!(refused(PROGRAM, &taken).contains("cannot listen at"));
}

#[test]
fn the_example_of_rules_and_settings_is_sound() {
    let folder = env!("CARGO_MANIFEST_DIR");
    let text = std::fs::read_to_string(format!("{folder}/ratelimit.toml")).expect("the example");
    let settings = tatcell_door::Settings::file("ratelimit.toml", &text).expect("settings");
    tatcell_ratelimit::server::ServerSettings::take(settings).expect("all of them are known");
    let rules = format!("{folder}/rules.yaml");
    let check = std::process::Command::new(PROGRAM).args(["--rules", &rules, "--check", "true"]).status();
    assert!(check.is_ok_and(|status| status.success()));
}

//! Wrong settings give an error of one line, and nothing starts.

mod common;

use common::{hang_up_at_the_settings, refused, Server, PROGRAM};

#[test]
fn what_is_wrong_is_said_in_one_line_with_its_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("throttled.toml");
    let config = file.to_str().expect("a path");
    for (text, said) in [
        ("keys = 10\nlisen = \"x\"\n", "throttled.toml:2:1: there is no setting lisen"),
        ("\nkeys = \"ten\"\n", "throttled.toml:2:9: keys: \"ten\""),
        ("when_full = \"drop\"\n", "one of admit inherit deny sampled"),
        ("idle = \"10\"\n", "a time is a whole number and ms, s, m or h"),
        ("listen = \"localhost\"\n", "throttled.toml:1:11: listen: \"localhost\""),
        ("store = \"redis://127.0.0.1:1/\"\n", "give nodes"),
        ("store = \"redis://127.0.0.1:1/\"\nnodes = 2\n", "give each limit that is shared"),
        ("store = \"redis://127.0.0.1:1/\"\nnodes = 2\nlimit = \"1 2 3\"\n", "the store does not answer"),
        ("store = \"nonsense\"\nnodes = 2\nlimit = \"1 2 3\"\n", "the URL of the store is not valid"),
        ("limit = \"1 2\"\n", "max_burst, count and period"),
        // Limits in words are read by the library, and an error names the column.
        (
            "keys = 10\nlimit = \"10/fortnight\"\n",
            "throttled.toml:2:13: limit: \"10/fortnight\": not a unit of time",
        ),
        (
            "limit = [\n  \"15 30 60\",\n  \"10/s burst x\",\n]\n",
            "throttled.toml:3:15: limit: \"10/s burst x\": a number is missing",
        ),
        ("limit = \"30/m burst 16\"\n", "shared through a store"),
        ("limit = \"1 2 3\"\n", "shared through a store"),
        ("nodes = 2\n", "there is no setting nodes"),
        ("password = \"\"\n", "the password is empty"),
        ("keys = 0\n", "throttled.toml:1:8: keys: \"0\": keys must be 1 to"),
        ("[x]\n", "throttled.toml:1:1: "),
        ("keys\n", "throttled.toml:1:5: "),
    ] {
        std::fs::write(&file, text).expect("a file");
        let line = refused(PROGRAM, &["--config", config]);
        assert!(line.starts_with("tatcell-throttled: ") && line.contains(said), "{text}: {line}");
    }
    assert!(refused(PROGRAM, &["--config", "/does/not/exist"]).contains("/does/not/exist"));
    assert!(refused(PROGRAM, &["--limit", "10/ s burst 1.5"]).starts_with(
        "tatcell-throttled: --limit: limit: \"10/ s burst 1.5\": column 13: a burst is a whole number"
    ));
    assert!(refused(PROGRAM, &["--password-file", "/does/not/exist"]).contains("/does/not/exist"));
    let taken = Server::start(&[]);
    assert!(refused(PROGRAM, &["--listen", &taken.address])
        .contains(&format!("cannot listen at {}", taken.address)));
}

#[test]
fn the_example_of_a_file_is_one() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/throttled.toml");
    // It names an address of its own, which a test must not take: only what is read of it counts here.
    let text = std::fs::read_to_string(example).expect("the example");
    let settings = tatcell_door::Settings::file(example, &text).expect("settings");
    tatcell_throttled::server::ServerSettings::take(settings).expect("all of them are known");
}

#[test]
fn a_hang_up_while_it_starts_does_not_kill_it() {
    let folder = tempfile::tempdir().expect("a folder");
    assert!(hang_up_at_the_settings(PROGRAM, &folder.path().join("pipe")), "SIGHUP killed it");
}

#[test]
fn a_hang_up_has_no_effect_and_says_so() {
    let server = Server::start(&[]);
    server.signal(libc::SIGHUP);
    server.line_with("SIGHUP has no effect");
    assert_eq!(server.connect().say("PING"), common::Reply::Simple("PONG".into()));
    server.signal(libc::SIGTERM);
    assert!(server.ended().ends_with(" 0 clients cut off"));
}

#[test]
fn the_counts_of_the_last_requests_are_in_named_memory_when_it_has_stopped() {
    use tatcell::host::{unlink, ReadOnlyCounters};
    let name = format!("/tatcell-throttled-{}", std::process::id());
    let text = std::ffi::CString::new(name.clone()).expect("a name");
    let server = Server::start(&["--counters", &name]);
    let mut client = server.connect();
    for _ in 0..20 {
        client.say("CL.THROTTLE key 2 1 3600");
    }
    server.signal(libc::SIGTERM);
    server.ended();
    let sum = ReadOnlyCounters::attach(&text).expect("counters").sum();
    unlink(&text).expect("a name");
    assert_eq!((sum.conforming, sum.non_conforming), (3, 17));
}

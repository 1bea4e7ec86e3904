//! Each command shows on a terminal how far it is, and nowhere else. Its input, its server or its reader waits until
//! the terminal has shown it, so no test depends on how fast the machine is.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{channel, Receiver};
use std::time::Duration;

use tatcell::{LimitSpec, Line, Table, TableOptions};

use crate::folder;
use crate::program::{LINE, PROGRAM};

/// Far longer than any command needs for its first line.
const PATIENCE: Duration = Duration::from_secs(120);

/// A folder with a pipe that has a name.
fn with_pipe(name: &str) -> (PathBuf, PathBuf) {
    let folder = folder(name);
    let pipe = folder.join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs");
    assert!(made.success());
    (folder, pipe)
}

/// Runs a command on a terminal. `other` is what the command waits for: it goes on when it receives. Returns all that
/// the terminal got; None where there is no terminal.
fn on_a_terminal(
    folder: &Path,
    arguments: &str,
    want: &str,
    other: impl FnOnce(Receiver<()>) + Send + 'static,
) -> Option<String> {
    let command = format!("'{PROGRAM}' {arguments}");
    let child = Command::new("script")
        .args(["-qec", &command, "/dev/null"])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else {
        println!("SKIP a terminal sees how far {arguments} is: no script: apt-get install bsdutils");
        return None;
    };
    let (go, goes) = channel();
    let other = std::thread::spawn(move || other(goes));
    let mut terminal = child.stdout.take().expect("its terminal");
    let (said, says) = channel();
    std::thread::spawn(move || {
        let mut some = [0; 4096];
        while let Ok(count @ 1..) = terminal.read(&mut some) {
            let _ = said.send(some[..count].to_vec());
        }
    });
    let mut all = Vec::new();
    let seen = |all: &[u8]| String::from_utf8_lossy(all).contains(want);
    while !seen(&all) {
        match says.recv_timeout(PATIENCE) {
            Ok(some) => all.extend(some),
            Err(_) => {
                let _ = child.kill();
                panic!("{arguments}: {want:?} is not in {:?}", String::from_utf8_lossy(&all));
            }
        }
    }
    go.send(()).expect("it waits");
    other.join().expect("it ends");
    all.extend(says.iter().flatten());
    let text = String::from_utf8_lossy(&all).into_owned();
    assert!(child.wait().expect("its end").success(), "{text}");
    // What was written over itself is gone at the end.
    let gone = text.rfind("\r\x1b[K").unwrap_or_else(|| panic!("{text:?}"));
    assert!(gone > text.find(want).expect("as above") && !text[gone + 4..].contains('\x1b'), "{text:?}");
    Some(text)
}

/// Runs it where no terminal is.
fn elsewhere(folder: &Path, arguments: &str) -> String {
    let command = format!("exec 2>&1; '{PROGRAM}' {arguments}");
    let output = Command::new("sh").args(["-c", &command]).current_dir(folder).stdin(Stdio::null()).output();
    let output = output.expect("a shell");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!text.contains(['\x1b', '\r']), "{text:?}");
    text
}

/// Writes the first part, and the second one when it may.
fn feed(pipe: PathBuf, first: String, rest: String) -> impl FnOnce(Receiver<()>) + Send + 'static {
    move |goes| {
        let mut pipe = OpenOptions::new().write(true).open(pipe).expect("the pipe");
        pipe.write_all(first.as_bytes()).expect("a reader");
        // It fails if the terminal never said it.
        if goes.recv().is_ok() {
            pipe.write_all(rest.as_bytes()).expect("a reader");
        }
    }
}

/// An image of a table with 4096 slots, in which one key owes something, and its seed.
fn table(folder: &Path) {
    let spec = LimitSpec::new(1, 3_600_000_000_000, 2);
    let lines: Vec<Line> = (0..514).map(|_| Line::new()).collect();
    let table = Table::init(&lines, &TableOptions::new(spec).seed(*b"16 random bytes!")).expect("a table");
    let limit = table.limit(&spec).expect("a limit");
    assert!(table.check(&limit, 1 << 50, &[192, 0, 2, 7], 1).expect("a check").passes());
    let mut image = vec![0; table.image_words()];
    table.save(1 << 50, &mut image).expect("an image");
    let image: Vec<u8> = image.iter().flat_map(|word| word.to_ne_bytes()).collect();
    fs::write(folder.join("image"), image).expect("a file");
    fs::write(folder.join("seed"), *b"16 random bytes!").expect("a file");
}

#[test]
fn a_replay_shows_how_many_requests_it_has_sent() {
    let folder = folder("progress-replay");
    // A log out of order is replayed here, too.
    let at = |second: &str| LINE.replace("22:13:20", second);
    fs::write(folder.join("log"), LINE.to_owned() + &at("22:13:30") + &at("22:13:10")).expect("a file");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let arguments =
        format!("replay log --to http://127.0.0.1:{port}/ --limit 1000/s --timeout 300s --speed max --json");
    let said = on_a_terminal(&folder, &arguments, "] 33 %, 1 request, 0 s of the log, ", move |goes| {
        let (stream, _) = listener.accept().expect("the program");
        let mut answers = stream.try_clone().expect("the stream");
        let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
        for number in 0..3 {
            assert!(lines.by_ref().any(|line| line.is_empty()), "a request");
            // The second one waits.
            if number == 1 && goes.recv().is_err() {
                return;
            }
            answers.write_all(b"HTTP/1.1 200 x\r\nContent-Length: 2\r\n\r\nok").expect("a reader");
        }
    });
    assert!(said.is_none_or(|said| said.contains("\"sent\": 3")));
}

#[test]
fn a_plan_shows_how_many_records_of_a_slow_pipe_it_has_read() {
    let (folder, pipe) = with_pipe("progress-plan");
    // The format is found once 64 KiB are there.
    let lines = LINE.repeat(1_000);
    fs::write(folder.join("log"), &lines).expect("a file");
    let feeding = feed(pipe, lines.clone(), lines);
    let said = on_a_terminal(&folder, "plan pipe --top 0", "pipe 0 MB, 1000 records, ", feeding);
    assert!(said.is_none_or(|said| said.contains("2000 records of 1 key")));
    assert!(elsewhere(&folder, "plan log --top 0").contains("1000 records of 1 key"));
}

#[test]
fn a_check_shows_what_it_reads() {
    let (folder, pipe) = with_pipe("progress-check");
    let text = "limit_req_zone $a zone=a:1m rate=1r/s;";
    fs::write(folder.join("conf"), text).expect("a file");
    let feeding = feed(pipe, text.into(), "\n".into());
    let said = on_a_terminal(&folder, "check --format nginx pipe", "reading pipe, ", feeding);
    assert!(said.is_none_or(|said| said.contains("pipe (nginx): 0 limits")));
    elsewhere(&folder, "check --format nginx conf");
}

#[test]
fn a_search_for_names_shows_how_many_candidates_it_has_read() {
    let (folder, pipe) = with_pipe("progress-candidates");
    table(&folder);
    fs::write(folder.join("keys"), "192.0.2.7\n").expect("a file");
    let top = format!("show image top --clock {} --seed-file seed --candidates", 1u64 << 50);
    let feeding = feed(pipe, "192.0.2.1\n".into(), "192.0.2.7\n".into());
    let said = on_a_terminal(&folder, &format!("{top} pipe"), "pipe 0 MB, ", feeding);
    assert!(said.is_none_or(|said| said.contains("192.0.2.7")));
    assert!(elsewhere(&folder, &format!("{top} keys")).contains("192.0.2.7"));
}

#[test]
fn a_dump_shows_how_many_slots_it_has_written_where_the_words_go_elsewhere() {
    let (folder, pipe) = with_pipe("progress-dump");
    table(&folder);
    let dump = format!("show image dump --all --clock {}", 1u64 << 50);
    let reading = move |goes: Receiver<()>| {
        let mut pipe = File::open(pipe).expect("the pipe");
        if goes.recv().is_ok() {
            let mut words = String::new();
            pipe.read_to_string(&mut words).expect("text");
            assert_eq!(words.lines().count(), 4097);
        }
    };
    on_a_terminal(&folder, &format!("{dump} > pipe"), "slots [", reading);
    assert_eq!(elsewhere(&folder, &dump).lines().count(), 4097);
}

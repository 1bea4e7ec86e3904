//! Counters in named memory.

use std::os::unix::ffi::OsStrExt;

use tatcell::host::{HostError, Memory, ReadOnlyCounters, SharedCounters};
use tatcell::{Counters, LimitSpec, Line, Request, Table, TableOptions};

use super::system::{child, Name};

#[test]
fn processes_count_in_blocks_of_their_own_and_a_reader_has_the_sum() {
    let name = Name::new("/");
    let mut counters = SharedCounters::open(&name, 3, 0o600).unwrap();
    let seen = ReadOnlyCounters::attach(&name).unwrap();
    assert_eq!(seen.sum(), Counters::default());

    let lines: Vec<Line> = (0..34).map(|_| Line::new()).collect();
    let spec = LimitSpec::new(1, 1_000_000_000, 5);
    let table = Table::init(&lines, &TableOptions::new(spec).seed([7; 16])).unwrap();
    let limit = table.limit(&spec).unwrap();
    let [first, second, _] = counters.blocks() else { panic!("three blocks") };
    for _ in 0..7 {
        let hash = table.hash(b"key").unwrap();
        let request = Request { limit: &limit, now: 1, cost: 1, room: 0 };
        let _ = table.check_ex(&request, hash, Some(&mut *first)).unwrap();
    }
    second.conforming += 100;
    // Another process has the third block.
    let other = child(|| {
        let Ok(mut counters) = SharedCounters::open(&name, 3, 0o600) else { return 1 };
        let Some(third) = counters.blocks().get_mut(2) else { return 2 };
        third.non_conforming += 1000;
        third.reserved[0] = 7;
        0
    });
    assert_eq!(other(), 0);
    let sum = seen.sum();
    assert_eq!((sum.conforming, sum.non_conforming, sum.inserted), (105, 1002, 1));
    assert_eq!(sum, counters.sum());
    // Whoever opens them again goes on where they were.
    let again = SharedCounters::open(&name, 3, 0o600).unwrap();
    assert_eq!(again.sum(), sum);
}

#[test]
fn what_are_no_counters_is_refused() {
    let name = Name::new("/");
    let absent = ReadOnlyCounters::attach(&name).map(|_| ());
    assert_eq!(absent, Err(HostError::Absent));
    for (threads, want) in [(0, HostError::BadSize), (usize::MAX, HostError::BadSize)] {
        assert_eq!(SharedCounters::open(&name, threads, 0o600).map(|_| ()), Err(want));
    }
    let memory = Memory::create(&name, 64 * 8, 0o600).unwrap();
    // Its creator is not done; then it is a table.
    assert_eq!(ReadOnlyCounters::attach(&name).map(|_| ()), Err(HostError::NotReady));
    assert_eq!(SharedCounters::open(&name, 4, 0o600).map(|_| ()), Err(HostError::WrongSize));
    let options = TableOptions::new(LimitSpec::new(1, 1_000_000_000, 5)).seed([7; 16]);
    Table::init(memory.lines(), &options).unwrap();
    assert_eq!(SharedCounters::open(&name, 3, 0o600).map(|_| ()), Err(HostError::NotCounters));
    assert_eq!(ReadOnlyCounters::attach(&name).map(|_| ()), Err(HostError::NotCounters));
}

/// A creator may die after each of its steps: the name is there, then its size.
#[test]
fn counters_whose_creator_died_are_finished_by_the_next_opener() {
    for bytes in [0, 64 * 8] {
        let name = Name::new("/");
        let dead = Memory::create(&name, 64 * 8, 0o600).unwrap();
        if bytes == 0 {
            drop(dead);
            let path = format!("/dev/shm{}", name.to_str().unwrap());
            let Ok(file) = std::fs::File::options().write(true).open(path) else { continue };
            file.set_len(0).unwrap();
        }
        let not_ready = ReadOnlyCounters::attach(&name).map(|_| ());
        assert_eq!(not_ready, Err(HostError::NotReady), "{bytes}");
        let mut next = SharedCounters::open(&name, 3, 0o600).unwrap();
        next.blocks()[2].never = 5;
        assert_eq!(SharedCounters::open(&name, 3, 0o600).unwrap().sum().never, 5);
        assert_eq!(ReadOnlyCounters::attach(&name).unwrap().sum().never, 5);
    }
}

#[test]
fn counters_that_are_leaked_stay() {
    let name = Name::new("/");
    let blocks = SharedCounters::open(&name, 2, 0o600).unwrap().leak();
    blocks[1].never = 3;
    assert_eq!(ReadOnlyCounters::attach(&name).unwrap().sum().never, 3);
}

#[test]
fn a_file_of_another_user_is_refused() {
    let name = Name::new("/tmp/");
    let path = std::path::Path::new(std::ffi::OsStr::from_bytes(name.to_bytes()));
    drop(SharedCounters::open(&name, 3, 0o600).unwrap());
    if std::os::unix::fs::chown(path, Some(65_534), None).is_err() {
        println!("SKIP counters_of_another_user: only root gives a file away");
        return;
    }
    // A user who owns the file could make it smaller at any time, which would end this process.
    assert_eq!(SharedCounters::open(&name, 3, 0o600).map(|_| ()), Err(HostError::System(libc::EPERM)));
    assert_eq!(ReadOnlyCounters::attach(&name).unwrap().sum(), Counters::default());
    std::os::unix::fs::chown(path, Some(0), None).unwrap();
    drop(SharedCounters::open(&name, 3, 0o600).unwrap());
}

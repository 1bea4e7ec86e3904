//! Counters in named memory.

use std::ffi::CStr;
use std::os::unix::ffi::OsStrExt;

use tatcell::host::{HostError, Memory, ReadOnlyCounters, SharedCounters};
use tatcell::{Counters, LimitSpec, Line, Request, Table, TableOptions};

use super::system::{child, Name};

/// Opens them once the last of their processes has ended, or a child that another test has forked.
fn open(name: &CStr, threads: usize) -> SharedCounters {
    for _ in 0..1_000 {
        match SharedCounters::open(name, threads, 0o600) {
            Err(HostError::Taken) => std::thread::sleep(std::time::Duration::from_millis(5)),
            opened => return opened.unwrap(),
        }
    }
    panic!("they stay taken")
}

#[test]
fn processes_count_in_blocks_of_their_own_and_a_reader_has_the_sum() {
    let name = Name::new("/");
    let mut first = match SharedCounters::open_some(&name, 3, 1, 0o600) {
        Err(HostError::Unsupported) => {
            return println!("SKIP counters_of_processes: no locks on this system")
        }
        opened => opened.unwrap(),
    };
    let seen = ReadOnlyCounters::attach(&name).unwrap();
    assert_eq!(seen.sum(), Counters::default());

    let lines: Vec<Line> = (0..34).map(|_| Line::new()).collect();
    let spec = LimitSpec::new(1, 1_000_000_000, 5);
    let table = Table::init(&lines, &TableOptions::new(spec).seed([7; 16])).unwrap();
    let limit = table.limit(&spec).unwrap();
    let [block] = first.blocks() else { panic!("one block") };
    for _ in 0..7 {
        let hash = table.hash(b"key").unwrap();
        let request = Request { limit: &limit, now: 1, cost: 1, room: 0 };
        let _ = table.check_ex(&request, hash, Some(&mut *block)).unwrap();
    }
    let mut second = SharedCounters::open_some(&name, 3, 1, 0o600).unwrap();
    second.blocks()[0].conforming += 100;
    // Another process has the third block, and a fourth one there is not.
    let other = child(|| {
        let Ok(mut counters) = SharedCounters::open_some(&name, 3, 1, 0o600) else { return 1 };
        let [third] = counters.blocks() else { return 2 };
        third.non_conforming += 1000;
        third.reserved[0] = 7;
        match SharedCounters::open_some(&name, 3, 1, 0o600) {
            Err(HostError::Taken) => 0,
            _ => 3,
        }
    });
    assert_eq!(other(), 0);
    let sum = seen.sum();
    assert_eq!((sum.conforming, sum.non_conforming, sum.inserted), (105, 1002, 1));
    assert_eq!(sum, first.sum());
    // Whoever opens them again goes on where they were.
    drop((first, second));
    let again = open(&name, 3);
    assert_eq!(again.sum(), sum);
}

#[test]
fn blocks_have_one_process_until_it_and_its_children_have_ended() {
    let name = Name::new("/");
    let is_taken = || match SharedCounters::open(&name, 2, 0o600) {
        Err(HostError::Taken) => true,
        opened => opened.map(|_| false).unwrap(),
    };
    let mut first = open(&name, 2);
    if !is_taken() {
        return println!("SKIP taken_counters: no locks on this system");
    }
    assert_eq!(SharedCounters::open_some(&name, 2, 1, 0o600).map(|_| ()), Err(HostError::Taken));
    assert_eq!(child(|| i32::from(is_taken()))(), 1);
    first.blocks()[1].never = 4;
    // A child that was forked meanwhile has the mapping, and so the lock.
    let mut pipe = [0; 2];
    // SAFETY: room for two descriptors.
    assert_eq!(unsafe { libc::pipe(pipe.as_mut_ptr()) }, 0);
    // SAFETY: the child only reads, and ends with the pipe.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let mut byte = 0u8;
        // SAFETY: descriptors of this process, and room for a byte.
        unsafe {
            libc::close(pipe[1]);
            libc::read(pipe[0], (&raw mut byte).cast(), 1);
            libc::_exit(0)
        }
    }
    drop(first);
    assert!(is_taken());
    // SAFETY: our own child.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    // SAFETY: our own child, and no room for its status.
    assert_eq!(unsafe { libc::waitpid(pid, core::ptr::null_mut(), 0) }, pid);
    assert_eq!(open(&name, 2).sum().never, 4);
}

#[test]
fn parts_of_the_blocks_begin_at_a_multiple_of_their_size() {
    let name = Name::new("/");
    let some = |count| SharedCounters::open_some(&name, 5, count, 0o600);
    let first = match some(2) {
        Err(HostError::Unsupported) => return println!("SKIP parts_of_counters: no locks on this system"),
        opened => opened.unwrap(),
    };
    let mut second = some(2).unwrap();
    second.blocks().iter_mut().for_each(|block| block.never += 3);
    // One block is left, at its end.
    assert_eq!(some(2).map(|_| ()), Err(HostError::Taken));
    let mut last = some(1).unwrap();
    last.blocks()[0].soft += 1;
    assert_eq!((last.blocks().len(), last.sum().never, last.sum().soft), (1, 6, 1));
    assert_eq!(some(1).map(|_| ()), Err(HostError::Taken));
    for bad in [0, 6] {
        assert_eq!(some(bad).map(|_| ()), Err(HostError::BadSize));
    }
    drop(first);
}

/// Lets each fcntl that sets a lock fail with this errno, in this process, as on a file system without locks.
#[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
fn refuse_locks(errno: i32) -> bool {
    use libc::{BPF_ABS, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W};
    let line = |code, k, jt, jf| libc::sock_filter { code: code as u16, jt, jf, k };
    // The number of the call, and the low half of its second argument, in struct seccomp_data.
    let lines = [
        line(BPF_LD | BPF_W | BPF_ABS, 0, 0, 0),
        line(BPF_JMP | BPF_JEQ | BPF_K, libc::SYS_fcntl as u32, 0, 3),
        line(BPF_LD | BPF_W | BPF_ABS, 24, 0, 0),
        line(BPF_JMP | BPF_JEQ | BPF_K, libc::F_OFD_SETLK as u32, 0, 1),
        line(BPF_RET | BPF_K, libc::SECCOMP_RET_ERRNO | errno as u32, 0, 0),
        line(BPF_RET | BPF_K, libc::SECCOMP_RET_ALLOW, 0, 0),
    ];
    let program = libc::sock_fprog { len: lines.len() as u16, filter: lines.as_ptr().cast_mut() };
    // SAFETY: a program in memory that the kernel reads.
    unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
    }
}

/// Two programs would take the same blocks for blocks that nobody has.
#[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
#[test]
fn where_nothing_locks_all_blocks_are_opened_and_some_are_not() {
    for errno in [libc::ENOLCK, libc::EOPNOTSUPP, libc::ENOSYS, libc::EINVAL] {
        let name = Name::new("/");
        let status = child(|| {
            if !refuse_locks(errno) {
                return 77;
            }
            let some = SharedCounters::open_some(&name, 4, 2, 0o600).map(|_| ());
            let (first, second) =
                (SharedCounters::open(&name, 4, 0o600), SharedCounters::open(&name, 4, 0o600));
            match (some, first, second) {
                (Err(HostError::Unsupported), Ok(_), Ok(_)) => 0,
                (Ok(()), ..) => 1,
                (_, Err(_), _) => 2,
                _ => 3,
            }
        })();
        if status == 77 {
            return println!("SKIP counters_without_locks: this system has no seccomp filters");
        }
        assert_eq!(status, 0, "errno {errno}");
    }
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
        let mut next = open(&name, 3);
        next.blocks()[2].never = 5;
        assert_eq!(ReadOnlyCounters::attach(&name).unwrap().sum().never, 5);
    }
}

#[test]
fn counters_that_are_leaked_stay() {
    let name = Name::new("/");
    let blocks = open(&name, 2).leak();
    blocks[1].never = 3;
    assert_eq!(ReadOnlyCounters::attach(&name).unwrap().sum().never, 3);
}

#[test]
fn a_file_of_another_user_is_refused() {
    let name = Name::new("/tmp/");
    let path = std::path::Path::new(std::ffi::OsStr::from_bytes(name.to_bytes()));
    drop(open(&name, 3));
    if std::os::unix::fs::chown(path, Some(65_534), None).is_err() {
        println!("SKIP counters_of_another_user: only root gives a file away");
        return;
    }
    // A user who owns the file could make it smaller at any time, which would end this process.
    assert_eq!(SharedCounters::open(&name, 3, 0o600).map(|_| ()), Err(HostError::System(libc::EPERM)));
    assert_eq!(ReadOnlyCounters::attach(&name).unwrap().sum(), Counters::default());
    std::os::unix::fs::chown(path, Some(0), None).unwrap();
    drop(open(&name, 3));
}

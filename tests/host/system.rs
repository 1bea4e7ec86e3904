//! Feature `host`: clocks, ticks, memory and names, on the machine that runs the tests.

use std::ffi::{CStr, CString};
use std::sync::atomic::{AtomicU32, Ordering};

use tatcell::host::{
    counter, now_ns, random_seed, resolution_ns, unlink, Clock, HostError, Memory, Pages, TickClock,
};
use tatcell::{
    lines_for, AttachOptions, Burst, HashKind, Limit, LimitSpec, NextBurst, Outcome, Table, TableError,
    TableOptions,
};

const SEED: [u8; 16] = *b"a secret of test";

/// A name that no other test and no other run uses; removed when dropped.
pub(super) struct Name(CString);

impl Name {
    pub(super) fn new(start: &str) -> Name {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        // ORDERING: Relaxed; a number that is only counted.
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        Name(CString::new(format!("{start}tatcell-test-{}-{n}", std::process::id())).unwrap())
    }
}

impl std::ops::Deref for Name {
    type Target = CStr;
    fn deref(&self) -> &CStr {
        &self.0
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        let _ = unlink(&self.0);
    }
}

fn options() -> TableOptions {
    TableOptions::new(LimitSpec::new(1, 1_000_000_000, 5)).seed(SEED)
}

/// Runs a child process to its end; it may only use what does not allocate. Gives its exit status.
pub(super) fn child(run: impl FnOnce() -> i32) -> impl FnOnce() -> i32 {
    // SAFETY: the child calls nothing that takes a lock which another thread might have held.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        let status = run();
        // SAFETY: ends this process without running anybody's destructors.
        unsafe { libc::_exit(status) }
    }
    move || {
        let mut status = 0;
        // SAFETY: our own child, and room for a status.
        assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
        assert!(libc::WIFEXITED(status), "child ended by signal: {status}");
        libc::WEXITSTATUS(status)
    }
}

/// Units that pass at one instant.
fn spend(table: &Table<'_>, key: &[u8]) -> i32 {
    let limit = table.limit(&LimitSpec::new(1, 1_000_000_000, 5)).unwrap();
    (0..100).take_while(|_| table.check(&limit, 1_000, key, 1).unwrap().passes()).count() as i32
}

#[test]
fn every_clock_goes_forward() {
    for clock in [Clock::Monotonic, Clock::Raw, Clock::Coarse, Clock::Boottime] {
        let mut last = match now_ns(clock) {
            Err(HostError::Unsupported) if !cfg!(target_os = "linux") => continue,
            now => now.unwrap(),
        };
        assert!(last > 0);
        for _ in 0..10_000 {
            let now = now_ns(clock).unwrap();
            assert!(now >= last, "{clock:?}: {now} after {last}");
            last = now;
        }
        let resolution = resolution_ns(clock).unwrap();
        assert!((1..=100_000_000).contains(&resolution), "{clock:?}: {resolution} ns");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_coarse_clock_is_the_monotonic_one_a_moment_ago() {
    for _ in 0..100 {
        let (before, coarse) = (now_ns(Clock::Monotonic).unwrap(), now_ns(Clock::Coarse).unwrap());
        let after = now_ns(Clock::Monotonic).unwrap();
        assert!(coarse <= after);
        // Its error is one tick of the kernel, and this thread may have been put off for a while.
        assert!(coarse + resolution_ns(Clock::Coarse).unwrap() * 2 + 1_000_000_000 > before);
    }
}

#[test]
fn ticks_run_at_the_rate_that_calibration_finds() {
    let clock = match TickClock::calibrate(5_000_000) {
        Err(HostError::Unsupported) => {
            return println!(
                "SKIP ticks_run_at_the_rate_that_calibration_finds: no counter of constant rate on this processor"
            )
        }
        clock => clock.unwrap(),
    };
    let other = TickClock::calibrate(20_000_000).unwrap();
    println!(
        "{} Hz +- {} ppb; {} Hz +- {} ppb",
        clock.ticks_per_sec(),
        clock.uncertainty_ppb(),
        other.ticks_per_sec(),
        other.uncertainty_ppb()
    );
    let apart = clock.ticks_per_sec().abs_diff(other.ticks_per_sec()) as u128 * 1_000_000_000;
    let allowed = clock.uncertainty_ppb() as u128 + other.uncertainty_ppb() as u128 + 1_000;
    assert!(apart / clock.ticks_per_sec() as u128 <= allowed);
    assert!(Limit::from_rate(1_000_000, clock.ticks_per_sec(), 100).is_ok());

    let mut last = counter();
    for _ in 0..10_000 {
        // One thread on one processor, or on processors whose counters agree to a microsecond.
        let now = clock.now();
        assert!(now.wrapping_add(clock.from_ns(1_000)) >= last);
        last = now;
    }
}

#[test]
fn ticks_and_nanoseconds_convert_upwards_and_saturate() {
    let Ok(clock) = TickClock::from_rate(2_999_999_999) else {
        return println!(
            "SKIP ticks_and_nanoseconds_convert_upwards_and_saturate: no counter of constant rate"
        );
    };
    assert_eq!(clock.to_ns(0), 0);
    assert_eq!(clock.to_ns(1), 1);
    assert_eq!(clock.to_ns(2_999_999_999), 1_000_000_000);
    assert_eq!(clock.to_ns(3_000_000_000), 1_000_000_001);
    assert_eq!(clock.from_ns(1), 3);
    assert_eq!(clock.from_ns(u64::MAX), u64::MAX);
    for ns in [1, 7, 1_000, 123_456_789_012] {
        let back = clock.to_ns(clock.from_ns(ns));
        assert!(back >= ns && back <= ns + 1);
    }
    assert_eq!(TickClock::from_rate(0), Err(HostError::Unsupported));
}

#[test]
fn a_calibration_of_no_sensible_length_is_refused() {
    for interval in [0, 999_999, 1_000_000_001, u64::MAX] {
        assert_eq!(TickClock::calibrate(interval), Err(HostError::BadInterval));
    }
}

#[test]
fn memory_is_zeroed_aligned_and_as_large_as_asked() {
    for (bytes, huge, shared) in
        [(1, false, false), (4097, false, true), (100, true, false), (3 << 20, true, true)]
    {
        let mut memory = Memory::new(bytes, huge, shared).unwrap();
        assert!(memory.bytes() >= bytes);
        assert_eq!(memory.as_ptr().align_offset(if huge { 2 << 20 } else { 4096 }), 0);
        assert_eq!(memory.lines().len() * 64, memory.bytes());
        if huge {
            assert_eq!(memory.bytes() % (2 << 20), 0);
        } else {
            assert_eq!(memory.pages(), Pages::Normal);
        }
        assert_eq!(memory.lines_mut().is_none(), shared);
        // SAFETY: all of it is mapped, and nobody else has it.
        let all = unsafe { std::slice::from_raw_parts_mut(memory.as_ptr(), memory.bytes()) };
        assert!(all.iter().all(|&b| b == 0));
        all.fill(1);
    }
}

#[test]
fn memory_of_no_size_or_of_all_sizes_is_refused() {
    for bytes in [0, usize::MAX, usize::MAX / 2 + 1] {
        for huge in [false, true] {
            assert_eq!(Memory::new(bytes, huge, false).unwrap_err(), HostError::BadSize);
        }
    }
    // More than there is: the system's own answer.
    match Memory::anonymous(isize::MAX as usize - 63) {
        Err(HostError::System(errno)) => assert_eq!(errno, libc::ENOMEM),
        other => panic!("{other:?}"),
    }
}

#[test]
fn huge_pages_are_reported_as_they_are() {
    let memory = Memory::huge(lines_for(1 << 20) * 64).unwrap();
    let before = match memory.huge_bytes() {
        Err(HostError::Unsupported) if !cfg!(target_os = "linux") => return,
        bytes => bytes.unwrap(),
    };
    let table = Table::init(memory.lines(), &options()).unwrap();
    let after = memory.huge_bytes().unwrap();
    println!(
        "{:?}: {before} bytes on huge pages when fresh, {after} of {} in use",
        memory.pages(),
        memory.bytes()
    );
    assert!(before <= after || memory.pages() == Pages::Huge);
    assert!(after <= memory.bytes() && after % (2 << 20) == 0);
    if memory.pages() == Pages::Huge {
        assert_eq!(after, memory.bytes());
    }
    assert_eq!(spend(&table, b"key"), 5);
    let small = Memory::anonymous(1 << 16).unwrap();
    assert!(small.huge_bytes().unwrap() <= small.bytes());
}

#[test]
fn dropped_memory_is_unmapped() {
    let check = child(|| {
        let Ok(memory) = Memory::anonymous(1 << 20) else { return 1 };
        let start = memory.as_ptr();
        drop(memory);
        // SAFETY: asks about an address, touches nothing.
        let mapped = unsafe { libc::msync(start.cast(), 4096, libc::MS_ASYNC) } == 0;
        mapped as i32
    });
    assert_eq!(check(), 0);
}

#[test]
fn forked_processes_share_one_table_without_a_name() {
    let memory = Memory::new(1 << 16, false, true).unwrap();
    let table = Table::init(memory.lines(), &options()).unwrap();
    let limit = table.limit(&LimitSpec::new(1, 1_000_000_000, 5)).unwrap();
    let hash = table.hash(b"key").unwrap();
    let check = child(|| {
        let burst = Burst::new(&limit, 1_000, &[hash; 2]).check(&table, None, NextBurst::NONE);
        let burst = burst.map_or(100, u64::count_ones);
        let single = table.check(&limit, 1_000, b"key", 1) == Ok(Outcome::Conforming);
        burst as i32 + i32::from(single)
    });
    assert_eq!(check(), 3);
    let pass = Burst::new(&limit, 1_000, &[hash; 3]).check(&table, None, NextBurst::NONE).unwrap();
    assert_eq!(pass.count_ones(), 2);
    assert_eq!(spend(&table, b"key"), 0);
}

/// Half of the processes by single calls, half by bursts, all at once.
#[test]
fn forked_processes_pass_one_burst_by_single_calls_and_by_bursts() {
    const BURST: u64 = 100_000;
    let spec = LimitSpec::new(1, 1_000_000_000, BURST);
    for _ in 0..5 {
        let memory = Memory::new(1 << 16, false, true).unwrap();
        let table = Table::init(memory.lines(), &TableOptions::new(spec).seed(SEED)).unwrap();
        let limit = table.limit(&spec).unwrap();
        let hash = table.hash(b"key").unwrap();
        // What each has passed, in memory that they share.
        let counts = Memory::new(64, false, true).unwrap();
        // SAFETY: a page of zeros that nobody else uses, never moved while the children run.
        let (here, counts) = unsafe { &*counts.as_ptr().cast::<(AtomicU32, [AtomicU32; 4])>() };
        let children: Vec<_> = (0..4)
            .map(|i| {
                child(move || {
                    // ORDERING: SeqCst, both; none begins before all are there.
                    here.fetch_add(1, Ordering::SeqCst);
                    while here.load(Ordering::SeqCst) < 4 {
                        std::thread::yield_now();
                    }
                    let mut passed = 0;
                    for _ in 0..BURST / 8 {
                        if i % 2 == 0 {
                            match Burst::new(&limit, 1_000, &[hash; 8]).check(&table, None, NextBurst::NONE) {
                                Ok(pass) => passed += pass.count_ones(),
                                Err(_) => return 1,
                            }
                        } else {
                            for _ in 0..8 {
                                passed += u32::from(loop {
                                    match table.check_hash(&limit, 1_000, hash, 1) {
                                        Ok(Outcome::Contended) => {}
                                        Ok(outcome) => break outcome.passes(),
                                        Err(_) => return 2,
                                    }
                                });
                            }
                        }
                    }
                    // ORDERING: SeqCst; read when it has ended.
                    counts[i].store(passed, Ordering::SeqCst);
                    0
                })
            })
            .collect();
        children.into_iter().for_each(|wait| assert_eq!(wait(), 0));
        let passed: Vec<u32> = counts.iter().map(|count| count.load(Ordering::SeqCst)).collect();
        assert_eq!(passed.iter().map(|&n| u64::from(n)).sum::<u64>(), BURST, "{passed:?}");
    }
}

#[test]
fn a_name_has_one_creator_and_any_number_of_users() {
    for start in ["/", "/tmp/"] {
        let name = Name::new(start);
        assert_eq!(Memory::attach(&name, 0).unwrap_err(), HostError::Absent);
        let made = Memory::create(&name, 1 << 16, 0o600).unwrap();
        assert_eq!(Memory::create(&name, 1 << 16, 0o600).unwrap_err(), HostError::Exists);

        let seen = Memory::attach(&name, 1 << 16).unwrap();
        assert_eq!(
            Table::attach(seen.lines(), &AttachOptions::new().seed(SEED)).unwrap_err(),
            TableError::NotReady
        );
        let table = Table::init(made.lines(), &options()).unwrap();
        let other = Table::attach(seen.lines(), &AttachOptions::new().seed(SEED)).unwrap();
        let check = child(|| {
            let Ok(memory) = Memory::attach(&name, 0) else { return 100 };
            let Ok(table) = Table::attach(memory.lines(), &AttachOptions::new().seed(SEED)) else {
                return 101;
            };
            let Ok(limit) = table.limit(&LimitSpec::new(1, 1_000_000_000, 5)) else { return 102 };
            (0..2).filter(|_| table.check(&limit, 1_000, b"key", 1) == Ok(Outcome::Conforming)).count() as i32
        });
        assert_eq!(check(), 2);
        assert_eq!(spend(&other, b"key"), 3);
        assert_eq!(spend(&table, b"key"), 0);

        assert_eq!(Memory::attach(&name, 1 << 17).unwrap_err(), HostError::WrongSize);
        unlink(&name).unwrap();
        assert_eq!(unlink(&name).unwrap_err(), HostError::Absent);
        assert_eq!(Memory::attach(&name, 0).unwrap_err(), HostError::Absent);
        // The name is gone, the memory is not.
        assert_eq!(spend(&other, b"another"), 5);
    }
}

#[test]
fn of_many_processes_one_creates_and_together_they_pass_one_burst() {
    for _ in 0..20 {
        let name = Name::new("/");
        let children: Vec<_> = (0..8)
            .map(|_| {
                child(|| {
                    let (memory, created) = match Memory::create(&name, 1 << 16, 0o600) {
                        Ok(memory) => (memory, true),
                        Err(HostError::Exists) => loop {
                            match Memory::attach(&name, 1 << 16) {
                                Ok(memory) => break (memory, false),
                                Err(HostError::NotReady) => std::hint::spin_loop(),
                                Err(_) => return 100,
                            }
                        },
                        Err(_) => return 101,
                    };
                    let table = if created {
                        Table::init(memory.lines(), &options())
                    } else {
                        loop {
                            match Table::attach(memory.lines(), &AttachOptions::new().seed(SEED)) {
                                Err(TableError::NotReady) => std::hint::spin_loop(),
                                table => break table,
                            }
                        }
                    };
                    let Ok(table) = table else { return 102 };
                    let Ok(limit) = table.limit(&LimitSpec::new(1, 1_000_000_000, 5)) else { return 103 };
                    let mut passed = 0;
                    for _ in 0..50 {
                        // A lost race is not a verdict.
                        passed += match table.check(&limit, 1_000, b"key", 1) {
                            Ok(Outcome::Conforming) => 1,
                            _ => 0,
                        };
                    }
                    passed + if created { 32 } else { 0 }
                })
            })
            .collect();
        let statuses: Vec<i32> = children.into_iter().map(|wait| wait()).collect();
        assert!(statuses.iter().all(|&s| s < 64), "{statuses:?}");
        assert_eq!(statuses.iter().filter(|&&s| s >= 32).count(), 1, "{statuses:?}");
        assert_eq!(statuses.iter().map(|s| s % 32).sum::<i32>(), 5, "{statuses:?}");
    }
}

#[test]
fn a_file_without_its_size_is_not_ready() {
    let name = Name::new("/tmp/");
    std::fs::write(name.to_str().unwrap(), b"").unwrap();
    assert_eq!(Memory::attach(&name, 0).unwrap_err(), HostError::NotReady);
    assert_eq!(Memory::attach(&name, 64).unwrap_err(), HostError::NotReady);
}

/// A name of `bytes` bytes that starts with `start`.
fn of_length(start: &str, bytes: usize) -> CString {
    CString::new(format!("{start}{}", "x".repeat(bytes - start.len()))).unwrap()
}

/// What each of the three calls on a name answers.
fn refusals(name: &CStr) -> [HostError; 3] {
    let created = Memory::create(name, 4096, 0o600).unwrap_err();
    [created, Memory::attach(name, 0).unwrap_err(), unlink(name).unwrap_err()]
}

#[test]
fn a_name_is_one_slash_and_one_part_or_a_path_to_a_file() {
    for name in [c"", c"x", c"relative", c"./x/y", c"x/y"] {
        assert_eq!(refusals(name), [HostError::BadName; 3], "no slash first: {name:?}");
    }
    for name in [c"/", c"/.", c"/.."] {
        assert_eq!(refusals(name), [HostError::BadName; 3], "no name of memory: {name:?}");
    }
    for name in [c"//", c"//name", c"///tmp/name", c"/name/", c"/name//"] {
        assert_eq!(refusals(name), [HostError::BadName; 3], "neither form: {name:?}");
    }
    for name in [c"/tmp/", c"/tmp/.", c"/tmp/..", c"/no/such/place/", c"/no/such/place/.."] {
        assert_eq!(refusals(name), [HostError::BadName; 3], "no name of a file: {name:?}");
    }
}

#[test]
fn dots_within_a_name_are_letters() {
    for start in ["/.", "/..", "/...", "/tmp/.", "/tmp/./..", "/tmp/../tmp/"] {
        let name = Name::new(start);
        let made = Memory::create(&name, 4096, 0o600).unwrap();
        assert_eq!(Memory::attach(&name, 0).unwrap().bytes(), made.bytes());
        assert_eq!(unlink(&name), Ok(()));
    }
}

#[test]
fn names_and_paths_may_be_as_long_as_the_constants_say() {
    let start = format!("/tatcell-test-{}-", std::process::id());
    let longest = Name(of_length(&start, Memory::MAX_NAME));
    let made = Memory::create(&longest, 4096, 0o600).unwrap();
    assert_eq!(Memory::attach(&longest, 0).unwrap().bytes(), made.bytes());
    assert_eq!(refusals(&of_length(&start, Memory::MAX_NAME + 1)), [HostError::BadName; 3]);

    // Slashes count as one, for the system, but they are bytes of the path.
    let folder = format!("/tmp{}", "/".repeat(Memory::MAX_PATH - 4 - start.len()));
    let longest = Name(CString::new(format!("{folder}{start}")).unwrap());
    assert_eq!(longest.to_bytes().len(), Memory::MAX_PATH);
    let made = Memory::create(&longest, 4096, 0o600).unwrap();
    assert_eq!(Memory::attach(&longest, 0).unwrap().bytes(), made.bytes());
    let longer = CString::new(format!("{folder}/{start}")).unwrap();
    assert_eq!(refusals(&longer), [HostError::BadName; 3]);

    // A part longer than the file system takes.
    assert_eq!(refusals(&of_length("/tmp/", 300)), [HostError::BadName; 3]);
}

#[test]
fn a_missing_folder_is_an_error_of_its_own_where_creating() {
    let (folder, file) = (Name::new("/tmp/"), Name::new("/tmp/"));
    let inside = |name: &Name| CString::new(format!("{}/limits", name.to_str().unwrap())).unwrap();
    // Someone may still make it, so one who attaches may ask again; whoever creates may not hope for that.
    assert_eq!(refusals(&inside(&folder)), [HostError::NoFolder, HostError::Absent, HostError::Absent]);
    std::fs::write(file.to_str().unwrap(), b"").unwrap();
    let not_a_folder = HostError::System(libc::ENOTDIR);
    assert_eq!(refusals(&inside(&file)), [HostError::NoFolder, not_a_folder, not_a_folder]);

    std::fs::create_dir(folder.to_str().unwrap()).unwrap();
    let made = Memory::create(&inside(&folder), 4096, 0o600).unwrap();
    assert_eq!(Memory::create(&folder, 4096, 0o600).unwrap_err(), HostError::Exists);
    assert_eq!(unlink(&inside(&folder)), Ok(()));
    drop(made);
    std::fs::remove_dir(folder.to_str().unwrap()).unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn a_system_without_shared_memory_says_so() {
    let folder = Name::new("/tmp/");
    std::fs::create_dir(folder.to_str().unwrap()).unwrap();
    let check = child(|| {
        // SAFETY: a string that ends; changes the root of this child alone.
        if unsafe { libc::chroot(folder.as_ptr()) } != 0 {
            return 77;
        }
        let answers = [
            Memory::create(c"/tatcell-test", 4096, 0o600).map(|_| ()),
            Memory::attach(c"/tatcell-test", 0).map(|_| ()),
            unlink(c"/tatcell-test"),
        ];
        let expected = [Err(HostError::Unsupported), Err(HostError::Absent), Err(HostError::Absent)];
        (answers != expected) as i32
    });
    let status = check();
    std::fs::remove_dir(folder.to_str().unwrap()).unwrap();
    if status == 77 {
        return println!("SKIP a_system_without_shared_memory_says_so: this user may not call chroot");
    }
    assert_eq!(status, 0);
}

#[test]
fn links_are_not_followed_and_directories_are_not_memory() {
    let (name, link) = (Name::new("/tmp/"), Name::new("/tmp/"));
    let made = Memory::create(&name, 4096, 0o600).unwrap();
    std::os::unix::fs::symlink(name.to_str().unwrap(), link.to_str().unwrap()).unwrap();
    assert_eq!(Memory::attach(&link, 0).unwrap_err(), HostError::System(libc::ELOOP));
    assert_eq!(Memory::create(&link, 4096, 0o600).unwrap_err(), HostError::Exists);
    let directory = Name::new("/tmp/");
    std::fs::create_dir(directory.to_str().unwrap()).unwrap();
    assert_eq!(Memory::attach(&directory, 0).unwrap_err(), HostError::System(libc::EISDIR));
    assert!(matches!(unlink(&directory), Err(HostError::System(_))));
    std::fs::remove_dir(directory.to_str().unwrap()).unwrap();
    drop(made);
}

#[cfg(target_os = "linux")]
#[test]
fn memory_that_does_not_fit_is_an_error_now_and_leaves_nothing() {
    // SAFETY: a string that ends, and room for the answer.
    let free = unsafe {
        let mut shm = std::mem::zeroed::<libc::statvfs>();
        assert_eq!(libc::statvfs(c"/dev/shm".as_ptr(), &mut shm), 0);
        if shm.f_blocks == 0 {
            return println!(
                "SKIP memory_that_does_not_fit_is_an_error_now_and_leaves_nothing: /dev/shm has no limit here"
            );
        }
        shm.f_blocks as usize * shm.f_frsize as usize
    };
    let name = Name::new("/");
    assert_eq!(Memory::create(&name, free + (1 << 30), 0o600).unwrap_err(), HostError::System(libc::ENOSPC));
    assert_eq!(Memory::attach(&name, 0).unwrap_err(), HostError::Absent);
}

#[test]
fn permissions_are_those_asked_for() {
    use std::os::unix::fs::MetadataExt;
    let name = Name::new("/tmp/");
    let _made = Memory::create(&name, 4096, 0o400).unwrap();
    assert_eq!(std::fs::metadata(name.to_str().unwrap()).unwrap().mode() & 0o777, 0o400);
}

#[test]
fn errors_say_what_is_wrong() {
    assert_eq!(HostError::System(13).to_string(), "a system call failed with errno 13");
    assert_eq!(HostError::WrongSize.to_string(), "the memory has another size than expected");
}

/// CPUID traps to the host of a virtual machine, some microseconds each time.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn only_the_first_table_asks_the_processor() {
    const ARCH_SET_CPUID: libc::c_int = 0x1012;
    let memory = Memory::new(1 << 16, false, true).unwrap();
    for hash in [HashKind::SipHash13, HashKind::Aes, HashKind::Caller] {
        if !hash.is_available() {
            continue;
        }
        Table::init(memory.lines(), &options().hash(hash)).unwrap();
        let check = child(|| {
            // SAFETY: CPUID is a fault from now on, in this child alone.
            if unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_SET_CPUID, 0) } != 0 {
                return 77;
            }
            let made = Table::init(memory.lines(), &options().hash(hash)).is_ok();
            (!made || Table::attach(memory.lines(), &AttachOptions::new().seed(SEED)).is_err()) as i32
        });
        let status = check();
        if status == 77 {
            return println!("SKIP only_the_first_table_asks_the_processor: CPUID faults cannot be had here");
        }
        assert_eq!(status, 0, "{hash:?}");
    }
}

#[test]
fn seeds_are_of_16_bytes_that_no_two_calls_share() {
    let seeds: Vec<[u8; 16]> = (0..64).map(|_| random_seed().unwrap()).collect();
    for (i, seed) in seeds.iter().enumerate() {
        assert!(!seeds[..i].contains(seed));
    }
    // A byte that is the same 64 times was not filled in: the odds are 2^-500.
    for place in 0..16 {
        assert!(seeds.iter().any(|seed| seed[place] != seeds[0][place]), "byte {place}");
    }
    let memory = Memory::anonymous(1 << 16).unwrap();
    Table::init(memory.lines(), &options().seed(seeds[0])).unwrap();
    assert!(Table::attach(memory.lines(), &AttachOptions::new().seed(seeds[0])).is_ok());
    assert_eq!(
        Table::attach(memory.lines(), &AttachOptions::new().seed(seeds[1])).unwrap_err(),
        TableError::WrongSeed
    );
}

/// How C libraries open files.
#[cfg(target_os = "linux")]
const OPEN: &[libc::c_long] = &[
    libc::SYS_openat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_open,
];

/// Lets these system calls of this process, for the rest of its life, fail with an errno. False where that cannot be.
#[cfg(target_os = "linux")]
fn forbid(calls: &[(&[libc::c_long], i32)]) -> bool {
    let statement = |code: u32, k: u32, jt: u8, jf: u8| libc::sock_filter { code: code as u16, jt, jf, k };
    let mut program = [statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0, 0); 16];
    // The number of the call is the first word of what the filter sees.
    program[0] = statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0);
    let all = calls.iter().flat_map(|&(numbers, errno)| numbers.iter().map(move |&number| (number, errno)));
    for (i, (number, errno)) in all.enumerate() {
        let refuse = libc::SECCOMP_RET_ERRNO | errno as u32;
        program[1 + 2 * i] = statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, number as u32, 0, 1);
        program[2 + 2 * i] = statement(libc::BPF_RET | libc::BPF_K, refuse, 0, 0);
    }
    let filter = libc::sock_fprog { len: 16, filter: program.as_mut_ptr() };
    // SAFETY: the filter and its program are read by the call and not kept.
    unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &filter) == 0
    }
}

#[cfg(target_os = "linux")]
#[test]
fn without_the_call_seeds_come_from_the_device_or_not_at_all() {
    for errno in [libc::ENOSYS, libc::EPERM] {
        let check = child(|| {
            if !forbid(&[(&[libc::SYS_getrandom], errno)]) {
                return 77;
            }
            match (random_seed(), random_seed()) {
                (Ok(one), Ok(other)) => (one == other || one == [0; 16]) as i32,
                _ => 2,
            }
        });
        let alone = child(|| {
            if !forbid(&[(&[libc::SYS_getrandom], errno), (OPEN, libc::EACCES)]) {
                return 77;
            }
            (random_seed() != Err(HostError::System(libc::EACCES))) as i32
        });
        let (check, alone) = (check(), alone());
        if (check, alone) == (77, 77) {
            return println!("SKIP without_the_call_seeds_come_from_the_device_or_not_at_all: no seccomp");
        }
        assert_eq!((check, alone), (0, 0), "errno {errno}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn seeds_need_no_file_of_the_system() {
    let check = child(|| {
        if !forbid(&[(OPEN, libc::EACCES)]) {
            return 77;
        }
        random_seed().is_err() as i32
    });
    match check() {
        77 => println!("SKIP seeds_need_no_file_of_the_system: no seccomp"),
        status => assert_eq!(status, 0),
    }
}

/// Small pages of this memory that are there, as the kernel tells.
#[cfg(target_os = "linux")]
fn resident(memory: &Memory) -> usize {
    let bytes = memory.lines().len() * 64;
    let mut pages = vec![0u8; bytes.div_ceil(4096)];
    // SAFETY: whole pages of a mapping that lives, and a byte for each of them.
    let rc = unsafe { libc::mincore(memory.as_ptr().cast(), bytes, pages.as_mut_ptr()) };
    assert_eq!(rc, 0, "{}", std::io::Error::last_os_error());
    pages.iter().filter(|page| **page & 1 == 1).count()
}

#[cfg(target_os = "linux")]
#[test]
fn a_table_in_zeroed_memory_touches_what_its_keys_need() {
    let spec = LimitSpec::new(1, 1_000_000, 2);
    let options = TableOptions::new(spec).seed([7; 16]);
    let bytes = lines_for(1 << 20) * 64;
    for shared in [false, true] {
        let memory = Memory::new(bytes, false, shared).unwrap();
        assert_eq!(resident(&memory), 0);
        let table = Table::init(memory.lines(), &options.zeroed()).unwrap();
        assert_eq!(resident(&memory), 1, "the header lies on one page");
        let limit = table.limit(&spec).unwrap();
        for key in 0u32..100 {
            let check = |_| table.check(&limit, 1_000, &key.to_le_bytes(), 1).unwrap().passes();
            let verdicts: Vec<_> = (0..3).map(check).collect();
            assert_eq!(verdicts, [true, true, false]);
        }
        assert!((2..=101).contains(&resident(&memory)), "{}", resident(&memory));
        // Others attach to it as to any; a second init takes it for no fresh memory, but without the promise.
        assert!(Table::attach(memory.lines(), &AttachOptions::new().seed([7; 16])).is_ok());
        assert_eq!(Table::init(memory.lines(), &options.zeroed()).unwrap_err(), TableError::BadMode);
        assert!(
            !table.check(&limit, 1_000, &7u32.to_le_bytes(), 1).unwrap().passes(),
            "refused, not cleared"
        );
        let again = Table::init(memory.lines(), &options).unwrap();
        assert!(again.check(&limit, 1_000, &7u32.to_le_bytes(), 1).unwrap().passes());
        assert_eq!(resident(&memory), bytes.div_ceil(4096), "a plain init writes all of it");
    }
}

/// The promise is the caller's: what it breaks are verdicts.
#[test]
fn slots_that_are_not_zero_are_words_like_any_other() {
    let spec = LimitSpec::new(1, 1_000_000, 2);
    let options = TableOptions::new(spec).seed([7; 16]);
    let memory = Memory::new(lines_for(64) * 64, false, false).unwrap();
    let bytes = memory.lines().len() * 64;
    // SAFETY: all bytes behind the header, of memory that nobody else uses yet.
    unsafe { std::ptr::write_bytes(memory.as_ptr().add(128), 0x5a, bytes - 128) };
    let table = Table::init(memory.lines(), &options.zeroed()).unwrap();
    let limit = table.limit(&spec).unwrap();
    for now in [0, 1, 1 << 40, u64::MAX] {
        for key in 0u32..200 {
            let _ = table.check(&limit, now, &key.to_le_bytes(), 1).unwrap();
        }
    }
}

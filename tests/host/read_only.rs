//! Looking at a table through memory that cannot be written, without its seed.

use tatcell::host::{HostError, Memory, ReadOnlyMemory};
use tatcell::{
    AttachOptions, LimitSpec, Line, ReadOnlyTable, Slot, SlotWord, Table, TableClock, TableError,
    TableOptions, WordKind,
};

use super::system::{child, Name};

const SEED: [u8; 16] = [7; 16];
const NOW: u64 = 1 << 40;

fn fresh(count: usize) -> Vec<Line> {
    (0..count).map(|_| Line::new()).collect()
}

fn spec() -> LimitSpec {
    LimitSpec::new(1, 1_000_000_000, 5)
}

/// Makes a table with 40 keys, the first of which owes most; one key was reset.
fn fill(memory: &Memory, options: &TableOptions) -> Vec<u64> {
    let table = Table::init(memory.lines(), options).unwrap();
    let limit = table.limit(&spec()).unwrap();
    for key in 0..40u32 {
        assert!(table
            .check(&limit, NOW, &key.to_le_bytes(), 5 - u64::from(key > 0) * (1 + u64::from(key % 3)))
            .unwrap()
            .passes());
    }
    assert!(table.reset_key(NOW, table.hash(&39u32.to_le_bytes()).unwrap()));
    let mut image = vec![0; table.image_words()];
    table.save(NOW, &mut image).unwrap();
    image
}

/// Threads share and copy a reader, as they do a shared table.
const _: () = {
    const fn goes_anywhere<T: Send + Sync + Copy>() {}
    goes_anywhere::<ReadOnlyTable<'static>>()
};

/// Everything that a reader can ask.
#[derive(Debug, PartialEq)]
struct Seen {
    info: tatcell::TableInfo,
    stats: tatcell::Stats,
    live: Vec<Slot>,
    top: Vec<Slot>,
    words: Vec<SlotWord>,
    image: Vec<u64>,
    others: (usize, tatcell::FullPolicy, i32, u64, Result<tatcell::TableNumbers, TableError>),
}

macro_rules! seen {
    ($table:expr) => {{
        let table = $table;
        let mut live = Vec::new();
        while let Some(slot) = table.next_live(NOW, live.last().map_or(0, |s: &Slot| s.number as usize + 1)) {
            live.push(slot);
        }
        let mut top = vec![Slot::default(); 8];
        let found = table.top(NOW, &mut top);
        top.truncate(found);
        let mut image = vec![0; table.image_words()];
        table.save(NOW, &mut image).unwrap();
        Seen {
            info: table.info(),
            stats: table.stats(NOW),
            live,
            top,
            words: (0..).map_while(|number| table.slot_word(NOW, number)).collect(),
            image,
            others: (
                table.slots(),
                table.policy(),
                table.resolution(),
                table.sweep_interval(),
                table.numbers(),
            ),
        }
    }};
}

#[test]
fn every_call_of_a_reader_works_on_memory_that_cannot_be_written() {
    let name = Name::new("/");
    let memory = Memory::create(&name, 64 * 66, 0o600).unwrap();
    fill(&memory, &TableOptions::new(spec()).seed(SEED).clock(TableClock::Boottime).tick_hz(1_000_000_000));

    let mapped = ReadOnlyMemory::attach(&name, 64 * 66).unwrap();
    let options = AttachOptions::new().seed(SEED);
    let table = Table::attach(memory.lines(), &options).unwrap();
    let (bare, keyed) = (mapped.table(&AttachOptions::new()).unwrap(), mapped.table(&options).unwrap());
    let wanted = seen!(&table);
    assert_eq!(seen!(&bare), wanted);
    assert_eq!(seen!(&keyed), wanted);
    assert_eq!((wanted.stats.live, wanted.live.len(), wanted.info.clock), (39, 39, TableClock::Boottime));
    assert_eq!((wanted.stats.longest, wanted.top[0].reset_after), (5_000_000_000, 5_000_000_000));
    assert_eq!(wanted.words.iter().filter(|word| word.kind == WordKind::Tombstone).count(), 1);

    // What asks for a key needs the seed; it is checked, and it finds whose the longest debt is.
    assert_eq!(bare.hash(b"key"), Err(TableError::MissingSeed));
    let hash = keyed.hash(&0u32.to_le_bytes()).unwrap();
    assert_eq!(Ok(hash), table.hash(&0u32.to_le_bytes()));
    assert!(bare.may_be(&wanted.top[0], hash) && !bare.may_be(&wanted.top[7], hash));
    let wrong = mapped.table(&AttachOptions::new().seed([8; 16])).map(|_| ());
    assert_eq!(wrong, Err(TableError::WrongSeed));
    let other = mapped.table(&AttachOptions::new().tick_hz(5)).map(|_| ());
    assert_eq!(other, Err(TableError::BadMode));
}

#[test]
fn a_store_to_such_memory_ends_the_process() {
    let name = Name::new("/");
    let memory = Memory::create(&name, 64 * 66, 0o600).unwrap();
    fill(&memory, &TableOptions::new(spec()).seed(SEED));
    let mapped = ReadOnlyMemory::attach(&name, 0).unwrap();
    // The control of the test above: the mapping does refuse stores.
    // SAFETY: the child only stores through a pointer into its own mapping, and ends.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let place = std::ptr::from_ref(&mapped).cast::<*mut u64>();
        // SAFETY: the first field is the start of the mapping; the store is to fault.
        unsafe {
            libc::signal(libc::SIGSEGV, libc::SIG_DFL);
            libc::signal(libc::SIGBUS, libc::SIG_DFL);
            (*place).add(100).write_volatile(1);
            libc::_exit(0)
        }
    }
    let mut status = 0;
    // SAFETY: our own child, and room for a status.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    assert!(libc::WIFSIGNALED(status), "a store passed: {status}");
}

#[test]
fn looking_needs_no_permission_to_write() {
    let name = Name::new("/");
    let memory = Memory::create(&name, 64 * 66, 0o444).unwrap();
    fill(&memory, &TableOptions::new(spec()).seed(SEED));
    let stranger = child(|| {
        // SAFETY: gives up the rights of root, if this process has them.
        if unsafe { libc::geteuid() == 0 && libc::setuid(65534) != 0 } {
            return 9;
        }
        let write = matches!(Memory::attach(&name, 0), Err(HostError::System(libc::EACCES)));
        let live = ReadOnlyMemory::attach(&name, 0)
            .map(|memory| memory.table(&AttachOptions::new()).map(|table| table.stats(NOW).live));
        match live {
            Ok(Ok(39)) if write => 0,
            _ => 1 + i32::from(write),
        }
    });
    assert_eq!(stranger(), 0);
}

#[test]
fn a_reader_takes_exclusive_images_saved_images_and_other_algorithms() {
    let mut lines = fresh(34);
    let window = LimitSpec::fixed_window(100, 60_000_000_000);
    let options = TableOptions::new(window).policy(tatcell::FullPolicy::Deny).seed(SEED);
    {
        let table = Table::init_exclusive(&mut lines, &options).unwrap();
        let limit = table.limit(&window).unwrap();
        assert!(table.check(&limit, NOW, b"key", 7).unwrap().passes());
    }
    let seen = ReadOnlyTable::attach_read_only(&lines, &AttachOptions::new()).unwrap();
    assert!(seen.info().exclusive && seen.stats(NOW).live == 1 && seen.info().clock == TableClock::Unknown);

    // A saved image is the same bytes, in a file.
    let path = std::env::temp_dir().join(format!("tatcell-saved-{}", std::process::id()));
    let mut image = vec![0; seen.image_words()];
    seen.save(NOW, &mut image).unwrap();
    std::fs::write(&path, image.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<_>>()).unwrap();
    let text = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
    let file = ReadOnlyMemory::attach(&text, 0).unwrap();
    std::fs::remove_file(&path).unwrap();
    let saved = file.table(&AttachOptions::new()).unwrap();
    assert_eq!((saved.stats(NOW).live, saved.info()), (1, seen.info()));
}

#[test]
fn a_full_set_is_one_that_no_new_key_can_enter() {
    let lines = fresh(6);
    let table = Table::init(&lines, &TableOptions::new(spec()).seed(SEED)).unwrap();
    let limit = table.limit(&spec()).unwrap();
    assert_eq!((table.stats(NOW).full_sets, table.stats(NOW).longest), (0, 0));
    for key in 0..400u32 {
        let _ = table.check(&limit, NOW, &key.to_le_bytes(), 1).unwrap();
    }
    let stats = table.stats(NOW);
    assert_eq!((stats.slots, stats.live, stats.full_sets, stats.longest), (32, 32, 2, 1_000_000_000));
    // They drain.
    assert_eq!(table.stats(NOW + 1_000_000_001).full_sets, 0);
}

#[test]
fn the_clock_of_an_image_survives_a_restore_and_a_migration() {
    let options = TableOptions::new(spec()).seed(SEED).clock(TableClock::Realtime);
    let lines = fresh(34);
    let table = Table::init(&lines, &options).unwrap();
    let mut image = vec![0; table.image_words()];
    table.save(NOW, &mut image).unwrap();
    let own = AttachOptions::new().seed(SEED);
    let again = fresh(34);
    assert_eq!(Table::restore(&again, &image, &own, 0).unwrap().info().clock, TableClock::Realtime);
    let bigger = fresh(66);
    let other = table.migrate(&bigger, &options.clock(TableClock::Raw), NOW).map(|_| ());
    assert_eq!(other, Err(TableError::BadMode));
    let (moved, _) = table.migrate(&bigger, &options, NOW).unwrap();
    assert_eq!(moved.info().clock, TableClock::Realtime);
}

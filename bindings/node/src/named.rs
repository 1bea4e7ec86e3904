//! Tables in memory with a name, which other threads and processes open by it.
//!
//! All memory holds the image of the table and then a trailer of one line. Table sizes are whole sets of two lines, so
//! programs that look at an image by its name (`tatcell show`) ignore the trailer. Memory with a name is for its user
//! alone (0600), and so is the seed in it; without a name the trailer has only `swept`.
//!
//! ```text
//!     0              bytes          bytes + 64
//!     | image of the table | seed (2), units, period, burst, algorithm, swept, 0 |      8 words of 8 bytes
//! ```

use std::ffi::CString;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tatcell::host::{self, random_seed, HostError, Memory};
use tatcell::{AttachOptions, Line, Table, TableError};

use crate::errors::{about, wrong, Failed};
use crate::limiter::{Making, Open};
use crate::TICKS_PER_SECOND;

/// How long to wait for another process that is making the table.
const PATIENCE: Duration = Duration::from_secs(5);

/// The word of the trailer that is a `Sweeper`.
pub(crate) const SWEPT: usize = 6;

/// Why it is not open yet, or will not be.
enum Hitch {
    /// Somebody is making it at this moment, or has just removed it.
    Wait,
    Failed(Failed),
}

fn to_c(name: &str) -> Result<CString, Failed> {
    CString::new(name).map_err(|_| wrong("name has a NUL character: leave it out"))
}

/// Removes a name.
pub(crate) fn unlink(name: &str) -> Result<(), Failed> {
    host::unlink(&to_c(name)?).map_err(|error| match error {
        HostError::Absent => Failed::new("ENOENT".to_owned(), format!("no memory has the name \"{name}\"")),
        _ => about(name, error),
    })
}

/// Opens the table of a name; the first one to come makes it.
pub(crate) fn open(name: &str, making: &Making) -> Result<Open, Failed> {
    let path = to_c(name)?;
    let bytes = making.bytes();
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        let hitch = match Memory::create(&path, bytes, 0o600) {
            Ok(memory) => {
                return make(memory, making).inspect_err(|_| {
                    let _ = host::unlink(&path);
                })
            }
            Err(HostError::Exists) => match Memory::attach(&path, 0) {
                Ok(memory) => match join(memory, name, making) {
                    Ok(open) => return Ok(open),
                    Err(hitch) => hitch,
                },
                Err(HostError::NotReady | HostError::Absent) => Hitch::Wait,
                Err(error) => Hitch::Failed(about(name, error)),
            },
            Err(error) => Hitch::Failed(about(name, error)),
        };
        match hitch {
            Hitch::Failed(error) => return Err(error),
            Hitch::Wait => std::thread::sleep(Duration::from_millis(1)),
        }
    }
    Err(wrong(format!(
        "\"{name}\" exists, but it was made by another program, or its process did not finish: remove it with \
         Limiter.unlink(\"{name}\")"
    )))
}

/// Returns the words of the trailer.
pub(crate) fn trailer<'m>(memory: &'m Memory, making: &Making) -> &'m [AtomicU64; 8] {
    assert!(memory.bytes() >= making.bytes());
    // SAFETY: the last line of the mapping, which lives as long as the borrow; any bytes are valid atomics.
    unsafe { &*memory.as_ptr().add(making.lines * size_of::<Line>()).cast() }
}

/// The words of the trailer that describe the limit.
fn numbers(making: &Making) -> [u64; 4] {
    let (units, period, burst) = making.spec.numbers();
    [units, period, burst, making.algorithm.into()]
}

/// Makes the table in fresh memory.
fn make(memory: Memory, making: &Making) -> Result<Open, Failed> {
    let seed = random_seed().map_err(crate::errors::host)?;
    let halves = seed.as_chunks::<8>().0.iter().map(|half| u64::from_ne_bytes(*half));
    for (word, value) in trailer(&memory, making).iter().zip(halves.chain(numbers(making))) {
        // ORDERING: Relaxed; the header of the image is stored last, with Release: who finds it finds these, too.
        word.store(value, Ordering::Relaxed);
    }
    Open::new(memory, making, |lines, _| Table::init(lines, &making.options.seed(seed)))
        .map_err(|error| making.refused(error))
}

/// Joins the table that somebody else has made.
fn join(memory: Memory, name: &str, making: &Making) -> Result<Open, Hitch> {
    let another = |what: &str, cure: &str| {
        let text =
            format!("\"{name}\" was made {what}: pass {cure}, or remove it with Limiter.unlink(\"{name}\")");
        Hitch::Failed(wrong(text))
    };
    if memory.bytes() != making.bytes() {
        return Err(another("for another number of keys or by another program", "the same number"));
    }
    // ORDERING: Relaxed; the seed may come from before the header, and then it is wrong. The limit is read again later.
    let read = |memory: &Memory| trailer(memory, making).each_ref().map(|word| word.load(Ordering::Relaxed));
    let [low, high, ..] = read(&memory);
    let mut seed = [0; 16];
    seed[..8].copy_from_slice(&low.to_ne_bytes());
    seed[8..].copy_from_slice(&high.to_ne_bytes());
    let options = AttachOptions::new().seed(seed).policy(making.policy).tick_hz(TICKS_PER_SECOND);
    let open = Open::new(memory, making, |lines, memory| {
        let table = Table::attach(lines, &options)?;
        let is_same = read(memory)[2..6] == numbers(making);
        is_same.then_some(table).ok_or(TableError::BadMode)
    });
    open.map_err(|error| match error {
        TableError::NotReady | TableError::WrongSeed => Hitch::Wait,
        TableError::BadMode => another("with another limit or another `full`", "the same"),
        error => Hitch::Failed(wrong(format!("\"{name}\": {error}"))),
    })
}

//! Rate limiting without heap, lock or clock.
//!
//! tatcell decides, for (key, cost, now), whether a request conforms to a rate limit. It decides in bounded time, in
//! memory that the caller owns, with one atomic word per key and the exact token-bucket answer on every interleaving.
//!
//! ```
//! use tatcell::{limit, Cell, Limit, LimitSpec, Line, Outcome, Table, TableOptions};
//!
//! // One key: 10 a second, 20 at once. Ticks are nanoseconds here; any monotonic u64 will do.
//! static LIMIT: Limit = limit!(10 per 1_000_000_000, burst 20);
//! static CELL: Cell = Cell::new();
//! assert_eq!(CELL.check(&LIMIT, 0, 20), Outcome::Conforming);
//! assert_eq!(CELL.check(&LIMIT, 0, 1), Outcome::NonConforming { retry_after: 100_000_000 });
//!
//! // Many keys: 8 bytes a slot, in your memory, shared by threads and processes.
//! static MEMORY: [Line; 1026] = [Line::EMPTY; 1026]; // a header of two lines, 8192 slots
//! let spec = LimitSpec::new(10, 1_000_000_000, 20);
//! let options = TableOptions::new(spec).seed(*b"16 random bytes!"); // from the system's random source
//! let table = Table::init(&MEMORY, &options)?;
//! let per_client = table.limit(&spec)?;
//! assert!(table.check(&per_client, 0, b"192.0.2.1", 1)?.passes());
//! # Ok::<(), tatcell::TableError>(())
//! ```
//!
//! # What there is
//!
//! - [`Limit`], [`LimitSpec`], [`limit!`]: units per period of ticks, and a burst. Validated once; `const`.
//! - [`Cell`], [`Cell32`], [`ExclusiveCell`]: one word, one key.
//! - [`Lease`]: units of a shared cell that one core takes in advance, so that one limit scales with cores.
//! - [`Meter`], [`MeterSpec`], [`Colour`]: three-colour meters, RFC 2697, 2698 and 4115, in one word.
//! - [`Table`]: many keys in fixed memory; several processes may share it. [`Burst`]: many requests in one call, while
//!   the [`NextBurst`] is prefetched; [`PairBurst`]: each under two limits.
//! - [`Mark`], [`MarkBurst`]: three-colour marking of the keys of a table, by two limits each.
//! - [`Chain`]: several limits for one request, all or none. [`LadderLimits`]: limits for the prefixes of an address.
//! - [`Override`]: bans and exemptions of keys until a time, in tables of their own.
//! - [`Shaper`]: requests that wait for their departure instead of being refused; [`Wheel`], [`Group`], [`LeakyQueue`].
//! - [`Outcome`], [`Decision`], [`Permit`]: the short answer, the full one, and what a refund needs.
//! - [`SmallLimit`], [`SmallTable`], [`SmallLog`]: the same decisions in the fewest bytes, for firmware.
//! - [`LogGate`], [`Slip`], [`http`]: how to answer a refusal: one log line a second, a cheap answer, header fields.
//! - [`metrics`]: counters and statistics of tables for Prometheus.
//! - Module `host` (feature `host`): clocks, huge-page and shared memory, secret bytes.
//!
//! # Words
//!
//! | word | meaning |
//! |---|---|
//! | tick, q-unit | the unit of the caller's clock; the unit of state words, 2^-s ticks, where s is the *resolution* |
//! | T | emission interval: time one unit costs at the sustained rate, `period / units` |
//! | TAT | theoretical arrival time (ITU-T I.371): when the debt of a key has drained; all of its state |
//! | lead, debt | how far a TAT lies ahead of now; the same, seen as what the key owes |
//! | burst, D | the most units that conform at one instant after idle; D = burst * T, the debt of all of them |
//! | room | units above the burst that one call may use |
//! | horizon H | the longest debt that a store can make: burst plus room, delay, debt cap or penalty |
//! | skew S | how far one clock reading may be behind others; an older one finds no debt |
//! | window, span | H + S: a lead up to this counts as live; the ticks after which a word that nobody touched wraps |
//! | line, set, slot | 64 bytes of a table; the two lines of a key; the 8-byte word of one key |
//! | claim | what an insert puts into a slot before it commits; charges nothing |
//! | conforming | within the limit; a request that does not conform changes nothing |
//!
//! # Features
//!
//! No feature is on by default; all are additive.
//!
//! | feature | what it adds |
//! |---|---|
//! | `std` | links std; the library does not use it. For programs and tests with a panic handler of their own |
//! | `host` | the module `host`: clocks, memory, secret bytes from a Unix system |
//! | `heapless` | payloads of any type in a [`LeakyQueue`], by a `heapless::Deque` |
//! | `defmt` | outcomes and errors as arguments of defmt's macros |
//! | `capi` | exports the C ABI of `tatcell.h` |
//! | `small-capi` | exports the C ABI of `tatcell_small.h`, for firmware |
//! | `single-core` | cores without 64-bit atomics: masks interrupts; in unit tests on a host a lock replaces that |
//! | `critical-section` | the same, through the `critical-section` crate |
//! | `critical-section-c` | the same, through two C functions of the firmware |
//! | `exclusive` | the same, for programs that share nothing |
//! | `fallback` | hosted systems without 64-bit atomics: portable-atomic's lock |
//!
//! Time is always the caller's tick count (`u64`): nanoseconds, cycles, milliseconds. The library never reads a
//! clock, never allocates, never locks, never panics.
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(any(feature = "std", test))]
extern crate std;

#[macro_use]
mod impossible;

mod algorithms;
mod answer;
#[cfg(feature = "capi")]
mod capi;
mod cell;
mod combine;
mod cpu;
#[cfg(all(feature = "host", not(tatcell_loom)))]
pub mod host;
pub mod http;
mod keys;
mod limit;
pub mod metrics;
mod small;
mod sync;
mod table;
mod text;
mod time;

pub use algorithms::Change;
pub use answer::{Colour, Decision, Marking, Outcome, Permit, Tracking, Verdict};
pub use cell::{
    Cell, Cell32, CellImage, ExclusiveCell, ExclusiveMeter, ExclusiveSlidingLog, ImageError, KeyLogGate,
    Lease, LeftOut, LogGate, LogLine, Meter, SlidingLog, Slip, CELL_IMAGE_WORDS,
};
pub use combine::{
    ring_words, wheel_words, Fifo, Group, LeakyQueue, NotQueued, Ring, Shaper, ShaperError, Waiting, Wheel,
};
pub use combine::{
    Chain, ChainBurst, ChainCounters, ChainError, LadderBurst, LadderLimits, LadderOverrides, Link, Mark,
    MarkBurst, Marked, PairBurst, PreparedChain, TableRef, MAX_LINKS,
};
pub use keys::{second_hash, Address, HashKind, Ladder, LadderError, PrefixKey, Rung};
pub use limit::{
    Algorithm, Limit, Limit32, LimitError, LimitInfo, LimitNumbers, LimitSpec, ParseError, ParseErrorKind,
    TableLimit,
};
pub use limit::{MeterError, MeterInfo, MeterKind, MeterLimit, MeterSpec};
pub use small::{section_works, SmallLimit, SmallLimit32, SmallLog, SmallSlot, SmallTable};
pub use sync::MAX_LOST;
pub use table::{
    full_set_ppb, lines_for, lines_for_load, Access, AttachOptions, Burst, Counters, Exclusive,
    ExclusiveTable, FitPart, FullPolicy, Line, Migrated, Mode, NextBurst, Override, PrefixLengths, ReadOnly,
    ReadOnlyTable, Request, Shared, Slot, SlotWord, Stats, Sweeper, Table, TableClock, TableError, TableFit,
    TableInfo, TableNumbers, TableOptions, WordKind, LAYOUT_VERSION, MAX_BURST, MIN_SLOTS, SLOTS_PER_LINE,
};

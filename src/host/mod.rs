//! What an operating system adds: clocks, memory for tables, memory that processes share, secret bytes. Feature `host`.
//!
//! The core does not need or use any of this: time and memory always come from the caller, and a caller can get them
//! here. Nothing here allocates from a heap, keeps state between calls, or starts anything.
//!
//! - [`now_ns`], [`resolution_ns`]: the system's monotonic clocks in nanoseconds.
//! - [`ClockGuard`]: a wall clock that nobody can set while the program runs.
//! - [`TickClock`]: the processor's own counter (TSC, CNTVCT) with its frequency, at a tenth of the cost of a system
//!   call.
//! - [`Memory`]: anonymous memory, on huge pages if the system gives them, and named memory that several processes map.
//! - [`ReadOnlyMemory`]: named memory or a map of BPF, mapped for reading alone, to look at the table in it.
//! - [`SharedCounters`], [`ReadOnlyCounters`]: counters in named memory, which other processes read.
//! - [`OwnedTable`]: a table with its memory and seed, in one call.
//! - [`random_seed`]: secret bytes for the seed of a table.
//!
//! Unix only. It depends on the C library of the program (`clock_gettime`, `mmap` and so on, never `malloc`).

#[cfg(tatcell_linux)]
mod bpf;
mod clock;
mod counters;
mod guard;
mod memory;
mod names;
mod random;
mod smaps;
mod table;
mod ticks;

#[cfg(feature = "capi")]
pub(crate) use libc::EBUSY;
#[cfg(feature = "capi")]
pub(crate) use memory::unmap;
#[cfg(feature = "capi")]
pub(crate) use random::fill;
#[cfg(feature = "capi")]
pub(crate) use smaps::huge_bytes;
#[cfg(feature = "capi")]
pub(crate) use ticks::scale;

#[cfg(feature = "capi")]
pub(crate) use counters::{check as check_counters, look as look_at_counters, open as open_counters};

pub use clock::{now_ns, resolution_ns, Clock};
pub use counters::{ReadOnlyCounters, SharedCounters};
pub use guard::ClockGuard;
pub use memory::{Memory, Pages, ReadOnlyMemory};
pub use names::unlink;
pub use random::random_seed;
#[cfg(feature = "capi")]
pub(crate) use table::memory_for;
pub use table::{OpenError, OwnedTable};
pub use ticks::{counter, TickClock};

#[cfg(not(unix))]
compile_error!("feature `host` needs a Unix system");

/// Says why the system did not give what was asked for.
///
/// ```
/// use tatcell::host::{HostError, Memory};
/// let error = Memory::anonymous(0).unwrap_err();
/// assert_eq!(error, HostError::BadSize);
/// assert_eq!(error.to_string(), "the size is 0, or above half of the address space");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HostError {
    /// A system call failed with this `errno`.
    System(i32),
    /// This system or processor does not support it.
    Unsupported,
    /// The name is neither "/name" nor an absolute path to a file, or it is too long; see [`Memory::create`].
    BadName,
    /// The size is 0 or more than half of the address space.
    BadSize,
    /// The calibration interval is outside 1 ms to 1 s.
    BadInterval,
    /// The name exists already.
    Exists,
    /// The name does not exist.
    Absent,
    /// The folder of a file that is to be created does not exist, or is not a folder.
    NoFolder,
    /// The creator has not given the memory its size yet: ask again.
    NotReady,
    /// The memory has another size than the caller expects.
    WrongSize,
    /// The memory holds no counters, or counters of another layout.
    NotCounters,
    /// Another process has these counters, or this one has opened them before.
    Taken,
}

impl core::fmt::Display for HostError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            HostError::System(errno) => write!(f, "a system call failed with errno {errno}"),
            HostError::Unsupported => f.write_str("this system or processor does not support it"),
            HostError::BadName => {
                f.write_str("the name is neither \"/name\" nor an absolute path to a file, or too long")
            }
            HostError::BadSize => f.write_str("the size is 0, or above half of the address space"),
            HostError::BadInterval => f.write_str("the interval must be 1 ms to 1 s"),
            HostError::Exists => f.write_str("the name exists already: attach to it, or unlink it"),
            HostError::Absent => f.write_str("the name does not exist: create it"),
            HostError::NoFolder => f.write_str("the folder of the path does not exist: make it first"),
            HostError::NotReady => f.write_str("the creator has not sized the memory yet: ask again"),
            HostError::WrongSize => f.write_str("the memory has another size than expected"),
            HostError::NotCounters => f.write_str("the memory holds no counters, or another layout of them"),
            HostError::Taken => f.write_str(
                "another process, or this one, has these counters open: close them there, or give another name",
            ),
        }
    }
}

impl core::error::Error for HostError {}

/// Returns the error of the system call that has just failed.
fn last_error() -> HostError {
    #[cfg(any(target_os = "android", target_os = "netbsd", target_os = "openbsd"))]
    use libc::__errno as location;
    #[cfg(any(target_os = "linux", target_os = "emscripten", target_os = "hurd", target_os = "redox"))]
    use libc::__errno_location as location;
    #[cfg(any(target_vendor = "apple", target_os = "freebsd", target_os = "dragonfly"))]
    use libc::__error as location;
    // SAFETY: always valid, one per thread.
    HostError::System(unsafe { *location() })
}

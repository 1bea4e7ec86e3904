//! Which clock the callers of a table read.

/// Names the clock from which the callers of a table take `now`. The image stores the number, for programs that only
/// look at the table. The library never reads a clock, and this decides nothing.
///
/// ```
/// use tatcell::{LimitSpec, Line, Table, TableClock, TableOptions};
/// let (spec, lines) = (LimitSpec::per_second(10), [const { Line::EMPTY }; 66]);
/// let options = TableOptions::new(spec).seed(*b"16 random bytes!").clock(TableClock::Monotonic);
/// assert_eq!(Table::init(&lines, &options)?.info().clock, TableClock::Monotonic);
/// # Ok::<(), tatcell::TableError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[repr(u8)]
pub enum TableClock {
    /// The maker of the table did not say, or said what this library does not know.
    #[default]
    Unknown = 0,
    /// CLOCK_MONOTONIC, also its coarse form.
    Monotonic = 1,
    /// CLOCK_BOOTTIME, which runs while the system sleeps.
    Boottime = 2,
    /// CLOCK_REALTIME, the wall clock since 1970.
    Realtime = 3,
    /// CLOCK_MONOTONIC_RAW, the oscillator without corrections.
    Raw = 4,
    /// The processor's counter (TSC, CNTVCT); its frequency is the table's `tick_hz`.
    Counter = 5,
}

impl TableClock {
    /// Returns the clock of a number in an image.
    pub(crate) const fn of(number: u8) -> TableClock {
        match number {
            1 => TableClock::Monotonic,
            2 => TableClock::Boottime,
            3 => TableClock::Realtime,
            4 => TableClock::Raw,
            5 => TableClock::Counter,
            _ => TableClock::Unknown,
        }
    }
}

//! The time on a table's clock.

use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use tatcell::host::{counter, now_ns};
use tatcell::{TableClock, TableInfo};

use crate::failure::Failure;
use crate::words::span;

/// A clock that the caller names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// A clock of this machine.
    Clock(TableClock),
    /// A time in ticks: for saved images, and for clocks that only the program has.
    Ticks(u64),
}

/// The names, as arguments and JSON have them.
const NAMES: [(&str, TableClock); 5] = [
    ("monotonic", TableClock::Monotonic),
    ("boottime", TableClock::Boottime),
    ("realtime", TableClock::Realtime),
    ("raw", TableClock::Raw),
    ("tsc", TableClock::Counter),
];

impl FromStr for Named {
    type Err = String;

    fn from_str(text: &str) -> Result<Named, String> {
        if let Some((_, clock)) = NAMES.iter().find(|(name, _)| *name == text) {
            return Ok(Named::Clock(*clock));
        }
        text.parse().map(Named::Ticks).map_err(|_| {
            format!("{text:?} is no clock: use monotonic, boottime, realtime, raw, tsc, or a time in ticks")
        })
    }
}

/// Returns the name of a clock; `None` if it is unknown.
pub fn name(clock: TableClock) -> Option<&'static str> {
    NAMES.iter().find(|(_, known)| *known == clock).map(|(name, _)| *name)
}

/// A time on a table's clock, and what its ticks are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Now {
    /// The reading.
    pub ticks: u64,
    /// Ticks in a second; `None` if nobody knows.
    pub ticks_per_second: Option<u64>,
    /// The name of the clock; `None` for a time that the caller gave.
    pub clock: Option<&'static str>,
}

/// The clock of a table, ready to be read.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    named: Named,
    tick_hz: u64,
}

impl Clock {
    /// Chooses the clock: the one that the caller names, or else that of the image. `hz` are the caller's ticks in a
    /// second, for images that do not say it.
    pub fn choose(named: Option<Named>, hz: Option<u64>, info: &TableInfo) -> Result<Clock, Failure> {
        let named = match named {
            // By another clock all debts would be drained, or endless, and a ban would end at another time.
            Some(Named::Clock(other)) if info.clock != TableClock::Unknown && info.clock != other => {
                let of_image = name(info.clock).unwrap_or("one that this program does not know");
                return Err(Failure::Usage(format!(
                    "--clock {}: the image says that its callers read {of_image}: leave --clock out, or give a time \
                     in ticks",
                    name(other).unwrap_or("unknown")
                )));
            }
            Some(named) => named,
            None if info.clock != TableClock::Unknown => Named::Clock(info.clock),
            None => {
                return Err(Failure::Usage(
                    "the image does not say which clock its callers read: name it with --clock".into(),
                ))
            }
        };
        if let (Some(hz), true) = (hz, info.tick_hz != 0) {
            if hz != info.tick_hz {
                return Err(Failure::Usage(format!(
                    "--tick-hz {hz}: the image says that a second has {} ticks",
                    info.tick_hz
                )));
            }
        }
        let clock = Clock { named, tick_hz: hz.unwrap_or(info.tick_hz) };
        match named {
            Named::Clock(TableClock::Counter) if clock.tick_hz == 0 => Err(Failure::Usage(
                "the image does not say how many ticks a second of tsc has: use --tick-hz".into(),
            )),
            _ => Ok(clock),
        }
    }

    /// Reads it.
    pub fn now(&self) -> Result<Now, Failure> {
        let known = (self.tick_hz != 0).then_some(self.tick_hz);
        let (clock, ns) = match self.named {
            Named::Ticks(ticks) => return Ok(Now { ticks, ticks_per_second: known, clock: None }),
            Named::Clock(TableClock::Counter) => {
                return Ok(Now { ticks: counter(), ticks_per_second: known, clock: Some("tsc") })
            }
            Named::Clock(clock) => (clock, nanoseconds(clock)?),
        };
        // A clock of the system counts nanoseconds unless the image says otherwise.
        let hz = known.unwrap_or(1_000_000_000);
        let ticks = u128::from(ns) * u128::from(hz) / 1_000_000_000;
        Ok(Now { ticks: ticks as u64, ticks_per_second: Some(hz), clock: name(clock) })
    }
}

fn nanoseconds(clock: TableClock) -> Result<u64, Failure> {
    use tatcell::host::Clock as System;
    let system = match clock {
        TableClock::Monotonic => System::Monotonic,
        TableClock::Boottime => System::Boottime,
        TableClock::Raw => System::Raw,
        TableClock::Realtime => {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            return Ok(since.as_nanos() as u64);
        }
        _ => return Err(Failure::Usage("this program does not know the clock of the image".into())),
    };
    now_ns(system).map_err(|error| Failure::Input(format!("the clock cannot be read: {error}")))
}

impl Now {
    /// Returns ticks as a time in words, or as ticks if nobody knows what they are.
    pub fn span(&self, ticks: u64) -> String {
        let Some(hz) = self.ticks_per_second else { return format!("{ticks} ticks") };
        span(u128::from(ticks) * 1_000_000_000 / u128::from(hz))
    }

    /// Returns ticks in seconds.
    pub fn seconds(&self, ticks: u64) -> Option<f64> {
        self.ticks_per_second.map(|hz| ticks as f64 / hz as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_have_names_and_times_are_ticks() {
        for (text, clock) in NAMES {
            assert_eq!(text.parse::<Named>(), Ok(Named::Clock(clock)));
            assert_eq!(name(clock), Some(text));
        }
        assert_eq!("12".parse::<Named>(), Ok(Named::Ticks(12)));
        assert!("moon".parse::<Named>().is_err() && "-1".parse::<Named>().is_err());
        assert_eq!(name(TableClock::Unknown), None);
    }

    #[test]
    fn spans_are_words_that_never_say_more_than_there_is() {
        let now = Now { ticks: 0, ticks_per_second: Some(1_000_000_000), clock: None };
        for (ticks, want) in [
            (0, "0 s"),
            (999, "999 ns"),
            (1_500, "1.5 us"),
            (1_999_999_999, "1.9 s"),
            (119_999_999_999, "119.9 s"),
            (120_000_000_000, "2 min"),
            (7_200_000_000_000, "2 h"),
            (172_800_000_000_000, "2 days"),
        ] {
            assert_eq!(now.span(ticks), want);
        }
        assert_eq!(Now { ticks_per_second: None, ..now }.span(7), "7 ticks");
    }
}

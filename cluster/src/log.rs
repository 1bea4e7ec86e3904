//! At most one log line a second, which says how many were left out before it.

use tatcell::{LogGate, LogLine};

/// Where the lines go.
pub(crate) type Sink = Box<dyn Fn(&str) + Send>;

pub(crate) struct Log {
    gate: LogGate,
    sink: Sink,
}

const SECOND: u64 = 1_000_000_000;

impl Log {
    pub(crate) fn new(sink: Sink) -> Log {
        Log { gate: LogGate::new(), sink }
    }

    pub(crate) fn say(&self, now: u64, line: &str) {
        match self.gate.line(now, SECOND) {
            LogLine::Write { left_out: 0 } => (self.sink)(line),
            LogLine::Write { left_out } => (self.sink)(&format!("{line} ({left_out} lines left out)")),
            _ => {}
        }
    }
}

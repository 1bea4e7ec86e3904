//! Progress on stderr: on a terminal one line that is overwritten, elsewhere a line now and then.

use std::io::{IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::cpu::wall_ns;

/// ns between two lines where stderr is not a terminal.
const APART: u64 = 10_000_000_000;

static LAST: AtomicU64 = AtomicU64::new(0);

/// Tells what is going on; called often.
pub fn tell(what: &str) {
    let mut err = std::io::stderr().lock();
    if err.is_terminal() {
        let _ = write!(err, "\rbench: {what}\x1b[K");
        let _ = err.flush();
        return;
    }
    let now = wall_ns();
    if now.saturating_sub(LAST.load(Relaxed)) >= APART {
        LAST.store(now, Relaxed);
        let _ = writeln!(err, "bench: {what}");
    }
}

/// Ends the line that [`tell`] overwrites.
pub fn clear() {
    let mut err = std::io::stderr().lock();
    if err.is_terminal() {
        let _ = write!(err, "\r\x1b[K");
    }
}

//! Counts in named memory, where other programs may read them.

use std::ffi::CString;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tatcell::host::SharedCounters;
use tatcell::Counters;

use crate::counted::Counted;

/// The name of the memory, and the memory once it is open. All copies are one, so that a keeper that is opened anew
/// goes on counting.
#[derive(Clone, Debug)]
pub struct Published {
    name: String,
    open: Arc<OnceLock<Opened>>,
}

/// What is counted by itself, because no table counts it, and the memory.
#[derive(Debug)]
struct Opened {
    counted: Counted,
    memory: Mutex<SharedCounters>,
}

impl Published {
    /// Takes the name: of shared memory, as in "/limits", or a path.
    pub fn new(name: String) -> Published {
        Published { name, open: Arc::default() }
    }

    /// Opens the memory, unless it is open. Its counts start from 0.
    ///
    /// # Errors
    /// Text: there can be no such memory.
    pub fn open(&self) -> Result<(), String> {
        if self.open.get().is_some() {
            return Ok(());
        }
        let name = &self.name;
        let why = |what: &dyn std::fmt::Display| format!("counters {name:?}: {what}; give another name");
        let text = CString::new(name.as_str()).map_err(|e| why(&e))?;
        // One block, because one thread writes it.
        let mut memory = SharedCounters::open(&text, 1, 0o644).map_err(|e| why(&e))?;
        memory.blocks().fill(Counters::default());
        // Nobody else opens it meanwhile: a keeper is opened before it is used, or by the one thread that reloads.
        let _ = self.open.set(Opened { counted: Counted::default(), memory: Mutex::new(memory) });
        Ok(())
    }

    /// Counts a decision that no table counts.
    pub fn add(&self, more: &Counters) {
        if let Some(opened) = self.open.get() {
            opened.counted.add(more);
        }
    }

    /// Writes these counts and those of [`add`](Published::add) to the memory. Call it once a second.
    pub fn publish(&self, mut sum: Counters) {
        let Some(opened) = self.open.get() else { return };
        sum.add(&opened.counted.sum());
        let mut memory = opened.memory.lock().unwrap_or_else(PoisonError::into_inner);
        memory.blocks().fill(sum);
    }
}

#[cfg(test)]
mod tests {
    use tatcell::host::{unlink, ReadOnlyCounters};
    use tatcell::FullPolicy;

    use super::*;
    use crate::Tables;

    #[test]
    fn counts_are_shared_by_name_as_of_the_last_publish() {
        const SECOND: u64 = 1_000_000_000;
        let name = format!("/tatcell-door-{}", std::process::id());
        let text = CString::new(name.clone()).expect("a name");
        let _ = unlink(&text);
        let published = Published::new(name);
        published.open().expect("counters");
        let seen = ReadOnlyCounters::attach(&text).expect("counters");
        let tables = Tables::new(1_000, FullPolicy::Deny).expect("tables");
        for (period, burst) in [(SECOND, 1), (86_400 * SECOND, 100)] {
            let limit = tables.limit(1, period, burst).expect("a limit");
            assert!(Tables::check(&limit, b"k", 1, SECOND).is_some_and(|d| d.passes()));
        }
        assert_eq!(seen.sum(), Counters::default());
        published.publish(tables.counts());
        assert_eq!(seen.sum(), Counters { conforming: 2, inserted: 2, ..Counters::default() });
        // What no table counts is added, also by a copy that is opened again.
        let copy = published.clone();
        copy.open().expect("the same counters");
        copy.add(&Counters { never: 3, ..Counters::default() });
        published.publish(tables.counts());
        assert_eq!(seen.sum(), Counters { conforming: 2, inserted: 2, never: 3, ..Counters::default() });
        unlink(&text).expect("a name");
        let why = Published::new("none".into()).open().expect_err("no slash");
        assert!(why.contains("counters \"none\"") && why.contains("another name"), "{why}");
    }
}

//! One thing for each of many, by as many workers as there are processors.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;

use anyhow::{ensure, Context as _, Result};

/// What `one` makes of each, in their order. A failure of one is told when all are done.
pub fn each<T: Sync, R: Send>(all: &[T], one: impl Fn(usize, &T) -> Result<R> + Sync) -> Result<Vec<R>> {
    let next = AtomicUsize::new(0);
    let found: Mutex<BTreeMap<usize, Result<R>>> = Mutex::new(BTreeMap::new());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| loop {
                // ORDERING: Relaxed; a counter, and nothing hangs on what others have done.
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(item) = all.get(at) else { return };
                let result = one(at, item);
                if let Ok(mut found) = found.lock() {
                    found.insert(at, result);
                }
            });
        }
    });
    let found = found.into_inner().ok().context("a thread has ended before its time")?;
    ensure!(found.len() == all.len(), "{} of {} were done", found.len(), all.len());
    found.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_done_once_and_told_in_its_order() -> Result<()> {
        let all: Vec<usize> = (0..100).collect();
        let done = each(&all, |at, item| Ok(at + item))?;
        ensure!(done == all.iter().map(|i| 2 * i).collect::<Vec<_>>());
        ensure!(each(&all, |at, _| if at == 50 { anyhow::bail!("one") } else { Ok(()) }).is_err());
        Ok(())
    }
}

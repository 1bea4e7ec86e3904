//! Rules that a reload replaced: what a key used under them stays used, and no more.
//!
//! A table keeps a debt as a time, so under another limit the same time would be another number of units. Therefore
//! each limit of a rule has keys of its own ([`key_of`]), and the next request of a key carries its units over.
//!
//! ```text
//!   rules before   3 a day  --- reload, at t --->  1000 a day        key: parts, day, 3, epoch 0
//!   owed at t      3 units                         3 units           key: parts, day, 1000, epoch 1
//!   the next request at n > t:  owe the new key 3 units less what came back since t;  forgive the old key
//! ```
//!
//! - **Once.** A lock of the parts is held from the first look at the old keys until they are forgiven, and every
//!   request of a key that may owe under old rules takes it before it is decided.
//! - **Nothing is decided by old rules later**: a decision by tables holds the read lock of the rules, and a reload
//!   takes `t` under the write lock. So old and new rules together admit what one counter does whose limit changes at
//!   `t`.
//! - **Several reloads**: the debt goes from each limit to the next one at the time of that reload. Rules that had no
//!   limit for the key are skipped: the limit before them counts until they went. If a limit comes back before the key
//!   did, what the key still owes under it counts as it stands.
//! - **A limit that was lowered** drains slower, but a table may forget a debt once it has drained under the old limit.
//!   If the key comes later than that, it may be full. So until its next request a key gets units back at the faster of
//!   both rates, at most: any time w admits at most R w + B, with the larger rate and the larger burst.
//! - **Bounded**: [`MOST`] changes are remembered, each until its slowest limit has drained. A key that does not come
//!   during as many changes is full.
//!
//! Not for limits behind a store, whose nodes share the name of a limit.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use tatcell_door::{Limit, TablesLimit, Undecided};

use crate::rules::{key_of, Pass, Rules};

/// The most changes that are remembered.
const MOST: usize = 16;

/// Rules that are no longer in force.
#[derive(Clone, Debug)]
struct Past {
    rules: Arc<Rules>,
    /// When the next ones came.
    at: u64,
    /// When the last key that owed something then owes nothing.
    until: u64,
}

/// The rules before the present ones, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pasts(Vec<Past>);

/// Locks, one for many keys.
#[derive(Debug)]
pub(crate) struct Locks([Mutex<()>; 64]);

impl Default for Locks {
    fn default() -> Locks {
        Locks([const { Mutex::new(()) }; 64])
    }
}

/// A limit that a key had.
struct Step<'r> {
    key: Vec<u8>,
    limit: &'r TablesLimit,
    until: u64,
}

impl Pasts {
    /// Returns these with `rules`, which end at `now`.
    pub(crate) fn and(&self, rules: &Arc<Rules>, now: u64) -> Pasts {
        // A table's unit takes up to a thousandth longer.
        let longest = rules.longest().saturating_mul(1_002_000_000);
        let last = Past { rules: rules.clone(), at: now, until: now.saturating_add(longest) };
        // Rules in the middle stay, even if their limits have drained: they say how an older debt drained.
        let mut list: Vec<Past> = self.0.iter().skip_while(|past| now >= past.until).cloned().collect();
        list.push(last);
        list.drain(..list.len().saturating_sub(MOST));
        Pasts(list)
    }

    /// Carries over what a key owes under old rules. `parts` is its key without a limit, `key` the one with it.
    ///
    /// # Errors
    /// [`Undecided::Overloaded`]: nothing changed.
    pub(crate) fn carry(
        &self,
        (parts, key): (&[u8], &[u8]),
        limit: &TablesLimit,
        now: u64,
        locks: &Locks,
    ) -> Result<(), Undecided> {
        if !self.0.iter().any(|past| now < past.until) {
            return Ok(());
        }
        // What came back until the reload is counted below.
        let now = self.0.last().map_or(now, |last| now.max(last.at));
        let mut steps: Vec<Step<'_>> = Vec::new();
        for past in &self.0 {
            match past.find(parts) {
                Some(step) => {
                    steps.retain(|known| known.key != step.key);
                    steps.push(step);
                }
                None => steps.iter_mut().next_back().into_iter().for_each(|last| last.until = past.at),
            }
        }
        steps.retain(|step| step.key != key);
        if steps.is_empty() {
            return Ok(());
        }
        let mut hasher = DefaultHasher::new();
        parts.hash(&mut hasher);
        let lock = &locks.0[(hasher.finish() % 64) as usize];
        let _one = lock.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut debt, mut before): (u64, Option<&Step<'_>>) = (0, None);
        for step in &steps {
            let own = step.limit.owed(&step.key, step.until, now);
            debt = own.saturating_add(later(debt, before, step.limit, step.until)).min(step.limit.full());
            before = Some(step);
        }
        let debt = later(debt, before, limit, now / limit.tick() * limit.tick());
        if debt > 0 && limit.owe(key, debt, now).ok_or(Undecided::Overloaded)? {
            steps.iter().for_each(|step| step.limit.forgive(&step.key, step.until));
        }
        Ok(())
    }
}

/// Returns what is left under `limit` at `now` of a debt that the step before has at its end.
fn later(debt: u64, before: Option<&Step<'_>>, limit: &TablesLimit, now: u64) -> u64 {
    let Some(before) = before else { return 0 };
    let then = before.limit.as_under(limit, debt).min(limit.full());
    then.saturating_sub(now.saturating_sub(before.until))
}

impl Past {
    /// Returns the limit that these parts had.
    fn find(&self, parts: &[u8]) -> Option<Step<'_>> {
        let limit = self.rules.counted(parts)?.limit.as_ref()?;
        let Pass::Some(requests, unit, kept) = &limit.pass else { return None };
        let Limit::Local(kept) = &**kept else { return None };
        let key = key_of(parts, *requests, *unit, limit.epoch);
        Some(Step { key, limit: kept, until: self.at })
    }
}

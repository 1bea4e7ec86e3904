//! Overrides: bans and exemptions of keys until a time, in a table of their own that callers ask before the limits.
//!
//! ```text
//!  word   [CLAIM][ tag ][        busy : F         ][ state : 2 ]     busy: the unit of time in which it ends
//!
//!  hash of a key ---------> the override      state BAN or EXEMPT; NONE once it is lifted
//!        '-- second_hash -> its witness       state WITNESS, busy at least as late
//!
//!  lookup       the override must be live, and so must its witness
//!  ban, exempt  the witness first, then the override
//!  lift         the override only
//! ```
//!
//! The words are those of `fit_counted` and follow the protocol of all tables: inserts, expiry, sweeps, images and
//! shared memory work as there. What differs:
//!
//! - **Two words against strangers.** A word knows its key by line and tag only: another key matches a live word of its
//!   set with a chance of about 2^-20. The witness lies in another set under another tag. So another key is overridden
//!   with a chance of about (m / 2^t)^2, where m is the number of live words in a set and t the tag bits: 4e-12 at m =
//!   2, 2e-10 if every set is full.
//! - **One authority.** The override's word alone has state and end, so each change takes effect in one swap. A witness
//!   only ever becomes later. A lift leaves it, so that no lift can take the witness of a ban that another thread sets
//!   meanwhile. Therefore a lifted override holds one slot until it would have ended.
//! - **Over for good only where the table is swept.** Any word that nobody sweeps wraps after a span. A debt then only
//!   drains once more, but an exemption would exempt again. So sweep a table of overrides once in its sweep interval.
//! - **Free while unused.** A word of the image says whether an override was ever stored. It is cleared before the
//!   first word of the first override is stored, and never set again. So whoever can see an override can see that word
//!   cleared, also if the thread that stores the override is stopped. A lookup of an address or of a chain loads it
//!   first, and loads nothing else while it is set.
//! - **Never lost, never another's.** The policy is Deny: to set an override in a full set is an error. So is a word of
//!   another key in the place: a live override without its witness, or a word of the other sort.
//! - **Only a lift and an earlier end lower a word**, and never below the claim of its slot: the word stays about six
//!   units of time ahead.
//!
//! Progress: as the table's inserts. At the bound the call returns Contended, and the override is as it was (its
//! witness may be later). Not here: the keys themselves; a reason; a count of refusals, which a limit has.

mod address;

pub use address::PrefixLengths;
pub(crate) use address::AT_ONCE;

use super::error::TableError;
use super::handle::Table;
use super::layout::geometry::Content;
use super::layout::image;
use super::layout::override_word::{BAN, EXEMPT, NONE, OVERRIDE_BITS, WITNESS};
use super::layout::policy::FullPolicy;
use super::layout::word::{Layout, Tag};
use super::set::attempt::Done;
use super::set::set::Set;
use crate::algorithms::{Operation, State};
use crate::answer::{Answer, Step, Tracking, Verdict};
use crate::keys::second_hash;
use crate::sync::access::Access;
use crate::sync::{Ordering, MAX_LOST};
use crate::time::{ticks_to_q_up, ticks_up};

/// Says how a key is treated instead of by its limits, and for how long.
///
/// ```
/// use tatcell::{Line, Override, Table, TableOptions};
/// let lines = [const { Line::EMPTY }; 66];
/// let table = Table::init(&lines, &TableOptions::overrides(86_400_000).seed(*b"16 random bytes!"))?;
/// let mallory = table.hash(b"mallory")?;
/// table.ban(1_000, mallory, 61_000)?; // a minute, in milliseconds
/// match table.overridden(1_000, mallory)? {
///     Some(Override::Banned { retry_after }) => assert_eq!(retry_after, 60_000),
///     other => panic!("{other:?}"),
/// }
/// # Ok::<(), tatcell::TableError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Override {
    /// No request of the key passes.
    Banned {
        /// Ticks until the ban ends.
        retry_after: u64,
    },
    /// Every request of the key passes and is not charged.
    Exempt {
        /// Ticks until the exemption ends.
        left: u64,
    },
}

/// The operation that stores a word of an override.
struct Put {
    /// The state to store.
    state: State,
    /// The earliest end to which a word may be lowered.
    floor: u64,
}

impl Put {
    fn next(&self, now: State) -> Option<State> {
        if now.ahead == 0 {
            return Some(self.state);
        }
        match (self.state.aux, now.aux) {
            (WITNESS, WITNESS) if now.ahead >= self.state.ahead => Some(now),
            (WITNESS, WITNESS) => Some(self.state),
            (WITNESS, _) | (_, WITNESS) => None,
            _ => Some(self.lowered(now)),
        }
    }

    /// Returns the state to store in place of one that may end later.
    fn lowered(&self, now: State) -> State {
        Self::no_earlier(self.state, self.floor.min(now.ahead))
    }

    /// Returns the state with an end at least `least` ahead. An exemption becomes NONE instead of lasting longer.
    fn no_earlier(state: State, least: u64) -> State {
        match state {
            State { ahead, aux: EXEMPT } if ahead < least => State { ahead: least, aux: NONE },
            State { ahead, aux } => State { ahead: ahead.max(least), aux },
        }
    }
}

impl Operation for Put {
    fn step(&self, lead: u64) -> Step {
        let now = State::split(OVERRIDE_BITS, lead);
        let Some(next) = self.next(now) else { return Step::keep(Verdict::Never, 0, lead, 0) };
        let stored = next.join(OVERRIDE_BITS);
        let answer = Answer { verdict: Verdict::Conforming, flags: 0, lead: stored, wait: 0, stored: 0 };
        Step { answer, store: if next == now { None } else { Some(stored) } }
    }

    fn first_step(&self) -> Step {
        self.step(0)
    }

    fn shadows(&self) -> bool {
        false
    }

    fn commit_lead(&self, lead: u64, claim: u64) -> u64 {
        let (state, claim) = (State::split(OVERRIDE_BITS, lead), State::split(OVERRIDE_BITS, claim));
        Self::no_earlier(state, claim.ahead).join(OVERRIDE_BITS)
    }

    fn refundable(&self, _: u64, _: u64) -> u64 {
        0
    }
}

impl<M: Access> Table<'_, M> {
    /// Bans a key until a time: no request of it passes at a `now` before `until`, which is rounded up to the table's
    /// unit of time. Replaces any override of the key.
    ///
    /// `until` is a reading of the caller's clock after `now`, at most as far ahead as the table was made for. If it is
    /// earlier than the end of the override that it replaces, the new end is at least about six units of time away.
    ///
    /// ```
    /// use tatcell::{Line, Override, Table, TableOptions};
    /// static MEMORY: [Line; 130] = [Line::EMPTY; 130];
    ///
    /// // Milliseconds, and up to a year.
    /// let table = Table::init(&MEMORY, &TableOptions::overrides(365 * 86_400_000).seed([7; 16]))?;
    /// let mallory = table.hash(b"192.0.2.1")?;
    /// table.ban(1_000, mallory, 61_000)?;
    /// assert_eq!(table.overridden(60_999, mallory)?, Some(Override::Banned { retry_after: 1 }));
    /// assert_eq!(table.overridden(61_000, mallory)?, None);
    /// # Ok::<(), tatcell::TableError>(())
    /// ```
    ///
    /// # Errors
    /// [`TableError::BadAlgorithm`] unless the table was made by [`TableOptions::overrides`]; [`TableError::BadUntil`];
    /// [`TableError::FullSet`]; [`TableError::OverrideClash`]; [`TableError::Contended`]. Then the key's override is as
    /// it was.
    ///
    /// # Concurrency
    /// Any number of threads and processes, together with any other call: the change takes effect at once and as a
    /// whole. An override takes two slots of the table.
    ///
    /// [`TableOptions::overrides`]: crate::TableOptions::overrides
    pub fn ban(&self, now: u64, hash: u64, until: u64) -> Result<(), TableError> {
        self.override_key(now, hash, until, BAN)
    }

    /// Exempts a key until a time: every request of it passes, uncharged, at a `now` before `until`, which is rounded
    /// down to the table's unit of time. Replaces any override of the key.
    ///
    /// # Errors
    /// The errors of [`ban`](Table::ban); [`TableError::BadUntil`] also if `until` is in the current unit of time.
    ///
    /// # Concurrency
    /// Like [`ban`](Table::ban).
    pub fn exempt(&self, now: u64, hash: u64, until: u64) -> Result<(), TableError> {
        self.override_key(now, hash, until, EXEMPT)
    }

    /// Ends a key's override at once, and returns whether there was one.
    ///
    /// One of its two slots stays taken until the override would have ended; the same key can use it again.
    ///
    /// # Errors
    /// [`TableError::BadAlgorithm`], [`TableError::Contended`]; nothing is changed then.
    ///
    /// # Concurrency
    /// Like [`ban`](Table::ban).
    pub fn lift(&self, now: u64, hash: u64) -> Result<bool, TableError> {
        self.holds_overrides()?;
        let (layout, now_q) = (&self.geometry.layout, self.geometry.clock_q(now));
        let (set, tag) = self.place(hash);
        for _ in 0..MAX_LOST {
            // A word of another key must not be lifted.
            if self.look(now, hash).is_none() {
                return Ok(false);
            }
            let Some((_, slot, word)) = set.find(layout, tag) else { return Ok(false) };
            let state = State::split(OVERRIDE_BITS, layout.lead(word, now_q));
            let none = State { ahead: self.floor().min(state.ahead), aux: NONE };
            let next = layout.live(tag, now_q.wrapping_add(none.join(OVERRIDE_BITS)));
            if M::replace(slot, word, next).is_ok() {
                return Ok(true);
            }
        }
        Err(TableError::Contended)
    }

    /// Returns whether a key is banned or exempt at `now`, and for how long. Only reads.
    ///
    /// # Errors
    /// [`TableError::BadAlgorithm`] unless the table was made by
    /// [`TableOptions::overrides`](crate::TableOptions::overrides).
    ///
    /// # Concurrency
    /// Like [`ban`](Table::ban). Cost: one or two cache lines for a key without override, twice as many for one with.
    #[inline]
    pub fn overridden(&self, now: u64, hash: u64) -> Result<Option<Override>, TableError> {
        self.holds_overrides()?;
        Ok(self.look(now, hash))
    }

    /// Refuses tables of debts.
    #[inline(always)]
    pub(crate) fn holds_overrides(&self) -> Result<(), TableError> {
        match self.geometry.content {
            Content::Overrides => Ok(()),
            Content::Debts(_) => Err(TableError::BadAlgorithm),
        }
    }

    /// Returns whether an override may have been stored since the table was made.
    #[inline(always)]
    pub(crate) fn was_used(&self) -> bool {
        // ORDERING: Relaxed; single word, value only. A call that starts after an override was stored, or was seen
        // through an Acquire fence, cannot load the value from before.
        image::unused(self.head).is_none_or(|word| word.load(Ordering::Relaxed) != image::UNUSED)
    }

    /// Says that overrides are stored from now on. Stores only once, so that readers keep the line.
    pub(in crate::table) fn use_it(&self) {
        if let Some(word) = image::unused(self.head).filter(|_| !self.was_used()) {
            // ORDERING: Relaxed; the Release swaps that place the words of the override come behind it.
            word.store(0, Ordering::Relaxed);
        }
    }

    /// Does the same as [`overridden`](Table::overridden) after the caller has called `holds_overrides`.
    #[inline(always)]
    pub(crate) fn look(&self, now: u64, hash: u64) -> Option<Override> {
        let state = self.state_at(now, hash)?;
        if state.aux != BAN && state.aux != EXEMPT || !self.is_witnessed(now, hash) {
            return None;
        }
        let g = &self.geometry;
        let left = ticks_up(state.ahead.wrapping_shl(OVERRIDE_BITS), now, g.shl, g.shr);
        Some(match state.aux {
            BAN => Override::Banned { retry_after: left },
            _ => Override::Exempt { left },
        })
    }

    /// Returns the state of a key's live word.
    #[inline(always)]
    fn state_at(&self, now: u64, hash: u64) -> Option<State> {
        let (layout, now_q) = (&self.geometry.layout, self.geometry.clock_q(now));
        let (set, tag) = self.place(hash);
        let (_, _, word) = set.find_wide(self.wide, layout, tag)?;
        match State::split(OVERRIDE_BITS, layout.lead(word, now_q)) {
            State { ahead: 0, .. } => None,
            // No store reaches so far ahead, so this word has wrapped, and it must not exempt anybody.
            State { ahead, aux: EXEMPT } if ahead > self.geometry.horizon >> OVERRIDE_BITS => None,
            state => Some(state),
        }
    }

    #[inline]
    fn is_witnessed(&self, now: u64, hash: u64) -> bool {
        matches!(self.state_at(now, second_hash(hash)), Some(State { aux: WITNESS, .. }))
    }

    /// Returns how many units of time ahead a lowered word stays, which is above every claim of its slot.
    fn floor(&self) -> u64 {
        (self.geometry.layout.grace.wrapping_add(2) >> OVERRIDE_BITS).wrapping_add(1)
    }

    fn override_key(&self, now: u64, hash: u64, until: u64, aux: u64) -> Result<(), TableError> {
        self.holds_overrides()?;
        let g = &self.geometry;
        let (longest, ticks) = (g.horizon >> OVERRIDE_BITS, until.wrapping_sub(now));
        // The ticks of the current unit of time that have passed.
        let part = now & 1u64.wrapping_shl(g.shr.into()).wrapping_sub(1);
        let ends = part.checked_add(ticks).ok_or(TableError::BadUntil)?;
        let ahead = match aux {
            BAN => ticks_to_q_up(ends, 0, g.shr.into()),
            _ => ends.wrapping_shr(g.shr.into()),
        };
        if ticks == 0 || ahead == 0 || ahead > longest {
            return Err(TableError::BadUntil);
        }
        let second = second_hash(hash);
        // A key whose second hash equals its hash clashes with itself: a fixed point of the mixing step, chance 2^-64.
        let found = self.state_at(now, hash);
        // A thread that sees an override must also see its witness, which was stored before.
        M::fence();
        match found {
            Some(State { aux: BAN | EXEMPT, .. }) if !self.is_witnessed(now, hash) => {
                return Err(TableError::OverrideClash);
            }
            Some(State { aux: WITNESS, .. }) => return Err(TableError::OverrideClash),
            _ => {}
        }
        // An override that has no room must not leave a witness.
        let (set, tag) = self.place(hash);
        if !set.has_room(&g.layout, tag, g.clock_q(now)) {
            return Err(TableError::FullSet);
        }
        self.use_it();
        self.put(now, second, State { ahead, aux: WITNESS })?;
        self.put(now, hash, State { ahead, aux })
    }

    pub(in crate::table) fn put(&self, now: u64, hash: u64, state: State) -> Result<(), TableError> {
        let g = &self.geometry;
        let (set, tag) = self.place(hash);
        let op = Put { state, floor: self.floor() };
        let done = set.run::<M, _>(&g.layout, FullPolicy::Deny, tag, g.clock_q(now), &op, false);
        match done {
            Done { answer: None, .. } => Err(TableError::Contended),
            Done { tracking: Tracking::Untracked, .. } => Err(TableError::FullSet),
            Done { answer: Some(answer), .. } if !answer.verdict.passes() => Err(TableError::OverrideClash),
            _ => Ok(()),
        }
    }
}

impl<const N: usize> Set<'_, N> {
    /// Returns whether the set has a slot of the key, or one that it may take.
    fn has_room(&self, layout: &Layout, tag: Tag, now_q: u64) -> bool {
        self.slots().any(|(_, slot)| {
            // ORDERING: Relaxed; single word, value only. The insert scans again.
            let word = slot.load(Ordering::Relaxed);
            layout.has_tag(word, tag) || layout.is_reusable(word, now_q)
        })
    }
}

#[cfg(all(test, not(tatcell_loom)))]
#[path = "mod_tests.rs"]
mod tests;

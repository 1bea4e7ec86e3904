//! GCRA, claim and commit in plain code: what a table decides, without vectors, fast paths or atomics.
//!
//! The numbers are those of [`tatcell::Table::numbers`] and [`tatcell::TableLimit::numbers`]. A request advances by
//! steps, each one scan of the set or one compare-and-swap, so that a test can interleave requests in any order.

use tatcell::{FullPolicy, LimitNumbers, Outcome, TableNumbers};

const CLAIM: u64 = 1 << 63;
const SLOTS: usize = 16;

/// A table: its numbers, and its slots as plain words.
#[derive(Clone)]
pub struct Table {
    numbers: TableNumbers,
    pub slots: Vec<u64>,
}

/// How far a time lies ahead of now, in q-units: 0 if it has passed, or lies beyond the window.
fn lead(numbers: &TableNumbers, word: u64, now_q: u64) -> u64 {
    let ahead = word.wrapping_sub(now_q) & numbers.mask;
    if ahead <= numbers.window_q {
        ahead
    } else {
        0
    }
}

/// Decides by the one inequality. Conforming: the next lead, or `None` for a cost of 0, which stores nothing.
fn decide(limit: &LimitNumbers, lead: u64, cost: u64) -> Result<Option<u64>, Refusal> {
    if cost > limit.burst {
        return Err(Refusal::Never);
    }
    let next = lead + cost * limit.emission_q;
    if next <= limit.burst_q {
        Ok((cost != 0).then_some(next))
    } else {
        Err(Refusal::Wait(next - limit.burst_q))
    }
}

/// Why a request is refused; the wait is in q-units.
enum Refusal {
    Never,
    Wait(u64),
}

impl Table {
    pub fn new(numbers: TableNumbers) -> Table {
        Table { numbers, slots: vec![0; numbers.lines as usize * 8] }
    }

    /// The whole request at once: what a call of one thread answers.
    pub fn check(&mut self, limit: &LimitNumbers, now: u64, hash: u64, cost: u64) -> Outcome {
        let mut request = Request::new(self, now, hash, cost);
        loop {
            if let Some(outcome) = request.step(self, limit) {
                return outcome;
            }
        }
    }

    fn now_q(&self, now: u64) -> u64 {
        now << self.numbers.shift_left >> self.numbers.shift_right
    }

    /// The fewest whole ticks after `now` in which this number of q-units passes.
    fn ticks(&self, now: u64, wait: u64) -> u64 {
        let (left, right) = (self.numbers.shift_left, self.numbers.shift_right);
        if right == 0 {
            wait.div_ceil(1 << left)
        } else {
            (((now >> right) + wait) << right) - now
        }
    }
}

/// A request on its way.
#[derive(Clone, Debug)]
pub struct Request {
    now: u64,
    now_q: u64,
    cost: u64,
    tag: u64,
    /// Numbers of the slots of its set, in search order: the home line, then the other one.
    set: [usize; SLOTS],
    /// The lowest claim of the key in the look before: its slot and word.
    known: Option<(usize, u64)>,
    /// The claim that this request has placed.
    own: Option<(usize, u64)>,
    next: Next,
}

/// What a request does next.
#[derive(Clone, Debug)]
enum Next {
    Look,
    Swap { at: usize, old: u64, new: u64, then: Then },
}

/// What a successful swap has done. After a lost one the request looks again.
#[derive(Clone, Debug)]
enum Then {
    /// The request conforms and is charged.
    Charged,
    /// A claim stands in the slot.
    Claimed,
    /// A higher claim of the key is gone.
    Dropped,
    /// Its own claim is gone, and this is the answer.
    Ended(Outcome),
}

impl Request {
    pub fn new(table: &Table, now: u64, hash: u64, cost: u64) -> Request {
        let n = &table.numbers;
        let home = (((hash >> 32) * u64::from(n.lines)) >> 32) as usize;
        let set = core::array::from_fn(|i| if i < 8 { home * 8 + i } else { (home ^ 1) * 8 + i - 8 });
        // The low bits of the hash; 0 is the tag of empty slots, so it becomes 1.
        let one = n.mask + 1;
        let tag = match hash.wrapping_mul(one) & !CLAIM & !n.mask {
            0 => one,
            tag => tag,
        };
        Request { now, now_q: table.now_q(now), cost, tag, set, known: None, own: None, next: Next::Look }
    }

    /// Goes on by one look or one swap; the answer, once there is one.
    pub fn step(&mut self, table: &mut Table, limit: &LimitNumbers) -> Option<Outcome> {
        match core::mem::replace(&mut self.next, Next::Look) {
            Next::Look => self.look(table, limit),
            Next::Swap { at, old, new, then } => {
                if table.slots[at] != old {
                    // A rival was faster. If it took this request's own claim away, that is over too.
                    return if let Then::Ended(outcome) = then { Some(outcome) } else { None };
                }
                table.slots[at] = new;
                match then {
                    Then::Charged
                        if self.own.is_some_and(|(own, word)| own != at && table.slots[own] == word) =>
                    {
                        let (own, word) = self.own?;
                        self.swap(own, word, dropped(table, word), Then::Ended(Outcome::Conforming));
                        None
                    }
                    Then::Charged => Some(Outcome::Conforming),
                    Then::Claimed => {
                        (self.own, self.known) = (Some((at, new)), Some((at, new)));
                        None
                    }
                    Then::Dropped => None,
                    Then::Ended(outcome) => Some(outcome),
                }
            }
        }
    }

    fn swap(&mut self, at: usize, old: u64, new: u64, then: Then) {
        self.next = Next::Swap { at, old, new, then };
    }

    /// Answers, once its own claim is dropped.
    fn end(&mut self, table: &Table, outcome: Outcome) -> Option<Outcome> {
        let Some((at, word)) = self.own else { return Some(outcome) };
        self.swap(at, word, dropped(table, word), Then::Ended(outcome));
        None
    }

    fn refuse(&mut self, table: &Table, why: Refusal) -> Option<Outcome> {
        let outcome = match why {
            Refusal::Never => Outcome::Never,
            Refusal::Wait(q) => Outcome::NonConforming { retry_after: table.ticks(self.now, q) },
        };
        self.end(table, outcome)
    }

    /// Looks at all slots of the set and plans a swap, or answers.
    fn look(&mut self, table: &Table, limit: &LimitNumbers) -> Option<Outcome> {
        let n = &table.numbers;
        let field = !CLAIM & !n.mask;
        let words = self.set.map(|at| (at, table.slots[at]));
        let live = words.iter().find(|(_, word)| word & !n.mask == self.tag);
        if let Some(&(at, word)) = live {
            return match decide(limit, lead(n, word, self.now_q), self.cost) {
                Err(why) => self.refuse(table, why),
                Ok(None) => self.end(table, Outcome::Conforming),
                Ok(Some(next)) => {
                    self.swap(at, word, self.tag | (self.now_q + next) & n.mask, Then::Charged);
                    None
                }
            };
        }
        // Claims of the key, the lowest address first: only that one may commit.
        let mut claims: Vec<_> =
            words.iter().copied().filter(|(_, w)| w & !n.mask == self.tag | CLAIM).collect();
        claims.sort_unstable();
        let fresh = decide(limit, 0, self.cost);
        if let [lowest, higher @ ..] = &claims[..] {
            let next = match fresh {
                Err(why) => return self.refuse(table, why),
                Ok(None) => return self.end(table, Outcome::Conforming),
                Ok(Some(next)) => next,
            };
            if self.known != Some(*lowest) {
                // Another look after it was seen: whoever placed a claim that this look missed sees this one.
                self.known = Some(*lowest);
            } else if let Some(&(at, word)) = higher.first() {
                self.swap(at, word, dropped(table, word), Then::Dropped);
            } else {
                // Not below the claim: the claim is above everything that the slot held before.
                let (at, word) = *lowest;
                let next = next.max(lead(n, word, self.now_q));
                self.swap(at, word, self.tag | (self.now_q + next) & n.mask, Then::Charged);
            }
            return None;
        }
        match fresh {
            Err(why) => return self.refuse(table, why),
            Ok(None) => return self.end(table, Outcome::Conforming),
            Ok(Some(_)) => {}
        }
        // The key is absent: the first empty slot, or else the one that has been expired longest.
        let empty = words.iter().find(|(_, w)| w & field == 0 && is_free(n, *w, self.now_q));
        let expired = words.iter().filter(|(_, w)| w & field != 0 && is_free(n, *w, self.now_q));
        // The first one among equals.
        let age = |word: u64| self.now_q.wrapping_sub(word) & n.mask;
        let oldest = expired.rev().max_by_key(|(_, word)| age(*word));
        if let Some(&(at, word)) = empty.or(oldest) {
            let ahead = if word == 0 { 0 } else { lead(n, word, self.now_q) };
            let version = self.now_q + n.claim_lifetime_q.max(ahead + 1);
            self.swap(at, word, self.tag | CLAIM | (version + (version & 1)) & n.mask, Then::Claimed);
            return None;
        }
        // A full set: the policy of the table decides.
        match n.policy {
            FullPolicy::Admit => Some(Outcome::Conforming),
            FullPolicy::Deny => {
                let held = words.iter().filter(|(_, w)| w & CLAIM == 0);
                let soonest = held.map(|(_, w)| lead(n, *w, self.now_q)).min().unwrap_or(1);
                self.refuse(table, Refusal::Wait(soonest))
            }
            policy => panic!("the reference has no {policy:?}"),
        }
    }
}

/// May an insert take this slot?
fn is_free(n: &TableNumbers, word: u64, now_q: u64) -> bool {
    let ahead = lead(n, word, now_q);
    let is_empty = word & !CLAIM & !n.mask == 0;
    ahead == 0 || is_empty && (word == 0 || word & 1 == 1 || ahead <= n.grace_q)
}

/// A dropped claim leaves an empty slot above it.
fn dropped(table: &Table, claim: u64) -> u64 {
    claim.wrapping_add(2) & table.numbers.mask
}

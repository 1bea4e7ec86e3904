//! A charge: it hits a LIVE word, or claims a slot and commits.

use super::model::{
    even_from, Choice, Kind, Pc, Permit, Placement, Policy, Rules, State, Thread, Word, World, ADMIT,
    CONTENDED, DENY, MAX_SLOTS, UNTRACKED,
};

/// What a thread does after a scan.
enum Move {
    Again((u8, Word)),
    Answer(u16),
    Charge(usize, Word),
    Kill(usize, Word),
    Commit(usize, Word),
    Claim(usize, Word),
}

fn odd_from(n: i32) -> i32 {
    n | 1
}

impl World {
    /// The word a dropped or killed claim leaves.
    fn dropped(&self, claim: Word) -> Word {
        match self.rules {
            Rules::Unversioned => Word::empty(0),
            Rules::ParityLost => Word::empty(even_from(claim.payload() + 1)),
            _ => Word::empty(claim.payload() + 2),
        }
    }

    /// The version a claim of this slot carries.
    fn version(&self, old: Word, now: i32) -> i32 {
        if self.rules == Rules::Unversioned {
            return even_from(now + self.lifetime);
        }
        let p = old.payload();
        if self.keeps_debt(old, now) {
            return odd_from(p + 1);
        }
        let p = if self.lead(p, now) > 0 { p } else { now };
        even_from((p + 1).max(now + self.lifetime))
    }

    /// The debt a claim brings to its commit.
    fn claim_lead(&self, version: i32, now: i32) -> i32 {
        if version & 1 == 1 && self.policy == Policy::Inherit {
            self.lead(version - 1, now)
        } else {
            0
        }
    }

    /// The free slot that an insert takes; `taken` is the one it has decided on.
    fn vacancy(&self, seen: &[Word], now: i32, taken: Option<usize>, choice: &mut Choice) -> Option<usize> {
        let owed = |w: &Word| {
            self.rules != Rules::DebtReusable && self.policy == Policy::Inherit && self.keeps_debt(*w, now)
        };
        let free = |j: &usize| self.reusable(seen[*j], now) && !owed(&seen[*j]);
        if taken.is_some() {
            return taken.filter(free);
        }
        if self.placement == Placement::Any {
            let n = (0..seen.len()).filter(free).count();
            return (0..seen.len()).filter(free).nth(if n > 1 { choice.among(n) } else { 0 });
        }
        if self.placement == Placement::First {
            return (0..seen.len()).find(free);
        }
        let empty = (0..seen.len()).filter(free).find(|j| seen[*j].kind() == Kind::Empty);
        empty.or_else(|| (0..seen.len()).filter(free).min_by_key(|j| seen[*j].payload()))
    }

    fn decide(
        &self,
        t: &Thread,
        key: u8,
        now: i32,
        cost: i32,
        taken: Option<usize>,
        choice: &mut Choice,
    ) -> Move {
        let seen = &t.seen[..self.slots];
        if let Some(i) = seen.iter().position(|w| w.is(Kind::Live, key)) {
            let lead = self.lead(seen[i].payload(), now);
            if lead + cost > self.limit {
                return Move::Answer(DENY);
            }
            return Move::Charge(i, Word::live(key, now + lead + cost));
        }
        let lowest = if self.rules == Rules::OwnFirst {
            seen.iter().rposition(|w| w.is(Kind::Claim, key))
        } else {
            seen.iter().position(|w| w.is(Kind::Claim, key))
        };
        if let Some(i) = lowest {
            return self.decide_claim(t, i, key, now, cost);
        }
        if let Some(j) = self.vacancy(seen, now, taken, choice) {
            if self.rules == Rules::Naive {
                return Move::Commit(j, Word::live(key, now + cost));
            }
            return Move::Claim(j, Word::claim(key, self.version(seen[j], now)));
        }
        match self.policy {
            Policy::Admit => return Move::Answer(UNTRACKED),
            Policy::Deny => return Move::Answer(DENY),
            Policy::Sampled if !choice.toss() => return Move::Answer(UNTRACKED),
            _ => {}
        }
        let evictable = |w: &Word| match w.kind() {
            Kind::Live => true,
            Kind::Claim => self.rules == Rules::EvictClaims,
            Kind::Empty => w.payload() & 1 == 1 || self.rules == Rules::TombstoneEvictable,
        };
        let victim =
            (0..self.slots).filter(|j| evictable(&seen[*j])).min_by_key(|j| seen[*j].payload() - now);
        let Some(j) = victim else {
            // Claims alone: no verdict rather than a guess. Tombstones with them: full.
            return Move::Answer(match self.policy {
                Policy::Sampled => UNTRACKED,
                _ if seen.iter().all(|w| w.kind() == Kind::Claim) => CONTENDED,
                _ => DENY,
            });
        };
        let version = odd_from(seen[j].payload() + 1);
        if self.claim_lead(version, now) + cost > self.limit {
            return Move::Answer(DENY);
        }
        Move::Claim(j, Word::claim(key, version))
    }

    fn decide_claim(&self, t: &Thread, i: usize, key: u8, now: i32, cost: i32) -> Move {
        let word = t.seen[i];
        let known = match self.rules {
            Rules::ForeignAfterOneScan => true,
            Rules::KnownBySlot => t.known.1 != Word(0) && t.known.0 == i as u8,
            _ => t.known == (i as u8, word),
        };
        if !known {
            return Move::Again((i as u8, word));
        }
        let v = word.payload();
        let lead = self.claim_lead(v, now);
        if lead + cost > self.limit {
            return Move::Answer(DENY);
        }
        if self.rules != Rules::NoKill {
            let from = (i + 1).max(usize::from(t.at));
            let higher = (from..self.slots).find(|k| t.seen[*k].is(Kind::Claim, key));
            if let Some(k) = higher {
                return Move::Kill(k, self.dropped(t.seen[k]));
            }
        }
        let falls = v & 1 == 1 && self.rules != Rules::SampledRises;
        let tat = if falls { now + lead + cost } else { v.max(now + cost) };
        Move::Commit(i, Word::live(key, tat))
    }

    pub(super) fn charge(
        &self,
        s: &mut State,
        who: usize,
        key: u8,
        now: i32,
        cost: i32,
        choice: &mut Choice,
    ) {
        let order = &self.order[usize::from(key)];
        let t = &mut s.threads[who];
        match t.pc {
            Pc::Scan => {
                let at = usize::from(t.at);
                t.seen[at] = s.slots[order[at]];
                t.at += 1;
                if usize::from(t.at) < self.slots && !t.seen[at].is(Kind::Live, key) {
                    return;
                }
                t.at = 0;
                match self.decide(t, key, now, cost, None, choice) {
                    Move::Again(met) => {
                        t.known = met;
                        self.next_pass(t, choice);
                    }
                    Move::Answer(verdict) => self.answer(t, verdict),
                    Move::Claim(at, _) => (t.pc, t.at) = (Pc::Act, at as u8),
                    Move::Commit(at, _) if self.rules == Rules::Naive => (t.pc, t.at) = (Pc::Act, at as u8),
                    _ => t.pc = Pc::Act,
                }
            }
            Pc::Act => {
                let taken = Some(usize::from(t.at));
                let settled = &mut Choice { pick: 1, ways: 0 };
                let chosen = self.decide(t, key, now, cost, taken, settled);
                let (Move::Charge(at, new)
                | Move::Kill(at, new)
                | Move::Commit(at, new)
                | Move::Claim(at, new)) = chosen
                else {
                    unreachable!("a settled answer is given in the step that finds it")
                };
                let slot = order[at];
                let won = s.slots[slot] == t.seen[at];
                if won {
                    s.slots[slot] = new;
                }
                match chosen {
                    Move::Kill(..) if won || self.rules == Rules::IgnoreFailedKill => {
                        if t.own == (at as u8, t.seen[at]) {
                            t.own = (0, Word(0));
                        }
                        t.at = at as u8 + 1;
                        if let Move::Answer(verdict) = self.decide(t, key, now, cost, None, choice) {
                            self.answer(t, verdict);
                        }
                    }
                    _ if !won => self.next_pass(t, choice),
                    Move::Claim(..) => {
                        t.own = (at as u8, new);
                        t.known = t.own;
                        if self.history {
                            s.recurred |= new.payload() <= i32::from(s.highest[slot]);
                            s.highest[slot] = s.highest[slot].max(new.payload() as u16);
                        }
                        if self.rules == Rules::OwnWithoutRescan {
                            t.seen = [Word(0); MAX_SLOTS];
                            (t.seen[at], t.at) = (new, 0);
                        } else {
                            self.next_pass(t, choice);
                        }
                    }
                    _ => {
                        let mut stored = cost;
                        if matches!(chosen, Move::Commit(..)) {
                            t.own = (0, Word(0));
                            if !matches!(self.rules, Rules::RefundWhole | Rules::RefundAll) {
                                stored = stored.min((new.payload() - t.seen[at].payload()).max(0));
                            }
                        }
                        if let Some(i) = self.permit_of(t, usize::from(t.op)) {
                            t.permits[i] = Permit {
                                tat: new.payload() as u16,
                                stored: stored as u8,
                                slot: slot as u8,
                                void: false,
                            };
                        }
                        self.answer(t, ADMIT);
                    }
                }
            }
            Pc::Drop => {
                let slot = &mut s.slots[order[usize::from(t.own.0)]];
                if *slot == t.own.1 {
                    *slot = self.dropped(t.own.1);
                }
                self.end(t);
            }
            Pc::Look => unreachable!("refunds only"),
        }
    }
}

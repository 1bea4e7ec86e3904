//! What must hold in every state of a world.

use std::format;
use std::string::String;
use std::vec::Vec;

use super::calls::{self, keys_of, tag};
use super::migrated::{lost, too_much};
use super::state::{Lists, Seen, State, Thread};
use super::world::{Op, Outcome, World, MOST, T};
use crate::answer::Verdict;
use crate::sync::access::Access;
use crate::sync::step_atomic::alone;
use crate::table::calls::full_answer::Request;
use crate::table::layout::policy::FullPolicy;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Check {
    /// There is at most one LIVE word a key.
    OneLive,
    /// No claim is at or below an earlier one of its slot.
    ClaimsRise,
    /// What a key was admitted, minus what was given back, fits a token bucket over the clock readings used, once more
    /// for each reset, and for each call of another key by a clock that is T or more ahead.
    KeyEnvelope,
    /// What the whole set was admitted fits one token bucket for each slot and each reset.
    SetEnvelope,
    /// A key was admitted at most this many units, once more for each reset; for limits that count.
    Units(u64),
    /// When all have ended, the charges fit one token bucket a slot, and one more for each forgiven debt that was
    /// counted (one instant, no reset).
    Forgives,
    /// When all have ended, the verdicts are those that single calls have in some schedule of the same threads.
    AsCalls,
    /// No word carries more debt than was charged, but for the claim that an undone insert of a chain leaves.
    NothingExtra,
    /// The words account for every charge (one instant, no reset).
    Conserves,
    /// When all have ended, the first key of the first thread was admitted.
    SomeoneAdmitted,
    /// A saved set holds no claim, and no debt that nobody had.
    SavedDebts,
    /// A saved set holds the debts of all slots that owed at the start, under whatever key (one instant).
    SavedAll,
    /// A migrated set holds no claim, no key twice, and no debt that nobody had.
    MigratedDebts,
    /// A migrated set holds what was owed before the migration began.
    MigratedAll,
    /// From every state each thread ends if it runs alone, and so does a fresh one.
    Progress,
}

impl Check {
    /// One of each, for `each_check`.
    pub const ALL: [Check; 15] = [
        Check::OneLive,
        Check::ClaimsRise,
        Check::KeyEnvelope,
        Check::SetEnvelope,
        Check::Units(2),
        Check::Forgives,
        Check::AsCalls,
        Check::NothingExtra,
        Check::Conserves,
        Check::SomeoneAdmitted,
        Check::SavedDebts,
        Check::SavedAll,
        Check::MigratedDebts,
        Check::MigratedAll,
        Check::Progress,
    ];

    pub(super) fn broken(self) -> &'static str {
        match self {
            Check::OneLive => "two LIVE words of one key",
            Check::ClaimsRise => "a claim is not above the earlier ones of its slot",
            Check::KeyEnvelope => "a key was admitted more than its bucket allows",
            Check::SetEnvelope => "the set admitted more than its slots allow",
            Check::Units(_) => "a key was admitted more units than its windows have",
            Check::Forgives => "the set admitted more than its slots and what it forgave allow",
            Check::AsCalls => "single calls have no such verdicts",
            Check::NothingExtra => "a word carries more debt than was charged",
            Check::Conserves => "the set lost debt",
            Check::SomeoneAdmitted => "nobody was admitted",
            Check::SavedDebts => "a save has a debt that nobody had",
            Check::SavedAll => "a save lost a debt",
            Check::MigratedDebts => "a migration made a debt that nobody had",
            Check::MigratedAll => "a migration lost a debt",
            Check::Progress => "stuck",
        }
    }
}

pub(super) struct Checker<'w, A: Access> {
    world: &'w World<A>,
    checks: &'w [Check],
    keys: Vec<u64>,
    first: u64,
    last: u64,
    tried: Seen,
    probed: Seen,
}

/// Sums over the calls of a key.
#[derive(Clone, Copy, Default)]
struct Sums {
    admitted: u64,
    /// Ticks, or units if the limit counts.
    back: u64,
    resets: u64,
    /// Calls of other keys that have begun.
    others: u64,
    /// What unfinished calls may have charged.
    pending: u64,
}

impl<'w, A: Access> Checker<'w, A> {
    pub fn new(world: &'w World<A>, checks: &'w [Check]) -> Checker<'w, A> {
        let calls = || world.scripts.iter().flatten();
        // By their tags: keys with one set and tag share a debt.
        let mut keys: Vec<u64> = calls().flat_map(keys_of).map(tag).collect();
        keys.sort_unstable();
        keys.dedup();
        let (first, last) = (calls().map(Op::now).min(), calls().map(Op::now).max());
        let (first, last) = (first.expect("a call"), last.expect("a call"));
        Checker { world, checks, keys, first, last, tried: Seen::new(), probed: Seen::new() }
    }

    pub fn wrong(&mut self, s: &State, lists: &Lists) -> Option<String> {
        self.checks.iter().find_map(|check| match check {
            Check::AsCalls if self.have_ended(s) => {
                let found = calls::verdicts(self.world, s, lists);
                let answers = &self.world.answers;
                (!answers.contains(&found)).then(|| format!("{}: {found:?} of {answers:?}", check.broken()))
            }
            Check::AsCalls => None,
            Check::Progress => stuck(self.world, self.last, &mut self.tried, &mut self.probed, s, lists),
            check => self.is_broken(*check, s, lists).then(|| check.broken().into()),
        })
    }

    /// Returns whether all threads have made all their calls.
    pub fn have_ended(&self, s: &State) -> bool {
        let scripts = &self.world.scripts;
        let ended = |thread: &Thread| usize::from(thread.done) == scripts[usize::from(thread.script)].len();
        s.threads[..scripts.len()].iter().all(ended)
    }

    fn sums(&self, key: u64, s: &State, lists: &Lists) -> Sums {
        let mut sums = Sums::default();
        for thread in &s.threads[..self.world.scripts.len()] {
            let script = &self.world.scripts[usize::from(thread.script)];
            let ended = &lists.outcomes[thread.outcomes as usize];
            for (op, outcome) in script.iter().zip(ended) {
                match (op, outcome) {
                    (Op::Check { key: k, cost, .. } | Op::Charge { key: k, cost, .. }, outcome)
                        if tag(*k) == key && calls::is_charged(outcome) =>
                    {
                        sums.admitted += cost;
                    }
                    (Op::Counted { keys, .. }, Outcome::Counted { pass: bits, .. })
                    | (
                        Op::Burst { keys, .. } | Op::Groups { keys, .. } | Op::Chain { keys, .. },
                        Outcome::Passed(bits),
                    ) => {
                        let passed =
                            keys.iter().enumerate().filter(|(i, k)| bits >> i & 1 == 1 && tag(**k) == key);
                        sums.admitted += passed.count() as u64;
                    }
                    (Op::Refund { of, .. }, Outcome::Refunded(back))
                        if tag(self.world.key_of(&script[*of])) == key =>
                    {
                        sums.back += back.unwrap_or(0);
                    }
                    (Op::Credit { key: k, .. }, Outcome::Refunded(back)) if tag(*k) == key => {
                        sums.back += back.unwrap_or(0);
                    }
                    (Op::Reset { key: k, .. } | Op::Halve { key: k, .. }, _) if tag(*k) == key => {
                        sums.resets += 1
                    }
                    _ => {}
                }
            }
            let begun = script.iter().take(usize::from(thread.done) + 1);
            let others = begun.filter(|op| keys_of(op).iter().any(|k| tag(*k) != key));
            sums.others += others.count() as u64;
            sums.pending += match script.get(usize::from(thread.done)).filter(|_| thread.log != 0) {
                Some(Op::Check { key: k, cost, .. } | Op::Charge { key: k, cost, .. }) if tag(*k) == key => {
                    *cost
                }
                Some(
                    Op::Burst { keys, .. }
                    | Op::Groups { keys, .. }
                    | Op::Counted { keys, .. }
                    | Op::Chain { keys, .. },
                ) => keys.iter().filter(|k| tag(**k) == key).count() as u64,
                _ => 0,
            };
        }
        sums
    }

    fn is_broken(&self, check: Check, s: &State, lists: &Lists) -> bool {
        let world = self.world;
        let layout = &world.table.geometry.layout;
        let (burst, apart) = (world.spec.burst * T, self.last - self.first);
        let lives = |key| s.words.iter().filter(move |word| layout.is_live_of(**word, layout.tag(key)));
        let owed = |words: &[u64], key, now| {
            let live = words.iter().filter(|word| layout.is_live_of(**word, layout.tag(key)));
            live.map(|word| layout.lead(*word, now)).sum::<u64>()
        };
        let of = |key| self.sums(key, s, lists);
        match check {
            Check::OneLive => self.keys.iter().any(|key| lives(*key).count() > 1),
            Check::ClaimsRise => s.recurred,
            Check::KeyEnvelope => self.keys.iter().any(|key| {
                let sums = of(*key);
                let anew = sums.resets + if apart < T { 0 } else { sums.others };
                let before = if apart == 0 { owed(&world.words, *key, self.first) } else { 0 };
                let most = (burst + apart).saturating_sub(before) + anew * (burst + apart);
                sums.admitted * T > most + sums.back
            }),
            Check::SetEnvelope => {
                let all: Vec<Sums> = self.keys.iter().map(|key| of(*key)).collect();
                let charged: u64 = all.iter().map(|sums| sums.admitted * T).sum();
                let back: u64 = all.iter().map(|sums| sums.back).sum();
                let resets: u64 = all.iter().map(|sums| sums.resets).sum();
                charged > (burst + apart) * (world.slots.len() as u64 + resets) + back
            }
            Check::Units(units) => self.keys.iter().any(|key| {
                let sums = of(*key);
                sums.admitted > units * (1 + sums.resets) + sums.back
            }),
            Check::NothingExtra => self.keys.iter().any(|key| {
                let sums = of(*key);
                let most = (sums.admitted + sums.pending) * T + owed(&world.words, *key, self.first);
                let most = most + self.claim_left(*key);
                lives(*key).any(|word| layout.lead(*word, self.last) > most)
            }),
            Check::Conserves => {
                let charged: u64 =
                    self.keys.iter().map(|key| of(*key)).map(|sums| sums.admitted * T - sums.back).sum();
                self.debts(&s.words) < self.debts(&world.words) + charged
            }
            Check::SomeoneAdmitted => self.have_ended(s) && of(self.keys[0]).admitted == 0,
            Check::Forgives => {
                self.have_ended(s) && {
                    let (charged, forgiven) = calls::charged_and_forgiven(world, s, lists);
                    let owed = world.words.iter().map(|word| layout.lead(*word, self.first)).sum::<u64>();
                    charged * T + owed > (burst + apart) * (world.slots.len() as u64 + forgiven)
                }
            }
            Check::SavedDebts => s.threads[..world.scripts.len()].iter().any(|thread| {
                let ended = &lists.outcomes[thread.outcomes as usize];
                ended
                    .iter()
                    .any(|outcome| matches!(outcome, Outcome::Saved(words) if self.is_bad(words, s, lists)))
            }),
            Check::SavedAll => {
                let layout = &world.table.geometry.layout;
                let lead = |word: &u64| layout.lead(*word, self.last);
                let mut outcomes = s.threads[..world.scripts.len()]
                    .iter()
                    .flat_map(|thread| &lists.outcomes[thread.outcomes as usize]);
                outcomes.any(|outcome| match outcome {
                    Outcome::Saved(saved) => saved.iter().zip(&world.words).any(|(a, b)| lead(a) < lead(b)),
                    _ => false,
                })
            }
            Check::MigratedDebts => {
                let charged = |key| self.sums(key, s, lists).admitted + self.sums(key, s, lists).pending;
                too_much(world, &self.keys, self.last, s, lists, charged)
            }
            Check::MigratedAll => lost(world, &self.keys, self.last, s, lists),
            Check::Progress | Check::AsCalls => unreachable!("they run calls"),
        }
    }

    /// Returns the most that a chain may leave of a key that it inserts and undoes: the lead of its claim.
    fn claim_left(&self, key: u64) -> u64 {
        let layout = &self.world.table.geometry.layout;
        let chained = |op: &Op| matches!(op, Op::Chain { keys, .. } if keys.iter().any(|k| tag(*k) == key));
        let known = self.world.words.iter().any(|word| layout.is_live_of(*word, layout.tag(key)));
        let inserts = !known && self.world.scripts.iter().flatten().any(chained);
        if inserts {
            layout.grace
        } else {
            0
        }
    }

    /// Returns whether a saved set holds a claim, or a debt above what its key was charged so far.
    fn is_bad(&self, saved: &[u64], s: &State, lists: &Lists) -> bool {
        let layout = &self.world.table.geometry.layout;
        saved.iter().any(|word| layout.is_claim(*word))
            || self.keys.iter().any(|key| {
                let live = saved.iter().filter(|word| layout.is_live_of(**word, layout.tag(*key)));
                let most = live.map(|word| layout.lead(*word, self.last)).max().unwrap_or(0);
                let sums = self.sums(*key, s, lists);
                most > (sums.admitted + sums.pending) * T
            })
    }

    /// Sums the debts of all words, including those of takeovers in progress (one instant).
    fn debts(&self, words: &[u64]) -> u64 {
        let layout = &self.world.table.geometry.layout;
        let debt = |word: &u64| match (layout.is_live(*word), word & 1) {
            (true, _) => layout.lead(*word, self.last),
            (_, 1) => layout.lead(word.wrapping_sub(1), self.last),
            _ => 0,
        };
        words.iter().map(debt).sum()
    }
}

/// Runs each thread alone, then fresh calls. Returns what goes wrong.
fn stuck<A: Access>(
    world: &World<A>,
    last: u64,
    tried: &mut Seen,
    probed: &mut Seen,
    s: &State,
    lists: &Lists,
) -> Option<String> {
    for thread in &s.threads[..world.scripts.len()] {
        let script = &world.scripts[usize::from(thread.script)];
        let number = usize::from(thread.done);
        if number == script.len() || !tried.is_new(&(s.words, thread.outcomes, thread.log, thread.script)) {
            continue;
        }
        world.set(&s.words);
        let before = &lists.outcomes[thread.outcomes as usize];
        let ended = alone(&world.watched(), lists.log(thread.log), || world.call(script, number, before));
        if ended.is_none() {
            return Some(format!("a call of thread {} alone does not end", thread.script));
        }
    }
    if !probed.is_new(&s.words) {
        return None;
    }
    let window = world.table.geometry.layout.window;
    let around: Vec<u64> = (0..world.table.slots()).map(|number| world.slot(number).get()).collect();
    for key in [1, 77] {
        for (now, drained) in [(last, false), (last + 64, false), (last + 2 * window, true)] {
            world.set(&s.words);
            if drained {
                // Everything else must have gone, so that the watched words are all there is.
                world.surround(now);
            }
            let request = Request { limit: &world.limit, now, cost: 1, room: 0 };
            let decision = world.table.check_ex(&request, key, None).expect("its own limit");
            let after = world.get();
            for (number, word) in around.iter().enumerate() {
                world.slot(number).set(*word);
            }
            if let Some(what) = amiss(world, s, key, decision.verdict, after, drained) {
                return Some(format!("a fresh call of key {key} {} later {what}", now - last));
            }
        }
    }
    None
}

/// Returns what is wrong with how a fresh call ended.
fn amiss<A: Access>(
    world: &World<A>,
    s: &State,
    key: u64,
    verdict: Verdict,
    after: [u64; MOST],
    drained: bool,
) -> Option<String> {
    let layout = &world.table.geometry.layout;
    let words = &s.words[..world.slots.len()];
    let claimed = words.iter().any(|word| layout.is_claim_of(*word, layout.tag(key)));
    if !verdict.passes() && !claimed && after != s.words {
        return Some(format!("is answered {verdict:?} and writes"));
    }
    let blocked = words.iter().all(|word| layout.is_claim(*word) || layout.is_empty(*word));
    let contended =
        verdict == Verdict::Contended && !(blocked && world.table.policy() == FullPolicy::Inherit);
    (drained && !verdict.passes() || contended).then(|| format!("is answered {verdict:?}"))
}

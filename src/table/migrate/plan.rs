//! Computes what each set of a new table gets from the sets of the old one.
//!
//! ```text
//!  old tag   [  dropped  |  low bits  ]        new tag = its low bits, or 1 if they are 0 (as for a hash)
//!  old TAT - now, in old q-units  ------>  ticks  ------>  new q-units, rounded up, at most H of the new table
//!                                 ------>  units  ----->  if both limits are known and units are kept
//!  old count                      ------>  units  ----->  in other bits, with the end of its window in other units
//! ```
//!
//! A table that is coarser than a tick floors its clock. So its TATs may lie up to a q-unit minus a tick before those
//! of an exact bucket on the finer clock of the new table. The plan adds that much to a debt that keeps its time.
#![forbid(unsafe_code)]

use super::report::Migrated;
use crate::algorithms::{change, keeps, Change, State};
use crate::keys::home_line;
use crate::limit::params::{Params, FLAG_COUNTED};
use crate::limit::{Algorithm, LimitError};
use crate::sync::Ordering;
use crate::table::layout::geometry::{Content, Geometry, SLOTS_PER_LINE};
use crate::table::layout::image::Line;
use crate::table::layout::policy::FullPolicy;
use crate::table::layout::word::{Layout, Tag};

/// Number of slots in a set.
const SLOTS: usize = 2 * SLOTS_PER_LINE;

/// A migration: both geometries and clocks, and the slots of the old table.
pub(super) struct Plan<'a> {
    old: &'a [Line],
    pub from: Geometry,
    pub to: Geometry,
    /// The limit of all keys in the old and in the new table, if that decides what becomes of a word; and what is kept.
    limits: Option<([Params; 2], Change)>,
    now: u64,
    /// `now` in the q-units of the old and of the new table.
    from_q: u64,
    to_q: u64,
    /// Ticks from the old table's reading of the clock to the new one's, plus what a coarse old table adds.
    late: u64,
}

/// A debt as the new table holds it.
#[derive(Clone, Copy)]
struct Debt {
    /// Never 0.
    tag: u64,
    /// Never 0.
    lead: u64,
    /// Whether the middle of the old line lies in the second line of the new set, or beyond.
    second: bool,
}

/// The largest debts of a new set, one for each tag; a free place has tag and lead 0.
#[derive(Default)]
struct Kept {
    tags: [u64; SLOTS],
    leads: [u64; SLOTS],
    second: [bool; SLOTS],
    count: usize,
}

impl<'a> Plan<'a> {
    /// Makes a plan. `limits` are those of all keys in the old and in the new table, to keep units.
    pub fn new(
        old: &'a [Line],
        [from, to]: [Geometry; 2],
        limits: Option<[Params; 2]>,
        now: u64,
    ) -> Result<Plan<'a>, LimitError> {
        let limits = match limits {
            Some([old, new]) => Some((keeps(&old, &new).map(|()| [old, new])?, Change::KeepUnits)),
            None if from.is_gcra() => None,
            // The weight of the previous window depends on the length of both.
            None if from.content == Content::Debts(Algorithm::SlidingCounter) && from.shr != to.shr => {
                return Err(LimitError::OtherWindow);
            }
            None => Some(([from, to].map(|g| any_limit(&g)), Change::KeepTime)),
        };
        let floor = |shr: u8| now >> (shr & 63) << (shr & 63);
        let unit = |shr: u8| 1u64 << (shr & 63);
        // With equal resolutions both are 0. With different ones neither is negative.
        let apart = floor(from.shr).wrapping_sub(floor(to.shr));
        let coarse = unit(from.shr).saturating_sub(unit(to.shr));
        Ok(Plan {
            old,
            from,
            to,
            limits,
            now,
            from_q: from.clock_q(now),
            to_q: to.clock_q(now),
            late: apart.wrapping_add(coarse),
        })
    }

    /// Returns the number of sets of the new table.
    pub fn sets(&self) -> u64 {
        self.to.lines as u64 / 2
    }

    /// Returns the words of a new set, line by line. Adds to the report what became of the debts.
    pub fn fill(&self, set: u64, report: &mut Migrated) -> [[u64; SLOTS_PER_LINE]; 2] {
        let (first, old) = self.sources(set);
        let mut kept = Kept::default();
        let (mut copies, mut full) = (0u64, false);
        self.debts(set, first, old).for_each(|(debt, is_cut)| {
            copies += 1;
            report.clamped += is_cut as u64;
            full |= kept.keep(&self.to, debt);
        });
        // Counted at the end: a larger debt of a tag that found no room may have come later.
        let no_slot = |debt: &Debt| kept.find(debt.tag).is_none();
        let dropped =
            if full { self.debts(set, first, old).filter(|(d, _)| no_slot(d)).count() as u64 } else { 0 };
        let copied = kept.count as u64;
        report.copied += copied;
        report.dropped += dropped;
        // Saturates, because the old table may change meanwhile, against the rules.
        report.merged += copies.saturating_sub(copied + dropped);

        let floor = self.floor(old);
        let (floor, rest) = match self.to.policy {
            FullPolicy::Inherit => (floor, self.debt_of_all(floor)),
            FullPolicy::Deny => (floor, self.tombstone(floor)),
            FullPolicy::Admit | FullPolicy::Sampled => {
                report.opened += (floor != 0) as u64;
                (0, 0)
            }
        };
        self.place(&kept, floor, rest)
    }

    /// Returns the old lines whose keys may belong to a new set, after the number of the first.
    fn sources(&self, set: u64) -> (u64, &'a [Line]) {
        // The smallest high half of a hash that belongs to this line or a later one. A table never has 0 lines.
        let start = |line: u64| (line << 32).div_ceil((self.to.lines as u64).max(1));
        let low = home_line(start(2 * set) << 32, self.from.lines) & !1;
        let high = home_line((start(2 * set + 2) - 1) << 32, self.from.lines) | 1;
        (low as u64, self.old.get(low..=high).unwrap_or_else(|| impossible!(&[])))
    }

    /// Iterates over the debts in these lines: each as the new set would hold it, and whether it was cut.
    fn debts(&self, set: u64, first: u64, old: &'a [Line]) -> impl Iterator<Item = (Debt, bool)> + '_ {
        let (from, to) = (&self.from.layout, &self.to.layout);
        (first..).zip(old).flat_map(move |(number, line)| {
            // The new line of the hash in the middle of this line.
            let middle = (2 * number + 1) * self.to.lines as u64 / (2 * self.from.lines as u64).max(1);
            line.words.iter().filter_map(move |slot| {
                // ORDERING: Relaxed; single word, value only.
                let word = slot.load(Ordering::Relaxed);
                let lead = from.lead(word, self.from_q);
                (lead != 0 && from.is_live(word)).then(|| {
                    let (lead, is_cut) = self.convert(lead);
                    let tag = to.tag(from.tag_field(word) >> from.bits).0;
                    (Debt { tag, lead, second: middle > 2 * set }, is_cut)
                })
            })
        })
    }

    /// Converts a lead to q-units of the new table. Returns also whether it was cut to the horizon, or its count to the
    /// bits.
    fn convert(&self, lead: u64) -> (u64, bool) {
        let (from, to) = (&self.from, &self.to);
        if let Some(([old, new], how)) = &self.limits {
            return change(old, new, lead, self.now, *how);
        }
        // In 2^-shl ticks of the old table. H + S in ticks fits 63 bits and a lead in q-units 52. Each table has at
        // most one shift that is not 0, so all stays below 2^127.
        let exact = ((lead as u128) << from.shr) + ((self.late as u128) << from.shl);
        let lead = (exact << to.shl).div_ceil(1 << (from.shl + to.shr));
        (lead.min(to.horizon as u128) as u64, lead > to.horizon as u128)
    }

    /// Returns the most that a key in none of these old sets may owe, as a lead of the new table.
    fn floor(&self, old: &[Line]) -> u64 {
        let (layout, now_q) = (&self.from.layout, self.from_q);
        let inherit = matches!(self.from.policy, FullPolicy::Inherit);
        if !inherit && !matches!(self.from.policy, FullPolicy::Deny) {
            return 0;
        }
        // Returns what an absent key would have to wait for, or take over, in this slot.
        let holds = |word: u64| {
            let is_debt =
                if layout.is_claim(word) { Layout::is_takeover(word) } else { layout.is_live(word) };
            let is_debt = is_debt
                || layout.tombstone_lead(word, now_q) > layout.grace
                || inherit && layout.holds_debt(word, now_q);
            if is_debt {
                layout.lead(word, now_q)
            } else {
                0
            }
        };
        let of_set = |pair: &[Line]| {
            // ORDERING: Relaxed; single words, values only.
            let words = pair.iter().flat_map(|line| &line.words).map(|slot| slot.load(Ordering::Relaxed));
            words.map(holds).min().unwrap_or_else(|| impossible!(0))
        };
        match old.chunks_exact(2).map(of_set).max() {
            None | Some(0) => 0,
            Some(lead) if self.to.is_gcra() => self.convert(lead).0,
            // A time without a count, in whole units of it.
            Some(lead) => {
                let (from, to) = (&self.from, &self.to);
                let ahead = State::split(from.shl.into(), lead).ahead;
                let end = (u128::from(self.now >> from.shr) + u128::from(ahead)) << from.shr;
                let ahead = end.div_ceil(1 << to.shr) - u128::from(self.now >> to.shr);
                (ahead << to.shl).min(to.horizon.into()) as u64
            }
        }
    }

    /// Returns an EMPTY word with a debt that the next owner of the slot inherits; 0 for no debt.
    fn debt_of_all(&self, lead: u64) -> u64 {
        let odd = self.to_q.wrapping_add(lead) & self.to.layout.mask | 1;
        if lead == 0 {
            0
        } else {
            odd
        }
    }

    /// Returns an EMPTY word that nobody takes before this lead has drained; 0 for no lead.
    fn tombstone(&self, lead: u64) -> u64 {
        let layout = &self.to.layout;
        // It is taken once only `grace` of it is left. It is even, and never 0, which would be a fresh slot.
        let ahead = (lead + layout.grace + 2).min(layout.window);
        let even = self.to_q.wrapping_add(ahead) & layout.mask & !1;
        match (lead, even) {
            (0, _) => 0,
            (_, 0) => 2,
            _ => even,
        }
    }

    /// Puts debts, none below the floor, into the lines where their keys are searched first, if there is room. Puts
    /// `rest` into the slots that are left.
    fn place(&self, kept: &Kept, floor: u64, rest: u64) -> [[u64; SLOTS_PER_LINE]; 2] {
        let (mut first, mut second) = ([0; SLOTS_PER_LINE], [0; SLOTS_PER_LINE]);
        let debts = kept.tags.iter().zip(&kept.leads).zip(&kept.second).take(kept.count);
        for ((tag, lead), is_second) in debts {
            // A floor is a time to wait for. In a word that counts it would also count units: only tombstones hold it.
            let lead = if self.to.is_gcra() { (*lead).max(floor) } else { *lead };
            let word = self.to.layout.live(Tag(*tag), self.to_q.wrapping_add(lead));
            let (near, far) = if *is_second { (&mut second, &mut first) } else { (&mut first, &mut second) };
            if let Some(slot) = near.iter_mut().chain(far).find(|slot| **slot == 0) {
                *slot = word;
            }
        }
        [first, second].map(|line| line.map(|word| if word == 0 { rest } else { word }))
    }
}

/// Returns a limit of a table that counts, with all that is known of it if nobody names it.
fn any_limit(g: &Geometry) -> Params {
    let (algorithm, horizon_q, window_q) = (g.content.number(), g.horizon, g.layout.window);
    let any = g.unlimited().0;
    Params { flags: FLAG_COUNTED, algorithm, horizon_q, window_q, guard: g.guard, ..any }
}

impl Kept {
    /// Returns the place of a tag. It compares all places, which needs no branch.
    fn find(&self, tag: u64) -> Option<usize> {
        let bits = self.tags.iter().zip(0u32..).fold(0u32, |bits, (t, i)| bits | ((*t == tag) as u32) << i);
        (bits != 0).then(|| bits.trailing_zeros() as usize)
    }

    /// Keeps a debt if it is among the largest. Returns true if there was no room for all.
    fn keep(&mut self, to: &Geometry, mut debt: Debt) -> bool {
        let (at, is_full) = match self.find(debt.tag) {
            Some(same) => {
                let old = self.leads.get(same).copied().unwrap_or_else(|| impossible!(0));
                // Owes at least what either does. As a number it may be less: words that count can do so in two ways.
                debt.lead = to.merge(debt.lead, old);
                if debt.lead == old {
                    return false;
                }
                (same, false)
            }
            None if self.count < SLOTS => {
                self.count += 1;
                (self.count - 1, false)
            }
            None => {
                let least = self.leads.iter().zip(0..).min();
                match least {
                    Some((lead, at)) if debt.lead > *lead => (at, true),
                    _ => return true,
                }
            }
        };
        let place = (self.tags.get_mut(at), self.leads.get_mut(at), self.second.get_mut(at));
        if let (Some(tag), Some(lead), Some(second)) = place {
            (*tag, *lead, *second) = (debt.tag, debt.lead, debt.second);
        }
        is_full
    }
}

#[cfg(all(test, not(tatcell_loom)))]
#[path = "plan_tests.rs"]
mod tests;

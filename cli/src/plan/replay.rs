//! Replays the records through a table of the library, under one limit and one policy.
//!
//! Every record is asked, also those of keys outside the sample: the table has a fixed size, and its full sets and the
//! refused share are those of all keys.

use std::time::Duration;

use tatcell::{
    full_set_ppb, lines_for, lines_for_load, Chain, Counters, ExclusiveTable, FullPolicy, LimitSpec, Line,
    Link, Request, Sweeper, Table, TableLimit, TableOptions, Tracking, MAX_LINKS,
};

use super::keys::{keep, Distinct, Keys, NO_KEY};
use super::live::Live;
use super::order::Held;
use super::tiers::{Tier, Tiers};
use crate::limit::{Chained, Rung};
use crate::units::HZ;

/// A window of time with its counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Its start, in nanoseconds since 1970.
    pub start: u64,
    /// Refused units' requests in it.
    pub refused: u64,
    /// All requests in it.
    pub requests: u64,
}

/// A table and its part in a limit.
struct Asking {
    table: ExclusiveTable<'static>,
    limit: TableLimit,
    /// Which of the keys of a record it counts by: its own, or from 1 on the prefixes.
    place: usize,
    /// Numbers of the prefixes that it counts by; a record has the number of its own key.
    numbers: Option<Keys>,
    live: Live,
    refused: u64,
    met_full_set: u64,
    /// Sweeps by the clock of the log. After a gap no old debt counts.
    sweeper: Sweeper,
}

/// Tables that are asked for every record: one, or one for each limit of several that a request must all conform to.
pub struct Replay {
    /// The limit.
    pub asked: Chained,
    /// What a full set does.
    pub policy: FullPolicy,
    /// What the table counted.
    pub counters: Counters,
    /// The window with the most refused.
    pub worst: Window,
    asking: Vec<Asking>,
    /// The limits of a ladder, in the one table.
    tiers: Option<Tiers>,
    refused: Vec<u64>,
    /// The keys of which a request was refused, also those that are not numbered.
    pub hit: Distinct,
    window: u64,
    current: Window,
}

/// What a plan's tables have in common.
#[derive(Clone, Copy)]
pub struct Common {
    /// The seed of the hash.
    pub seed: [u8; 16],
    /// Slots of each table.
    pub slots: usize,
    /// The length of the windows of which the worst is reported.
    pub window: Duration,
    /// Most keys that are counted exactly.
    pub max_keys: usize,
}

/// Makes a table for one limit. Its memory is not given back: it lasts as long as the program's work.
pub fn table(
    spec: LimitSpec,
    policy: FullPolicy,
    seed: [u8; 16],
    slots: usize,
) -> Result<ExclusiveTable<'static>, String> {
    table_of(TableOptions::new(spec), policy, seed, slots)
}

fn table_of(
    options: TableOptions,
    policy: FullPolicy,
    seed: [u8; 16],
    slots: usize,
) -> Result<ExclusiveTable<'static>, String> {
    let mut lines = Vec::new();
    lines.resize_with(lines_for(slots), Line::new);
    let options = options.policy(policy).seed(seed).tick_hz(HZ);
    Table::init_exclusive(lines.leak(), &options).map_err(|error| error.to_string())
}

impl Asking {
    fn new(spec: LimitSpec, policy: FullPolicy, place: usize, common: &Common) -> Result<Asking, String> {
        Asking::around(table(spec, policy, common.seed, common.slots)?, spec, (place > 0, place), common)
    }

    /// Asks this table. `numbers`: whether it numbers its keys by itself.
    fn around(
        table: ExclusiveTable<'static>,
        spec: LimitSpec,
        (numbers, place): (bool, usize),
        common: &Common,
    ) -> Result<Asking, String> {
        let limit = table.limit(&spec).map_err(|error| error.to_string())?;
        Ok(Asking {
            limit,
            place,
            numbers: numbers.then(|| Keys::new(common.max_keys, Vec::new())),
            live: Live::new(table.info().horizon),
            refused: 0,
            met_full_set: 0,
            sweeper: Sweeper::new(),
            table,
        })
    }

    fn hash(&self, held: &Held) -> u64 {
        held.hash_of(self.place)
    }

    fn link(&self, held: &Held) -> Link<'_> {
        Link::hash(&self.table, &self.limit, self.hash(held), held.cost)
    }

    /// Takes note of a key's debt, and of a full set.
    fn note(&mut self, held: &Held, hash: u64, (reset_after, tracking): (u64, Tracking), one_in: u64) {
        self.met_full_set += u64::from(tracking != Tracking::Tracked);
        let (key, one_in) = match &mut self.numbers {
            None => (held.key, one_in),
            Some(numbers) => {
                let key = numbers.number(&hash.to_le_bytes(), hash).0;
                while numbers.is_over() {
                    self.live.keep(&numbers.halve());
                }
                // The last one may have been dropped again.
                let key = if key == NO_KEY {
                    key
                } else {
                    numbers.find(&hash.to_le_bytes(), hash).unwrap_or(NO_KEY)
                };
                (key, numbers.one_in())
            }
        };
        if key != NO_KEY && tracking != Tracking::Untracked {
            self.live.until(key as usize, held.time, reset_after, one_in);
        }
    }
}

impl Replay {
    /// Makes the tables.
    pub fn new(
        asked: Chained,
        places: &[usize],
        policy: FullPolicy,
        common: &Common,
    ) -> Result<Replay, String> {
        let make = |(rung, place): (&Rung, &usize)| {
            let made = Asking::new(rung.asked.spec, policy, *place, common);
            made.map_err(|what| format!("limit {:?}: {what}", rung.asked.text))
        };
        let mut tiers = None;
        let asking = match (&asked.ladder, &asked.rungs[..]) {
            (Some(ladder), [rung, ..]) => {
                let fail = |what: String| format!("limit {:?}: {what}", asked.text);
                let spec = rung.asked.spec;
                let options = ladder.table_options(&spec).map_err(|error| fail(error.to_string()))?;
                let table = table_of(options, policy, common.seed, common.slots).map_err(fail)?;
                tiers = Some(Tiers::new(&table, ladder, &spec, places).map_err(fail)?);
                vec![Asking::around(table, spec, (true, 0), common).map_err(fail)?]
            }
            _ => asked.rungs.iter().zip(places).map(make).collect::<Result<_, _>>()?,
        };
        Ok(Replay {
            policy,
            counters: Counters::default(),
            worst: Window::default(),
            asking,
            tiers,
            refused: Vec::new(),
            hit: Distinct::new(common.max_keys),
            window: u64::try_from(common.window.as_nanos()).unwrap_or(u64::MAX).max(1),
            current: Window::default(),
            asked,
        })
    }

    /// Starts to load what the tables know of a record.
    pub fn prefetch(&self, held: &Held) {
        if let (Some(tiers), [one]) = (&self.tiers, &self.asking[..]) {
            tiers.hashes(held).for_each(|hash| one.table.prefetch(&[hash]));
            return;
        }
        self.asking.iter().for_each(|asking| asking.table.prefetch(&[asking.hash(held)]));
    }

    /// Asks the tables whether the request passes. `one_in`: for how many keys each numbered one stands.
    pub fn ask(&mut self, held: &Held, one_in: u64) -> Result<bool, String> {
        self.asking.iter().for_each(|asking| asking.sweeper.sweep(&asking.table, held.time));
        let start = held.time - held.time % self.window;
        if start != self.current.start {
            self.close();
            self.current = Window { start, ..Window::default() };
        }
        self.current.requests += 1;
        let passes = match (&mut self.asking[..], &mut self.tiers) {
            ([one], Some(tiers)) => {
                let (mut answers, mut count) = ([(0, (0, Tracking::Tracked)); MAX_LINKS], 0);
                let passes =
                    tiers.ask(&one.table, held, &mut self.counters, |hash, reset_after, tracking| {
                        answers[count] = (hash, (reset_after, tracking));
                        count += 1;
                    })?;
                one.refused += u64::from(!passes);
                answers[..count].iter().for_each(|(hash, answer)| one.note(held, *hash, *answer, one_in));
                passes
            }
            ([one], None) => {
                let request = Request { limit: &one.limit, now: held.time, cost: held.cost, room: 0 };
                let answer = one.table.check_ex(&request, one.hash(held), Some(&mut self.counters));
                let answer = answer.map_err(|error| error.to_string())?;
                one.refused += u64::from(!answer.passes());
                one.note(held, one.hash(held), (answer.reset_after, answer.tracking), one_in);
                answer.passes()
            }
            (several, _) => {
                let mut answers = [(0, Tracking::Tracked); MAX_LINKS];
                let decision = {
                    let mut links = [several[0].link(held); MAX_LINKS];
                    several.iter().zip(&mut links).for_each(|(asking, to)| *to = asking.link(held));
                    let chain = Chain::new(&links[..several.len()]).map_err(|error| error.to_string())?;
                    chain.check_ex(held.time, Some(&mut self.counters), |at, answer| {
                        answers[at] = (answer.reset_after, answer.tracking);
                    })
                };
                if !decision.passes() {
                    several[decision.policy as usize].refused += 1;
                }
                for (asking, answer) in several.iter_mut().zip(answers) {
                    asking.note(held, asking.hash(held), answer, one_in);
                }
                decision.passes()
            }
        };
        if !passes {
            self.current.refused += 1;
            if held.key == NO_KEY {
                self.hit.add(held.hash);
            } else {
                let key = held.key as usize;
                if key >= self.refused.len() {
                    self.refused.resize(key + 1, 0);
                }
                if self.refused[key] == 0 {
                    self.hit.add(held.hash);
                }
                self.refused[key] += 1;
            }
        }
        Ok(passes)
    }

    fn close(&mut self) {
        if self.current.refused > self.worst.refused {
            self.worst = self.current;
        }
    }

    /// Ends the replay.
    pub fn finish(&mut self) {
        self.close();
    }

    /// Returns how many requests of a key were refused.
    pub fn refused(&self, key: usize) -> u64 {
        self.refused.get(key).copied().unwrap_or(0)
    }

    /// Returns how many requests were refused, and how many were asked.
    pub fn totals(&self) -> (u64, u64) {
        let c = &self.counters;
        let refused = c.non_conforming + c.never + c.contended;
        (refused, refused + c.conforming + c.shadow)
    }

    /// Returns what each tier of a ladder refused.
    pub fn tiers(&self) -> impl Iterator<Item = Tier> + '_ {
        self.tiers.iter().flat_map(Tiers::all)
    }

    /// Returns what there is to say of each table. `one_in`: for how many keys each numbered one stands.
    pub fn loads(&self, one_in: u64) -> impl Iterator<Item = Load> + '_ {
        self.asking.iter().map(move |asking| {
            let (slots, peak_live) = (asking.table.slots(), asking.live.peak);
            let ppm = (peak_live.saturating_mul(1_000_000) / slots as u64).min(1_000_000);
            Load {
                slots,
                bytes: lines_for(slots) * 64,
                peak_live,
                one_in: asking.numbers.as_ref().map_or(one_in, Keys::one_in),
                ppm,
                full_ppb: full_set_ppb(ppm),
                refused: asking.refused,
                met_full_set: asking.met_full_set,
                rate_error_ppb: asking.limit.info().rate_error_ppb,
            }
        })
    }

    /// Drops the keys that are not in the sample any more.
    pub fn keep(&mut self, to: &[u32]) {
        let known = self.refused.len().min(to.len());
        keep(&mut self.refused, 1, &to[..known]);
        let own = self.asking.iter_mut().filter(|asking| asking.numbers.is_none());
        own.for_each(|asking| asking.live.keep(to));
    }
}

/// What there is to say of a table.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Its slots.
    pub slots: usize,
    /// Its bytes.
    pub bytes: usize,
    /// The most keys that were in debt at a time.
    pub peak_live: u64,
    /// For how many keys each of these stands: above 1 their number is an estimate.
    pub one_in: u64,
    /// Those keys in millionths of the slots.
    pub ppm: u64,
    /// The chance of a full set then, in billionths.
    pub full_ppb: u64,
    /// Requests that this limit was the first to refuse.
    pub refused: u64,
    /// Requests that met a full set of it.
    pub met_full_set: u64,
    /// By how much the rate is slower than asked for, in billionths: a table's word rounds it.
    pub rate_error_ppb: u64,
}

/// Returns the bytes of the smallest table in which `live` keys in debt meet a full set with at most this chance.
pub fn bytes_for(live: u64, target_ppb: u64) -> usize {
    lines_for_load(live.max(1), target_ppb) * 64
}

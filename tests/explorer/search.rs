//! Breadth-first search over every interleaving of a world, with the properties checked in every state.
//!
//! States are packed into 64-bit words and kept whole, in the order found: that list is the queue, the set
//! of visited states (with a table of indices) and, with one parent per state, the trace of a violation.
//! Threads with equal scripts are interchangeable and kept sorted.

use super::model::{Coin, Kind, Op, Pc, Policy, State, Thread, Word, World, ADMIT, CONTENDED, MAX_SLOTS};
use std::collections::HashSet;

/// Most steps a thread that runs alone may need: four passes over three slots, their CASes and a drop fit.
const SOLO_STEPS: usize = 40;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// At most one LIVE word per key.
    OneLive,
    /// Net charges of a key fit a token bucket over the clock readings used.
    KeyEnvelope,
    /// The same for every window that ends at the last reading (one key, nothing forgets it); a refund counts
    /// only with its charge.
    Windows,
    /// The payloads account for every net charge in the set (equal clocks).
    SetConserves,
    /// The net charges of the whole set fit one token bucket per slot over the clock readings used.
    SetEnvelope,
    /// When all have answered, the key X was admitted.
    SomeoneAdmitted,
    /// No word carries more debt than was charged (a refused call charges nothing).
    NothingExtra,
    /// From every state every thread, and a fresh one, ends when it runs alone.
    Progress,
}

pub struct Found {
    pub states: usize,
    pub violation: Option<String>,
}

struct Visited {
    stride: usize,
    words: Vec<u64>,
    parents: Vec<u32>,
    table: Vec<u32>,
}

impl Visited {
    fn hash(words: &[u64]) -> usize {
        let mut h = 0u64;
        for w in words {
            h = (h.rotate_left(23) ^ w).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        (h ^ h >> 31) as usize
    }

    fn len(&self) -> usize {
        self.parents.len()
    }

    fn get(&self, i: usize) -> &[u64] {
        &self.words[i * self.stride..(i + 1) * self.stride]
    }

    fn insert(&mut self, packed: &[u64], parent: usize) -> bool {
        if self.len() * 2 >= self.table.len() {
            let mask = (self.table.len() * 2).max(1 << 16) - 1;
            let mut table = vec![u32::MAX; mask + 1];
            for i in 0..self.len() {
                let mut at = Self::hash(self.get(i)) & mask;
                while table[at] != u32::MAX {
                    at = (at + 1) & mask;
                }
                table[at] = i as u32;
            }
            self.table = table;
        }
        let mask = self.table.len() - 1;
        let mut at = Self::hash(packed) & mask;
        while self.table[at] != u32::MAX {
            if self.get(self.table[at] as usize) == packed {
                return false;
            }
            at = (at + 1) & mask;
        }
        self.table[at] = self.len() as u32;
        self.words.extend_from_slice(packed);
        self.parents.push(parent as u32);
        true
    }
}

fn pack_thread(t: &Thread) -> [u64; 2] {
    let pc = t.pc as u64;
    let small = u64::from(t.script) | u64::from(t.op) << 2 | pc << 5 | u64::from(t.at) << 7;
    let small = small | u64::from(t.own.0) << 9 | u64::from(t.known.0) << 11;
    let seen = t.seen.iter().fold(0, |acc, w| acc << 16 | u64::from(w.0));
    assert!(t.tat < 4096 && t.verdicts < 1 << 15, "the thread does not fit its packing");
    [
        small
            | u64::from(t.verdicts) << 13
            | u64::from(t.known.1 .0) << 28
            | u64::from(t.stored) << 44
            | u64::from(t.tat) << 52,
        seen | u64::from(t.own.1 .0) << 48,
    ]
}

fn unpack_thread(w: &[u64]) -> Thread {
    let bits = |from: u32, n: u32| w[0] >> from & ((1 << n) - 1);
    let seen = |i: u32| Word((w[1] >> (32 - 16 * i)) as u16);
    Thread {
        script: bits(0, 2) as u8,
        op: bits(2, 3) as u8,
        pc: [Pc::Scan, Pc::Act, Pc::Drop][bits(5, 2) as usize],
        at: bits(7, 2) as u8,
        seen: [seen(0), seen(1), seen(2)],
        own: (bits(9, 2) as u8, Word((w[1] >> 48) as u16)),
        known: (bits(11, 2) as u8, Word(bits(28, 16) as u16)),
        tat: bits(52, 12) as u16,
        stored: bits(44, 8) as u8,
        verdicts: bits(13, 15) as u16,
    }
}

pub struct Search {
    world: World,
    checks: Vec<Check>,
    threads: usize,
    first: i32,
    last: i32,
    solo: HashSet<[u64; 3]>,
    probed: HashSet<[Word; MAX_SLOTS]>,
}

impl Search {
    pub fn new(world: World, checks: &[Check]) -> Search {
        let now = |op: &Op| match op {
            Op::Charge { now, .. } | Op::Refund { now } | Op::Sweep { now, .. } => *now,
        };
        let readings: Vec<i32> = world.scripts.iter().flatten().map(now).collect();
        let (first, last) = (*readings.iter().min().unwrap(), *readings.iter().max().unwrap());
        let threads = world.scripts.len();
        for script in &world.scripts {
            let refunds = script.iter().filter(|op| matches!(op, Op::Refund { .. })).count();
            assert!(refunds <= 1 && script.len() <= 5, "a script is too long for the packing");
        }
        let (solo, probed) = (HashSet::new(), HashSet::new());
        Search { world, checks: checks.to_vec(), threads, first, last, solo, probed }
    }

    fn pack(&self, s: &State, out: &mut Vec<u64>) {
        out.clear();
        out.push(s.slots.iter().fold(0, |acc, w| acc << 16 | u64::from(w.0)));
        for t in &s.threads[..self.threads] {
            out.extend(pack_thread(t));
        }
        // Sorted by script first: only threads with equal scripts are interchangeable.
        for i in 1..self.threads {
            let mut j = i;
            while j > 0 {
                let (a, b) = (2 * j - 1, 2 * j + 1);
                if (out[a] & 3, out[a], out[a + 1]) <= (out[b] & 3, out[b], out[b + 1]) {
                    break;
                }
                out.swap(a, b);
                out.swap(a + 1, b + 1);
                j -= 1;
            }
        }
    }

    fn unpack(&self, w: &[u64]) -> State {
        let mut s = State::default();
        for i in 0..MAX_SLOTS {
            s.slots[i] = Word((w[0] >> (16 * (MAX_SLOTS - 1 - i))) as u16);
        }
        for i in 0..self.threads {
            s.threads[i] = unpack_thread(&w[1 + 2 * i..]);
        }
        s
    }

    /// Explores everything reachable; stops at a violation, or at `cap` states.
    pub fn run(mut self, cap: usize) -> Found {
        let mut start = State { slots: self.world.initial, ..State::default() };
        for i in 0..self.threads {
            let equal = (0..=i).find(|j| self.world.scripts[*j] == self.world.scripts[i]);
            start.threads[i].script = equal.unwrap() as u8;
        }
        let mut seen =
            Visited { stride: 1 + 2 * self.threads, words: vec![], parents: vec![], table: vec![] };
        let mut packed = Vec::new();
        self.pack(&start, &mut packed);
        seen.insert(&packed, 0);
        let mut next = 0;
        while next < seen.len() && seen.len() < cap {
            let s = self.unpack(seen.get(next));
            if let Some(what) = self.violated(&s) {
                return Found { states: seen.len(), violation: Some(self.trace(&seen, next, &what)) };
            }
            for who in 0..self.threads {
                if self.world.done(&s.threads[who]) {
                    continue;
                }
                let mut coin = Coin::default();
                let after = self.world.step(&s, who, &mut coin);
                self.pack(&after, &mut packed);
                seen.insert(&packed, next);
                if coin.asked {
                    let after = self.world.step(&s, who, &mut Coin { heads: true, asked: false });
                    self.pack(&after, &mut packed);
                    seen.insert(&packed, next);
                }
            }
            next += 1;
        }
        Found { states: seen.len(), violation: None }
    }

    fn trace(&self, seen: &Visited, mut i: usize, what: &str) -> String {
        let mut lines = vec![];
        loop {
            let s = self.unpack(seen.get(i));
            let mut line = format!("{:?}", &s.slots[..self.world.slots]);
            for t in &s.threads[..self.threads] {
                line += &format!(
                    " | T{} op{} {:?}{} {:?}",
                    t.script,
                    t.op,
                    t.pc,
                    t.at,
                    &t.seen[..self.world.slots]
                );
                line += &format!(" own {:?} verdicts {:o}", t.own, t.verdicts);
            }
            lines.push(line);
            if i == 0 {
                break;
            }
            i = seen.parents[i] as usize;
        }
        lines.reverse();
        format!("{what} after {} steps\n{}", lines.len() - 1, lines.join("\n"))
    }

    fn violated(&mut self, s: &State) -> Option<String> {
        let mut net = [0; 4];
        let mut gross = [0; 4];
        for t in &s.threads[..self.threads] {
            for (i, op) in self.world.scripts[usize::from(t.script)].iter().enumerate() {
                match op {
                    Op::Charge { key, units, .. } if t.verdict(i) == ADMIT => {
                        net[usize::from(*key)] += units * self.world.unit;
                        gross[usize::from(*key)] += units * self.world.unit;
                    }
                    Op::Refund { .. } => {
                        let Op::Charge { key, .. } = self.world.scripts[usize::from(t.script)][i - 1] else {
                            unreachable!()
                        };
                        if i < usize::from(t.op) && t.stored > 0 {
                            // Under skew a refunded charge counts as never made.
                            let whole = self.first < self.last;
                            net[usize::from(key)] -=
                                if whole { self.world.unit } else { i32::from(t.stored) };
                        }
                    }
                    _ => {}
                }
            }
        }
        let slots = &s.slots[..self.world.slots];
        for check in self.checks.clone() {
            let broken = match check {
                Check::OneLive => (0..4).any(|k| slots.iter().filter(|w| w.is(Kind::Live, k)).count() > 1),
                Check::KeyEnvelope => (0..4).any(|k| net[usize::from(k)] > self.envelope(k)),
                Check::Windows => self.windows_overrun(s),
                Check::SetConserves => {
                    let sum = |words: &[Word]| words.iter().map(|w| self.debt(*w)).sum::<i32>();
                    sum(slots) - sum(&self.world.initial) < net.iter().sum()
                }
                Check::SetEnvelope => {
                    let one = self.world.limit + (self.last - self.first);
                    net.iter().sum::<i32>() > one * slots.len() as i32
                }
                Check::SomeoneAdmitted => {
                    s.threads[..self.threads].iter().all(|t| self.world.done(t)) && gross[0] == 0
                }
                Check::NothingExtra => (0..4).any(|k| {
                    let before = self.world.initial.iter().filter(|w| w.is(Kind::Live, k));
                    let before: i32 = before.map(|w| (w.payload() - self.last).max(0)).sum();
                    let most = self.last + before + gross[usize::from(k)];
                    slots.iter().any(|w| w.is(Kind::Live, k) && w.payload() > most.max(self.last))
                        && self.world.policy != Policy::Inherit
                }),
                Check::Progress => {
                    if let Some(what) = self.stuck(s) {
                        return Some(what);
                    }
                    false
                }
            };
            if broken {
                let name = match check {
                    Check::OneLive => "two LIVE words of one key",
                    Check::KeyEnvelope => "a key was admitted more than its bucket allows",
                    Check::SetConserves => "the set lost debt",
                    Check::Windows => "a window admitted more than a bucket allows",
                    Check::SetEnvelope => "the set admitted more than its slots allow",
                    Check::SomeoneAdmitted => "nobody was admitted",
                    Check::NothingExtra => "a word carries more debt than was charged",
                    Check::Progress => "stuck",
                };
                return Some(name.into());
            }
        }
        None
    }

    fn windows_overrun(&self, s: &State) -> bool {
        (self.first..=self.last).step_by(self.world.unit as usize).any(|from| {
            let mut net = 0;
            for t in &s.threads[..self.threads] {
                let script = &self.world.scripts[usize::from(t.script)];
                for (i, op) in script.iter().enumerate() {
                    let Op::Charge { now, units, .. } = op else { continue };
                    let undone = matches!(script.get(i + 1), Some(Op::Refund { .. }))
                        && i + 1 < usize::from(t.op)
                        && t.stored > 0;
                    if t.verdict(i) == ADMIT && *now >= from && !undone {
                        net += units * self.world.unit;
                    }
                }
            }
            net > self.world.limit + self.last - from
        })
    }

    /// What an exact token bucket admits between the first and the last clock reading.
    fn envelope(&self, key: u8) -> i32 {
        let before = self.world.initial.iter().filter(|w| w.is(Kind::Live, key));
        let before: i32 = before.map(|w| (w.payload() - self.first).max(0)).sum();
        if self.first < self.last {
            return self.world.limit + (self.last - self.first);
        }
        self.world.limit - before
    }

    /// The debt a word stands for (equal clocks).
    fn debt(&self, w: Word) -> i32 {
        let p = w.payload();
        match (w.kind(), p & 1) {
            (Kind::Live, _) => self.world.lead(p, self.last),
            (_, 1) if self.world.takes_over() => self.world.lead(p - 1, self.last),
            _ => 0,
        }
    }

    /// Runs each thread, then fresh calls, alone.
    fn stuck(&mut self, s: &State) -> Option<String> {
        let slots = s.slots.iter().fold(0, |acc, w| acc << 16 | u64::from(w.0));
        for who in 0..self.threads {
            let t = s.threads[who];
            let [a, b] = pack_thread(&t);
            if self.world.done(&t) || !self.solo.insert([slots, a, b]) {
                continue;
            }
            if self.alone(&self.world, s, who).0.is_none() {
                return Some(format!("thread {who} alone does not end"));
            }
        }
        if !self.probed.insert(s.slots) {
            return None;
        }
        let claims_go = self.last + self.world.limit + self.world.lifetime + 32;
        for key in [0, 3] {
            for now in [self.last, self.last + self.world.lifetime + 1, claims_go] {
                let mut world = self.world.clone();
                world.scripts = vec![vec![Op::Charge { key, now, units: 1 }]];
                let fresh = State { slots: s.slots, ..State::default() };
                let (verdict, after) = self.alone(&world, &fresh, 0);
                let claimed = s.slots.iter().any(|w| w.is(Kind::Claim, key));
                if verdict.is_some_and(|v| v != ADMIT) && !claimed && after != s.slots {
                    return Some(format!(
                        "a fresh call of key {key} at {now} alone answers {verdict:?} and writes"
                    ));
                }
                let blocked = s.slots[..world.slots].iter().all(|w| w.kind() == Kind::Claim);
                let late = now == claims_go;
                if verdict.is_none()
                    || late && verdict != Some(ADMIT)
                    || verdict == Some(CONTENDED) && !blocked
                {
                    return Some(format!("a fresh call of key {key} at {now} alone answers {verdict:?}"));
                }
            }
        }
        None
    }

    /// The answer of the thread's present operation when nothing else runs.
    fn alone(&self, world: &World, s: &State, who: usize) -> (Option<u16>, [Word; MAX_SLOTS]) {
        let mut s = *s;
        let op = s.threads[who].op;
        for _ in 0..SOLO_STEPS {
            s = world.step(&s, who, &mut Coin::default());
            if s.threads[who].op != op {
                return (Some(s.threads[who].verdict(usize::from(op))), s.slots);
            }
        }
        (None, s.slots)
    }
}

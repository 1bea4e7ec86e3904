//! The random numbers of the trace, the clock, and the digest of what came out.

use semi::say;
use tatcell::{Decision, Outcome, Permit, TableError};

/// One section of the trace: its random numbers, its digest, and counts that show it is worth running.
pub struct Trace {
    name: &'static str,
    planned: u64,
    done: u64,
    flip: Option<u64>,
    random: u64,
    digest: u64,
    /// Conforming, non-conforming, never, contended.
    verdicts: [u32; 4],
    /// Tracked, untracked, inherited, forgiven.
    tracking: [u32; 4],
}

impl Trace {
    pub fn new(name: &'static str, planned: u64, flip: Option<u64>) -> Trace {
        Trace {
            name,
            planned,
            done: 0,
            flip,
            random: 0x7461_7463_656c_6c00,
            digest: 0x6469_6765_7374,
            verdicts: [0; 4],
            tracking: [0; 4],
        }
    }

    /// splitmix64.
    pub fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Steps a clock: mostly forwards by anything from nothing to 2^`bits` ticks, now and then backwards by a
    /// little, and once in 2048 to anywhere.
    pub fn step(&mut self, now: u64, bits: u32) -> u64 {
        let r = self.random();
        let dt = self.random() >> (64 - 1 - r as u32 % bits);
        match (r >> 32) % 2048 {
            0 => self.random(),
            1..=40 => now.wrapping_sub(dt >> 4),
            _ => now.wrapping_add(dt),
        }
    }

    /// Mostly small costs, some zero, some large.
    pub fn cost(&mut self, burst: u64) -> u32 {
        let r = self.random();
        let cost = match r % 16 {
            0 => 0,
            1 => (r >> 8) as u32,
            2 => burst as u32,
            3..=5 => ((r >> 8) % (burst + 2)) as u32,
            _ => 1 + (r >> 8) as u32 % 3,
        };
        cost.wrapping_add((self.flip.is_some_and(|from| self.done >= from)) as u32)
    }

    /// Takes a value into the digest. A step is a bijection of the digest, so no later step hides a difference.
    pub fn put(&mut self, value: u64) {
        self.digest = (self.digest.rotate_left(5) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn verdict(&mut self, verdict: u32) {
        self.put(verdict as u64);
        if let Some(n) = self.verdicts.get_mut(verdict as usize) {
            *n += 1;
        }
    }

    pub fn outcome(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Conforming => self.verdict(0),
            Outcome::NonConforming { retry_after } => {
                self.verdict(1);
                self.put(retry_after);
            }
            Outcome::Never => self.verdict(2),
            Outcome::Contended => self.verdict(3),
        }
    }

    /// The bitmap of a burst.
    pub fn passed(&mut self, pass: u64, count: u32) {
        self.put(pass);
        self.verdicts[0] += pass.count_ones();
        self.verdicts[1] += count - pass.count_ones();
    }

    pub fn permit(&mut self, p: &Permit) {
        for value in [p.tat, p.stored, p.tick, p.generation, p.epoch as u64, p.slot as u64] {
            self.put(value);
        }
    }

    pub fn decision(&mut self, d: &Decision) {
        let Decision { verdict, flags, tracking, policy, .. } = *d;
        self.verdict(verdict as u32);
        for value in [flags, tracking as u32, policy] {
            self.put(value as u64);
        }
        if let Some(n) = self.tracking.get_mut(tracking as usize) {
            *n += 1;
        }
        for value in [d.cost, d.burst, d.remaining, d.retry_after, d.next_unit, d.reset_after, d.departure] {
            self.put(value);
        }
        self.permit(&d.permit);
    }

    /// A caller error is an answer too; none occurs in this trace.
    pub fn table_error(&mut self, _: TableError) {
        self.put(u64::MAX);
    }

    /// Counts one request; prints the running digest eight times a section.
    pub fn next(&mut self) {
        self.done += 1;
        if self.done % (self.planned / 8) == 0 {
            say!("{} {} {:016x}", self.name, self.done, self.digest);
        }
        if self.done == self.planned {
            let ([pass, wait, never, contended], [_, untracked, inherited, forgiven]) =
                (self.verdicts, self.tracking);
            say!("{} verdicts: {pass} pass, {wait} wait, {never} never, {contended} contended", self.name);
            say!(
                "{} full sets: {untracked} untracked, {inherited} inherited, {forgiven} forgiven",
                self.name
            );
        }
    }

    pub fn events(&self) -> u64 {
        self.done
    }

    pub fn end(&self) -> u64 {
        self.digest
    }
}

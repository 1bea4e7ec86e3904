//! Realistic packets: sizes, bursts of arrivals, pauses, long rests, and colours from upstream.

use super::oracle::Rfc;
use crate::common::Rng;
use tatcell::{Colour, MeterKind};

const SIZES: [u64; 5] = [64, 128, 594, 1500, 9000];

/// One packet: its tick, size and colour.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    pub now: u64,
    pub cost: u64,
    pub pre: Colour,
}

/// An endless stream whose load changes between a fifth and four times what passes.
pub struct Traffic {
    rfc: Rfc,
    /// Do packets come coloured?
    aware: bool,
    /// The longest rest, in ticks.
    rest: u64,
    now: u64,
    part: f64,
    load: f64,
    size: usize,
    count: u64,
}

impl Traffic {
    pub fn new(rfc: Rfc, aware: bool, rest: u64, start: u64) -> Traffic {
        Traffic { rfc, aware, rest, now: start, part: 0.0, load: 1.0, size: 0, count: 0 }
    }

    pub fn next(&mut self, rng: &mut Rng) -> Packet {
        if self.count % 512 == 0 {
            self.load = 0.2 + rng.below(1000) as f64 / 250.0;
            self.size = rng.below(6) as usize;
        }
        self.count += 1;
        let cost = SIZES.get(self.size).copied().unwrap_or_else(|| rng.within(64, 9000));
        self.now += self.gap(rng, cost);
        let pre = match rng.below(10) {
            _ if !self.aware => Colour::Green,
            0..6 => Colour::Green,
            6..9 => Colour::Yellow,
            _ => Colour::Red,
        };
        Packet { now: self.now, cost, pre }
    }

    fn gap(&mut self, rng: &mut Rng, cost: u64) -> u64 {
        let Rfc { kind, cir, cbs, rate2, burst2, hz, .. } = self.rfc;
        let rate = match kind {
            MeterKind::Rfc2697 => cir,
            MeterKind::Rfc2698 => rate2,
            MeterKind::Rfc4115 => cir + rate2,
        };
        let share = |rng: &mut Rng| rng.below(1000) as f64 / 1000.0;
        let mut gap = cost as f64 / (rate as f64 * self.load) * hz as f64;
        match rng.below(8) {
            0 => gap *= 8.0,
            1..5 => gap = 0.0,
            _ => {}
        }
        if rng.one_in(300) {
            // Around the time that both bursts take.
            gap = 6.0 * (cbs + burst2) as f64 / cir.max(1) as f64 * hz as f64 * share(rng);
        }
        if rng.one_in(1500) {
            gap = self.rest as f64 * share(rng);
        }
        self.part += gap;
        let whole = self.part as u64;
        self.part -= whole as f64;
        whole
    }
}

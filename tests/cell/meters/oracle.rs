//! The exact meters of the RFCs: tokens in 128-bit integers, in units of 1 / `tick_hz` token. Nothing is rounded.
#![allow(dead_code)] // each test binary uses its own part

use tatcell::{Colour, MeterInfo, MeterKind, MeterLimit, MeterSpec};

/// A meter as its RFC has it: kind, coupling, rates and bursts, and the frequency of the clock.
#[derive(Clone, Copy, Debug)]
pub struct Rfc {
    pub kind: MeterKind,
    pub coupled: bool,
    pub cir: u64,
    pub cbs: u64,
    pub rate2: u64,
    pub burst2: u64,
    pub hz: u64,
}

impl Rfc {
    pub fn spec(&self) -> MeterSpec {
        let Rfc { cir, cbs, rate2, burst2, hz, .. } = *self;
        let spec = match self.kind {
            MeterKind::Rfc2697 => MeterSpec::rfc2697(cir, cbs, burst2, hz),
            MeterKind::Rfc2698 => MeterSpec::rfc2698(cir, cbs, rate2, burst2, hz),
            MeterKind::Rfc4115 => MeterSpec::rfc4115(cir, cbs, rate2, burst2, hz),
        };
        if self.coupled {
            spec.coupled()
        } else {
            spec
        }
    }
}

pub fn build(spec: MeterSpec) -> MeterLimit {
    spec.build().unwrap_or_else(|e| panic!("{spec:?}: {e}"))
}

/// The four meters with these rates and bursts: 2697, 2698, 4115, 4115 coupled. `rate2` must not be below `cir`.
pub fn all_four(cir: u64, cbs: u64, rate2: u64, burst2: u64, hz: u64) -> [Rfc; 4] {
    let rfc = |kind, coupled, rate2| Rfc { kind, coupled, cir, cbs, rate2, burst2, hz };
    [
        rfc(MeterKind::Rfc2697, false, 0),
        rfc(MeterKind::Rfc2698, false, rate2),
        rfc(MeterKind::Rfc4115, false, rate2),
        rfc(MeterKind::Rfc4115, true, rate2),
    ]
}

/// The buckets at some time, and what overflowed each when they were last filled.
#[derive(Clone, Copy, Debug)]
pub struct Oracle {
    pub rfc: Rfc,
    /// Tokens of the committed and of the second bucket, each `hz` to a unit.
    pub tokens: [i128; 2],
    pub spilled: [i128; 2],
    pub last: u64,
}

impl Oracle {
    /// Both buckets full.
    pub fn new(rfc: Rfc) -> Oracle {
        let hz = rfc.hz as i128;
        Oracle { rfc, tokens: [rfc.cbs as i128 * hz, rfc.burst2 as i128 * hz], spilled: [0; 2], last: 0 }
    }

    /// Tokens arrive until `now`; a clock that steps back brings none.
    pub fn fill(&mut self, now: u64) {
        self.spilled = [0; 2];
        let Some(passed) = now.checked_sub(self.last) else { return };
        self.last = now;
        let Rfc { kind, coupled, cir, cbs, rate2, burst2, hz } = self.rfc;
        let [full, full2] = [cbs, burst2].map(|burst| burst as i128 * hz as i128);
        let committed = self.tokens[0] + passed as i128 * cir as i128;
        self.tokens[0] = committed.min(full);
        self.spilled[0] = committed - self.tokens[0];
        let more = match kind {
            MeterKind::Rfc2697 => self.spilled[0],
            _ => passed as i128 * rate2 as i128 + if coupled { self.spilled[0] } else { 0 },
        };
        self.tokens[1] += more;
        self.spilled[1] = (self.tokens[1] - full2).max(0);
        self.tokens[1] -= self.spilled[1];
    }

    /// The colour of the RFC's text, in its order of tests.
    pub fn colour(&self, cost: u64, pre: Colour) -> Colour {
        let size = cost as i128 * self.rfc.hz as i128;
        let [committed, second] = self.tokens.map(|tokens| tokens >= size);
        match self.rfc.kind {
            MeterKind::Rfc2698 if pre == Colour::Red || !second => Colour::Red,
            MeterKind::Rfc2698 if pre == Colour::Yellow || !committed => Colour::Yellow,
            MeterKind::Rfc2698 => Colour::Green,
            _ if pre == Colour::Green && committed => Colour::Green,
            _ if pre != Colour::Red && second => Colour::Yellow,
            _ => Colour::Red,
        }
    }

    /// Takes the tokens that a packet of this colour pays.
    pub fn charge(&mut self, cost: u64, colour: Colour) {
        let size = cost as i128 * self.rfc.hz as i128;
        let (committed, second) = match (self.rfc.kind, colour) {
            (_, Colour::Red) => (0, 0),
            (MeterKind::Rfc2698, Colour::Green) => (size, size),
            (_, Colour::Green) => (size, 0),
            (_, Colour::Yellow) => (0, size),
        };
        self.tokens[0] -= committed;
        self.tokens[1] -= second;
    }
}

/// By how much a meter may be behind the exact one with the same history, in units: what its charges since it was
/// last full can have taken too much. Decides nothing; the tests measure "worse" with it.
#[derive(Clone, Copy, Debug)]
pub struct Behind {
    rfc: Rfc,
    /// Units that one q-unit is, of each bucket.
    q: [f64; 2],
    /// Units lost by a rate that was rounded down, over a burst.
    drift: [f64; 2],
    /// Charges since each bucket was last full.
    charges: [f64; 2],
    /// Charges whose overflow came late to the second bucket, and fillings of it that rounded.
    late: f64,
    fills: f64,
}

impl Behind {
    pub fn new(rfc: Rfc, info: &MeterInfo) -> Behind {
        let of = |(m, k): (u64, u32), burst: u64| match m {
            0 => (0.0, 0.0),
            m => {
                let q = (k as f64).exp2() / m as f64;
                (q, burst as f64 * q / (k as f64).exp2())
            }
        };
        let (q1, d1) = of(info.committed_emission, rfc.cbs);
        let (q2, d2) = of(info.second_emission, rfc.burst2);
        Behind { rfc, q: [q1, q2], drift: [d1, d2], charges: [0.0; 2], late: 0.0, fills: 0.0 }
    }

    /// The bound of each bucket, where the clock is `back` ticks behind the last charge.
    pub fn bound(&self, back: u64) -> [f64; 2] {
        let Rfc { kind, coupled, cir, rate2, burst2, hz, .. } = self.rfc;
        let back = back as f64 / hz as f64;
        let committed = (self.charges[0] + 2.0) * self.q[0] + self.drift[0] + back * cir as f64;
        let second = (self.charges[1] + 2.0) * self.q[1] + self.drift[1];
        let second = match kind {
            MeterKind::Rfc2697 => second + (self.late + 1.0) * self.q[0] + self.drift[0] + back * cir as f64,
            _ if coupled => {
                let late = (self.late + 2.0) * self.q[0] + self.fills * self.q[1] + self.drift[0];
                let ratio = burst2 as f64 / 32f64.exp2();
                second + late + ratio + back * (cir + rate2) as f64
            }
            _ => second + back * rate2 as f64,
        };
        [committed, second]
    }

    /// Both buckets were filled; one that spilled more than it can be behind is full.
    pub fn filled(&mut self, oracle: &Oracle) {
        let bound = self.bound(0);
        let spilled = oracle.spilled.map(|tokens| tokens as f64 / self.rfc.hz as f64);
        if spilled[1] > bound[1] {
            (self.charges[1], self.late, self.fills) = (0.0, self.charges[0], 0.0);
        }
        if spilled[0] > bound[0] {
            self.charges[0] = 0.0;
        }
    }

    pub fn charged(&mut self, colour: Colour) {
        let (green, yellow) = (colour == Colour::Green, colour == Colour::Yellow);
        let second = if self.rfc.kind == MeterKind::Rfc2698 { green || yellow } else { yellow };
        self.charges[0] += green as u64 as f64;
        self.charges[1] += second as u64 as f64;
        self.late += green as u64 as f64;
        self.fills += 1.0;
    }
}

//! Three-colour meters against the exact buckets of their RFC: never better, and worse only by the stated rounding.

use tatcell::{Colour, ExclusiveMeter, Meter, MeterSpec};

use crate::data::Data;
use crate::meter_oracle::{all_four, Oracle};

pub fn run(input: &[u8]) {
    let data = &mut Data(input);
    let kind = data.below(4) as usize;
    let hz = data.pick(&[1, 1_000, 1_000_000, 1_000_000_000, 3_000_000_000, 1 << 30]);
    let (cir, cbs) = (data.scaled(36), data.scaled(26));
    let (rate2, burst2) = (data.scaled(37), data.scaled(26));
    let rfc = all_four(cir, cbs, rate2, burst2, hz)[kind];
    let spec: MeterSpec = rfc.spec();
    let Ok(limit) = spec.build() else { return };
    let info = limit.info();
    let coarse = (-info.resolution).max(0);
    if info.sweep_interval < 1 << 8 {
        // A span of ticks that are longer than it: nobody can sweep so often.
        return;
    }
    let (meter, mut own) = (Meter::new(), ExclusiveMeter::new());
    let mut oracle = Oracle::new(rfc);
    let mut now = (1 << 44) + data.scaled(50);
    let (mut top, mut last) = (now, now);
    while !data.is_empty() {
        let op = data.byte();
        match op & 7 {
            0..=2 => {}
            3 => top += data.below(256),
            4 => top += data.scaled(40) % (2 * info.sweep_interval.min(1 << 50)),
            5 => top += info.horizon.min(1 << 50) + data.below(3),
            6 => top += data.scaled(50) % info.sweep_interval.min(1 << 50),
            _ => {}
        }
        // A rest longer than a span is swept in between, as the documents ask for.
        while top - last > info.sweep_interval {
            last += info.sweep_interval;
            assert_eq!(meter.sweep(&limit, last), own.sweep(&limit, last));
        }
        now = if op & 7 == 7 { now.max(top - data.scaled(40).min(info.skew / 10 * 9)) } else { top };
        let cost = match op >> 3 & 3 {
            0 => 64 + data.below(256) * 6,
            1 => cbs,
            2 => burst2 + data.below(3),
            _ => data.scaled(27),
        };
        let pre = [Colour::Green, Colour::Green, Colour::Yellow, Colour::Red][usize::from(op >> 6)];
        let (seen, looked) = (now >> coarse << coarse, meter.peek(&limit, now, cost, pre));
        let before = meter.word();
        let marking = meter.check(&limit, now, cost, pre);
        assert_eq!((own.check(&limit, now, cost, pre), own.word()), (marking, meter.word()));
        assert_eq!(looked, marking, "a look promises another colour");
        let mut exact = oracle;
        exact.fill(seen);
        let colour = exact.colour(cost, pre);
        assert!(
            marking.colour >= colour,
            "minted: {rfc:?} {cost} {pre:?} at {now}: {marking:?}, exactly {colour:?}"
        );
        if marking.passes() && cost > 0 {
            exact.charge(cost, marking.colour);
            oracle = exact;
            last = last.max(now);
            assert!(oracle.tokens.iter().all(|&tokens| tokens >= 0), "overdrawn: {oracle:?}");
        } else {
            assert_eq!(meter.word(), before, "a red packet or a look wrote");
        }
    }
}

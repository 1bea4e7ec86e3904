//! Buckets that no rate fills: full once, as the RFCs say.

use super::oracle::{all_four, build, Oracle};
use super::SECOND;
use crate::common::Rng;
use tatcell::Colour::{self, Green, Red, Yellow};
use tatcell::{Meter, MeterKind, MeterSpec, Verdict};

/// RFC 2697: "at least one of them" of CBS and EBS is larger than 0, and nothing is said of CIR. RFC 2698: PIR is at
/// least CIR, and both bursts are larger than 0. All: the buckets are full at time 0, and then filled by the rates.
#[test]
fn a_bucket_that_no_rate_fills_is_full_once() {
    let marked = |spec: MeterSpec, packets: &[(u64, u64, Colour)]| {
        let (limit, meter) = (build(spec), Meter::new());
        let second = |&(second, cost, pre): &_| meter.check(&limit, second * SECOND, cost, pre).colour;
        packets.iter().map(second).collect::<Vec<_>>()
    };
    // A second at 1000 a second fills 1000; a year fills nothing without a rate.
    let year = 31_536_000;
    let packets = [
        (0, 900, Green),
        (0, 900, Green),
        (1, 600, Green),
        (5, 600, Green),
        (year, 300, Green),
        (year + 5, 600, Yellow),
        (2 * year, 1, Green),
    ];
    let zero = [Green, Yellow, Green, Yellow, Yellow, Red, Red];
    assert_eq!(marked(MeterSpec::rfc2697(0, 1_500, 1_800, SECOND), &packets), zero);
    assert_eq!(marked(MeterSpec::rfc4115(0, 1_500, 0, 1_800, SECOND), &packets), zero);
    // P: 3000, 2100, 1200, 600, 0.
    let peak = [Green, Yellow, Green, Yellow, Red, Red, Red];
    assert_eq!(marked(MeterSpec::rfc2698(0, 1_500, 0, 3_000, SECOND), &packets), peak);
    // P or E is filled, C is not: 600 of its 1500 are left after the first packet, and none after the third.
    let second = [Green, Yellow, Green, Yellow, Yellow, Yellow, Yellow];
    assert_eq!(marked(MeterSpec::rfc2698(0, 1_500, 1_000, 1_900, SECOND), &packets), second);
    assert_eq!(marked(MeterSpec::rfc4115(0, 1_500, 1_000, 1_000, SECOND), &packets), second);
    assert_eq!(marked(MeterSpec::rfc4115(0, 1_500, 1_000, 1_000, SECOND).coupled(), &packets), second);
    // C is filled, E is not.
    let first = [Green, Yellow, Green, Green, Green, Yellow, Green];
    assert_eq!(marked(MeterSpec::rfc4115(1_000, 1_000, 0, 1_500, SECOND), &packets), first);
    // A burst of 0, too: no packet is green, and one of nothing is.
    let none = [Yellow, Yellow, Yellow, Yellow, Yellow, Yellow, Yellow];
    assert_eq!(marked(MeterSpec::rfc2698(0, 0, 1_000, 1_900, SECOND), &packets), none);
    assert_eq!(
        marked(MeterSpec::rfc2697(0, 0, 1, SECOND), &[(0, 1, Green), (year, 1, Green)]),
        [Yellow, Red]
    );
    // What is above every burst never passes; what a bucket has no more of is only red.
    let (limit, meter) = (build(MeterSpec::rfc2697(0, 1_500, 1_800, SECOND)), Meter::new());
    assert!(meter.check(&limit, 0, 1_500, Green).passes());
    let verdict = |cost| meter.check(&limit, SECOND, cost, Green).verdict;
    assert_eq!(
        [verdict(1_801), verdict(1_800), verdict(1)],
        [Verdict::Never, Verdict::Conforming, Verdict::NonConforming]
    );
    let info = limit.info();
    assert_eq!((info.committed_emission, info.second_emission), ((0, 0), (0, 0)));
    assert_eq!([info.horizon, info.skew, info.span, info.sweep_interval], [u64::MAX; 4]);
    assert_eq!((info.cbs, info.burst2, info.kind), (1_500, 1_800, MeterKind::Rfc2697));
}

/// Whole q-units a byte, so that the colours are those of the RFC: at any clock, over wraps and sweeps.
#[test]
fn meters_with_rates_of_0_give_the_colours_of_exact_buckets() {
    const HZ: u64 = 1 << 20;
    let (mut rounds, mut seen) = (0, [0u32; 3]);
    let mut rng = Rng(2698);
    println!("seed 2698");
    while rounds < 2_000 {
        let rate = |rng: &mut Rng| rng.pick(&[0, 1, 1 << 4, 1 << 10, HZ]);
        let (cir, rate2) = (rate(&mut rng), rate(&mut rng));
        if cir != 0 && rate2 != 0 {
            continue;
        }
        let (cbs, burst2) = (rng.scaled(14), rng.scaled(14));
        let rfc = all_four(cir, cbs, rate2, burst2, HZ)[rng.below(4) as usize];
        let Ok(limit) = rfc.spec().build() else { continue };
        rounds += 1;
        let info = limit.info();
        let (meter, mut oracle) = (Meter::new(), Oracle::new(rfc));
        let (mut now, mut last) = (rng.scaled(40), 0);
        for _ in 0..200 {
            now += match rng.below(20) {
                0 => rng.scaled(45),
                1..10 => rng.scaled(14),
                _ => 0,
            };
            if last == 0 {
                last = now;
            }
            while now - last > info.sweep_interval {
                last += info.sweep_interval;
                meter.sweep(&limit, last);
            }
            let (cost, pre) = (rng.scaled(12), rng.pick(&[Green, Green, Yellow, Red]));
            // A q-unit may be longer than a tick.
            let coarse = (-info.resolution).max(0);
            oracle.fill(now >> coarse << coarse);
            let wanted = oracle.colour(cost, pre);
            let marking = meter.check(&limit, now, cost, pre);
            assert_eq!(marking.colour, wanted, "{rfc:?}: {cost} that came {pre:?} at {now}");
            if cost > 0 && wanted != Red {
                last = last.max(now);
            }
            oracle.charge(cost, wanted);
            seen[wanted as usize] += 1;
        }
    }
    assert!(seen.iter().all(|count| *count > 20_000), "{seen:?}");
}

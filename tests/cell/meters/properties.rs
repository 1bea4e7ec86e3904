//! Three-colour meters against the exact buckets of RFC 2697, RFC 2698, RFC 4115 and MEF 10.3, packet by packet.

use super::oracle::{all_four, build, Behind, Oracle, Rfc};
use super::traffic::Traffic;
use crate::common::{cases, size_from, Rng, Seed};
use tatcell::Colour::{Green, Red, Yellow};
use tatcell::{ExclusiveMeter, Meter, MeterKind, MeterSpec};

/// Nanoseconds.
const SECOND: u64 = 1_000_000_000;

/// What a run counted.
#[derive(Debug, Default)]
struct Counts {
    packets: u64,
    worse: u64,
    back: u64,
    swept: u64,
    colours: [u64; 3],
    /// The largest share of the bound that was used, of 0 to 1.
    used: f64,
}

/// Runs `n` packets; the oracle keeps the history that the meter made. `back`: every hundredth clock reading is old.
fn follow(rfc: Rfc, aware: bool, back: bool, n: u64, rng: &mut Rng, counts: &mut Counts) {
    let limit = build(rfc.spec());
    let info = limit.info();
    let coarse = (-info.resolution).max(0);
    let meter = Meter::new();
    let mut own = ExclusiveMeter::new();
    let (mut oracle, mut behind) = (Oracle::new(rfc), Behind::new(rfc, &info));
    let start = (1 << 44) + rng.below(1 << 50);
    let mut traffic = Traffic::new(rfc, aware, info.sweep_interval.min(1 << 50) * 3, start);
    let (mut charged, mut last) = (0, start);
    for _ in 0..n {
        let packet = traffic.next(rng);
        // Rests longer than a span: swept in between, as the documents ask for.
        while packet.now - last > info.sweep_interval {
            last += info.sweep_interval;
            let swept = meter.sweep(&limit, last);
            assert_eq!(swept, own.sweep(&limit, last));
            counts.swept += swept as u64;
        }
        let mut now = packet.now;
        if back && rng.one_in(100) {
            let most = if rng.one_in(4) { info.skew / 10 * 9 } else { info.horizon / 10 };
            now -= rng.below(most.min(1 << 43));
        }
        // The clock that a coarse meter sees.
        let seen = now >> coarse << coarse;
        let marking = meter.check(&limit, now, packet.cost, packet.pre);
        assert_eq!(own.check(&limit, now, packet.cost, packet.pre), marking);
        assert_eq!(own.word(), meter.word());
        let mut exact = oracle;
        exact.fill(seen);
        let colour = exact.colour(packet.cost, packet.pre);
        assert!(
            marking.colour >= colour,
            "minted: {rfc:?} {packet:?}: {marking:?}, exactly {colour:?} {exact:?}"
        );
        if marking.colour > colour {
            counts.worse += 1;
            let bound = behind.bound(u64::saturating_sub(charged, seen));
            let over =
                exact.tokens.map(|t| (t - packet.cost as i128 * rfc.hz as i128) as f64 / rfc.hz as f64);
            // The buckets whose tests the meter failed and the exact ones pass.
            let failed = match (rfc.kind, colour) {
                (MeterKind::Rfc2698, _) => [marking.colour == Yellow, marking.colour == Red],
                _ => [colour == Green, marking.colour == Red && over[1] >= 0.0],
            };
            for i in [0, 1].into_iter().filter(|i| failed[*i]) {
                let (over, bound) = (over[i], bound[i]);
                assert!(
                    over < bound,
                    "{rfc:?} {packet:?}: {marking:?} by {over} of bucket {i}, bound {bound}"
                );
                counts.used = counts.used.max(over / bound);
            }
        }
        if marking.passes() {
            if seen >= exact.last {
                behind.filled(&exact);
            }
            exact.charge(packet.cost, marking.colour);
            behind.charged(marking.colour);
            (oracle, last) = (exact, last.max(now));
            counts.back += (seen < charged) as u64;
            charged = charged.max(seen);
            assert!(oracle.tokens.iter().all(|&tokens| tokens >= 0), "overdrawn: {oracle:?}");
        }
        counts.colours[marking.colour as usize] += 1;
        counts.packets += 1;
    }
}

const RATES: [u64; 6] = [8_000, 46_000_000, 125_000_000, 1_250_000_000, 12_500_000_000, 50_000_000_000];
const BURSTS: [(u64, u64); 4] =
    [(9_000, 9_000), (20_000, 100_000), (1_000_000, 4_000_000), (4_000_000, 500_000)];

/// No packet is marked better than by the exact buckets with the same history, and where one is marked worse the exact
/// bucket had less to spare than the stated rounding. `TATCELL_METER_PACKETS` sets how many packets.
#[test]
fn colours_follow_the_exact_buckets_of_each_rfc() {
    let runs = 4 * 2 * 2 * (RATES.len() * BURSTS.len() * 2 * 2) as u64;
    let each = size_from("TATCELL_METER_PACKETS", 2_500_000) / runs;
    for kind in 0..4 {
        for (aware, back) in [(false, false), (false, true), (true, false), (true, true)] {
            let mut counts = Counts::default();
            let seed = Rng(kind as u64 * 4 + aware as u64 * 2 + back as u64).next();
            let (_shown, mut rng) = (Seed(seed), Rng(seed));
            for (rate, (cbs, burst2)) in RATES.iter().flat_map(|rate| BURSTS.map(|burst| (*rate, burst))) {
                for (hz, wide) in [(SECOND, false), (SECOND, true), (3 * SECOND, false), (3 * SECOND, true)] {
                    let rate2 = match (kind, wide) {
                        (1, false) => rate * 4,
                        (1, true) => rate * 3 / 2,
                        (_, false) => rate / 3,
                        (_, true) => rate * 3,
                    };
                    let rfc = all_four(rate, cbs, rate2, burst2, hz)[kind];
                    follow(rfc, aware, back, each, &mut rng, &mut counts);
                }
            }
            assert!(
                counts.packets >= each * runs / 16 && counts.colours.iter().all(|&n| n > counts.packets / 50)
            );
            assert!(counts.swept > 0 && (counts.back > 0) == back, "{counts:?}");
            println!("meter {kind}, aware {aware}, back {back}: {counts:?}");
        }
    }
}

/// Where a unit takes a whole number of q-units nothing rounds: colours are those of buckets that run beside the
/// meter without ever looking at it.
#[test]
fn colours_equal_the_rfcs_where_a_unit_is_a_whole_number_of_q_units() {
    for (kind, rate2) in [(0, 0), (1, 250_000_000), (2, 62_500_000), (3, 62_500_000)] {
        cases(8, |rng| {
            let (cbs, burst2) = rng.pick(&BURSTS);
            let rfc = all_four(125_000_000, cbs, rate2, burst2, SECOND)[kind];
            let limit = build(rfc.spec());
            let info = limit.info();
            assert_eq!((info.committed_rounding_ppb, info.second_rounding_ppb), (0, 0), "{info:?}");
            let (meter, mut oracle) = (Meter::new(), Oracle::new(rfc));
            let mut traffic = Traffic::new(rfc, rng.one_in(2), info.horizon * 4, 1 << 40);
            for i in 0..20_000 {
                let packet = traffic.next(rng);
                oracle.fill(packet.now);
                let colour = oracle.colour(packet.cost, packet.pre);
                oracle.charge(packet.cost, colour);
                let marking = meter.check(&limit, packet.now, packet.cost, packet.pre);
                assert_eq!(marking.colour, colour, "packet {i} {packet:?} of {rfc:?}: {oracle:?}");
            }
        });
    }
}

/// Over a long time under overload each rate stays just below what was asked for: by less than a q-unit a packet.
#[test]
fn long_run_rates_are_never_above_and_at_most_a_q_unit_a_packet_below() {
    for (rate, cost) in RATES.iter().flat_map(|rate| [64, 577, 1500].map(|cost| (*rate, cost))) {
        let limit = build(MeterSpec::rfc2697(rate, 20_000, 20_000, SECOND));
        let (m, k) = limit.info().committed_emission;
        let q = (k as f64).exp2() / m as f64;
        let (meter, n) = (Meter::new(), 100_000u64);
        let (mut green, mut last) = (0u64, 0);
        for i in 0..n {
            last = (1 << 40) + (i as u128 * cost as u128 * SECOND as u128 / rate as u128 / 2) as u64;
            green += if meter.check(&limit, last, cost, Green).colour == Green { cost } else { 0 };
        }
        let exact = 20_000.0 + (last - (1 << 40)) as f64 / SECOND as f64 * rate as f64;
        let least = exact * (1.0 - q / cost as f64) - 2.0 * cost as f64;
        assert!(green as f64 <= exact && green as f64 >= least, "{rate} B/s: {green}, {least} to {exact}");
    }
}

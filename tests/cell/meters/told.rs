//! What a meter reports besides the colour: Never, its kind, its coupling.

use super::oracle::build;
use super::{drain, SECOND};
use tatcell::Colour::{Green, Red, Yellow};
use tatcell::{Meter, MeterKind, MeterSpec, Verdict};

/// What no wait helps: a cost above every burst that its colour may use. One of exactly the largest burst waits.
#[test]
fn a_cost_passes_never_where_it_is_above_the_bursts_and_waits_where_it_is_not() {
    for (committed, second) in [(2048, 4096), (4096, 2048)] {
        let either = committed.max(second);
        let one = MeterSpec::rfc2697(46_000_000, committed, second, SECOND);
        let peak = MeterSpec::rfc2698(46_000_000, committed, 69_000_000, second, SECOND);
        let excess = MeterSpec::rfc4115(46_000_000, committed, 69_000_000, second, SECOND);
        // Green packets may use both bursts, but for RFC 2698, where each has to fit the peak.
        for (spec, green, yellow) in [(one, either, second), (peak, second, second), (excess, either, second)]
        {
            let limit = build(spec);
            let meter = Meter::new();
            drain(&meter, &limit, SECOND);
            let verdict = |cost, colour| meter.check(&limit, SECOND, cost, colour).verdict;
            for cost in 1..=either + 1 {
                let expected = |most| if cost > most { Verdict::Never } else { Verdict::NonConforming };
                assert_eq!(verdict(cost, Green), expected(green), "{spec:?}: {cost} that came green");
                assert_eq!(verdict(cost, Yellow), expected(yellow), "{spec:?}: {cost} that came yellow");
            }
            assert_eq!(verdict(either + 1, Red), Verdict::NonConforming);
        }
    }
}

#[test]
fn a_meter_tells_its_kind_and_whether_its_buckets_are_coupled() {
    let excess = MeterSpec::rfc4115(46_000_000, 2048, 69_000_000, 4096, SECOND);
    for (spec, kind, coupled) in [
        (MeterSpec::rfc2697(46_000_000, 2048, 4096, SECOND), MeterKind::Rfc2697, false),
        (MeterSpec::rfc2698(46_000_000, 2048, 69_000_000, 4096, SECOND), MeterKind::Rfc2698, false),
        (excess, MeterKind::Rfc4115, false),
        (excess.coupled(), MeterKind::Rfc4115, true),
    ] {
        let info = build(spec).info();
        assert_eq!((info.kind, info.coupled), (kind, coupled), "{spec:?}");
    }
}

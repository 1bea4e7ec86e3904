//! How a limit is divided: nothing is lost or added, and each problem has its own error.

mod common;

use std::time::Duration;

use common::Random;
use tatcell_cluster::{LimitError, SharedLimit, Q_PER_US};

const SECOND: Duration = Duration::from_secs(1);
const TRIP: Duration = Duration::from_millis(4);

#[test]
fn parts_add_up_to_no_more_than_the_limit() {
    let mut random = Random(0x5917);
    let (mut leased, mut reserved) = (0, 0);
    for _ in 0..100_000 {
        let (units, burst, nodes) = (random.sized(9), random.sized(9), 1 + random.below(64) as u32);
        let period = Duration::from_nanos(1 + random.sized(12));
        let (rate_share, burst_share) = (random.below(1_000) as u32, random.below(1_000) as u32);
        let limit = SharedLimit::new("x", units, period, burst).reserve(rate_share, burst_share);
        let Ok(split) = limit.split(nodes, TRIP) else { continue };
        let (kept, k) = match split.reserve {
            Some(reserve) => {
                reserved += 1;
                assert_eq!(reserve.units, units * u64::from(rate_share));
                assert_eq!(u128::from(reserve.period_ns), period.as_nanos() * 1_000 * u128::from(nodes));
                assert!(
                    u128::from(reserve.full_ns) * u128::from(reserve.units)
                        >= u128::from(reserve.burst) * u128::from(reserve.period_ns)
                );
                (1_000 - rate_share, reserve.burst)
            }
            None => (1_000, 0),
        };
        assert_eq!(split.burst + k * u64::from(nodes), burst);
        assert!(split.burst >= 1);
        // T is the exact time, rounded up to the next q-unit: units * kept / 1000 of it are a period or more.
        let exact = period.as_nanos() * Q_PER_US;
        let per_period = u128::from(units) * u128::from(kept);
        assert!(split.unit.q() * per_period >= exact && (split.unit.q() - 1) * per_period < exact);
        // The hold is paid from the burst.
        let full = split.unit.q() * u128::from(split.burst);
        assert!(split.lead.q() * 1_000 + u128::from(split.hold_ns) * Q_PER_US <= full * 1_000);
        assert!(u128::from(split.unit_ns) * Q_PER_US <= split.unit.q() * 1_000);
        assert!(split.min >= 1 && split.min <= split.largest_cost && split.most >= 1);
        assert!(u128::from(split.largest_cost) * split.unit.q() <= split.lead.q());
        assert_eq!(split.strict, split.hold_ns == 0);
        leased += usize::from(!split.strict);
    }
    println!("{leased} leased, {reserved} with a reserve");
    assert!(leased > 10_000 && reserved > 10_000, "not both forms were tried");
}

#[test]
fn small_limits_are_strict_and_can_pass() {
    let split = SharedLimit::new("x", 1, SECOND, 1).split(4, TRIP).expect("a limit");
    assert!(split.strict && split.largest_cost == 1 && split.lead == split.unit && split.reserve.is_none());
    // 1e8 a second with 1e4 at once: the hold would be 10 us.
    assert!(SharedLimit::new("x", 100_000_000, SECOND, 10_000).split(4, TRIP).expect("a limit").strict);
    // The same with a hold of two round trips.
    assert!(!SharedLimit::new("x", 10_000, SECOND, 1_000).split(4, TRIP).expect("a limit").strict);
}

#[test]
fn what_is_wrong_has_its_name() {
    let error = |limit: SharedLimit, nodes| limit.split(nodes, TRIP).expect_err("an error");
    let of = |units, period, burst| error(SharedLimit::new("x", units, period, burst), 4);
    assert_eq!(of(0, SECOND, 1), LimitError::ZeroUnits);
    assert_eq!(of(1, Duration::ZERO, 1), LimitError::ZeroPeriod);
    assert_eq!(of(1, SECOND, 0), LimitError::ZeroBurst);
    assert_eq!(of(1_000_000_001, SECOND, 1), LimitError::RateTooHigh);
    assert!(SharedLimit::new("x", 1_000_000_000, SECOND, 1).split(4, TRIP).is_ok());
    assert_eq!(of(1, SECOND, (1 << 51) / 1_000_000 + 1), LimitError::DebtTooLong);
    assert_eq!(of(1, Duration::MAX, 1), LimitError::DebtTooLong);
    assert_eq!(of(u64::MAX, Duration::MAX, u64::MAX), LimitError::DebtTooLong);
    for nodes in [0, 4_097] {
        assert_eq!(error(SharedLimit::new("x", 1, SECOND, 1), nodes), LimitError::Nodes);
    }
    for name in ["", "a:b", "a b", "\u{e9}", &"x".repeat(65)] {
        assert_eq!(error(SharedLimit::new(name, 1, SECOND, 1), 4), LimitError::Name);
    }
    for (rate, burst) in [(1_000, 0), (0, 1_000)] {
        assert_eq!(
            error(SharedLimit::new("x", 1, SECOND, 1).reserve(rate, burst), 4),
            LimitError::ReserveTooLarge
        );
    }
}

//! The definitions, in whole numbers of 128 bits and as slowly as they are written.

/// One request of a key: its time in nanoseconds, its units.
pub type Request = (u64, u64);

/// The smallest burst with which none of these requests is refused at `units` a `period`: of every stretch of
/// requests, what it asks for beyond what the rate allows between its first and its last.
pub fn smallest_burst(requests: &[Request], units: u64, period: u64) -> u64 {
    let mut most = i128::from(period);
    for first in 0..requests.len() {
        let mut cost = 0i128;
        for last in first..requests.len() {
            cost += i128::from(requests[last].1);
            let time = i128::from(requests[last].0 - requests[first].0);
            most = most.max(cost * i128::from(period) - time * i128::from(units));
        }
    }
    let period = i128::from(period);
    u64::try_from((most + period - 1) / period).expect("a burst")
}

/// How many requests a token bucket refuses: it starts full, and its tokens are counted in parts of one.
pub fn refused(requests: &[Request], units: u64, period: u64, burst: u64) -> u64 {
    let full = i128::from(burst) * i128::from(period);
    let (mut tokens, mut last, mut refused) = (full, None, 0);
    for (time, cost) in requests {
        let elapsed = i128::from(time - last.unwrap_or(*time));
        last = Some(*time);
        tokens = full.min(tokens + elapsed * i128::from(units));
        let price = i128::from(*cost) * i128::from(period);
        if tokens >= price {
            tokens -= price;
        } else {
            refused += 1;
        }
    }
    refused
}

#[test]
fn the_oracle_says_what_can_be_counted_by_hand() {
    let second = 1_000_000_000;
    // Three at once, and three more a second later, at 1/s: 3 + 3 - 1.
    let six: Vec<_> = [0, 0, 0, second, second, second].map(|time| (time, 1)).into();
    assert_eq!(smallest_burst(&six, 1, second), 5);
    assert_eq!((refused(&six, 1, second, 5), refused(&six, 1, second, 4)), (0, 1));
    assert_eq!(refused(&six, 1, second, 1), 4);
    assert_eq!(smallest_burst(&[(7, 1500)], 1, second), 1500);
    assert_eq!(smallest_burst(&[(7, 0)], 1, second), 1);
}

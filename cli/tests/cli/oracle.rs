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

/// How a word of a table keeps a rate, if its limit has this burst: the time of a unit, in units of time of 2^n
/// nanoseconds, and n. The longest debt, and as much again or a second by which clocks may differ, are at most 2^40
/// units. For intervals of at least 1024 ns.
pub fn words_of(units: u64, period: u64, burst: u64) -> (u64, u32) {
    for bits in 0..40 {
        let interval = u128::from(period).div_ceil(u128::from(units) << bits);
        let debt = u128::from(burst) * interval;
        let skew = debt.max((1u128 << 37).min((1u128 << 30).div_ceil(1 << bits)));
        if debt + skew <= 1 << 40 {
            return (u64::try_from(interval).expect("an interval"), bits);
        }
    }
    panic!("no word holds {units} in {period} ns, burst {burst}");
}

/// The smallest burst with which a table refuses none of these requests: that of the finest word that holds it.
pub fn smallest_burst_of_a_table(requests: &[Request], units: u64, period: u64) -> u64 {
    let mut least = 1;
    loop {
        let (interval, bits) = words_of(units, period, least);
        let rounded: Vec<_> = requests.iter().map(|(time, cost)| (time >> bits, *cost)).collect();
        let needed = smallest_burst(&rounded, 1, interval).max(least);
        if words_of(units, period, needed) == (interval, bits) {
            return needed;
        }
        // The first burst with a coarser word.
        while words_of(units, period, least).1 == bits {
            least += 1;
        }
    }
}

/// A token bucket as a table keeps it, with no end of its numbers.
pub struct Bucket {
    interval: u128,
    bits: u32,
    full: u128,
    until: u128,
}

impl Bucket {
    pub fn new(units: u64, period: u64, burst: u64) -> Bucket {
        let (interval, bits) = words_of(units, period, burst);
        let interval = u128::from(interval);
        Bucket { interval, bits, full: u128::from(burst) * interval, until: 0 }
    }

    pub fn passes(&mut self, now: u64, cost: u64) -> bool {
        let now = u128::from(now >> self.bits);
        let next = self.until.max(now) + u128::from(cost) * self.interval;
        let passes = next - now <= self.full;
        if passes {
            self.until = next;
        }
        passes
    }
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
    // At 3/s a unit takes 333333334 ns, so three a second are one too many after a second.
    let three: Vec<_> = [0, 0, 0, second, second, second].map(|time| (time, 1)).into();
    assert_eq!((smallest_burst(&three, 3, second), smallest_burst_of_a_table(&three, 3, second)), (3, 4));
    // Two hours of debt need units of 16 ns.
    assert_eq!((words_of(1, second, 500), words_of(1, second, 7_200)), ((second, 0), (second >> 4, 4)));
}

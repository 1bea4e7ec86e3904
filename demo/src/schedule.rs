//! Who sends what, and when: the four classes of sources, their addresses, and the list of requests
//! in time order.
//!
//! The whole attack is worked out before the first datagram leaves, from a fixed seed, so that two
//! runs offer the same requests and the sender has nothing to decide.

/// Kinds of sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Half the limit, with jitter.
    Polite,
    /// Far above the limit.
    Abuser,
    /// Exactly the limit.
    Exact,
    /// One request each.
    Spray,
}

/// Names of the classes, in the order of their indices.
pub const NAMES: [&str; 4] = ["polite", "abusers", "exact", "spray"];

pub const POLITE: u32 = 5_000;
pub const ABUSERS: u32 = 20;
/// One-shot sources of one spray at full scale.
pub const SPRAY: u32 = 60_000;
const EXACT_ID: u32 = POLITE + ABUSERS;
const SPRAY_ID: u32 = EXACT_ID + 1;

pub const POLITE_PER_SEC: f64 = 5.0;
pub const ABUSER_PER_SEC: f64 = 2_000.0;
pub const SPRAY_SECONDS: f64 = 6.0;

/// The limit that the gate holds each source to: units per second and burst.
pub const LIMIT_PER_SEC: u64 = 10;
pub const LIMIT_BURST: u64 = 20;

/// Length of one statistics bin; every boundary below is a multiple of it.
pub const BIN_US: u64 = 500_000;
/// Limiter off from 0 to here, on from here to `END_US`.
pub const SWITCH_US: u64 = 7_000_000;
pub const END_US: u64 = 19_000_000;
/// Start of each phase that the verdict leaves out: the queue fills in the first, and drains in the second.
pub const SETTLE_US: u64 = 1_000_000;
const SPRAY_START_US: [u64; 2] = [1_000_000, 9_000_000];

/// Offered requests per second at full scale while the spray lasts (the one exact source not counted).
pub const PEAK_PER_SEC: f64 =
    POLITE as f64 * POLITE_PER_SEC + ABUSERS as f64 * ABUSER_PER_SEC + SPRAY as f64 / SPRAY_SECONDS;

/// One request: when, and from which source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    pub at_us: u32,
    pub source: u32,
}

/// Returns the class of a source number.
pub fn class_of(source: u32) -> Class {
    match source {
        0..POLITE => Class::Polite,
        POLITE..EXACT_ID => Class::Abuser,
        EXACT_ID => Class::Exact,
        _ => Class::Spray,
    }
}

/// Returns the position of an abuser among the abusers.
pub fn abuser_index(source: u32) -> Option<usize> {
    (class_of(source) == Class::Abuser).then(|| (source - POLITE) as usize)
}

/// Returns the loopback address of a source, in host byte order.
pub fn address_of(source: u32) -> u32 {
    match class_of(source) {
        Class::Polite => 0x7f01_0001 + source,
        Class::Abuser => 0x7f02_0001 + (source - POLITE),
        Class::Exact => 0x7f03_0001,
        Class::Spray => (source - SPRAY_ID).wrapping_add(0x7f10_0000),
    }
}

/// Returns the source that has this address, if any.
pub fn source_of(address: u32) -> Option<u32> {
    let source = match address >> 16 {
        0x7f01 => address.wrapping_sub(0x7f01_0001),
        0x7f02 => address.wrapping_sub(0x7f02_0001).wrapping_add(POLITE),
        0x7f03 => address.wrapping_sub(0x7f03_0001).wrapping_add(EXACT_ID),
        0x7f10..=0x7f1f => (address - 0x7f10_0000) + SPRAY_ID,
        _ => return None,
    };
    (address_of(source) == address).then_some(source)
}

/// Number of one-shot sources in one spray at this scale.
pub fn spray_sources(scale: f64) -> u32 {
    (f64::from(SPRAY) * scale).round() as u32
}

/// Returns the whole attack in time order: both phases, every rate but the exact source's times `scale`.
///
/// The exact source keeps the limit's own pace, which does not scale.
pub fn attack(scale: f64) -> Vec<Event> {
    let mut random = Random(0x7461_7463_656c_6c00);
    let mut events = Vec::new();
    let mut add = |at: f64, source: u32| {
        if at >= 0.0 && at < END_US as f64 {
            events.push(Event { at_us: at as u32, source });
        }
    };
    let polite_us = 1e6 / (POLITE_PER_SEC * scale);
    let abuser_us = 1e6 / (ABUSER_PER_SEC * scale);
    for source in 0..POLITE {
        let mut at = (random.unit() - 1.0) * polite_us;
        while at < END_US as f64 + polite_us {
            add(at + (random.unit() - 0.5) * 0.5 * polite_us, source);
            at += polite_us;
        }
    }
    for source in POLITE..EXACT_ID {
        let mut at = random.unit() * abuser_us;
        while at < END_US as f64 {
            add(at, source);
            at += abuser_us;
        }
    }
    let exact_us = 1_000_000 / LIMIT_PER_SEC;
    (0..END_US / exact_us).for_each(|i| add((i * exact_us + exact_us / 2) as f64, EXACT_ID));
    let count = spray_sources(scale);
    for (phase, start) in SPRAY_START_US.into_iter().enumerate() {
        for i in 0..count {
            let at = start as f64 + (f64::from(i) + random.unit()) * SPRAY_SECONDS * 1e6 / f64::from(count);
            add(at, SPRAY_ID + phase as u32 * count + i);
        }
    }
    events.sort_unstable_by_key(|e| (e.at_us, e.source));
    events
}

/// Returns the part of an attack where the spray lasts, its times counted from zero: the calibration's load.
pub fn peak_of(attack: &[Event]) -> Vec<Event> {
    let start = SPRAY_START_US[0];
    let window = start..start + (SPRAY_SECONDS * 1e6) as u64;
    let inside = attack.iter().filter(|e| window.contains(&u64::from(e.at_us)));
    inside.map(|e| Event { at_us: e.at_us - start as u32, source: e.source }).collect()
}

/// splitmix64.
struct Random(u64);

impl Random {
    /// Returns the next number in [0, 1).
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn times(events: &[Event]) -> HashMap<u32, Vec<u64>> {
        let mut map: HashMap<u32, Vec<u64>> = HashMap::new();
        for e in events {
            map.entry(e.source).or_default().push(u64::from(e.at_us));
        }
        map
    }

    #[test]
    fn addresses_are_loopback_distinct_and_invertible() {
        let mut seen = std::collections::HashSet::new();
        for source in 0..SPRAY_ID + 2 * SPRAY {
            let address = address_of(source);
            assert_eq!(address >> 24, 127);
            assert!(seen.insert(address));
            assert_eq!(source_of(address), Some(source));
        }
        assert_eq!(source_of(0x7f00_0001), None);
        assert_eq!(source_of(0x7f03_0002), None);
        assert_eq!(source_of(0x7f01_0000), None);
    }

    #[test]
    fn attack_is_in_time_order_and_has_the_stated_rates() {
        for scale in [1.0, 0.25] {
            let events = attack(scale);
            assert!(events.windows(2).all(|w| w[0].at_us <= w[1].at_us));
            let mut count = [0u64; 4];
            events.iter().for_each(|e| count[class_of(e.source) as usize] += 1);
            let seconds = END_US as f64 / 1e6;
            let near = |n: u64, want: f64| (n as f64 / (want * scale) - 1.0).abs() < 0.01;
            assert!(near(count[0], f64::from(POLITE) * POLITE_PER_SEC * seconds));
            assert!(near(count[1], f64::from(ABUSERS) * ABUSER_PER_SEC * seconds));
            assert_eq!(count[2], LIMIT_PER_SEC * seconds as u64);
            assert!(near(count[3], 2.0 * f64::from(SPRAY)));
        }
    }

    #[test]
    fn polite_sources_never_come_closer_than_the_limit_allows() {
        for (source, times) in times(&attack(1.0)) {
            if class_of(source) == Class::Polite {
                assert!(times.windows(2).all(|w| w[1] - w[0] + 1 >= 100_000), "source {source}");
            }
        }
    }

    #[test]
    fn spray_sources_send_once() {
        for (source, times) in times(&attack(1.0)) {
            assert!(class_of(source) != Class::Spray || times.len() == 1);
        }
    }

    #[test]
    fn peak_has_the_peak_rate_from_time_zero() {
        let peak = peak_of(&attack(1.0));
        assert!((peak.len() as f64 / (PEAK_PER_SEC * SPRAY_SECONDS) - 1.0).abs() < 0.01);
        assert!(peak[0].at_us < 1_000);
    }
}

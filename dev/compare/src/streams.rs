//! The arrivals: four streams of unit requests of one client, the same for every limiter.
//!
//! ```text
//!  steady    | | | | | | | | |        at the limit's rate, evenly
//!  overload  |||||||||||||||||        at twice the rate, evenly
//!  edge           ||#      ||#        a whole limit just before a second ends, another as the next begins
//!  on-off    ||||    ||||    ||||     at four times the rate for half a second, then silence for one and a half
//! ```

/// The limit of all, in units a second.
pub const UNITS: u64 = 100;
/// Ticks of a second; they are nanoseconds.
pub const SECOND: u64 = 1_000_000_000;
/// How long each stream lasts.
pub const SECONDS: u64 = 8;

/// A stream: its name, what it is, and the instants of its requests, in order.
pub struct Stream {
    pub name: &'static str,
    pub about: &'static str,
    pub arrivals: Vec<u64>,
}

/// Every stream.
pub fn all() -> Vec<Stream> {
    let evenly = |per_second: u64| {
        (0..SECONDS * per_second).map(move |i| i * SECOND / per_second).collect::<Vec<u64>>()
    };
    let edge = (0..SECONDS / 2).flat_map(|pair| {
        let border = (2 * pair + 1) * SECOND;
        let before = (0..UNITS).map(move |i| border - SECOND / 50 + i * SECOND / 5_000);
        before.chain((0..UNITS).map(move |i| border + i * SECOND / 5_000))
    });
    let on_off = evenly(4 * UNITS).into_iter().filter(|at| at % (2 * SECOND) < SECOND / 2).collect();
    vec![
        Stream { name: "steady", about: "at the limit, evenly", arrivals: evenly(UNITS) },
        Stream { name: "overload", about: "twice the limit, evenly", arrivals: evenly(2 * UNITS) },
        Stream {
            name: "edge",
            about: "a whole limit on either side of every other second",
            arrivals: edge.collect(),
        },
        Stream { name: "on-off", about: "four times the limit, half a second in two", arrivals: on_off },
    ]
}

/// The most units among these instants in any window of this length.
pub fn worst(admitted: &[u64], window: u64) -> u64 {
    let mut first = 0;
    let mut most = 0;
    for (last, at) in admitted.iter().enumerate() {
        while admitted[first] + window <= *at {
            first += 1;
        }
        most = most.max(last - first + 1);
    }
    most as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_in_order_and_as_long_as_they_say() {
        for stream in all() {
            assert!(stream.arrivals.windows(2).all(|pair| pair[0] <= pair[1]), "{}", stream.name);
            assert!(stream.arrivals.iter().all(|at| *at < SECONDS * SECOND));
        }
        assert_eq!(worst(&all()[0].arrivals, SECOND), UNITS);
        assert_eq!(worst(&all()[1].arrivals, SECOND), 2 * UNITS);
        assert_eq!(worst(&all()[2].arrivals, SECOND), 2 * UNITS);
    }

    #[test]
    fn the_worst_window_does_not_hold_both_its_ends() {
        assert_eq!(worst(&[0, 10], 10), 1);
        assert_eq!(worst(&[0, 9], 10), 2);
        assert_eq!(worst(&[], 10), 0);
    }
}

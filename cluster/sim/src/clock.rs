//! A clock that a fault may set, stop or slew. All times are nanoseconds of the world, which runs evenly.

/// Nanoseconds since the world began.
pub type Time = u64;

/// One second.
pub const SECOND: Time = 1_000_000_000;
/// One millisecond.
pub const MS: Time = 1_000_000;

/// A clock: since `since` it runs at `ppm` millionths of the world's speed, beginning at `reading`.
#[derive(Clone, Debug)]
pub struct Clock {
    since: Time,
    reading: u64,
    ppm: u64,
}

/// The speed of a clock that is right.
pub const EVEN: u64 = 1_000_000;

impl Clock {
    /// Makes a clock that reads `reading` as the world begins, and is right.
    pub fn at(reading: u64) -> Clock {
        Clock { since: 0, reading, ppm: EVEN }
    }

    /// Reads it.
    pub fn read(&self, now: Time) -> u64 {
        let passed = u128::from(now - self.since) * u128::from(self.ppm) / u128::from(EVEN);
        self.reading + passed as u64
    }

    /// Sets it forward or back.
    pub fn set(&mut self, now: Time, by: i64) {
        self.reading = self.read(now).saturating_add_signed(by);
        self.since = now;
    }

    /// Changes its speed; 0 stops it.
    pub fn run(&mut self, now: Time, ppm: u64) {
        self.set(now, 0);
        self.ppm = ppm;
    }

    /// Returns the moment at which it will read `reading`, or `None` if it stands still before that.
    pub fn when(&self, now: Time, reading: u64) -> Option<Time> {
        let left = reading.saturating_sub(self.read(now));
        if left == 0 {
            return Some(now);
        }
        let ns = (u128::from(left) * u128::from(EVEN)).div_ceil(u128::from(self.ppm.max(1))) + 1;
        (self.ppm > 0).then(|| now.saturating_add(u64::try_from(ns).unwrap_or(u64::MAX)))
    }
}

//! The oracle: a token bucket in exact integers, with unbounded time.
//!
//! Time is counted in grains. `exact` has a grain of 1/units of a tick, so that a unit costs exactly `period` grains
//! and nothing is rounded. `fixed` has the q-unit of a limit as its grain, and says what the rounded-up T_q must give.
//! Both are the same thirty lines.

/// An exact token bucket with every option of a limit.
#[derive(Clone, Debug)]
pub struct Oracle {
    /// Grains of one unit.
    pub t: u128,
    /// Grains a tick, as a fraction.
    pub num: u128,
    pub den: u128,
    pub burst: u128,
    /// Theoretical arrival time in grains.
    pub tat: u128,
    pub soft: u128,
    pub room: u128,
    pub debt: u128,
    pub penalty: u128,
    /// Grains.
    pub delay: u128,
}

/// What must be answered. `stored` is in grains, the times in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    pub verdict: i32,
    pub flags: u32,
    pub remaining: u64,
    pub retry_after: u64,
    pub next_unit: u64,
    pub reset_after: u64,
    pub stored: u64,
}

impl Oracle {
    pub fn exact(units: u64, period: u64, burst: u64) -> Oracle {
        Oracle::of(period as u128, units as u128, 1, burst)
    }

    pub fn fixed(t_q: u64, resolution: i32, burst: u64) -> Oracle {
        let (num, den) = (1 << resolution.max(0), 1 << (-resolution).max(0));
        Oracle::of(t_q as u128, num, den, burst)
    }

    fn of(t: u128, num: u128, den: u128, burst: u64) -> Oracle {
        let burst = burst as u128;
        Oracle { t, num, den, burst, tat: 0, soft: u128::MAX, room: 0, debt: 0, penalty: 0, delay: 0 }
    }

    pub fn grains(&self, now: u128) -> u128 {
        now * self.num / self.den
    }

    pub fn lead(&self, now: u128) -> u128 {
        self.tat.saturating_sub(self.grains(now))
    }

    /// The least number of ticks after `now` in which `wait` grains pass.
    pub fn ticks(&self, now: u128, wait: u128) -> u64 {
        if wait == 0 {
            return 0;
        }
        (((self.grains(now) + wait) * self.den).div_ceil(self.num) - now) as u64
    }

    fn answer(&self, now: u128, verdict: i32, wait: u128, stored: u128) -> Expected {
        let (full, lead) = (self.burst * self.t, self.lead(now));
        let remaining = full.saturating_sub(lead) / self.t;
        let next = if remaining == self.burst { 0 } else { (remaining + 1) * self.t + lead - full };
        let retry_after = if verdict == 2 { u64::MAX } else { self.ticks(now, wait) };
        Expected {
            verdict,
            flags: 0,
            remaining: remaining as u64,
            retry_after,
            next_unit: self.ticks(now, next),
            reset_after: self.ticks(now, lead),
            stored: stored as u64,
        }
    }

    /// Moves the TAT to `lead` grains after now.
    fn set(&mut self, now: u128, lead: u128) {
        self.tat = self.grains(now) + lead;
    }

    pub fn check(&mut self, now: u128, cost: u32, room: u64) -> Expected {
        let room = self.room.min(room as u128);
        let (cost, limit, lead) = (cost as u128, (self.burst + room) * self.t, self.lead(now));
        if cost > self.burst + room {
            return self.answer(now, 2, 0, 0);
        }
        let next = lead + cost * self.t;
        if next > limit {
            let floor = (self.burst + self.penalty) * self.t;
            if self.penalty > 0 && cost > 0 && lead < floor {
                self.set(now, next.min(floor));
            }
            let wait = self.lead(now) + cost * self.t - limit;
            return self.answer(now, 1, wait, 0);
        }
        if cost > 0 {
            self.set(now, next);
        }
        let mut answer = self.answer(now, 0, 0, cost * self.t);
        answer.flags = (next > self.soft.saturating_mul(self.t)) as u32;
        answer.flags |= ((next > self.burst * self.t) as u32) << 2;
        answer
    }

    /// What `check` would say.
    pub fn peek(&self, now: u128, cost: u32) -> Expected {
        let mut free = Oracle { penalty: 0, ..self.clone() };
        let checked = free.check(now, cost, 0);
        let flags = checked.flags;
        Expected { flags, ..self.answer(now, checked.verdict, self.wait(now, cost), 0) }
    }

    fn wait(&self, now: u128, cost: u32) -> u128 {
        (self.lead(now) + cost as u128 * self.t).saturating_sub(self.burst * self.t)
    }

    pub fn charge(&mut self, now: u128, cost: u32) -> Expected {
        let (lead, cap) = (self.lead(now), (self.burst + self.debt) * self.t);
        let next = (lead + cost as u128 * self.t).min(cap).max(lead);
        if next > lead {
            self.set(now, next);
        }
        let mut answer = self.answer(now, 0, 0, next - lead);
        answer.flags = (next > self.soft.saturating_mul(self.t)) as u32;
        answer
    }

    /// Departure, or (1, retry) or (2, 0).
    pub fn reserve(&mut self, now: u128, cost: u32) -> Result<u128, (i32, u64)> {
        if cost as u128 > self.burst {
            return Err((2, 0));
        }
        let wait = self.wait(now, cost);
        if wait > self.delay {
            return Err((1, self.ticks(now, wait - self.delay)));
        }
        if cost > 0 {
            self.set(now, self.lead(now) + cost as u128 * self.t);
        }
        Ok(now + self.ticks(now, wait) as u128)
    }

    /// Gives back what was stored by a charge that left the TAT at `after`, as far as it has not drained.
    pub fn refund(&mut self, now: u128, stored: u64, after: u128, horizon: u128) -> u128 {
        let left = after.saturating_sub(self.grains(now));
        let credit = if left > horizon { 0 } else { left.min(stored as u128) };
        let back = credit.min(self.lead(now));
        self.tat -= back;
        back
    }
}

/// A decision in the oracle's terms.
pub fn seen(d: &tatcell::Decision) -> Expected {
    Expected {
        verdict: d.verdict as i32,
        flags: d.flags,
        remaining: d.remaining,
        retry_after: d.retry_after,
        next_unit: d.next_unit,
        reset_after: d.reset_after,
        stored: d.permit.stored,
    }
}

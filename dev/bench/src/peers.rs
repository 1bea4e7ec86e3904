//! Peers: the crates `governor` (GCRA, one word; keyed by DashMap), `ratelimit` (token bucket, one limiter) and
//! `pingora-limits` (a count-min sketch).
//!
//! They get the same keys, limits and time steps. Their clock is a plain word that the loop sets, so they pay neither
//! for a clock call nor for the atomic addition of governor's `FakeRelativeClock`. Only pingora's `Rate` reads the
//! system's clock itself, at each event; `peer.clock` is that clock alone.

use std::hash::BuildHasher;
use std::num::NonZeroU32;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use std::time::{Duration, Instant};

use governor::clock::Clock;
use governor::nanos::Nanos;
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};

use crate::cells::{decide, CELL, SPENT, STEADY};
use crate::keys::{key, Stream};
use crate::suite::{Body, Mix, Suite, DT};
use crate::tables::{spec, visits, zipf_spec, CHURN_PERIOD};

/// What the loop says it is.
#[derive(Clone, Debug, Default)]
struct Step(Arc<AtomicU64>);

impl Step {
    #[inline(always)]
    fn set(&self, now: u64) {
        self.0.store(now, Relaxed);
    }
}

impl Clock for Step {
    type Instant = Nanos;

    #[inline(always)]
    fn now(&self) -> Nanos {
        Nanos::from(self.0.load(Relaxed))
    }
}

impl ratelimit::Clock for Step {
    #[inline(always)]
    fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.0.load(Relaxed))
    }
}

fn quota(period: u64, burst: u64) -> Quota {
    let burst = NonZeroU32::new(burst as u32).expect("a burst");
    Quota::with_period(Duration::from_nanos(period)).expect("a period").allow_burst(burst)
}

pub fn add(suite: &mut Suite) {
    for (id, text, mix, spec, debt) in
        [("conforming", "conforming", Mix::Pass, STEADY, 5), ("denied", "denied", Mix::Deny, SPENT, 1)]
    {
        let direct_text = format!("governor, direct, {text}");
        suite.add(&format!("peer.governor_{id}"), &direct_text, mix, CELL, |_| governor_direct(spec, debt));
        let ratelimit_text = format!("ratelimit, direct, {text}");
        suite.add(&format!("peer.ratelimit_{id}"), &ratelimit_text, mix, CELL, |_| {
            ratelimit_direct(spec, debt)
        });
    }
    for (keys, size) in [(1_000, "1e3"), (100_000, "1e5"), (1_000_000, "1e6"), (10_000_000, "1e7")] {
        for (id, text, mix) in [("", "", Mix::Pass), ("_denied", ", denied", Mix::Deny)] {
            if mix == Mix::Deny && size != "1e3" && size != "1e6" {
                continue;
            }
            let text = format!("{size} keys, governor, DashMap as shipped{text}");
            suite.add(&format!("peer{size}.governor{id}"), &text, mix, visits(keys), |_| {
                keyed::<std::hash::RandomState>(keys, mix)
            });
            let text = text.replace("as shipped", "with foldhash");
            suite.add(&format!("peer{size}.foldhash{id}"), &text, mix, visits(keys), |_| {
                keyed::<foldhash::fast::RandomState>(keys, mix)
            });
        }
    }
    let (id, text) = ("peer1e6.zipf_governor", "1e6 keys, Zipf(1.0), governor, DashMap as shipped");
    suite.add(id, text, Mix::Pass, visits(1_000_000), |_| zipf::<std::hash::RandomState>(1_000_000));
    let (id, text) = ("peer1e6.zipf_foldhash", "1e6 keys, Zipf(1.0), governor, foldhash");
    suite.add(id, text, Mix::Pass, visits(1_000_000), |_| zipf::<foldhash::fast::RandomState>(1_000_000));
    suite.add("peer.clock", "the clock that pingora's Rate reads", Mix::Bare, CELL, |_| clock());
    for (keys, size) in [(1_000, "1e3"), (100_000, "1e5"), (1_000_000, "1e6"), (10_000_000, "1e7")] {
        let text = format!("{size} keys, pingora Rate, estimate, with its clock");
        let id = format!("peer{size}.pingora");
        suite.add(&id, &text, Mix::Bare, visits(keys), |_| pingora(Stream::uniform(keys)));
    }
    let text = "every key new, governor, foldhash, retain_recent";
    suite.add("churn.governor", text, Mix::Pass, visits(1_000_000), |_| churn());
}

fn governor_direct((_, period, burst): (u64, u64, u64), debt: u32) -> Body {
    let clock = Step::default();
    let limiter = Rc::new(RateLimiter::direct_with_clock(quota(period, burst), clock.clone()));
    let mut now = DT;
    clock.set(now);
    for _ in 0..debt {
        let _ = limiter.check();
    }
    Box::new(move |n| {
        let limiter = std::hint::black_box(&*limiter);
        decide(n, &mut now, DT, |now| {
            clock.set(now);
            limiter.check().is_ok()
        })
    })
}

fn ratelimit_direct((units, period, burst): (u64, u64, u64), debt: u32) -> Body {
    let clock = Step::default();
    let limiter = ratelimit::Builder::with_clock(units, clock.clone());
    let limiter = limiter.period(Duration::from_nanos(period)).max_tokens(burst).initial_available(burst);
    let limiter = Rc::new(limiter.build().expect("a limiter"));
    let mut now = DT;
    clock.set(now);
    for _ in 0..debt {
        let _ = limiter.try_wait();
    }
    Box::new(move |n| {
        let limiter = std::hint::black_box(&*limiter);
        decide(n, &mut now, DT, |now| {
            clock.set(now);
            limiter.try_wait().is_ok()
        })
    })
}

type Keyed<S> =
    RateLimiter<[u8; 16], DashMapStateStore<[u8; 16], S>, Step, governor::middleware::NoOpMiddleware<Nanos>>;

fn limiter<S: BuildHasher + Clone + Default>(period: u64, burst: u64, clock: &Step) -> Keyed<S> {
    RateLimiter::dashmap_with_clock_and_hasher(quota(period, burst), clock.clone(), S::default())
}

struct Fixture<S: BuildHasher + Clone> {
    limiter: Keyed<S>,
    clock: Step,
    stream: Stream,
    now: u64,
}

/// A keyed limiter with all its keys in it.
fn keyed<S: BuildHasher + Clone + Default + 'static>(keys: u32, mix: Mix) -> Body {
    filled::<S>(keys, spec(keys, mix), Stream::uniform(keys))
}

fn zipf<S: BuildHasher + Clone + Default + 'static>(keys: u32) -> Body {
    filled::<S>(keys, zipf_spec(keys), Stream::zipf(keys))
}

fn filled<S: BuildHasher + Clone + Default + 'static>(
    keys: u32,
    (period, burst): (u64, u64),
    stream: Stream,
) -> Body {
    let clock = Step::default();
    clock.set(1 << 30);
    let limiter = limiter::<S>(period, burst, &clock);
    for id in 0..u64::from(keys) {
        let _ = limiter.check_key(&key(id));
    }
    let mut fixture = Fixture { limiter, clock, stream, now: 1 << 30 };
    Box::new(move |n| single(&mut fixture, n))
}

#[inline(never)]
fn single<S: BuildHasher + Clone>(fixture: &mut Fixture<S>, n: u64) -> u64 {
    let (mut passed, mut now) = (0, fixture.now);
    let (ids, turn) = fixture.stream.take(n as usize);
    for &id in ids {
        now += DT;
        fixture.clock.set(now);
        passed += u64::from(fixture.limiter.check_key(&key(turn.id(id))).is_ok());
    }
    fixture.now = now;
    passed
}

/// Counts of the running second, of which a caller refuses what exceeds its limit. As shipped, 4 x 1024 counters: they
/// fit the cache whatever the number of keys, and beyond some hundred keys an estimate is mostly the counts of others.
/// So there is no verdict to check.
fn pingora(mut stream: Stream) -> Body {
    let rate = pingora_limits::rate::Rate::new(Duration::from_secs(1));
    Box::new(move |n| {
        let (ids, turn) = stream.take(n as usize);
        ids.iter().map(|&id| u64::from(rate.observe(&key(turn.id(id)), 1) > 0)).sum()
    })
}

fn clock() -> Body {
    let start = Instant::now();
    Box::new(move |n| (0..n).map(|_| u64::from(start.elapsed().as_millis() > 0)).sum())
}

/// Every key new. Expired keys stay in the map until `retain_recent` walks it: once each 2^18 keys here, charged.
fn churn() -> Body {
    let clock = Step::default();
    let limiter = limiter::<foldhash::fast::RandomState>(CHURN_PERIOD, 1, &clock);
    let mut fresh = 0u64;
    Box::new(move |n| {
        let mut passed = 0;
        for _ in 0..n {
            fresh += 1;
            clock.set((1 << 30) + fresh * DT);
            passed += u64::from(limiter.check_key(&key(fresh)).is_ok());
            if fresh % (1 << 18) == 0 {
                limiter.retain_recent();
            }
        }
        passed
    })
}

//! Any limit and any options: they are refused with an error, or hold. The numbers of an accepted limit keep their
//! promises, and it admits no more than was asked for, at once and over time.

use tatcell::{
    full_set_ppb, lines_for, lines_for_load, ExclusiveCell, FullPolicy, HashKind, Limit, Limit32, LimitSpec,
    MeterSpec, SmallLimit, SmallLimit32, Table, TableError, TableOptions, MIN_SLOTS,
};

use super::pool::piece;
use crate::data::Data;

fn spec(data: &mut Data<'_>) -> LimitSpec {
    let (units, period, burst) = (data.sharp(), data.sharp(), data.sharp());
    let mut spec = match data.below(8) {
        0 => LimitSpec::fixed_window(units, period),
        1 => LimitSpec::sliding_counter(units, period),
        2 => LimitSpec::quota_linear(units, period),
        3 => LimitSpec::decay(units, period),
        _ => LimitSpec::new(units, period, burst),
    };
    let options = u16::from(data.byte()) << 8 | u16::from(data.byte());
    let mut asked = 0;
    let mut next = |data: &mut Data<'_>| {
        asked += 1;
        (options >> (asked - 1) & 1 == 1).then(|| data.sharp())
    };
    spec = next(data).map_or(spec, |n| spec.soft(n));
    spec = next(data).map_or(spec, |n| spec.max_room(n));
    spec = next(data).map_or(spec, |n| spec.max_delay(n));
    spec = next(data).map_or(spec, |n| spec.max_debt(n));
    spec = next(data).map_or(spec, |n| spec.penalty(n));
    spec = next(data).map_or(spec, |n| spec.skew(n));
    spec = next(data).map_or(spec, |n| spec.resolution(n as i8));
    spec = next(data).map_or(spec, |n| spec.epoch(n as u32));
    spec = next(data).map_or(spec, |n| spec.aligned(n));
    spec = next(data).map_or(spec, |_| spec.heal());
    next(data).map_or(spec, |_| spec.strict_refunds())
}

pub fn run(input: &[u8]) {
    let data = &mut Data(input);
    let spec = spec(data);
    if let Ok(limit) = spec.build() {
        holds(data, &limit);
        let _ = SmallLimit::from_limit(&limit);
    }
    if let Ok(limit) = spec.build32() {
        let info = limit.info();
        assert!(info.span >= 1, "{info:?}");
        let _ = SmallLimit32::from_limit(&limit);
    }
    let (a, b, c) = (data.sharp(), data.sharp(), data.sharp());
    for limit in [Limit::new(a, b, c), Limit::from_rate(a, b, c)].into_iter().flatten() {
        holds(data, &limit);
    }
    let _ = (Limit32::new(a, b, c), Limit32::from_rate(a, b, c));
    let _ = (SmallLimit::new(a, b, c), SmallLimit::shaped(a, b, c, data.sharp()));
    let _ = (SmallLimit32::new(a, b, c), SmallLimit32::shaped(a, b, c, data.sharp()));
    table(data, spec);
    meter(data);
    let lines = lines_for(a as usize);
    assert!(lines as u128 * 8 >= u128::from(a) || lines >= usize::MAX / 64, "{a} slots in {lines} lines");
    let _ = (lines_for_load(b, c), full_set_ppb(a));
}

/// Never above the burst at once, and never above the rate for long.
fn holds(data: &mut Data<'_>, limit: &Limit) {
    let info = limit.info();
    assert!(info.burst >= 1 && info.horizon <= info.span, "{info:?}");
    if info.burst == u64::MAX || limit.numbers().is_err() {
        return;
    }
    let numbers = limit.numbers().expect("looked at");
    let exact = |t: u128| {
        // T is never below the exact one: period * 2^s <= T * units, in numbers that fit 128 bits.
        let (period, units) = (u128::from(info.period), u128::from(info.units));
        match info.resolution {
            s @ 0.. => period.checked_shl(s as u32).is_some_and(|p| p >> s == period && p <= t * units),
            s => period <= (t * units).checked_shl(-s as u32).unwrap_or(u128::MAX) || t.leading_zeros() < 40,
        }
    };
    assert!(exact(numbers.emission_q.into()), "faster than was asked for: {info:?}");
    // Not beyond 2^63: a clock that wraps at 2^64 is not one that a coarser unit can follow.
    let now = data.word() >> 1;
    let mut cell = ExclusiveCell::new();
    let made = cell.check_ex(limit, now, info.burst, 0);
    assert!(made.passes() && made.remaining == 0, "no burst: {made:?}, {info:?}");
    assert!(!cell.check(limit, now, 1).passes(), "more than a burst: {info:?}");
    let wait = cell.peek(limit, now, 1).retry_after;
    assert!(wait > 0);
    assert!(!cell.clone().check(limit, now.wrapping_add(wait - 1), 1).passes(), "early: {info:?}");
    assert!(cell.clone().check(limit, now.wrapping_add(wait), 1).passes(), "late: {info:?}");
    let refused = cell.clone().check_ex(
        limit,
        now,
        info.burst.saturating_add(1).saturating_add(numbers.room),
        u64::MAX,
    );
    assert!(!refused.passes() || info.burst.saturating_add(numbers.room) == u64::MAX);
}

/// Options that are taken make a table that can be attached, and that takes the limit it was made for.
fn table(data: &mut Data<'_>, spec: LimitSpec) {
    let mut options = match data.below(8) {
        0 => TableOptions::overrides(data.sharp()),
        _ => TableOptions::new(spec),
    };
    options = match data.below(4) {
        0 => options.hash(HashKind::Aes).seed([data.byte(); 16]),
        1 => options.seed([data.byte(); 16]),
        2 => options,
        _ => options.caller_hash(),
    };
    let flags = data.byte();
    if flags & 1 != 0 {
        options = options.tag_bits(data.byte().into());
    }
    if flags & 2 != 0 {
        options = options.resolution(data.byte() as i8);
    }
    if flags & 4 != 0 {
        options = options.skew(data.sharp());
    }
    if flags & 8 != 0 {
        options = options.claim_lifetime(data.sharp());
    }
    if flags & 16 != 0 {
        options = options.guard(data.sharp());
    }
    if flags & 32 != 0 {
        options = options.slowest(LimitSpec::new(data.sharp(), data.sharp(), data.sharp()));
    }
    if flags & 64 != 0 {
        let policies = [FullPolicy::Inherit, FullPolicy::Deny, FullPolicy::Sampled];
        options = options.policy(data.pick(&policies)).tick_hz(data.sharp());
    }
    let memory = piece();
    let lines = 2 + data.below(9) as usize;
    match Table::init(memory.lines(lines), &options) {
        Ok(table) => {
            let info = table.info();
            assert!(table.slots() >= MIN_SLOTS && table.slots() <= (lines - 2) * 8);
            assert!(info.horizon <= info.window && info.window <= info.span, "{info:?}");
            // A resolution of the caller's own may be coarser than what windows are decided by.
            if !info.overrides && flags & 2 == 0 {
                let limit = table.limit(&spec);
                assert!(
                    limit.is_ok(),
                    "{limit:?} for {spec:?}, which the table was made for by {options:?}: {info:?}"
                );
            }
        }
        Err(e) => {
            let untouched = crate::common::words(memory.lines(lines));
            // ORDERING: nobody else has this memory.
            let zero = untouched.iter().all(|w| w.load(std::sync::atomic::Ordering::Relaxed) == 0);
            assert!(zero, "{e:?}, and the memory was changed");
            assert!(e != TableError::TooSmall || lines < 4, "{lines} lines are enough");
        }
    }
}

/// A meter that is taken has its bursts, and no unit more.
fn meter(data: &mut Data<'_>) {
    let (a, b, c, d, hz) = (data.sharp(), data.sharp(), data.sharp(), data.sharp(), data.sharp());
    let spec = match data.below(4) {
        0 => MeterSpec::rfc2697(a, b, c, hz),
        1 => MeterSpec::rfc2698(a, b, c, d, hz),
        2 => MeterSpec::rfc4115(a, b, c, d, hz),
        _ => MeterSpec::rfc4115(a, b, c, d, hz).coupled(),
    };
    if let Ok(limit) = spec.build() {
        let info = limit.info();
        // In ticks the one is rounded up and the other down.
        assert!(
            info.horizon.saturating_sub(info.span) <= 1 && info.skew.saturating_sub(info.span) <= 1,
            "{info:?}"
        );
        let meter = tatcell::Meter::new();
        let most = b.max(c).max(d);
        let marking = meter.check(&limit, data.word(), most.saturating_add(1), tatcell::Colour::Green);
        assert!(!marking.passes(), "more than both bursts: {info:?}");
    }
}

//! Hostile memory: any words in the slots, any bits of the header. Nothing crashes or reaches outside, answers keep
//! their bounds, and the effect of a forged word ends with the window.

use std::sync::atomic::Ordering::Relaxed;

use tatcell::{
    Access, AttachOptions, Burst, Counters, Decision, ExclusiveTable, FullPolicy, LimitSpec, Line, NextBurst,
    Outcome, Permit, Request, Slot, Table, TableOptions,
};

use super::{hostile_word, pool::piece};
use crate::common::{hash_of, words};
use crate::data::Data;

const POLICIES: [FullPolicy; 4] =
    [FullPolicy::Admit, FullPolicy::Inherit, FullPolicy::Deny, FullPolicy::Sampled];
/// Lines of slots behind the header's.
const SLOT_LINES: u32 = 4;
const LINES: usize = 2 + SLOT_LINES as usize;

/// A limit of any algorithm, small enough for a slot, and the options of its table; or a table of overrides.
fn limit(data: &mut Data<'_>) -> (LimitSpec, TableOptions) {
    let spec = match data.below(7) {
        0 => LimitSpec::fixed_window(10, 1_000_000),
        1 => LimitSpec::sliding_counter(10, 1_000_000),
        2 => LimitSpec::quota_linear(10, 1_000_000),
        3 => LimitSpec::decay(10, 1_000_000),
        4 => return (LimitSpec::new(1, 1 << 12, 8), TableOptions::overrides(1 << 20).caller_hash()),
        _ => LimitSpec::new(1, 1 << 12, 8).max_room(2),
    };
    (spec, TableOptions::new(spec).caller_hash())
}

/// Every call of a table.
fn every_call<M: Access>(table: &Table<'_, M>, spec: &LimitSpec, data: &mut Data<'_>, now: u64) {
    let hash = hash_of(data.below(SLOT_LINES.into()) as u32, SLOT_LINES, 1 + data.below(5) as u32);
    let cost = data.pick(&[0, 1, 8, 9, u64::MAX]);
    let until = now.wrapping_add(data.scaled(40));
    let _ = (table.ban(now, hash, until), table.exempt(now, hash, until), table.lift(now, hash));
    let _ = table.overridden(now, hash);
    let mut image = [0; LINES * 8];
    let saved = table.save(now, &mut image);
    assert!(saved.is_ok_and(|used| used == image.len()));
    let stats = table.stats(now);
    assert!(stats.live + stats.claims + stats.expired <= stats.slots);
    assert_eq!(stats.debt.iter().sum::<u64>(), stats.live);
    let mut top = [Slot::default(); 3];
    let found = table.top(now, &mut top);
    assert!(found <= 3 && found as u64 <= stats.live);
    let next = table.next_live(now, data.sharp() as usize);
    assert!(next.is_none_or(|slot| (slot.number as u64) < stats.slots));
    let swept = table.sweep(now, data.sharp() as usize, data.sharp() as usize);
    assert!((swept as u64) < stats.slots.max(1));
    let Ok(limit) = table.limit(spec) else { return };
    let mut counters = Counters::default();
    let request = Request { limit: &limit, now, cost, room: data.sharp() };
    let made = table.check_ex(&request, hash, Some(&mut counters)).expect("its own limit");
    assert!(made.remaining <= limit.burst());
    let mut permit = made.permit;
    if data.flag() {
        permit = Permit {
            tat: data.word(),
            stored: data.sharp(),
            tick: now.wrapping_sub(data.scaled(20)),
            generation: data.below(3),
            slot: data.word() as u32,
            ..Permit::NONE
        };
    }
    let _ = table.refund(&limit, now, hash, &permit).expect("its own limit");
    let _ = table.check_hash(&limit, now, hash, cost).expect("its own limit");
    assert!(table.peek(&limit, now, hash, cost).expect("its own limit").remaining <= limit.burst());
    let _ = table.charge(&limit, now, hash, cost, None).expect("its own limit");
    let _ = table.reserve(&limit, now, hash, cost, None);
    let hashes: [u64; 8] = core::array::from_fn(|_| data.word());
    table.prefetch(&hashes);
    let (plain, costs) = (Burst::new(&limit, now, &hashes), [cost as u32; 8]);
    let burst = Burst { costs: Some(&costs), ..plain };
    let each = |_, d: &Decision| assert!(d.remaining <= limit.burst());
    assert!(plain.check_ex(table, Some(&mut counters), NextBurst::NONE, each).is_ok());
    assert!(burst.check(table, None, NextBurst::hashes(&hashes)).is_ok());
    let _ = table.reset_key(now, hash);
}

/// After whatever was written, a key has its burst when the longest debt is over that a word can show.
fn denial_ends(table: &Table<'_>, spec: &LimitSpec, data: &mut Data<'_>, now: u64) {
    let Ok(limit) = table.limit(spec) else { return };
    let info = table.info();
    let hash = hash_of(data.below(SLOT_LINES.into()) as u32, SLOT_LINES, 1 + data.below(5) as u32);
    // Claims that nobody completes fill a set until they expire; a claim may be as old as the window is long.
    let mut later = now;
    for wait in [0, 1, info.claim_lifetime, info.window] {
        later = later.wrapping_add(wait);
        if table.check_hash(&limit, later, hash, 1) != Ok(Outcome::Contended) {
            break;
        }
    }
    let end = later.wrapping_add(info.window).wrapping_add(info.claim_lifetime);
    // Words that a wrap brings back in the meantime would be another debt.
    if info.window.saturating_mul(4) < info.span {
        let request = Request { limit: &limit, now: end, cost: limit.burst(), room: 0 };
        let made = table.check_ex(&request, hash, None).expect("its own limit");
        assert!(made.passes(), "refused after the window: {made:?} at {end}, {info:?}");
    }
}

/// Hostile words in all slots: each its own, or one word under a tag a slot, so that sets are full of one kind.
fn fill(lines: &[Line], header: usize, data: &mut Data<'_>, now_q: u64, bits: u32) {
    let alike = data.below(4) == 1;
    let word = hostile_word(data, now_q, bits);
    for (i, slot) in words(lines)[header..].iter().enumerate() {
        let word = match alike {
            true => word & ((1 << 63) | ((1 << bits) - 1)) | ((10 + i as u64) << bits),
            false => hostile_word(data, now_q, bits),
        };
        slot.store(word, Relaxed);
    }
}

pub fn run(input: &[u8]) {
    let data = &mut Data(input);
    let (spec, options) = limit(data);
    let options = options.tag_bits(data.pick(&[12, 16, 20, 20]));
    let (policy, bits) = (data.pick(&POLICIES), data.byte());
    let (one, mut two) = (piece(), piece());
    let memory = one.lines(LINES);
    // What Inherit has nothing to measure with takes the default.
    let made = Table::init(memory, &options.policy(policy)).or_else(|_| Table::init(memory, &options));
    let Ok(table) = made else { return };
    let now = data.word();
    let shift = table.resolution();
    let now_q = if shift >= 0 { now.wrapping_shl(shift as u32) } else { now >> -shift };
    let payload = 63 - table.info().tag_bits;
    fill(memory, 16, data, now_q, payload);
    if bits & 3 != 0 {
        // The slots alone are hostile.
        for (mine, own) in words(memory).iter().zip(words(two.lines(LINES))) {
            own.store(mine.load(Relaxed), Relaxed);
        }
        denial_ends(&table, &spec, data, now);
        every_call(&table, &spec, data, now);
        every_call(&table, &spec, data, now.wrapping_add(1 << 20));
        let own = ExclusiveTable::init_exclusive(two.lines_mut(LINES), &options);
        if let Ok(own) = own {
            every_call(&own, &spec, data, now);
        }
        return;
    }
    // The header as well: some bits of it, or whole words.
    for _ in 0..1 + data.below(4) {
        let word = &words(memory)[data.below(16) as usize];
        let old = word.load(Relaxed);
        word.store(if data.flag() { old ^ 1 << data.below(64) } else { data.sharp() }, Relaxed);
    }
    if let Ok(attached) = Table::attach(memory, &AttachOptions::new()) {
        assert_eq!(attached.slots(), SLOT_LINES as usize * 8, "not the memory that there is");
        every_call(&attached, &spec, data, now);
        every_call(&attached, &LimitSpec::new(1, 1 << 16, 1), data, now);
    }
}

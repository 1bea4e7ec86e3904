//! Every form of a burst against one exact bucket per key: what passes, what is counted, what is left.
//!
//! The buckets are whole ticks in plain integers. The oracle uses nothing of the library, and single calls come only at
//! the end. The keys are fewer than the slots of their one set, so no policy decides; and they are more than the slots
//! of a line, so some live in the second line.

use crate::common::{cases, hash_of, memory, Rng};
use tatcell::{
    Access, Burst, Counters, Decision, Exclusive, HashKind, LimitSpec, Line, NextBurst, Shared, Table,
    TableOptions, MAX_BURST,
};

/// Ticks a unit: a power of two, so that no word of a table rounds it.
const T: u64 = 1 << 12;
const KEYS: u64 = 14;

/// How a burst is asked for.
#[derive(Clone, Copy, Debug)]
struct Way {
    next: Next,
    counted: bool,
    /// With the full answer of each request.
    full: bool,
}

/// How the call gets the next burst.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Next {
    None,
    Hashes,
    Keys,
}

impl Way {
    /// Makes the call. `told` gets the parts of the full answers.
    fn ask<M: Access, const N: usize>(
        self,
        (table, burst): (&Table<'_, M>, Burst<'_>),
        counters: &mut Counters,
        told: &mut Vec<(usize, bool, u64)>,
        next: NextBurst<'_, impl Fn(usize) -> [u8; N]>,
    ) -> u64 {
        let counters = self.counted.then_some(counters);
        let pass = match self.full {
            false => burst.check(table, counters, next),
            true => burst.check_ex(table, counters, next, |i, d| told.push((i, d.passes(), d.cost))),
        };
        pass.unwrap()
    }
}

/// Who hashes, and what.
#[derive(Clone, Copy, Debug)]
enum Keys {
    Caller,
    Short(HashKind),
    Long(HashKind),
}

/// An exact bucket a key, and what it has answered.
struct Buckets {
    burst: u64,
    soft: u64,
    tats: [u64; KEYS as usize],
    counted: Counters,
}

impl Buckets {
    /// One request, decided and counted.
    fn check(&mut self, now: u64, key: u64, cost: u32) -> bool {
        let tat = &mut self.tats[key as usize];
        let next = tat.saturating_sub(now) + u64::from(cost) * T;
        if u64::from(cost) > self.burst {
            self.counted.never += 1;
        } else if next > self.burst * T {
            self.counted.non_conforming += 1;
        } else {
            self.counted.conforming += 1;
            self.counted.soft += u64::from(next > self.soft * T);
            *tat = now + next;
            return true;
        }
        false
    }
}

fn key<const N: usize>(id: u64) -> [u8; N] {
    std::array::from_fn(|i| (id as u8).wrapping_mul(37).wrapping_add(i as u8))
}

type Init<M> = fn(&'static mut [Line], &TableOptions) -> Table<'static, M>;

/// Some bursts of one table, one after the other.
fn play<M: Access>(init: Init<M>, rng: &mut Rng, keys: Keys, way: Way) {
    let burst = rng.within(1, 40);
    let soft = rng.one_in(3).then(|| rng.within(1, burst));
    let spec = LimitSpec::new(1, T, burst);
    let spec = soft.map_or(spec, |soft| spec.soft(soft));
    let options = TableOptions::new(spec);
    let options = match keys {
        Keys::Caller => options.caller_hash(),
        Keys::Short(kind) | Keys::Long(kind) => {
            options.seed(std::array::from_fn(|_| rng.next() as u8)).hash(kind)
        }
    };
    let table = init(memory(4).leak(), &options);
    let limit = table.limit(&spec).unwrap();
    let mut buckets = Buckets {
        burst,
        soft: soft.unwrap_or(u64::MAX / T),
        tats: [0; KEYS as usize],
        counted: Counters::default(),
    };
    let home = rng.below(2) as u32;
    let hash = |id: u64| match keys {
        Keys::Caller => hash_of(home, 2, id as u32 + 1),
        Keys::Short(_) => table.hash(&key::<4>(id)).unwrap(),
        Keys::Long(_) => table.hash(&key::<16>(id)).unwrap(),
    };
    // Two keys with the same tag, the lowest 20 bits of a hash, would share one debt.
    if (0..KEYS).any(|a| (0..a).any(|b| (hash(a) ^ hash(b)) << 44 == 0)) {
        return;
    }
    let (mut now, mut counters) = (1u64 << 40, Counters::default());
    let (mut ids, mut hashes, mut last): (Vec<u64>, Vec<u64>, u64) = (Vec::new(), Vec::new(), 0);
    for _ in 0..rng.within(3, 12) {
        now += rng.pick(&[0, 1, T / 2, T, 3 * T]) * rng.below(3);
        let costs: Vec<u32> = ids.iter().map(|_| rng.pick(&[0, 1, 1, 2, 3, 41])).collect();
        let costs = rng.one_in(3).then_some(&costs[..]);
        let wanted = ids.iter().enumerate().fold(0u64, |pass, (i, &id)| {
            pass | u64::from(buckets.check(now, id, costs.map_or(1, |c| c[i]))) << i
        });
        // The next burst has any keys, or one key many times.
        let (few, n) = (rng.within(1, KEYS), rng.pick(&[0, 1, 7, 23, 24, 31, 40, MAX_BURST as u64]));
        let next: Vec<u64> = (0..n).map(|_| rng.below(few)).collect();
        let known: Vec<u64> = next.iter().map(|&id| hash(id)).collect();
        let (mut made, mut told) = (vec![0; next.len()], Vec::new());
        let of = (&table, Burst { limit: &limit, now, hashes: &hashes, costs, last });
        let pass = match (way.next, keys) {
            (Next::None, _) => way.ask(of, &mut counters, &mut told, NextBurst::NONE),
            (Next::Keys, Keys::Short(_)) => {
                let next = NextBurst::keys(&mut made, |i| key::<4>(next[i]));
                way.ask(of, &mut counters, &mut told, next)
            }
            (Next::Keys, Keys::Long(_)) => {
                let next = NextBurst::keys(&mut made, |i| key::<16>(next[i]));
                way.ask(of, &mut counters, &mut told, next)
            }
            _ => way.ask(of, &mut counters, &mut told, NextBurst::hashes(&known)),
        };
        let what = || format!("{keys:?} {way:?} burst {burst} soft {soft:?} at {now}: {ids:?} {costs:?}");
        assert_eq!(pass, wanted, "{}", what());
        if way.full {
            let wanted = (0..ids.len()).map(|i| (i, wanted >> i & 1 == 1, costs.map_or(1, |c| c[i].into())));
            assert!(told.iter().copied().eq(wanted), "in order: {told:?}");
        }
        if way.counted {
            // A key whose debt has drained may find its slot or be inserted again.
            let inserted = counters.inserted;
            assert_eq!(counters, Counters { inserted, ..buckets.counted }, "{}", what());
        }
        if way.next == Next::Keys && !matches!(keys, Keys::Caller) {
            assert_eq!(made, known, "{}", what());
        }
        (ids, hashes, last) = (next, known, wanted);
    }
    // What each key owes, to the tick.
    for id in 0..KEYS {
        let decision = table.peek(&limit, now, hash(id), 0).unwrap();
        let owes = buckets.tats[id as usize].saturating_sub(now);
        assert_eq!(decision.reset_after, owes, "{keys:?} {way:?}: key {id} at {now}");
    }
}

fn in_every_form<M: Access>(init: Init<M>, n: u64) {
    let mut keys = vec![Keys::Caller];
    for kind in [HashKind::SipHash13, HashKind::Aes].into_iter().filter(|kind| kind.is_available()) {
        keys.extend([Keys::Short(kind), Keys::Long(kind)]);
    }
    cases(n, |rng| {
        for &keys in &keys {
            for next in [Next::None, Next::Hashes, Next::Keys] {
                for full in [false, true] {
                    let counted = rng.one_in(2);
                    play(init, rng, keys, Way { next, counted, full });
                }
            }
        }
    });
}

#[test]
fn bursts_of_every_form_are_those_of_exact_buckets() {
    in_every_form::<Shared>(|lines, options| Table::init(lines, options).unwrap(), 400);
}

#[test]
fn bursts_of_one_owner_are_those_of_exact_buckets() {
    in_every_form::<Exclusive>(|lines, options| Table::init_exclusive(lines, options).unwrap(), 400);
}

/// The burst methods of 0.3 decide, count, hash and fail as the calls that replaced them.
#[test]
#[allow(deprecated)]
fn a_deprecated_method_answers_as_the_new_call() {
    let spec = LimitSpec::new(1, T, 3);
    // Makes a call for a good burst and for one with too few costs, and returns all that it answered and left.
    macro_rules! answers {
        (|$table:ident, $burst:ident, $counters:ident, $out:ident| $call:expr) => {{
            let lines = memory(4);
            let $table = &Table::init(&lines, &TableOptions::new(spec).seed([7; 16])).unwrap();
            let (limit, now, mut counters) = ($table.limit(&spec).unwrap(), 1 << 40, Counters::default());
            let burst = Burst { costs: Some(&[2, 3, 2]), ..Burst::new(&limit, now, &[1, 2, 1]) };
            let answers = [burst, Burst { costs: Some(&[]), ..burst }].map(|$burst| {
                let ($counters, $out) = (&mut counters, &mut vec![0; 3]);
                format!("{:?} {:?}", $call, $out)
            });
            (answers, [1, 2].map(|hash| $table.peek(&limit, now, hash, 1).unwrap().remaining), counters)
        }};
    }
    let key4 = |i: usize| key::<4>(i as u64);
    assert_eq!(
        answers!(|t, b, _c, _out| t.check_burst(b.limit, b.now, b.hashes, b.costs)),
        answers!(|t, b, _c, _out| b.check(t, None, NextBurst::NONE)),
    );
    assert_eq!(
        answers!(|t, b, c, _out| t.check_burst_counted(&b, c)),
        answers!(|t, b, c, _out| b.check(t, Some(c), NextBurst::NONE)),
    );
    assert_eq!(
        answers!(|t, b, c, out| t.check_burst_ahead(&b, Some(c), out, key4)),
        answers!(|t, b, c, out| b.check(t, Some(c), NextBurst::keys(out, key4))),
    );
    assert_eq!(
        answers!(|t, b, c, out| {
            let each = |i, d: &Decision| out[i] = d.remaining;
            t.check_burst_ex(b.limit, b.now, b.hashes, b.costs, Some(c), each)
        }),
        answers!(|t, b, c, out| b.check_ex(t, Some(c), NextBurst::NONE, |i, d| out[i] = d.remaining)),
    );
}

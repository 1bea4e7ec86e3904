//! Every form of a burst against one exact bucket per key: what passes, what is counted, what is left.
//!
//! The buckets are whole ticks in plain integers. The oracle uses nothing of the library, and single calls come only at
//! the end. The keys are fewer than the slots of their one set, so no policy decides; and they are more than the slots
//! of a line, so some live in the second line.

use crate::common::{cases, hash_of, memory, Rng};
use tatcell::{
    Access, Burst, Counters, Decision, Exclusive, FullPolicy, HashKind, LimitSpec, Line, Shared, Table,
    TableOptions, MAX_BURST,
};

/// Ticks a unit: a power of two, so that no word of a table rounds it.
const T: u64 = 1 << 12;
const KEYS: u64 = 14;

/// How a burst is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Plain,
    Counted,
    /// Hashed and decided, while the next one is hashed.
    Ahead,
    Prepared,
    PreparedCounted,
    /// With the full answer of each.
    Full,
}

const WAYS: [Way; 6] = [Way::Plain, Way::Counted, Way::Ahead, Way::Prepared, Way::PreparedCounted, Way::Full];

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
    let (mut now, mut counters, mut counted) = (1u64 << 40, Counters::default(), false);
    let (mut ids, mut hashes, mut last): (Vec<u64>, Vec<u64>, u64) = (Vec::new(), Vec::new(), 0);
    for _ in 0..rng.within(3, 12) {
        now += rng.pick(&[0, 1, T / 2, T, 3 * T]) * rng.below(3);
        let costs: Vec<u32> = ids.iter().map(|_| rng.pick(&[0, 1, 1, 2, 3, 41])).collect();
        let costs = rng.one_in(3).then_some(&costs[..]);
        let wanted = ids.iter().enumerate().fold(0u64, |pass, (i, &id)| {
            pass | u64::from(buckets.check(now, id, costs.map_or(1, |c| c[i]))) << i
        });
        let of = Burst { limit: &limit, now, hashes: &hashes, costs, last };
        // The keys of the next one: one in all places, or any.
        let (few, n) = (rng.within(1, KEYS), rng.pick(&[0, 1, 7, 23, 24, 31, 40, MAX_BURST as u64]));
        let next: Vec<u64> = (0..n).map(|_| rng.below(few)).collect();
        let mut made = vec![0; next.len()];
        let pass = match way {
            Way::Plain => table.check_burst(&limit, now, &hashes, costs),
            Way::Counted => table.check_burst_counted(&of, &mut counters),
            Way::Ahead => match keys {
                Keys::Caller => table.check_burst_counted(&of, &mut counters),
                Keys::Short(_) => {
                    table.check_burst_ahead(&of, Some(&mut counters), &mut made, |i| key::<4>(next[i]))
                }
                Keys::Long(_) => {
                    table.check_burst_ahead(&of, Some(&mut counters), &mut made, |i| key::<16>(next[i]))
                }
            },
            Way::Prepared => table.check_burst_prefetched(&of, None),
            Way::PreparedCounted => table.check_burst_prefetched(&of, Some(&mut counters)),
            Way::Full => {
                let mut told = Vec::new();
                let each = |i: usize, d: &Decision| told.push((i, d.passes(), d.cost));
                let pass = table.check_burst_ex(&limit, now, &hashes, costs, Some(&mut counters), each);
                let wanted =
                    (0..ids.len()).map(|i| (i, wanted >> i & 1 == 1, costs.map_or(1, |c| c[i].into())));
                assert!(told.iter().copied().eq(wanted), "in order: {told:?}");
                pass
            }
        };
        let what = || format!("{keys:?} {way:?} burst {burst} soft {soft:?} at {now}: {ids:?} {costs:?}");
        assert_eq!(pass, Ok(wanted), "{}", what());
        counted |= !matches!(way, Way::Plain | Way::Prepared);
        if counted {
            // A key that has drained may find its slot or be inserted again.
            let inserted = counters.inserted;
            assert_eq!(counters, Counters { inserted, ..buckets.counted }, "{}", what());
        }
        // Whoever hashes, a key has one hash.
        let known: Vec<u64> = next.iter().map(|&id| hash(id)).collect();
        match (keys, way) {
            (Keys::Caller, _) => made.clone_from(&known),
            (_, Way::Ahead) => {}
            (Keys::Short(_), Way::Prepared | Way::PreparedCounted) => {
                table.prepare_burst(&mut made, |i| key::<4>(next[i])).unwrap();
            }
            (Keys::Long(_), Way::Prepared | Way::PreparedCounted) => {
                table.prepare_burst(&mut made, |i| key::<16>(next[i])).unwrap();
            }
            (Keys::Short(_), _) => table.hash_burst(&mut made, |i| key::<4>(next[i])).unwrap(),
            (Keys::Long(_), _) => table.hash_burst(&mut made, |i| key::<16>(next[i])).unwrap(),
        }
        assert_eq!(made, known, "{}", what());
        (ids, hashes, last) = (next, made, wanted);
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
            WAYS.into_iter().for_each(|way| play(init, rng, keys, way));
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

/// Where sets are full the policy decides, and what it takes over changes what later requests of a burst meet: there a
/// burst is held to single calls.
fn in_full_sets<M: Access>(init: Init<M>) {
    for policy in [FullPolicy::Admit, FullPolicy::Inherit, FullPolicy::Deny, FullPolicy::Sampled] {
        cases(20, |rng| {
            let spec = LimitSpec::new(1, T, rng.within(1, 2));
            let options = TableOptions::new(spec).caller_hash().policy(policy);
            let [singles, bursts] = [(); 2].map(|()| init(memory(4).leak(), &options));
            let limit = singles.limit(&spec).unwrap();
            let mut now = 1u64 << 40;
            for _ in 0..200 {
                now += rng.pick(&[0, 0, T / 4, T]);
                let hashes: Vec<u64> =
                    (0..rng.within(24, 64)).map(|_| hash_of(0, 2, 1 + rng.below(22) as u32)).collect();
                let wanted = hashes.iter().enumerate().fold(0u64, |pass, (i, &hash)| {
                    pass | u64::from(singles.check_hash(&limit, now, hash, 1).unwrap().passes()) << i
                });
                assert_eq!(bursts.check_burst(&limit, now, &hashes, None), Ok(wanted), "{policy:?} at {now}");
            }
            assert_eq!(singles.stats(now), bursts.stats(now));
        });
    }
}

#[test]
fn bursts_of_full_sets_are_single_calls() {
    in_full_sets::<Shared>(|lines, options| Table::init(lines, options).unwrap());
    in_full_sets::<Exclusive>(|lines, options| Table::init_exclusive(lines, options).unwrap());
}

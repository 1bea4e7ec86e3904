//! The table against a reference implementation in plain code, and the reference itself in every interleaving.

#[path = "reference/table.rs"]
mod table;

use std::collections::HashSet;

use table::{Request, Table as Reference};
use tatcell::{FullPolicy, LimitNumbers, LimitSpec, Line, Outcome, Table, TableOptions};

/// A small generator with a fixed seed.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) % n
    }
}

/// A table of 16 slots, its limit, and the reference of both.
fn world(
    memory: &[Line],
    spec: LimitSpec,
    policy: FullPolicy,
) -> (Table<'_>, tatcell::TableLimit, Reference) {
    let options = TableOptions::new(spec).policy(policy).caller_hash();
    let table = Table::init(memory, &options).expect("a table");
    let limit = table.limit(&spec).expect("its limit");
    let reference = Reference::new(table.numbers().expect("GCRA"));
    (table, limit, reference)
}

/// Forty keys on one set of 16 slots: hits, denials, inserts, expiries and full sets, for ticks of every size.
#[test]
fn the_table_answers_as_the_reference() {
    let mut counts = [0; 4];
    for (seed, policy) in [FullPolicy::Deny, FullPolicy::Admit].into_iter().cycle().take(12).enumerate() {
        let mut random = Random(seed as u64 + 1);
        for (period, burst) in [(1_000, 3), (7, 5), (1_000_000_007, 20), (1, 1)] {
            let spec = LimitSpec::new(1 + random.below(3), period, burst);
            let memory = [const { Line::EMPTY }; 4];
            let (table, limit, mut reference) = world(&memory, spec, policy);
            let numbers = limit.numbers().expect("GCRA");
            let hashes: Vec<u64> = (0..40).map(|_| random.below(u64::MAX)).collect();
            let mut now = random.below(1 << 40);
            for i in 0..3_000 {
                now += random.below(period / 4 + 2) * random.below(2);
                let (hash, cost) = (hashes[random.below(40) as usize], random.below(burst + 2));
                let told = table.check_hash(&limit, now, hash, cost).expect("its limit");
                let expected = reference.check(&numbers, now, hash, cost);
                assert_eq!(
                    told, expected,
                    "{seed} {policy:?} {spec:?} request {i} of {hash:x}, {cost} at {now}"
                );
                counts[told.verdict() as usize] += 1;
            }
        }
    }
    assert!(counts[..3].iter().all(|count| *count > 1_000), "a verdict hardly came: {counts:?}");
    assert_eq!(counts[3], 0, "contended without a rival");
}

/// Two or three requests of one new key, with clocks apart, on every interleaving of their steps: what passes is never
/// more than the burst, and one slot has the key in the end.
#[test]
fn the_reference_gives_a_new_key_one_slot_on_every_interleaving() {
    let spec = LimitSpec::new(1, 1_000, 2);
    let memory = [const { Line::EMPTY }; 4];
    let (_, limit, mut reference) = world(&memory, spec, FullPolicy::Deny);
    let numbers = limit.numbers().expect("GCRA");
    let mut states = 0;
    for threads in 2..=3 {
        for stranger in [false, true] {
            let request = |now: &u64| Request::new(&reference, *now, 5, 1);
            let mut requests: Vec<_> = [5_000, 5_020, 5_005][..threads].iter().map(request).collect();
            if stranger {
                // The first request looks while a stranger's claim stands in slot 0, so it goes for slot 1. Then that
                // claim is dropped, and the others go for slot 0: two claims of one key.
                reference.slots[0] = 1 << 63 | 99 << 43 | 5_100;
                assert_eq!(requests[0].step(&mut reference, &numbers), None);
            }
            reference.slots[0] = 0;
            let mut seen = HashSet::new();
            explore(&reference, &requests, &numbers, &[], &mut seen);
            states += seen.len();
        }
    }
    assert!(states > 1_000, "only {states} states");
}

/// Goes every way from here, once from each state.
fn explore(
    table: &Reference,
    requests: &[Request],
    limit: &LimitNumbers,
    answers: &[(usize, Outcome)],
    seen: &mut HashSet<String>,
) {
    if !seen.insert(format!("{:x?} {requests:?} {answers:?}", table.slots)) {
        return;
    }
    let left: Vec<usize> =
        (0..requests.len()).filter(|i| answers.iter().all(|(done, _)| done != i)).collect();
    if left.is_empty() {
        let passed = answers.iter().filter(|(_, outcome)| outcome.passes()).count();
        // An earlier clock may be refused what is left: it finds the charge of a later one further ahead.
        assert!((1..=2).contains(&passed), "{answers:?}");
        let tag = |word: u64| word >> 43;
        let holds = table.slots.iter().filter(|word| tag(**word) == 5).count();
        assert_eq!(holds, 1, "{answers:?} {:x?}", table.slots);
        return;
    }
    for i in left {
        let (mut table, mut requests) = (table.clone(), requests.to_vec());
        let answer = requests[i].step(&mut table, limit);
        let answers: Vec<_> = answers.iter().copied().chain(answer.map(|outcome| (i, outcome))).collect();
        explore(&table, &requests, limit, &answers, seen);
    }
}

//! Every call and form answers a key in the second line of its set like one in its home line.
//!
//! Two tables get the same calls. In one the key's home line was full when the key came, so the key lies in the other
//! line; in the second table it lies at home. All answers are equal except for the number of the slot. Homes have
//! either parity, so that search order and address order agree or differ.

use crate::common::{hash_of, memory, Rng};
use tatcell::{
    second_hash, Access, AttachOptions, Burst, Colour, Counters, Decision, ExclusiveTable, FullPolicy,
    LimitSpec, Line, Mark, MarkBurst, NextBurst, Override, PairBurst, Permit, Request, Table, TableLimit,
    TableOptions, TableRef,
};

const SLOT_LINES: u32 = 32;
const T: u64 = 1 << 12;
const NOW: u64 = 1 << 40;
const SPEC: LimitSpec = LimitSpec::new(1, T, 8).max_debt(4).max_room(3).max_delay(4 * T);
/// What the neighbours owe: it outlives every test.
const LONG: LimitSpec = LimitSpec::new(1, T, 4_000);

fn lines() -> Vec<Line> {
    memory(SLOT_LINES as usize + 2)
}

fn gcra() -> TableOptions {
    TableOptions::new(SPEC).slowest(LONG).caller_hash().policy(FullPolicy::Deny)
}

/// The home line of a hash.
fn home(hash: u64) -> u32 {
    (((hash >> 32) * SLOT_LINES as u64) >> 32) as u32
}

/// Fills the home line of a hash with other keys.
fn crowd<M: Access>(table: &Table<'_, M>, long: &TableLimit, cost: u64, hash: u64) {
    for i in 0..8 {
        let other = hash_of(home(hash), SLOT_LINES, 0x7_0000 + i);
        assert!(table.check_hash(long, NOW, other, cost).unwrap().passes());
    }
}

/// Is the key of this hash live in this line?
fn lies_in<M: Access>(table: &Table<'_, M>, now: u64, hash: u64, line: u32) -> bool {
    let first = line as usize * 8;
    let next = |from: usize| table.next_live(now, from).filter(|slot| (slot.number as usize) < first + 8);
    std::iter::successors(next(first), |slot| next(slot.number as usize + 1))
        .any(|slot| slot.tag == (hash & 0xf_ffff) as u32 && table.may_be(&slot, hash))
}

/// Hashes of keys whose first and second debt lie in different sets; homes of either parity for both.
fn keys() -> Vec<u64> {
    let mut found = Vec::new();
    for parity in 0..4 {
        let is_new = |hash: &u64| {
            let (a, b) = (home(*hash), home(second_hash(*hash)));
            a >> 1 != b >> 1 && (a & 1) << 1 | b & 1 == parity
        };
        found.extend((1..).map(|i| Rng(i).next()).find(is_new));
    }
    found
}

/// A decision, but for where its key lies.
fn answer(mut d: Decision) -> Decision {
    d.permit.slot = 0;
    d
}

/// One of the two tables: its limit, and the permits of its charges.
struct Side<'t, 'm, M: Access> {
    table: &'t Table<'m, M>,
    limit: TableLimit,
    permits: Vec<Permit>,
    counters: Counters,
    resets: u32,
}

impl<'t, 'm, M: Access> Side<'t, 'm, M> {
    fn new(table: &'t Table<'m, M>, spec: &LimitSpec) -> Self {
        let limit = table.limit(spec).unwrap();
        Side { table, limit, permits: Vec::new(), counters: Counters::default(), resets: 0 }
    }

    /// Makes a call that the generator draws, and says all that it answered.
    fn call(&mut self, rng: &mut Rng, now: u64, hash: u64, gcra: bool) -> String {
        let Side { table, limit, permits, counters, resets } = self;
        let limit = &*limit;
        let cost = rng.below(6);
        let mut keep = |d: Decision| {
            permits.push(d.permit);
            format!("{:?}", answer(d))
        };
        let request = Request { limit, now, cost, room: rng.below(4) };
        let (hashes, costs) = ([hash; 3], [1, 2, 0]);
        let burst = Burst::new(limit, now, &hashes);
        let dear = Burst { costs: Some(&costs), ..burst };
        match rng.below(14) {
            0 => format!("{:?}", table.check_hash(limit, now, hash, cost)),
            1 => keep(table.check_ex(&request, hash, Some(counters)).unwrap()),
            2 => keep(table.charge(limit, now, hash, cost, Some(counters)).unwrap()),
            3 if gcra => keep(table.reserve(limit, now, hash, cost, None).unwrap()),
            4 if gcra => keep(table.reserve_from(limit, (now, now + T), hash, cost).unwrap()),
            5 => format!("{:?}", answer(table.peek(limit, now, hash, cost).unwrap())),
            6 | 7 => {
                let back = permits.pop().map(|permit| table.refund(limit, now, hash, &permit).unwrap());
                format!("{back:?}")
            }
            8 => format!("{:?}", burst.check(table, None, NextBurst::NONE)),
            9 => format!("{:?}", dear.check(table, Some(counters), NextBurst::NONE)),
            10 => {
                let mut said = String::new();
                let each = |_: usize, d: &Decision| said += &format!("{:?}", answer(*d));
                let pass = dear.check_ex(table, None, NextBurst::NONE, each);
                format!("{pass:?} {said}")
            }
            11 => format!("{:?}", dear.check(table, None, NextBurst::hashes(&hashes))),
            12 => format!("{:?}", table.sweep(now, 0, table.slots())),
            // Each leaves a tombstone, and the crowded set has eight slots.
            _ if rng.one_in(3) && *resets < 6 => {
                *resets += 1;
                format!("reset {}", table.reset_key(now, hash))
            }
            _ => format!("{counters:?}"),
        }
    }
}

/// The same calls of a key on both tables.
fn same_answers<M: Access>(
    [far, near]: [&Table<'_, M>; 2],
    spec: &LimitSpec,
    hash: u64,
    steps: u64,
    pace: u64,
    rng: &mut Rng,
) {
    let mut sides = [Side::new(far, spec), Side::new(near, spec)];
    // Counted limits are drawn with a slower clock, and do not know reserve.
    let gcra = *spec == SPEC;
    let (mut now, mut passed) = (NOW, 0);
    for step in 0..steps {
        now += rng.below(pace);
        let mut twin = rng.clone();
        let said = sides[0].call(rng, now, hash, gcra);
        assert_eq!(said, sides[1].call(&mut twin, now, hash, gcra), "step {step} of {spec:?} {hash:#x}");
        passed += said.contains("Conforming") as u64;
    }
    assert!(passed > steps / 20, "{passed} of {steps} passed");
}

#[test]
fn every_call_finds_a_key_in_the_second_line() {
    let long =
        |spec: LimitSpec| (spec, TableOptions::new(spec).caller_hash().policy(FullPolicy::Deny), spec, 1);
    let specs = [
        (SPEC, gcra(), LONG, 4_000),
        long(LimitSpec::fixed_window(40, 1 << 30)),
        long(LimitSpec::sliding_counter(40, 1 << 30)),
        long(LimitSpec::quota_linear(40, 1 << 30)),
        long(LimitSpec::decay(40, 1 << 40)),
    ];
    for (spec, options, others, cost) in specs {
        let pace = if cost == 1 { 1 << 20 } else { 3 * T };
        for hash in keys() {
            let mut rng = Rng(hash);
            let mut memory = [lines(), lines(), lines(), lines()];
            let [a, b, c, d] = &mut memory;
            let tables = [a, b].map(|lines| Table::init(lines, &options).unwrap());
            crowd(&tables[0], &tables[0].limit(&others).unwrap(), cost, hash);
            let first = |table: &Table<'_>| table.check_hash(&table.limit(&spec).unwrap(), NOW, hash, 1);
            assert_eq!(first(&tables[0]), first(&tables[1]));
            assert!(
                lies_in(&tables[0], NOW, hash, home(hash) ^ 1) && lies_in(&tables[1], NOW, hash, home(hash))
            );
            same_answers([&tables[0], &tables[1]], &spec, hash, 400, pace, &mut rng);

            let owned = [c, d].map(|lines| ExclusiveTable::init_exclusive(lines, &options).unwrap());
            crowd(&owned[0], &owned[0].limit(&others).unwrap(), cost, hash);
            same_answers([&owned[0], &owned[1]], &spec, hash, 400, pace, &mut rng);
        }
    }
}

#[test]
fn saved_and_migrated_a_key_of_the_second_line_owes_what_it_owed() {
    let options = gcra();
    for hash in keys() {
        let (near, far) = (lines(), lines());
        let tables = [&far, &near].map(|lines| Table::init(lines, &options).unwrap());
        let limit = tables[0].limit(&SPEC).unwrap();
        crowd(&tables[0], &tables[0].limit(&LONG).unwrap(), 4_000, hash);
        let permits = tables.map(|table| {
            let request = Request { limit: &limit, now: NOW, cost: 5, room: 0 };
            table.check_ex(&request, hash, None).unwrap().permit
        });
        assert!(permits[0].slot / 8 == home(hash) ^ 1 && permits[1].slot / 8 == home(hash));
        let look = |table: &Table<'_>, now| answer(table.peek(&limit, now, hash, 0).unwrap());
        let wanted = look(&tables[1], NOW);
        assert_eq!((look(&tables[0], NOW), wanted.remaining), (wanted, 3));

        let mut image = vec![0; tables[0].image_words()];
        tables[0].save(NOW, &mut image).unwrap();
        let to = lines();
        let restored = Table::restore(&to, &image, &AttachOptions::new(), 77).unwrap();
        assert!(lies_in(&restored, NOW + 77, hash, home(hash) ^ 1));
        let later = look(&restored, NOW + 77);
        assert_eq!((later.remaining, later.reset_after), (wanted.remaining, wanted.reset_after));
        // A permit of before is worth nothing.
        assert_eq!(restored.refund(&limit, NOW + 77, hash, &permits[0]), Ok(Some(0)));

        let attached = Table::attach(&far, &AttachOptions::new()).unwrap();
        assert_eq!(look(&attached, NOW), wanted);
        for lines in [memory(18), memory(34), memory(66)] {
            let (new, report) = tables[0].migrate(&lines, &options, NOW).unwrap();
            let new_limit = new.limit(&SPEC).unwrap();
            assert!(report.is_whole());
            let found = new.peek(&new_limit, NOW, hash, 0).unwrap();
            assert_eq!((found.remaining, found.reset_after), (wanted.remaining, wanted.reset_after));
        }
        let mut top = [tatcell::Slot::default(); 9];
        assert_eq!(tables[0].top(NOW, &mut top), 9);
        assert!(top[8].number == permits[0].slot && tables[0].may_be(&top[8], hash));
        // Given back by the permit of its own slot alone.
        assert_eq!(tables[0].refund(&limit, NOW, hash, &permits[1]), Ok(Some(0)));
        let back = tables
            .map(|table| table.refund(&limit, NOW, hash, &permits[(table.stats(NOW).live == 1) as usize]));
        assert_eq!(back[0], back[1]);
        assert!(matches!(back[0], Ok(Some(1..))));
    }
}

#[test]
fn marks_and_pairs_find_both_debts_in_second_lines() {
    let options = gcra();
    for hash in keys() {
        let (mut rng, near, far) = (Rng(hash), lines(), lines());
        let tables = [&far, &near].map(|lines| Table::init(lines, &options).unwrap());
        let limits = [SPEC, LimitSpec::new(1, T, 5)].map(|spec| tables[0].limit(&spec).unwrap());
        let long = tables[0].limit(&LONG).unwrap();
        for hash in [hash, second_hash(hash)] {
            crowd(&tables[0], &long, 4_000, hash);
            let first = tables.map(|table| table.check_hash(&limits[0], NOW, hash, 1));
            assert_eq!(first[0], first[1]);
            assert!(
                lies_in(&tables[0], NOW, hash, home(hash) ^ 1) && lies_in(&tables[1], NOW, hash, home(hash))
            );
        }
        let marks = [Mark::rfc4115(&limits[1], &limits[0]), Mark::rfc2698(&limits[1], &limits[1])];
        let mut now = NOW;
        for step in 0..500 {
            now += rng.below(3 * T);
            let (kind, cost, mark) = (rng.below(4), rng.below(3), &marks[rng.below(2) as usize]);
            let hashes = [hash; 2];
            let said = tables.map(|table| match kind {
                0 => format!("{:?}", mark.check(&table, now, hash, cost, Colour::Green)),
                1 => {
                    let burst = MarkBurst { mark, now, hashes: &hashes, costs: None, pre: None };
                    let mut colours = [Colour::Red; 2];
                    format!("{:?} {colours:?}", burst.check(TableRef::from(&table), &mut colours, None, &[]))
                }
                2 => {
                    let pair = [&limits[0], &limits[1]];
                    let burst =
                        PairBurst { limits: pair, now, hashes: &hashes, costs: [None, Some(&[1, 2])] };
                    format!("{:?}", burst.check(&table, None, &[]))
                }
                _ => format!("{:?}", answer(table.peek(&limits[1], now, second_hash(hash), 1).unwrap())),
            });
            assert_eq!(said[0], said[1], "step {step} of {hash:#x}");
        }
    }
}

#[test]
fn overrides_of_second_lines_are_set_seen_and_lifted() {
    let options = TableOptions::overrides(1 << 20).caller_hash();
    for hash in keys() {
        let (mut rng, near, far) = (Rng(hash), lines(), lines());
        let tables = [&far, &near].map(|lines| Table::init(lines, &options).unwrap());
        for of in [hash, second_hash(hash)] {
            for i in 0..8 {
                let other = hash_of(home(of), SLOT_LINES, 0x7_0000 + i);
                tables[0].ban(NOW, other, NOW + (1 << 20)).unwrap();
            }
        }
        let mut now = NOW;
        let (mut set, mut seen) = (0, 0);
        for step in 0..500 {
            now += rng.below(1_500);
            let (kind, until) = (rng.below(4), now + 500 + rng.below(2_000));
            let said = tables.map(|table| match kind {
                0 => format!("{:?}", table.ban(now, hash, until)),
                1 => format!("{:?}", table.exempt(now, hash, until)),
                2 => format!("{:?}", table.lift(now, hash)),
                _ => format!("{:?}", table.overridden(now, hash)),
            });
            assert_eq!(said[0], said[1], "step {step} of {hash:#x}");
            set += (kind < 2) as u64;
            let stands = tables[0].overridden(now, hash).unwrap();
            seen += matches!(stands, Some(Override::Banned { .. } | Override::Exempt { .. })) as u64;
        }
        assert!(set > 100 && seen > 100, "{set} set, {seen} seen");
    }
}

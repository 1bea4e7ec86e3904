//! Races of two or three threads and a few calls: small enough for a checker that picks the schedule, such as Miri with
//! one seed each (`mk/sanitizers.sh`: strict provenance, weak memory, data races), and quick without one.

use crate::common::{memory, two_drained};
use tatcell::{
    AttachOptions, Burst, Cell, Counters, FullPolicy, Lease, Limit, LimitSpec, Line, Meter, MeterSpec,
    NextBurst, Outcome, Override, Request, Shared, SlidingLog, Table, TableError, TableOptions,
};

const T: u64 = 1 << 12;
const SPEC: LimitSpec = LimitSpec::new(1, T, 3);
const NOW: u64 = 1 << 30;

/// Runs both at once; gives what they returned.
fn both<A: Send, B: Send>(one: impl FnOnce() -> A + Send, other: impl FnOnce() -> B + Send) -> (A, B) {
    std::thread::scope(|scope| {
        let other = scope.spawn(other);
        let one = one();
        (one, other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

#[test]
fn a_fresh_key_gets_one_slot_and_one_burst() {
    for policy in [FullPolicy::Admit, FullPolicy::Deny, FullPolicy::Inherit] {
        let lines = memory(4);
        let table = Table::init(&lines, &TableOptions::new(SPEC).caller_hash().policy(policy)).unwrap();
        let limit = table.limit(&SPEC).unwrap();
        let ask = |now: u64| (0..2).filter(|_| table.check_hash(&limit, now, 7, 1).unwrap().passes()).count();
        // Clocks a tick apart.
        let (a, b) = both(|| ask(NOW), || ask(NOW + 1));
        assert!(a + b <= 3, "{policy:?}: {a} and {b} of a burst of 3");
        let live = table.stats(NOW + 1).live;
        assert!(live <= 1, "{policy:?}: {live} slots");
    }
}

#[test]
fn a_burst_a_refund_a_reset_and_a_sweep_mint_nothing() {
    let lines = memory(4);
    let table = Table::init(&lines, &TableOptions::new(SPEC).caller_hash()).unwrap();
    let limit = table.limit(&SPEC).unwrap();
    let request = Request { limit: &limit, now: NOW, cost: 2, room: 0 };
    let first = table.check_ex(&request, 7, None).unwrap();
    let (back, pass) = both(
        || {
            let back = table.refund(&limit, NOW, 7, &first.permit).unwrap().unwrap_or(0);
            table.sweep(NOW, 0, 32);
            back / T
        },
        || {
            let burst = Burst::new(&limit, NOW, &[7, 8, 7, 9]);
            burst.check(&table, Some(&mut Counters::default()), NextBurst::NONE).unwrap()
        },
    );
    let charged = u64::from((pass & 0b0101).count_ones());
    assert!(2 - back.min(2) + charged <= 3, "{charged} passed beside {back} of 2 that came back");
    let ((), ()) = both(|| _ = table.reset_key(NOW, 8), || _ = table.check_hash(&limit, NOW, 8, 3));
    assert!(table.stats(NOW).live <= 3);
}

#[test]
fn who_attaches_while_a_table_is_made_sees_all_of_it_or_none() {
    let lines = memory(4);
    let options = TableOptions::new(SPEC).caller_hash();
    let (made, attached) = both(
        || Table::init(&lines, &options).map(|table| table.info()),
        || loop {
            match Table::attach(&lines, &AttachOptions::new()) {
                Err(TableError::NotReady) => std::thread::yield_now(),
                made => break made.map(|table| table.info()),
            }
        },
    );
    assert_eq!(made.unwrap(), attached.unwrap());
}

/// Hashes of the first line and of the last.
const ENDS: [u64; 2] = [7, 1 << 63 | 9];

/// A table with a number of lines whose keys owe their burst.
fn owing(lines: &[Line]) -> (Table<'_>, TableOptions) {
    let options = TableOptions::new(SPEC).caller_hash();
    let table = Table::init(lines, &options).unwrap();
    let limit = table.limit(&SPEC).unwrap();
    assert!(ENDS.iter().all(|hash| table.check_hash(&limit, NOW, *hash, 3).unwrap().passes()));
    (table, options)
}

/// Whether both still owe it where a table can be attached; None where it cannot yet.
fn owe(lines: &[Line]) -> Option<bool> {
    let table = match Table::attach(lines, &AttachOptions::new()) {
        Err(TableError::NotReady) => return None,
        table => table.unwrap(),
    };
    let limit = table.limit(&SPEC).unwrap();
    Some(ENDS.iter().all(|hash| !table.peek(&limit, NOW, *hash, 1).unwrap().passes()))
}

#[test]
fn who_attaches_while_a_table_is_migrated_finds_its_debts() {
    let (old, new) = (memory(4), memory(6));
    let (table, options) = owing(&old);
    let (report, owed) = both(
        || table.migrate(&new, &options, NOW).map(|(_, report)| report.is_whole()),
        || loop {
            match owe(&new) {
                None => std::thread::yield_now(),
                Some(owed) => break owed,
            }
        },
    );
    assert!(report == Ok(true) && owed, "{report:?}, and who attached found the debts: {owed}");
}

#[test]
fn a_migration_whose_parts_two_threads_do_is_whole() {
    let (old, new) = (memory(6), memory(6));
    let (table, options) = owing(&old);
    let part = |from| table.migrate_part::<Shared>(&new, &options, NOW, from, 1, &mut Default::default());
    let (first, owed) = both(
        || part(0),
        || loop {
            match part(16) {
                Err(TableError::NotReady) => std::thread::yield_now(),
                next => break next.map(|next| (next, owe(&new))),
            }
        },
    );
    assert_eq!((first, owed), (Ok(16), Ok((0, Some(true)))));
}

#[test]
fn a_ban_that_is_saved_while_it_grows_stands_to_its_end() {
    // The witness comes before the override in a save, and after it in a ban.
    let hash = 0x9e37_79b9_7f4a_7c15;
    let lines = memory(4);
    let table = Table::init(&lines, &TableOptions::overrides(1 << 20).caller_hash()).unwrap();
    for round in 1..=4 {
        let (ends, mut image) = ([round * 500, round * 500 + 400], [0; 4 * 8]);
        table.ban(NOW, hash, NOW + ends[0]).unwrap();
        let (saved, banned) = both(|| table.save(NOW, &mut image), || table.ban(NOW, hash, NOW + ends[1]));
        assert!(saved.is_ok() && banned.is_ok());
        let copy = memory(4);
        let restored = Table::restore(&copy, &image, &AttachOptions::new(), 0).unwrap();
        match restored.overridden(NOW, hash) {
            Ok(Some(Override::Banned { retry_after })) if ends.contains(&retry_after) => {
                let last = restored.overridden(NOW + retry_after - 1, hash);
                assert_eq!(last, Ok(Some(Override::Banned { retry_after: 1 })), "it ends too early");
            }
            other => panic!("{other:?} of a ban for {ends:?}"),
        }
    }
}

#[test]
fn a_slot_that_is_emptied_between_two_looks_gives_a_key_one_burst() {
    for _ in 0..2 {
        let lines = memory(4);
        let table = two_drained(&lines, T, NOW);
        let limit = table.limit(&LimitSpec::new(1, T, 1)).unwrap();
        let ask = || table.check_hash(&limit, NOW, 9, 1).unwrap().passes();
        // Whoever looks before the sweep takes slot 0, and behind it slot 8.
        let (a, b) = both(ask, || table.sweep(NOW, 8, 1) != 0 && ask());
        assert!(a != b, "admitted: {a}, {b}");
    }
}

#[test]
fn what_is_saved_beside_charges_is_never_more_than_they_stored() {
    let lines = memory(4);
    let table = Table::init(&lines, &TableOptions::new(SPEC).caller_hash()).unwrap();
    let limit = table.limit(&SPEC).unwrap();
    let mut image = [0; 4 * 8];
    let (_, passed) = both(
        || table.save(NOW, &mut image),
        || (0..3).filter(|_| table.check_hash(&limit, NOW, 7, 1).unwrap().passes()).count() as u64,
    );
    let copy = memory(4);
    let restored = Table::restore(&copy, &image, &AttachOptions::new(), 0).unwrap();
    let left = restored.peek(&restored.limit(&SPEC).unwrap(), NOW, 7, 1).unwrap().remaining;
    assert!(left >= 3 - passed, "{left} left, {passed} charged");
}

#[test]
fn cells_leases_logs_and_meters_keep_their_bounds() {
    let (cell, limit) = (Cell::new(), Limit::new(1, T, 3).unwrap());
    let ask = || (0..2).filter(|_| cell.check(&limit, NOW, 1) == Outcome::Conforming).count();
    let (a, b) = both(ask, ask);
    assert!(a + b <= 3);
    let cell = Cell::new();
    let lent = || {
        let mut lease = Lease::with_batch(2);
        let passed = (0..3).filter(|_| lease.check(&cell, &limit, NOW, 1).passes()).count();
        lease.give_back(&cell, &limit, NOW);
        passed
    };
    let (a, b) = both(lent, lent);
    assert!(a + b <= 3, "{a} and {b} by leases");
    let stamps = [Cell::new(), Cell::new()];
    let log = SlidingLog::new(&stamps, T).unwrap();
    let (a, b) = both(
        || log.check(NOW).passes() as u32,
        || log.check(NOW).passes() as u32 + log.check(NOW).passes() as u32,
    );
    assert!(a + b <= 2);
    let (meter, limit) = (Meter::new(), MeterSpec::rfc2697(1_000, 100, 100, 1_000_000_000).build().unwrap());
    let mark = || meter.check(&limit, NOW, 80, tatcell::Colour::Green).passes() as u32;
    let (a, b) = both(|| mark() + mark(), mark);
    assert!(a + b <= 2, "{a} and {b} packets of 80 in 200");
}

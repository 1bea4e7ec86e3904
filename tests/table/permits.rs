//! Permits: what a refund may give back, and which charges no permit can bring back: drained, reset, restored, too old.

use crate::common::memory;
use tatcell::{
    AttachOptions, Cell, Cell32, Change, FullPolicy, Lease, Limit, LimitSpec, Line, Outcome, Permit, Request,
    Table, TableLimit, TableOptions,
};

const KEY: u64 = 7;

fn made<'m>(lines: &'m [Line], spec: &LimitSpec, options: &TableOptions) -> (Table<'m>, TableLimit) {
    let table = Table::init(lines, &options.caller_hash().resolution(0)).unwrap();
    let limit = table.limit(spec).unwrap();
    (table, limit)
}

fn charge(table: &Table<'_>, limit: &TableLimit, now: u64, cost: u64) -> (bool, Permit) {
    let d = table.check_ex(&Request { limit, now, cost, room: 0 }, KEY, None).unwrap();
    (d.passes(), d.permit)
}

/// Units of the key that pass one by one at `now`.
fn passes(table: &Table<'_>, limit: &TableLimit, now: u64) -> usize {
    (0..99).take_while(|_| table.check_hash(limit, now, KEY, 1).unwrap().passes()).count()
}

#[test]
fn a_permit_of_before_a_reset_is_worth_nothing_after_it() {
    for policy in [FullPolicy::Admit, FullPolicy::Inherit, FullPolicy::Deny] {
        let (lines, spec) = (memory(4), LimitSpec::new(1, 1 << 12, 8));
        let (table, limit) = made(&lines, &spec, &TableOptions::new(spec).policy(policy));
        let now = 1_000_000;
        let (passed, old) = charge(&table, &limit, now, 8);
        assert!(passed && old.stored > 0);
        assert!(table.reset_key(now, KEY));
        assert!(charge(&table, &limit, now, 7).0);
        // Its charge has been forgiven already: giving it back would make room for eight more.
        assert_eq!(table.refund(&limit, now, KEY, &old), Ok(Some(0)), "{policy:?}");
        assert_eq!(passes(&table, &limit, now), 1, "{policy:?}");
        // Long after, when the trace of the reset has drained, the charge has drained as well.
        for later in [now + (8 << 12) - 1, now + (8 << 12), now + (8 << 12) + 100, now + (9 << 12)] {
            assert_eq!(table.refund(&limit, later, KEY, &old), Ok(Some(0)), "{policy:?} at {later}");
        }
        // A permit of after the reset is as good as ever, once the trace is gone.
        let (_, fresh) = charge(&table, &limit, now + (20 << 12), 3);
        assert!(table.refund(&limit, now + (20 << 12), KEY, &fresh).unwrap() >= Some((3 << 12) - 4));
    }
}

#[test]
fn a_permit_of_before_a_restore_is_worth_nothing_after_it() {
    let (lines, spec) = (memory(4), LimitSpec::new(1, 1_024, 4));
    let (table, limit) = made(&lines, &spec, &TableOptions::new(spec));
    let (_, old) = charge(&table, &limit, 100_000, 2); // drains by 102 048
    assert_eq!(table.refund(&limit, 104_000, KEY, &old), Ok(Some(0)), "drained");
    let (passed, last) = charge(&table, &limit, 104_000, 4);
    assert!(passed);
    let mut image = vec![0; table.image_words()];
    table.save(104_000, &mut image).unwrap();
    // The new clock is behind, level and ahead.
    for offset in [-3_500i64, 0, 3_500] {
        let lines = memory(4);
        let restored = Table::restore(&lines, &image, &AttachOptions::new(), offset).unwrap();
        let limit = restored.limit(&spec).unwrap();
        let now = (104_000 + offset) as u64;
        assert_eq!(passes(&restored, &limit, now), 0, "offset {offset}");
        for permit in [&old, &last] {
            assert_eq!(restored.refund(&limit, now, KEY, permit), Ok(Some(0)), "offset {offset}");
        }
        assert_eq!(passes(&restored, &limit, now), 0, "offset {offset}: minted by a reload");
        // A charge of the restored table can be given back there, and not in the table that it came from.
        let (_, fresh) = charge(&restored, &limit, now + 4_096, 2);
        assert_eq!(table.refund(&limit, now + 4_096, KEY, &fresh), Ok(Some(0)));
        assert!(restored.refund(&limit, now + 4_096, KEY, &fresh).unwrap() > Some(2_000));
    }
}

#[test]
fn a_live_save_that_read_a_key_twice_is_restored_with_the_larger_debt() {
    let spec = LimitSpec::new(1, 1_024, 4);
    let saved = |debt: u64, now: u64| {
        let lines = memory(4);
        let (table, limit) = made(&lines, &spec, &TableOptions::new(spec));
        assert!(charge(&table, &limit, now, debt).0);
        let mut image = vec![0; table.image_words()];
        table.save(now, &mut image).unwrap();
        image
    };
    // A save reads word by word: while it is between two words of a set the key's slot drains, another key takes it,
    // and the key comes back in the other one.
    let (early, late) = (saved(1, 100_500), saved(4, 101_524));
    let (first, second) = (16, 16 + 11);
    for (early_at, late_at) in [(first, second), (second, first)] {
        let mut image = late.clone();
        image[first] = 0;
        image[early_at] = early[first];
        image[late_at] = late[first];
        assert_eq!(image.iter().filter(|word| *word >> 43 == KEY).count(), 2);
        let lines = memory(4);
        let restored = Table::restore(&lines, &image, &AttachOptions::new(), 0).unwrap();
        let limit = restored.limit(&spec).unwrap();
        assert_eq!(restored.stats(101_524).live, 1);
        assert_eq!(passes(&restored, &limit, 101_524), 0, "minted by a reload");
    }
    // Two keys of one debt, and one key twice with the same debt.
    let mut image = late.clone();
    image[second] = late[first];
    image[first + 1] = late[first] ^ 1 << 43;
    let lines = memory(4);
    assert_eq!(Table::restore(&lines, &image, &AttachOptions::new(), 0).unwrap().stats(101_524).live, 2);
}

#[test]
fn a_permit_one_span_later_credits_nothing_in_any_form() {
    // 50e9 bytes a second in nanoseconds: a 64-bit word wraps after 2^42 ticks.
    let spec = LimitSpec::new(50_000_000_000, 1_000_000_000, 1_000_000);
    let (cell, limit) = (Cell::new(), spec.build().unwrap());
    let span = 1u64 << (64 - limit.info().resolution);
    let now = 5_000_000_000u64;
    let d = cell.check_ex(&limit, now, 1_000_000, 0);
    assert!(d.passes());
    for turns in [1, 2, 1 << 10] {
        // The same word as then, made by another charge.
        let late = now + turns * span;
        cell.reset();
        assert!(cell.check(&limit, late, 1_000_000).passes());
        assert_eq!(cell.refund(&limit, late, &d.permit), Some(0), "{turns} turns of the word later");
        assert!(!cell.check(&limit, late, 1_000_000).passes(), "minted");
    }
    let (narrow, limit) = (Cell32::new(), LimitSpec::new(10, 1_000, 20).build32().unwrap());
    let late = 1_000 + (1u64 << (32 - limit.info().resolution));
    let d = narrow.check_ex(&limit, 1_000, 20, 0);
    narrow.reset();
    assert!(narrow.check(&limit, late, 20).passes());
    assert_eq!(narrow.refund(&limit, late, &d.permit), Some(0));
    let lines = memory(4);
    let table = Table::init(&lines, &TableOptions::new(spec).caller_hash()).unwrap();
    let limit = table.limit(&spec).unwrap();
    let (now, late) = (1u64 << 40, (1u64 << 40) + (1u64 << (43 - table.resolution())));
    let (_, old) = charge(&table, &limit, now, 1_000_000);
    table.sweep(now + (late - now) / 2, 0, 16);
    assert!(charge(&table, &limit, late, 1_000_000).0);
    assert_eq!(table.refund(&limit, late, KEY, &old), Ok(Some(0)));
    assert!(!charge(&table, &limit, late, 1).0, "minted");
}

#[test]
fn a_refund_or_change_to_no_debt_leaves_nothing_for_a_clock_that_steps_back() {
    // T = 100, one unit, skew 1000: charged at 1000, refunded at 1099, when 1 tick was left.
    let limit = LimitSpec::new(1, 100, 1).skew(1_000).build().unwrap();
    let wider = LimitSpec::new(1, 100, 1).skew(2_000).build().unwrap();
    let back = |cell: &Cell, limit: &Limit| {
        assert!(!cell.check(limit, 1_050, 1).passes(), "a step back found it full");
        assert!(cell.check(limit, 1_100, 1).passes());
    };
    let cell = Cell::new();
    let d = cell.check_ex(&limit, 1_000, 1, 0);
    assert_eq!(cell.refund(&limit, 1_099, &d.permit), Some(1));
    back(&cell, &limit);
    for how in [Change::KeepTime, Change::KeepUnits, Change::Reset] {
        let cell = Cell::new();
        assert!(cell.check(&limit, 1_000, 1).passes());
        assert!(cell.change(&limit, &wider, 1_100, how).unwrap());
        back(&cell, &wider);
    }
    // A fresh cell stays fresh.
    let cell = Cell::new();
    assert!(cell.change(&limit, &wider, 1_100, Change::KeepTime).unwrap());
    assert_eq!(cell.word(), 0);
    // What a lease gives back, it gives back the same way: here all of its piece.
    let limit = LimitSpec::new(1, 100, 64).skew(10_000).build().unwrap();
    let (cell, mut lease) = (Cell::new(), Lease::with_batch(4));
    while lease.held(&cell, &limit, 1_000) == 0 {
        assert!(lease.check(&cell, &limit, 1_000, 1).passes());
    }
    let spent = limit.burst() - cell.peek(&limit, 1_000, 0).remaining - lease.held(&cell, &limit, 1_000);
    let at = 1_000 + spent * 100;
    assert!(lease.give_back(&cell, &limit, at) > 0);
    assert_eq!(cell.peek(&limit, at, 0).reset_after, 0);
    assert_eq!(cell.peek(&limit, at - 60, 0).reset_after, 60, "a step back found it full");
}

#[test]
fn a_lease_given_back_before_its_cell_is_made_anew_admits_no_more_than_the_cell() {
    // It knows its cell by address: without the first of these two steps it would spend what it held of the old one.
    let limit = Limit::new(1, 1_000, 8).unwrap();
    let (cell, mut lease) = (Cell::new(), Lease::with_batch(4));
    assert!(lease.check(&cell, &limit, 10, 1).passes() && lease.held(&cell, &limit, 10) > 0);
    lease.give_back(&cell, &limit, 10);
    cell.reset();
    let passed = (0..99).take_while(|_| lease.check(&cell, &limit, 10, 1).passes()).count();
    assert_eq!(passed, 8);
}

#[test]
fn a_limit_works_with_tables_of_its_own_geometry_only() {
    let spec = LimitSpec::new(1, 1 << 12, 8);
    let base = || TableOptions::new(spec).caller_hash().resolution(0);
    let lines: [Vec<Line>; 2] = [memory(4), memory(6)];
    let table = Table::init(&lines[0], &base()).unwrap();
    let limit = table.limit(&spec).unwrap();
    // More lines, another seed, policy or clock frequency: the same limit will do.
    let same = Table::init(&lines[1], &base().policy(FullPolicy::Deny).tick_hz(1_000)).unwrap();
    assert_eq!(same.check_hash(&limit, 5, KEY, 1), Ok(Outcome::Conforming));
    // A longer claim lifetime: an insert would be charged more than the limit's numbers say. And the rest.
    let others = [
        base().claim_lifetime(1 << 11),
        base().slowest(LimitSpec::new(1, 1 << 12, 9)),
        base().skew(1 << 20),
        base().tag_bits(19),
        TableOptions::new(spec).caller_hash().resolution(1),
    ];
    for options in others {
        let lines = memory(4);
        let other = Table::init(&lines, &options).unwrap();
        let theirs = other.limit(&spec).unwrap();
        assert_eq!(
            other.check_hash(&limit, 5, KEY, 1),
            Err(tatcell::TableError::ForeignLimit),
            "{options:?}"
        );
        assert_eq!(
            table.check_hash(&theirs, 5, KEY, 1),
            Err(tatcell::TableError::ForeignLimit),
            "{options:?}"
        );
        assert_eq!(other.check_hash(&theirs, 5, KEY, 1), Ok(Outcome::Conforming));
    }
}

/// A permit of the window before, where a clock that is behind still sees that as its own.
#[test]
fn a_permit_of_an_earlier_window_gives_nothing_back_to_a_later_one() {
    let limit = LimitSpec::fixed_window(5, 100).resolution(0).skew(1_000).build().expect("a limit");
    let cell = Cell::new();
    let first = cell.check_ex(&limit, 10, 2, 0).permit;
    assert!(cell.check(&limit, 150, 3).passes());
    assert_eq!(cell.refund(&limit, 60, &first), Some(0));
    assert_eq!(cell.peek(&limit, 150, 1).remaining, 2);
    // In its own window it would.
    let second = cell.check_ex(&limit, 160, 1, 0).permit;
    assert_eq!(cell.refund(&limit, 170, &second), Some(1));
}

/// What the documents of `refund` warn of, and what they advise.
#[test]
fn of_a_line_of_reservations_only_the_last_can_be_given_back() {
    let spec = LimitSpec::new(1, 100, 1).max_delay(500);
    for spec in [spec, spec.strict_refunds()] {
        let limit = spec.build().unwrap();
        let line = || {
            let cell = Cell::new();
            let [first, middle, last] = [0, 0, 0].map(|now| cell.reserve(&limit, now, 1));
            assert_eq!([first, middle, last].map(|d| d.departure), [0, 100, 200]);
            (cell, middle.permit, last.permit)
        };
        let (cell, middle, _) = line();
        assert_eq!(cell.refund(&limit, 0, &middle), Some(100));
        assert_eq!(
            cell.reserve(&limit, 0, 1).departure,
            200,
            "together with the last of those that were told"
        );
        let (cell, _, last) = line();
        assert_eq!(cell.refund(&limit, 0, &last), Some(100));
        assert_eq!(cell.reserve(&limit, 0, 1).departure, 200, "the place that is free again");
    }
}

/// Up to the last tick of a window: a count keeps its time, so nothing is held back of it.
#[test]
fn a_window_that_is_about_to_end_gives_back_all_that_was_counted() {
    for spec in [LimitSpec::fixed_window(5, 1_000), LimitSpec::sliding_counter(5, 1_000)] {
        for age in [0, 500, 990, 997, 998, 999] {
            let (lines, now) = (memory(4), 1_000_000);
            let (table, limit) = made(&lines, &spec, &TableOptions::new(spec));
            assert!(charge(&table, &limit, now, 3).0);
            let (passed, permit) = charge(&table, &limit, now, 2);
            assert!(passed);
            assert_eq!(passes(&table, &limit, now), 0);
            let before = table.peek(&limit, now + age, KEY, 0).unwrap().remaining;
            assert_eq!(table.refund(&limit, now + age, KEY, &permit), Ok(Some(2)), "{spec:?} after {age}");
            let after = table.peek(&limit, now + age, KEY, 0).unwrap().remaining;
            assert_eq!(after, before + 2, "{spec:?} after {age}");
        }
    }
}

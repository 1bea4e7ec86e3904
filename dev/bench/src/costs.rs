//! The costs of parts of the table: the second line of a set, the full-set policies, full answers with counters.
//!
//! The library cannot be built without them, so each row is next to one that does not use the part:
//!
//! ```text
//! second line   two_lines    keys of a full 1e6 table as they fall: some live in the second line of their set
//!               one_line     keys chosen so that each has a slot in its home line: the second one is never read (it is
//!                            prefetched in both); either way each visit takes the first 3/4 of the keys in turn
//! policy        the same stream over tables of another policy; at a load of 0.48 a set is full now and then
//! counters      the same call, counted
//! memory        again: the same call over a second table, in other memory: what such a pair differs in besides
//! ```

use std::cell::RefCell;
use std::rc::Rc;

use tatcell::{Burst, Counters, FullPolicy, NextBurst, Shared, SLOTS_PER_LINE};

use crate::fixture::{keyed, Fixture};
use crate::fixtures::{another, visits, Fixtures, Order, What};
use crate::keys::{Random, Stream};
use crate::steps::{next, next_with};
use crate::suite::{Mix, Suite};
use crate::tables::body;

const KEYS: u32 = 1_000_000;

pub fn add(suite: &mut Suite, fixtures: &mut Fixtures) {
    let next32 = |fixture: &mut Fixture<Shared>, n: u64| next::<_, 32>(fixture, n, keyed);
    let visit = visits(KEYS);
    let what = What::new(KEYS);
    for (id, text, home) in [
        ("cost.one_line", "every key in its home line", true),
        ("cost.two_lines", "keys as they fall, some in the second line", false),
    ] {
        let empty = What { order: Order::Cycle { home }, ..what };
        suite.add(id, text, Mix::Pass, visit, |notes| {
            let fixture = fixtures.get(empty, notes);
            let placed = placed(&fixture.borrow(), home);
            body(Rc::new(RefCell::new(placed)), next32)
        });
    }
    for (id, text, policy) in [
        ("cost.admit", "policy Admit", FullPolicy::Admit),
        ("cost.inherit", "policy Inherit", FullPolicy::Inherit),
        ("cost.deny", "policy Deny", FullPolicy::Deny),
        ("cost.sampled", "policy Sampled", FullPolicy::Sampled),
    ] {
        let what = What { policy, ..what };
        suite.add(id, text, Mix::Pass, visit, |notes| body(fixtures.get(what, notes), next32));
    }
    suite.add("cost.again", "policy Admit, another table", Mix::Pass, visit, |notes| {
        body(another(what, notes), next32)
    });
    suite.add("cost.counters", "policy Admit, counted", Mix::Pass, visit, |notes| {
        let (fixture, mut counters) = (fixtures.get(what, notes), Counters::default());
        Box::new(move |n| counted(&mut fixture.borrow_mut(), &mut counters, n))
    });
}

#[inline(never)]
fn counted(fixture: &mut Fixture<Shared>, counters: &mut Counters, n: u64) -> u64 {
    next_with::<_, 32>(fixture, n, keyed, |table, limit, now, hashes| {
        let next = NextBurst::hashes(&[]);
        Burst::new(limit, now, hashes).check(table, Some(&mut *counters), next).unwrap_or(0)
    })
}

/// The table with 1e6 keys, most of which come in turn, in a random order; with `home`, only keys whose home line has
/// room.
fn placed(empty: &Fixture<Shared>, home: bool) -> Fixture<Shared> {
    let table = &empty.table;
    let lines = (table.slots() / SLOTS_PER_LINE) as u64;
    let mut taken = vec![0; lines as usize];
    let mut has_room = |id: u32| {
        let line = ((keyed(table, u64::from(id)) >> 32) * lines) >> 32;
        taken[line as usize] += 1;
        taken[line as usize] <= SLOTS_PER_LINE
    };
    let mut ids: Vec<u32> = (0..).filter(|&id| !home || has_room(id)).take(KEYS as usize).collect();
    for &id in &ids {
        let _ = table.check_hash(&empty.limit, empty.now, keyed(table, u64::from(id)), 1);
    }
    Random(1).shuffle(&mut ids);
    empty.with(Stream::cycle(ids))
}

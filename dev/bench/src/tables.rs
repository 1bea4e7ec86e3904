//! The rows of the keyed table, each a step over a fixture: sizes, ways to call, hashes, mixes and orders of keys.

use std::cell::RefCell;
use std::rc::Rc;

use tatcell::{Access, Exclusive, HashKind, Shared};

use crate::fixture::{keyed, keyed4, mix64, Fixture};
use crate::fixtures::{self, Fixtures, Hashing, Order, What};
pub use crate::fixtures::{spec, visits, zipf_spec, CHURN_PERIOD};
use crate::keys::{key, key4};
use crate::steps::{
    ahead, ahead_costs, churn, churn_ahead, churn_next, far, lone, next, prepared, single, then,
};
use crate::suite::{Body, Mix, Suite};

/// Keys of the largest table.
pub const LARGEST: u32 = 100_000_000;

pub type Step<M> = fn(&mut Fixture<M>, u64) -> u64;

/// The row of a step over a table that it may share.
pub fn body<M: Access + 'static>(fixture: Rc<RefCell<Fixture<M>>>, step: Step<M>) -> Body {
    Box::new(move |n| step(&mut fixture.borrow_mut(), n))
}

pub fn add(suite: &mut Suite, fixtures: &mut Fixtures) {
    if !HashKind::Aes.is_available() {
        suite.notes.push("no AES in this processor: rows without a named hash use SipHash-1-3".into());
    }
    for (keys, size) in [(1_000, "1e3"), (100_000, "1e5"), (1_000_000, "1e6"), (10_000_000, "1e7")] {
        let mut add = |id: &str, text: &str, what: What, step: Step<Shared>| {
            let (id, text) = (format!("table{size}.{id}"), format!("{size} keys, {text}"));
            suite.add(&id, &text, what.mix, visits(keys), |notes| body(fixtures.get(what, notes), step));
        };
        let what = What::new(keys);
        add("single", "single call", what, |fixture, n| single(fixture, n, key));
        add("burst32", "burst of 32", what, |fixture, n| lone::<_, 32>(fixture, n, keyed));
        add("prepared32", "burst of 32, prefetched key by key", what, |fixture, n| {
            prepared::<_, 32, 16>(fixture, n, key)
        });
        add("next32", "burst of 32, next prefetched", what, |fixture, n| next::<_, 32>(fixture, n, keyed));
        add("next64", "burst of 64, next prefetched", what, |fixture, n| next::<_, 64>(fixture, n, keyed));
        add("then64", "burst of 64, next hashed, prefetched in between", what, |fixture, n| {
            then::<_, 64>(fixture, n, keyed)
        });
        add("ahead32", "burst of 32, next one in between", what, |fixture, n| {
            ahead::<_, 32, 16>(fixture, n, key)
        });
        add("ahead64", "burst of 64, next one in between", what, |fixture, n| {
            ahead::<_, 64, 16>(fixture, n, key)
        });
        if keys == 1_000 || keys == 1_000_000 {
            let deny = What { mix: Mix::Deny, ..what };
            add("single_denied", "single call, denied", deny, |fixture, n| single(fixture, n, key));
            add("next32_denied", "burst of 32, next prefetched, denied", deny, |fixture, n| {
                next::<_, 32>(fixture, n, keyed)
            });
            add("ahead64_denied", "burst of 64, next one in between, denied", deny, |fixture, n| {
                ahead::<_, 64, 16>(fixture, n, key)
            });
            let sip = What { hashing: Hashing::Sip, ..what };
            add("sip_single", "SipHash, single call", sip, |fixture, n| single(fixture, n, key));
            add("sip_burst32", "SipHash, burst of 32", sip, |fixture, n| lone::<_, 32>(fixture, n, keyed));
            add("sip_next64", "SipHash, burst of 64, next prefetched", sip, |fixture, n| {
                next::<_, 64>(fixture, n, keyed)
            });
            add("sip_ahead64", "SipHash, burst of 64, next one in between", sip, |fixture, n| {
                ahead::<_, 64, 16>(fixture, n, key)
            });
        }
        if keys == 1_000 {
            // What goes key by key on every processor: too few keys for groups, and costs.
            add("ahead16", "burst of 16, next one in between", what, |fixture, n| {
                ahead::<_, 16, 16>(fixture, n, key)
            });
            add("ahead64_costs", "burst of 64 with costs, next one in between", what, |fixture, n| {
                ahead_costs::<_, 64, 16>(fixture, n, key)
            });
            let mixed = What { mix: Mix::Mixed, ..what };
            add("ahead64_mixed", "burst of 64, next one in between, half denied", mixed, |fixture, n| {
                ahead::<_, 64, 16>(fixture, n, key)
            });
        }
        if keys == 1_000_000 {
            more(&mut add, what);
        }
        if keys >= 1_000_000 {
            let small = What { huge: false, ..what };
            add("small_ahead64", "on small pages, burst of 64, next one in between", small, |fixture, n| {
                ahead::<_, 64, 16>(fixture, n, key)
            });
        }
        if keys == 1_000 || keys == 1_000_000 {
            owned(suite, what, size);
        }
    }
    largest(suite, fixtures);
    let what = What { order: Order::Churn, ..What::new(1_000_000) };
    let mut add = |id: &str, text: &str, step: Step<Shared>| {
        suite.add(id, text, Mix::Pass, visits(1_000_000), |notes| body(fixtures.get(what, notes), step));
    };
    add("churn.single", "every key new, single call", churn);
    add("churn.next32", "every key new, burst of 32, next prefetched", churn_next::<_, 32>);
    add("churn.ahead64", "every key new, burst of 64, next one in between", churn_ahead::<_, 64>);
}

/// 1e8 keys, each of which comes in turn, once a pass.
fn largest(suite: &mut Suite, fixtures: &mut Fixtures) {
    let what = What { order: Order::EachTurn, ..What::new(LARGEST) };
    let mut add = |id: &str, text: &str, step: Step<Shared>| {
        let (id, text) = (format!("table1e8.{id}"), format!("1e8 keys, staggered, {text}"));
        suite.add(&id, &text, what.mix, visits(LARGEST), |notes| body(fixtures.get(what, notes), step));
    };
    add("single", "single call", |fixture, n| single(fixture, n, key));
    add("burst32", "burst of 32", |fixture, n| lone::<_, 32>(fixture, n, keyed));
    add("prepared32", "burst of 32, prefetched key by key", |fixture, n| {
        prepared::<_, 32, 16>(fixture, n, key)
    });
    add("next64", "burst of 64, next prefetched", |fixture, n| next::<_, 64>(fixture, n, keyed));
    add("ahead64", "burst of 64, next one in between", |fixture, n| ahead::<_, 64, 16>(fixture, n, key));
    add("far128", "burst of 64, prepared 2 bursts ahead", |fixture, n| far::<_, 64, 2, 16>(fixture, n, key));
    add("far256", "burst of 64, prepared 4 bursts ahead", |fixture, n| far::<_, 64, 4, 16>(fixture, n, key));
}

/// What is measured at one size only.
fn more(add: &mut impl FnMut(&str, &str, What, Step<Shared>), what: What) {
    let mixed = What { mix: Mix::Mixed, ..what };
    add("single_mixed", "single call, half denied", mixed, |fixture, n| single(fixture, n, key));
    add("next64_mixed", "burst of 64, next prefetched, half denied", mixed, |fixture, n| {
        next::<_, 64>(fixture, n, keyed)
    });
    add("ahead64_mixed", "burst of 64, next one in between, half denied", mixed, |fixture, n| {
        ahead::<_, 64, 16>(fixture, n, key)
    });
    let zipf = What { order: Order::Zipf, ..what };
    add("zipf_single", "Zipf(1.0), single call", zipf, |fixture, n| single(fixture, n, key));
    add("zipf_ahead64", "Zipf(1.0), burst of 64, next one in between", zipf, |fixture, n| {
        ahead::<_, 64, 16>(fixture, n, key)
    });
    add("zipf_next64", "Zipf(1.0), burst of 64, next prefetched", zipf, |fixture, n| {
        next::<_, 64>(fixture, n, keyed)
    });
    let short = What { bytes: 4, ..what };
    add("key4_single", "4-byte keys, single call", short, |fixture, n| single(fixture, n, key4));
    add("key4_next64", "4-byte keys, burst of 64, next prefetched", short, |fixture, n| {
        next::<_, 64>(fixture, n, keyed4)
    });
    add("key4_ahead64", "4-byte keys, burst of 64, next one in between", short, |fixture, n| {
        ahead::<_, 64, 4>(fixture, n, key4)
    });
    let caller = What { hashing: Hashing::Caller, ..what };
    add("hashed32", "caller hashes, burst of 32", caller, |fixture, n| lone::<_, 32>(fixture, n, mix64));
    add("hashed_next32", "caller hashes, burst of 32, next prefetched", caller, |fixture, n| {
        next::<_, 32>(fixture, n, mix64)
    });
    add("hashed_next64", "caller hashes, burst of 64, next prefetched", caller, |fixture, n| {
        next::<_, 64>(fixture, n, mix64)
    });
}

/// The table with one owner.
fn owned(suite: &mut Suite, what: What, size: &str) {
    let mut made: Option<Rc<RefCell<Fixture<Exclusive>>>> = None;
    let mut add = |id: &str, text: &str, step: Step<Exclusive>| {
        let (id, text) = (format!("table{size}.{id}"), format!("{size} keys, exclusive, {text}"));
        suite.add(&id, &text, what.mix, visits(what.keys), |notes| {
            let make = || Rc::new(RefCell::new(fixtures::exclusive(what, notes)));
            body(made.get_or_insert_with(make).clone(), step)
        });
    };
    add("exclusive", "single call", |fixture, n| single(fixture, n, key));
    add("exclusive_next32", "burst of 32, next prefetched", |fixture, n| next::<_, 32>(fixture, n, keyed));
    add("exclusive_ahead64", "burst of 64, next one in between", |fixture, n| {
        ahead::<_, 64, 16>(fixture, n, key)
    });
}

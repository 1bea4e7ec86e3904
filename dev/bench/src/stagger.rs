//! Keys that come back after an idle time, each at an instant of its own, with new keys between them.
//!
//! ```text
//!  one known key   |#####.........................|#####.........................|#####...   # live, in debt for T
//!                  request                        one pass later                             . expired: idle
//!  one new key              |#####.....................................................      never comes again
//!
//!  pass  as many requests as keys, DT apart; each known key comes once, in the same random order in each pass
//!  load  live slots / slots = T / (DT * slots), as each request occupies a slot for one emission interval T
//!  new0  the table starts empty; the known keys are all that there is, and half of the slots are spare
//!  new5  5 % of requests are by new keys (95 % of a pass are known ones); no word is EMPTY, so that an insert evicts
//!        a word that has expired: one that nobody needs, or that of a known key, which then inserts in its turn
//! ```
//!
//! The fixtures of other rows insert all keys at one instant, so each gets its own slot and keeps it. Here nearly all
//! words have expired at any instant (busy: half), so the choice of slots by inserts decides how many keys find their
//! word again. Untimed passes count the share that inserted, by full answers, and the report prints it as a note.

use tatcell::{Counters, Request, Shared};

use crate::fixture::{keyed, Fixture};
use crate::fixtures::{insert, Fixtures, Order, What};
use crate::keys::key;
use crate::steps::{ahead, single};
use crate::suite::{Mix, Suite, DT};
use crate::traffic::Traffic;

/// Load in thousandths, and how the names of its rows begin.
const LOADS: [(u64, &str); 3] = [(5, "idle_"), (50, ""), (500, "busy_")];
/// Requests by new keys, in hundredths.
const NEW: [u32; 4] = [0, 1, 5, 20];
/// Numbers of keys that come once: first those that fill the table, then, for each visit, those of its new keys.
const FILLERS: u64 = 1 << 62;
const APART: u64 = 1 << 32;
/// Passes that are counted.
const TOLD: u64 = 2;

pub fn add(suite: &mut Suite, fixtures: &mut Fixtures) {
    for (load, prefix) in LOADS {
        for new in NEW {
            add_fixture(suite, fixtures, (1_000_000, "1e6"), (load, prefix), new);
        }
    }
    // The same in cache, small enough to be counted.
    add_fixture(suite, fixtures, (1_000, "1e3"), LOADS[1], 5);
}

type Step = fn(&mut Fixture<Shared>, u64, Numbers) -> u64;

/// The rows over one fixture.
fn add_fixture(
    suite: &mut Suite,
    fixtures: &mut Fixtures,
    (keys, size): (u32, &str),
    (load, prefix): (u64, &str),
    new: u32,
) {
    let traffic = Traffic::new(keys, load, new);
    let what = What { order: Order::Staggered(traffic), ..What::new(keys) };
    let name = format!("{size} keys, load {}, {new} % new", load as f64 / 1_000.0);
    let mut add = |id: &str, text: &str, step: Step| {
        let (id, text) = (format!("stagger{size}.{prefix}{id}_new{new}"), format!("{name}, {text}"));
        suite.add(&id, &text, Mix::All, (traffic.visit(), traffic.visit()), |notes| {
            let fixture = fixtures.get(what, notes);
            if fixture.borrow().fresh == 0 {
                let fixture = &mut fixture.borrow_mut();
                settle(fixture, &traffic);
                notes.push(format!("{name}: {}", tell(fixture, &traffic)));
            }
            Box::new(move |n| {
                let fixture = &mut fixture.borrow_mut();
                let numbers = Numbers::next(fixture, &traffic);
                step(fixture, n, numbers)
            })
        });
    };
    add("single", "single call", |fixture, n, numbers| single(fixture, n, |id| key(numbers.id(id))));
    add("ahead64", "64 ahead", |fixture, n, numbers| {
        ahead::<_, 64, 16>(fixture, n, |id| key(numbers.id(id)))
    });
}

/// The numbers of keys in one visit: those of the stream, the new ones moved on to where no visit has been.
#[derive(Clone, Copy)]
struct Numbers {
    known: u64,
    by: u64,
}

impl Numbers {
    fn next(fixture: &mut Fixture<Shared>, traffic: &Traffic) -> Numbers {
        fixture.fresh += APART;
        Numbers { known: u64::from(traffic.known), by: fixture.fresh }
    }

    /// Without a branch, which would be mispredicted.
    #[inline(always)]
    fn id(self, id: u64) -> u64 {
        id + (self.by & u64::from(id >= self.known).wrapping_neg())
    }
}

/// Brings a fixture to its steady state.
fn settle(fixture: &mut Fixture<Shared>, traffic: &Traffic) {
    if traffic.known < traffic.keys {
        // Twice as many as slots, all at one instant: a word stays EMPTY in one set of thousands, wherever inserts go.
        insert(fixture, keyed, FILLERS..FILLERS + 2 * fixture.table.slots() as u64);
        fixture.now += traffic.period;
    }
    for _ in 0..traffic.passes().max(6) {
        pass(fixture, traffic, &mut Counters::default());
    }
}

/// What the next passes meet, in words.
fn tell(fixture: &mut Fixture<Shared>, traffic: &Traffic) -> String {
    let (mut counters, mut again) = (Counters::default(), 0);
    for _ in 0..TOLD {
        again += pass(fixture, traffic, &mut counters);
    }
    let (decided, stats) = (TOLD * u64::from(traffic.keys), fixture.table.stats(fixture.now));
    let percent = |part: u64, whole: u64| part as f64 * 100.0 / whole as f64;
    format!(
        "{:.2} % of requests inserted, {:.2} % of those by known keys ({:.2} % found their set full, {} of {decided} \
         were refused); {:.1} % of slots live, {:.1} % EMPTY",
        percent(counters.inserted, decided),
        percent(again, TOLD * u64::from(traffic.known)),
        percent(counters.untracked, decided),
        decided - counters.conforming,
        percent(stats.live, stats.slots),
        percent(stats.slots - stats.live - stats.expired - stats.claims, stats.slots),
    )
}

/// One pass, counted; how many known keys inserted.
fn pass(fixture: &mut Fixture<Shared>, traffic: &Traffic, counters: &mut Counters) -> u64 {
    let numbers = Numbers::next(fixture, traffic);
    let Fixture { table, limit, stream, now, .. } = fixture;
    let mut again = 0;
    let (ids, turn) = stream.take(traffic.keys as usize);
    for id in ids.iter().map(|&id| turn.id(id)) {
        *now += DT;
        let before = counters.inserted;
        let request = Request { limit, now: *now, cost: 1, room: 0 };
        let _ = table.check_ex(&request, keyed(table, numbers.id(id)), Some(counters));
        again += u64::from(id < numbers.known) * (counters.inserted - before);
    }
    again
}

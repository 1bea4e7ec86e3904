//! Requests that come at a rate of their own, by a clock that is read: 1, 10 and 100 million a second, for one thread
//! and for two that share them.
//!
//! ```text
//!  time    |..........|..........|..........|..........|      a batch of 64 is due every 64 / rate (two threads: twice
//!  work    |###.......|###.......|###.......|###.......|      that, each); only the work is timed: one reading of the
//!           clock, 64 decisions, one reading                  clock (part of what is timed), the decisions
//! ```
//!
//! The other rows move their clock by a fixed step per decision and never wait, so a word is always in one state. Here
//! 1e6 keys may come 200 times a second each: at 1 Mpps nearly all have drained and their lines are cold; at 100 Mpps a
//! quarter of the slots is live. Two threads read one clock, so they agree about time as real ones do. A thread that
//! falls behind by more than a millisecond, because another process had its processor, restarts from now. The last
//! column, by wall time, shows the rate that was reached: 1000, 100 and 10 ns at these rates.
//!
//! Next to them are bare operations at the same rates, `floor64` and `floor1`: swaps of separate words on lines of
//! both, prefetched for writing one batch before or just before, with 52 and with 68 other instructions.

use std::sync::atomic::AtomicU64;
use std::sync::OnceLock;

use tatcell::{Burst, NextBurst, Shared};

use crate::bare::{others, HAS_OTHERS};
use crate::cpu::{wall_ns, Cpus};
use crate::crew::{crew, Member};
use crate::fixture::{keyed, Fixture};
use crate::fixtures::{Fixtures, Order, What};
use crate::keys::{key, Stream};
use crate::suite::{Mix, Suite};
use crate::thread_floors::{part_of_words, prefetch_to_write, swap, R52, R68};

const KEYS: u32 = 1_000_000;
/// The second thread's keys, from here on, are never asked for by the first.
const HALF: u64 = 500_000;
/// Requests that are received at once.
const BATCH: usize = 64;
/// What a thread may be late before it starts anew.
const LATE: u64 = 1_000_000;

/// Million requests a second; decisions of a visit: first long enough for debts to be what they are at that rate, then
/// short, so that a busy machine lets both threads finish now and then, but longer than a thread takes to warm up.
const RATES: [(u64, (u64, u64)); 3] =
    [(1, (1 << 9, 1 << 11)), (10, (1 << 16, 1 << 14)), (100, (1 << 20, 1 << 16))];

/// One thread's part of the work.
trait Work: Send {
    /// Decides a batch at an instant, and returns how many passed.
    fn batch(&mut self, now: u64) -> u64;
}

type Step = fn(&mut OnTable, u64) -> u64;

pub fn add(suite: &mut Suite, fixtures: &mut Fixtures, cpus: Option<Cpus>) {
    let Some(cpu) = cpus.and_then(|cpus| cpus.other) else {
        suite.skip("paced.", "needs two processors that a thread can be pinned to");
        return;
    };
    for (rate, visit) in RATES {
        for threads in [1, 2] {
            let who = ["one thread", "two"][threads - 1];
            let gap = BATCH as u64 * 1_000 * threads as u64 / rate;
            for (name, text, step) in
                [("ahead64", "64 ahead", ahead as Step), ("single", "single calls", single)]
            {
                let text = format!("1e6 keys, {rate} Mpps, {text}, {who}");
                let id = format!("paced.{name}_{rate}mpps_{threads}");
                suite.add_crew(&id, &text, Mix::Pass, visit, |notes| {
                    let fixture = fixtures.get(What { order: Order::Paced, ..What::new(KEYS) }, notes);
                    let (fixture, keys) = (fixture.borrow(), KEYS / threads as u32);
                    let first = (0..threads as u64).map(|part| part * HALF);
                    let work = |first| OnTable::new(fixture.with(Stream::uniform(keys)), first, step);
                    let member = |first| Paced::new(work(first), gap, fixture.now);
                    crew(first.map(member).collect(), cpu, Default::default())
                });
            }
            if HAS_OTHERS {
                let text = |how: &str| format!("words, {rate} Mpps, {how}, {who}");
                let ahead = ("floor64", text("64 ahead, 52 others"));
                bare::<true, R52>(suite, ahead, (rate, visit), threads, cpu);
                let alone = ("floor1", text("not ahead, 68 others"));
                bare::<false, R68>(suite, alone, (rate, visit), threads, cpu);
            }
        }
    }
}

/// The bare operations at the same rate.
fn bare<const AHEAD: bool, const R: usize>(
    suite: &mut Suite,
    (name, text): (&str, String),
    (rate, visit): (u64, (u64, u64)),
    threads: usize,
    cpu: usize,
) {
    suite.add_crew(&format!("paced.{name}_{rate}mpps_{threads}"), &text, Mix::Bare, visit, |_| {
        let gap = BATCH as u64 * 1_000 * threads as u64 / rate;
        let member = |first| {
            let (words, stream) = part_of_words(KEYS, threads, first);
            let work = OnWords::<AHEAD, R> { words, first, apart: threads, stream, coming: [first; BATCH] };
            Paced::new(work, gap, 0)
        };
        crew((0..threads).map(member).collect(), cpu, Default::default())
    });
}

/// One thread's work, and when its next batch is due.
struct Paced<W> {
    work: W,
    gap: u64,
    due: u64,
    /// The time of the table when it was made.
    made: u64,
    /// ns that its decisions took since somebody asked.
    busy: u64,
}

impl<W: Work> Paced<W> {
    fn new(work: W, gap: u64, made: u64) -> Paced<W> {
        Paced { work, gap, due: 0, made, busy: 0 }
    }
}

/// One thread's part of a table.
struct OnTable {
    fixture: Fixture<Shared>,
    /// The number of its first key.
    first: u64,
    step: Step,
    /// The burst that is decided next, and the verdicts of the one before it.
    hashes: [u64; BATCH],
    last: u64,
}

impl OnTable {
    fn new(fixture: Fixture<Shared>, first: u64, step: Step) -> OnTable {
        let hashes = std::array::from_fn(|i| keyed(&fixture.table, first + i as u64));
        OnTable { fixture, first, step, hashes, last: 0 }
    }
}

impl Work for OnTable {
    fn batch(&mut self, now: u64) -> u64 {
        (self.step)(self, now)
    }
}

/// One thread's words: number `first` and each `apart` further ones.
struct OnWords<const AHEAD: bool, const R: usize> {
    words: &'static [AtomicU64],
    first: usize,
    apart: usize,
    stream: Stream,
    /// The words that are swapped next, which have been asked for.
    coming: [usize; BATCH],
}

impl<const AHEAD: bool, const R: usize> Work for OnWords<AHEAD, R> {
    #[inline(never)]
    fn batch(&mut self, _: u64) -> u64 {
        let OnWords { words, first, apart, stream, coming } = self;
        let (ids, turn) = stream.take(BATCH);
        for (place, &id) in coming.iter_mut().zip(ids) {
            let next = turn.id(id) as usize * *apart + *first;
            let now = if AHEAD { std::mem::replace(place, next) } else { next };
            prefetch_to_write(&words[next]);
            others::<R>();
            swap(&words[now]);
        }
        BATCH as u64
    }
}

/// The clock of all of these rows, in ns, at first where their fixture was made.
fn ticks(wall: u64, made: u64) -> u64 {
    static START: OnceLock<u64> = OnceLock::new();
    made + wall.saturating_sub(*START.get_or_init(|| wall))
}

impl<W: Work> Member for Paced<W> {
    fn decide(&mut self, n: u64) -> u64 {
        let mut passed = 0;
        for _ in 0..n / BATCH as u64 {
            let from = loop {
                let now = wall_ns();
                if now >= self.due {
                    break now;
                }
                std::hint::spin_loop();
            };
            self.due = if from > self.due + LATE { from } else { self.due } + self.gap;
            passed += self.work.batch(ticks(from, self.made));
            self.busy += wall_ns() - from;
        }
        passed
    }

    /// The clock is read, not set.
    fn now(&mut self) -> Option<&mut u64> {
        None
    }

    fn busy(&mut self) -> Option<u64> {
        Some(std::mem::take(&mut self.busy))
    }

    fn slice(&self) -> u64 {
        BATCH as u64
    }
}

#[inline(never)]
fn ahead(part: &mut OnTable, now: u64) -> u64 {
    let OnTable { fixture: Fixture { table, limit, stream, .. }, first, hashes, last, .. } = part;
    let (first, mut next) = (*first, [0; BATCH]);
    let (ids, turn) = stream.take(BATCH);
    let burst = Burst { last: *last, ..Burst::new(limit, now, hashes) };
    let pass = burst.check(table, None, NextBurst::keys(&mut next, |i| key(first + turn.id(ids[i]))));
    (*hashes, *last) = (next, pass.unwrap_or(0));
    u64::from(last.count_ones())
}

#[inline(never)]
fn single(part: &mut OnTable, now: u64) -> u64 {
    let OnTable { fixture: Fixture { table, limit, stream, .. }, first, .. } = part;
    let (ids, turn) = stream.take(BATCH);
    let check = |&id: &u32| table.check_hash(limit, now, keyed(table, *first + turn.id(id)), 1);
    ids.iter().map(|id| u64::from(check(id).is_ok_and(|o| o.passes()))).sum()
}

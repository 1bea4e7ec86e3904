//! Counters that all threads of a server write, without a lock and mostly without sharing a cache line.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tatcell::Counters;

/// Counters of one thread, or of a few, for each of several things.
#[repr(align(128))]
struct Shard(Box<[[AtomicU64; FIELDS]]>);

pub(crate) struct Counts(Box<[Shard]>);

const FIELDS: usize = 10;

fn fields(of: &mut Counters) -> [&mut u64; FIELDS] {
    [
        &mut of.conforming,
        &mut of.soft,
        &mut of.shadow,
        &mut of.non_conforming,
        &mut of.never,
        &mut of.contended,
        &mut of.untracked,
        &mut of.inherited,
        &mut of.forgiven,
        &mut of.inserted,
    ]
}

/// The number of this thread, in the order in which threads first count.
fn thread() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static NUMBER: Cell<usize> = const { Cell::new(usize::MAX) });
    NUMBER.with(|number| {
        if number.get() == usize::MAX {
            // ORDERING: Relaxed; only the value counts.
            number.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        number.get()
    })
}

impl Counts {
    pub fn new(things: usize) -> Counts {
        let shards = std::thread::available_parallelism().map_or(1, usize::from);
        let zeros = |_| std::array::from_fn(|_| AtomicU64::new(0));
        Counts((0..shards).map(|_| Shard((0..things).map(zeros).collect())).collect())
    }

    /// Adds to the counters of a thing.
    pub fn add(&self, thing: usize, mut more: Counters) {
        let shard = self.0.get(thread() % self.0.len()).and_then(|shard| shard.0.get(thing));
        for (count, more) in shard.into_iter().flatten().zip(fields(&mut more)) {
            if *more != 0 {
                // ORDERING: Relaxed; each count is a value by itself.
                count.fetch_add(*more, Ordering::Relaxed);
            }
        }
    }

    /// Returns the sum of all threads.
    pub fn sum(&self, thing: usize) -> Counters {
        let mut sum = Counters::default();
        for shard in &self.0 {
            for (to, count) in fields(&mut sum).into_iter().zip(shard.0.get(thing).into_iter().flatten()) {
                // ORDERING: Relaxed; each count is as of its load.
                *to = to.wrapping_add(count.load(Ordering::Relaxed));
            }
        }
        sum
    }
}

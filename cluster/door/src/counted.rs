//! Counts of decisions, by many threads.
//!
//! A thread adds to one of 16 stripes, so threads seldom share a cache line. What is read is the sum of them.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tatcell::Counters;

const STRIPES: usize = 16;

/// The counts of one stripe, in the order of the fields of [`Counters`].
#[derive(Debug, Default)]
#[repr(align(128))]
struct Stripe([AtomicU64; 10]);

/// Counts of the decisions of a table.
#[derive(Debug, Default)]
pub struct Counted([Stripe; STRIPES]);

thread_local! {
    static MINE: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Returns the stripe of this thread.
fn mine() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    MINE.get().unwrap_or_else(|| {
        // ORDERING: Relaxed; a number.
        let number = NEXT.fetch_add(1, Ordering::Relaxed) % STRIPES;
        MINE.set(Some(number));
        number
    })
}

impl Counted {
    /// Adds what one decision counted.
    pub fn add(&self, more: &Counters) {
        let fields = [
            more.conforming,
            more.soft,
            more.shadow,
            more.non_conforming,
            more.never,
            more.contended,
            more.untracked,
            more.inherited,
            more.forgiven,
            more.inserted,
        ];
        for (count, more) in self.0[mine()].0.iter().zip(fields).filter(|(_, more)| *more > 0) {
            // ORDERING: Relaxed; a value.
            count.fetch_add(more, Ordering::Relaxed);
        }
    }

    /// Returns the sum of all threads. Each count is as of its load.
    pub fn sum(&self) -> Counters {
        let mut sum = Counters::default();
        for Stripe(stripe) in &self.0 {
            // ORDERING: Relaxed; values.
            let [conforming, soft, shadow, non_conforming, never, contended, untracked, inherited, forgiven, inserted] =
                stripe.each_ref().map(|count| count.load(Ordering::Relaxed));
            sum.add(&Counters {
                conforming,
                soft,
                shadow,
                non_conforming,
                never,
                contended,
                untracked,
                inherited,
                forgiven,
                inserted,
                ..Counters::default()
            });
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_field_is_summed_over_all_threads() {
        let one = Counters {
            conforming: 1,
            soft: 2,
            shadow: 3,
            non_conforming: 4,
            never: 5,
            contended: 6,
            untracked: 7,
            inherited: 8,
            forgiven: 9,
            inserted: 10,
            reserved: [0; 6],
        };
        let counted = Counted::default();
        std::thread::scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|| (0..1_000).for_each(|_| counted.add(&one)));
            }
        });
        let mut want = Counters::default();
        (0..20_000).for_each(|_| want.add(&one));
        assert_eq!(counted.sum(), want);
    }
}

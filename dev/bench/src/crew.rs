//! Crews, two threads at once: starting them together, stopping them together, and timing each by its own clock.
//!
//! ```text
//!  this thread    |spin|--- slice --- slice --- slice ---|            ns per decision = 1 / sum(made / CPU time)
//!  second thread     |s|--- slice --- slice --- slice -----|
//!                      both ready                        first one done: the other ends its slice
//! ```
//!
//! A member that waits between its decisions times them itself.
//!
//! No thread works alone for longer than a slice. A visit does not count ([`Visit::together`]) if one of them had to
//! wait for a processor: alone, a thread would meet no contention and look faster than it is.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use std::cell::Cell;
use std::rc::Rc;

use crate::cpu::{pin_to, thread_ns, wall_ns};
use crate::row::{Crew, Visit};

/// Decisions between two looks at the other thread.
const SLICE: u64 = 2048;

/// What one thread decides on.
pub trait Member: Send {
    fn decide(&mut self, n: u64) -> u64;
    /// The clock of this thread, where the crew sets it.
    fn now(&mut self) -> Option<&mut u64>;

    /// ns that its decisions took since this was asked last; None: all that the thread did counts.
    fn busy(&mut self) -> Option<u64> {
        None
    }

    /// Decisions between two looks at the other thread.
    fn slice(&self) -> u64 {
        SLICE
    }
}

/// Rows over one table share its clock.
pub fn crew<M: Member + 'static>(mut members: Vec<M>, cpu: usize, clock: Rc<Cell<u64>>) -> Crew {
    Box::new(move |n| {
        let mut now = clock.get();
        let visit = visit(&mut members, cpu, n, &mut now);
        clock.set(now);
        visit
    })
}

struct Done {
    made: u64,
    passed: u64,
    /// CPU time of the thread, and ns that its decisions took.
    cpu: u64,
    busy: u64,
    from: u64,
    to: u64,
}

/// Makes about n decisions: the first member on this thread, the second, if there is one, on the other processor.
/// All start at `now`, which moves to the latest of their clocks.
fn visit<M: Member>(members: &mut [M], other: usize, n: u64, now: &mut u64) -> Visit {
    let each = n / members.len() as u64;
    let (ready, stop) = (AtomicUsize::new(members.len()), AtomicBool::new(false));
    members.iter_mut().filter_map(Member::now).for_each(|clock| *clock = *now);
    let done: Vec<Done> = std::thread::scope(|scope| {
        let (first, rest) = members.split_first_mut().expect("a member");
        let (ready, stop) = (&ready, &stop);
        let rest: Vec<_> = rest
            .iter_mut()
            .map(|member| {
                scope.spawn(move || {
                    pin_to(other);
                    work(member, each, ready, stop)
                })
            })
            .collect();
        let first = work(first, each, ready, stop);
        let rest = rest.into_iter().map(|thread| thread.join().expect("a thread"));
        std::iter::once(first).chain(rest).collect()
    });
    *now = members.iter_mut().filter_map(Member::now).map(|clock| *clock).max().unwrap_or(*now);
    summary(&done)
}

fn work<M: Member>(member: &mut M, n: u64, ready: &AtomicUsize, stop: &AtomicBool) -> Done {
    ready.fetch_sub(1, SeqCst);
    while ready.load(SeqCst) != 0 {
        std::hint::spin_loop();
    }
    let slice = member.slice();
    member.busy();
    let (from, before) = (wall_ns(), thread_ns());
    let (mut made, mut passed) = (0, 0);
    while made < n && !stop.load(SeqCst) {
        passed += member.decide(slice);
        made += slice;
    }
    stop.store(true, SeqCst);
    let cpu = thread_ns() - before;
    Done { made, passed, cpu, busy: member.busy().unwrap_or(cpu), from, to: wall_ns() }
}

fn summary(done: &[Done]) -> Visit {
    let made: u64 = done.iter().map(|d| d.made).sum();
    let rate: f64 = done.iter().map(|d| d.made as f64 / d.busy as f64).sum();
    let from = done.iter().map(|d| d.from).min().unwrap_or(0);
    let to = done.iter().map(|d| d.to).max().unwrap_or(0);
    // 20 us: reading clocks, and a slice of one while the other has ended.
    let together =
        done.len() == 1 || done.iter().all(|d| (to - from) as f64 <= d.cpu as f64 * 1.1 + 20_000.0);
    let passed = done.iter().map(|d| d.passed).sum();
    Visit { made, passed, cpu: 1.0 / rate, wall: (to - from) as f64 / made as f64, together }
}

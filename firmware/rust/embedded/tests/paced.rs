//! Tasks that wait, by a clock that the test moves: one test, as there is one clock.

use std::future::Future;
use std::pin::{pin, Pin};
use std::task::{Context, Poll, Waker};

use embassy_time::{Duration, Instant, MockDriver};
use tatcell::{small_limit, Outcome, SmallLimit};
use tatcell_embedded::{Paced, Refused};

fn poll<F: Future>(task: Pin<&mut F>) -> Poll<F::Output> {
    task.poll(&mut Context::from_waker(Waker::noop()))
}

/// Moves the clock by microseconds until the task is done; how many it took.
fn finish<F: Future>(mut task: Pin<&mut F>) -> (u64, F::Output) {
    let start = Instant::now().as_ticks();
    loop {
        if let Poll::Ready(output) = poll(task.as_mut()) {
            return (Instant::now().as_ticks() - start, output);
        }
        assert!(Instant::now().as_ticks() - start < 10_000_000, "it never is");
        MockDriver::get().advance(Duration::from_ticks(50));
    }
}

#[test]
fn tasks_wait_for_their_turn_and_give_back_what_they_do_not_use() {
    MockDriver::get().advance(Duration::from_secs(1));
    // 1000 a second in microseconds.
    let asked = Paced::new(small_limit!(1_000 per 1.secs(), embassy_time::TICK_HZ, burst 2));
    assert_eq!(finish(pin!(asked.until_ready(3))), (0, Err(Refused::Never)));
    assert_eq!(finish(pin!(asked.until_ready(2))), (0, Ok(())));
    assert_eq!(finish(pin!(asked.until_ready(1))), (1_000, Ok(())));
    assert_eq!(finish(pin!(asked.until_ready(2))), (2_000, Ok(())));
    {
        let mut dropped = pin!(asked.until_ready(1));
        assert!(poll(dropped.as_mut()).is_pending());
    }
    assert_eq!(
        asked.check(1),
        Outcome::NonConforming { retry_after: 1_000 },
        "a task that asks has charged nothing"
    );

    // Departures 1 ms apart, at most 5 ms away.
    let shaped = Paced::new(SmallLimit::shaped(1_000, embassy_time::TICK_HZ, 1, 5_000).unwrap());
    assert_eq!(finish(pin!(shaped.reserve(1))), (0, Ok(())));
    let mut tasks: Vec<_> = (0..5).map(|_| Box::pin(shaped.reserve(1))).collect();
    for task in &mut tasks {
        assert!(poll(task.as_mut()).is_pending());
    }
    assert_eq!(finish(pin!(shaped.reserve(1))), (0, Err(Refused::TooLate)));
    // The last gives its place up before its time: there is one for another task.
    drop(tasks.pop());
    let mut another = Box::pin(shaped.reserve(1));
    assert!(poll(another.as_mut()).is_pending());
    tasks.push(another);
    for task in &mut tasks {
        let (waited, left) = finish(task.as_mut());
        assert_eq!((waited, left), (1_000, Ok(())), "one each millisecond, in order");
    }
    // One that leaves the line from its middle takes nobody's place: departures stay a millisecond apart.
    let mut tasks: Vec<_> = (0..4).map(|_| Box::pin(shaped.reserve(1))).collect();
    for task in &mut tasks {
        assert!(poll(task.as_mut()).is_pending());
    }
    drop(tasks.remove(1));
    let mut next = Box::pin(shaped.reserve(1));
    assert!(poll(next.as_mut()).is_pending());
    tasks.push(next);
    let waits: Vec<_> = tasks.iter_mut().map(|task| finish(task.as_mut())).collect();
    assert_eq!(waits, [(1_000, Ok(())), (2_000, Ok(())), (1_000, Ok(())), (1_000, Ok(()))]);
    // What was used is not given back.
    assert_eq!(shaped.check(1), Outcome::NonConforming { retry_after: 1_000 });
}

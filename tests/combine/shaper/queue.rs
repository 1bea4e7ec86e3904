//! The leaky bucket as a queue: payloads, both bounds, and both stores.

use std::collections::VecDeque;

use crate::common::{cases, Rng};
use tatcell::{
    ring_words, ChainError, Fifo, LeakyQueue, Limit, LimitSpec, NotQueued, Outcome, Ring, ShaperError,
    Verdict,
};

const fn wait(retry_after: u64) -> Outcome {
    Outcome::NonConforming { retry_after }
}

/// Random jobs against a list and the definition: departures, order, both refusals, nothing lost.
fn play<F: Fifo<Payload = u64>>(rng: &mut Rng, fifo: F, seen: &mut [u64; 3]) {
    let room = fifo.room();
    let (interval, places) = (rng.within(1, 500), rng.within(1, 2 * room as u64));
    let limit = LimitSpec::leaky_bucket(1, interval, 1).max_delay(places * interval).build().unwrap();
    let mut now = rng.scaled(50);
    let mut queue = LeakyQueue::new(limit, fifo, now).unwrap();
    let mut list: VecDeque<(u64, u64)> = VecDeque::new();
    let mut last: Option<u64> = None;
    for job in 0..500 {
        now += if rng.one_in(3) { rng.below(3 * interval) } else { 0 };
        while rng.one_in(2) {
            let due = list.front().filter(|(departure, _)| *departure <= now).map(|(_, job)| *job);
            if due.is_some() {
                list.pop_front();
            }
            assert_eq!(queue.pop(now), due);
        }
        let leaves = last.map_or(now, |last| now.max(last + interval));
        match queue.push(now, 1, job) {
            Ok(made) => {
                assert!(list.len() < room && leaves - now <= places * interval);
                assert_eq!((made.verdict, made.departure), (Verdict::Conforming, leaves));
                list.push_back((leaves, job));
                last = Some(leaves);
                seen[0] += 1;
            }
            Err(NotQueued::Full(back)) => {
                assert_eq!((back, list.len()), (job, room));
                seen[1] += 1;
            }
            Err(NotQueued::Refused(back, why)) => {
                assert_eq!((back, why), (job, wait(leaves - now - places * interval)));
                assert!(list.len() < room && list.len() as u64 >= places.min(room as u64 - 1));
                seen[2] += 1;
            }
        }
        assert_eq!((queue.len(), queue.is_empty()), (list.len(), list.is_empty()));
        assert_eq!(queue.next_departure(), list.front().map(|(departure, _)| *departure));
    }
    let left: Vec<u64> = std::iter::from_fn(|| queue.take()).collect();
    assert_eq!(left, list.into_iter().map(|(_, job)| job).collect::<Vec<_>>());
}

#[test]
fn a_ring_queues_as_the_definition_says() {
    let seen = std::cell::Cell::new([0; 3]);
    cases(200, |rng| {
        let mut words = vec![rng.next(); ring_words(rng.within(1, 20) as usize) + rng.below(2) as usize];
        let mut all = seen.get();
        play(rng, Ring::new(&mut words), &mut all);
        seen.set(all);
    });
    assert!(seen.get().iter().all(|&n| n > 1_000), "{:?}", seen.get());
}

#[cfg(feature = "heapless")]
#[test]
fn a_deque_queues_as_the_definition_says() {
    let seen = std::cell::Cell::new([0; 3]);
    cases(100, |rng| {
        let mut all = seen.get();
        play(rng, heapless::Deque::<(u64, u64), 7>::new(), &mut all);
        play(rng, heapless::Deque::<(u64, u64), 1>::new(), &mut all);
        seen.set(all);
    });
    assert!(seen.get().iter().all(|&n| n > 1_000), "{:?}", seen.get());
}

/// Payloads of any type, which come out once or back, and are dropped with the queue.
#[cfg(feature = "heapless")]
#[test]
fn a_deque_holds_payloads_of_any_type() {
    let alive = std::rc::Rc::new(());
    let limit = LimitSpec::leaky_bucket(1, 10, 1).max_delay(100).build().unwrap();
    let mut queue = LeakyQueue::new(limit, heapless::Deque::<_, 2>::new(), 0).unwrap();
    for _ in 0..2 {
        assert!(queue.push(0, 1, alive.clone()).unwrap().passes());
    }
    let back = queue.push(0, 1, alive.clone()).unwrap_err();
    assert!(matches!(back, NotQueued::Full(_)));
    drop(back.into_payload());
    assert_eq!(std::rc::Rc::strong_count(&alive), 3);
    assert!(queue.pop(0).is_some() && queue.pop(9).is_none());
    drop(queue);
    assert_eq!(std::rc::Rc::strong_count(&alive), 1);
}

/// A limit in shadow mode lets a queue go as fast as it is filled.
#[test]
fn a_queue_in_shadow_mode_keeps_nothing_back() {
    let limit = LimitSpec::leaky_bucket(1, 100, 1).max_delay(100).shadow().build().unwrap();
    let mut words = [0; ring_words(4)];
    let mut queue = LeakyQueue::new(limit, Ring::new(&mut words), 0).unwrap();
    let told = [0, 1, 2].map(|job| queue.push(0, 1, job).unwrap()).map(|d| (d.departure, d.retry_after));
    assert_eq!(told, [(0, 0), (0, 100), (0, 100)], "at once, delayed, refused");
    assert_eq!([queue.pop(0), queue.pop(0), queue.pop(0)], [Some(0), Some(1), Some(2)]);
}

/// A queue of Q: a job that finds Q waiting is refused, one that finds Q - 1 is not.
#[test]
fn a_delay_of_q_intervals_is_a_queue_of_q() {
    for q in 1..20 {
        let limit = LimitSpec::leaky_bucket(1, 100, 1).max_delay(q * 100).build().unwrap();
        let mut words = [0; ring_words(40)];
        let mut queue = LeakyQueue::new(limit, Ring::new(&mut words), 0).unwrap();
        assert!(queue.is_empty() && queue.push(0, 1, 0).is_ok() && !queue.is_empty());
        assert_eq!(queue.pop(0), Some(0)); // is served
        assert!(queue.is_empty());
        for job in 1..=q {
            assert!(queue.push(0, 1, job).is_ok());
        }
        assert!(matches!(queue.push(0, 1, 99), Err(NotQueued::Refused(99, why)) if why == wait(100)));
        assert_eq!(queue.len() as u64, q);
    }
}

#[test]
fn what_cannot_be_a_queue_is_refused() {
    let window = Limit::fixed_window(5, 100).unwrap();
    let mut words = [0; 4];
    let made = LeakyQueue::new(window, Ring::new(&mut words), 0).map(drop);
    assert_eq!(made, Err(ShaperError::Chain(ChainError::BadAlgorithm)));
    let limit = Limit::new(1, 10, 1).unwrap();
    assert_eq!(LeakyQueue::new(limit, Ring::new(&mut words[..1]), 0).map(drop), Err(ShaperError::TooSmall));
    let mut queue = LeakyQueue::new(limit, Ring::new(&mut words), 0).unwrap();
    assert!(matches!(queue.push(0, 2, 7), Err(NotQueued::Refused(7, why)) if why == Outcome::Never));
    assert!(queue.push(50, 1, 8).is_ok());
    // A clock that steps back counts as the latest reading, so that no departure falls.
    assert!(matches!(queue.push(20, 1, 9), Err(NotQueued::Refused(9, why)) if why == wait(10)));
    assert_eq!((queue.pop(49), queue.pop(50)), (None, Some(8)));
}

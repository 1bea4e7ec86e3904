//! Models of a lease line, in every schedule up to the bound and with weak memory: what two keys and two pieces admit,
//! and what waits for an answer. The models must also catch weakenings.
//!
//! Loom sees SeqCst as AcqRel, and keeps only the last access to each atomic, so it may leave out a schedule in which
//! only an older load matters. The weakenings show that it runs the schedules that matter here. Not shown: more threads
//! or takes than named, and 256 changes of hands between a load and its swap.

use std::panic::{catch_unwind, AssertUnwindSafe};

use loom::sync::Arc;
use loom::thread;

use super::*;

const OLD: u64 = 7;
const NEW: u64 = 8;

/// A unit of the models lasts one nanosecond.
const UNIT: u64 = 1;

struct Shared {
    line: Line,
    at: AtomicU64,
}

impl Shared {
    /// A line of the old key with one piece.
    fn with(piece: Piece) -> Arc<Shared> {
        let shared = Shared { line: Line::new(), at: AtomicU64::new(OLD) };
        assert!(shared.line.publish(piece, 0, u64::MAX));
        Arc::new(shared)
    }

    fn take(&self, tag: u64) -> Option<u64> {
        end(self.line.take(&self.at, tag, When { reading: 0, hold: 0 }, UNIT))
    }
}

fn end(taken: Taken) -> Option<u64> {
    match taken {
        Taken::Yes { end, .. } => Some(end),
        _ => None,
    }
}

/// Everything that was taken lies in the pieces, and no part was taken twice.
fn disjoint_and_within(ends: &[Option<u64>], pieces: &[Piece]) {
    let mut ends: Vec<u64> = ends.iter().flatten().copied().collect();
    ends.sort_unstable();
    for end in &ends {
        assert!(pieces.iter().any(|p| p.lo < *end && *end <= p.hi), "{end} is of no piece");
    }
    ends.windows(2).for_each(|pair| assert_ne!(pair[0], pair[1], "taken twice"));
}

fn explore(body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(4);
    builder.check(body);
}

/// The model must find a schedule that breaks what it asserts.
fn must_fail(body: impl Fn() + Sync + Send + 'static) {
    let found = catch_unwind(AssertUnwindSafe(|| explore(body))).is_err();
    assert!(found, "the weakening was not caught");
}

const FIRST: Piece = Piece { lo: 100, hi: 101 };
const SECOND: Piece = Piece { lo: 200, hi: 202 };

/// Two workers and the store's thread, which publishes a second piece, and another one in the place of the first.
fn takes_beside_publish(publish: fn(&Line, Piece) -> bool) {
    let shared = Shared::with(FIRST);
    let begun = shared.take(OLD);
    let [a, b, store] = [shared.clone(), shared.clone(), shared];
    let a = thread::spawn(move || [a.take(OLD), a.take(OLD)]);
    let b = thread::spawn(move || b.take(OLD));
    let mut pieces = vec![FIRST];
    for piece in [SECOND, Piece { lo: 300, hi: 301 }] {
        if store.line.own_for_store(&store.at, OLD) {
            if publish(&store.line, piece) {
                pieces.push(piece);
            }
            store.line.disown();
        }
    }
    let ([first, second], third) = (a.join().unwrap(), b.join().unwrap());
    disjoint_and_within(&[begun, first, second, third, store.take(OLD)], &pieces);
}

#[test]
fn loom_workers_take_each_unit_of_two_pieces_once() {
    explore(|| takes_beside_publish(|line, piece| line.publish(piece, 0, u64::MAX)));
}

/// Publishes the generation before its piece.
fn publish_early(line: &Line, piece: Piece) -> bool {
    let newest = line.newest.load(Ordering::Relaxed) as u8;
    if Word::unpack(line.word.load(Ordering::Acquire)).generation != newest {
        return false;
    }
    let next = newest.wrapping_add(1);
    line.newest.store(u64::from(next), Ordering::Release);
    line.lo[usize::from(next & 1)].store(piece.lo, Ordering::Relaxed);
    line.hi[usize::from(next & 1)].store(piece.hi, Ordering::Relaxed);
    true
}

#[test]
fn loom_a_generation_before_its_piece_is_caught() {
    must_fail(|| takes_beside_publish(publish_early));
}

/// A worker of the old key, while the line changes hands and gets a piece that starts where the old one did.
fn take_beside_change(
    take: fn(&Shared, u64) -> Option<u64>,
    change: fn(&Line, &AtomicU64, u64, u64) -> bool,
) {
    let old = Piece { lo: 100, hi: 102 };
    let new = Piece { lo: 100, hi: 103 };
    let shared = Shared::with(old);
    let other = shared.clone();
    // The worker starts on the old piece, so its first swap does not move to it.
    let begun = shared.take(OLD);
    let worker = thread::spawn(move || take(&other, OLD));
    let before = shared.take(OLD);
    let changed = change(&shared.line, &shared.at, OLD, NEW);
    assert!(changed, "nobody else owns the line");
    assert!(shared.line.own_for_store(&shared.at, NEW));
    assert!(shared.line.publish(new, 0, u64::MAX));
    shared.line.disown();
    let mine = [shared.take(NEW), shared.take(NEW)];
    let theirs = worker.join().unwrap();
    disjoint_and_within(&[begun, before, theirs], &[old]);
    // The new key's grant is its own: the worker of the old key took none of it.
    assert!(mine.iter().all(Option::is_some), "a unit of the new key is gone");
    disjoint_and_within(&mine, &[new]);
}

fn shipped_take(shared: &Shared, tag: u64) -> Option<u64> {
    shared.take(tag)
}

#[test]
fn loom_a_line_that_changes_hands_gives_nothing_of_one_key_to_the_other() {
    explore(|| take_beside_change(shipped_take, Line::change_hands));
}

/// Checks the tag before it reads the word, and not again.
fn take_without_second_look(shared: &Shared, tag: u64) -> Option<u64> {
    if shared.at.load(Ordering::Acquire) != tag {
        return None;
    }
    let line = &shared.line;
    for _ in 0..MAX_LOST {
        let old = line.word.load(Ordering::Acquire);
        let word = Word::unpack(old);
        let hi = line.hi[usize::from(word.generation & 1)].load(Ordering::Acquire);
        match word.take(hi, 0, UNIT) {
            Some(next) if line.swap(old, next) => return Some(next.low),
            Some(_) => continue,
            None => {}
        }
        let newest = line.newest.load(Ordering::Acquire) as u8;
        if newest == word.generation {
            return None;
        }
        let low = line.lo[usize::from(newest & 1)].load(Ordering::Acquire);
        line.swap(old, Word { generation: newest, low });
    }
    None
}

#[test]
fn loom_a_tag_that_is_not_looked_at_after_the_word_is_caught() {
    must_fail(|| take_beside_change(take_without_second_look, Line::change_hands));
}

/// Starts the generations anew with each key.
fn change_with_old_generations(line: &Line, at: &AtomicU64, from: u64, to: u64) -> bool {
    if !line.own(FREE, CHANGING) || at.load(Ordering::Acquire) != from {
        return false;
    }
    at.store(0, Ordering::Release);
    line.word.swap(Word::spent(0).pack(), Ordering::AcqRel);
    line.newest.store(0, Ordering::Relaxed);
    for field in line.lo.iter().chain(&line.hi) {
        field.store(0, Ordering::Relaxed);
    }
    at.store(to, Ordering::Release);
    line.disown();
    true
}

#[test]
fn loom_generations_that_begin_anew_are_caught() {
    must_fail(|| take_beside_change(shipped_take, change_with_old_generations));
}

fn put_back(shared: &Shared, tag: u64) -> u64 {
    shared.line.put_back(&shared.at, tag, When { reading: 0, hold: 0 }, (1, UNIT))
}

/// A worker takes and another one gives back, while the store's thread publishes a second piece.
#[test]
fn loom_no_more_is_taken_than_the_pieces_and_what_was_put_back() {
    explore(|| {
        let shared = Shared::with(FIRST);
        assert!(shared.take(OLD).is_some());
        let [worker, giver, store] = [shared.clone(), shared.clone(), shared];
        let worker = thread::spawn(move || [worker.take(OLD), worker.take(OLD)]);
        let giver = thread::spawn(move || put_back(&giver, OLD));
        let mut units = FIRST.hi - FIRST.lo;
        if store.line.own_for_store(&store.at, OLD) {
            if store.line.publish(SECOND, 0, u64::MAX) {
                units += SECOND.hi - SECOND.lo;
            }
            store.line.disown();
        }
        let (taken, back) = (worker.join().unwrap(), giver.join().unwrap());
        let rest = (0..4).filter(|_| store.take(OLD).is_some()).count() as u64;
        let taken = 1 + taken.iter().flatten().count() as u64 + rest;
        assert!(taken <= units + back, "{taken} of {units} and {back}");
    });
}

/// A worker of the old key gives back, while the line changes hands and the new key takes all of its piece.
fn back_beside_change(back: fn(&Shared, u64) -> u64) {
    let shared = Shared::with(Piece { lo: 100, hi: 102 });
    assert!(shared.take(OLD).is_some());
    let other = shared.clone();
    let worker = thread::spawn(move || back(&other, OLD));
    assert!(shared.line.change_hands(&shared.at, OLD, NEW), "nobody else owns the line");
    assert!(shared.line.own_for_store(&shared.at, NEW));
    assert!(shared.line.publish(Piece { lo: 100, hi: 102 }, 0, u64::MAX));
    shared.line.disown();
    let taken = (0..2).filter(|_| shared.take(NEW).is_some()).count();
    worker.join().unwrap();
    assert_eq!((taken, shared.take(NEW)), (2, None), "the new key has what the old one gave back");
}

#[test]
fn loom_what_one_key_gives_back_is_never_another_one_s() {
    explore(|| back_beside_change(put_back));
}

/// Checks the tag before it reads the word, and not again.
fn put_back_without_second_look(shared: &Shared, tag: u64) -> u64 {
    if shared.at.load(Ordering::Acquire) != tag {
        return 0;
    }
    let line = &shared.line;
    let old = line.word.load(Ordering::Acquire);
    let word = Word::unpack(old);
    let side = usize::from(word.generation & 1);
    let bounds = (line.lo[side].load(Ordering::Acquire), line.hi[side].load(Ordering::Acquire));
    match word.put_back(bounds, 1, UNIT) {
        Some((next, units)) if line.swap(old, next) => units,
        _ => 0,
    }
}

#[test]
fn loom_a_tag_that_is_not_looked_at_before_units_are_put_back_is_caught() {
    must_fail(|| back_beside_change(put_back_without_second_look));
}

/// The store's thread settles an answer for the old key while a worker makes the line the new key's.
fn settle_beside_change(own: fn(&Line, &AtomicU64, u64) -> bool) {
    let shared = Shared::with(FIRST);
    let [worker, store] = [shared.clone(), shared];
    let worker = thread::spawn(move || {
        let changed = worker.line.change_hands(&worker.at, OLD, NEW);
        (changed, worker.take(NEW), worker.take(NEW))
    });
    let begun = store.take(OLD);
    let mut pieces = vec![FIRST];
    if own(&store.line, &store.at, OLD) {
        if store.line.publish(SECOND, 0, u64::MAX) {
            pieces.push(SECOND);
        }
        store.line.disown();
    }
    let after = store.take(OLD);
    let (_, first, second) = worker.join().unwrap();
    assert_eq!((first, second), (None, None), "a piece of the old key was the new one's");
    disjoint_and_within(&[begun, after], &pieces);
}

#[test]
fn loom_an_answer_for_one_key_is_never_settled_for_another() {
    explore(|| settle_beside_change(Line::own_for_store));
}

#[test]
fn loom_an_answer_that_is_settled_without_a_look_at_the_tag_is_caught() {
    must_fail(|| settle_beside_change(|line, _, _| line.own(FREE, STORE)));
}

/// The most that may wait in the models of waiting.
const MOST: u64 = 2;

/// A worker that is told of an answer asks again at once, next to one that asks but waits for no answer. `answer`
/// starts the count anew and calls its argument, which tells; `queue` marks an ask.
fn told_asks_again(answer: fn(&Line, &dyn Fn()), queue: fn(&Line) -> bool) {
    let shared = Shared::with(FIRST);
    assert!(shared.line.own_for_store(&shared.at, OLD));
    // The requests that are answered now had filled all the room.
    assert!(shared.line.waits.add(MOST, MOST));
    let told = Arc::new(AtomicU32::new(0));
    let waits = move |line: &Line| {
        if queue(line) {
            line.waits.also(1);
            return true;
        }
        line.waits.add(1, MOST)
    };
    let (worker, hears) = (shared.clone(), told.clone());
    let worker = thread::spawn(move || hears.load(Ordering::Acquire) == 0 || waits(&worker.line));
    let other = shared.clone();
    let other = thread::spawn(move || waits(&other.line));
    answer(&shared.line, &|| told.store(1, Ordering::Release));
    shared.line.disown();
    assert!(worker.join().unwrap(), "refused by what was answered");
    other.join().unwrap();
}

#[test]
fn loom_who_is_told_is_not_refused_by_what_was_answered() {
    explore(|| {
        told_asks_again(
            |line, tell| {
                line.waits.anew();
                tell();
            },
            Line::queue,
        );
    });
}

#[test]
fn loom_a_count_that_begins_anew_after_the_telling_is_caught() {
    must_fail(|| {
        told_asks_again(
            |line, tell| {
                tell();
                line.waits.anew();
            },
            Line::queue,
        );
    });
}

/// What is left of the count while a line is released, and the next ask.
fn next_ask_after_a_late_count(queue: fn(&Line) -> bool) {
    let shared = Shared::with(FIRST);
    assert!(shared.line.own_for_store(&shared.at, OLD));
    let late = shared.clone();
    let late = thread::spawn(move || {
        // It found the line owned, and counts at any later time.
        if !late.line.is_free() {
            late.line.waits.add(MOST, MOST);
        }
    });
    shared.line.waits.anew();
    shared.line.disown();
    late.join().unwrap();
    assert!(queue(&shared.line), "nobody asks");
    shared.line.waits.also(1);
    assert!(shared.line.waits.add(1, MOST), "refused by what nobody waits for");
}

#[test]
fn loom_a_late_count_is_forgotten_by_the_next_ask() {
    explore(|| next_ask_after_a_late_count(Line::queue));
}

#[test]
fn loom_an_ask_that_begins_no_count_is_caught() {
    must_fail(|| next_ask_after_a_late_count(|line| line.own(FREE, QUEUED)));
}

//! A lease line by itself, and under threads.

use super::*;

/// So late that all has come, with a hold so long that nothing lapses.
const LATE: When = When { reading: 1_000_000, hold: 1_000_000 };

const EIGHT: Piece = Piece { lo: 100, hi: 180 };

#[test]
fn a_line_fills_two_cache_lines() {
    assert_eq!((std::mem::size_of::<Line>(), std::mem::align_of::<Line>()), (128, 128));
}

#[test]
fn pieces_are_spent_one_after_the_other_and_a_third_lapses() {
    let (line, at) = (Line::new(), AtomicU64::new(7));
    assert_eq!(line.take(&at, 7, LATE, 10), Taken::No);
    assert!(line.publish(EIGHT, 0, 130));
    // It has not begun: the word is still at the first piece.
    assert!(!line.publish(Piece { lo: 300, hi: 310 }, 0, 0));
    assert_eq!(line.take(&at, 7, LATE, 10), Taken::Yes { end: 110, ahead: false });
    assert!(line.publish(Piece { lo: 300, hi: 310 }, 0, 300));
    assert!(!line.publish(Piece { lo: 400, hi: 410 }, 0, 0));
    for end in (120..=180).step_by(10) {
        assert_eq!(line.take(&at, 7, LATE, 10), Taken::Yes { end, ahead: false });
    }
    assert_eq!(line.take(&at, 7, LATE, 10), Taken::Yes { end: 310, ahead: true });
    assert_eq!(line.take(&at, 7, LATE, 10), Taken::No);
    assert_eq!(line.take(&at, 8, LATE, 10), Taken::Other);
}

#[test]
fn what_is_left_is_what_could_be_taken_of_both_pieces() {
    let (line, at) = (Line::new(), AtomicU64::new(7));
    assert_eq!(line.left(&at, 7, LATE), [0, 0]);
    assert!(line.publish(EIGHT, 0, 0));
    line.take(&at, 7, LATE, 10);
    assert_eq!(line.left(&at, 7, LATE), [70, 0]);
    assert!(line.publish(Piece { lo: 300, hi: 310 }, 0, 0));
    assert_eq!(line.left(&at, 7, LATE), [70, 10]);
    let lapsing = When { reading: 1_000, hold: 830 };
    assert_eq!(line.left(&at, 7, lapsing), [10, 10]);
    assert_eq!(line.left(&at, 8, LATE), [0, 0]);
}

#[test]
fn a_line_changes_hands_only_while_nobody_asks_and_leaves_nothing() {
    let (line, at) = (Line::new(), AtomicU64::new(7));
    assert!(line.publish(EIGHT, 0, 0));
    assert!(line.queue() && !line.queue());
    assert!(!line.change_hands(&at, 7, 8));
    assert!(line.own_for_store(&at, 7));
    line.unqueue(); // too late: the store's thread owns it
    assert!(!line.change_hands(&at, 7, 8) && !line.is_free());
    line.disown();
    assert!(!line.change_hands(&at, 6, 8));
    assert!(line.change_hands(&at, 7, 8));
    assert_eq!(line.take(&at, 8, LATE, 10), Taken::No);
    assert_eq!(line.take(&at, 7, LATE, 10), Taken::Other);
    assert!(!line.own_for_store(&at, 7) && line.is_free());
}

#[test]
fn a_reading_of_before_a_piece_came_takes_nothing_of_it() {
    let (line, at) = (Line::new(), AtomicU64::new(7));
    assert!(line.publish(EIGHT, 150, u64::MAX));
    let at_reading = |reading| line.take(&at, 7, When { reading, hold: 150 }, 10);
    assert_eq!(at_reading(149), Taken::No);
    assert_eq!(at_reading(150), Taken::Yes { end: 110, ahead: false });
    assert_eq!(at_reading(149), Taken::No);
    assert_eq!(at_reading(300), Taken::Yes { end: 160, ahead: false }, "the rest below has lapsed");
}

#[test]
fn what_is_seized_is_the_rest_of_the_newest_piece_and_then_nothing_is_left() {
    let (line, at) = (Line::new(), AtomicU64::new(7));
    assert_eq!(line.seize(0), 0);
    for (floor, left) in [(0, 70), (130, 50), (500, 0)] {
        let (line, at) = (Line::new(), AtomicU64::new(7));
        assert!(line.publish(EIGHT, 0, 0));
        line.take(&at, 7, LATE, 10);
        assert_eq!(line.seize(floor), left);
        assert_eq!((line.take(&at, 7, LATE, 10), line.seize(0)), (Taken::No, 0));
    }
    assert!(line.publish(EIGHT, 0, 0));
    line.take(&at, 7, LATE, 10);
    assert!(line.publish(Piece { lo: 300, hi: 340 }, 0, 0));
    assert_eq!(line.seize(0), 40, "the end of the axis is the second piece");
}

#[test]
fn threads_take_exactly_what_two_pieces_hold() {
    let (line, at) = (Line::new(), AtomicU64::new(7));
    assert!(line.publish(Piece { lo: 0, hi: 100_000 }, 0, 0));
    line.take(&at, 7, LATE, 1);
    assert!(line.publish(Piece { lo: 200_000, hi: 250_000 }, 0, 0));
    let taken: usize = std::thread::scope(|scope| {
        let work = || {
            let mut units = 0;
            // Lost swaps do not end the piece; only many refusals in a row do.
            let mut refused = 0;
            while refused < 1_000 {
                match line.take(&at, 7, LATE, 1) {
                    Taken::Yes { .. } => (units, refused) = (units + 1, 0),
                    _ => refused += 1,
                }
            }
            units
        };
        let workers = [scope.spawn(work), scope.spawn(work), scope.spawn(work)];
        workers.map(|w| w.join().expect("a worker")).iter().sum()
    });
    assert_eq!(taken, 149_999);
}

#[test]
fn what_is_put_back_can_be_taken_again_but_not_by_another_key() {
    let (line, at) = (Line::new(), AtomicU64::new(7));
    assert_eq!(line.put_back(&at, 7, LATE, (1, 10)), 0, "there is no piece");
    assert!(line.publish(EIGHT, 0, u64::MAX));
    for end in [110, 120, 130] {
        assert_eq!(line.take(&at, 7, LATE, 10), Taken::Yes { end, ahead: false });
    }
    assert_eq!(line.put_back(&at, 8, LATE, (1, 10)), 0);
    assert_eq!(line.put_back(&at, 7, LATE, (2, 10)), 2);
    assert_eq!(line.take(&at, 7, LATE, 10), Taken::Yes { end: 120, ahead: false });
    let lapsing = When { reading: 200, hold: 85 };
    assert_eq!(line.put_back(&at, 7, lapsing, (9, 10)), 0, "less than a unit has not lapsed");
    assert_eq!(line.put_back(&at, 7, LATE, (9, 10)), 2);
    assert!(line.change_hands(&at, 7, 8));
    assert_eq!(line.put_back(&at, 8, LATE, (9, 10)), 0, "nothing of the key before");
}

#[test]
fn threads_take_what_a_piece_holds_and_what_they_put_back() {
    let (line, at) = (Line::new(), AtomicU64::new(7));
    assert!(line.publish(Piece { lo: 0, hi: 10_000 }, 0, u64::MAX));
    let sums: Vec<(u64, u64)> = std::thread::scope(|scope| {
        let work = |every: u64| {
            let (line, at) = (&line, &at);
            move || {
                let (mut taken, mut back, mut refused) = (0, 0, 0);
                while refused < 1_000 {
                    match line.take(at, 7, LATE, 1) {
                        Taken::Yes { .. } => (taken, refused) = (taken + 1, 0),
                        _ => refused += 1,
                    }
                    if taken % every == 0 && refused == 0 {
                        back += line.put_back(at, 7, LATE, (2, 1));
                    }
                }
                (taken, back)
            }
        };
        let workers = [3, 4, 5].map(|every| scope.spawn(work(every)));
        workers.map(|worker| worker.join().expect("a worker")).into()
    });
    let sum = |of: fn(&(u64, u64)) -> u64| sums.iter().map(of).sum::<u64>();
    assert_eq!(sum(|one| one.0), 10_000 + sum(|one| one.1));
    assert!(sum(|one| one.1) > 0);
}

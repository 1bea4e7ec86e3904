//! Models of groups: every interleaving of reservations in one group gives the departures of one order of the calls.
//! See `table/models/loom_kit.rs` for the bounds and for what loom does not show.

use std::sync::Arc;

use crate::cell::Cell;
use crate::combine::{Group, Link};
use crate::limit::{Limit, LimitSpec};
use crate::table::models::loom_kit::{explore, race, race3, Bound, NOW};

/// Emission interval in ticks; one q-unit a tick.
const T: u64 = 1 << 16;

struct World {
    limit: Limit,
    cells: [Cell; 3],
    group: Group,
}

impl World {
    fn new() -> Arc<World> {
        let limit = LimitSpec::new(1, T, 1).max_delay(8 * T).resolution(0).build().expect("a limit");
        Arc::new(World { limit, cells: [Cell::new(), Cell::new(), Cell::new()], group: Group::new() })
    }

    /// Returns the departure of one request of this flow.
    fn send(&self, flow: usize) -> u64 {
        let link = Link::cell(&self.cells[flow], &self.limit, 1);
        self.group.reserve(NOW, &link).expect("a reservation").departure
    }
}

/// Two flows of two requests each: the departures that a thread gets never fall, whatever flow it asks for, and a
/// request after all have ended departs no earlier than any. Does not show: more threads.
#[test]
fn loom_departures_of_a_group_never_fall() {
    explore("group: two threads", Bound::Exhaustive, || {
        let world = World::new();
        let run = |first: usize| {
            let world = world.clone();
            move || [world.send(first), world.send(2)]
        };
        let (a, b) = race(run(0), run(1));
        assert!(a[0] <= a[1] && b[0] <= b[1], "fell in a thread: {a:?}, {b:?}");
        // Flow 2 has one unit an interval, so its two requests do not leave together.
        assert_eq!(a[1].abs_diff(b[1]), T, "{a:?}, {b:?}");
        let highest = a[1].max(b[1]);
        assert_eq!(world.group.eligible(), highest, "the group fell");
        assert!(world.send(0) >= highest, "fell for who came last");
    });
}

/// Three flows at once: the group ends at the latest departure. Does not show: more requests a thread.
#[test]
fn loom_three_flows_raise_a_group_to_the_latest() {
    explore("group: three threads", Bound::At(2, 3), || {
        let world = World::new();
        let run = |flow: usize| {
            let world = world.clone();
            move || {
                // The flow's first request waits for nobody, its second one for T.
                let first = world.send(flow);
                if flow == 0 {
                    world.send(flow)
                } else {
                    first
                }
            }
        };
        let (a, b, c) = race3(run(0), run(1), run(2));
        assert!(a >= NOW + T && b >= NOW && c >= NOW);
        assert_eq!(world.group.eligible(), a.max(b).max(c), "the group fell");
    });
}

/// MUST FAIL: a group that is set instead of raised falls when an earlier departure is written late.
#[test]
#[should_panic(expected = "the group fell")]
fn loom_weak_group_that_is_set_is_caught() {
    explore("group, weakened: set", Bound::Exhaustive, || {
        let world = World::new();
        let run = |flow: usize, requests: usize| {
            let world = world.clone();
            move || {
                let mut last = 0;
                for _ in 0..requests {
                    let from = world.group.eligible().max(NOW);
                    last = world.cells[flow].reserve_from(&world.limit, NOW, from, 1).departure;
                    world.group.reset();
                    world.group.raise(last);
                }
                last
            }
        };
        let (a, b) = race(run(0, 2), run(1, 1));
        assert_eq!(world.group.eligible(), a.max(b), "the group fell");
    });
}

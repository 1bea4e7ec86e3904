//! The schedule of a limit that is in force now. Every decision reads it.
//!
//! ```text
//!   generation   how many times it was stored           0       1       2  ..  KEPT - 1   KEPT ..
//!   kept         the schedules of the first generations     first   second  third   ..
//!   swapped      the schedule of now, beyond those                                            swapped
//! ```
//!
//! The first schedules of a limit are never freed, so a reader has a plain reference. Most limits never change, and a
//! change stores about five schedules. Later schedules are swapped: each load then counts its reader, which makes a
//! decision an eighth more expensive.
//!
//! **Invariant.** A reader of a generation sees its schedule or a later one, because the schedule is written first.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use arc_swap::{ArcSwap, Guard};

use crate::limit_version::Schedule;
use crate::sync::{AtomicU64, Ordering};

/// The number of schedules that stay: ten changes or more, some hundred bytes each.
const KEPT: usize = 64;

/// The schedules of one limit.
pub(crate) struct LimitVersions {
    generation: AtomicU64,
    kept: [OnceLock<Arc<Schedule>>; KEPT],
    swapped: ArcSwap<Schedule>,
}

/// The schedule in force, borrowed for as long as a reader uses it.
pub(crate) enum Now<'a> {
    Kept(&'a Arc<Schedule>),
    Swapped(Guard<Arc<Schedule>>),
}

impl Deref for Now<'_> {
    type Target = Arc<Schedule>;

    #[inline]
    fn deref(&self) -> &Arc<Schedule> {
        match self {
            Now::Kept(schedule) => schedule,
            Now::Swapped(schedule) => schedule,
        }
    }
}

impl LimitVersions {
    pub(crate) fn new(schedule: Schedule) -> LimitVersions {
        let first = Arc::new(schedule);
        let swapped = ArcSwap::new(first.clone());
        let kept = [const { OnceLock::new() }; KEPT];
        // Nobody else has it yet.
        let _ = kept[0].set(first);
        LimitVersions { generation: AtomicU64::new(0), kept, swapped }
    }

    #[inline]
    pub(crate) fn load(&self) -> Now<'_> {
        // ORDERING: Acquire; pairs with the Release of `store`: the schedule of this generation is there.
        let generation = self.generation.load(Ordering::Acquire);
        match self.kept.get(generation as usize).and_then(OnceLock::get) {
            Some(schedule) => Now::Kept(schedule),
            None => self.load_swapped(),
        }
    }

    #[cold]
    fn load_swapped(&self) -> Now<'_> {
        Now::Swapped(self.swapped.load())
    }

    /// Replaces the schedule. Only the store's thread calls it.
    pub(crate) fn store(&self, schedule: Arc<Schedule>) {
        // ORDERING: Relaxed; only this thread writes it.
        let next = self.generation.load(Ordering::Relaxed).saturating_add(1);
        self.swapped.store(schedule.clone());
        if let Some(place) = self.kept.get(next as usize) {
            // The place is empty, because no generation comes twice.
            let _ = place.set(schedule);
        }
        // ORDERING: Release; pairs with the Acquire of `load`. The schedule is written before.
        self.generation.store(next, Ordering::Release);
    }
}

#[cfg(all(test, not(tatcell_cluster_loom)))]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::limit_version::Maker;
    use crate::random::Seeds;
    use crate::split::SharedLimit;

    fn schedule(version: u64) -> Schedule {
        let (round_trip, delay) = (Duration::from_millis(4), Duration::from_secs(30));
        let mut maker =
            Maker { nodes: 1, round_trip, keys: 8, delay, seeds: Seeds::System, tables: Vec::new() };
        let limit = SharedLimit::new("x", 100, Duration::from_secs(1), 100).reserve(0, 0);
        Schedule { now: Arc::new(maker.version(version, limit, None).expect("a version")), next: None }
    }

    /// Returns whether two readers always see the schedule of the generation that they read before, or a later one,
    /// while a writer stores those up to `last`. The n-th stored schedule has the version n.
    fn readers_see_what_is_stored(last: u64, store: fn(&LimitVersions, Arc<Schedule>)) -> bool {
        let schedules = LimitVersions::new(schedule(0));
        let looks = || loop {
            // ORDERING: Acquire; as in `load`.
            let least = schedules.generation.load(Ordering::Acquire);
            if schedules.load().now.number < least {
                return false;
            }
            if least == last {
                return true;
            }
        };
        std::thread::scope(|scope| {
            let readers = [scope.spawn(looks), scope.spawn(looks)];
            (1..=last).for_each(|version| store(&schedules, Arc::new(schedule(version))));
            readers.map(|reader| reader.join().expect("a reader")) == [true, true]
        })
    }

    #[test]
    fn who_sees_a_generation_sees_its_schedule() {
        // Within the kept schedules, at the border, and far beyond it.
        assert!((0..100).all(|_| readers_see_what_is_stored(20, LimitVersions::store)));
        assert!((0..50).all(|_| readers_see_what_is_stored(KEPT as u64 + 8, LimitVersions::store)));
        assert!(readers_see_what_is_stored(20_000, LimitVersions::store));
    }

    /// If a store raised the generation before it wrote the schedule, a reader would see an older schedule. The test
    /// above looks for that, both within the kept schedules and beyond.
    #[test]
    fn a_generation_before_its_schedule_is_an_older_schedule_for_whoever_reads_it() {
        for stored in [3, KEPT as u64 + 3] {
            let schedules = LimitVersions::new(schedule(0));
            (1..=stored).for_each(|version| schedules.store(Arc::new(schedule(version))));
            // ORDERING: AcqRel, as in a store; only its place is wrong here.
            let least = schedules.generation.fetch_add(1, Ordering::AcqRel) + 1;
            assert!(schedules.load().now.number < least, "{stored}");
        }
    }

    #[test]
    fn the_first_schedules_stay_where_they_are_and_later_ones_go() {
        let schedules = LimitVersions::new(schedule(0));
        let first = Arc::downgrade(&schedules.load());
        for version in 1..KEPT as u64 {
            schedules.store(Arc::new(schedule(version)));
            assert!(matches!(schedules.load(), Now::Kept(schedule) if schedule.now.number == version));
        }
        schedules.store(Arc::new(schedule(100)));
        let beyond = Arc::downgrade(&schedules.load());
        assert!(matches!(schedules.load(), Now::Swapped(schedule) if schedule.now.number == 100));
        schedules.store(Arc::new(schedule(101)));
        assert_eq!(schedules.load().now.number, 101);
        assert!(first.upgrade().is_some() && beyond.upgrade().is_none());
    }
}

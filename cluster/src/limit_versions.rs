//! What a limit is now, for readers that ask for it with every decision.
//!
//! ```text
//!   generation   how many times it was stored           0       1       2  ..  KEPT - 1   KEPT ..
//!   kept         the plans of the first generations     first   second  third   ..
//!   swapped      the plan of now, beyond those                                            swapped
//! ```
//!
//! The first plans of a limit stay where they are, so a reader has a plain reference: most limits are never changed,
//! and a change stores about five. Those beyond are swapped, and each look counts its reader there, which costs an
//! eighth of a decision more.
//!
//! **Invariant.** Who reads a generation sees the plan of it or a later one: the plan is written first.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use arc_swap::{ArcSwap, Guard};

use crate::limit_version::Plan;
use crate::sync::{AtomicU64, Ordering};

/// Plans that stay: ten changes or more, some hundred bytes each.
const KEPT: usize = 64;

/// The plans of one limit.
pub(crate) struct Plans {
    generation: AtomicU64,
    kept: [OnceLock<Arc<Plan>>; KEPT],
    swapped: ArcSwap<Plan>,
}

/// The plan of now, as long as it is looked at.
pub(crate) enum Now<'a> {
    Kept(&'a Arc<Plan>),
    Swapped(Guard<Arc<Plan>>),
}

impl Deref for Now<'_> {
    type Target = Arc<Plan>;

    #[inline]
    fn deref(&self) -> &Arc<Plan> {
        match self {
            Now::Kept(plan) => plan,
            Now::Swapped(plan) => plan,
        }
    }
}

impl Plans {
    pub(crate) fn new(plan: Plan) -> Plans {
        let first = Arc::new(plan);
        let swapped = ArcSwap::new(first.clone());
        let kept = [const { OnceLock::new() }; KEPT];
        // Nobody else has it yet.
        let _ = kept[0].set(first);
        Plans { generation: AtomicU64::new(0), kept, swapped }
    }

    #[inline]
    pub(crate) fn load(&self) -> Now<'_> {
        // ORDERING: Acquire; pairs with the Release of store: its plan is there.
        let generation = self.generation.load(Ordering::Acquire);
        match self.kept.get(generation as usize).and_then(OnceLock::get) {
            Some(plan) => Now::Kept(plan),
            None => self.load_swapped(),
        }
    }

    #[cold]
    fn load_swapped(&self) -> Now<'_> {
        Now::Swapped(self.swapped.load())
    }

    /// Makes it another one. For the store's thread.
    pub(crate) fn store(&self, plan: Arc<Plan>) {
        // ORDERING: Relaxed; only this thread writes it.
        let next = self.generation.load(Ordering::Relaxed).saturating_add(1);
        self.swapped.store(plan.clone());
        if let Some(place) = self.kept.get(next as usize) {
            // Empty: no generation comes twice.
            let _ = place.set(plan);
        }
        // ORDERING: Release; pairs with the Acquire of load: after the plan.
        self.generation.store(next, Ordering::Release);
    }
}

#[cfg(all(test, not(tatcell_cluster_loom)))]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::limit_version::Maker;
    use crate::SharedLimit;

    fn plan(version: u64) -> Plan {
        let (round_trip, delay) = (Duration::from_millis(4), Duration::from_secs(30));
        let mut maker = Maker { nodes: 1, round_trip, keys: 8, delay, tables: Vec::new() };
        let limit = SharedLimit::new("x", 100, Duration::from_secs(1), 100).reserve(0, 0);
        Plan { now: Arc::new(maker.form(version, limit, None).expect("a form")), next: None }
    }

    /// Whether two readers always see the plan of the generation that they read before, or a later one, while a writer
    /// stores those up to `last`. The n-th plan that is stored has the version n.
    fn readers_see_what_is_stored(last: u64, store: fn(&Plans, Arc<Plan>)) -> bool {
        let plans = Plans::new(plan(0));
        let looks = || loop {
            // ORDERING: Acquire; as load.
            let least = plans.generation.load(Ordering::Acquire);
            if plans.load().now.version < least {
                return false;
            }
            if least == last {
                return true;
            }
        };
        std::thread::scope(|scope| {
            let readers = [scope.spawn(looks), scope.spawn(looks)];
            (1..=last).for_each(|version| store(&plans, Arc::new(plan(version))));
            readers.map(|reader| reader.join().expect("a reader")) == [true, true]
        })
    }

    #[test]
    fn who_sees_a_generation_sees_its_plan() {
        // Within those that stay, at the turn, and far beyond.
        assert!((0..100).all(|_| readers_see_what_is_stored(20, Plans::store)));
        assert!((0..50).all(|_| readers_see_what_is_stored(KEPT as u64 + 8, Plans::store)));
        assert!(readers_see_what_is_stored(20_000, Plans::store));
    }

    /// What a reader would find between the halves of a store that told the generation first: what the test above looks
    /// for, within those that stay and beyond.
    #[test]
    fn a_generation_before_its_plan_is_an_older_plan_for_whoever_reads_it() {
        for stored in [3, KEPT as u64 + 3] {
            let plans = Plans::new(plan(0));
            (1..=stored).for_each(|version| plans.store(Arc::new(plan(version))));
            // ORDERING: AcqRel, as a store; the weakening is its place.
            let least = plans.generation.fetch_add(1, Ordering::AcqRel) + 1;
            assert!(plans.load().now.version < least, "{stored}");
        }
    }

    #[test]
    fn the_first_plans_stay_where_they_are_and_later_ones_go() {
        let plans = Plans::new(plan(0));
        let first = Arc::downgrade(&plans.load());
        for version in 1..KEPT as u64 {
            plans.store(Arc::new(plan(version)));
            assert!(matches!(plans.load(), Now::Kept(plan) if plan.now.version == version));
        }
        plans.store(Arc::new(plan(100)));
        let beyond = Arc::downgrade(&plans.load());
        assert!(matches!(plans.load(), Now::Swapped(plan) if plan.now.version == 100));
        plans.store(Arc::new(plan(101)));
        assert_eq!(plans.load().now.version, 101);
        assert!(first.upgrade().is_some() && beyond.upgrade().is_none());
    }
}

//! Models of the bell, in every schedule and with weak memory: the thread finds a job that a worker puts, or is woken.
//! The models must also catch weakenings. The job is read and written without an ordering of its own, so only the bell
//! makes it seen.

use std::panic::{catch_unwind, AssertUnwindSafe};

use loom::sync::Arc;
use loom::thread;

use super::*;

struct Shared {
    bell: Bell,
    job: AtomicU32,
}

/// How a thread does a step of the bell.
type Step = fn(&Bell);

/// The thread was awake, says so once more, and goes to sleep; meanwhile a worker puts a job and rings.
fn a_job_is_found_or_the_thread_is_woken(ring: Step, wake_up: Step, sleep: Step) {
    loom::model(move || {
        let (shared, woken) =
            (Shared { bell: Bell::new(), job: AtomicU32::new(0) }, Arc::new(AtomicU32::new(0)));
        let by_bell = woken.clone();
        // ORDERING: Relaxed; read after the join.
        shared.bell.set_wake(move || by_bell.store(1, Ordering::Relaxed));
        let shared = Arc::new(shared);
        let of_worker = shared.clone();
        let worker = thread::spawn(move || {
            // ORDERING: Relaxed; the bell orders it.
            of_worker.job.store(1, Ordering::Relaxed);
            ring(&of_worker.bell);
        });
        wake_up(&shared.bell);
        sleep(&shared.bell);
        // ORDERING: Relaxed, both; as above.
        let found = shared.job.load(Ordering::Relaxed) != 0;
        worker.join().expect("a worker");
        assert!(found || woken.load(Ordering::Relaxed) != 0, "it sleeps, and a job waits");
    });
}

fn must_fail(ring: Step, wake_up: Step, sleep: Step) {
    let model = || a_job_is_found_or_the_thread_is_woken(ring, wake_up, sleep);
    assert!(catch_unwind(AssertUnwindSafe(model)).is_err(), "the weakening was not caught");
}

#[test]
fn loom_a_job_is_found_or_the_thread_is_woken() {
    a_job_is_found_or_the_thread_is_woken(Bell::ring, Bell::wake_up, Bell::sleep);
}

#[test]
fn loom_a_store_that_hides_a_ring_is_caught() {
    // ORDERING: Relaxed; the weakening.
    must_fail(Bell::ring, |bell| bell.state.store(AWAKE, Ordering::Relaxed), Bell::sleep);
}

#[test]
fn loom_a_sleep_that_reads_no_ring_is_caught() {
    // ORDERING: Relaxed; the weakening.
    must_fail(Bell::ring, Bell::wake_up, |bell| bell.state.store(ASLEEP, Ordering::Relaxed));
}

#[test]
fn loom_a_ring_that_publishes_nothing_is_caught() {
    let ring: Step = |bell| {
        // ORDERING: Relaxed; the weakening.
        if bell.state.swap(AWAKE, Ordering::Relaxed) == ASLEEP {
            bell.wake.get().expect("set")();
        }
    };
    must_fail(ring, Bell::wake_up, Bell::sleep);
}

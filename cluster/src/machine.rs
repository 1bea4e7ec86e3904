//! The store's thread as a machine without I/O. Each step gets the time and one event, and returns what to do. A driver
//! provides the streams, the clock and the waiting: `driver.rs` with sockets and a thread, or a simulation.
//!
//! The machine has a main task, which opens the node and then serves it until the handle is dropped, and short tasks
//! that connect to servers and search for them. A step polls each task that is left. So a step is a function of the
//! machine, the time, the event, and what workers have put into the queue. No task reads a clock, sleeps or blocks.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::mpsc::Receiver;
use std::sync::Arc;
use std::task::{Context, Waker};

use crate::error::OpenError;
use crate::node::{Job, Node};
use crate::opening::Opening;
use crate::wire::{Action, Event, Now, Task, Wire};

/// Serves one node: opens it, asks the store for it, and closes it.
pub struct Machine {
    wire: Wire,
    node: Arc<Node>,
    main: Option<Pin<Box<dyn Future<Output = ()>>>>,
    tasks: Vec<Task>,
    opened: Rc<RefCell<Option<Result<(), OpenError>>>>,
}

impl Machine {
    pub(crate) fn new(node: Arc<Node>, opening: Opening, jobs: Receiver<Job>) -> Machine {
        let (wire, opened) = (Wire::new(node.clock.clone()), Rc::new(RefCell::new(None)));
        let (of_main, wire_of_main, tell) = (node.clone(), wire.clone(), opened.clone());
        let main = async move {
            match opening.open(of_main, wire_of_main).await {
                Ok(store_thread) => {
                    *tell.borrow_mut() = Some(Ok(()));
                    store_thread.run(&jobs).await;
                }
                Err(error) => *tell.borrow_mut() = Some(Err(error)),
            }
        };
        Machine { wire, node, main: Some(Box::pin(main)), tasks: Vec::new(), opened }
    }

    /// Takes an event without a step. A driver tells everything that has come until `timer`, the time of the timer,
    /// before it steps with that time: otherwise an answer that came in time would count as late.
    pub fn tell(&mut self, timer: u64, event: Event<'_>) {
        self.wire.take(timer, event);
    }

    /// Takes an event, runs everything that can run, and returns what to do, in order.
    pub fn step(&mut self, now: Now, event: Event<'_>) -> Vec<Action> {
        self.tell(now.timer, event);
        self.wire.set(now);
        let mut context = Context::from_waker(Waker::noop());
        loop {
            self.wire.begin();
            // Before the main task, which takes their results.
            self.tasks.retain_mut(|task| task.as_mut().poll(&mut context).is_pending());
            let main = self.main.as_mut().map(|main| main.as_mut().poll(&mut context));
            if main.is_none_or(|polled| polled.is_ready()) {
                self.main = None;
                self.tasks.clear();
            }
            let spawned = self.wire.spawned();
            if spawned.is_empty() {
                return self.wire.actions();
            }
            self.tasks.extend(spawned);
        }
    }

    /// Returns the time of the timer at which to step with [`Event::Time`] if nothing happens before. It is 0 if there
    /// is more to do at once, or a worker rang since the last step, and `u64::MAX` if the machine is done.
    pub fn deadline(&self) -> u64 {
        match (&self.main, self.node.bell.rang()) {
            (None, _) => u64::MAX,
            (Some(_), true) if self.wire.listens() => 0,
            _ => self.wire.deadline(),
        }
    }

    /// Returns whether the node could be opened, once, as soon as that is known.
    pub fn opened(&mut self) -> Option<Result<(), OpenError>> {
        self.opened.borrow_mut().take()
    }

    /// Returns whether there is nothing more to do: the node was closed, or could not be opened.
    pub fn is_done(&self) -> bool {
        self.main.is_none()
    }
}

#[cfg(all(test, not(tatcell_cluster_loom)))]
#[path = "machine_tests.rs"]
mod machine_tests;

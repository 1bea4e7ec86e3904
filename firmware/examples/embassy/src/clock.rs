//! The clock of embassy-time by SysTick: one interrupt a millisecond. A board's support crate has a better one.

use core::cell::{Cell, RefCell};

use cortex_m_rt::exception;
use critical_section::{with, Mutex};
use embassy_time_driver::{time_driver_impl, Driver};
use embassy_time_queue_utils::Queue;

/// Cycles of a millisecond, less one: 16 MHz, the microbit's.
const RELOAD: u32 = 15_999;

struct SysTickDriver {
    now: Mutex<Cell<u64>>,
    queue: Mutex<RefCell<Queue>>,
}

time_driver_impl!(static CLOCK: SysTickDriver = SysTickDriver {
    now: Mutex::new(Cell::new(0)),
    queue: Mutex::new(RefCell::new(Queue::new())),
});

impl Driver for SysTickDriver {
    fn now(&self) -> u64 {
        with(|cs| self.now.borrow(cs).get())
    }

    fn schedule_wake(&self, at: u64, waker: &core::task::Waker) {
        with(|cs| {
            let mut queue = self.queue.borrow_ref_mut(cs);
            if queue.schedule_wake(at, waker) {
                // Wakes what is due; what comes later each tick looks for by itself.
                queue.next_expiration(self.now.borrow(cs).get());
            }
        });
    }
}

#[exception]
fn SysTick() {
    with(|cs| {
        let now = CLOCK.now.borrow(cs);
        now.set(now.get().wrapping_add(1));
        CLOCK.queue.borrow_ref_mut(cs).next_expiration(now.get());
    });
}

/// Starts the clock.
pub fn start() {
    const CONTROL: *mut u32 = 0xE000_E010 as *mut u32;
    // SAFETY: the three registers of SysTick, which every Cortex-M here has and nothing else uses.
    unsafe {
        CONTROL.add(1).write_volatile(RELOAD);
        CONTROL.add(2).write_volatile(0);
        CONTROL.write_volatile(7); // core clock, interrupt, on
    }
}

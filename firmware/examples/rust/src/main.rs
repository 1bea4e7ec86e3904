//! A firmware that polices packets per source, shapes one flow and limits its own log, in static memory.
//!
//! The same story, numbers and report as `firmware/examples/c/main.c`. Every limit is a `const`: a bad one does not
//! compile, and nothing divides on the target. The table lies in .bss and is used from the main loop and from the
//! timer interrupt. The exit status is 0 only if every number is the exact one.
//!
//! ```text
//! cargo build --release --target thumbv6m-none-eabi
//! qemu-system-arm -machine microbit -nographic -semihosting-config enable=on,target=native \
//!     -kernel target/thumbv6m-none-eabi/release/firmware-rust
//! ```
#![no_std]
#![no_main]

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use cortex_m_rt::{entry, exception};
use semi::say;
use tatcell::{
    Cell, Cell32, FullPolicy, LimitError, Shared, SmallLimit, SmallLimit32, SmallSlot, SmallTable, TableError,
};

/// Ten packets a second, five at once, for every source; ticks are milliseconds. 64 slots of 8 bytes.
static SLOTS: [SmallSlot; 64] = [SmallSlot::EMPTY; 64];
static TABLE: SmallTable<'static, Shared> =
    table(SmallTable::shared(&SLOTS, limit32(SmallLimit32::new(10, 1000, 5)), FullPolicy::Deny));

/// 2000 bytes a second and 3000 at once, shaped: a frame waits up to 2 s.
static SHAPE: SmallLimit = match SmallLimit::shaped(2000, 1000, 3000, 2000) {
    Ok(limit) => limit,
    Err(_) => panic!("this limit cannot be represented"),
};
static SHAPER: Cell = Cell::new();

/// One line of log a second, three at once.
static LOG_LIMIT: SmallLimit32 = limit32(SmallLimit32::new(1, 1000, 3));
static LOG: Cell32 = Cell32::new();

const fn limit32(limit: Result<SmallLimit32, LimitError>) -> SmallLimit32 {
    match limit {
        Ok(limit) => limit,
        Err(_) => panic!("this limit cannot be represented"),
    }
}

const fn table(table: Result<SmallTable<'static, Shared>, TableError>) -> SmallTable<'static, Shared> {
    match table {
        Ok(table) => table,
        Err(_) => panic!("this table cannot be made"),
    }
}

/// What a source offered and what passed. Plain loads and stores: each has one writer, and a Cortex-M0 has no more.
struct Source {
    name: &'static str,
    sent: AtomicU32,
    passed: AtomicU32,
}

impl Source {
    const fn new(name: &'static str) -> Source {
        Source { name, sent: AtomicU32::new(0), passed: AtomicU32::new(0) }
    }

    fn police(&self, address: u32, now: u32) -> bool {
        let [a, b, c, d] = address.to_be_bytes();
        self.sent.store(self.sent.load(Relaxed) + 1, Relaxed);
        // Family first: keys of other kinds may share the table.
        let passes = TABLE.check(now, &[4, a, b, c, d], 1).is_ok_and(|outcome| outcome.passes());
        self.passed.store(self.passed.load(Relaxed) + passes as u32, Relaxed);
        passes
    }
}

static POLITE: Source = Source::new("polite");
static FLOOD: Source = Source::new("flood");
static CROWD: Source = Source::new("crowd");
static TIMER: Source = Source::new("timer");

/// Milliseconds; starts 5 s before it wraps.
static NOW_MS: AtomicU32 = AtomicU32::new(0u32.wrapping_sub(5000));

/// An interrupt that polices its own packets in the table that it has interrupted.
#[exception]
fn SysTick() {
    TIMER.police(0x7F00_0001, NOW_MS.load(Relaxed));
}

/// The lm3s6965 runs SysTick only once its clock register has been written.
#[cfg(feature = "lm3s6965")]
fn clock() {
    const RCC: *mut u32 = 0x400F_E060 as *mut u32;
    // SAFETY: the run-mode clock configuration register of this chip; it is written back as it was.
    unsafe { RCC.write_volatile(RCC.read_volatile()) };
}

#[cfg(not(feature = "lm3s6965"))]
fn clock() {}

fn systick(control: u32, reload: u32) {
    const CONTROL: *mut u32 = 0xE000_E010 as *mut u32;
    // SAFETY: the three registers of SysTick, which every Cortex-M here has and nothing else uses.
    unsafe {
        CONTROL.write_volatile(0);
        CONTROL.add(1).write_volatile(reload);
        CONTROL.add(2).write_volatile(0);
        CONTROL.write_volatile(control);
    }
}

fn expect(what: &str, got: u32, wanted: u32) -> bool {
    if got == wanted {
        say!("{what} {got}");
    } else {
        say!("{what} {got}, wanted {wanted}");
    }
    got == wanted
}

#[entry]
fn main() -> ! {
    // Eight bytes of this device's random source. An emulator has none: never use a constant in a product.
    TABLE.seed([0x9d, 0x1c, 0x7f, 0x52, 0x0e, 0xa8, 0x33, 0x61]);

    let (mut lines, mut logged, mut right) = (0, 0, true);
    clock();
    systick(7, 2499); // core clock, interrupt, on
    for ms in 0..10_000 {
        let now = NOW_MS.load(Relaxed);
        if ms % 128 == 0 {
            POLITE.police(0xC000_0201, now); // 7.8 a second
        }
        if !FLOOD.police(0xC000_0202, now) {
            lines += 1;
            logged += LOG.check_unit(&LOG_LIMIT, now).passes() as u32;
        }
        if ms % 256 == 0 {
            CROWD.police(0x0A00_0000 + ms, now); // a new address each time
        }
        NOW_MS.store(now.wrapping_add(1), Relaxed);
    }
    systick(0, 2499);

    // Twelve frames of 500 bytes at once: six leave now, then one every 250 ms.
    let (mut shaped, mut last) = (0, 0);
    for frame in 0..12u64 {
        if let Ok(wait) = SHAPER.reserve_small(&SHAPE, 1_000_000, 500) {
            right &= wait == frame.saturating_sub(5) * 250;
            last = wait as u32;
            shaped += 1;
        }
    }
    TABLE.sweep(NOW_MS.load(Relaxed));

    say!("source sent passed");
    for source in [&POLITE, &FLOOD, &CROWD, &TIMER] {
        say!("{} {} {}", source.name, source.sent.load(Relaxed), source.passed.load(Relaxed));
    }
    // T = 100 ms, burst 5: five at once, then one each 100 ms of ten seconds.
    right &= expect("flood passed", FLOOD.passed.load(Relaxed), 5 + 99);
    right &= expect("polite passed", POLITE.passed.load(Relaxed), 79);
    right &= expect("crowd passed", CROWD.passed.load(Relaxed), 40);
    right &= expect("log lines dropped by the limiter", lines - logged, lines - (3 + 9));
    right &= expect("frames shaped", shaped, 12);
    right &= expect("last frame waits, ms", last, 1500);
    right &= expect("keys that met a full set", TABLE.full(), 0);
    let timer = TIMER.passed.load(Relaxed);
    right &= (5..=5 + 99).contains(&timer) && timer <= TIMER.sent.load(Relaxed);
    say!("{}", if right { "PASS" } else { "FAIL" });
    semi::exit(!right as u32)
}

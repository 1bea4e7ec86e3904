//! Tasks of embassy that wait for their turn on a radio, and defmt lines at a limited rate.
//!
//! Two sensors reserve a place each, a third task gives its place up when it takes too long, and a fourth asks for
//! another limit until it is ready. What they do is told by defmt, in milliseconds since the start; what would flood
//! the log is counted instead. Its exit status is 0 only if every number is the exact one.
//!
//! ```text
//! cargo build --release --target thumbv6m-none-eabi
//! qemu-system-arm -machine microbit -nographic -icount shift=5,sleep=off \
//!     -semihosting-config enable=on,target=native \
//!     -kernel target/thumbv6m-none-eabi/release/firmware-embassy |
//!     defmt-print -e target/thumbv6m-none-eabi/release/firmware-embassy
//! ```
#![no_std]
#![no_main]

mod clock;

use core::cell::Cell;

// Brings the critical section, and the way of the lines to the host.
use cortex_m as _;
use defmt_semihosting as _;

use critical_section::{with, Mutex};
use embassy_executor::{Executor, Spawner};
use embassy_time::{with_timeout, Duration, Instant, Timer, TICK_HZ};
use tatcell::{log_limited, small_limit, Outcome, SmallLimit};
use tatcell_embedded::{Paced, Refused};

/// The radio: 10 frames a second, one at once, a frame waits 1 s at most.
static UPLINK: Paced = Paced::new(match SmallLimit::shaped(10, TICK_HZ, 1, 1_000) {
    Ok(limit) => limit,
    Err(_) => panic!("this limit cannot be represented"),
});

/// Commands: 5 a second, 2 at once.
static COMMANDS: Paced = Paced::new(small_limit!(5 per 1.secs(), TICK_HZ, burst 2));

/// What has happened; instants in milliseconds.
static COUNTS: Mutex<Cell<Counts>> = Mutex::new(Cell::new(Counts::NONE));

#[derive(Clone, Copy, PartialEq, defmt::Format)]
struct Counts {
    frames: u32,
    last_frame: u32,
    given_up: u32,
    commands: u32,
    last_command: u32,
    lines: u32,
    told: u32,
}

impl Counts {
    const NONE: Counts =
        Counts { frames: 0, last_frame: 0, given_up: 0, commands: 0, last_command: 0, lines: 0, told: 0 };
}

fn count(change: impl FnOnce(&mut Counts)) {
    with(|cs| {
        let mut counts = COUNTS.borrow(cs).get();
        change(&mut counts);
        COUNTS.borrow(cs).set(counts);
    });
}

fn now_ms() -> u32 {
    Instant::now().as_millis() as u32
}

defmt::timestamp!("{=u32:ms}", now_ms());

/// Sends ten frames, each in its turn.
#[embassy_executor::task(pool_size = 2)]
async fn sensor(number: u32) {
    for frame in 0..10u32 {
        if UPLINK.reserve(1).await.is_ok() {
            defmt::info!("sensor {=u32}: frame {=u32}", number, frame);
            count(|c| (c.frames, c.last_frame) = (c.frames + 1, now_ms()));
        }
    }
}

/// Has no patience: twice it leaves the line, whose last it is, and its place goes to whoever asks next.
#[embassy_executor::task]
async fn hurried() {
    for _ in 0..2 {
        Timer::after_millis(240).await;
        if with_timeout(Duration::from_millis(40), UPLINK.reserve(1)).await.is_err() {
            defmt::info!("a place is given up");
            count(|c| c.given_up += 1);
        }
    }
    // A frame above the burst has no place at all.
    defmt::info!("two at once are refused: {=bool}", UPLINK.reserve(2).await == Err(Refused::Never));
}

/// Carries out a command whenever the limit has one ready.
#[embassy_executor::task]
async fn commands() {
    while COMMANDS.until_ready(1).await.is_ok() {
        count(|c| (c.commands, c.last_command) = (c.commands + 1, now_ms()));
    }
}

/// A queue that is full for a second: its log line, 2 a second and 3 at once.
#[embassy_executor::task]
async fn queue() {
    for _ in 0..1_000 {
        if let Some(left_out) = log_limited!(now_ms(), 2 per 1.secs(), TICK_HZ, burst 3) {
            defmt::warn!("queue full ({=u32} more were not logged)", left_out);
            count(|c| (c.lines, c.told) = (c.lines + 1, c.told + left_out));
        }
        Timer::after_millis(1).await;
    }
}

/// Tells of the end, and judges.
#[embassy_executor::task]
async fn judge() {
    Timer::at(Instant::from_millis(2_350)).await;
    let outcome: Outcome = COMMANDS.check(1);
    defmt::info!(
        "commands: {}; a limit of nothing: {}",
        outcome,
        SmallLimit::new(0, 1, 1).map(|_| ()).unwrap_err()
    );
    let is = with(|cs| COUNTS.borrow(cs).get());
    // 20 frames, 100 ms apart and no place lost: at 0, 100, ... 1900. Commands at 0, 0, 200, ... 2200. Lines at 0, 1, 2
    // and 500, which tells of those between.
    let wanted = Counts {
        frames: 20,
        last_frame: 1_900,
        given_up: 2,
        commands: 13,
        last_command: 2_200,
        lines: 4,
        told: 497,
    };
    defmt::info!("{}", is);
    let right = is == wanted;
    if !right {
        defmt::error!("wanted {}", wanted);
    }
    semi::exit(!right as u32)
}

fn start(spawner: Spawner) {
    // None is spawned twice, so each has its memory.
    spawner.spawn(sensor(1).unwrap());
    spawner.spawn(sensor(2).unwrap());
    spawner.spawn(hurried().unwrap());
    spawner.spawn(commands().unwrap());
    spawner.spawn(queue().unwrap());
    spawner.spawn(judge().unwrap());
}

#[cortex_m_rt::entry]
fn main() -> ! {
    static mut EXECUTOR: Option<Executor> = None;
    clock::start();
    EXECUTOR.insert(Executor::new()).run(start)
}

//! An egress port, shaped: six flows of two tenants share a gigabit, and one flow floods.
//!
//! ```text
//!  packet -> flow's key in a table (250 Mbit/s) -> tenant's cell (600) -> port's cell (1000) -> out
//!            '---------- each waits in the one wheel until its departure at that level --------'
//! ```
//!
//! No thread, no timer: the loop asks the shaper when something is due next and goes there, as one with epoll, a
//! hardware timer or a busy core would. Time is simulated, in nanoseconds, so every run prints the same. The exit
//! status is 0 only if the flood is held to its rate and the others lose nothing.
//!
//! ```text
//! cargo run --example shaper
//! ```

use std::process::ExitCode;
use tatcell::{
    wheel_words, Cell, Limit, LimitSpec, Line, Link, Shaper, Table, TableLimit, TableOptions, Waiting,
};

const SECOND: u64 = 1_000_000_000;
const PACKET: u64 = 1_500;
/// Megabits a second that each flow offers; the first one floods.
const OFFERED: [u64; 6] = [900, 140, 140, 140, 140, 140];
const RUN: u64 = SECOND / 5;

/// A limit in bytes: so many megabits a second, two packets at once, and at most so long a wait.
fn megabits(rate: u64, wait: u64) -> LimitSpec {
    LimitSpec::new(rate * 125_000, SECOND, 2 * PACKET).max_delay(wait)
}

/// The limits of the three levels. Each flow may have 5 ms of packets waiting; above there is room for what the levels
/// below let through.
struct Port<'a> {
    flows: &'a Table<'a>,
    flow: TableLimit,
    tenants: [Cell; 2],
    tenant: Limit,
    port: Cell,
    line: Limit,
}

impl Port<'_> {
    /// The limit that a packet of this flow meets at a level; None: it has passed all.
    fn link(&self, level: u32, flow: usize) -> Option<Link<'_>> {
        match level {
            0 => Link::key(self.flows, &self.flow, &flow.to_le_bytes(), PACKET).ok(),
            1 => Some(Link::cell(&self.tenants[flow / 3], &self.tenant, PACKET)),
            2 => Some(Link::cell(&self.port, &self.line, PACKET)),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, Default)]
struct Count {
    offered: u64,
    dropped: u64,
    sent: u64,
    waited: u64,
}

/// Everything that is due up to `until`, one event after the other: into the next level, or out.
fn run(
    shaper: &mut Shaper<'_>,
    port: &Port<'_>,
    until: u64,
    packets: &[(u64, usize)],
    counts: &mut [Count; 6],
) {
    while let Some(now) = shaper.next_departure().filter(|now| *now <= until) {
        // All that is due now; a loop with other work would stop after so many and come back.
        while let Some(due) = shaper.release(now) {
            let Waiting { handle, level, .. } = due;
            let (arrival, flow) = packets[handle as usize];
            match port.link(level + 1, flow) {
                Some(next) => {
                    let made = shaper.forward(now, due, &next).expect("its place has just become free");
                    counts[flow].dropped += u64::from(!made.passes());
                }
                None => {
                    counts[flow].sent += 1;
                    counts[flow].waited += now - arrival;
                }
            }
        }
    }
}

fn main() -> ExitCode {
    let spec = megabits(250, SECOND / 200);
    let memory: Vec<Line> = (0..tatcell::lines_for(64)).map(|_| Line::EMPTY).collect();
    let table = Table::init(&memory, &TableOptions::new(spec).seed(*b"16 secret bytes!")).expect("a table");
    let port = Port {
        flow: table.limit(&spec).expect("a limit of the table"),
        flows: &table,
        tenants: [Cell::new(), Cell::new()],
        tenant: megabits(600, SECOND / 100).build().expect("a limit"),
        port: Cell::new(),
        line: megabits(1_000, SECOND / 100).build().expect("a limit"),
    };
    // 1024 slots of 16.4 us reach 16.8 ms ahead; 1000 packets may wait, 24 bytes each.
    let mut words = vec![0; wheel_words(1_024, 1_000)];
    let mut shaper = Shaper::new(&mut words, 1_024, 1 << 14, 0).expect("a shaper");

    // When each flow's packets come, in order.
    let mut packets: Vec<(u64, usize)> = Vec::new();
    for (flow, rate) in OFFERED.iter().enumerate() {
        let interval = PACKET * 8 * 1_000 / rate;
        packets.extend((0..RUN / interval).map(|i| (i * interval + flow as u64 * 1_000, flow)));
    }
    packets.sort_unstable();

    let mut counts = [Count::default(); 6];
    for (number, &(now, flow)) in packets.iter().enumerate() {
        run(&mut shaper, &port, now, &packets, &mut counts);
        let link = port.link(0, flow).expect("a key");
        let made = shaper.submit(now, &link, number as u64).expect("room in the wheel");
        counts[flow].offered += 1;
        counts[flow].dropped += u64::from(!made.passes());
    }
    run(&mut shaper, &port, u64::MAX / 2, &packets, &mut counts);

    println!("flow  offered  dropped     sent   Mbit/s   mean wait");
    let mut right = shaper.wheel().is_empty();
    for (flow, count) in counts.iter().enumerate() {
        let rate = count.sent * PACKET * 8 * 1_000 / RUN;
        let wait = count.waited / count.sent.max(1) / 1_000;
        println!(
            "{flow:>4} {:>8} {:>8} {:>8} {rate:>8} {wait:>8} us",
            count.offered, count.dropped, count.sent
        );
        right &= count.offered == count.dropped + count.sent;
        // The flood gets its rate, and the 5 ms that wait at the end; the others all of theirs, at once.
        right &= if flow == 0 { (250..=257).contains(&rate) } else { count.dropped == 0 && wait < 500 };
    }
    println!("{}", if right { "PASS" } else { "FAIL" });
    ExitCode::from(u8::from(!right))
}

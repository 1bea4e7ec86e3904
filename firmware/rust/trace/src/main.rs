//! One fixed trace of requests, and a digest of every answer and every state word.
//!
//! The same program runs on hosts and on bare machines and prints the same text, byte for byte, where the library
//! gives the same answers: `make -C firmware trace` compares them. Nothing here depends on word size, byte order or
//! an address. Each section prints eight running digests, so a difference is located to an eighth of a section.
//!
//! The hosted program takes one argument, the request of each section from which all costs are one higher: the
//! digests must then differ, which shows that the comparison can fail.
#![cfg_attr(target_os = "none", no_std)]
#![cfg_attr(target_os = "none", no_main)]

mod cells;
mod digest;
mod small;
mod tables;

use digest::Trace;
use semi::say;

/// Runs all sections and prints the digest of digests.
fn run(flip: Option<u64>) -> bool {
    let mut all = Trace::new("all", 0, None);
    let mut ok = true;
    let mut events = 0;
    let mut take = |trace: Trace| {
        events += trace.events();
        all.put(trace.end());
        trace.end()
    };

    // The owner of a cell gets the answers of a shared one.
    let shared = take(cells::shared(flip));
    let owned = take(cells::exclusive(flip));
    ok &= same("exclusive_cell_equals_shared_cell", shared, owned);
    take(cells::narrow(flip));
    for policy in tables::POLICIES {
        let shared = take(tables::shared(policy, flip));
        let owned = take(tables::exclusive(policy, flip));
        ok &= same("exclusive_table_equals_shared_table", shared, owned);
    }
    take(tables::keyed(flip));
    take(tables::burst(flip));
    let shared = take(small::cell(flip));
    let owned = take(small::exclusive(flip));
    ok &= same("exclusive_small_cell_equals_shared_small_cell", shared, owned);
    take(small::cell32(flip));
    for policy in small::POLICIES {
        take(small::table(policy, flip));
    }

    say!("EVENTS {events}");
    say!("DIGEST {:016x}", all.end());
    ok
}

fn same(name: &str, a: u64, b: u64) -> bool {
    if a != b {
        say!("FAIL {name}: {a:016x} {b:016x}");
    }
    a == b
}

#[cfg(not(target_os = "none"))]
fn main() {
    let flip = std::env::args().nth(1).and_then(|n| n.parse().ok());
    semi::exit(!run(flip) as u32)
}

#[cfg(all(target_os = "none", target_arch = "arm"))]
#[cortex_m_rt::entry]
fn entry() -> ! {
    semi::exit(!run(None) as u32)
}

#[cfg(all(target_os = "none", target_arch = "riscv32"))]
#[no_mangle]
extern "C" fn entry() -> ! {
    semi::exit(!run(None) as u32)
}

//! Firmware with a shared table, tested on a host: the feature `single-core` is a lock there.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Barrier;
use std::thread;

use tatcell::{
    section_works, small_limit32, FullPolicy, Shared, SmallLimit32, SmallLog, SmallSlot, SmallTable,
};

/// That the lock excludes is shown in `sync::masked`, where a holder waits on purpose.
const BURST: u32 = 20_000;
const ASKED: u32 = 30_000;
const THREADS: u32 = 4;
const LIMIT: SmallLimit32 = small_limit32!(1 per 1_000, burst 20_000);

static SLOTS: [SmallSlot; 64] = [SmallSlot::EMPTY; 64];
// What a crate for firmware has, and what its unit tests link.
static TABLE: SmallTable<'static, Shared> = match SmallTable::shared(&SLOTS, LIMIT, FullPolicy::Deny) {
    Ok(table) => table,
    Err(_) => panic!("this table cannot be made"),
};
static LOG: SmallLog = SmallLog::new();

#[test]
fn threads_share_a_static_table_and_a_log_exactly() {
    TABLE.seed(*b"8 random");
    assert!(section_works());
    let admitted = [const { AtomicU32::new(0) }; 3];
    let (written, told) = (AtomicU32::new(0), AtomicU32::new(0));
    let start = Barrier::new(THREADS as usize);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                start.wait();
                for i in 0..ASKED {
                    let key = (i % 3) as usize;
                    let passes = TABLE.decide(7, &[key as u8], 1).passes();
                    admitted[key].fetch_add(u32::from(passes), Ordering::Relaxed);
                    if let Some(left_out) = LOG.check(&LIMIT, 7) {
                        written.fetch_add(1, Ordering::Relaxed);
                        told.fetch_add(left_out, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    for admitted in &admitted {
        assert_eq!(admitted.load(Ordering::Relaxed), BURST);
    }
    let (written, told) = (written.into_inner(), told.into_inner());
    assert_eq!(written, BURST);
    assert_eq!(
        written + told + LOG.left_out(),
        THREADS * ASKED,
        "each line is written, told or still counted"
    );
}

#[test]
fn an_unseeded_table_refuses_all() {
    static SLOTS: [SmallSlot; 16] = [SmallSlot::EMPTY; 16];
    let table = SmallTable::shared(&SLOTS, LIMIT, FullPolicy::Admit).unwrap();
    assert_eq!(table.decide(0, b"key", 1), tatcell::Outcome::Never);
}

//! What happens between two swaps of a sweep that takes long.

use std::boxed::Box;
use std::cell::RefCell;
use std::vec::Vec;

use crate::limit::LimitSpec;
use crate::sync::access::sealed::Sealed;
use crate::sync::access::{Access, Shared};
use crate::sync::AtomicU64;
use crate::table::handle::Table;
use crate::table::layout::image::Line;
use crate::table::layout::options::{AttachOptions, TableOptions};
use crate::table::upkeep::sweeper::Sweeper;

std::thread_local! {
    /// What runs before the next swap.
    static MEANWHILE: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

/// Swaps as [`Shared`] does, but lets others go first once.
enum Slow {}

impl Sealed for Slow {}

impl Access for Slow {
    const EXCLUSIVE: bool = false;
    type Sharing = ();

    fn replace(slot: &AtomicU64, old: u64, new: u64) -> Result<(), u64> {
        let meanwhile = MEANWHILE.take();
        meanwhile.into_iter().for_each(|run| run());
        Shared::replace(slot, old, new)
    }

    fn fence() {
        Shared::fence();
    }
}

/// A caller sweeps 16 parts after a pause, and is stopped in one of them. Meanwhile others charge keys of all parts, by
/// a clock that is further on than the skew. To the first reading these debts look expired.
#[test]
fn a_sweep_that_takes_long_forgives_no_debt() {
    const MS: u64 = 1_000_000;
    const KEYS: u64 = 500;
    let spec = LimitSpec::new(50_000_000_000, 1_000 * MS, 64_000);
    let lines: &[Line] = Box::leak((0..8_194).map(|_| Line::EMPTY).collect());
    let table: &Table<'static> =
        Box::leak(Box::new(Table::init(lines, &TableOptions::new(spec).caller_hash()).unwrap()));
    let slow: Table<'static, Slow> = Table::attach_as(lines, &AttachOptions::new()).unwrap();
    let limit: &_ = Box::leak(Box::new(table.limit(&spec).unwrap()));
    let sweeper: &Sweeper = Box::leak(Box::new(Sweeper::new()));
    let info = table.info();
    let (before, pause) = (1_000 * MS, info.sweep_interval / 5);
    let later = before + pause + 10 * MS;
    assert!(table.slots() > 15 * 4096 && info.window < 3 * MS, "{info:?}");
    let hash = |key: u64| key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let charge = move |key: u64, now| {
        sweeper.sweep(table, now);
        table.check_hash(limit, now, hash(key), 64_000).unwrap().passes()
    };

    // Words for the sweep to empty, in all parts.
    assert!((0..KEYS).all(|key| charge(key, before)));
    MEANWHILE.set(Some(Box::new(move || assert!((KEYS..2 * KEYS).all(|key| charge(key, later))))));
    sweeper.sweep(&slow, before + pause);
    assert!(MEANWHILE.take().is_none(), "the sweep emptied nothing");
    let twice: Vec<u64> = (KEYS..2 * KEYS).filter(|&key| charge(key, later)).collect();
    assert!(twice.is_empty(), "{} of {KEYS} keys have their burst twice", twice.len());
}

//! Floors of the rows from C: functions of `dev/bench/peers/floor.c` with the library's arguments. They check those,
//! make one bare operation and answer. [`capi`](crate::capi) calls the library in the same loop.

use std::ffi::{c_void, CString};
use std::hint::black_box;
use std::mem::transmute;

use crate::capi::{CellCheck, LeaseCheck, TableCheck};
use crate::cells::{decide, CELL};
use crate::foreign::place;
use crate::suite::{Body, Mix, Suite, DT};

const FILE: &str = "libpeer_floor.so";
/// What these functions take for a limit and for a table.
const MARK: u64 = 0x7c13_2130_748a_aac8;
/// The mark, and the largest cost.
const LIMIT: [u64; 8] = [MARK, 64, 0, 0, 0, 0, 0, 0];

pub fn add(suite: &mut Suite) {
    for (id, text, symbol, first) in [
        ("c.floor_conforming", "C, arguments, load + cmpxchg", "floor_swap", 1),
        ("c.floor_denied", "C, arguments, load + compare", "floor_load", u64::MAX),
        ("c.floor_exclusive", "C, arguments, load, compare, store", "floor_store", 1),
        ("c.floor_lease", "C, six arguments, load, compare, store", "floor_lease", 1),
        ("c.floor_single", "C, seven arguments, load + cmpxchg", "floor_table", MARK),
    ] {
        if !suite.wants(id) {
            continue;
        }
        match find(symbol) {
            Some(at) => suite.add(id, text, Mix::Bare, CELL, |_| body(symbol, at, first)),
            None => suite.absent(id, &format!("{FILE}: not there, or an older one (make -C dev peers)")),
        }
    }
}

fn find(symbol: &str) -> Option<*mut c_void> {
    let path = CString::new(place(FILE)?.into_os_string().into_encoded_bytes()).ok()?;
    let symbol = CString::new(symbol).ok()?;
    // SAFETY: a library of dev/bench/peers, without constructors; a handle from dlopen and a terminated name.
    let at = unsafe {
        let lib = libc::dlopen(path.as_ptr(), libc::RTLD_NOW);
        if lib.is_null() {
            return None;
        }
        libc::dlsym(lib, symbol.as_ptr())
    };
    (!at.is_null()).then_some(at)
}

/// Calls the function `at`, whose first object begins with `first`.
fn body(symbol: &str, at: *mut c_void, first: u64) -> Body {
    let (mut object, mut cell, limit, mut now) = (Box::new([first, 1]), Box::new(1), Box::new(LIMIT), DT);
    let key = [7u8; 16];
    match symbol {
        "floor_table" => {
            // SAFETY: that function has this type; pointers to live objects, here and in the other loops.
            let call = unsafe { transmute::<*mut c_void, TableCheck>(at) };
            Box::new(move |n| {
                let (object, key) = (black_box(object.as_mut_ptr()), key.as_ptr().cast());
                let mut retry = 0;
                // SAFETY: as above.
                decide(n, &mut now, DT, |now| unsafe {
                    call(object, limit.as_ptr(), now, key, 16, 1, &mut retry) == 0
                })
            })
        }
        "floor_lease" => {
            // SAFETY: as above.
            let call = unsafe { transmute::<*mut c_void, LeaseCheck>(at) };
            Box::new(move |n| {
                let mut retry = 0;
                // SAFETY: as above.
                decide(n, &mut now, DT, |now| unsafe {
                    call(object.as_mut_ptr(), &mut *cell, limit.as_ptr(), now, 1, &mut retry) == 0
                })
            })
        }
        _ => {
            // SAFETY: as above.
            let call = unsafe { transmute::<*mut c_void, CellCheck>(at) };
            Box::new(move |n| {
                let mut retry = 0;
                // SAFETY: as above.
                decide(n, &mut now, DT, |now| unsafe {
                    call(object.as_mut_ptr(), limit.as_ptr(), now, 1, &mut retry) == 0
                })
            })
        }
    }
}

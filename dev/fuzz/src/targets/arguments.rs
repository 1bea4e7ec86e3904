//! Any function of the C ABI with any arguments. Every object lies between guard pages and is exactly as long as the
//! call says, so no read or write can go past it. A call that returns an error has changed nothing.
//!
//! Each argument starts as a valid one (`world.rs`). The input says which of them become NULL, misaligned, zero, too
//! short, too large, or another number. Only what the header's contract forbids is left out: pointers to nowhere, and
//! lengths that are longer than the object but still possible.

mod world;

use std::cell::RefCell;

use crate::abi::{Function, FUNCTIONS};
use crate::data::Data;
use crate::guarded::Arena;
use world::World;

thread_local! {
    static ARENA: RefCell<Arena> = RefCell::new(Arena::new());
}

/// They also say what went wrong where they return an error, in places that are not errors' to leave alone.
const SAYS_WHY: &str = "tatcell_host_";

pub fn run(input: &[u8]) {
    let data = &mut Data(input);
    let number = usize::from(data.byte()) << 8 | usize::from(data.byte());
    let function = &FUNCTIONS[number % FUNCTIONS.len()];
    ARENA.with_borrow_mut(|arena| call(function, arena, data));
}

fn call(function: &'static Function, arena: &mut Arena, data: &mut Data<'_>) {
    arena.clear();
    let (arguments, bad) = {
        let mut world = World::new(function, arena, data);
        (world.arguments(), world.bad)
    };
    arena.remember();
    // SAFETY: every pointer is NULL, misaligned or to an object that is as long as the call says.
    let code = unsafe { function.call(&arguments) } as i32;
    let failed = function.is_code && code < 0;
    let nothing = failed && !function.name.starts_with(SAYS_WHY);
    if let Some(damage) = arena.damage(nothing) {
        panic!("{} returned {code} and changed what it must not: {damage}, {arguments:x?}", function.name);
    }
    if function.is_code {
        assert!(has_name(code), "{} returned {code}, which has no name", function.name);
        // A bad pointer for what a call must have is an error, whatever else is asked.
        assert!(!bad || code < 0, "{} took a misaligned pointer: {code}, {arguments:x?}", function.name);
    }
    clean_up(function, code, &arguments);
}

/// Whether the library has a name for a code; positive numbers may be lengths.
fn has_name(code: i32) -> bool {
    let arguments = [code as usize];
    // SAFETY: takes a number, gives static text.
    let text = unsafe { Function::find("tatcell_strerror_name").call(&arguments) } as *const std::ffi::c_char;
    // SAFETY: the same.
    let unknown = unsafe { Function::find("tatcell_strerror_name").call(&[i32::MIN as usize]) };
    code >= 0 || !text.is_null() && text as u64 != unknown
}

/// Memory that a call mapped is given back.
fn clean_up(function: &Function, code: i32, arguments: &[usize]) {
    let (opposite, place) = match function.name {
        "tatcell_host_memory_map" => ("tatcell_host_memory_unmap", 2),
        "tatcell_host_table_open" => ("tatcell_host_table_close", 3),
        _ => return,
    };
    if code == 0 {
        // SAFETY: as that call filled it.
        let unmapped = unsafe { Function::find(opposite).call(&arguments[place..place + 1]) };
        assert_eq!(unmapped as i32, 0);
    }
}

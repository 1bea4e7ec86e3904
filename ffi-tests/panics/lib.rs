//! A library that can panic: the symbol gate must flag it, or the gate is blind.
#![no_std]

/// Divides, and panics where b is 0.
#[no_mangle]
pub extern "C" fn panics_divide(a: u32, b: u32) -> u32 {
    a / b
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

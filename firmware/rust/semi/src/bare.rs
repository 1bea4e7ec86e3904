//! The semihosting calls, the panic handler and the start-up of RISC-V.

use core::panic::PanicInfo;

/// Writes a text that ends with a zero byte.
const SYS_WRITE0: usize = 0x04;
/// Ends the emulator with a status.
const SYS_EXIT_EXTENDED: usize = 0x20;
const APPLICATION_EXIT: usize = 0x2_0026;

#[cfg(target_arch = "arm")]
fn call(operation: usize, parameter: *const u8) -> usize {
    let result;
    // SAFETY: the semihosting breakpoint of M profile; it reads the memory that `parameter` names and changes r0.
    unsafe {
        core::arch::asm!("bkpt 0xab", inlateout("r0") operation => result, in("r1") parameter);
    }
    result
}

#[cfg(target_arch = "riscv32")]
core::arch::global_asm!(
    ".section .text.start, \"ax\"",
    ".globl _start",
    "_start:",
    "la sp, _stack_top",
    "la t0, _bss_start",
    "la t1, _bss_end",
    "1: bgeu t0, t1, 2f",
    "sw zero, 0(t0)",
    "addi t0, t0, 4",
    "j 1b",
    "2: call entry",
    "3: j 3b",
    // The three instructions are the call; they must be uncompressed and lie in one page.
    ".balign 16",
    ".globl semi_call",
    "semi_call:",
    ".option push",
    ".option norvc",
    "slli x0, x0, 0x1f",
    "ebreak",
    "srai x0, x0, 7",
    ".option pop",
    "ret",
);

#[cfg(target_arch = "riscv32")]
fn call(operation: usize, parameter: *const u8) -> usize {
    extern "C" {
        fn semi_call(operation: usize, parameter: *const u8) -> usize;
    }
    // SAFETY: the semihosting sequence above; it reads the memory that `parameter` names and changes a0.
    unsafe { semi_call(operation, parameter) }
}

/// Writes text to the emulator's standard error.
pub fn write(text: &str) {
    for part in text.as_bytes().chunks(63) {
        let mut buffer = [0u8; 64];
        for (to, &from) in buffer.iter_mut().zip(part) {
            *to = from;
        }
        call(SYS_WRITE0, buffer.as_ptr());
    }
}

/// Ends the emulator.
pub fn exit(status: u32) -> ! {
    let block = [APPLICATION_EXIT, status as usize];
    call(SYS_EXIT_EXTENDED, block.as_ptr().cast());
    loop {
        core::hint::spin_loop();
    }
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    let line = info.location().map_or(0, |at| at.line());
    crate::say!("FAIL panic: line {line}");
    exit(101)
}

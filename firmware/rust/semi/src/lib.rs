//! Output and exit status for programs on bare machines in QEMU, by semihosting, and their start-up.
//!
//! ARM starts through cortex-m-rt; RISC-V through the ten lines below. Text goes to the emulator's standard error,
//! and [`exit`] ends the emulator with a real status. On hosts the same two calls use std, so one program serves both.
#![cfg_attr(target_os = "none", no_std)]

#[cfg(target_os = "none")]
mod bare;
#[cfg(target_os = "none")]
pub use bare::{exit, write};

#[cfg(not(target_os = "none"))]
mod hosted {
    /// Writes text to the standard output.
    pub fn write(text: &str) {
        use std::io::Write;
        let _ = std::io::stdout().write_all(text.as_bytes());
    }

    /// Ends the program.
    pub fn exit(status: u32) -> ! {
        std::process::exit(status as i32)
    }
}
#[cfg(not(target_os = "none"))]
pub use hosted::{exit, write};

/// What [`say!`] formats into: one line at a time, cut at its end.
pub struct Text {
    bytes: [u8; 120],
    len: usize,
}

impl Text {
    /// An empty text.
    pub const fn new() -> Text {
        Text { bytes: [0; 120], len: 0 }
    }

    /// What was written so far.
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(self.bytes.get(..self.len).unwrap_or(&[])).unwrap_or("?")
    }
}

impl Default for Text {
    fn default() -> Text {
        Text::new()
    }
}

impl core::fmt::Write for Text {
    fn write_str(&mut self, s: &str) -> core::fmt::Result {
        for &b in s.as_bytes() {
            let Some(slot) = self.bytes.get_mut(self.len) else { return Err(core::fmt::Error) };
            *slot = b;
            self.len += 1;
        }
        Ok(())
    }
}

/// Prints one line of at most 120 bytes.
#[macro_export]
macro_rules! say {
    ($($arg:tt)*) => {{
        use core::fmt::Write as _;
        let mut text = $crate::Text::new();
        let _ = core::writeln!(text, $($arg)*);
        $crate::write(text.as_str());
    }};
}

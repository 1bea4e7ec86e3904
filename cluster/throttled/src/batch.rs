//! The commands between MULTI and EXEC, kept as the bytes of a client that sends them: so they take what is counted.

use crate::resp::{self, Args};

/// The most commands of a batch.
pub const COMMANDS: usize = 1_024;

/// The most bytes of a batch, with all headers of its commands.
pub const BYTES: usize = 64 * 1024;

/// Holds the commands of a batch.
#[derive(Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    count: usize,
    failed: bool,
}

impl Batch {
    /// Keeps a command, unless one before was wrong.
    ///
    /// # Errors
    /// The error for the client: the batch is full. Nothing of it will run.
    pub fn keep(&mut self, args: &Args<'_>) -> Result<(), &'static str> {
        if self.failed {
            return Ok(());
        }
        resp::command(&mut self.bytes, args);
        self.count += 1;
        if self.count > COMMANDS || self.bytes.len() > BYTES {
            self.fail();
            return Err("ERR a batch has at most 1024 commands and 64 KiB");
        }
        Ok(())
    }

    /// Notes that a command was wrong: nothing of the batch will run, so nothing of it is kept.
    pub fn fail(&mut self) {
        (self.bytes, self.failed) = (Vec::new(), true);
    }

    /// Returns whether a command was wrong.
    pub fn has_failed(&self) -> bool {
        self.failed
    }

    /// Returns the number of commands.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the commands, each with its length.
    pub fn commands(&self) -> impl Iterator<Item = (Args<'_>, usize)> {
        let mut rest = &self.bytes[..];
        std::iter::from_fn(move || {
            let (args, used) = resp::parse(rest).ok()??;
            rest = &rest[used..];
            Some((args, used))
        })
    }
}

//! Where the bytes of an input come from.

use std::io::{self, Cursor, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// What is looked at to find the format.
pub(super) const HEAD: usize = 1 << 16;

/// Counts the bytes that come from the file, for the progress.
pub(super) struct Counted<R> {
    pub(super) inner: R,
    pub(super) read: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        // ORDERING: Relaxed; a single number, which nothing else depends on.
        self.read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// Reads the start of an input, and returns it with a reader that still begins there.
pub(super) fn head(mut input: Box<dyn Read + Send>) -> io::Result<(Vec<u8>, Box<dyn Read + Send>)> {
    let mut head = Vec::with_capacity(HEAD);
    input.by_ref().take(HEAD as u64).read_to_end(&mut head)?;
    let whole = Box::new(Cursor::new(head.clone()).chain(input));
    Ok((head, whole))
}

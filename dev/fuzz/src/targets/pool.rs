//! Table memory that every run of a target reuses without an allocation, because the fuzzer runs for hours.

use std::cell::RefCell;
use std::sync::atomic::Ordering::Relaxed;

use tatcell::Line;

use crate::common::words;

/// Lines of one piece.
const LINES: usize = 20;

thread_local! {
    static FREE: RefCell<Vec<&'static mut [Line]>> = const { RefCell::new(Vec::new()) };
}

/// Zeroed table memory, which goes back when this is dropped.
pub struct Piece(Option<&'static mut [Line]>);

/// A piece of zeroed lines.
pub fn piece() -> Piece {
    let lines = FREE.with_borrow_mut(Vec::pop);
    let lines = lines.unwrap_or_else(|| Box::leak((0..LINES).map(|_| Line::EMPTY).collect()));
    words(lines).iter().for_each(|word| word.store(0, Relaxed));
    Piece(Some(lines))
}

impl Piece {
    /// So many of its lines.
    pub fn lines(&self, count: usize) -> &[Line] {
        &self.0.as_ref().expect("it is held")[..count]
    }

    /// The same, for one owner.
    pub fn lines_mut(&mut self, count: usize) -> &mut [Line] {
        &mut self.0.as_mut().expect("it is held")[..count]
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        if let Some(lines) = self.0.take() {
            FREE.with_borrow_mut(|free| free.push(lines));
        }
    }
}

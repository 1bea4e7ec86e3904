//! Counters that other processes can read: memory with a block for each thread.
//!
//! ```text
//!  line 0, 1    header   word 0  "tatcnt" 48 | version 16        published last, with Release
//!                        word 1..15   0
//!  line 2, 3    block 0: the 16 words of a `Counters`, which one thread counts in
//!  line 4, 5    block 1
//!                 ...
//! ```
//!
//! A thread counts by plain additions, so nothing is added to a decision. A reader loads each word by itself: of one
//! request one count may be there and another not yet.

use crate::sync::{fence, Ordering};
use crate::table::counters::Counters;
use crate::table::layout::image::Line;

const MAGIC: u64 = 0x7461_7463_6e74_0001;

/// Lines of the header.
pub(crate) const HEADER: usize = 2;
/// Lines of a block.
const BLOCK: usize = 2;
const _: () = assert!(size_of::<Counters>() == BLOCK * size_of::<Line>());

/// What memory holds instead of counters.
pub(crate) enum NoCounters {
    /// Nothing yet: its creator is not done.
    NotReady,
    /// Something else, or another layout.
    Other,
}

/// Returns the lines for this many blocks; `None` if there are too many, or none.
pub(crate) fn lines_for_blocks(blocks: usize) -> Option<usize> {
    blocks.checked_mul(BLOCK)?.checked_add(HEADER).filter(|_| blocks != 0)
}

/// Returns whether memory is all zero, as nobody has used it yet.
pub(crate) fn is_fresh(lines: &[Line]) -> bool {
    // ORDERING: Relaxed; if another opener publishes meanwhile, it stores the same.
    lines.iter().flat_map(|line| &line.words).all(|word| word.load(Ordering::Relaxed) == 0)
}

/// Publishes fresh memory, which is all zero. Several openers may do so.
pub(crate) fn publish(lines: &[Line]) {
    if let Some(word) = lines.first().and_then(|line| line.words.first()) {
        // Who made something else of the memory meanwhile keeps it.
        // ORDERING: Release; pairs with the fence in `blocks`. There is nothing before it but zeros.
        let _ = word.compare_exchange(0, MAGIC, Ordering::Release, Ordering::Relaxed);
    }
}

/// Returns the number of blocks.
pub(crate) fn blocks(lines: &[Line]) -> Result<usize, NoCounters> {
    let word = lines.first().and_then(|line| line.words.first()).ok_or(NoCounters::Other)?;
    // ORDERING: Relaxed, then an Acquire fence: the memory may be mapped for reading alone.
    let magic = word.load(Ordering::Relaxed);
    fence(Ordering::Acquire);
    match magic {
        0 => Err(NoCounters::NotReady),
        MAGIC => Ok(lines.len().saturating_sub(HEADER) / BLOCK),
        _ => Err(NoCounters::Other),
    }
}

/// Sums the counters of all blocks.
pub(crate) fn sum(lines: &[Line]) -> Counters {
    let mut sum = Counters::default();
    for block in lines.get(HEADER..).unwrap_or(&[]).chunks_exact(BLOCK) {
        let mut words = [0; 16];
        let from = block.iter().flat_map(|line| &line.words);
        // ORDERING: Relaxed; counts, each a value of its own.
        words.iter_mut().zip(from).for_each(|(to, word)| *to = word.load(Ordering::Relaxed));
        sum.add(&Counters::of_words(words));
    }
    sum
}

//! The words of a table, decoded, one a line.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use serde::Serialize;
use tatcell::{Mode, SlotWord, Table, WordKind};

use super::clock::Now;
use crate::progress::{bar, Progress};

/// One word, as JSON.
#[derive(Serialize)]
struct Line {
    version: u32,
    slot: u32,
    word: String,
    kind: &'static str,
    tag: u32,
    payload: u64,
    lead: u64,
}

/// Returns the name of what a word is.
pub fn kind(word: &SlotWord) -> &'static str {
    match word.kind {
        WordKind::Empty => "empty",
        WordKind::Live => "live",
        WordKind::Expired => "expired",
        WordKind::Claim => "claim",
        WordKind::Tombstone => "tombstone",
        WordKind::Dropped => "dropped",
        WordKind::Ban => "ban",
        WordKind::Exemption => "exemption",
        WordKind::Witness => "witness",
        WordKind::Lifted => "lifted",
        _ => "unknown",
    }
}

/// Writes the words, all of them or those that are not 0. Memory: one line at a time.
pub fn write<M: Mode>(
    table: &Table<'_, M>,
    now: Now,
    all: bool,
    json: bool,
    out: &mut dyn Write,
    progress: &Progress,
) -> io::Result<()> {
    let (done, slots) = (Arc::new(AtomicU64::new(0)), table.slots() as u64);
    let shared = Arc::clone(&done);
    // ORDERING: Relaxed, here and below; a single number, which nothing else depends on.
    progress.says(move || bar("slots", shared.load(Ordering::Relaxed), slots));
    if !json {
        writeln!(
            out,
            "{:>10}  {:<18}  {:<9} {:>8}  {:>18} {:>18}",
            "slot", "word", "kind", "tag", "payload", "lead"
        )?;
    }
    for word in (0..).map_while(|number| table.slot_word(now.ticks, number)) {
        // ORDERING: as above.
        done.store(word.number.into(), Ordering::Relaxed);
        if word.word == 0 && !all {
            continue;
        }
        let (slot, bits) = (word.number, format!("{:#018x}", word.word));
        if json {
            let line = Line {
                version: 1,
                slot,
                word: bits,
                kind: kind(&word),
                tag: word.tag,
                payload: word.payload,
                lead: word.lead,
            };
            serde_json::to_writer(&mut *out, &line)?;
            writeln!(out)?;
        } else {
            let (tag, payload) = (format!("{:#x}", word.tag), format!("{:#x}", word.payload));
            writeln!(
                out,
                "{slot:>10}  {bits}  {:<9} {tag:>8}  {payload:>18} {:>18}",
                kind(&word),
                word.lead
            )?;
        }
    }
    Ok(())
}

//! The reports of a node process to the demo: admissions as they happen, and its figures at the end.

use std::io::{Read, Write};

/// 16 bytes: the key, and the reading of the machine's clock for which it was admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Record {
    pub key: u64,
    pub reading: u64,
}

/// The hot key.
pub const HOT: u64 = 0;
/// Keys below this are those of the Zipf load; keys above are those of the flood, one request each.
pub const FLOOD: u64 = 1 << 32;
/// Keys from here on are figures: the number of a figure, and its value.
const FIGURES: u64 = u64::MAX - 64;

/// Decisions, asks of the store, and p50, p99 and the longest decision about the hot key in nanoseconds.
pub type Figures = [u64; 5];

pub fn write(out: &mut impl Write, record: Record) -> std::io::Result<()> {
    out.write_all(&record.key.to_le_bytes())?;
    out.write_all(&record.reading.to_le_bytes())
}

pub fn write_figures(out: &mut impl Write, figures: &Figures) -> std::io::Result<()> {
    let all = figures.iter().enumerate();
    all.into_iter().try_for_each(|(i, f)| write(out, Record { key: FIGURES + i as u64, reading: *f }))
}

/// Reads all that a node reported until it ended or was killed. The last record of a killed node may be incomplete.
pub fn read(mut from: impl Read) -> std::io::Result<(Vec<Record>, Option<Figures>)> {
    let mut bytes = Vec::new();
    from.read_to_end(&mut bytes)?;
    let (mut records, mut figures, mut found) = (Vec::new(), Figures::default(), 0);
    for chunk in bytes.chunks_exact(16) {
        let half = |i: usize| u64::from_le_bytes(chunk[i..i + 8].try_into().unwrap_or_default());
        match half(0).checked_sub(FIGURES) {
            Some(i) => (figures[i as usize % figures.len()], found) = (half(8), found + 1),
            None => records.push(Record { key: half(0), reading: half(8) }),
        }
    }
    Ok((records, (found == figures.len()).then_some(figures)))
}

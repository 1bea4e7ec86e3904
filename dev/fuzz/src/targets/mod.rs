//! The targets, one file each.

pub mod addresses;
pub mod arguments;
pub mod configuration;
pub mod counting;
pub mod decisions;
pub mod http;
pub mod image;
pub mod meters;
mod pool;
pub mod table;

/// Any 64 bits and a tag and a kind as words of a table have them, some near to `now_q`.
fn hostile_word(data: &mut crate::data::Data<'_>, now_q: u64, bits: u32) -> u64 {
    let kind = data.byte();
    let payload = match kind & 8 {
        0 => now_q.wrapping_add(data.scaled(20)).wrapping_sub(u64::from(kind >> 4) << 8),
        _ => data.word(),
    } & ((1 << bits) - 1);
    let tag = 1 + data.below(5);
    match kind & 7 {
        0 => data.word(),
        1 => 0,
        2 => payload,
        3 | 4 => tag << bits | payload,
        5 | 6 => 1 << 63 | tag << bits | payload,
        _ => (u64::from(kind >> 7) << 63) | ((tag * 17) << bits) | payload,
    }
}

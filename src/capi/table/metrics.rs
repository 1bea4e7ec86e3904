//! `tatcell_metrics_text`: counters and statistics for Prometheus.

use core::ffi::{c_char, c_void};
use core::fmt;

use super::info::tatcell_table_info_t;
use super::upkeep::tatcell_stats_t;
use crate::capi::codes::{TATCELL_ERR_COUNT, TATCELL_ERR_HTTP_NAME, TATCELL_ERR_OPTION};
use crate::capi::limit::limit::TATCELL_ALGORITHM_OVERRIDES;
use crate::capi::pointers::contract::{args, Contract, Grows};
use crate::capi::pointers::places::Span;
use crate::limit::Algorithm;
use crate::metrics::{names, write, Format, Said, TableMetrics};
use crate::table::{Counters, FullPolicy, Stats};
use crate::text::Text;

/// format: the text format of Prometheus, version 0.0.4. Content-Type: text/plain; version=0.0.4; charset=utf-8
pub const TATCELL_METRICS_PROMETHEUS: u32 = 0;
/// format: OpenMetrics 1.0. Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8
pub const TATCELL_METRICS_OPENMETRICS: u32 = 1;
/// Most tables in one text.
pub const TATCELL_METRICS_TABLES_MAX: u32 = 4096;

/// Bytes of a tatcell_metrics_t in its first release. (The header has it in terms of sizeof.)
const TATCELL_METRICS_MIN: usize = 8 + 6 * size_of::<*const u8>();

/// What is said of one table: its name, and what the caller has of it. Start from TATCELL_METRICS_INIT and set name.
/// Several tables are an array. The library keeps no pointer after the call.
///
/// From counters come tatcell_requests_total (label verdict: conforming, non_conforming, never, shadow, contended),
/// tatcell_soft_requests_total, tatcell_full_set_requests_total (label outcome: untracked, inherited, forgiven) and
/// tatcell_new_keys_total. From statistics: tatcell_slots, tatcell_live_keys, tatcell_expired_keys, tatcell_claims,
/// tatcell_full_sets and tatcell_full_set_probability. From the info: tatcell_table_memory_bytes and
/// tatcell_table_info (labels algorithm, policy, tag_bits). From both: tatcell_longest_debt_seconds, or in a table of
/// overrides tatcell_overrides (label kind: ban, exemption).
#[repr(C)]
pub struct tatcell_metrics_t {
    /// sizeof(tatcell_metrics_t).
    pub size: u32,
    /// Must be 0.
    pub flags: u32,
    /// The label `table`, different for each table. It is printable ASCII and ends with a NUL if name_len is 0, else
    /// UTF-8 of any characters; at most 1024 bytes. The call escapes it. Not NULL.
    pub name: *const c_char,
    /// Bytes of name; 0 = name ends with a NUL.
    pub name_len: usize,
    /// What was counted: the sum of all threads, in which nobody counts during the call. NULL = nothing is said.
    pub counters: *const Counters,
    /// From tatcell_table_stats. NULL = nothing is said.
    pub stats: *const tatcell_stats_t,
    /// From tatcell_table_info; the longest debt needs its tick_hz. NULL = nothing is said.
    pub info: *const tatcell_table_info_t,
    /// Must be NULL.
    pub reserved: *const c_void,
}

// SAFETY: repr(C), its size first, integers and pointers without padding (asserted).
unsafe impl Grows for tatcell_metrics_t {
    const FIRST: usize = TATCELL_METRICS_MIN;
}
const _: () = assert!(size_of::<tatcell_metrics_t>() == TATCELL_METRICS_MIN && TATCELL_METRICS_MIN % 8 == 0);

/// Returns what a caller has of a structure, and where it lies; NULL is `None`.
fn known<'a, T: Grows>(c: Contract<'a>, p: *const T) -> Result<(Option<T>, Span), i32> {
    match p.is_null() {
        true => Ok((None, Span::NOTHING)),
        false => Ok((Some(c.known(p)?), c.reach(p))),
    }
}

fn said(info: &tatcell_table_info_t) -> Result<Said, i32> {
    let algorithm = match info.algorithm {
        TATCELL_ALGORITHM_OVERRIDES => None,
        number => Some(Algorithm::of(number).ok_or(TATCELL_ERR_OPTION)?),
    };
    let policy = u8::try_from(info.policy).ok().and_then(FullPolicy::from_number);
    let (algorithm, policy) = names(algorithm, policy.ok_or(TATCELL_ERR_OPTION)?);
    let (tag_bits, bytes, tick_hz) = (info.tag_bits, info.image_bytes, info.tick_hz);
    Ok(Said { algorithm, policy, tag_bits, bytes, tick_hz })
}

/// Returns the metrics of one table of the array, which must lie apart from the buffer that is written.
fn table<'a>(
    c: Contract<'a>,
    first: *const tatcell_metrics_t,
    i: usize,
    written: Span,
) -> Result<TableMetrics<'a>, i32> {
    let (raw, place) = c.nth_options(first, i)?;
    if raw.flags != 0 || !raw.reserved.is_null() {
        return Err(TATCELL_ERR_OPTION);
    }
    let name = c.text_of(raw.name, raw.name_len)?.ok_or(TATCELL_ERR_HTTP_NAME)?;
    let mut made = TableMetrics::new(name);
    let counters = c.input_if(raw.counters)?;
    if let Some(counters) = counters {
        made = made.counters(counters);
    }
    let (stats, stats_place) = known(c, raw.stats)?;
    if let Some(raw) = stats {
        let load_ppm = raw.load_ppm.into();
        let tatcell_stats_t { slots, live, claims, expired, debt, full_sets, longest, exemptions, .. } = raw;
        let stats = Stats { load_ppm, slots, live, claims, expired, debt, full_sets, longest, exemptions };
        made = made.stats(&stats);
        if (raw.size as usize) < size_of::<tatcell_stats_t>() {
            made = made.of_older_header();
        }
    }
    let (info, info_place) = known(c, raw.info)?;
    if let Some(info) = info {
        made = made.said(said(&info)?);
    }
    let (name, counted) = (Span::of(name.as_ptr(), name.len()), Span::of(raw.counters, 1));
    written.apart_from(&[place, name, counted, stats_place, info_place])?;
    Ok(made)
}

/// Writes counters and statistics of tables as text, in the format of Prometheus or OpenMetrics.
///
/// tatcell_metrics_t lists the families. Each sample has the label `table`, and a family without a sample is left out.
/// Counters may wrap or start again: Prometheus takes that for a restart.
///
/// Both formats want all samples of a family together, so one call writes all tables. A program that has more families
/// writes them before or after; OpenMetrics ends with "# EOF", so there they come before.
///
///     tatcell_metrics_t pages = TATCELL_METRICS_INIT;
///     pages.name = "pages", pages.counters = &counters, pages.stats = &stats, pages.info = &info;
///     int32_t length = tatcell_metrics_text(&pages, 1, TATCELL_METRICS_PROMETHEUS, text, sizeof text);
///     if (length < 0 || (size_t)length >= sizeof text) return; // truncated: not to be sent
///
/// Source: the text format of Prometheus, version 0.0.4; OpenMetrics 1.0.
///
/// @param tables array of count elements; NULL only if count is 0.
/// @param count  0..TATCELL_METRICS_TABLES_MAX.
/// @param format TATCELL_METRICS_PROMETHEUS or TATCELL_METRICS_OPENMETRICS.
/// @param buffer gets the text and a NUL, truncated to bytes. NULL only if bytes is 0.
/// @param bytes  of buffer. 0 = nothing is written. A table takes less than 4096 bytes if its name
///               has up to 64, and no quotes, backslashes or ends of lines.
/// @retval 0 or more: the length of the whole text, without its NUL. If it is not less than bytes, the text was
///         truncated.
/// @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer.
/// @retval TATCELL_ERR_SIZE a structure's size is not set, or differs from that of the first.
/// @retval TATCELL_ERR_COUNT more than TATCELL_METRICS_TABLES_MAX tables.
/// @retval TATCELL_ERR_HTTP_NAME a name with a NUL at its end has a byte outside of 0x20..0x7e, or one with a length is
///         not UTF-8.
/// @retval TATCELL_ERR_OPTION an unknown format, flags or reserved is not 0, or an info was not made by a call.
/// @retval TATCELL_ERR_TOO_LARGE a name is longer than 1024 bytes, or bytes is impossibly large.
/// @retval TATCELL_ERR_OVERLAP the buffer overlaps an object that the call reads. Nothing is written on error.
/// Thread: any. Cost: some hundred nanoseconds for each sample. Since 0.4.
#[no_mangle]
pub unsafe extern "C" fn tatcell_metrics_text(
    tables: *const tatcell_metrics_t,
    count: u32,
    format: u32,
    buffer: *mut c_char,
    bytes: usize,
) -> i32 {
    let format = match format {
        TATCELL_METRICS_PROMETHEUS => Format::Prometheus,
        TATCELL_METRICS_OPENMETRICS => Format::OpenMetrics,
        _ => return TATCELL_ERR_OPTION,
    };
    if count > TATCELL_METRICS_TABLES_MAX {
        return TATCELL_ERR_COUNT;
    }
    args!(c, room = c.room(buffer, bytes));
    let (count, written) = (count as usize, room.span());
    if let Some(e) = (0..count).find_map(|i| table(c, tables, i, written).err()) {
        return e;
    }
    let mut room = room;
    let mut sink = |text: &str| -> fmt::Result {
        room.put(text);
        Ok(())
    };
    // Every table was fine above. A `Room` takes everything, so this does not fail.
    let _ = write(count, &|i| table(c, tables, i, written).ok(), format, &mut Text(&mut sink));
    // Fits: at most 4096 tables, each with at most 64 KiB.
    room.end() as i32
}

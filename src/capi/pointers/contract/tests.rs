//! A structure that has grown since its first release, as no structure of ABI 1 has yet.
use super::*;
use crate::capi::codes::{TATCELL_ERR_OPTION, TATCELL_ERR_OVERLAP, TATCELL_ERR_SIZE};
use crate::capi::pointers::places::Span;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
struct Grown {
    size: u32,
    first: u32,
    second: u64,
    /// Added by the second release.
    third: u64,
}

// SAFETY: repr(C), its size first, integers without padding.
unsafe impl Grows for Grown {
    const FIRST: usize = 16;
}

/// Runs under the contract, which the tests keep: they pass places that last for the call, at their stated length.
fn with<T>(run: impl FnOnce(Contract<'_>) -> T) -> T {
    let frame = ();
    // SAFETY: the contract, which the tests keep.
    run(unsafe { Contract::of(&frame) })
}

/// Returns what a caller brings: the size, and words behind it, of which those before `filled` are not 0.
fn brought(size: u32, filled: usize) -> [u64; 8] {
    let second_half = if cfg!(target_endian = "little") { 32 } else { 0 };
    let head = u64::from(size) << (32 - second_half) | 7 << second_half;
    core::array::from_fn(|i| match i {
        0 => head,
        _ if i < filled => i as u64,
        _ => 0,
    })
}

#[test]
fn options_of_the_first_release_are_read_as_if_the_rest_were_zero() {
    let old = brought(16, 8);
    let read = with(|c| c.options(old.as_ptr().cast::<Grown>()));
    assert_eq!(read.map(|o| (o.second, o.third)), Ok((1, 0)));
    let new = brought(24, 8);
    let read = with(|c| c.options(new.as_ptr().cast::<Grown>()));
    assert_eq!(read.map(|o| (o.second, o.third)), Ok((1, 2)));
}

#[test]
fn options_of_a_later_release_are_refused_if_they_use_what_is_unknown() {
    for size in [32u32, 40, 64] {
        for filled in 1..=8usize {
            let later = brought(size, filled);
            let read = with(|c| c.options(later.as_ptr().cast::<Grown>()));
            assert_eq!(read.err(), (filled > 3).then_some(TATCELL_ERR_OPTION), "size {size}, {filled} words");
        }
    }
}

#[test]
fn sizes_that_no_release_has_are_refused() {
    for size in [0u32, 7, 8, 15, 17, 20, 4097, 4100, 4104, u32::MAX] {
        let bytes = brought(size, 1);
        let read = with(|c| c.options(bytes.as_ptr().cast::<Grown>()));
        assert_eq!(read, Err(TATCELL_ERR_SIZE), "size {size}");
    }
}

#[test]
fn results_end_where_the_caller_s_structure_ends_and_keep_its_size() {
    for size in [16u32, 24, 32, 64] {
        let mut place = brought(size, 8);
        let before = place;
        let to = place.as_mut_ptr().cast::<Grown>();
        let made = Grown { size: 99, first: 11, second: 12, third: 13 };
        with(|c| c.report(to).map(|out| out.put(&made))).unwrap();
        let known = size.min(24) as usize / 8;
        assert_eq!(place[known..], before[known..], "size {size}");
        assert_eq!(place[1], 12);
        // SAFETY: 64 bytes.
        let first = unsafe { place.as_ptr().cast::<[u32; 2]>().read() };
        assert_eq!(first, [size, 11], "size {size}");
        assert_eq!(place[2], if size == 16 { before[2] } else { 13 }, "size {size}");
    }
}

#[test]
fn rows_of_any_release_lie_their_stride_apart() {
    for stride in [16u32, 24, 32] {
        let mut place = [5u64; 12];
        let first = place.as_mut_ptr().cast::<Grown>();
        with(|c| {
            let rows = c.rows(first, stride, 3).ok().flatten().unwrap();
            (0..4).for_each(|i| rows.put(i, &Grown { size: 0, first: 0, second: i as u64, third: 9 }));
        });
        let words = stride as usize / 8;
        for (i, row) in place.chunks(words).take(3).enumerate() {
            assert_eq!(row[1], i as u64, "stride {stride}");
            assert!(
                row[2..].iter().enumerate().all(|(w, &x)| x == if w == 0 { 9 } else { 5 }),
                "stride {stride}"
            );
        }
        assert!(
            place[words * 3..].iter().all(|&word| word == 5),
            "stride {stride}: a fourth row was written"
        );
    }
}

#[test]
fn spans_overlap_where_they_share_a_byte() {
    let bytes = [0u8; 16];
    let at = |from: usize, count| Span::bytes(bytes.as_ptr().wrapping_add(from), count);
    for a in 0..8 {
        for b in 0..8 {
            for (x, y) in [(0, 0), (0, 3), (1, 1), (3, 2), (4, 8)] {
                let share = (a..a + x).any(|i| (b..b + y).contains(&i));
                let want = if share { Err(TATCELL_ERR_OVERLAP) } else { Ok(()) };
                assert_eq!(at(a, x).apart(at(b, y)), want, "{x} bytes at {a}, {y} at {b}");
            }
        }
    }
    assert_eq!(
        Span::bytes(core::ptr::null::<u8>(), 100).apart(Span::bytes(core::ptr::null::<u8>(), 100)),
        Ok(())
    );
}

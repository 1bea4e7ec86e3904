//! Powers of two and their logarithms in fixed point, each rounded up: the arithmetic of the decaying level.
//!
//! ```text
//!  2^y      y: [ whole part ][ i : 6 ][ j : 6 ][ x : 28 ]  Q40     = 2^whole * 2^(i/64) * 2^(j/4096) * e^(x ln 2)
//!                              COARSE   FINE     cubic
//!  log2 v   v = 2^whole * m: the same the other way, i and j by a search, the rest by ln(1+x) = x - x^2/2 + x^3/3
//! ```
//!
//! A Qn number is an integer that counts 2^-n. The compiler computes the tables. Relative errors: a table entry has at
//! most 2^-55 (six squarings of a root good to 2^-61), the cubics 2^-52 (x is below 2^-12), each product 2^-61.
//! Together that is below 2^-51 in a power, and 2^-50 is added. In a logarithm it is below 2^-11 of the last place, and
//! two places are added. So a result is at least the true value. Powers of different Q40 numbers differ by 2^-40.5, so
//! they keep their order.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

/// 1 in Q62.
const ONE: u64 = 1 << 62;
/// The natural logarithm of 2, and its inverse, in Q62.
const LN_2: u64 = 0x2C5C_85FD_F473_DE6B;
const PER_LN_2: u64 = 0x5C55_1D94_AE0B_F85E;

/// 2^(i/64) and 2^(i/4096) in Q62, and their inverses.
static COARSE: [u64; 65] = powers(6);
static FINE: [u64; 65] = powers(12);
static PER_COARSE: [u64; 65] = inverses(&powers(6));
static PER_FINE: [u64; 65] = inverses(&powers(12));

/// Returns the product of two Q62 numbers, rounded down; it must be below 4.
#[inline(always)]
const fn mul(a: u64, b: u64) -> u64 {
    ((a as u128).wrapping_mul(b as u128) >> 62) as u64
}

/// Returns the largest number whose square is at most x > 0.
const fn sqrt(x: u128) -> u128 {
    // Newton's method comes from above; 128 - leading zeros is the length of x.
    let mut root = 1u128 << 64u32.wrapping_sub(x.leading_zeros() >> 1);
    loop {
        let better = match x.checked_div(root) {
            Some(part) => root.wrapping_add(part) >> 1,
            None => return root,
        };
        if better >= root {
            return root;
        }
        root = better;
    }
}

/// Returns the powers 0 to 64 of 2^(2^-halvings), in Q62.
const fn powers(halvings: u32) -> [u64; 65] {
    // In Q100; each step lengthens it to Q124, whose root is in Q62.
    let (mut root, mut n) = (2u128 << 100, 0);
    while n < halvings {
        root = sqrt(root << 24) << 38;
        n = n.wrapping_add(1);
    }
    let root = (root >> 38) as u64;
    let (mut table, mut i) = ([ONE; 65], 1);
    while i < 65 {
        table[i] =
            if i % 2 == 0 { mul(table[i / 2], table[i / 2]) } else { mul(table[i.wrapping_sub(1)], root) };
        i = i.wrapping_add(1);
    }
    table
}

const fn inverses(table: &[u64; 65]) -> [u64; 65] {
    let (mut inverse, mut i) = ([ONE; 65], 0);
    while i < 65 {
        if let Some(part) = (1u128 << 124).checked_div(table[i] as u128) {
            inverse[i] = part as u64;
        }
        i = i.wrapping_add(1);
    }
    inverse
}

/// Returns 2^y in Q32 for y in Q40, rounded up to at least the next number; `u64::MAX` from y = 31 on.
#[inline]
pub(super) fn exp2_up(y: i64) -> u64 {
    let whole = y >> 40;
    if whole > 30 {
        return u64::MAX;
    }
    if whole < -32 {
        return 1;
    }
    let (i, j, x) = (y >> 34 & 63, y >> 28 & 63, (y as u64 & 0xfff_ffff) << 22);
    let g = mul(x, LN_2);
    let g2 = mul(g, g);
    let g3 = mul(g2, g);
    // 1/6 in Q62, rounded down.
    let p = ONE.wrapping_add(g).wrapping_add(g2 >> 1).wrapping_add(mul(g3, ONE / 6));
    let m = mul(mul(COARSE[i as usize], FINE[j as usize]), p).wrapping_add(1 << 12);
    // From Q62 to Q32, and by the whole part: a shift of 0 to 62 places.
    (m >> 30i64.wrapping_sub(whole) as u32).wrapping_add(1)
}

/// Returns log2 of v in Q32, as a Q40 number, rounded up. For 0 it returns log2 of 2^-32.
#[inline]
pub(super) fn log2_up(v: u64) -> i64 {
    let v = if v == 0 { 1 } else { v };
    let zeros = v.leading_zeros();
    let m = (v << zeros) >> 1;
    let i = last_at_most(&COARSE, m);
    let rest = at_least_one(mul(m, PER_COARSE[i]));
    let j = last_at_most(&FINE, rest);
    let x = at_least_one(mul(rest, PER_FINE[j])).wrapping_sub(ONE);
    let x2 = mul(x, x);
    let ln = x.wrapping_sub(x2 >> 1).wrapping_add(mul(mul(x2, x), ONE / 3));
    let part = (mul(ln, PER_LN_2) >> 22).wrapping_add((j as u64) << 28).wrapping_add((i as u64) << 34);
    let whole = 31i64.wrapping_sub(zeros as i64);
    (whole << 40).wrapping_add(part as i64).wrapping_add(2)
}

/// Returns the last of the first 64 places whose number is at most m; that of place 0 must be.
#[inline(always)]
fn last_at_most(table: &[u64; 65], m: u64) -> usize {
    let (mut place, mut step) = (0, 32);
    while step > 0 {
        if table[(place | step) & 63] <= m {
            place |= step;
        }
        step >>= 1;
    }
    place
}

/// Returns 1 for what rounding brought below 1.
#[inline(always)]
const fn at_least_one(x: u64) -> u64 {
    if x < ONE {
        ONE
    } else {
        x
    }
}

#[cfg(all(test, not(tatcell_loom)))]
#[allow(clippy::arithmetic_side_effects)]
mod tests {
    use super::*;

    fn real(q: u64, places: i32) -> f64 {
        q as f64 / 2f64.powi(places)
    }

    /// The borders of the tables, where errors are likely, and numbers in between.
    fn places() -> impl Iterator<Item = i64> {
        let borders = (0..4096).flat_map(|n| [-1, 0, 1].map(|d| (n << 28) + d));
        let between = (0..4096).map(|n| (n << 28) + ((n * 64_007_621) & 0xfff_ffff));
        borders.chain(between)
    }

    #[test]
    fn tables_hold_the_powers_and_their_inverses() {
        for i in 0..65 {
            for (table, inverse, part) in [(&COARSE, &PER_COARSE, 64.0), (&FINE, &PER_FINE, 4096.0)] {
                let exact = (i as f64 / part).exp2();
                assert!((real(table[i], 62) / exact - 1.0).abs() < 3e-16, "2^({i}/{part})");
                assert!((real(inverse[i], 62) * exact - 1.0).abs() < 3e-16, "2^-({i}/{part})");
            }
        }
        // f64 cannot see this: two of the six roots, squared back.
        let squares =
            |table: &[u64; 65]| (1..=32).map(|i| mul(table[i], table[i]).abs_diff(table[2 * i])).max();
        assert!(squares(&COARSE) < Some(1 << 7) && squares(&FINE) < Some(1 << 7));
        assert!(COARSE[64].abs_diff(2 * ONE) < 1 << 7 && FINE[64].abs_diff(COARSE[1]) < 1 << 7);
    }

    /// The compiler makes the tables; made at run time, they are the same.
    #[test]
    fn tables_made_at_run_time_are_those_that_were_compiled() {
        use core::hint::black_box;
        assert!(powers(black_box(6)) == COARSE && powers(black_box(12)) == FINE);
        assert!(inverses(&powers(6)) == PER_COARSE && inverses(&powers(12)) == PER_FINE);
        assert_eq!(inverses(&[0; 65]), [ONE; 65]);
        for x in (0..1_000).chain([u128::MAX >> 2, 1 << 124, (1 << 124) - 1]) {
            let root = sqrt(x);
            assert!(root * root <= x && (root + 1) * (root + 1) > x, "sqrt({x}) = {root}");
        }
        assert_eq!([ONE - 1, ONE, ONE + 1].map(at_least_one), [ONE, ONE, ONE + 1]);
    }

    #[test]
    fn powers_are_at_least_the_exact_ones_by_a_hair_and_in_order() {
        for whole in [-32, -10, -1, 0, 1, 20, 30] {
            let mut sorted: std::vec::Vec<_> = places().map(|y| (whole << 40) + y).collect();
            sorted.sort_unstable();
            sorted.dedup();
            let mut last = 0;
            for y in sorted.into_iter().filter(|y| y >> 40 == whole) {
                let (made, exact) = (exp2_up(y), (y as f64 / 2f64.powi(40)).exp2() * 2f64.powi(32));
                let over = made as f64 - exact;
                // 3e-16 is the error of f64 itself.
                assert!(
                    over > -3e-16 * exact && over < 2.0 + 4e-15 * exact,
                    "2^({y} / 2^40): {made} of {exact}"
                );
                assert!(
                    made >= last && (whole < 10 || made > last),
                    "2^({y} / 2^40) is below the one before"
                );
                last = made;
            }
        }
        assert_eq!((exp2_up(31 << 40), exp2_up(i64::MAX)), (u64::MAX, u64::MAX));
        assert_eq!((exp2_up(-33 << 40), exp2_up(i64::MIN)), (1, 1));
    }

    /// In whole numbers, the powers of two parts of one multiply to at least 2.
    #[test]
    fn the_power_of_a_part_times_that_of_the_rest_is_at_least_two() {
        for part in places().filter(|part| (1..1 << 40).contains(part)) {
            let [a, b] = [part, (1 << 40) - part].map(|part| exp2_up((30 << 40) + part) as u128);
            assert!(a * b >= 2 << 124 && a * b < (2 << 124) + (1 << 80), "2^({part} / 2^40)");
        }
    }

    #[test]
    fn logarithms_are_at_least_the_exact_ones_by_a_hair() {
        for v in (0..63).flat_map(|n| (0..500).map(move |k| (1u64 << n) + k * ((1 << n) / 487 + 1))) {
            let (made, exact) = (log2_up(v) as f64, (v as f64 / 2f64.powi(32)).log2() * 2f64.powi(40));
            // f64 has 2^-53 of up to 2^45.
            assert!(made - exact > -0.02 && made - exact < 2.1, "log2({v} / 2^32): {made} of {exact}");
        }
        assert_eq!(log2_up(0), log2_up(1));
    }

    #[test]
    fn a_logarithm_of_a_power_is_no_less_and_logarithms_keep_their_order() {
        let mut sorted: std::vec::Vec<_> = places().map(|y| exp2_up(y + (20 << 40))).collect();
        sorted.extend(sorted.clone().iter().flat_map(|v| [v - 2, v - 1, v + 1]));
        sorted.sort_unstable();
        assert!(sorted.windows(2).all(|two| log2_up(two[0]) <= log2_up(two[1])));
        for y in places().map(|y| y + (7 << 40)) {
            let there = log2_up(exp2_up(y));
            assert!(there >= y && there <= y + 8, "{y} became {there}");
        }
    }
}

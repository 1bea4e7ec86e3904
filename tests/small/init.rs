//! Limits made at run time equal those of the big constructors and of the macros of `tatcell_small.h`, for a million
//! inputs.

use std::io::Read as _;
use std::process::{Command, Stdio};

use tatcell::{LimitError, LimitSpec, SmallLimit, SmallLimit32};

const INPUTS: usize = 1_000_000;

/// The macros with variables, which the header refuses: here what refuses is taken out. The same generator as
/// [`specs`]; a record an input: 64 bits ok, five words; 32 bits ok, six words. Lowest byte first, because the compiler
/// may be one for another machine than the tests run on.
const PROGRAM: &str = r#"
#include <stdio.h>
#include "tatcell_small.h"
#undef TATCELL_REQUIRE_
#define TATCELL_REQUIRE_(limit, table) 0
static uint64_t state = 0x5eed0301u;
static uint64_t any(unsigned bits) {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    const uint64_t n = state * 0x2545f4914f6cdd1du;
    return (n >> 8) & (UINT64_MAX >> (63 - n % bits));
}
int main(void) {
    for (long i = 0; i < INPUTS; i++) {
        const uint64_t u = any(i % 7 == 0 ? 47 : 30), k = any(20);
        const uint64_t p = i % 3 == 0 ? u * k : any(i % 5 == 0 ? 63 : 44), b = any(i % 11 == 0 ? 40 : 16);
        const uint64_t d = i % 2 == 0 ? 0 : any(i % 13 == 0 ? 63 : 24);
        uint64_t out[13] = {0};
        if (TATCELL_SANE_(u, p, b, d) && TATCELL_OK64_(u, p, b, d)) {
            const tatcell_small_limit_t l = TATCELL_SMALL_LIMIT_SHAPED(u, p, b, d);
            const uint64_t shifts = (uint64_t)l.shift << 32 | (uint64_t)l.back << 48;
            const uint64_t v[6] = {1, l.t, l.limit, l.window, l.delay, l.burst | shifts};
            for (int j = 0; j < 6; j++) out[j] = v[j];
        }
        if (TATCELL_SANE_(u, p, b, d) && TATCELL_OK32_(u, p, b, d)) {
            const tatcell_small32_limit_t l = TATCELL_SMALL32_LIMIT_SHAPED(u, p, b, d);
            const uint64_t v[7] = {1, l.t, l.limit, l.window, l.delay, l.burst, l.shift};
            for (int j = 0; j < 7; j++) out[6 + j] = v[j];
        }
        for (int j = 0; j < 8 * 13; j++) putchar((int)(out[j / 8] >> j % 8 * 8 & 0xff));
    }
    return 0;
}
"#;

struct Any(u64);

impl Any {
    fn any(&mut self, bits: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let n = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d);
        (n >> 8) & (u64::MAX >> (63 - n % bits))
    }
}

/// (units, period, burst, max_delay), zeros and what does not fit among them.
fn specs() -> impl Iterator<Item = [u64; 4]> {
    let mut rng = Any(0x5eed_0301);
    (0..INPUTS).map(move |i| {
        let units = rng.any(if i % 7 == 0 { 47 } else { 30 });
        let factor = rng.any(20);
        let period =
            if i % 3 == 0 { units.wrapping_mul(factor) } else { rng.any(if i % 5 == 0 { 63 } else { 44 }) };
        let burst = rng.any(if i % 11 == 0 { 40 } else { 16 });
        [units, period, burst, if i % 2 == 0 { 0 } else { rng.any(if i % 13 == 0 { 63 } else { 24 }) }]
    })
}

fn words64(limit: SmallLimit) -> [u64; 5] {
    #[repr(C)]
    struct Fields([u64; 4], u32, [u16; 2]);
    // SAFETY: both are repr(C): four u64, a u32 and two u16, no padding.
    let fields = unsafe { core::mem::transmute::<SmallLimit, Fields>(limit) };
    let Fields([t, limit, window, delay], burst, [shift, back]) = fields;
    [t, limit, window, delay, u64::from(burst) | u64::from(shift) << 32 | u64::from(back) << 48]
}

fn words32(limit: SmallLimit32) -> [u32; 6] {
    // SAFETY: repr(C), six u32.
    unsafe { core::mem::transmute(limit) }
}

#[test]
fn limits_made_without_dividing_equal_those_of_the_big_constructors() {
    let (mut made, mut refused) = ([0, 0], [0, 0]);
    for [u, p, b, d] in specs() {
        let spec = LimitSpec::new(u, p, b).max_delay(d);
        let wide = spec.build().and_then(|limit| SmallLimit::from_limit(&limit));
        let narrow = spec.build32().and_then(|limit| SmallLimit32::from_limit(&limit));
        let (small, small32) = (SmallLimit::shaped(u, p, b, d), SmallLimit32::shaped(u, p, b, d));
        for (i, ok) in [small.is_ok(), small32.is_ok()].into_iter().enumerate() {
            *(if ok { &mut made[i] } else { &mut refused[i] }) += 1;
        }
        // Which of two reasons is told first may differ.
        assert_eq!(small.ok(), wide.ok(), "{u} per {p}, burst {b}, delay {d}");
        assert_eq!(small32.ok(), narrow.ok(), "32 bits, {u} per {p}, burst {b}, delay {d}");
        let zero = match (u, p, b) {
            (0, _, _) => Some(LimitError::ZeroRate),
            (_, 0, _) => Some(LimitError::ZeroPeriod),
            (_, _, 0) => Some(LimitError::ZeroBurst),
            _ => None,
        };
        assert!(zero.is_none() || (small.err() == zero && small32.err() == zero), "{u} per {p}, burst {b}");
    }
    println!("made {made:?}, refused {refused:?}");
    assert!(made.iter().all(|n| *n > 100_000) && refused.iter().all(|n| *n > 50_000), "{made:?} {refused:?}");
}

#[test]
fn limits_made_when_the_program_runs_equal_those_of_the_macros() {
    let cc = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    if Command::new(&cc).arg("--version").output().is_err() {
        println!(
            "SKIP limits_made_when_the_program_runs_equal_those_of_the_macros: no C compiler; install gcc"
        );
        return;
    }
    let dir = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (source, program) = (dir.join("small_init.c"), dir.join("small_init"));
    std::fs::write(&source, PROGRAM.replace("INPUTS", &INPUTS.to_string())).unwrap();
    let include = concat!(env!("CARGO_MANIFEST_DIR"), "/include");
    let built = Command::new(&cc)
        .args(["-std=c99", "-w", "-O1", "-I", include, "-o"])
        .args([&program, &source])
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let mut child = Command::new(&program).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = std::io::BufReader::with_capacity(1 << 20, child.stdout.take().unwrap());
    let mut made = 0;
    for [u, p, b, d] in specs() {
        let mut record = [0u8; 13 * 8];
        said.read_exact(&mut record).unwrap();
        let words: Vec<u64> =
            record.chunks_exact(8).map(|w| u64::from_le_bytes(w.try_into().unwrap())).collect();
        // The macros multiply units by 2^16, and periods are shifted: what is larger they refuse, and so does a limit
        // whose numbers do not fit.
        let sane = u >> 46 == 0 && p >> 62 == 0 && d >> 62 == 0;
        let what = format!("{u} per {p}, burst {b}, delay {d}");
        let wide = SmallLimit::shaped(u, p, b, d).ok().filter(|_| sane).map(words64);
        assert_eq!(words[0] == 1, wide.is_some(), "{what}");
        assert!(wide.is_none_or(|wide| wide[..] == words[1..6]), "{what}: {wide:?} {words:?}");
        let narrow = SmallLimit32::shaped(u, p, b, d).ok().filter(|_| sane).map(words32);
        assert_eq!(words[6] == 1, narrow.is_some(), "32 bits, {what}");
        let same = |narrow: [u32; 6]| narrow.map(u64::from)[..] == words[7..13];
        assert!(narrow.is_none_or(same), "32 bits, {what}: {narrow:?} {words:?}");
        made += usize::from(wide.is_some()) + usize::from(narrow.is_some());
    }
    assert!(child.wait().unwrap().success() && made > 500_000, "{made}");
}

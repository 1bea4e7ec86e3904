//! The macros of `tatcell_small.h` compute the same limits as the library, and refuse the same.

use std::fmt::Write as _;
use std::process::Command;

use tatcell::{SmallLimit, SmallLimit32};

const ROUNDS: usize = 120;

/// (units, period, burst, max_delay): small and large, whole and broken emission intervals.
fn specs() -> Vec<[u64; 4]> {
    let mut state = 0x5eed_0005u64;
    let mut any = |bits: u64| {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        let n = state.wrapping_mul(0x2545_f491_4f6c_dd1d);
        (n >> 8) & (u64::MAX >> (63 - n % bits))
    };
    let mut specs: Vec<[u64; 4]> = (0..ROUNDS)
        .map(|i| {
            let units = any(30).max(1);
            let period = if i % 3 == 0 { units * any(20).max(1) } else { any(44).max(1) };
            [units, period, any(16).max(1), if i % 2 == 0 { 0 } else { any(24) }]
        })
        .collect();
    specs.extend([
        [1, 1, 1, 0],
        [65_535, 65_535, 1, 0],
        [1, 65_535, 1, 0],
        [1, 65_536, 1, 0],
        [1, 65_537, 1, 0],
        [3, 1 << 20, 7, 1 << 20],
        [1_000_000_000, 1_000, 100, 0],
        [1, 86_400_000_000_000, 1, 0],
        [1, (1 << 30) - 1, 1, 0],
        [1, 1 << 30, 1, 0],
        [1, 1, (1 << 30) - 1, 0],
        [1, 1, u32::MAX as u64 + 5, 0],
        [1 << 45, 1, 1, 0],
        [1, 1 << 61, 1, 0],
        [1, 1 << 61, 2, 0],
    ]);
    specs
}

#[test]
fn the_header_computes_and_refuses_the_same_limits() {
    let cc = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    if Command::new(&cc).arg("--version").output().is_err() {
        println!(
            "SKIP the_header_computes_and_refuses_the_same_limits: no C compiler; install gcc or set CC"
        );
        return;
    }
    let mut c = String::from(
        "#include <stdio.h>\n#include <string.h>\n#include \"tatcell_small.h\"\nint main(void) {\n",
    );
    let (mut made, mut refused) = (0, 0);
    for [u, p, b, d] in specs() {
        let args = format!("{u}u, {p}u, {b}u, {d}u");
        let wide = SmallLimit::shaped(u, p, b, d);
        let narrow = SmallLimit32::shaped(u, p, b, d);
        for (bits, ok) in [(64, wide.is_ok()), (32, narrow.is_ok())] {
            let _ = writeln!(
                c,
                "if (TATCELL_OK{bits}_({args}) != {}) {{ printf(\"{bits} bits: {args}\\n\"); return 1; }}",
                u8::from(ok)
            );
            *(if ok { &mut made } else { &mut refused }) += 1;
        }
        let mut compare = |kind: &str, init: &str, words: &[u64], int: &str| {
            let words: Vec<String> = words.iter().map(|w| format!("{w}u")).collect();
            let _ = writeln!(
                c,
                "{{ static const {kind} made = {init}({args}); static const {int} want[] = {{{}}};\n\
                 if (sizeof made != sizeof want || memcmp(&made, want, sizeof want)) {{\n\
                 printf(\"{init} {args}\\n\"); return 1; }} }}",
                words.join(", ")
            );
        };
        if let Ok(limit) = wide {
            // SAFETY: repr(C), four u64 and two u32, no padding.
            let words: [u64; 5] = unsafe { core::mem::transmute(limit) };
            compare("tatcell_small_limit_t", "TATCELL_SMALL_LIMIT_SHAPED", &words, "uint64_t");
        }
        if let Ok(limit) = narrow {
            // SAFETY: repr(C), six u32.
            let words: [u32; 6] = unsafe { core::mem::transmute(limit) };
            compare(
                "tatcell_small32_limit_t",
                "TATCELL_SMALL32_LIMIT_SHAPED",
                &words.map(u64::from),
                "uint32_t",
            );
        }
    }
    c += "return 0; }\n";
    assert!(made > 100 && refused > 20, "{made} made, {refused} refused");
    let dir = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (source, program) = (dir.join("small_header.c"), dir.join("small_header"));
    std::fs::write(&source, c).unwrap();
    let include = concat!(env!("CARGO_MANIFEST_DIR"), "/include");
    let built = Command::new(&cc)
        .args(["-std=c99", "-w", "-I", include, "-o"])
        .args([&program, &source])
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let ran = Command::new(&program).output().unwrap();
    assert!(ran.status.success(), "differs: {}", String::from_utf8_lossy(&ran.stdout));
}

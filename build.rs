//! Before the crate is compiled: names for what its `#[cfg]` lines ask, and the SONAME of the shared library.
//!
//! A condition on the target, the features or the checker that the sources ask in more than one place has its name
//! and its meaning here, once; a name that is not in this list is a warning. The model checker is asked for by
//! `RUSTFLAGS="--cfg tatcell_loom"`. Neither loom nor Miri knows an instruction by its name, and no sanitizer sees what
//! assembly reads: under them every condition on instructions is false. (Valgrind reads machine code, and watches the
//! library as it is shipped.) Whether tests are compiled is not known here: that stays `cfg(test)`.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    names(&Asked);
    soname(&Asked);
}

/// Prints every name, and whether it holds.
fn names(asked: &Asked) {
    let [loom, step, miri, sanitizer] =
        ["TATCELL_LOOM", "TATCELL_STEP", "MIRI", "SANITIZE"].map(|name| asked.is_set(name));
    let [x86_64, aarch64, arm] = ["x86_64", "aarch64", "arm"].map(|arch| asked.is("TARGET_ARCH", arch));
    let riscv = asked.is("TARGET_ARCH", "riscv32") || asked.is("TARGET_ARCH", "riscv64");
    let little = asked.is("TARGET_ENDIAN", "little");
    let [atomic32, atomic64] = ["32", "64"].map(|bits| asked.is("TARGET_HAS_ATOMIC", bits));
    let linux = asked.is("TARGET_OS", "linux") || asked.is("TARGET_OS", "android");
    let [apple, openbsd] = [asked.is("TARGET_VENDOR", "apple"), asked.is("TARGET_OS", "openbsd")];
    let instructions = !loom && !step && !miri && !sanitizer;

    // Given by who compiles: loom's atomics instead of the processor's.
    println!("cargo::rustc-check-cfg=cfg(tatcell_loom)");
    // The explorer's atomics instead of the processor's.
    println!("cargo::rustc-check-cfg=cfg(tatcell_step)");
    // Given by who measures: the code of a processor without AVX-512, on one that has it.
    println!("cargo::rustc-check-cfg=cfg(tatcell_without_avx512)");
    // x86-64: vectors of SSE2 in assembly, and CPUID tells what else there is (AES, AVX-512).
    name("tatcell_sse2", instructions && x86_64 && asked.is("TARGET_FEATURE", "sse2"));
    // aarch64: vectors of NEON in assembly.
    name("tatcell_neon", instructions && aarch64 && little && asked.is("TARGET_FEATURE", "neon"));
    // aarch64 whose build says that every processor has the AES instructions.
    name("tatcell_aes_arm", instructions && aarch64 && little && asked.is("TARGET_FEATURE", "aes"));
    // An instruction that fetches a line ahead.
    name("tatcell_prefetch", instructions && (x86_64 || aarch64));

    // Whoever lost a swap lost it to a thread of another processor, which waiting lets finish; not to an interrupt.
    name("tatcell_back_off", instructions && !asked.is("TARGET_OS", "none") && (x86_64 || aarch64));

    // No atomics of 32 bits: such a word is changed in a masked section.
    name("tatcell_masked32", !loom && !atomic32);
    // No atomics of 64 bits: such a word is changed in a masked section.
    name("tatcell_masked64", !loom && !atomic64 && !asked.feature("FALLBACK"));
    // No atomics of 64 bits, on a hosted system: portable-atomic's.
    name("tatcell_portable64", !loom && !atomic64 && asked.feature("FALLBACK"));
    // How a masked section keeps everyone else out: two functions in C, the crate `critical-section`, the interrupt
    // mask of Cortex-M (primask) or RISC-V (mstatus), a lock where firmware is tested (hosted), or not at all (open).
    let bare = asked.is("TARGET_OS", "none");
    let hosted = asked.is("TARGET_FAMILY", "unix") || asked.is("TARGET_FAMILY", "windows");
    choice(
        "tatcell_section",
        ["c", "crate", "primask", "mstatus", "hosted", "open"],
        match () {
            _ if asked.feature("CRITICAL_SECTION_C") => "c",
            _ if asked.feature("CRITICAL_SECTION") => "crate",
            _ if asked.feature("SINGLE_CORE") && bare && arm => "primask",
            _ if asked.feature("SINGLE_CORE") && bare && riscv => "mstatus",
            // Not below 64-bit atomics: there a cell would spin, which `fallback` must ask for.
            _ if asked.feature("SINGLE_CORE") && hosted && atomic64 => "hosted",
            _ => "open",
        },
    );

    // Memory of a process, where what was looked up once is kept.
    name("tatcell_kept", asked.feature("STD") || asked.feature("HOST"));
    // The system calls of Linux.
    name("tatcell_linux", linux);
    // The clock CLOCK_MONOTONIC_RAW.
    name("tatcell_raw_clock", linux || apple);
    // getentropy is where secret bytes come from, and no device is read.
    name("tatcell_getentropy", apple || openbsd);
}

/// Gives the shared library its SONAME. Only the C library is linked without std, and only ELF linkers know -soname.
/// The number is the ABI version.
fn soname(asked: &Asked) {
    println!("cargo::rerun-if-changed={CODES}");
    if asked.feature("CAPI") && !asked.feature("STD") && asked.is("TARGET_OS", "linux") {
        println!("cargo::rustc-link-arg=-Wl,-soname,libtatcell.so.{}", abi());
    }
}

/// Registers a name, and sets it if its condition holds.
fn name(name: &str, holds: bool) {
    println!("cargo::rustc-check-cfg=cfg({name})");
    if holds {
        println!("cargo::rustc-cfg={name}");
    }
}

/// Registers a name with its values, and sets one of them.
fn choice<const N: usize>(name: &str, values: [&str; N], chosen: &str) {
    println!(
        "cargo::rustc-check-cfg=cfg({name}, values({}))",
        values.map(|value| format!("\"{value}\"")).join(", ")
    );
    println!("cargo::rustc-cfg={name}=\"{chosen}\"");
}

/// What cargo says about the build.
struct Asked;

impl Asked {
    /// Is this one of the values of a `cfg`?
    fn is(&self, cfg: &str, value: &str) -> bool {
        env::var(format!("CARGO_CFG_{cfg}")).is_ok_and(|values| values.split(',').any(|one| one == value))
    }

    /// Is this `cfg` given, with whatever value?
    fn is_set(&self, cfg: &str) -> bool {
        env::var_os(format!("CARGO_CFG_{cfg}")).is_some()
    }

    fn feature(&self, feature: &str) -> bool {
        env::var_os(format!("CARGO_FEATURE_{feature}")).is_some()
    }
}

/// Where the ABI version stands, once.
const CODES: &str = "src/capi/codes.rs";

/// The number of `TATCELL_ABI_VERSION`.
fn abi() -> String {
    let codes = std::fs::read_to_string(CODES).expect(CODES);
    let line = codes.lines().find_map(|line| line.strip_prefix("pub const TATCELL_ABI_VERSION: u32 = "));
    line.and_then(|line| line.strip_suffix(';')).expect("TATCELL_ABI_VERSION").to_owned()
}

//! The programs of ffi-tests: one line each says what is built from what and under which tools it runs.
//!
//! Each prints PASS, FAIL or SKIP lines (ffi-tests/check.h), which get the name of the program, with its tool, in
//! front. The Rust side is not instrumented: asan and tsan watch what the C side does and hands over; memcheck sees
//! both. helgrind and drd take the lock-free words for races, so they would prove nothing.

/// Every program. A new one is a new line.
pub const PROGRAMS: &[Program] = &[
    c("layout").under(&[ASAN, MEMCHECK]),
    c("codes").under(&[ASAN, TSAN]),
    c("growth").under(&[ASAN]),
    c("told").under(&[ASAN, MEMCHECK]),
    c("forms").under(&[ASAN]),
    c("arguments").under(&[ASAN]),
    c("hash").under(&[ASAN, MEMCHECK]),
    c("burst").under(&[ASAN, MEMCHECK, SSE2]),
    c("vectors").with(&["ffi-tests/data/vectors.tsv"]).under(&[ASAN, MEMCHECK]),
    // Arguments: how many traces.
    c("property").under(&[ASAN.with(&["100"]), MEMCHECK.with(&["12"])]),
    c("semantics").under(&[ASAN, MEMCHECK, SSE2]),
    c("algorithms").under(&[ASAN, MEMCHECK]),
    c("counted").under(&[ASAN]),
    // Argument: percent of the rounds.
    c("threads").under(&[ASAN.with(&["20"]), TSAN.with(&["10"])]),
    c("process").under(&[ASAN]),
    c("lease").under(&[ASAN]),
    c("inline").under(&[ASAN, TSAN, SSE2]),
    c("sliding_log").under(&[ASAN, TSAN, MEMCHECK]),
    c("http").under(&[ASAN, MEMCHECK]),
    c("refusals").under(&[ASAN, TSAN]),
    c("host").under(&[ASAN]),
    c("meters").under(&[ASAN, TSAN, MEMCHECK]),
    c("meters_dpdk").linked(Link::Dpdk),
    c("chain").under(&[ASAN, MEMCHECK]),
    c("override").under(&[ASAN, TSAN, MEMCHECK]),
    // Argument: packets of each kind beside the exact buckets.
    c("mark").under(&[ASAN.with(&["100000"]), TSAN.with(&["20000"]), MEMCHECK.with(&["20000"])]),
    c("ladder").under(&[ASAN, MEMCHECK]),
    c("shaper").under(&[ASAN, MEMCHECK]),
    cxx("cpp_chain17", "cpp_chain.cpp", "-std=c++17").under(&[MEMCHECK]),
    cxx("cpp_chain20", "cpp_chain.cpp", "-std=c++20").under(&[ASAN]),
    cxx("cpp_shaper17", "cpp_shaper.cpp", "-std=c++17").under(&[MEMCHECK]),
    cxx("cpp_shaper20", "cpp_shaper.cpp", "-std=c++20").under(&[ASAN]),
    cxx("cpp17", "cpp.cpp", "-std=c++17").under(&[MEMCHECK]),
    cxx("cpp20", "cpp.cpp", "-std=c++20").under(&[ASAN]),
    cxx("cpp_tables17", "cpp_tables.cpp", "-std=c++17").under(&[MEMCHECK]),
    cxx("cpp_tables20", "cpp_tables.cpp", "-std=c++20").under(&[ASAN]),
    cxx("cpp_meters17", "cpp_meters.cpp", "-std=c++17").under(&[MEMCHECK]),
    cxx("cpp_meters20", "cpp_meters.cpp", "-std=c++20").under(&[ASAN]),
    c("archives").linked(Link::BesideRust),
    Program { name: "shared", ..c("semantics") }.linked(Link::Shared),
];

/// Programs of other languages, which load the shared library: name, and the command before the library's path.
pub const FOREIGN: &[(&str, [&str; 2])] =
    &[("foreign", ["python3", "ffi-tests/foreign.py"]), ("luajit", ["luajit", "ffi-tests/foreign.lua"])];

/// A program and how it is built and run.
#[derive(Clone, Copy)]
pub struct Program {
    /// Its name in the claims.
    pub name: &'static str,
    /// Its source in ffi-tests.
    pub source: &'static str,
    /// Its language.
    pub language: Language,
    /// What it is linked with.
    pub link: Link,
    /// Its arguments.
    pub arguments: &'static [&'static str],
    /// The tools it runs under, beside the plain run.
    pub under: &'static [Under],
}

/// What a program is written in.
#[derive(Clone, Copy)]
pub enum Language {
    /// C11.
    C,
    /// C++ of this standard.
    Cxx(&'static str),
}

/// What a program is linked with.
#[derive(Clone, Copy)]
pub enum Link {
    /// The archive.
    Archive,
    /// The shared library.
    Shared,
    /// With a second Rust archive, which has std, a panic handler and an allocator of its own.
    BesideRust,
    /// With DPDK's meters, where DPDK is installed.
    Dpdk,
}

/// A further run of a program.
#[derive(Clone, Copy)]
pub struct Under {
    /// The tool.
    pub tool: &'static Tool,
    /// Instead of the usual arguments, where the tool is slow.
    pub arguments: Option<&'static [&'static str]>,
}

/// A sanitizer, or valgrind.
pub struct Tool {
    /// Its name in the claims.
    pub name: &'static str,
    /// Flags of the compiler.
    pub flags: &'static [&'static str],
    /// What runs the program.
    pub runner: &'static [&'static str],
    /// How to get it.
    pub get: &'static str,
}

/// No tool.
pub const PLAIN: Under = plain(&Tool { name: "", flags: &[], runner: &[], get: "" });
/// Address and undefined behaviour sanitizers.
pub const ASAN: Under = plain(&Tool {
    name: "asan",
    flags: &["-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
    runner: &[],
    get: "gcc: apt-get install libasan8 libubsan1; clang: libclang-rt-dev",
});
/// Thread sanitizer.
pub const TSAN: Under = plain(&Tool {
    name: "tsan",
    flags: &["-O1", "-fsanitize=thread"],
    runner: &[],
    get: "gcc: apt-get install libtsan2; clang: libclang-rt-dev",
});
/// Valgrind.
pub const MEMCHECK: Under = plain(&Tool {
    name: "memcheck",
    flags: &[],
    runner: &[
        "valgrind",
        "-q",
        "--error-exitcode=99",
        "--leak-check=full",
        "--errors-for-leak-kinds=definite",
    ],
    get: "",
});

/// An x86-64 processor that has nothing beside SSE2: no AES, no AVX.
pub const SSE2: Under = plain(&Tool {
    name: "sse2",
    flags: &[],
    runner: &["qemu-x86_64-static", "-cpu", "qemu64"],
    get: "on an x86-64 machine: apt-get install qemu-user-static",
});

const fn plain(tool: &'static Tool) -> Under {
    Under { tool, arguments: None }
}

const fn c(name: &'static str) -> Program {
    Program { name, source: name, language: Language::C, link: Link::Archive, arguments: &[], under: &[] }
}

const fn cxx(name: &'static str, source: &'static str, standard: &'static str) -> Program {
    Program { source, language: Language::Cxx(standard), ..c(name) }
}

impl Under {
    const fn with(self, arguments: &'static [&'static str]) -> Self {
        Self { arguments: Some(arguments), ..self }
    }
}

impl Program {
    const fn with(self, arguments: &'static [&'static str]) -> Self {
        Self { arguments, ..self }
    }

    const fn under(self, under: &'static [Under]) -> Self {
        Self { under, ..self }
    }

    const fn linked(self, link: Link) -> Self {
        Self { link, ..self }
    }
}

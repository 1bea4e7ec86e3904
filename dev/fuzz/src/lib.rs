//! Fuzz targets of tatcell: each is a plain function of an input, and panics if something is wrong.
//!
//! | who runs them | how |
//! |---|---|
//! | `make -C dev test-fuzz` | `tests/replay.rs`: the corpus, and inputs made from it and from random bytes |
//! | `make -C dev fuzz TARGET=... SECONDS=...` | libFuzzer over `src/main.rs`, with the address sanitizer |
//!
//! [`data::Data`] reads an input. A corpus is one file per target, with one input per line in hexadecimal digits.
#![cfg_attr(test, allow(dead_code))]

pub mod abi;
pub mod data;
mod guarded;
mod targets;

// What the tests stand on: the oracles and the forms. Their own tests are those of tests/.
#[path = "../../../tests/common/mod.rs"]
mod common;
#[allow(dead_code, unused_imports)]
#[path = "../../../tests/cell/counted/decay.rs"]
mod decay;
#[allow(dead_code, unused_imports)]
#[path = "../../../tests/cell/counted/fixed_window.rs"]
mod fixed_window;
#[allow(dead_code, unused_imports)]
#[path = "../../../tests/cell/counted/frame.rs"]
mod frame;
#[path = "../../../tests/cell/meters/oracle.rs"]
mod meter_oracle;
#[allow(dead_code, unused_imports)]
#[path = "../../../tests/cell/counted/quota_linear.rs"]
mod quota_linear;
#[allow(dead_code, unused_imports)]
#[path = "../../../tests/cell/counted/sliding_counter.rs"]
mod sliding_counter;
#[allow(dead_code, unused_imports)]
#[path = "../../../tests/cell/counted/sliding_log.rs"]
mod sliding_log;

use data_encoding::HEXLOWER;

/// Something that is given inputs.
pub struct Target {
    /// Its name, and that of its corpus.
    pub name: &'static str,
    /// What holds for every input.
    pub claim: &'static str,
    /// Takes one input; panics where the claim does not hold.
    pub run: fn(&[u8]),
}

/// Every target.
pub const TARGETS: &[Target] = &[
    Target {
        name: "decisions",
        claim: "every form of GCRA answers as the exact bucket, whatever is asked in which order",
        run: targets::decisions::run,
    },
    Target {
        name: "counting",
        claim: "every other algorithm answers as its definition",
        run: targets::counting::run,
    },
    Target {
        name: "meters",
        claim: "no packet is marked better than by the exact buckets of its RFC",
        run: targets::meters::run,
    },
    Target {
        name: "table",
        claim:
            "any word in any slot, and any header: no crash, nothing outside, and denial for a window at most",
        run: targets::table::run,
    },
    Target {
        name: "image",
        claim: "an image of any words is refused or restored; what is restored is never less debt",
        run: targets::image::run,
    },
    Target {
        name: "arguments",
        claim:
            "any C function with any arguments: nothing else is read or written, and an error changes nothing",
        run: targets::arguments::run,
    },
    Target {
        name: "configuration",
        claim:
            "any limit and any options are refused, or held to: never above the rate, never above the burst",
        run: targets::configuration::run,
    },
    Target {
        name: "addresses",
        claim: "equal addresses have equal keys, other prefixes others; any ladder is refused or in order",
        run: targets::addresses::run,
    },
    Target {
        name: "http",
        claim: "any names and numbers are refused or make fields that parse and say the same",
        run: targets::http::run,
    },
];

/// The target of this name.
pub fn find(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|t| t.name == name)
}

/// Its corpus: `corpus/NAME.hex`.
pub fn corpus(target: &Target) -> Vec<Vec<u8>> {
    let path = format!("{}/corpus/{}.hex", env!("CARGO_MANIFEST_DIR"), target.name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let bytes =
        |line: &str| HEXLOWER.decode(line.as_bytes()).unwrap_or_else(|e| panic!("{path}: {line}: {e}"));
    text.lines().map(bytes).collect()
}

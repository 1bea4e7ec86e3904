//! Tests of the command: its readers, its answers against oracles, the program itself, and the page that shows it.

mod accuracy;
mod bpf;
mod chains;
mod check;
mod check_nginx;
mod emit;
mod inputs;
mod logs;
mod memory;
mod monitoring;
mod oracle;
mod page;
mod program;
mod progress;
mod readers;
mod replay;
mod replay_grpc;
mod report;
mod samples;
mod serve;
mod show;
mod size;
mod sparse;
mod truth;

use std::path::PathBuf;

/// A folder of one test, empty.
fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// Numbers that look random, the same in each run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

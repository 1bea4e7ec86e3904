//! The counts of a long run for each form and kind of call: printed for the log, and each at least a minimum.

use crate::common::seed_from_environment;

/// Named counts, each with the least that a whole run has to reach.
pub struct Tally<const N: usize> {
    pub names: [&'static str; N],
    pub least: [u64; N],
}

impl<const N: usize> Tally<N> {
    /// Prints the counts and holds them to their least; of one seed that is run again nothing is expected. What is not
    /// a decision has a name that ends in `*`, and is in no sum. Returns how many decisions there were.
    pub fn hold(&self, title: &str, counts: [u64; N]) -> u64 {
        let mut sum = 0;
        for (name, count) in self.names.iter().zip(counts) {
            println!("{title}, {name}: {count}");
            sum += if name.ends_with('*') { 0 } else { count };
        }
        println!("{title}: {sum} decisions compared, 0 differences (*: beside them)");
        if seed_from_environment().is_none() {
            for ((name, count), least) in self.names.iter().zip(counts).zip(self.least) {
                assert!(count >= least, "{title}, {name}: {count}, not {least}");
            }
        }
        sum
    }
}

/// Runs this many blocks on all processors, or the one that TATCELL_SEED names; sums what they return.
pub fn blocks<const N: usize>(count: u64, block: impl Fn(u64) -> [u64; N] + Sync) -> [u64; N] {
    let add = |a: [u64; N], b: [u64; N]| core::array::from_fn(|i| a[i] + b[i]);
    if let Some(seed) = seed_from_environment() {
        return block(seed);
    }
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    std::thread::scope(|scope| {
        let run = |thread| (thread..count).step_by(threads as usize).map(&block).fold([0; N], add);
        let all: Vec<_> = (0..threads).map(|thread| scope.spawn(move || run(thread))).collect();
        all.into_iter().map(|thread| thread.join().expect("its panic says why")).fold([0; N], add)
    })
}

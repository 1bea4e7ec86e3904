//! Random numbers that spread the calls of nodes over time (SplitMix64), and the seeds that nobody may guess.

use tatcell::host::{random_seed, HostError};

/// A sequence of numbers.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// Starts another sequence.
    pub(crate) fn split(&mut self) -> Random {
        Random(self.below(u64::MAX))
    }

    /// Returns the next number below `n`.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(z ^ (z >> 31)) * u128::from(n)) >> 64) as u64
    }
}

/// Where a node's secrets come from.
pub(crate) enum Seeds {
    System,
    /// A sequence that can be repeated: for a node that is simulated.
    #[cfg_attr(not(feature = "sim"), allow(dead_code))]
    Given(Random),
}

impl Seeds {
    pub(crate) fn draw(&mut self) -> Result<[u8; 16], HostError> {
        match self {
            Seeds::System => random_seed(),
            Seeds::Given(random) => Ok(std::array::from_fn(|_| random.below(256) as u8)),
        }
    }

    /// Starts another source of the same kind.
    pub(crate) fn split(&mut self) -> Seeds {
        match self {
            Seeds::System => Seeds::System,
            Seeds::Given(random) => Seeds::Given(random.split()),
        }
    }
}

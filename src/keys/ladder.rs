//! Ladders of prefixes: which prefixes of an address have a limit, and how many times the limit of one address that is.
//!
//! ```text
//!           longest first                                                        multiplier
//!  IPv4     /32 -----> /24 -----> /20 -----> /18                                 1  32  256  768
//!  IPv6     /128 ----> /64 -----> /56 -----> /48 -----> /32                      1   2    3    4  64
//! ```
//!
//! The default lengths and multipliers are those of Knot DNS's rate limiting module: a network gets more than one host
//! and less than all of its addresses. An IPv6 host can send from a /64 of addresses, so the IPv6 multipliers are
//! small.
#![forbid(unsafe_code)]

use super::prefixes::Cut;

/// The most rungs of a family: as many as a chain has links.
pub(crate) const MAX_RUNGS: usize = 8;

/// Describes one prefix length of a ladder.
///
/// ```
/// use tatcell::{Ladder, Rung};
/// assert_eq!(Ladder::DEFAULT.rungs(true)[1], Rung { bits: 24, multiplier: 32 });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rung {
    /// The length of the prefix: 0 (all addresses of the family) to 32 or 128 bits.
    pub bits: u8,
    /// The limit of all addresses of such a prefix together, as a multiple of the limit of one address.
    pub multiplier: u32,
}

/// Says why a ladder cannot be made.
///
/// ```
/// use tatcell::{Ladder, LadderError, Rung};
/// let rung = |bits| Rung { bits, multiplier: 1 };
/// assert_eq!(Ladder::new(&[rung(33)], &[rung(64)]), Err(LadderError::BadLength));
/// assert_eq!(Ladder::new(&[rung(32)], &[]), Err(LadderError::BadCount));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LadderError {
    /// A family has more than 8 rungs, or none: then its addresses would have no limit.
    BadCount,
    /// A prefix is longer than an address.
    BadLength,
    /// A multiplier is 0.
    BadMultiplier,
    /// A length does not fall from rung to rung, or a multiplier falls: then the longer prefix would never decide.
    BadOrder,
}

impl core::fmt::Display for LadderError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            LadderError::BadCount => "each family needs 1 to 8 rungs",
            LadderError::BadLength => "a prefix is longer than an address (32 bits, or 128)",
            LadderError::BadMultiplier => "a multiplier is 0: give at least 1",
            LadderError::BadOrder => "prefix lengths must fall from rung to rung, multipliers must not",
        })
    }
}

impl core::error::Error for LadderError {}

/// Lists the prefix lengths that have limits, for both families, the longest first.
///
/// ```
/// use tatcell::{Ladder, LadderError, Rung};
/// let rung = |bits, multiplier| Rung { bits, multiplier };
/// let ladder = Ladder::new(&[rung(32, 1), rung(24, 16)], &[rung(64, 1), rung(48, 16)])?;
/// assert_eq!(ladder.rungs(true).len(), 2);
/// assert_eq!(Ladder::new(&[rung(24, 16), rung(32, 1)], &[rung(64, 1)]), Err(LadderError::BadOrder));
/// # Ok::<(), LadderError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ladder {
    v4: Rungs,
    v6: Rungs,
}

/// The rungs of one family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rungs {
    each: [Rung; MAX_RUNGS],
    cuts: [Cut; MAX_RUNGS],
    count: u8,
}

const fn rung(bits: u8, multiplier: u32) -> Rung {
    Rung { bits, multiplier }
}

const NONE: Rung = rung(0, 0);

impl Ladder {
    /// The default ladder: IPv4 /32 x1, /24 x32, /20 x256, /18 x768; IPv6 /128 x1, /64 x2, /56 x3, /48 x4, /32 x64.
    pub const DEFAULT: Ladder = {
        let v4 = [rung(32, 1), rung(24, 32), rung(20, 256), rung(18, 768), NONE, NONE, NONE, NONE];
        let v6 = [rung(128, 1), rung(64, 2), rung(56, 3), rung(48, 4), rung(32, 64), NONE, NONE, NONE];
        Ladder { v4: Rungs::of(v4, 4, true), v6: Rungs::of(v6, 5, false) }
    };

    /// Makes a ladder of 1 to 8 rungs for each family.
    ///
    /// # Errors
    /// Any [`LadderError`].
    pub fn new(v4: &[Rung], v6: &[Rung]) -> Result<Ladder, LadderError> {
        Ok(Ladder { v4: Rungs::new(v4, true)?, v6: Rungs::new(v6, false)? })
    }

    /// Returns the rungs of IPv4 or of IPv6, the longest prefix first.
    pub fn rungs(&self, v4: bool) -> &[Rung] {
        let rungs = if v4 { &self.v4 } else { &self.v6 };
        rungs.each.get(..rungs.count as usize).unwrap_or_else(|| impossible!(&[]))
    }

    /// Returns the cuts of those rungs.
    #[inline(always)]
    pub(crate) fn cuts(&self, v4: bool) -> &[Cut] {
        let rungs = if v4 { &self.v4 } else { &self.v6 };
        rungs.cuts.get(..rungs.count as usize).unwrap_or_else(|| impossible!(&[]))
    }

    /// Returns the largest multiplier of both families.
    pub(crate) fn widest(&self) -> u32 {
        let both = self.rungs(true).iter().chain(self.rungs(false));
        both.fold(1, |widest, rung| widest.max(rung.multiplier))
    }
}

impl Default for Ladder {
    fn default() -> Ladder {
        Ladder::DEFAULT
    }
}

impl Rungs {
    const fn of(each: [Rung; MAX_RUNGS], count: u8, v4: bool) -> Rungs {
        let (mut cuts, mut i) = ([Cut::new(v4, 0); MAX_RUNGS], 0);
        while i < MAX_RUNGS {
            cuts[i] = Cut::new(v4, each[i].bits);
            i += 1;
        }
        Rungs { each, cuts, count }
    }

    fn new(rungs: &[Rung], v4: bool) -> Result<Rungs, LadderError> {
        let most = if v4 { 32 } else { 128 };
        if rungs.is_empty() || rungs.len() > MAX_RUNGS {
            return Err(LadderError::BadCount);
        }
        let (mut each, mut last) = ([NONE; MAX_RUNGS], None);
        for (to, rung) in each.iter_mut().zip(rungs) {
            if rung.bits > most {
                return Err(LadderError::BadLength);
            }
            if rung.multiplier == 0 {
                return Err(LadderError::BadMultiplier);
            }
            if last.is_some_and(|last: Rung| rung.bits >= last.bits || rung.multiplier < last.multiplier) {
                return Err(LadderError::BadOrder);
            }
            *to = *rung;
            last = Some(*rung);
        }
        Ok(Rungs::of(each, rungs.len() as u8, v4))
    }
}

#[cfg(all(test, not(tatcell_loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_the_ladder_of_the_documents() {
        let ladder = Ladder::default();
        let rungs = |of: &[(u8, u32)]| {
            of.iter().map(|(bits, times)| rung(*bits, *times)).collect::<std::vec::Vec<_>>()
        };
        assert_eq!(ladder.rungs(true), rungs(&[(32, 1), (24, 32), (20, 256), (18, 768)]));
        assert_eq!(ladder.rungs(false), rungs(&[(128, 1), (64, 2), (56, 3), (48, 4), (32, 64)]));
        assert_eq!(ladder.widest(), 768);
    }
}

//! The answer of a three-colour meter: the colour of a packet, and the verdict that goes with it.

use super::verdict::Verdict;

/// Says how a meter marks a packet, and how a packet was marked before it came.
///
/// A colour-blind meter treats every packet as green. A colour-aware meter starts from the colour that the packet came
/// with, and never improves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Colour {
    /// Within the committed rate and burst.
    Green = 0,
    /// Above them, within the second rate and burst.
    Yellow = 1,
    /// Above both.
    Red = 2,
}

/// Answers how a meter marked one packet.
#[must_use = "a meter whose colour is ignored marks nothing"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marking {
    /// `Conforming` for green and yellow, `NonConforming` for red. `Never` for red if the cost is above every burst
    /// that the packet's first colour may use. `Contended` if no colour was reached; then nothing was charged.
    pub verdict: Verdict,
    /// The colour; red if `Contended`.
    pub colour: Colour,
}

impl Marking {
    /// The answer without a colour: other threads won every attempt.
    pub(crate) const CONTENDED: Marking = Marking { verdict: Verdict::Contended, colour: Colour::Red };

    /// Makes the answer of a colour.
    #[inline(always)]
    pub(crate) const fn of(colour: Colour) -> Marking {
        let verdict = match colour {
            Colour::Red => Verdict::NonConforming,
            _ => Verdict::Conforming,
        };
        Marking { verdict, colour }
    }

    /// Returns whether the packet is green or yellow.
    #[inline]
    pub const fn passes(self) -> bool {
        self.verdict.passes()
    }
}

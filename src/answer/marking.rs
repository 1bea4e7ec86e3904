//! What a three-colour meter answers: the colour of a packet, and the verdict that goes with it.

use super::verdict::Verdict;

/// Says how a meter marks a packet, and how a packet was marked before it came.
///
/// A meter that is colour-blind takes every packet as green; one that is colour-aware takes it as it came, and never
/// makes it better.
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
    /// `Conforming` for green and yellow, `NonConforming` for red, `Never` for red because the cost is above every
    /// burst that the colour it came with may use, `Contended` where no colour was reached and nothing was charged.
    pub verdict: Verdict,
    /// The colour; red with `Contended`.
    pub colour: Colour,
}

impl Marking {
    /// No colour: other threads won every attempt.
    pub(crate) const CONTENDED: Marking = Marking { verdict: Verdict::Contended, colour: Colour::Red };

    /// The answer that a colour is.
    #[inline(always)]
    pub(crate) const fn of(colour: Colour) -> Marking {
        let verdict = match colour {
            Colour::Red => Verdict::NonConforming,
            _ => Verdict::Conforming,
        };
        Marking { verdict, colour }
    }

    /// Says whether the packet is green or yellow.
    #[inline]
    pub const fn passes(self) -> bool {
        self.verdict.passes()
    }
}

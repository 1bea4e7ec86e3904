//! The answer of a three-colour meter: the colour of a packet, and the verdict that goes with it.

use super::verdict::Verdict;

/// Says how a meter marks a packet, and how a packet was marked before it came.
///
/// A colour-blind meter treats every packet as green. A colour-aware meter starts from the colour that the packet came
/// with, and never improves it.
///
/// ```
/// use tatcell::Colour;
/// assert!(Colour::Green < Colour::Yellow && Colour::Yellow < Colour::Red); // the worst of several is their max
/// assert_eq!([Colour::Green, Colour::Red, Colour::Yellow].into_iter().max(), Some(Colour::Red));
/// ```
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
///
/// ```
/// use tatcell::{Colour, Meter, MeterSpec, Verdict};
/// let (limit, meter) = (MeterSpec::rfc2697(1_000, 100, 50, 1_000).build()?, Meter::new()); // milliseconds
/// let marking = meter.check(&limit, 0, 40, Colour::Yellow); // colour-aware: yellow stays yellow
/// assert_eq!((marking.colour, marking.passes()), (Colour::Yellow, true));
/// assert_eq!(meter.check(&limit, 0, 101, Colour::Green).verdict, Verdict::Never); // above both bursts
/// # Ok::<(), tatcell::MeterError>(())
/// ```
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

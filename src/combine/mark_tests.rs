//! Which limit is asked for which packet, and what its verdict makes of the colour, in every case.

use super::*;
use crate::impossible::tests::answered;
use crate::limit::LimitSpec;
use crate::table::{Line, TableOptions};
use Verdict::{Conforming, Contended, Never, NonConforming};

const VERDICTS: [Verdict; 4] = [Conforming, NonConforming, Never, Contended];
const COLOURS: [Colour; 3] = [Colour::Green, Colour::Yellow, Colour::Red];

/// Limits with these verdicts, which record the order in which they were asked.
struct Script {
    committed: Verdict,
    second: Verdict,
    asked: std::vec::Vec<Side>,
}

impl Limits for Script {
    fn ask(&mut self, side: Side) -> Verdict {
        self.asked.push(side);
        match side {
            Side::Committed => self.committed,
            Side::Second => self.second,
        }
    }
}

/// Returns the colour, and which limits were asked, in order.
fn ask(kind: Kind, pre: Colour, committed: Verdict, second: Verdict) -> (Marking, std::vec::Vec<Side>) {
    let mut script = Script { committed, second, asked: std::vec::Vec::new() };
    (colour_of(kind, pre, &mut script), script.asked)
}

fn each(mut case: impl FnMut(Colour, Verdict, Verdict)) {
    for pre in COLOURS {
        for committed in VERDICTS {
            VERDICTS.into_iter().for_each(|second| case(pre, committed, second));
        }
    }
}

#[test]
fn rfc_2698_asks_the_committed_limit_for_what_the_peak_let_pass() {
    each(|pre, committed, peak| {
        let (marked, asked) = ask(Kind::Rfc2698, pre, committed, peak);
        let wanted: &[Side] = match (pre, peak) {
            (Colour::Red, _) => &[],
            (Colour::Green, Conforming) => &[Side::Second, Side::Committed],
            _ => &[Side::Second],
        };
        assert_eq!(asked, wanted);
        let wanted = match (pre, committed, peak) {
            (Colour::Red, ..) => Marking::of(Colour::Red),
            // Whatever the committed limit says, contended too: the packet has paid the peak limit.
            (Colour::Green, Conforming, Conforming) => Marking::of(Colour::Green),
            (_, _, Conforming) => Marking::of(Colour::Yellow),
            (.., verdict) => Marking { verdict, colour: Colour::Red },
        };
        assert_eq!(marked, wanted, "{pre:?} {committed:?} {peak:?}");
    });
}

#[test]
fn rfc_4115_asks_the_excess_limit_for_what_the_committed_refused() {
    each(|pre, committed, excess| {
        let (marked, asked) = ask(Kind::Rfc4115, pre, committed, excess);
        let wanted: &[Side] = match (pre, committed) {
            (Colour::Red, _) => &[],
            (Colour::Yellow, _) => &[Side::Second],
            (_, NonConforming | Never) => &[Side::Committed, Side::Second],
            _ => &[Side::Committed],
        };
        assert_eq!(asked, wanted);
        let wanted = match (pre, committed, excess) {
            (Colour::Red, ..) => Marking::of(Colour::Red),
            (Colour::Green, Conforming, _) => Marking::of(Colour::Green),
            (Colour::Green, Contended, _) => Marking::CONTENDED,
            (_, _, Conforming) => Marking::of(Colour::Yellow),
            // `Never` only if neither burst is large enough.
            (Colour::Green, NonConforming, Never) => Marking::of(Colour::Red),
            (.., verdict) => Marking { verdict, colour: Colour::Red },
        };
        assert_eq!(marked, wanted, "{pre:?} {committed:?} {excess:?}");
    });
}

/// The call refuses lists that are too short. Behind that check a packet beyond the end of one is red, and free.
#[test]
fn a_packet_without_cost_or_colour_is_red_and_charges_nobody() -> Result<(), TableError> {
    let memory = [const { Line::EMPTY }; 4];
    let spec = LimitSpec::new(1, 1_000, 8);
    let table = Table::init(&memory, &TableOptions::new(spec).caller_hash())?;
    let limit = table.limit(&spec)?;
    let mark = &Mark::rfc4115(&limit, &limit);
    let burst = MarkBurst { mark, now: 0, hashes: &[1, 2], costs: None, pre: None };
    for burst in
        [MarkBurst { costs: Some(&[1]), ..burst }, MarkBurst { pre: Some(&[Colour::Green]), ..burst }]
    {
        let mut colours = [Colour::Yellow; 2];
        let made = answered(|| burst.mark_all(&table, &mut colours, None, &[], false))?;
        assert_eq!((made.pass, colours), (1, [Colour::Green, Colour::Red]));
        assert_eq!(table.peek(&limit, 0, 2, 1)?.remaining, 8);
    }
    Ok(())
}

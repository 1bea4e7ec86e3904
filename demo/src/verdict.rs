//! The verdict: fixed thresholds, one line each, PASS or FAIL with the figure.

use crate::calibrate::Calibration;
use crate::oracle::Audit;
use crate::schedule::{Class, ABUSERS, BIN_US, END_US, SETTLE_US, SWITCH_US};
use crate::stats::Stats;
use std::collections::HashMap;
use std::ops::Range;

/// Share of polite requests that must be answered with the limiter on.
const ANSWERED_ON: f64 = 0.995;
/// With the limiter off the share must be lower by at least this, or the attack did not hurt.
const ANSWERED_LESS: f64 = 0.05;
/// The p99 with the limiter on, as a share of the p99 without.
const P99_SHARE: f64 = 0.2;
/// Resident memory may differ by this between a second after the switch and the end: four pages.
const GROWTH_KIB: u64 = 16;

/// What the gate looks like from outside.
#[derive(Default)]
pub struct Watched {
    /// Resident memory a second after the switch, and at the end.
    pub resident_kib: (u64, u64),
    /// Time with the limiter on in which the gate wanted a core and had none.
    pub waited_ns: u64,
}

/// Everything one run has shown.
pub struct Outcome {
    pub calibration: Calibration,
    pub stats: Stats,
    pub audit: Audit,
    pub watched: Watched,
    /// What the gate printed at its end.
    pub figures: HashMap<String, f64>,
}

/// One line of the verdict.
pub struct Line {
    pub pass: bool,
    pub text: String,
}

const fn bin(at_us: u64) -> usize {
    (at_us / BIN_US) as usize
}

/// Bins that count, of the phase without and the phase with the limiter: all but each one's first second.
pub const OFF_BINS: Range<usize> = bin(SETTLE_US)..bin(SWITCH_US);
pub const ON_BINS: Range<usize> = bin(SWITCH_US + SETTLE_US)..bin(END_US);

/// Bins by which the phase without the limiter shows its overload: the queue is full, and the answers have come.
pub const OVERLOAD_BINS: Range<usize> = bin(SWITCH_US - 4_000_000)..bin(SWITCH_US - 1_000_000);

/// Writes a number in groups of three digits.
pub fn grouped(value: u64) -> String {
    let digits = value.to_string().into_bytes();
    let groups: Vec<_> = digits.rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(" ")
}

fn share((sent, answered): (u64, u64)) -> f64 {
    answered as f64 / sent.max(1) as f64
}

/// Judges a run.
pub fn judge(outcome: &Outcome) -> Vec<Line> {
    let Outcome { stats, audit, watched, .. } = outcome;
    let mut lines = Vec::new();
    let mut line = |pass: bool, text: String| lines.push(Line { pass, text });

    let (on, off) = (share(stats.share(Class::Polite, ON_BINS)), share(stats.share(Class::Polite, OFF_BINS)));
    line(
        on >= ANSWERED_ON && off <= on - ANSWERED_LESS,
        format!(
            "polite sources: {:.2} % answered with the limiter on (at least {} %), {:.1} % with it off",
            on * 100.0,
            ANSWERED_ON * 100.0,
            off * 100.0
        ),
    );

    let p99 = |bins| stats.polite_latency(bins).quantile(0.99) as f64 / 1e6;
    let (on, off) = (p99(ON_BINS), p99(OFF_BINS));
    line(
        on > 0.0 && on <= off * P99_SHARE,
        format!(
            "reply p99 of polite sources: {on:.2} ms on, {off:.1} ms off: {:.1} % of it (at most {:.0} %)",
            on / off.max(1e-9) * 100.0,
            P99_SHARE * 100.0
        ),
    );

    let (allowed, most) = (audit.allowance(), *stats.abuser_limited.iter().max().expect("abusers"));
    let within = stats.abuser_limited.iter().filter(|&&n| n <= allowed).count();
    let seconds = (audit.last_us - audit.first_us) as f64 / 1e6;
    line(
        within == ABUSERS as usize && most > 0,
        format!(
            "abusers: {within} of {ABUSERS} answered at most rate x time + burst; the most had {most} \
             of {allowed} in {seconds:.1} s"
        ),
    );

    let exact = Class::Exact as usize;
    let (sent, answered) = stats.share(Class::Exact, bin(SWITCH_US)..bin(END_US));
    line(
        audit.refused[exact] == 0 && audit.admitted[exact] > 0,
        format!(
            "source at exactly the limit: {} refused of {sent} sent ({answered} answered)",
            audit.refused[exact]
        ),
    );

    let answered: u64 = stats.limited.iter().sum();
    let admitted: u64 = audit.admitted.iter().sum();
    let complete = outcome.figures.get("decisions").copied() == Some(audit.decisions as f64);
    line(
        audit.over_admitted == 0
            && audit.wrongly_refused == 0
            && audit.strangers == 0
            && complete
            && answered <= admitted,
        format!(
            "oracle: {} over-admitted and {} wrongly refused of {} decisions about {} sources{}",
            audit.over_admitted,
            audit.wrongly_refused,
            grouped(audit.decisions),
            grouped(audit.sources() as u64),
            if complete { "" } else { " (the log is not complete)" }
        ),
    );

    let (start, end) = watched.resident_kib;
    line(
        start > 0 && end <= start + GROWTH_KIB,
        format!(
            "memory of the gate: {start} KiB a second after the switch, {end} KiB at the end \
             (growth at most {GROWTH_KIB})"
        ),
    );
    lines
}

/// Returns the line of figures that no threshold judges.
pub fn speed(outcome: &Outcome) -> String {
    let seconds = (outcome.audit.last_us - outcome.audit.first_us) as f64 / 1e6;
    let bursts = outcome.figures.get("bursts").copied().unwrap_or(0.0);
    format!(
        "{} decisions per second, {:.1} ns per decision, {:.1} decisions per burst call",
        grouped((outcome.audit.decisions as f64 / seconds.max(1e-9)) as u64),
        outcome.figures.get("ns_per_decision").copied().unwrap_or(0.0),
        outcome.audit.decisions as f64 / bursts.max(1.0),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{address_of, POLITE};
    use crate::stats::Answer;

    const EXACT_SOURCE: u32 = POLITE + ABUSERS;

    /// A run in which everything is as it should be.
    fn good() -> Outcome {
        let mut stats = Stats::new(0, bin(END_US));
        let mut audit = Audit::default();
        let mut request = |now_us: u64, source: u32, answered: bool, took: u64| {
            let (now, limited) = (now_us * 1_000, now_us >= SWITCH_US);
            stats.on_sent(source, now);
            if answered {
                stats.on_answer(Answer { source, sent_ns: now, limited }, now + took);
            }
        };
        for i in 0..1_000 {
            request(SWITCH_US - 1_000_000, i, i % 3 != 0, 200_000_000);
            request(END_US - 1_000_000, i, true, 1_000_000);
            audit.decision(18_000_000, address_of(i), true);
        }
        for source in POLITE..=EXACT_SOURCE {
            request(END_US - 1_000_000, source, true, 1_000_000);
            audit.decision(18_000_000, address_of(source), true);
        }
        let watched = Watched { resident_kib: (1_000, 1_000), waited_ns: 0 };
        let figures = HashMap::from([("decisions".to_string(), audit.decisions as f64)]);
        let calibration = Calibration {
            scale: 1.0,
            reason: None,
            rounds: 1,
            us_per_answer: 1.0,
            peak_per_sec: 1.0,
            answers_per_sec: 1.0,
            queue: 1.0,
            core_share: 1.0,
            greeting: String::new(),
        };
        Outcome { calibration, stats, audit, watched, figures }
    }

    fn failed(outcome: &Outcome) -> Vec<usize> {
        judge(outcome).iter().enumerate().filter(|(_, l)| !l.pass).map(|(i, _)| i).collect()
    }

    #[test]
    fn good_run_passes_every_line() {
        assert_eq!(failed(&good()), [] as [usize; 0]);
    }

    #[test]
    fn attack_that_does_not_hurt_fails_the_first_line() {
        let mut run = good();
        run.stats.answered[0] = run.stats.sent[0].clone();
        assert_eq!(failed(&run), [0]);
    }

    #[test]
    fn lost_polite_answers_fail_the_first_line() {
        let mut run = good();
        run.stats.answered[0][ON_BINS.end - 2] -= 6;
        assert_eq!(failed(&run), [0]);
    }

    #[test]
    fn slow_answers_fail_the_second_line() {
        let mut run = good();
        (0..20).for_each(|_| run.stats.latency[ON_BINS.start].record(50_000_000));
        assert_eq!(failed(&run), [1]);
    }

    #[test]
    fn one_answer_too_many_to_one_abuser_fails_the_third_line() {
        let mut run = good();
        run.stats.abuser_limited[7] = run.audit.allowance();
        assert_eq!(failed(&run), [] as [usize; 0]);
        run.stats.abuser_limited[7] += 1;
        assert_eq!(failed(&run), [2]);
    }

    #[test]
    fn each_wrong_decision_fails_its_line() {
        let mut run = good();
        run.audit.refused[Class::Exact as usize] = 1;
        assert_eq!(failed(&run), [3]);
        let mut run = good();
        run.audit.over_admitted = 1;
        assert_eq!(failed(&run), [4]);
        let mut run = good();
        run.audit.wrongly_refused = 1;
        assert_eq!(failed(&run), [4]);
        let mut run = good();
        run.figures.insert("decisions".to_string(), 5.0);
        assert_eq!(failed(&run), [4]);
    }

    #[test]
    fn growth_fails_the_last_line() {
        let mut run = good();
        run.watched.resident_kib.1 += GROWTH_KIB;
        assert_eq!(failed(&run), [] as [usize; 0]);
        run.watched.resident_kib.1 += 1;
        assert_eq!(failed(&run), [5]);
    }

    #[test]
    fn numbers_are_grouped_by_three() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1 000", "1 234 567"]);
    }
}

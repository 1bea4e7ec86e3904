//! The verdict: fixed thresholds, one line each, with the figure.
//!
//! The load of the machine can decide three of the lines. A gate that gets no core answers late or not at all, and
//! requests that wait for two seconds come as more than the burst. If one of these lines fails while other programs had
//! the cores, the play is not judged. The other lines are about what the gate decided, and fail on a busy machine as on
//! an idle one: the oracle judges each decision with the very time that the gate made it with.

use crate::calibrate::{Calibration, HELD};
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

/// The machine was busy if gate and sender waited for cores for more than this share of the time with the limiter on:
/// the slowest hundredth of the replies decides the p99, so such waits can decide it. Two idle cores show a quarter
/// of this share.
const MOST_WAIT: f64 = 0.01;
/// The machine was busy if the sender fell behind its schedule by more than this.
const MOST_LAG_US: u64 = 200_000;
/// A gate that gets less than this share of a core while it is calibrated has neighbours.
const MOST_OF_A_CORE: f64 = 0.97;

/// Time that other programs took while the limiter was on.
#[derive(Clone, Copy, Default)]
pub struct Waits {
    /// The gate wanted a core and had none.
    pub gate_ns: u64,
    /// The threads of this program wanted a core and had none.
    pub sender_ns: u64,
    /// The host of this virtual machine had cores that the machine wanted.
    pub stolen_ns: u64,
}

impl Waits {
    fn seconds(self) -> f64 {
        (self.gate_ns + self.sender_ns + self.stolen_ns) as f64 / 1e9
    }
}

/// What gate and machine look like from outside.
#[derive(Default)]
pub struct Watched {
    /// Resident memory a second after the switch, and at the end.
    pub resident_kib: (u64, u64),
    pub waits: Waits,
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
    /// Whether the load of the machine can make it fail.
    pub by_load: bool,
    pub text: String,
}

/// What a play has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Pass,
    Fail,
    /// Only lines fail that the load of the machine can decide, and the machine was busy.
    NotJudged,
}

/// The verdict of these lines about a play on a machine that was busy or not.
pub fn verdict(lines: &[Line], busy: bool) -> Verdict {
    let failed = || lines.iter().filter(|line| !line.pass);
    match failed().count() {
        0 => Verdict::Pass,
        _ if busy && failed().all(|line| line.by_load) => Verdict::NotJudged,
        _ => Verdict::Fail,
    }
}

/// Why the load of the machine may have decided a play, if it may.
pub fn busy(outcome: &Outcome) -> Option<String> {
    let (waited, on) = (outcome.watched.waits.seconds(), (END_US - SWITCH_US) as f64 / 1e6);
    let (lag_us, core_share) = (outcome.stats.max_lag_us, outcome.calibration.core_share);
    let overload = outcome.stats.overload(OVERLOAD_BINS);
    if waited > on * MOST_WAIT {
        Some(format!("in {on:.0} s gate and sender waited {waited:.2} s for cores that others had"))
    } else if lag_us > MOST_LAG_US {
        Some(format!("the sender fell behind by {} ms", lag_us / 1_000))
    } else if overload < *HELD.start() && core_share < MOST_OF_A_CORE {
        Some(format!(
            "while it was calibrated the gate had {:.0} % of a core, and more later",
            core_share * 100.0
        ))
    } else {
        None
    }
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
    let mut line = |pass: bool, by_load: bool, text: String| lines.push(Line { pass, by_load, text });
    const BY_LOAD: bool = true;
    const BY_DECISIONS: bool = false;

    let (on, off) = (share(stats.share(Class::Polite, ON_BINS)), share(stats.share(Class::Polite, OFF_BINS)));
    line(
        on >= ANSWERED_ON && off <= on - ANSWERED_LESS,
        BY_LOAD,
        format!(
            "polite sources: {:.2} % answered with the limiter on (at least {} %), {:.1} % with it off",
            on * 100.0,
            ANSWERED_ON * 100.0,
            off * 100.0
        ),
    );

    let p99 = |bins| stats.polite_latency(bins).value_at_quantile(0.99) as f64 / 1e6;
    let (on, off) = (p99(ON_BINS), p99(OFF_BINS));
    line(
        on > 0.0 && on <= off * P99_SHARE,
        BY_LOAD,
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
        BY_DECISIONS,
        format!(
            "abusers: {within} of {ABUSERS} answered at most rate x time + burst; the most had {most} \
             of {allowed} in {seconds:.1} s"
        ),
    );

    let exact = Class::Exact as usize;
    let (sent, answered) = stats.share(Class::Exact, bin(SWITCH_US)..bin(END_US));
    line(
        audit.refused[exact] == 0 && audit.admitted[exact] > 0,
        BY_LOAD,
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
        BY_DECISIONS,
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
        BY_DECISIONS,
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
            request(SWITCH_US - 2_000_000, i, i % 3 != 0, 200_000_000);
            request(END_US - 1_000_000, i, true, 1_000_000);
            audit.decision(18_000_000, address_of(i), true);
        }
        for source in POLITE..=EXACT_SOURCE {
            request(END_US - 1_000_000, source, true, 1_000_000);
            audit.decision(18_000_000, address_of(source), true);
        }
        let watched = Watched { resident_kib: (1_000, 1_000), waits: Waits::default() };
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

    /// The verdict about a play, and with it the lines that failed.
    fn judged(outcome: &Outcome) -> (Verdict, Vec<usize>) {
        (verdict(&judge(outcome), busy(outcome).is_some()), failed(outcome))
    }

    /// Makes a machine busy: the gate waits for a second.
    fn load(outcome: &mut Outcome) {
        outcome.watched.waits.gate_ns = 1_000_000_000;
    }

    type Break = fn(&mut Outcome);

    /// The lines that can fail alone: what breaks each, and whether the load of the machine can.
    const BREAKS: [(Break, bool); 9] = [
        (|run| run.stats.answered[0] = run.stats.sent[0].clone(), true),
        (|run| run.stats.answered[0][ON_BINS.end - 2] -= 6, true),
        (|run| (0..20).for_each(|_| run.stats.latency[ON_BINS.start].saturating_record(50_000_000)), true),
        (|run| run.audit.refused[Class::Exact as usize] = 1, true),
        (|run| run.stats.abuser_limited[7] = run.audit.allowance() + 1, false),
        (|run| run.audit.over_admitted = 1, false),
        (|run| run.audit.wrongly_refused = 1, false),
        (|run| run.figures.clear(), false),
        (|run| run.watched.resident_kib.1 += GROWTH_KIB + 1, false),
    ];

    #[test]
    fn good_run_passes_also_on_a_busy_machine() {
        let mut run = good();
        assert_eq!(judged(&run), (Verdict::Pass, vec![]));
        load(&mut run);
        assert_eq!(judged(&run), (Verdict::Pass, vec![]));
    }

    #[test]
    fn on_an_idle_machine_every_line_that_fails_is_a_fault() {
        for (i, (break_it, _)) in BREAKS.iter().enumerate() {
            let mut run = good();
            break_it(&mut run);
            assert_eq!(busy(&run), None);
            assert_eq!(judged(&run).0, Verdict::Fail, "{i}");
        }
    }

    #[test]
    fn on_a_busy_machine_only_what_load_can_decide_is_not_judged() {
        for (i, (break_it, by_load)) in BREAKS.iter().enumerate() {
            let mut run = good();
            load(&mut run);
            break_it(&mut run);
            let wanted = if *by_load { Verdict::NotJudged } else { Verdict::Fail };
            assert_eq!(judged(&run).0, wanted, "{i}");
        }
    }

    #[test]
    fn slow_replies_do_not_hide_a_wrong_decision() {
        for (break_it, _) in BREAKS.iter().filter(|(_, by_load)| !by_load) {
            let mut run = good();
            load(&mut run);
            BREAKS[2].0(&mut run);
            break_it(&mut run);
            assert_eq!(judged(&run).0, Verdict::Fail);
        }
    }

    #[test]
    fn a_gate_without_a_limiter_fails_on_a_busy_machine_too() {
        // It answers every request of every source, and logs that it let each of them pass.
        let mut run = good();
        load(&mut run);
        for _ in 0..2_000 {
            run.audit.decision(18_000_000, address_of(POLITE), true);
            run.stats.abuser_limited[0] += 1;
        }
        run.figures.insert("decisions".to_string(), run.audit.decisions as f64);
        assert_eq!(judged(&run), (Verdict::Fail, vec![2, 4]));
    }

    #[test]
    fn a_machine_is_busy_by_waits_of_gate_sender_or_host_by_lag_or_by_another_speed() {
        let most = (MOST_WAIT * (END_US - SWITCH_US) as f64 * 1e3) as u64;
        assert_eq!(busy(&good()), None);
        let mut run = good();
        run.watched.waits = Waits { gate_ns: most / 2, sender_ns: most / 4, stolen_ns: most / 4 };
        assert_eq!(busy(&run), None);
        run.watched.waits.sender_ns += 2;
        assert!(busy(&run).unwrap().contains("in 12 s gate and sender waited 0.12 s"), "{:?}", busy(&run));
        let mut run = good();
        run.stats.max_lag_us = MOST_LAG_US + 1;
        assert!(busy(&run).unwrap().contains("200 ms"));
        // Calibrated beside others that have ended since: the attack no longer hurts.
        let mut run = good();
        run.stats.answered[0] = run.stats.sent[0].clone();
        run.calibration.core_share = 0.5;
        assert!(busy(&run).unwrap().contains("had 50 % of a core"));
        assert_eq!(judged(&run), (Verdict::NotJudged, vec![0]));
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
        (0..20).for_each(|_| run.stats.latency[ON_BINS.start].saturating_record(50_000_000));
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

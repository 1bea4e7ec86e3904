//! Finds the scale of the load that this machine can send, and the work per answer that makes the load
//! about 1.5 times what the gate can answer without its limiter.
//!
//! Every figure is measured with the gate, the socket and the mix of sources of the attack itself:
//! two short floods (no work, some work) give the cost of an answer as a line in the work, and short
//! plays of the attack at its peak then correct the work until the gate answers what it should.
//!
//! "What the gate can answer" is its answers per second of processor time, times the share of a core that it
//! gets beside other programs. The phase without the limiter then shows whether that still held while it was
//! played; where it did not (a compiler nearby has started, or has ended), the calibration is made again.

use crate::gate::{Gate, Setup};
use crate::load::{flood, play, stopping, STOP, STOPPED};
use crate::net::{clock_ns, Net};
use crate::schedule::{attack, peak_of, Event, PEAK_PER_SEC};
use crate::stats::Stats;
use std::sync::Mutex;

/// Peak load without the limiter, as a multiple of what the gate answers.
const OVERLOAD: f64 = 1.5;
/// The sender must be able to send this many times the peak.
const SEND_HEADROOM: f64 = 1.6;
/// A full receive buffer must mean at least this much delay, so that scheduling noise stays small beside it.
const LEAST_DELAY_S: f64 = 0.1;
/// Below this scale the abusers are no longer far above the limit.
const LEAST_SCALE: f64 = 0.05;
/// Offered over answered without the limiter: outside this range the calibration did not hold.
pub const HELD: std::ops::RangeInclusive<f64> = 1.25..=1.9;
const PROBE_ROUNDS: u64 = 4_000;

/// What the calibration found.
pub struct Calibration {
    pub scale: f64,
    /// Why the scale is below 1, in words.
    pub reason: Option<&'static str>,
    pub rounds: u64,
    /// Processor time of one answer.
    pub us_per_answer: f64,
    /// Requests per second at the attack's peak, and answers per second that the gate can give.
    pub peak_per_sec: f64,
    pub answers_per_sec: f64,
    /// Datagrams that the gate's receive buffer holds.
    pub queue: f64,
    /// Share of a core that the gate got while it had work: the rest of that time went to other programs.
    pub core_share: f64,
    pub greeting: String,
}

/// What one short trial showed.
struct Trial {
    sent_per_sec: f64,
    cpu_s_per_answer: f64,
    core_share: f64,
    queue: f64,
    greeting: String,
}

enum Load {
    Flood,
    Paced,
}

fn trial(setup: &Setup, rounds: u64, events: &[Event], load: Load, seconds: f64) -> Result<Trial, String> {
    let gate = Gate::start(setup, rounds, None)?;
    let mut net = Net::open(setup.port).map_err(|e| format!("cannot open the load socket: {e}"))?;
    let start_ns = clock_ns();
    let stats = Mutex::new(Stats::new(start_ns, 1));
    let ns = |s: f64| (s * 1e9) as u64;
    let warm_ns = start_ns + ns(0.15);
    let end_ns = warm_ns + ns(seconds);
    let mut next = 0;
    let mut until = |end: u64| match load {
        Load::Flood => flood(&mut net, events, end, &stats),
        Load::Paced => next += play(&mut net, &events[next..], start_ns, end, &stats, &STOP),
    };
    let sums = || {
        let (run, wait) = gate.run_and_wait_ns().ok_or("cannot read the gate's processor time from /proc")?;
        let stats = stats.lock().expect("stats lock");
        let (sent, answered) = (stats.sent_total.iter().sum(), stats.answered_total.iter().sum());
        Ok::<[u64; 5], String>([sent, answered, run, wait, clock_ns()])
    };
    until(warm_ns);
    let before = sums()?;
    until(end_ns);
    let after = sums()?;
    let [sent, answers, run, wait, took] = std::array::from_fn(|i| (after[i] - before[i]) as f64);
    let took = took / 1e9;
    let delay_s = stats.lock().expect("stats lock").recent.value_at_quantile(0.5) as f64 / 1e9;
    let greeting = gate.greeting.clone();
    if stopping() {
        return Err(STOPPED.to_string());
    }
    gate.finish()?;
    if answers < 1.0 || run < 1.0 {
        return Err("the gate does not answer: is traffic within 127.0.0.0/8 filtered?".to_string());
    }
    Ok(Trial {
        sent_per_sec: sent / took,
        cpu_s_per_answer: run / 1e9 / answers,
        core_share: run / (run + wait),
        queue: delay_s * answers / took,
        greeting,
    })
}

/// Measures this machine and chooses scale and work.
pub fn calibrate(setup: &Setup) -> Result<Calibration, String> {
    let full = peak_of(&attack(1.0));
    let bare = trial(setup, 0, &full, Load::Flood, 0.3)?;
    let probe = trial(setup, PROBE_ROUNDS, &full, Load::Flood, 0.4)?;
    let queue = probe.queue;
    let (scale, reason) = choose_scale(bare.sent_per_sec, queue, probe.core_share)?;
    let peak_per_sec = PEAK_PER_SEC * scale;
    let peak = peak_of(&attack(scale));
    let per_round = ((probe.cpu_s_per_answer - bare.cpu_s_per_answer) / PROBE_ROUNDS as f64).max(1e-10);
    let (mut last, mut rounds) = (probe, PROBE_ROUNDS);
    for tries in 1..=6 {
        let target = OVERLOAD * last.core_share / peak_per_sec;
        // On a busy machine each trial finds another share of a core: settle for less the longer it takes.
        if (last.cpu_s_per_answer / target - 1.0).abs() < 0.03 * f64::from(tries) {
            break;
        }
        rounds = rounds_for(target, last.cpu_s_per_answer, rounds, per_round);
        last = trial(setup, rounds, &peak, Load::Paced, 0.6)?;
    }
    Ok(Calibration {
        scale,
        reason,
        rounds,
        us_per_answer: last.cpu_s_per_answer * 1e6,
        peak_per_sec,
        answers_per_sec: last.core_share / last.cpu_s_per_answer,
        queue,
        core_share: last.core_share,
        greeting: last.greeting,
    })
}

/// Rounds of work that bring the cost of an answer from `cost` (at `rounds`) to `target` seconds.
fn rounds_for(target: f64, cost: f64, rounds: u64, per_round: f64) -> u64 {
    (rounds as f64 + (target - cost) / per_round).max(0.0) as u64
}

/// Largest scale, in steps of a twentieth, that the machine can send and whose full queue means a clear delay.
fn choose_scale(
    sendable_per_sec: f64,
    queue: f64,
    share: f64,
) -> Result<(f64, Option<&'static str>), String> {
    let by_sender = sendable_per_sec / (SEND_HEADROOM * PEAK_PER_SEC);
    let by_queue = queue * OVERLOAD / (PEAK_PER_SEC * LEAST_DELAY_S);
    // The same queue takes longer to answer at a smaller scale, so that neighbours' time slices matter less.
    let by_neighbours = match share {
        _ if share < 0.9 => 0.25,
        _ if share < 0.97 => 0.5,
        _ => 1.0,
    };
    let least = by_sender.min(by_queue).min(by_neighbours);
    let scale = (least.min(1.0) * 20.0 + 1e-9).floor() / 20.0;
    if scale >= LEAST_SCALE {
        let reason = match least {
            _ if scale >= 1.0 => None,
            _ if least == by_neighbours => Some("other programs keep this machine busy"),
            _ if least == by_sender => Some("this machine cannot send more"),
            _ => Some("the receive buffer is small"),
        };
        return Ok((scale, reason));
    }
    Err(if by_queue < by_sender {
        format!("the gate's receive buffer holds only {queue:.0} datagrams; raise net.core.rmem_max to 212992 or more")
    } else {
        format!(
            "this machine sends only {sendable_per_sec:.0} datagrams per second over loopback, \
             too few for the demo"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fast_machine_with_a_large_buffer_plays_at_full_scale() {
        assert_eq!(choose_scale(200_000.0, 10_000.0, 0.99), Ok((1.0, None)));
    }

    #[test]
    fn slow_sender_small_buffer_and_busy_machine_scale_down_with_their_reason() {
        let (scale, reason) = choose_scale(60_000.0, 10_000.0, 0.99).unwrap();
        assert!((0.45..=0.5).contains(&scale) && reason.unwrap().contains("send"));
        let (scale, reason) = choose_scale(200_000.0, 550.0, 0.99).unwrap();
        assert!((0.1..=0.15).contains(&scale) && reason.unwrap().contains("buffer"));
        let (scale, reason) = choose_scale(200_000.0, 10_000.0, 0.7).unwrap();
        assert!(scale == 0.25 && reason.unwrap().contains("busy"));
    }

    #[test]
    fn hopeless_machine_is_refused_with_the_cause() {
        assert!(choose_scale(200_000.0, 50.0, 0.5).unwrap_err().contains("rmem_max"));
        assert!(choose_scale(1_000.0, 10_000.0, 0.5).unwrap_err().contains("1000 datagrams per second"));
    }

    #[test]
    fn work_follows_the_line_through_the_probes() {
        assert_eq!(rounds_for(20e-6, 5e-6, 0, 1e-9), 15_000);
        assert_eq!(rounds_for(20e-6, 25e-6, 20_000, 1e-9), 15_000);
        assert_eq!(rounds_for(1e-6, 5e-6, 0, 1e-9), 0);
    }
}

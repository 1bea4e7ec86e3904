//! What was offered and answered, per class and half second, and how long the answers took.
//!
//! A request and its answer are both counted in the half second in which the request was *sent*, so
//! that answered / offered of one bin is a share of the same requests.

use crate::schedule::{abuser_index, class_of, Class, ABUSERS, BIN_US};

const SUB_BITS: u32 = 5;
const SUB: usize = 1 << SUB_BITS;

/// A histogram of nanoseconds: 32 steps to each power of two, so a quantile is at most 3.2 % too high.
#[derive(Clone)]
pub struct Histogram {
    counts: Vec<u32>,
    total: u64,
}

impl Histogram {
    pub fn new() -> Self {
        Histogram { counts: vec![0; SUB * (65 - SUB_BITS as usize)], total: 0 }
    }

    fn index(value: u64) -> usize {
        let top = 63 - (value | 1).leading_zeros();
        if top < SUB_BITS {
            return value as usize;
        }
        let shift = top - SUB_BITS;
        (shift as usize + 1) * SUB + ((value >> shift) as usize & (SUB - 1))
    }

    /// Largest value that falls into the step.
    fn upper(index: usize) -> u64 {
        let (group, sub) = (index / SUB, (index % SUB) as u64);
        if group == 0 {
            return sub;
        }
        let shift = group as u32 - 1;
        ((SUB as u64 + sub) << shift) + ((1 << shift) - 1)
    }

    pub fn record(&mut self, value: u64) {
        self.counts[Self::index(value)] += 1;
        self.total += 1;
    }

    pub fn merge(&mut self, other: &Histogram) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(a, b)| *a += b);
        self.total += other.total;
    }

    /// Smallest value that at least this share of the values do not exceed (rounded up to its step), or 0.
    pub fn quantile(&self, share: f64) -> u64 {
        let rank = ((self.total as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += u64::from(*count);
            if seen >= rank {
                return Self::upper(index);
            }
        }
        0
    }
}

/// An answer as the load program took it from its socket.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    pub source: u32,
    pub sent_ns: u64,
    pub limited: bool,
}

/// Counts of one play of a schedule.
#[derive(Clone)]
pub struct Stats {
    start_ns: u64,
    /// Requests sent, and those of them answered, by class and bin of the sending time.
    pub sent: [Vec<u64>; 4],
    pub answered: [Vec<u64>; 4],
    /// Reply times of polite sources by bin of the sending time.
    pub latency: Vec<Histogram>,
    /// Running totals by the time of the event itself, for the live table.
    pub sent_total: [u64; 4],
    pub answered_total: [u64; 4],
    /// Reply times of all classes since the live table last took them.
    pub recent: Histogram,
    /// Answers that the gate decided with the limiter on.
    pub limited: [u64; 4],
    pub abuser_limited: [u64; ABUSERS as usize],
    /// Most that the sender fell behind its schedule.
    pub max_lag_us: u64,
    pub send_errors: u64,
}

impl Stats {
    /// Returns empty counts for `bins` half seconds from `start_ns`.
    pub fn new(start_ns: u64, bins: usize) -> Self {
        let columns = || std::array::from_fn(|_| vec![0; bins]);
        Stats {
            start_ns,
            sent: columns(),
            answered: columns(),
            latency: vec![Histogram::new(); bins],
            sent_total: [0; 4],
            answered_total: [0; 4],
            recent: Histogram::new(),
            limited: [0; 4],
            abuser_limited: [0; ABUSERS as usize],
            max_lag_us: 0,
            send_errors: 0,
        }
    }

    fn bin(&self, at_ns: u64) -> usize {
        let bin = at_ns.saturating_sub(self.start_ns) / 1_000 / BIN_US;
        (bin as usize).min(self.latency.len() - 1)
    }

    pub fn on_sent(&mut self, source: u32, at_ns: u64) {
        let (class, bin) = (class_of(source) as usize, self.bin(at_ns));
        self.sent[class][bin] += 1;
        self.sent_total[class] += 1;
    }

    pub fn on_answer(&mut self, answer: Answer, now_ns: u64) {
        if answer.sent_ns < self.start_ns {
            return;
        }
        let (class, bin) = (class_of(answer.source), self.bin(answer.sent_ns));
        let took = now_ns.saturating_sub(answer.sent_ns);
        self.answered[class as usize][bin] += 1;
        self.answered_total[class as usize] += 1;
        self.recent.record(took);
        if class == Class::Polite {
            self.latency[bin].record(took);
        }
        if answer.limited {
            self.limited[class as usize] += 1;
            if let Some(i) = abuser_index(answer.source) {
                self.abuser_limited[i] += 1;
            }
        }
    }

    /// Requests of a class sent in the bins, and those of them answered.
    pub fn share(&self, class: Class, bins: std::ops::Range<usize>) -> (u64, u64) {
        let sum = |column: &[u64]| column[bins.clone()].iter().sum();
        (sum(&self.sent[class as usize]), sum(&self.answered[class as usize]))
    }

    /// Offered over answered in the bins, all classes together.
    pub fn overload(&self, bins: std::ops::Range<usize>) -> f64 {
        let sum = |columns: &[Vec<u64>; 4]| columns.iter().flat_map(|c| &c[bins.clone()]).sum::<u64>() as f64;
        sum(&self.sent) / sum(&self.answered).max(1.0)
    }

    /// Reply times of polite sources over the bins.
    pub fn polite_latency(&self, bins: std::ops::Range<usize>) -> Histogram {
        let mut all = Histogram::new();
        self.latency[bins].iter().for_each(|h| all.merge(h));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histogram_step_contains_its_value_and_is_narrow() {
        for bits in 0..64 {
            for value in [1u64 << bits, (1u64 << bits) - 1, (1u64 << bits) | ((1u64 << bits) / 3)] {
                let upper = Histogram::upper(Histogram::index(value));
                assert!(upper >= value, "{value} {upper}");
                assert!(upper - value <= value / 32, "{value} {upper}");
            }
        }
        assert_eq!(Histogram::upper(Histogram::index(u64::MAX)), u64::MAX);
    }

    #[test]
    fn histogram_steps_are_in_order() {
        for index in 1..SUB * 20 {
            let upper = Histogram::upper(index - 1);
            assert_eq!(Histogram::index(upper), index - 1);
            assert_eq!(Histogram::index(upper + 1), index);
        }
    }

    #[test]
    fn quantile_of_known_values_is_their_rank() {
        let mut h = Histogram::new();
        assert_eq!(h.quantile(0.99), 0);
        (1..=30).for_each(|v| h.record(v));
        assert_eq!((h.quantile(0.5), h.quantile(0.99), h.quantile(1.0)), (15, 30, 30));
    }

    #[test]
    fn merged_histogram_counts_both() {
        let (mut a, mut b) = (Histogram::new(), Histogram::new());
        (0..99).for_each(|_| a.record(1));
        b.record(7);
        a.merge(&b);
        assert_eq!((a.total, a.quantile(0.99), a.quantile(1.0)), (100, 1, 7));
    }

    #[test]
    fn answer_counts_in_the_bin_of_its_request() {
        let mut stats = Stats::new(1_000, 4);
        stats.on_sent(0, 1_000);
        let late = 1_000 + 3 * BIN_US * 1_000;
        stats.on_answer(Answer { source: 0, sent_ns: 1_000, limited: true }, late);
        stats.on_answer(Answer { source: 0, sent_ns: 999, limited: true }, late);
        assert_eq!(stats.share(Class::Polite, 0..1), (1, 1));
        assert_eq!(stats.share(Class::Polite, 1..4), (0, 0));
        assert_eq!(stats.polite_latency(0..4).total, 1);
        stats.on_sent(1, 1_000);
        assert!((stats.overload(0..1) - 2.0).abs() < 1e-9);
    }
}

//! What was offered and answered, per class and half second, and how long the answers took.
//!
//! A request and its answer are both counted in the half second in which the request was *sent*, so
//! that answered / offered of one bin is a share of the same requests.

use hdrhistogram::Histogram;

use crate::schedule::{abuser_index, class_of, Class, ABUSERS, BIN_US};

/// Times to answer in nanoseconds, of two significant digits: a quantile is at most 1 % too high. A longer time than
/// the largest one, which no demo reaches, counts as the largest.
pub type Times = Histogram<u32>;

pub fn times() -> Times {
    Times::new_with_max(100_000_000_000, 2).expect("two digits are allowed")
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
    pub latency: Vec<Times>,
    /// Running totals by the time of the event itself, for the live table.
    pub sent_total: [u64; 4],
    pub answered_total: [u64; 4],
    /// Reply times of all classes since the live table last took them.
    pub recent: Times,
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
            latency: vec![times(); bins],
            sent_total: [0; 4],
            answered_total: [0; 4],
            recent: times(),
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
        self.recent.saturating_record(took);
        if class == Class::Polite {
            self.latency[bin].saturating_record(took);
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
    pub fn polite_latency(&self, bins: std::ops::Range<usize>) -> Times {
        let mut all = times();
        self.latency[bins].iter().for_each(|of_bin| all += of_bin);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answer_counts_in_the_bin_of_its_request() {
        let mut stats = Stats::new(1_000, 4);
        stats.on_sent(0, 1_000);
        let late = 1_000 + 3 * BIN_US * 1_000;
        stats.on_answer(Answer { source: 0, sent_ns: 1_000, limited: true }, late);
        stats.on_answer(Answer { source: 0, sent_ns: 999, limited: true }, late);
        assert_eq!(stats.share(Class::Polite, 0..1), (1, 1));
        assert_eq!(stats.share(Class::Polite, 1..4), (0, 0));
        assert_eq!(stats.polite_latency(0..4).len(), 1);
        stats.on_sent(1, 1_000);
        assert!((stats.overload(0..1) - 2.0).abs() < 1e-9);
    }
}

//! The answer in words and columns.

use std::fmt;

use super::limits::{LimitReport, TableReport};
use super::order::MOST;
use super::report::{InputReport, KeyReport, RateReport, Report};
use crate::words::{about, bytes, chance, percent, plural};

fn grain(ns: u64) -> String {
    match ns {
        1_000_000_000 => "whole seconds".into(),
        1_000_000 => "whole milliseconds".into(),
        1_000 => "whole microseconds".into(),
        1 => "nanoseconds".into(),
        other => format!("in steps of {other} ns"),
    }
}

impl fmt::Display for InputReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let input = self;
        writeln!(f, "{} ({})", input.names(), input.formats.join(", "))?;
        let about = about(input.one_in > 1);
        writeln!(
            f,
            "{} of {about}{} ({}) in {} s, {} to {}",
            plural(input.records, "record"),
            plural(input.keys, "key"),
            input.key.join(" + "),
            input.seconds,
            input.first,
            input.last
        )?;
        input.notes().iter().try_for_each(|note| writeln!(f, "{note}"))
    }
}

impl InputReport {
    /// The names of the files.
    pub(super) fn names(&self) -> String {
        let name = |file: &String| if file == "-" { "standard input".into() } else { file.clone() };
        self.files.iter().map(name).collect::<Vec<String>>().join(", ")
    }

    /// Says how the input was read: what a record costs, what its time is, and what is left out.
    pub(super) fn notes(&self) -> Vec<String> {
        let input = self;
        let mut notes = Vec::new();
        if input.one_in > 1 {
            notes.push(input.sample());
        }
        if input.cost != "1" {
            notes.push(format!("The field {} says what a record costs.", input.cost));
        }
        let mut times = format!("Times are {}", grain(input.grain_ns));
        if input.stamps_end {
            let what = match input.formats.iter().any(|format| format == "json") {
                true => "servers write them when a request ends (request_time, or duration of Caddy, as a number of \
                     seconds would tell when it began)",
                false => "nginx writes them when a request ends ($request_time would tell when it began)",
            };
            times += &format!(", and {what}");
        }
        if !input.subtracted.is_empty() {
            let fields = input.subtracted.join(", ");
            times += &format!(", less {fields}, because they are those of the ends of requests");
        }
        notes.push(times + ".");
        let counted = "counted when the line before it did";
        let late = match &input.sort_needed {
            Some(needed) => {
                format!("came later than --sort allows, and {counted}; --sort {needed} would sort all")
            }
            None => format!(
                "came too late to be sorted, and {counted}; more than {MOST} records lie in the window of --sort"
            ),
        };
        let other = input.first_other.as_deref().unwrap_or_default();
        let other = format!("were not IP, or had no port to count by, and did not count; the first: {other}");
        for (count, what) in [
            (input.late, &*late),
            (input.early, "left the window of --sort early, because too many were in it"),
            (input.other_paths, "had another path than the key asks for, and did not count"),
            (input.others, &*other),
            (input.bad, "could not be read"),
        ] {
            if count > 0 {
                notes.push(format!("{} {what}.", plural(count, "record")));
            }
        }
        notes.extend(input.first_bad.iter().map(|bad| format!("  {bad}")));
        let cut = "An input could not be read to its end; what comes before counts";
        notes.extend(input.cut.iter().map(|what| format!("{cut}: {what}.")));
        notes
    }

    /// Says what comes from the sample and what does not.
    pub(super) fn sample(&self) -> String {
        format!(
            "Sampled: one key in {} was counted ({}, with {} of {}). Bursts and lists of keys are those of the sample; \
             numbers of keys and loads are estimates. Records refused are those of all keys, and so are keys hit \
             unless \"about\" stands before their number.",
            self.one_in,
            plural(self.keys_kept, "key"),
            self.records_kept,
            plural(self.records, "record")
        )
    }
}

impl Report {
    /// Says for whom the burst `max` is enough.
    fn max_is_enough(&self) -> String {
        let input = &self.input;
        if input.one_in == 1 {
            return "With the burst `max` nobody in this input is refused.".into();
        }
        format!(
            "With the burst `max` no key of the sample is refused; the others, with {} of {}, may need more: \
             --max-keys {} counts all.",
            input.records - input.records_kept,
            plural(input.records, "record"),
            // Half as many again: their number is an estimate.
            input.keys.saturating_add(input.keys / 2)
        )
    }

    /// Says what tables do to the rates.
    pub(super) fn roundings(&self) -> Vec<String> {
        let slower = |rate: &&RateReport| rate.rate_error_ppb > 0;
        let mut lines: Vec<String> = Vec::new();
        let names: Vec<_> = self.rates.iter().filter(slower).map(|rate| &*rate.rate).collect();
        if let Some(most) = self.rates.iter().filter(slower).map(|rate| rate.rate_error_ppb).max() {
            lines.push(format!(
                "Tables are up to {most} ppb slower than {}; the bursts allow for that.",
                names.join(", ")
            ));
        }
        for rate in &self.rates {
            if let Some(largest) = rate.largest_burst {
                lines.push(format!("No table has {} with a burst above {largest}.", rate.rate));
            }
        }
        lines
    }

    /// Says what burst each good key needs.
    pub(super) fn good_needs(&self) -> Vec<String> {
        let needs = |key: &KeyReport| {
            let rates = self.rates.iter().zip(&key.needed);
            rates.map(|(rate, needed)| format!("{} burst {needed}", rate.rate)).collect::<Vec<_>>().join(", ")
        };
        let line = |key: &KeyReport| match key.records {
            0 => format!("Good key {}: not in this input.", key.key),
            records => format!("Good key {} ({}) needs {}.", key.key, plural(records, "record"), needs(key)),
        };
        self.good.iter().map(line).collect()
    }

    fn rates(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_sampled = self.input.one_in > 1;
        let of = if is_sampled { " of the sample" } else { "" };
        writeln!(f, "\nThe burst that a key{of} needs so as never to be refused, at each rate:\n")?;
        writeln!(
            f,
            "  {:<12} {:>8} {:>8} {:>8} {:>8} {:>9}  {:>9}   smallest limit",
            "rate", "p50", "p90", "p99", "p99.9", "max", "uncertain"
        )?;
        for rate in &self.rates {
            rate.line(f, is_sampled)?;
        }
        writeln!(f, "\n{}", self.max_is_enough())?;
        self.roundings().iter().try_for_each(|line| writeln!(f, "{line}"))?;
        if !self.neediest.is_empty() {
            let rate = &self.rates[self.rates.len() / 2].rate;
            writeln!(f, "\nThese keys{of} need the largest bursts at {rate}:")?;
            for key in &self.neediest {
                let needed = key.needed[self.rates.len() / 2];
                writeln!(f, "  {:<40} {needed:>9}  of {}", key.key, plural(key.records, "record"))?;
            }
        }
        self.good_needs().iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

impl RateReport {
    fn line(&self, f: &mut fmt::Formatter<'_>, is_sampled: bool) -> fmt::Result {
        let about = about(is_sampled);
        let max = if self.max_is_least { format!(">={}", self.max) } else { self.max.to_string() };
        let uncertain = if self.uncertain == 0 { "-".into() } else { format!("< {}", self.uncertain) };
        writeln!(
            f,
            "  {:<12} {:>8} {:>8} {:>8} {:>8} {max:>9}  {uncertain:>9}   {} burst {} ({about}{} hit)",
            self.rate,
            self.p50,
            self.p90,
            self.p99,
            self.p999,
            self.rate,
            self.smallest,
            plural(self.smallest_hits, "key")
        )
    }
}

impl LimitReport {
    /// How many records are refused, and of how many keys.
    fn refusals(&self, is_sampled: bool) -> String {
        format!(
            "{} refused ({}), of {}{} ({}{} of all)",
            plural(self.refused, "record"),
            percent(self.refused_share),
            about(self.keys_hit_one_in > 1),
            plural(self.keys_hit, "key"),
            about(is_sampled),
            percent(self.keys_hit_share)
        )
    }

    fn show(&self, f: &mut fmt::Formatter<'_>, is_sampled: bool) -> fmt::Result {
        writeln!(f, "\nWith {} (full sets: {})", self.limit, self.policy)?;
        if self.refused == 0 {
            writeln!(f, "  nobody in this input is refused.")?;
        } else {
            writeln!(f, "  {}", self.refusals(is_sampled))?;
        }
        if let Some(worst) = &self.worst {
            let length = if worst.seconds == 60.0 { "minute".into() } else { format!("{} s", worst.seconds) };
            writeln!(f, "  worst {length}: {}, {} of {} refused", worst.start, worst.refused, worst.records)?;
        }
        if is_sampled && !self.top_refused.is_empty() {
            writeln!(f, "  refused most of the sample:")?;
        }
        for key in &self.top_refused {
            writeln!(f, "  {:<40} {:>9}  of {}", key.key, key.refused, plural(key.records, "record"))?;
        }
        if !self.good_hit.is_empty() {
            writeln!(f, "  good keys hit: {}", self.good_hit.join(", "))?;
        }
        for link in &self.links {
            writeln!(f, "  {:<40} {:>9}  refused by this limit first", link.limit, link.refused)?;
        }
        for tier in &self.tiers {
            let name = format!("{}, {} times", tier.prefix, tier.multiplier);
            writeln!(f, "  {name:<40} {:>9}  refused by this tier first", tier.refused)?;
        }
        if self.links.is_empty() {
            self.table.show(f, "table")?;
        } else {
            self.links.iter().try_for_each(|link| link.table.show(f, &format!("table of {}", link.limit)))?;
        }
        if self.rate_error_ppb > 0 {
            writeln!(f, "  in a table this rate is up to {} ppb slower than written", self.rate_error_ppb)?;
        }
        Ok(())
    }
}

impl TableReport {
    fn show(&self, f: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
        let table = self;
        let about = about(table.one_in > 1);
        writeln!(
            f,
            "  {name}: {} slots, {}; at most {about}{} in debt at a time: load {about}{}, chance of a full set {}",
            table.slots,
            bytes(table.bytes),
            plural(table.peak_live, "key"),
            percent(table.peak_load),
            chance(table.full_set_chance)
        )?;
        match table.met_full_set {
            0 => writeln!(
                f,
                "  {about}{} are enough for a chance of {}",
                bytes(table.recommended_bytes),
                chance(table.target_chance)
            )?,
            met => writeln!(
                f,
                "  {} met a full set: for a size, replay it with more --slots",
                plural(met, "record")
            )?,
        }
        Ok(())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.input.fmt(f)?;
        if !self.rates.is_empty() {
            self.rates(f)?;
        }
        self.limits.iter().try_for_each(|limit| limit.show(f, self.input.one_in > 1))
    }
}

//! The answer as one page: words, pictures and tables, without a script and without anything from a network.
//!
//! Everything on the page comes from the report that `--json` writes. Each picture has its numbers in a table below it,
//! for screen readers and for whoever wants to know exactly. Names from the input are escaped.

use std::fmt::Write;

use super::charts::{self, escape};
use super::limits::{HoursReport, LimitReport};
use super::report::{RateReport, Report};
use crate::words::{about, bytes, chance, cut, percent, plural, span};

const STYLE: &str = "\
:root{color-scheme:light dark;--back:#fff;--text:#1b1f23;--soft:#57606a;--line:#d0d7de;--pass:#1f6f8b;--no:#b3400f;\
--card:#f6f8fa}\
@media(prefers-color-scheme:dark){:root{--back:#14171a;--text:#e6e8ea;--soft:#a0a8b0;--line:#3a4148;--pass:#63b8d4;\
--no:#ff9a5c;--card:#1c2126}}\
*{box-sizing:border-box}\
body{margin:0;background:var(--back);color:var(--text);font:16px/1.5 system-ui,sans-serif}\
main,header{max-width:60rem;margin:0 auto;padding:0 1rem}\
h1{font-size:1.6rem;margin:1.5rem 0 .25rem}h2{font-size:1.25rem;margin:2.5rem 0 .5rem}\
h3{font-size:1rem;margin:1.5rem 0 .25rem}\
p{margin:.4rem 0}.soft{color:var(--soft)}\
a{color:var(--pass)}a:focus-visible,summary:focus-visible,.wide:focus-visible,figure:focus-visible{\
outline:3px solid var(--pass);outline-offset:2px}\
.skip{position:absolute;left:-99rem}.skip:focus{position:static}\
figure{margin:.5rem 0 1rem;overflow-x:auto}svg{display:block;width:100%;min-width:34rem;height:auto;\
background:var(--card);border-radius:6px}\
svg text{font:12px system-ui,sans-serif;fill:var(--text)}\
.grid{stroke:var(--line);stroke-width:1}.pass{fill:var(--pass)}.no{fill:var(--no)}\
.curve{fill:none;stroke:var(--pass);stroke-width:2}.mark{stroke:var(--no);stroke-width:2;fill:var(--back)}\
.edge{stroke:var(--no);stroke-width:2;stroke-dasharray:5 4}\
figcaption{color:var(--soft);font-size:.9rem}\
.wide{overflow-x:auto}table{border-collapse:collapse;margin:.5rem 0;font-size:.9rem;font-variant-numeric:tabular-nums}\
caption{text-align:left;color:var(--soft)}\
th,td{padding:.2rem .6rem;border-bottom:1px solid var(--line);text-align:right}\
th:first-child,td:first-child{text-align:left}summary{cursor:pointer;color:var(--pass)}";

/// A table: its name, what it is, its heads and its rows. The first cell of a row is its head.
fn table(id: &str, caption: &str, heads: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut out = format!(
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-labelledby=\"{id}-caption\"><table id=\"{id}\">\
         <caption id=\"{id}-caption\">{}</caption><thead><tr>",
        escape(caption)
    );
    for head in heads {
        let _ = write!(out, "<th scope=\"col\">{}</th>", escape(head));
    }
    out += "</tr></thead><tbody>\n";
    for row in rows {
        out += "<tr>";
        for (at, cell) in row.iter().enumerate() {
            let cell = escape(cell);
            let _ = match at {
                0 => write!(out, "<th scope=\"row\">{cell}</th>"),
                _ => write!(out, "<td>{cell}</td>"),
            };
        }
        out += "</tr>\n";
    }
    out + "</tbody></table></div>\n"
}

/// A picture with its table.
fn figure(svg: &str, caption: &str, table: &str) -> String {
    let cut =
        if svg.contains('\u{2026}') { " A name that is cut ends in its number in the list." } else { "" };
    format!(
        "<figure tabindex=\"0\">{svg}<figcaption>{}{cut}</figcaption></figure>\n<details>\
         <summary>The numbers of this picture</summary>\n\
         {table}</details>\n",
        escape(caption)
    )
}

fn length(seconds: f64) -> String {
    span((seconds * 1e9) as u128)
}

impl Report {
    /// Writes the page.
    pub fn html(&self) -> String {
        let input = &self.input;
        let mut out = format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
             <title>Rate limits for {0}</title><style>{STYLE}</style></head>\n<body>\
             <a class=\"skip\" href=\"#answers\">Skip to the answers</a>\n<header><h1>Rate limits for {0}</h1>\
             <p class=\"soft\">{1} of {2}{3} ({4}) in {5}, {6} to {7}</p></header>\n<main>\n",
            escape(&input.names()),
            plural(input.records, "record"),
            about(input.one_in > 1),
            plural(input.keys, "key"),
            escape(&input.key.join(" + ")),
            length(input.seconds),
            escape(&input.first),
            escape(&input.last),
        );
        out += "<h2 id=\"answers\">The answers</h2>\n";
        for note in input.notes() {
            let _ = writeln!(out, "<p>{}</p>", escape(note.trim_start()));
        }
        let listed = self.limits.iter().map(|limit| limit.hours.keys.len()).max();
        let listed = listed.unwrap_or(0).max(self.neediest.len());
        if charts::KEYS < listed {
            let _ = writeln!(
                out,
                "<p>Pictures and their numbers are of the first {} of {listed} keys of a list; the others are in the \
                 text and in JSON.</p>",
                charts::KEYS
            );
        }
        let is_sampled = input.one_in > 1;
        self.limits.iter().for_each(|limit| out += &limit.words(is_sampled));
        if let Some(rate) = self.rates.get(self.rates.len() / 2) {
            let enough = match is_sampled {
                false => format!("With a burst of {} nobody in this input is refused.", rate.max),
                true => format!("The largest burst that a key of the sample needs is {}.", rate.max),
            };
            let _ = writeln!(
                out,
                "<p>At {} a burst of {} is the smallest that leaves the stated share of keys{} alone; it refuses {}. \
                 {enough}</p>",
                escape(&rate.rate),
                rate.smallest,
                if is_sampled { " of the sample" } else { "" },
                match rate.smallest_hits {
                    0 if is_sampled => "no key of the sample".into(),
                    0 => "nobody".into(),
                    hits => format!("{}{} now and then", about(is_sampled), plural(hits, "key")),
                },
            );
        }
        for line in self.good_needs() {
            let _ = writeln!(out, "<p>{}</p>", escape(&line));
        }
        for (at, limit) in self.limits.iter().enumerate() {
            out += &self.section(at, limit);
        }
        out += &self.all_rates();
        out + "</main></body></html>\n"
    }

    /// Writes the picture of traffic over time under the first limit; None without a limit.
    pub fn picture(&self) -> Option<String> {
        self.limits.first().map(|limit| charts::alone(&limit.timeline, &limit.limit, STYLE))
    }

    /// The rate of the curves that is that of a limit, else the middle one.
    fn rate_of(&self, limit: &LimitReport) -> Option<&RateReport> {
        let same = self.rates.iter().find(|rate| Some(rate.per_second) == limit.per_second);
        same.or_else(|| self.rates.get(self.rates.len() / 2))
    }

    fn section(&self, at: usize, limit: &LimitReport) -> String {
        let name = format!("{} (full sets: {})", limit.limit, limit.policy);
        let mut out = format!("<h2>With {}</h2>\n", escape(&name));
        if !limit.links.is_empty() {
            let rows = limit.links.iter().map(|link| {
                let table = &link.table;
                let enough = match table.met_full_set {
                    0 => table.recommended_bytes.to_string(),
                    _ => "replay it with more --slots".into(),
                };
                let numbers = [link.refused, table.peak_live, table.met_full_set].map(|n| n.to_string());
                std::iter::once(link.limit.clone()).chain(numbers).chain([enough]).collect()
            });
            let caption = match limit.links.iter().any(|link| link.table.one_in > 1) {
                false => "What each limit refuses as the first, and its table",
                true => "What each limit refuses as the first, and its table: keys and bytes are estimates",
            };
            let heads = ["limit", "refused", "most keys in debt", "met a full set", "bytes that are enough"];
            out += &table(&format!("links-{at}"), caption, &heads, rows);
        }
        if !limit.tiers.is_empty() {
            let rows = limit
                .tiers
                .iter()
                .map(|tier| vec![tier.prefix.clone(), tier.multiplier.to_string(), tier.refused.to_string()]);
            let heads = ["tier", "times the limit of one address", "refused"];
            out += &table(&format!("tiers-{at}"), "What each tier refuses as the first", &heads, rows);
        }
        let line = &limit.timeline;
        let part = length(line.part_seconds);
        let rows = line.came.iter().zip(&line.refused).enumerate();
        let rows = rows.map(|(part, (came, refused))| {
            let start = line.starts.get(part).cloned().unwrap_or_default();
            vec![start, came.to_string(), (came - refused).to_string(), refused.to_string()]
        });
        let heads = ["start", "records", "admitted", "refused"];
        let caption = format!("Records admitted and refused in each {part}");
        let numbers = table(&format!("timeline-{at}"), &caption, &heads, rows);
        out += "<h3>Traffic over time</h3>\n";
        let legend = format!("{caption}.");
        out += &figure(&charts::timeline(line, &format!("timeline-{at}")), &legend, &numbers);
        if limit.refused == 0 {
            out += "<p>Nobody is refused.</p>\n";
        } else if limit.hours.keys.is_empty() {
            out += "<p>No key of the sample is refused.</p>\n";
        } else {
            out += &hours(&limit.hours, at, self.input.one_in > 1);
        }
        if let Some(rate) = self.rate_of(limit) {
            let burst = limit.burst.filter(|_| Some(rate.per_second) == limit.per_second);
            let rows = rate.peaks.iter().map(|peak| vec![peak.burst.to_string(), peak.keys.to_string()]);
            let about = if self.input.one_in > 1 { ", as estimated from the sample" } else { "" };
            let caption = format!("Keys by the burst that they need at {}{about}", rate.rate);
            let numbers = table(&format!("peaks-{at}"), &caption, &["burst up to", "keys"], rows);
            let edge = match burst {
                Some(burst) => {
                    format!(". Those beyond the line need more than {burst}, and are refused now and then")
                }
                None => String::new(),
            };
            out += "<h3>Keys by their peak</h3>\n";
            out += &figure(
                &charts::peaks(&rate.peaks, burst, &format!("peaks-{at}")),
                &format!("{caption}{edge}. The heights are logarithmic."),
                &numbers,
            );
        }
        out
    }

    /// The curves of the neediest keys, with all limits, and the table of rates.
    fn all_rates(&self) -> String {
        let mut out = String::from("<h2>The burst that each rate needs</h2>\n");
        if !self.neediest.is_empty() && self.rates.len() > 1 {
            let heads: Vec<_> = std::iter::once("key")
                .chain(self.rates.iter().map(|rate| &*rate.rate))
                .chain(["records"])
                .collect();
            let rows = charts::shown(&self.neediest).iter().map(|key| {
                let needed = key.needed.iter().map(u64::to_string);
                std::iter::once(cut(&key.key, charts::TITLE))
                    .chain(needed)
                    .chain([key.records.to_string()])
                    .collect()
            });
            let numbers = table("curves", "The burst that a key needs at each rate", &heads, rows);
            let caption =
                "The burst that the neediest keys need so as never to be refused, at each rate. A limit (a \
                diamond) refuses the keys whose curve runs above it.";
            out += &figure(&charts::curves(self, "curves"), caption, &numbers);
        }
        let is_sampled = self.input.one_in > 1;
        for line in &self.roundings() {
            let _ = writeln!(out, "<p>{}</p>", escape(line));
        }
        let heads = ["rate", "p50", "p90", "p99", "p99.9", "max", "uncertain", "smallest", "keys hit"];
        let rows = self.rates.iter().map(|rate| {
            let numbers = [
                rate.p50,
                rate.p90,
                rate.p99,
                rate.p999,
                rate.max,
                rate.uncertain,
                rate.smallest,
                rate.smallest_hits,
            ];
            std::iter::once(rate.rate.clone()).chain(numbers.iter().map(u64::to_string)).collect()
        });
        out + &table(
            "rates",
            if is_sampled {
                "Of the keys of the sample: the burst with which a share is never refused; keys hit are estimates"
            } else {
                "Of all keys: the burst with which a share of them is never refused"
            },
            &heads,
            rows,
        )
    }
}

/// Who is refused when.
fn hours(hours: &HoursReport, at: usize, is_sampled: bool) -> String {
    let part = length(hours.part_seconds);
    let heads: Vec<_> = std::iter::once("key").chain(hours.starts.iter().map(|start| &**start)).collect();
    let rows = charts::shown(&hours.keys).iter().map(|key| {
        std::iter::once(cut(&key.key, charts::TITLE)).chain(key.refused.iter().map(u64::to_string)).collect()
    });
    let caption = format!("Records of a key that are refused, in each {part}");
    let numbers = table(&format!("hours-{at}"), &caption, &heads, rows);
    let of = if is_sampled { " These are keys of the sample alone." } else { "" };
    let more =
        if hours.is_cut { " More keys were refused than are kept; these are of the first ones." } else { "" };
    let svg = charts::hours(hours, &format!("hours-{at}"));
    let caption = format!("{caption}; the fuller a cell, the more.{of}{more}");
    format!("<h3>Who is refused, and when</h3>\n{}", figure(&svg, &caption, &numbers))
}

impl LimitReport {
    /// What the limit does, in words.
    fn words(&self, is_sampled: bool) -> String {
        let mut out =
            format!("<p><strong>{}</strong> (full sets: {}) ", escape(&self.limit), escape(&self.policy));
        out += &match self.refused {
            0 => "refuses nobody in this input.".to_owned(),
            refused => format!(
                "refuses {} ({}), of {}{} ({}{} of all).",
                plural(refused, "record"),
                percent(self.refused_share),
                about(self.keys_hit_one_in > 1),
                plural(self.keys_hit, "key"),
                about(is_sampled),
                percent(self.keys_hit_share)
            ),
        };
        if let Some(worst) = &self.worst {
            let of = length(worst.seconds);
            let _ = write!(
                out,
                " In the worst {of}, from {}, it refuses {} of {}.",
                escape(&worst.start),
                worst.refused,
                worst.records
            );
        }
        if let Some(key) = self.top_refused.first() {
            let _ = write!(
                out,
                " {}{} is refused most: {} of {}.",
                if is_sampled { "Of the sample " } else { "" },
                escape(&cut(&key.key, charts::TITLE)),
                key.refused,
                plural(key.records, "record")
            );
        }
        if !self.good_hit.is_empty() {
            let _ = write!(out, " It refuses good keys: {}.", escape(&self.good_hit.join(", ")));
        }
        // The section of a chain has a table of its limits.
        if self.links.is_empty() {
            let table = &self.table;
            let about = about(table.one_in > 1);
            let _ = match table.met_full_set {
                0 => write!(
                    out,
                    " At most {about}{} are in debt at a time; a table of {about}{} is enough for a chance of a full \
                     set of {}.",
                    plural(table.peak_live, "key"),
                    bytes(table.recommended_bytes),
                    chance(table.target_chance)
                ),
                met => write!(
                    out,
                    " {} met a full set: for a size, replay it with more --slots.",
                    plural(met, "record")
                ),
            };
        }
        out + "</p>\n"
    }
}

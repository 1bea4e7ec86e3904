//! The families: their names, their kinds, and the samples that a table has of them.

use core::fmt;

use super::{Format, TableMetrics};
use crate::text::Text;

/// Where a text goes: one form for all callers, so that this code is in a program once.
type Sink<'a> = Text<&'a mut dyn FnMut(&str) -> fmt::Result>;

/// Gives the tables by their number. They are asked for again for each family, so nobody needs a place for all of them.
type Tables<'f, 'a> = &'f dyn Fn(usize) -> Option<TableMetrics<'a>>;

/// What a sample counts.
#[derive(Clone, Copy)]
enum What {
    Conforming,
    NonConforming,
    Never,
    Shadow,
    Contended,
    Soft,
    Untracked,
    Inherited,
    Forgiven,
    Inserted,
    Slots,
    Live,
    Bans,
    Exemptions,
    Expired,
    Claims,
    FullSets,
    FullSet,
    Longest,
    Bytes,
    Info,
}

/// A value: an integer, or an integer and billionths.
struct Value(u64, Option<u32>);

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// Its samples end with `_total`.
    Counter,
    Gauge,
    /// Always 1; its labels say something. Its samples end with `_info`.
    Info,
}

struct Family {
    name: &'static str,
    kind: Kind,
    /// Only in OpenMetrics; the name ends with it.
    unit: &'static str,
    help: &'static str,
    /// The second label; empty: none.
    label: &'static str,
    /// The values of that label, and what they count.
    samples: &'static [(&'static str, What)],
}

impl Family {
    const fn counter(
        name: &'static str,
        help: &'static str,
        label: &'static str,
        samples: &'static [(&'static str, What)],
    ) -> Family {
        Family { name, kind: Kind::Counter, unit: "", help, label, samples }
    }

    const fn gauge(
        name: &'static str,
        help: &'static str,
        samples: &'static [(&'static str, What)],
    ) -> Family {
        Family { name, kind: Kind::Gauge, unit: "", help, label: "", samples }
    }

    const fn unit(mut self, unit: &'static str) -> Family {
        self.unit = unit;
        self
    }
}

const FAMILIES: [Family; 14] = [
    Family::counter(
        "tatcell_requests",
        "Requests by verdict.",
        "verdict",
        &[
            ("conforming", What::Conforming),
            ("non_conforming", What::NonConforming),
            ("never", What::Never),
            ("shadow", What::Shadow),
            ("contended", What::Contended),
        ],
    ),
    Family::counter(
        "tatcell_soft_requests",
        "Conforming requests above the soft threshold.",
        "",
        &[("", What::Soft)],
    ),
    Family::counter(
        "tatcell_full_set_requests",
        "Requests of new keys whose set was full, by what the policy did.",
        "outcome",
        &[("untracked", What::Untracked), ("inherited", What::Inherited), ("forgiven", What::Forgiven)],
    ),
    Family::counter("tatcell_new_keys", "New keys that got a slot.", "", &[("", What::Inserted)]),
    Family::gauge("tatcell_slots", "Slots of the table.", &[("", What::Slots)]),
    Family::gauge("tatcell_live_keys", "Slots with a live key.", &[("", What::Live)]),
    Family {
        label: "kind",
        ..Family::gauge(
            "tatcell_overrides",
            "Bans and exemptions that are in force.",
            &[("ban", What::Bans), ("exemption", What::Exemptions)],
        )
    },
    Family::gauge(
        "tatcell_expired_keys",
        "Slots whose key has drained; as good as empty.",
        &[("", What::Expired)],
    ),
    Family::gauge("tatcell_claims", "Inserts in progress, and abandoned ones.", &[("", What::Claims)]),
    Family::gauge(
        "tatcell_full_sets",
        "Sets of 16 slots of which a new key could take none.",
        &[("", What::FullSets)],
    ),
    Family::gauge(
        "tatcell_full_set_probability",
        "The chance that a new key finds its set full, at this load.",
        &[("", What::FullSet)],
    ),
    Family::gauge(
        "tatcell_longest_debt_seconds",
        "Time until the key that owes most has its burst again.",
        &[("", What::Longest)],
    )
    .unit("seconds"),
    Family::gauge("tatcell_table_memory_bytes", "Bytes of the table, header included.", &[("", What::Bytes)])
        .unit("bytes"),
    Family {
        name: "tatcell_table",
        kind: Kind::Info,
        unit: "",
        help: "What the table is.",
        label: "",
        samples: &[("", What::Info)],
    },
];

impl TableMetrics<'_> {
    fn value(&self, what: What) -> Option<Value> {
        let whole = |value| Some(Value(value, None));
        let (counted, stats, newer) = (self.counters.as_ref(), self.stats.as_ref(), self.newer());
        match what {
            What::Conforming => whole(counted?.conforming),
            What::NonConforming => whole(counted?.non_conforming),
            What::Never => whole(counted?.never),
            What::Shadow => whole(counted?.shadow),
            What::Contended => whole(counted?.contended),
            What::Soft => whole(counted?.soft),
            What::Untracked => whole(counted?.untracked),
            What::Inherited => whole(counted?.inherited),
            What::Forgiven => whole(counted?.forgiven),
            What::Inserted => whole(counted?.inserted),
            What::Slots => whole(stats?.slots),
            What::Live => whole(stats?.live),
            What::Bans if self.is_overrides() => whole(stats?.live.wrapping_sub(newer?.exemptions)),
            What::Exemptions if self.is_overrides() => whole(newer?.exemptions),
            What::Bans | What::Exemptions => None,
            What::Expired => whole(stats?.expired),
            What::Claims => whole(stats?.claims),
            What::FullSets => whole(newer?.full_sets),
            What::FullSet => {
                let ppb = self.full_set()?;
                // A chance is at most 1: 10^9 billionths.
                let one = u64::from(ppb >= 1_000_000_000);
                Some(Value(one, Some(if one == 0 { ppb as u32 } else { 0 })))
            }
            // Bans and exemptions are no debts.
            What::Longest if self.is_overrides() => None,
            What::Longest => self.longest().map(|(seconds, billionths)| Value(seconds, Some(billionths))),
            What::Bytes => whole(self.info?.bytes),
            What::Info => self.info.map(|_| Value(1, None)),
        }
    }
}

/// Writes the metrics of `count` tables.
pub(crate) fn write(count: usize, tables: Tables<'_, '_>, format: Format, out: &mut Sink<'_>) -> fmt::Result {
    for family in &FAMILIES {
        let mut has_head = false;
        for table in (0..count).filter_map(tables) {
            for (label, what) in family.samples {
                let Some(value) = table.value(*what) else { continue };
                if !has_head {
                    head(family, format, out)?;
                    has_head = true;
                }
                sample(family, (&table, *label), &value, out)?;
            }
        }
    }
    match format {
        Format::Prometheus => Ok(()),
        Format::OpenMetrics => out.put("# EOF\n"),
    }
}

fn ending(kind: Kind) -> &'static str {
    match kind {
        Kind::Counter => "_total",
        Kind::Gauge => "",
        Kind::Info => "_info",
    }
}

/// Writes what stands before the samples. OpenMetrics names the family, and Prometheus the samples; Prometheus has no
/// info metrics.
fn head(family: &Family, format: Format, out: &mut Sink<'_>) -> fmt::Result {
    let is_open = format == Format::OpenMetrics;
    let mut line = |word: &str, text: &str| {
        out.put("# ")?;
        out.put(word)?;
        out.put(" ")?;
        out.put(family.name)?;
        out.put(if is_open { "" } else { ending(family.kind) })?;
        out.put(" ")?;
        out.put(text)?;
        out.put("\n")
    };
    line(
        "TYPE",
        match family.kind {
            Kind::Counter => "counter",
            Kind::Info if is_open => "info",
            Kind::Gauge | Kind::Info => "gauge",
        },
    )?;
    if is_open && !family.unit.is_empty() {
        line("UNIT", family.unit)?;
    }
    line("HELP", family.help)
}

fn sample(
    family: &Family,
    (table, label): (&TableMetrics<'_>, &str),
    value: &Value,
    out: &mut Sink<'_>,
) -> fmt::Result {
    out.put(family.name)?;
    out.put(ending(family.kind))?;
    out.put("{table=")?;
    out.string(table.name)?;
    let mut more = |name: &str, text: &str| {
        out.put(",")?;
        out.put(name)?;
        out.put("=")?;
        out.string(text)
    };
    if !family.label.is_empty() {
        more(family.label, label)?;
    }
    if let (Kind::Info, Some(info)) = (family.kind, table.info) {
        more("algorithm", info.algorithm)?;
        more("policy", info.policy)?;
        out.put(",tag_bits=\"")?;
        out.number(info.tag_bits.into())?;
        out.put("\"")?;
    }
    out.put("} ")?;
    match *value {
        Value(whole, None) => out.number(whole)?,
        Value(whole, Some(billionths)) => out.fixed(whole, billionths)?,
    }
    out.put("\n")
}

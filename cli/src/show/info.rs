//! What a table is, and how full.

use std::fmt;

use serde::Serialize;
use tatcell::{full_set_ppb, Algorithm, FullPolicy, HashKind, Mode, Table};

use super::clock::{name, Now};
use super::counts::Counts;
use super::Place;
use crate::words::plural;

/// What words hold that are no debts.
const OVERRIDES: &str = "overrides";

/// What the header says.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Geometry {
    /// The name or path, as it was given.
    pub table: String,
    /// What the words hold.
    pub content: &'static str,
    /// Slots.
    pub slots: u64,
    /// Bytes, with the header.
    pub bytes: u64,
    /// Bits of a tag.
    pub tag_bits: u32,
    /// How keys are hashed.
    pub hash: &'static str,
    /// What happens to a new key whose set is full.
    pub policy: &'static str,
    /// Whether it has one owner.
    pub exclusive: bool,
    /// The longest debt that a slot can hold, ticks.
    pub horizon: u64,
    /// How far the callers' clocks may differ, ticks.
    pub skew: u64,
    /// Within how many ticks every slot should be swept.
    pub sweep_interval: u64,
    /// How often it was restored or migrated, plus one.
    pub generation: u64,
    /// The callers' clock, as the image names it.
    pub clock: Option<&'static str>,
    /// Ticks a second, as the image says.
    pub ticks_per_second: Option<u64>,
    /// What the caller says of that, for an image that does not.
    #[serde(skip)]
    pub tick_hz: Option<u64>,
}

/// How full it is, at one moment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Load {
    /// The moment.
    pub now: Now,
    /// Slots with a live key; in a table of overrides those with a ban or an exemption.
    pub live: u64,
    /// How many of these are bans, and how many are exemptions; `None` in a table of debts.
    #[serde(flatten)]
    pub overrides: Option<Overrides>,
    /// Slots that are held / slots.
    pub load: f64,
    /// The chance that a new key finds its set full at this load.
    pub full_set_chance: f64,
    /// Sets of 16 slots that are full now.
    pub full_sets: u64,
    /// Inserts in progress, or abandoned.
    pub claims: u64,
    /// Slots whose key has drained.
    pub expired: u64,
    /// Ticks until the key that owes longest has its burst again; in a table of overrides, until the last one ends.
    pub longest_debt: u64,
    /// The same in seconds.
    pub longest_debt_seconds: Option<f64>,
    /// Live slots by debt: element k counts debts in (horizon / 2^(k+1), horizon / 2^k], the last one all smaller.
    pub debts: [u64; 8],
}

/// What a table of overrides holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Overrides {
    /// Keys that are banned.
    pub bans: u64,
    /// Keys that are exempt.
    pub exemptions: u64,
}

/// The answer of `tatcell show TABLE`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// The version of this structure.
    pub version: u32,
    /// What the header says.
    pub geometry: Geometry,
    /// How full it is; `None` where nobody knows the clock.
    pub load: Option<Load>,
    /// What the program has counted, if it shares its counters.
    pub counts: Option<Counts>,
}

impl Geometry {
    /// Reads the header.
    pub fn of<M: Mode>(place: &Place, table: &Table<'_, M>, tick_hz: Option<u64>) -> Geometry {
        let info = table.info();
        Geometry {
            table: place.text.clone(),
            content: match info.algorithm {
                _ if info.overrides => OVERRIDES,
                Algorithm::Gcra => "debts (GCRA)",
                Algorithm::FixedWindow => "fixed windows",
                Algorithm::SlidingCounter => "sliding counters",
                Algorithm::QuotaLinear => "quotas",
                Algorithm::Decay => "decaying averages",
                _ => "an algorithm that this program does not know",
            },
            slots: info.slots,
            bytes: info.image_bytes,
            tag_bits: info.tag_bits,
            hash: match info.hash {
                HashKind::SipHash13 => "SipHash-1-3",
                HashKind::Aes => "AES",
                HashKind::Caller => "the callers'",
            },
            policy: match info.policy {
                FullPolicy::Admit => "admit",
                FullPolicy::Inherit => "inherit",
                FullPolicy::Deny => "deny",
                FullPolicy::Sampled => "sampled",
            },
            exclusive: info.exclusive,
            horizon: info.horizon,
            skew: info.skew,
            sweep_interval: info.sweep_interval,
            generation: info.generation,
            clock: name(info.clock),
            ticks_per_second: (info.tick_hz != 0).then_some(info.tick_hz),
            tick_hz,
        }
    }

    /// Ticks in words where the image or the caller says what they are.
    fn span(&self, ticks: u64) -> String {
        // A clock of the system counts nanoseconds unless the image says otherwise.
        let system = self.clock.filter(|clock| *clock != "tsc").map(|_| 1_000_000_000);
        let ticks_per_second = self.ticks_per_second.or(self.tick_hz).or(system);
        Now { ticks: 0, ticks_per_second, clock: self.clock }.span(ticks)
    }
}

impl Load {
    /// Scans the table.
    pub fn of<M: Mode>(now: Now, table: &Table<'_, M>) -> Load {
        let stats = table.stats(now.ticks);
        let exemptions = stats.exemptions;
        let overrides = || Overrides { bans: stats.live.saturating_sub(exemptions), exemptions };
        Load {
            now,
            live: stats.live,
            overrides: table.info().overrides.then(overrides),
            load: stats.load_ppm as f64 / 1e6,
            full_set_chance: full_set_ppb(stats.load_ppm) as f64 / 1e9,
            full_sets: stats.full_sets,
            claims: stats.claims,
            expired: stats.expired,
            longest_debt: stats.longest,
            longest_debt_seconds: now.seconds(stats.longest),
            debts: stats.debt,
        }
    }
}

impl fmt::Display for Geometry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let owner = if self.exclusive { ", one owner" } else { "" };
        writeln!(f, "{}: {}, {} slots, {} bytes{owner}", self.table, self.content, self.slots, self.bytes)?;
        writeln!(f, "  tag of {} bits, hash {}, full sets: {}", self.tag_bits, self.hash, self.policy)?;
        writeln!(
            f,
            "  {} up to {}; clocks may differ by {}; sweep within {}; generation {}",
            if self.content == OVERRIDES { OVERRIDES } else { "debts" },
            self.span(self.horizon),
            self.span(self.skew),
            self.span(self.sweep_interval),
            self.generation
        )?;
        match (self.clock, self.ticks_per_second) {
            (None, None) => writeln!(f, "  the image does not name its clock"),
            (None, Some(hz)) => writeln!(f, "  {hz} ticks a second; the image does not name its clock"),
            (Some(clock), None) => writeln!(f, "  clock: {clock}"),
            (Some(clock), Some(hz)) => writeln!(f, "  clock: {clock}, {hz} ticks a second"),
        }
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let chance = match self.full_set_chance {
            0.0 => "below 1e-9".to_owned(),
            chance => format!("{chance:e}"),
        };
        let (live, drained, longest) = match self.overrides {
            Some(Overrides { bans, exemptions }) => {
                let live = format!("{}, {}", plural(bans, "ban"), plural(exemptions, "exemption"));
                (live, "ended ones", "the last of them ends in")
            }
            None => (format!("{} live keys", self.live), "drained keys", "longest debt:"),
        };
        writeln!(f, "  {live}, load {:.2} %, chance of a full set {chance}", self.load * 100.0)?;
        writeln!(f, "  {} full sets, {} claims, {} {drained}", self.full_sets, self.claims, self.expired)?;
        match (self.overrides, self.live) {
            (Some(_), 0) => Ok(()),
            _ => writeln!(f, "  {longest} {}", self.now.span(self.longest_debt)),
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.geometry)?;
        match &self.load {
            Some(load) => write!(f, "{load}")?,
            None => writeln!(f, "  Name the clock with --clock to see how full the table is.")?,
        }
        self.counts.iter().try_for_each(|counts| write!(f, "{counts}"))
    }
}

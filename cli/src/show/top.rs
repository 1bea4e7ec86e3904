//! The longest debts; in a table of overrides the bans and exemptions that end last.

use std::fmt;

use serde::Serialize;
use tatcell::{Mode, Slot, Table, WordKind};

use super::clock::Now;
use super::dump::kind;
use super::names::{candidates, As};
use crate::failure::Failure;
use crate::progress::Progress;

/// One slot of the list.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Debt {
    /// The number of the slot.
    pub slot: u32,
    /// The tag of its key.
    pub tag: u32,
    /// "debt", "ban" or "exemption".
    pub kind: &'static str,
    /// Ticks until the key has its burst again, or until the ban or exemption ends.
    pub debt: u64,
    /// The same in seconds.
    pub seconds: Option<f64>,
    /// Keys of the caller's list that it may belong to.
    pub may_be: Vec<String>,
}

/// The answer of `tatcell show TABLE top`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// The version of this structure.
    pub version: u32,
    /// The table.
    pub table: String,
    /// The moment.
    pub now: Now,
    /// Longest debts first.
    pub top: Vec<Debt>,
    /// Whether the caller has named keys.
    #[serde(skip)]
    named: bool,
    /// Whether the table holds overrides, not debts.
    #[serde(skip)]
    overrides: bool,
}

/// Returns the `count` longest debts, of equal ones the first of the table.
fn longest<M: Mode>(table: &Table<'_, M>, now: u64, count: usize) -> Vec<Slot> {
    let (mut slots, mut from) = (Vec::new(), 0);
    let cut = |slots: &mut Vec<Slot>| {
        slots.sort_by_key(|slot| std::cmp::Reverse(slot.reset_after));
        slots.truncate(count);
    };
    while let Some(slot) = table.next_live(now, from) {
        from = slot.number as usize + 1;
        slots.push(slot);
        if slots.len() >= count.saturating_mul(2).max(1024) {
            cut(&mut slots);
        }
    }
    cut(&mut slots);
    slots
}

/// Finds the `count` longest debts, and whose they may be.
pub fn find<M: Mode>(
    table: &Table<'_, M>,
    name: &str,
    now: Now,
    count: usize,
    keys: Option<(&str, As)>,
    progress: &Progress,
) -> Result<Answer, Failure> {
    let mut slots = longest(table, now.ticks, count);
    let overrides = table.info().overrides;
    let kind_of = |slot: &Slot| match table.slot_word(now.ticks, slot.number as usize) {
        _ if !overrides => Some("debt"),
        Some(word) if matches!(word.kind, WordKind::Ban | WordKind::Exemption) => Some(kind(&word)),
        _ => None,
    };
    // One that was lifted since is no longer there.
    slots.retain(|slot| kind_of(slot).is_some());
    let names = match keys {
        Some((file, form)) => candidates(table, &slots, file, form, progress)?,
        None => vec![Vec::new(); slots.len()],
    };
    let debt = |(slot, may_be): (&Slot, Vec<String>)| Debt {
        slot: slot.number,
        tag: slot.tag,
        kind: kind_of(slot).unwrap_or("lifted"),
        debt: slot.reset_after,
        seconds: now.seconds(slot.reset_after),
        may_be,
    };
    let top = slots.iter().zip(names).map(debt).collect();
    Ok(Answer { version: 1, table: name.into(), now, top, named: keys.is_some(), overrides })
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let may_be = if self.named { "  may be" } else { "" };
        match self.overrides {
            true => {
                writeln!(f, "  {:>10} {:>8}  {:<9} {:>10}{may_be}", "slot", "tag", "kind", "ends in")?;
            }
            false => writeln!(f, "  {:>10} {:>8}  {:>10}{may_be}", "slot", "tag", "debt")?,
        }
        for debt in &self.top {
            let names = match (self.named, debt.may_be.as_slice()) {
                (false, _) => String::new(),
                (true, []) => "  -".into(),
                (true, names) => format!("  {}", names.join(", ")),
            };
            let kind = if self.overrides { format!("{:<9} ", debt.kind) } else { String::new() };
            let span = self.now.span(debt.debt);
            writeln!(f, "  {:>10} {:>#8x}  {kind}{span:>10}{names}", debt.slot, debt.tag)?;
        }
        match (self.top.is_empty(), self.overrides) {
            (true, true) => writeln!(f, "  No key is banned, and none is exempt."),
            (true, false) => writeln!(f, "  No key is in debt."),
            _ => Ok(()),
        }
    }
}

//! The three changes: a ban, an exemption, a reset. They need the seed, and permission to write.

use std::fmt;
use std::iter::successors;
use std::time::Duration;

use serde::Serialize;
use tatcell::{AttachOptions, Table, TableError};

use super::clock::{Clock, Named};
use super::names::{hash, As};
use super::{Place, Secret};
use crate::failure::Failure;
use crate::words::span;

/// What to do with the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Refuse every request of it for this long.
    Ban(Duration),
    /// Pass every request of it for this long.
    Exempt(Duration),
    /// Make its burst full again; in a table of overrides, end that of the key.
    Reset,
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Done {
    /// The version of this structure.
    pub version: u32,
    /// The table.
    pub table: String,
    /// The key, as it was given.
    pub key: String,
    /// "banned", "exempt" or "reset".
    pub now: &'static str,
    /// The ticks at which an override ends.
    pub until: Option<u64>,
    /// False if there was nothing to reset.
    pub changed: bool,
    /// Whether the table holds overrides, not debts.
    #[serde(skip)]
    overrides: bool,
}

/// Changes one key.
pub fn change(
    place: &Place,
    secret: Option<&Secret>,
    (clock, hz): (Option<Named>, Option<u64>),
    (key, form): (&str, As),
    change: Change,
) -> Result<Done, Failure> {
    let Some(secret) = secret else {
        return Err(Failure::Usage("a change needs the seed of the table: --seed-file or --seed-fd".into()));
    };
    let options = AttachOptions::new().seed(secret.read()?);
    let memory = place.open()?;
    let table = Table::attach(memory.lines(), &options).map_err(|error| match error {
        TableError::BadMode => {
            Failure::Input(format!("{}: the table has one owner; only that owner changes it", place.text))
        }
        error => place.unreadable(error),
    })?;
    let now = Clock::choose(clock, hz, &table.info())?.now()?;
    let hash = hash(&table, key, form).map_err(Failure::Usage)?;
    let until = |time: Duration| -> Result<u64, Failure> {
        if time.is_zero() {
            return Err(Failure::Usage("--for 0: use a time above 0, such as 1h".into()));
        }
        let hz = now.ticks_per_second.ok_or_else(|| {
            Failure::Usage("the image does not say how many ticks a second has: use --tick-hz".into())
        })?;
        let ticks = time.as_nanos() * u128::from(hz) / 1_000_000_000;
        let info = table.info();
        if info.overrides && ticks > u128::from(info.horizon) {
            return Err(Failure::Usage(format!(
                "--for {}: an override of this table ends within {}",
                span(time.as_nanos()),
                now.span(info.horizon)
            )));
        }
        Ok(now.ticks.saturating_add(u64::try_from(ticks).unwrap_or(u64::MAX)))
    };
    let refused = |error: TableError| {
        match error {
        TableError::BadAlgorithm => Failure::Usage(format!(
            "{}: bans and exemptions go into a table of overrides; this one holds debts, so only reset works here (in \
             nginx ban by deny or geo, and exempt by the rate unlimited)",
            place.text
        )),
        error => Failure::Input(format!("{}: {error}", place.text)),
    }
    };
    let overrides = table.info().overrides;
    let mut changed = true;
    let (done, until) = match change {
        Change::Ban(time) => {
            let until = until(time)?;
            table.ban(now.ticks, hash, until).map(|()| ("banned", Some(until))).map_err(refused)?
        }
        Change::Exempt(time) => {
            let until = until(time)?;
            table.exempt(now.ticks, hash, until).map(|()| ("exempt", Some(until))).map_err(refused)?
        }
        Change::Reset if overrides => {
            changed = table.lift(now.ticks, hash).map_err(refused)?;
            ("reset", None)
        }
        Change::Reset => {
            let live = |from: usize| table.next_live(now.ticks, from);
            let mut slots = successors(live(0), |slot| live(slot.number as usize + 1));
            changed = slots.any(|slot| table.may_be(&slot, hash));
            if changed && !table.reset_key(now.ticks, hash) {
                return Err(refused(TableError::Contended));
            }
            ("reset", None)
        }
    };
    Ok(Done { version: 1, table: place.text.clone(), key: key.into(), now: done, until, changed, overrides })
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.until {
            None if !self.changed => {
                let what = if self.overrides { "override" } else { "debt" };
                writeln!(f, "{}: {} had no {what}: nothing is changed", self.table, self.key)
            }
            Some(until) => writeln!(f, "{}: {} is {} until tick {until}", self.table, self.key, self.now),
            None => writeln!(f, "{}: {} is {}", self.table, self.key, self.now),
        }
    }
}

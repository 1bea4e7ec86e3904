//! The versions of a limit on this node, and how a limit changes while the node runs.
//!
//! ```text
//!   store's time   ---- changed -------------------- from ------------------------->
//!   readings           | before                early|......|late   next             |
//!                      |<---------- delay ---------->  denied
//! ```
//!
//! A change is written into the limit's mark in the store, to be in force `delay` later. Every node reads the mark at
//! least three times in that time, and **what a node holds of a limit may be spent only for `delay` after it last read
//! the mark**. So when the change is in force, each node either knows of it or holds nothing: no old unit is spent next
//! to a new one. The clock reading of a request selects the version. A round trip and the clocks leave some readings in
//! doubt; their requests are denied.
//!
//! The tag of a line depends on the version, so nothing finds what was granted before. A debt in the store keeps its
//! units, but is at most the full debt. A reserve that changes starts empty, and may be spent once it would be full.
//!
//! **Bound.** Count the key's axis in units: A(t) is what has drained until t, at the rate of each moment. Let the
//! change lie within [s, s + w]. If a debt was cut to the full one: until the change R w + B of the old limit pass, and
//! from the full debt on at most R of the new limit for the rest. Otherwise the old intervals start above A(s) - hold
//! R, the new ones at or above A of the change, all are disjoint, and all end at or below A(s + w) + M R. So at most R
//! w + B pass, with the larger of both rates and of both bursts. If a leased limit becomes strict, which pays no hold,
//! add an eighth of the old burst. A reserve that starts empty adds its rate. (All by parts: the larger of both parts
//! of the store, and the larger of both reserves.) Windows before and after the change have their own R w + B. If the
//! store gets an old ask late, that key drains at the old rate until its next ask.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tatcell::{lines_for, Line, Table, TableLimit};

use crate::axis::Span;
use crate::error::OpenError;
use crate::lines::Found;
use crate::random::Seeds;
use crate::script::Mark;
use crate::share::Share;
use crate::split::{Reserve, SharedLimit, Split};
use crate::sync::Ordering;

/// One version of a limit, with everything that this node derives from it.
pub(crate) struct LimitVersion {
    pub number: u64,
    pub limit: SharedLimit,
    /// The text on which all nodes must agree.
    pub text: String,
    pub split: Split,
    pub share: Share,
    pub reserve: Option<(Table<'static>, TableLimit)>,
    /// Keeps the memory of that table from the next one.
    _room: Option<Arc<Room>>,
    /// The time from which the reserve may be spent, nanoseconds.
    pub reserve_from: u64,
}

/// The version in force, and the next one.
pub(crate) struct Schedule {
    pub now: Arc<LimitVersion>,
    pub next: Option<Next>,
}

/// A change on its way.
pub(crate) struct Next {
    pub version: Arc<LimitVersion>,
    pub between: Between,
}

/// The time at which a change comes into force, nanoseconds: not before `early`, and no later than `late`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Between {
    pub early: u64,
    pub late: u64,
}

/// The version that decides a request.
pub(crate) enum At<'a> {
    Version(&'a Arc<LimitVersion>),
    /// No version, for this many nanoseconds: the moment of a change is in doubt.
    Neither(u64),
}

/// The parameters from which versions of a limit are made.
pub(crate) struct Maker {
    pub nodes: u32,
    pub round_trip: Duration,
    pub keys: usize,
    pub delay: Duration,
    pub seeds: Seeds,
    /// The tables of reserves: a version that fits one of them uses it again.
    pub tables: Vec<(Table<'static>, Arc<Room>)>,
}

impl LimitVersion {
    pub(crate) fn is(&self, number: u64, text: &str) -> bool {
        self.number == number && self.text == text
    }

    /// Returns the tag of a key's line: a hash of the key, different for each version.
    #[inline]
    pub(crate) fn tag(&self, hash: u64) -> u64 {
        (hash ^ self.number.wrapping_mul(0x9e37_79b9_7f4a_7c15)) | 1
    }

    /// Returns the nanoseconds without a grant after which nothing is owed, neither to the store nor to the node's
    /// share, which holds a unit even if its part of the burst is less.
    pub(crate) fn drained_ns(&self) -> u64 {
        self.split.lead.ns_down().saturating_add(self.split.hold_ns).max(self.share.burst_ns)
    }

    /// Returns the time until this cost may be asked for again, if an earlier answer refuses it. An end further away
    /// than any answer comes from a clock that stepped back.
    #[inline]
    pub(crate) fn denied(&self, found: Found<'_>, now: u64, cost: u64) -> Option<Duration> {
        // ORDERING: Relaxed; a time. At worst an unnecessary ask goes out.
        let base = found.line.denied.load(Ordering::Relaxed);
        let split = &self.split;
        let until = base.saturating_add(cost.max(split.min).saturating_mul(split.unit_ns));
        let far = self.drained_ns().saturating_mul(4).saturating_add(1_000_000_000);
        let left = until.checked_sub(now).filter(|left| *left > 0 && *left <= far)?;
        (base > 0).then(|| Duration::from_nanos(left))
    }
}

impl Schedule {
    #[inline]
    pub(crate) fn at(&self, now: u64) -> At<'_> {
        match &self.next {
            Some(next) if now >= next.between.late => At::Version(&next.version),
            Some(next) if now >= next.between.early => At::Neither(next.between.late - now),
            _ => At::Version(&self.now),
        }
    }

    /// Returns whether no reader would notice if the other schedule replaced this one.
    pub(crate) fn is(&self, other: &Schedule) -> bool {
        let next = match (&self.next, &other.next) {
            (None, None) => true,
            (Some(a), Some(b)) => Arc::ptr_eq(&a.version, &b.version) && a.between == b.between,
            _ => false,
        };
        next && Arc::ptr_eq(&self.now, &other.now)
    }

    pub(crate) fn newest(&self) -> &LimitVersion {
        self.next.as_ref().map_or(&self.now, |next| &next.version)
    }

    /// Returns this node's view of the limit, for the mark in the store.
    pub(crate) fn mark(&self, now: u64) -> Mark {
        let ahead = self.next.as_ref().map_or(0, |next| next.between.late.saturating_sub(now));
        Mark {
            version: self.newest().number,
            ahead_us: ahead.div_ceil(1_000),
            next: self.newest().text.clone(),
            before: self.now.text.clone(),
        }
    }
}

impl Between {
    /// Derives the times from a mark that was asked for at `sent`, came at `received`, and said `ahead_us`. The clocks
    /// of server and node may drift apart by a thousandth.
    pub(crate) fn of(ahead_us: u64, sent: u64, received: u64) -> Between {
        let (ahead, hair) = (ahead_us.saturating_mul(1_000), ahead_us);
        Between {
            early: sent.saturating_add(ahead).saturating_sub(hair),
            late: received.saturating_add(ahead).saturating_add(hair).saturating_add(1_000),
        }
    }

    /// Combines two marks, which both hold. If they disagree, the server's clock was set, and the later one counts.
    pub(crate) fn and(self, later: Between) -> Between {
        let both = Between { early: self.early.max(later.early), late: self.late.min(later.late) };
        if both.early <= both.late {
            both
        } else {
            later
        }
    }
}

/// The memory of one table. It is never freed, because the table may be copied; but once the node is gone, nobody has
/// the table any more, and the memory serves the next one.
pub(crate) struct Room(&'static [Line]);

/// The memory that no table uses.
static FREE: Mutex<Vec<&'static [Line]>> = Mutex::new(Vec::new());

impl Room {
    /// Returns the smallest free memory that suffices and is not twice as large, or allocates it.
    fn of(lines: usize) -> Room {
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = (0..free.len())
            .filter(|i| (lines..2 * lines).contains(&free[*i].len()))
            .min_by_key(|i| free[*i].len());
        Room(match fits {
            Some(fits) => free.swap_remove(fits),
            None => Box::leak((0..lines).map(|_| Line::EMPTY).collect::<Box<[Line]>>()),
        })
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        FREE.lock().unwrap_or_else(PoisonError::into_inner).push(self.0);
    }
}

impl Maker {
    /// Makes a version. If it follows another one, it is in force from the given time on.
    pub(crate) fn version(
        &mut self,
        number: u64,
        limit: SharedLimit,
        follows: Option<(&LimitVersion, u64)>,
    ) -> Result<LimitVersion, OpenError> {
        let wrong = |error| OpenError::Limit { name: limit.name().to_owned(), error };
        let split = limit.split(self.nodes, self.round_trip).map_err(wrong)?;
        let nodes = u128::from(self.nodes);
        let unit_ns = Span::from_q(split.unit.q().saturating_mul(nodes)).ns_down().saturating_add(1);
        let burst = (split.burst / u64::from(self.nodes)).max(1);
        let from = follows.map_or(0, |(_, from)| from);
        let share = Share { unit_ns, burst_ns: unit_ns.saturating_mul(burst), from };
        let reserve = split.reserve.map(|reserve| self.reserve(&reserve)).transpose()?;
        let reserve_from = match follows {
            None => 0,
            Some((was, _)) if was.split.reserve == split.reserve => was.reserve_from,
            Some((_, from)) => from.saturating_add(split.reserve.map_or(0, |reserve| reserve.full_ns)),
        };
        let (reserve, room) =
            reserve.map_or((None, None), |(table, limit, room)| (Some((table, limit)), Some(room)));
        let text = self.text(&limit);
        Ok(LimitVersion { number, text, limit, split, share, reserve, _room: room, reserve_from })
    }

    /// Writes the text on which nodes must agree.
    pub(crate) fn text(&self, limit: &SharedLimit) -> String {
        limit.text() + &self.fleet()
    }

    /// Parses the [`text`](Self::text) of a node that agrees on everything except the limit.
    pub(crate) fn of_text(&self, name: &str, text: &str) -> Option<SharedLimit> {
        SharedLimit::of_text(name, text.strip_suffix(&self.fleet())?)
    }

    fn fleet(&self) -> String {
        format!(", {} nodes, changes take {} ms", self.nodes, self.delay.as_millis())
    }

    fn reserve(&mut self, reserve: &Reserve) -> Result<(Table<'static>, TableLimit, Arc<Room>), OpenError> {
        let spec = reserve.limit();
        for (table, room) in &self.tables {
            if let Ok(limit) = table.limit(&spec) {
                return Ok((*table, limit, room.clone()));
            }
        }
        let seed = self.seeds.draw().map_err(OpenError::Host)?;
        let options = reserve.table_options(seed).caller_hash();
        let lines = lines_for(self.keys);
        let room = Room::of(lines);
        let table = Table::init(&room.0[..lines], &options).map_err(OpenError::Reserve)?;
        let limit = table.limit(&spec).map_err(OpenError::Reserve)?;
        let room = Arc::new(room);
        self.tables.push((table, room.clone()));
        Ok((table, limit, room))
    }
}

#[cfg(all(test, not(tatcell_cluster_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_denied_while_it_is_in_doubt_and_each_mark_narrows_that() {
        // 30 s ahead with a round trip of a millisecond: the clocks add 30 ms on either side.
        let first = Between::of(30_000_000, 1_000_000_000, 1_001_000_000);
        assert_eq!(first, Between { early: 30_970_000_000, late: 31_031_001_000 });
        let second = Between::of(1_000_000, 30_000_000_000, 30_001_000_000);
        assert_eq!(first.and(second), Between { early: 30_999_000_000, late: 31_002_001_000 });
        // The server's clock was set by an hour.
        let set = Between::of(3_601_000_000, 30_000_000_000, 30_001_000_000);
        assert_eq!(first.and(set), set);
    }

    #[test]
    fn a_schedule_is_another_one_where_a_reader_would_notice() {
        let mut maker = Maker {
            nodes: 1,
            round_trip: Duration::from_millis(4),
            keys: 8,
            delay: Duration::from_secs(30),
            seeds: Seeds::System,
            tables: Vec::new(),
        };
        let limit = SharedLimit::new("x", 100, Duration::from_secs(1), 100).reserve(0, 0);
        let [a, b] =
            [1, 2].map(|number| Arc::new(maker.version(number, limit.clone(), None).expect("a version")));
        let schedule = |now: &Arc<LimitVersion>, next: Option<(&Arc<LimitVersion>, u64)>| Schedule {
            now: now.clone(),
            next: next.map(|(version, late)| Next {
                version: version.clone(),
                between: Between { early: 5, late },
            }),
        };
        let all = [
            schedule(&a, None),
            schedule(&b, None),
            schedule(&a, Some((&b, 9))),
            schedule(&a, Some((&b, 8))),
        ];
        for (i, x) in all.iter().enumerate() {
            all.iter().enumerate().for_each(|(j, y)| assert_eq!(x.is(y), i == j, "{i} {j}"));
        }
        assert!(schedule(&a, Some((&b, 9))).is(&all[2]));
    }

    #[test]
    fn the_memory_of_a_table_serves_the_next_one_once_nobody_has_the_table() {
        let maker = || Maker {
            nodes: 1,
            round_trip: Duration::from_millis(4),
            // So many that no other test takes this memory.
            keys: 500_000,
            delay: Duration::from_secs(30),
            seeds: Seeds::System,
            tables: Vec::new(),
        };
        let limit = SharedLimit::new("x", 100, Duration::from_secs(1), 100).reserve(100, 500);
        let make = |maker: &mut Maker| maker.version(1, limit.clone(), None).expect("a version");
        let at = |version: &LimitVersion| version._room.as_ref().expect("a reserve").0.as_ptr();
        let mut first = maker();
        let version = make(&mut first);
        let (place, other) = (at(&version), at(&make(&mut maker())));
        assert_ne!(place, other, "both are in use");
        drop(first);
        assert_ne!(at(&make(&mut maker())), place, "a version has the table still");
        let (table, of_each) = version.reserve.as_ref().expect("a reserve");
        assert!(table.check_hash(of_each, 1_000_000_000, 7, 50).expect("a decision").passes());
        drop(version);
        let mut last = maker();
        let two = [make(&mut last), make(&mut maker())];
        let again = two.iter().find(|version| at(version) == place).expect("the memory of before");
        let (table, of_each) = again.reserve.as_ref().expect("a reserve");
        assert!(table.check_hash(of_each, 1_000_000_000, 7, 50).expect("a decision").passes(), "it is empty");
    }

    /// A line that is given away forgets what its key took of the share, so both must have drained by then.
    #[test]
    fn a_line_stays_until_its_share_has_drained() {
        for (nodes, burst) in [(1, 100), (4, 100), (4, 7), (4, 3), (9, 1)] {
            let mut maker = Maker {
                nodes,
                round_trip: Duration::from_millis(4),
                keys: 8,
                delay: Duration::from_secs(30),
                seeds: Seeds::System,
                tables: Vec::new(),
            };
            let limit = SharedLimit::new("x", 100, Duration::from_secs(1), burst).reserve(0, 0);
            let version = maker.version(1, limit, None).expect("a version");
            let debt = version.split.lead.ns_down() + version.split.hold_ns;
            assert!(version.drained_ns() >= version.share.burst_ns.max(debt), "{nodes} nodes, burst {burst}");
        }
    }

    #[test]
    fn what_a_limit_is_survives_its_text() {
        let maker = |nodes| Maker {
            nodes,
            round_trip: Duration::from_millis(4),
            keys: 8,
            delay: Duration::from_secs(30),
            seeds: Seeds::System,
            tables: Vec::new(),
        };
        let limit = SharedLimit::new("x", 7, Duration::new(86_400, 5), 11).reserve(20, 300);
        let text = maker(4).text(&limit);
        assert_eq!(maker(4).of_text("x", &text), Some(limit));
        assert_eq!(maker(5).of_text("x", &text), None, "{text}");
        for wrong in
            ["", "7 per 1 ns, burst", "7 per x ns, burst 1, reserve 0/0, 4 nodes, changes take 30000 ms"]
        {
            assert_eq!(maker(4).of_text("x", wrong), None);
        }
    }
}

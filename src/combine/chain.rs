//! All or none over up to eight limits.
//!
//! ```text
//!  peek     0, 1, ... n-1             a refusal ends here: nothing was written, and all retry times are known
//!  charge   0, 1, ... n-1             cells, and keys that have a slot; link k refuses after all: undo
//!  insert   0, 1, ... n-1             keys that have none; link k refuses after all: undo
//!  undo     n-1, ... 1, 0             by the permits of the charges that were made
//!  extra    0, 1, ... n-1             charges random units, and refuses nothing
//! ```
//!
//! Invariants:
//!
//! - **Never over-admits.** A chain passes only after a check of each link has charged it, and each check is exact on
//!   its own word. An undo gives back what a permit proves was stored, by the `now` of the charge. If a thread is
//!   stopped between a charge and its undo while other clocks advance by sigma, it gives back at most what drained in
//!   sigma, as every old reading does.
//! - **Alone it is exact.** Without concurrent callers the peek decides and the charges agree with it. Only a full set
//!   of a table may still refuse, by its policy: that is undone.
//! - **Conservative in races.** Between a charge and its undo others see the debt and may be refused although they
//!   would pass one after the other; if orders or costs differ, all of them may. Chains of the same links in the same
//!   order and with equal costs pass as one after the other.
//! - **No debt stays** of a refused chain once its call is over, except for: what a claim stored below the permit of
//!   the charge that inserted its key (a claim lifetime and a q-unit), the debt that such an insert inherited with its
//!   slot under `Inherit`, charges under `Sampled`, whose permits give nothing back, and the penalty of the link that
//!   refused.
//! - **No link loses its slot to another.** An insert takes over the slot of no other link that has a slot when the
//!   insert begins, be it for a check, a reservation, a charge after the fact or an extra. Else the charge of that link
//!   would be another key's debt by the time it is undone, and a refused request would evict a key of its own.
//! - **An override is not charged.** A link of overrides answers for the chain: a ban refuses it like any link, and an
//!   exemption makes every other link pass as it stands if no link bans. The peek decides that, and no link is charged
//!   after it. A charge after the fact has a ban behind it: it charges all links, unless an exemption stands alone.
//! - **One debt, one charge.** Links of the same cell or key become one charge of all their costs, with the smallest
//!   room of them.
//!
//! Progress: bounded by the links' own calls, and [`UNDO`] refunds for each link that is undone.
//!
//! Not atomic as a whole: others may see some links charged before the rest.

use super::counters::ChainCounters;
use super::error::ChainError;
use super::link::{Link, Target, MAX_LINKS};
use super::short::is_tighter;
use crate::answer::{Decision, Permit, Tracking, Verdict};

/// Refunds that are tried for one link. Each fails only after `MAX_LOST` swaps lost to others. At the bound the charge
/// stays until it drains, which is the safe side, and its permit is handed out.
pub(super) const UNDO: u32 = 8;

/// Checks one request against up to eight limits together, and charges all of them or none.
///
/// A chain is made for one request (its cells, keys and costs) and decided at one `now`. Order matters for speed and
/// for the reported index: put the most specific limit, or the most likely to refuse, first, and an aggregate over all
/// last.
///
/// ```
/// use tatcell::{limit, Cell, Chain, ChainError, Limit, Link, Verdict};
///
/// // 5 a second and 100 a minute, for one client; ticks are milliseconds.
/// static SECOND: Limit = limit!(5 per 1_000, burst 5);
/// static MINUTE: Limit = limit!(100 per 60_000, burst 7);
/// let client = [Cell::new(), Cell::new()];
/// let chain = Chain::new(&[Link::cell(&client[0], &SECOND, 1), Link::cell(&client[1], &MINUTE, 1)])?;
/// for _ in 0..5 {
///     assert!(chain.check(0).passes());
/// }
/// let refused = chain.check(0);
/// assert_eq!((refused.policy, refused.retry_after), (0, 200)); // the limit per second; it passes again in 200
/// let passed = chain.check(1_000);
/// assert_eq!((passed.policy, passed.remaining), (1, 2)); // the limit per minute: 7 - 6, and 1.67 have drained
/// # Ok::<(), ChainError>(())
/// ```
#[derive(Clone, Copy)]
pub struct Chain<'a> {
    /// One charge for each cell or key, in the order of their first links; `count` of them.
    pub(super) charges: [Charge<'a>; MAX_LINKS],
    pub(super) count: usize,
    /// For each link the index of its charge; `links` of them.
    charge_of: [u8; MAX_LINKS],
    links: usize,
    /// Whether a link is an override.
    pub(super) overrides: bool,
    /// Whether all links go the short way.
    pub(super) short: bool,
}

/// All links of one cell or key.
#[derive(Clone, Copy)]
pub(super) struct Charge<'a> {
    pub target: Target<'a>,
    pub cost: u64,
    pub extra: u64,
    pub room: u64,
    /// The index of the first of them.
    pub link: u32,
}

/// One answer for each charge, and `None` behind them.
pub(super) type Answers = [Option<Decision>; MAX_LINKS];

impl<'a> Chain<'a> {
    /// Makes a chain of 1 to [`MAX_LINKS`] links.
    ///
    /// Links of one cell, or of one key of a table, are one charge of all their costs, reported as the first of them.
    ///
    /// # Errors
    /// [`ChainError`]. Nothing was touched.
    ///
    /// # Cost
    /// Compares each link with those before it; reads no word.
    pub fn new(links: &[Link<'a>]) -> Result<Chain<'a>, ChainError> {
        let first = links.first().ok_or(ChainError::Empty)?;
        if links.len() > MAX_LINKS {
            return Err(ChainError::TooManyLinks);
        }
        let blank = Charge { target: first.target, cost: 0, extra: 0, room: 0, link: 0 };
        let mut chain = Chain {
            charges: [blank; MAX_LINKS],
            count: 0,
            charge_of: [0; MAX_LINKS],
            links: links.len(),
            overrides: false,
            short: true,
        };
        for ((i, link), charge_of) in links.iter().enumerate().zip(&mut chain.charge_of) {
            link.target.verify_limit()?;
            chain.overrides |= link.target.is_overrides();
            let known = chain.charges.iter().take(chain.count);
            let at = known.take_while(|charge| !charge.target.is(&link.target)).count();
            let plain = link.target.is_plain(link.cost) || link.target.is_overrides();
            chain.short &= at == chain.count && link.extra | link.room == 0 && plain;
            *charge_of = at as u8;
            let Some(charge) = chain.charges.get_mut(at) else { return Err(ChainError::TooManyLinks) };
            if at == chain.count {
                let Link { target, cost, extra, room } = *link;
                *charge = Charge { target, cost, extra, room, link: i as u32 };
                chain.count += 1;
                continue;
            }
            if !charge.target.has_limit_of(&link.target) {
                return Err(ChainError::TwoLimits);
            }
            charge.cost = charge.cost.checked_add(link.cost).ok_or(ChainError::BadCost)?;
            charge.extra = charge.extra.saturating_add(link.extra);
            charge.room = charge.room.min(link.room);
        }
        Ok(chain)
    }

    /// Decides one request: charges all links if it conforms to all, else none.
    ///
    /// On a pass `policy` is the index of the tightest link, the one whose remaining units are worth the fewest
    /// requests like this one (with equal costs: the smallest remaining). All fields are of that link, flags included,
    /// but for these: `retry_after` is the longest of all links (above 0 if a shadow limit would have refused),
    /// `departure` the latest, `tracking` the first that is not `Tracked`, and [`EXEMPT`](Decision::EXEMPT) is set if
    /// any link exempts the request. Each link's own flags are in its own decision.
    ///
    /// On a refusal `policy` is the first link that can never pass, else the first that refuses. The other fields are
    /// those of that link, except for `retry_after`: the longest of all links. At `now + retry_after` every link passes
    /// if nothing else comes, and not a tick before. (If only a full set of a table or a race refused, after the peek,
    /// the retry time is that of the link that refused.)
    ///
    /// The permit is all zero: each link has its own, see [`check_ex`](Chain::check_ex). Contended: nothing is charged.
    ///
    /// The links are charged in order, but keys that have no slot last. If their set is full, they may take over the
    /// slot of another key ([`FullPolicy`](crate::FullPolicy)), but not that of another link that has a slot when the
    /// insert begins.
    ///
    /// # Concurrency
    /// Any number of threads and processes. Others may see a link charged before the rest, or before it is given back.
    /// So no limit passes more than it allows, but there may be refusals that no order of the calls would give.
    ///
    /// # Cost
    /// One lookup for each link, and one compare-and-swap each if the chain passes; only loads if it is refused. Links
    /// of 32-bit cells, of options and of other algorithms than GCRA take a second lookup and about 4 KiB of stack.
    ///
    /// Source: conservative all or none by peek, charge and undo, modelled in `combine/models/loom_chain.rs`.
    pub fn check(&self, now: u64) -> Decision {
        let mut made = Decision::contended(0, 0);
        if self.check_short(now, &mut made) {
            made
        } else {
            self.check_long(now)
        }
    }

    /// Decides like [`check`](Chain::check). Counts one decision and the keys inserted, and passes each link's own
    /// decision to `each`, in order, when all is decided.
    ///
    /// If several links are one charge, the first has the permit. After a refusal no decision has a permit, unless
    /// undoing was contended to its bound (64 lost swaps): [`refund`](Chain::refund) takes that one. If all links are
    /// plain, there is none then either, and the charge drains.
    pub fn check_ex<'c>(
        &self,
        now: u64,
        counters: impl Into<ChainCounters<'c>>,
        each: impl FnMut(usize, &Decision),
    ) -> Decision {
        let counters = counters.into();
        let mut answers = [None; MAX_LINKS];
        let inserted = match self.short_answers(now, &mut answers) {
            Ok(inserted) => inserted,
            Err(undone) => undone | self.long_answers(now, &mut answers, counters.any(), false),
        };
        self.finish(&answers, inserted, counters, each)
    }

    /// Returns what [`check`](Chain::check) would answer, without charging anything. Only reads.
    pub fn peek(&self, now: u64) -> Decision {
        self.peek_ex(now, |_, _| ())
    }

    /// Returns what [`peek`](Chain::peek) does, and hands each link's own decision to `each`, in order.
    pub fn peek_ex(&self, now: u64, each: impl FnMut(usize, &Decision)) -> Decision {
        let mut answers = [None; MAX_LINKS];
        self.look(now, &mut answers, false);
        if self.charges().all(|charge| charge.cost == 0) {
            answers.iter_mut().flatten().for_each(|answer| *answer = answer.peeked());
        }
        self.finish(&answers, 0, ChainCounters::default(), each)
    }

    /// Reserves all links for the earliest instant at which all conform, for shaping: the decision's `departure`, the
    /// latest of the links'. Each link is charged at arrival, so an aggregate is never charged at a future time. But a
    /// request that one link holds back leaves later than the others have counted it. So a limit that many chains share
    /// may send more than it allows, by what they hold back. [`Shaper::forward`](crate::Shaper::forward) does not: it
    /// asks each limit when a request gets there.
    ///
    /// A request that would wait longer than the `max_delay` of any link is refused and charges nothing; `retry_after`
    /// is the time until all links would accept it. The other fields are as for [`check`](Chain::check), and so is the
    /// order: a peek at all links, then their charges, keys that have no slot last. Extras are charged as well. If a
    /// race or a full set refuses after the peek, what was charged is given back. Others may be refused or sent later
    /// meanwhile. A link in [shadow mode](crate::LimitSpec::shadow) neither refuses nor delays.
    ///
    /// # Errors
    /// [`ChainError::BadAlgorithm`] if a limit is not a GCRA limit: only GCRA knows when a request may leave.
    /// [`ChainError::BadRoom`] if a link has room. Nothing is touched.
    ///
    /// # Concurrency
    /// Like [`check`](Chain::check). Departures are monotone if chains that share links share all of them.
    pub fn reserve(&self, now: u64) -> Result<Decision, ChainError> {
        self.reserve_ex(now, None, |_, _| ())
    }

    /// Reserves like [`reserve`](Chain::reserve), with counters and each link's decision as in
    /// [`check_ex`](Chain::check_ex).
    ///
    /// # Errors
    /// The errors of [`reserve`](Chain::reserve).
    pub fn reserve_ex<'c>(
        &self,
        now: u64,
        counters: impl Into<ChainCounters<'c>>,
        each: impl FnMut(usize, &Decision),
    ) -> Result<Decision, ChainError> {
        self.may_reserve()?;
        let (counters, mut answers) = (counters.into(), [None; MAX_LINKS]);
        let inserted = self.long_answers(now, &mut answers, counters.any(), true);
        Ok(self.finish(&answers, inserted, counters, each))
    }

    /// Gives back what the permits of the links prove was charged and has not drained since, the last link first;
    /// `permits[i]` is that of link i. Each permit that was given back becomes [`Permit::NONE`].
    ///
    /// Returns false when contended: call again with what is left in `permits`. A permit that is worth nothing to its
    /// cell or table is worth nothing here.
    pub fn refund(&self, now: u64, permits: &mut [Permit]) -> bool {
        let kept = self.charges().rev().filter(|charge| {
            permits.get_mut(charge.link as usize).is_some_and(|permit| !charge.give_back(now, permit))
        });
        kept.count() == 0
    }

    pub(super) fn charges(&self) -> impl DoubleEndedIterator<Item = &Charge<'a>> {
        self.charges.iter().take(self.count)
    }

    /// Sets the answers to what a check of each link, or a reservation, would return.
    pub(super) fn look(&self, now: u64, answers: &mut Answers, reserves: bool) {
        for (charge, answer) in self.charges().zip(answers.iter_mut()) {
            *answer = Some(charge.peek(now, reserves));
        }
        if self.overrides {
            self.exempt(now, answers);
        }
    }

    /// If an override exempts the request and none bans it, makes all links pass as they stand.
    #[cold]
    #[inline(never)]
    fn exempt(&self, now: u64, answers: &mut Answers) {
        if self.is_exempt(answers) {
            for answer in answers.iter_mut().flatten() {
                (answer.verdict, answer.retry_after, answer.departure) = (Verdict::Conforming, 0, now);
                answer.flags &= Decision::EXEMPT;
            }
        }
    }

    /// Returns whether an override exempts the request, and none bans it.
    pub(super) fn is_exempt(&self, answers: &Answers) -> bool {
        let has = |flag| answers.iter().flatten().any(|answer| answer.flags & flag != 0);
        self.overrides && has(Decision::EXEMPT) && !has(Decision::BANNED)
    }

    pub(super) fn all_pass(&self, answers: &Answers) -> bool {
        answers.iter().flatten().all(Decision::passes)
    }

    /// Counts the chain's decision and those of its links, passes each link its own, and returns the chain's.
    /// `inserted` has a bit for each charge.
    pub(super) fn finish(
        &self,
        answers: &Answers,
        inserted: u64,
        counters: ChainCounters<'_>,
        mut each: impl FnMut(usize, &Decision),
    ) -> Decision {
        let whole = self.sum_up(answers);
        if !counters.links.is_empty() {
            self.count_links(answers, inserted, counters.links);
        }
        if let Some(counters) = counters.chain {
            let all = answers.iter().flatten().fold(0, |flags, answer| flags | answer.flags);
            counters
                .count(&Decision { flags: if whole.passes() { all } else { whole.flags }, ..whole }, false);
            counters.inserted = counters.inserted.wrapping_add(inserted.count_ones().into());
        }
        for (i, at) in self.charge_of.iter().take(self.links).enumerate() {
            let (Some(charge), Some(Some(answer))) =
                (self.charges.get(*at as usize), answers.get(*at as usize))
            else {
                continue;
            };
            let permit = if charge.link as usize == i { answer.permit } else { Permit::NONE };
            each(i, &Decision { policy: i as u32, permit, ..*answer });
        }
        whole
    }

    /// Returns the answers of all links as one.
    fn sum_up(&self, answers: &Answers) -> Decision {
        let told = || self.charges().zip(answers.iter().flatten());
        // The worst verdict decides, and of several the first.
        let Some((named, decided)) = told().min_by_key(|(_, answer)| answer.verdict.urgency()) else {
            return Decision::contended(0, 0);
        };
        if !decided.passes() {
            let refusals = told().filter(|(_, answer)| !answer.passes());
            let retry_after = refusals.map(|(_, answer)| answer.retry_after).max().unwrap_or(0);
            return Decision { policy: named.link, retry_after, permit: Permit::NONE, ..*decided };
        }
        let (mut named, mut decided) = (named, decided);
        let (mut flags, mut retry_after, mut departure) = (0, 0, 0);
        let mut tracking = Tracking::Tracked;
        for (charge, answer) in told() {
            if is_tighter((charge.cost, answer.remaining), (named.cost, decided.remaining)) {
                (named, decided) = (charge, answer);
            }
            flags |= answer.flags;
            // Not 0 if a shadow limit would have refused.
            retry_after = retry_after.max(answer.retry_after);
            departure = departure.max(answer.departure);
            if tracking == Tracking::Tracked {
                tracking = answer.tracking;
            }
        }
        let (flags, permit) = (decided.flags | flags & Decision::EXEMPT, Permit::NONE);
        Decision { policy: named.link, flags, retry_after, departure, tracking, permit, ..*decided }
    }
}

impl Charge<'_> {
    /// Returns what a check of the link, or a reservation, would return.
    pub(super) fn peek(&self, now: u64, reserves: bool) -> Decision {
        match reserves {
            true => self.target.peek_reserve(now, self.cost),
            false => self.target.peek(now, self.cost, self.room),
        }
    }

    /// Gives one charge back. Returns false at the bound: the permit is still good.
    pub(super) fn give_back(&self, now: u64, permit: &mut Permit) -> bool {
        let done = *permit == Permit::NONE || (0..UNDO).any(|_| self.target.refund(now, permit));
        if done {
            *permit = Permit::NONE;
        }
        done
    }
}

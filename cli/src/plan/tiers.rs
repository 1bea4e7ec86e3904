//! The tiers of a ladder: one table, in which each prefix of an address has a limit of its own.

use tatcell::{
    Chain, Counters, Decision, ExclusiveTable, Ladder, LadderLimits, LimitSpec, Link, Tracking, MAX_LINKS,
};

use super::order::Held;

/// The limits of a ladder, and what each of its tiers refused.
pub(super) struct Tiers {
    limits: LadderLimits,
    /// Which of the hashes of a record the tiers count by.
    places: Vec<usize>,
    /// Requests of IPv6 and of IPv4.
    asked: [u64; 2],
    refused: [[u64; MAX_LINKS]; 2],
}

/// A tier of a ladder, and what it refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tier {
    /// Whether it is one of IPv4.
    pub is_v4: bool,
    /// The length of its prefix.
    pub bits: u8,
    /// How many times the limit of one address its limit is.
    pub multiplier: u32,
    /// Requests that this tier was the first to refuse.
    pub refused: u64,
}

impl Tiers {
    /// Makes the limits for a table.
    pub(super) fn new(
        table: &ExclusiveTable<'static>,
        ladder: &Ladder,
        spec: &LimitSpec,
        places: &[usize],
    ) -> Result<Tiers, String> {
        let limits = LadderLimits::new(table, ladder, spec).map_err(|error| error.to_string())?;
        Ok(Tiers { limits, places: places.to_vec(), asked: [0; 2], refused: [[0; MAX_LINKS]; 2] })
    }

    /// The hashes of the prefixes of a record, the longest prefix first.
    pub(super) fn hashes<'a>(&'a self, held: &'a Held) -> impl Iterator<Item = u64> + 'a {
        let count = self.limits.limits(held.is_v4).len();
        self.places[..count].iter().map(|place| held.hash_of(*place))
    }

    /// Asks all tiers of an address, as [`LadderLimits::check`] does with the address itself.
    pub(super) fn ask(
        &mut self,
        table: &ExclusiveTable<'static>,
        held: &Held,
        counters: &mut Counters,
        mut each: impl FnMut(u64, u64, Tracking),
    ) -> Result<bool, String> {
        let limits = self.limits.limits(held.is_v4);
        let mut links = [Link::hash(table, &limits[0], 0, held.cost); MAX_LINKS];
        for ((link, limit), hash) in links.iter_mut().zip(limits).zip(self.hashes(held)) {
            *link = Link::hash(table, limit, hash, held.cost);
        }
        let chain = Chain::new(&links[..limits.len()]).map_err(|error| error.to_string())?;
        let mut hashes = self.hashes(held);
        let decision = chain.check_ex(held.time, Some(counters), |_, answer: &Decision| {
            each(hashes.next().unwrap_or(0), answer.reset_after, answer.tracking);
        });
        drop(hashes);
        let family = usize::from(held.is_v4);
        self.asked[family] += 1;
        if !decision.passes() {
            self.refused[family][decision.policy as usize] += 1;
        }
        Ok(decision.passes())
    }

    /// Returns what the tiers of each family refused of which a request came.
    pub(super) fn all(&self) -> impl Iterator<Item = Tier> + '_ {
        let families = [true, false].into_iter().filter(|is_v4| self.asked[usize::from(*is_v4)] > 0);
        families.flat_map(|is_v4| {
            let rungs = self.limits.ladder().rungs(is_v4).iter().zip(&self.refused[usize::from(is_v4)]);
            rungs.map(move |(rung, refused)| Tier {
                is_v4,
                bits: rung.bits,
                multiplier: rung.multiplier,
                refused: *refused,
            })
        })
    }
}

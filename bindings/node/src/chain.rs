//! Several limits for one request: all are charged, or none.

use std::rc::Rc;

use tatcell::{Chain, Link, MAX_LINKS};

use crate::errors::{closed, wrong, Failed};
use crate::limiter::{Limiter, Open};
use crate::objects::{with, Object};
use crate::scratch::Scratch;
use crate::single::Single;
use crate::{number, Call, FULL, PEEK};

enum Member {
    Limiter(Rc<Limiter>),
    Cell(Rc<Single>),
}

/// The members of a chain, and how many of them take a key.
pub(crate) struct Links {
    pub scratch: Rc<Scratch>,
    members: Vec<Member>,
    keys: usize,
}

impl Links {
    pub fn new(scratch: Rc<Scratch>, handles: &[u32]) -> Result<Links, Failed> {
        let member = |handle: &u32| {
            with(*handle, |object| match object {
                Object::Limiter(limiter) => Ok(Member::Limiter(Rc::clone(limiter))),
                Object::Cell(cell) => Ok(Member::Cell(Rc::clone(cell))),
                _ => Err(closed()),
            })
        };
        let members = handles.iter().map(member).collect::<Result<Vec<_>, _>>()?;
        let keys = members.iter().filter(|member| matches!(member, Member::Limiter(_))).count();
        let links = Links { scratch, members, keys };
        // Fails now if the limits cannot form a chain, whatever the keys are.
        links.with_chain(1, &[0, 1, 2, 3, 4, 5, 6, 7], |_| ())?;
        Ok(links)
    }

    /// Calls a function with the chain of one request. There is a hash for each limiter.
    fn with_chain<A>(
        &self,
        cost: u64,
        hashes: &[u64],
        call: impl FnOnce(&Chain<'_>) -> A,
    ) -> Result<A, Failed> {
        let open: Vec<_> = self
            .members
            .iter()
            .filter_map(|member| {
                if let Member::Limiter(limiter) = member {
                    Some(limiter.open.borrow())
                } else {
                    None
                }
            })
            .collect();
        let mut tables = open.iter().zip(hashes);
        let mut links = Vec::with_capacity(MAX_LINKS);
        for member in &self.members {
            links.push(match member {
                Member::Cell(cell) => Link::cell(&cell.cell, &cell.limit, cost),
                Member::Limiter(_) => {
                    let (open, hash) = tables.next().ok_or_else(closed)?;
                    let Open { table, limit, .. } = open.as_ref().ok_or_else(closed)?;
                    Link::hash(table, limit, *hash, cost)
                }
            });
        }
        Ok(call(&Chain::new(&links).map_err(wrong)?))
    }

    pub fn decide(&self, call: &Call) -> Result<u32, Failed> {
        let mut limiters =
            self.members
                .iter()
                .filter_map(|member| if let Member::Limiter(it) = member { Some(it) } else { None });
        let (mut hashes, mut latest, mut failed) = ([0; MAX_LINKS], 0, None);
        let mut places = hashes.iter_mut();
        self.scratch.each_key(self.keys, |key| {
            if let (Some(limiter), Some(place)) = (limiters.next(), places.next()) {
                match limiter.hash(call, key) {
                    Ok((hash, now)) => (*place, latest) = (hash, latest.max(now)),
                    Err(error) => failed = Some(error),
                }
            }
        })?;
        if let Some(error) = failed {
            return Err(error);
        }
        // A cell has the caller's time alone.
        let now = if self.keys == self.members.len() { latest } else { call.now };
        self.with_chain(call.cost, &hashes, |chain| {
            if !call.is(PEEK | FULL) {
                return number(chain.verdict(now));
            }
            let each = |i: usize, decision: &tatcell::Decision| self.scratch.put(i + 1, decision);
            let whole = match call.is(PEEK) {
                true => chain.peek_ex(now, each),
                false => chain.check_ex(now, None, each),
            };
            self.scratch.put(0, &whole);
            number(whole.verdict)
        })
    }
}

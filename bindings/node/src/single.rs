//! One limit, one state.

use std::rc::Rc;

use tatcell::{Cell, Limit, LimitInfo, LimitSpec};

use crate::errors::Failed;
use crate::limiter::{spec, unfit};
use crate::scratch::Scratch;
use crate::{number, Call, FULL, PEEK};

/// A cell with its limit.
pub(crate) struct Single {
    pub scratch: Rc<Scratch>,
    pub spec: LimitSpec,
    pub limit: Limit,
    pub info: LimitInfo,
    pub cell: Cell,
}

impl Single {
    pub fn new(scratch: Rc<Scratch>, text: &str, algorithm: u32) -> Result<Single, Failed> {
        let spec = spec(text, algorithm)?;
        let limit = spec.build().map_err(|error| unfit(text, error))?;
        Ok(Single { scratch, spec, limit, info: limit.info(), cell: Cell::new() })
    }

    pub fn decide(&self, call: &Call) -> u32 {
        if !call.is(PEEK | FULL) {
            return number(self.cell.check(&self.limit, call.now, call.cost).verdict());
        }
        let decision = match call.is(PEEK) {
            true => self.cell.peek(&self.limit, call.now, call.cost),
            false => self.cell.check_ex(&self.limit, call.now, call.cost, 0),
        };
        self.scratch.put(0, &decision);
        number(decision.verdict)
    }

    pub fn reset(&self) {
        self.cell.reset();
    }
}

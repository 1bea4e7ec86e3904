//! Every form of a limiter behind one trait, so that one test covers them all.

use super::memory;
use tatcell::{
    Cell, Cell32, Decision, ExclusiveCell, ExclusiveTable, Limit, Limit32, LimitSpec, Outcome, Permit,
    Request, Table, TableLimit, TableOptions,
};

pub trait Form {
    fn name(&self) -> &'static str;
    fn resolution(&self) -> (u64, i32);
    fn check(&mut self, now: u64, cost: u32) -> Outcome;
    fn check_ex(&mut self, now: u64, cost: u32, room: u64) -> Decision;
    fn peek(&mut self, now: u64, cost: u32) -> Decision;
    fn charge(&mut self, now: u64, cost: u32) -> Decision;
    fn reserve(&mut self, now: u64, cost: u32) -> Decision;
    fn reserve_from(&mut self, now: u64, from: u64, cost: u32) -> Decision;
    fn refund(&mut self, now: u64, permit: &Permit) -> Option<u64>;
    /// The state word (tables: a digest of all slots that are live now).
    fn state(&self, now: u64) -> u64;
    fn reset(&mut self, now: u64);
}

macro_rules! cell_form {
    ($form:ident, $cell:ident, $limit:ident, $build:ident, $name:literal) => {
        pub struct $form(pub $cell, pub $limit);
        impl $form {
            pub fn make(spec: &LimitSpec) -> Option<Box<dyn Form>> {
                Some(Box::new($form($cell::new(), spec.$build().ok()?)))
            }
        }
        impl Form for $form {
            fn name(&self) -> &'static str {
                $name
            }
            fn resolution(&self) -> (u64, i32) {
                self.1.emission_interval()
            }
            fn check(&mut self, now: u64, cost: u32) -> Outcome {
                self.0.check(&self.1, now, cost.into())
            }
            fn check_ex(&mut self, now: u64, cost: u32, room: u64) -> Decision {
                self.0.check_ex(&self.1, now, cost.into(), room)
            }
            fn peek(&mut self, now: u64, cost: u32) -> Decision {
                self.0.peek(&self.1, now, cost.into())
            }
            fn charge(&mut self, now: u64, cost: u32) -> Decision {
                self.0.charge(&self.1, now, cost.into())
            }
            fn reserve(&mut self, now: u64, cost: u32) -> Decision {
                self.0.reserve(&self.1, now, cost.into())
            }
            fn reserve_from(&mut self, now: u64, from: u64, cost: u32) -> Decision {
                self.0.reserve_from(&self.1, now, from, cost.into())
            }
            fn refund(&mut self, now: u64, permit: &Permit) -> Option<u64> {
                self.0.refund(&self.1, now, permit)
            }
            fn state(&self, _now: u64) -> u64 {
                self.0.word().into()
            }
            fn reset(&mut self, _now: u64) {
                self.0.reset();
            }
        }
    };
}

cell_form!(CellForm, Cell, Limit, build, "Cell");
cell_form!(OwnedForm, ExclusiveCell, Limit, build, "ExclusiveCell");
cell_form!(Cell32Form, Cell32, Limit32, build32, "Cell32");

macro_rules! table_form {
    ($form:ident, $table:ident, $init:ident, $name:literal) => {
        pub struct $form<'m>(pub $table<'m>, pub TableLimit, pub u64);
        impl $form<'static> {
            pub fn with(spec: &LimitSpec, options: &TableOptions, hash: u64) -> Option<Box<dyn Form>> {
                let lines: &'static mut [tatcell::Line] = Box::leak(memory(6).into_boxed_slice());
                let table = $table::$init(lines, options).ok()?;
                let limit = table.limit(spec).ok()?;
                Some(Box::new($form(table, limit, hash)))
            }
            pub fn make(spec: &LimitSpec) -> Option<Box<dyn Form>> {
                Self::with(spec, &TableOptions::new(*spec).caller_hash(), 0x1234_5678_9abc_def0)
            }
        }
        impl Form for $form<'_> {
            fn name(&self) -> &'static str {
                $name
            }
            fn resolution(&self) -> (u64, i32) {
                self.1.emission_interval()
            }
            fn check(&mut self, now: u64, cost: u32) -> Outcome {
                self.0.check_hash(&self.1, now, self.2, cost.into()).unwrap()
            }
            fn check_ex(&mut self, now: u64, cost: u32, room: u64) -> Decision {
                let request = Request { limit: &self.1, now, cost: cost.into(), room };
                self.0.check_ex(&request, self.2, None).unwrap()
            }
            fn peek(&mut self, now: u64, cost: u32) -> Decision {
                self.0.peek(&self.1, now, self.2, cost.into()).unwrap()
            }
            fn charge(&mut self, now: u64, cost: u32) -> Decision {
                self.0.charge(&self.1, now, self.2, cost.into(), None).unwrap()
            }
            fn reserve(&mut self, now: u64, cost: u32) -> Decision {
                self.0.reserve(&self.1, now, self.2, cost.into(), None).unwrap()
            }
            fn reserve_from(&mut self, now: u64, from: u64, cost: u32) -> Decision {
                self.0.reserve_from(&self.1, (now, from), self.2, cost.into()).unwrap()
            }
            fn refund(&mut self, now: u64, permit: &Permit) -> Option<u64> {
                self.0.refund(&self.1, now, self.2, permit).unwrap()
            }
            fn state(&self, now: u64) -> u64 {
                let mut out = vec![0; self.0.image_words()];
                self.0.save(now, &mut out).unwrap();
                out.iter().fold(0, |digest, word| digest.rotate_left(7).wrapping_mul(31) ^ word)
            }
            fn reset(&mut self, now: u64) {
                assert!(self.0.reset_key(now, self.2));
            }
        }
    };
}

table_form!(TableForm, Table, init, "Table");
table_form!(OwnedTableForm, ExclusiveTable, init_exclusive, "ExclusiveTable");

/// All forms that can hold this limit, each with the resolution it chooses.
pub fn all(spec: &LimitSpec) -> Vec<Box<dyn Form>> {
    [CellForm::make, OwnedForm::make, Cell32Form::make, TableForm::make, OwnedTableForm::make]
        .iter()
        .filter_map(|make| make(spec))
        .collect()
}

/// A time at which the key of `at` has long been full: half the span of a table's word.
pub fn start(s: i8) -> u64 {
    if s >= 0 {
        1 << 42 >> s
    } else {
        1 << 42 << -s
    }
}

/// All forms that can hold this limit with a q-unit of `2^-s` ticks; tables take their skew from the options.
///
/// The key already has its slot in the tables, long expired: the permit of an inserting charge leaves out the claim
/// lifetime (see `tests/table/calls.rs`), every other answer is the cell's.
pub fn at(spec: &LimitSpec, s: i8, skew: Option<u64>) -> Vec<Box<dyn Form>> {
    let (mut spec, mut options) = (spec.resolution(s), TableOptions::new(*spec).caller_hash().resolution(s));
    if let Some(ticks) = skew {
        (spec, options) = (spec.skew(ticks), options.skew(ticks));
    }
    let cells = [CellForm::make, OwnedForm::make, Cell32Form::make];
    let tables = [TableForm::with, OwnedTableForm::with];
    let tables = tables.iter().filter_map(|make| {
        let mut form = make(&spec, &options, 0x1234_5678_9abc_def0)?;
        assert!(form.check(start(s) >> 1, 1).passes());
        Some(form)
    });
    cells.iter().filter_map(|make| make(&spec)).chain(tables).collect()
}

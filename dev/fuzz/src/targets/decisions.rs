//! GCRA in every form: two cells, the 32-bit cell, two tables, and bursts. All get the same requests and answer like
//! the exact bucket.

use tatcell::{
    AttachOptions, Burst, Cell, Cell32, Counters, Decision, ExclusiveCell, ExclusiveTable, LimitSpec,
    NextBurst, Permit, Table, TableLimit, TableOptions, Tracking,
};

use super::pool::piece;
use crate::common::forms::{start, Cell32Form, CellForm, Form, OwnedForm, OwnedTableForm, TableForm};
use crate::common::oracle::{seen, Expected, Oracle};
use crate::data::Data;

/// The key in the tables.
const HASH: u64 = 0x1234_5678_9abc_def0;

/// Which form the shared table is, and which the one that is asked by bursts of one where that can be.
const TABLE: usize = 2;
const BURSTS: usize = 4;

/// What is asked, of all forms alike.
#[derive(Clone, Copy, Debug)]
enum Ask {
    Check { cost: u32, room: u64 },
    Peek { cost: u32 },
    Charge { cost: u32 },
    Reserve { cost: u32 },
    Refund,
}

/// A limit with options or without, and the bucket that it must answer as.
fn limit(data: &mut Data<'_>) -> Option<(LimitSpec, i8, Oracle, u128)> {
    let s = data.within(0, 20) as i8 - 8;
    let (units, period, burst) = (1 + data.scaled(13), 1 + data.scaled(26), 1 + data.scaled(16));
    let (mut soft, mut room, mut delay, mut debt, mut penalty) = (0, 0, 0, 0, 0);
    if data.flag() {
        (soft, room, penalty) = (data.below(256).min(burst), data.scaled(4), data.scaled(3));
        (debt, delay) = (data.scaled(4), data.scaled(12));
    }
    let spec = LimitSpec::new(units, period, burst).soft(soft).max_room(room).penalty(penalty);
    let spec = spec.max_debt(debt).max_delay(delay).resolution(s);
    let limit = spec.build().ok()?;
    let (t_q, s) = limit.emission_interval();
    let mut oracle = Oracle::fixed(t_q, s, burst);
    oracle.soft = if soft == 0 { u128::MAX } else { soft.into() };
    (oracle.room, oracle.penalty, oracle.debt) = (room.into(), penalty.into(), debt.into());
    oracle.delay = oracle.grains(delay.into());
    Some((spec, s as i8, oracle, limit.numbers().ok()?.horizon_q.into()))
}

fn ask_form(form: &mut dyn Form, now: u64, ask: Ask, permit: &Permit) -> Decision {
    match ask {
        Ask::Check { cost, room } => form.check_ex(now, cost, room),
        Ask::Peek { cost } => form.peek(now, cost),
        Ask::Charge { cost } => form.charge(now, cost),
        Ask::Reserve { cost } => form.reserve(now, cost),
        Ask::Refund => {
            let back = form.refund(now, permit).expect("nobody else is here");
            let mut look = form.peek(now, 1);
            look.permit.stored = back;
            look
        }
    }
}

/// What the oracle says, and when what was reserved departs.
fn expected(
    oracle: &mut Oracle,
    now: u64,
    ask: Ask,
    charge: Option<(u64, u128)>,
    horizon: u128,
) -> (Expected, Option<u128>) {
    let now = u128::from(now);
    let mut departure = None;
    let answer = match ask {
        Ask::Check { cost, room } => oracle.check(now, cost, room),
        Ask::Peek { cost } => oracle.peek(now, cost),
        Ask::Charge { cost } => oracle.charge(now, cost),
        Ask::Reserve { cost } => {
            let before = oracle.tat.max(oracle.grains(now));
            let reserved = oracle.reserve(now, cost);
            let mut answer = oracle.peek(now, 0);
            answer.stored = (oracle.tat.max(oracle.grains(now)) - before) as u64;
            (answer.verdict, answer.retry_after) = match reserved {
                Ok(at) => {
                    departure = Some(at);
                    (0, 0)
                }
                Err((2, _)) => (2, u64::MAX),
                Err(refused) => refused,
            };
            answer
        }
        Ask::Refund => {
            let (stored, after) = charge.expect("a charge before");
            let back = oracle.refund(now, stored, after, horizon);
            let mut answer = oracle.peek(now, 1);
            answer.stored = (back * oracle.den / oracle.num) as u64;
            answer
        }
    };
    (answer, departure)
}

/// The next reading of the clock: at once, near, about a unit, about a burst, back within the skew.
fn step(data: &mut Data<'_>, kind: u8, now: u64, latest: u64, oracle: &Oracle) -> u64 {
    let in_ticks = |grains: u128| (grains * oracle.den / oracle.num) as u64;
    let (unit, burst) = (in_ticks(oracle.t), in_ticks(oracle.burst * oracle.t));
    match kind & 7 {
        0 | 1 => now,
        2 => now + data.below(256),
        3 => now + unit.saturating_sub(1) + data.below(3),
        4 => now + data.scaled(40) % (4 * burst + 2),
        5 => now + unit * data.below(256),
        // The least default skew is the horizon: within it a step back only shows a larger lead.
        6 => now.saturating_sub(data.scaled(40) % (burst + 1)).max(latest.saturating_sub(burst)),
        _ => now + burst,
    }
}

pub fn run(input: &[u8]) {
    let data = &mut Data(input);
    let Some((spec, s, mut oracle, horizon)) = limit(data) else { return };
    let options = TableOptions::new(spec).caller_hash().resolution(s);
    let (one, mut two, three) = (piece(), piece(), piece());
    let Ok(shared) = Table::init(one.lines(6), &options) else { return };
    let Ok(table_limit) = shared.limit(&spec) else { return };
    let own = ExclusiveTable::init_exclusive(two.lines_mut(6), &options).expect("as the shared one");
    let bursts = Table::init(three.lines(6), &options).expect("as the shared one");
    let single = spec.build().expect("built before");
    let mut forms: Vec<Box<dyn Form + '_>> = vec![
        Box::new(CellForm(Cell::new(), single)),
        Box::new(OwnedForm(ExclusiveCell::new(), single)),
        Box::new(TableForm(shared, table_limit, HASH)),
        Box::new(OwnedTableForm(own, table_limit, HASH)),
        Box::new(TableForm(bursts, table_limit, HASH)),
    ];
    // The key has its slot already, long expired: the permit of an insert leaves out the claim lifetime.
    forms[TABLE..].iter_mut().for_each(|form| assert!(form.check(start(s) >> 1, 1).passes()));
    let bursts = Table::attach(three.lines(6), &AttachOptions::new()).expect("made above");
    if let Ok(limit) = spec.build32() {
        forms.push(Box::new(Cell32Form(Cell32::new(), limit)));
    }
    // How long these keys may be idle before their words wrap.
    let mut idle32 = spec.build32().map_or(0, |limit| limit.info().span >> 2);
    let idle = start(s) >> 1;

    let (mut now, mut latest) = (start(s), start(s));
    let mut permits = vec![Permit::NONE; forms.len()];
    let mut charge = None;
    while !data.is_empty() {
        let op = data.byte();
        now = step(data, op, now, latest, &oracle);
        latest = latest.max(now);
        if latest - start(s) >= idle32 {
            forms.truncate(5);
        }
        if latest - start(s) > idle {
            break;
        }
        let cost = match op >> 3 & 7 {
            0 => 0,
            1..=3 => 1,
            4 => oracle.burst as u32,
            5 => oracle.burst as u32 + 1,
            6 => u32::MAX,
            _ => data.scaled(17) as u32,
        };
        let ask = match op >> 6 {
            0 => Ask::Check { cost, room: 0 },
            1 => match data.below(4) {
                0 => Ask::Check { cost, room: data.scaled(5) },
                1 => Ask::Charge { cost },
                2 => Ask::Reserve { cost },
                _ => Ask::Peek { cost },
            },
            2 if charge.is_some() => Ask::Refund,
            _ => Ask::Check { cost: cost.min(2), room: 0 },
        };
        let (want, departure) = expected(&mut oracle, now, ask, charge, horizon);
        for (i, form) in forms.iter_mut().enumerate() {
            if let (BURSTS, Ask::Check { cost, room: 0 }) = (i, ask) {
                let costs = [cost];
                let burst = Burst { costs: Some(&costs), ..Burst::new(&table_limit, now, &[HASH]) };
                let pass = burst.check(&bursts, None, NextBurst::NONE);
                assert_eq!(pass, Ok(u64::from(want.verdict == 0)), "a burst: {cost} at {now}, {spec:?}");
                // A burst gives none; its table is in the state of the one before.
                permits[BURSTS] = permits[TABLE];
                continue;
            }
            let answer = ask_form(form.as_mut(), now, ask, &permits[i]);
            if (form.name(), form.state(now)) == ("Cell32", 1) {
                // A TAT of 0 is stored as 1: a q-unit later than the bucket's, once in a turn of the 32 bits.
                idle32 = 0;
                continue;
            }
            assert_eq!(answer.tracking, Tracking::Tracked);
            let mut got = seen(&answer);
            if let Ask::Reserve { .. } = ask {
                // Which thresholds it passed is not the oracle's to say.
                got.flags = want.flags;
            }
            if let Some(departure) = departure {
                assert_eq!(u128::from(answer.departure), departure, "{}: {ask:?} at {now}", form.name());
            }
            assert_eq!(got, want, "{}: {ask:?} at {now}, {spec:?}", form.name());
            if !matches!(ask, Ask::Refund | Ask::Peek { .. }) {
                permits[i] = answer.permit;
            }
        }
        match ask {
            Ask::Refund => charge = None,
            Ask::Peek { .. } => {}
            _ => charge = (want.stored > 0).then_some((want.stored, oracle.tat)),
        }
    }
    let shared = Table::attach(one.lines(6), &AttachOptions::new()).expect("made above");
    many(&shared, table_limit, now);
}

/// A burst of many keys, repeated ones included, decides as they would one by one.
fn many(table: &Table<'_>, limit: TableLimit, now: u64) {
    let copy = piece();
    let mut image = [0; 6 * 8];
    table.save(now, &mut image).expect("room for it");
    let single = Table::restore(copy.lines(6), &image, &AttachOptions::new(), 0).expect("its own image");
    let hashes: [u64; 24] = core::array::from_fn(|i| (i as u64 * 5 % 7 + 1) * 0x0101_0101_0101_0101);
    let costs: [u32; 24] = core::array::from_fn(|i| i as u32 % 4);
    let burst = Burst { costs: Some(&costs), ..Burst::new(&limit, now, &hashes) };
    let pass = burst.check(table, Some(&mut Counters::default()), NextBurst::NONE).expect("its own limit");
    for (i, (&hash, &cost)) in hashes.iter().zip(&costs).enumerate() {
        let one = single.check_hash(&limit, now, hash, cost.into()).expect("its own limit");
        assert_eq!(pass >> i & 1 == 1, one.passes(), "request {i} of a burst at {now}");
    }
}

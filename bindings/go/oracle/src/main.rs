//! Answers calls with the library, for the test that compares the Go package with it (`../oracle_test.go`).
//!
//! A call is 16 little-endian words on standard input, and its answer 20 on standard output.

use std::fmt::Write as _;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};

use tatcell::http::{Field, Fields, Policy};
use tatcell::{
    Address, Cell, Change, Decision, FullPolicy, Limit, LimitError, LimitSpec, Line, Permit, Request, Table,
    TableError, TableLimit, TableOptions,
};

const SEED: [u8; 16] = *b"0123456789abcdef";
type Call = [u64; 16];
type Answer = [u64; 20];

/// What calls refer to by number. Each key and cell has the permit of its last charge.
#[derive(Default)]
struct World {
    specs: Vec<Option<LimitSpec>>,
    cells: Vec<(Cell, Permit)>,
    tables: Vec<Option<(Table<'static>, usize)>>,
    memories: Vec<&'static [Line]>,
    limits: Vec<Option<(usize, TableLimit)>>,
    permits: std::collections::HashMap<(usize, u64), Permit>,
    last: Option<Decision>,
}

fn at<T: Default>(list: &mut Vec<T>, i: u64) -> &mut T {
    while list.len() <= i as usize {
        list.push(T::default());
    }
    &mut list[i as usize]
}

fn limit_code(e: LimitError) -> u64 {
    match e {
        LimitError::ZeroRate => 1,
        LimitError::ZeroPeriod => 2,
        LimitError::ZeroBurst => 3,
        LimitError::NotRepresentable => 4,
        LimitError::HorizonTooLong => 5,
        LimitError::BadResolution => 6,
        LimitError::BadSoft => 7,
        LimitError::BadHeal => 8,
        _ => 99,
    }
}

fn table_code(e: TableError) -> u64 {
    match e {
        TableError::Limit(e) => limit_code(e),
        TableError::TooSmall => 9,
        TableError::TooLarge => 10,
        TableError::SpanTooShort => 11,
        TableError::BadTagBits => 12,
        TableError::BadLifetime => 13,
        TableError::LimitTooFast => 14,
        _ => 99,
    }
}

fn words<const N: usize>(values: [u64; N]) -> Answer {
    let mut answer = [0; 20];
    answer[..N].copy_from_slice(&values);
    answer
}

fn bytes(text: &[u8]) -> Answer {
    let mut answer = words([text.len() as u64]);
    for (word, part) in answer[1..].iter_mut().zip(text.chunks(8)) {
        let mut whole = [0; 8];
        whole[..part.len()].copy_from_slice(part);
        *word = u64::from_le_bytes(whole);
    }
    answer
}

fn text_of(call: &Call) -> Vec<u8> {
    let all: Vec<u8> = call[3..].iter().flat_map(|word| word.to_le_bytes()).collect();
    all[..call[2] as usize].to_vec()
}

fn decision(d: &Decision, word: u64) -> Answer {
    let p = d.permit;
    words([
        d.verdict as u64,
        d.flags as u64,
        d.tracking as u64,
        d.cost,
        d.burst,
        d.remaining,
        d.retry_after,
        d.next_unit,
        d.reset_after,
        d.departure,
        d.units,
        d.in_debt as u64,
        p.tat,
        p.stored,
        p.tick,
        p.generation,
        p.epoch as u64,
        p.slot as u64,
        word,
    ])
}

fn spec(c: &Call) -> LimitSpec {
    let [_, _, units, period, burst, soft, room, delay, debt, penalty, flags, epoch, has, skew, shift, _] =
        *c;
    let mut s =
        LimitSpec::new(units, period, burst).soft(soft).max_room(room).max_delay(delay).max_debt(debt);
    s = s.penalty(penalty).epoch(epoch as u32);
    if flags & 1 != 0 {
        s = s.heal();
    }
    if flags & 2 != 0 {
        s = s.shadow();
    }
    if flags & 4 != 0 {
        s = s.strict_refunds();
    }
    if has & 1 != 0 {
        s = s.skew(skew);
    }
    if has & 2 != 0 {
        s = s.resolution(shift as i8);
    }
    s
}

const HOW: [Change; 3] = [Change::KeepTime, Change::KeepUnits, Change::Reset];

impl World {
    fn limit(&mut self, slot: u64) -> Limit {
        at(&mut self.specs, slot).expect("a spec").build().expect("a limit")
    }

    fn cell(&mut self, c: &Call) -> Answer {
        let [_, key, slot, now, cost, how, extra, ..] = *c;
        let limit = self.limit(slot);
        let to = (how == 7).then(|| self.limit(extra >> 8));
        let (cell, permit) = at(&mut self.cells, key);
        let d = match how {
            0 => {
                let o = cell.check(&limit, now, cost);
                return words([o.verdict() as u64, o.retry_after(), cell.word()]);
            }
            1 => cell.check_ex(&limit, now, cost, extra),
            2 => cell.charge(&limit, now, cost),
            3 => cell.refund_ex(&limit, now, permit),
            4 => cell.reserve(&limit, now, cost),
            5 => cell.peek(&limit, now, cost),
            6 => {
                cell.reset();
                return words([cell.word()]);
            }
            _ => {
                let done = cell.change(&limit, &to.expect("another"), now, HOW[(extra & 255) as usize]);
                return words([done.unwrap_or(false) as u64, cell.word()]);
            }
        };
        if how != 5 {
            *permit = d.permit;
        }
        self.last = Some(d);
        decision(&d, cell.word())
    }

    fn make(&mut self, c: &Call) -> Answer {
        let [_, table, fast, slow, slots, policy, tag, skew, lifetime, shift, caller, ..] = *c;
        let (fast, slow) =
            (at(&mut self.specs, fast).expect("a spec"), at(&mut self.specs, slow).expect("a spec"));
        let policies = [FullPolicy::Admit, FullPolicy::Inherit, FullPolicy::Deny, FullPolicy::Sampled];
        let mut o = TableOptions::new(fast).slowest(slow).policy(policies[policy as usize]);
        o = o.tag_bits(tag as u32).tick_hz(1_000_000_000);
        o = if caller != 0 { o.caller_hash() } else { o.seed(SEED) };
        if skew != 0 {
            o = o.skew(skew - 1);
        }
        if lifetime != 0 {
            o = o.claim_lifetime(lifetime - 1);
        }
        if shift != 0 {
            o = o.resolution((shift as i64 - 100) as i8);
        }
        let lines: Vec<Line> = (0..2 + slots.div_ceil(16) * 2).map(|_| Line::new()).collect();
        let lines: &'static [Line] = lines.leak();
        *at(&mut self.memories, table) = lines;
        let made = Table::init(lines, &o);
        let code = made.as_ref().err().map_or(0, |e| table_code(*e));
        *at(&mut self.tables, table) = made.ok().map(|t| (t, table as usize));
        words([code])
    }

    fn limit_of(&mut self, c: &Call) -> Answer {
        let [_, table, slot, to, ..] = *c;
        let spec = at(&mut self.specs, slot).expect("a spec");
        let (table, number) = at(&mut self.tables, table).as_ref().expect("a table");
        let made = table.limit(&spec);
        let code = made.as_ref().err().map_or(0, |e| table_code(*e));
        let number = *number;
        *at(&mut self.limits, to) = made.ok().map(|l| (number, l));
        words([code])
    }

    fn table(&mut self, c: &Call) -> Answer {
        let [_, limit, hash, now, cost, how, extra, ..] = *c;
        let to = (how == 7).then(|| at(&mut self.limits, extra >> 8).expect("a limit").1);
        let (number, limit) = at(&mut self.limits, limit).expect("a limit");
        let (table, _) = self.tables[number].as_ref().expect("a table");
        let permit = self.permits.entry((number, hash)).or_default();
        let d = match how {
            0 => {
                let o = table.check_hash(&limit, now, hash, cost).expect("an own limit");
                return words([o.verdict() as u64, o.retry_after()]);
            }
            1 => table.check_ex(&Request { limit: &limit, now, cost, room: extra }, hash, None),
            2 => table.charge(&limit, now, hash, cost, None),
            3 => table.refund_ex(&limit, now, hash, permit),
            4 => table.reserve(&limit, now, hash, cost, None),
            5 => table.peek(&limit, now, hash, cost),
            6 => return words([table.reset_key(now, hash) as u64]),
            7 => {
                let done =
                    table.change(&limit, &to.expect("another"), now, hash, HOW[(extra & 255) as usize]);
                return words([done.expect("own limits") as u64]);
            }
            8 => return words([table.sweep(now, cost as usize, extra as usize) as u64]),
            9 => {
                let s = table.stats(now);
                return words([
                    s.slots,
                    s.live,
                    s.claims,
                    s.expired,
                    s.full_sets,
                    s.longest,
                    s.debt[0],
                    s.debt[7],
                ]);
            }
            _ => {
                let mut image = vec![0; table.image_words()];
                table.save(now, &mut image).expect("room");
                let sum = image
                    .iter()
                    .fold(0u64, |sum, word| (sum.rotate_left(5) ^ word).wrapping_mul(0x9e3779b97f4a7c15));
                return words([sum, table.sweep_interval()]);
            }
        }
        .expect("an own limit");
        if how != 5 {
            *permit = d.permit;
        }
        decision(&d, 0)
    }

    fn answer(&mut self, c: &Call) -> Answer {
        match c[0] {
            0 => {
                let spec = spec(c);
                *at(&mut self.specs, c[1]) = Some(spec);
                let limit = match spec.build() {
                    Ok(limit) => limit,
                    Err(e) => return words([limit_code(e)]),
                };
                let n = limit.numbers().expect("GCRA");
                let shifts = (n.shift_left as u64) << 8 | n.shift_right as u64;
                let qs = [
                    n.emission_q,
                    n.burst_q,
                    n.horizon_q,
                    n.window_q,
                    n.soft_q,
                    n.delay_q,
                    n.debt_q,
                    n.penalty_q,
                ];
                let mut answer = words([0, shifts, n.burst, n.room]);
                answer[4..12].copy_from_slice(&qs);
                answer
            }
            1 => self.cell(c),
            2 => self.make(c),
            3 => self.limit_of(c),
            4 => self.table(c),
            5 => {
                let (table, _) = self.tables[c[1] as usize].as_ref().expect("a table");
                words([table.hash(&text_of(c)).expect("a seed")])
            }
            6 => match String::from_utf8(text_of(c)) {
                Err(_) => words([98]),
                Ok(text) => match LimitSpec::parse(&text, c[1]) {
                    Ok(spec) => {
                        let (units, period, burst) = spec.numbers();
                        words([0, units, period, burst])
                    }
                    Err(e) => words([1 + e.kind as u64, e.position as u64]),
                },
            },
            7 => {
                let (limit, d) = (self.limit(c[1]), self.last.expect("a decision"));
                let policy = Policy::new("a \"b\"").expect("a name").limit(&limit.info()).decision(&d);
                let mut text = String::new();
                let fields = [Field::RateLimitPolicy, Field::RateLimit, Field::RetryAfter];
                Fields::new(c[2], &[policy]).expect("fields").write_lines(&fields, &mut text).expect("room");
                write!(text, ".").expect("room");
                bytes(text.as_bytes())
            }
            8 => {
                let address = Address::new(&text_of(c)).expect("4 or 16 bytes");
                bytes(address.prefix(if address.is_v4() { c[1] & 255 } else { c[1] >> 8 } as u8).as_ref())
            }
            10 => {
                let slots = self.memories[c[1] as usize][2..].as_ptr().cast::<AtomicU64>();
                assert!(c[2] as usize <= self.memories[c[1] as usize].len() * 8 - 17);
                // SAFETY: a line is eight atomic words, and the assertion keeps the slot inside the table.
                unsafe { &*slots.add(c[2] as usize) }.store(c[3], Ordering::Relaxed);
                words([])
            }
            _ => words([(tatcell::lines_for_load(c[1], c[2]) as u64 - 2) * 8]),
        }
    }
}

fn main() -> io::Result<()> {
    let (mut input, mut output) = (BufReader::new(io::stdin().lock()), BufWriter::new(io::stdout().lock()));
    let mut world = World::default();
    let mut raw = [0u8; 128];
    while input.read_exact(&mut raw).is_ok() {
        let mut call = [0; 16];
        call.iter_mut()
            .zip(raw.chunks(8))
            .for_each(|(to, from)| *to = u64::from_le_bytes(from.try_into().unwrap()));
        for word in world.answer(&call) {
            output.write_all(&word.to_le_bytes())?;
        }
    }
    output.flush()
}

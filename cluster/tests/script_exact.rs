//! The store's script against integers of 128 bits: grants, times, values and expiry are equal to the last digit.
//!
//! The shipped text runs unchanged in a real server. A frame around it gives it a clock and a first value, and reports
//! what it wrote and for how long.

mod common;

use std::time::Duration;

use common::{server_or_skip, Random};
use tatcell_cluster::script::{By, GIVE_BACK, GRANT};
use tatcell_cluster::{script, SharedLimit, Span, Split, Q_PER_US};

const CALLS: usize = 300_000;
const BATCH: usize = 50;

/// Runs a script with `ARGV[n-2]`, `ARGV[n-1]` as the clock (seconds, microseconds) and `ARGV[n]` as the value, if any.
fn framed(text: &str) -> String {
    format!(
        "local real = redis
         local given, n, ARGV = ARGV, #ARGV, {{}}
         for i = 1, n - 3 do ARGV[i] = given[i] end
         redis.call('DEL', KEYS[1])
         if given[n] ~= '' then redis.call('SET', KEYS[1], given[n], 'PX', 1000000000) end
         local wrote = {{ '', '', 0 }}
         local redis = {{ error_reply = real.error_reply, call = function(name, ...)
           if name == 'TIME' then return {{ given[n - 2], given[n - 1] }} end
           if name == 'SET' then
             local _, value, mode, ms = ...
             wrote = {{ value, mode, ms or 0 }}
           end
           return real.call(name, ...)
         end }}
         local function shipped() {text} end
         return {{ shipped(), wrote[1], wrote[2], wrote[3] }}"
    )
}

/// What one call is given.
#[derive(Debug)]
struct Case {
    split: Split,
    ask: script::Ask,
    now_us: u64,
    /// The TAT in q-units, if the key exists, and the time of a unit and the version when it was written.
    tat: Option<u128>,
    was: Span,
    of: u64,
}

/// What the call does, by definition.
#[derive(Debug, PartialEq, Eq)]
struct Expected {
    units: u64,
    lead_us: u64,
    retry_us: u64,
    /// What the key is set to, and for how many milliseconds.
    written: Option<(u128, u64)>,
}

fn by_definition(case: &Case) -> Expected {
    let (unit, full) = (case.split.unit.q(), case.split.lead.q());
    let now = u128::from(case.now_us) * Q_PER_US;
    let mut lead = case.tat.unwrap_or(0).saturating_sub(now);
    let mut written = false;
    // An ask of before a change cuts nothing.
    let late = case.ask.version < case.of;
    if lead > 0 && case.was.q() != unit {
        (lead, written) = (stretched(lead, unit, case.was.q()), !late);
        lead = if late { lead } else { lead.min(full) };
    // The clamp compares whole microseconds.
    } else if lead / Q_PER_US > u128::from(case.split.clamp_us() + case.ask.grace_us) && !late {
        (lead, written) = (full, true);
    }
    if case.ask.spent > 0 {
        (lead, written) = (lead + unit * u128::from(case.ask.spent), true);
    }
    if case.ask.grace_us > 0 && lead < full {
        (lead, written) = (full + u128::from(case.ask.grace_us) * Q_PER_US, true);
    }
    let before = lead;
    let fit = if lead <= full { ((full - lead) / unit).min((1 << 26) - 1) as u64 } else { 0 };
    let (mut units, mut retry) = (0, 0);
    if fit >= case.ask.min {
        units = case.ask.want.min((fit / 2).max(case.ask.min));
        lead += unit * u128::from(units);
        written = true;
    } else {
        retry = (lead + unit * u128::from(case.ask.min) - full).div_ceil(Q_PER_US) as u64;
    }
    let us = (lead / Q_PER_US) as u64;
    Expected {
        units,
        lead_us: (before / Q_PER_US) as u64,
        retry_us: retry,
        written: written.then(|| (now + lead, (us + 1).div_ceil(1000) + 1)),
    }
}

/// A debt of before a change, as the script's doubles have it: at least the same units, and at most those of a
/// microsecond more, 2^-48 of them and a microsecond.
fn stretched(lead: u128, unit: u128, was: u128) -> u128 {
    let double = |q: u128| Span::from_q(q).us() as f64 + Span::from_q(q).frac() as f64 / Q_PER_US as f64;
    let longer = double(unit) / double(was) * (1.0 + 2f64.powi(-50));
    let us = ((Span::from_q(lead).us() as f64 + 1.0) * longer).ceil() as u128;
    // Longer than any debt; it would not fit the doubles.
    if us >= 1 << 52 {
        return Q_PER_US << 52;
    }
    assert!(product(us * Q_PER_US, was) >= product(lead, unit), "{lead} {unit} {was}");
    let most = lead + Q_PER_US + (lead >> 48) + 1;
    assert!(product((us - 1) * Q_PER_US, was) <= product(most, unit), "{lead} {unit} {was}");
    us * Q_PER_US
}

/// A product of 256 bits, its upper half first.
fn product(a: u128, b: u128) -> (u128, u128) {
    let half = |n: u128| (n >> 64, n & u128::from(u64::MAX));
    let ((ah, al), (bh, bl)) = (half(a), half(b));
    let (cross, carried) = (ah * bl).overflowing_add(al * bh);
    let (low, over) = (al * bl).overflowing_add(cross << 64);
    (ah * bh + (cross >> 64) + (u128::from(carried) << 64) + u128::from(over), low)
}

fn text_of(tat: u128, unit: Span, version: u64) -> String {
    let span = Span::from_q(tat);
    format!("{}:{}:{}:{}:{version}", span.us(), span.frac(), unit.us(), unit.frac())
}

/// A limit of any size that can be shared.
fn any_split(random: &mut Random) -> Split {
    loop {
        let period = Duration::from_secs([1, 60, 3_600, 86_400, 31_536_000][random.below(5) as usize]);
        let limit = SharedLimit::new("x", random.sized(9), period, random.sized(9))
            .reserve(random.below(2) as u32 * 50, random.below(2) as u32 * 250);
        if let Ok(split) = limit.split(1 + random.below(8) as u32, Duration::from_millis(random.below(10))) {
            return split;
        }
    }
}

fn any_case(random: &mut Random) -> Case {
    let split = any_split(random);
    let (unit, full) = (split.unit.q(), split.lead.q());
    let now_us = 1_600_000_000_000_000 + random.below(1 << 50);
    // Leads near the thresholds: whole units below full, and a hair beside; or above all of them; or long drained.
    let units = u128::from(random.below(split.largest_cost + 2));
    let hair = u128::from(random.below(3));
    let lead = match random.below(12) {
        0 => full + unit * units / 4 + hair,
        1 => u128::from(split.clamp_us()) * Q_PER_US + u128::from(random.below(3)) * Q_PER_US + hair,
        _ => (full + hair).saturating_sub(unit * units).saturating_sub(1),
    };
    let now = u128::from(now_us) * Q_PER_US;
    let tat = match random.below(20) {
        0 => None,
        1 => Some(now - u128::from(random.below(1 << 40))),
        _ => Some(now + lead),
    };
    let min = match random.below(4) {
        0 => 1 + random.below(split.largest_cost),
        _ => 1 + random.below(split.largest_cost.min(8)),
    };
    let ask = script::Ask {
        want: min.max(1 + random.below(split.largest_cost)),
        min,
        spent: if random.below(4) == 0 { random.below(split.largest_cost.min(5)) } else { 0 },
        grace_us: if random.below(6) == 0 { random.below(1_000_000) } else { 0 },
        version: 1 + random.below(3),
    };
    let was = if random.below(4) == 0 { any_split(random).unit } else { split.unit };
    Case { split, ask, now_us, tat, was, of: 1 + random.below(3) }
}

/// `EVALSHA digest 1 key args.. | seconds us value`, the shipped arguments taken from the shipped call.
fn call(shipped: &redis::Cmd, digest: &str, key: &str, now_us: u64, value: &str) -> redis::Cmd {
    let mut cmd = redis::cmd("EVALSHA");
    cmd.arg(digest).arg(1).arg(key);
    for argument in shipped.args_iter().skip(4) {
        if let redis::Arg::Simple(bytes) = argument {
            cmd.arg(bytes);
        }
    }
    cmd.arg(now_us / 1_000_000).arg(now_us % 1_000_000).arg(value);
    cmd
}

fn load(connection: &mut redis::Connection, text: &str) -> String {
    redis::cmd("SCRIPT").arg("LOAD").arg(framed(text)).query(connection).expect("loaded")
}

/// The script's reply, then the value, the mode and the milliseconds of its last SET.
type Framed<R> = (R, String, String, u64);

#[test]
fn grants_equal_integers_of_128_bits() {
    let Some(server) = server_or_skip(&[]) else { return };
    let seed = 0x7a7c_e11c;
    println!("seed {seed:#x}, {CALLS} calls");
    let (mut random, mut connection) = (Random(seed), server.connect());
    let digest = load(&mut connection, GRANT);
    let (mut granted, mut refused, mut graces, mut clamped, mut converted) = (0u64, 0, 0, 0, 0);
    for _ in 0..CALLS / BATCH {
        let cases: Vec<Case> = (0..BATCH).map(|_| any_case(&mut random)).collect();
        let mut pipe = redis::pipe();
        for (i, case) in cases.iter().enumerate() {
            let value = case.tat.map_or(String::new(), |tat| text_of(tat, case.was, case.of));
            let shipped = script::grant(By::Digest, b"", &case.split, &case.ask);
            pipe.add_command(call(&shipped, &digest, &format!("k{i}"), case.now_us, &value));
        }
        let replies: Vec<Framed<script::Grant>> = pipe.query(&mut connection).expect("replies");
        for (case, (grant, value, mode, ms)) in cases.iter().zip(replies) {
            let expected = by_definition(case);
            let written = expected
                .written
                .map(|(tat, ms)| (text_of(tat, case.split.unit, case.ask.version), String::from("PX"), ms));
            let (text, ..) = written.clone().unwrap_or_default();
            let stamp = if expected.units > 0 { text } else { String::new() };
            let Expected { units, lead_us, retry_us, .. } = expected;
            assert_eq!(grant, script::Grant { units, lead_us, retry_us, stamp }, "{case:?}");
            assert_eq!((value, mode, ms), written.unwrap_or_default(), "{case:?}");
            granted += u64::from(expected.units > 0);
            refused += u64::from(expected.units == 0);
            graces += u64::from(
                case.ask.grace_us > 0 && expected.lead_us == case.split.lead.us() + case.ask.grace_us,
            );
            let lead = case.tat.unwrap_or(0).saturating_sub(u128::from(case.now_us) * Q_PER_US);
            let clamp = u128::from(case.split.clamp_us() + case.ask.grace_us);
            let same = case.was == case.split.unit;
            clamped += u64::from(same && lead / Q_PER_US > clamp);
            converted += u64::from(!same && lead > 0 && expected.lead_us < case.split.lead.us());
        }
    }
    println!(
        "{granted} granted, {refused} refused, {graces} graces, {clamped} clamped, {converted} converted"
    );
    assert!(granted > 50_000 && refused > 10_000 && graces > 1_000, "not all was tried");
    assert!(clamped > 1_000 && converted > 20_000, "not all was tried");
}

#[test]
fn what_is_given_back_equals_integers_of_128_bits() {
    let Some(server) = server_or_skip(&[]) else { return };
    let (mut random, mut connection) = (Random(0x0bac), server.connect());
    let digest = load(&mut connection, GIVE_BACK);
    for _ in 0..20_000 / BATCH {
        let (mut pipe, mut expected) = (redis::pipe(), Vec::new());
        for i in 0..BATCH {
            let split = any_split(&mut random);
            let units = 1 + random.below(split.largest_cost);
            let after = (1_600_000_000_000_000 + u128::from(random.below(1 << 50))) * Q_PER_US
                + u128::from(random.below(1 << 26))
                + split.lead.q();
            // One in four has moved on by a hair since.
            let value = after + u128::from(random.below(4) == 0);
            let text = |tat| text_of(tat, split.unit, 7);
            let shipped = script::give_back(By::Digest, b"", &text(after), units);
            pipe.add_command(call(&shipped, &digest, &format!("k{i}"), 0, &text(value)));
            let taken = units * u64::from(value == after);
            expected.push(match taken {
                0 => ((0,), String::new(), String::new(), 0),
                _ => ((taken,), text(after - split.unit.q() * u128::from(taken)), "KEEPTTL".into(), 0),
            });
        }
        let replies: Vec<Framed<(u64,)>> = pipe.query(&mut connection).expect("replies");
        assert_eq!(replies, expected);
    }
}

//! Judges what the frames firmware did: every decision again by the host's own arithmetic, and what left the board.

use std::collections::HashMap;
use std::net::SocketAddrV4;
use std::path::Path;

use anyhow::{ensure, Context as _, Result};

use super::board::{Echoes, Entry, Seen};
use super::net::GUEST;
use super::packet::{pcap, u32_at};
use super::{POLICE, SHAPE};
use crate::report::Report;

/// The limits of main.c, in its microseconds.
const POLICE_T: u64 = 10_000;
const POLICE_BURST: u64 = 20;
const SHAPE_T: u64 = 5_000;
const SHAPE_BURST: u64 = 4;
const SHAPE_DELAY: u64 = 150_000;

/// Asks whether a claim holds.
type Claim<'a> = dyn FnMut(&str, &dyn Fn() -> Result<()>) -> bool + 'a;

/// Every claim about a run.
pub fn judge(report: &mut Report, mode: &str, seen: &Seen, entries: &[Entry], pcap: &Path) -> Result<()> {
    let (first, last) = (entries.first().context("an empty log")?, entries.last().context("an empty log")?);
    let (shape, police): (Vec<&Entry>, Vec<&Entry>) = entries.iter().partition(|e| e.shaped);
    let sent: usize = seen.sent.values().sum();
    let seconds = (last.now - first.now) as f64 / 1e6;
    report.note(&format!(
        "note: {mode}: {sent} datagrams sent, {} + {} decided in {seconds:.3} s of the firmware's clock",
        police.len(),
        shape.len()
    ));
    let mut claim =
        |name: &str, ask: &dyn Fn() -> Result<()>| report.claim(&format!("frames_{mode}_{name}"), ask);
    claim("most_datagrams_are_decided", &|| {
        ensure!(2 * entries.len() >= sent, "{} of {sent}", entries.len());
        Ok(())
    });
    claim("clock_wraps_during_the_test", &|| {
        ensure!(first.now >> 32 != last.now >> 32, "the 32-bit counter did not wrap");
        Ok(())
    });
    claim("every_policed_verdict_is_exact", &|| {
        let wrong = replay_police(&police, POLICE_BURST);
        ensure!(wrong == 0, "{wrong} of {} differ", police.len());
        Ok(())
    });
    claim("control_a_burst_one_larger_is_noticed", &|| {
        ensure!(replay_police(&police, POLICE_BURST + 1) > 0, "replay sees nothing");
        Ok(())
    });
    claim("every_shaped_departure_is_exact", &|| {
        let wrong = replay_shape(&shape);
        ensure!(wrong == 0, "{wrong} of {} differ", shape.len());
        Ok(())
    });
    let wire = wire(pcap)?;
    claim("echoes_are_what_conformed", &|| echoes_conform(seen, &police, &wire));
    claim("every_sender_gets_its_limit", &|| limits_hold(seen, &police, &wire));
    shaped(&mut claim, seen, &shape, &wire)?;
    claim("host_receives_what_the_pcap_shows", &|| received(seen, &wire));
    let echoed: usize = wire.get(&POLICE).map_or(0, |w| w.values().map(Vec::len).sum());
    let late = shape.iter().filter(|e| e.passed).map(|e| e.sent.saturating_sub(e.now + e.wait)).max();
    report.note(&format!("note: {mode}: {echoed} of {} policed datagrams echoed", police.len()));
    report.note(&format!(
        "note: {mode}: the latest shaped datagram left {} us after its departure",
        late.unwrap_or(0)
    ));
    Ok(())
}

/// Every policed decision again, from its clock alone. Returns how many differ.
fn replay_police(entries: &[&Entry], burst: u64) -> usize {
    let mut tats: HashMap<SocketAddrV4, u64> = HashMap::new();
    let mut wrong = 0;
    for e in entries {
        let lead = tats.get(&e.from).map_or(0, |tat| tat.saturating_sub(e.now));
        let debt = lead + POLICE_T;
        let wait = debt.saturating_sub(burst * POLICE_T);
        if wait == 0 {
            tats.insert(e.from, e.now + debt);
        }
        wrong += usize::from((wait == 0, wait) != (e.passed, e.wait));
    }
    wrong
}

/// The same for shaped ones.
fn replay_shape(entries: &[&Entry]) -> usize {
    let (mut tat, mut wrong) = (0_u64, 0);
    for e in entries {
        let debt = tat.saturating_sub(e.now) + SHAPE_T;
        let wait = debt.saturating_sub(SHAPE_BURST * SHAPE_T);
        if wait > SHAPE_DELAY {
            wrong += usize::from(e.passed);
        } else {
            wrong += usize::from((true, wait) != (e.passed, e.wait));
            tat = e.now + debt;
        }
    }
    wrong
}

/// What left the board, as the emulator recorded it: it loses nothing.
fn wire(path: &Path) -> Result<Echoes> {
    let mut wire: Echoes = [POLICE, SHAPE].map(|port| (port, HashMap::new())).into();
    for datagram in pcap(path)?.into_iter().filter(|d| *d.from.ip() == GUEST) {
        if let Some(echoes) = wire.get_mut(&datagram.from.port()) {
            echoes.entry(datagram.to).or_default().extend(u32_at(&datagram.payload, 0));
        }
    }
    Ok(wire)
}

fn of<'a>(echoes: &'a Echoes, port: u16, name: &SocketAddrV4) -> &'a [u32] {
    echoes.get(&port).and_then(|flows| flows.get(name)).map_or(&[], Vec::as_slice)
}

fn echoes_conform(seen: &Seen, police: &[&Entry], wire: &Echoes) -> Result<()> {
    for name in &seen.names {
        let own = police.iter().filter(|e| e.from == *name && e.passed);
        let passed: Vec<u32> = own.map(|e| e.sequence).collect();
        let echoes = of(wire, POLICE, name);
        ensure!(echoes == passed, "{name}: {} echoes, {} conformed", echoes.len(), passed.len());
    }
    Ok(())
}

/// The limit by its definition: never more than burst + rate * time, and not less while it is flooded.
fn limits_hold(seen: &Seen, police: &[&Entry], wire: &Echoes) -> Result<()> {
    for name in &seen.names {
        let own: Vec<u64> = police.iter().filter(|e| e.from == *name).map(|e| e.now).collect();
        let span = own.last().zip(own.first()).map_or(0, |(last, first)| last - first);
        let gap = own.iter().zip(own.iter().skip(1)).map(|(a, b)| b - a).max().unwrap_or(0);
        let most = POLICE_BURST + span / POLICE_T;
        let least =
            (own.len() as u64).min((POLICE_BURST + span.saturating_sub(gap) / POLICE_T).saturating_sub(1));
        let echoed = of(wire, POLICE, name).len() as u64;
        let flooded = own.len() as u64 > POLICE_BURST;
        ensure!(
            (least..=most).contains(&echoed) && flooded,
            "{name}: {echoed} of {} echoed, limit allows {least}..{most}",
            own.len()
        );
    }
    Ok(())
}

fn shaped(claim: &mut Claim<'_>, seen: &Seen, shape: &[&Entry], wire: &Echoes) -> Result<()> {
    let sent: Vec<&&Entry> = shape.iter().filter(|e| e.passed).collect();
    let out = of(wire, SHAPE, seen.names.first().context("no flows")?);
    claim("shaped_datagrams_leave_in_order", &|| {
        let promised: Vec<u32> = sent.iter().map(|e| e.sequence).collect();
        ensure!(out == promised, "{} echoes, {} promised", out.len(), promised.len());
        Ok(())
    });
    claim("shaper_refuses_what_would_wait_too_long", &|| {
        ensure!((1..shape.len()).contains(&sent.len()), "{} of {}", sent.len(), shape.len());
        Ok(())
    });
    claim("nothing_leaves_before_its_departure", &|| {
        ensure!(sent.iter().all(|e| e.sent >= e.now + e.wait), "early");
        Ok(())
    });
    // In any window of departures: at most burst + rate * time, in whole microseconds.
    claim("departures_keep_the_rate_in_every_window", &|| {
        let levels = sent.iter().zip(0_i64..).map(|(e, i)| i * SHAPE_T as i64 - (e.now + e.wait) as i64);
        let (mut low, mut excess) = (i64::MAX, 0);
        for level in levels {
            low = low.min(level);
            excess = excess.max(level - low + SHAPE_T as i64);
        }
        ensure!(excess <= (SHAPE_BURST * SHAPE_T) as i64, "{excess} us at once");
        Ok(())
    });
    Ok(())
}

fn received(seen: &Seen, wire: &Echoes) -> Result<()> {
    let count = |echoes: &Echoes| echoes.values().flat_map(HashMap::values).map(Vec::len).sum::<usize>();
    let dropped = seen.dropped.context("cannot read /proc/net/udp")? as usize;
    if dropped == 0 {
        ensure!(seen.echoes == *wire, "the lists differ");
    } else {
        let (here, there) = (count(&seen.echoes), count(wire));
        ensure!(here + dropped == there, "{here} + {dropped} dropped, {there} recorded");
    }
    Ok(())
}

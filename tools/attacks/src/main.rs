//! Attacks against a table in virtual time: figures, the claims of docs/ATTACKS.md about them, and its picture.
//!
//! ```text
//!  tatcell-attacks [--quick] [attacks.svg [ATTACKS.md]]
//! ```
//!
//! PASS and FAIL lines say whether the claims hold; ends with an error where one does not. With the page, what stands
//! between its two marks is written anew. All is seeded: the same figures on every machine.

mod picture;
mod world;

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use tatcell::FullPolicy;
use world::{Flood, POLICIES, SLOTS};

/// Everything that was seen.
pub struct Figures {
    /// A row a policy, in the order of `POLICIES`.
    pub floods: Vec<Vec<Flood>>,
    /// Load, and the excess that passes on tables of once, twice, four and eight times the memory, in percent.
    pub lasting: Vec<(f64, [f64; 4])>,
    /// Load, requests a second, and what each policy gives an evader, times its rate.
    pub evaders: Vec<(f64, u64, [f64; 4])>,
    pub aimed: Vec<(&'static str, f64)>,
    pub collisions: (u64, u64, f64),
    /// Load, seen, Erlang B.
    pub full: Vec<(f64, f64, f64)>,
}

fn see(quick: bool) -> Figures {
    let (seconds, lookups, keys) = if quick { (2, 4_000_000, 300_000) } else { (20, 100_000_000, 4_000_000) };
    let loads = [1.0, 2.0, 4.0, 10.0];
    let evaders: &[(f64, u64)] = if quick {
        &[(10.0, 50)]
    } else {
        &[(10.0, 20), (10.0, 50), (10.0, 100), (30.0, 20), (30.0, 50), (30.0, 100)]
    };
    let of = |policy| loads.iter().map(|load| world::flood(policy, *load, seconds)).collect();
    Figures {
        floods: POLICIES.iter().map(|(policy, _)| of(*policy)).collect(),
        lasting: [0.5, 1.0, 2.0, 4.0]
            .map(|load| {
                (load, [1, 2, 4, 8].map(|n| world::lasting(FullPolicy::Admit, load, n * SLOTS, seconds / 2)))
            })
            .to_vec(),
        evaders: evaders
            .iter()
            .map(|(load, rho)| {
                (*load, *rho, POLICIES.map(|(policy, _)| world::evader(policy, *load, *rho, seconds / 2)))
            })
            .collect(),
        aimed: world::aimed(),
        collisions: {
            let (seen, expected) = world::collisions(lookups);
            (lookups, seen, expected)
        },
        full: [0.4, 0.5, 0.6, 0.7, 0.8, 1.0, 1.5]
            .map(|load| {
                let (seen, erlang) = world::full_sets(load, keys);
                (load, seen, erlang)
            })
            .to_vec(),
    }
}

/// What the page claims.
fn claims(f: &Figures) -> Vec<(&'static str, bool)> {
    let [admit, sampled, deny, inherit] = &f.floods[..] else { return Vec::new() };
    let all = |rows: &[Flood], holds: fn(&Flood) -> bool| rows.iter().all(holds);
    let spread = |seen: f64, expected: f64, n: f64| (seen - expected).abs() <= n * expected.sqrt();
    let (_, seen, expected) = f.collisions;
    let lasting = |load: f64, memory: usize| {
        f.lasting.iter().find(|(l, _)| *l == load).map_or(f64::NAN, |(_, m)| m[memory])
    };
    vec![
        (
            "admit_and_sampled_refuse_no_innocent",
            all(admit, |r| r.innocents_refused < 0.1) && all(sampled, |r| r.innocents_refused < 0.1),
        ),
        (
            "admit_and_sampled_hold_abusers_to_a_tenth_above_their_rate",
            all(admit, |r| r.abusers < 1.1) && all(sampled, |r| r.abusers < 1.1),
        ),
        (
            "deny_and_inherit_give_abusers_no_more_than_their_rate",
            all(deny, |r| r.abusers <= 1.01) && all(inherit, |r| r.abusers <= 1.01),
        ),
        (
            "deny_and_inherit_refuse_innocents_from_twice_the_capacity_on",
            deny[1..].iter().chain(&inherit[1..]).all(|r| r.innocents_refused > 20.0),
        ),
        ("lasting_abusers_at_half_load_get_next_to_nothing_more", lasting(0.5, 0) < 1.0),
        ("lasting_abusers_at_load_4_get_most_of_their_excess", lasting(4.0, 0) > 50.0),
        ("eight_times_the_memory_cures_load_4", lasting(4.0, 3) < 1.0),
        (
            "an_even_evader_gets_its_rate_and_little_more_at_load_10",
            f.evaders.iter().filter(|e| e.0 == 10.0).all(|e| e.2.iter().all(|x| *x < 1.35)),
        ),
        ("no_set_is_aimed_at_without_the_seed", f.aimed.iter().all(|(_, z)| *z < 5.0)),
        (
            "strangers_are_taken_for_live_keys_as_often_as_the_formula_says",
            spread(seen as f64, expected, 3.0),
        ),
        (
            "sets_fill_as_erlang_b_says",
            f.full.iter().all(|(_, seen, erlang)| (seen / erlang - 1.0).abs() < 0.12),
        ),
    ]
}

fn tables(f: &Figures) -> String {
    let mut out = String::new();
    let _ =
        write!(out, "Innocents refused, % (and what abusers get, times their rate), by load:\n\n| Policy |");
    f.floods[0].iter().for_each(|row| out += &format!(" {} |", row.load));
    out += "\n|---|---|---|---|---|\n";
    for ((_, name), rows) in POLICIES.iter().zip(&f.floods) {
        let _ = write!(out, "| `{name}` |");
        rows.iter().for_each(|r| out += &format!(" {:.1} ({:.2}) |", r.innocents_refused, r.abusers));
        out += "\n";
    }
    let flood = f.floods.iter().map(|rows| format!("{:.0}", rows.last().map_or(0.0, |r| r.flood_admitted)));
    let flood: Vec<String> = flood.collect();
    let _ = writeln!(out, "\nOf the flood itself, at load 10, pass {} % in this order.\n", flood.join(", "));
    out += "Of what lasting abusers ask beyond their rate, % that passes under `Admit`:\n\n";
    out += "| Load | as it is | twice the memory | four times | eight times |\n|---|---|---|---|---|\n";
    for (load, [a, b, c, d]) in &f.lasting {
        let _ = writeln!(out, "| {load} | {a:.1} | {b:.1} | {c:.1} | {d:.1} |");
    }
    out += "\nWhat an evader gets who asks evenly below a flood, times its rate:\n\n";
    out += "| Flood's load | asks a second | `Admit` | `Sampled` | `Deny` | `Inherit` |\n|---|---|---|---|---|---|\n";
    for (load, rho, [a, b, c, d]) in &f.evaders {
        let _ = writeln!(out, "| {load} | {rho} | {a:.2} | {b:.2} | {c:.2} | {d:.2} |");
    }
    out += "\nFullest or emptiest of 512 sets for a million keys, in standard deviations from the mean:\n\n";
    out += "| Keys | distance |\n|---|---|\n";
    f.aimed.iter().for_each(|(name, z)| out += &format!("| {name} | {z:.2} |\n"));
    let (lookups, seen, expected) = f.collisions;
    let strangers = format!("{seen} of {lookups} lookups in a full table; the formula: {expected:.0}");
    let _ = writeln!(out, "\nStrangers taken for a live key: {strangers}.");
    out += "\nNew keys that find their set full:\n\n| Load | seen | Erlang B |\n|---|---|---|\n";
    f.full
        .iter()
        .for_each(|(load, seen, erlang)| out += &format!("| {load} | {seen:.2e} | {erlang:.2e} |\n"));
    out
}

const BEGIN: &str = "<!-- figures: make attacks -->\n";
const END: &str = "<!-- end of figures -->";

fn put(page: &Path, tables: &str) -> Result<(), String> {
    let failed = |e: std::io::Error| format!("{}: {e}", page.display());
    let text = std::fs::read_to_string(page).map_err(failed)?;
    let (before, rest) = text.split_once(BEGIN).ok_or("the page has no mark for the figures")?;
    let (_, after) = rest.split_once(END).ok_or("the page has no mark behind the figures")?;
    std::fs::write(page, format!("{before}{BEGIN}\n{tables}\n{END}{after}")).map_err(failed)
}

fn main() -> ExitCode {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let quick = words.iter().any(|w| w == "--quick");
    words.retain(|w| w != "--quick");
    let figures = see(quick);
    let tables = tables(&figures);
    println!("{tables}");
    let made = words.first().map_or(Ok(()), |svg| picture::draw(Path::new(svg), &figures));
    let made = made.and_then(|()| words.get(1).map_or(Ok(()), |page| put(Path::new(page), &tables)));
    let mut holds = true;
    for (name, claim) in claims(&figures) {
        println!(
            "{} attacks: {name}{}",
            if claim { "PASS" } else { "FAIL" },
            if claim { "" } else { ": see the figures" }
        );
        holds &= claim;
    }
    if let Err(why) = &made {
        println!("FAIL attacks: picture_and_page: {why}");
    }
    if holds && made.is_ok() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

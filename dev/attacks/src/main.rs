//! Attacks on a table in virtual time: figures, the claims of docs/ATTACKS.md about them, and its picture.
//!
//! PASS and FAIL lines say whether the claims hold; if one does not, the program ends with an error. It rewrites the
//! part of the page between two marks. With `--hold` it writes nothing, and the page must have the figures of this run.
//! Everything is seeded, so the figures are the same on every machine.

mod claims;
mod picture;
mod world;

use std::cell::LazyCell;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use clap::Parser;
use tatcell::FullPolicy;
use world::{Aim, Flood, POLICIES, SLOTS};

/// Keys of each family, in the short form as well.
pub const AIMED: usize = 1_000_000;

/// Attacks on a table in virtual time: figures, the claims of docs/ATTACKS.md about them, and its picture
#[derive(Parser)]
struct Args {
    /// Writes the picture
    picture: Option<PathBuf>,
    /// Writes the figures into this page
    page: Option<PathBuf>,
    /// The short form
    #[arg(long, conflicts_with = "hold")]
    quick: bool,
    /// Does not write the page: it must have the figures of this run
    #[arg(long, requires = "page")]
    hold: bool,
    /// Only this claim
    #[arg(long, value_name = "CLAIM", hide_possible_values = true)]
    #[arg(value_parser = PossibleValuesParser::new(claims::CLAIMS.map(|(name, _)| name)))]
    only: Option<String>,
}

/// What is looked at when somebody asks.
type Seen<T> = LazyCell<T, Box<dyn FnOnce() -> T>>;

fn seen<T>(look: impl FnOnce() -> T + 'static) -> Seen<T> {
    LazyCell::new(Box::new(look))
}

/// Everything that is seen.
pub struct Figures {
    /// A row a policy, in the order of `POLICIES`.
    pub floods: Seen<Vec<Vec<Flood>>>,
    /// Load, and the excess that passes on tables of once, twice, four and eight times the memory, in percent.
    pub lasting: Seen<Vec<(f64, [f64; 4])>>,
    /// Load, requests a second, and what each policy gives an evader, times its rate.
    pub evaders: Seen<Vec<(f64, u64, [f64; 4])>>,
    pub aimed: Seen<Vec<Aim>>,
    /// Keys, and how many of them do not lie in the set that the aim is taken by.
    pub elsewhere: Seen<(u64, u64)>,
    pub collisions: Seen<(u64, u64, f64)>,
    /// Load, seen, Erlang B.
    pub full: Seen<Vec<(f64, f64, f64)>>,
}

fn see(quick: bool) -> Figures {
    let (seconds, lookups, keys) = if quick { (2, 4_000_000, 300_000) } else { (20, 100_000_000, 4_000_000) };
    // Load, and requests a second. In small on a part of the table: an evader that is not caught at once gets more in
    // less time, but the same below a flood of the same load.
    let (slots, evaders): (usize, &[(f64, u64)]) = if quick {
        (SLOTS / 8, &[(10.0, 50), (30.0, 20)])
    } else {
        (SLOTS, &[(10.0, 20), (10.0, 50), (10.0, 100), (30.0, 20), (30.0, 50), (30.0, 100)])
    };
    let flood = move |policy| [1.0, 2.0, 4.0, 10.0].map(|load| world::flood(policy, load, seconds)).to_vec();
    let lasting = move |load, n| world::lasting(FullPolicy::Admit, load, n * SLOTS, seconds / 2);
    let full = move |load| {
        let (seen, erlang) = world::full_sets(load, keys);
        (load, seen, erlang)
    };
    Figures {
        floods: seen(move || POLICIES.map(|(policy, _)| flood(policy)).to_vec()),
        lasting: seen(move || {
            [0.5, 1.0, 2.0, 4.0].map(|load| (load, [1, 2, 4, 8].map(|n| lasting(load, n)))).to_vec()
        }),
        evaders: seen(move || {
            let row = |(load, rho): &(f64, u64)| {
                (*load, *rho, POLICIES.map(|(policy, _)| world::evader(policy, slots, *load, *rho, 10)))
            };
            evaders.iter().map(row).collect()
        }),
        aimed: seen(|| world::aimed(AIMED)),
        elsewhere: seen(|| (2_000, world::elsewhere(2_000))),
        collisions: seen(move || {
            let (seen, expected) = world::collisions(lookups);
            (lookups, seen, expected)
        }),
        full: seen(move || [0.4, 0.5, 0.6, 0.7, 0.8, 1.0, 1.5].map(full).to_vec()),
    }
}

const INNOCENTS: &str =
    "Innocents refused, in percent, and in brackets what abusers get as a multiple of their rate, by load:";

fn tables(f: &Figures) -> String {
    let mut out = String::new();
    let _ = write!(out, "{INNOCENTS}\n\n| Policy |");
    f.floods[0].iter().for_each(|row| out += &format!(" {} |", row.load));
    out += "\n|---|---|---|---|---|\n";
    for ((_, name), rows) in POLICIES.iter().zip(f.floods.iter()) {
        let _ = write!(out, "| `{name}` |");
        rows.iter().for_each(|r| out += &format!(" {:.1} ({:.2}) |", r.innocents_refused, r.abusers));
        out += "\n";
    }
    let flood = f.floods.iter().map(|rows| format!("{:.0}", rows.last().map_or(0.0, |r| r.flood_admitted)));
    let flood: Vec<String> = flood.collect();
    let _ = writeln!(
        out,
        "\nAt load 10, {} % of the flood itself pass, in the order of the table.\n",
        flood.join(", ")
    );
    out += "Percentage that passes under `Admit` of what lasting abusers send beyond their rate:\n\n";
    out += "| Load | as it is | twice the memory | four times | eight times |\n|---|---|---|---|---|\n";
    for (load, [a, b, c, d]) in f.lasting.iter() {
        let _ = writeln!(out, "| {load} | {a:.1} | {b:.1} | {c:.1} | {d:.1} |");
    }
    out += "\nWhat an evader that spaces its requests evenly in a flood gets, as a multiple of its rate:\n\n";
    out += "| Load of the flood | requests a second | `Admit` | `Sampled` | `Deny` | `Inherit` |\n";
    out += "|---|---|---|---|---|---|\n";
    for (load, rho, [a, b, c, d]) in f.evaders.iter() {
        let _ = writeln!(out, "| {load} | {rho} | {a:.2} | {b:.2} | {c:.2} | {d:.2} |");
    }
    out +=
        "\nThe fullest or emptiest of 512 sets for a million keys, in standard deviations from the mean:\n\n";
    out += "| Keys | different ones | distance |\n|---|---|---|\n";
    for Aim { name, keys, distance } in f.aimed.iter() {
        let _ = writeln!(out, "| {name} | {keys} | {distance:.2} |");
    }
    let (lookups, seen, expected) = *f.collisions;
    let strangers =
        format!("{seen} of {lookups} lookups in a full table. The formula predicts {expected:.0}");
    let _ = writeln!(out, "\nStrangers taken for a live key: {strangers}.");
    out += "\nShare of new keys that find their set full:\n\n| Load | seen | Erlang B |\n|---|---|---|\n";
    f.full
        .iter()
        .for_each(|(load, seen, erlang)| out += &format!("| {load} | {seen:.2e} | {erlang:.2e} |\n"));
    out
}

const BEGIN: &str = "<!-- figures: make -C dev attacks-page -->\n";
const END: &str = "<!-- end of figures -->";

/// The page before the figures, what stands there, and the page behind them.
fn parts(text: &str) -> Result<[&str; 3], String> {
    let (before, rest) = text.split_once(BEGIN).ok_or("the page has no mark for the figures")?;
    let (figures, after) = rest.split_once(END).ok_or("the page has no mark behind the figures")?;
    Ok([before, figures, after])
}

/// Puts the figures into the page, or holds them against those that it has.
fn put(page: &Path, tables: &str, hold: bool) -> Result<(), String> {
    let failed = |e: std::io::Error| format!("{}: {e}", page.display());
    let text = std::fs::read_to_string(page).map_err(failed)?;
    let [before, there, after] = parts(&text)?;
    if !hold {
        return std::fs::write(page, format!("{before}{BEGIN}\n{tables}\n{END}{after}")).map_err(failed);
    }
    if there.trim() == tables.trim() {
        return Ok(());
    }
    let mut lines = tables.trim().lines().zip(there.trim().lines());
    Err(match lines.find(|(new, old)| new != old) {
        Some((new, old)) => format!("the page has {old}, and this run {new}: make -C dev attacks-page"),
        None => "the page has more or fewer figures than this run: make -C dev attacks-page".into(),
    })
}

/// Says whether a claim holds.
fn say(name: &str, holds: bool) -> bool {
    let (word, why) = if holds { ("PASS", "") } else { ("FAIL", ": see the figures") };
    println!("{word} attacks: {name}{why}");
    holds
}

/// The figures, each claim of them, the picture and the page.
fn run(figures: &Figures, args: &Args) -> bool {
    let tables = tables(figures);
    println!("{tables}");
    let mut holds = claims::CLAIMS.iter().filter(|(name, claim)| !say(name, claim(figures))).count() == 0;
    let made = args.picture.as_ref().map_or(Ok(()), |svg| picture::draw(svg, figures));
    let put = args.page.as_ref().map_or(Ok(()), |page| put(page, &tables, args.hold));
    if args.hold {
        holds &= say("the_page_has_the_figures_of_a_fresh_run", put.is_ok());
    }
    let made = made.and(put);
    if let Err(why) = &made {
        println!("FAIL attacks: picture_and_page: {why}");
    }
    holds && made.is_ok()
}

fn main() -> ExitCode {
    let args = Args::parse();
    let figures = see(args.quick);
    let claim = args.only.as_ref().and_then(|only| claims::CLAIMS.iter().find(|(name, _)| name == only));
    let holds = match claim {
        Some((name, claim)) => say(name, claim(&figures)),
        None => run(&figures, &args),
    };
    if holds {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

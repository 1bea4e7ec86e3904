//! The arguments of `tatcell show`, and what it does with them.

use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde::Serialize;
use tatcell::host::ReadOnlyMemory;
use tatcell::{AttachOptions, ReadOnlyTable};

use crate::failure::Failure;
use crate::progress::{short, Progress};
use crate::show::change::{change, Change};
use crate::show::clock::{Clock, Named, Now};
use crate::show::counts::{Counts, Source};
use crate::show::info::{Answer, Geometry, Load};
use crate::show::names::As;
use crate::show::serve::Served;
use crate::show::{dump, top, Place, Secret};
use crate::units::duration;
use crate::words::plural;

const EXIT: &str = "Exit codes:
  0  done
  2  the arguments cannot be used: no such clock, no seed, another seed
  3  the table cannot be read, or not be changed

Memory:
  The table is mapped, not copied. top keeps the --count debts that it lists, 200 bytes each, with up to four names of \
  up to 64 KiB, and the candidates a line at a time. Each of these is compared with each debt of the list.";

/// An address to serve at. What is none may be the table.
fn address(text: &str) -> Result<SocketAddr, String> {
    let place = "use an ADDRESS such as 127.0.0.1:9122; TABLE stands before --serve";
    text.parse().map_err(|error| format!("{error}: {place}"))
}

/// Arguments of `tatcell show`.
#[derive(Args, Debug)]
#[command(after_help = EXIT)]
pub struct ShowArguments {
    /// The table: /name in shared memory, or the path of a file, which may also be a saved image
    #[arg(value_name = "TABLE", required_unless_present = "counters")]
    pub table: Option<String>,

    /// What to show; without this the geometry and the load
    #[command(subcommand)]
    pub what: Option<What>,

    /// The callers' clock: monotonic, boottime, realtime, raw, tsc, or a time in ticks; without this the one that the
    /// image names
    #[arg(long, value_name = "CLOCK", global = true)]
    pub clock: Option<Named>,

    /// Ticks in a second of that clock, if the image does not say it
    #[arg(long, value_name = "HZ", global = true, value_parser = clap::value_parser!(u64).range(1..))]
    pub tick_hz: Option<u64>,

    /// A file with the seed of the table: 16 bytes, or 32 hexadecimal digits
    #[arg(long, value_name = "FILE", global = true, conflicts_with = "seed_fd")]
    pub seed_file: Option<PathBuf>,

    /// An open descriptor from which to read the seed
    #[arg(long, value_name = "NUMBER", global = true)]
    pub seed_fd: Option<u32>,

    /// The counters that the program shares: a name or a path, as for TABLE, which they may replace
    #[arg(long, value_name = "NAME", global = true)]
    pub counters: Option<String>,

    /// Serve load and counters for Prometheus, at http://ADDRESS/metrics, until a signal ends it; stands after TABLE
    #[arg(long, value_name = "ADDRESS", conflicts_with = "json")]
    #[arg(num_args = 0..=1, default_missing_value = "127.0.0.1:9122", value_parser = address)]
    pub serve: Option<SocketAddr>,

    /// Write JSON; watch and dump write an object a line
    #[arg(long, global = true)]
    pub json: bool,
}

/// What to show or to change.
#[derive(Subcommand, Debug)]
pub enum What {
    /// The longest debts
    Top {
        /// How many
        #[arg(short, long, value_name = "COUNT", default_value_t = 10)]
        count: usize,
        /// A file with keys, one a line: says whose the debts may be; needs the seed
        #[arg(long, value_name = "FILE")]
        candidates: Option<String>,
        /// How those keys are written
        #[arg(long = "as", value_name = "FORM", value_enum, default_value = "auto")]
        form: As,
    },
    /// A screen that refreshes: load and longest debts
    Watch {
        /// How many debts
        #[arg(short, long, value_name = "COUNT", default_value_t = 10)]
        count: usize,
        /// The time between two screens
        #[arg(short, long, value_name = "TIME", default_value = "1s", value_parser = duration)]
        interval: Duration,
        /// End after this many screens
        #[arg(long, value_name = "COUNT")]
        rounds: Option<u64>,
    },
    /// The words of the slots, decoded
    Dump {
        /// Also those that are 0
        #[arg(long)]
        all: bool,
    },
    /// Refuse every request of a key for a time; the table must be one of overrides
    Ban(KeyArguments),
    /// Pass every request of a key for a time; the table must be one of overrides
    Exempt(KeyArguments),
    /// Make a key's burst full again; in a table of overrides, end the ban or exemption
    Reset {
        /// The key: an address, a network, or text
        key: String,
        /// How the key is written
        #[arg(long = "as", value_name = "FORM", value_enum, default_value = "auto")]
        form: As,
    },
}

/// Arguments of a ban or an exemption.
#[derive(Args, Debug)]
pub struct KeyArguments {
    /// The key: an address, a network, or text
    pub key: String,
    /// How long
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub time: Duration,
    /// How the key is written
    #[arg(long = "as", value_name = "FORM", value_enum, default_value = "auto")]
    pub form: As,
}

/// One screen of `watch`, as JSON.
#[derive(Serialize)]
struct Screen<'a> {
    version: u32,
    load: &'a Load,
    counts: Option<&'a Counts>,
    top: &'a [top::Debt],
}

/// Counters without a table.
#[derive(Serialize)]
struct Alone {
    version: u32,
    #[serde(flatten)]
    counts: Counts,
}

impl std::fmt::Display for Alone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.counts.fmt(f)
    }
}

/// Whatever keeps the answer from being given, or from being written.
enum Ended {
    Failed(Failure),
    Unwritten(io::Error),
}

impl From<Failure> for Ended {
    fn from(failure: Failure) -> Ended {
        Ended::Failed(failure)
    }
}

impl From<io::Error> for Ended {
    fn from(error: io::Error) -> Ended {
        Ended::Unwritten(error)
    }
}

impl From<serde_json::Error> for Ended {
    fn from(error: serde_json::Error) -> Ended {
        Ended::Unwritten(error.into())
    }
}

impl ShowArguments {
    /// Writes the answer. The inner result says whether it could be written.
    pub fn run(&self, terminal: bool, mut out: impl Write) -> Result<io::Result<()>, Failure> {
        match self.answer(terminal, &mut out).and_then(|()| Ok(out.flush()?)) {
            Ok(()) => Ok(Ok(())),
            Err(Ended::Failed(failure)) => Err(failure),
            Err(Ended::Unwritten(error)) => Ok(Err(error)),
        }
    }

    fn secret(&self) -> Option<Secret> {
        let file = self.seed_file.clone().map(Secret::File);
        file.or(self.seed_fd.map(Secret::Descriptor))
    }

    /// Attaches, only to look.
    fn attach<'m>(&self, place: &Place, memory: &'m ReadOnlyMemory) -> Result<ReadOnlyTable<'m>, Failure> {
        let options = match self.secret() {
            Some(secret) => AttachOptions::new().seed(secret.read()?),
            None => AttachOptions::new(),
        };
        place.table(memory, &options)
    }

    fn now(&self, table: &ReadOnlyTable<'_>) -> Result<Now, Failure> {
        Clock::choose(self.clock, self.tick_hz, &table.info())?.now()
    }

    fn answer(&self, terminal: bool, out: &mut impl Write) -> Result<(), Ended> {
        if let Some(address) = self.serve {
            return self.serve(address);
        }
        let Some(table) = &self.table else { return self.counts(out) };
        let place = Place::parse(table)?;
        let make = |key: &str, form, what| {
            let secret = self.secret();
            change(&place, secret.as_ref(), (self.clock, self.tick_hz), (key, form), what)
        };
        let done = match &self.what {
            Some(What::Ban(ban)) => make(&ban.key, ban.form, Change::Ban(ban.time))?,
            Some(What::Exempt(exempt)) => make(&exempt.key, exempt.form, Change::Exempt(exempt.time))?,
            Some(What::Reset { key, form }) => make(key, *form, Change::Reset)?,
            _ => return self.look(&place, terminal, out),
        };
        self.put(&done, out)
    }

    fn serve(&self, address: SocketAddr) -> Result<(), Ended> {
        if self.what.is_some() {
            return Err(Failure::Usage("--serve takes no command: leave one of them out".into()).into());
        }
        let place = |text: &Option<String>| text.as_deref().map(Place::parse).transpose();
        let (table, counters) = (place(&self.table)?, place(&self.counters)?);
        Ok(Served { table, clock: self.clock, tick_hz: self.tick_hz, counters }.serve(address)?)
    }

    /// Shows counters without a table.
    fn counts(&self, out: &mut impl Write) -> Result<(), Ended> {
        match (&self.what, &self.counters) {
            (None, Some(name)) => self.put(&Alone { version: 1, counts: Source::open(name)?.read() }, out),
            _ => Err(Failure::Usage("this needs the table: name it before the command".into()).into()),
        }
    }

    fn look(&self, place: &Place, terminal: bool, out: &mut impl Write) -> Result<(), Ended> {
        let memory = place.look()?;
        let table = self.attach(place, &memory)?;
        let mut counters = match &self.counters {
            Some(name) => Some(Source::open(name)?),
            None => None,
        };
        let progress = match &self.what {
            // A screen that refreshes, and words that come on the terminal themselves, are their own progress.
            Some(What::Watch { .. }) => Progress::default(),
            Some(What::Dump { .. }) if io::stdout().is_terminal() => Progress::default(),
            _ => Progress::start({
                let (name, slots) = (short(&place.text), table.slots());
                move || format!("{name}: reading {}", plural(slots as u64, "slot"))
            }),
        };
        match &self.what {
            Some(What::Top { count, candidates, form }) => {
                if candidates.is_some() && self.secret().is_none() {
                    let what = "--candidates needs the seed of the table: --seed-file or --seed-fd";
                    return Err(Failure::Usage(what.into()).into());
                }
                let keys = candidates.as_deref().map(|file| (file, *form));
                let answer = top::find(&table, &place.text, self.now(&table)?, *count, keys, &progress)?;
                drop(progress);
                self.put(&answer, out)
            }
            Some(What::Watch { count, interval, rounds }) => {
                let clock = Clock::choose(self.clock, self.tick_hz, &table.info())?;
                let geometry = Geometry::of(place, &table, clock.now()?.ticks_per_second);
                for round in 0..rounds.unwrap_or(u64::MAX) {
                    if round > 0 {
                        std::thread::sleep(*interval);
                    }
                    let counts = counters.as_mut().map(Source::read);
                    let top = top::find(&table, &place.text, clock.now()?, *count, None, &progress)?;
                    let load = Load::of(top.now, &table);
                    self.screen(&geometry, (&load, counts.as_ref(), &top), terminal, out)?;
                }
                Ok(())
            }
            Some(What::Dump { all }) => {
                Ok(dump::write(&table, self.now(&table)?, *all, self.json, out, &progress)?)
            }
            _ => {
                // Without a clock the geometry is still an answer; a clock that cannot be used is a failure.
                let named = self.clock.is_some() || table.info().clock != tatcell::TableClock::Unknown;
                let load = match named {
                    true => Some(Load::of(self.now(&table)?, &table)),
                    false => None,
                };
                let counts = counters.as_mut().map(Source::read);
                drop(progress);
                let of_clock = load.as_ref().and_then(|load| load.now.ticks_per_second);
                let geometry = Geometry::of(place, &table, of_clock.or(self.tick_hz));
                self.put(&Answer { version: 1, geometry, load, counts }, out)
            }
        }
    }

    /// Writes one screen, on a terminal over the last one.
    fn screen(
        &self,
        geometry: &Geometry,
        (load, counts, top): (&Load, Option<&Counts>, &top::Answer),
        terminal: bool,
        out: &mut impl Write,
    ) -> Result<(), Ended> {
        if self.json {
            serde_json::to_writer(&mut *out, &Screen { version: 1, load, counts, top: &top.top })?;
            writeln!(out)?;
        } else {
            let clear = if terminal { "\x1b[H\x1b[J" } else { "" };
            write!(out, "{clear}{geometry}{load}")?;
            if let Some(counts) = counts {
                write!(out, "{counts}")?;
            }
            writeln!(out, "\n{top}")?;
        }
        Ok(out.flush()?)
    }

    fn put<T: Serialize + std::fmt::Display>(&self, answer: &T, out: &mut impl Write) -> Result<(), Ended> {
        match self.json {
            true => {
                serde_json::to_writer_pretty(&mut *out, answer)?;
                Ok(writeln!(out)?)
            }
            false => Ok(write!(out, "{answer}")?),
        }
    }
}

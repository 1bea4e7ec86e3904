//! What the limits of a configuration mean, what of them cannot be kept, and which of them never decide.

pub mod blocks;
mod glob;
mod grammar;
pub mod meaning;
mod nginx;
mod servers;
mod zones;

use std::fs::File;
use std::io::Read;
use std::path::Path;

use clap::{Args, ValueEnum};

use self::blocks::{Files, MOST};
use self::meaning::Checked;
use crate::failure::Failure;
use crate::words::plural;

const EXIT: &str = "Exit codes:
  0  the limits are kept, and each of them decides
  1  a limit cannot be kept as it is written, or never decides
  2  the arguments cannot be used
  3  the configuration cannot be read; the message has its file, line and column

Memory:
  A check reads at most 64 MiB of text. It takes up to three times the text, and up to 4 KiB for each limit or rule. \
  Each other directive of nginx about limits takes up to 1 KiB, and each of its words 50 bytes. The text of envoy and \
  throttled becomes a tree, with up to 400 bytes for each name and value, and a rule of envoy also takes four times \
  the length of the keys and values above it.";

/// A configuration's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Config {
    /// nginx: limit_req and tatcell
    Nginx,
    /// Rules of Envoy's rate limit service, a file or a folder of them
    Envoy,
    /// Settings of tatcell-throttled
    Throttled,
}

/// Arguments of `tatcell check`.
#[derive(Args, Debug)]
#[command(after_help = EXIT)]
pub struct CheckArguments {
    /// The configuration
    #[arg(value_name = "CONFIG")]
    pub config: String,

    /// Its format; without this it is found by itself
    #[arg(short, long, value_enum)]
    pub format: Option<Config>,

    /// Write JSON
    #[arg(long)]
    pub json: bool,
}

/// What is looked at to find the format.
const HEAD: usize = 1 << 16;

/// Reads at most `most` bytes of a file.
fn start(config: &str, most: usize) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    File::open(config)?.take(most as u64).read_to_end(&mut text)?;
    Ok(text)
}

/// Returns the bytes of a file, or of the files in a folder.
fn bytes(config: &str) -> std::io::Result<u64> {
    let whole = std::fs::metadata(config)?;
    if !whole.is_dir() {
        return Ok(whole.len());
    }
    std::fs::read_dir(config)?.try_fold(0, |sum, entry| Ok(sum + std::fs::metadata(entry?.path())?.len()))
}

/// Finds the format by the name, and else by the first line that says something.
fn find(config: &str) -> Result<Config, Failure> {
    let path = Path::new(config);
    let extension = path.extension().map(|extension| extension.to_string_lossy().into_owned());
    match extension.as_deref() {
        _ if path.is_dir() => return Ok(Config::Envoy),
        Some("yaml" | "yml") => return Ok(Config::Envoy),
        Some("toml") => return Ok(Config::Throttled),
        _ => {}
    }
    let text = start(config, HEAD).map_err(|error| Failure::Input(format!("{config}: {error}")))?;
    let text = String::from_utf8_lossy(&text);
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let Some(line) = lines.next() else { return Err(Failure::Input(format!("{config}: the file is empty"))) };
    let name = line.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-').unwrap_or(line.len());
    let rest = line[name..].trim_start();
    Ok(match rest.as_bytes().first() {
        _ if line == "---" => Config::Envoy,
        Some(b':') => Config::Envoy,
        Some(b'=') => Config::Throttled,
        _ => Config::Nginx,
    })
}

impl CheckArguments {
    /// Answers.
    pub fn check(&self) -> Result<Checked, Failure> {
        let (config, format) = (&*self.config, self.format.map_or_else(|| find(&self.config), Ok)?);
        let name = format.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned());
        let mut checked = Checked::new(config, &name);
        // The readers of the servers' files read all of them; that of nginx counts what it includes.
        if format != Config::Nginx && bytes(config).is_ok_and(|bytes| bytes > MOST as u64) {
            return Err(Failure::Input(format!("{config}: it has more than {MOST} bytes")));
        }
        match format {
            Config::Nginx => {
                let mut directives = Files::read(config)?;
                grammar::check(&mut directives)?;
                nginx::check(config, &directives, &mut checked)?;
            }
            Config::Envoy => servers::envoy(config, &mut checked)?,
            Config::Throttled => servers::throttled(config, &mut checked)?,
        }
        Ok(checked)
    }

    /// Says whether all is well.
    pub fn judge(&self, checked: &Checked) -> Result<(), Failure> {
        match checked.faults() {
            0 => Ok(()),
            faults => Err(Failure::Bound(format!("{}: {} above", self.config, plural(faults, "fault")))),
        }
    }
}

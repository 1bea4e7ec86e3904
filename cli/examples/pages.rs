//! Writes the man pages and the completions of the command, from the definition of its arguments: `pages FOLDER`.
//!
//! `make cli` runs it, and `make install` copies what it wrote. The pages have the date of `SOURCE_DATE_EPOCH`, else
//! today's.

use std::fs::{self, create_dir_all};
use std::io::{Error, Result};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use clap::{Command, CommandFactory};
use clap_complete::{generate_to, Shell};
use clap_mangen::Man;
use tatcell_cli::args::Arguments;
use tatcell_cli::input::time;

fn date() -> Result<String> {
    let seconds = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => text.parse().map_err(|_| Error::other("SOURCE_DATE_EPOCH is no number of seconds"))?,
        Err(_) => SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_err(Error::other)?.as_secs(),
    };
    let mut date = time::show(seconds.saturating_mul(1_000_000_000));
    date.truncate("2026-11-27".len());
    Ok(date)
}

/// `help` shows the pages; it needs none of its own.
fn without_help(command: Command) -> Command {
    command.disable_help_subcommand(true).mut_subcommands(without_help)
}

fn pages(command: &Command, folder: &Path, date: &str) -> Result<()> {
    let source = concat!("tatcell ", env!("CARGO_PKG_VERSION"));
    let page = Man::new(command.clone()).date(date).source(source).manual("tatcell");
    let mut text = Vec::new();
    page.render(&mut text)?;
    // The library has no better name for what stands behind the options.
    let text = String::from_utf8(text).map_err(Error::other)?.replace(".SH EXTRA\n", ".SH NOTES\n");
    fs::write(folder.join(page.get_filename()), text)?;
    command.get_subcommands().try_for_each(|command| pages(command, folder, date))
}

fn main() -> Result<()> {
    let folder = std::env::args_os().nth(1).ok_or_else(|| Error::other("name the folder to write to"))?;
    let folder = PathBuf::from(folder);
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        let folder = folder.join(shell.to_string());
        create_dir_all(&folder)?;
        generate_to(shell, &mut Arguments::command(), "tatcell", folder)?;
    }
    let folder = folder.join("man1");
    create_dir_all(&folder)?;
    let mut command = without_help(Arguments::command());
    command.build();
    pages(&command, &folder, &date()?)
}

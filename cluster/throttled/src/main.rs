//! Starts the server; see the library and the README.

use std::process::ExitCode;

use tatcell_door::{Settings, Signals};
use tatcell_throttled::listen;
use tatcell_throttled::server::{self, ServerSettings};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("--help" | "-h") => print!("{}", server::help()),
        Some("--version" | "-V") => println!("tatcell-throttled {}", env!("CARGO_PKG_VERSION")),
        _ => {
            // First of all: until the handlers stand, a signal kills the process.
            let ended = Signals::listen().and_then(|signals| {
                let settings = Settings::read(arguments).and_then(ServerSettings::take)?;
                listen::run(settings, signals)
            });
            if let Err(error) = ended {
                eprintln!("tatcell-throttled: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

//! Starts the service; see the library and the README.

use std::process::ExitCode;

use tatcell_door::{Settings, Signals};
use tatcell_ratelimit::server::{self, ServerSettings};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("--help" | "-h") => print!("{}", server::help()),
        Some("--version" | "-V") => println!("tatcell-ratelimit {}", env!("CARGO_PKG_VERSION")),
        _ => {
            // First of all: until the handlers stand, a signal kills the process.
            let ended = Signals::listen().and_then(|signals| {
                let settings = Settings::read(arguments).and_then(ServerSettings::take)?;
                server::run(settings, signals)
            });
            if let Err(error) = ended {
                eprintln!("tatcell-ratelimit: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

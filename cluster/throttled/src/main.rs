//! Starts the server; see the library and the README.

use std::process::ExitCode;

use tatcell_throttled::listen;
use tatcell_throttled::server::{self, ServerSettings};

fn main() -> ExitCode {
    tatcell_door::start("tatcell-throttled", env!("CARGO_PKG_VERSION"), server::help, |settings, signals| {
        listen::run(ServerSettings::take(settings)?, signals)
    })
}

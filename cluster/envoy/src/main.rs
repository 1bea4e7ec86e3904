//! Starts the service; see the library and the README.

use std::process::ExitCode;

use tatcell_ratelimit::server::{self, ServerSettings};

fn main() -> ExitCode {
    tatcell_door::start("tatcell-ratelimit", env!("CARGO_PKG_VERSION"), server::help, |settings, signals| {
        server::run(ServerSettings::take(settings)?, signals)
    })
}

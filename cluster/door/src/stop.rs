//! The graceful stop: everyone who waits for it sees SIGTERM or SIGINT.

use std::io;

use tokio::signal::unix::{signal, Signal, SignalKind};
use tokio::sync::watch;

/// Says whether the server must stop. All clones say the same.
#[derive(Clone, Debug)]
pub struct Stop(watch::Receiver<bool>);

impl Stop {
    /// Listens for SIGTERM and SIGINT; needs a runtime. A second signal ends the process at once.
    ///
    /// # Errors
    /// The error of the system.
    pub fn on_signals() -> io::Result<Stop> {
        let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let (say, stop) = watch::channel(false);
        tokio::spawn(async move {
            for _ in 0..2 {
                tokio::select! { _ = term.recv() => {}, _ = int.recv() => {} }
                if say.send_replace(true) {
                    std::process::exit(1);
                }
            }
        });
        Ok(Stop(stop))
    }

    /// Makes a stop for tests: send true to stop.
    pub fn by_hand() -> (watch::Sender<bool>, Stop) {
        let (say, stop) = watch::channel(false);
        (say, Stop(stop))
    }

    /// Returns whether the server must stop.
    pub fn is_said(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits for the stop.
    pub async fn said(&mut self) {
        if self.0.wait_for(|said| *said).await.is_err() {
            // Nobody can stop the server any more.
            std::future::pending::<()>().await;
        }
    }
}

/// Receives each SIGHUP; needs a runtime.
///
/// # Errors
/// The error of the system.
pub fn hang_ups() -> io::Result<Signal> {
    signal(SignalKind::hangup())
}

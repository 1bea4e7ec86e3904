//! The graceful stop: SIGTERM or SIGINT is seen by everyone who waits for it.

use std::io;

use tokio::signal::unix::{signal, Signal, SignalKind};
use tokio::sync::watch;

/// Whether the server is to stop. Clones see the same.
#[derive(Clone, Debug)]
pub struct Stop(watch::Receiver<bool>);

impl Stop {
    /// Listens for SIGTERM and SIGINT; within a runtime. A second signal ends the process at once.
    ///
    /// # Errors
    /// The system refuses.
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

    /// A stop that is said by hand, for tests: send true.
    pub fn by_hand() -> (watch::Sender<bool>, Stop) {
        let (say, stop) = watch::channel(false);
        (say, Stop(stop))
    }

    /// Whether it was said.
    pub fn is_said(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits for it.
    pub async fn said(&mut self) {
        if self.0.wait_for(|said| *said).await.is_err() {
            // Nobody can say it any more.
            std::future::pending::<()>().await;
        }
    }
}

/// Receives each SIGHUP; within a runtime.
///
/// # Errors
/// The system refuses.
pub fn hang_ups() -> io::Result<Signal> {
    signal(SignalKind::hangup())
}

//! Signals: everyone who waits for the stop sees SIGTERM and SIGINT, and a reload sees each SIGHUP.
//!
//! A thread of its own listens from the first line of `main` on, so no signal meets the system's default, which would
//! kill the process. While the server starts, SIGTERM and SIGINT end the process at once, since it has promised nobody
//! an answer. Once it serves, the first one begins the graceful stop, and a second one ends the process.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{mpsc, Arc};

use tokio::signal::unix::{signal, SignalKind};
use tokio::sync::watch;

/// Says whether the server must stop. All clones say the same.
#[derive(Clone, Debug)]
pub struct Stop(watch::Receiver<bool>);

/// Receives each SIGHUP; several that come together may be one.
#[derive(Debug)]
pub struct HangUps(watch::Receiver<u64>);

/// Holds what the signals of this process reach.
#[derive(Debug)]
pub struct Signals {
    /// SIGTERM and SIGINT.
    pub stop: Stop,
    /// SIGHUP.
    pub hang_ups: HangUps,
    serving: Arc<AtomicBool>,
}

impl Signals {
    /// Listens for signals. Call it first in `main`, and [`serving`](Signals::serving) once the server serves.
    ///
    /// # Errors
    /// A line: the system has no thread or no descriptor left.
    pub fn listen() -> Result<Signals, String> {
        let (say, stop) = watch::channel(false);
        let (count, hang_ups) = watch::channel(0);
        let (ready, is_ready) = mpsc::channel();
        let serving = Arc::new(AtomicBool::new(false));
        let serves = serving.clone();
        let cannot = |e: io::Error| format!("cannot listen for signals: {e}");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().map_err(cannot)?;
        let listen = move || {
            runtime.block_on(async {
                let kinds = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()];
                let [mut term, mut int, mut hup] = match kinds.map(signal) {
                    [Ok(term), Ok(int), Ok(hup)] => [term, int, hup],
                    all => {
                        let _ = ready.send(all.into_iter().find_map(Result::err));
                        return;
                    }
                };
                let _ = ready.send(None);
                loop {
                    tokio::select! {
                        _ = hup.recv() => count.send_modify(|count| *count += 1),
                        _ = term.recv() => end(&say, &serves),
                        _ = int.recv() => end(&say, &serves),
                    }
                }
            });
        };
        std::thread::Builder::new().name("signals".into()).spawn(listen).map_err(cannot)?;
        match is_ready.recv() {
            Ok(None) => Ok(Signals { stop: Stop(stop), hang_ups: HangUps(hang_ups), serving }),
            Ok(Some(why)) => Err(cannot(why)),
            Err(_) => Err("cannot listen for signals: the thread ended".into()),
        }
    }

    /// Says that the server serves: from now on a stop is a graceful one.
    pub fn serving(&self) {
        // ORDERING: Relaxed; a value.
        self.serving.store(true, Ordering::Relaxed);
    }
}

/// Begins the stop, or ends the process if it has begun or the server does not serve yet.
fn end(say: &watch::Sender<bool>, serves: &AtomicBool) {
    // ORDERING: Relaxed; a value.
    if !serves.load(Ordering::Relaxed) {
        std::process::exit(0);
    }
    if say.send_replace(true) {
        std::process::exit(1);
    }
}

impl HangUps {
    /// Waits for the next one.
    pub async fn next(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Stop {
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

//! Metrics over HTTP: `GET /metrics` for Prometheus, in the format that it asks for, and `GET /healthz`.
//!
//! Table and counters are opened afresh for each answer: if the program has made them anew, the next answer has them,
//! and while they are not there, the answer is 503 and says why.

use std::net::SocketAddr;
use std::sync::Arc;

use tatcell::host::ReadOnlyCounters;
use tatcell::metrics::{write_text, Format, TableMetrics};
use tatcell::AttachOptions;
use tatcell_door::{listen, pages, Signals};

use super::clock::{Clock, Named};
use super::Place;
use crate::failure::Failure;

/// What is served.
#[derive(Clone, Debug)]
pub struct Served {
    /// The table; without it only the counters.
    pub table: Option<Place>,
    /// The clock of its callers, if the caller names it.
    pub clock: Option<Named>,
    /// Its ticks in a second, if the caller names them.
    pub tick_hz: Option<u64>,
    /// The counters that the program shares.
    pub counters: Option<Place>,
}

impl Served {
    /// Reads table and counters, and writes them. The label is the name of the table, or else of the counters.
    pub fn text(&self, format: Format) -> Result<String, Failure> {
        let label = self.table.as_ref().or(self.counters.as_ref()).map_or("", |place| &place.text);
        let mut metrics = TableMetrics::new(label);
        if let Some(place) = &self.counters {
            let counters =
                ReadOnlyCounters::attach(&place.name).map_err(|error| place.refused(error, "read"))?;
            metrics = metrics.counters(&counters.sum());
        }
        if let Some(place) = &self.table {
            let memory = place.look()?;
            let table = place.table(&memory, &AttachOptions::new())?;
            let mut info = table.info();
            let now = Clock::choose(self.clock, self.tick_hz, &info)?.now()?;
            info.tick_hz = now.ticks_per_second.unwrap_or(0);
            metrics = metrics.stats(&table.stats(now.ticks)).info(&info);
        }
        let mut text = String::new();
        write_text(&[metrics], format, &mut text).map_err(|error| Failure::Input(error.to_string()))?;
        Ok(text)
    }

    /// Serves until a signal ends it. Says on standard error where it listens.
    ///
    /// # Errors
    /// Those of [`text`](Self::text) at the start, and an address that cannot be had.
    pub fn serve(self, address: SocketAddr) -> Result<(), Failure> {
        let mut signals = Signals::listen().map_err(Failure::Input)?;
        self.text(Format::Prometheus)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Failure::Input(format!("cannot serve: {error}")))?;
        runtime.block_on(async {
            let listener = listen(address).map_err(Failure::Input)?;
            let bound =
                listener.local_addr().map_err(|error| Failure::Input(format!("cannot serve: {error}")))?;
            pages::open_to_all(bound).iter().for_each(|note| eprintln!("tatcell: {note}"));
            eprintln!("tatcell: metrics at http://{bound}/metrics");
            let metrics: pages::Metrics = Arc::new(move |format| {
                self.text(format).map(|text| (format, text)).map_err(|error| error.to_string())
            });
            signals.serving();
            let stop = signals.stop.clone();
            tokio::select! {
                () = pages::serve(listener, metrics, Arc::new(|_| None), stop) => {}
                () = signals.stop.said() => {}
            }
            Ok(())
        })
    }
}

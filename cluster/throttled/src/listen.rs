//! Listening, accepting, and the graceful stop.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Duration;

use tatcell_door::{pages, Signals, Stop};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

use crate::connection;
use crate::server::{Server, ServerSettings, Tally};

/// Runs the server until a signal stops it.
///
/// # Errors
/// A line that says why it cannot start.
pub fn run(settings: ServerSettings, signals: Signals) -> Result<(), String> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    if let Some(threads) = settings.threads {
        runtime.worker_threads(threads);
    }
    let runtime = runtime.enable_all().build().map_err(|e| format!("cannot start the threads: {e}"))?;
    runtime.block_on(serve(settings, signals))
}

async fn serve(settings: ServerSettings, mut signals: Signals) -> Result<(), String> {
    let keeper = settings.keeper.open(&settings.limits)?;
    let server = Arc::new(Server::new(&settings, keeper));
    // What has opened is closed in good order from here on.
    signals.serving();
    let mut stop = signals.stop.clone();
    let mut listeners = Vec::new();
    for address in &settings.listen {
        listeners.push(tatcell_door::listen(*address)?);
    }
    if let Some(address) = settings.metrics {
        let (listener, told) = (tatcell_door::listen(address)?, Arc::downgrade(&server));
        pages::open_to_all(address).iter().for_each(|note| eprintln!("tatcell-throttled: {note}"));
        say("metrics at", &listener);
        let metrics: pages::Metrics = Arc::new(move |_| {
            let mut out = String::new();
            if let Some(server) = told.upgrade() {
                server.metrics(&mut out);
            }
            Ok((pages::Format::Prometheus, out))
        });
        tokio::spawn(pages::serve(listener, metrics, Arc::new(|_| None), stop.clone()));
    }
    let mut accepting = tokio::task::JoinSet::new();
    for listener in listeners {
        say("listening at", &listener);
        accepting.spawn(accept(server.clone(), listener, stop.clone()));
    }
    let mut seconds = tokio::time::interval(Duration::from_secs(1));
    while !stop.is_said() {
        tokio::select! {
            _ = seconds.tick() => server.keeper.every_second(),
            () = signals.hang_ups.next() => {
                eprintln!("tatcell-throttled: SIGHUP has no effect: restart to read the settings again");
            }
            () = stop.said() => {}
        }
    }
    accepting.join_all().await;
    // All places are free once the last connection has ended.
    let all = u32::try_from(server.max_clients).unwrap_or(u32::MAX);
    let ended = tokio::time::timeout(settings.stop_within, server.places.acquire_many(all)).await.is_ok();
    // The shared counts get the last requests, too.
    server.keeper.every_second();
    let left = if ended { 0 } else { server.connected() };
    let seen = server.counters.read();
    eprintln!(
        "tatcell-throttled: stopped; {} decided, {} limited, {left} clients cut off",
        seen.decided, seen.limited
    );
    if let Some(server) = Arc::into_inner(server) {
        server.keeper.close(settings.stop_within);
    }
    Ok(())
}

fn say(what: &str, listener: &TcpListener) {
    if let Ok(address) = listener.local_addr() {
        eprintln!("tatcell-throttled: {what} {address}");
    }
}

async fn accept(server: Arc<Server>, listener: TcpListener, mut stop: Stop) {
    while let Some(stream) = tatcell_door::accept("tatcell-throttled", &listener, &mut stop).await {
        admit(&server, stream, &stop);
    }
}

fn admit(server: &Arc<Server>, mut stream: TcpStream, stop: &Stop) {
    let Ok(place) = server.places.clone().try_acquire_owned() else {
        server.count(&mut Tally { turned_away: 1, ..Tally::default() });
        tokio::spawn(async move { stream.write_all(b"-ERR max number of clients reached\r\n").await });
        return;
    };
    // ORDERING: Relaxed; each connection gets its own number.
    let id = server.counters.connections.fetch_add(1, Ordering::Relaxed) + 1;
    let _: io::Result<()> = stream.set_nodelay(true);
    let (server, stop) = (server.clone(), stop.clone());
    tokio::spawn(async move {
        let _ = connection::serve(server, stream, id, stop).await;
        drop(place);
    });
}

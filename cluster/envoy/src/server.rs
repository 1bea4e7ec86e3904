//! Settings, listening, reloading, stopping.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tatcell_door::{pages, Keeper, KeeperSettings, Settings, Signals, Time};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::{Interval, MissedTickBehavior};
use tonic::transport::Server;

use crate::asked::{ANSWER, WAITING};
use crate::grpc::{RateLimitServer, WithoutFields, MAX_REQUEST};
use crate::incoming::{Clients, Times};
use crate::read;
use crate::service::{Options, RateLimit};
use crate::watch::{look, Look, Watch};

/// The most requests of a connection at once. Envoy opens another connection for more.
pub const STREAMS: u32 = 64;

/// The most bytes of a request that wait to be read; four times as many for a connection.
const WINDOW: u32 = 1 << 16;

/// The most bytes of a request's headers.
const HEADERS: u32 = 1 << 13;

/// The most bytes of a question about health.
const HEALTH: usize = 1 << 10;

/// The most bytes that a connection takes: for each of its requests the most of a message that has come and of another
/// that is coming, of an answer, and of what waits for the store; and its own buffers, with the fields that HTTP/2
/// remembers, each of which may keep the piece of 16 KiB that it came in.
pub const HELD: usize = STREAMS as usize * (of_request() + TASK) + CONNECTION + REMEMBERED * (1 << 14);

/// Tasks, and what HTTP/2 keeps of a request and of a connection.
const TASK: usize = 1 << 14;
const CONNECTION: usize = (4 * WINDOW) as usize + (1 << 16);

/// The most fields in the 4096 bytes that HTTP/2 remembers, where each counts as its length and 32.
const REMEMBERED: usize = 4096 / 33;

// README.md says 97 KiB for each request.
const _: () = assert!(of_request() <= 97 << 10);

const fn of_request() -> usize {
    let coming = 3 * MAX_REQUEST;
    let kept = if WAITING > ANSWER { WAITING } else { ANSWER };
    if coming > kept {
        coming
    } else {
        kept
    }
}

/// The longest wait for the answer to a ping.
const PONG: Duration = Duration::from_secs(20);

/// The longest time from the start of a request to its answer: one that never ends does not hold its memory.
const REQUEST: Duration = Duration::from_secs(10);

/// Holds the settings with which the server is started.
#[derive(Debug)]
pub struct ServerSettings {
    rules: Vec<String>,
    listen: SocketAddr,
    metrics: Option<SocketAddr>,
    options: Options,
    max_clients: usize,
    times: Times,
    ping: Duration,
    watch: Option<Duration>,
    stop_within: Duration,
    threads: Option<usize>,
    check: bool,
    keeper: KeeperSettings,
}

/// Returns what `--help` prints.
pub fn help() -> String {
    format!(
        "\
tatcell-ratelimit: Envoy's rate limit service, with the configuration of the reference service

  --config FILE       TOML, with the settings below under the same names
  --rules PATH        YAML, or a folder of it: domains and descriptors; may be repeated; reloaded on SIGHUP
  --watch TIME        reads the rules again when their files have changed; looks at them this often (never)
  --check BOOL        only checks rules and settings (false)
  --listen ADDRESS    where proxies connect (127.0.0.1:8081)
  --metrics ADDRESS   address of /metrics, /healthz and /json (none)
  --headers BOOL      adds ratelimit-limit, -remaining and -reset to answers (false)
  --shadow BOOL       decides and counts, but refuses nothing (false)
  --max-clients N     most connections (1000), each with at most 64 requests at once
  --greet TIME        closes a connection that has not sent HTTP/2's first bytes in this time (10s)
  --idle TIME         closes a connection that asks nothing for this time (1h)
  --ping TIME         pings a silent connection this often; closes it without an answer in as long, at most 20s (1m)
  --stop-within TIME  longest wait for requests on SIGTERM (10s)
  --threads N         threads that serve (as many as cores)
{}",
        KeeperSettings::HELP
    )
}

impl ServerSettings {
    /// Takes its settings; no other setting may be left.
    ///
    /// # Errors
    /// A line that says what is wrong and where.
    pub fn take(mut settings: Settings) -> Result<ServerSettings, String> {
        let settings = &mut settings;
        let rules = settings.list("rules")?;
        if rules.is_empty() {
            return Err("give the rules: --rules FILE.yaml".into());
        }
        let options =
            Options { shadow: settings.or("shadow", false)?, headers: settings.or("headers", false)? };
        let taken = ServerSettings {
            rules,
            listen: settings.or("listen", SocketAddr::from(([127, 0, 0, 1], 8081)))?,
            metrics: settings.one("metrics")?,
            options,
            max_clients: settings.or("max_clients", 1_000)?,
            times: Times {
                greet: settings.or("greet", Time(Duration::from_secs(10)))?.0,
                idle: settings.or("idle", Time(Duration::from_secs(3_600)))?.0,
            },
            ping: settings.or("ping", Time(Duration::from_secs(60)))?.0.max(Duration::from_millis(10)),
            watch: settings.one::<Time>("watch")?.map(|time| time.0.max(Duration::from_millis(10))),
            stop_within: settings.or("stop_within", Time(Duration::from_secs(10)))?.0,
            threads: settings.one("threads")?.map(|n: usize| n.max(1)),
            check: settings.or("check", false)?,
            keeper: KeeperSettings::take(settings)?,
        };
        std::mem::take(settings).finish()?;
        Ok(taken)
    }
}

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
    let ended = runtime.block_on(serve(settings, signals));
    // A reload that hangs, for instance on a network's file system, does not hold up the end.
    runtime.shutdown_background();
    ended
}

fn note(text: String) {
    eprintln!("tatcell-ratelimit: note: {text}");
}

fn bind(what: &str, address: SocketAddr) -> Result<TcpListener, String> {
    let listener = tatcell_door::listen(address)?;
    let address = listener.local_addr().map_err(|e| format!("cannot listen at {address}: {e}"))?;
    eprintln!("tatcell-ratelimit: {what} {address}");
    Ok(listener)
}

async fn serve(settings: ServerSettings, mut signals: Signals) -> Result<(), String> {
    let sources = read::sources(&settings.rules, &[], &mut note)?;
    // The counters of the server that runs are not touched by a check.
    let keeper = if settings.check { settings.keeper.uncounted() } else { settings.keeper };
    let service = Arc::new(RateLimit::open(&sources, keeper, settings.options)?);
    if settings.check {
        eprintln!("tatcell-ratelimit: rules and settings are fine");
        return Ok(());
    }
    // What has opened is closed in good order from here on.
    signals.serving();
    let mut stop = signals.stop.clone();
    let clients = Arc::new(Clients::new(settings.max_clients));
    if let Some(address) = settings.metrics {
        pages::open_to_all(address).iter().for_each(|note| eprintln!("tatcell-ratelimit: {note}"));
        let (listener, told) = (bind("metrics at", address)?, Arc::downgrade(&service));
        let counted = clients.clone();
        let metrics: pages::Metrics = Arc::new(move |_| {
            let mut out = String::new();
            if let Some(service) = told.upgrade() {
                service.metrics(&mut out);
            }
            let (connected, turned_away) = counted.counts();
            let (name, help) = ("tatcell_ratelimit_connected", "Connections that are open.");
            pages::sample(&mut out, "gauge", name, help, &[("", connected)]);
            let help = "Connections refused, because max_clients were open.";
            let name = "tatcell_ratelimit_turned_away_total";
            pages::sample(&mut out, "counter", name, help, &[("", turned_away)]);
            Ok((pages::Format::Prometheus, out))
        });
        let told = Arc::downgrade(&service);
        let more: pages::More = Arc::new(move |target| told.upgrade()?.page(target));
        tokio::spawn(pages::serve(listener, metrics, more, stop.clone()));
    }
    let listener = bind("listening at", settings.listen)?;
    let (health, health_server) = tonic_health::server::health_reporter();
    health.set_serving::<RateLimitServer>().await;
    let (mut ending, within) = (stop.clone(), settings.stop_within);
    let incoming = clients.incoming(listener, settings.times, stop.clone());
    let serving = Server::builder()
        .max_concurrent_streams(STREAMS)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(4 * WINDOW)
        .http2_max_header_list_size(HEADERS)
        .http2_keepalive_interval(Some(settings.ping))
        .http2_keepalive_timeout(Some(settings.ping.min(PONG)))
        .timeout(REQUEST)
        .add_service(WithoutFields(health_server.max_decoding_message_size(HEALTH)))
        .add_service(WithoutFields(RateLimitServer(service.clone())))
        .serve_with_incoming_shutdown(incoming, async move { ending.said().await });
    let mut serving = tokio::spawn(serving);

    let (mut reloads, mut looks) = (JoinSet::new(), JoinSet::new());
    let mut watch = Watch::new(sources);
    let mut looking = settings.watch.map(tokio::time::interval);
    looking.iter_mut().for_each(|looking| looking.set_missed_tick_behavior(MissedTickBehavior::Delay));
    let mut seconds = tokio::time::interval(Duration::from_secs(1));
    let mut ended = false;
    while !stop.is_said() {
        tokio::select! {
            _ = seconds.tick() => service.keeper().every_second(),
            // One after the other; the stop does not wait for them.
            () = signals.hang_ups.next(), if reloads.is_empty() => {
                let (service, paths, known) = (service.clone(), settings.rules.clone(), watch.in_force());
                // What a look that began before this one has read is older than what the reload reads.
                looks = JoinSet::new();
                reloads.spawn_blocking(move || (true, reload(&service, read::sources(&paths, &known, &mut note))));
            }
            Some(how) = reloads.join_next() => {
                // A panic ends the process.
                let (asked, how) = how.unwrap_or_else(|why| (true, Err(why.to_string())));
                let in_force = how.is_ok();
                let why = how.as_ref().err().cloned();
                let news = watch.done(how);
                match if asked { why } else { news } {
                    Some(why) => eprintln!("tatcell-ratelimit: the old rules stay in force: {why}"),
                    None if in_force => eprintln!("tatcell-ratelimit: the rules were reloaded"),
                    None => {}
                }
            }
            () = next(&mut looking), if reloads.is_empty() && looks.is_empty() => {
                let (paths, known) = (settings.rules.clone(), watch.in_force());
                // A network's file system may keep a look waiting.
                looks.spawn_blocking(move || look(&paths, &known));
            }
            Some(look) = looks.join_next(), if reloads.is_empty() => {
                if let Some(look) = look.ok().and_then(|look| watch.is_due(look)) {
                    let (service, paths) = (service.clone(), settings.rules.clone());
                    reloads.spawn_blocking(move || {
                        let how = reload(&service, look);
                        if how.is_ok() {
                            // For the notes about what is left out.
                            let _ = read::sources(&paths, &[], &mut note);
                        }
                        (false, how)
                    });
                }
            }
            how = &mut serving => {
                // If no request is under way, the server ends at once, possibly before this line runs.
                if !stop.is_said() {
                    return Err(format!("the server ended: {how:?}"));
                }
                ended = true;
            }
            () = stop.said() => {}
        }
    }
    health.set_not_serving::<RateLimitServer>().await;
    let how = match ended || tokio::time::timeout(within, &mut serving).await.is_ok() {
        true => "all answered",
        false => "some connections were cut off",
    };
    eprintln!("tatcell-ratelimit: stopped; {} requests, {how}", service.requests());
    let keeper = service.keeper();
    // The shared counts get the last requests, too.
    keeper.every_second();
    drop(service);
    if let Some(keeper) = Arc::into_inner(keeper) {
        Keeper::close(keeper, within);
    }
    Ok(())
}

/// Waits until the files must be looked at again.
async fn next(looking: &mut Option<Interval>) {
    match looking {
        Some(looking) => drop(looking.tick().await),
        None => std::future::pending().await,
    }
}

/// Puts rules into force, and returns them. It may ask a store, so it runs on a thread that serves no requests.
fn reload(service: &RateLimit, look: Look) -> Look {
    service.reload(look.clone()).and(look)
}

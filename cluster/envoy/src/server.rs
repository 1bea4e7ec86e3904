//! Settings, listening, reloading, stopping.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tatcell_door::{hang_ups, pages, Keeper, KeeperSettings, Settings, Stop, Time};
use tokio::net::TcpListener;
use tonic::transport::server::TcpIncoming;
use tonic::transport::Server;

use crate::grpc::RateLimitServer;
use crate::read;
use crate::service::{Options, RateLimit};

/// Holds the settings with which the server is started.
#[derive(Debug)]
pub struct ServerSettings {
    rules: Vec<String>,
    listen: SocketAddr,
    metrics: Option<SocketAddr>,
    options: Options,
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
  --check BOOL        only checks rules and settings (false)
  --listen ADDRESS    where proxies connect (127.0.0.1:8081)
  --metrics ADDRESS   address of /metrics and /healthz (none)
  --headers BOOL      adds ratelimit-limit, -remaining and -reset to answers (false)
  --shadow BOOL       decides and counts, but refuses nothing (false)
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
pub fn run(settings: ServerSettings) -> Result<(), String> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    if let Some(threads) = settings.threads {
        runtime.worker_threads(threads);
    }
    let runtime = runtime.enable_all().build().map_err(|e| format!("cannot start the threads: {e}"))?;
    runtime.block_on(serve(settings))
}

async fn bind(what: &str, address: SocketAddr) -> Result<TcpListener, String> {
    let listener =
        TcpListener::bind(address).await.map_err(|e| format!("cannot listen at {address}: {e}"))?;
    let address = listener.local_addr().map_err(|e| format!("cannot listen at {address}: {e}"))?;
    eprintln!("tatcell-ratelimit: {what} {address}");
    Ok(listener)
}

async fn serve(settings: ServerSettings) -> Result<(), String> {
    let sources = read::sources(&settings.rules)?;
    let service = Arc::new(RateLimit::open(&sources, settings.keeper, settings.options)?);
    if settings.check {
        eprintln!("tatcell-ratelimit: rules and settings are fine");
        return Ok(());
    }
    let mut stop = Stop::on_signals().map_err(|e| format!("cannot listen for signals: {e}"))?;
    let mut hang_ups = hang_ups().map_err(|e| format!("cannot listen for signals: {e}"))?;
    if let Some(address) = settings.metrics {
        let (listener, told) = (bind("metrics at", address).await?, Arc::downgrade(&service));
        let metrics: pages::Metrics = Arc::new(move |out| {
            if let Some(service) = told.upgrade() {
                service.metrics(out);
            }
        });
        tokio::spawn(pages::serve(listener, metrics, stop.clone()));
    }
    let listener = bind("listening at", settings.listen).await?;
    let (health, health_server) = tonic_health::server::health_reporter();
    health.set_serving::<RateLimitServer>().await;
    let (mut ending, within) = (stop.clone(), settings.stop_within);
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    let serving = Server::builder()
        .add_service(health_server)
        .add_service(RateLimitServer(service.clone()))
        .serve_with_incoming_shutdown(incoming, async move { ending.said().await });
    let mut serving = tokio::spawn(serving);

    let mut seconds = tokio::time::interval(Duration::from_secs(1));
    let (mut second, mut ended) = (0, false);
    while !stop.is_said() {
        tokio::select! {
            _ = seconds.tick() => {
                service.keeper().every_second(second);
                second += 1;
            }
            _ = hang_ups.recv() => reload(&service, &settings.rules).await,
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
    drop(service);
    if let Some(keeper) = Arc::into_inner(keeper) {
        Keeper::close(keeper, within);
    }
    Ok(())
}

/// Reads the rules again, on a thread that serves no requests, because it may ask a store.
async fn reload(service: &Arc<RateLimit>, paths: &[String]) {
    let (service, paths) = (service.clone(), paths.to_vec());
    let read = move || service.reload(read::sources(&paths));
    match tokio::task::spawn_blocking(read).await {
        Ok(Ok(())) => eprintln!("tatcell-ratelimit: the rules were reloaded"),
        Ok(Err(why)) => eprintln!("tatcell-ratelimit: the old rules stay in force: {why}"),
        Err(why) => eprintln!("tatcell-ratelimit: the old rules stay in force: {why}"),
    }
}

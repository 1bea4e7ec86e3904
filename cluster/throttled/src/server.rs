//! Settings, and what connections share and count.

use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tatcell_door::{now, pages, Keeper, KeeperSettings, LimitSpec, Rate, Settings, Time};
use tokio::sync::Semaphore;

use crate::throttle;

/// Holds the settings with which the server is started.
#[derive(Debug)]
pub struct ServerSettings {
    pub(crate) listen: Vec<SocketAddr>,
    pub(crate) metrics: Option<SocketAddr>,
    password: Option<String>,
    max_clients: usize,
    greet: Duration,
    idle: Option<Duration>,
    pub(crate) stop_within: Duration,
    pub(crate) threads: Option<usize>,
    pub(crate) limits: Vec<Rate>,
    pub(crate) keeper: KeeperSettings,
}

/// Returns what `--help` prints.
pub fn help() -> String {
    format!(
        "\
tatcell-throttled: a server that speaks CL.THROTTLE, for clients of redis-cell

  --config FILE       TOML, with the settings below under the same names
  --listen ADDRESS    where clients connect (127.0.0.1:6379); may be repeated
  --metrics ADDRESS   address of /metrics and /healthz (none)
  --password-file F   a file with the password that clients must give; in a config also password = \"...\"
  --max-clients N     most connections (10000)
  --greet TIME        closes a connection that sends no whole command for this time at its start (1m)
  --idle TIME         closes a connection that is silent for this time later (never)
  --stop-within TIME  longest wait for clients on SIGTERM (10s)
  --threads N         threads that serve (as many as cores)
  --limit LIMIT       a shared limit: \"30/m burst 16\", or as in a call max_burst, count and period: \"15 30 60\";
                      may be repeated; needs a store
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
        let mut listen = settings.list("listen")?;
        if listen.is_empty() {
            listen.push(SocketAddr::from(([127, 0, 0, 1], 6379)));
        }
        let file = settings.one::<String>("password_file")?;
        let password = match (settings.one::<String>("password")?, file) {
            (Some(_), Some(_)) => return Err("give password or password_file, not both".into()),
            (None, Some(path)) => {
                let text = std::fs::read_to_string(&path).map_err(|e| format!("cannot read {path}: {e}"))?;
                Some(text.trim_end_matches(['\r', '\n']).to_owned())
            }
            (password, None) => password,
        };
        if password.as_deref() == Some("") {
            return Err("the password is empty: give one, or no password".into());
        }
        let keeper = KeeperSettings::take(settings)?;
        let limits = settings.list_by("limit", shared)?;
        match (keeper.shares(), limits.is_empty()) {
            (true, true) => {
                return Err("with a store, give each limit that is shared: --limit \"15 30 60\"".into())
            }
            (false, false) => {
                return Err(
                    "limit is for limits that are shared through a store: give a store, or no limit".into()
                )
            }
            _ => {}
        }
        let taken = ServerSettings {
            listen,
            metrics: settings.one("metrics")?,
            password,
            max_clients: settings.or("max_clients", 10_000)?,
            greet: settings.or("greet", Time(Duration::from_secs(60)))?.0,
            idle: settings.one::<Time>("idle")?.map(|time| time.0),
            stop_within: settings.or("stop_within", Time(Duration::from_secs(10)))?.0,
            threads: settings.one("threads")?.map(|n: usize| n.max(1)),
            limits,
            keeper,
        };
        std::mem::take(settings).finish()?;
        Ok(taken)
    }

    /// Returns the limits that are shared through a store; without one, each call brings its own.
    pub fn limits(&self) -> &[Rate] {
        &self.limits
    }
}

/// Reads a limit of the settings: `30/m burst 16` as the library reads it, or the three numbers of a call.
fn shared(text: &str) -> Result<Rate, (Option<usize>, String)> {
    if !text.contains('/') {
        let words: Vec<&[u8]> = text.split_ascii_whitespace().map(str::as_bytes).collect();
        return throttle::rate(&words).map_err(|why| {
            (None, format!("{why}; give a limit as in \"30/m burst 16\", or max_burst, count and period"))
        });
    }
    // A tick of this clock is a second.
    let spec = LimitSpec::parse(text, 1).map_err(|e| {
        let why = e.to_string();
        (Some(e.position), why.split_once(": ").map_or(why.clone(), |(_, why)| why.to_owned()))
    })?;
    let (units, period, burst) = spec.numbers();
    Ok(Rate { units, period, burst })
}

macro_rules! tally {
    ($($name:ident: $help:literal,)*) => {
        /// Counts what happened since the last [`Server::count`].
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Tally {
            $(#[doc = $help] pub $name: u64,)*
        }

        #[derive(Debug, Default)]
        pub(crate) struct Counters { $(pub(crate) $name: AtomicU64,)* }

        impl Counters {
            fn add(&self, tally: &Tally) {
                // ORDERING: Relaxed; values only.
                $(if tally.$name > 0 { self.$name.fetch_add(tally.$name, Ordering::Relaxed); })*
            }

            pub(crate) fn read(&self) -> Tally {
                // ORDERING: Relaxed; values only.
                Tally { $($name: self.$name.load(Ordering::Relaxed),)* }
            }
        }

        impl Tally {
            fn metrics(&self, out: &mut String) {
                $(pages::sample(out, "counter", concat!("tatcell_throttled_", stringify!($name), "_total"), $help,
                    &[("", self.$name)]);)*
            }
        }
    };
}

tally! {
    commands: "Commands of any kind.",
    decided: "Requests that were decided.",
    limited: "Requests that were decided and refused.",
    given_back: "Units given back by negative quantities.",
    undecided: "Requests without a decision: the store was late, or there were too many.",
    untracked: "Decisions by when_full, for new keys whose set was full.",
    errors: "Commands answered with an error.",
    malformed: "Connections that ended with a protocol error.",
    connections: "Connections accepted.",
    turned_away: "Connections refused, because max_clients were open.",
}

/// Holds what all connections share.
#[derive(Debug)]
pub struct Server {
    /// Decides the requests.
    pub keeper: Keeper,
    /// How long a connection may take for its first command.
    pub greet: Duration,
    /// How long a connection may be silent after that.
    pub idle: Option<Duration>,
    password: Option<String>,
    pub(crate) counters: Counters,
    started: Instant,
    pub(crate) places: Arc<Semaphore>,
    pub(crate) max_clients: usize,
}

impl Server {
    pub(crate) fn new(settings: &ServerSettings, keeper: Keeper) -> Server {
        let places = Arc::new(Semaphore::new(settings.max_clients.min(Semaphore::MAX_PERMITS)));
        Server {
            keeper,
            greet: settings.greet,
            idle: settings.idle,
            password: settings.password.clone(),
            counters: Counters::default(),
            started: Instant::now(),
            places,
            max_clients: settings.max_clients.min(Semaphore::MAX_PERMITS),
        }
    }

    /// Adds a tally to the counters, and resets it.
    pub fn count(&self, tally: &mut Tally) {
        self.counters.add(&std::mem::take(tally));
    }

    /// Returns whether clients must give a password.
    pub fn has_password(&self) -> bool {
        self.password.is_some()
    }

    /// Returns whether this user may send commands. Without a password the default user may, with any. A wrong password
    /// takes as long as the right one.
    pub fn allows(&self, user: &[u8], password: &[u8]) -> bool {
        let Some(right) = &self.password else { return user == b"default" };
        let right = right.as_bytes();
        let differs = right
            .iter()
            .enumerate()
            .fold(0, |differs, (i, byte)| differs | byte ^ password.get(i).copied().unwrap_or(!byte));
        user == b"default" && differs == 0 && password.len() == right.len()
    }

    /// Forgets keys; returns how many owed something, or `None` if the limits are shared.
    pub fn forget(&self, keys: &[&[u8]]) -> Option<i64> {
        let Keeper::Local(tables, _) = &self.keeper else { return None };
        let now = now();
        Some(keys.iter().filter(|key| tables.forget(key, now)).count() as i64)
    }

    pub(crate) fn connected(&self) -> u64 {
        (self.max_clients - self.places.available_permits()) as u64
    }

    /// Returns the text of INFO.
    pub fn info(&self) -> String {
        let seen = self.counters.read();
        let mut out = String::from("# Server\r\nserver_name:tatcell-throttled\r\n");
        // Clients read it to learn what they may send; HELLO came with 6.0.
        let _ = write!(out, "redis_version:6.0.0\r\ntatcell_version:{}\r\n", env!("CARGO_PKG_VERSION"));
        let _ = write!(out, "redis_mode:standalone\r\nprocess_id:{}\r\n", std::process::id());
        let _ = write!(out, "uptime_in_seconds:{}\r\n", self.started.elapsed().as_secs());
        let _ = write!(out, "\r\n# Clients\r\nconnected_clients:{}\r\n", self.connected());
        let _ = write!(out, "maxclients:{}\r\n\r\n# Stats\r\n", self.max_clients);
        let _ = write!(out, "total_connections_received:{}\r\n", seen.connections);
        let _ = write!(out, "rejected_connections:{}\r\n", seen.turned_away);
        let _ = write!(out, "total_commands_processed:{}\r\n", seen.commands);
        let _ = write!(out, "total_error_replies:{}\r\n", seen.errors);
        let _ = write!(out, "throttle_decided:{}\r\nthrottle_limited:{}\r\n", seen.decided, seen.limited);
        let _ = write!(out, "\r\n# Replication\r\nrole:master\r\nconnected_slaves:0\r\n");
        out
    }

    pub(crate) fn metrics(&self, out: &mut String) {
        self.counters.read().metrics(out);
        let help = "Connections that are open.";
        pages::sample(out, "gauge", "tatcell_throttled_connected", help, &[("", self.connected())]);
        self.keeper.metrics(out);
    }
}

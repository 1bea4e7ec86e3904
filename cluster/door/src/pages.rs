//! Metrics and health over HTTP: `GET /metrics` for Prometheus, `GET /healthz`.
//!
//! Implements as much of HTTP/1.1 as a scraper and a prober need: one request per connection, without a body, in at
//! most 5 seconds and 8 KiB; 64 connections and 4 answers at once. Whoever comes is served: the oldest one goes.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

pub use tatcell::metrics::Format;

use crate::Stop;

const PLAIN: &str = "text/plain; charset=utf-8";
const REQUEST: usize = 8 * 1024;
const TIME: Duration = Duration::from_secs(5);
const AT_ONCE: usize = 64;
/// The most pages that are written at once: with many rules a page has megabytes.
const WRITTEN: usize = 4;

/// Returns the metrics, and the format that they have: the wanted one, or that of Prometheus. An error says why there
/// are none now.
pub type Metrics = Arc<dyn Fn(Format) -> Result<(Format, String), String> + Send + Sync>;

/// A page of the server's own: its status, and its text in JSON.
pub type Own = (&'static str, String);

/// Returns a page of the server's own, by its target.
pub type More = Arc<dyn Fn(&str) -> Option<Own> + Send + Sync>;

/// The pages that are on their way to a client. The oldest one is cut off when it loses its place here.
type Written = Arc<Mutex<VecDeque<oneshot::Sender<()>>>>;

/// Serves the pages until the stop; from then until the process ends, health is 503.
pub async fn serve(listener: TcpListener, metrics: Metrics, more: More, stop: Stop) {
    let (mut open, written) = (VecDeque::new(), Written::default());
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let (metrics, more, stop) = (metrics.clone(), more.clone(), stop.clone());
                let written = written.clone();
                open.retain(|page: &AbortHandle| !page.is_finished());
                // Whoever comes is served, even if silent connections have taken all places: the oldest one goes.
                if open.len() >= AT_ONCE {
                    open.pop_front().iter().for_each(AbortHandle::abort);
                }
                let page = async move {
                    let _ = tokio::time::timeout(TIME, page(stream, &metrics, &more, &stop, &written)).await;
                };
                open.push_back(tokio::spawn(page).abort_handle());
            }
            // Out of descriptors: wait until other connections end.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

/// Returns a note about pages that whoever reaches the machine can read.
pub fn open_to_all(address: SocketAddr) -> Option<String> {
    let all = address.ip().is_unspecified();
    all.then(|| {
        format!("note: {address} is every address of this machine: whoever reaches it reads the metrics")
    })
}

async fn page(
    mut stream: TcpStream,
    metrics: &Metrics,
    more: &More,
    stop: &Stop,
    written: &Written,
) -> std::io::Result<()> {
    let mut request = Vec::new();
    let whole = loop {
        let seen = request.len();
        if stream.read_buf(&mut request).await? == 0 || request.len() > REQUEST {
            break false;
        }
        let from = seen.saturating_sub(3);
        if request[from..].windows(4).any(|end| end == b"\r\n\r\n") {
            break true;
        }
    };
    let (status, kind, body) = match whole {
        true => answer(&request, metrics, more, stop.is_said()),
        false => ("400 Bad Request", PLAIN, "send GET /metrics or GET /healthz\n".into()),
    };
    // The buffer of a text that has grown may have twice its length.
    let body = if request.starts_with(b"HEAD ") { Box::default() } else { body.into_boxed_str() };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    );
    let (place, lost) = oneshot::channel();
    {
        let mut written = written.lock().unwrap_or_else(PoisonError::into_inner);
        written.retain(|place| !place.is_closed());
        if written.len() >= WRITTEN {
            written.pop_front();
        }
        written.push_back(place);
    }
    let write = async {
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(body.as_bytes()).await?;
        stream.shutdown().await
    };
    tokio::select! {
        done = write => done,
        _ = lost => Ok(()),
    }
}

fn answer(
    request: &[u8],
    metrics: &Metrics,
    more: &More,
    stopping: bool,
) -> (&'static str, &'static str, String) {
    let text = String::from_utf8_lossy(request);
    let mut words = text.split('\r').next().unwrap_or_default().split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let plain = |status, text| (status, PLAIN, text);
    match (method, target.split('?').next().unwrap_or_default()) {
        ("GET" | "HEAD", "/metrics") => match metrics(wanted(&text)) {
            Ok((format, text)) => ("200 OK", format.content_type(), text),
            Err(why) => plain("503 Service Unavailable", why + "\n"),
        },
        ("GET" | "HEAD", "/healthz") if stopping => plain("503 Service Unavailable", "stopping\n".into()),
        ("GET" | "HEAD", "/healthz") => plain("200 OK", "ok\n".into()),
        ("GET" | "HEAD", _) => match more(target) {
            Some((status, text)) => (status, "application/json", text),
            None => plain("404 Not Found", "/metrics, /healthz\n".into()),
        },
        _ => plain("405 Method Not Allowed", "GET\n".into()),
    }
}

/// Returns the format that a request asks for: OpenMetrics if it names that, as Prometheus does first of all.
fn wanted(request: &str) -> Format {
    let accepts = request.split("\r\n").filter_map(|line| line.split_once(':'));
    let mut accepts = accepts.filter(|(name, _)| name.eq_ignore_ascii_case("accept"));
    match accepts.any(|(_, value)| value.to_ascii_lowercase().contains("application/openmetrics-text")) {
        true => Format::OpenMetrics,
        false => Format::Prometheus,
    }
}

/// Writes one sample with its type and help, for [`Metrics`].
pub fn sample(out: &mut String, kind: &str, name: &str, help: &str, samples: &[(&str, u64)]) {
    use std::fmt::Write;
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
    for (labels, value) in samples {
        let _ = writeln!(out, "{name}{labels} {value}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(request: &str, stopping: bool) -> (&'static str, String) {
        let metrics: Metrics = Arc::new(|_| {
            let mut out = String::new();
            sample(&mut out, "counter", "a_total", "Things.", &[("{b=\"c\"}", 3)]);
            Ok((Format::Prometheus, out))
        });
        let more: More = Arc::new(|target| (target == "/own?x").then(|| ("200 OK", "{}\n".into())));
        let (status, _, text) = answer(request.as_bytes(), &metrics, &more, stopping);
        (status, text)
    }

    #[test]
    fn who_asks_for_open_metrics_gets_it_and_who_gets_none_learns_why() {
        let asked: Metrics = Arc::new(|format| match format {
            Format::OpenMetrics => Ok((format, "# EOF\n".into())),
            Format::Prometheus => Err("the table is not there".into()),
        });
        let more: More = Arc::new(|_| None);
        let ask = |fields: &str| {
            let request = format!("GET /metrics HTTP/1.1\r\n{fields}\r\n");
            answer(request.as_bytes(), &asked, &more, false)
        };
        let prometheus = "host: x\r\nACCEPT: application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n";
        assert_eq!(ask(prometheus), ("200 OK", Format::OpenMetrics.content_type(), "# EOF\n".into()));
        for fields in ["", "accept: text/plain\r\n", "x: application/openmetrics-text\r\n"] {
            let (status, kind, text) = ask(fields);
            assert_eq!((status, kind), ("503 Service Unavailable", PLAIN));
            assert_eq!(text, "the table is not there\n");
        }
    }

    #[test]
    fn pages_on_every_address_are_mentioned() {
        let note = |address: &str| open_to_all(address.parse().expect("an address"));
        assert!(note("0.0.0.0:9121").is_some_and(|said| said.contains("0.0.0.0:9121 is every address")));
        assert!(note("[::]:9121").is_some());
        assert_eq!((note("127.0.0.1:9121"), note("[::1]:9121"), note("10.0.0.7:9121")), (None, None, None));
    }

    #[test]
    fn pages_are_found_by_path_and_the_rest_is_refused() {
        let (status, body) = ask("GET /metrics?x HTTP/1.1\r\nhost: x\r\n\r\n", false);
        let text = "# HELP a_total Things.\n# TYPE a_total counter\na_total{b=\"c\"} 3\n";
        assert_eq!((status, body.as_str()), ("200 OK", text));
        assert_eq!(ask("GET /healthz HTTP/1.1\r\n\r\n", false).0, "200 OK");
        assert_eq!(ask("GET /healthz HTTP/1.1\r\n\r\n", true).0, "503 Service Unavailable");
        assert_eq!(ask("GET /own?x HTTP/1.1\r\n\r\n", false), ("200 OK", "{}\n".into()));
        assert_eq!(ask("GET / HTTP/1.1\r\n\r\n", false).0, "404 Not Found");
        assert_eq!(ask("POST /metrics HTTP/1.1\r\n\r\n", false).0, "405 Method Not Allowed");
        assert_eq!(ask("\r\n\r\n", false).0, "405 Method Not Allowed");
    }
}

//! `examples/http_429.c`, built and asked by a real client: curl, or else Python's http.client.
//!
//! A server of the suite's own on a free port of loopback. The limit is 2 at once and 1 in 3 seconds, and each claim
//! has a key of its own, so none waits for another. The waits are real: a client has no other clock.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{ensure, Context as _, Result};
use regex_lite::Regex;
use xshell::cmd;

use crate::context::{Context, STRICT};
use crate::exec::Run;
use crate::library::Library;
use crate::report::Report;
use crate::tools::{have, Missing};

/// Asks each URL once over one connection, with an API key where it is not empty, and prints what curl -i prints.
const PYTHON: &str = "
import http.client, sys, urllib.parse
key, urls = sys.argv[1], sys.argv[2:]
server = http.client.HTTPConnection(urllib.parse.urlsplit(urls[0]).netloc, timeout=10)
for url in urls:
    server.request('GET', urllib.parse.urlsplit(url).path, headers={'X-API-Key': key} if key else {})
    answer = server.getresponse()
    print(f'HTTP/1.1 {answer.status} {answer.reason}')
    for name, value in answer.getheaders():
        print(f'{name}: {value}')
    print()
    print(answer.read().decode(), end='')
";

/// Seconds for one unit, and so the longest wait of a cost of 1.
const WAIT: u64 = 3;
/// A busy machine may be late: then the claim is tried again, with another key.
const TRIES: usize = 3;

/// Every claim about the example server.
pub fn run(ctx: &Context, report: &mut Report, library: &Library) -> Result<()> {
    let Some(client) = Client::find() else {
        let missing =
            Missing::new("neither curl nor python3 is installed", "apt-get install curl, or python3");
        report.skip("http_429: a_real_client_is_answered", &missing);
        return Ok(());
    };
    let binary = ctx.folder("ffi")?.join("http_429");
    let (cc, archive) = (&ctx.cc, &library.archive);
    let built = cmd!(
        ctx.sh,
        "env {cc...} -std=c11 -O2 -Iinclude {STRICT...} examples/http_429.c {archive} -o {binary}"
    );
    if !report.claim("http_429: the_example_compiles_without_a_warning", || built.must().map(drop)) {
        return Ok(());
    }
    let server = Server::start(&binary, client)?;
    type Claim = fn(&Server) -> Result<()>;
    let claims: [(&str, Claim); 6] = [
        ("answers_200_and_429_with_all_the_fields", fields),
        ("fields_are_structured_fields", structured),
        ("keys_and_addresses_have_limits_of_their_own", keys),
        ("one_connection_takes_several_requests", connection),
        ("who_waits_retry_after_passes_and_a_second_less_does_not", waits),
        ("refusals_are_logged_once_a_second_with_the_count_of_the_others", logged),
    ];
    for (name, claim) in claims {
        report.claim(&format!("http_429: {name}"), || claim(&server));
    }
    Ok(())
}

/// A program that asks.
#[derive(Clone, Copy)]
enum Client {
    Curl,
    Python,
}

impl Client {
    fn find() -> Option<Self> {
        [("curl", Client::Curl), ("python3", Client::Python)]
            .into_iter()
            .find(|(name, _)| have(name))
            .map(|c| c.1)
    }

    /// Asks so many times over one connection.
    fn ask(self, url: &str, key: &str, times: usize) -> Result<Vec<Response>> {
        let mut command = match self {
            Client::Curl => Command::new("curl"),
            Client::Python => Command::new("python3"),
        };
        match self {
            Client::Curl => {
                command.args(["--silent", "--show-error", "--include", "--noproxy", "*", "--max-time", "20"]);
                if !key.is_empty() {
                    command.args(["--header", &format!("X-API-Key: {key}")]);
                }
            }
            Client::Python => drop(command.args(["-c", PYTHON, key])),
        }
        command.args(std::iter::repeat_n(url, times));
        let done = command.done_within(Duration::from_secs(30))?;
        ensure!(done.ok(), "the client ended with {}\n{}", done.how(), done.all);
        let responses: Vec<Response> = done.stdout.split("HTTP/1.1 ").skip(1).map(Response::of).collect();
        ensure!(responses.len() == times, "{} of {times} responses\n{}", responses.len(), done.all);
        Ok(responses)
    }
}

/// What a client got.
struct Response {
    status: String,
    fields: Vec<(String, String)>,
}

impl Response {
    fn of(text: &str) -> Self {
        let mut lines = text.lines().map(str::trim_end);
        let status = lines.next().unwrap_or_default().split(' ').next().unwrap_or_default().to_owned();
        let fields = lines.take_while(|line| !line.is_empty()).filter_map(|line| line.split_once(": "));
        Self { status, fields: fields.map(|(name, value)| (name.to_owned(), value.to_owned())).collect() }
    }

    fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// Compares status and fields.
    fn is(&self, status: &str, wanted: &[(&str, Option<&str>)]) -> Result<()> {
        ensure!(self.status == status, "{} instead of {status}", self.status);
        for (name, value) in wanted {
            ensure!(self.field(name) == *value, "{status} with {name} {:?}, not {value:?}", self.field(name));
        }
        Ok(())
    }
}

/// The example, while it runs.
struct Server {
    binary: PathBuf,
    child: Child,
    url: String,
    client: Client,
    output: BufReader<ChildStdout>,
}

impl Server {
    fn start(binary: &Path, client: Client) -> Result<Self> {
        let mut command = Command::new(binary);
        command.args(["-p", "0", "-u", "1", "-w", &WAIT.to_string(), "-b", "2"]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let mut output = BufReader::new(child.stdout.take().context("no output")?);
        let mut line = String::new();
        output.read_line(&mut line)?;
        let url = line.trim().strip_prefix("listening on ").map(str::to_owned);
        match url {
            Some(url) => Ok(Self { binary: binary.to_owned(), child, url, client, output }),
            None => {
                child.kill()?;
                anyhow::bail!("the server says {line}")
            }
        }
    }

    fn ask(&self, key: &str, times: usize) -> Result<Vec<Response>> {
        self.client.ask(&self.url, key, times)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill().and_then(|()| self.child.wait());
    }
}

/// Runs a claim whose answers hold only if the machine was not late, and again where it was: it says so itself.
fn in_time(name: &str, mut claim: impl FnMut(&str) -> Result<(bool, Result<()>)>) -> Result<()> {
    let mut result = Ok(());
    for attempt in 0..TRIES {
        let (late, answers) = claim(&format!("{name} {attempt}"))?;
        result = answers;
        if result.is_ok() || !late {
            break;
        }
    }
    result
}

fn fields(server: &Server) -> Result<()> {
    in_time("fields", |key| {
        let began = Instant::now();
        let [first, second, third] = three(server.ask(key, 3)?)?;
        let policy = ("RateLimit-Policy", Some("\"client\";q=2;w=6"));
        let limit = ("X-RateLimit-Limit", Some("2"));
        let check = || {
            first.is(
                "200",
                &[
                    policy,
                    limit,
                    ("RateLimit", Some("\"client\";r=1;t=3")),
                    ("Retry-After", None),
                    ("X-RateLimit-Remaining", Some("1")),
                    ("X-RateLimit-Reset", Some("3")),
                ],
            )?;
            second.is(
                "200",
                &[policy, limit, ("RateLimit", Some("\"client\";r=0;t=6")), ("Retry-After", None)],
            )?;
            third.is(
                "429",
                &[
                    policy,
                    limit,
                    ("RateLimit", Some("\"client\";r=0;t=3")),
                    ("Retry-After", Some("3")),
                    ("X-RateLimit-Remaining", Some("0")),
                    ("X-RateLimit-Reset", Some("3")),
                ],
            )
        };
        // A second later other seconds would be right.
        Ok((began.elapsed() > Duration::from_secs(1), check()))
    })
}

fn three(responses: Vec<Response>) -> Result<[Response; 3]> {
    responses.try_into().ok().context("not three responses")
}

/// The grammar of RFC 9651 for a List of Strings with integers, strings and byte sequences as parameters.
fn structured(server: &Server) -> Result<()> {
    let string = r#""(?:[ !#-\[\]-~]|\\["\\])*""#;
    let parameter = format!(r"(?:;[a-z*][a-z0-9_.*-]*=(?:[0-9]{{1,15}}|{string}|:[A-Za-z0-9+/=]*:))");
    let list = Regex::new(&format!(r"^{string}{parameter}*(?:, {string}{parameter}*)*$"))?;
    let delay = Regex::new("^[0-9]+$")?;
    for response in server.ask("structured", 3)? {
        for name in ["RateLimit", "RateLimit-Policy"] {
            let value = response.field(name).with_context(|| format!("no {name}"))?;
            ensure!(list.is_match(value), "{name} is no List: {value}");
        }
        if let Some(value) = response.field("Retry-After") {
            ensure!(delay.is_match(value), "Retry-After is no number of seconds: {value}");
        }
    }
    Ok(())
}

fn keys(server: &Server) -> Result<()> {
    for key in ["one", "two", ""] {
        let answers = server.ask(key, 2)?;
        ensure!(answers.iter().all(|r| r.status == "200"), "{key:?} has not its own burst");
    }
    Ok(())
}

fn connection(server: &Server) -> Result<()> {
    let answers = server.ask("connection", 20)?;
    let passed = answers.iter().filter(|r| r.status == "200").count();
    ensure!((2..20).contains(&passed), "{passed} of 20 passed");
    ensure!(answers.iter().all(|r| r.field("Connection").is_none()), "the server ends the connection");
    Ok(())
}

fn waits(server: &Server) -> Result<()> {
    in_time("waits", |key| {
        let began = Instant::now();
        let [_, _, refused] = three(server.ask(key, 3)?)?;
        let answered = Instant::now();
        refused.is("429", &[("Retry-After", Some("3"))])?;
        let at = |seconds: u64| {
            std::thread::sleep(
                (answered + Duration::from_secs(seconds)).saturating_duration_since(Instant::now()),
            );
            server.ask(key, 1)
        };
        let early = at(WAIT - 1)?;
        let late = began.elapsed() >= Duration::from_secs(WAIT);
        let then = at(WAIT)?;
        let check = || {
            early.first().context("no response")?.is("429", &[("Retry-After", Some("1"))])?;
            then.first().context("no response")?.is("200", &[("Retry-After", None)])
        };
        Ok((late, check()))
    })
}

/// Of a server of its own, so that all that it logs is known.
fn logged(server: &Server) -> Result<()> {
    let mut server = Server::start(&server.binary, server.client)?;
    let began = Instant::now();
    let mut refused = 0;
    while began.elapsed() < Duration::from_millis(2500) {
        refused += server.ask("logged", 5)?.iter().filter(|r| r.status == "429").count();
    }
    let seconds = began.elapsed().as_secs() as usize;
    let pid = server.child.id().to_string();
    Command::new("kill").arg(pid).must()?;
    let mut text = String::new();
    server.output.read_to_string(&mut text)?;
    ensure!(server.child.wait()?.success(), "the server ended with an error");
    let told = Regex::new(r"^refused 127\.0\.0\.1(?:, and ([0-9]+) more were not logged)?$")?;
    let mut counted = 0;
    for line in text.lines() {
        let found = told.captures(line).with_context(|| format!("a strange line: {line}"))?;
        counted += 1 + found.get(1).map_or(Ok(0), |n| n.as_str().parse::<usize>())?;
    }
    let lines = text.lines().count();
    ensure!((2..=1 + seconds).contains(&lines), "{lines} lines in {seconds} s:\n{text}");
    ensure!(text.contains("more were not logged"), "nothing was left out:\n{text}");
    ensure!(counted <= refused, "{counted} refusals in the log, {refused} were seen");
    Ok(())
}

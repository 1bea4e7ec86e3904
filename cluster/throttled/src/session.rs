//! The commands of one client.

use tatcell_door::{now, Limit, Rate};

use crate::resp::{self, Args};
use crate::server::{Server, Tally};
use crate::throttle;

/// Holds one client: its settings, and the limits that it has used.
#[derive(Debug)]
pub struct Session {
    id: u64,
    name: Vec<u8>,
    allowed: bool,
    resp3: bool,
    /// By a hash of the rate; clients use few.
    limits: Vec<Option<(Rate, Limit)>>,
    batch: Option<Batch>,
    /// The commands of a batch that EXEC has begun, and where the next one is.
    running: Option<(Vec<u8>, usize)>,
}

/// The commands between MULTI and EXEC, as they were sent, so that they take no more memory than their bytes.
#[derive(Debug, Default)]
struct Batch {
    text: Vec<u8>,
    commands: usize,
    failed: bool,
}

/// The most commands of a batch, and the most bytes of them.
const BATCH: (usize, usize) = (1_024, 64 * 1024);

/// The most bytes of a client's name.
const NAME: usize = 255;
const LONG_NAME: &str = "ERR a name has at most 255 bytes";

/// The number of limits that a session caches.
const LIMITS: usize = 8;

/// Says whether the connection goes on after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Read the next command.
    On,
    /// Read nothing more.
    Close,
}

/// Every command: its name, its number of words (as Redis counts: negative means at least), and where its key is.
const COMMANDS: &[(&str, i64, i64)] = &[
    ("auth", -2, 0),
    ("cl.throttle", -5, 1),
    ("client", -2, 0),
    ("command", -1, 0),
    ("del", -2, 1),
    ("discard", 1, 0),
    ("echo", 2, 0),
    ("exec", 1, 0),
    ("hello", -1, 0),
    ("info", -1, 0),
    ("multi", 1, 0),
    ("ping", -1, 0),
    ("quit", -1, 0),
    ("reset", 1, 0),
    ("select", 2, 0),
    ("unlink", -2, 1),
];

impl Session {
    /// Starts a session; `allowed` means that it needs no password.
    pub fn new(id: u64, allowed: bool) -> Session {
        Session {
            id,
            name: Vec::new(),
            allowed,
            resp3: false,
            limits: Vec::new(),
            batch: None,
            running: None,
        }
    }

    /// Runs a command of at least one word and writes its reply. After EXEC, [`next`](Session::next) runs the batch.
    pub async fn run(
        &mut self,
        server: &Server,
        args: &Args<'_>,
        out: &mut Vec<u8>,
        tally: &mut Tally,
    ) -> Flow {
        let is = |name: &[u8]| args[0].eq_ignore_ascii_case(name);
        if self.batch.is_none() || is(b"quit") || is(b"reset") {
            return self.one(server, args, out, tally).await;
        }
        tally.commands += 1;
        let before = out.len();
        if is(b"exec") && args.len() == 1 {
            self.exec(out);
        } else if is(b"discard") && args.len() == 1 {
            self.batch = None;
            resp::simple(out, "OK");
        } else {
            self.queue(args, out);
        }
        tally.errors += u64::from(out.get(before) == Some(&b'-'));
        Flow::On
    }

    /// Keeps a command for EXEC. Nothing is decided or charged.
    fn queue(&mut self, args: &Args<'_>, out: &mut Vec<u8>) {
        let wrong = match find(args[0]) {
            _ if args[0].eq_ignore_ascii_case(b"multi") => {
                return resp::error(out, "ERR MULTI calls can not be nested")
            }
            Err(why) => Some(why),
            // Their replies are long: a batch of them would take megabytes of memory for each client.
            Ok((name @ ("command" | "info"), ..)) => {
                Some(format!("ERR {} cannot be in a batch: send it before MULTI", name.to_ascii_uppercase()))
            }
            Ok((name, arity, _)) => wrong_count(name, *arity, args.len()),
        };
        let Some(batch) = &mut self.batch else { return };
        if !batch.failed {
            resp::array_of(&mut batch.text, args.len());
            args.iter().for_each(|word| resp::bulk(&mut batch.text, word));
        }
        let wrong = wrong.or_else(|| {
            let full = batch.commands >= BATCH.0 || batch.text.len() > BATCH.1;
            full.then(|| "ERR a batch has at most 1024 commands and 64 KiB".to_owned())
        });
        match wrong {
            Some(why) => {
                // None of its commands will run.
                (batch.failed, batch.text) = (true, Vec::new());
                resp::error(out, &why);
            }
            None => {
                batch.commands += 1;
                resp::simple(out, "QUEUED");
            }
        }
    }

    /// Begins a batch.
    fn exec(&mut self, out: &mut Vec<u8>) {
        let Some(batch) = self.batch.take() else { return };
        if batch.failed {
            return resp::error(out, "EXECABORT Transaction discarded because of previous errors.");
        }
        resp::array_of(out, batch.commands);
        self.running = Some((batch.text, 0));
    }

    /// Runs the next command of the batch that EXEC has begun; returns false if there is none. Calls of other clients
    /// may come between two of them.
    pub async fn next(&mut self, server: &Server, out: &mut Vec<u8>, tally: &mut Tally) -> bool {
        let Some((text, at)) = self.running.take() else { return false };
        // It was written by `queue`.
        let Ok(Some((args, used))) = resp::parse(&text[at..]) else { return false };
        self.one(server, &args, out, tally).await;
        self.running = Some((text, at + used));
        true
    }

    /// Runs one command outside a batch.
    async fn one(&mut self, server: &Server, args: &Args<'_>, out: &mut Vec<u8>, tally: &mut Tally) -> Flow {
        tally.commands += 1;
        if args[0].eq_ignore_ascii_case(b"cl.throttle") && self.allowed {
            self.throttle(server, args, out, tally).await;
            return Flow::On;
        }
        let before = out.len();
        let flow = self.other(server, args, out);
        tally.errors += u64::from(out.get(before) == Some(&b'-'));
        flow
    }

    fn other(&mut self, server: &Server, args: &Args<'_>, out: &mut Vec<u8>) -> Flow {
        // A browser was made to send a form here: do not run what follows.
        if [&b"post"[..], b"host:"].iter().any(|form| args[0].eq_ignore_ascii_case(form)) {
            return Flow::Close;
        }
        let (known, arity, _) = match find(args[0]) {
            Ok(known) => known,
            Err(why) => {
                resp::error(out, &why);
                return Flow::On;
            }
        };
        if !self.allowed && !matches!(*known, "auth" | "hello" | "quit" | "reset") {
            resp::error(out, "NOAUTH Authentication required.");
        } else if let Some(why) = wrong_count(known, *arity, args.len()) {
            resp::error(out, &why);
        } else {
            return self.known(server, known, args, out);
        }
        Flow::On
    }

    fn known(&mut self, server: &Server, name: &str, args: &Args<'_>, out: &mut Vec<u8>) -> Flow {
        match name {
            "ping" => match args.get(1) {
                Some(text) => resp::bulk(out, text),
                None => resp::simple(out, "PONG"),
            },
            "echo" => resp::bulk(out, args[1]),
            "quit" => {
                resp::simple(out, "OK");
                return Flow::Close;
            }
            "reset" => {
                *self = Session::new(self.id, server.allows(b"default", b""));
                resp::simple(out, "RESET");
            }
            "select" if args[1] == b"0" => resp::simple(out, "OK"),
            "select" => resp::error(out, "ERR DB index is out of range"),
            "auth" => match args.get(1..) {
                Some([password]) => self.auth(server, b"default", password, false, out),
                Some([user, password]) => self.auth(server, user, password, true, out),
                _ => resp::error(out, "ERR wrong number of arguments for 'auth' command"),
            },
            "hello" => self.hello(server, args, out),
            "client" => self.client(args, out),
            "command" => command(args, self.resp3, out),
            "info" => resp::bulk(out, server.info().as_bytes()),
            "multi" => {
                self.batch = Some(Batch::default());
                resp::simple(out, "OK");
            }
            "exec" | "discard" => {
                resp::error(out, &format!("ERR {} without MULTI", name.to_ascii_uppercase()));
            }
            "del" | "unlink" => match server.forget(&args[1..]) {
                Some(owed) => resp::number(out, owed),
                None => resp::error(out, "ERR DEL: the limits are shared, delete the keys in the store"),
            },
            _ => resp::error(out, "ERR this server does not have the command"),
        }
        Flow::On
    }

    /// Logs in; `given` says whether the call names the user.
    fn auth(&mut self, server: &Server, user: &[u8], password: &[u8], given: bool, out: &mut Vec<u8>) {
        if !server.has_password() && user == b"default" && !given {
            resp::error(
                out,
                "ERR AUTH <password> called without any password configured for the default user.",
            );
        } else if server.allows(user, password) {
            self.allowed = true;
            resp::simple(out, "OK");
        } else {
            resp::error(out, "WRONGPASS invalid username-password pair or user is disabled.");
        }
    }

    fn hello(&mut self, server: &Server, args: &Args<'_>, out: &mut Vec<u8>) {
        let mut rest = &args[1..];
        let mut resp3 = self.resp3;
        if let Some((version, more)) = rest.split_first() {
            match *version {
                b"2" => resp3 = false,
                b"3" => resp3 = true,
                _ => return resp::error(out, "NOPROTO unsupported protocol version"),
            }
            rest = more;
        }
        let (mut allowed, mut name) = (self.allowed, None);
        loop {
            match rest {
                [] => break,
                [word, user, password, more @ ..] if word.eq_ignore_ascii_case(b"auth") => {
                    if !server.allows(user, password) {
                        return resp::error(
                            out,
                            "WRONGPASS invalid username-password pair or user is disabled.",
                        );
                    }
                    (allowed, rest) = (true, more);
                }
                [word, said, ..] if word.eq_ignore_ascii_case(b"setname") && said.len() > NAME => {
                    return resp::error(out, LONG_NAME);
                }
                [word, said, more @ ..] if word.eq_ignore_ascii_case(b"setname") => {
                    (name, rest) = (Some(said.to_vec()), more);
                }
                _ => return resp::error(out, "ERR Syntax error in HELLO"),
            }
        }
        if !allowed {
            return resp::error(
                out,
                "NOAUTH HELLO must be called with the client already authenticated, or with AUTH",
            );
        }
        (self.allowed, self.resp3) = (allowed, resp3);
        self.name = name.unwrap_or(std::mem::take(&mut self.name));
        resp::map_of(out, resp3, 7);
        let texts = [("server", "tatcell-throttled"), ("version", env!("CARGO_PKG_VERSION"))];
        texts.iter().for_each(|(key, value)| pair(out, key, value));
        resp::bulk(out, b"proto");
        resp::number(out, if resp3 { 3 } else { 2 });
        resp::bulk(out, b"id");
        resp::number(out, self.id as i64);
        [("mode", "standalone"), ("role", "master")].iter().for_each(|(key, value)| pair(out, key, value));
        resp::bulk(out, b"modules");
        resp::array_of(out, 0);
    }

    fn client(&mut self, args: &Args<'_>, out: &mut Vec<u8>) {
        let which = String::from_utf8_lossy(args[1]).to_ascii_lowercase();
        match (which.as_str(), args.len()) {
            ("setname", 3) if args[2].len() > NAME => resp::error(out, LONG_NAME),
            ("setname", 3) => {
                self.name = args[2].to_vec();
                resp::simple(out, "OK");
            }
            ("getname", 2) if self.name.is_empty() => resp::null(out, self.resp3),
            ("getname", 2) => resp::bulk(out, &self.name),
            ("id", 2) => resp::number(out, self.id as i64),
            ("setinfo", 4) => resp::simple(out, "OK"),
            _ => resp::error(out, "ERR here CLIENT has only SETNAME, GETNAME, SETINFO and ID"),
        }
    }

    async fn throttle(&mut self, server: &Server, args: &Args<'_>, out: &mut Vec<u8>, tally: &mut Tally) {
        let refuse = |out: &mut Vec<u8>, tally: &mut Tally, code: &str, why: &str| {
            tally.errors += 1;
            resp::error(out, &format!("{code} error: {why}"));
        };
        if args.len() != 5 && args.len() != 6 {
            return refuse(out, tally, "Cell", &format!("Usage: {}", throttle::USAGE));
        }
        let call = throttle::rate(&args[2..5]).and_then(|rate| Ok((rate, throttle::quantity(args.get(5))?)));
        let (rate, quantity) = match call {
            Ok(call) => call,
            Err(why) => return refuse(out, tally, "Cell", &why),
        };
        let limit = match self.limit(server, &rate) {
            Ok(limit) => limit,
            Err(why) => return refuse(out, tally, "Cell", &format!("this limit cannot be kept: {why}")),
        };
        let answer = match (u64::try_from(quantity), limit) {
            (Ok(quantity), limit) => server.keeper.decide(limit, args[1], quantity, now()).await,
            (Err(_), limit) => {
                let back = server.keeper.credit(limit, args[1], quantity.unsigned_abs(), now());
                back.map(|(answer, units)| {
                    tally.given_back += units;
                    answer
                })
            }
        };
        match answer {
            Ok(answer) => {
                tally.decided += 1;
                tally.limited += u64::from(!answer.passes);
                tally.untracked += u64::from(answer.untracked);
                resp::array_of(out, 5);
                throttle::integers(&answer, &rate).iter().for_each(|value| resp::number(out, *value));
            }
            Err(why) => {
                tally.undecided += 1;
                refuse(out, tally, "TRYAGAIN Cell", &why.to_string());
            }
        }
    }

    fn limit(&mut self, server: &Server, rate: &Rate) -> Result<&Limit, String> {
        self.limits.resize(LIMITS, None);
        let mixed = rate.units ^ rate.period.rotate_left(20) ^ rate.burst.rotate_left(40);
        let place = (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 61) as usize;
        let place = &mut self.limits[place];
        if place.as_ref().is_none_or(|(known, _)| known != rate) {
            *place = Some((*rate, server.keeper.limit(rate)?));
        }
        place.as_ref().map(|(_, limit)| limit).ok_or_else(|| "it was not made".into())
    }
}

fn pair(out: &mut Vec<u8>, key: &str, value: &str) {
    resp::bulk(out, key.as_bytes());
    resp::bulk(out, value.as_bytes());
}

/// Finds a command by its name in any case.
///
/// # Errors
/// The error for the client.
fn find(name: &[u8]) -> Result<&'static (&'static str, i64, i64), String> {
    COMMANDS.iter().find(|(known, ..)| known.as_bytes().eq_ignore_ascii_case(name)).ok_or_else(|| {
        let text: String = String::from_utf8_lossy(name).chars().take(64).collect();
        format!("ERR unknown command '{text}'; this server knows CL.THROTTLE, see COMMAND")
    })
}

/// Returns the error of a command with too few or too many words.
fn wrong_count(name: &str, arity: i64, count: usize) -> Option<String> {
    let count = count as i64;
    let wrong = arity > 0 && count != arity || count < arity.abs();
    wrong.then(|| format!("ERR wrong number of arguments for '{name}' command"))
}

/// Answers enough for clients and proxies that ask where the key of a command is.
fn command(args: &Args<'_>, resp3: bool, out: &mut Vec<u8>) {
    let which = args.get(1).map(|word| word.to_ascii_lowercase());
    match which.as_deref() {
        Some(b"count") => resp::number(out, COMMANDS.len() as i64),
        Some(b"info") if args.len() > 2 => {
            resp::array_of(out, args.len() - 2);
            for name in &args[2..] {
                match find(name) {
                    Ok(known) => entry(known, out),
                    Err(_) => resp::null(out, resp3),
                }
            }
        }
        Some(b"getkeys") if args.len() > 2 => keys(&args[2..], out),
        Some(b"getkeys") => resp::error(out, "ERR wrong number of arguments for 'command|getkeys' command"),
        None | Some(b"info") => {
            resp::array_of(out, COMMANDS.len());
            COMMANDS.iter().for_each(|known| entry(known, out));
        }
        Some(_) => resp::array_of(out, 0),
    }
}

fn entry((name, arity, key): &(&str, i64, i64), out: &mut Vec<u8>) {
    resp::array_of(out, 7);
    resp::bulk(out, name.as_bytes());
    resp::number(out, *arity);
    resp::array_of(out, 1);
    resp::simple(out, "fast");
    for value in [*key, if takes_keys(name) { -1 } else { *key }, *key] {
        resp::number(out, value);
    }
    resp::array_of(out, 1);
    resp::simple(out, "@fast");
}

fn takes_keys(name: &str) -> bool {
    matches!(name, "del" | "unlink")
}

fn keys(call: &[&[u8]], out: &mut Vec<u8>) {
    match find(call[0]) {
        Err(_) => resp::error(out, "ERR Invalid command specified"),
        Ok((_, _, 0)) => resp::error(out, "ERR The command has no key arguments"),
        Ok((name, arity, _)) if wrong_count(name, *arity, call.len()).is_some() => {
            resp::error(out, "ERR Invalid number of arguments specified for command");
        }
        Ok((name, ..)) => {
            let keys = if takes_keys(name) { &call[1..] } else { &call[1..2] };
            resp::array_of(out, keys.len());
            keys.iter().for_each(|key| resp::bulk(out, key));
        }
    }
}

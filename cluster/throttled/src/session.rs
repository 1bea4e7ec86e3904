//! The commands of one client.

use tatcell_door::{now, Limit, Rate};

use crate::batch::Batch;
use crate::commands::{command, find, wrong_count};
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
}

/// The most bytes of a client's name.
const NAME: usize = 256;
const LONG_NAME: &str = "ERR a client's name has at most 256 bytes";

/// The number of limits that a session caches.
const LIMITS: usize = 8;

/// The most bytes that a session keeps, next to a batch.
pub const KEPT: usize = NAME + LIMITS * size_of::<Option<(Rate, Limit)>>();

/// Says whether the connection goes on after a command.
#[derive(Debug)]
pub enum Flow {
    /// Read the next command.
    On,
    /// Run these commands first. Calls of other clients may come between them.
    Run(Batch),
    /// Read nothing more.
    Close,
}

impl Session {
    /// Starts a session; `allowed` means that it needs no password.
    pub fn new(id: u64, allowed: bool) -> Session {
        Session { id, name: Vec::new(), allowed, resp3: false, limits: Vec::new(), batch: None }
    }

    /// Runs a command of at least one word and writes its reply.
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
        let mut flow = Flow::On;
        if is(b"exec") && args.len() == 1 {
            flow = self.exec(out);
        } else if is(b"discard") && args.len() == 1 {
            self.batch = None;
            resp::simple(out, "OK");
        } else {
            self.queue(args, out);
        }
        tally.errors += u64::from(out.get(before) == Some(&b'-'));
        flow
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
        let kept = match &wrong {
            Some(why) => {
                batch.fail();
                Err(why.as_str())
            }
            None => batch.keep(args),
        };
        match kept {
            Ok(()) => resp::simple(out, "QUEUED"),
            Err(why) => resp::error(out, why),
        }
    }

    /// Begins the answer of a batch.
    fn exec(&mut self, out: &mut Vec<u8>) -> Flow {
        let Some(batch) = self.batch.take() else { return Flow::On };
        if batch.has_failed() {
            resp::error(out, "EXECABORT Transaction discarded because of previous errors.");
            return Flow::On;
        }
        resp::array_of(out, batch.count());
        Flow::Run(batch)
    }

    /// Runs one command, outside a batch or at its end.
    pub async fn one(
        &mut self,
        server: &Server,
        args: &Args<'_>,
        out: &mut Vec<u8>,
        tally: &mut Tally,
    ) -> Flow {
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
                [word, said, more @ ..] if word.eq_ignore_ascii_case(b"setname") => {
                    if said.len() > NAME {
                        return resp::error(out, LONG_NAME);
                    }
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
        let which = args[1].to_ascii_lowercase();
        match (which.as_slice(), args.len()) {
            (b"setname", 3) if args[2].len() > NAME => resp::error(out, LONG_NAME),
            (b"setname", 3) => {
                self.name = args[2].to_vec();
                resp::simple(out, "OK");
            }
            (b"getname", 2) if self.name.is_empty() => resp::null(out, self.resp3),
            (b"getname", 2) => resp::bulk(out, &self.name),
            (b"id", 2) => resp::number(out, self.id as i64),
            (b"setinfo", 4) => resp::simple(out, "OK"),
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

//! A client of Envoy's rate limit service: one unary call of gRPC at a time, over one connection of HTTP/2.

use std::io::Cursor;
use std::net::SocketAddr;
use std::time::Duration;

use h2::client::SendRequest;
use prost::Message;
use tatcell_ratelimit::api::{Code, Descriptor, Entry, RateLimitRequest, RateLimitResponse};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use ureq::http::{header::HeaderMap, Request};

use crate::key::{KeySpec, Part};

const METHOD: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

/// The most bytes of an answer: one status and some headers have a few hundred.
const MAX_ANSWER: usize = 1 << 16;

/// What each call has in common.
#[derive(Debug)]
pub struct Target {
    /// The service.
    pub address: SocketAddr,
    /// Its host, as it was named.
    pub host: String,
    /// Whose rules apply.
    pub domain: String,
    /// The entries of the descriptor.
    pub entries: Vec<EntrySource>,
}

/// Where the value of an entry comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntrySource {
    /// From the part of the key with this number.
    Part(String, usize),
    /// It is always the same.
    Fixed(String, String),
}

/// A connection, which answers pings and settings by a thread of its own.
pub struct Connection {
    runtime: Runtime,
    sender: SendRequest<Cursor<Vec<u8>>>,
}

/// Reads entries: NAME takes the next part of the key, NAME=VALUE has its value. Without any, each part is an entry
/// with the name that Envoy gives it.
pub fn entries(named: &[String], key: &KeySpec) -> Result<Vec<EntrySource>, String> {
    let usual = |(at, (field, part)): (usize, (&String, &Part))| {
        let name = match part {
            Part::Address { v4: 32, v6: 128 } if field == "address" => "remote_address",
            Part::Address { .. } if field == "address" => "masked_remote_address",
            _ => field,
        };
        EntrySource::Part(name.into(), at)
    };
    if named.is_empty() {
        return Ok(key.fields().iter().zip(key.parts()).enumerate().map(usual).collect());
    }
    let (mut entries, mut taken) = (Vec::new(), 0);
    for entry in named {
        entries.push(match entry.split_once('=') {
            Some((name, value)) => EntrySource::Fixed(name.into(), value.into()),
            None => {
                taken += 1;
                EntrySource::Part(entry.clone(), taken - 1)
            }
        });
    }
    let parts = key.parts().len();
    if taken != parts {
        return Err(format!(
            "the key has {parts} parts, and {taken} of the entries take one: give --entry NAME for each part, and \
             --entry NAME=VALUE for another entry"
        ));
    }
    Ok(entries)
}

impl Target {
    /// Connects.
    pub fn connect(&self, timeout: Duration) -> Result<Connection, String> {
        let threads = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = threads.map_err(|error| error.to_string())?;
        let connecting = async {
            let stream = TcpStream::connect(self.address).await.map_err(|error| error.to_string())?;
            stream.set_nodelay(true).map_err(|error| error.to_string())?;
            let mut client = h2::client::Builder::new();
            client.enable_push(false);
            let (sender, connection) = client.handshake(stream).await.map_err(|error| error.to_string())?;
            // It ends with the connection. Its error is that of the next call.
            tokio::spawn(async move { drop(connection.await) });
            Ok(sender)
        };
        let connected = runtime.block_on(async { tokio::time::timeout(timeout, connecting).await });
        let sender = connected.unwrap_or_else(|_| Err(format!("no connection within {timeout:?}")))?;
        Ok(Connection { runtime, sender })
    }

    /// Sends a message, and returns whether its request passed.
    pub fn ask(
        &self,
        connection: &mut Connection,
        message: Vec<u8>,
        timeout: Duration,
    ) -> Result<bool, String> {
        // Between two requests a server may close a connection. Nothing was sent then, so it is asked again.
        // A server that allows no stream keeps it waiting.
        let late = |_| format!("no answer within {timeout:?}");
        let ready = connection.sender.clone().ready();
        let ready = connection.runtime.block_on(async { tokio::time::timeout(timeout, ready).await });
        if ready.map_err(late)?.is_err() {
            *connection = self.connect(timeout)?;
        }
        let asking = self.call(connection.sender.clone(), message);
        let answered = connection.runtime.block_on(async { tokio::time::timeout(timeout, asking).await });
        answered.map_err(late)?
    }

    /// Returns the message for one request of a key, or why there is none.
    pub fn message(&self, texts: &[Vec<u8>], cost: u64) -> Result<Vec<u8>, String> {
        let mut descriptor = Descriptor::default();
        for entry in &self.entries {
            let (key, value) = match entry {
                EntrySource::Fixed(key, value) => (key.clone(), value.clone()),
                EntrySource::Part(key, at) => {
                    let value = String::from_utf8(texts[*at].clone());
                    (key.clone(), value.map_err(|error| format!("{key} is not UTF-8: {error}"))?)
                }
            };
            descriptor.entries.push(Entry { key, value });
        }
        // 0 is 1 there, and the field has 32 bits. The one of the descriptor has 64, but older services do not know it.
        let hits_addend = u32::try_from(cost).unwrap_or(0);
        if hits_addend == 0 {
            descriptor.hits_addend = Some(cost);
        }
        let request =
            RateLimitRequest { domain: self.domain.clone(), descriptors: vec![descriptor], hits_addend };
        // A message is not compressed, and has its length before it.
        let length = u32::try_from(request.encoded_len()).map_err(|_| "the message is too long")?;
        let mut message = [&[0][..], &length.to_be_bytes()].concat();
        message.extend(request.encode_to_vec());
        Ok(message)
    }

    async fn call(&self, sender: SendRequest<Cursor<Vec<u8>>>, message: Vec<u8>) -> Result<bool, String> {
        let why = |error: h2::Error| error.to_string();
        let request = Request::post(format!("http://{}{METHOD}", self.host))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .header("user-agent", concat!("tatcell/", env!("CARGO_PKG_VERSION")))
            .body(())
            .map_err(|error| error.to_string())?;
        let mut sender = sender.ready().await.map_err(why)?;
        let (response, mut body) = sender.send_request(request, false).map_err(why)?;
        body.send_data(Cursor::new(message), true).map_err(why)?;
        let response = response.await.map_err(why)?;
        if !response.status().is_success() {
            return Err(format!("it answered {}", response.status().as_u16()));
        }
        refused_call(response.headers())?;
        let (mut body, mut answer) = (response.into_body(), Vec::new());
        while let Some(bytes) = body.data().await {
            let bytes = bytes.map_err(why)?;
            body.flow_control().release_capacity(bytes.len()).map_err(why)?;
            answer.extend_from_slice(&bytes);
            if answer.len() > MAX_ANSWER {
                return Err(format!("its answer has more than {MAX_ANSWER} bytes"));
            }
        }
        let trailers = body.trailers().await.map_err(why)?.ok_or("its answer has no status of gRPC")?;
        refused_call(&trailers)?;
        decision(&answer)
    }
}

/// Fails with the status of gRPC, if there is one and it is not OK.
fn refused_call(headers: &HeaderMap) -> Result<(), String> {
    let text = |name: &str| headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()));
    match text("grpc-status") {
        Some(status) if status != "0" => {
            Err(format!("gRPC status {status}: {}", text("grpc-message").unwrap_or_default()))
        }
        _ => Ok(()),
    }
}

/// What an answer says. One without a limit is none: then nothing was compared.
fn decision(answer: &[u8]) -> Result<bool, String> {
    let message = match answer {
        [0, _, _, _, _, message @ ..] => message,
        _ => return Err("its answer is no message of gRPC without compression".into()),
    };
    let response = RateLimitResponse::decode(message).map_err(|error| error.to_string())?;
    match (response.overall_code(), &response.statuses[..]) {
        (Code::OverLimit, _) => Ok(false),
        (Code::Ok, [status]) if status.current_limit.is_some() => Ok(true),
        (Code::Ok, _) => Err("it has no limit for this descriptor: look at --entry and its rules".into()),
        (Code::Unknown, _) => Err("its answer has no code".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_the_key_become_entries() {
        let read = |named: &[&str], key: &str| {
            let named: Vec<_> = named.iter().map(|&name| name.to_owned()).collect();
            entries(&named, &KeySpec::parse(key).expect("a key"))
        };
        let part = |name: &str, at| EntrySource::Part(name.into(), at);
        let usual = vec![part("remote_address", 0), part("path", 1)];
        assert_eq!(read(&[], "address+path:2"), Ok(usual));
        assert_eq!(read(&[], "address/24,56"), Ok(vec![part("masked_remote_address", 0)]));
        let named = vec![EntrySource::Fixed("route".into(), "a=b".into()), part("user", 0)];
        assert_eq!(read(&["route=a=b", "user"], "http_x_user"), Ok(named));
        for (few, key) in [(&["a=b"][..], "address"), (&["a", "b"], "address"), (&["a"], "address+path")] {
            let why = read(few, key).expect_err("it is refused");
            assert!(why.contains("give --entry NAME for each part"), "{why}");
        }
    }

    #[test]
    fn an_answer_that_says_nothing_is_none() {
        let framed = |response: RateLimitResponse| {
            let bytes = response.encode_to_vec();
            [&[0][..], &(bytes.len() as u32).to_be_bytes(), &bytes].concat()
        };
        let code = |code: Code| RateLimitResponse { overall_code: code.into(), ..Default::default() };
        assert_eq!(decision(&framed(code(Code::OverLimit))), Ok(false));
        assert!(decision(&framed(code(Code::Ok))).expect_err("no limit").contains("no limit"));
        assert!(decision(&framed(code(Code::Unknown))).is_err());
        for bad in [&b""[..], b"\0\0\0", b"\x01\0\0\0\0", b"\0\0\0\0\x02\xff\xff"] {
            assert!(decision(bad).is_err(), "{bad:?}");
        }
    }
}

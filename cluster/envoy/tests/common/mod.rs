//! Short ways to write requests, and a gRPC client.
#![allow(dead_code, unsafe_code)] // each test uses a part; libc::kill

#[path = "../../../door/testing/process.rs"]
mod process;
pub use process::*;

use std::path::PathBuf;

use prost::bytes::{Buf, BufMut};
use tatcell_ratelimit::api::{Descriptor, Entry, RateLimitRequest, RateLimitResponse};
use tatcell_ratelimit::grpc::METHOD;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::transport::{Channel, Endpoint};
use tonic::Status;

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_tatcell-ratelimit");

/// `key=value key=value`, one descriptor an element.
pub fn request(domain: &str, descriptors: &[&str]) -> RateLimitRequest {
    let entry = |text: &str| {
        let (key, value) = text.split_once('=').expect("key=value");
        Entry { key: key.into(), value: value.into() }
    };
    let descriptor =
        |text: &&str| Descriptor { entries: text.split(' ').map(entry).collect(), ..Default::default() };
    RateLimitRequest {
        domain: domain.into(),
        descriptors: descriptors.iter().map(descriptor).collect(),
        hits_addend: 0,
    }
}

/// A folder with rules that goes with its handle.
pub struct Rules(pub PathBuf, tempfile::TempDir);

impl Rules {
    pub fn new(text: &str) -> Rules {
        let folder = tempfile::tempdir().expect("a folder");
        let rules = Rules(folder.path().to_owned(), folder);
        rules.write(text);
        rules
    }

    pub fn write(&self, text: &str) {
        std::fs::write(self.0.join("rules.yaml"), text).expect("a file");
    }

    pub fn path(&self) -> String {
        self.0.join("rules.yaml").to_string_lossy().into_owned()
    }

    pub fn start(&self, settings: &[&str]) -> Server {
        Server::start_program(PROGRAM, &[&["--rules", &self.path()], settings].concat())
    }
}

/// A client and its runtime.
pub struct Client {
    runtime: tokio::runtime::Runtime,
    channel: Channel,
}

impl Client {
    pub fn to(address: &str) -> Client {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let endpoint = Endpoint::from_shared(format!("http://{address}")).expect("an address");
        let channel = runtime.block_on(endpoint.timeout(PATIENCE).connect()).expect("a connection");
        Client { runtime, channel }
    }

    pub fn ask(&self, request: RateLimitRequest) -> Result<RateLimitResponse, Status> {
        self.runtime.block_on(ask(self.channel.clone(), request))
    }

    /// Sends a message of these bytes.
    pub fn ask_bytes(&self, bytes: Vec<u8>) -> Result<(), Status> {
        self.runtime.block_on(async {
            let mut grpc = tonic::client::Grpc::new(self.channel.clone());
            grpc.ready().await.map_err(|e| Status::unavailable(e.to_string()))?;
            let path = METHOD.parse().expect("a path");
            grpc.unary(tonic::Request::new(bytes), path, Raw).await.map(drop)
        })
    }

    /// The answer and what is left of each.
    pub fn left(&self, domain: &str, descriptors: &[&str]) -> (bool, Vec<u32>) {
        let response = self.ask(request(domain, descriptors)).expect("an answer");
        (response.overall_code == 1, response.statuses.iter().map(|status| status.limit_remaining).collect())
    }
}

pub async fn ask(channel: Channel, request: RateLimitRequest) -> Result<RateLimitResponse, Status> {
    let mut grpc = tonic::client::Grpc::new(channel);
    grpc.ready().await.map_err(|e| Status::unavailable(e.to_string()))?;
    let codec = tonic_prost::ProstCodec::<RateLimitRequest, RateLimitResponse>::default();
    let path = METHOD.parse().expect("a path");
    grpc.unary(tonic::Request::new(request), path, codec).await.map(tonic::Response::into_inner)
}

/// A codec of bytes: what is sent is the message, and what comes is dropped.
struct Raw;

impl Codec for Raw {
    type Encode = Vec<u8>;
    type Decode = ();
    type Encoder = Raw;
    type Decoder = Raw;

    fn encoder(&mut self) -> Raw {
        Raw
    }

    fn decoder(&mut self) -> Raw {
        Raw
    }
}

impl Encoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, bytes: Vec<u8>, into: &mut EncodeBuf<'_>) -> Result<(), Status> {
        into.put_slice(&bytes);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = ();
    type Error = Status;

    fn decode(&mut self, bytes: &mut DecodeBuf<'_>) -> Result<Option<()>, Status> {
        bytes.advance(bytes.remaining());
        Ok(Some(()))
    }
}

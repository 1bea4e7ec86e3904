//! The messages of `envoy.service.ratelimit.v3` that are used, by their field numbers, and its service.
//!
//! Written here rather than generated: ten of Envoy's messages are needed, and a crate of all takes minutes to build.
//! Fields that are not named are skipped when they are read, as protobuf has it.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use prost::{Enumeration, Message};
use tonic::codegen::{http, Body, BoxFuture, Service, StdError};
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;

use crate::service::RateLimit;

/// `RateLimitRequest`.
#[derive(Clone, PartialEq, Message)]
pub struct RateLimitRequest {
    /// Whose rules apply.
    #[prost(string, tag = "1")]
    pub domain: String,
    /// What is asked about.
    #[prost(message, repeated, tag = "2")]
    pub descriptors: Vec<Descriptor>,
    /// The cost; 0 is 1.
    #[prost(uint32, tag = "3")]
    pub hits_addend: u32,
}

/// `RateLimitDescriptor`.
#[derive(Clone, PartialEq, Message)]
pub struct Descriptor {
    /// Keys and values, from the outermost rule to the innermost.
    #[prost(message, repeated, tag = "1")]
    pub entries: Vec<Entry>,
    /// A limit in place of the rule's.
    #[prost(message, optional, tag = "2")]
    pub limit: Option<Override>,
    /// The cost of this descriptor, in place of the request's; may be 0.
    #[prost(message, optional, tag = "3")]
    pub hits_addend: Option<u64>,
}

/// `RateLimitDescriptor.Entry`.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct Entry {
    /// The key.
    #[prost(string, tag = "1")]
    pub key: String,
    /// Its value.
    #[prost(string, tag = "2")]
    pub value: String,
}

/// `RateLimitDescriptor.RateLimitOverride`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub struct Override {
    /// So many.
    #[prost(uint32, tag = "1")]
    pub requests_per_unit: u32,
    /// In this time.
    #[prost(enumeration = "Unit", tag = "2")]
    pub unit: i32,
}

/// `RateLimitResponse`.
#[derive(Clone, PartialEq, Message)]
pub struct RateLimitResponse {
    /// The answer.
    #[prost(enumeration = "Code", tag = "1")]
    pub overall_code: i32,
    /// One for each descriptor.
    #[prost(message, repeated, tag = "2")]
    pub statuses: Vec<DescriptorStatus>,
    /// For the client of the proxy.
    #[prost(message, repeated, tag = "3")]
    pub response_headers_to_add: Vec<HeaderValue>,
}

/// `RateLimitResponse.DescriptorStatus`.
#[derive(Clone, PartialEq, Message)]
pub struct DescriptorStatus {
    /// The answer for this descriptor.
    #[prost(enumeration = "Code", tag = "1")]
    pub code: i32,
    /// The limit that applied.
    #[prost(message, optional, tag = "2")]
    pub current_limit: Option<CurrentLimit>,
    /// What is left of it.
    #[prost(uint32, tag = "3")]
    pub limit_remaining: u32,
    /// When it is full again; where it is over: when the same cost passes.
    #[prost(message, optional, tag = "4")]
    pub duration_until_reset: Option<prost_types::Duration>,
}

/// `RateLimitResponse.RateLimit`.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct CurrentLimit {
    /// So many.
    #[prost(uint32, tag = "1")]
    pub requests_per_unit: u32,
    /// In this time.
    #[prost(enumeration = "Unit", tag = "2")]
    pub unit: i32,
    /// The rule's name.
    #[prost(string, tag = "3")]
    pub name: String,
}

/// `envoy.config.core.v3.HeaderValue`.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct HeaderValue {
    /// Its name.
    #[prost(string, tag = "1")]
    pub key: String,
    /// Its value.
    #[prost(string, tag = "2")]
    pub value: String,
}

/// `RateLimitResponse.RateLimit.Unit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum Unit {
    /// Not said.
    Unknown = 0,
    /// A second.
    Second = 1,
    /// 60 seconds.
    Minute = 2,
    /// 60 minutes.
    Hour = 3,
    /// 24 hours.
    Day = 4,
    /// 30 days.
    Month = 5,
    /// 365 days.
    Year = 6,
    /// 7 days.
    Week = 7,
}

/// `RateLimitResponse.Code`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum Code {
    /// Not said.
    Unknown = 0,
    /// Go on.
    Ok = 1,
    /// Do not.
    OverLimit = 2,
}

/// Where the one method of the service is.
pub const METHOD: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

/// Most bytes of a request.
const MAX_REQUEST: usize = 1 << 20;

/// The service, for tonic's server.
#[derive(Clone, Debug)]
pub struct RateLimitServer(pub Arc<RateLimit>);

impl NamedService for RateLimitServer {
    const NAME: &'static str = "envoy.service.ratelimit.v3.RateLimitService";
}

impl UnaryService<RateLimitRequest> for RateLimitServer {
    type Response = RateLimitResponse;
    type Future = BoxFuture<Response<RateLimitResponse>, Status>;

    fn call(&mut self, request: Request<RateLimitRequest>) -> Self::Future {
        let service = self.0.clone();
        Box::pin(async move { service.decide(request.get_ref()).await.map(Response::new) })
    }
}

impl<B> Service<http::Request<B>> for RateLimitServer
where
    B: Body + Send + 'static,
    B::Error: Into<StdError> + Send + 'static,
{
    type Response = http::Response<tonic::body::Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        if request.uri().path() != METHOD {
            let status = Status::unimplemented("the service has ShouldRateLimit alone");
            return Box::pin(async move { Ok(status.into_http()) });
        }
        let service = self.clone();
        Box::pin(async move {
            let codec = ProstCodec::default();
            let mut grpc = Grpc::new(codec).max_decoding_message_size(MAX_REQUEST);
            Ok(grpc.unary(service, request).await)
        })
    }
}

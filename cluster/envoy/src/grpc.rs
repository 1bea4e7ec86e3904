//! The service of `envoy.service.ratelimit.v3`, for tonic's server.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use prost::bytes::Buf;
use prost::Message;
use tonic::codec::{Codec, DecodeBuf, Decoder};
use tonic::codegen::{http, Body, BoxFuture, Service, StdError};
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;

use crate::api::{RateLimitRequest, RateLimitResponse};
use crate::fields;
use crate::incoming::Used;
use crate::service::RateLimit;

/// The path of the service's one method.
pub const METHOD: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

/// The most bytes of a request: a hundred descriptors of usual length have less.
const MAX_REQUEST: usize = 1 << 15;

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
        if let Some(used) = request.extensions().get::<Used>() {
            used.now();
        }
        if request.uri().path() != METHOD {
            let status = Status::unimplemented("this service has only the method ShouldRateLimit");
            return Box::pin(async move { Ok(status.into_http()) });
        }
        let service = self.clone();
        Box::pin(async move {
            let codec = Checked(service.0.clone());
            let mut grpc = Grpc::new(codec).max_decoding_message_size(MAX_REQUEST);
            Ok(grpc.unary(service, request).await)
        })
    }
}

/// The codec of the service: refuses requests with fields that it does not know.
struct Checked(Arc<RateLimit>);

impl Codec for Checked {
    type Encode = RateLimitResponse;
    type Decode = RateLimitRequest;
    type Encoder = <ProstCodec<RateLimitResponse, RateLimitRequest> as Codec>::Encoder;
    type Decoder = Checked;

    fn encoder(&mut self) -> Self::Encoder {
        ProstCodec::<RateLimitResponse, RateLimitRequest>::default().encoder()
    }

    fn decoder(&mut self) -> Checked {
        Checked(self.0.clone())
    }
}

impl Decoder for Checked {
    type Item = RateLimitRequest;
    type Error = Status;

    fn decode(&mut self, bytes: &mut DecodeBuf<'_>) -> Result<Option<RateLimitRequest>, Status> {
        let bytes = bytes.copy_to_bytes(bytes.remaining());
        let read = fields::REQUEST.check(&bytes);
        let request = read.and_then(|()| RateLimitRequest::decode(bytes).map_err(|e| e.to_string()));
        request.map(Some).map_err(|why| {
            self.0.count_malformed();
            Status::invalid_argument(why)
        })
    }
}

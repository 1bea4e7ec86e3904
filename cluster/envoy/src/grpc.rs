//! The service of `envoy.service.ratelimit.v3`, for tonic's server.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use prost::bytes::{Buf, Bytes};
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
pub const MAX_REQUEST: usize = 1 << 15;

/// How a message is compressed. No way is known here, so a request that names one is refused.
const ENCODING: http::HeaderName = http::HeaderName::from_static("grpc-encoding");

/// The service, for tonic's server.
#[derive(Clone, Debug)]
pub struct RateLimitServer(pub Arc<RateLimit>);

impl NamedService for RateLimitServer {
    const NAME: &'static str = "envoy.service.ratelimit.v3.RateLimitService";
}

impl UnaryService<Bytes> for RateLimitServer {
    type Response = RateLimitResponse;
    type Future = BoxFuture<Response<RateLimitResponse>, Status>;

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        let service = self.0.clone();
        // Fields of the header end here, and the request before the first wait.
        let bytes = request.into_inner();
        Box::pin(async move {
            let request = fields::REQUEST
                .check(&bytes)
                .and_then(|()| RateLimitRequest::decode(bytes).map_err(|e| e.to_string()));
            match request {
                Ok(request) => service.decide(request).await.map(Response::new),
                Err(why) => {
                    service.count_malformed();
                    Err(Status::invalid_argument(why))
                }
            }
        })
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
            let mut grpc = Grpc::new(Whole).max_decoding_message_size(MAX_REQUEST);
            Ok(grpc.unary(service, request).await)
        })
    }
}

/// The codec of the service. It reads a message as bytes: what they mean takes more memory than they do, and is made
/// only when the request is whole.
struct Whole;

impl Codec for Whole {
    type Encode = RateLimitResponse;
    type Decode = Bytes;
    type Encoder = <ProstCodec<RateLimitResponse, ()> as Codec>::Encoder;
    type Decoder = Whole;

    fn encoder(&mut self) -> Self::Encoder {
        ProstCodec::<RateLimitResponse, ()>::default().encoder()
    }

    fn decoder(&mut self) -> Whole {
        Whole
    }
}

impl Decoder for Whole {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, bytes: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        // A copy, so that the buffer that it came in is not kept as well.
        let mut whole = vec![0; bytes.remaining()];
        bytes.copy_to_slice(&mut whole);
        Ok(Some(whole.into()))
    }
}

/// A service that sees no field of the header but the one that it needs. It would hold the others as long as a request
/// takes.
#[derive(Clone, Debug)]
pub struct WithoutFields<S>(pub S);

impl<S: NamedService> NamedService for WithoutFields<S> {
    const NAME: &'static str = S::NAME;
}

impl<S: Service<http::Request<B>>, B> Service<http::Request<B>> for WithoutFields<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, mut request: http::Request<B>) -> Self::Future {
        let fields = std::mem::take(request.headers_mut());
        if let Some(encoding) = fields.get(ENCODING) {
            // Copied: it is a part of all that came in one piece.
            let encoding = http::HeaderValue::from_bytes(encoding.as_bytes());
            request.headers_mut().extend(encoding.map(|encoding| (ENCODING, encoding)));
        }
        self.0.call(request)
    }
}

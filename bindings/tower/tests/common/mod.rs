//! A service that counts its calls, and requests for it. All limits are of an hour, so no unit comes back in a test.
#![allow(dead_code)] // each test program uses a part

use std::convert::Infallible;
use std::future::{ready, Future, Ready};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Either, Empty, Full};
use tatcell::LimitSpec;
use tatcell_tower::{RateLimit, RateLimitLayer};
use tower::{Layer, Service};

pub type Bytes = bytes::Bytes;
pub type Answer = Response<Either<Full<Bytes>, Empty<Bytes>>>;

/// `units` in an hour, all of them at once.
pub fn hourly(units: u64) -> LimitSpec {
    LimitSpec::per(units, Duration::from_secs(3_600))
}

/// Answers with this status, and counts.
#[derive(Clone)]
pub struct Inner {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub calls: Arc<AtomicU64>,
}

impl Service<Request<()>> for Inner {
    type Response = Response<Empty<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        self.calls.fetch_add(1, SeqCst);
        let mut response = Response::new(Empty::new());
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers.clone();
        ready(Ok(response))
    }
}

pub fn inner(status: StatusCode) -> Inner {
    Inner { status, headers: HeaderMap::new(), calls: Arc::default() }
}

pub fn service(layer: &RateLimitLayer) -> RateLimit<Inner> {
    layer.layer(inner(StatusCode::OK))
}

pub fn ask(service: &mut RateLimit<Inner>, request: Request<()>) -> Answer {
    let mut context = Context::from_waker(Waker::noop());
    assert!(service.poll_ready(&mut context).is_ready());
    let future = std::pin::pin!(service.call(request));
    match future.poll(&mut context) {
        Poll::Ready(Ok(response)) => response,
        _ => panic!("the inner service is always ready"),
    }
}

/// Whether a request passes, which its status says.
pub fn passes(service: &mut RateLimit<Inner>, request: Request<()>) -> bool {
    ask(service, request).status() == StatusCode::OK
}

/// How many of a number of equal requests pass.
pub fn passed(service: &mut RateLimit<Inner>, of: usize, request: impl Fn() -> Request<()>) -> usize {
    (0..of).filter(|_| passes(service, request())).count()
}

pub fn from(peer: &str) -> Request<()> {
    let mut request = Request::new(());
    request.extensions_mut().insert(SocketAddr::new(peer.parse().expect("an address"), 5_000));
    request
}

/// Adds a line of header to a request.
pub fn with(mut request: Request<()>, name: &'static str, value: &[u8]) -> Request<()> {
    request.headers_mut().append(name, HeaderValue::from_bytes(value).expect("bytes of a header"));
    request
}

pub fn text(answer: Answer) -> String {
    let mut context = Context::from_waker(Waker::noop());
    let body = std::pin::pin!(answer.into_body().collect());
    match body.poll(&mut context) {
        Poll::Ready(Ok(body)) => String::from_utf8(body.to_bytes().to_vec()).expect("text"),
        _ => panic!("the body is there"),
    }
}

/// The value of a header, or an empty text.
pub fn header<'a>(answer: &'a Answer, name: &str) -> &'a str {
    answer.headers().get(name).map_or("", |value| value.to_str().expect("ASCII"))
}

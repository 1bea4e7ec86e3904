//! The response of a request: that of the inner service, or a refusal.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::Response;
use http_body_util::{Either, Full};
use pin_project_lite::pin_project;

use crate::answer::Told;
use crate::decide::Charged;
use crate::layer::Shared;

/// What is left to do when the response comes.
pub(crate) struct Later {
    pub charged: Option<(Arc<Shared>, Charged)>,
    pub told: Option<Told>,
}

pin_project! {
    /// The future of a [`RateLimit`](crate::RateLimit): the response of the inner service, or that of a refusal.
    ///
    /// Its body is the left one of [`Either`] for a refusal, the right one for the inner service.
    ///
    /// ```
    /// # use std::{convert::Infallible, future::{ready, Ready}};
    /// use http::{Request, Response};
    /// use http_body_util::Either;
    /// use tatcell::LimitSpec;
    /// use tatcell_tower::{key, Limit, RateLimitLayer, ResponseFuture};
    /// use tower::{service_fn, Layer, Service};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let layer = RateLimitLayer::new(Limit::new("per-path", LimitSpec::parse("1/h", 1_000_000_000)?, key::path()))?;
    /// let mut service = layer.layer(service_fn(|_: Request<()>| ready(Ok::<_, Infallible>(Response::new("hello")))));
    /// let first: ResponseFuture<Ready<_>> = service.call(Request::new(()));
    /// assert!(matches!(first.await?.body(), Either::Right("hello")));
    /// assert!(matches!(service.call(Request::new(())).await?.body(), Either::Left(_)));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use = "a future does nothing unless it is polled"]
    pub struct ResponseFuture<F> {
        #[pin]
        kind: Kind<F>,
    }
}

pin_project! {
    #[project = KindProjected]
    enum Kind<F> {
        Passed { #[pin] inner: F, later: Later },
        Refused { response: Option<Response<Full<Bytes>>> },
    }
}

impl<F> ResponseFuture<F> {
    pub(crate) fn passed(inner: F, later: Later) -> ResponseFuture<F> {
        ResponseFuture { kind: Kind::Passed { inner, later } }
    }

    pub(crate) fn refused(response: Response<Full<Bytes>>) -> ResponseFuture<F> {
        ResponseFuture { kind: Kind::Refused { response: Some(response) } }
    }
}

impl<F, R, E> Future for ResponseFuture<F>
where
    F: Future<Output = Result<Response<R>, E>>,
{
    type Output = Result<Response<Either<Full<Bytes>, R>>, E>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().kind.project() {
            KindProjected::Refused { response } => {
                // As of every future: not to be polled again once it is ready.
                response.take().map_or(Poll::Pending, |response| Poll::Ready(Ok(response.map(Either::Left))))
            }
            KindProjected::Passed { inner, later } => inner.poll(context).map(|made| later.finish(made)),
        }
    }
}

impl Later {
    fn finish<R, E>(&mut self, made: Result<Response<R>, E>) -> Result<Response<Either<Full<Bytes>, R>>, E> {
        if let Some((shared, mut charged)) = self.charged.take() {
            let failed = |response: &Response<R>| {
                shared.failed.as_ref().is_some_and(|failed| failed(response.status(), response.headers()))
            };
            if made.as_ref().map_or(true, failed) {
                shared.rules.refund(&mut charged);
            }
        }
        let mut response = made?;
        if let Some(told) = self.told.take() {
            told.add_to(response.headers_mut());
        }
        Ok(response.map(Either::Right))
    }
}

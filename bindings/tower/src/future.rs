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
    /// The future of a [`RateLimit`](crate::RateLimit).
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

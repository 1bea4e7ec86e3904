//! The layer, what is set when it is opened, and its service.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{Either, Full};
use tatcell::host::{now_ns, Clock, OwnedTable};
use tatcell::Counters;
use tower_layer::Layer;
use tower_service::Service;

use crate::answer::{self, Refusal};
use crate::decide::{Decided, Fate, Rules, KEYLESS, WHOLE};
use crate::error::OpenError;
use crate::future::{Later, ResponseFuture};
use crate::limit::Limit;

type Failed = dyn Fn(StatusCode, &HeaderMap) -> bool + Send + Sync;
type OnRefusal = dyn Fn(&Refusal<'_>, &mut Response<Full<Bytes>>) + Send + Sync;

/// What all services of a layer share.
pub(crate) struct Shared {
    pub rules: Rules,
    pub failed: Option<Box<Failed>>,
    on_refusal: Option<Box<OnRefusal>>,
    fields_on_passes: bool,
}

/// Collects limits and options of a layer. Made by [`RateLimitLayer::builder`].
#[derive(Default)]
pub struct LayerBuilder {
    limits: Vec<Limit>,
    failed: Option<Box<Failed>>,
    on_refusal: Option<Box<OnRefusal>>,
    fields_on_passes: bool,
    shadow: bool,
}

impl LayerBuilder {
    /// Adds a limit. A request passes if it conforms to all limits, and is charged by all or by none.
    #[must_use]
    pub fn limit(mut self, limit: Limit) -> LayerBuilder {
        self.limits.push(limit);
        self
    }

    /// Decides and counts, but refuses nobody and charges no request that a limit would have refused: to try limits on
    /// the traffic that there is. Clients are told nothing of it. One limit alone has
    /// [`Limit::shadow`].
    ///
    /// ```
    /// use tatcell::LimitSpec;
    /// use tatcell_tower::{key, Limit, RateLimitLayer};
    /// let per_ip = Limit::new("per-ip", LimitSpec::per_second(10), key::peer());
    /// let layer = RateLimitLayer::builder().limit(per_ip).shadow().open()?;
    /// // An hour later: how many requests would it have refused?
    /// assert_eq!(layer.counters().shadow, 0);
    /// # Ok::<(), tatcell_tower::OpenError>(())
    /// ```
    #[must_use]
    pub fn shadow(mut self) -> LayerBuilder {
        self.shadow = true;
        self
    }

    /// Adds `RateLimit` and `RateLimit-Policy` to the responses of requests that pass too. A refusal always has them,
    /// and `Retry-After`. This allocates for each response.
    #[must_use]
    pub fn fields_on_passes(mut self) -> LayerBuilder {
        self.fields_on_passes = true;
        self
    }

    /// Gives back the charge of a request that failed by no fault of the client: see [`server_failed`]. If the inner
    /// service returns an error, that is a failure too. The charge stays if the request is dropped before it has a
    /// response, because the client went away or because a layer outside of this one gave up. So put timeouts and
    /// layers that catch panics inside of this one.
    #[must_use]
    pub fn refund_failures(self) -> LayerBuilder {
        self.refund_if(server_failed)
    }

    /// Gives back the charge of a request if the closure returns true for status and header of its response, or if the
    /// inner service returns an error.
    ///
    /// ```
    /// use http::StatusCode;
    /// use tatcell::LimitSpec;
    /// use tatcell_tower::{key, Limit, RateLimitLayer};
    /// // Logins: only wrong passwords count.
    /// let layer = RateLimitLayer::builder()
    ///     .limit(Limit::new("logins", LimitSpec::parse("5/m", 1_000_000_000)?, key::peer()))
    ///     .refund_if(|status, _| status != StatusCode::UNAUTHORIZED)
    ///     .open()?;
    /// # let _ = layer;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn refund_if(
        mut self,
        failed: impl Fn(StatusCode, &HeaderMap) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.failed = Some(Box::new(failed));
        self
    }

    /// Lets a closure change the response of a refusal: another status, a body of JSON, a field more. It does not see
    /// the error of a server that passes on [no peer address](crate::key).
    ///
    /// ```
    /// use http::{header, HeaderValue, StatusCode};
    /// use tatcell::LimitSpec;
    /// use tatcell_tower::{key, Limit, RateLimitLayer};
    /// let layer = RateLimitLayer::builder()
    ///     .limit(Limit::new("per-ip", LimitSpec::per_second(10), key::peer()))
    ///     .on_refusal(|refusal, response| {
    ///         let json = HeaderValue::from_static("application/json");
    ///         response.headers_mut().insert(header::CONTENT_TYPE, json);
    ///         *response.body_mut() = format!(r#"{{"limit":"{}"}}"#, refusal.limit).into();
    ///     })
    ///     .open()?;
    /// # let _ = layer;
    /// # Ok::<(), tatcell_tower::OpenError>(())
    /// ```
    #[must_use]
    pub fn on_refusal(
        mut self,
        change: impl Fn(&Refusal<'_>, &mut Response<Full<Bytes>>) + Send + Sync + 'static,
    ) -> LayerBuilder {
        self.on_refusal = Some(Box::new(change));
        self
    }

    /// Opens the tables: memory from the system, and a seed from its random source.
    ///
    /// # Errors
    /// Any [`OpenError`].
    pub fn open(self) -> Result<RateLimitLayer, OpenError> {
        let LayerBuilder { mut limits, failed, on_refusal, fields_on_passes, shadow } = self;
        for limit in &mut limits {
            if tatcell::http::Policy::new(&limit.name).is_err() {
                return Err(OpenError::BadName(limit.name.clone()));
            }
            limit.shadow |= shadow;
        }
        let rules = Rules::open(limits)?;
        Ok(RateLimitLayer { shared: Arc::new(Shared { rules, failed, on_refusal, fields_on_passes }) })
    }
}

/// Returns whether a response says that the server failed: a status of 500 to 599, or of gRPC INTERNAL (13),
/// UNAVAILABLE (14) or DATA_LOSS (15) in the header. A gRPC stream that fails later says so in its trailers, which
/// nobody waits for.
///
/// ```
/// use http::{HeaderMap, HeaderValue, StatusCode};
/// use tatcell_tower::server_failed;
/// assert!(server_failed(StatusCode::BAD_GATEWAY, &HeaderMap::new()));
/// let unavailable = HeaderMap::from_iter([("grpc-status".parse().unwrap(), HeaderValue::from_static("14"))]);
/// assert!(server_failed(StatusCode::OK, &unavailable));
/// ```
pub fn server_failed(status: StatusCode, headers: &HeaderMap) -> bool {
    let grpc = headers.get("grpc-status").map(http::HeaderValue::as_bytes);
    status.is_server_error() || matches!(grpc, Some(b"13" | b"14" | b"15"))
}

/// Limits the requests to the services that it wraps. All of them, and all clones, share its limits.
///
/// ```
/// use tatcell::LimitSpec;
/// use tatcell_tower::{key, Limit, RateLimitLayer};
/// use tower::ServiceBuilder;
///
/// let per_ip = Limit::new("per-ip", LimitSpec::per_second(10).burst(20), key::peer());
/// let layer = RateLimitLayer::new(per_ip)?;
/// let service = ServiceBuilder::new().layer(layer.clone()).service_fn(|_: http::Request<()>| async {
///     Ok::<_, std::convert::Infallible>(http::Response::new(http_body_util::Empty::<bytes::Bytes>::new()))
/// });
/// # let _ = service;
/// # Ok::<(), tatcell_tower::OpenError>(())
/// ```
#[derive(Clone)]
pub struct RateLimitLayer {
    shared: Arc<Shared>,
}

impl RateLimitLayer {
    /// Opens a layer of one limit, without options.
    ///
    /// # Errors
    /// Any [`OpenError`].
    pub fn new(limit: Limit) -> Result<RateLimitLayer, OpenError> {
        RateLimitLayer::builder().limit(limit).open()
    }

    /// Starts a layer of several limits, or with options.
    ///
    /// ```
    /// use http::HeaderName;
    /// use tatcell::LimitSpec;
    /// use tatcell_tower::{key, Limit, NoKey, RateLimitLayer};
    ///
    /// let api_key = key::header(HeaderName::from_static("x-api-key"));
    /// let layer = RateLimitLayer::builder()
    ///     .limit(Limit::new("per-ip", LimitSpec::per_second(10).burst(20), key::peer()))
    ///     .limit(Limit::new("per-key", LimitSpec::per_second(50), api_key).without_key(NoKey::Pass))
    ///     .refund_failures()
    ///     .fields_on_passes()
    ///     .open()?;
    /// # let _ = layer;
    /// # Ok::<(), tatcell_tower::OpenError>(())
    /// ```
    pub fn builder() -> LayerBuilder {
        LayerBuilder::default()
    }

    /// Returns the counters of all requests that met a limit, since the layer was opened.
    pub fn counters(&self) -> Counters {
        self.shared.rules.counters(WHOLE)
    }

    /// Returns the counters of each limit, with its name: each tier of a ladder is one. No two have the same name.
    ///
    /// ```
    /// use tatcell::{Ladder, LimitSpec};
    /// use tatcell_tower::{key, Limit, RateLimitLayer};
    /// let layer = RateLimitLayer::new(Limit::ladder("net", LimitSpec::per_second(10), Ladder::DEFAULT, key::peer()))?;
    /// let names: Vec<&str> = layer.limits().map(|(name, _)| name).collect();
    /// assert_eq!(names[..2], ["net/v4/32", "net/v4/24"]);
    /// # Ok::<(), tatcell_tower::OpenError>(())
    /// ```
    pub fn limits(&self) -> impl Iterator<Item = (&str, Counters)> {
        self.shared.rules.tier_counters()
    }

    /// Returns the counters of requests without a key, once for each limit that found none: those refused for it are
    /// `non_conforming`, all others `conforming`. Requests that got status 500, because the server passes on no peer
    /// address, count as refused.
    pub fn without_key(&self) -> Counters {
        self.shared.rules.counters(KEYLESS)
    }

    /// Returns the table of a limit: to forget a key, for statistics. [Sweep](OwnedTable::sweep) it before a call that
    /// charges, or the charge may be forgotten as one from before a silence.
    ///
    /// ```
    /// use tatcell::{Address, LimitSpec};
    /// use tatcell_tower::{key, Limit, RateLimitLayer};
    /// let layer = RateLimitLayer::new(Limit::new("per-ip", LimitSpec::per_second(10), key::peer()))?;
    /// let table = layer.table("per-ip").unwrap().table();
    /// let hash = table.hash(Address::from([192, 0, 2, 1]).prefix(32).as_ref())?;
    /// table.reset_key(0, hash);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn table(&self, limit: &str) -> Option<&OwnedTable> {
        self.shared.rules.rules().iter().find(|rule| rule.name == limit).map(|rule| &rule.table)
    }
}

impl fmt::Debug for RateLimitLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.limits()).finish()
    }
}

impl<S> Layer<S> for RateLimitLayer {
    type Service = RateLimit<S>;

    fn layer(&self, inner: S) -> RateLimit<S> {
        RateLimit { inner, shared: Arc::clone(&self.shared) }
    }
}

/// Passes a request to the inner service if it conforms, and refuses it otherwise. Made by [`RateLimitLayer`].
///
/// It is ready when the inner service is. A request that passes costs one decision, no lock and, without
/// [`fields_on_passes`](LayerBuilder::fields_on_passes), no allocation.
///
/// A refusal does not use what the inner service reserved when it was ready, such as the permit of a
/// `ConcurrencyLimit`: this service keeps it for its next call, or until it is dropped. So drop a clone after its call,
/// as servers do, or put this layer inside of such a service.
///
/// ```
/// # use std::{convert::Infallible, future::ready};
/// use http::{Request, Response, StatusCode};
/// use tatcell::LimitSpec;
/// use tatcell_tower::{key, Limit, RateLimitLayer};
/// use tower::{service_fn, Layer, Service};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let layer = RateLimitLayer::new(Limit::new("per-path", LimitSpec::parse("1/h", 1_000_000_000)?, key::path()))?;
/// let mut service = layer.layer(service_fn(|_: Request<()>| ready(Ok::<_, Infallible>(Response::new("hello")))));
/// assert_eq!(service.call(Request::new(())).await?.status(), StatusCode::OK);
/// let refused = service.call(Request::new(())).await?;
/// assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
/// assert_eq!(refused.headers()["retry-after"], "3600");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct RateLimit<S> {
    inner: S,
    shared: Arc<Shared>,
}

impl<S: fmt::Debug> fmt::Debug for RateLimit<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimit").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl<S, B, R> Service<Request<B>> for RateLimit<S>
where
    S: Service<Request<B>, Response = Response<R>>,
{
    type Response = Response<Either<Full<Bytes>, R>>;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (parts, body) = request.into_parts();
        let shared = &self.shared;
        let mut decided = Decided::default();
        match shared.rules.decide(&parts, now_ns(Clock::Monotonic).ok(), &mut decided) {
            Fate::Passes => {}
            Fate::Refused(decision) => {
                let grpc = answer::grpc(&parts.headers);
                let limit = &shared.rules.tier(&decided.asked[decision.policy as usize]).name;
                let refusal = Refusal { limit, decision: Some(&decision), grpc: grpc.is_some() };
                return self.refuse(&refusal, answer::refused(&shared.rules, &decided, grpc));
            }
            Fate::NoPeer(rule) => {
                let limit = &shared.rules.rules()[rule].name;
                return ResponseFuture::refused(answer::peerless(limit, answer::grpc(&parts.headers)));
            }
            Fate::NoKey(rule) => {
                let grpc = answer::grpc(&parts.headers);
                let limit = &shared.rules.rules()[rule].name;
                let refusal = Refusal { limit, decision: None, grpc: grpc.is_some() };
                return self.refuse(&refusal, answer::keyless(limit, grpc));
            }
        }
        let later = Later {
            charged: shared.failed.as_ref().map(|_| (Arc::clone(shared), decided.charged())),
            told: shared.fields_on_passes.then(|| answer::fields(&shared.rules, &decided).0),
        };
        ResponseFuture::passed(self.inner.call(Request::from_parts(parts, body)), later)
    }
}

impl<S> RateLimit<S> {
    fn refuse<F>(&self, refusal: &Refusal<'_>, mut response: Response<Full<Bytes>>) -> ResponseFuture<F> {
        if let Some(change) = &self.shared.on_refusal {
            change(refusal, &mut response);
        }
        ResponseFuture::refused(response)
    }

    /// Returns the inner service.
    pub fn inner(&self) -> &S {
        &self.inner
    }
}

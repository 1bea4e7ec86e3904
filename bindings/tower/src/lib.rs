//! Rate limits for axum, hyper and tonic: a [tower](https://docs.rs/tower) layer whose decisions are those of
//! [`tatcell`].
//!
//! ```
//! use axum::{routing::get, Router};
//! use tatcell::LimitSpec;
//! use tatcell_tower::{key, Limit, RateLimitLayer};
//!
//! let per_ip = Limit::new("per-ip", LimitSpec::per_second(10).burst(20), key::peer());
//! let app: Router = Router::new().route("/", get(|| async { "hello\n" })).layer(RateLimitLayer::new(per_ip)?);
//! // axum::serve(listener, app.into_make_service_with_connect_info::<std::net::SocketAddr>())
//! # let _ = app;
//! # Ok::<(), tatcell_tower::OpenError>(())
//! ```
//!
//! - [`key`]: what a limit is for. The peer address, `X-Forwarded-For` behind trusted proxies, a header, the path, any
//!   closure, or several of them.
//! - [`Limit`]: how much, and what happens to a request without a key. A [ladder](Limit::ladder) limits an address and
//!   its networks.
//! - [`RateLimitLayer::builder`]: several limits, which a request must all meet; refunds, shadow mode, fields.
//!
//! A refusal has status 429 with `Retry-After`, `RateLimit` and `RateLimit-Policy`
//! (draft-ietf-httpapi-ratelimit-headers). A refused gRPC request gets RESOURCE_EXHAUSTED.
//!
//! A request that passes takes no lock and, without [`fields_on_passes`](LayerBuilder::fields_on_passes), no
//! allocation. Limits live in memory that the layer maps when it is opened, 34 to 36 bytes a key in whole huge pages of
//! 2 MiB, and a flood of new keys does not grow it. If the memory of a limit is full, [`Limit::when_full`] decides. If
//! other threads win a word 64 times in a row, the request is refused with a `Retry-After` of 1.
//!
//! Requests also sweep the tables, a part now and then, so a server needs no timer, however long no request comes.
//!
//! # Features
//!
//! | feature | what it adds |
//! |---|---|
//! | `axum` | the peer address from `ConnectInfo<SocketAddr>` of axum 0.8, and whole paths in nested routers |
//! | `tonic` | the peer address from `TcpConnectInfo` of tonic 0.14 |
//!
//! With hyper 1, or another server, insert the peer's `SocketAddr` into the extensions of each request.
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod answer;
mod counts;
mod decide;
mod error;
mod future;
pub mod key;
mod layer;
mod limit;

pub use answer::Refusal;
pub use error::OpenError;
pub use future::ResponseFuture;
pub use key::Key;
pub use layer::{server_failed, LayerBuilder, RateLimit, RateLimitLayer};
pub use limit::{Limit, NoKey};

/// The programs of the README are compiled, like those of this page.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

//! Limits of an axum server: by address and its networks, and by API key. Try it:
//!
//!     cargo run --features axum --example axum
//!     for i in $(seq 30); do curl -s -o /dev/null -w '%{http_code}\n' http://127.0.0.1:3000/; done
//!     curl -i -H 'x-api-key: abc' http://127.0.0.1:3000/api

use std::net::SocketAddr;

use axum::{routing::get, Router};
use http::HeaderName;
use tatcell::{Ladder, LimitSpec};
use tatcell_tower::{key, Limit, NoKey, RateLimitLayer};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Behind a proxy: key::forwarded_for(1), or as many as there are.
    let per_ip = Limit::ladder("per-ip", LimitSpec::per_second(10).burst(20), Ladder::DEFAULT, key::peer());
    let everywhere = RateLimitLayer::builder().limit(per_ip).refund_failures().open()?;

    let api_key = key::header(HeaderName::from_static("x-api-key"));
    let limit = LimitSpec::parse("600/m burst 100", 1_000_000_000)?; // as an operator writes it
    let per_key = Limit::new("per-key", limit, api_key).without_key(NoKey::Refuse);
    let of_the_api = RateLimitLayer::builder().limit(per_key).fields_on_passes().open()?;

    let counted = everywhere.clone();
    let app = Router::new()
        .route("/api", get(|| async { "an answer\n" }).layer(of_the_api))
        .route("/", get(|| async { "hello\n" }))
        .route("/counters", get(move || async move { format!("{counted:#?}\n") }))
        .layer(everywhere);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>()).await?;
    Ok(())
}

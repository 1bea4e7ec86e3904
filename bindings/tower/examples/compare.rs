//! The server of `make compare`: `compare none|tatcell|governor ADDRESS`. Each client, by X-Forwarded-For, has the same
//! limit; nothing else differs.

use std::net::SocketAddr;

use axum::{routing::get, Router};
use tatcell::LimitSpec;
use tatcell_tower::{key, Limit, RateLimitLayer};
use tower_governor::governor::GovernorConfigBuilder;
use tower_governor::key_extractor::SmartIpKeyExtractor;
use tower_governor::GovernorLayer;

const PER_SECOND: u32 = 10;
const BURST: u32 = 20;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [which, address] = arguments.as_slice() else {
        return Err("compare none|tatcell|governor ADDRESS".into());
    };
    let app = Router::new().route("/", get(|| async { "hello\n" }));
    let app = match which.as_str() {
        "none" => app,
        "tatcell" => {
            let spec = LimitSpec::per_second(PER_SECOND.into()).burst(BURST.into());
            app.layer(RateLimitLayer::new(Limit::new("per-ip", spec, key::forwarded_for(1)).keys(100_000))?)
        }
        "governor" => {
            let config = GovernorConfigBuilder::default()
                .per_millisecond(1_000 / u64::from(PER_SECOND))
                .burst_size(BURST)
                .key_extractor(SmartIpKeyExtractor)
                .finish()
                .ok_or("governor refuses the limit")?;
            app.layer(GovernorLayer::new(config))
        }
        other => return Err(format!("no limiter {other}: none, tatcell or governor").into()),
    };
    let listener = tokio::net::TcpListener::bind(address).await?;
    axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>()).await?;
    Ok(())
}

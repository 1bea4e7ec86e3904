//! The layer in the servers that it is for, over TCP on loopback: axum, hyper and tonic.

mod common;

use std::net::SocketAddr;

use axum::routing::get;
use common::hourly;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::TokioIo;
use tatcell_tower::{key, Limit, RateLimitLayer};
use tokio::net::{TcpListener, TcpStream};
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::HealthCheckRequest;
use tower::Layer;

fn layer() -> RateLimitLayer {
    let per_ip = Limit::new("per-ip", hourly(2), key::peer()).without_key(tatcell_tower::NoKey::Refuse);
    RateLimitLayer::builder().limit(per_ip).fields_on_passes().open().expect("a limit")
}

async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    (listener, address)
}

/// Status, `RateLimit` and body of each of a number of requests on one connection.
async fn requests(address: SocketAddr, count: usize) -> Vec<(StatusCode, String, String)> {
    let stream = TcpStream::connect(address).await.expect("a connection");
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.expect("a handshake");
    tokio::spawn(connection);
    let mut answers = Vec::new();
    for _ in 0..count {
        let request = Request::get("/").header("host", "localhost").body(Empty::<bytes::Bytes>::new());
        let answer = sender.send_request(request.expect("a request")).await.expect("an answer");
        let told =
            answer.headers().get("ratelimit").map_or("", |value| value.to_str().expect("ASCII")).to_owned();
        let status = answer.status();
        let body = answer.into_body().collect().await.expect("a body").to_bytes();
        answers.push((status, told, String::from_utf8(body.into()).expect("text")));
    }
    answers
}

fn expected() -> Vec<(StatusCode, String, String)> {
    let answer = |status, told: &str, body: &str| (status, told.to_owned(), body.to_owned());
    vec![
        answer(StatusCode::OK, r#""per-ip";r=1;t=1800"#, "hello\n"),
        answer(StatusCode::OK, r#""per-ip";r=0;t=3600"#, "hello\n"),
        answer(
            StatusCode::TOO_MANY_REQUESTS,
            r#""per-ip";r=0;t=1800"#,
            "too many requests: retry in 1800 s\n",
        ),
    ]
}

#[tokio::test]
async fn axum_knows_the_peer_by_its_connect_info() {
    let (listener, address) = listen().await;
    let app = axum::Router::new().route("/", get(|| async { "hello\n" })).layer(layer());
    let service = app.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async move { axum::serve(listener, service).await });
    assert_eq!(requests(address, 3).await, expected());
}

#[tokio::test]
async fn hyper_is_told_the_peer_by_an_extension() {
    let (listener, address) = listen().await;
    let service = layer().layer(tower::service_fn(|_: Request<hyper::body::Incoming>| async {
        Ok::<_, std::convert::Infallible>(http::Response::new("hello\n".to_owned()))
    }));
    tokio::spawn(async move {
        loop {
            let (stream, peer) = listener.accept().await.expect("a connection");
            let service = tower::ServiceExt::map_request(service.clone(), move |mut request: Request<_>| {
                request.extensions_mut().insert(peer);
                request
            });
            let service = hyper_util::service::TowerToHyperService::new(service);
            let http = hyper::server::conn::http1::Builder::new();
            tokio::spawn(http.serve_connection(TokioIo::new(stream), service));
        }
    });
    assert_eq!(requests(address, 3).await, expected());
}

#[tokio::test]
async fn tonic_gets_resource_exhausted() {
    let (listener, address) = listen().await;
    let (_, health) = tonic_health::server::health_reporter();
    let incoming = tonic::transport::server::TcpIncoming::from(listener);
    let server = tonic::transport::Server::builder().layer(layer()).add_service(health);
    tokio::spawn(server.serve_with_incoming(incoming));
    let channel = tonic::transport::Endpoint::new(format!("http://{address}")).expect("an endpoint");
    let mut client = HealthClient::new(channel.connect().await.expect("a connection"));
    for left in ["1", "0"] {
        let answer = client.check(HealthCheckRequest::default()).await.expect("an answer");
        let told = answer.metadata().get("ratelimit").expect("a field").to_str().expect("ASCII");
        assert!(told.starts_with(&format!(r#""per-ip";r={left};"#)), "{told}");
    }
    let refused = client.check(HealthCheckRequest::default()).await.expect_err("a refusal");
    assert_eq!(refused.code(), tonic::Code::ResourceExhausted);
    assert_eq!(refused.message(), "too many requests: retry in 1800 s");
    assert_eq!(refused.metadata().get("retry-after").expect("a field"), "1800");
}

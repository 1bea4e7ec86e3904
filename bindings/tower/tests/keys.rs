//! Which requests share a limit: keys, and requests that have none.

mod common;

use common::{from, hourly, passed, passes, service, with};
use http::{HeaderName, Request, StatusCode};
use tatcell::FullPolicy;
use tatcell_tower::{key, Key, Limit, NoKey, RateLimitLayer};

fn open(limit: Limit) -> RateLimitLayer {
    RateLimitLayer::new(limit).expect("a limit")
}

fn by(key: impl Key) -> RateLimitLayer {
    open(Limit::new("one", hourly(1), key))
}

fn api_key() -> key::Header {
    key::header(HeaderName::from_static("x-api-key"))
}

/// How many of these requests pass, if each key passes once.
fn keys_of(layer: &RateLimitLayer, requests: impl IntoIterator<Item = Request<()>>) -> usize {
    let mut service = service(layer);
    requests.into_iter().filter_map(|request| passes(&mut service, request).then_some(())).count()
}

#[test]
fn each_peer_address_has_a_limit_of_its_own() {
    let mut service = service(&open(Limit::new("per-ip", hourly(3), key::peer())));
    assert_eq!(passed(&mut service, 5, || from("192.0.2.1")), 3);
    assert_eq!(passed(&mut service, 5, || from("192.0.2.2")), 3);
}

#[test]
fn an_ipv4_mapped_address_is_that_ipv4_address() {
    let same = ["192.0.2.1", "::ffff:192.0.2.1", "64:ff9b::192.0.2.1"].map(from);
    assert_eq!(keys_of(&by(key::peer()), same), 1);
}

#[test]
fn an_ipv6_host_is_its_64() {
    let hosts = ["2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"].map(from);
    assert_eq!(keys_of(&by(key::peer()), hosts), 2);
}

#[test]
fn a_prefix_makes_a_network_one_key() {
    let hosts = || ["192.0.2.1", "192.0.2.200", "192.0.3.1", "2001:db8:0:1::", "2001:db8:0:ffff::"].map(from);
    assert_eq!(keys_of(&by(key::peer().prefix(24, 48)), hosts()), 3);
    for (v4, v6) in [(33, 64), (32, 129), (255, 255)] {
        let in_a_pair = Limit::new("two", hourly(1), (key::path(), key::forwarded_for(1).prefix(v4, v6)));
        for limit in [Limit::new("one", hourly(1), key::peer().prefix(v4, v6)), in_a_pair] {
            let error = RateLimitLayer::new(limit).map(drop).expect_err("no layer").to_string();
            assert!(error.contains("0 to 32") && error.contains("0 to 128"), "{error}");
        }
    }
    assert_eq!(keys_of(&by(key::peer().prefix(0, 0)), hosts()), 2, "one for each family");
}

#[test]
fn a_client_cannot_choose_its_key_by_x_forwarded_for() {
    let layer = by(key::forwarded_for(1));
    let spoofed = |invented: String| with(from("10.0.0.1"), "x-forwarded-for", invented.as_bytes());
    let requests = (0..50).map(|i| spoofed(format!("203.0.113.{i}, 192.0.2.1")));
    assert_eq!(keys_of(&layer, requests), 1);
    // As a line of its own, before that of the proxy.
    let lines = |i| with(spoofed(format!("203.0.113.{i}")), "x-forwarded-for", b"192.0.2.2");
    assert_eq!(keys_of(&layer, (0..50).map(lines)), 1);
}

#[test]
fn each_trusted_proxy_is_one_entry_from_the_end() {
    let chain = || with(from("10.0.0.1"), "x-forwarded-for", b"198.51.100.7, 192.0.2.1 ,10.0.0.3, 10.0.0.2");
    for (hops, client) in [(0, "10.0.0.1"), (1, "10.0.0.2"), (2, "10.0.0.3"), (3, "192.0.2.1")] {
        let (parts, ()) = chain().into_parts();
        let wanted = tatcell::Address::from(client.parse::<std::net::IpAddr>().expect("an address"));
        assert_eq!(key::forwarded_for(hops).address(&parts), Some(wanted), "{hops} hops");
    }
}

/// The same cases as in the packages for Python, Node and Go.
#[test]
fn the_client_is_an_entry_that_is_an_address_or_the_peer() {
    let client = |hops, lines: &[&[u8]]| {
        let request =
            lines.iter().fold(from("192.0.2.1"), |request, line| with(request, "x-forwarded-for", line));
        let (parts, ()) = request.into_parts();
        key::forwarded_for(hops).address(&parts)
    };
    let address =
        |text: &str| Some(tatcell::Address::from(text.parse::<std::net::IpAddr>().expect("an address")));
    for (hops, field, wanted) in [
        (0, "198.51.100.7", "192.0.2.1"),
        (1, "spoofed, 198.51.100.7", "198.51.100.7"),
        (2, "spoofed, 198.51.100.7, 10.0.0.1", "198.51.100.7"),
        (2, "198.51.100.7", "192.0.2.1"),
        (1, "198.51.100.7,", "192.0.2.1"),
        (2, "198.51.100.7,", "198.51.100.7"),
        (1, " , ", "192.0.2.1"),
        (1, "", "192.0.2.1"),
        (1, "198.51.100.7, unknown", "192.0.2.1"),
        (1, "198.51.100.7, unix:", "192.0.2.1"),
        (2, "198.51.100.7, , 10.0.0.1", "192.0.2.1"),
        (1, "\t198.51.100.7\t", "198.51.100.7"),
        (1, "198.51.100.7:4711", "198.51.100.7"),
        (1, "[198.51.100.7]:4711", "198.51.100.7"),
        (1, "2001:db8::7", "2001:db8::7"),
        (1, "[2001:db8::7]:4711", "2001:db8::7"),
        (1, "[2001:db8::7]", "2001:db8::7"),
        (1, "::ffff:198.51.100.7", "198.51.100.7"),
        (1, "fe80::1%eth0", "fe80::1"),
        (1, "[fe80::1%eth0]:80", "fe80::1"),
        (1, "198.51.100.7:x", "192.0.2.1"),
        (1, "198.51.100.7:", "192.0.2.1"),
        (1, "198.51.100.7:+1", "192.0.2.1"),
        (1, "192.0.2", "192.0.2.1"),
        (1, "[192.0.2.9", "192.0.2.1"),
        (1, "192.0.2.9]", "192.0.2.1"),
        (1, "[2001:db8::7]x", "192.0.2.1"),
        (1, "_hidden", "192.0.2.1"),
    ] {
        assert_eq!(client(hops, &[field.as_bytes()]), address(wanted), "{hops} {field:?}");
    }
    assert_eq!(client(1, &[]), address("192.0.2.1"), "no field");
    assert_eq!(client(2, &[b"spoofed, 198.51.100.7", b"10.0.0.1"]), address("198.51.100.7"), "two lines");
    assert_eq!(client(2, &[b"198.51.100.7", b"", b"10.0.0.1"]), address("192.0.2.1"), "an empty line");
    assert_eq!(client(1, &[b"198.51.100.7, 192.0.\xff.1"]), address("192.0.2.1"), "not UTF-8");
    assert_eq!(client(1, &[b"\xff\xfe, 198.51.100.7"]), address("198.51.100.7"), "what the client wrote");
}

#[test]
fn requests_around_the_proxies_are_those_of_their_peer() {
    let layer = by(key::forwarded_for(2));
    let requests = |peer: &'static str| {
        (0..9).map(move |i| with(from(peer), "x-forwarded-for", format!("192.0.2.{i}").as_bytes()))
    };
    assert_eq!(keys_of(&layer, requests("10.0.0.1").chain(requests("10.0.0.2"))), 2);
    assert_eq!(layer.without_key(), tatcell::Counters::default());
}

#[test]
fn requests_without_a_peer_address_share_one_limit() {
    let layer = open(Limit::new("one", hourly(1), key::forwarded_for(1)).without_key(NoKey::Share));
    let unknown = || with(Request::new(()), "x-forwarded-for", b"unknown");
    assert_eq!(keys_of(&layer, (0..5).map(|_| Request::new(())).chain([unknown()])), 1);
    assert_eq!(keys_of(&layer, vec![from("192.0.2.1")]), 1, "which is not that of an address");
    assert_eq!(layer.without_key().conforming, 6);
}

/// Such as a server of axum 0.7, whose ConnectInfo is another type than that of axum 0.8: all clients would share one
/// limit, and nobody would see it.
#[test]
fn a_server_that_passes_on_no_peer_address_is_an_error() {
    let ladder = || Limit::ladder("one", hourly(1), tatcell::Ladder::DEFAULT, key::peer());
    let mut layers =
        vec![by(key::peer()), by(key::forwarded_for(1)), by((key::path(), key::peer())), open(ladder())];
    layers.push(by((api_key(), key::path(), key::peer())));
    for layer in &layers {
        for _ in 0..3 {
            let answer = common::ask(&mut service(layer), with(Request::new(()), "x-api-key", b"a"));
            assert_eq!(answer.status(), StatusCode::INTERNAL_SERVER_ERROR);
            let text = common::text(answer);
            let all = [
                "limit one",
                "into_make_service_with_connect_info::<SocketAddr>()",
                "axum 0.8",
                "NoKey::Share",
            ];
            assert!(all.iter().all(|part| text.contains(part)), "{text}");
        }
        assert_eq!((layer.without_key().non_conforming, layer.counters()), (3, tatcell::Counters::default()));
    }
    let mut call = with(Request::new(()), "content-type", b"application/grpc");
    let answer = common::ask(&mut service(&layers[0]), call);
    assert_eq!((answer.status(), common::header(&answer, "grpc-status")), (StatusCode::OK, "13"));
    // Shadow mode refuses nobody, and what it counts would mean nothing.
    let layer = open(Limit::new("one", hourly(1), key::peer()).shadow());
    assert_eq!(keys_of(&layer, (0..5).map(|_| Request::new(()))), 5);
    assert_eq!((layer.without_key().conforming, layer.counters()), (5, tatcell::Counters::default()));
    // A client that leaves out its part of a key is no error of the server.
    call = from("192.0.2.1");
    assert!(passes(&mut service(&layers[4]), call));
    assert!(passes(
        &mut service(&by(key::forwarded_for(1))),
        with(Request::new(()), "x-forwarded-for", b"192.0.2.1")
    ));
}

#[test]
fn a_limit_may_let_a_request_without_a_key_pass() {
    let layer = open(Limit::new("per-key", hourly(1), api_key()).without_key(NoKey::Pass));
    assert_eq!(keys_of(&layer, (0..5).map(|_| Request::new(()))), 5);
    assert_eq!(layer.counters(), tatcell::Counters::default(), "no limit decided");
    assert_eq!(layer.without_key().conforming, 5);
}

#[test]
fn a_limit_may_refuse_a_request_without_a_key() {
    let layer = open(Limit::new("per-key", hourly(1), api_key()).without_key(NoKey::Refuse));
    let answer = common::ask(&mut service(&layer), Request::new(()));
    assert_eq!(answer.status(), StatusCode::BAD_REQUEST);
    assert_eq!(common::text(answer), "the request has no key for the limit per-key\n");
    assert_eq!(layer.without_key().non_conforming, 1);
}

#[test]
fn a_key_may_be_any_bytes_and_the_first_value_counts() {
    let key = |value: &[u8]| with(Request::new(()), "x-api-key", value);
    let different = [b"a".as_slice(), b"b", b"\xff\xfe", b"\xff\xfd", &[b'k'; 5_000]].map(key);
    assert_eq!(keys_of(&by(api_key()), different), 5);
    let several = (0..9).map(|i| with(key(b"a"), "x-api-key", format!("other {i}").as_bytes()));
    assert_eq!(keys_of(&by(api_key()), several), 1, "a second value is no way to a second limit");
    let empty = vec![key(b""), Request::new(())];
    assert_eq!(keys_of(&by(api_key()), empty), 1, "an empty value is no key");
}

#[test]
fn paths_closures_and_tuples_are_keys() {
    let to = |path: &str, peer| {
        let mut request = from(peer);
        *request.uri_mut() = path.parse().expect("a path");
        request
    };
    let all = || {
        let each = [("/a", "192.0.2.1"), ("/a?q", "192.0.2.1"), ("/b", "192.0.2.1"), ("/a", "192.0.2.2")];
        each.map(|(path, peer)| to(path, peer))
    };
    assert_eq!(keys_of(&by(key::path()), all()), 2);
    assert_eq!(keys_of(&by((key::peer(), key::path())), all()), 3);
    assert_eq!(keys_of(&by((key::peer(), key::path(), api_key())), all()), 1, "one of three is missing");
    assert_eq!(keys_of(&by(key::from_fn(|request| Some(request.uri.query()?.as_bytes().into()))), all()), 2);
}

#[test]
fn the_parts_of_a_tuple_do_not_run_together() {
    let pair = |a: &'static [u8], b: &'static [u8]| with(with(Request::new(()), "x-a", a), "x-api-key", b);
    let layer = by((key::header(HeaderName::from_static("x-a")), api_key()));
    assert_eq!(keys_of(&layer, vec![pair(b"ab", b"c"), pair(b"a", b"bc"), pair(b"bc", b"a")]), 3);
}

#[test]
fn a_full_table_does_what_its_policy_says() {
    // The smallest table is one huge page: 262 144 slots, less two lines.
    const FLOOD: u32 = 400_000;
    let flood = || (0..FLOOD).map(|i| from(&std::net::Ipv4Addr::from(i).to_string()));
    let limit = || Limit::new("per-ip", hourly(1), key::peer()).keys(1);
    let admits = open(limit());
    let bytes = || admits.table("per-ip").expect("a table").memory().lines().len();
    let before = bytes();
    // Two keys with one tag share a debt: a few of so many.
    assert!(keys_of(&admits, flood()) > FLOOD as usize - 100);
    assert!(admits.counters().untracked > 100_000, "{:?}", admits.counters());
    assert_eq!(bytes(), before, "a flood takes no memory");
    let denies = open(limit().when_full(FullPolicy::Deny));
    let passed = keys_of(&denies, flood());
    assert!((200_000..=262_144).contains(&passed), "{passed} {:?}", denies.counters());
}

#[cfg(feature = "axum")]
#[tokio::test]
async fn a_router_inside_of_another_knows_the_whole_path() {
    let layer = by(key::path());
    let list = || axum::Router::new().route("/list", axum::routing::get(|| async {})).layer(layer.clone());
    let app = axum::Router::new().nest("/users", list()).nest("/admin", list());
    let mut answers = Vec::new();
    for path in ["/users/list", "/admin/list", "/users/list?page=2"] {
        let request = Request::get(path).body(axum::body::Body::empty()).expect("a request");
        let answer = tower::ServiceExt::oneshot(app.clone(), request).await.expect("an answer");
        answers.push(answer.status().as_u16());
    }
    assert_eq!(answers, [200, 200, 429]);
}

#[cfg(feature = "axum")]
#[test]
fn a_test_of_axum_may_make_up_the_peer() {
    use axum::extract::connect_info::{ConnectInfo, MockConnectInfo};
    let peer = |host| std::net::SocketAddr::from(([192, 0, 2, host], 5_000));
    let mut request = Request::new(());
    request.extensions_mut().insert(MockConnectInfo(peer(1)));
    let address = |request: &Request<()>| {
        let (parts, ()) = request.clone().into_parts();
        key::peer().address(&parts)
    };
    assert_eq!(address(&request), Some([192, 0, 2, 1].into()));
    // As in axum, what a server says comes first.
    request.extensions_mut().insert(ConnectInfo(peer(2)));
    assert_eq!(address(&request), Some([192, 0, 2, 2].into()));
}

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
    assert_eq!(keys_of(&by(key::peer().prefix(255, 255)), hosts()), 5, "more bits than there are are all");
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

#[test]
fn an_entry_may_have_a_port_and_must_be_an_address() {
    let address = |value: &[u8]| {
        let (parts, ()) = with(from("10.0.0.1"), "x-forwarded-for", value).into_parts();
        key::forwarded_for(1).address(&parts).map(|address| address.bytes().to_vec())
    };
    let wanted = Some(vec![192, 0, 2, 1]);
    for same in ["192.0.2.1", " 192.0.2.1\t", "192.0.2.1:80", "[::ffff:192.0.2.1]", "[::ffff:192.0.2.1]:80"] {
        assert_eq!(address(same.as_bytes()), wanted, "{same}");
    }
    for none in ["", "unknown", "_hidden", "192.0.2", "192.0.2.1,", "[192.0.2.1", "192.0.2.1:x"] {
        assert_eq!(address(none.as_bytes()), None, "{none}");
    }
    assert_eq!(address(b"192.0.2.1, 192.0.\xff.1"), None, "not UTF-8");
    assert_eq!(address(b"\xff\xfe, 192.0.2.1"), wanted, "what the client wrote is not read");
}

#[test]
fn a_request_around_the_proxies_has_no_key() {
    let layer = by(key::forwarded_for(2));
    let requests =
        (0..9).map(|i| with(from("10.0.0.1"), "x-forwarded-for", format!("192.0.2.{i}").as_bytes()));
    assert_eq!(keys_of(&layer, requests), 1, "they share one");
    assert_eq!(layer.without_key().conforming, 9);
}

#[test]
fn requests_without_a_peer_address_share_one_limit() {
    let layer = by(key::peer());
    assert_eq!(keys_of(&layer, (0..5).map(|_| Request::new(()))), 1);
    assert_eq!(keys_of(&layer, vec![from("192.0.2.1")]), 1, "which is not that of an address");
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

//! What a layer answers: several limits, fields, refunds, shadow mode, gRPC, counters, and what it refuses to open.

mod common;

use std::future::Future;
use std::sync::atomic::Ordering::SeqCst;
use std::task::{Context, Waker};

use common::{ask, from, header, hourly, inner, passed, passes, service, text, with};
use http::{HeaderName, HeaderValue, Request, StatusCode};
use tatcell::host::{now_ns, Clock};
use tatcell::{Ladder, LimitSpec, Rung};
use tatcell_tower::{key, Limit, NoKey, OpenError, RateLimit, RateLimitLayer};
use tower::{Layer, Service};

fn per_ip(units: u64) -> Limit {
    Limit::new("per-ip", hourly(units), key::peer())
}

fn all_of_us(units: u64) -> Limit {
    Limit::new("all", hourly(units), key::from_fn(|_| Some(b"all".as_slice().into())))
}

#[test]
fn a_refusal_says_when_to_come_back_and_never_reaches_the_service() {
    let layer = RateLimitLayer::new(Limit::new(
        "per-ip",
        LimitSpec::per(2, std::time::Duration::from_secs(60)),
        key::peer(),
    ));
    let mut service = service(&layer.expect("a limit"));
    assert_eq!(passed(&mut service, 2, || from("192.0.2.1")), 2);
    let refused = ask(&mut service, from("192.0.2.1"));
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(header(&refused, "ratelimit-policy"), r#""per-ip";q=2;w=60"#);
    assert_eq!(header(&refused, "ratelimit"), r#""per-ip";r=0;t=30"#);
    assert_eq!(header(&refused, "retry-after"), "30");
    assert_eq!(text(refused), "too many requests: retry in 30 s\n");
    assert_eq!(service.inner().calls.load(SeqCst), 2);
}

#[test]
fn fields_of_a_pass_are_there_if_asked_for() {
    let layer = |fields: bool| {
        let builder = RateLimitLayer::builder().limit(per_ip(2)).limit(all_of_us(9));
        if fields { builder.fields_on_passes() } else { builder }.open().expect("limits")
    };
    let silent = ask(&mut service(&layer(false)), from("192.0.2.1"));
    assert_eq!(silent.headers().len(), 0);
    let told = ask(&mut service(&layer(true)), from("192.0.2.1"));
    assert_eq!(header(&told, "ratelimit-policy"), r#""per-ip";q=2;w=3600, "all";q=9;w=3600"#);
    assert_eq!(header(&told, "ratelimit"), r#""per-ip";r=1;t=1800, "all";r=8;t=400"#);
    assert_eq!(header(&told, "retry-after"), "");
}

#[test]
fn two_layers_add_to_the_same_lists() {
    let layer = |limit| RateLimitLayer::builder().limit(limit).fields_on_passes().open().expect("a limit");
    let mut service = layer(per_ip(2)).layer(layer(all_of_us(9)).layer(inner(StatusCode::OK)));
    let mut context = Context::from_waker(Waker::noop());
    let future = std::pin::pin!(service.call(from("192.0.2.1")));
    let std::task::Poll::Ready(Ok(answer)) = future.poll(&mut context) else { panic!("it is ready") };
    assert_eq!(answer.headers().get_all("ratelimit").iter().count(), 2);
}

#[test]
fn several_limits_charge_a_request_all_or_none() {
    let layer = RateLimitLayer::builder().limit(per_ip(2)).limit(all_of_us(5)).open().expect("limits");
    let mut service = service(&layer);
    assert_eq!(
        passed(&mut service, 100, || from("192.0.2.1")),
        2,
        "its refusals do not use up what all share"
    );
    assert_eq!(passed(&mut service, 100, || from("192.0.2.2")), 2);
    assert_eq!(passed(&mut service, 100, || from("192.0.2.3")), 1);
    let refused = ask(&mut service, from("192.0.2.4"));
    assert!(header(&refused, "ratelimit").contains(r#""per-ip";r=2"#), "{:?}", refused.headers());
    let counts = layer.counters();
    assert_eq!((counts.conforming, counts.non_conforming), (5, 98 + 98 + 99 + 1));
    let refused_by =
        layer.limits().map(|(name, counters)| (name, counters.non_conforming)).collect::<Vec<_>>();
    assert_eq!(refused_by, [("per-ip", 98 + 98), ("all", 99 + 1)]);
}

#[test]
fn a_ladder_limits_an_address_and_its_networks() {
    let rung = |bits, multiplier| Rung { bits, multiplier };
    let ladder = Ladder::new(&[rung(32, 1), rung(24, 3)], &[rung(64, 1), rung(48, 2)]).expect("a ladder");
    let limit = || Limit::ladder("net", hourly(2), ladder, key::peer());
    let layer = RateLimitLayer::builder().limit(limit()).limit(all_of_us(1_000)).open().expect("limits");
    let mut service = service(&layer);
    let each = (0..10).map(|i| passed(&mut service, 5, || from(&format!("192.0.2.{i}")))).collect::<Vec<_>>();
    assert_eq!(each, [2, 2, 2, 0, 0, 0, 0, 0, 0, 0]);
    let refused = ask(&mut service, from("192.0.2.77"));
    let policies = r#""net/v4/32";q=2;w=3600, "net/v4/24";q=6;w=3600, "all";q=1000;w=3600"#;
    assert_eq!(header(&refused, "ratelimit-policy"), policies);
    let names: Vec<_> = layer.limits().map(|(name, _)| name).collect();
    assert_eq!(names, ["net/v4/32", "net/v4/24", "net/v6/64", "net/v6/48", "all"]);
    let each =
        (0..4).map(|i| passed(&mut service, 5, || from(&format!("2001:db8:0:{i}::")))).collect::<Vec<_>>();
    assert_eq!(each, [2, 2, 0, 0]);
    let refused = ask(&mut service, from("2001:db8:0:9::"));
    assert!(
        header(&refused, "ratelimit-policy").starts_with(r#""net/v6/64";q=2;w=3600, "net/v6/48";q=4;w=3600"#)
    );
}

#[test]
fn a_request_that_the_server_failed_is_given_back() {
    let again = |units| Limit::new("again", hourly(units), key::peer());
    let open = |refunds: bool| {
        let builder = RateLimitLayer::builder().limit(per_ip(3)).limit(all_of_us(100)).limit(again(3));
        if refunds { builder.refund_failures() } else { builder }.open().expect("limits")
    };
    for (refunds, status, wanted) in [
        (false, StatusCode::BAD_GATEWAY, 3),
        (true, StatusCode::BAD_GATEWAY, 50),
        (true, StatusCode::NOT_FOUND, 3),
        (true, StatusCode::OK, 3),
    ] {
        let layer = open(refunds);
        let mut service = layer.layer(inner(status));
        let reached = (0..50).filter(|_| ask(&mut service, from("192.0.2.1")).status() == status).count();
        assert_eq!(reached, wanted, "{status} {refunds}");
    }
    let mut failing = inner(StatusCode::OK);
    failing.headers.insert("grpc-status", HeaderValue::from_static("14"));
    assert_eq!(passed(&mut open(true).layer(failing), 50, || from("192.0.2.1")), 50, "UNAVAILABLE of gRPC");
}

#[test]
fn an_error_of_the_service_is_given_back_too() {
    let layer = RateLimitLayer::builder().limit(per_ip(1)).refund_failures().open().expect("a limit");
    let failing =
        tower::service_fn(|_: Request<()>| std::future::ready(Err::<http::Response<()>, _>("lost")));
    let mut service = layer.layer(failing);
    for _ in 0..9 {
        let mut context = Context::from_waker(Waker::noop());
        let future = std::pin::pin!(service.call(from("192.0.2.1")));
        assert!(matches!(future.poll(&mut context), std::task::Poll::Ready(Err("lost"))));
    }
}

#[test]
fn a_closure_says_what_is_given_back_and_what_a_refusal_looks_like() {
    let layer = RateLimitLayer::builder()
        .limit(per_ip(2))
        .refund_if(|status, _| status != StatusCode::UNAUTHORIZED)
        .on_refusal(|refusal, response| {
            assert!(refusal.decision.is_some_and(|decision| !decision.passes()) && !refusal.grpc);
            *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            *response.body_mut() = format!("by {}", refusal.limit).into();
        })
        .open()
        .expect("a limit");
    let mut right = layer.layer(inner(StatusCode::OK));
    assert_eq!(passed(&mut right, 9, || from("192.0.2.1")), 9);
    let mut wrong = layer.layer(inner(StatusCode::UNAUTHORIZED));
    let answers = [(); 3].map(|()| ask(&mut wrong, from("192.0.2.1")).status().as_u16());
    assert_eq!(answers, [401, 401, 503]);
    assert_eq!(text(ask(&mut wrong, from("192.0.2.1"))), "by per-ip");
}

#[test]
fn shadow_mode_counts_and_refuses_nobody() {
    let keyless = Limit::new("key", hourly(1), key::header(HeaderName::from_static("x-api-key")));
    let builder = RateLimitLayer::builder().limit(per_ip(2)).limit(keyless.without_key(NoKey::Refuse));
    let layer = builder.fields_on_passes().shadow().open().expect("limits");
    let mut service = service(&layer);
    assert_eq!(passed(&mut service, 7, || from("192.0.2.1")), 7);
    let counts = layer.counters();
    assert_eq!((counts.conforming, counts.shadow, counts.non_conforming), (2, 5, 0));
    assert_eq!(layer.without_key().conforming, 7);
}

#[test]
fn clients_are_told_nothing_of_a_shadow_limit() {
    let net = |name| Limit::ladder(name, hourly(2), Ladder::DEFAULT, key::peer());
    let told = |limits: Vec<Limit>, all: bool| {
        let builder =
            limits.into_iter().fold(RateLimitLayer::builder(), |builder, limit| builder.limit(limit));
        let builder = builder.fields_on_passes();
        let mut service = service(&if all { builder.shadow() } else { builder }.open().expect("limits"));
        (0..4).map(move |_| ask(&mut service, from("192.0.2.1"))).collect::<Vec<_>>()
    };
    for alone in [vec![per_ip(2)], vec![per_ip(2), all_of_us(2)], vec![net("net")]] {
        for answer in told(alone, true) {
            assert_eq!(
                (answer.status(), answer.headers().len()),
                (StatusCode::OK, 0),
                "{:?}",
                answer.headers()
            );
        }
    }
    for limits in [vec![per_ip(2).shadow(), all_of_us(3)], vec![net("net").shadow(), all_of_us(3)]] {
        for (i, answer) in told(limits, false).into_iter().enumerate() {
            let (policies, limits) = (header(&answer, "ratelimit-policy"), header(&answer, "ratelimit"));
            assert_eq!(policies, r#""all";q=3;w=3600"#, "{i}");
            assert!(limits.starts_with(r#""all";r="#) && !limits.contains(','), "{i}: {limits}");
        }
    }
}

#[test]
fn one_limit_in_shadow_mode_leaves_the_others() {
    let layer =
        RateLimitLayer::builder().limit(per_ip(1).shadow()).limit(all_of_us(4)).open().expect("limits");
    assert_eq!(passed(&mut service(&layer), 9, || from("192.0.2.1")), 4);
    let counts = layer.limits().map(|(_, counters)| (counters.shadow, counters.non_conforming));
    assert_eq!(counts.collect::<Vec<_>>()[1], (0, 5));
}

#[test]
fn a_grpc_request_gets_resource_exhausted() {
    let call = || with(from("192.0.2.1"), "content-type", b"application/grpc+proto");
    let mut limited = service(&RateLimitLayer::new(per_ip(1)).expect("a limit"));
    assert!(passes(&mut limited, call()));
    let refused = ask(&mut limited, call());
    assert_eq!((refused.status(), header(&refused, "grpc-status")), (StatusCode::OK, "8"));
    assert_eq!(header(&refused, "content-type"), "application/grpc+proto");
    assert_eq!(header(&refused, "grpc-message"), "too many requests: retry in 3600 s");
    assert_eq!(header(&refused, "retry-after"), "3600");
    assert_eq!(text(refused), "");
    let limit = Limit::new("100% key", hourly(1), key::peer()).without_key(NoKey::Refuse);
    let keyless = with(Request::new(()), "content-type", b"application/grpc");
    let refused = ask(&mut service(&RateLimitLayer::new(limit).expect("a limit")), keyless);
    assert_eq!(header(&refused, "grpc-status"), "3");
    assert_eq!(header(&refused, "grpc-message"), "the request has no key for the limit 100%25 key");
}

#[test]
fn the_service_is_ready_when_the_inner_one_is() {
    let layer = RateLimitLayer::new(per_ip(100)).expect("a limit");
    let slow = tower::service_fn(|_: Request<()>| std::future::pending::<Result<http::Response<()>, ()>>());
    let mut service: RateLimit<_> = layer.layer(tower::limit::ConcurrencyLimit::new(slow, 1));
    let mut context = Context::from_waker(Waker::noop());
    assert!(service.poll_ready(&mut context).is_ready());
    let first = service.call(from("192.0.2.1"));
    assert!(service.poll_ready(&mut context).is_pending());
    drop(first);
    assert!(service.poll_ready(&mut context).is_ready());
}

#[test]
fn clones_and_threads_share_one_limit() {
    let layer = RateLimitLayer::new(per_ip(1_000)).expect("a limit");
    let passed: usize = std::thread::scope(|scope| {
        let one = |_| scope.spawn(|| passed(&mut service(&layer.clone()), 1_000, || from("192.0.2.1")));
        let threads: Vec<_> = (0..4).map(one).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
    });
    assert_eq!(passed, 1_000);
    assert_eq!((layer.counters().conforming, layer.counters().non_conforming), (1_000, 3_000));
}

#[test]
fn requests_sweep_the_tables() {
    // So fast that its sweep interval is a second or two.
    let fast = Limit::new("per-ip", LimitSpec::per_second(4_000_000_000).burst(1), key::peer());
    let layer = RateLimitLayer::new(fast.without_key(NoKey::Pass)).expect("a limit");
    let mut service = service(&layer);
    assert!(passes(&mut service, from("192.0.2.1")));
    // Swept, the slot is neither. A request that no limit applies to sweeps too.
    let used = || {
        let table = layer.table("per-ip").expect("the limit").table();
        let stats = table.stats(now_ns(Clock::Monotonic).expect("a clock"));
        stats.live + stats.expired
    };
    let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while used() > 0 {
        assert!(std::time::Instant::now() < until, "nobody sweeps");
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert!(passes(&mut service, Request::new(())));
    }
}

#[test]
fn what_cannot_work_is_refused_by_name() {
    let no = |limits: Vec<Limit>| {
        let builder =
            limits.into_iter().fold(RateLimitLayer::builder(), |builder, limit| builder.limit(limit));
        builder.open().map(drop).expect_err("no layer")
    };
    assert_eq!(no(vec![]), OpenError::NoLimit);
    assert_eq!(no((0..9).map(|_| per_ip(1)).collect()), OpenError::TooManyLimits(9));
    let ladder = || Limit::ladder("net", hourly(1), Ladder::DEFAULT, key::peer());
    assert_eq!(no(vec![ladder(), ladder()]), OpenError::TooManyLimits(10));
    assert_eq!(no(vec![Limit::new("naïve", hourly(1), key::peer())]), OpenError::BadName("naïve".into()));
    let says = |limit: Limit, wanted: &str| {
        let error = no(vec![limit]).to_string();
        assert!(error.contains(wanted), "{error}");
    };
    says(per_ip(0), "limit per-ip: the rate is 0");
    says(per_ip(1).keys(0), "limit per-ip: keys is 0");
    says(per_ip(1).keys(usize::MAX), "limit per-ip: keys is 18446744073709551615");
    says(per_ip(1).keys(1 << 40), "limit per-ip: keys is 1099511627776");
    let fast = |text| LimitSpec::parse(text, 1_000_000_000).expect("a limit");
    says(Limit::new("fast", fast("1000000000/s"), key::peer()), "limit fast: it needs 2000 ms of horizon");
    says(Limit::new("fast", fast("1000000000/s"), key::peer()), "make its burst smaller");
    // There the word has too few bits for the units, whatever its horizon.
    let decay = LimitSpec::decay(1_000_000_000_000, 1_000_000_000);
    says(Limit::new("decay", decay, key::peer()), "more units than the word has bits for");
    // Alone it fits. In the ladder the tiers above it are as much faster, and must fit the same table.
    RateLimitLayer::new(Limit::new("hourly", fast("1000000/h"), key::peer())).expect("it fits alone");
    says(Limit::ladder("hourly", fast("1000000/h"), Ladder::DEFAULT, key::peer()), "768 times");
}

#[test]
fn no_two_limits_have_one_name() {
    let twice = |a, b| {
        RateLimitLayer::builder().limit(a).limit(b).open().map(drop).expect_err("no layer").to_string()
    };
    let rungs = |bits| Ladder::new(&[Rung { bits, multiplier: 1 }], &[Rung { bits: 64, multiplier: 1 }]);
    let net = |bits| Limit::ladder("net", hourly(2), rungs(bits).expect("a ladder"), key::peer());
    for error in [
        twice(per_ip(1), per_ip(2)),
        twice(net(32), net(24)),
        twice(net(32), Limit::new("net", hourly(1), key::path())),
        twice(net(32), Limit::new("net/v4/32", hourly(1), key::path())),
    ] {
        assert!(error.contains("two limits have the name"), "{error}");
    }
}

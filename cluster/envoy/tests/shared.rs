//! Services that share their limits through a redis-server of the test's own.

mod common;

use common::{refused, request, Client, Redis, Rules, PROGRAM};
use tatcell_ratelimit::api::{Override, Unit};

const RULES: &str = "
domain: edge
descriptors:
  - key: user
    rate_limit: {unit: hour, requests_per_unit: 6}
  - key: tenant
    rate_limit: {unit: year, requests_per_unit: 400}
  - key: plan
    rate_limit: {unit: day, requests_per_unit: 400}
";

#[test]
fn two_services_pass_together_what_one_would_and_take_new_rules() {
    let Some(redis) = Redis::start_or_skip(&[]) else { return };
    let url = redis.url();
    let store = ["--store", &url, "--nodes", "2", "--keys", "1000", "--store-wait", "5s"];
    let rules = Rules::new(RULES);
    let name = format!("/tatcell-ratelimit-shared-{}", std::process::id());
    let text = std::ffi::CString::new(name.clone()).expect("a name");
    let counts = || tatcell::host::ReadOnlyCounters::attach(&text).expect("counters").sum();
    let more = [&["--headers", "true", "--counters", &name][..], &["--headers", "true"]];
    let servers = more.map(|more| rules.start(&[&store[..], more].concat()));
    let clients = servers.each_ref().map(|server| Client::to(&server.address));
    let passed = |descriptor: &str, asked: usize| {
        (0..asked).filter(|i| clients[i % 2].left("edge", &[descriptor]).0).count()
    };
    assert_eq!(passed("user=a", 30), 6);
    let tenants = passed("tenant=a", 1_000);
    println!("{tenants} of 400 passed");
    assert!((280..=400).contains(&tenants), "{tenants}");
    // A limit of a descriptor that the store does not have leaves the rule's; hits that are given back are counted.
    let mut asked = request("edge", &["user=c", "tenant=c"]);
    asked.descriptors[0].limit = Some(Override { requests_per_unit: 9, unit: Unit::Hour.into() });
    (asked.descriptors[1].is_negative_hits, asked.descriptors[1].hits_addend) = (true, Some(7));
    let answer = clients[1].ask(asked).expect("an answer");
    let limits: Vec<u32> =
        answer.statuses.iter().flat_map(|of| &of.current_limit).map(|of| of.requests_per_unit).collect();
    assert_eq!((answer.overall_code, limits), (1, vec![6, 400]));
    let counted = |name: &str| servers[1].metric(&format!("tatcell_ratelimit_{name}_total"));
    assert_eq!((counted("unkept_overrides"), counted("returned"), counted("unreturned")), (1, 0, 7));
    // Of an accepted request only the limit is known, and of a refused one also how long it must wait.
    let told = |descriptor: &str| {
        let answer = clients[0].ask(request("edge", &[descriptor])).expect("an answer");
        let keys: Vec<String> = answer.response_headers_to_add.into_iter().map(|header| header.key).collect();
        (answer.overall_code, answer.statuses[0].duration_until_reset.is_some(), keys.join(" "))
    };
    assert_eq!(told("tenant=b"), (1, false, "ratelimit-limit".to_owned()));
    assert_eq!(told("user=a"), (2, true, "ratelimit-limit ratelimit-remaining ratelimit-reset".to_owned()));
    // A node gives back what it still holds: once it holds more than it was asked for, the next unit is of that.
    let holds = || clients[1].left("edge", &["plan=d"]).1[0];
    assert!((0..100).any(|_| holds() > 0), "no piece of more than a unit");
    holds();
    let mut asked = request("edge", &["plan=d"]);
    (asked.descriptors[0].is_negative_hits, asked.descriptors[0].hits_addend) = (true, Some(2));
    assert_eq!(clients[1].ask(asked).expect("an answer").overall_code, 1);
    let given = counted("returned");
    assert!((1..=2).contains(&given) && counted("unreturned") == 9 - given, "{given} of 2");
    // A limit that a proxy sends shares nothing with a rule of the same number.
    let mut asked = request("edge", &["user=e", "user=e"]);
    asked.descriptors[1].limit = Some(Override { requests_per_unit: 6, unit: Unit::Hour.into() });
    let ask = || clients[0].ask(asked.clone()).expect("an answer").overall_code;
    assert_eq!((0..10).filter(|_| ask() == 1).count(), 6);
    // The page lists the rules; what a key has left the store knows.
    let page = |target: &str| common::http(&servers[0].metrics, target);
    let (list, key) = (page("/json"), page("/json?domain=edge&user=a"));
    assert!(list.0.contains(" 200 ") && list.1.contains("\"rule\": \"tenant\""), "{list:?}");
    assert!(key.0.contains(" 501 ") && key.1.contains("the store knows the key"), "{key:?}");
    // A limit that the cluster does not have yet: the node is opened anew.
    rules.write(&RULES.replace("requests_per_unit: 6", "requests_per_unit: 7"));
    for server in &servers {
        server.signal(libc::SIGHUP);
        server.line_with("the rules were reloaded");
    }
    assert_eq!(passed("user=b", 30), 7);
    let answer = clients[0].ask(request("edge", &["user=c"])).expect("an answer");
    assert_eq!(answer.statuses[0].current_limit.as_ref().map(|limit| limit.requests_per_unit), Some(7));
    // The node that the reload has opened goes on counting.
    let before = counts();
    assert!(before.conforming > 100 && before.non_conforming > 10, "{before:?}");
    assert!(clients[0].left("edge", &["user=new"]).0);
    let [first, _] = servers;
    first.signal(libc::SIGTERM);
    first.ended();
    let after = counts();
    assert!(after.conforming > before.conforming, "{before:?} {after:?}");
    tatcell::host::unlink(&text).expect("a name");
}

#[test]
fn a_limit_that_no_store_can_keep_is_refused_at_the_start() {
    let rules =
        Rules::new(&RULES.replace("hour, requests_per_unit: 6", "second, requests_per_unit: 2000000000"));
    let said =
        refused(PROGRAM, &["--rules", &rules.path(), "--store", "redis://127.0.0.1:1/", "--nodes", "2"]);
    assert!(said.contains("1e9"), "{said}");
    // Tables keep it.
    let said = rules.start(&[]);
    assert_eq!(Client::to(&said.address).left("edge", &["user=a"]), (true, vec![1_999_999_999]));
}

#[test]
fn a_store_that_is_silent_is_unavailable_and_then_a_refusal() {
    let Some(redis) = Redis::start_or_skip(&[]) else { return };
    let rules = Rules::new(RULES);
    let server =
        rules.start(&["--store", &redis.url(), "--nodes", "2", "--keys", "1000", "--store-wait", "30ms"]);
    let client = Client::to(&server.address);
    redis.signal(libc::SIGSTOP);
    let (mut unavailable, mut over) = (0, 0);
    let begun = std::time::Instant::now();
    while unavailable == 0 || over == 0 || begun.elapsed() < std::time::Duration::from_secs(1) {
        assert!(begun.elapsed() < common::PATIENCE, "{unavailable} unavailable, {over} over");
        match client.ask(request("edge", &["user=a"])) {
            Ok(response) => {
                assert_eq!(response.overall_code, 2, "it passed");
                over += 1;
            }
            Err(status) => {
                assert_eq!(status.code(), tonic::Code::Unavailable);
                unavailable += 1;
            }
        }
    }
    redis.signal(libc::SIGCONT);
    println!("{unavailable} unavailable, {over} over");
    assert_eq!(server.metric("tatcell_ratelimit_undecided_total"), unavailable);
}

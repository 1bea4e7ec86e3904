//! Services that share their limits through a redis-server of the test's own.

mod common;

use common::{request, Client, Redis, Rules};
use tatcell_ratelimit::api::{Override, Unit};

const RULES: &str = "
domain: edge
descriptors:
  - key: user
    rate_limit: {unit: hour, requests_per_unit: 6}
  - key: tenant
    rate_limit: {unit: year, requests_per_unit: 400}
";

#[test]
fn two_services_pass_together_what_one_would_and_take_new_rules() {
    let Some(redis) = Redis::start_or_skip(&[]) else { return };
    let url = redis.url();
    let store = ["--store", &url, "--nodes", "2", "--keys", "1000", "--store-wait", "5s"];
    let rules = Rules::new("shared", RULES);
    let servers = [(); 2].map(|()| rules.start(&store));
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
    // A limit that the cluster does not have yet: the node is opened anew.
    rules.write(&RULES.replace("requests_per_unit: 6", "requests_per_unit: 7"));
    for server in &servers {
        server.signal(libc::SIGHUP);
        server.line_with("the rules were reloaded");
    }
    assert_eq!(passed("user=b", 30), 7);
    let answer = clients[0].ask(request("edge", &["user=c"])).expect("an answer");
    assert_eq!(answer.statuses[0].current_limit.as_ref().map(|limit| limit.requests_per_unit), Some(7));
}

#[test]
fn a_store_that_is_silent_is_unavailable_and_then_a_refusal() {
    let Some(redis) = Redis::start_or_skip(&[]) else { return };
    let rules = Rules::new("silent", RULES);
    let server =
        rules.start(&["--store", &redis.url(), "--nodes", "2", "--keys", "1000", "--store-wait", "30ms"]);
    let client = Client::to(&server.address);
    redis.signal(libc::SIGSTOP);
    let (mut unavailable, mut over) = (0, 0);
    let begun = std::time::Instant::now();
    while begun.elapsed() < std::time::Duration::from_secs(1) {
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
    assert!(unavailable > 0 && over > 0);
    assert_eq!(server.metric("tatcell_ratelimit_undecided_total"), unavailable);
}

//! Many requests at once over several connections: each is answered, and each key passes its limit exactly.
//! `cargo test -p tatcell-ratelimit --test load -- --nocapture` prints what a request takes.

mod common;

use std::time::{Duration, Instant};

use common::{ask, request, Random, Rules};
use tonic::transport::Endpoint;

const RULES: &str = "
domain: edge
descriptors:
  - key: user
    rate_limit: {unit: day, requests_per_unit: 20}
";

/// Users, each of whom passes twenty times: more is asked for.
const USERS: u64 = 20;

/// Connections, and how long each row takes. Every connection has the same number of requests under way.
const CONNECTIONS: usize = 4;
const TIME: Duration = Duration::from_secs(2);

#[test]
fn connections_side_by_side_pass_each_key_its_limit_to_the_unit() {
    for at_once in [1, 16] {
        let rules = Rules::new(RULES);
        let server = rules.start(&[]);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let before = server.cpu();
        let begun = Instant::now();
        // However busy the machine is: enough that all users use up what they have.
        let least = 100 * USERS as usize / (CONNECTIONS * at_once);
        let (mut took, passed) = runtime.block_on(async {
            let mut tasks = tokio::task::JoinSet::new();
            for connection in 0..CONNECTIONS {
                let endpoint =
                    Endpoint::from_shared(format!("http://{}", server.address)).expect("an address");
                let channel = endpoint.connect().await.expect("a connection");
                for task in 0..at_once {
                    let (channel, mut random) =
                        (channel.clone(), Random((connection * at_once + task) as u64));
                    tasks.spawn(async move {
                        let (mut took, mut passed) = (Vec::new(), 0);
                        while begun.elapsed() < TIME || took.len() < least {
                            let user = format!("user=u{}", random.below(USERS));
                            let asked = Instant::now();
                            let answer =
                                ask(channel.clone(), request("edge", &[&user])).await.expect("an answer");
                            took.push(asked.elapsed());
                            passed += u64::from(answer.overall_code == 1);
                        }
                        (took, passed)
                    });
                }
            }
            let (mut all, mut passed) = (Vec::new(), 0);
            while let Some(done) = tasks.join_next().await {
                let (took, more): (Vec<Duration>, u64) = done.expect("a task");
                all.extend(took);
                passed += more;
            }
            (all, passed)
        });
        let (seconds, cpu) = (begun.elapsed().as_secs_f64(), server.cpu() - before);
        took.sort_unstable();
        let at = |mille: usize| took[(took.len() - 1) * mille / 1_000].as_micros();
        println!(
            "{CONNECTIONS} connections, {at_once} at once on each: {:.0} requests/s, p50 {} us, p99 {} us, \
             {:.1} us of the server's processor a request",
            took.len() as f64 / seconds,
            at(500),
            at(990),
            cpu.as_secs_f64() * 1e6 / took.len() as f64
        );
        // Nothing comes back: a user's unit takes more than an hour.
        assert_eq!(passed, 20 * USERS, "of {} requests", took.len());
        let hits = |outcome: &str| {
            let labels = format!("domain=\"edge\",rule=\"user\",outcome=\"{outcome}\"");
            server.metric(&format!("tatcell_ratelimit_hits_total{{{labels}}}"))
        };
        assert_eq!((hits("within"), hits("over")), (20 * USERS, took.len() as u64 - 20 * USERS));
    }
}

//! Tasks that wait for the store on one thread.

mod common;

use std::time::{Duration, Instant};

use common::server_or_skip;
use tatcell_cluster::{Cluster, SharedLimit, Verdict};

const SECOND: Duration = Duration::from_secs(1);

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime")
}

#[test]
fn tasks_pass_exactly_the_burst_and_wait_side_by_side() {
    let Some(server) = server_or_skip(&[]) else { return };
    // A unit in a minute, so nothing comes while the test runs; strict, so each request is a call.
    let limit = SharedLimit::new("x", 1, 60 * SECOND, 7).reserve(0, 0);
    // However busy the machine is: the server answers within this.
    let node = Cluster::builder(&server.url(), 1).limit(limit).timeout(10 * SECOND).keys(64).log(|_| {});
    let node = node.open().expect("a node");
    let (node, passed) =
        (std::sync::Arc::new(node), std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0)));
    let x = node.limit("x").expect("it");
    runtime().block_on(async {
        let tasks: Vec<_> = (0..7)
            .map(|_| {
                let (node, passed) = (node.clone(), passed.clone());
                tokio::spawn(async move {
                    if node.acquire_async(x, b"k", 1, 10 * SECOND).await.passes() {
                        passed.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.expect("a task");
        }
        assert!(matches!(node.acquire_async(x, b"k", 1, 10 * SECOND).await, Verdict::Deny { .. }));
    });
    assert_eq!(passed.load(std::sync::atomic::Ordering::Relaxed), 7);
}

#[test]
fn a_task_ends_with_its_timeout_and_what_it_left_is_given_back() {
    let Some(server) = server_or_skip(&[]) else { return };
    let limit = SharedLimit::new("x", 1, 60 * SECOND, 7).reserve(0, 0);
    let node = Cluster::builder(&server.url(), 1).limit(limit).timeout(30 * SECOND).keys(64).log(|_| {});
    let node = node.open().expect("a node");
    let x = node.limit("x").expect("it");
    runtime().block_on(async {
        server.stop();
        let begun = Instant::now();
        assert_eq!(node.acquire_async(x, b"k", 5, SECOND / 10).await, Verdict::Pending);
        assert!(begun.elapsed() < 10 * SECOND);
        server.go_on();
        let begun = Instant::now();
        while node.metrics().given_back < 5 {
            assert!(begun.elapsed() < 30 * SECOND, "{:?}", node.metrics());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(
            node.acquire_async(x, b"k", 7, 10 * SECOND).await,
            Verdict::Pass,
            "all of the burst is there"
        );
    });
}

//! Nodes under load, and the audit of all that they admit.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tatcell_cluster::{Builder, Cluster, Completion, SharedLimit, Verdict};

use super::audit::{Audit, Found, HAIR};
use super::Random;

pub const SECOND: Duration = Duration::from_secs(1);

/// Opens a node. On a busy machine a server may take longer to answer than a node waits, so a few times.
pub fn node(url: &str, nodes: u32, limit: SharedLimit, with: impl Fn(Builder) -> Builder) -> Cluster {
    let open = || {
        let builder = Cluster::builder(url, nodes).limit(limit.clone()).keys(4_096).log(|_| {});
        with(builder.slot_ttl(Duration::from_millis(300))).open()
    };
    (0..5).find_map(|_| open().ok()).unwrap_or_else(|| open().expect("a node"))
}

/// However busy the machine is: a server that is there answers in time.
pub fn patient(builder: Builder) -> Builder {
    builder.timeout(10 * SECOND)
}

/// What workers ask for.
#[derive(Clone, Copy)]
pub struct Load {
    pub keys: u64,
    /// The first keys more often than the others: by the logarithm.
    pub zipf: bool,
    pub largest_cost: u64,
    pub pause: Duration,
}

pub const HOT: Load = Load { keys: 1, zipf: false, largest_cost: 1, pause: Duration::from_micros(20) };

/// Asks until `stop`, and notes what passed; answers that come later are noted by their own reading.
fn work(node: &Cluster, worker: u64, load: Load, stop: &AtomicBool) -> Audit {
    let limit = node.limit("x").expect("the limit");
    let (mut audit, mut random, mut answers) = (Audit::default(), Random(worker), Vec::new());
    // Of those that wait: the key, the cost, and when it was asked for.
    let mut waits: Vec<(u32, u64, u64)> = Vec::new();
    let mut open = 0;
    let note =
        |audit: &mut Audit, waits: &[(u32, u64, u64)], answers: &mut Vec<Completion>, open: &mut usize| {
            *open -= answers.len();
            for answer in answers.drain(..).filter(|a| a.verdict.passes()) {
                let (key, cost, asked) = waits[(answer.token & 0xffff_ffff) as usize];
                assert_eq!(answer.token >> 32, worker, "another worker's answer");
                audit.add_between(key, asked, answer.reading, cost);
            }
        };
    // One worker of a node drains, so only that one waits.
    let drains = worker.is_multiple_of(2);
    while !stop.load(Ordering::Relaxed) {
        let key = match load.zipf {
            true => (load.keys as f64).powf(random.below(1 << 30) as f64 / (1u64 << 30) as f64) as u64 - 1,
            false => random.below(load.keys),
        };
        let (key, cost) = (key as u32, 1 + random.below(load.largest_cost));
        let reading = node.now();
        match node.check_at(limit, &key.to_le_bytes(), cost, reading) {
            Verdict::Pass => audit.add(key, reading, cost),
            Verdict::Pending if drains => {
                let before = node.now();
                waits.push((key, cost, before));
                let token = worker << 32 | (waits.len() as u64 - 1);
                match node.submit(limit, &key.to_le_bytes(), cost, token) {
                    Verdict::Pass => audit.add(key, before, cost),
                    Verdict::Pending => open += 1,
                    _ => {}
                }
            }
            _ => {}
        }
        if drains {
            node.drain(&mut answers);
            note(&mut audit, &waits, &mut answers, &mut open);
        }
        std::thread::sleep(load.pause);
    }
    // Each is answered, however late: one that is left would come to the next load of this node.
    while open > 0 {
        std::thread::sleep(Duration::from_millis(1));
        node.drain(&mut answers);
        note(&mut audit, &waits, &mut answers, &mut open);
    }
    audit
}

/// Ends the workers, also where a test has failed.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs two workers a node for a time, while `meanwhile` runs.
pub fn play(nodes: &[Cluster], load: Load, time: Duration, meanwhile: impl FnOnce()) -> Audit {
    let stop = AtomicBool::new(false);
    let mut all = Audit::default();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..nodes.len() * 2)
            .map(|worker| {
                let (node, stop) = (&nodes[worker / 2], &stop);
                scope.spawn(move || work(node, worker as u64, load, stop))
            })
            .collect();
        let (end, ending) = (Instant::now() + time, Ending(&stop));
        meanwhile();
        std::thread::sleep(end.saturating_duration_since(Instant::now()));
        drop(ending);
        workers.into_iter().for_each(|w| all.join(w.join().expect("a worker")));
    });
    all
}

/// Plays rounds until one is not short of what it must admit. Every round keeps the bound. A busy machine gets more
/// rounds; a node that stalls stays short in all of them.
pub fn patiently(mut round: impl FnMut() -> Found, enough: impl Fn(&Found) -> bool) -> Found {
    for _ in 0..10 {
        let found = round();
        within(&found);
        if enough(&found) {
            return found;
        }
    }
    panic!("too little is admitted, ten times");
}

pub fn within(found: &Found) {
    println!("{found:?}");
    assert!(found.excess <= HAIR, "above R w + B: {found:?}");
}

//! Measures what calls cost a store, and decisions a node: calls per second and round trips by how many go at once, the
//! server's processor time per call, bytes per key, the processor time of a decision by path; and CL.THROTTLE if the
//! server has redis-cell. It leaves keys that expire by themselves, so give it a server of its own.
//!
//! `cargo run --release -p tatcell-cluster --example store_cost -- redis://127.0.0.1:6379/`

use std::error::Error;
use std::time::{Duration, Instant};

use redis::{Cmd, Connection, Value};
use tatcell_cluster::script::{grant, Ask, By};
use tatcell_cluster::{Cluster, LimitId, SharedLimit};

const SECOND: Duration = Duration::from_secs(1);
const KEYS: u64 = 100_000;
const CALLS: usize = 60_000;

fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).ok_or("give the URL of a store: redis://127.0.0.1:6379/")?;
    let mut connection = redis::Client::open(url.as_str())?.get_connection()?;
    let limit = SharedLimit::new("cost", 100, SECOND, 100).reserve(0, 0);
    let split = limit.split(1, Duration::from_millis(4))?;
    let name = |i: u64| format!("cost:0123456789abcdef{{}}:{:012x}", i % KEYS).into_bytes();
    let ask = |i: u64| grant(By::Digest, &name(i), &split, &Ask { want: 4, min: 1, ..Ask::default() });
    let refused =
        |i: u64| grant(By::Digest, &name(i % 8), &split, &Ask { want: 88, min: 88, ..Ask::default() });
    let throttle = |i: u64| {
        redis::cmd("CL.THROTTLE")
            .arg(format!("cell:{:032x}", i % KEYS))
            .arg(99)
            .arg(6_000)
            .arg(60)
            .arg(1)
            .to_owned()
    };
    grant(By::Text, b"cost:first", &split, &Ask { want: 1, min: 1, ..Ask::default() })
        .query::<Value>(&mut connection)?;

    let before = info(&mut connection, "used_memory")?;
    let hour = SharedLimit::new("cost", 10, 3_600 * SECOND, 100).reserve(0, 0);
    let hour = hour.split(1, Duration::from_millis(4))?;
    let stays = |i: u64| grant(By::Digest, &name(i), &hour, &Ask { want: 8, min: 1, ..Ask::default() });
    timed(&mut connection, 64, KEYS as usize, &stays)?;
    let bytes = (info(&mut connection, "used_memory")? - before) / KEYS as f64;
    println!("{bytes:.0} bytes a key of 37 bytes");

    let module = throttle(0).query::<Value>(&mut connection);
    if let Err(error) = &module {
        println!("CL.THROTTLE is left out: {error}");
    }
    let module = module.is_ok();
    for (what, of, there) in [
        ("grant", &ask as &dyn Fn(u64) -> Cmd, true),
        ("refusal", &refused, true),
        ("CL.THROTTLE", &throttle, module),
    ] {
        for depth in [1, 8, 64] {
            if there {
                let said = timed(&mut connection, depth, CALLS, of)?;
                println!("{what:12} {depth:2} at once: {said}");
            } else {
                println!("{what:12} {depth:2} at once: the server has no redis-cell");
            }
        }
    }
    node(&url)
}

/// Makes calls of one kind, `depth` at once: how many per second, how long one took, and what it cost the server.
fn timed(
    connection: &mut Connection,
    depth: usize,
    calls: usize,
    of: &dyn Fn(u64) -> Cmd,
) -> Result<String, Box<dyn Error>> {
    let cpu = |connection: &mut Connection| -> Result<f64, Box<dyn Error>> {
        Ok(info(connection, "used_cpu_user")? + info(connection, "used_cpu_sys")?)
    };
    let (before, begun) = (cpu(connection)?, Instant::now());
    let mut trips = Vec::new();
    for batch in 0..calls / depth {
        let mut pipe = redis::pipe();
        for i in 0..depth {
            pipe.add_command(of((batch * depth + i) as u64));
        }
        let sent = Instant::now();
        pipe.query::<Vec<Value>>(connection)?;
        trips.push(sent.elapsed());
    }
    let (seconds, cpu) = (begun.elapsed().as_secs_f64(), cpu(connection)? - before);
    trips.sort_unstable();
    let at = |mille: usize| trips[(trips.len() - 1) * mille / 1_000].as_micros();
    Ok(format!(
        "{:.1} k/s, p50/p99 {}/{} us, {:.1} us of the server's processor a call",
        calls as f64 / seconds / 1e3,
        at(500),
        at(990),
        cpu / calls as f64 * 1e6
    ))
}

fn info(connection: &mut Connection, name: &str) -> Result<f64, Box<dyn Error>> {
    let info: String = redis::cmd("INFO").query(connection)?;
    let field = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    Ok(field.ok_or("INFO lacks a line")?.parse()?)
}

/// Measures the processor time of a decision on each path: a leased hot key, cold keys from the reserve, a key that the
/// store has refused.
fn node(url: &str) -> Result<(), Box<dyn Error>> {
    let limits = [
        SharedLimit::new("leased", 500_000_000, SECOND, 500_000_000).reserve(0, 0),
        SharedLimit::new("cold", 100, SECOND, 100).reserve(900, 900),
        SharedLimit::new("refused", 1, 3_600 * SECOND, 9).reserve(0, 0),
    ];
    let builder = Cluster::builder(url, 1).keys(200_000).slot_ttl(Duration::from_millis(500));
    let node = limits.into_iter().fold(builder, |builder, limit| builder.limit(limit)).open()?;
    let id = |name: &str| node.limit(name).ok_or("a limit");
    while !node.metrics().reserve_held {
        std::thread::sleep(Duration::from_millis(10));
    }
    let warm = |limit: LimitId| {
        for _ in 0..200 {
            let _ = node.acquire(limit, b"hot", 1, SECOND);
        }
    };
    warm(id("leased")?);
    warm(id("refused")?);
    for (name, keys) in [("leased", 1), ("cold", 100_000u64), ("refused", 1)] {
        let limit = id(name)?;
        let (begun, mut passed) = (cpu_ns()?, 0u64);
        const DECISIONS: u64 = 2_000_000;
        for i in 0..DECISIONS {
            let key = if keys == 1 { *b"hot\0\0\0\0\0" } else { (i % keys).to_le_bytes() };
            let key = if keys == 1 { &key[..3] } else { &key[..] };
            passed += u64::from(node.check_at(limit, key, 1, node.now()).passes());
        }
        let each = (cpu_ns()? - begun) as f64 / DECISIONS as f64;
        println!("{name:8} {each:.1} ns of processor time a decision, clock included, {passed} of {DECISIONS} passed");
    }
    Ok(())
}

/// Returns the processor time of this thread.
fn cpu_ns() -> Result<u64, Box<dyn Error>> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(text.split(' ').next().ok_or("no number")?.parse()?)
}

//! Clients by others: redis-cli, the redis crate, redis-py, ioredis; and redis-cell itself, which gets the same calls.

mod common;

use std::collections::HashMap;
use std::process::Command;
use std::time::{Duration, Instant};

use common::{python_or_skip, skip, Client, Random, Redis, Reply, Server};

type Five = (i64, i64, i64, i64, i64);

#[test]
fn redis_cli_prints_what_redis_cell_prints() {
    let server = Server::start(&[]);
    let call = |words: &str| {
        let cli = Command::new("redis-cli").args(["-p", server.port()]).args(words.split(' ')).output();
        cli.ok().map(|output| String::from_utf8(output.stdout).expect("text"))
    };
    let Some(printed) = call("CL.THROTTLE user123 15 30 60 1") else {
        return skip("no redis-cli; apt-get install redis-tools");
    };
    assert_eq!(printed, "0\n16\n15\n-1\n2\n");
    assert_eq!(call("PING").as_deref(), Some("PONG\n"));
    assert!(call("INFO").is_some_and(|text| text.contains("throttle_decided:1")));
    assert_eq!(call("-3 CL.THROTTLE user124 15 30 60 1").as_deref(), Some("0\n16\n15\n-1\n2\n"));
}

#[test]
fn the_redis_crate_connects_calls_and_pipelines() {
    for protocol in ["", "?protocol=resp3"] {
        let server = Server::start(&[]);
        let client = redis::Client::open(format!("redis://{}/{protocol}", server.address)).expect("a URL");
        let mut connection = client.get_connection().expect("a connection");
        let call = |key| redis::cmd("CL.THROTTLE").arg(key).arg(15).arg(30).arg(60).clone();
        assert_eq!(call("user123").query::<Five>(&mut connection).expect("five"), (0, 16, 15, -1, 2));
        let mut pipe = redis::pipe();
        for _ in 0..17 {
            pipe.add_command(call("user124"));
        }
        let replies: Vec<Five> = pipe.query(&mut connection).expect("replies");
        let passed = replies.iter().map(|reply| reply.0).collect::<Vec<_>>();
        assert_eq!(passed, [vec![0; 16], vec![1]].concat());
        assert_eq!(replies[16], (1, 16, 0, 2, 32));
        let wrong = redis::cmd("CL.THROTTLE").arg("k").query::<Five>(&mut connection).expect_err("an error");
        assert!(wrong.to_string().contains("Usage"), "{wrong}");
    }
}

const PYTHON: &str = "
import sys, redis
for protocol in (2, 3):
    client = redis.Redis(host='127.0.0.1', port=int(sys.argv[1]), protocol=protocol)
    assert client.ping()
    key = f'python{protocol}'
    assert client.execute_command('CL.THROTTLE', key, 15, 30, 60) == [0, 16, 15, -1, 2]
    pipe = client.pipeline(transaction=False)
    for _ in range(17):
        pipe.execute_command('CL.THROTTLE', key + 'p', 15, 30, 60)
    assert [reply[0] for reply in pipe.execute()] == [0] * 16 + [1]
    # The default pipeline is a transaction.
    pipe = client.pipeline()
    pipe.execute_command('CL.THROTTLE', key + 't', 15, 30, 60)
    pipe.execute_command('CL.THROTTLE', key + 't', 15, 30, 60)
    assert [reply[2] for reply in pipe.execute()] == [15, 14]
    assert client.info()['tatcell_version']
    try:
        client.execute_command('CL.THROTTLE', key)
        raise SystemExit('no error')
    except redis.exceptions.ResponseError as error:
        assert 'Usage' in str(error), error
print('fine', redis.__version__)
";

#[test]
fn redis_py_connects_calls_and_pipelines() {
    let Some(python) = python_or_skip("redis") else { return };
    let server = Server::start(&[]);
    let output = Command::new(&python).args(["-c", PYTHON, server.port()]).output().expect("python");
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    println!("{said}");
    assert!(output.status.success() && said.starts_with("fine"), "{said}");
}

const NODE: &str = "
const [, module, port] = process.argv;
const Redis = require(module);
const client = new Redis({ port: Number(port), retryStrategy: null });
const call = (of, key) => of.call('CL.THROTTLE', key, 15, 30, 60, 1);
const told = (name, got, wanted) => {
    got = JSON.stringify(got);
    if (got !== wanted) throw new Error(`${name}: ${got}, not ${wanted}`);
};
(async () => {
    told('a call', await call(client, 'a'), '[0,16,15,-1,2]');
    const batch = await call(call(client.multi(), 'b'), 'b').exec();
    told('multi', batch, '[[null,[0,16,15,-1,2]],[null,[0,16,14,-1,4]]]');
    const pipeline = await call(call(client.pipeline(), 'c'), 'c').exec();
    told('pipeline', pipeline, '[[null,[0,16,15,-1,2]],[null,[0,16,14,-1,4]]]');
    told('unlink', await client.unlink('b', 'x'), '1');
    console.log('fine');
    client.disconnect();
})().catch(error => { console.error(error); process.exit(1); });
";

#[test]
fn ioredis_connects_calls_and_sends_batches() {
    let Ok(module) = std::env::var("TATCELL_IOREDIS") else {
        return skip("npm install ioredis, and name its folder in TATCELL_IOREDIS; it needs node");
    };
    let server = Server::start(&[]);
    let output = Command::new("node").args(["-e", NODE, &module, server.port()]).output().expect("node");
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    println!("{said}");
    assert!(output.status.success() && said.starts_with("fine"), "{said}");
}

/// Calls that redis-cell is asked, too.
const CALLS: i32 = 20_000;

/// Seconds of a unit: a whole number of ticks of the coarsest table, so that neither side rounds it; and so many that
/// limits of 1 to 30 units are all in that table, because in another one a key starts full.
const UNIT_S: u64 = 36_864_000;

/// A tick of that table is 2^20 ns; readings are cut to it.
const TABLE_TICK: Duration = Duration::from_millis(2);

#[test]
fn replies_are_equal_to_those_of_redis_cell_itself() {
    let Ok(path) = std::env::var("TATCELL_REDIS_CELL") else {
        return skip("name its module (libredis_cell.so) in TATCELL_REDIS_CELL");
    };
    let Some(module) = Redis::start_or_skip(&["--loadmodule", &path]) else { return };
    let server = Server::start(&[]);
    let (mut ours, mut theirs) = (server.connect(), Client::to(&format!("127.0.0.1:{}", module.1)));
    let (mut random, mut limited, mut doubtful) = (Random(5), 0, 0);
    // Its older releases cut seconds down that the newer ones and this server round up: of a million, some of the first
    // of which has passed.
    drop(theirs.say("CL.THROTTLE probe 0 1 1000000"));
    let Reply::Array(probe) = theirs.say("CL.THROTTLE probe 0 1 1000000 0") else { panic!("no answer") };
    let cuts = probe[4] == Reply::Number(999_999);
    assert!(cuts || probe[4] == Reply::Number(1_000_000), "{probe:?}");
    // Since when each key owes: between these two moments, at both servers.
    let mut since: HashMap<u64, (Duration, Duration)> = HashMap::new();
    let begun = Instant::now();
    for _ in 0..CALLS {
        // Periods so long that no unit comes back while the test runs; a unit's time is one that a table keeps exactly.
        let count = [1, 2, 4, 5, 8, 10][random.below(6) as usize];
        let burst = [0, 3, 15, 29][random.below(4) as usize];
        let (key, period) = (random.below(200), count * UNIT_S);
        let up_to = [40, 4, 4, 4][random.below(4) as usize];
        let quantity = random.below(up_to);
        let call = format!("CL.THROTTLE k{key} {burst} {count} {period} {quantity}");
        let before = begun.elapsed();
        let (here, there) = (ours.say(&call), theirs.say(&call));
        let after = begun.elapsed();
        let (Reply::Array(a), Reply::Array(b)) = (&here, &there) else {
            panic!("{call}: {here:?}, {there:?}")
        };
        limited += i64::from(a[0] == Reply::Number(1));
        assert_eq!(a[..3], b[..3], "{call}");
        // What is owed is whole seconds less the time that has passed since. Where that is sure to lie between two
        // whole seconds, the numbers are one apart if theirs are cut, and equal if not; in doubt one more aside.
        let apart = |i: usize| match (&a[i], &b[i]) {
            (Reply::Number(x @ 1..), Reply::Number(y @ 1..)) => Some(x - y),
            (x, y) => {
                assert_eq!(x, y, "{call}");
                None
            }
        };
        let cut = i64::from(cuts);
        let allowed = match since.get(&key) {
            // The first unit: no time has passed, and nothing is there to cut.
            None => 0..=0,
            Some((from, to)) => {
                let least = before.saturating_sub(*to + TABLE_TICK).as_secs();
                let most = (after + TABLE_TICK).saturating_sub(*from).as_secs();
                doubtful += i32::from(least != most);
                cut - i64::from(least != most)..=cut + i64::from(least != most)
            }
        };
        for i in [3, 4] {
            let near = apart(i).is_none_or(|apart| allowed.contains(&apart));
            assert!(near, "{call}: {here:?}, {there:?}, {allowed:?}");
        }
        if b[4] != Reply::Number(0) {
            since.entry(key).or_insert((before, after));
        }
    }
    println!("{CALLS} calls, {limited} limited, {doubtful} at the turn of a second");
    assert!(limited > 1_000 && doubtful < CALLS / 4);
}

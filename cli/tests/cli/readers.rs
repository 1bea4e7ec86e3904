//! Each format: what its reader makes of lines and packets as programs write them.

use std::io::{Cursor, Write};

use tatcell_cli::input::{Format, How, Input, Next};
use tatcell_cli::record::{Record, Wants};

/// A record as the tests write it: time in nanoseconds, cost, values.
type Read = (u64, u64, Vec<String>);

fn open(bytes: &[u8], how: &How) -> Input {
    Input::new("log", Box::new(Cursor::new(bytes.to_vec())), how).expect("an input")
}

fn wants(fields: &[&str], cost: Option<&str>) -> Wants {
    let fields = fields.iter().map(|name| name.to_string()).collect();
    Wants { fields, cost: cost.map(str::to_string), time: None }
}

/// The records, and the messages of those that are bad.
fn all(bytes: &[u8], how: &How) -> (Vec<Read>, Vec<String>) {
    let mut input = open(bytes, how);
    let mut record = Record::new(&how.wants);
    let (mut records, mut bad) = (Vec::new(), Vec::new());
    loop {
        match input.next(&mut record).expect("readable") {
            Next::Record => {
                let show = |value: &Vec<u8>| match input.is_binary() {
                    true if matches!(value.len(), 4 | 16) && !value.iter().all(u8::is_ascii_graphic) => {
                        value.iter().map(|byte| byte.to_string()).collect::<Vec<_>>().join(".")
                    }
                    _ => String::from_utf8_lossy(value).into_owned(),
                };
                records.push((record.time, record.cost, record.values.iter().map(show).collect()));
            }
            Next::Bad(problem) | Next::Other(problem) => bad.push(problem.in_file("log")),
            Next::End => return (records, bad),
        }
    }
}

/// One line of a format that is found by itself.
fn one(line: &str, format: Format, fields: &[&str], cost: Option<&str>) -> Read {
    let how = How { wants: wants(fields, cost), ..How::default() };
    let input = open(line.as_bytes(), &how);
    assert_eq!(input.format, Some(format), "{line}");
    let (mut records, bad) = all(line.as_bytes(), &how);
    assert_eq!((records.len(), bad), (1, vec![]), "{line}");
    records.remove(0)
}

fn read(seconds: u64, nanoseconds: u64, cost: u64, values: &[&str]) -> Read {
    let values = values.iter().map(|value| value.to_string()).collect();
    (seconds * 1_000_000_000 + nanoseconds, cost, values)
}

const T: u64 = 1_700_000_000;

#[test]
fn nginx_and_apache() {
    let line = concat!(
        r#"192.0.2.1 - ann [14/Nov/2023:22:13:20 +0000] "GET /a?b HTTP/1.1" 200 1234 "#,
        r#""https://e.org/" "x \"y\" z""#,
    );
    let fields = ["address", "remote_user", "path", "method", "status", "user_agent"];
    let want = read(T, 0, 1234, &["192.0.2.1", "ann", "/a?b", "GET", "200", "x \\\"y\\\" z"]);
    assert_eq!(one(line, Format::Combined, &fields, Some("bytes")), want);
    // Common has neither referer nor agent; an empty answer has a dash.
    let line = r#"2001:db8::1 - - [14/Nov/2023:23:13:20 +0100] "-" 400 -"#;
    assert_eq!(one(line, Format::Combined, &["address"], Some("bytes")), read(T, 0, 0, &["2001:db8::1"]));
}

#[test]
fn a_log_format_of_ones_own_has_the_start_of_requests() {
    let how = How {
        log_format: Some(r#"$msec|${request_time}|$http_x_forwarded_for|"$request""#.into()),
        wants: wants(&["http_x_forwarded_for", "path"], None),
        ..How::default()
    };
    let lines =
        "1700000001.500|1.250|10.0.0.1, 192.0.2.9|\"GET /x HTTP/1.1\"\r\n1700000002.000|-|-|\"\"\n# end\n\n";
    let (records, bad) = all(lines.as_bytes(), &how);
    let want = [read(T, 250_000_000, 1, &["10.0.0.1, 192.0.2.9", "/x"]), read(T + 2, 0, 1, &["-", ""])];
    assert_eq!((&records[..], bad), (&want[..], vec![]));
    assert!(!open(lines.as_bytes(), &how).stamps_end());
}

#[test]
fn json_of_nginx_caddy_and_envoy() {
    let nginx = concat!(
        r#"{"time_local":"14/Nov/2023:22:13:20 "#,
        r#"+0000","msec":"1700000000.125","remote_addr":"192.0.2.1","request_uri":"/a","body_bytes_se"#,
        r#"nt":77}"#,
    );
    let want = read(T, 125_000_000, 77, &["192.0.2.1", "/a"]);
    assert_eq!(one(nginx, Format::Json, &["address", "path"], Some("bytes")), want);
    let caddy = concat!(
        r#"{"level":"info","ts":1700000001.5,"logger":"http.log.access","request":{"remote_ip":"192.0"#,
        r#".2.1","remote_port":"4711","client_ip":"192.0.2.7","proto":"HTTP/2.0","method":"GET","host"#,
        r#"":"example.com","uri":"/a\u00e9","headers":{"User-Agent":["x"]}},"bytes_read":0,"user_id":"#,
        r#""","duration":0.25,"size":12,"status":200}"#,
    );
    let want = read(T + 1, 250_000_000, 12, &["192.0.2.7", "/aé", "example.com", "192.0.2.1"]);
    assert_eq!(
        one(caddy, Format::Json, &["address", "path", "host", "request.remote_ip"], Some("bytes")),
        want
    );
    let envoy = concat!(
        r#"{"start_time":"2023-11-14T22:13:20.007Z","method":"GET","path":"/a","downstream_remote_add"#,
        r#"ress":"192.0.2.1:4711","bytes_sent":5,"duration":30,"x":null}"#,
    );
    let want = read(T, 7_000_000, 5, &["192.0.2.1:4711", "/a"]);
    assert_eq!(one(envoy, Format::Json, &["address", "path"], Some("bytes")), want);
}

/// Caddy writes each header as an array, and others write a path as one name.
#[test]
fn json_has_headers_in_arrays_and_names_with_points() {
    let line = concat!(
        r#"{"ts":1700000000,"request":{"uri":"/a","headers":{"X-Forwarded-For":["10.0.0.1","192.0.2.\u0037"]}},"#,
        r#""client.ip":"192.0.2.8","url":{"path.raw":"/b"},"list":[1,"x"],"none":[]}"#,
    );
    let fields = ["request.headers.X-Forwarded-For", "client.ip", "url.path.raw", "list", "none"];
    let want = read(T, 0, 1, &["10.0.0.1, 192.0.2.7", "192.0.2.8", "/b", r#"[1,"x"]"#, ""]);
    assert_eq!(one(line, Format::Json, &fields, None), want);
    let wrong = line.replace("192.0.2.8", "nobody");
    let how = How { wants: wants(&["client.ip"], None), ..How::default() };
    let mut input = open(wrong.as_bytes(), &how);
    assert_eq!(input.next(&mut Record::new(&how.wants)), Ok(Next::Record));
    assert_eq!(input.wrong(0, "x".into()).column, wrong.find("\"nobody").expect("it is there") + 1);
}

/// A field with an empty name is no part of any path, however deep such fields stand in one another.
#[test]
fn a_name_that_is_empty_is_no_part_of_a_path() {
    let how = How { wants: wants(&["address"], None), ..How::default() };
    let deep = [&r#"{"":"#.repeat(20_000), "1", &"}".repeat(20_000)].concat();
    let log = format!(
        "{{\"time\":{T},\"ip\":{deep},\"address\":\"192.0.2.1\"}}\n{}\n",
        format_args!("{{\"time\":{T},\"client\":{{\"\":\"192.0.2.9\"}}}}")
    );
    let want = (vec![read(T, 0, 1, &["192.0.2.1"])], vec!["log:2:1: no field \"address\"".to_string()]);
    assert_eq!(all(log.as_bytes(), &how), want);
}

/// A path may stand in a line twice: as one name, and as fields in one another.
#[test]
fn of_a_path_that_stands_twice_the_first_counts() {
    let how = How { wants: wants(&["client.ip"], None), ..How::default() };
    for fields in [
        r#""client":{"x":1},"client.ip":"nobody""#,
        r#""client.ip":"nobody","client":{"ip":"192.0.2.1"}"#,
        r#""client":{"ip":"nobody"},"client.ip":"192.0.2.1""#,
        r#""client":{"ip":null},"client.ip":"nobody""#,
        r#""a\u0000":1,"é":2,"client":{"client.ip":"x","ip":"nobody"}"#,
    ] {
        let line = format!("{{\"ts\":1,{fields}}}");
        let mut input = open(line.as_bytes(), &how);
        let mut record = Record::new(&how.wants);
        assert_eq!(input.next(&mut record), Ok(Next::Record), "{line}");
        assert_eq!(record.values[0], b"nobody", "{line}");
        assert_eq!(
            input.wrong(0, "x".into()).column,
            line.find("\"nobody").expect("it is there") + 1,
            "{line}"
        );
    }
}

/// nginx writes bytes from 0x80 on as they are, also with escape=json.
#[test]
fn a_byte_that_is_no_text_loses_no_record_in_any_format() {
    let ua = b"\xff\xc3(\x80 \xf0\x9f";
    let with = |before: &str, after: &str| [before.as_bytes(), ua, after.as_bytes(), b"\n"].concat();
    let json = [
        with(r#"{"msec":1700000000,"remote_addr":"192.0.2.1","ua":""#, r#"","bytes":7}"#),
        with(r#"{""#, r#"":1,"msec":1700000000,"remote_addr":"192.0.2.1","bytes":7}"#),
        // Caddy's: next to what is asked for.
        with(r#"{"ts":1700000000,"request":{"uri":""#, r#"","remote_ip":"192.0.2.1"},"size":7}"#),
    ];
    let combined = with(r#"192.0.2.1 - - [14/Nov/2023:22:13:20 +0000] "GET / HTTP/1.1" 200 7 "-" ""#, "\"");
    let csv = [&b"time,address,ua,bytes\n1700000000,192.0.2.1,"[..], ua, b",7\n"].concat();
    let envoy = with(
        r#"[2023-11-14T22:13:20Z] "GET / HTTP/2" 204 - 154 7 226 100 "192.0.2.1" ""#,
        r#"" "id" "locations" "tcp://10.0.2.1:80""#,
    );
    let haproxy = with(
        "192.0.2.1:4711 [14/Nov/2023:22:13:20] in out/s 10/0/30/69/109 200 7 - - ---- 1/1/1/1/0 0/0 {",
        "} \"GET / HTTP/1.1\"",
    );
    let mut all_of_them = json.to_vec();
    all_of_them.extend([combined, csv, envoy, haproxy]);
    let how = How { wants: wants(&["address"], Some("bytes")), ..How::default() };
    for line in &all_of_them {
        let (mut records, bad) = all(line, &how);
        assert_eq!((records.len(), bad), (1, vec![]), "{}", String::from_utf8_lossy(line));
        let (time, cost, values) = records.remove(0);
        let address = values[0].split(':').next();
        assert_eq!((time, cost, address), (T * 1_000_000_000, 7, Some("192.0.2.1")));
    }
    let bind = with("14-Nov-2023 22:13:20 client 192.0.2.1#5 (", "): query: x IN A +");
    assert_eq!(all(&bind, &How { wants: wants(&["address"], None), ..How::default() }).0.len(), 1);

    // A value of such bytes is these bytes, behind an escape, too.
    let values = |line: &[u8], field: &str| {
        let how = How { wants: wants(&[field], None), ..How::default() };
        let (mut input, mut record) = (open(line, &how), Record::new(&how.wants));
        assert_eq!(input.next(&mut record).expect("readable"), Next::Record);
        let place = input.wrong(0, String::new());
        (record.values.remove(0), place.column)
    };
    assert_eq!(values(&json[0], "ua"), (ua.to_vec(), 51));
    assert_eq!(values(&json[2], "path").0, ua);
    let escaped = with(r#"{"msec":1,"bad":""#, r#"","ua":"a\"\u00e9\ud83d\ude00"}"#);
    assert_eq!(values(&escaped, "ua"), ("a\"é😀".as_bytes().to_vec(), 18 + ua.len() + 7));
    let both = with(r#"{"msec":1,"ua":"\t\\"#, r#"?"}"#);
    assert_eq!(values(&both, "ua").0, [b"\t\\", &ua[..], b"?"].concat());
    // Those that are no JSON still are none, and have their place.
    let how = How { wants: wants(&[], None), format: Some(Format::Json), ..How::default() };
    let bad = all(&with(r#"{"msec":1,"a":""#, r#"" "b":1}"#), &how).1;
    assert_eq!(bad, [format!("log:1:{}: no JSON object: expected `,` or `}}`", 18 + ua.len())]);
}

#[test]
fn json_that_is_wrong_has_its_place() {
    let how = How { wants: wants(&["address"], Some("bytes")), ..How::default() };
    let lines = [
        r#"{"ts":1,"ip":"a","bytes":1}"#,
        r#"{"ts":1,"ip" "a"}"#,
        r#"{"ts":1}"#,
        r#"{"ts":"x","ip":"a"}"#,
        "[]",
        r#"{"ts":1,"ip":"a","bytes":-1}"#,
    ];
    let lines = lines.join("\n");
    let (records, bad) = all(lines.as_bytes(), &how);
    assert_eq!(records.len(), 1);
    let want = [
        "log:2:14: no JSON object: expected `:`",
        "log:3:1: no field \"address\"",
        "log:4:1: no time: \"x\"",
        "log:5:1: no JSON object: invalid type: sequence, expected an object",
        "log:6:1: no whole number",
    ];
    assert_eq!(bad.len(), want.len(), "{bad:?}");
    for (bad, want) in bad.iter().zip(want) {
        assert!(bad.starts_with(want) && !bad.contains("at line"), "{bad}, not {want}");
    }
}

#[test]
fn csv_with_named_columns() {
    let text = "\"Timestamp\";user;units\n1700000000.5;\"a;b\";3\n1700000001;c\n1700000001;d;x\n";
    let how = How { wants: wants(&["user"], Some("units")), ..How::default() };
    assert_eq!(open(text.as_bytes(), &how).format, Some(Format::Csv));
    let (records, bad) = all(text.as_bytes(), &how);
    assert_eq!(records, [read(T, 500_000_000, 3, &["a;b"])]);
    let want = ["log:3:13: 2 columns, and column 3 is wanted", "log:4:14: no whole number of units: \"x\""];
    assert_eq!(bad, want);
    // Quotes may hold what parts columns and lines; the place is in the file as it is.
    let quoted = "time,user,units\r\n\"17\"\"\",a,1\r\n\r\n1700000000,\"a \"\"b\"\", c\nd\",y\n";
    let how = How { wants: wants(&["user"], Some("units")), ..How::default() };
    let want = ["log:2:1: no time: \"17\\\"\"", "log:5:4: no whole number of units: \"y\""];
    assert_eq!(all(quoted.as_bytes(), &how).1, want);
    // Far into a file, too, and in a long row.
    let row = "1700000000,ann,1\n".repeat(20_000);
    let long = "x".repeat(200_000);
    let text = format!("time,user,units\n{row}1700000000,bob,?\n1700000000,{long},?\n");
    let want = [
        "log:20002:16: no whole number of units: \"?\"",
        "log:20003:200013: no whole number of units: \"?\"",
    ];
    assert_eq!(all(text.as_bytes(), &how).1, want);
    let how = How { wants: Wants { time: Some("when".into()), ..wants(&["who"], None) }, ..How::default() };
    assert_eq!(all(b"who,when\nann,1700000000\n", &how).0, [read(T, 0, 1, &["ann"])]);
}

#[test]
fn haproxy() {
    let http = concat!(
        r#"Nov 14 22:13:20 host haproxy[1401]: 192.0.2.1:4711 [14/Nov/2023:22:13:20.123] http-in "#,
        r#"static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 {1wt.eu} {} "GET /index.html "#,
        r#"HTTP/1.1""#,
    );
    let want = read(T, 123_000_000, 2750, &["192.0.2.1", "static", "/index.html"]);
    assert_eq!(one(http, Format::Haproxy, &["address", "backend", "path"], Some("bytes")), want);
    let tcp = concat!(
        "Nov 14 22:13:20 host haproxy[1]: 2001:db8::1:4711 [14/Nov/2023:22:13:20.001] in out/s ",
        "0/0/5007 212 -- 0/0/0/0/3 0/0",
    );
    assert_eq!(
        one(tcp, Format::Haproxy, &["address"], Some("bytes")),
        read(T, 1_000_000, 212, &["2001:db8::1"])
    );
}

#[test]
fn envoy() {
    let line = concat!(
        r#"[2023-11-14T22:13:20.310Z] "POST /api/v1/locations HTTP/2" 204 - 154 20 226 100 "#,
        r#""10.0.35.28" "nsq2http" "cc21d9b0-cf5c-432b-8c7e-98aeb7988cd2" "locations" "#,
        r#""tcp://10.0.2.1:80""#,
    );
    let want = read(T, 310_000_000, 20, &["10.0.35.28", "/api/v1/locations", "POST", "locations"]);
    assert_eq!(one(line, Format::Envoy, &["address", "path", "method", "host"], Some("bytes")), want);
}

#[test]
fn bind_and_unbound() {
    let want = read(T, 123_000_000, 1, &["192.0.2.1#53211", "example.com", "AAAA"]);
    for line in [
        concat!(
            "14-Nov-2023 22:13:20.123 queries: info: client @0x7f6e90003d38 192.0.2.1#53211 ",
            "(example.com): query: example.com IN AAAA +E(0)K (198.51.100.1)",
        ),
        concat!(
            "14-Nov-2023 22:13:20.123 queries: info: client 192.0.2.1#53211 (example.com): view inner: ",
            "query: example.com IN AAAA +",
        ),
        concat!(
            "14-Nov-2023 22:13:20.123 client @0x7f6e90003d38 192.0.2.1#53211 (example.com): query: ",
            "example.com IN AAAA + (198.51.100.1)",
        ),
        "14-Nov-2023 22:13:20.123 client 192.0.2.1#53211 (example.com): query: example.com IN AAAA + (198.51.100.1)",
        // print-category and print-severity are options.
        "14-Nov-2023 22:13:20.123 queries: client @0x7f 192.0.2.1#53211 (example.com): query: example.com IN AAAA +",
        "14-Nov-2023 22:13:20.123 info: client @0x7f 192.0.2.1#53211 (example.com): query: example.com IN AAAA +",
        "2023-11-14T22:13:20.123Z named[7]: queries: client 192.0.2.1#53211 (a): query: example.com IN AAAA +",
    ] {
        assert_eq!(one(line, Format::Bind, &["address", "name", "type"], None), want);
    }
    let line = "[1700000000] unbound[1234:0] info: 192.0.2.1 example.com. A IN";
    assert_eq!(
        one(line, Format::Unbound, &["address", "name", "type"], None),
        read(T, 0, 1, &["192.0.2.1", "example.com.", "A"])
    );
}

/// With log-replies each query has a second line, and with more verbosity it says what it does for it.
#[test]
fn only_queries_of_unbound_count() {
    let said = [
        "example.com. static 192.0.2.1@50836 www.example.com. A IN",
        "resolving example.com. A IN",
        "query response was ANSWER",
        "service stopped (unbound 1.17.1).",
    ];
    for key in ["address", "name"] {
        let how = How { wants: wants(&[key], None), ..How::default() };
        let line = |text: &str| format!("[1700000000] unbound[1234:0] {text}\n");
        let mut log = String::new();
        // log-tag-queryreply names them.
        for tag in ["info", "query"] {
            let reply = if tag == "info" { "info" } else { "reply" };
            log += &line(&format!("{reply}: 192.0.2.1 example.com. A IN NOERROR 0.010000 0 55"));
            log += &line(&format!("{tag}: 192.0.2.1 example.com. A IN"));
        }
        log.extend(said.iter().map(|text| line(&format!("info: {text}"))));
        let (records, bad) = all(log.as_bytes(), &how);
        assert_eq!((records.len(), bad.len()), (2, 4), "{key}: {records:?} {bad:?}");
        assert!(bad[1].contains("address is no address: \"resolving\""), "{bad:?}");
    }
}

/// What stands before a line that went through syslog or the journal, at T. Some have no year.
const HEADS: [&str; 7] = [
    "<134>Nov 14 22:13:20 host program[7]: ",
    "Nov 14 22:13:20 program: ",
    "<134>1 2023-11-14T22:13:20.000000+00:00 host program 7 - - ",
    "1 2023-11-14T22:13:20Z host program 7 - - ",
    "<134>1 2023-11-14T23:13:20+01:00 - program - - [origin ip=\"[::1]\"] ",
    "2023-11-14T22:13:20+0000 host program[7]: ",
    "2023-11-14T23:13:20.000000+01:00 host program[7]: ",
];

#[test]
fn every_text_format_is_read_behind_a_head_of_syslog() {
    let nginx = r#"192.0.2.1 - - [14/Nov/2023:22:13:20 +0000] "GET /a HTTP/1.1" 200 7 "-" "x: y""#;
    let vhost = format!("example.org:443 {nginx}");
    let json = r#"{"msec":1700000000,"remote_addr":"192.0.2.1","uri":"/a","ua":"x: [y]: z"}"#;
    let haproxy = concat!(
        "192.0.2.1:4711 [14/Nov/2023:22:13:20] fe be/s1 0/0/0/0/0 200 501 - - ---- 1/1/0/0/0 0/0 ",
        r#"{|curl/7.88.1} "GET /a HTTP/1.1""#,
    );
    let envoy = concat!(
        r#"[2023-11-14T22:13:20Z] "GET /a HTTP/2" 204 - 154 7 226 100 "192.0.2.1" "x" "id" "#,
        r#""locations" "tcp://10.0.2.1:80""#,
    );
    let lines = [
        (nginx, Format::Combined),
        (&vhost, Format::Vhost),
        (json, Format::Json),
        (haproxy, Format::Haproxy),
        (envoy, Format::Envoy),
    ];
    for (line, format) in lines {
        let want = one(line, format, &["address", "path"], None);
        assert_eq!((want.0, &want.2[1][..]), (T * 1_000_000_000, "/a"));
        for head in HEADS {
            assert_eq!(one(&format!("{head}{line}"), format, &["address", "path"], None), want, "{head}");
        }
        // The place of what is no address is that in the whole line.
        let how = How { wants: wants(&["path"], None), ..How::default() };
        let (mut input, mut record) = (open(line.as_bytes(), &how), Record::new(&how.wants));
        input.next(&mut record).expect("readable");
        let alone = input.wrong(0, String::new()).column;
        let mut input = open(format!("{}{line}", HEADS[0]).as_bytes(), &how);
        input.next(&mut record).expect("readable");
        assert_eq!(input.wrong(0, String::new()).column, HEADS[0].len() + alone, "{line}");
    }
    // A format of one's own, too, and one that itself begins like a head.
    for (format, line) in [
        ("$remote_addr [$time_iso8601] $bytes", "192.0.2.1 [2023-11-14T22:13:20+00:00] 7"),
        ("$time_iso8601 $remote_addr $bytes", "2023-11-14T22:13:20+00:00 192.0.2.1 7"),
    ] {
        let wants = wants(&["address"], Some("bytes"));
        let how = How { log_format: Some(format.into()), wants, ..How::default() };
        for head in [""].iter().chain(&HEADS) {
            let (records, bad) = all(format!("{head}{line}\n").as_bytes(), &how);
            assert_eq!((records, bad), (vec![read(T, 0, 7, &["192.0.2.1"])], vec![]), "{head}{line}");
        }
    }
}

/// A format of one's own may have the head itself, with values whose names say so. Its year is next to the time of the
/// record: in logs of this year, of those before, and of a machine whose clock nobody has set.
#[test]
fn a_log_format_of_ones_own_may_begin_with_the_head() {
    let wants = wants(&["addr"], None);
    for (head, at) in [
        ("Nov 28 03:31:36", 1_795_836_691),
        ("Nov 14 22:13:20", 1_700_000_000),
        ("Feb 29 23:59:59", 1_078_099_200),
        ("Dec 31 23:00:00", 1_767_261_600),
        ("Jan  1 05:00:00", 1_767_229_200),
        ("Jan  1 00:01:00", 60),
    ] {
        for (format, line) in [
            (
                "$mon $day $clock $host $tag $addr $msec $rest",
                format!("{head} web nginx: 192.0.2.1 {at}.1 GET / 200 511 77 4"),
            ),
            // What a client sends looks like the format again.
            (
                "$prefix]: $addr $msec $rest",
                format!("{head} web nginx[7]: 192.0.2.1 {at}.1 GET /]: 192.0.2.2 77 4"),
            ),
            ("$addr $msec $rest", format!("{head} web nginx[7]: 192.0.2.1 {at}.1 GET / 200 511 77 4")),
            ("$addr [$msec] $rest", format!("{head} web nginx: 192.0.2.1 [{at}.1] GET / 200 511 77 4")),
        ] {
            // Of one digit the format would need two spaces.
            let line = if format.starts_with("$mon") { line.replace("  ", " 0") } else { line };
            let how = How { log_format: Some(format.into()), wants: wants.clone(), ..How::default() };
            let (records, bad) = all(line.as_bytes(), &how);
            assert_eq!((records, bad), (vec![read(at, 100_000_000, 1, &["192.0.2.1"])], vec![]), "{line}");
        }
    }
}

/// `journalctl -o short-full` and `short-unix`, and Kubernetes write heads that are not left out.
#[test]
fn a_head_that_is_not_known_is_no_part_of_a_client() {
    let http = concat!(
        "192.0.2.1:4711 [14/Nov/2023:22:13:20.123] fe be/s1 0/0/0/0/0 200 501 - - ---- 1/1/0/0/0 0/0 ",
        r#""GET /[7]: 192.0.2.2:1 [14/Nov/2023:22:13:20.123] a b/c 1 200 7 HTTP/1.1""#,
    );
    let tcp = "192.0.2.1:4711 [14/Nov/2023:22:13:20.123] fe be/s1 0/0/5007 501 -- 0/0/0/0/3 0/0";
    for line in [http, tcp] {
        for head in [
            "",
            "Sat 2026-11-28 03:31:31 UTC host haproxy[12]: ",
            "1795836691.123456 host haproxy[12]: ",
            "2026-11-28T03:31:31.123456789Z stdout F haproxy[12]: ",
        ] {
            let line = format!("{head}{line}");
            let want = read(T, 123_000_000, 501, &["192.0.2.1", "192.0.2.1"]);
            assert_eq!(one(&line, Format::Haproxy, &["client", "address"], Some("bytes")), want, "{line}");
        }
    }
    // Nothing says where these heads end.
    let combined = r#"192.0.2.1 - - [14/Nov/2023:22:13:20 +0000] "GET / HTTP/1.1" 200 7 "-" "x""#;
    for (format, field, line) in [
        (Format::Haproxy, "client", format!("Sat 2026-11-28 03:31:31 UTC host haproxy: {http}")),
        (Format::Combined, "remote_addr", format!("2026-11-28T03:31:31.1Z stdout F {combined}")),
        (Format::Vhost, "remote_addr", format!("2026-11-28T03:31:31.1Z stdout F {combined}")),
    ] {
        let how = How { format: Some(format), wants: wants(&[field], None), ..How::default() };
        let (records, bad) = all(line.as_bytes(), &how);
        assert_eq!((records, bad.len()), (vec![], 1), "{line}");
    }
}

/// A time without a year is next to that of the line before it: a log that passes the day of today has no gap.
#[test]
fn a_time_without_a_year_is_next_to_the_one_before_it() {
    let now = tatcell_cli::input::time::now() / 1_000_000_000;
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let times: Vec<_> = [12, 60, 59, 24 * 90].iter().map(|hours| now + hours * 3600).collect();
    let line = |time: &u64| {
        let shown = tatcell_cli::input::time::show(time * 1_000_000_000);
        let month = months[shown[5..7].parse::<usize>().expect("a month") - 1];
        format!("{month} {} {} host app[1]: {{\"user\":\"a\"}}\n", &shown[8..10], &shown[11..19])
    };
    let how = How { wants: wants(&["user"], None), ..How::default() };
    let (records, bad) = all(times.iter().map(line).collect::<String>().as_bytes(), &how);
    let want: Vec<_> = times.iter().map(|time| read(*time, 0, 1, &["a"])).collect();
    assert_eq!((records, bad), (want, vec![]));
}

/// Unbound and BIND leave the time to syslog. Without a year it is one of the last twelve months.
#[test]
fn a_query_without_a_time_has_that_of_its_head() {
    const DAY: u64 = 86_400_000_000_000;
    let queries = [
        ("[27047:0] info: 192.0.2.1 example.com. A IN", Format::Unbound),
        ("[27047:0] query: 192.0.2.1 example.com. A IN", Format::Unbound),
        ("client @0x7 192.0.2.1#53211 (example.com.): query: example.com. IN A + (::1)", Format::Bind),
        ("client 192.0.2.1#53211 (example.com.): query: example.com. IN A + (::1)", Format::Bind),
        ("queries: info: client @0x7 192.0.2.1#5 (example.com.): query: example.com. IN A +", Format::Bind),
    ];
    let now = tatcell_cli::input::time::now();
    for (line, format) in queries {
        for head in HEADS {
            let (time, _, values) = one(&format!("{head}{line}"), format, &["name", "address"], None);
            assert_eq!((&values[0][..], values[1].split('#').next()), ("example.com.", Some("192.0.2.1")));
            let is_dated = head.contains("2023");
            assert!(
                if is_dated { time == T * 1_000_000_000 } else { time > now - 367 * DAY },
                "{head}{line}"
            );
            let clock = (22 * 3600 + 13 * 60 + 20) * 1_000_000_000;
            assert!(time % DAY == clock && time <= now + DAY, "{head}{line}");
        }
        // Without a head nothing says when it was.
        let how = How { wants: wants(&["address"], None), format: Some(format), ..How::default() };
        let bad = all(line.as_bytes(), &how).1;
        assert_eq!(bad.len(), 1, "{line}");
    }
    // JSON may leave it to syslog, too; a time of its own counts first.
    for head in HEADS {
        let (time, _, values) = one(&format!("{head}{{\"user\":\"a\"}}"), Format::Json, &["user"], None);
        assert_eq!((time % DAY / 1_000_000_000, &values[0][..]), (80_000, "a"), "{head}");
        let dated = format!("{head}{{\"user\":\"a\",\"ts\":7}}");
        assert_eq!(one(&dated, Format::Json, &["user"], None).0, 7_000_000_000, "{head}");
    }
    for (time, head) in [(None, ""), (Some("at"), HEADS[0])] {
        let wants = Wants { time: time.map(str::to_string), ..wants(&["user"], None) };
        let how = How { wants, ..How::default() };
        let bad = all(format!("{head}{{\"user\":\"a\"}}").as_bytes(), &how).1;
        assert!(bad[0].contains("no field"), "{bad:?}");
    }
    // Unbound's log-time-ascii and log-time-iso.
    for line in [
        "Nov 14 22:13:20 unbound[27047:0] info: 192.0.2.1 example.com. A IN",
        "Nov 14 22:13:20 unbound[27047:0] query: 192.0.2.1 example.com. A IN",
        "2023-11-14T22:13:20.000+00:00 unbound[27047:0] info: 192.0.2.1 example.com. A IN",
    ] {
        let (time, _, values) = one(line, Format::Unbound, &["address", "name", "type", "class"], None);
        assert_eq!((time % DAY / 1_000_000_000, &values[0][..]), (80_000, "192.0.2.1"));
        assert_eq!(&values[1..], ["example.com.", "A", "IN"]);
    }
    // BIND's own times of this shape.
    let line = "2023-11-14T22:13:20.123Z queries: info: client @0x7 192.0.2.1#5 (x): query: x IN A + (::1)";
    assert_eq!(one(line, Format::Bind, &["name"], None), read(T, 123_000_000, 1, &["x"]));
    let line = "2023-11-14T22:13:20.123Z client @0x7 192.0.2.1#5 (x): query: x IN A + (::1)";
    assert_eq!(one(line, Format::Bind, &["name"], None), read(T, 123_000_000, 1, &["x"]));
}

/// A UDP packet in an Ethernet frame, with a VLAN tag or not.
fn frame(source: [u8; 4], port: u16, vlan: bool) -> Vec<u8> {
    let mut frame = vec![0; 12];
    if vlan {
        frame.extend([0x81, 0, 0, 7]);
    }
    frame.extend([8, 0, 0x45, 0, 0, 40, 0, 0, 0, 0, 64, 17, 0, 0]);
    frame.extend(source);
    frame.extend([198, 51, 100, 1]);
    frame.extend(port.to_be_bytes());
    frame.extend([0, 53, 0, 20, 0, 0]);
    frame.extend([0; 12]);
    frame
}

/// A capture: its packets have a time in the units of the file, bytes, and their length on the wire.
pub fn pcap(nanoseconds: bool, packets: &[(u32, u32, Vec<u8>, u32)]) -> Vec<u8> {
    let magic: u32 = if nanoseconds { 0xa1b2_3c4d } else { 0xa1b2_c3d4 };
    let mut file = Vec::new();
    for word in [magic, 0x0004_0002, 0, 0, 65_535, 1] {
        file.extend(word.to_le_bytes());
    }
    for (seconds, part, bytes, length) in packets {
        for word in [*seconds, *part, bytes.len() as u32, *length] {
            file.extend(word.to_le_bytes());
        }
        file.extend(bytes);
    }
    file
}

/// A section of pcapng with an interface whose times are those of its packets less so many seconds.
fn section(is_big_endian: bool, offset: i64, seconds: u64) -> Vec<u8> {
    let four = |number: u32| if is_big_endian { number.to_be_bytes() } else { number.to_le_bytes() };
    let two = |number: u16| if is_big_endian { number.to_be_bytes() } else { number.to_le_bytes() };
    let eight = if is_big_endian { offset.to_be_bytes() } else { offset.to_le_bytes() };
    let block = |kind: u32, body: Vec<u8>| {
        let length = four(body.len() as u32 + 12);
        [&four(kind)[..], &length, &body, &length].concat()
    };
    let head = [&four(0x1a2b_3c4d)[..], &two(1), &two(0), &[0xff; 8]].concat();
    let options = [&two(14)[..], &two(8), &eight, &two(0), &two(0)].concat();
    let interface = [&two(1)[..], &two(0), &four(0), &options].concat();
    let stamp = (seconds.wrapping_add_signed(-offset)) * 1_000_000;
    let bytes = frame([192, 0, 2, 1], 1, false);
    let (high, low, length) = (four((stamp >> 32) as u32), four(stamp as u32), four(bytes.len() as u32));
    let mut packet = [&four(0)[..], &high, &low, &length, &length, &bytes].concat();
    packet.resize(packet.len().next_multiple_of(4), 0);
    [block(0x0a0d_0d0a, head), block(1, interface), block(6, packet)].concat()
}

/// A few bytes of a compressed file describe millions of interfaces, and each is kept.
#[test]
fn a_section_has_a_bounded_number_of_interfaces() {
    let how = How { wants: wants(&["address"], None), ..How::default() };
    let one = section(false, 0, T);
    // Behind the head of the section: an interface of 36 bytes, and the packet.
    let (head, rest) = one.split_at(28);
    let (interface, packet) = rest.split_at(36);
    let with = |count: usize| [head, &interface.repeat(count), packet].concat();
    assert_eq!(all(&with(4096), &how), (vec![read(T, 0, 1, &["192.0.2.1"])], vec![]));
    let end =
        open(&with(4097), &how).next(&mut Record::new(&how.wants)).map_err(|failure| failure.to_string());
    assert_eq!(end, Err("log:1: more than 4096 interfaces in a section".into()));
}

/// An option has the byte order of its section, and a file may have sections of both.
#[test]
fn an_offset_of_times_is_read_in_the_byte_order_of_its_section() {
    let how = How { wants: wants(&["address"], None), ..How::default() };
    for offset in [0, 1, -1, 3600, -3600, 1_600_000_000] {
        let file = [true, false, true].map(|big| section(big, offset, T)).concat();
        let (records, bad) = all(&file, &how);
        assert_eq!((records, bad), (vec![read(T, 0, 1, &["192.0.2.1"]); 3], vec![]), "{offset}");
    }
}

/// The same in pcapng, big-endian, with an interface of nanoseconds and one of the default, microseconds.
fn pcapng(packets: &[(u32, u64, Vec<u8>, u32)]) -> Vec<u8> {
    let block = |kind: u32, body: Vec<u8>| {
        let length = body.len() as u32 + 12;
        [&kind.to_be_bytes()[..], &length.to_be_bytes(), &body, &length.to_be_bytes()].concat()
    };
    let mut file = block(0x0a0d_0d0a, [&[0x1a, 0x2b, 0x3c, 0x4d, 0, 1, 0, 0][..], &[0xff; 8]].concat());
    file.extend(block(1, vec![0, 1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 1, 9, 0, 0, 0, 0, 0, 0, 0]));
    file.extend(block(1, vec![0, 1, 0, 0, 0, 0, 0, 0]));
    // A block of another kind is passed over.
    file.extend(block(0xbad, vec![0; 4]));
    for (interface, stamp, bytes, length) in packets {
        let mut body = Vec::new();
        for word in [*interface, (stamp >> 32) as u32, *stamp as u32, bytes.len() as u32, *length] {
            body.extend(word.to_be_bytes());
        }
        body.extend(bytes);
        body.resize(body.len().next_multiple_of(4), 0);
        file.extend(block(6, body));
    }
    file
}

const SECONDS: u32 = T as u32;

#[test]
fn packets_of_pcap() {
    let how =
        How { wants: wants(&["address", "destination_port", "protocol"], Some("bytes")), ..How::default() };
    let mut arp = vec![0; 12];
    arp.extend([8, 6, 0, 1]);
    let packets = [
        (SECONDS, 5, frame([192, 0, 2, 1], 4711, false), 54),
        (SECONDS, 6, frame([192, 0, 2, 2], 4711, true), 1500),
        (SECONDS, 7, arp, 42),
        (SECONDS, 8, frame([192, 0, 2, 3], 4711, false)[..20].to_vec(), 54),
    ];
    let (records, bad) = all(&pcap(false, &packets), &how);
    let want =
        [read(T, 5_000, 54, &["192.0.2.1", "53", "17"]), read(T, 6_000, 1500, &["192.0.2.2", "53", "17"])];
    assert_eq!(records, want);
    assert_eq!(bad, ["log:3: not IP: type 0x0806", "log:4: 20 bytes are no whole header"]);
    assert_eq!(all(&pcap(true, &packets[..1]), &how).0[0].0, T * 1_000_000_000 + 5);
    // The upper half of the link type says that four bytes of checksum end each packet.
    let mut checked = pcap(false, &packets[..1]);
    checked[23] = 0x24;
    assert_eq!(all(&checked, &how).0, want[..1]);
}

/// A packet of IPv6 from 2001:db8::9 to port 53, with headers before that of UDP.
fn ip6(first: u8, headers: &[u8]) -> Vec<u8> {
    let mut packet = [&[0; 12][..], &[0x86, 0xdd, 0x60, 0, 0, 0, 0, 8, first, 64]].concat();
    for last in [9, 1] {
        packet.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
    }
    [&packet, headers, &[0x12, 0x67, 0, 53, 0, 8, 0, 0]].concat()
}

#[test]
fn ports_are_found_behind_the_extension_headers_of_ipv6() {
    let options = |next, longer: u8| [&[next, longer][..], &vec![0; 6 + 8 * usize::from(longer)]].concat();
    let fragment =
        |next, offset: u16| [&[next, 0][..], &(offset << 3 | 1).to_be_bytes(), &[0, 0, 0, 7]].concat();
    // An Authentication Header counts its length in words of four bytes, less two.
    let signed = |next| [&[next, 4][..], &[0; 22]].concat();
    let packets = [
        ip6(17, &[]),
        ip6(0, &options(17, 0)),
        ip6(0, &[options(60, 2), options(43, 0), options(44, 1), fragment(17, 0)].concat()),
        ip6(0, &[options(51, 0), signed(60), options(17, 0)].concat()),
        ip6(44, &fragment(17, 3)),
        ip6(60, &options(58, 0)),
        ip6(0, &options(17, 200))[..70].to_vec(),
    ];
    let packets = packets.map(|packet| (SECONDS, 0, packet, 90));
    let read = |fields: &[&str]| {
        let how = How { wants: wants(fields, None), ..How::default() };
        let (records, others) = all(&pcap(false, &packets), &how);
        (records.into_iter().map(|record| record.2.concat()).collect::<Vec<_>>(), others)
    };
    let without = [5, 6, 7].map(|number| format!("log:{number}: a packet without ports"));
    assert_eq!(read(&["destination_port"]), (vec!["53".into(); 4], without.into()));
    let protocols = ["17", "17", "17", "17", "17", "58", "17"];
    assert_eq!(read(&["protocol"]), (protocols.map(String::from).into(), vec![]));
}

#[test]
fn packets_of_pcapng() {
    let how = How { wants: wants(&["address"], None), ..How::default() };
    let packets = [
        (0, T * 1_000_000_000 + 7, frame([192, 0, 2, 1], 1, false), 54),
        (1, T * 1_000_000 + 7, frame([192, 0, 2, 2], 1, true), 54),
        (2, 0, frame([192, 0, 2, 3], 1, true), 54),
    ];
    let (records, bad) = all(&pcapng(&packets), &how);
    assert_eq!(records, [read(T, 7, 1, &["192.0.2.1"]), read(T, 7_000, 1, &["192.0.2.2"])]);
    assert_eq!(bad, ["log:3: interface 2 is not described"]);
}

/// A message of dnstap: its type, time, address, and the query.
type Message<'a> = (u8, u64, u32, &'a [u8], Vec<u8>);

/// A dnstap file.
fn dnstap(messages: &[Message<'_>]) -> Vec<u8> {
    fn varint(mut number: u64, out: &mut Vec<u8>) {
        while number >= 0x80 {
            out.push(number as u8 | 0x80);
            number >>= 7;
        }
        out.push(number as u8);
    }
    fn bytes(tag: u8, value: &[u8], out: &mut Vec<u8>) {
        out.push(tag << 3 | 2);
        varint(value.len() as u64, out);
        out.extend(value);
    }
    // Start, with the type of the content as its only field.
    let content = b"protobuf:dnstap.Dnstap";
    let mut file = vec![0, 0, 0, 0, 0, 0, 0, 12 + content.len() as u8, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 22];
    file.extend(content);
    for (kind, seconds, nanoseconds, address, query) in messages {
        let mut message = vec![1 << 3, *kind, 2 << 3, 1, 3 << 3, 1];
        bytes(4, address, &mut message);
        message.push(8 << 3);
        varint(*seconds, &mut message);
        message.push(9 << 3 | 5);
        message.extend(nanoseconds.to_le_bytes());
        bytes(10, query, &mut message);
        let mut frame = Vec::new();
        bytes(1, b"ns1", &mut frame);
        bytes(14, &message, &mut frame);
        frame.extend([15 << 3, 1]);
        file.extend((frame.len() as u32).to_be_bytes());
        file.extend(frame);
    }
    file.extend([0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 3]);
    file
}

fn dns(name: &[&str], kind: u16) -> Vec<u8> {
    let mut query = vec![0; 12];
    for label in name {
        query.push(label.len() as u8);
        query.extend(label.as_bytes());
    }
    query.push(0);
    query.extend(kind.to_be_bytes());
    query.extend([0, 1]);
    query
}

#[test]
fn queries_of_dnstap() {
    let v6 = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9];
    let messages = [
        (5, T, 7, &[192, 0, 2, 1][..], dns(&["Example", "com"], 28)),
        (6, T, 8, &[192, 0, 2, 1][..], dns(&["example", "com"], 28)),
        (1, T + 1, 0, &v6[..], dns(&["a", "b", "c"], 4711)),
        (5, T + 2, 0, &[192, 0, 2, 1][..], vec![0; 5]),
    ];
    let how = How { wants: wants(&["address", "name", "type"], Some("bytes")), ..How::default() };
    let file = dnstap(&messages);
    assert_eq!(open(&file, &how).format, Some(Format::Dnstap));
    let (records, bad) = all(&file, &how);
    let want = [
        read(T, 7, 29, &["192.0.2.1", "example.com", "AAAA"]),
        read(T + 1, 0, 23, &["32.1.13.184.0.0.0.0.0.0.0.0.0.0.0.9", "a.b.c", "TYPE4711"]),
    ];
    assert_eq!(records, want);
    assert_eq!(bad, ["log:4: the query has no question"]);
    // A server that was killed wrote no last frame, and behind that of one file another one may begin.
    assert_eq!(all(&file[..file.len() - 12], &how).0, want);
    assert_eq!(all(&file.repeat(2), &how).0, [&want[..], &want].concat());
    // Half a message is an end that is said, also in a file that was compressed.
    let gzip = gzip(&file.repeat(2_000));
    for cut in [&file[..file.len() - 20], &file[..file.len() - 6], &gzip[..gzip.len() / 2]] {
        let why = end(open(cut, &how), &how);
        assert!(why.ends_with(": the input ends inside of this message"), "{why}");
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(bytes).expect("memory");
    out.finish().expect("memory")
}

/// Why an input cannot be read any further.
fn end(mut input: Input, how: &How) -> String {
    let mut record = Record::new(&how.wants);
    loop {
        match input.next(&mut record) {
            Ok(Next::End) => panic!("it ends as a whole one"),
            Ok(_) => {}
            Err(failure) => return failure.to_string(),
        }
    }
}

#[test]
fn gzip_and_zstd_also_in_several_parts() {
    let line = b"192.0.2.1 - - [14/Nov/2023:22:13:20 +0000] \"GET / HTTP/1.1\" 200 1 \"-\" \"-\"\n";
    let part = line.repeat(3000);
    let gzip = gzip(&part);
    let zstd = zstd::encode_all(&part[..], 1).expect("memory");
    // pzstd writes a frame to be skipped before each other one.
    let pzstd =
        [&[0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0][..], &(zstd.len() as u32).to_le_bytes(), &zstd].concat();
    let how = How { wants: wants(&["address"], None), ..How::default() };
    for bytes in [gzip.repeat(2), zstd.repeat(2), pzstd.repeat(2), part.repeat(2)] {
        let (records, bad) = all(&bytes, &how);
        assert_eq!((records.len(), bad.len()), (6000, 0));
    }
    // A file that was cut is an error with its place, not a shorter file.
    let message = end(open(&gzip[..gzip.len() - 9], &how), &how);
    assert!(message.starts_with("log:"), "{message}");
}

#[test]
fn a_field_that_a_format_lacks_is_named_with_those_that_it_has() {
    for (text, want) in [
        (
            &b"192.0.2.1 - - [14/Nov/2023:22:13:20 +0000] \"GET / HTTP/1.1\" 200 1 \"-\" \"-\"\n"[..],
            "remote_addr, ident",
        ),
        (b"time,a\n1,2\n", "time, a"),
        (&pcap(false, &[]), "address, destination, protocol, source_port"),
    ] {
        let how = How { wants: wants(&["colour"], None), ..How::default() };
        let input = Input::new("log", Box::new(Cursor::new(text.to_vec())), &how);
        let message = input.err().expect("no such field").to_string();
        assert!(message.starts_with("log: no field \"colour\" in this format; it has "), "{message}");
        assert!(message.contains(want), "{message}");
    }
}

#[test]
fn no_bytes_make_a_reader_panic() {
    let mut random = crate::Random(7);
    let samples = [
        incident_head(),
        b"{\"ts\":1,\"ip\":\"192.0.2.1\",\"request\":{\"uri\":\"/\"}}\n".repeat(3),
        b"time,ip\n1700000000,192.0.2.1\n1,2\n".to_vec(),
        b"Nov 14 22:13:20 host haproxy[1]: 192.0.2.1:1 [14/Nov/2023:22:13:20.123] a b/c 1 200 1 x\n".to_vec(),
        b"14-Nov-2023 22:13:20.123 client @0x7 192.0.2.1#5 (e): query: e IN A + (::1)\n".to_vec(),
        pcap(
            false,
            &[(SECONDS, 5, frame([192, 0, 2, 1], 1, true), 54), (SECONDS, 6, frame([1; 4], 1, false), 9)],
        ),
        dnstap(&[(5, T, 7, &[192, 0, 2, 1][..], dns(&["example", "com"], 28))]),
        pcapng(&[(0, 7, frame([192, 0, 2, 1], 1, false), 54), (1, 7, frame([192, 0, 2, 2], 1, true), 54)]),
    ];
    let how = How { wants: wants(&["address"], Some("bytes")), ..How::default() };
    let key = tatcell_cli::key::KeySpec::parse("address").expect("a key");
    let (mut records, mut others) = (0u64, 0u64);
    for round in 0..6000 {
        let mut bytes = samples[round % samples.len()].clone();
        for _ in 0..1 + random.below(4) {
            let at = random.below(bytes.len() as u64) as usize;
            match random.below(4) {
                0 => bytes[at] = random.next() as u8,
                1 => bytes.truncate(at.max(1)),
                2 => bytes[at] ^= 1 << random.below(8),
                _ => {
                    let _ = bytes.remove(at.min(bytes.len() - 1));
                    bytes.push(0);
                }
            }
        }
        let Ok(mut input) = Input::new("log", Box::new(Cursor::new(bytes)), &how) else {
            others += 1;
            continue;
        };
        let (mut record, mut out) = (Record::new(&how.wants), Vec::new());
        for _ in 0..1000 {
            match input.next(&mut record) {
                Ok(Next::Record) => {
                    let _ = key.write(&record.values, input.is_binary(), &mut out);
                    records += 1;
                }
                Ok(Next::Bad(_) | Next::Other(_)) => others += 1,
                Ok(Next::End) | Err(_) => break,
            }
        }
    }
    assert!(records > 1000 && others > 1000, "{records} records, {others} others");
}

fn incident_head() -> Vec<u8> {
    let text = crate::logs::incident().combined();
    text.lines().take(4).flat_map(|line| [line.as_bytes(), b"\n"].concat()).collect()
}

//! `tatcell check`: what it says of configurations whose truth is known.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::folder;
use crate::program::PROGRAM;

pub fn run(arguments: &[&str]) -> Output {
    Command::new(PROGRAM).arg("check").args(arguments).output().expect("the program runs")
}

/// Writes a configuration and checks it: the exit code, the JSON, and the message.
pub fn check(name: &str, text: &str) -> (Option<i32>, Value, String) {
    let file = folder(&format!("check-{name}")).join(name);
    fs::write(&file, text).expect("a file");
    let output = run(&[file.to_str().expect("a name"), "--json"]);
    let json = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    (output.status.code(), json, String::from_utf8_lossy(&output.stderr).into_owned())
}

/// The findings of a kind.
fn findings<'j>(json: &'j Value, kind: &str) -> Vec<&'j str> {
    let all = json["findings"].as_array().expect("findings").iter();
    all.filter(|finding| finding["kind"] == kind)
        .map(|finding| finding["what"].as_str().expect("text"))
        .collect()
}

fn numbers(limit: &Value) -> [f64; 5] {
    ["burst", "at_once", "emission_interval_seconds", "horizon_seconds", "period_seconds"]
        .map(|name| limit[name].as_f64().expect("a number"))
}

/// nginx counts the quote behind a text, and not the one before it.
#[test]
fn a_word_is_as_long_as_nginx_takes_it() {
    for (before, length, after, code) in
        [("", 4095, "", 0), ("", 4096, "", 3), ("\"", 4094, "\"", 0), ("'", 4095, "'", 3)]
    {
        let word = format!("{before}{}{after}", "x".repeat(length));
        let zone = "limit_req_zone $remote_addr zone=a:1m rate=1r/s;";
        let text = format!("{zone}\nserver {{ limit_req zone=a; add_header X {word}; }}\n");
        let (found, _, message) = check("word.conf", &text);
        assert_eq!(found, Some(code), "{length}: {message}");
    }
}

#[test]
fn a_server_has_its_first_name_wherever_that_is_written() {
    let folder = folder("check-names");
    let file = folder.join("nginx.conf");
    fs::write(folder.join("names.inc"), "server_name included;").expect("a file");
    fs::write(
        &file,
        "limit_req_zone $remote_addr zone=a:1m rate=1r/s;\n\
         server { limit_req zone=a; include names.inc; server_name own; }\n\
         server { server_name own; limit_req zone=a; include names.inc; }\n",
    )
    .expect("a file");
    let output = run(&[file.to_str().expect("a name")]);
    let text = String::from_utf8_lossy(&output.stdout);
    let places = ["in server included", "in server own"].map(|place| text.matches(place).count());
    assert!(places[0] > 0 && places[0] == places[1], "{text}");
}

#[test]
fn limit_req_has_the_numbers_that_nginx_keeps() {
    let (code, json, _) = check(
        "nginx.conf",
        "limit_req_zone $binary_remote_addr zone=a:10m rate=10r/s;\n\
         server { location / { limit_req zone=a burst=20; } location /b { limit_req zone=a burst=20 nodelay; }\n\
         location /c { limit_req zone=a burst=20 delay=4; } location /d { limit_req zone=a; } }\n",
    );
    assert_eq!((code, &json["format"]), (Some(0), &"nginx".into()));
    // The first request comes on top of nginx's burst.
    let want = [(21.0, 1.0), (21.0, 21.0), (21.0, 5.0), (1.0, 1.0)];
    for (limit, (burst, at_once)) in json["limits"].as_array().expect("limits").iter().zip(want) {
        assert_eq!(numbers(limit), [burst, at_once, 0.1, burst / 10.0, 1000.0], "{limit}");
        // R * w and what passes at once: whoever waits comes at the rate.
        assert_eq!(limit["worst"][0]["units"].as_f64(), Some(10.0 + at_once));
        assert_eq!(limit["worst"][1]["units"].as_f64(), Some(600.0 + at_once));
        assert_eq!(limit["key"], "$remote_addr");
    }
    assert_eq!(json["limits"].as_array().map(Vec::len), Some(4));
    assert!(json["limits"][0]["place"].as_str().is_some_and(|place| place.ends_with("nginx.conf:2:23")));
}

#[test]
fn a_rate_that_nginx_rounds_is_said() {
    // 1000 / 60 thousandths of a request a second are 16: 0.96 a minute.
    let (code, json, message) = check(
        "rates.conf",
        "limit_req_zone $remote_addr zone=slow:10m rate=1r/m;\nlimit_req_zone $uri zone=whole:10m rate=30r/m;\n\
         limit_req zone=slow; limit_req zone=whole;\n",
    );
    let kept = findings(&json, "not_kept");
    assert_eq!((code, kept.len()), (Some(1), 1), "{json}");
    assert!(
        kept[0].contains("zone \"slow\" gets 0.96 a minute instead of 1 a minute: 4.0 % less"),
        "{kept:?}"
    );
    assert!(message.contains("1 fault above"), "{message}");
}

#[test]
fn a_limit_that_another_one_shadows_never_decides() {
    let zones = "limit_req_zone $binary_remote_addr zone=a:10m rate=5r/s;\n\
                 limit_req_zone $remote_addr zone=b:10m rate=10r/s;\nlimit_req_zone $uri zone=c:10m rate=50r/s;\n";
    let shadowed = |uses: &str| {
        let (_, json, _) = check("shadow.conf", &format!("{zones}server {{ {uses} }}"));
        findings(&json, "shadowed").len()
    };
    assert_eq!(shadowed("limit_req zone=a burst=10 nodelay; limit_req zone=b burst=20 nodelay;"), 1);
    assert_eq!(shadowed("limit_req zone=b burst=20 nodelay; limit_req zone=a burst=10 nodelay;"), 1);
    // A smaller burst at a higher rate decides at first.
    assert_eq!(shadowed("limit_req zone=a burst=20 nodelay; limit_req zone=b burst=10 nodelay;"), 0);
    // The second delays what the first one passes at once.
    assert_eq!(shadowed("limit_req zone=a burst=10 nodelay; limit_req zone=b burst=20;"), 0);
    assert_eq!(
        shadowed("limit_req zone=a burst=10 nodelay; limit_req zone=c burst=20 nodelay;"),
        0,
        "another key"
    );
    let apart = "location /a { limit_req zone=a burst=10; } location /b { limit_req zone=b burst=20; }";
    assert_eq!(shadowed(apart), 0, "another place");
    let dry = "limit_req_dry_run on; limit_req zone=a burst=10 nodelay; limit_req zone=b burst=20 nodelay;";
    assert_eq!(shadowed(dry), 0, "a dry run decides nothing");
    // The debt of b has the requests of other places too, which a does not count.
    let elsewhere = "limit_req zone=b burst=20 nodelay; location /login { limit_req zone=a burst=5 nodelay; \
                     limit_req zone=b burst=20 nodelay; }";
    assert_eq!(shadowed(elsewhere), 0, "b is inherited by other places");
    let beside = format!(
        "location /a {{ {both} }} location /b {{ {both} }}",
        both = "limit_req zone=a burst=5 \
                          nodelay; limit_req zone=b burst=20 nodelay;"
    );
    assert_eq!(shadowed(&beside), 2, "a is next to b everywhere");
    let smaller = "location /a { limit_req zone=a burst=5 nodelay; limit_req zone=b burst=20 nodelay; } \
                   location /b { limit_req zone=a burst=5 nodelay; limit_req zone=b burst=2 nodelay; }";
    assert_eq!(shadowed(smaller), 1, "a counts all that b counts, but b has the smaller burst in /b");
    let apart = "location /a { limit_req zone=a burst=5 nodelay; limit_req zone=b burst=20 nodelay; } \
                 location /b { limit_req zone=b burst=20 nodelay; }";
    assert_eq!(shadowed(apart), 0, "b is alone in /b");
    // Of two equal limits the second is named; but a is alone in /b, so only b never decides.
    let equal =
        "limit_req_zone $remote_addr zone=d:1m rate=5r/s; server { location /a { limit_req zone=d burst=5; \
                 limit_req zone=a burst=5; } location /b { limit_req zone=a burst=5; } }";
    let (_, json, _) = check("equal.conf", &format!("{zones}{equal}"));
    assert!(findings(&json, "shadowed")[0].contains("limit_req zone=d in server, location /a"), "{json}");
}

/// The two modules charge on their own: one may count a request that the other has refused.
#[test]
fn limits_of_two_modules_are_not_compared() {
    let (code, json, _) = check(
        "modules.conf",
        "limit_req_zone $binary_remote_addr zone=a:10m rate=5r/s; tatcell_zone $binary_remote_addr zone=b:10m \
         rate=5r/s burst=5; server { limit_req zone=a burst=20 nodelay; tatcell zone=b nodelay; }",
    );
    assert_eq!((code, findings(&json, "shadowed").len()), (Some(0), 0), "{json}");
}

/// A client that sends all the time, under a limit that delays: in no window do more pass than the check says, and in
/// one as many do.
#[test]
fn no_window_passes_more_than_the_worst() {
    // Requests a second, and burst and delay without the first request, as nginx has them.
    for (rate, burst, delay) in [(1u64, 4u64, 0u64), (7, 20, 4), (100, 20, 0), (50, 9, 9), (30, 5, 1)] {
        // In thousandths of a request.
        let (mut excess, mut last, mut released) = (0u64, 0, Vec::new());
        for now in (0..130_000u64).step_by(5).flat_map(|now| [now; 25]) {
            let first = u64::from(released.is_empty());
            let more = (excess + 1000 * (1 - first)).saturating_sub(rate * (now - last));
            if more <= burst * 1000 {
                (excess, last) = (more, now);
                released.push(now as f64 + more.saturating_sub(delay * 1000) as f64 / rate as f64);
            }
        }
        let delay = if delay == 0 { String::new() } else { format!(" delay={delay}") };
        let zone = format!("limit_req_zone $uri zone=a:1m rate={rate}r/s;");
        let (_, json, _) = check("worst.conf", &format!("{zone} limit_req zone=a burst={burst}{delay};"));
        for worst in json["limits"][0]["worst"].as_array().expect("windows") {
            let length = worst["seconds"].as_f64().expect("a number") * 1e3 + 1e-6;
            let window = |from: usize| {
                released[from..].iter().take_while(|at| **at <= released[from] + length).count()
            };
            let found = (0..released.len()).map(window).max().expect("requests");
            assert_eq!(worst["units"].as_u64(), Some(found as u64), "{rate}/s burst {burst}{delay}: {worst}");
        }
    }
}

#[test]
fn times_of_the_module_are_read_as_nginx_reads_them() {
    let zone = |skew: &str| {
        check("skew.conf", &format!("tatcell_zone $uri zone=a:1m rate=1r/s skew={skew}; tatcell zone=a;"))
    };
    for skew in ["60", "60s", "1h30m", "1500ms", "1m30", "1d"] {
        let (code, _, message) = zone(skew);
        assert_eq!(code, Some(0), "{skew}: {message}");
    }
    for skew in ["0", "2d", "30m1h", "1h1h", "h", "", "1x", "99999999999999999999s"] {
        let (code, _, message) = zone(skew);
        assert!(
            code == Some(3) && message.contains("write a time up to a day"),
            "{skew}: {code:?} {message}"
        );
    }
}

/// What a shadowed limit is: no sequence of requests, asked in the library, is refused by it alone.
#[test]
fn a_shadowed_limit_refuses_nothing_that_the_other_one_passes() {
    use tatcell::{Cell, Chain, LimitSpec, Link};
    let mut random = crate::Random(7);
    let (mut decided, mut shadowed) = (0, 0);
    for _ in 0..300 {
        let mut limit = || (1 + random.below(20), 1 + random.below(20));
        let (a, b) = (limit(), limit());
        let is_shadowed = a.0 <= b.0 && a.1 <= b.1;
        let made = [a, b].map(|(rate, burst)| LimitSpec::new(rate, 1_000, burst).build().expect("a limit"));
        let cells = [Cell::new(), Cell::new()];
        let (mut now, mut alone) = (1 << 40, 0);
        for _ in 0..400 {
            now += random.below(400);
            let links = [Link::cell(&cells[0], &made[0], 1), Link::cell(&cells[1], &made[1], 1)];
            let (first, second) =
                (cells[0].peek(&made[0], now, 1).passes(), cells[1].peek(&made[1], now, 1).passes());
            alone += u32::from(first && !second);
            let _ = Chain::new(&links).expect("a chain").check(now);
        }
        assert!(!is_shadowed || alone == 0, "{a:?} {b:?}: the second decided {alone} times");
        shadowed += u32::from(is_shadowed);
        decided += u32::from(alone > 0);
    }
    assert!(shadowed > 20 && decided > 20, "{shadowed} shadowed, {decided} decided");
}

#[test]
fn directives_of_the_module_are_read() {
    let (code, json, _) = check(
        "module.conf",
        "http { tatcell_zone $binary_remote_addr zone=c:10m rate=10r/s burst=20;\n\
         tatcell_zone $uri zone=up:1m rate=1mB/s burst=2000000;\n\
         tatcell_zone $host zone=idle:1m \"rate=5r/15min burst 7\";\n\
         server { tatcell zone=c nodelay; location /up { tatcell zone=c delay=5 burst=9; tatcell zone=up \
         nodelay cost=$request_length; } location /off { tatcell off; } } }\n",
    );
    assert_eq!(code, Some(0), "{json}");
    let limits = json["limits"].as_array().expect("limits");
    assert_eq!(limits.len(), 3);
    assert_eq!(numbers(&limits[0])[..2], [20.0, 20.0]);
    assert_eq!(numbers(&limits[1])[..2], [9.0, 5.0]);
    assert_eq!((limits[2]["units"].as_u64(), numbers(&limits[2])[0]), (Some(1 << 20), 2_000_000.0));
    let notes = findings(&json, "note");
    assert!(notes.iter().any(|note| note.contains("zone \"idle\" is used nowhere")), "{notes:?}");
    assert!(notes.iter().any(|note| note.contains("room for 1310720 keys in debt")), "{notes:?}");
}

#[test]
fn a_zone_that_no_word_holds_is_said_with_the_change_that_helps() {
    let zone = |more: &str| {
        format!("tatcell_zone $uri zone=a:1m rate=1r/d burst=100000{more}; tatcell zone=a nodelay;")
    };
    let (code, json, _) = check("long.conf", &zone(""));
    assert_eq!(code, Some(0), "{json}");
    let (code, json, _) = check(
        "longer.conf",
        &zone(" skew=60s tag_bits=24")
            .replace("1r/d", "1000000000r/s")
            .replace("burst=100000", "burst=2000000000"),
    );
    let kept = findings(&json, "not_kept");
    assert_eq!((code, kept.len()), (Some(1), 1), "{json}");
    assert!(kept[0].contains("take ") && kept[0].contains("a word holds"), "{kept:?}");
}

#[test]
fn a_level_with_limits_of_its_own_has_none_of_those_above() {
    let (_, json, _) = check(
        "levels.conf",
        "limit_req_zone $uri zone=a:1m rate=1r/s; limit_req_zone $host zone=b:1m rate=1r/s;\n\
         server { server_name example.org; limit_req zone=a; location /api/ { limit_req zone=b; } location /x { } }",
    );
    let notes = findings(&json, "note");
    let want =
        "server example.org, location /api/ has limit_req of its own, so those of the level above do not \
                apply: \"a\"";
    assert!(notes.contains(&want), "{notes:?}");
}

#[test]
fn configurations_are_read_as_nginx_reads_them() {
    let folder = folder("check-includes");
    fs::create_dir(folder.join("conf.d")).expect("a folder");
    let write = |name: &str, text: &str| fs::write(folder.join(name), text).expect("a file");
    write(
        "nginx.conf",
        "# a { comment\nhttp { include conf.d/*.conf; map $a $b { default \"x;{}'\"; '~^a b' 1; } }\n",
    );
    write(
        "conf.d/a.conf",
        "limit_req_zone ${binary_remote_addr} zone=a:1m rate=2r/s;\nset_by_lua_block $x { if \"}\" then -- }\n end }\n",
    );
    write("conf.d/b.conf", "server { location ~ ^/[a-z]\\{2\\} { limit_req zone=a burst=3 nodelay; } }");
    write("conf.d/c.bak", "} not read");
    let output = run(&[folder.join("nginx.conf").to_str().expect("a name"), "--json"]);
    let json: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    assert_eq!(json["limits"].as_array().map(Vec::len), Some(1), "{json}");
    assert_eq!(numbers(&json["limits"][0])[..2], [4.0, 4.0]);
    assert!(
        json["limits"][0]["place"].as_str().is_some_and(|place| place.ends_with("conf.d/b.conf:1:36")),
        "{json}"
    );
}

#[test]
fn what_cannot_be_read_ends_with_3_and_its_place() {
    let zone = "limit_req_zone $uri zone=a:1m rate=1r/s;\n";
    for (name, text, want) in [
        (
            "a.conf",
            format!("{zone}server {{ limit_req zone=a;"),
            "a.conf:2:1: \"server\" opens a block that nothing",
        ),
        (
            "a.conf",
            format!("{zone}limit_req zone=a"),
            "a.conf:2:1: \"limit_req\" has no \";\" before the end",
        ),
        ("a.conf", format!("{zone}}}"), "a.conf:2:1: unexpected \"}\""),
        (
            "a.conf",
            format!("{zone}limit_req \"zone=a;"),
            "a.conf:2:11: a quote opens here and nothing closes it",
        ),
        ("a.conf", zone.replace("1r/s", "0.5r/s"), "a.conf:1:36: \"0.5r/s\" is no rate of limit_req"),
        ("a.conf", zone.replace(":1m", ":1k"), "a.conf:1:21: zone \"a\" is too small"),
        (
            "a.conf",
            format!("{zone}limit_req zone=b;"),
            "a.conf:2:1: no limit_req_zone defines the zone \"b\"",
        ),
        ("a.conf", format!("{zone}limit_req zone=a burst=0;"), "a.conf:2:24: \"0\" is not a number from 1"),
        ("a.conf", format!("{zone}limit_req zone=a brust=1;"), "a.conf:2:18: unknown parameter \"brust=1\""),
        ("a.conf", format!("{zone}{zone}"), "a.conf:2:1: zone \"a\" is already at"),
        ("a.conf", "include b.conf;".into(), "a.conf:1:9: cannot include "),
        ("a.conf", "include a.conf;".into(), "files include each other more than 64 deep"),
        ("a.conf", "events { }".into(), "no limit_req_zone and no tatcell_zone"),
        ("a.conf", "tatcell_zone $a zone=a:1m rate=1mB/x;".into(), "a.conf:1:36: not a unit of time"),
        ("a.yaml", "domain: a\ndescriptors:\n  - kex: b\n".into(), "a.yaml:3:5: unknown key 'kex'"),
        (
            "a.toml",
            "listen = [\"127.0.0.1:1\"]\nlimits = 3\n".into(),
            "a.toml:2:1: there is no setting limits",
        ),
        ("a.toml", "keys = 0\n".into(), "a.toml:1:8: keys: \"0\": keys must be 1 to 8589934592"),
        ("a.toml", "store = \"redis://127.0.0.1/\"\n".into(), "a.toml: with a store, give nodes"),
        ("empty", String::new(), "the file is empty"),
    ] {
        let (code, _, message) = check(name, &text);
        assert_eq!(code, Some(3), "{text}: {message}");
        assert!(message.contains(want), "{text}: {message}");
    }
    assert_eq!(run(&["/nonexistent/nginx.conf"]).status.code(), Some(3));
    assert_eq!(run(&[]).status.code(), Some(2));
}

const RULES: &str = "\
domain: edge
descriptors:
  - key: path
    value: /files/*
    rate_limit: {unit: second, requests_per_unit: 50}
  - key: path
    value: /files/a*
    rate_limit: {unit: second, requests_per_unit: 5}
  - key: user
    rate_limit: {unit: minute, requests_per_unit: 60}
    descriptors:
      - key: verb
        rate_limit: {unit: second, requests_per_unit: 100}
  - key: nobody
    rate_limit: {unit: day, requests_per_unit: 0}
";

#[test]
fn rules_of_envoy_are_read_by_the_server_s_reader() {
    let (code, json, message) = check("rules.yaml", RULES);
    assert_eq!((code, &json["format"]), (Some(1), &"envoy".into()), "{message}");
    let shadowed = findings(&json, "shadowed");
    assert_eq!(shadowed.len(), 1, "{json}");
    assert!(shadowed[0].contains("edge path_/files/a*: path_/files/* stands before it"), "{shadowed:?}");
    let notes = findings(&json, "note");
    assert!(notes.iter().any(|note| note.contains("user.verb never decides")), "{notes:?}");
    let limits = json["limits"].as_array().expect("limits");
    let user = limits.iter().find(|limit| limit["name"] == "edge user").expect("a limit");
    assert_eq!(numbers(user), [60.0, 60.0, 1.0, 60.0, 60.0]);
    assert!(user["place"].as_str().is_some_and(|place| place.contains("rules.yaml:10:")), "{user}");
    assert_eq!(limits.len(), 5);
    // A dot in a value does not make a rule one below another.
    let limit = |units: u32| format!("rate_limit: {{unit: second, requests_per_unit: {units}}}");
    let dots = format!(
        "domain: edge\ndescriptors:\n  - {{key: host, value: a, {}}}\n  - {{key: host, value: a.b, {}}}\n",
        limit(5),
        limit(50)
    );
    let (code, json, _) = check("dots.yaml", &dots);
    assert_eq!((code, findings(&json, "note").len()), (Some(0), 0), "{json}");
}

#[test]
fn files_of_this_repository_are_sound() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for (file, limits) in [("cluster/envoy/rules.yaml", 5), ("cluster/throttled/throttled.toml", 0)] {
        let output = run(&[root.join(file).to_str().expect("a name"), "--json"]);
        let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(
            (output.status.code(), json["limits"].as_array().map(Vec::len)),
            (Some(0), Some(limits)),
            "{json}"
        );
    }
}

#[test]
fn settings_of_throttled_are_read_by_the_server_s_reader() {
    let (code, json, message) = check(
        "throttled.toml",
        "store = \"redis://127.0.0.1/\"\nnodes = 2\nlimit = [\"30/m burst 16\", \"0 1 2\", \"15 30 60\"]\n",
    );
    assert_eq!(code, Some(1), "{message}");
    assert_eq!(numbers(&json["limits"][0]), [16.0, 16.0, 2.0, 32.0, 60.0]);
    assert_eq!(numbers(&json["limits"][1]), [1.0, 1.0, 2.0, 2.0, 2.0]);
    assert!(findings(&json, "shadowed")[0].contains("CL.THROTTLE key 15 30 60 is given 2 times"), "{json}");
    // Behind a store the cluster keeps the limits, not the tables.
    let shared = |nodes: u32, more: &str, limit: &str| {
        let text = format!("store = \"redis://127.0.0.1/\"\nnodes = {nodes}\n{more}limit = [\"{limit}\"]\n");
        let (code, json, _) = check("shared.toml", &text);
        (code, findings(&json, "not_kept").join("; "))
    };
    let (code, why) = shared(2, "", "0 2000000000 1");
    assert!(code == Some(1) && why.contains("above 1e9 units a second"), "{why}");
    let (code, why) = shared(5_000, "", "15 30 60");
    assert!(code == Some(1) && why.contains("the number of nodes must be 1 to 4096"), "{why}");
    let (code, why) = shared(2, "", "99 1 31536000");
    assert!(code == Some(1) && why.contains("the burst takes more than 71 years to drain"), "{why}");
    for more in ["", "reserve = false\n"] {
        assert_eq!(shared(2, more, "4999999999 1000000 1"), (Some(0), String::new()));
    }
}

#[test]
fn text_says_what_a_limit_means() {
    let file = folder("check-words").join("nginx.conf");
    fs::write(
        &file,
        "limit_req_zone $binary_remote_addr zone=a:10m rate=10r/s; limit_req zone=a burst=20 delay=4;",
    )
    .expect("a file");
    let text = String::from_utf8(run(&[file.to_str().expect("a name")]).stdout).expect("text");
    for want in [
        "limit_req zone=a by $remote_addr",
        "10 a second: one unit in 100 ms",
        "5 at once after idle; 16 more wait for their turn, up to 1.6 s; whoever sends more is refused",
        "at most 15 in any second, 605 in any minute",
        "has room for about 81920 keys",
    ] {
        assert!(text.contains(want), "{want:?} in\n{text}");
    }
}

#[test]
fn includes_and_blocks_of_lua_are_read_as_nginx_reads_them() {
    let folder = folder("check-as-nginx");
    fs::create_dir(folder.join("s")).expect("a folder");
    for (name, zone, burst) in [("a1.conf", "a", 11), ("a2.conf", "b", 12), ("ax.conf", "a", 13)] {
        let text = format!("limit_req zone={zone} burst={burst};");
        fs::write(folder.join("s").join(name), text).expect("a file");
    }
    let text = "limit_req_zone $a zone=a:1m rate=1r/s; limit_req_zone $b zone=b:1m rate=1r/s;\n\
        server {\n include s/a[0-9].conf;\n\
        content_by_lua_block { local t = [[ }}} ' ]] --[==[ } ' ]] ]==] local u = t[1] -- } '\n }\n}\n";
    let file = folder.join("nginx.conf");
    fs::write(&file, text).expect("a file");
    let output = run(&[file.to_str().expect("a name"), "--json"]);
    let message = String::from_utf8_lossy(&output.stderr);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{message}"));
    let bursts: Vec<_> =
        json["limits"].as_array().expect("limits").iter().map(|limit| &limit["burst"]).collect();
    assert_eq!(bursts, [12, 13]);
}

#[test]
fn what_is_large_is_bounded_and_read_in_a_few_steps_a_limit() {
    let folder = folder("check-large");
    // Ten thousand places with two zones each: a comparison of all with all would take minutes.
    let places: String = (0..10_000)
        .map(|at| format!("location /{at} {{ limit_req zone=a burst=20; limit_req zone=b burst=40; }}\n"))
        .collect();
    let zones = "limit_req_zone $a zone=a:1m rate=5r/s;\nlimit_req_zone $a zone=b:1m rate=10r/s;\n";
    let file = folder.join("nginx.conf");
    fs::write(&file, format!("{zones}server {{ {places} }}")).expect("a file");
    let output = run(&[file.to_str().expect("a name"), "--json"]);
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((output.status.code(), findings(&json, "shadowed").len()), (Some(1), 10_000));
    // More text than is read.
    for name in ["nginx.conf", "rules.yaml", "settings.toml"] {
        let file = folder.join(name);
        fs::File::create(&file).and_then(|file| file.set_len((64 << 20) + 1)).expect("a file");
        let output = run(&[file.to_str().expect("a name")]);
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(3) && message.contains("more than 67108864 bytes"), "{message}");
    }
}

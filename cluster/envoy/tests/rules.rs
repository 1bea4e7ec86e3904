//! Rules: the examples in the reference service's documentation, and every error with its place.

mod common;

use common::{request, Rules};
use tatcell_door::{KeeperSettings, Settings};
use tatcell_ratelimit::api::{Code, DescriptorStatus, Override, RateLimitRequest, RateLimitResponse, Unit};
use tatcell_ratelimit::read::Source;
use tatcell_ratelimit::service::{Options, RateLimit};
use tonic::Status;

fn settings() -> KeeperSettings {
    KeeperSettings::take(&mut Settings::file("", "keys = 2000").expect("settings")).expect("all known")
}

fn open_with(text: &str, options: Options) -> Result<RateLimit, String> {
    RateLimit::open(&[Source { name: "r.yaml".into(), text: text.into() }], settings(), options)
}

fn open(text: &str) -> RateLimit {
    open_with(text, Options::default()).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn try_decide(service: &RateLimit, request: &RateLimitRequest) -> Result<RateLimitResponse, Status> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(service.decide(request.clone()))
}

fn decide(service: &RateLimit, domain: &str, descriptors: &[&str]) -> RateLimitResponse {
    try_decide(service, &request(domain, descriptors)).expect("an answer")
}

/// So many per unit, and what is left.
type Told = (u32, Unit, u32);

/// Whether it is OK, and the limit of each descriptor, if it has one.
fn told(response: &RateLimitResponse) -> (bool, Vec<Option<Told>>) {
    let limit = |status: &DescriptorStatus| {
        let limit = status.current_limit.as_ref()?;
        Some((limit.requests_per_unit, limit.unit(), status.limit_remaining))
    };
    (response.overall_code() == Code::Ok, response.statuses.iter().map(limit).collect())
}

const EXAMPLES: &str = "
domain: messaging
descriptors:
  # Only 5 marketing messages a day to a number
  - key: message_type
    value: marketing
    descriptors:
      - key: to_number
        rate_limit:
          unit: day
          requests_per_unit: 5
  - key: to_number
    rate_limit:
      unit: day
      requests_per_unit: 100
  - key: remote_address
    rate_limit: {unit: minute, requests_per_unit: 10}
  - key: remote_address
    value: 50.0.0.5
    rate_limit: {unit: second, requests_per_unit: 0}
  - key: ldap
    rate_limit:
      unlimited: true
";

#[test]
fn a_descriptor_matches_the_most_specific_rule_of_its_depth() {
    let service = open(EXAMPLES);
    let one = |descriptor: &str| told(&decide(&service, "messaging", &[descriptor]));
    assert_eq!(one("message_type=marketing to_number=206"), (true, vec![Some((5, Unit::Day, 4))]));
    assert_eq!(one("message_type=marketing to_number=207"), (true, vec![Some((5, Unit::Day, 4))]));
    assert_eq!(one("to_number=206"), (true, vec![Some((100, Unit::Day, 99))]));
    assert_eq!(one("remote_address=50.0.0.1"), (true, vec![Some((10, Unit::Minute, 9))]));
    assert_eq!(one("remote_address=50.0.0.5"), (false, vec![Some((0, Unit::Second, 0))]));
    for unmatched in ["message_type=marketing", "message_type=other to_number=1", "to_number=1 x=2", "x=1"] {
        assert_eq!(one(unmatched), (true, vec![None]), "{unmatched}");
    }
    let ldap = decide(&service, "messaging", &["ldap=x"]);
    assert_eq!((told(&ldap).1, ldap.statuses[0].limit_remaining), (vec![None], u32::MAX));
    assert_eq!(told(&decide(&service, "nobody", &["to_number=1"])), (true, vec![None]));
    // Several at once: one that is over makes the answer.
    let both = ["message_type=marketing to_number=206", "to_number=206", "remote_address=50.0.0.5"];
    let expected = vec![Some((5, Unit::Day, 3)), Some((100, Unit::Day, 98)), Some((0, Unit::Second, 0))];
    assert_eq!(told(&decide(&service, "messaging", &both)), (false, expected));
}

#[test]
fn exactly_the_limit_passes_and_the_cost_counts() {
    let service = open(EXAMPLES);
    let passed = (0..20).filter(|_| told(&decide(&service, "messaging", &["remote_address=1"])).0).count();
    assert_eq!(passed, 10);
    let mut costly = request("messaging", &["remote_address=2", "to_number=9"]);
    costly.hits_addend = 7;
    costly.descriptors[1].hits_addend = Some(30);
    let expected = (true, vec![Some((10, Unit::Minute, 3)), Some((100, Unit::Day, 70))]);
    assert_eq!(told(&try_decide(&service, &costly).expect("an answer")), expected);
    let over = try_decide(&service, &costly).expect("an answer");
    assert_eq!(told(&over), (false, vec![Some((10, Unit::Minute, 3)), Some((100, Unit::Day, 40))]));
    let codes: Vec<Code> = over.statuses.iter().map(DescriptorStatus::code).collect();
    assert_eq!(codes, [Code::OverLimit, Code::Ok]);
    // 7 have a place when 4 more have come, of 6 s each; the other one is full again when 60 of 864 s have.
    let until =
        over.statuses.iter().map(|s| s.duration_until_reset.map_or(0, |d| d.seconds)).collect::<Vec<_>>();
    assert!((22..=24).contains(&until[0]) && (51_838..=51_840).contains(&until[1]), "{until:?}");
    // A cost of 0 looks.
    costly.descriptors.iter_mut().for_each(|descriptor| descriptor.hits_addend = Some(0));
    costly.descriptors.extend(request("messaging", &["remote_address=50.0.0.5"]).descriptors);
    costly.descriptors[2].hits_addend = Some(0);
    assert!(told(&try_decide(&service, &costly).expect("an answer")).0);
}

#[test]
fn values_that_join_to_one_text_are_two_keys() {
    let service = open(
        "
domain: d
descriptors:
  - key: x
    descriptors:
      - key: y
        rate_limit: {unit: day, requests_per_unit: 3}
",
    );
    // One behind the other both read x1y2y3.
    for descriptor in ["x=1 y=2y3", "x=1y2 y=3"] {
        let all = told(&decide(&service, "d", &[descriptor]));
        assert_eq!(all, (true, vec![Some((3, Unit::Day, 2))]), "{descriptor}");
    }
}

#[test]
fn stars_match_and_share_where_that_was_said() {
    let service = open(
        "
domain: d
descriptors:
  - {key: path, value: /api/*/action, rate_limit: {unit: hour, requests_per_unit: 20}}
  - {key: path, value: /api/1/action, rate_limit: {unit: hour, requests_per_unit: 7}}
  - {key: file, value: files/*, share_threshold: true, rate_limit: {unit: hour, requests_per_unit: 9}}
  - {key: file, rate_limit: {unit: hour, requests_per_unit: 3}}
",
    );
    let one = |descriptor: &str| {
        told(&decide(&service, "d", &[descriptor])).1[0].map(|(limit, _, left)| (limit, left))
    };
    assert_eq!(one("path=/api/2/action"), Some((20, 19)));
    assert_eq!(one("path=/api/3/action"), Some((20, 19)));
    assert_eq!(one("path=/api/1/action"), Some((7, 6)));
    assert_eq!(one("path=/api/2/other"), None);
    assert_eq!(
        (one("file=files/a"), one("file=files/b"), one("file=c")),
        (Some((9, 8)), Some((9, 7)), Some((3, 2)))
    );
}

#[test]
fn replaced_shadowed_and_quota_limits_are_as_the_reference_has_them() {
    let service = open(
        "
domain: d
descriptors:
  - key: a
    rate_limit: {name: specific, unit: hour, requests_per_unit: 1}
  - key: b
    rate_limit: {replaces: [{name: specific}], unit: hour, requests_per_unit: 2}
  - key: s
    shadow_mode: true
    rate_limit: {unit: hour, requests_per_unit: 1}
  - key: q1
    quota_mode: true
    rate_limit: {unit: hour, requests_per_unit: 1}
  - key: q2
    quota_mode: true
    rate_limit: {unit: hour, requests_per_unit: 2}
",
    );
    let ask = |descriptors: &[&str]| told(&decide(&service, "d", descriptors));
    for left in [1, 0] {
        assert_eq!(ask(&["a=1", "b=1"]), (true, vec![None, Some((2, Unit::Hour, left))]));
    }
    assert!(!ask(&["a=1", "b=1"]).0);
    assert!(ask(&["a=1"]).0 && !ask(&["a=1"]).0, "what was replaced was not charged");
    assert!((0..5).all(|_| ask(&["s=1"]).0));
    let mut text = String::new();
    service.metrics(&mut text);
    assert!(text.contains("{domain=\"d\",rule=\"s\",outcome=\"shadow\"} 4"), "{text}");
    // Over only when all quotas are.
    let quotas: Vec<bool> = (0..4).map(|_| ask(&["q1=1", "q2=1"]).0).collect();
    assert_eq!(quotas, [true, true, false, false]);
}

#[test]
fn a_limit_that_the_proxy_sends_along_applies_in_place_of_the_rules() {
    let service = open(EXAMPLES);
    let mut asked = request("messaging", &["remote_address=50.0.0.5"]);
    asked.descriptors[0].limit = Some(Override { requests_per_unit: 2, unit: Unit::Hour.into() });
    let passed: Vec<bool> =
        (0..3).map(|_| told(&try_decide(&service, &asked).expect("an answer")).0).collect();
    assert_eq!(passed, [true, true, false]);
    // One without a unit, or with that of a later version, leaves the rule's limit to its descriptor: an error would
    // open the gate for all of them.
    let rules = told(&decide(&service, "messaging", &["remote_address=50.0.0.5"]));
    for unit in [0, 99] {
        asked.descriptors[0].limit = Some(Override { requests_per_unit: 2, unit });
        assert_eq!(told(&try_decide(&service, &asked).expect("an answer")), rules);
    }
    let mut text = String::new();
    service.metrics(&mut text);
    assert!(text.contains("tatcell_ratelimit_unkept_overrides_total 2"), "{text}");
}

#[test]
fn what_no_proxy_sends_is_an_error() {
    let service = open(EXAMPLES);
    let code = |request: &RateLimitRequest| try_decide(&service, request).expect_err("an error").code();
    assert_eq!(code(&request("", &["a=1"])), tonic::Code::InvalidArgument);
    assert_eq!(code(&request("messaging", &[])), tonic::Code::InvalidArgument);
    assert_eq!(code(&request("messaging", &vec!["a=1"; 101])), tonic::Code::InvalidArgument);
    let mut entries = vec![vec!["a=1"; 100].join(" "); 10];
    let asked =
        |entries: &[String]| request("messaging", &entries.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(try_decide(&service, &asked(&entries)).is_ok());
    entries.push("a=1".into());
    assert_eq!(code(&asked(&entries)), tonic::Code::InvalidArgument);
    // No entries: no limit.
    let mut empty = request("messaging", &["a=1"]);
    empty.descriptors[0].entries.clear();
    assert_eq!(told(&try_decide(&service, &empty).expect("an answer")), (true, vec![None]));
}

#[test]
fn the_shadow_of_the_whole_service_refuses_nothing_and_headers_say_the_tightest_limit() {
    let options = Options { shadow: true, headers: true };
    let service = open_with(EXAMPLES, options).expect("a service");
    let asked = ["to_number=1", "remote_address=50.0.0.5", "remote_address=3"];
    let response = decide(&service, "messaging", &asked);
    assert!(told(&response).0);
    let headers = |response: &RateLimitResponse| {
        let headers = response.response_headers_to_add.iter().map(|h| format!("{}={}", h.key, h.value));
        headers.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(headers(&response), "ratelimit-limit=0 ratelimit-remaining=0");
    let response = decide(&service, "messaging", &["to_number=2", "remote_address=4"]);
    assert_eq!(headers(&response), "ratelimit-limit=10 ratelimit-remaining=9 ratelimit-reset=6");
    assert_eq!(headers(&decide(&service, "messaging", &["x=1"])), "");
}

#[test]
fn a_null_is_no_value_and_a_quoted_null_is_a_word() {
    for null in ["~", "null", "Null", "NULL", ""] {
        let rules = format!(
            "
domain: d
descriptors:
  - key: a
    value: {null}
    shadow_mode: {null}
    rate_limit: {{unit: day, requests_per_unit: 1, name: {null}, replaces: {null}}}
    descriptors: {null}
  - {{key: a, value: 'null', rate_limit: {{unit: day, requests_per_unit: 2}}}}
  - {{key: a, value: x, rate_limit: {null}}}
"
        );
        let service = open(&rules);
        let one = |descriptor: &str| told(&decide(&service, "d", &[descriptor])).1;
        assert_eq!(one("a=1"), [Some((1, Unit::Day, 0))], "{rules}");
        assert_eq!(one("a=~"), [Some((1, Unit::Day, 0))], "{rules}");
        assert_eq!(one("a=null"), [Some((2, Unit::Day, 1))], "{rules}");
        assert_eq!(one("a=x"), [None], "{rules}");
        let error = open_with(&format!("domain: {null}\n"), Options::default()).expect_err(null);
        assert!(error.contains("a domain is missing"), "{error}");
    }
}

#[test]
fn what_is_wrong_with_rules_is_said_with_line_and_column() {
    let rule = "domain: d\ndescriptors:\n  - key: a\n";
    let limit = |text: &str| format!("{rule}    rate_limit:\n{text}");
    let plain = "    rate_limit: {unit: day, requests_per_unit: 1}\n";
    for (text, said) in [
        ("descriptors: []\n".into(), "r.yaml:1:1: a domain is missing"),
        ("domain: ''\n".into(), "a domain is missing"),
        ("- x\n".into(), "r.yaml:1:1: expected keys and values"),
        ("domain: d\ndescriptor: []\n".into(), "r.yaml:2:1: unknown key 'descriptor'; known here: domain"),
        ("domain: d\ndomain: e\n".into(), "r.yaml:2:1: 'domain' is given twice"),
        ("domain: d\ndescriptors: {key: a}\n".into(), "r.yaml:2:14: descriptors must be a list"),
        ("domain: d\ndescriptors:\n  - value: a\n".into(), "r.yaml:3:5: a key is missing"),
        ("domain: d\ndescriptors:\n  - a\n".into(), "r.yaml:3:5: expected keys and values: key, value"),
        ("domain: d\ndescriptors:\n  - key: [a]\n".into(), "r.yaml:3:10: key must be one word or number"),
        ("domain: d\ndescriptors:\n  - key: a*\n".into(), "r.yaml:3:5: a * may stand in a value"),
        (format!("{rule}{plain}  - key: a\n{plain}"), "r.yaml:5:5: a second rule for 'a'"),
        (format!("{rule}    valeu: x\n"), "r.yaml:4:5: unknown key 'valeu'"),
        (format!("{rule}    shadow_mode: maybe\n"), "r.yaml:4:18: shadow_mode must be true or false"),
        (format!("{rule}    share_threshold: true\n"), "r.yaml:4:22: share_threshold needs a value with a *"),
        (format!("{rule}    rate_limit: 5\n"), "r.yaml:4:17: expected keys and values: unit, requests_per_unit"),
        (limit("      requests_per_unit: 5\n"), "r.yaml:5:7: a unit is missing"),
        (limit("      unit: fortnight\n"), "r.yaml:5:13: 'fortnight' is not a unit"),
        (limit("      unit: unknown\n"), "'unknown' is not a unit"),
        (limit("      unit: day\n"), "r.yaml:5:7: requests_per_unit is missing"),
        (limit("      unit: day\n      requests_per_unit: -1\n"), "r.yaml:6:26: '-1' is not a number from 0"),
        (limit("      unit: day\n      requests_per_unit: 5000000000\n"), "is not a number from 0 to 4294967295"),
        (limit("      unlimited: true\n      unit: day\n"), "r.yaml:6:13: an unlimited limit has no unit"),
        (
            limit("      unit: day\n      requests_per_unit: 1\n      name: n\n      replaces:\n        - name: n\n"),
            "r.yaml:9:11: a limit cannot replace itself",
        ),
        (limit("      unit: day\n      requests_per_unit: 1\n      replaces: [{name: ''}]\n"), "is missing"),
        (
            limit("      unit: day\n      requests_per_unit: 0100\n"),
            "r.yaml:6:26: '0100' is decimal for some and octal for others",
        ),
        (limit("      unit: day\n      requests_per_unit: +5\n"), "r.yaml:6:26: '+5' is not a number"),
        ("domain: d\n---\ndomain: e\n".into(), "r.yaml:2:1: a second document: put each domain"),
        ("domain: d\n...\ndomain: e\n".into(), "r.yaml:3:7: a second document"),
        (format!("domain: d\ndescriptors:\n  - key: {}\n", "k".repeat(5_000)), "r.yaml:3:5: the keys and values"),
        (format!("domain: {}\n", "d".repeat(257)), "r.yaml:1:1: the domain has more than 256 bytes"),
        (
            format!("{rule}    rate_limit: {{unlimited: true, name: {}}}\n", "n".repeat(257)),
            "the name of the limit has more than 256 bytes",
        ),
        (format!("{rule}    rate_limit: &x {{unit: day}}\n"), "anchors are not supported"),
        ("domain: d\n  descriptors: []\n".into(), "r.yaml:2:"),
        ("domain: \"d\n".into(), "r.yaml:"),
    ] {
        let error = open_with(&text, Options::default()).expect_err(&text);
        assert!(error.starts_with("r.yaml:") && error.contains(said), "{text}\n{error}\nnot: {said}");
    }
}

fn read(paths: &[String]) -> Result<Vec<Source>, String> {
    tatcell_ratelimit::read::sources(paths, &[], &mut drop)
}

#[test]
fn what_is_no_file_of_rules_in_a_folder_is_left_out_by_name_and_reason() {
    let rules = Rules::new(EXAMPLES);
    let folder = rules.0.to_string_lossy().into_owned();
    let write = |name: &str, bytes: &[u8]| std::fs::write(rules.0.join(name), bytes).expect("a file");
    let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let editor = "it has the name of an editor's file";
    let name = "its name does not end in .yaml or .yml";
    let strays = [
        ("._rules.yaml", editor),
        (".#rules.yaml", editor),
        (".rules.yaml.swp", editor),
        ("rules.yaml~", editor),
        ("#rules.yaml#", editor),
        ("rules.yaml.bak", name),
        ("rules.yaml.swp", name),
        ("RULES.YAML", name),
        ("old.yaml", "it is a folder"),
        ("link.yaml", "there is no such file"),
        ("pipe.yaml", "it is not a file"),
        ("empty.yaml", "it is empty"),
        ("remark.yml", "it is empty"),
        ("utf16.yaml", "it is not UTF-8"),
        ("utf16-unmarked.yaml", "it is not UTF-8"),
        ("latin1.yaml", "it is not UTF-8"),
        ("latin1-end.yaml", "it ends within a character of UTF-8"),
    ];
    write("._rules.yaml", &[0xff, 0]);
    for (link, to) in [(".#rules.yaml", "nobody@nowhere"), ("link.yaml", "nothing.yaml")] {
        std::os::unix::fs::symlink(to, rules.0.join(link)).expect("a link");
    }
    for folder in ["old.yaml", "..data"] {
        std::fs::create_dir(rules.0.join(folder)).expect("a folder");
    }
    let pipe = std::process::Command::new("mkfifo").arg(rules.0.join("pipe.yaml")).status();
    assert!(pipe.is_ok_and(|status| status.success()));
    write("empty.yaml", b"");
    write("remark.yml", b"\n  # nothing yet\n");
    // As an editor of another system saves it, and without the mark.
    write("utf16.yaml", &utf16("\u{feff}domain: e\n"));
    write("utf16-unmarked.yaml", &utf16("domain: e\n"));
    write("latin1.yaml", b"domain: caf\xe9s\n");
    write("latin1-end.yaml", b"domain: caf\xe9");
    for (stray, _) in strays.iter().filter(|(stray, _)| !rules.0.join(stray).exists()) {
        if !stray.contains("link") && *stray != ".#rules.yaml" {
            write(stray, b"domain: d\n");
        }
    }
    let mut notes = Vec::new();
    let sources =
        tatcell_ratelimit::read::sources(std::slice::from_ref(&folder), &[], &mut |note| notes.push(note));
    assert_eq!(sources.expect("one file").len(), 1);
    let mut want = strays.map(|(stray, why)| format!("{folder}/{stray} is left out: {why}"));
    want.sort();
    assert_eq!(notes, want);
    // One that is named by itself is refused.
    for (stray, why) in
        strays.into_iter().filter(|(_, why)| ![editor, name, "it is a folder", "it is empty"].contains(why))
    {
        let path = rules.0.join(stray).to_string_lossy().into_owned();
        let error = read(std::slice::from_ref(&path)).expect_err("refused");
        assert_eq!(error, format!("cannot read {path}: {why}"));
    }
    // The mark of an encoding is not part of the first key.
    rules.write(&format!("\u{feff}{}", EXAMPLES.trim_start()));
    let sources = read(&[rules.path()]).expect("a file");
    assert!(RateLimit::open(&sources, settings(), Options::default()).is_ok());
}

#[test]
fn counters_of_a_rule_go_with_it() {
    let rule = |key: &str| format!("  - {{key: {key}, rate_limit: {{unit: day, requests_per_unit: 9}}}}\n");
    let text = |keys: &[&str]| {
        let text = keys.iter().map(|key| rule(key)).collect::<String>();
        vec![Source { name: "r.yaml".into(), text: format!("domain: d\ndescriptors:\n{text}") }]
    };
    let service = RateLimit::open(&text(&["a", "b"]), settings(), Options::default()).expect("a service");
    for round in 0..50 {
        decide(&service, "d", &["a=1"]);
        service.reload(Ok(text(&["a", &format!("k{round}")]))).expect("rules");
        service.reload(Ok(text(&["a", "a"]))).expect_err("twice");
    }
    let mut page = String::new();
    service.metrics(&mut page);
    let rules = page.lines().filter(|line| line.starts_with("tatcell_ratelimit_hits_total{")).count();
    assert_eq!(rules, 2 * 3, "{page}");
    assert!(page.contains("{domain=\"d\",rule=\"a\",outcome=\"within\"} 9\n"), "{page}");
}

#[test]
fn every_number_of_every_unit_is_kept_in_rules_and_in_descriptors() {
    let units = [Unit::Second, Unit::Minute, Unit::Hour, Unit::Day, Unit::Week, Unit::Month, Unit::Year];
    for number in [1, 1_000_000, 3_000_000, 4_000_000, 70_000_000, 1_000_000_000, u32::MAX] {
        let rule = |unit: &Unit| {
            let name = unit.name();
            format!("  - {{key: {name}, rate_limit: {{unit: {name}, requests_per_unit: {number}}}}}\n")
        };
        let service =
            open(&format!("domain: d\ndescriptors:\n{}", units.iter().map(rule).collect::<String>()));
        for unit in units {
            let key = format!("{}=x", unit.name());
            let mut asked = request("d", &[&key, "other=x"]);
            asked.descriptors[1].limit = Some(Override { requests_per_unit: number, unit: unit.into() });
            let left = vec![Some((number, unit, number - 1)); 2];
            assert_eq!(told(&try_decide(&service, &asked).expect("an answer")), (true, left));
        }
    }
}

#[test]
fn negative_hits_are_not_charged_and_never_refused() {
    let service = open(EXAMPLES);
    let mut asked = request("messaging", &["remote_address=1"]);
    asked.hits_addend = 4;
    asked.descriptors[0].is_negative_hits = true;
    assert_eq!(
        told(&try_decide(&service, &asked).expect("an answer")),
        (true, vec![Some((10, Unit::Minute, 10))])
    );
    asked.descriptors[0].entries[0].value = "50.0.0.5".into();
    assert!(told(&try_decide(&service, &asked).expect("an answer")).0, "a limit of 0");
    let mut page = String::new();
    service.metrics(&mut page);
    assert!(page.contains("\ntatcell_ratelimit_unreturned_total 8\n"), "{page}");
}

#[test]
fn a_refusal_that_no_wait_helps_has_no_time() {
    let service = open(EXAMPLES);
    let mut asked =
        request("messaging", &["remote_address=50.0.0.5", "remote_address=7", "remote_address=8"]);
    asked.descriptors[1].hits_addend = Some(11);
    let answer = try_decide(&service, &asked).expect("an answer");
    let times: Vec<bool> =
        answer.statuses.iter().map(|status| status.duration_until_reset.is_some()).collect();
    assert_eq!(times, [false, false, true]);
}

#[test]
fn folders_are_read_whole_and_a_domain_stands_in_one_file() {
    let rules = Rules::new(EXAMPLES);
    let folder = rules.0.to_string_lossy().into_owned();
    std::fs::write(rules.0.join("note.txt"), "no rules").expect("a file");
    std::fs::write(rules.0.join("other.yml"), "domain: other\n").expect("a file");
    let sources = read(std::slice::from_ref(&folder)).expect("two files");
    assert_eq!(sources.len(), 2);
    assert!(RateLimit::open(&sources, settings(), Options::default()).is_ok());
    let twice = [&sources[..], &sources[..1]].concat();
    let error = RateLimit::open(&twice, settings(), Options::default()).expect_err("an error");
    assert!(error.contains("is in another file, too"), "{error}");
    assert!(read(&["/does/not/exist".into()]).is_err_and(|e| e.contains("/does/not")));
    std::fs::remove_file(rules.0.join("other.yml")).expect("removed");
    std::fs::remove_file(rules.path()).expect("removed");
    assert!(read(&[folder]).is_err_and(|e| e.contains("no rules in")));
}

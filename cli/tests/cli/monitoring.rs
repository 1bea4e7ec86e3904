//! The dashboard and the alert rules of packaging/monitoring: a real Prometheus runs every query of them on what
//! `tatcell show --serve` serves.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tatcell::host::SharedCounters;

use crate::folder;
use crate::serve::{get, serve, table, Name, Running, PATIENCE};

fn monitoring(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/monitoring").join(file)
}

/// Whether a program is there; else a line says which package has it.
fn have(program: &str, test: &str) -> bool {
    let found = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let found = found.is_ok_and(|status| status.success());
    if !found {
        println!("SKIP {test}: {program} is not installed: apt-get install prometheus");
    }
    found
}

/// Runs promtool, which must be content.
fn promtool(arguments: &[&str], input: Option<&str>) {
    let mut command = Command::new("promtool");
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("promtool runs");
    let mut stdin = child.stdin.take().expect("its input");
    stdin.write_all(input.unwrap_or_default().as_bytes()).expect("a pipe");
    drop(stdin);
    let output = child.wait_with_output().expect("its output");
    let said = [&*output.stdout, b"\n", &output.stderr].concat();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&said));
}

#[test]
fn the_alert_rules_are_good_and_each_fires_when_it_should() {
    if !have("promtool", "alert_rules") {
        return;
    }
    let (rules, tests) = (monitoring("alerts.yml"), monitoring("alerts_test.yml"));
    promtool(&["check", "rules", rules.to_str().expect("a path")], None);
    promtool(&["test", "rules", tests.to_str().expect("a path")], None);
    // Each alert has a test in which it fires.
    let (rules, tests) =
        (fs::read_to_string(rules).expect("rules"), fs::read_to_string(tests).expect("tests"));
    let alerts: Vec<_> = rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    assert!(alerts.len() >= 6, "{alerts:?}");
    for alert in alerts {
        let fires = format!("alertname: {alert}\n        exp_alerts:\n");
        assert!(tests.contains(&fires), "{alert} fires in no test");
        // The page says what to do about it.
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/OPERATING.md");
        assert!(fs::read_to_string(page).expect("the page").contains(&format!("`{alert}`")), "{alert}");
    }
}

/// The queries of the dashboard, with its variables as names.
fn queries(dashboard: &Value) -> Vec<String> {
    let panels = dashboard["panels"].as_array().expect("panels");
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    targets.map(|target| target["expr"].as_str().expect("a query").to_owned()).collect()
}

/// The names that begin with tatcell_ in a query or a text.
fn metrics(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("tatcell_")).map(str::to_owned).collect()
}

fn dashboard() -> Value {
    serde_json::from_str(&fs::read_to_string(monitoring("dashboard.json")).expect("a dashboard"))
        .expect("JSON")
}

#[test]
fn the_dashboard_is_whole_and_every_variable_is_declared() {
    let dashboard = dashboard();
    assert_eq!((&dashboard["uid"], &dashboard["title"]), (&"tatcell".into(), &"tatcell".into()));
    let panels = dashboard["panels"].as_array().expect("panels");
    let (mut ids, mut taken) = (BTreeSet::new(), BTreeSet::new());
    for panel in panels {
        assert!(ids.insert(panel["id"].as_u64().expect("a number")), "{}", panel["id"]);
        let at = |field: &str| panel["gridPos"][field].as_u64().expect("a number");
        assert!(at("x") + at("w") <= 24, "{}", panel["title"]);
        for (x, y) in
            (at("x")..at("x") + at("w")).flat_map(|x| (at("y")..at("y") + at("h")).map(move |y| (x, y)))
        {
            assert!(taken.insert((x, y)), "{} covers another panel", panel["title"]);
        }
        if panel["type"] != "row" {
            assert!(
                panel["description"].as_str().is_some_and(|text| text.ends_with('.')),
                "{}",
                panel["title"]
            );
            assert_eq!(panel["datasource"]["uid"], "${datasource}");
        }
    }
    let variables = dashboard["templating"]["list"].as_array().expect("variables");
    let declared: BTreeSet<_> = variables.iter().filter_map(|variable| variable["name"].as_str()).collect();
    for query in queries(&dashboard) {
        for used in query.split('$').skip(1) {
            let name: String = used.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
            assert!(name == "__rate_interval" || declared.contains(&*name), "${name} in {query}");
        }
    }
    // Every family that the library writes has a place, but for soft requests, which few limits have.
    let used: BTreeSet<_> = queries(&dashboard).iter().flat_map(|query| metrics(query)).collect();
    let mut written = families();
    written.remove("tatcell_soft_requests_total");
    assert_eq!(used, written);
}

/// The families that the library writes.
fn families() -> BTreeSet<String> {
    let (name, counts) = (Name::new("families"), Name::new("families-counts"));
    let _memory = table(&name, 1);
    let _counters = SharedCounters::open(&counts.text(), 1, 0o600).expect("counters");
    let (_running, address) = serve(&[&name.0, "--counters", &counts.0]);
    let text = get(&address, "/metrics", "").2;
    text.lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next())
        .map(str::to_owned)
        .collect()
}

#[test]
fn grafana_reads_all_of_the_dashboard() {
    let fetched = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/python/bin/python");
    let program = if fetched.exists() { fetched } else { "python3".into() };
    let python = |arguments: &[&str]| Command::new(&program).args(arguments).output();
    let has = python(&["-c", "import grafana_foundation_sdk"]).is_ok_and(|output| output.status.success());
    if !has {
        println!("SKIP dashboard_schema: no grafana_foundation_sdk for python3: make -C cli grafana");
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dashboard.py");
    let file = monitoring("dashboard.json");
    let output =
        python(&[script.to_str().expect("a path"), file.to_str().expect("a path")]).expect("python3");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    // What the schema does not have is found.
    let mut other = dashboard();
    other["panels"][0]["gridPosition"] = 3.into();
    let bad = folder("dashboard-schema").join("dashboard.json");
    fs::write(&bad, other.to_string()).expect("a file");
    let output = python(&[script.to_str().expect("a path"), bad.to_str().expect("a path")]).expect("python3");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        !output.status.success() && said.contains(".panels[0].gridPosition: not in the schema"),
        "{said}"
    );
}

/// A Prometheus that scrapes some addresses each second.
struct Prometheus {
    address: String,
    _running: Running,
}

impl Prometheus {
    fn start(folder: &Path, targets: &[&str]) -> Prometheus {
        let port = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port();
        let address = format!("127.0.0.1:{port}");
        let config = folder.join("prometheus.yml");
        let rules = monitoring("alerts.yml").canonicalize().expect("the rules");
        let text = format!(
            "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: ['{}']\nscrape_configs:\n\
             - job_name: tatcell\n  static_configs: [{{targets: {targets:?}}}]\n",
            rules.display()
        );
        fs::write(&config, text).expect("a file");
        let mut command = Command::new("prometheus");
        command.arg(format!("--config.file={}", config.display()));
        command.arg(format!("--storage.tsdb.path={}", folder.join("data").display()));
        command.arg(format!("--web.listen-address={address}")).arg("--log.level=error");
        command.stdout(Stdio::null()).stderr(fs::File::create(folder.join("log")).expect("a file"));
        let running = Running(command.spawn().expect("prometheus runs"));
        let prometheus = Prometheus { address, _running: running };
        let until = Instant::now() + PATIENCE;
        let ready = || {
            let connects = TcpStream::connect(&prometheus.address).is_ok();
            connects && get(&prometheus.address, "/-/ready", "").0 == 200
        };
        while !ready() {
            let log = || fs::read_to_string(folder.join("log")).unwrap_or_default();
            assert!(Instant::now() < until, "prometheus is not ready: {}", log());
            std::thread::sleep(Duration::from_millis(50));
        }
        prometheus
    }

    /// The series that a query gives: labels and value.
    fn query(&self, query: &str) -> Vec<Value> {
        let escaped: String = query.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let (status, _, text) = get(&self.address, &format!("/api/v1/query?query={escaped}"), "");
        let answer: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!((status, &answer["status"]), (200, &"success".into()), "{query}: {text}");
        answer["data"]["result"].as_array().expect("series").clone()
    }

    /// Asks until a query gives a series, while `meanwhile` goes on.
    fn wait_for(&self, query: &str, mut meanwhile: impl FnMut()) -> Vec<Value> {
        let until = Instant::now() + PATIENCE;
        loop {
            let found = self.query(query);
            if !found.is_empty() {
                return found;
            }
            assert!(Instant::now() < until, "no series: {query}");
            meanwhile();
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

/// The expressions of the rules: `expr: TEXT`, or the lines below `expr: >-`.
fn expressions(rules: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut lines = rules.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(text) = line.trim().strip_prefix("expr: ") else { continue };
        if text != ">-" {
            found.push(text.to_owned());
            continue;
        }
        let indent = " ".repeat(10);
        let mut whole = String::new();
        while let Some(more) = lines.next_if(|line| line.starts_with(&indent)) {
            whole += more.trim();
            whole.push(' ');
        }
        found.push(whole.trim().to_owned());
    }
    found
}

#[test]
fn a_real_prometheus_runs_every_query_of_dashboard_and_alerts_and_gets_a_series() {
    if !have("promtool", "prometheus_queries") || !have("prometheus", "prometheus_queries") {
        return;
    }
    let folder = folder("prometheus");
    // A table that is full, so that each alert has a reason.
    let (name, counts) = (Name::new("scraped"), Name::new("scraped-counts"));
    let _memory = table(&name, 400);
    let mut counters = SharedCounters::open(&counts.text(), 1, 0o600).expect("counters");
    let mut count = || {
        let block = &mut counters.blocks()[0];
        block.conforming += 100;
        block.soft += 1;
        block.non_conforming += 900;
        block.never += 10;
        block.contended += 20;
        block.untracked += 30;
        block.inherited += 1;
        block.forgiven += 1;
        block.inserted += 40;
    };
    count();
    let (_running, address) = serve(&[&name.0, "--counters", &counts.0]);
    let text = get(&address, "/metrics", "").2;
    promtool(&["check", "metrics"], Some(&text));
    let prometheus = Prometheus::start(&folder, &[&address]);

    // A rate needs two scrapes, and the rule on it one evaluation more.
    let refuses = "tatcell:refused:rate5m > 0 and tatcell:requests:rate5m > 0";
    prometheus.wait_for(refuses, &mut count);
    let series = prometheus.query(&format!("tatcell_slots{{table=\"{}\"}}", name.0));
    assert_eq!(series[0]["value"][1], "32");
    // Prometheus asks for OpenMetrics, and takes its types.
    let (_, _, kinds) = get(&prometheus.address, "/api/v1/metadata?metric=tatcell_requests", "");
    assert!(kinds.contains("\"type\":\"counter\""), "{kinds}");

    let variables = |query: &str| query.replace("$__rate_interval", "1m").replace(['$'], ".*");
    let named = |query: &str| {
        let query = ["job", "instance", "table"]
            .iter()
            .fold(query.to_owned(), |query, name| query.replace(&format!("\"${name}\""), "\".*\""));
        variables(&query)
    };
    let queries = queries(&dashboard());
    assert!(queries.len() >= 10, "{queries:?}");
    for query in &queries {
        let found = prometheus.wait_for(&named(query), &mut count);
        assert!(found.iter().all(|series| series["value"][1] != "NaN"), "{query}: {found:?}");
    }
    let rules = fs::read_to_string(monitoring("alerts.yml")).expect("rules");
    let expressions = expressions(&rules);
    assert_eq!(expressions.len(), rules.matches("expr:").count());
    for expression in &expressions {
        // What is up has a series if it is asked for the other way round.
        if expression.starts_with("up == 0 and ") {
            let found = prometheus.wait_for(&expression.replace("up == 0", "up == 1"), &mut count);
            assert_eq!(found[0]["metric"]["instance"], *address, "{expression}");
            assert!(prometheus.query(expression).is_empty());
            continue;
        }
        let found = prometheus.wait_for(expression, &mut count);
        assert_eq!(found[0]["metric"]["table"], *name.0, "{expression}");
    }
    // An alert without a waiting time fires by itself.
    prometheus.wait_for("ALERTS{alertname=\"TatcellNeverPasses\",alertstate=\"firing\"}", &mut count);
    prometheus.wait_for("ALERTS{alertname=\"TatcellTableTooSmall\",alertstate=\"pending\"}", &mut count);
    // The labels by which the dashboard chooses.
    let variables = dashboard()["templating"]["list"].as_array().expect("variables").clone();
    for query in variables.iter().filter_map(|variable| variable["query"]["query"].as_str()) {
        let inner =
            query.strip_prefix("label_values(").and_then(|rest| rest.strip_suffix(')')).expect("a query");
        let (selector, label) = inner.rsplit_once(", ").expect("a label");
        let found = prometheus.query(&named(selector));
        assert!(found.iter().any(|series| series["metric"][label].is_string()), "{query}");
    }
}

//! `tatcell plan --emit`: each form has the numbers of the limit, and the real program accepts it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::folder;
use crate::program::{LINE, PROGRAM};
use crate::replay::{adds_up, json, number, Throttled};
use crate::replay_grpc::ratelimit;

fn log(name: &str) -> (PathBuf, String) {
    let folder = folder(name);
    let file = folder.join("access.log");
    fs::write(&file, LINE.repeat(3)).expect("a file");
    (folder, file.to_str().expect("a name").to_owned())
}

fn emit(log: &str, form: &str, more: &[&str]) -> Output {
    let limit: &[&str] = if more.contains(&"-l") { &[] } else { &["-l", "5/s burst 20"] };
    let arguments = [&["plan", log, "--slots", "1024", "--emit", form][..], limit, more].concat();
    Command::new(PROGRAM).args(arguments).output().expect("the program runs")
}

/// The configuration.
fn text(log: &str, form: &str, more: &[&str]) -> String {
    let output = emit(log, form, more);
    assert_eq!(output.status.code(), Some(0), "{form}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// What `tatcell check` says of a configuration.
fn check(file: &Path) -> Value {
    let output =
        Command::new(PROGRAM).arg("check").arg(file).arg("--json").output().expect("the program runs");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Whether a program is there; says what is not tried if it is not.
pub fn has(program: &str, how: &str) -> bool {
    let found = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .chain([PathBuf::from("/usr/sbin")])
        .any(|folder| folder.join(program).is_file());
    if !found {
        println!("SKIP what_{program}_makes_of_it: {program} is not there: {how}");
    }
    found
}

/// A program, also of those for administrators.
pub fn program(name: &str) -> Command {
    let mut command = Command::new(name);
    command.env("PATH", format!("{}:/usr/sbin", std::env::var("PATH").unwrap_or_default()));
    command
}

/// The module of tatcell for a program, or a policer, which `make test` builds where the headers for it are.
pub fn module(program: &str, file: &str) -> Option<PathBuf> {
    let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/modules").join(file);
    if !module.is_file() {
        println!("SKIP what_{program}_makes_of_it: {file} is not built: install cli/packages, then make -C cli test");
        return None;
    }
    Some(module)
}

fn runs(command: &mut Command) {
    ends(command, 0, "");
}

/// Runs a program, which ends with this code and says this.
fn ends(command: &mut Command, code: i32, want: &str) {
    let output = command.output().expect("a program");
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(code) && said.contains(want), "{command:?}\n{want}\n{said}");
}

#[test]
fn nginx_has_the_limit() {
    let (folder, log) = log("emit-nginx");
    let file = folder.join("limit.conf");
    for (key, want) in [
        ("address", "$remote_addr"),
        ("address/24", "$tatcell_network24"),
        ("path:2", "$tatcell_path2"),
        ("path", "$tatcell_path"),
        ("user_agent", "$http_user_agent"),
        ("address+method", "$remote_addr:$request_method"),
    ] {
        fs::write(&file, text(&log, "nginx", &["-k", key])).expect("a file");
        let json = check(&file);
        let limit = &json["limits"][0];
        assert_eq!(
            (&limit["burst"], &limit["at_once"], &limit["key"]),
            (&20.into(), &20.into(), &want.into())
        );
        assert_eq!(limit["emission_interval_seconds"].as_f64(), Some(0.2), "{json}");
    }
    for (limit, interval) in
        [("30/min burst 3", 2.0), ("1/15min burst 2", 900.0), ("3/100ms burst 9", 0.1 / 3.0)]
    {
        fs::write(&file, text(&log, "nginx", &["-l", limit])).expect("a file");
        let found = check(&file)["limits"][0]["emission_interval_seconds"].as_f64().expect("a number");
        assert!((found - interval).abs() < 1e-12, "{limit}: {found}");
    }
    // Of a chain each limit is a zone, and the place of the limits has all of them.
    fs::write(&file, text(&log, "nginx", &["-l", "5/s burst 20 and /24 30/min burst 100"])).expect("a file");
    let json = check(&file);
    let limits: Vec<_> = json["limits"].as_array().expect("limits").iter().collect();
    let of = |at: usize, name: &str| limits[at][name].clone();
    assert_eq!((of(0, "burst"), of(1, "burst"), limits.len()), (20.into(), 100.into(), 2), "{json}");
    assert_eq!((of(0, "key"), of(1, "key")), ("$remote_addr".into(), "$tatcell_network24".into()), "{json}");
    assert_eq!(of(1, "emission_interval_seconds").as_f64(), Some(2.0), "{json}");
    if !has("nginx", "apt-get install nginx") {
        return;
    }
    let Some(module) = module("nginx", "nginx/installed/ngx_http_tatcell_module.so") else { return };
    let chain = "5/s burst 20 and 100/min burst 60 and /24 20/s burst 100 and /16 50/s burst 200";
    for (places, more) in [
        (1, &["-k", "address"][..]),
        (1, &["-k", "address/24"]),
        (1, &["-k", "path:2"]),
        (1, &["-k", "path:1+path:2"]),
        (1, &["-k", "path+user_agent"]),
        (1, &["-p", "sampled"]),
        (4, &["-l", chain]),
    ] {
        let conf = text(&log, "nginx", more);
        let lines: Vec<_> = conf.lines().collect();
        let (http, location) = lines.split_at(lines.len() - places);
        assert!(location.iter().all(|line| line.starts_with("tatcell zone=")), "{conf}");
        let (http, location) = (http.join("\n"), location.join("\n"));
        let whole = format!(
            "load_module {};\nevents {{ }}\npid {folder}/pid;\nerror_log stderr;\nhttp {{ access_log off;\n{http}\n\
             server {{ listen unix:{folder}/socket; location / {{ {location} }} }} }}\n",
            module.display(),
            folder = folder.display()
        );
        fs::write(folder.join("nginx.conf"), whole).expect("a file");
        runs(program("nginx").arg("-t").arg("-p").arg(&folder).args(["-c", "nginx.conf"]));
    }
}

#[test]
fn envoy_s_rules_are_read_by_the_server_s_reader() {
    let (folder, log) = log("emit-envoy");
    let file = folder.join("rules.yaml");
    for (limit, key, burst, interval) in [
        ("5/s", "address", 5, 0.2),
        ("2/s burst 120", "address/24", 120, 0.5),
        ("100/h", "address+path", 100, 36.0),
    ] {
        fs::write(&file, text(&log, "envoy", &["-l", limit, "-k", key])).expect("a file");
        let json = check(&file);
        assert_eq!(json["limits"][0]["burst"], burst, "{json}");
        assert_eq!(json["limits"][0]["emission_interval_seconds"].as_f64(), Some(interval));
    }
    let output = emit(&log, "envoy", &[]);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(message.contains("it can have \"5/second\" (burst 5), \"300/minute\" (burst 300)"), "{message}");
    // Only what the rate has exactly is offered.
    for (limit, want) in [
        ("100/m burst 20", "at this rate it can have \"100/minute\" (burst 100), \"6000/hour\" (burst 6000)"),
        (
            "1/1000000s burst 2",
            "at this rate no unit of time has a whole number of requests: plan with another rate",
        ),
    ] {
        let output = emit(&log, "envoy", &["-l", limit]);
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && message.contains(want), "{message}");
    }
    // Without lengths Envoy sends whole addresses.
    let masked = text(&log, "envoy", &["-l", "5/s", "-k", "address/24,56"]);
    assert!(
        masked.contains("masked_remote_address: {v4_prefix_mask_len: 24, v6_prefix_mask_len: 56}"),
        "{masked}"
    );
    assert!(text(&log, "envoy", &["-l", "5/s"]).contains("# remote_address: {}\n"));
}

#[test]
fn envoy_s_service_decides_by_the_rules() {
    let (_, log) = log("emit-envoy-service");
    let requests = crate::replay::log();
    let file = crate::replay::file("emit-envoy-requests", &requests);
    for (limit, key) in [("5/s", "address"), ("2/s burst 120", "address/24"), ("100/h", "address+path")] {
        let rules = text(&log, "envoy", &["-l", limit, "-k", key]);
        let Some((_running, url)) = ratelimit("emit-envoy-service", &rules, &[]) else { return };
        let (code, json) = json(&file, &url, limit, &["--key", key, "--speed", "max"]);
        adds_up(&json, &requests);
        assert_eq!((code, &json["impossible"]), (Some(0), &0.into()), "{limit}: {json}");
        assert!(number(&json["server_refused"]) > 0, "{limit}: {json}");
    }
}

#[test]
fn envoy_takes_the_actions() {
    let (folder, log) = log("emit-envoy-actions");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cluster");
    let fetched = root.join("target/python/bin/envoy");
    let named = std::env::var_os("TATCELL_ENVOY").map(PathBuf::from);
    let Some(envoy) = named
        .or_else(|| fetched.is_file().then_some(fetched))
        .or_else(|| has("envoy", "make -C cluster test-servers fetches one").then(|| PathBuf::from("envoy")))
    else {
        return;
    };
    // The configuration that the server's page shows, with the actions of two keys.
    let actions = ["address", "address/24,56"].map(|key| {
        let rules = text(&log, "envoy", &["-l", "5/s", "-k", key]);
        let action = rules.lines().find(|line| line.contains("address: {")).expect("an action");
        action.replace("# ", "- ")
    });
    let page = fs::read_to_string(root.join("envoy/README.md")).expect("a page");
    let shown =
        page.split("```").find(|block| block.starts_with("yaml\nstatic_resources:")).expect("a block");
    let place = "- request_headers: {header_name: x-user, descriptor_key: user}\n";
    assert!(shown.contains(place), "{shown}");
    let actions = format!("{}\n{:20}{}\n", actions[0], "", actions[1]);
    let bootstrap = shown.trim_start_matches("yaml\n").replace(place, &actions);
    let file = folder.join("envoy.yaml");
    for (bootstrap, code, want) in
        [(bootstrap.replace("v6_prefix_mask_len", "v6_bits"), 1, "v6_bits"), (bootstrap, 0, "OK")]
    {
        fs::write(&file, bootstrap).expect("a file");
        ends(Command::new(&envoy).args(["--mode", "validate", "-c"]).arg(&file), code, want);
    }
}

#[test]
fn a_comment_says_how_the_key_is_cut() {
    let (_, log) = log("emit-heads");
    for form in ["nginx", "haproxy", "c", "rust", "throttled"] {
        let key = if form == "nginx" { "address/24" } else { "address/24,56" };
        let text = text(&log, form, &["-k", key]);
        assert!(text.contains(&format!("5/s burst 20 by {key}: from tatcell plan")), "{text}");
    }
    let call = text(&log, "throttled", &["-k", "address/24,56+path:2"]);
    assert!(call.contains("CL.THROTTLE <address/24,56+path:2> 19 5 1\n"), "{call}");
}

/// `*/` would end a comment of C, `/*` is a warning there, and a new line ends those of all others.
#[test]
fn a_key_ends_no_comment() {
    let folder = folder("emit-comments");
    let file = folder.join("log.json");
    fs::write(&file, r#"{"msec":1700000000,"path":"/x/1/y\n!"}"#).expect("a file");
    let log = file.to_str().expect("a name");
    let source = folder.join("limit.c");
    for limit in ["5/s burst 20", "5/s burst 20 and 30/min burst 25"] {
        for key in ["path=/x/*/y\n!", "path=/*/*/y\n!"] {
            for form in ["c", "rust", "throttled"] {
                if form == "throttled" && limit.contains("and") {
                    continue;
                }
                let text = text(log, form, &["-k", key, "-l", limit]);
                assert!(text.contains(r"y\n!") && !text.contains("\n!"), "{text}");
                if form == "c" {
                    fs::write(&source, text).expect("a file");
                    let mut compiler = Command::new("cc");
                    compiler.args(["-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", "-I"]);
                    runs(compiler.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../include")).arg(&source));
                }
            }
        }
    }
}

#[test]
fn a_table_that_was_too_small_gives_no_size() {
    let file = folder("emit-full").join("access.log");
    let lines =
        (0..5_000).map(|host| LINE.replace("192.0.2.1", &format!("10.0.{}.{}", host / 250, host % 250)));
    fs::write(&file, lines.collect::<String>()).expect("a file");
    let name = file.to_str().expect("a name");
    let output = emit(name, "c", &[]);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(
        message.contains("met a full set of the 1024 slots") && message.contains("more --slots"),
        "{message}"
    );
    // With enough slots there is one.
    let arguments = ["plan", name, "--slots", "65536", "--emit", "c", "-l", "5/s burst 20"];
    let output = Command::new(PROGRAM).args(arguments).output().expect("the program runs");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn throttled_s_settings_are_read_by_the_server_s_reader() {
    let (folder, log) = log("emit-throttled");
    let file = folder.join("throttled.toml");
    let conf = text(&log, "throttled", &["-l", "3/100ms burst 9"]);
    assert!(conf.contains("CL.THROTTLE <address> 8 30 1\n"), "{conf}");
    fs::write(&file, &conf).expect("a file");
    assert_eq!(check(&file)["limits"], Value::Array(Vec::new()));
    // The server starts with it, at another port, and decides as the limit says.
    fs::write(&log, LINE.repeat(15)).expect("a file");
    let server = Throttled::with(&conf.replace(":6379\"", ":0\""));
    let asked = Command::new(PROGRAM)
        .args(["replay", &log, "--to", &server.1, "--limit", "3/100ms burst 9", "--speed", "max"])
        .output()
        .expect("the program runs");
    assert_eq!(asked.status.code(), Some(0), "{}", String::from_utf8_lossy(&asked.stderr));
    // With the lines for a store it is a shared limit, with the same numbers.
    let lines = conf.lines().map(|line| match line.strip_prefix("# ") {
        Some(setting) if setting.contains(" = ") => setting,
        _ => line,
    });
    fs::write(&file, lines.collect::<Vec<_>>().join("\n")).expect("a file");
    let json = check(&file);
    assert_eq!((&json["limits"][0]["burst"], &json["limits"][0]["units"]), (&9.into(), &30.into()), "{json}");
}

#[test]
fn haproxy_s_lua_is_accepted() {
    let (folder, log) = log("emit-haproxy");
    let file = folder.join("limit.lua");
    let lua = text(&log, "haproxy", &["-k", "address/24,56"]);
    assert!(
        lua.contains("src,ipmask(24,56),lua.tatcell") && lua.contains("rate = \"5/s\", burst = 20"),
        "{lua}"
    );
    fs::write(&file, &lua).expect("a file");
    // The script runs, with stand-ins for HAProxy and the module that note what they are asked for.
    let around = folder.join("around.lua");
    fs::write(
        &around,
        format!(
            "local asked\n\
             package.preload.tatcell = function () return {{ new = function (o) asked = o; return {{ check = \
             function () \
             return false, 1.5 end }} end }} end\n\
             core = {{ register_converters = function (name, f) assert(name == 'tatcell' and f('k') == 2) end }}\n\
             dofile('{}')\nassert(asked.rate == '5/s' and asked.burst == 20 and asked.slots >= 256)\n",
            file.display()
        ),
    )
    .expect("a file");
    for lua in ["lua5.4", "lua5.3", "luajit"] {
        if has(lua, &format!("apt-get install {lua}")) {
            runs(Command::new(lua).arg(&around));
        }
    }
    if !has("haproxy", "apt-get install haproxy") {
        return;
    }
    let Some(module) = module("haproxy", "haproxy/tatcell.so") else { return };
    // What the comment says stands in haproxy.cfg, with the places of this test.
    let said = lua.lines().skip_while(|line| *line != "-- In haproxy.cfg:").skip(1);
    let said: String =
        said.map_while(|line| line.strip_prefix("--   ")).map(|line| format!("{line}\n")).collect();
    let said = said
        .replace("/usr/local/lib/haproxy", &module.parent().expect("a folder").display().to_string())
        .replace("/etc/haproxy/limit.lua", &file.display().to_string());
    assert!(said.contains("lua.tatcell") && said.contains("lua-load-per-thread /"), "{said}");
    let conf = folder.join("haproxy.cfg");
    let rest = "    mode http\n    timeout client 1s\n    http-request return status 200\n";
    let bind = format!("    bind unix@{}\n", folder.join("socket").display());
    fs::write(&conf, said + &bind + rest).expect("a file");
    runs(program("haproxy").arg("-c").arg("-f").arg(&conf));
}

#[test]
fn policers_have_the_limit() {
    let (folder, log) = log("emit-policers");
    let xdp = text(&log, "xdp", &["-k", "address/32,64"]);
    let dpdk = text(&log, "dpdk", &["-k", "address/32,64"]);
    let bytes = text(&log, "dpdk", &["-k", "address/32,64", "-c", "bytes", "-l", "1MB/s burst 64kB"]);
    assert!(bytes.contains("--mode bytes") && bytes.contains("--bytes 1000000:64000"), "{bytes}");
    // A stand-in for the policer prints its arguments: the shell has divided them as it will.
    fs::write(folder.join("policer"), "#!/bin/sh\nfor word; do echo \"<$word>\"; done\n").expect("a file");
    runs(Command::new("chmod").arg("+x").arg(folder.join("policer")));
    let shell = |folder: &Path, script: &str, arguments: &[&str]| {
        let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default());
        let mut command = Command::new("sh");
        command.arg("-c").arg(script).arg("sh").args(arguments).env("PATH", path);
        command
    };
    let words = |script: &str, arguments: &[&str]| {
        let output = shell(&folder, script, arguments).output().expect("a shell");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("text")
    };
    let divided = words(&xdp, &["eth0"]);
    assert!(divided.starts_with("<attach>\n<eth0>\n<--rate>\n<5/s burst 20>\n<--slots>\n"), "{divided}");
    let divided = words(&dpdk, &["-l", "0"]);
    assert!(
        divided.contains("<-l>\n<0>\n<-->\n<--mode>\n<packets>\n<--key>\n<source>\n<--bits6>\n<64>\n"),
        "{divided}"
    );
    assert!(divided.contains("<--packets>\n<5:20>\n"), "{divided}");
    if let Some(policer) = module("xdp", "xdp/policer") {
        let ends = |script: &str, code, want| {
            ends(&mut shell(policer.parent().expect("a folder"), script, &["tatcell-none"]), code, want);
        };
        // It looks for the interface after it has read all options.
        for policy in ["admit", "inherit", "deny", "sampled"] {
            for (limit, cost) in [("5/s burst 20", &[][..]), ("1MB/s burst 64kB", &["-c", "bytes"])] {
                let more = [&["-k", "address/32,64", "-p", policy, "-l", limit][..], cost].concat();
                ends(&text(&log, "xdp", &more), 1, "policer: no interface tatcell-none");
            }
        }
        ends(&xdp.replace("--slots", "--places"), 2, "unrecognized option '--places'");
        ends(&xdp.replace("burst 20", "burst x"), 1, "policer: --rate: \"5/s burst x\"");
        ends(&xdp.replace("--policy admit", "--policy x"), 1, "policer: --policy x: it is one of admit");
    }
    if let Some(policer) = module("dpdk", "dpdk/policer") {
        let ends = |script: &str, code, want| {
            let eal = "-l 0 --no-huge --no-pci -m 512 --no-telemetry --no-shconf --vdev=net_null0,no-rx=1";
            let eal: Vec<_> = eal.split(' ').collect();
            ends(&mut shell(policer.parent().expect("a folder"), script, &eal), code, want);
        };
        // It starts with a table and a port without packets, so it soon ends.
        ends(&dpdk, 0, "received 0 sent 0");
        ends(&bytes, 0, "received 0 sent 0");
        ends(&dpdk.replace("--bits6", "--prefix"), 2, "unrecognized option '--prefix'");
        ends(&dpdk.replace("5:20", "5:x"), 1, "policer: --packets 5:x: it is RATE:BURST");
    }
}

/// The arguments of plans, and how many of 50 requests pass: of each of two addresses of a network of IPv4 and two of
/// IPv6, at once and 201 ms later; and of the first address after a silence in which the words of a table wrap.
const DECIDES: [(&str, &[&str], &str); 12] = [
    ("deny", &["-p", "deny"], "20 20 20 20 1 1 1 1 20"),
    // The network of the first two, of 30 at once, gets 4 in 201 ms, and the first one 1 of them.
    ("chain", &["-l", CHAIN], "20 10 20 10 1 3 1 3 20"),
    ("same_key", &["-k", "path", "-l", "5/s burst 20 and 30/min burst 25"], "20 20 20 20 1 1 1 1 20"),
    ("ladder", &["-l", "ladder 5/s burst 20", "--ladder", "32 24x2, 128 64x3"], "20 20 20 20 1 1 1 1 20"),
    // A network is one key.
    ("network", &["-k", "address/24,56"], "20 0 20 0 1 0 1 0 20"),
    ("networks", &["-k", "address/24,56", "-l", "5/s burst 20 and 9/s burst 30"], "20 0 20 0 1 0 1 0 20"),
    ("fixed", &["-l", "fixed 20/min"], "20 20 20 20 0 0 0 0 20"),
    ("sliding", &["-l", "sliding 20/min"], "20 20 20 20 0 0 0 0 20"),
    ("quota", &["-l", "quota 20/min"], "20 20 20 20 0 0 0 0 20"),
    // In 201 ms 20 units have become 18.1.
    ("decay", &["-l", "decay 10/s burst 20"], "20 20 20 20 1 1 1 1 20"),
    ("window", &["-l", "5/s burst 20 and fixed 15/min"], "15 15 15 15 0 0 0 0 15"),
    ("windows", &["-l", "ladder fixed 20/min", "--ladder", "32 24x1, 128 64x3"], "20 0 20 20 0 0 0 0 20"),
];

#[test]
fn c_is_compiled_and_decides() {
    let (folder, log) = log("emit-c");
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("../include");
    let costly = text(&log, "c", &["-c", "bytes"]);
    assert!(
        costly.contains("size_t length, uint64_t cost)") && costly.contains("key_length, cost, NULL)"),
        "{costly}"
    );
    let more: [(&str, &[&str]); 4] = [
        ("admit", &["-p", "admit"]),
        ("inherit", &["-p", "inherit"]),
        ("sampled", &["-p", "sampled"]),
        ("costly", &["-c", "bytes"]),
    ];
    let compiler = |standard: &str| {
        let mut command = Command::new("cc");
        command.arg("-I").arg(&header).arg(format!("-std={standard}"));
        command.args(["-Wall", "-Wextra", "-Werror", "-pedantic"]).current_dir(&folder);
        command
    };
    let decides = DECIDES.map(|(name, more, _)| (name, more));
    for (name, more) in more.iter().chain(&decides) {
        let file = folder.join(format!("{name}.c"));
        fs::write(&file, text(&log, "c", more)).expect("a file");
        for standard in ["c99", "c17"] {
            runs(compiler(standard).arg("-fsyntax-only").arg(&file));
        }
    }
    // The archive that `make test` installs next to the modules.
    let Some(archive) = module("c", "stage/usr/lib/libtatcell.a") else { return };
    let main = "#include <stdint.h>\n#include <stdio.h>\n#include <stdlib.h>\n\
        int32_t limit_start(const uint8_t seed[16]);\n\
        int32_t limit_check(uint64_t now_ns, const void *key, size_t length);\n\
        int main(void) {\n    static const uint8_t seed[16] = {7};\n    \
        static const uint8_t keys[4][16] = {{192, 0, 2, 1}, {192, 0, 2, 2}, {0x20, 1, 0xd, 0xb8, 9}, \
        {0x20, 1, 0xd, 0xb8, 9, [15] = 1}};\n    \
        static const uint64_t later[3] = {0, 201000000, (UINT64_C(1) << 43) - 1000000000};\n    \
        int at, key, i;\n    \
        if (limit_start(seed) < 0) return 1;\n    \
        for (at = 0; at < 3; at++)\n        \
        for (key = 0; key < (at < 2 ? 4 : 1); key++) {\n            int passed = 0;\n            \
        for (i = 0; i < 50; i++) {\n                \
        uint64_t now = (UINT64_C(1) << 50) + later[at];\n                \
        int32_t rc = limit_check(now, keys[key], key < 2 ? 4 : 16);\n                \
        if (rc < 0) return 2;\n                passed += rc == 0;\n            }\n            \
        printf(\"%s%d\", at + key > 0 ? \" \" : \"\", passed);\n        }\n    return 0;\n}\n";
    fs::write(folder.join("main.c"), main).expect("a file");
    for (name, _, want) in DECIDES {
        let program = folder.join(name);
        let source = format!("{name}.c");
        runs(compiler("c17").args(["main.c", &source, "-o"]).arg(&program).arg(&archive));
        let output = Command::new(&program).output().expect("the program");
        let passed = String::from_utf8_lossy(&output.stdout);
        assert_eq!((output.status.code(), &*passed), (Some(0), want), "{name}");
    }
}

#[test]
fn rust_is_compiled_and_decides() {
    let (folder, log) = log("emit-rust");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let decides = DECIDES.map(|(name, more, _)| (name, more));
    let all = [&decides[..], &[("costly", &["-c", "bytes"])]].concat();
    for (name, more) in &all {
        fs::write(folder.join(format!("{name}.rs")), text(&log, "rust", more)).expect("a file");
    }
    fs::create_dir(folder.join("src")).expect("a folder");
    let modules: String =
        all.iter().map(|(name, _)| format!("#[path = \"../{name}.rs\"]\nmod {name};\n")).collect();
    let asks: String = DECIDES
        .iter()
        .map(|(name, _, want)| {
            // The bytes of an address are a key, too.
            let key = if *name == "same_key" { "&bytes(a)" } else { "a" };
            format!(
                "    let it = {name}::Limited::start([7; 16]).unwrap();\n    \
                 says(\"{name}\", {want:?}, &|now, a| it.check(now, {key}).unwrap().passes());\n"
            )
        })
        .collect();
    let main = "use std::net::IpAddr;\nuse tatcell::Address;\n\
        fn bytes(a: &Address) -> Vec<u8> { a.prefix(if a.is_v4() { 32 } else { 128 }).as_ref().to_vec() }\n\
        fn says(name: &str, want: &str, passes: &dyn Fn(u64, &Address) -> bool) {\n    \
        let all = [\"192.0.2.1\", \"192.0.2.2\", \"2001:db8:900::\", \"2001:db8:900::1\"];\n    \
        let all = all.map(|a| Address::from(a.parse::<IpAddr>().unwrap()));\n    \
        let later = [(0, &all[..]), (201_000_000, &all[..]), ((1 << 43) - 1_000_000_000, &all[..1])];\n    \
        let mut said = Vec::new();\n    \
        for (later, addresses) in later {\n        for a in addresses {\n            \
        said.push((0..50).filter(|_| passes((1 << 50) + later, a)).count().to_string());\n        }\n    }\n    \
        assert_eq!(said.join(\" \"), want, \"{name}\");\n}\n\
        fn main() {\n    \
        let costly = costly::Limited::start([7; 16]).unwrap();\n    \
        let one = Address::from([192, 0, 2, 1]);\n    \
        let spend = |cost| costly.check(1 << 50, &one, cost).unwrap().passes();\n    \
        assert!(spend(15) && !spend(6) && spend(5) && !spend(1));\n";
    let main = format!("{main}{asks}}}\n");
    fs::write(folder.join("src/main.rs"), format!("#![deny(warnings)]\n{modules}{main}")).expect("a file");
    fs::write(
        folder.join("Cargo.toml"),
        format!(
            "[package]\nname = \"emitted\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\
             [dependencies]\ntatcell = {{ path = \
             {root:?} }}\n[workspace]\n"
        ),
    )
    .expect("a file");
    let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
    runs(Command::new(cargo).current_dir(&folder).args(["run", "--quiet", "--offline"]));
}

const CHAIN: &str = "5/s burst 20 and /24,56 20/s burst 30";

#[test]
fn what_a_program_cannot_do_is_refused_with_the_change_that_helps() {
    let (_, log) = log("emit-refused");
    for (form, more, want) in [
        ("nginx", &["-k", "address/20"][..], "nginx cuts no address to 20 and 128 bits"),
        ("nginx", &["-k", "status"], "tatcell does not know that nginx has \"status\" when a limit"),
        ("nginx", &["-k", "path=/a"], "a pattern of paths is a location in nginx"),
        // A client chooses what it writes in front of a list of addresses; the plan counts by the last one.
        ("nginx", &["-k", "http_x_forwarded_for/24"], "nginx takes no address from http_x_forwarded_for"),
        ("nginx", &["-k", "http_x_forwarded_for/32"], "nginx takes no address from http_x_forwarded_for"),
        ("envoy", &["-l", "5/s", "-k", "http_x_forwarded_for/32"], "Envoy takes no address from http_x_"),
        ("haproxy", &["-k", "http_x_forwarded_for/24"], "HAProxy takes no address from http_x_forwarded_for"),
        ("nginx", &["-k", "address/24+address/24"], "two parts of the key would both be $tatcell_network24"),
        ("nginx", &["-k", "path:2+path:2"], "two parts of the key would both be $tatcell_path2"),
        ("nginx", &["-c", "bytes"], "nginx decides before it knows bytes"),
        ("haproxy", &["-k", "address+path"], "use a key of one part"),
        ("xdp", &[], "use --key address/32,64"),
        ("xdp", &["-k", "path"], "it counts by the source: use --key address, not path"),
        ("dpdk", &["-k", "address/32,64", "-l", "30/min burst 3"], "it has whole numbers a second"),
        ("dpdk", &["-k", "address/32,64", "-p", "deny"], "use --policy admit, not deny"),
        (
            "nginx",
            &["-l", "fixed 100/min"],
            "\"fixed 100/min\" is not a rate and a burst, such as \"10/s burst 20\"",
        ),
        ("envoy", &["-l", "sliding 100/min"], "it has no other limits: --emit c and --emit rust have them"),
        ("haproxy", &["-l", "quota 100/min"], "it has no other limits: --emit c and --emit rust have them"),
        ("throttled", &["-l", "decay 1/s burst 20"], "it has no other limits: --emit c and --emit rust"),
        ("c", &["-l", "5/s burst 20", "-l", "2/s burst 9"], "--emit needs one --limit and one --policy"),
        ("envoy", &["-l", CHAIN], "Envoy's service charges each rule by itself"),
        ("haproxy", &["-l", CHAIN], "HAProxy's script decides one limit a call"),
        ("xdp", &["-l", CHAIN], "the policer has one limit for each source"),
        ("dpdk", &["-l", CHAIN], "the policer has one limit for each source"),
        ("throttled", &["-l", "ladder 5/s"], "a call of CL.THROTTLE has one limit"),
        ("nginx", &["-l", "ladder 5/s"], "it has no ladder: write its tiers as limits"),
        ("nginx", &["-l", "5/s and /24,56 9/s"], "nginx cuts no address to 24 and 56 bits"),
        ("nginx", &["-l", "5/s and fixed 9/min"], "\"fixed 9/min\" is not a rate and a burst"),
        ("rust", &["-l", "5/s and /24,56 9/s", "-k", "address+path"], "use --key address, not address+path"),
        (
            "c",
            &["-l", "/24,56 5/s burst 20"],
            "\"/24,56 5/s burst 20\" counts by prefixes of its own: use --key address/24,56",
        ),
    ] {
        let output = emit(&log, form, more);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{form} {more:?}: {message}");
        assert!(message.contains(want), "{form} {more:?}: {message}");
    }
}

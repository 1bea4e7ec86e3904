//! `tatcell check` next to nginx: what `nginx -t` refuses of the directives that limit, and what it takes.

use std::fs;

use crate::check::{check, run};
use crate::emit::{has, module, program};
use crate::folder;

/// What `@` stands for.
const ZONE: &str = "limit_req_zone $uri zone=a:1m rate=1r/s;";

/// Parts of the block http, and what is said of those that nginx refuses, with the place. `@` stands for a zone.
const PARTS: [(&str, &str); 65] = [
    ("limit_req_zone $uri zone=a:1m rate=1r/s;", ""),
    ("limit_req_zone $uri zone=a:1m rate=10;", ""),
    ("limit_req_zone \"$uri$host\" zone=a:32k rate=30r/m;", ""),
    ("limit_req_zone $uri zone=a:1m zone=b:1m;", ""),
    ("limit_req_zone $uri zone=a:1m;", "3:1: limit_req_zone has 2 parameters, and takes 3 parameters"),
    ("limit_req_zone $uri zone=a:1m rate=1r/s sync;", "3:41: limit_req_zone has 4 parameters"),
    ("limit_req_zone $uri rate=1r/s rate=2r/s;", "3:1: limit_req_zone has no zone="),
    ("limit_req_zone $uri zone=a:1m rate=0r/s;", "3:36: \"0r/s\" is no rate"),
    ("limit_req_zone $uri zone=a:1m rate=+1r/s;", "is no rate"),
    ("limit_req_zone $uri zone=a:1m rate=1.5r/s;", "is no rate"),
    ("limit_req_zone $uri zone=a:1m rate=1r/h;", "is no rate"),
    ("limit_req_zone $uri zone=a:16k rate=1r/s;", "3:21: zone \"a\" is too small"),
    ("limit_req_zone $uri zone=a rate=1r/s;", "write zone=NAME:SIZE"),
    ("limit_req_zone $uri zone=a:+1m rate=1r/s;", "write zone=NAME:SIZE"),
    ("limit_req_zone ${uri zone=a:1m rate=1r/s;", "3:16: the bracket of this variable is not closed"),
    ("limit_req_zone \"$ uri\" zone=a:1m rate=1r/s;", "no name of a variable"),
    ("@ limit_req_zone $host zone=a:1m rate=2r/s;", "is already at"),
    ("@ limit_conn_zone $host zone=a:1m;", "by limit_req_zone"),
    ("@ server { limit_req zone=a burst=99999999999; }", ""),
    ("@ server { limit_req zone=a burst=99999999999999999999; }", "9223372036854775807"),
    ("@ server { limit_req zone=a delay=2 nodelay; }", ""),
    ("@ server { limit_req zone=a delay=9 burst=1; }", ""),
    ("@ server { limit_req zone=a burst=5 delay=2 nodelay; }", "3:84: limit_req has 4 parameters"),
    ("@ server { limit_req zone=a; limit_req zone=a burst=2; }", "3:69: zone \"a\" is here twice"),
    ("@ limit_req zone=a; server { limit_req zone=a burst=2; }", ""),
    ("@ server { limit_req burst=2; }", "limit_req has no zone="),
    ("@ server { limit_req zone=b; }", "defines the zone \"b\""),
    ("@ server { limit_req zone=a burst=0; }", "is not a number from 1"),
    ("@ server { limit_req zone=a delay=0; }", "is not a number from 1"),
    ("@ server { limit_req zone=a nodelay=1; }", "unknown parameter"),
    ("@ server { limit_req zone=a brust=1; }", "unknown parameter"),
    ("@ server { limit_req; }", "has 0 parameters"),
    ("@ server { limit_req zone=a { } }", "takes no block"),
    (
        "server { limit_req_zone $uri zone=a:1m rate=1r/s; }",
        "3:10: limit_req_zone cannot stand here: it stands in http",
    ),
    ("@ server { location / { if ($uri) { limit_req zone=a; } } }", "3:76: limit_req cannot stand here"),
    ("@ server { if ($uri) { limit_req zone=a; } }", "cannot stand here"),
    ("@ server { location / { limit_except GET { limit_req zone=a; } } }", "cannot stand here"),
    ("@ upstream u { server 127.0.0.1:1; limit_req zone=a; }", "cannot stand here"),
    ("@ map $uri $m { limit_req zone=a; default 1; }", ""),
    ("@ map $uri $m { limit_req 2; limit_conn 3; default 1; }", ""),
    ("@ limit_req_status 200;", "3:59: \"200\" is no value of limit_req_status: write 400 to 599"),
    ("@ limit_req_status 600;", "400 to 599"),
    ("@ limit_req_status 429; server { limit_req_status 430; }", ""),
    ("@ limit_req_status 429; limit_req_status 430;", "limit_req_status is here twice"),
    ("@ limit_req_log_level debug;", "info, notice, warn, error"),
    ("@ limit_req_log_level warn;", ""),
    ("@ limit_req_log_level WARN;", ""),
    ("@ limit_conn_log_level Error;", ""),
    ("} http {", "http is here twice"),
    ("@ limit_req_dry_run ON;", ""),
    ("@ limit_req_dry_run yes;", "on or off"),
    ("@ limit_req_dry on;", "unknown directive \"limit_req_dry\""),
    ("@ limit_conn_zone $uri zone=c:1m; server { limit_conn c 1; }", ""),
    ("@ limit_conn_zone $uri zone=c:1m; server { limit_conn c 65536; }", "write 1 to 65535"),
    ("@ limit_conn_zone $uri zone=c:1m; server { limit_conn c 0; }", "write 1 to 65535"),
    (
        "@ limit_conn_zone $uri zone=c:1m; server { limit_conn c 1; limit_conn c 2; }",
        "zone \"c\" is here twice",
    ),
    ("@ server { limit_conn c 1; }", "no limit_conn_zone defines the zone \"c\""),
    ("@ limit_conn_zone $uri zone=c:1k;", "zone \"c\" is too small"),
    ("@ limit_conn_zone $uri size=1k;", "unknown parameter"),
    ("@ limit_conn_zone $uri;", "limit_conn_zone has 1 parameters"),
    ("@ limit_conn_status 399;", "400 to 599"),
    ("@ limit_conn_dry_run on; limit_conn_dry_run on;", "is here twice"),
    ("@ limit_conn_log_level x;", "info, notice, warn, error"),
    ("limit_req_zone \"$uri\"zone=a:1m rate=1r/s;", "should stand behind the quote"),
    ("@ server { location / { location /a { limit_req zone=a; } } }", ""),
];

/// The same for the module of tatcell. `%` stands for a zone, and `%r` for one with rates of its own.
const MODULE_PARTS: [(&str, &str); 34] = [
    ("tatcell_zone $uri zone=a:96k rate=1r/s;", ""),
    ("tatcell_zone $uri zone=a:1m \"rate=5r/15min burst 7\" policy=deny tag_bits=24 skew=1s;", ""),
    ("tatcell_zone $uri zone=a:95k rate=1r/s;", "zone \"a\" is too small: give it 96k"),
    ("tatcell_zone $uri;", "tatcell_zone has 1 parameters, and takes at least 2"),
    ("tatcell_zone $uri zone=a:1m;", "has no rate="),
    ("tatcell_zone $uri zone=a:1m burst=2;", "has no rate="),
    ("tatcell_zone $uri zone=a:1m rate=unlimited;", "3:34: a number is missing"),
    ("tatcell_zone $uri zone=a/b:1m rate=1r/s;", "zone name \"a/b\""),
    ("tatcell_zone $uri zone=a:1m rate=1r/s tag_bits=25;", "12 to 24"),
    ("tatcell_zone $uri zone=a:1m rate=1r/s policy=some;", "unknown parameter"),
    ("tatcell_zone $uri zone=a:1m rate=1r/s rate_by=plan;", "is no variable"),
    ("tatcell_zone $uri zone=a:1m rate=1r/s counters=a;", "is no name of shared memory"),
    ("tatcell_zone $uri zone=a:1m rate=1r/s burst;", "unknown parameter"),
    ("@ tatcell_zone $uri zone=a:1m rate=1r/s;", "by limit_req_zone"),
    ("% server { tatcell zone=a cost=$request_length; }", ""),
    ("% server { tatcell zone=a cost; }", "unknown parameter"),
    ("% server { tatcell zone=a cost=x; }", "\"x\" is no cost"),
    ("% server { tatcell zone=a burst=5 delay=6; }", "delay=6 is above burst=5"),
    ("tatcell_zone $uri zone=a:1m rate=1r/s burst=5; server { tatcell zone=a delay=5 nodelay burst=5; }", ""),
    ("tatcell_zone $uri zone=a:1m rate=1kB/s burst=5000; server { tatcell zone=a; }", "needs a cost"),
    ("% server { tatcell zone=a; tatcell zone=a; }", "is here twice"),
    ("% server { tatcell zone=a; tatcell off; }", "next to another tatcell"),
    ("% server { tatcell zone=a; location /b { tatcell off; } }", ""),
    ("% server { tatcell_stats; }", "it stands in a location"),
    ("% server { location /s { tatcell_stats prometheus top=5; } }", ""),
    ("% server { location /s { tatcell_stats top=65; } }", "top=0 to top=64"),
    ("% tatcell_headers ratelimit policy;", ""),
    ("% server { tatcell_headers ratelimit off; }", "off alone"),
    ("% server { tatcell_headers RateLimit OFF; }", "off alone"),
    ("% tatcell_log_level Info; tatcell_undecided PASS; tatcell_headers Policy;", ""),
    ("% tatcell_undecided maybe;", "pass, refuse"),
    ("%r tatcell_rates $uri $r { default 5r/s; gold 9r/s burst=7; vip unlimited; }", ""),
    ("%r tatcell_rates $uri $r { default 5r/s; gold 9x; }", "3:95: "),
    ("%r tatcell_rates $uri $r { a 5r/s; A 9r/s; }", "\"A\" is here twice"),
];

/// What `nginx -t` refuses is refused, at its place, and nothing else: each part is given to both.
#[test]
fn what_nginx_refuses_is_refused_and_nothing_else() {
    let folder = folder("check-both");
    fs::create_dir(folder.join("conf")).expect("a folder");
    let file = folder.join("conf/nginx.conf");
    let module = module("nginx", "nginx/installed/ngx_http_tatcell_module.so");
    let has_nginx = has("nginx", "apt-get install nginx");
    let mut asked = 0;
    for (part, want) in PARTS.iter().chain(&MODULE_PARTS) {
        let part = part
            .replace('@', ZONE)
            .replace("%r", "tatcell_zone $uri zone=a:1m rate=1r/s rate_by=$r;")
            .replace('%', "tatcell_zone $uri zone=a:1m rate=1r/s;");
        let load = match &module {
            Some(module) if part.contains("tatcell") => format!("load_module {};", module.display()),
            _ => String::new(),
        };
        let (main, http) =
            (format!("error_log stderr; pid {}/pid; {load}", folder.display()), "access_log off;");
        fs::write(&file, format!("{main}\nevents {{}} http {{ {http}\n{part}\n}}\n")).expect("a file");
        let output = run(&["--format", "nginx", file.to_str().expect("a name")]);
        let message = String::from_utf8_lossy(&output.stderr);
        let taken = want.is_empty();
        match taken {
            true => assert!(matches!(output.status.code(), Some(0 | 1)), "{part}: {message}"),
            false => assert_eq!(output.status.code(), Some(3), "{part}: {message}"),
        }
        assert!(taken || message.contains(want) && message.contains("nginx.conf:3:"), "{part}: {message}");
        if !has_nginx || part.contains("tatcell") && module.is_none() {
            continue;
        }
        let tested = program("nginx").args(["-t", "-c"]).arg(&file).output().expect("nginx");
        let said = String::from_utf8_lossy(&tested.stderr);
        assert_eq!(tested.status.success(), taken, "{part}: {said}");
        asked += 1;
    }
    // Without the module those of nginx alone, without nginx none: each says SKIP.
    let want = PARTS.len() + if module.is_some() { MODULE_PARTS.len() } else { 0 };
    assert_eq!(asked, if has_nginx { want } else { 0 }, "parts that were given to nginx");
    // At the top of a whole configuration, and in a part of one.
    for (text, want) in [
        (
            "events {}\nlimit_req_zone $uri zone=a:1m rate=1r/s; http { server { limit_req zone=a; } }",
            Some("2:1: limit_req_zone cannot stand here"),
        ),
        ("@ server { limit_req zone=a; }", None),
        ("@ location / { limit_req zone=a; }", None),
    ] {
        let text = text.replace('@', ZONE);
        let (code, _, message) = check("top.conf", &text);
        assert_eq!(code, Some(if want.is_some() { 3 } else { 0 }), "{text}: {message}");
        assert!(want.is_none_or(|want| message.contains(want)), "{text}: {message}");
    }
}

//! The page for operators: each command of it runs, and prints what the page shows.
//!
//! With TATCELL_WRITE=1 it writes what the commands print into the page, and the picture of the page next to it.

use std::fs;
use std::net::IpAddr;
use std::path::Path;
use std::process::Command;

use tatcell::{LimitSpec, Line, Table, TableClock, TableOptions};

use crate::folder;
use crate::logs::{incident, START};
use crate::program::PROGRAM;
use crate::replay::Throttled;

const SECOND: u64 = 1_000_000_000;

/// The configuration of the page.
const NGINX: &str = "\
http {
    limit_req_zone $binary_remote_addr zone=pages:10m rate=5r/s;
    limit_req_zone $binary_remote_addr zone=api:10m rate=10r/s;
    limit_req_zone $binary_remote_addr zone=login:1m rate=7r/m;

    server {
        server_name example.org;
        limit_req zone=pages burst=20 nodelay;

        location /api/ {
            limit_req zone=pages burst=20 nodelay;
            limit_req zone=api burst=40 nodelay;
        }
        location = /login {
            limit_req zone=login burst=4;
        }
    }
}
";

/// The tables of the page, saved in minute 20, and their seed: the limit of the page counts each address of the log,
/// and nobody is banned or exempt yet.
fn save(folder: &Path) {
    let seed = *b"16 random bytes!";
    let spec = LimitSpec::new(5, SECOND, 20);
    let lines: Vec<Line> = (0..130).map(|_| Line::new()).collect();
    let options = TableOptions::new(spec).seed(seed).clock(TableClock::Realtime).tick_hz(SECOND);
    let table = Table::init(&lines, &options).expect("a table");
    let limit = table.limit(&spec).expect("a limit");
    let end = (START + 20 * 60) * SECOND;
    for (now, address) in incident().visits().take_while(|(now, _)| *now < end) {
        let IpAddr::V4(address) = address else { panic!("{address}") };
        let _ = table.check(&limit, now, &address.octets(), 1).expect("a check");
    }
    let mut image = vec![0; table.image_words()];
    table.save(end, &mut image).expect("an image");
    let bytes: Vec<u8> = image.iter().flat_map(|word| word.to_ne_bytes()).collect();
    fs::write(folder.join("limits.image"), bytes).expect("a file");
    let lines: Vec<Line> = (0..130).map(|_| Line::new()).collect();
    let options =
        TableOptions::overrides(86_400 * SECOND).seed(seed).clock(TableClock::Realtime).tick_hz(SECOND);
    let bans = Table::init(&lines, &options).expect("a table");
    let mut image = vec![0; bans.image_words()];
    bans.save(end, &mut image).expect("an image");
    let bytes: Vec<u8> = image.iter().flat_map(|word| word.to_ne_bytes()).collect();
    fs::write(folder.join("bans.image"), bytes).expect("a file");
    fs::write(folder.join("seed"), seed).expect("a file");
}

#[test]
fn each_command_of_the_page_prints_what_the_page_shows() {
    let folder = folder("page");
    fs::write(folder.join("access.log"), incident().combined()).expect("a file");
    save(&folder);
    fs::write(folder.join("nginx.conf"), NGINX).expect("a file");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/OPERATING.md");
    let text = fs::read_to_string(&page).expect("the page");
    let path = format!("{}:{}", Path::new(PROGRAM).parent().expect("a folder").display(), env!("PATH"));
    let server = Throttled::start();
    let write = std::env::var_os("TATCELL_WRITE").is_some();
    let (mut commands, mut fresh) = (0, String::new());
    // In ```console blocks a line that begins with `$ ` is a command; up to the next one it is what that prints.
    for (index, block) in text.split("```").enumerate() {
        let Some(lines) = block.strip_prefix("console").filter(|_| index % 2 == 1) else {
            fresh += &format!("{block}```");
            continue;
        };
        fresh += "console";
        for part in lines.split("\n$ ").skip(1) {
            let (command, want) = part.split_once('\n').unwrap_or((part, ""));
            let output = Command::new("sh")
                .args(["-c", &format!("exec 2>&1; {command}")])
                .current_dir(&folder)
                .env("PATH", &path)
                .env("SERVER", &server.1)
                .output()
                .expect("a shell");
            let got = String::from_utf8_lossy(&output.stdout);
            assert!(write || got.trim_end() == want.trim_end(), "$ {command}\n{got}\nThe page has\n{want}");
            fresh += &format!("\n$ {command}\n{}", got.trim_end());
            fresh.truncate(fresh.trim_end().len());
            commands += 1;
        }
        fresh += "\n```";
    }
    assert!(commands >= 28, "{commands} commands");
    let picture = page.with_file_name("report.svg");
    if write {
        fs::copy(folder.join("report.svg"), &picture).expect("the picture");
    }
    let shown = fs::read(&picture).expect("the picture");
    let fresh_one = fs::read(folder.join("report.svg")).expect("a picture");
    assert!(
        shown == fresh_one,
        "docs/report.svg is not what the page makes: TATCELL_WRITE=1 make -C cli test"
    );
    if write {
        fs::write(&page, fresh.strip_suffix("```").expect("text")).expect("the page");
    }
}

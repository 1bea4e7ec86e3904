//! The page for operators: each command of it runs, and prints what the page shows.
//!
//! With TATCELL_WRITE=1 it writes what the commands print into the page.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::folder;
use crate::logs::incident;
use crate::program::PROGRAM;

#[test]
fn each_command_of_the_page_prints_what_the_page_shows() {
    let folder = folder("page");
    fs::write(folder.join("access.log"), incident().combined()).expect("a file");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/OPERATING.md");
    let text = fs::read_to_string(&page).expect("the page");
    let path = format!("{}:{}", Path::new(PROGRAM).parent().expect("a folder").display(), env!("PATH"));
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
                .output()
                .expect("a shell");
            let got = String::from_utf8_lossy(&output.stdout);
            assert!(write || got.trim_end() == want.trim_end(), "$ {command}\n{got}\nThe page has\n{want}");
            fresh += &format!("\n$ {command}\n{}", got.trim_end());
            commands += 1;
        }
        fresh += "\n```";
    }
    assert!(commands >= 5, "{commands} commands");
    if write {
        fs::write(&page, fresh.strip_suffix("```").expect("text")).expect("the page");
    }
}

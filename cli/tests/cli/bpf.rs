//! `tatcell show` of a map of BPF: what it says is what it says of the same image in a file.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tatcell::host::Memory;
use tatcell::{LimitSpec, Table, TableClock, TableOptions};

use crate::folder;
use crate::program::PROGRAM;

const LINES: usize = 66;
const SECOND: u64 = 1_000_000_000;

/// A file system of pins, until it is dropped.
struct Pins(PathBuf);

impl Pins {
    fn mount(folder: &Path) -> Option<Pins> {
        fs::create_dir_all(folder).expect("a folder");
        let mounted = Command::new("mount").args(["-t", "bpf", "bpf"]).arg(folder).output().ok()?;
        mounted.status.success().then(|| Pins(folder.into()))
    }
}

impl Drop for Pins {
    fn drop(&mut self) {
        // Without -l it would be busy if a test that failed still has the map.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

fn bpftool(arguments: &[&str]) -> std::io::Result<Output> {
    let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
    Command::new("bpftool").env("PATH", path).args(arguments).output()
}

/// Pins an array of as many values, and fills it.
fn pin(file: &str, value: usize, flags: &str, image: &[u8]) -> Result<(), String> {
    let entries = (image.len() / value).to_string();
    let create = ["map", "create", file, "type", "array", "key", "4", "value", &value.to_string()];
    let made = bpftool(&[&create[..], &["entries", &entries, "name", "limits", "flags", flags]].concat());
    let failed = |output: Output| match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    };
    made.map_err(|_| "no bpftool: apt-get install bpftool".to_owned()).and_then(failed)?;
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!(" {byte:02x}")).collect::<String>();
    let mut batch = String::new();
    for (number, bytes) in image.chunks(value).enumerate() {
        let key = hex(&(number as u32).to_ne_bytes());
        let _ = writeln!(batch, "map update pinned {file} key hex{key} value hex{}", hex(bytes));
    }
    let list = format!("{}.batch", image.len());
    let list = std::env::temp_dir().join(format!("tatcell-{}-{list}", std::process::id()));
    fs::write(&list, batch).expect("a file");
    let filled = bpftool(&["batch", "file", list.to_str().expect("a name")]);
    fs::remove_file(&list).expect("the file");
    filled.map_err(|error| error.to_string()).and_then(failed)
}

fn show(table: &str, more: &[&str]) -> Output {
    Command::new(PROGRAM).args(["show", table]).args(more).output().expect("the program runs")
}

#[cfg(target_os = "linux")]
#[test]
fn a_pinned_map_is_read_as_the_same_image_in_a_file() {
    let folder = folder("bpf");
    let image = folder.join("image");
    let name = image.to_str().expect("a name");
    {
        let path = std::ffi::CString::new(name).expect("a name");
        let memory = Memory::create(&path, 64 * LINES, 0o600).expect("memory");
        let options = TableOptions::new(LimitSpec::new(10, SECOND, 20)).seed(*b"16 random bytes!");
        let table = Table::init(memory.lines(), &options.clock(TableClock::Monotonic).tick_hz(SECOND));
        let table = table.expect("a table");
        let limit = table.limit(&LimitSpec::new(10, SECOND, 20)).expect("a limit");
        for host in 0..40 {
            assert!(table.check(&limit, 1 << 50, &[192, 0, 2, host], 7).expect("a check").passes());
        }
    }
    let bytes = fs::read(&image).expect("the image");
    let Some(pins) = Pins::mount(&folder.join("pins")) else {
        println!("SKIP show_of_a_pinned_map: no file system of pins: run it as root, mount -t bpf");
        return;
    };
    let pinned = |name: &str| pins.0.join(name).to_str().expect("a name").to_owned();
    let map = pinned("limits");
    if let Err(why) = pin(&map, 64, "0x400", &bytes) {
        println!("SKIP show_of_a_pinned_map: {why}");
        return;
    }
    let clock = ((1u64 << 50) + SECOND / 10).to_string();
    for more in [&[][..], &["top", "--count", "50"], &["dump"], &["watch", "--rounds", "1"]] {
        let more = [more, &["--clock", &clock]].concat();
        let (of_map, of_file) = (show(&map, &more), show(name, &more));
        let text = |output: &Output| {
            let text = String::from_utf8_lossy(&output.stdout);
            text.replace(&map, "TABLE").replace(name, "TABLE")
        };
        assert_eq!(of_map.status.code(), Some(0), "{more:?}: {}", String::from_utf8_lossy(&of_map.stderr));
        assert_eq!(text(&of_map), text(&of_file), "{more:?}");
        assert!(more[0] == "dump" || text(&of_map).contains("600 ms") || text(&of_map).contains("40 live"));
    }
    // What is no array of lines that can be mapped says so.
    let seed = folder.join("seed");
    fs::write(&seed, b"16 random bytes!").expect("a file");
    let reset = ["reset", "192.0.2.7", "--clock", &clock, "--seed-file", seed.to_str().expect("a name")];
    for (name, value, flags) in [("small", 8, "0x400"), ("fixed", 64, "0")] {
        let other = pinned(name);
        pin(&other, value, flags, &bytes).expect("a map");
        for (more, done) in [(&[][..], "read"), (&reset, "written")] {
            let output = show(&other, more);
            let message = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(3), "{message}");
            let want = format!(
                "cannot be {done}: what is pinned there is no map of a table; that is an array of \
                values of 64 bytes with the flag BPF_F_MMAPABLE"
            );
            assert!(message.contains(&want), "{message}");
        }
    }
    // It changes nothing.
    let dump = bpftool(&["-j", "map", "dump", "pinned", &map]).expect("bpftool");
    let dump: Value = serde_json::from_slice(&dump.stdout).expect("JSON");
    let values =
        dump.as_array().expect("lines").iter().flat_map(|line| line["value"].as_array().expect("bytes"));
    let values: Vec<_> = values.map(|byte| byte.as_str().expect("a byte").to_owned()).collect();
    assert_eq!(values, bytes.iter().map(|byte| format!("0x{byte:02x}")).collect::<Vec<_>>());
    // A change is one of the map.
    let output = show(&map, &reset);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let of_file = show(name, &reset);
    assert_eq!(of_file.status.code(), Some(0), "{}", String::from_utf8_lossy(&of_file.stderr));
    let more = ["--clock", &clock];
    let text = |output: Output, name: &str| String::from_utf8_lossy(&output.stdout).replace(name, "TABLE");
    assert_eq!(text(show(&map, &more), &map), text(show(name, &more), name));
    assert!(text(show(&map, &more), &map).contains("39 live"));
    // So are a ban and an exemption in a table of overrides.
    let image = folder.join("overrides");
    {
        let path = std::ffi::CString::new(image.to_str().expect("a name")).expect("a name");
        let memory = Memory::create(&path, 64 * LINES, 0o600).expect("memory");
        let options = TableOptions::overrides(1 << 50).seed(*b"16 random bytes!").tick_hz(SECOND);
        Table::init(memory.lines(), &options).expect("a table");
    }
    let map = pinned("overrides");
    pin(&map, 64, "0x400", &fs::read(&image).expect("the image")).expect("a map");
    for change in ["ban", "exempt"] {
        let output = show(&map, &[&[change, change, "--for", "1h"], &reset[2..]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    }
    assert!(text(show(&map, &more), &map).contains("1 ban, 1 exemption"));
}

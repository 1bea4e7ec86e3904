//! Writes the C headers and the export lists: `make header`, which runs `tatcell-header [FOLDER CLUSTER_FOLDER]`.
//!
//! cbindgen reads the crate, and returns every constant, structure and function of `src/capi` with its comment. The
//! second folder gets those of `cluster/src/capi`. The templates (`*.h.in`, in the folder of this file) give the order
//! of the items, and the text between them. Every item is placed exactly once, and [`docs`] checks its comment. If
//! something is wrong, nothing is written.

mod docs;
mod items;
mod plain;
mod template;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use items::Items;

/// Templates and the headers they become.
const HEADERS: [(&str, &str); 2] =
    [("tatcell.h", include_str!("tatcell.h.in")), ("tatcell_host.h", include_str!("tatcell_host.h.in"))];

/// The companion crate's.
const CLUSTER_HEADER: (&str, &str) = ("tatcell_cluster.h", include_str!("tatcell_cluster.h.in"));

/// The root of the repository; paths below are relative to it.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn main() -> ExitCode {
    let folders: Result<Vec<PathBuf>, _> = std::env::args_os().skip(1).map(std::path::absolute).collect();
    let done = match folders.as_deref() {
        Ok([]) => generate(Path::new("include"), Path::new("cluster/include")),
        Ok([folder, cluster]) => generate(folder, cluster),
        _ => {
            eprintln!("usage: tatcell-header [FOLDER CLUSTER_FOLDER]");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("tatcell-header: {e}");
            ExitCode::FAILURE
        }
    }
}

fn generate(folder: &Path, cluster: &Path) -> Result<(), String> {
    std::env::set_current_dir(ROOT).map_err(|e| format!("{ROOT}: {e}"))?;
    let mut items = items_of(".")?;
    let mut headers = Vec::new();
    for (name, text) in HEADERS {
        headers.push((name, template::fill(name, text, &mut items)?));
    }
    items.all_used()?;
    // A header may name what the other one has.
    let all: String = headers.iter().map(|(_, text)| text.as_str()).collect();
    let mut bad = docs::problems(&headers, &items, &all, Path::new("src/capi"));
    headers.push(("tatcell.ffi.h", plain::header(&items)));
    headers.push(("tatcell.map", plain::export_list(&items, "TATCELL")?));

    let mut items = items_of("cluster")?;
    let (name, text) = CLUSTER_HEADER;
    let mut of_cluster = vec![(name, template::fill(name, text, &mut items)?)];
    items.all_used()?;
    let all = all + &of_cluster[0].1;
    bad.extend(docs::problems(&of_cluster, &items, &all, Path::new("cluster/src/capi")));
    of_cluster.push(("tatcell_cluster.map", plain::export_list(&items, "TATCELL_CLUSTER")?));

    if !bad.is_empty() {
        return Err(format!("{} comments are not complete:\n{}", bad.len(), bad.join("\n")));
    }
    headers.iter().try_for_each(|(name, text)| write(folder, name, text))?;
    of_cluster.iter().try_for_each(|(name, text)| write(cluster, name, text))
}

/// What cbindgen finds in a crate.
fn items_of(package: &str) -> Result<Items, String> {
    let config = cbindgen::Config::from_file("cbindgen.toml")?;
    let bindings = cbindgen::Builder::new().with_crate(package).with_config(config).generate();
    let mut raw = Vec::new();
    bindings.map_err(|e| e.to_string())?.write(&mut raw);
    Items::parse(&String::from_utf8(raw).map_err(|e| e.to_string())?)
}

fn write(folder: &Path, name: &str, text: &str) -> Result<(), String> {
    std::fs::write(folder.join(name), text).map_err(|e| format!("{}: {e}", folder.join(name).display()))
}

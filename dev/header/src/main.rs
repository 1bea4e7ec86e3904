//! Writes the C headers and the export lists: `tatcell-header FOLDER CLUSTER_FOLDER`, run from the repository's root by
//! `make header`.
//!
//! cbindgen reads `src/capi`, and for the second folder `cluster/src/capi`, and gives every constant, structure and
//! function with its comment. The templates beside this file (`*.h.in`) say in which order a reader meets them, and
//! what stands between. Nothing is left out, nothing comes twice.

mod items;
mod plain;
mod template;

use std::path::Path;
use std::process::ExitCode;

use items::Items;

/// Templates and the headers they become.
const HEADERS: [(&str, &str); 2] =
    [("tatcell.h", include_str!("tatcell.h.in")), ("tatcell_host.h", include_str!("tatcell_host.h.in"))];

/// The companion crate's.
const CLUSTER_HEADER: (&str, &str) = ("tatcell_cluster.h", include_str!("tatcell_cluster.h.in"));

fn main() -> ExitCode {
    let folders: Vec<String> = std::env::args().skip(1).collect();
    let [folder, cluster] = folders.as_slice() else {
        eprintln!("usage: tatcell-header FOLDER CLUSTER_FOLDER");
        return ExitCode::from(2);
    };
    match write_all(Path::new(folder)).and_then(|()| write_cluster(Path::new(cluster))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("tatcell-header: {e}");
            ExitCode::FAILURE
        }
    }
}

fn write_all(folder: &Path) -> Result<(), String> {
    let mut items = items_of(".")?;
    for (name, text) in HEADERS {
        write(folder, name, template::fill(name, text, &mut items)?)?;
    }
    items.all_used()?;
    write(folder, "tatcell.ffi.h", plain::header(&items))?;
    write(folder, "tatcell.map", plain::export_list(&items, "TATCELL")?)
}

fn write_cluster(folder: &Path) -> Result<(), String> {
    let mut items = items_of("cluster")?;
    let (name, text) = CLUSTER_HEADER;
    write(folder, name, template::fill(name, text, &mut items)?)?;
    items.all_used()?;
    write(folder, "tatcell_cluster.map", plain::export_list(&items, "TATCELL_CLUSTER")?)
}

/// What cbindgen finds in a crate.
fn items_of(package: &str) -> Result<Items, String> {
    let config = cbindgen::Config::from_file("cbindgen.toml")?;
    let bindings = cbindgen::Builder::new().with_crate(package).with_config(config).generate();
    let mut raw = Vec::new();
    bindings.map_err(|e| e.to_string())?.write(&mut raw);
    Items::parse(&String::from_utf8(raw).map_err(|e| e.to_string())?)
}

fn write(folder: &Path, name: &str, text: String) -> Result<(), String> {
    std::fs::write(folder.join(name), text).map_err(|e| format!("{}: {e}", folder.join(name).display()))
}

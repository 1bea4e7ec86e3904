//! Writes the C headers and the export list: `tatcell-header FOLDER`, run from the repository's root by `make header`.
//!
//! cbindgen reads `src/capi` and gives every constant, structure and function with its comment. The templates beside
//! this file (`*.h.in`) say in which order a reader meets them, and what stands between. Nothing is left out, nothing
//! comes twice.

mod items;
mod plain;
mod template;

use std::path::Path;
use std::process::ExitCode;

use items::Items;

/// Templates and the headers they become.
const HEADERS: [(&str, &str); 2] =
    [("tatcell.h", include_str!("tatcell.h.in")), ("tatcell_host.h", include_str!("tatcell_host.h.in"))];

fn main() -> ExitCode {
    let Some(folder) = std::env::args().nth(1) else {
        eprintln!("usage: tatcell-header FOLDER");
        return ExitCode::from(2);
    };
    match write_all(Path::new(&folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("tatcell-header: {e}");
            ExitCode::FAILURE
        }
    }
}

fn write_all(folder: &Path) -> Result<(), String> {
    let config = cbindgen::Config::from_file("cbindgen.toml")?;
    let bindings = cbindgen::Builder::new().with_crate(".").with_config(config).generate();
    let mut raw = Vec::new();
    bindings.map_err(|e| e.to_string())?.write(&mut raw);
    let raw = String::from_utf8(raw).map_err(|e| e.to_string())?;
    let mut items = Items::parse(&raw)?;
    let write = |name: &str, text: String| {
        std::fs::write(folder.join(name), text).map_err(|e| format!("{}: {e}", folder.join(name).display()))
    };
    for (name, text) in HEADERS {
        write(name, template::fill(name, text, &mut items)?)?;
    }
    items.all_used()?;
    write("tatcell.ffi.h", plain::header(&items))?;
    write("tatcell.map", plain::export_list(&items)?)
}

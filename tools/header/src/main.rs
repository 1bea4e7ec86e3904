//! Writes the C header: `tatcell-header OUT`, run from the repository's root by `make header`.
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(out) = std::env::args().nth(1) else {
        eprintln!("usage: tatcell-header OUT");
        return ExitCode::from(2);
    };
    let config = cbindgen::Config::from_file("cbindgen.toml").expect("cbindgen.toml");
    let bindings = cbindgen::Builder::new()
        .with_crate(".")
        .with_config(config)
        .generate()
        .expect("src/capi parses");
    bindings.write_to_file(out);
    ExitCode::SUCCESS
}

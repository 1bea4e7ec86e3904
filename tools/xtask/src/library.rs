//! The C library: `libtatcell.a` with two localised objects, and `libtatcell.so` with its SONAME, in `target/c`.
//!
//! A raw Rust archive holds the compiler's own objects and clashes with any other Rust archive. This one defines the
//! exported functions and nothing else: `tatcell.o` needs memcpy and memset, no more, and `tatcell_host.o` (the
//! functions `tatcell_host_*`) the C library. A linker takes the second only for programs that use it.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use xshell::cmd;

use crate::context::{files, is_fresh, Context};
use crate::exec::Run;

/// The functions and versions that the library exports.
pub const MAP: &str = "include/tatcell.map";
/// Functions that start so are in the second object.
pub const HOST_PREFIX: &str = "tatcell_host_";

/// Where the parts of the library are.
pub struct Library {
    /// The archive.
    pub archive: PathBuf,
    /// The shared library, by its full name.
    pub shared: PathBuf,
    /// The object of everything but `tatcell_host_*`.
    pub object: PathBuf,
    /// The object of `tatcell_host_*`.
    pub host_object: PathBuf,
}

/// Builds the library and says where it is.
pub fn job(ctx: &Context) -> Result<()> {
    let Library { archive, shared, .. } = build(ctx)?;
    for built in [archive, shared] {
        println!("{}", built.strip_prefix(&ctx.root).unwrap_or(&built).display());
    }
    Ok(())
}

/// Builds the library where it is older than its sources.
pub fn build(ctx: &Context) -> Result<Library> {
    let folder = ctx.folder("c")?;
    let library = Library {
        archive: folder.join("libtatcell.a"),
        shared: folder.join(format!("libtatcell.so.{}", ctx.version)),
        object: folder.join("tatcell.o"),
        host_object: folder.join("tatcell_host.o"),
    };
    let mut sources = files(&ctx.root.join("src"), ".rs")?;
    sources.extend(["Cargo.toml", "build.rs", MAP].map(|name| ctx.root.join(name)));
    if !is_fresh(&library.archive, &sources) || !is_fresh(&library.shared, &sources) {
        archive(ctx, &library)?;
        shared(ctx, &library, &folder)?;
    }
    Ok(library)
}

/// What is generated from the sources into include/.
pub const GENERATED: [&str; 4] = ["tatcell.h", "tatcell_host.h", "tatcell.ffi.h", "tatcell.map"];

/// Generates the headers and the list of exports from the sources.
pub fn header(ctx: &Context) -> Result<()> {
    let (sh, cargo) = (&ctx.sh, &ctx.cargo);
    cmd!(sh, "env {cargo...} run --quiet -p tatcell-header -- include cluster/include").must().map(drop)
}

/// One object of what the exports reach in an archive or in objects; all else is dropped.
pub fn partial_link(
    ctx: &Context,
    ld: &[&str],
    inputs: &[PathBuf],
    exports: &[String],
    out: &Path,
) -> Result<()> {
    let wanted = exports.iter().flat_map(|name| ["-u", name]);
    cmd!(ctx.sh, "env {ld...} -r --gc-sections {wanted...} -o {out} {inputs...}").must()?;
    // Read by objcopy: the names that stay global.
    std::fs::write(out.with_extension("exports"), exports.join("\n") + "\n")?;
    Ok(())
}

fn archive(ctx: &Context, library: &Library) -> Result<()> {
    let (sh, cargo) = (&ctx.sh, &ctx.cargo);
    let kind = ["--release", "--lib", "--features", "capi,host", "--crate-type", "staticlib"];
    cmd!(sh, "env {cargo...} rustc --quiet {kind...}").must().context("the library does not compile")?;
    let raw = ctx.cargo_target.join("release/libtatcell.a");
    let (host, core): (Vec<_>, Vec<_>) =
        ctx.exports(MAP)?.into_iter().partition(|name| name.starts_with(HOST_PREFIX));
    localise(ctx, &raw, &core, &library.object)?;
    localise(ctx, &raw, &host, &library.host_object)?;
    let Library { archive, object, host_object, .. } = library;
    if archive.exists() {
        std::fs::remove_file(archive)?;
    }
    cmd!(sh, "ar rcs {archive} {object} {host_object}").must().map(drop)
}

/// One object with these exports. Names that nothing refers to go, such as those of C functions that only dropped code
/// called; the mangled names of its own functions stay, for the gates.
fn localise(ctx: &Context, raw: &Path, exports: &[String], out: &Path) -> Result<()> {
    partial_link(ctx, &["ld"], &[raw.to_owned()], exports, out)?;
    let list = out.with_extension("exports");
    let kept = ["_ZN*", "_R*", "*rust*", "*nwind*"].map(|symbols| format!("--keep-symbol={symbols}"));
    let dropped = ["-R", ".llvmbc", "-R", ".llvmcmd"];
    cmd!(ctx.sh, "objcopy --keep-global-symbols={list} --strip-unneeded -w {kept...} {dropped...} {out}")
        .must()?;
    Ok(())
}

/// The same objects, linked without a library of their own: what they need of the C library they take from the program,
/// which has one. (cargo would record a NEEDED entry for feature host.)
fn shared(ctx: &Context, library: &Library, folder: &Path) -> Result<()> {
    let cc = &ctx.cc;
    let Library { shared, object, host_object, .. } = library;
    let soname = ctx.soname();
    let names = [format!("-Wl,-soname,{soname}"), format!("-Wl,--version-script={MAP}")];
    let hardening = ["-Wl,-z,relro,-z,now,-z,noexecstack", "-Wl,--build-id"];
    let options = ["-shared", "-nostdlib"];
    cmd!(ctx.sh, "env {cc...} {options...} {names...} {hardening...} -o {shared} {object} {host_object}")
        .must()?;
    for link in [soname.as_str(), "libtatcell.so"] {
        let link = folder.join(link);
        let name = shared.file_name().unwrap_or_default();
        cmd!(ctx.sh, "ln -sf {name} {link}").must()?;
    }
    Ok(())
}

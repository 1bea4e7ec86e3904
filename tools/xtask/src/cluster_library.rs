//! The C library of the companion crate: `libtatcell_cluster.a`, one object that exports its functions and nothing
//! else, and `libtatcell_cluster.so` of the same object, in `target/c`.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use xshell::cmd;

use crate::context::{files, is_fresh, Context};
use crate::exec::Run;
use crate::library;

/// The functions and the version that the library exports.
pub const MAP: &str = "cluster/include/tatcell_cluster.map";

/// What the object needs of the system.
pub const NEEDS: [&str; 5] = ["-lpthread", "-ldl", "-lm", "-lgcc_s", "-lc"];

/// Where the parts of the library are.
pub struct ClusterLibrary {
    pub archive: PathBuf,
    /// By its full name.
    pub shared: PathBuf,
}

/// Builds the library and says where it is.
pub fn job(ctx: &Context) -> Result<()> {
    let ClusterLibrary { archive, shared } = build(ctx)?;
    for built in [archive, shared] {
        println!("{}", built.strip_prefix(&ctx.root).unwrap_or(&built).display());
    }
    Ok(())
}

/// The name that programs need.
pub fn soname(ctx: &Context) -> Result<String> {
    let map = ctx.read(MAP)?;
    let version = map.split_whitespace().next().and_then(|node| node.strip_prefix("TATCELL_CLUSTER_"));
    Ok(format!("libtatcell_cluster.so.{}", version.context("no version in the list of exports")?))
}

/// Builds the library where it is older than its sources.
pub fn build(ctx: &Context) -> Result<ClusterLibrary> {
    let folder = ctx.folder("c")?;
    let library = ClusterLibrary {
        archive: folder.join("libtatcell_cluster.a"),
        shared: folder.join(format!("libtatcell_cluster.so.{}", ctx.version)),
    };
    let mut sources = files(&ctx.root.join("src"), ".rs")?;
    sources.extend(files(&ctx.root.join("cluster/src"), "")?);
    sources.extend(["Cargo.lock", "cluster/Cargo.toml", MAP].map(|name| ctx.root.join(name)));
    if !is_fresh(&library.archive, &sources) || !is_fresh(&library.shared, &sources) {
        let object = folder.join("tatcell_cluster.o");
        make_object(ctx, &object)?;
        link(ctx, &library, &object, &folder)?;
    }
    Ok(library)
}

fn make_object(ctx: &Context, object: &Path) -> Result<()> {
    let (sh, cargo) = (&ctx.sh, &ctx.cargo);
    let kind = ["--release", "--lib", "--features", "capi,tls", "--crate-type", "staticlib"];
    cmd!(sh, "env {cargo...} rustc --quiet -p tatcell-cluster {kind...}")
        .must()
        .context("the library does not compile")?;
    let raw = ctx.cargo_target.join("release/libtatcell_cluster.a");
    library::partial_link(ctx, &["ld"], &[raw], &ctx.exports(MAP)?, object)?;
    let list = object.with_extension("exports");
    cmd!(sh, "objcopy --keep-global-symbols={list} --strip-debug -R .llvmbc -R .llvmcmd {object}")
        .must()
        .map(drop)
}

fn link(ctx: &Context, library: &ClusterLibrary, object: &Path, folder: &Path) -> Result<()> {
    let (sh, cc) = (&ctx.sh, &ctx.cc);
    let ClusterLibrary { archive, shared } = library;
    if archive.exists() {
        std::fs::remove_file(archive)?;
    }
    cmd!(sh, "ar rcs {archive} {object}").must()?;
    let soname = soname(ctx)?;
    let names = [format!("-Wl,-soname,{soname}"), format!("-Wl,--version-script={MAP}")];
    let hardening = ["-Wl,-z,relro,-z,now,-z,noexecstack", "-Wl,--build-id", "-Wl,--gc-sections", "-Wl,-s"];
    cmd!(sh, "env {cc...} -shared {names...} {hardening...} -o {shared} {object} {NEEDS...}").must()?;
    for link in [soname.as_str(), "libtatcell_cluster.so"] {
        let (link, name) = (folder.join(link), shared.file_name().unwrap_or_default());
        cmd!(sh, "ln -sf {name} {link}").must()?;
    }
    Ok(())
}

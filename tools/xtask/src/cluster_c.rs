//! The C interface of the companion crate against a redis-server of its own: as C11 and C++17, under sanitizers, and
//! from where it was installed; and the verdict lines of the demo.

use std::path::{Path, PathBuf};

use anyhow::{ensure, Result};
use xshell::cmd;

use crate::cluster;
use crate::cluster_library::{self, ClusterLibrary};
use crate::cluster_store::Store;
use crate::context::{files, Context, STRICT};
use crate::exec::Run;
use crate::package;
use crate::report::Report;
use crate::tools::missing;

/// Programs that take the URL of a store and say by their status whether all is well.
const PROGRAMS: [(&str, &str); 2] = [("api", "cluster/tests/c/api.c"), ("poll", "cluster/examples/poll.c")];

/// A name, the flags, and options of the sanitizer at run time. The Rust side is not instrumented, so the thread
/// sanitizer is kept out of the shared library: it watches what the C side does and is handed.
const KINDS: [(&str, &[&str], &str); 4] = [
    ("c11", &["-std=c11", "-D_GNU_SOURCE", "-O2"], ""),
    ("cxx17", &["-std=c++17", "-O2"], ""),
    (
        "asan",
        &[
            "-std=c11",
            "-D_GNU_SOURCE",
            "-O1",
            "-g",
            "-fsanitize=address,undefined",
            "-fno-sanitize-recover=all",
        ],
        "",
    ),
    (
        "tsan",
        &["-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-fsanitize=thread"],
        "ignore_noninstrumented_modules=1",
    ),
];

/// What make install-cluster puts below usr, beside the library by its versions.
const FILES: [&str; 6] = [
    "include/tatcell_cluster.h",
    "lib/libtatcell_cluster.a",
    "lib/libtatcell_cluster.so",
    "lib/pkgconfig/tatcell_cluster.pc",
    "lib/cmake/tatcell_cluster/tatcell_cluster-config.cmake",
    "lib/cmake/tatcell_cluster/tatcell_cluster-config-version.cmake",
];

/// The suite.
pub fn run(ctx: &Context, report: &mut Report) -> Result<()> {
    let library = cluster_library::build(ctx)?;
    let out = ctx.empty_folder("cluster-c")?;
    report.claim("c: the_shared_library_exports_the_list_and_no_more", || exports(ctx, &library));
    let store = match missing(&["redis-server"]) {
        Some(missing) => {
            report.skip("c: programs", &missing);
            None
        }
        None => Some(Store::start(&out)?),
    };
    for (kind, flags, options) in KINDS {
        for (name, source) in PROGRAMS {
            let program = out.join(format!("{name}_{kind}"));
            let claim = format!("c: {name}_as_{kind}");
            if !report.claim(&format!("{claim}_compiles"), || compile(ctx, flags, source, &program)) {
                continue;
            }
            if let Some(store) = &store {
                report.claim(&format!("{claim}_runs"), || {
                    store.run(&program, options, &ctx.root.join("target/c"))
                });
            }
        }
    }
    installed(ctx, report, &out, store.as_ref());
    cluster::test_demo(ctx, report)
}

fn compile(ctx: &Context, flags: &[&str], source: &str, program: &Path) -> Result<()> {
    let cxx = flags.first().is_some_and(|flag| flag.contains("c++"));
    let (compiler, language) = if cxx { (&ctx.cxx, "c++") } else { (&ctx.cc, "c") };
    let links = ["-Ltarget/c", "-ltatcell_cluster", "-lpthread"];
    let input = ["-Icluster/include", "-x", language];
    cmd!(
        ctx.sh,
        "env {compiler...} {flags...} {STRICT...} {input...} {source} -x none {links...} -o {program}"
    )
    .must()
    .map(drop)
}

fn exports(ctx: &Context, library: &ClusterLibrary) -> Result<()> {
    let mut found = crate::binary::dynamic_exports(&library.shared)?;
    found.retain(|name| !name.starts_with("TATCELL_CLUSTER_"));
    found.sort();
    found.dedup();
    let wanted = ctx.exports(cluster_library::MAP)?;
    ensure!(found == wanted, "exports {found:?}\ninstead of {wanted:?}");
    Ok(())
}

/// Into a staging folder, moved, and used from there by pkg-config and CMake.
fn installed(ctx: &Context, report: &mut Report, out: &Path, store: Option<&Store>) {
    let stage = out.join("stage");
    let made = || package::make(ctx, "install-cluster", &stage, &["PREFIX=/usr"]);
    if !report.claim("c: make_install_cluster_succeeds", made) {
        return;
    }
    report.claim("c: installed_files_are_exactly_the_listed_ones", || exact(ctx, &stage));
    let moved = out.join("moved");
    let root = if std::fs::rename(&stage, &moved).is_ok() { moved } else { stage };
    let lib = root.join("usr/lib");
    match missing(&["pkg-config"]) {
        Some(missing) => report.skip("c: programs_build_with_pkg_config", &missing),
        None => {
            let program = |name: &str, static_: &[&str]| -> Result<PathBuf> {
                let program = out.join(name);
                let ask = ["--cflags", "--libs"];
                let flags = cmd!(ctx.sh, "pkg-config {static_...} {ask...} tatcell_cluster")
                    .env("PKG_CONFIG_PATH", lib.join("pkgconfig"))
                    .must()?;
                let flags = match static_.is_empty() {
                    true => flags,
                    false => flags.replace("-ltatcell_cluster", "-l:libtatcell_cluster.a"),
                };
                let (cc, flags) = (&ctx.cc, flags.split_whitespace());
                let (options, source) = (["-std=c11", "-D_GNU_SOURCE", "-pthread"], PROGRAMS[1].1);
                cmd!(ctx.sh, "env {cc...} {options...} {STRICT...} {source} {flags...} -o {program}")
                    .must()?;
                Ok(program)
            };
            for (name, options) in [("with_pkg_config", &[][..]), ("with_the_archive", &["--static"])] {
                report.claim(&format!("c: program_builds_and_runs_{name}"), || {
                    let built = program(name, options)?;
                    store.map_or(Ok(()), |store| store.run(&built, "", &lib))
                });
            }
        }
    }
    match missing(&["cmake"]) {
        Some(missing) => report.skip("c: program_builds_with_cmake", &missing),
        None => drop(report.claim("c: program_builds_and_runs_with_cmake", || {
            let (build, prefix) =
                (out.join("cmake"), format!("-DCMAKE_PREFIX_PATH={}", root.join("usr").display()));
            cmd!(ctx.sh, "cmake -S cluster/tests/c -B {build} {prefix} -DCMAKE_BUILD_TYPE=Release").must()?;
            cmd!(ctx.sh, "cmake --build {build}").must()?;
            for name in ["poll_shared", "poll_static"] {
                store.map_or(Ok(()), |store| store.run(&build.join(name), "", &lib))?;
            }
            Ok(())
        })),
    }
    report.claim("c: make_uninstall_cluster_removes_every_file", || {
        package::make(ctx, "uninstall-cluster", &root, &["PREFIX=/usr"])?;
        let left = files(&root, "")?;
        ensure!(left.is_empty(), "{left:?} stay");
        Ok(())
    });
}

fn exact(ctx: &Context, stage: &Path) -> Result<()> {
    let mut wanted: Vec<String> = FILES.iter().map(|file| format!("usr/{file}")).collect();
    wanted.push(format!("usr/lib/libtatcell_cluster.so.{}", ctx.version));
    wanted.push(format!("usr/lib/{}", cluster_library::soname(ctx)?));
    wanted.sort();
    let found = files(stage, "")?;
    let mut found: Vec<String> =
        found.iter().filter_map(|p| Some(p.strip_prefix(stage).ok()?.to_str()?.to_owned())).collect();
    found.sort();
    ensure!(wanted == found, "installed {found:?}\ninstead of {wanted:?}");
    Ok(())
}

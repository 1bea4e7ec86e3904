//! Installs into a staging folder and uses the package as its users do; then moves the folder and does it again.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{bail, ensure, Result};
use xshell::{cmd, Cmd};

use crate::binary::dynamic_exports;
use crate::context::{files, Context, STRICT};
use crate::exec::{tail, Done, Run};
use crate::ffi::headers;
use crate::library;
use crate::report::Report;
use crate::tools::{missing, Missing};

/// What is installed beside the headers and the shared library; below the prefix.
const FILES: [&str; 5] = [
    "lib/cmake/tatcell/tatcell-config-version.cmake",
    "lib/cmake/tatcell/tatcell-config.cmake",
    "lib/libtatcell.a",
    "lib/libtatcell.so",
    "lib/pkgconfig/tatcell.pc",
];

/// The programs of packaging/test/cmake, and whether they need the shared library.
const PROGRAMS: [(&str, bool); 6] = [
    ("c_tatcell", true),
    ("c_static", false),
    ("c_shared", true),
    ("cxx_tatcell", true),
    ("cxx_static", false),
    ("cxx_shared", true),
];

/// Its shared objects, which link the archive: alone, and through a static library of the user's own.
const PLUGINS: [&str; 2] = ["plugin", "through"];

/// What packaging/test/load.c ends with where it finds the library's symbols in a plugin.
const SHOWN: i32 = 3;

/// Variables of make install that the caller's own must not reach.
const FOLDERS: [&str; 4] = ["DESTDIR", "PREFIX", "LIBDIR", "INCLUDEDIR"];

/// The suite.
pub fn run(ctx: &Context, report: &mut Report) -> Result<()> {
    library::build(ctx)?;
    let out = ctx.empty_folder("ffi/package")?;
    let package = Package { ctx, out: out.clone() };
    let stage = out.join("stage");
    report.claim("make_install_succeeds", || package.make("install", &stage, &["PREFIX=/usr"]));
    report.claim("installed_files_are_exactly_the_listed_ones", || package.exact_files(&stage));
    report.claim("library_links_lead_to_the_versioned_library", || {
        let whole = format!("libtatcell.so.{}", ctx.version);
        let led = stage.join("usr/lib/libtatcell.so").canonicalize()?;
        ensure!(led == stage.join("usr/lib").join(whole), "libtatcell.so is {}", led.display());
        Ok(())
    });
    report.claim("installed_files_are_readable_by_all_and_writable_by_the_owner", || modes(&stage));
    report.claim("installed_text_names_no_folder_of_the_build", || package.no_paths(&stage.join("usr")));

    package.round(report, &stage, "where_it_was_installed");
    let moved = out.join("moved/deeper");
    std::fs::create_dir_all(out.join("moved"))?;
    std::fs::rename(&stage, &moved)?;
    package.round(report, &moved, "after_it_was_moved");
    if missing(&["pkg-config"]).is_none() {
        report.claim("other_library_and_include_folders_work", || package.multiarch());
    }
    report.claim("make_uninstall_removes_every_file", || {
        package.make("uninstall", &moved, &["PREFIX=/usr"])?;
        let left = files(&moved, "")?;
        ensure!(left.is_empty(), "{} files stay", left.len());
        ensure!(!moved.join("usr/lib/cmake/tatcell").exists(), "a folder stays");
        Ok(())
    });
    Ok(())
}

/// Runs make install or uninstall below a root.
pub fn make(ctx: &Context, target: &str, root: &Path, variables: &[&str]) -> Result<()> {
    let make = &ctx.make;
    let root = format!("DESTDIR={}", root.display());
    let mut run = cmd!(ctx.sh, "env {make...} --no-print-directory -s {target} {root} {variables...}");
    for folder in FOLDERS {
        run = run.env_remove(folder);
    }
    run.must().map(drop)
}

/// Where the programs of its users are built.
struct Package<'a> {
    ctx: &'a Context,
    out: PathBuf,
}

impl Package<'_> {
    fn make(&self, target: &str, root: &Path, variables: &[&str]) -> Result<()> {
        make(self.ctx, target, root, variables)
    }

    fn exact_files(&self, stage: &Path) -> Result<()> {
        let headers = headers::installed(self.ctx)?;
        let mut wanted: Vec<String> = headers.iter().map(|h| format!("usr/include/{h}")).collect();
        wanted.extend(FILES.iter().map(|f| format!("usr/{f}")));
        wanted.push(format!("usr/lib/libtatcell.so.{}", self.ctx.version));
        wanted.push(format!("usr/lib/{}", self.ctx.soname()));
        wanted.sort();
        let found = files(stage, "")?;
        let mut found: Vec<String> =
            found.iter().filter_map(|p| Some(p.strip_prefix(stage).ok()?.to_str()?.to_owned())).collect();
        found.sort();
        ensure!(wanted == found, "installed {found:?}\ninstead of {wanted:?}");
        Ok(())
    }

    fn no_paths(&self, usr: &Path) -> Result<()> {
        let mut named = vec![self.ctx.root.to_string_lossy().into_owned()];
        named.extend(std::env::var("HOME").ok().filter(|home| home.len() > 1).map(|home| home + "/"));
        for folder in ["lib/pkgconfig", "lib/cmake", "include"] {
            for file in files(&usr.join(folder), "")? {
                let text = std::fs::read_to_string(&file)?;
                ensure!(!named.iter().any(|n| text.contains(n)), "{} does", file.display());
            }
        }
        Ok(())
    }

    /// Builds and runs programs against what lies below `root`.
    fn round(&self, report: &mut Report, root: &Path, place: &str) {
        match missing(&["pkg-config"]) {
            Some(missing) => report.skip(&format!("program_builds_with_pkg_config_{place}"), &missing),
            None => self.pkg_config_round(report, root, place),
        }
        let name = format!("programs_build_with_cmake_{place}");
        match missing(&["cmake"]) {
            Some(missing) => report.skip(&name, &missing),
            None => {
                let prefix = format!("-DCMAKE_PREFIX_PATH={}", root.join("usr").display());
                report.claim(&name, || self.with_cmake(&prefix, &self.out.join(format!("cmake-{place}"))));
                report.claim(&format!("cmake_without_the_shared_library_{place}"), || {
                    let copy = self.out.join(format!("archive-only-{place}"));
                    cmd!(self.ctx.sh, "cp -a {root} {copy}").must()?;
                    self.archive_only(&copy)
                });
            }
        }
    }

    fn pkg_config_round(&self, report: &mut Report, root: &Path, place: &str) {
        let pkgconfig = root.join("usr/lib/pkgconfig");
        let lib = root.join("usr/lib");
        let flags = |more: &[&str]| self.flags(more).env("PKG_CONFIG_PATH", &pkgconfig).must();
        let mut claim =
            |name: &str, ask: &dyn Fn() -> Result<()>| report.claim(&format!("{name}_{place}"), ask);
        claim("pkg_config_knows_the_version", &|| {
            let version = self.pkg_config(&["--modversion"]).env("PKG_CONFIG_PATH", &pkgconfig).must()?;
            ensure!(version.trim() == self.ctx.version, "{}", version.trim());
            Ok(())
        });
        let dynamic = self.out.join("dynamic");
        claim("program_builds_with_pkg_config", &|| self.program(&flags(&[])?, &[], &dynamic, &lib));
        claim("program_needs_the_soname", &|| self.needs_library(&dynamic, true));
        // A cross build's way: the root is a sysroot, and pkg-config must not put it before a path twice.
        claim("program_builds_in_a_sysroot", &|| {
            let flags = self.flags(&[]);
            let flags = flags.env("PKG_CONFIG_SYSROOT_DIR", root).env("PKG_CONFIG_LIBDIR", &pkgconfig);
            self.program(&flags.must()?, &[], &self.out.join("sysroot"), &lib)
        });
        let rpath = format!("-Wl,-rpath,{}", lib.display());
        claim("program_with_rpath_runs_without_a_search_path", &|| {
            let out = self.out.join("rpath");
            self.build(&flags(&[])?, &[&rpath], &out)?;
            self.runs_alone(&out)?;
            self.needs_library(&out, true)
        });
        claim("program_with_the_archive_needs_no_library", &|| {
            let out = self.out.join("archive");
            self.build(&from_archive(&flags(&["--static"])?), &[], &out)?;
            self.runs_alone(&out)?;
            self.needs_library(&out, false)
        });
        claim("cxx_program_builds_with_pkg_config", &|| {
            let (cxx, flags, out) = (&self.ctx.cxx, flags(&[])?, self.out.join("cxx"));
            let flags = flags.split_whitespace().chain([rpath.as_str()]);
            cmd!(
                self.ctx.sh,
                "env {cxx...} -std=c++17 {STRICT...} packaging/test/main.cpp {flags...} -o {out}"
            )
            .must()?;
            self.runs_alone(&out)
        });
        claim("plugin_hides_the_archive", &|| {
            let plugin = self.plugin(&flags(&["--static"])?)?;
            let loaded = self.load(&plugin)?;
            ensure!(loaded.ok(), "{}\n{}", loaded.how(), loaded.all);
            self.needs_library(&plugin, false)?;
            hides(&plugin)
        });
        // The control: without --static there is something to find, and the loader finds it.
        claim("plugin_without_static_shows_it", &|| {
            let plugin = self.plugin(&flags(&[])?)?;
            let loaded = self.load(&plugin)?;
            ensure!(loaded.code() == Some(SHOWN), "{}\n{}", loaded.how(), loaded.all);
            ensure!(hides(&plugin).is_err(), "no symbol is found");
            Ok(())
        });
        let name = format!("static_program_builds_with_pkg_config_{place}");
        if self.has_static_libc() {
            report.claim(&name, || self.program(&flags(&[])?, &["-static"], &self.out.join("static"), &lib));
        } else {
            report.skip(&name, &Missing::new("no static libc", "apt-get install libc6-dev"));
        }
    }

    fn pkg_config(&self, what: &[&str]) -> Cmd<'_> {
        cmd!(self.ctx.sh, "pkg-config {what...} tatcell")
    }

    fn flags(&self, more: &[&str]) -> Cmd<'_> {
        self.pkg_config(&[more, &["--cflags", "--libs"]].concat())
    }

    fn program(&self, flags: &str, more: &[&str], out: &Path, lib: &Path) -> Result<()> {
        self.build(flags, more, out)?;
        cmd!(self.ctx.sh, "{out}").env("LD_LIBRARY_PATH", lib).must().map(drop)
    }

    fn build(&self, flags: &str, more: &[&str], out: &Path) -> Result<()> {
        let cc = &self.ctx.cc;
        let flags = flags.split_whitespace().chain(more.iter().copied());
        cmd!(self.ctx.sh, "env {cc...} {STRICT...} packaging/test/main.c {flags...} -o {out}")
            .must()
            .map(drop)
    }

    fn runs_alone(&self, program: &Path) -> Result<()> {
        cmd!(self.ctx.sh, "{program}").env_remove("LD_LIBRARY_PATH").must().map(drop)
    }

    /// A shared object that links the archive.
    fn plugin(&self, flags: &str) -> Result<PathBuf> {
        let (cc, out) = (&self.ctx.cc, self.out.join("plugin.so"));
        let flags = from_archive(flags);
        let flags = flags.split_whitespace();
        let kind = ["-shared", "-fPIC"];
        cmd!(self.ctx.sh, "env {cc...} {STRICT...} {kind...} packaging/test/plugin.c {flags...} -o {out}")
            .must()?;
        Ok(out)
    }

    fn load(&self, plugin: &Path) -> Result<Done> {
        let (cc, load) = (&self.ctx.cc, self.out.join("load"));
        cmd!(self.ctx.sh, "env {cc...} {STRICT...} packaging/test/load.c -ldl -o {load}").must()?;
        cmd!(self.ctx.sh, "{load} {plugin}").done()
    }

    fn has_static_libc(&self) -> bool {
        let (cc, probe) = (&self.ctx.cc, self.out.join("probe"));
        let source = probe.with_extension("c");
        std::fs::write(&source, "int main(void) { return 0; }\n").is_ok()
            && cmd!(self.ctx.sh, "env {cc...} -static {source} -o {probe}").works()
    }

    fn needs_library(&self, program: &Path, wanted: bool) -> Result<()> {
        let dynamic = cmd!(self.ctx.sh, "readelf -d {program}").done()?.stdout;
        let soname = format!("[{}]", self.ctx.soname());
        let needs = dynamic.lines().any(|l| l.contains("NEEDED") && l.contains(&soname));
        ensure!(
            needs == wanted,
            "{} needs {}",
            program.display(),
            if needs { &soname } else { "no such library" }
        );
        Ok(())
    }

    /// All programs and plugins.
    fn with_cmake(&self, found_by: &str, build: &Path) -> Result<()> {
        self.configure(found_by, build)?.must()?;
        cmd!(self.ctx.sh, "cmake --build {build}").must()?;
        for (name, shared) in PROGRAMS {
            let program = build.join(name);
            self.ends_well(&program)?;
            self.needs_library(&program, shared)?;
        }
        for name in PLUGINS {
            let plugin = build.join(format!("lib{name}.so"));
            self.ends_well(&build.join(format!("load_{name}")))?;
            self.needs_library(&plugin, false)?;
            hides(&plugin)?;
        }
        Ok(())
    }

    fn configure(&self, found_by: &str, build: &Path) -> Result<Done> {
        let compiler = |words: &[String]| words.first().cloned().unwrap_or_default();
        let cc = format!("-DCMAKE_C_COMPILER={}", compiler(&self.ctx.cc));
        let cxx = format!("-DCMAKE_CXX_COMPILER={}", compiler(&self.ctx.cxx));
        let options = [found_by, "-DCMAKE_BUILD_TYPE=Release", &cc, &cxx];
        cmd!(self.ctx.sh, "cmake -S packaging/test/cmake -B {build} {options...}").done()
    }

    fn ends_well(&self, program: &Path) -> Result<()> {
        let done = cmd!(self.ctx.sh, "{program}").done()?;
        ensure!(done.ok(), "{}: {}\n{}", program.display(), done.how(), tail(&done.all, 5));
        Ok(())
    }

    /// Only the archive is installed: tatcell::tatcell is that one, and there is no tatcell::shared. With neither,
    /// nothing is found.
    fn archive_only(&self, root: &Path) -> Result<()> {
        let found_by = format!("-DCMAKE_PREFIX_PATH={}", root.join("usr").display());
        for library in files(&root.join("usr/lib"), "")? {
            if library.to_string_lossy().contains("libtatcell.so") {
                std::fs::remove_file(library)?;
            }
        }
        let (build, none) = (root.join("build"), root.join("none"));
        let said = self.configure(&found_by, &build)?.must()?;
        ensure!(said.contains("tatcell::shared is not installed"), "{}", tail(&said, 5));
        cmd!(self.ctx.sh, "cmake --build {build}").must()?;
        self.ends_well(&build.join("c_tatcell"))?;
        self.needs_library(&build.join("c_tatcell"), false)?;
        std::fs::remove_file(root.join("usr/lib/libtatcell.a"))?;
        let done = self.configure(&found_by, &none)?;
        ensure!(!done.ok() && done.all.contains("neither libtatcell"), "{}", tail(&done.all, 5));
        Ok(())
    }

    /// A multiarch library folder and another include folder.
    fn multiarch(&self) -> Result<()> {
        let root = self.out.join("multiarch");
        let lib = root.join("usr/lib/some-linux-gnu");
        let folders = ["PREFIX=/usr", "LIBDIR=/usr/lib/some-linux-gnu", "INCLUDEDIR=/usr/include/tatcell-0"];
        self.make("install", &root, &folders)?;
        let flags = self.flags(&[]).env("PKG_CONFIG_PATH", lib.join("pkgconfig")).must()?;
        self.program(&flags, &[], &root.join("program"), &lib)?;
        if missing(&["cmake"]).is_some() {
            return Ok(());
        }
        let found_by = format!("-Dtatcell_DIR={}", lib.join("cmake/tatcell").display());
        self.with_cmake(&found_by, &root.join("build"))
    }
}

/// Flags of pkg-config that link the archive, and what follows them dynamically again.
fn from_archive(flags: &str) -> String {
    format!("-Wl,-Bstatic {flags} -Wl,-Bdynamic")
}

/// The shared object exports nothing of the library.
fn hides(plugin: &Path) -> Result<()> {
    let exports = dynamic_exports(plugin)?;
    let shown = exports.iter().find(|name| name.starts_with("tatcell_"));
    shown.map_or(Ok(()), |name| bail!("{} exports {name}", plugin.display()))
}

fn modes(stage: &Path) -> Result<()> {
    for file in files(stage, "")? {
        let mode = file.symlink_metadata()?.permissions().mode();
        let link = file.is_symlink();
        let right = mode & 0o444 == 0o444 && mode & 0o022 == 0;
        ensure!(
            link || right,
            "{:?} has mode {:o}",
            file.file_name().unwrap_or(OsStr::new("")),
            mode & 0o777
        );
    }
    Ok(())
}

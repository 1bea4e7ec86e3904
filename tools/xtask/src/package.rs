//! Installs into a staging folder and uses the package as its users do; then moves the folder and does it again.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{bail, ensure, Result};
use xshell::{cmd, Cmd};

use crate::context::{files, Context, STRICT};
use crate::exec::{tail, Run};
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
const PROGRAMS: [(&str, bool); 4] =
    [("c_static", false), ("c_shared", true), ("cxx_static", false), ("cxx_shared", true)];

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

/// Where the programs of its users are built.
struct Package<'a> {
    ctx: &'a Context,
    out: PathBuf,
}

impl Package<'_> {
    fn make(&self, target: &str, root: &Path, variables: &[&str]) -> Result<()> {
        let make = &self.ctx.make;
        let root = format!("DESTDIR={}", root.display());
        let mut run =
            cmd!(self.ctx.sh, "env {make...} --no-print-directory -s {target} {root} {variables...}");
        for folder in FOLDERS {
            run = run.env_remove(folder);
        }
        run.must().map(drop)
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
        let pkgconfig = root.join("usr/lib/pkgconfig");
        let lib = root.join("usr/lib");
        if let Some(missing) = missing(&["pkg-config"]) {
            report.skip(&format!("program_builds_with_pkg_config_{place}"), &missing);
        } else {
            report.claim(&format!("pkg_config_knows_the_version_{place}"), || {
                let version = self.pkg_config(&["--modversion"]).env("PKG_CONFIG_PATH", &pkgconfig).must()?;
                ensure!(version.trim() == self.ctx.version, "{}", version.trim());
                Ok(())
            });
            let dynamic = self.out.join("dynamic");
            report.claim(&format!("program_builds_with_pkg_config_{place}"), || {
                let flags = self.flags().env("PKG_CONFIG_PATH", &pkgconfig).must()?;
                self.program(&flags, &[], &dynamic, &lib)
            });
            report.claim(&format!("program_needs_the_soname_{place}"), || self.needs_library(&dynamic, true));
            // A cross build's way: the root is a sysroot, and pkg-config must not put it before a path twice.
            report.claim(&format!("program_builds_in_a_sysroot_{place}"), || {
                let flags =
                    self.flags().env("PKG_CONFIG_SYSROOT_DIR", root).env("PKG_CONFIG_LIBDIR", &pkgconfig);
                self.program(&flags.must()?, &[], &self.out.join("sysroot"), &lib)
            });
            let name = format!("static_program_builds_with_pkg_config_{place}");
            if self.has_static_libc() {
                report.claim(&name, || {
                    let flags = self.flags().env("PKG_CONFIG_PATH", &pkgconfig).must()?;
                    self.program(&flags, &["-static"], &self.out.join("static"), &lib)
                });
            } else {
                report.skip(&name, &Missing::new("no static libc", "apt-get install libc6-dev"));
            }
        }
        let name = format!("programs_build_with_cmake_{place}");
        match missing(&["cmake"]) {
            Some(missing) => report.skip(&name, &missing),
            None => {
                let prefix = format!("-DCMAKE_PREFIX_PATH={}", root.join("usr").display());
                report.claim(&name, || self.with_cmake(&prefix, &self.out.join(format!("cmake-{place}"))));
            }
        }
    }

    fn pkg_config(&self, what: &[&str]) -> Cmd<'_> {
        cmd!(self.ctx.sh, "pkg-config {what...} tatcell")
    }

    fn flags(&self) -> Cmd<'_> {
        self.pkg_config(&["--cflags", "--libs"])
    }

    fn program(&self, flags: &str, more: &[&str], out: &Path, lib: &Path) -> Result<()> {
        let cc = &self.ctx.cc;
        let flags = flags.split_whitespace().chain(more.iter().copied());
        cmd!(self.ctx.sh, "env {cc...} {STRICT...} packaging/test/main.c {flags...} -o {out}").must()?;
        cmd!(self.ctx.sh, "{out}").env("LD_LIBRARY_PATH", lib).must().map(drop)
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

    /// All four programs.
    fn with_cmake(&self, found_by: &str, build: &Path) -> Result<()> {
        let compiler = |words: &[String]| words.first().cloned().unwrap_or_default();
        let cc = format!("-DCMAKE_C_COMPILER={}", compiler(&self.ctx.cc));
        let cxx = format!("-DCMAKE_CXX_COMPILER={}", compiler(&self.ctx.cxx));
        let options = [found_by, "-DCMAKE_BUILD_TYPE=Release", &cc, &cxx];
        cmd!(self.ctx.sh, "cmake -S packaging/test/cmake -B {build} {options...}").must()?;
        cmd!(self.ctx.sh, "cmake --build {build}").must()?;
        for (name, shared) in PROGRAMS {
            let program = build.join(name);
            let done = cmd!(self.ctx.sh, "{program}").done()?;
            if !done.ok() {
                bail!("{name}: {}\n{}", done.how(), tail(&done.all, 5));
            }
            self.needs_library(&program, shared)?;
        }
        Ok(())
    }

    /// A multiarch library folder and another include folder.
    fn multiarch(&self) -> Result<()> {
        let root = self.out.join("multiarch");
        let lib = root.join("usr/lib/some-linux-gnu");
        let folders = ["PREFIX=/usr", "LIBDIR=/usr/lib/some-linux-gnu", "INCLUDEDIR=/usr/include/tatcell-0"];
        self.make("install", &root, &folders)?;
        let flags = self.flags().env("PKG_CONFIG_PATH", lib.join("pkgconfig")).must()?;
        self.program(&flags, &[], &root.join("program"), &lib)?;
        if missing(&["cmake"]).is_some() {
            return Ok(());
        }
        let found_by = format!("-Dtatcell_DIR={}", lib.join("cmake/tatcell").display());
        self.with_cmake(&found_by, &root.join("build"))
    }
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

//! The container files of the servers, built from a fresh clone and run.
//!
//! ```text
//!   clone    what is committed, without what was built beside it
//!   images   of the system and of Rust: with TATCELL_BASE_IMAGES=1 those that the files name, from wherever podman has
//!            them; else stand-ins under their names, made of Debian's packages and of this machine's toolchain, in a
//!            store of the test's own
//!   build    each file as it is, by buildah
//!   run      each image as it is, by podman, without a network: asked from within, as the user that it names, stopped
//! ```
//!
//! A stand-in shows that the steps of a file work in their order and that what it builds runs on Debian without
//! anything added; it does not show what the images of those names have in them today.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{bail, ensure, Context as _, Result};
use xshell::{cmd, Cmd};

use crate::context::{is_set, Context};
use crate::exec::Run;
use crate::report::Report;
use crate::tools::{self, Missing};

/// A server and how its image is tried.
struct Server {
    folder: &'static str,
    program: &'static str,
    /// A file of the repository and where it is expected.
    given: Option<(&'static str, &'static str)>,
    asked: [Asked; 2],
}

/// The port, what is sent in the words of printf, how the answer is shown, and what it then begins with.
type Asked = (u16, &'static str, &'static str, &'static str);

const HEALTH: &str = "GET /healthz HTTP/1.1\\r\\nhost: x\\r\\n\\r\\n";
const WELL: &str = "HTTP/1.1 200 OK";
/// A client's first words in HTTP/2, with no settings; the type of a server's first frame, which is 4, of settings.
const HTTP2: &str = "PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n\\0\\0\\0\\4\\0\\0\\0\\0\\0";
const FRAME: &str = "head -c 4 | od -An -tx1 | cut -d ' ' -f 5";
const LINES: &str = "tr -d '\\r' | tr '\\n' ' '";

const SERVERS: [Server; 2] = [
    Server {
        folder: "throttled",
        program: "tatcell-throttled",
        given: None,
        asked: [
            (6_379, "CL.THROTTLE user123 15 30 60 1\\r\\nQUIT\\r\\n", LINES, "*5 :0 :16 :15 :-1 :2"),
            (9_121, HEALTH, LINES, WELL),
        ],
    },
    Server {
        folder: "envoy",
        program: "tatcell-ratelimit",
        given: Some(("cluster/envoy/rules.yaml", "/etc/tatcell/rules.yaml")),
        asked: [(8_081, HTTP2, FRAME, "04"), (9_122, HEALTH, LINES, WELL)],
    },
];

/// As the files name them.
const SYSTEM: &str = "docker.io/library/debian:bookworm-slim";
const RUST: &str = "docker.io/library/rust:1-slim-bookworm";

/// What the image of Rust has beside the system.
const OF_RUST: [&str; 3] = ["gcc", "libc6-dev", "ca-certificates"];

/// Containers may have as much as this process where it may not raise it.
const LIMITS: [&str; 4] = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"];

/// The suite.
pub fn run(ctx: &Context, report: &mut Report) -> Result<()> {
    let theirs = is_set("TATCELL_BASE_IMAGES");
    let mut needed = vec!["buildah", "podman", "git"];
    needed.extend((!theirs).then_some("mmdebstrap"));
    if let Some(missing) = tools::missing(&needed) {
        report.skip("containers", &missing);
        return Ok(());
    }
    let store = Store::new(ctx, theirs)?;
    let clone = store.folder.join("clone");
    let root = &ctx.root;
    cmd!(ctx.sh, "git clone --quiet --depth 1 file://{root} {clone}").must()?;
    if !theirs {
        // It needs the archives of Debian, which not every machine can reach.
        if let Err(error) = store.system() {
            let what = format!("a stand-in for the image of the system ({error:#})");
            report.skip("containers", &Missing::new(what, "a Debian whose packages can be fetched"));
            return Ok(());
        }
        store.rust().context("no stand-in for the image of Rust")?;
        report.note(&format!("note: {SYSTEM} and {RUST} are stand-ins, made here"));
    }
    // Quick: the one that is sooner built.
    let few = if ctx.quick { 1 } else { SERVERS.len() };
    for server in SERVERS.iter().take(few) {
        let program = server.program;
        let image = format!("localhost/{program}:test");
        if report.claim(&format!("{program}: its_container_file_builds_from_a_fresh_clone"), || {
            store.build(server, &clone, &image)
        }) {
            report.claim(&format!("{program}: its_container_answers_and_stops"), || {
                store.run(server, &clone, &image)
            });
        }
    }
    Ok(())
}

/// Where images and containers are.
struct Store<'a> {
    ctx: &'a Context,
    folder: PathBuf,
    /// What every command of both tools begins with.
    at: Vec<String>,
    runtime: Vec<String>,
}

impl Store<'_> {
    fn new(ctx: &Context, theirs: bool) -> Result<Store<'_>> {
        let folder = ctx.folder("containers")?;
        let store = |at| Store { ctx, folder: folder.clone(), at, runtime: Vec::new() };
        let place = |name| folder.join(name).display().to_string();
        let mut made = match theirs {
            true => store(Vec::new()),
            false => store(vec!["--root".into(), place("images"), "--runroot".into(), place("running")]),
        };
        made.clear();
        if tools::have("runc") {
            made.runtime = vec!["--runtime".into(), "runc".into()];
        }
        Ok(made)
    }

    /// Takes away what an earlier run left.
    fn clear(&self) {
        if !self.at.is_empty() {
            // What is mounted is let go first; there may be nothing.
            let _ = self.buildah(&["rm", "--all"]).done();
            let mounted = self.folder.join("images/overlay");
            let _ = cmd!(self.ctx.sh, "umount {mounted}").done();
        }
        for name in ["clone", "images", "running"] {
            let _ = std::fs::remove_dir_all(self.folder.join(name));
        }
    }

    fn buildah(&self, words: &[&str]) -> Cmd<'_> {
        let at = &self.at;
        cmd!(self.ctx.sh, "buildah {at...} {words...}")
    }

    fn podman(&self, words: &[&str]) -> Cmd<'_> {
        let (at, runtime) = (&self.at, &self.runtime);
        cmd!(self.ctx.sh, "podman {at...} {runtime...} {words...}")
    }

    /// Debian as small as it is, under the name of the image.
    fn system(&self) -> Result<()> {
        let tar = self.folder.join("system.tar");
        if !tar.exists() {
            let part = self.folder.join("system.part.tar");
            cmd!(self.ctx.sh, "mmdebstrap --quiet --variant=minbase bookworm {part}").must()?;
            std::fs::rename(part, &tar)?;
        }
        let made = self.from("scratch")?;
        self.buildah(&["add", "--quiet", &made, &tar.display().to_string(), "/"]).must()?;
        self.commit(&made, SYSTEM)
    }

    /// That and what Rust needs, with the toolchain of this machine where that image has one.
    fn rust(&self) -> Result<()> {
        let made = self.from(SYSTEM)?;
        let install = format!(
            "apt-get -qq update && apt-get -qq install -y --no-install-recommends {} > /dev/null",
            OF_RUST.join(" ")
        );
        self.buildah(&[
            "run",
            "--isolation",
            "chroot",
            "--network",
            "host",
            &made,
            "--",
            "sh",
            "-c",
            &install,
        ])
        .must()?;
        let sysroot = cmd!(self.ctx.sh, "rustc --print sysroot").must()?;
        let host = cmd!(self.ctx.sh, "rustc --version --verbose").must()?;
        let host = host.lines().find_map(|line| line.strip_prefix("host: ")).context("a host")?;
        let from = Path::new(sysroot.trim());
        let parts = ["bin/cargo", "bin/rustc", "lib", &format!("lib/rustlib/{host}")];
        for part in parts {
            let (here, there) = (from.join(part), format!("/usr/local/{part}"));
            if part != "lib" {
                self.buildah(&["copy", "--quiet", &made, &here.display().to_string(), &there]).must()?;
                continue;
            }
            // The compiler's own libraries, and none of the targets below.
            for file in std::fs::read_dir(&here)? {
                let file = file?.path();
                if file.is_file() {
                    self.buildah(&["copy", "--quiet", &made, &file.display().to_string(), "/usr/local/lib/"])
                        .must()?;
                }
            }
        }
        self.buildah(&["config", "--env", "CARGO_HOME=/usr/local/cargo", &made]).must()?;
        self.commit(&made, RUST)
    }

    fn from(&self, image: &str) -> Result<String> {
        Ok(self.buildah(&["from", "--quiet", "--pull-never", image]).must()?.trim().to_owned())
    }

    fn commit(&self, made: &str, image: &str) -> Result<()> {
        self.buildah(&["commit", "--quiet", "--rm", made, image]).must().map(drop)
    }

    /// The file as it is. Crates that this machine has are not fetched once more.
    fn build(&self, server: &Server, clone: &Path, image: &str) -> Result<()> {
        let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
        let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
        let crates = home.context("no home")?.join("registry");
        std::fs::create_dir_all(&crates)?;
        let crates = format!("{}:/usr/local/cargo/registry:rw", crates.display());
        let file = clone.join(format!("cluster/{}/Containerfile", server.folder));
        let (file, clone) = (file.display().to_string(), clone.display().to_string());
        let mut words = vec!["build", "--isolation", "chroot", "--network", "host", "--volume", &crates];
        words.extend((!self.at.is_empty()).then_some("--pull-never"));
        words.extend(["--file", &file, "--tag", image, &clone]);
        self.buildah(&words).done_within(Duration::from_secs(3_600))?.must().map(drop)
    }

    /// The image as it is.
    fn run(&self, server: &Server, clone: &Path, image: &str) -> Result<()> {
        let name = format!("{}-test-{}", server.program, std::process::id());
        let given = server.given.map(|(from, to)| format!("{}:{to}:ro", clone.join(from).display()));
        let mut words = vec!["run", "--detach", "--name", &name, "--network", "none"];
        words.extend(LIMITS);
        words.extend(given.iter().flat_map(|given| ["--volume", given]));
        words.push(image);
        self.podman(&words).must()?;
        let answered = self.ask(server, &name);
        let stopped = self.podman(&["stop", "--time", "20", &name]).must();
        let ended = self.podman(&["inspect", "--format", "{{.State.ExitCode}}", &name]).must();
        let said = self.podman(&["logs", &name]).done();
        let _ = self.podman(&["rm", "--force", &name]).done();
        answered?;
        stopped?;
        let said = said?.all;
        ensure!(ended?.trim() == "0", "it did not end with 0: {said}");
        ensure!(said.contains("stopped; "), "its last line is missing: {said}");
        Ok(())
    }

    /// From within, where the system has nothing but a shell.
    fn ask(&self, server: &Server, name: &str) -> Result<()> {
        let within = |command: &str| self.podman(&["exec", name, "bash", "-c", command]).done();
        let user = within("id -un")?.stdout;
        ensure!(user.trim() == "nobody", "it runs as {user}");
        for (port, sent, shown, awaited) in server.asked {
            let ask = format!(
                "exec 3<>/dev/tcp/127.0.0.1/{port} && printf '{sent}' >&3 && timeout 10 cat <&3 | {shown}"
            );
            let end = Instant::now() + Duration::from_secs(20);
            loop {
                let said = within(&ask)?.all;
                if said.starts_with(awaited) {
                    break;
                }
                if Instant::now() > end {
                    bail!("port {port} says {said:?}, not {awaited:?}");
                }
                std::thread::sleep(Duration::from_millis(200));
            }
        }
        Ok(())
    }
}

impl Drop for Store<'_> {
    fn drop(&mut self) {
        self.clear();
    }
}

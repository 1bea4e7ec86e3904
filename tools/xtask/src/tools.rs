//! Programs that the tests use beside Rust and the C compiler: one table of their Debian packages, and the
//! installation.
//!
//! What is missing is installed where that needs no question: as root, with apt-get. Elsewhere, and with
//! TATCELL_NO_INSTALL=1, one line says what is missing, and the tests that need it skip, each with its own line.

use std::fmt;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

use crate::context::Context;
use crate::exec::{tail, Run};

/// Who uses a tool.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum For {
    /// The tests of the hosted library.
    Tests,
    /// The rows of the bench.
    Bench,
    /// Programs for bare machines and other hosts.
    Machines,
    /// The tests of nodes that share limits.
    Store,
    /// The proofs.
    Proofs,
    /// The container files.
    Containers,
}

/// A program, or a file that stands for a library, and the packages that bring it.
struct Tool {
    name: &'static str,
    packages: &'static [&'static str],
    users: &'static [For],
}

const fn tool(name: &'static str, packages: &'static [&'static str], users: &'static [For]) -> Tool {
    Tool { name, packages, users }
}

use For::{Bench, Containers, Machines, Proofs, Store, Tests};

const TOOLS: &[Tool] = &[
    tool("valgrind", &["valgrind"], &[Tests, Bench, Store]),
    tool("pkg-config", &["pkg-config"], &[Tests, Bench]),
    tool("cmake", &["cmake"], &[Tests, Machines]),
    tool("clang", &["clang"], &[Tests]),
    tool("c++", &["g++"], &[Bench]),
    tool("make", &["make"], &[]),
    tool("ld", &["binutils"], &[]),
    tool("objcopy", &["binutils"], &[]),
    tool("python3", &["python3"], &[Tests, Store]),
    tool("luajit", &["luajit"], &[Tests]),
    tool("/usr/lib/python3/dist-packages/cffi", &["python3-cffi"], &[Tests]),
    tool("qemu-system-arm", &["qemu-system-arm"], &[Machines]),
    tool("qemu-system-riscv32", &["qemu-system-misc"], &[Machines]),
    tool("arm-none-eabi-gcc", &["gcc-arm-none-eabi"], &[Machines]),
    tool("arm-none-eabi-ld", &["binutils-arm-none-eabi"], &[]),
    tool("/usr/lib/arm-none-eabi/include/stdio.h", &["libnewlib-arm-none-eabi"], &[Machines]),
    tool("riscv64-unknown-elf-gcc", &["gcc-riscv64-unknown-elf"], &[Machines]),
    tool("riscv64-unknown-elf-ld", &["binutils-riscv64-unknown-elf"], &[]),
    tool("qemu-s390x-static", &["qemu-user-static"], &[Machines]),
    tool("s390x-linux-gnu-gcc", &["gcc-s390x-linux-gnu", "libc6-dev-s390x-cross"], &[Machines]),
    tool("powerpc-linux-gnu-gcc", &["gcc-powerpc-linux-gnu", "libc6-dev-powerpc-cross"], &[Machines]),
    tool("arm-linux-gnueabihf-gcc", &["gcc-arm-linux-gnueabihf", "libc6-dev-armhf-cross"], &[Machines]),
    tool("aarch64-linux-gnu-gcc", &["gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"], &[Machines]),
    tool("i686-linux-gnu-gcc", &["gcc-i686-linux-gnu", "libc6-dev-i386-cross"], &[Machines]),
    tool("/usr/lib/python3/dist-packages/kconfiglib.py", &["python3-kconfiglib"], &[Machines]),
    tool("/usr/lib/python3/dist-packages/yaml", &["python3-yaml"], &[Machines]),
    tool("abidw", &["abigail-tools"], &[Tests]),
    tool("spin", &["spin"], &[Proofs]),
    tool("/usr/lib/python3/dist-packages/z3", &["python3-z3"], &[Proofs]),
    tool("redis-server", &["redis-server"], &[Store]),
    tool("redis-cli", &["redis-tools"], &[Store]),
    tool("openssl", &["openssl"], &[Store]),
    tool("buildah", &["buildah"], &[Containers]),
    tool("podman", &["podman"], &[Containers]),
    tool("runc", &["runc"], &[Containers]),
    tool("mmdebstrap", &["mmdebstrap"], &[Containers]),
];

/// The package of DPDK, which pkg-config knows as libdpdk.
const DPDK: &str = "libdpdk-dev";

/// Something that is not here, and how to get it.
pub struct Missing {
    what: String,
    get: String,
}

impl Missing {
    /// A thing and the command or words that say how to get it.
    pub fn new(what: impl Into<String>, get: impl Into<String>) -> Self {
        Self { what: what.into(), get: get.into() }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.what, self.get)
    }
}

/// Whether a command is on the path, or a file exists.
pub fn have(name: &str) -> bool {
    if name.contains('/') {
        return Path::new(name).exists();
    }
    std::env::var_os("PATH")
        .is_some_and(|p| std::env::split_paths(&p).any(|folder| folder.join(name).is_file()))
}

/// The first of these commands that is not here.
pub fn missing(names: &[&str]) -> Option<Missing> {
    let name = names.iter().find(|n| !have(n))?;
    let packages = TOOLS.iter().find(|t| t.name == *name).map_or(name.to_string(), |t| t.packages.join(" "));
    Some(Missing::new(format!("{name} is not installed"), format!("apt-get install {packages}")))
}

/// One apt-get at a time: each locks its lists, and a second one would fail.
static APT_GET: Mutex<()> = Mutex::new(());

/// Installs what these users lack, or says what that is.
pub fn install(ctx: &Context, user: For) {
    let _alone = APT_GET.lock();
    let lacking = TOOLS.iter().filter(|t| t.users.contains(&user) && !have(t.name));
    let mut packages: Vec<&str> = lacking.flat_map(|t| t.packages.iter().copied()).collect();
    if user == Bench && !xshell::cmd!(ctx.sh, "pkg-config --exists libdpdk").works() {
        packages.push(DPDK);
    }
    install_packages(&packages, if user == Bench { "rows" } else { "tests" });
}

/// Installs these packages, or says that they are missing; `what` needs them.
pub fn install_packages(packages: &[&str], what: &str) {
    if packages.is_empty() {
        return;
    }
    let list = packages.join(" ");
    if !may_install() {
        println!("note: not installed: {list}; the {what} that need them will be skipped");
        return;
    }
    println!("installing {list}");
    let all_at_once = apt_get(&["update"]).and_then(|()| apt_get_install(packages));
    if all_at_once.is_err() {
        // One by one: a package that this system lacks must not cost the others.
        for package in packages {
            if let Err(why) = apt_get_install(&[package]) {
                println!("note: could not install {package}; the {what} that need it will be skipped: {why}");
            }
        }
    }
}

/// Whether anything may be installed or fetched without a question.
pub fn may_add() -> bool {
    std::env::var_os("TATCELL_NO_INSTALL").is_none_or(|v| v.is_empty())
}

fn may_install() -> bool {
    let root = Command::new("id").arg("-u").done().is_ok_and(|d| d.stdout.trim() == "0");
    may_add() && root && have("apt-get")
}

fn apt_get_install(packages: &[&str]) -> Result<(), String> {
    let mut arguments = vec!["install", "-y", "--no-install-recommends"];
    arguments.extend(packages);
    apt_get(&arguments)
}

fn apt_get(arguments: &[&str]) -> Result<(), String> {
    let mut command = Command::new("apt-get");
    command.args(["-qq", "-o", "DPkg::Lock::Timeout=300"]).args(arguments);
    command.env("DEBIAN_FRONTEND", "noninteractive").env("RUNLEVEL", "1");
    match command.done() {
        Ok(done) if done.ok() => Ok(()),
        Ok(done) => Err(tail(&done.all, 1)),
        Err(e) => Err(e.to_string()),
    }
}

//! What the servers are installed with: their units for systemd and their container files, as far as that can be seen
//! without starting either.

use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

use anyhow::{ensure, Context as _, Result};
use xshell::cmd;

use crate::context::Context;
use crate::exec::Run;
use crate::report::Report;
use crate::tools;

/// Folder and program.
const SERVERS: [(&str, &str); 2] = [("throttled", "tatcell-throttled"), ("envoy", "tatcell-ratelimit")];

/// Looks at both; the programs are built.
pub fn run(ctx: &Context, report: &mut Report) {
    for (folder, program) in SERVERS {
        let name = format!("{program}: systemd_finds_no_fault_in_its_unit");
        match tools::missing(&["systemd-analyze"]) {
            Some(missing) => report.skip(&name, &missing),
            None => drop(report.claim(&name, || unit(ctx, folder, program))),
        }
        let name = format!("{program}: its_container_file_starts_what_it_builds");
        report.claim(&name, || container(ctx, folder, program));
    }
}

/// The unit, with the program where it was built: systemd looks whether it can be executed.
fn unit(ctx: &Context, folder: &str, program: &str) -> Result<()> {
    let text = ctx.read(format!("cluster/{folder}/{program}.service"))?;
    let built = ctx.cargo_target.join("debug").join(program);
    let copy = ctx.folder("doors")?.join(format!("{program}.service"));
    let found = faults_of_unit(&text, program, &built, &copy);
    std::fs::remove_file(&copy).or_else(|e| if e.kind() == ErrorKind::NotFound { Ok(()) } else { Err(e) })?;
    found
}

/// What is wrong with a unit, written to `copy` with the program that was built in the place of the installed one.
fn faults_of_unit(text: &str, program: &str, built: &Path, copy: &Path) -> Result<()> {
    let installed = format!("ExecStart=/usr/local/bin/{program} ");
    ensure!(text.contains(&installed), "it does not start {program}");
    // What stops it must be less than what systemd waits for it.
    ensure!(text.contains("\nTimeoutStopSec=15\n"), "it is not given the time to stop");
    std::fs::write(copy, text.replace(&installed, &format!("ExecStart={} ", built.display())))?;
    // Other units of this machine may have faults of their own; what is only doubtful ends with 0.
    let done = Command::new("systemd-analyze").arg("verify").arg(copy).done()?;
    let faults: Vec<&str> = done.all.lines().filter(|line| line.contains(program)).collect();
    ensure!(faults.is_empty(), "{}", faults.join("\n"));
    Ok(())
}

fn container(ctx: &Context, folder: &str, program: &str) -> Result<()> {
    let text = ctx.read(format!("cluster/{folder}/Containerfile"))?;
    let built = ctx.cargo_target.join("debug").join(program);
    let help = cmd!(ctx.sh, "{built} --help").read()?;
    faults_of_container(&text, program, &help)
}

/// Builds this program, copies it, and starts it by settings that it knows, at the ports that it names, as nobody.
fn faults_of_container(text: &str, program: &str, help: &str) -> Result<()> {
    let line = |word: &str| {
        let found = text.lines().filter_map(|line| line.strip_prefix(word)?.strip_prefix(' ')).next_back();
        found.with_context(|| format!("no {word}"))
    };
    let run = line("RUN")?;
    ensure!(run.ends_with(&format!(" -p {program}")), "it builds something else: {run}");
    ensure!(run.contains(" --release ") && run.contains(" --locked "), "it builds in another way: {run}");
    ensure!(
        line("COPY")? == format!("--from=build /src/target/release/{program} /usr/local/bin/"),
        "it copies something else"
    );
    ensure!(line("ENTRYPOINT")? == format!("[\"{program}\"]"), "it starts something else");
    ensure!(line("USER")? == "nobody", "it runs as somebody");
    let settings: Vec<&str> = line("CMD")?.split('"').skip(1).step_by(2).collect();
    let mut ports = Vec::new();
    for pair in settings.chunks(2) {
        let name = pair.first().copied().unwrap_or_default();
        ensure!(help.contains(&format!("{name} ")), "{name} is no setting of {program}");
        ports.extend(pair.get(1).and_then(|value| value.strip_prefix("0.0.0.0:")));
    }
    ensure!(line("EXPOSE")? == ports.join(" "), "ports {ports:?} are listened at");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::ROOT;

    fn shipped(file: &str) -> Result<String> {
        Ok(std::fs::read_to_string(Path::new(ROOT).join("cluster").join(file))?)
    }

    /// Each change of a file must be noticed, and the file itself be fine.
    fn noticed(text: &str, changes: &[(&str, &str)], faults: impl Fn(&str) -> Result<()>) -> Result<()> {
        faults(text)?;
        for (from, to) in changes {
            ensure!(text.contains(from), "there is no {from}");
            ensure!(faults(&text.replace(from, to)).is_err(), "{to} in the place of {from} is not noticed");
        }
        Ok(())
    }

    #[test]
    fn what_is_wrong_with_a_container_file_is_noticed() -> Result<()> {
        let changes = [
            ("-p tatcell-throttled", "-p tatcell-ratelimit"),
            (" --locked", ""),
            (" --release", ""),
            ("release/tatcell-throttled", "debug/tatcell-throttled"),
            ("USER nobody", "USER root"),
            ("USER nobody\n", ""),
            ("ENTRYPOINT [\"tatcell-throttled\"]", "ENTRYPOINT [\"throttled\"]"),
            ("--metrics", "--metric"),
            ("0.0.0.0:9121", "0.0.0.0:9122"),
            ("EXPOSE 6379 9121", "EXPOSE 6379"),
        ];
        let help = "--listen ADDRESS\n--metrics ADDRESS\n";
        noticed(&shipped("throttled/Containerfile")?, &changes, |text| {
            faults_of_container(text, "tatcell-throttled", help)
        })?;
        let help = "--rules PATH\n--listen ADDRESS\n--metrics ADDRESS\n";
        noticed(&shipped("envoy/Containerfile")?, &[("--rules", "--rule"), ("8081 ", "")], |text| {
            faults_of_container(text, "tatcell-ratelimit", help)
        })
    }

    #[test]
    fn what_is_wrong_with_a_unit_is_noticed() -> Result<()> {
        if tools::missing(&["systemd-analyze"]).is_some() {
            return Ok(());
        }
        let folder = std::env::temp_dir().join(format!("tatcell-units-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let changes = [
            ("bin/tatcell-ratelimit", "bin/ratelimit"),
            ("TimeoutStopSec=15", "TimeoutStopSec=1"),
            ("Restart=on-failure", "Restart=sometimes"),
            ("NoNewPrivileges=yes", "NoNewPrivilege=yes"),
            ("ProtectSystem=strict", "ProtectSystem=very"),
            ("[Service]", "[Servic]"),
            ("SystemCallFilter=@system-service", "SystemCallFilter=@system-services"),
        ];
        let copy = folder.join("tatcell-ratelimit.service");
        let found = noticed(&shipped("envoy/tatcell-ratelimit.service")?, &changes, |text| {
            faults_of_unit(text, "tatcell-ratelimit", Path::new("/bin/true"), &copy)
        });
        let missing = faults_of_unit(
            &shipped("envoy/tatcell-ratelimit.service")?,
            "tatcell-ratelimit",
            Path::new("/does/not/exist"),
            &copy,
        );
        std::fs::remove_dir_all(&folder)?;
        ensure!(missing.is_err(), "a program that is not there is not noticed");
        found
    }
}

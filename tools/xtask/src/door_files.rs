//! What the servers are installed with: their units for systemd and their container files, as far as that can be seen
//! without starting either.

use std::path::Path;

use anyhow::{ensure, Context as _, Result};
use xshell::cmd;

use crate::context::Context;
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
    let installed = format!("ExecStart=/usr/local/bin/{program} ");
    ensure!(text.contains(&installed), "it does not start {program}");
    let built = ctx.cargo_target.join("debug").join(program);
    let copy = ctx.folder("doors")?.join(format!("{program}.service"));
    std::fs::write(&copy, text.replace(&installed, &format!("ExecStart={} ", built.display())))?;
    // Other units of this machine may have faults of their own; what is only doubtful ends with 0.
    let done = cmd!(ctx.sh, "systemd-analyze verify {copy}").ignore_status().output()?;
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    let faults: Vec<&str> = said.lines().filter(|line| line.contains(program)).collect();
    ensure!(faults.is_empty(), "{}", faults.join("\n"));
    Ok(())
}

/// Builds this program, copies it, and starts it by settings that it knows, at the ports that it names.
fn container(ctx: &Context, folder: &str, program: &str) -> Result<()> {
    let text = ctx.read(format!("cluster/{folder}/Containerfile"))?;
    let line = |word: &str| {
        let found = text.lines().filter_map(|line| line.strip_prefix(word)?.strip_prefix(' ')).last();
        found.with_context(|| format!("no {word}"))
    };
    ensure!(line("RUN")?.ends_with(&format!(" -p {program}")), "it builds something else");
    ensure!(line("COPY")? == format!("--from=build /src/target/release/{program} /usr/local/bin/"));
    ensure!(line("ENTRYPOINT")? == format!("[\"{program}\"]"));
    let settings: Vec<&str> = line("CMD")?.split('"').skip(1).step_by(2).collect();
    let built = ctx.cargo_target.join("debug").join(program);
    let help = help_of(ctx, &built)?;
    let mut ports = Vec::new();
    for pair in settings.chunks(2) {
        ensure!(help.contains(&format!("{} ", pair[0])), "{} is no setting of {program}", pair[0]);
        ports.extend(pair.get(1).and_then(|value| value.strip_prefix("0.0.0.0:")));
    }
    ensure!(line("EXPOSE")? == ports.join(" "), "ports {ports:?} are listened at");
    Ok(())
}

fn help_of(ctx: &Context, program: &Path) -> Result<String> {
    Ok(cmd!(ctx.sh, "{program} --help").read()?)
}

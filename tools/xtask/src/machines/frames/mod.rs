//! Drives the frames firmware in QEMU with real UDP datagrams and checks every decision that it made.
//!
//! Twice: through QEMU's user network, where the host's own sockets on 127.0.0.1 reach the firmware through
//! forwarded ports; and frame by frame, where every Ethernet frame is one datagram on 127.0.0.1, from 40 source
//! addresses that are made up. Only loopback is used. The pcaps stay in target/frames.

mod board;
mod judge;
mod net;
mod packet;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{ensure, Context as _, Result};
use xshell::cmd;

use crate::context::{Context, STRICT};
use crate::exec::Run;
use crate::machines::archive;
use crate::machines::boards::{Board, BOARDS, CHOICES};
use crate::report::Report;
use crate::tools::{missing, Missing};
use board::Firmware;
use net::Net;

/// Ports of main.c: what is policed, what is shaped, questions.
pub const POLICE: u16 = 7000;
/// See [`POLICE`].
pub const SHAPE: u16 = 7001;
/// See [`POLICE`].
pub const CONTROL: u16 = 7009;

/// The board with an Ethernet controller.
const BOARD: &str = "mps2-an385";
/// The firmware's log holds 32768 decisions.
const MOST_DATAGRAMS: u32 = 25_000;

/// The suite.
pub fn run(ctx: &Context, report: &mut Report) -> Result<()> {
    let board = BOARDS.iter().find(|b| b.name == BOARD).context("no such board")?;
    let newlib = "/usr/lib/arm-none-eabi/include/stdio.h";
    if let Some(missing) = missing(&["qemu-system-arm", "arm-none-eabi-gcc", newlib]) {
        report.skip("frames_all", &missing);
        return Ok(());
    }
    let [choice, ..] = &CHOICES;
    let library = match archive::one(ctx, board.target, choice)? {
        Ok(library) => library,
        Err(missing) => {
            report.skip("frames_all", &missing);
            return Ok(());
        }
    };
    let out = ctx.folder("frames")?;
    let mut elf = PathBuf::new();
    if !report.claim("frames_firmware_builds", || build(ctx, board, &library, &out).map(|built| elf = built))
    {
        return Ok(());
    }
    for (mode, flows) in [("user", 4), ("dgram", 40)] {
        let backends = cmd!(ctx.sh, "qemu-system-arm -machine none -netdev help").done()?.all;
        if !backends.lines().any(|l| l.trim() == mode) {
            let missing = Missing::new(format!("-netdev {mode}"), "QEMU 7.2 or newer");
            report.skip(&format!("frames_{mode}"), &missing);
            continue;
        }
        if let Err(e) = drive(report, mode, flows, &elf, &out) {
            report.fail(&format!("frames_{mode}_runs_to_its_end"), &format!("{e:#}"));
        }
    }
    Ok(())
}

fn build(ctx: &Context, board: &Board, library: &Path, out: &Path) -> Result<PathBuf> {
    let elf = out.join("frames.elf");
    let (gcc, arch) = (board.target.family.tool("gcc"), board.target.arch);
    let options =
        ["-Os", "-g", "-std=c11", "-ffreestanding", "-ffunction-sections", "-fdata-sections", "-Iinclude"];
    let [all, extra, errors, _] = STRICT;
    let warnings = [all, extra, errors];
    let linker = ["-nostartfiles", "-T", "firmware/frames/an385.ld", "-Wl,--gc-sections,--fatal-warnings"];
    let sources = ["board.c", "lan9118.c", "main.c"].map(|name| format!("firmware/frames/{name}"));
    cmd!(ctx.sh, "{gcc} {arch...} {options...} {warnings...} {linker...} {sources...} {library} -o {elf}")
        .must()?;
    Ok(elf)
}

/// Starts the firmware, sends datagrams of so many senders, and judges.
fn drive(report: &mut Report, mode: &str, flows: usize, elf: &Path, out: &Path) -> Result<()> {
    let pcap = out.join(format!("{mode}.pcap"));
    let mut net = if mode == "user" { Net::user(flows)? } else { Net::dgram(flows)? };
    let mut firmware = Firmware::start(&mut net, elf, &pcap, &out.join(format!("{mode}.txt")))?;
    if !firmware.wait_ready()? {
        report.fail(&format!("frames_{mode}_firmware_starts"), &firmware.text()?.replace('\n', " / "));
        return Ok(());
    }
    // The first datagram may be lost to address resolution: a question that is repeated settles it.
    firmware.ask(b"LOG \0\0\0\0")?;
    exercise(&mut firmware, flows)?;
    let entries = firmware.log()?;
    let status = firmware.end();
    report.claim(&format!("frames_{mode}_firmware_ends_with_status_0"), || {
        ensure!(status == Some(0), "status {status:?}");
        Ok(())
    });
    let said: Vec<String> =
        firmware.text()?.lines().filter(|l| l.starts_with("frames: ")).map(str::to_owned).collect();
    report.note(&format!("note: {}", said.join("; ")));
    judge::judge(report, mode, &firmware.seen(), &entries, &pcap)
}

fn exercise(firmware: &mut Firmware<'_>, flows: usize) -> Result<()> {
    // 1. A burst of 60 from one sender, as fast as the host can.
    for _ in 0..60 {
        firmware.send(0, POLICE)?;
    }
    firmware.drain_for(Duration::from_millis(500));
    // 2. A flood: every other sender far above its limit for two seconds, together with shaped datagrams.
    let end = Instant::now() + Duration::from_secs(2);
    let mut round = 0;
    while Instant::now() < end && firmware.sequence() < MOST_DATAGRAMS {
        for flow in 1..flows {
            firmware.send(flow, POLICE)?;
        }
        if round % 2 == 0 {
            firmware.send(0, SHAPE)?;
        }
        round += 1;
        firmware.drain_for(Duration::from_millis(2));
    }
    // 3. A burst into the shaper, longer than it may delay.
    for _ in 0..60 {
        firmware.send(0, SHAPE)?;
    }
    firmware.drain_for(Duration::from_secs(1));
    Ok(())
}

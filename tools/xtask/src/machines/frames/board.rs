//! The firmware in its emulator: datagrams sent and echoed, its log of decisions, its end.

use std::collections::HashMap;
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{bail, Context as _, Result};

use super::net::Net;
use super::packet::{u16_at, u32_at};
use super::{BOARD, CONTROL, POLICE, SHAPE};

/// One decision of the log, its 32-bit clock continued beyond the wrap.
pub struct Entry {
    /// The clock it was made at, in microseconds.
    pub now: u64,
    /// Policed: ticks until it would pass; shaped: until departure.
    pub wait: u64,
    /// The clock when it was echoed.
    pub sent: u64,
    /// The first four bytes of the payload.
    pub sequence: u32,
    /// Who sent it.
    pub from: SocketAddrV4,
    /// Whether it was shaped.
    pub shaped: bool,
    /// Whether it passed.
    pub passed: bool,
}

/// Sequence numbers by the port of the firmware and by sender.
pub type Echoes = HashMap<u16, HashMap<SocketAddrV4, Vec<u32>>>;

/// What the host has seen.
pub struct Seen {
    /// The flows by the names that the firmware knows.
    pub names: Vec<SocketAddrV4>,
    /// Datagrams sent, by port.
    pub sent: HashMap<u16, usize>,
    /// Datagrams that came back.
    pub echoes: Echoes,
    /// Datagrams that the host's kernel dropped.
    pub dropped: Option<u64>,
}

/// The running firmware.
pub struct Firmware<'a> {
    net: &'a Net,
    names: Vec<SocketAddrV4>,
    qemu: Child,
    output: PathBuf,
    sequence: u32,
    sent: HashMap<u16, usize>,
    echoes: Echoes,
    answers: Vec<Vec<u8>>,
}

/// Bytes of an entry in an answer.
const ENTRY: usize = 24;

impl<'a> Firmware<'a> {
    /// Starts it; its output goes to a file, its frames to a pcap.
    pub fn start(net: &'a mut Net, elf: &Path, pcap: &Path, output: &Path) -> Result<Self> {
        let file = File::create(output)?;
        let mut qemu = Command::new("qemu-system-arm");
        qemu.args(["-machine", BOARD, "-nographic", "-monitor", "none", "-serial", "null"]);
        qemu.args(["-semihosting-config", "enable=on,target=native", "-kernel"]).arg(elf);
        qemu.args(["-netdev", &net.netdev, "-net", "nic,netdev=n0", "-object"]);
        qemu.arg(format!("filter-dump,id=dump,netdev=n0,file={}", pcap.display()));
        qemu.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        Ok(Self {
            names: net.names()?,
            net,
            qemu: qemu.spawn().context("cannot run qemu-system-arm")?,
            output: output.to_owned(),
            sequence: 0,
            sent: HashMap::new(),
            echoes: [POLICE, SHAPE].map(|port| (port, HashMap::new())).into(),
            answers: Vec::new(),
        })
    }

    /// What it has printed.
    pub fn text(&self) -> Result<String> {
        Ok(String::from_utf8_lossy(&std::fs::read(&self.output)?).into_owned())
    }

    /// Waits until it takes datagrams; false where it ends or does not come so far.
    pub fn wait_ready(&mut self) -> Result<bool> {
        let deadline = Instant::now() + Duration::from_secs(20);
        while Instant::now() < deadline && self.qemu.try_wait()?.is_none() {
            if self.text()?.contains("frames: ready") {
                return Ok(true);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(false)
    }

    /// How many datagrams were sent.
    pub fn sequence(&self) -> u32 {
        self.sequence
    }

    /// Sends the next datagram of a flow.
    pub fn send(&mut self, flow: usize, port: u16) -> Result<()> {
        self.sequence += 1;
        *self.sent.entry(port).or_default() += 1;
        let mut payload = self.sequence.to_be_bytes().to_vec();
        payload.extend([b'.'; 20]);
        self.net.send(flow, port, &payload)
    }

    /// Takes what comes for so long.
    pub fn drain_for(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            self.drain(end.saturating_duration_since(Instant::now()).min(Duration::from_millis(50)));
        }
    }

    fn drain(&mut self, patience: Duration) {
        for (flow, port, payload) in self.net.receive(patience) {
            if port == CONTROL {
                self.answers.push(payload);
            } else if let (Some(echoes), Some(name)) = (self.echoes.get_mut(&port), self.names.get(flow)) {
                echoes.entry(*name).or_default().extend(u32_at(&payload, 0));
            }
        }
    }

    /// Asks until there is an answer.
    pub fn ask(&mut self, question: &[u8]) -> Result<Vec<u8>> {
        for _ in 0..20 {
            self.answers.clear();
            self.net.send(0, CONTROL, question)?;
            let deadline = Instant::now() + Duration::from_millis(500);
            while Instant::now() < deadline {
                self.drain(Duration::from_millis(50));
                let mut answers = self.answers.iter();
                let answer =
                    answers.find(|a| question.starts_with(b"END") || a.get(4..8) == question.get(4..8));
                if let Some(answer) = answer {
                    return Ok(answer.clone());
                }
            }
        }
        bail!("the firmware does not answer")
    }

    /// All decisions, in order.
    pub fn log(&mut self) -> Result<Vec<Entry>> {
        let mut entries: Vec<Entry> = Vec::new();
        loop {
            let mut question = b"LOG ".to_vec();
            question.extend((entries.len() as u32).to_be_bytes());
            let answer = self.ask(&question)?;
            let total = u32_at(&answer, 0).context("an empty answer")?;
            for bytes in answer.get(8..).unwrap_or_default().chunks_exact(ENTRY) {
                let last = entries.last().map(|e| e.now);
                entries.push(entry(bytes, last).context("a short entry")?);
            }
            if entries.len() >= total as usize {
                return Ok(entries);
            }
        }
    }

    /// Ends it; returns its exit status.
    pub fn end(&mut self) -> Option<i32> {
        self.ask(b"END ").ok()?;
        let deadline = Instant::now() + Duration::from_secs(20);
        while Instant::now() < deadline {
            if let Some(status) = self.qemu.try_wait().ok()? {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        None
    }

    /// What the host has seen of it.
    pub fn seen(&self) -> Seen {
        Seen {
            names: self.names.clone(),
            sent: self.sent.clone(),
            echoes: self.echoes.clone(),
            dropped: self.net.dropped().ok(),
        }
    }
}

impl Drop for Firmware<'_> {
    fn drop(&mut self) {
        // Where it has ended already there is nothing to kill.
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
    }
}

/// Reads an entry; `last` is the clock of the one before.
fn entry(bytes: &[u8], last: Option<u64>) -> Option<Entry> {
    let clock = u32_at(bytes, 0)?;
    let now = last.map_or(u64::from(clock), |l| l + u64::from(clock.wrapping_sub(l as u32)));
    Some(Entry {
        now,
        wait: u64::from(u32_at(bytes, 4)?),
        sent: now + u64::from(u32_at(bytes, 8)?.wrapping_sub(clock)),
        sequence: u32_at(bytes, 12)?,
        from: SocketAddrV4::new(Ipv4Addr::from(u32_at(bytes, 16)?), u16_at(bytes, 20)?),
        shaped: *bytes.get(22)? != 0,
        passed: *bytes.get(23)? != 0,
    })
}

//! The gate as a child process: start, switch, measure, stop. Only this one process is ever signalled.

use crate::machine;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// How to start a gate.
pub struct Setup<'a> {
    pub program: &'a Path,
    pub port: u16,
    /// Bytes of receive buffer to ask for; None leaves the gate's default.
    pub buffer: Option<u32>,
}

/// A running gate.
pub struct Gate {
    child: Child,
    output: BufReader<ChildStdout>,
    /// The gate's first line: where it listens and with how much buffer.
    pub greeting: String,
}

impl Gate {
    /// Starts a gate with the limiter off and waits until it listens. `log` is where it appends its decisions.
    pub fn start(setup: &Setup, rounds: u64, log: Option<&Path>) -> Result<Gate, String> {
        let mut command = Command::new(setup.program);
        command.args(["-o", "-p", &setup.port.to_string(), "-w", &rounds.to_string()]);
        if let Some(bytes) = setup.buffer {
            command.args(["-b", &bytes.to_string()]);
        }
        if let Some(path) = log {
            command.arg("-l").arg(path);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // SAFETY: both calls are async-signal-safe. The gate becomes a session of its own, as a daemon is (so Linux
        // gives it a fair share of its own), and ends with this program even if this program is killed.
        unsafe {
            command.pre_exec(|| {
                libc::setsid();
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM as u64, 0u64, 0u64, 0u64);
                Ok(())
            });
        }
        let failed = |e: std::io::Error| {
            format!("cannot start {} (make demo builds it): {e}", setup.program.display())
        };
        let mut child = command.spawn().map_err(failed)?;
        let mut output = BufReader::new(child.stdout.take().expect("piped"));
        let mut greeting = String::new();
        let _ = output.read_line(&mut greeting);
        let mut gate = Gate { child, output, greeting: greeting.trim().to_string() };
        if !gate.greeting.starts_with("listening") {
            return Err(gate.complaint());
        }
        Ok(gate)
    }

    /// Waits for a gate that is ending by itself and returns what it said.
    fn complaint(&mut self) -> String {
        let _ = self.child.wait();
        let mut said = String::new();
        if let Some(mut error) = self.child.stderr.take() {
            let _ = error.read_to_string(&mut said);
        }
        let hint = if said.contains("in use") {
            " (another program has the port; choose one with --port)"
        } else {
            ""
        };
        match said.trim() {
            "" => "the gate ended by itself and said nothing".to_string(),
            said => format!("{said}{hint}"),
        }
    }

    fn signal(&self, number: libc::c_int) {
        // SAFETY: the child is not yet waited for, so the number is still its own.
        unsafe { libc::kill(self.child.id() as libc::pid_t, number) };
    }

    /// Toggles the limiter.
    pub fn toggle(&self) {
        self.signal(libc::SIGUSR1);
    }

    /// Returns what the gate said when it has ended by itself, which it should not.
    pub fn ended(&mut self) -> Option<String> {
        matches!(self.child.try_wait(), Ok(Some(_))).then(|| self.complaint())
    }

    /// Nanoseconds for which the gate has run, and for which it has waited for a core, so far.
    pub fn run_and_wait_ns(&self) -> Option<(u64, u64)> {
        machine::run_and_wait_ns(&format!("/proc/{}/schedstat", self.child.id()))
    }

    /// Resident memory in KiB, exact to the page.
    pub fn resident_kib(&self) -> Option<u64> {
        let text = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", self.child.id())).ok()?;
        text.lines().find_map(|line| line.strip_prefix("Rss:")?.split_whitespace().next()?.parse().ok())
    }

    /// Ends the gate and returns the figures it printed, by name.
    pub fn finish(mut self) -> Result<HashMap<String, f64>, String> {
        self.signal(libc::SIGTERM);
        let mut text = String::new();
        self.output.read_to_string(&mut text).map_err(|e| format!("cannot read the gate's figures: {e}"))?;
        let status = self.child.wait().map_err(|e| format!("cannot wait for the gate: {e}"))?;
        if !status.success() {
            return Err(self.complaint());
        }
        let pair = |line: &str| {
            let (name, value) = line.split_once(' ')?;
            Some((name.to_string(), value.parse().ok()?))
        };
        Ok(text.lines().filter_map(pair).collect())
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        self.signal(libc::SIGTERM);
        let end = Instant::now() + Duration::from_secs(2);
        while Instant::now() < end {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

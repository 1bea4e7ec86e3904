//! Runs commands: what they print is collected, or passed on line by line, and they end after a time at most.
//!
//! Commands are written with `cmd!` of xshell or as [`Command`]. Standard input is empty for all of them.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{channel, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use anyhow::{bail, Context, Result};
use xshell::Cmd;

/// Nothing that a test runs takes longer, except the suites of cargo, which are streamed without a limit.
const PATIENCE: Duration = Duration::from_secs(900);

/// What a command did.
pub struct Done {
    /// Its exit status; None: it was ended after its time.
    pub status: Option<ExitStatus>,
    /// Standard output alone.
    pub stdout: String,
    /// Standard output and error, as their lines came.
    pub all: String,
}

impl Done {
    /// Whether it ended with 0.
    pub fn ok(&self) -> bool {
        self.status.is_some_and(|s| s.success())
    }

    /// Its exit status in numbers; None where a signal or its time ended it.
    pub fn code(&self) -> Option<i32> {
        self.status.and_then(|s| s.code())
    }

    /// How it ended, in words.
    pub fn how(&self) -> String {
        self.status.map_or("took too long".to_owned(), |s| s.to_string())
    }

    /// Its output where it ended with 0; else an error that shows the end of what it printed.
    pub fn must(self) -> Result<String> {
        if !self.ok() {
            bail!("{}\n{}", self.how(), tail(&self.all, 200));
        }
        Ok(self.all)
    }
}

/// The last lines of a text.
pub fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.lines().collect();
    all.get(all.len().saturating_sub(lines)..).unwrap_or_default().join("\n")
}

/// The test programs that cargo says it has built, from its folder: "Executable unittests src/lib.rs (path)".
pub fn built(said: &str) -> impl Iterator<Item = &str> {
    let lines = said.lines().filter(|line| line.trim_start().starts_with("Executable "));
    lines.filter_map(|line| line.rsplit_once('(')?.1.strip_suffix(')'))
}

/// Something that can be run.
pub trait Run: Sized {
    /// Starts it, without input and with its output in pipes.
    fn start(self) -> Result<Child>;

    /// Runs it to its end.
    fn done(self) -> Result<Done> {
        self.done_within(PATIENCE)
    }

    /// Runs it to its end, or ends it.
    fn done_within(self, patience: Duration) -> Result<Done> {
        let (mut stdout, mut all) = (String::new(), String::new());
        let status = stream(self.start()?, Some(patience), |line| {
            if line.from_stdout {
                stdout.push_str(&line.text);
            }
            all.push_str(&line.text);
        })?;
        Ok(Done { status, stdout, all })
    }

    /// Runs it; an exit status other than 0 is an error. Returns all that it printed.
    fn must(self) -> Result<String> {
        self.done()?.must()
    }

    /// Whether it can be run and ends with 0.
    fn works(self) -> bool {
        self.done().is_ok_and(|d| d.ok())
    }

    /// Runs it and gives each line to `each`, without its end. Returns the exit status.
    fn lines(self, mut each: impl FnMut(&str)) -> Result<ExitStatus> {
        let status = stream(self.start()?, None, |line| each(line.text.trim_end_matches(['\n', '\r'])))?;
        status.context("ended without a status")
    }
}

impl Run for &mut Command {
    fn start(self) -> Result<Child> {
        let piped = self.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        piped.with_context(|| format!("cannot run {}", self.get_program().to_string_lossy()))
    }
}

impl Run for Command {
    fn start(mut self) -> Result<Child> {
        (&mut self).start()
    }
}

impl Run for Cmd<'_> {
    fn start(self) -> Result<Child> {
        Command::from(self).start()
    }
}

struct Line {
    from_stdout: bool,
    text: String,
}

fn stream(
    mut child: Child,
    patience: Option<Duration>,
    mut each: impl FnMut(Line),
) -> Result<Option<ExitStatus>> {
    let deadline = patience.map(|p| Instant::now() + p);
    let (sender, lines) = channel();
    read_lines(child.stdout.take(), true, sender.clone());
    read_lines(child.stderr.take(), false, sender);
    loop {
        let left = deadline.map_or(PATIENCE, |d| d.saturating_duration_since(Instant::now()));
        match lines.recv_timeout(left) {
            Ok(line) => each(line),
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) if deadline.is_none() => {}
            Err(RecvTimeoutError::Timeout) => {
                child.kill()?;
                child.wait()?;
                return Ok(None);
            }
        }
    }
    Ok(Some(child.wait()?))
}

fn read_lines(pipe: Option<impl Read + Send + 'static>, from_stdout: bool, sender: Sender<Line>) {
    let Some(pipe) = pipe else { return };
    std::thread::spawn(move || {
        let mut reader = BufReader::new(pipe);
        let mut bytes = Vec::new();
        while reader.read_until(b'\n', &mut bytes).is_ok_and(|n| n > 0) {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            if sender.send(Line { from_stdout, text }).is_err() {
                return;
            }
            bytes.clear();
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn both_outputs_and_the_status_are_kept() -> Result<()> {
        let done = sh("echo out; echo err >&2; exit 3").done()?;
        assert_eq!((done.code(), done.stdout.as_str()), (Some(3), "out\n"));
        assert!(done.all.contains("err") && sh("exit 3").must().is_err());
        Ok(())
    }

    #[test]
    fn a_command_ends_after_its_time() -> Result<()> {
        let done = sh("exec sleep 100").done_within(Duration::from_millis(50))?;
        assert!(!done.ok() && done.status.is_none());
        Ok(())
    }
}

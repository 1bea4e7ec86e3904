//! A redis-server for programs that take the URL of a store.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{bail, ensure, Context as _, Result};

use crate::exec::Run;

/// A redis-server on loopback that ends with its handle.
pub struct Store {
    child: Child,
    port: u16,
}

impl Store {
    /// Starts one, empty, in this folder.
    pub fn start(folder: &Path) -> Result<Store> {
        for _ in 0..20 {
            let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
            let mut command = Command::new("redis-server");
            command.args([
                "--port",
                &port.to_string(),
                "--bind",
                "127.0.0.1",
                "--save",
                "",
                "--appendonly",
                "no",
            ]);
            let child = command.current_dir(folder).stdout(Stdio::null()).spawn()?;
            let (mut store, until) = (Store { child, port }, Instant::now() + Duration::from_secs(10));
            while Instant::now() < until && store.child.try_wait()?.is_none() {
                if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                    return Ok(store);
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        bail!("redis-server does not start")
    }

    /// Where it is.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// Runs a program with the store, which is emptied first.
    pub fn run(&self, program: &Path, options: &str, libraries: &Path) -> Result<()> {
        let mut connection = TcpStream::connect(("127.0.0.1", self.port))?;
        std::io::Write::write_all(&mut connection, b"FLUSHALL\r\n")?;
        std::io::Read::read(&mut connection, &mut [0; 16]).context("the store does not answer")?;
        let mut command = Command::new(program);
        command.arg(self.url()).env("LD_LIBRARY_PATH", libraries);
        command.env("TSAN_OPTIONS", options);
        let done = command.done_within(Duration::from_secs(60))?;
        ensure!(done.ok(), "{}\n{}", done.how(), crate::exec::tail(&done.all, 20));
        Ok(())
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

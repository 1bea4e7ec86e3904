//! A way to the store that can be cut: connections stay open, and nothing comes through.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

pub struct Cut {
    port: u16,
    cut: Arc<AtomicBool>,
}

impl Cut {
    /// Leads to this port.
    pub fn to(server: u16) -> Cut {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("its address").port();
        let cut = Arc::new(AtomicBool::new(false));
        let state = cut.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else { continue };
                let both = [(client.try_clone(), server.try_clone()), (Ok(server), Ok(client))];
                for (from, to) in both.map(|(a, b)| (a.expect("a socket"), b.expect("a socket"))) {
                    let state = state.clone();
                    std::thread::spawn(move || pass(from, to, &state));
                }
            }
        });
        Cut { port, cut }
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    pub fn cut(&self) {
        self.cut.store(true, Ordering::SeqCst);
    }

    pub fn mend(&self) {
        self.cut.store(false, Ordering::SeqCst);
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, cut: &AtomicBool) {
    let mut bytes = [0; 4_096];
    while let Ok(n @ 1..) = from.read(&mut bytes) {
        // What came while it was cut is lost.
        if !cut.load(Ordering::SeqCst) && to.write_all(&bytes[..n]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(std::net::Shutdown::Both);
}

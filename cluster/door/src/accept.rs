//! Listening, and accepting with patience when the system has no descriptors left.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};

use crate::Stop;

/// The most bytes that the system keeps for a connection in each direction (Linux takes twice that for its own use).
/// Left to itself it keeps megabytes for each client that reads no answers, until it has none for the others.
const BUFFER: u32 = 128 * 1024;

/// The most connections that wait to be accepted.
const QUEUE: u32 = 1024;

/// Listens at an address.
///
/// # Errors
/// A line with the address.
pub fn listen(address: SocketAddr) -> Result<TcpListener, String> {
    let listen = || -> io::Result<TcpListener> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        socket.set_reuseaddr(true)?;
        // Connections inherit them.
        socket.set_send_buffer_size(BUFFER)?;
        socket.set_recv_buffer_size(BUFFER)?;
        socket.bind(address)?;
        socket.listen(QUEUE)
    };
    listen().map_err(|e| format!("cannot listen at {address}: {e}"))
}

/// The pause after an error of accept. Without it the loop would take a whole core until a descriptor is free.
const PAUSE: Duration = Duration::from_millis(100);

/// Waits for the next connection; `None` after the stop. Reports an error of the system once, until it has gone.
pub async fn accept(program: &str, listener: &TcpListener, stop: &mut Stop) -> Option<TcpStream> {
    let mut reported = false;
    loop {
        let accepted = tokio::select! {
            biased;
            () = stop.said() => return None,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => return Some(stream),
            Err(why) => {
                // Mostly out of descriptors: wait until other connections end.
                if !reported {
                    eprintln!("{program}: cannot accept connections, and tries again: {why}");
                    reported = true;
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

//! Accepting, with patience when the system has no descriptors left.

use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};

use crate::Stop;

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

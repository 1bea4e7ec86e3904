//! A UDP server that answers an address no more often than its limit: tokio, and the table of the library itself. Try:
//!
//!     cargo run --example udp
//!     for i in $(seq 30); do echo $i | nc -u -w 0 127.0.0.1 3001; done

use tatcell::host::{now_ns, Clock, OwnedTable};
use tatcell::{Address, FullPolicy, LimitSpec};
use tokio::net::UdpSocket;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let limit = LimitSpec::per_second(5).burst(10);
    // A sender can write any address into a packet. So a full table refuses no known client for new ones.
    let clients = OwnedTable::open(&limit, 100_000, FullPolicy::Admit)?;
    let socket = UdpSocket::bind("127.0.0.1:3001").await?;
    let mut packet = [0; 1_500];
    let mut dropped = 0u64;
    loop {
        let (length, peer) = socket.recv_from(&mut packet).await?;
        let address = Address::from(peer.ip());
        let key = address.prefix(if address.is_v4() { 32 } else { 64 });
        if clients.check(now_ns(Clock::Monotonic)?, key.as_ref(), 1).passes() {
            socket.send_to(&packet[..length], peer).await?;
        } else {
            dropped += 1;
            if dropped.is_power_of_two() {
                eprintln!("dropped {dropped} packets, the last from {peer}");
            }
        }
    }
}

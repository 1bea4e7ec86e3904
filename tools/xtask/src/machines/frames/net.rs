//! How datagrams reach the firmware, and come back: through QEMU's user network, or as Ethernet frames.
//!
//! Each socket has a thread that takes what comes at once, so that the kernel drops as little as it can.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::packet::Datagram;
use super::{CONTROL, POLICE, SHAPE};

/// The firmware's addresses.
pub const GUEST: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 15);
const GUEST_MAC: [u8; 6] = *b"\x02tatcl";
const HOST_MAC: [u8; 6] = *b"\x02host\0";
/// What the firmware takes for the host in the user network.
const HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 2);

/// A datagram from the firmware: flow, its port, payload.
pub type Arrival = (usize, u16, Vec<u8>);

/// What a thread took: number of the socket, sender, bytes.
type Taken = (usize, SocketAddr, Vec<u8>);

/// Sockets and the names of their flows.
pub struct Net {
    /// The option of QEMU.
    pub netdev: String,
    kind: Kind,
    sockets: Vec<UdpSocket>,
    arrivals: Receiver<Taken>,
}

enum Kind {
    /// Flows are sockets; the firmware sees them as 10.0.2.2 with their own port. Ports here of the firmware's ports.
    User(HashMap<u16, u16>),
    /// Flows are made up: flow i comes from 192.0.2.(i / 2 + 1), port 40000 + i % 2. QEMU's port.
    Dgram { qemu: u16, flows: usize },
}

impl Net {
    /// The user network, with a socket for each flow.
    pub fn user(flows: usize) -> Result<Self> {
        let ports: HashMap<u16, u16> = [POLICE, SHAPE, CONTROL].into_iter().zip(free_ports(3)?).collect();
        let forward: String = ports
            .iter()
            .map(|(guest, here)| format!(",hostfwd=udp:127.0.0.1:{here}-{GUEST}:{guest}"))
            .collect();
        let sockets = (0..flows).map(|_| bind(0)).collect::<Result<Vec<_>>>()?;
        Self::new(format!("user,id=n0{forward}"), Kind::User(ports), sockets)
    }

    /// Frames as datagrams, all through one socket.
    pub fn dgram(flows: usize) -> Result<Self> {
        let ports = free_ports(1)?;
        let qemu = *ports.first().context("no port is free")?;
        let socket = bind(0)?;
        let own = socket.local_addr()?.port();
        let netdev = format!(
            "dgram,id=n0,local.type=inet,local.host=127.0.0.1,local.port={qemu},\
             remote.type=inet,remote.host=127.0.0.1,remote.port={own}"
        );
        Self::new(netdev, Kind::Dgram { qemu, flows }, vec![socket])
    }

    fn new(netdev: String, kind: Kind, sockets: Vec<UdpSocket>) -> Result<Self> {
        let (sender, arrivals) = channel();
        for (number, socket) in sockets.iter().enumerate() {
            take(number, socket.try_clone()?, sender.clone());
        }
        Ok(Self { netdev, kind, sockets, arrivals })
    }

    /// Addresses and ports under which the firmware knows the flows.
    pub fn names(&self) -> Result<Vec<SocketAddrV4>> {
        match &self.kind {
            Kind::User(_) => {
                self.sockets.iter().map(|s| Ok(SocketAddrV4::new(HOST, s.local_addr()?.port()))).collect()
            }
            Kind::Dgram { flows, .. } => Ok((0..*flows).map(made_up).collect()),
        }
    }

    /// Sends to a port of the firmware.
    pub fn send(&self, flow: usize, port: u16, payload: &[u8]) -> Result<()> {
        match &self.kind {
            Kind::User(ports) => {
                let here = *ports.get(&port).context("no such port")?;
                let socket = self.sockets.get(flow).context("no such flow")?;
                socket.send_to(payload, (Ipv4Addr::LOCALHOST, here))?;
            }
            Kind::Dgram { qemu, .. } => {
                let to = SocketAddrV4::new(GUEST, port);
                let frame = Datagram { from: made_up(flow), to, payload: payload.to_vec() }
                    .frame(HOST_MAC, GUEST_MAC);
                let socket = self.sockets.first().context("no socket")?;
                socket.send_to(&frame, (Ipv4Addr::LOCALHOST, *qemu))?;
            }
        }
        Ok(())
    }

    /// What comes within this time: waits for the first only.
    pub fn receive(&self, patience: Duration) -> Vec<Arrival> {
        let first = self.arrivals.recv_timeout(patience).ok();
        first.into_iter().chain(self.arrivals.try_iter()).filter_map(|taken| self.arrival(taken)).collect()
    }

    fn arrival(&self, (socket, from, bytes): Taken) -> Option<Arrival> {
        match &self.kind {
            Kind::User(ports) => {
                let guest = ports.iter().find(|(_, here)| **here == from.port()).map(|(guest, _)| *guest)?;
                Some((socket, guest, bytes))
            }
            Kind::Dgram { flows, .. } => {
                let datagram = Datagram::parse(&bytes).filter(|d| *d.from.ip() == GUEST)?;
                let flow = (0..*flows).find(|flow| made_up(*flow) == datagram.to)?;
                Some((flow, datagram.from.port(), datagram.payload))
            }
        }
    }

    /// Datagrams that the host's kernel dropped because nobody took them in time.
    pub fn dropped(&self) -> Result<u64> {
        let own: Vec<u16> =
            self.sockets.iter().filter_map(|s| s.local_addr().ok()).map(|a| a.port()).collect();
        let table = std::fs::read_to_string("/proc/net/udp")?;
        let rows = table.lines().skip(1).map(|row| row.split_whitespace().collect::<Vec<_>>());
        let counts = rows.filter_map(|row| {
            let (_, port) = row.get(1)?.split_once(':')?;
            let port = u16::from_str_radix(port, 16).ok()?;
            own.contains(&port).then(|| row.last()?.parse::<u64>().ok())?
        });
        Ok(counts.sum())
    }
}

/// Two flows an address, which differ in one bit of their ports: a key without either would put flows together.
fn made_up(flow: usize) -> SocketAddrV4 {
    let [_, low] = (flow as u16 / 2 + 1).to_be_bytes();
    SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, low), 40_000 + flow as u16 % 2)
}

fn bind(port: u16) -> Result<UdpSocket> {
    UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).context("no socket")
}

/// UDP ports of 127.0.0.1 that nobody uses now.
fn free_ports(count: usize) -> Result<Vec<u16>> {
    let sockets = (0..count).map(|_| bind(0)).collect::<Result<Vec<_>>>()?;
    sockets.iter().map(|s| Ok(s.local_addr()?.port())).collect()
}

/// Takes what comes, until nobody wants it any more.
fn take(number: usize, socket: UdpSocket, sender: Sender<Taken>) {
    std::thread::spawn(move || {
        let mut buffer = vec![0; 2048];
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            let bytes = buffer.get(..length).unwrap_or_default().to_vec();
            if sender.send((number, from, bytes)).is_err() {
                return;
            }
        }
    });
}

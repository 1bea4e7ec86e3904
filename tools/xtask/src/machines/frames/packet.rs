//! Ethernet frames with UDP over IPv4, as bytes: made, read, and taken from a pcap.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;

use anyhow::{ensure, Context as _, Result};

/// Ethernet, IPv4 and UDP headers.
const HEADERS: usize = 42;
const IPV4: [u8; 2] = [8, 0];
const UDP: u8 = 17;

/// A datagram and where it goes.
pub struct Datagram {
    /// Its sender.
    pub from: SocketAddrV4,
    /// Its receiver.
    pub to: SocketAddrV4,
    /// What it carries.
    pub payload: Vec<u8>,
}

impl Datagram {
    /// Reads a frame; None where it is no UDP over IPv4 with a right checksum.
    pub fn parse(frame: &[u8]) -> Option<Self> {
        let header = frame.get(14..34)?;
        let right = frame.get(12..14)? == IPV4 && *header.first()? == 0x45 && *header.get(9)? == UDP;
        if !right || checksum(header) != 0 {
            return None;
        }
        let address = |at: usize| Some(Ipv4Addr::from(u32_at(frame, at)?));
        let length = usize::from(u16_at(frame, 38)?);
        Some(Self {
            from: SocketAddrV4::new(address(26)?, u16_at(frame, 34)?),
            to: SocketAddrV4::new(address(30)?, u16_at(frame, 36)?),
            payload: frame.get(HEADERS..34 + length)?.to_vec(),
        })
    }

    /// The frame of this datagram, between two hardware addresses.
    pub fn frame(&self, from: [u8; 6], to: [u8; 6]) -> Vec<u8> {
        let udp = (8 + self.payload.len()) as u16;
        let mut header = vec![0x45, 0];
        header.extend((20 + udp).to_be_bytes());
        header.extend([0, 0, 0, 0, 64, UDP, 0, 0]);
        header.extend(self.from.ip().octets());
        header.extend(self.to.ip().octets());
        let sum = checksum(&header).to_be_bytes();
        header.splice(10..12, sum);
        let mut frame: Vec<u8> = [to, from].concat();
        frame.extend(IPV4);
        frame.append(&mut header);
        for field in [self.from.port(), self.to.port(), udp, 0] {
            frame.extend(field.to_be_bytes());
        }
        frame.extend(&self.payload);
        frame.resize(frame.len().max(60), 0);
        frame
    }
}

/// The number at this place, in network byte order.
pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes)
}

/// The number at this place, in network byte order.
pub fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.try_into().ok().map(u16::from_be_bytes)
}

/// The datagrams of a pcap, in order.
pub fn pcap(path: &Path) -> Result<Vec<Datagram>> {
    let data = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let word = |at: usize| -> Option<u32> { data.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes) };
    ensure!(word(0) == Some(0xA1B2_C3D4), "{} is no pcap", path.display());
    let mut found = Vec::new();
    let mut at = 24;
    while let (Some(kept), Some(whole)) = (word(at + 8), word(at + 12)) {
        let end = at + 16 + kept as usize;
        if kept == whole {
            found.extend(data.get(at + 16..end).and_then(Datagram::parse));
        }
        at = end;
    }
    Ok(found)
}

fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|c| u32::from(u16_at(c, 0).unwrap_or(0)));
    let mut sum: u32 = words.sum();
    while sum >> 16 != 0 {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_reads_as_it_was_made_and_not_with_a_bit_changed() {
        let at = |host, port| SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, host), port);
        let datagram = Datagram { from: at(1, 40_000), to: at(2, 7000), payload: vec![7; 30] };
        let mut frame = datagram.frame([2; 6], [4; 6]);
        let read = Datagram::parse(&frame);
        assert!(read.is_some_and(|d| d.from == datagram.from
            && d.to == datagram.to
            && d.payload == datagram.payload));
        if let Some(byte) = frame.get_mut(30) {
            *byte ^= 1;
        }
        assert!(Datagram::parse(&frame).is_none());
    }
}

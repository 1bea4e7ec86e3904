//! The IP header of a packet: behind Ethernet, VLAN tags, PPPoE, MPLS, PPP, Linux "cooked", BSD loopback, or as it is.

use pcap_parser::Linktype;

/// What is known of a packet.
#[derive(Default)]
pub(super) struct Packet<'a> {
    pub(super) source: &'a [u8],
    pub(super) destination: &'a [u8],
    pub(super) protocol: u8,
    pub(super) ports: Option<(u16, u16)>,
}

/// Why a packet has no IP header.
pub(super) enum NoPacket {
    /// It is damaged, or not of a known kind.
    Bad(String),
    /// It is something else.
    Other(String),
}
use NoPacket::{Bad, Other};

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

fn short(bytes: &[u8]) -> NoPacket {
    Bad(format!("{} bytes are no whole header", bytes.len()))
}

/// Where the IP header begins behind a type of Ethernet, whose data begins at `at`.
fn behind(kind: u16, mut at: usize, bytes: &[u8]) -> Result<usize, NoPacket> {
    let mut kind = kind;
    // VLAN tags, also stacked: the tag, and the type of what follows.
    while matches!(kind, 0x8100 | 0x88a8 | 0x9100) {
        kind = be16(bytes, at + 2).ok_or_else(|| short(bytes))?;
        at += 4;
    }
    match kind {
        0x0800 | 0x86dd => Ok(at),
        // PPPoE: six bytes, then PPP.
        0x8864 => ppp(at + 6, bytes),
        // MPLS: labels of four bytes; the last one has a bit set. Only the data tells what it is.
        0x8847 | 0x8848 => loop {
            let is_last = bytes.get(at + 2).ok_or_else(|| short(bytes))? & 1 == 1;
            at += 4;
            if is_last {
                let version = bytes.get(at).ok_or_else(|| short(bytes))? >> 4;
                return matches!(version, 4 | 6)
                    .then_some(at)
                    .ok_or_else(|| Other("not IP behind MPLS".into()));
            }
        },
        _ => Err(Other(format!("not IP: type {kind:#06x}"))),
    }
}

/// Where the IP header begins behind the protocol of PPP, which may be one byte.
fn ppp(at: usize, bytes: &[u8]) -> Result<usize, NoPacket> {
    let first = *bytes.get(at).ok_or_else(|| short(bytes))?;
    let (protocol, after) = match first & 1 {
        1 => (u16::from(first), at + 1),
        _ => (be16(bytes, at).ok_or_else(|| short(bytes))?, at + 2),
    };
    match protocol {
        0x21 | 0x57 => Ok(after),
        _ => Err(Other(format!("not IP: protocol {protocol:#06x} of PPP"))),
    }
}

/// Where the IP header begins behind that of the link.
fn start(link: Linktype, bytes: &[u8]) -> Result<usize, NoPacket> {
    let kind = |at: usize| be16(bytes, at).ok_or_else(|| short(bytes));
    match link {
        Linktype::ETHERNET => behind(kind(12)?, 14, bytes),
        Linktype::LINUX_SLL => behind(kind(14)?, 16, bytes),
        Linktype::LINUX_SLL2 => behind(kind(0)?, 20, bytes),
        // PPP, in frames of HDLC or not.
        Linktype(9 | 50) => ppp(if bytes.starts_with(&[0xff, 0x03]) { 2 } else { 0 }, bytes),
        // Cisco's HDLC.
        Linktype(104) => behind(kind(2)?, 4, bytes),
        // The family of the address, in the order of the machine's bytes; each BSD has another number for IPv6.
        Linktype::NULL | Linktype::LOOP => {
            let family = kind(0)?.swap_bytes() | kind(2)?;
            match family {
                2 | 10 | 23 | 24 | 28 | 30 => Ok(4),
                _ => Err(Other(format!("not IP: family {family}"))),
            }
        }
        Linktype::RAW | Linktype(12) | Linktype(14) | Linktype::IPV4 | Linktype::IPV6 => Ok(0),
        Linktype(other) => Err(Bad(format!(
            "link type {other} is not known; known are 0 and 108 (BSD loopback), 1 (Ethernet), 9 and 50 (PPP), 104 \
             (HDLC), 113 and 276 (Linux cooked), and 12, 14, 101, 228 and 229 (IP)"
        ))),
    }
}

/// The protocol of a packet of IPv6, behind its extension headers: options for each hop, routing, fragment,
/// authentication, options for the destination. And where its header begins, which only the first fragment has.
fn behind_extensions(mut protocol: u8, header: &[u8]) -> (u8, Option<usize>) {
    let mut at = 40;
    while let (0 | 43 | 44 | 51 | 60, Some([next, length, high, low])) =
        (protocol, header.get(at..).and_then(|rest| rest.first_chunk()))
    {
        let (kind, length) = (std::mem::replace(&mut protocol, *next), usize::from(*length));
        if kind == 44 && u16::from_be_bytes([*high, *low]) >> 3 != 0 {
            return (protocol, None);
        }
        at += match kind {
            44 => 8,
            51 => 4 * (length + 2),
            _ => 8 * (length + 1),
        };
    }
    (protocol, Some(at))
}

/// Finds the IP header behind that of the link.
pub(super) fn ip(link: Linktype, bytes: &[u8]) -> Result<Packet<'_>, NoPacket> {
    let header = bytes.get(start(link, bytes)?..).ok_or_else(|| short(bytes))?;
    let (source, destination, protocol, next) = match header.first().ok_or_else(|| short(bytes))? >> 4 {
        4 => {
            let fixed = header.get(..20).ok_or_else(|| short(bytes))?;
            let length = usize::from(fixed[0] & 15) * 4;
            // Only the first fragment has the ports.
            let first = u16::from_be_bytes([fixed[6], fixed[7]]) & 0x1fff == 0;
            (&fixed[12..16], &fixed[16..20], fixed[9], first.then_some(length))
        }
        6 => {
            let fixed = header.get(..40).ok_or_else(|| short(bytes))?;
            let (protocol, next) = behind_extensions(fixed[6], header);
            (&fixed[8..24], &fixed[24..40], protocol, next)
        }
        other => return Err(Bad(format!("not IP: version {other}"))),
    };
    // TCP, UDP, DCCP, SCTP, UDP-Lite.
    let has_ports = matches!(protocol, 6 | 17 | 33 | 132 | 136);
    let ports = next.filter(|_| has_ports).and_then(|at| Some((be16(header, at)?, be16(header, at + 2)?)));
    Ok(Packet { source, destination, protocol, ports })
}

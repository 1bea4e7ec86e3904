//! The IP header of a packet: behind Ethernet with VLAN tags, Linux "cooked", BSD loopback, or as it is.

use pcap_parser::Linktype;

/// What is known of a packet.
#[derive(Default)]
pub(super) struct Packet<'a> {
    pub(super) source: &'a [u8],
    pub(super) destination: &'a [u8],
    pub(super) protocol: u8,
    pub(super) ports: Option<(u16, u16)>,
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

/// Finds the IP header behind that of the link.
pub(super) fn ip(link: Linktype, bytes: &[u8]) -> Result<Packet<'_>, String> {
    let short = || format!("{} bytes are no whole header", bytes.len());
    let start = match link {
        Linktype::ETHERNET => {
            let mut at = 12;
            let mut kind = be16(bytes, at).ok_or_else(short)?;
            // VLAN tags, also stacked.
            while matches!(kind, 0x8100 | 0x88a8 | 0x9100) {
                at += 4;
                kind = be16(bytes, at).ok_or_else(short)?;
            }
            if !matches!(kind, 0x0800 | 0x86dd) {
                return Err(format!("not IP: type {kind:#06x}"));
            }
            at + 2
        }
        Linktype::LINUX_SLL => 16,
        Linktype::LINUX_SLL2 => 20,
        Linktype::NULL | Linktype::LOOP => 4,
        Linktype::RAW | Linktype(12) | Linktype(14) | Linktype::IPV4 | Linktype::IPV6 => 0,
        Linktype(other) => return Err(format!("link type {other} is not known")),
    };
    let header = bytes.get(start..).ok_or_else(short)?;
    let (source, destination, protocol, next) = match header.first().ok_or_else(short)? >> 4 {
        4 => {
            let fixed = header.get(..20).ok_or_else(short)?;
            let length = usize::from(fixed[0] & 15) * 4;
            // Only the first fragment has the ports.
            let first = u16::from_be_bytes([fixed[6], fixed[7]]) & 0x1fff == 0;
            (&fixed[12..16], &fixed[16..20], fixed[9], first.then_some(length))
        }
        6 => {
            let fixed = header.get(..40).ok_or_else(short)?;
            (&fixed[8..24], &fixed[24..40], fixed[6], Some(40))
        }
        other => return Err(format!("not IP: version {other}")),
    };
    // TCP, UDP, DCCP, SCTP, UDP-Lite.
    let has_ports = matches!(protocol, 6 | 17 | 33 | 132 | 136);
    let ports = next.filter(|_| has_ports).and_then(|at| Some((be16(header, at)?, be16(header, at + 2)?)));
    Ok(Packet { source, destination, protocol, ports })
}

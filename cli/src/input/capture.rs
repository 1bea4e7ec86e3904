//! Packets of a pcap or pcapng file: Ethernet with VLAN tags, Linux "cooked", raw IP, BSD loopback.
//!
//! The fields of a packet are `address` (its source), `destination`, `protocol`, `source_port`, `destination_port` and
//! `bytes` (its length on the wire). Addresses are not text here but 4 or 16 bytes.

use std::io::Read;

use pcap_parser::traits::PcapReaderIterator;
use pcap_parser::{create_reader, Block, Linktype, PcapBlockOwned, PcapError};

use super::packet::ip;
use super::{Fields, Next};
use crate::failure::{Failure, Problem};
use crate::record::{Record, Wants};

const NAMES: [&str; 6] = ["address", "destination", "protocol", "source_port", "destination_port", "bytes"];

/// An interface of pcapng: its link type, and how it counts time.
struct Interface {
    link: Linktype,
    /// Ticks a second.
    ticks: u64,
    offset: i64,
}

/// A reader of packets.
pub struct Capture<R: Read> {
    reader: Box<dyn PcapReaderIterator + Send>,
    fields: Vec<usize>,
    bytes_cost: bool,
    link: Linktype,
    nanoseconds: bool,
    interfaces: Vec<Interface>,
    number: u64,
    /// The file was cut: what is left of it is no packet.
    is_cut: bool,
    input: std::marker::PhantomData<R>,
}

/// Larger than any packet, so that a block always fits.
const BUFFER: usize = 1 << 20;

fn bad(number: u64, what: impl Into<String>) -> Next {
    Next::Bad(Problem { line: number, column: 0, what: what.into() })
}

impl<R: Read + Send + 'static> Capture<R> {
    /// Reads the header of the file.
    pub fn new(input: R, wants: &Wants) -> Result<Capture<R>, Failure> {
        let column = |name: &str| {
            let place = NAMES.iter().position(|known| *known == name);
            place.ok_or_else(|| Failure::Usage(Fields::missing(name, &NAMES.join(", "))))
        };
        let fields = wants.fields.iter().map(|name| column(name)).collect::<Result<_, _>>()?;
        match wants.cost.as_deref() {
            None | Some("bytes") => {}
            Some(other) => {
                return Err(Failure::Usage(format!(
                    "a packet costs 1 or its bytes: no field {other:?} for --cost"
                )))
            }
        }
        let reader = create_reader(BUFFER, input)
            .map_err(|error| Failure::Input(format!("the header of the capture: {error:?}")))?;
        Ok(Capture {
            reader,
            fields,
            bytes_cost: wants.cost.is_some(),
            link: Linktype::NULL,
            nanoseconds: false,
            interfaces: Vec::new(),
            number: 0,
            is_cut: false,
            input: std::marker::PhantomData,
        })
    }

    /// Returns the number of the last packet, from 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Reads until the next packet.
    pub fn next(&mut self, record: &mut Record) -> Result<Next, Failure> {
        while !self.is_cut {
            let (size, found) = match self.reader.next() {
                Ok((size, block)) => {
                    let found = match block {
                        PcapBlockOwned::LegacyHeader(header) => {
                            self.link = header.network;
                            self.nanoseconds = header.is_nanosecond_precision();
                            None
                        }
                        PcapBlockOwned::Legacy(packet) => {
                            self.number += 1;
                            let unit = if self.nanoseconds { 1 } else { 1_000 };
                            record.ended(
                                u64::from(packet.ts_sec) * 1_000_000_000 + u64::from(packet.ts_usec) * unit,
                                0,
                            );
                            let kept = &packet.data[..packet.data.len().min(packet.caplen as usize)];
                            Some(read(self.link, kept, packet.origlen, &self.fields, self.bytes_cost, record))
                        }
                        PcapBlockOwned::NG(Block::SectionHeader(_)) => {
                            self.interfaces.clear();
                            None
                        }
                        PcapBlockOwned::NG(Block::InterfaceDescription(block)) => {
                            let ticks = block.ts_resolution().unwrap_or(1_000_000).max(1);
                            self.interfaces.push(Interface {
                                link: block.linktype,
                                ticks,
                                offset: block.ts_offset(),
                            });
                            None
                        }
                        PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                            self.number += 1;
                            match self.interfaces.get(packet.if_id as usize) {
                                None => Some(Err(format!("interface {} is not described", packet.if_id))),
                                Some(interface) => {
                                    let stamp = u128::from(packet.ts_high) << 32 | u128::from(packet.ts_low);
                                    let ns = stamp * 1_000_000_000 / u128::from(interface.ticks);
                                    let offset = i128::from(interface.offset) * 1_000_000_000;
                                    record.ended(u64::try_from(ns as i128 + offset).unwrap_or(0), 0);
                                    let kept = &packet.data[..packet.data.len().min(packet.caplen as usize)];
                                    Some(read(
                                        interface.link,
                                        kept,
                                        packet.origlen,
                                        &self.fields,
                                        self.bytes_cost,
                                        record,
                                    ))
                                }
                            }
                        }
                        PcapBlockOwned::NG(Block::SimplePacket(_)) => {
                            self.number += 1;
                            Some(Err("a simple packet block has no time".into()))
                        }
                        PcapBlockOwned::NG(_) => None,
                    };
                    (size, found)
                }
                Err(PcapError::Eof) => return Ok(Next::End),
                Err(PcapError::UnexpectedEof) => {
                    self.is_cut = true;
                    return Ok(bad(self.number + 1, "the capture ends inside of this packet"));
                }
                Err(PcapError::Incomplete(_)) => {
                    self.reader.refill().map_err(|error| Failure::Input(format!("{error:?}")))?;
                    continue;
                }
                Err(error) => {
                    let number = self.number + 1;
                    return Err(Failure::Input(format!(
                        "packet {number}: the capture is damaged: {error:?}"
                    )));
                }
            };
            self.reader.consume(size);
            match found {
                None => {}
                Some(Ok(())) => return Ok(Next::Record),
                Some(Err(what)) => return Ok(bad(self.number, what)),
            }
        }
        Ok(Next::End)
    }
}

fn read(
    link: Linktype,
    bytes: &[u8],
    length: u32,
    fields: &[usize],
    bytes_cost: bool,
    record: &mut Record,
) -> Result<(), String> {
    let packet = ip(link, bytes)?;
    record.cost = if bytes_cost { u64::from(length) } else { 1 };
    let mut text = [0; 20];
    for (index, field) in fields.iter().enumerate() {
        let port = |port: Option<u16>| port.ok_or("a packet without ports".to_string()).map(u64::from);
        let number = match field {
            0 => {
                record.set(index, packet.source);
                continue;
            }
            1 => {
                record.set(index, packet.destination);
                continue;
            }
            2 => u64::from(packet.protocol),
            3 => port(packet.ports.map(|ports| ports.0))?,
            4 => port(packet.ports.map(|ports| ports.1))?,
            _ => u64::from(length),
        };
        record.set(index, decimal(number, &mut text));
    }
    Ok(())
}

fn decimal(mut number: u64, text: &mut [u8; 20]) -> &[u8] {
    let mut at = text.len();
    loop {
        at -= 1;
        text[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &text[at..];
        }
    }
}

//! Packets of a pcap or pcapng file.
//!
//! The fields of a packet are `address` (its source), `destination`, `protocol`, `source_port`, `destination_port` and
//! `bytes` (its length on the wire). Addresses are not text here but 4 or 16 bytes.

use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};

use pcap_parser::traits::PcapReaderIterator;
use pcap_parser::{
    create_reader, Block, InterfaceDescriptionBlock, Linktype, OptionCode, PcapBlockOwned, PcapError,
};

use super::packet::{ip, NoPacket};
use super::{Fields, Next};
use crate::failure::{Failure, Problem};
use crate::record::{Record, Wants};

const NAMES: [&str; 6] = ["address", "destination", "protocol", "source_port", "destination_port", "bytes"];

/// An interface of pcapng: its link type, and how it counts time.
struct Interface {
    link: Linktype,
    /// Ticks a second, and a tick in nanoseconds, rounded up; None if the file says what nobody can count.
    ticks: Option<(u128, u64)>,
    offset: i64,
}

/// Ticks a second, of pcapng's option if_tsresol: a power of 10, or with the first bit a power of 2.
fn ticks(resolution: u8) -> Option<(u128, u64)> {
    let ticks = match resolution & 0x80 {
        0 => 10u128.checked_pow(u32::from(resolution))?,
        _ => 1 << (resolution & 0x7f),
    };
    Some((ticks, 1_000_000_000u128.div_ceil(ticks) as u64))
}

/// Seconds to add to the times of an interface: pcapng's option if_tsoffset, in the byte order of its section. The
/// parser reads it little-endian in both.
fn offset(block: &InterfaceDescriptionBlock<'_>, is_big_endian: bool) -> i64 {
    let option = block.options.iter().rev().find(|option| option.code == OptionCode::IfTsoffset);
    let bytes = option.and_then(|option| option.value().first_chunk::<8>().copied());
    bytes.map_or(0, if is_big_endian { i64::from_be_bytes } else { i64::from_le_bytes })
}

/// Keeps the error of a source, because the parser does not.
struct Noted<R> {
    input: R,
    error: Arc<Mutex<Option<String>>>,
}

impl<R: Read> Read for Noted<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.input.read(to).inspect_err(|error| {
            *self.error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
        })
    }
}

/// What is wrong with a capture, in words.
fn words<T>(error: &PcapError<T>) -> &'static str {
    match error {
        PcapError::BufferTooSmall => "a block or packet says that it is longer than 1 MiB",
        PcapError::HeaderNotRecognized => "this is none",
        PcapError::Incomplete(_) | PcapError::UnexpectedEof => "it is cut",
        _ => "a block or packet does not have its form",
    }
}

/// A reader of packets.
pub struct Capture<R: Read> {
    reader: Box<dyn PcapReaderIterator + Send>,
    fields: Vec<usize>,
    bytes_cost: bool,
    link: Linktype,
    nanoseconds: bool,
    interfaces: Vec<Interface>,
    /// Whether the section has its numbers so.
    is_big_endian: bool,
    number: u64,
    /// The coarsest unit of time of a packet so far, in nanoseconds.
    grain: u64,
    error: Arc<Mutex<Option<String>>>,
    input: std::marker::PhantomData<R>,
}

/// Larger than any packet, so that a block always fits.
const BUFFER: usize = 1 << 20;
/// Most interfaces of a section: each takes memory, and few bytes of a compressed file describe many.
const INTERFACES: usize = 4096;

fn bad(what: String) -> Option<Result<(), NoPacket>> {
    Some(Err(NoPacket::Bad(what)))
}

impl<R: Read + Send + 'static> Capture<R> {
    /// Reads the header of the file.
    pub fn new(input: R, wants: &Wants) -> Result<Capture<R>, Failure> {
        Fields::one_time(wants)?;
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
        let error = Arc::new(Mutex::new(None));
        let reader = create_reader(BUFFER, Noted { input, error: Arc::clone(&error) })
            .map_err(|error| Failure::Input(format!("1: the header of the capture: {}", words(&error))))?;
        Ok(Capture {
            reader,
            fields,
            bytes_cost: wants.cost.is_some(),
            link: Linktype::NULL,
            nanoseconds: false,
            interfaces: Vec::new(),
            is_big_endian: false,
            number: 0,
            grain: 1,
            error,
            input: std::marker::PhantomData,
        })
    }

    /// Returns the number of the last packet, from 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Returns the coarsest unit of time of a packet so far, in nanoseconds.
    pub fn grain(&self) -> u64 {
        self.grain
    }

    /// Says where the capture cannot be read any further.
    fn end(&self, what: &str) -> Failure {
        Failure::Input(format!("{}: {what}", self.number + 1))
    }

    /// Reads until the next packet.
    pub fn next(&mut self, record: &mut Record) -> Result<Next, Failure> {
        loop {
            let (size, found) = match self.reader.next() {
                Ok((size, block)) => {
                    let found = match block {
                        PcapBlockOwned::LegacyHeader(header) => {
                            // Above the link type it may say how long the checksum behind each packet is.
                            self.link = Linktype(header.network.0 & 0xffff);
                            self.nanoseconds = header.is_nanosecond_precision();
                            None
                        }
                        PcapBlockOwned::Legacy(packet) => {
                            self.number += 1;
                            let unit = if self.nanoseconds { 1 } else { 1_000 };
                            self.grain = unit;
                            record.ended(
                                u64::from(packet.ts_sec) * 1_000_000_000 + u64::from(packet.ts_usec) * unit,
                                0,
                            );
                            let kept = &packet.data[..packet.data.len().min(packet.caplen as usize)];
                            let of = (&self.fields[..], self.bytes_cost);
                            Some(read(self.link, kept, packet.origlen, of, record))
                        }
                        PcapBlockOwned::NG(Block::SectionHeader(section)) => {
                            self.is_big_endian = section.big_endian();
                            self.interfaces.clear();
                            None
                        }
                        PcapBlockOwned::NG(Block::InterfaceDescription(_))
                            if self.interfaces.len() == INTERFACES =>
                        {
                            return Err(self.end(&format!("more than {INTERFACES} interfaces in a section")));
                        }
                        PcapBlockOwned::NG(Block::InterfaceDescription(block)) => {
                            let (link, ticks) = (block.linktype, ticks(block.if_tsresol));
                            let offset = offset(&block, self.is_big_endian);
                            self.interfaces.push(Interface { link, ticks, offset });
                            None
                        }
                        PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                            self.number += 1;
                            let interface = self.interfaces.get(packet.if_id as usize);
                            match interface.map(|known| (known, known.ticks)) {
                                None => bad(format!("interface {} is not described", packet.if_id)),
                                Some((_, None)) => {
                                    bad(format!("interface {} has no known unit of time", packet.if_id))
                                }
                                Some((interface, Some((ticks, grain)))) => {
                                    let stamp = u128::from(packet.ts_high) << 32 | u128::from(packet.ts_low);
                                    let ns = stamp * 1_000_000_000 / ticks;
                                    let offset = i128::from(interface.offset) * 1_000_000_000;
                                    if let Ok(time) = u64::try_from(ns as i128 + offset) {
                                        record.ended(time, 0);
                                        self.grain = self.grain.max(grain);
                                        let kept =
                                            &packet.data[..packet.data.len().min(packet.caplen as usize)];
                                        let of = (&self.fields[..], self.bytes_cost);
                                        Some(read(interface.link, kept, packet.origlen, of, record))
                                    } else {
                                        bad("its time is out of range".into())
                                    }
                                }
                            }
                        }
                        PcapBlockOwned::NG(Block::SimplePacket(_)) => {
                            self.number += 1;
                            bad("a simple packet block has no time".into())
                        }
                        PcapBlockOwned::NG(_) => None,
                    };
                    (size, found)
                }
                Err(PcapError::Eof) => return Ok(Next::End),
                Err(PcapError::UnexpectedEof) => {
                    return Err(self.end("the capture ends inside of this packet"));
                }
                Err(PcapError::Incomplete(_)) => {
                    if self.reader.refill().is_ok() {
                        continue;
                    }
                    let error = self.error.lock().unwrap_or_else(PoisonError::into_inner).take();
                    return Err(self.end(&error.unwrap_or_default()));
                }
                Err(error) => {
                    let what = words(&error);
                    return Err(self.end(&format!("the capture is damaged: {what}")));
                }
            };
            self.reader.consume(size);
            let problem = |what| Problem { line: self.number, column: 0, what };
            match found {
                None => {}
                Some(Ok(())) => return Ok(Next::Record),
                Some(Err(NoPacket::Bad(what))) => return Ok(Next::Bad(problem(what))),
                Some(Err(NoPacket::Other(what))) => return Ok(Next::Other(problem(what))),
            }
        }
    }
}

fn read(
    link: Linktype,
    bytes: &[u8],
    length: u32,
    (fields, bytes_cost): (&[usize], bool),
    record: &mut Record,
) -> Result<(), NoPacket> {
    let packet = ip(link, bytes)?;
    record.cost = if bytes_cost { u64::from(length) } else { 1 };
    let mut text = [0; 20];
    for (index, field) in fields.iter().enumerate() {
        let without = || NoPacket::Other("a packet without ports".into());
        let port = |port: Option<u16>| port.ok_or_else(without).map(u64::from);
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

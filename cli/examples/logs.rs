//! Writes a log or a capture for measurements. The numbers of records and addresses are arguments; each run writes the
//! same bytes.
//!
//! `logs nginx 1000000 139000 > access.log`; `logs pcap 1000000 256000 > packets.pcap`

use std::io::{self, BufWriter, Write};

/// Numbers that look random: SplitMix64.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// 2023-11-14T22:00:00Z; a thousand records come in each second, for less than two hours.
const START: u64 = 1_699_999_200;

/// A line as nginx writes it by default, of about 176 bytes.
fn line(out: &mut impl Write, at: u64, [a, b, c, d]: [u8; 4], more: u64) -> io::Result<()> {
    let (time, page) = (at / 1000 % 7200, more % 100_000);
    writeln!(
        out,
        "{a}.{b}.{c}.{d} - - [14/Nov/2023:{:02}:{:02}:{:02} +0000] \"GET /articles/{page}?page=2 HTTP/1.1\" 200 {} \
         \"https://example.org/articles/\" \"Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Firefox/128.0\"",
        22 + time / 3600,
        time / 60 % 60,
        time % 60,
        1_000 + more % 9_000
    )
}

/// A packet of UDP, 60 bytes in an Ethernet frame.
fn packet(out: &mut impl Write, at: u64, address: [u8; 4]) -> io::Result<()> {
    let (second, part) = (START + at / 1_000_000, at % 1_000_000);
    for number in [second as u32, part as u32, 60, 60] {
        out.write_all(&number.to_le_bytes())?;
    }
    let mut frame = [0; 60];
    frame[12..24].copy_from_slice(&[8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17]);
    frame[26..30].copy_from_slice(&address);
    frame[30..42].copy_from_slice(&[192, 0, 2, 1, 0x80, 0, 0, 53, 0, 26, 0, 0]);
    out.write_all(&frame)
}

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |text: &String| text.parse::<u64>().ok().filter(|number| *number > 0);
    let (kind, records, addresses) = match &arguments[..] {
        [kind, records, addresses] => (&**kind, number(records), number(addresses)),
        _ => ("", None, None),
    };
    let (Some(records), Some(addresses), "nginx" | "pcap") = (records, addresses, kind) else {
        eprintln!("logs nginx|pcap RECORDS ADDRESSES");
        std::process::exit(2);
    };
    let (mut out, mut state) = (BufWriter::new(io::stdout().lock()), 7);
    if kind == "pcap" {
        // Microseconds, version 2.4, Ethernet.
        out.write_all(&[
            0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 1, 0, 0, 0,
        ])?;
    }
    for at in 0..records {
        let number = random(&mut state);
        // An odd factor spreads them over all networks, and makes no two the same.
        let address = ((number % addresses) as u32).wrapping_mul(0x9e37_79b1).to_be_bytes();
        match kind {
            "nginx" => line(&mut out, at, address, number >> 40)?,
            _ => packet(&mut out, at, address)?,
        }
    }
    out.flush()
}

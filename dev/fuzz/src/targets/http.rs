//! Header fields: any names, units, partitions and numbers are refused, or make fields that a parser of structured
//! fields (RFC 9651) accepts, with the same numbers in them.

use tatcell::http::{Field, Fields, Policy};
use tatcell::{Cell, Limit};

use crate::data::Data;

/// A text of up to 12 characters, most of them printable.
fn text(data: &mut Data<'_>) -> String {
    let count = data.below(13);
    let character = |data: &mut Data<'_>| match data.byte() {
        byte @ 0x20..0x7f => byte as char,
        byte @ 0..0x20 => ['"', '\\', ';', ',', ' ', 'a', '=', ':'][usize::from(byte) % 8],
        0xff => char::from_u32(data.word() as u32 & 0x10_ffff).unwrap_or('\n'),
        byte => byte as char,
    };
    (0..count).map(|_| character(data)).collect()
}

fn printable(text: &str) -> bool {
    text.bytes().all(|byte| (0x20..0x7f).contains(&byte))
}

/// One member of a list: its string, and the parameters.
#[derive(Debug, Default)]
struct Member {
    name: String,
    numbers: Vec<(char, u64)>,
    unit: Option<String>,
    partition: Option<Vec<u8>>,
}

/// Reads a list of strings with parameters, strictly as RFC 9651, 4.2 has it.
struct Parser<'a>(&'a [u8]);

impl Parser<'_> {
    fn take(&mut self, byte: u8) -> bool {
        let here = self.0.first() == Some(&byte);
        if here {
            self.0 = &self.0[1..];
        }
        here
    }

    fn string(&mut self) -> Option<String> {
        self.take(b'"').then_some(())?;
        let mut text = String::new();
        loop {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            match byte {
                b'"' => return Some(text),
                b'\\' => {
                    let (&next, rest) = self.0.split_first()?;
                    self.0 = rest;
                    matches!(next, b'"' | b'\\').then(|| text.push(next as char))?;
                }
                0x20..0x7f => text.push(byte as char),
                _ => return None,
            }
        }
    }

    fn number(&mut self) -> Option<u64> {
        let digits = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        (1..=15).contains(&digits).then_some(())?;
        let (number, rest) = self.0.split_at(digits);
        self.0 = rest;
        std::str::from_utf8(number).ok()?.parse().ok()
    }

    fn bytes(&mut self) -> Option<Vec<u8>> {
        const BASE64: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        self.take(b':').then_some(())?;
        let end = self.0.iter().position(|byte| *byte == b':')?;
        let (digits, rest) = self.0.split_at(end);
        self.0 = &rest[1..];
        (digits.len() % 4 == 0).then_some(())?;
        let mut bytes = Vec::new();
        for four in digits.chunks(4) {
            let padding = four.iter().rev().take_while(|byte| **byte == b'=').count();
            (padding <= 2).then_some(())?;
            let value = |byte: &u8| BASE64.iter().position(|digit| digit == byte);
            let mut bits = 0;
            for digit in &four[..4 - padding] {
                bits = bits << 6 | value(digit)? as u32;
            }
            let made = (bits << (6 * padding)).to_be_bytes();
            bytes.extend(&made[1..4 - padding]);
        }
        Some(bytes)
    }

    fn list(mut self) -> Option<Vec<Member>> {
        let mut members = Vec::new();
        loop {
            let mut member = Member { name: self.string()?, ..Member::default() };
            while self.take(b';') {
                let end = self.0.iter().position(|byte| *byte == b'=')?;
                let (key, rest) = self.0.split_at(end);
                self.0 = &rest[1..];
                match key {
                    b"q" | b"w" | b"r" | b"t" => member.numbers.push((key[0] as char, self.number()?)),
                    b"qu" => member.unit = Some(self.string()?),
                    b"pk" => member.partition = Some(self.bytes()?),
                    _ => return None,
                }
            }
            members.push(member);
            if self.0.is_empty() {
                return Some(members);
            }
            (self.take(b',') && self.take(b' ')).then_some(())?;
        }
    }
}

pub fn run(input: &[u8]) {
    let data = &mut Data(input);
    let count = 1 + data.below(9) as usize;
    let named: Vec<(String, String, Vec<u8>)> = (0..count)
        .map(|_| (text(data), text(data), (0..data.below(20)).map(|_| data.byte()).collect()))
        .collect();
    let mut policies = Vec::new();
    for (name, unit, partition) in &named {
        let made = Policy::new(name);
        assert_eq!(made.is_ok(), printable(name), "{name:?}");
        let Ok(mut policy) = made else { continue };
        policy = policy.quota(data.sharp()).window(data.sharp());
        if data.flag() {
            let with = policy.unit(unit);
            assert_eq!(with.is_ok(), printable(unit), "{unit:?}");
            policy = with.unwrap_or(policy);
        }
        if data.flag() {
            policy = policy.partition(partition);
        }
        if data.flag() {
            let limit = Limit::new(1 + data.scaled(20), 1 + data.scaled(30), 1 + data.scaled(20));
            if let Ok(limit) = limit {
                let cell = Cell::from_word(data.word());
                policy = policy.decision(&cell.check_ex(&limit, data.word(), data.scaled(20), 0));
            }
        }
        policies.push(policy);
    }
    let hz = data.sharp();
    let Ok(fields) = Fields::new(hz, &policies) else {
        assert!(hz == 0 || policies.is_empty() || policies.len() > 8, "{hz} Hz, {} policies", policies.len());
        return;
    };
    let mut all = String::new();
    fields.write_lines(&Field::ALL, &mut all).expect("a string has room");
    assert!(all.is_empty() || all.ends_with("\r\n"));
    let mut lines = all.split_terminator("\r\n");
    for field in Field::ALL {
        let mut value = String::new();
        fields.write_value(field, &mut value).expect("a string has room");
        assert!(printable(&value), "{value:?}");
        if value.is_empty() {
            continue;
        }
        assert_eq!(lines.next(), Some(format!("{}: {value}", field.name()).as_str()));
        match field {
            Field::RateLimit | Field::RateLimitPolicy => {
                let members = Parser(value.as_bytes()).list();
                let members = members.unwrap_or_else(|| panic!("no list of strings: {value}"));
                for member in &members {
                    let policy = named.iter().find(|(name, ..)| *name == member.name);
                    assert!(policy.is_some(), "{member:?} was not given");
                    let partition = member.partition.as_ref();
                    assert!(
                        partition.is_none_or(|p| named.iter().any(|(.., given)| given == p)),
                        "{member:?}"
                    );
                    let unit = member.unit.as_ref();
                    assert!(unit.is_none_or(|u| named.iter().any(|(_, given, _)| given == u)), "{member:?}");
                }
            }
            _ => assert!(value.parse::<u64>().is_ok_and(|n| n < 1_000_000_000_000_000), "{value}"),
        }
    }
    assert_eq!(lines.next(), None, "a line more than there are fields: {all:?}");
}

//! The objects of one call: valid ones, and what the input makes of them.

use std::collections::BTreeMap;

use crate::abi::{Function, Part, Record};
use crate::data::Data;
use crate::guarded::{Arena, ROOM};

/// 16 secret bytes.
const SEED: [u8; 16] = *b"a seed for fuzzy";
/// A length that no object can have.
const IMPOSSIBLE: u64 = 1 << 63;
/// Numbers that take time, or machines: these and less.
const BOUNDED: [(&str, u64); 2] = [("interval_ns", 1_000_000), ("keys", 10_000)];

/// Arrays: name of the pointer, of the length, bytes of an element, good lengths.
const ARRAYS: &[(&str, &str, u64, [u64; 2])] = &[
    ("key", "key_len", 1, [4, 13]),
    ("text", "length", 1, [13, 4]),
    ("address", "address_len", 1, [4, 16]),
    ("memory", "bytes", 1, [384, 1024]),
    ("image", "image_bytes", 1, [384, 384]),
    ("image", "bytes", 1, [384, 1024]),
    ("buffer", "bytes", 1, [200, 0]),
    ("bytes", "count", 1, [16, 0]),
    ("hashes", "count", 8, [5, 64]),
    ("top", "count", 64, [3, 0]),
    ("due", "most", 24, [3, 0]),
    ("policies", "count", 80, [2, 1]),
    ("tables", "count", 56, [2, 1]),
    ("stamps", "count", 8, [4, 1]),
];

pub struct World<'w, 'd> {
    function: &'static Function,
    arena: &'w mut Arena,
    data: &'w mut Data<'d>,
    /// Lengths that were chosen with a pointer.
    lengths: BTreeMap<&'static str, u64>,
    /// The good table, made once a call, and its limit's bytes.
    table: Option<(usize, Vec<u8>)>,
    /// Whether a pointer is misaligned that must not be.
    pub bad: bool,
}

impl<'w, 'd> World<'w, 'd> {
    pub fn new(function: &'static Function, arena: &'w mut Arena, data: &'w mut Data<'d>) -> World<'w, 'd> {
        World { function, arena, data, lengths: BTreeMap::new(), table: None, bad: false }
    }

    /// The arguments of the call, each as wide as a register.
    pub fn arguments(&mut self) -> Vec<usize> {
        let parts = self.function.parts;
        // Pointers first: they decide the lengths.
        let mut values = vec![0; parts.len()];
        for (value, part) in values.iter_mut().zip(parts).filter(|(_, part)| part.stars > 0) {
            *value = self.pointer(part);
        }
        for (value, part) in values.iter_mut().zip(parts).filter(|(_, part)| part.stars == 0) {
            *value = self.number(part) as usize;
        }
        values
    }

    /// A number: a good one, or any.
    fn number(&mut self, part: &Part) -> u64 {
        if let Some(length) = self.lengths.get(part.name) {
            return *length;
        }
        let good = match part.name {
            "slots" => 64,
            "granularity" => 1 << 10,
            "window" | "period" | "half_life" => 1_000_000,
            "units" | "burst" | "tokens" | "capacity" | "depth" | "quota" | "n" => 10,
            "ticks_per_second" => 1_000_000_000,
            "now" => 1_000_000_000 + u64::from(self.data.byte()),
            "until" => 1_500_000_000,
            "bits" | "v4_bits" | "v6_bits" => 24,
            "fields" => 63,
            "field" => 1 << self.data.below(6),
            "how" | "pre" | "clock" | "policy" => self.data.below(3),
            "cost" | "handles" => 1 + self.data.below(8),
            "bytes" => 8 << self.data.below(12),
            _ => 0,
        };
        let number = if self.data.rarely() { self.data.sharp() } else { good };
        match BOUNDED.iter().find(|(name, _)| *name == part.name) {
            Some((_, most)) => number.min(*most),
            // Memory of the system: some, or more than there can be.
            None if part.name == "bytes" && number > 1 << 20 => number | IMPOSSIBLE,
            None => number,
        }
    }

    /// An object of these bytes, its end or its start at a guard.
    fn place(&mut self, content: &[u8], align: usize, may_change: bool) -> usize {
        let at_end = !self.data.rarely();
        self.arena.place(content, align, at_end, may_change)
    }

    /// NULL, misaligned, or as it is.
    fn bend(&mut self, at: usize, align: usize, optional: bool) -> usize {
        if at == 0 || !self.data.rarely() {
            return at;
        }
        match self.data.byte() & 1 {
            0 if align > 1 => {
                self.bad |= !optional;
                at + 1 + self.data.byte() as usize % (align - 1)
            }
            _ => 0,
        }
    }

    fn pointer(&mut self, part: &'static Part) -> usize {
        let may_change = !part.is_const;
        let is_array = part.base != "tatcell_host_memory_t";
        if let Some(array) = ARRAYS.iter().find(|a| is_array && a.0 == part.name && self.has(a.1)) {
            return self.array(part, *array);
        }
        let at = match (part.base, part.name) {
            (_, "name") => self.place(b"no slash\0", 1, false),
            (_, "permits") => self.place(&[0; 8 * 64], 8, may_change),
            (_, "canonical") => self.place(&[0; 16], 1, may_change),
            (_, "prefix") => self.place(&[0; 18], 1, may_change),
            (_, "pre") => self.place(&[0, 1, 2], 1, false),
            (_, "colours") => self.place(&[9; 3], 1, may_change),
            (_, "counts") => self.place(&[0; 24], 8, may_change),
            (_, "second_costs" | "rooms") => self.place(&[1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0], 4, false),
            // Of the two links of a prepared chain.
            ("uint64_t", "hashes" | "costs") => self.place(&[7; 2 * 8], 8, may_change),
            ("tatcell_chain_key_t", _) => self.chain_keys(),
            ("void", _) => panic!("what is {} of {}?", part.name, self.function.name),
            ("uint64_t" | "size_t", _) => self.place(&[0; 8], 8, may_change),
            ("uint32_t" | "int32_t", _) => self.place(&[0; 4], 4, may_change),
            (base, _) => {
                let record = Record::find(base).unwrap_or_else(|| panic!("what is {base}?"));
                return self.object(record, may_change);
            }
        };
        let align = match (part.base, part.name) {
            ("uint64_t" | "size_t" | "tatcell_chain_key_t", _) | (_, "permits") => 8,
            ("uint32_t" | "int32_t", _) => 4,
            _ => 1,
        };
        self.bend(at, align, false)
    }

    fn has(&self, name: &str) -> bool {
        self.function.parts.iter().any(|part| part.name == name)
    }

    /// An array and its length: a good one, any that is there, or one that is impossible.
    fn array(
        &mut self,
        part: &'static Part,
        (_, length, element, good): (&str, &'static str, u64, [u64; 2]),
    ) -> usize {
        let good = match self.function.name {
            "tatcell_shaper_init" => [self.ask("tatcell_shaper_bytes", &[64, 8]); 2],
            "tatcell_leaky_queue_init" => [self.ask("tatcell_leaky_queue_bytes", &[8]); 2],
            _ => good,
        };
        let fits = ROOM as u64 / element;
        let count = match self.data.byte() {
            0..200 => good[0],
            200..230 => good[1],
            230..250 => self.data.scaled(14) % (fits + 1),
            // Of numbers of 32 bits none is impossible: more than an array may have.
            _ if self.is_narrow(length) => fits,
            _ => IMPOSSIBLE | self.data.sharp(),
        };
        self.lengths.insert(length, count);
        let there = if count > fits { 16 } else { count };
        let align = match part.name {
            "memory" if ["_table_", "_counters_"].iter().any(|part| self.function.name.contains(part)) => 64,
            "memory" | "image" | "hashes" | "top" | "due" | "policies" | "tables" | "stamps" => 8,
            _ => 1,
        };
        let bytes = (there * element) as usize;
        let content = match part.name {
            "policies" => (0..there.min(9)).flat_map(|_| self.content(policy_record(), true)).collect(),
            // Those without a size end the call.
            "tables" => {
                let record = Record::find("tatcell_metrics_t").expect("a structure of the header");
                let mut tables: Vec<u8> =
                    (0..there.min(3)).flat_map(|_| self.content(record, true)).collect();
                tables.resize(bytes, 0);
                tables
            }
            "image" if part.is_const => self.image(bytes),
            "memory" if self.function.name.ends_with("_attach") => self.image(bytes),
            "address" | "key" => (0..bytes).map(|_| self.data.byte()).collect(),
            _ => vec![0; bytes],
        };
        let at = self.place(&content, align, !part.is_const);
        let optional = count == 0;
        self.bend(at, align, optional)
    }

    fn is_narrow(&self, name: &str) -> bool {
        self.function.parts.iter().any(|part| part.name == name && part.base == "uint32_t")
    }

    fn ask(&self, name: &str, arguments: &[usize]) -> u64 {
        // SAFETY: takes numbers only.
        unsafe { Function::find(name).call(arguments) }
    }

    /// What a table saved, with some bits of it flipped.
    fn image(&mut self, bytes: usize) -> Vec<u8> {
        let (table, _) = self.good_table();
        let mut words = vec![0u64; ROOM / 8];
        let mut used = 0usize;
        let to = words.as_mut_ptr() as usize;
        // SAFETY: a table, and a buffer of its own with this number of bytes.
        let code = unsafe {
            Function::find("tatcell_table_save").call(&[
                table,
                0,
                to,
                ROOM,
                std::ptr::addr_of_mut!(used) as usize,
            ])
        };
        assert_eq!(code as i32, 0);
        if self.data.rarely() {
            words[self.data.below(16) as usize] ^= 1 << self.data.below(64);
        }
        let mut image: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        image.resize(bytes, 0);
        image
    }

    /// A structure in memory of its own; bent as the input says.
    fn object(&mut self, record: &'static Record, may_change: bool) -> usize {
        if record.name == "tatcell_table_t" && !may_change {
            let (at, _) = self.good_table();
            return self.bend(at, record.align, false);
        }
        let mut content = self.content(record, may_change);
        if self.data.rarely() {
            match self.data.byte() & 3 {
                // Not initialised.
                0 if record.name != "tatcell_host_memory_t" => content.fill(0),
                // A size of its own, and no byte more than that.
                1 if record.grows() => {
                    let size = match self.data.byte() & 3 {
                        0 => self.data.below(256) as usize,
                        1 => record.size - 8,
                        2 => record.size + 8 * self.data.below(8) as usize,
                        _ => 4096 + 8 - 8 * self.data.below(3) as usize,
                    };
                    let tail = if self.data.flag() { 0 } else { self.data.byte() };
                    content.resize(size.max(8), tail);
                    content[..4].copy_from_slice(&(size as u32).to_ne_bytes());
                }
                // One number.
                _ => self.change_field(record, &mut content),
            }
        }
        let at = self.place(&content, record.align, may_change);
        self.bend(at, record.align, false)
    }

    /// Changes a field that is no length of something and no pointer; of an opaque object its mark.
    fn change_field(&mut self, record: &'static Record, content: &mut [u8]) {
        const LENGTHS: &[&str] = &[
            "size",
            "count",
            "stride",
            "key_len",
            "decision_size",
            "link_size",
            "partition_len",
            "v4_count",
            "v6_count",
            "memory",
            "bytes",
            "opaque",
            "scratch",
            "prepared",
        ];
        if record.is_opaque() {
            return content[..8].copy_from_slice(&self.data.word().to_ne_bytes());
        }
        let fields: Vec<&Part> = record
            .fields
            .iter()
            .filter(|f| f.stars == 0 && f.count == 1 && f.size <= 8 && !LENGTHS.contains(&f.name))
            .collect();
        if let Some(field) = fields.get(usize::from(self.data.byte()) % fields.len().max(1)) {
            let number = self.data.sharp().to_ne_bytes();
            if field.base != "tatcell_permit_t" {
                content[field.at..field.at + field.size].copy_from_slice(&number[..field.size]);
            }
        }
    }

    /// The bytes of a good structure; what it points to is placed.
    fn content(&mut self, record: &'static Record, may_change: bool) -> Vec<u8> {
        let mut bytes = vec![0u8; record.size];
        if record.is_opaque() && !may_change || self.is_in_use(record) {
            self.initialise(record, &mut bytes);
            return bytes;
        }
        if record.is_opaque() {
            return bytes;
        }
        let mut set = |name: &str, value: u64| {
            let field = record.field(name);
            bytes[field.at..field.at + field.size].copy_from_slice(&value.to_ne_bytes()[..field.size]);
        };
        if record.grows() {
            set("size", record.size as u64);
        }
        match record.name {
            "tatcell_limit_spec_t" => {
                let numbers = [
                    ("units", 1_000),
                    ("period", 1_000_000),
                    ("burst", 8),
                    ("max_delay", 1_000),
                    ("max_debt", 2),
                ];
                numbers.into_iter().for_each(|(name, value)| set(name, value));
            }
            "tatcell_meter_spec_t" => {
                let numbers = [
                    ("kind", 2697),
                    ("cir", 1_000_000),
                    ("cbs", 9_000),
                    ("burst2", 9_000),
                    ("tick_hz", 1_000_000),
                ];
                numbers.into_iter().for_each(|(name, value)| set(name, value));
            }
            "tatcell_waiting_t" => set("departure", 1_000_000_500),
            _ => self.references(record, &mut bytes),
        }
        bytes
    }

    /// Whether a structure that the call may change must have been initialised before.
    fn is_in_use(&self, record: &Record) -> bool {
        let (name, init) = (self.function.name, self.function.name.contains("_init"));
        match record.name {
            "tatcell_shaper_t" | "tatcell_leaky_queue_t" => !init,
            "tatcell_lease_t" => true,
            _ => name.ends_with("_exclusive") && record.name == "tatcell_sliding_log_t",
        }
    }
}

fn policy_record() -> &'static Record {
    Record::find("tatcell_http_policy_t").expect("a structure of the header")
}

mod good;

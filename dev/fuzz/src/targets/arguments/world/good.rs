//! Valid objects: those that the library initialises, and structures that point to others.

use super::{World, SEED};
use crate::abi::{Function, Record};

/// Writes a field of a structure.
fn set(record: &Record, bytes: &mut [u8], name: &str, value: usize) {
    let field = record.field(name);
    bytes[field.at..field.at + field.size].copy_from_slice(&value.to_ne_bytes()[..field.size]);
}

fn find(name: &str) -> &'static Record {
    Record::find(name).unwrap_or_else(|| panic!("there is no {name}"))
}

/// Calls a function with good arguments: it must do its work.
fn must(name: &str, arguments: &[usize]) {
    // SAFETY: objects of the right size and alignment, as the callers below have them.
    let code = unsafe { Function::find(name).call(arguments) } as i32;
    assert_eq!(code, 0, "{name} refused good arguments");
}

impl World<'_, '_> {
    /// The handle of a table whose memory lies between guards, made once a call.
    pub(super) fn good_table(&mut self) -> (usize, Vec<u8>) {
        if let Some(made) = &self.table {
            return made.clone();
        }
        let overrides = ["_ban", "_exempt", "_lift", "_overridden"];
        let (table, options) = (find("tatcell_table_t"), find("tatcell_table_options_t"));
        // Aligned, and not yet between guards: what follows is good.
        let spec: Vec<u64> = words(self.content(find("tatcell_limit_spec_t"), false));
        let mut bytes = vec![0; options.size];
        set(options, &mut bytes, "size", options.size);
        set(options, &mut bytes, "seed", SEED.as_ptr() as usize);
        if overrides.iter().any(|end| self.function.name.contains(end)) {
            set(options, &mut bytes, "overrides", 1_000_000_000);
        } else {
            set(options, &mut bytes, "fastest", spec.as_ptr() as usize);
        }
        let options = words(bytes);
        let memory = self.arena.place(&[0; 384], 64, true, true);
        let handle = self.arena.place(&vec![0; table.size], table.align, true, false);
        must("tatcell_table_init", &[handle, memory, 384, options.as_ptr() as usize]);
        let mut limit = vec![0u64; find("tatcell_limit_t").size / 8];
        let to = limit.as_mut_ptr() as usize;
        if options[find("tatcell_table_options_t").field("fastest").at / 8] != 0 {
            must("tatcell_limit_init_table", &[to, handle, spec.as_ptr() as usize]);
        }
        let limit = limit.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let made = (handle, limit);
        self.table = Some(made.clone());
        made
    }

    /// A limit of the kind that the call wants, or now and then of another.
    fn limit(&mut self) -> Vec<u8> {
        let name = self.function.name;
        let of_table =
            ["_table_", "_ladder_", "_mark", "_prepared_chain_check"].iter().any(|part| name.contains(part));
        let kind = if self.data.rarely() {
            self.data.below(6)
        } else if name.contains("32") {
            1
        } else {
            2 * u64::from(of_table)
        };
        if kind == 2 {
            return self.good_table().1;
        }
        let mut limit = vec![0u64; find("tatcell_limit_t").size / 8];
        let (to, spec) =
            (limit.as_mut_ptr() as usize, words(self.content(find("tatcell_limit_spec_t"), false)));
        match kind {
            0 => must("tatcell_limit_init_spec", &[to, spec.as_ptr() as usize]),
            1 => must("tatcell_limit32_init_spec", &[to, spec.as_ptr() as usize]),
            3 => must("tatcell_limit_init_window", &[to, 10, 1_000_000]),
            4 => must("tatcell_limit_init_decay", &[to, 10, 1_000_000]),
            _ => must("tatcell_limit_init_unlimited", &[to]),
        }
        limit.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    /// An opaque object, made by the library.
    pub(super) fn initialise(&mut self, record: &'static Record, bytes: &mut [u8]) {
        let mut own = vec![0u64; record.size / 8];
        let to = own.as_mut_ptr() as usize;
        match record.name {
            "tatcell_limit_t" => return bytes.copy_from_slice(&self.limit()),
            "tatcell_meter_params_t" => {
                let spec = words(self.content(find("tatcell_meter_spec_t"), false));
                must("tatcell_meter_params_init", &[to, spec.as_ptr() as usize]);
            }
            "tatcell_sliding_log_t" => {
                let stamps = self.place(&[0; 4 * 8], 8, true);
                must("tatcell_sliding_log_init", &[to, stamps, 4, 1_000_000, 0]);
            }
            "tatcell_ladder_t" => {
                let spec = words(self.content(find("tatcell_limit_spec_t"), false));
                // As many times the limit of one address as the table provides for: once.
                let [v4, v6] = [[32u32, 1, 24, 1], [128, 1, 64, 1]];
                let mut rungs = vec![0; find("tatcell_ladder_spec_t").size];
                let fields = [("size", rungs.len()), ("v4_count", 2), ("v6_count", 2)];
                let places = [("v4", v4.as_ptr() as usize), ("v6", v6.as_ptr() as usize)];
                fields.into_iter().chain(places).for_each(|(name, value)| {
                    set(find("tatcell_ladder_spec_t"), &mut rungs, name, value);
                });
                let rungs = words(rungs);
                let (table, _) = self.good_table();
                must("tatcell_ladder_init", &[to, table, spec.as_ptr() as usize, rungs.as_ptr() as usize]);
            }
            "tatcell_prepared_chain_t" => {
                // A key and a cell.
                let (chain, link) = (find("tatcell_chain_t"), find("tatcell_link_t"));
                let (table, limit) = self.good_table();
                let limit = self.place(&limit, 8, false);
                let plain = self.limit_of_cells();
                let (plain, cell) = (self.place(&plain, 8, false), self.place(&[0; 8], 8, true));
                let mut links = vec![0; 2 * link.size];
                let (first, second) = links.split_at_mut(link.size);
                set(link, first, "table", table);
                set(link, first, "limit", limit);
                set(link, second, "cell", cell);
                set(link, second, "limit", plain);
                let links = words(links);
                let mut bytes = vec![0; chain.size];
                let fields = [("size", chain.size), ("count", 2), ("link_size", link.size)];
                fields.into_iter().chain([("links", links.as_ptr() as usize)]).for_each(|(name, value)| {
                    set(chain, &mut bytes, name, value);
                });
                let bytes = words(bytes);
                must("tatcell_prepared_chain_init", &[to, bytes.as_ptr() as usize]);
            }
            "tatcell_shaper_t" => {
                let bytes = self.ask("tatcell_shaper_bytes", &[64, 8]) as usize;
                let memory = self.place(&vec![0; bytes], 8, true);
                must("tatcell_shaper_init", &[to, memory, bytes, 64, 1 << 10, 1_000_000_000]);
                let waiting = words(self.content(find("tatcell_waiting_t"), false));
                must("tatcell_shaper_insert", &[to, 1_000_000_000, waiting.as_ptr() as usize]);
            }
            "tatcell_leaky_queue_t" => {
                let bytes = self.ask("tatcell_leaky_queue_bytes", &[8]) as usize;
                let memory = self.place(&vec![0; bytes], 8, true);
                let limit = words(self.limit_of_cells());
                must(
                    "tatcell_leaky_queue_init",
                    &[to, memory, bytes, limit.as_ptr() as usize, 1_000_000_000],
                );
            }
            // Zero is one.
            "tatcell_lease_t" | "tatcell_sweeper_t" => {}
            other => panic!("how is {other} made?"),
        }
        let made: Vec<u8> = own.iter().flat_map(|word| word.to_ne_bytes()).collect();
        bytes.copy_from_slice(&made);
    }

    fn limit_of_cells(&mut self) -> Vec<u8> {
        let mut limit = vec![0u64; find("tatcell_limit_t").size / 8];
        let spec = words(self.content(find("tatcell_limit_spec_t"), false));
        must("tatcell_limit_init_spec", &[limit.as_mut_ptr() as usize, spec.as_ptr() as usize]);
        limit.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    /// What a structure points to, and the lengths of that.
    pub(super) fn references(&mut self, record: &'static Record, bytes: &mut [u8]) {
        let limit = |world: &mut Self| {
            let at = world.place_limit();
            world.bend(at, 8, true)
        };
        let fields: Vec<(&str, usize)> = match record.name {
            "tatcell_table_options_t" => {
                let seed = self.place(&SEED, 1, false);
                let fastest = self.object(find("tatcell_limit_spec_t"), false);
                let slowest =
                    if self.data.flag() { self.object(find("tatcell_limit_spec_t"), false) } else { 0 };
                vec![("seed", self.bend(seed, 1, true)), ("fastest", fastest), ("slowest", slowest)]
            }
            "tatcell_attach_options_t" => {
                let seed = self.place(&SEED, 1, false);
                vec![("seed", self.bend(seed, 1, true))]
            }
            "tatcell_mark_t" => vec![("kind", 2698), ("committed", limit(self)), ("second", limit(self))],
            "tatcell_ladder_spec_t" => {
                let rungs = |world: &mut Self, bits: [u32; 2]| {
                    let bytes: Vec<u8> =
                        bits.iter().flat_map(|b| [*b, 1]).flat_map(u32::to_ne_bytes).collect();
                    let at = world.place(&bytes, 4, false);
                    world.bend(at, 4, true)
                };
                let (v4, v6) = (rungs(self, [32, 24]), rungs(self, [128, 64]));
                vec![("v4_count", 2), ("v6_count", 2), ("v4", v4), ("v6", v6)]
            }
            "tatcell_prefix_lengths_t" => {
                let lengths = |world: &mut Self, bits: [u8; 2]| {
                    let at = world.place(&bits, 1, false);
                    world.bend(at, 1, true)
                };
                let (v4, v6) = (lengths(self, [24, 32]), lengths(self, [128, 64]));
                vec![("v4_count", 2), ("v6_count", 2), ("v4", v4), ("v6", v6)]
            }
            "tatcell_http_policy_t" => {
                let (name, unit) =
                    (self.place(b"per-second\0", 1, false), self.place(b"requests\0", 1, false));
                let partition = self.place(b"10.0.0.1", 1, false);
                let decision = find("tatcell_decision_t");
                let content = self.content(decision, false);
                let decision = self.place(&content, 8, false);
                let partition_len = if self.data.rarely() { 1 << 63 | self.data.word() as usize } else { 8 };
                vec![
                    ("name", self.bend(name, 1, true)),
                    ("unit", self.bend(unit, 1, true)),
                    ("partition", self.bend(partition, 1, true)),
                    ("partition_len", partition_len),
                    ("limit", limit(self)),
                    ("decision", self.bend(decision, 8, true)),
                ]
            }
            "tatcell_metrics_t" => {
                let name = self.place(b"pages \"1\"\0", 1, false);
                let counters = self.place(&[1; 128], 8, false);
                let (stats, info) = (find("tatcell_stats_t"), find("tatcell_table_info_t"));
                let content = [self.content(stats, false), self.content(info, false)];
                let [stats, info] = content.map(|bytes| self.place(&bytes, 8, false));
                let name_len = if self.data.rarely() { 1 << 63 | self.data.word() as usize } else { 0 };
                vec![
                    ("name", self.bend(name, 1, true)),
                    ("name_len", name_len),
                    ("counters", self.bend(counters, 8, true)),
                    ("stats", self.bend(stats, 8, true)),
                    ("info", self.bend(info, 8, true)),
                ]
            }
            "tatcell_link_t" => self.link(),
            "tatcell_chain_t" => self.chain(),
            "tatcell_chain_burst_t" => self.requests(),
            "tatcell_ladder_burst_t" => self.addresses(),
            "tatcell_burst_t" => self.burst(),
            // Numbers only, and results.
            _ => Vec::new(),
        };
        fields.into_iter().for_each(|(name, value)| set(record, bytes, name, value));
    }

    fn place_limit(&mut self) -> usize {
        let limit = self.limit();
        self.place(&limit, 8, false)
    }

    /// A link to a cell, or to a key of the table.
    fn link(&mut self) -> Vec<(&'static str, usize)> {
        if self.data.flag() {
            let (table, limit) = self.good_table();
            let (limit, key) = (self.place(&limit, 8, false), self.place(b"a key", 1, false));
            let key_len = if self.data.rarely() { 1 << 63 | self.data.word() as usize } else { 5 };
            return vec![
                ("cost", 1),
                ("limit", self.bend(limit, 8, true)),
                ("table", self.bend(table, 8, true)),
                ("key", self.bend(key, 1, true)),
                ("key_len", key_len),
            ];
        }
        let (limit, cell) = (self.limit_of_cells(), self.place(&[0; 8], 8, true));
        let limit = self.place(&limit, 8, false);
        vec![("cost", 1), ("limit", self.bend(limit, 8, true)), ("cell", self.bend(cell, 8, true))]
    }

    /// Two links, and places for what they say.
    fn chain(&mut self) -> Vec<(&'static str, usize)> {
        let (link, decision) = (find("tatcell_link_t"), find("tatcell_decision_t"));
        let links: Vec<u8> = (0..2).flat_map(|_| self.content(link, false)).collect();
        let links = self.place(&links, 8, false);
        let permits = self.place(&[0; 2 * 64], 8, true);
        let decisions: Vec<u8> = (0..2).flat_map(|_| self.content(decision, false)).collect();
        let (decisions, counters) = (self.place(&decisions, 8, true), self.place(&[0; 128], 8, true));
        let of_links = self.place(&[0; 2 * 128], 8, true);
        let count = if self.data.rarely() { 9 + self.data.scaled(31) as usize } else { 2 };
        let known =
            [("count", count), ("link_size", self.stride(link.size)), ("links", self.bend(links, 8, true))];
        // Nothing is told of a chain that is only prepared.
        if self.function.name == "tatcell_prepared_chain_init" && !self.data.rarely() {
            return known.to_vec();
        }
        let told = vec![
            ("link_counters", self.bend(of_links, 8, true)),
            ("decision_size", self.stride(decision.size)),
            ("permits", self.bend(permits, 8, true)),
            ("decisions", self.bend(decisions, 8, true)),
            ("counters", self.bend(counters, 8, true)),
        ];
        [told, known.to_vec()].concat()
    }

    /// The keys of the two links of a prepared chain, for up to two requests.
    pub(super) fn chain_keys(&mut self) -> usize {
        let record = find("tatcell_chain_key_t");
        let key = self.place(b"one two ", 1, false);
        let key_len = if self.data.rarely() { 1 << 63 | self.data.word() as usize } else { 4 };
        let stride = if self.data.flag() { 4 } else { 0 };
        let mut keys = vec![0; 2 * record.size];
        let (first, _) = keys.split_at_mut(record.size);
        for (name, value) in [("key", self.bend(key, 1, true)), ("key_len", key_len), ("stride", stride)] {
            set(record, first, name, value);
        }
        self.place(&keys, 8, false)
    }

    /// Two requests of a prepared chain, and a place for what is said of them.
    fn requests(&mut self) -> Vec<(&'static str, usize)> {
        let mut fields = vec![("count", 2), ("now", 1_000_000_000)];
        let kind = self.data.byte();
        let (name, given) = match kind & 1 {
            0 => ("keys", self.chain_keys()),
            _ => ("hashes", self.place(&[9; 4 * 8], 8, false)),
        };
        fields.push((name, self.bend(given, 8, true)));
        if kind & 2 != 0 {
            let costs = self.place(&[1; 4 * 8], 8, false);
            fields.push(("costs", self.bend(costs, 8, true)));
        }
        if kind & 4 != 0 {
            let retries = self.place(&[0; 2 * 8], 8, true);
            fields.push(("retry_after", self.bend(retries, 8, true)));
        }
        if self.data.rarely() {
            fields[0].1 = 65 + self.data.scaled(31) as usize;
        }
        fields
    }

    /// Two addresses, in one of the ways there are, and places for what is said of them.
    fn addresses(&mut self) -> Vec<(&'static str, usize)> {
        let mut fields = vec![("count", 2), ("now", 1_000_000_000)];
        let kind = self.data.byte();
        let address = self.place(&[192, 0, 2, 1, 198, 51, 100, 1], 1, false);
        if kind & 1 == 0 {
            fields.extend([("addresses", self.bend(address, 1, true)), ("stride", 4), ("address_len", 4)]);
        } else {
            let each: Vec<u8> = [address; 2].into_iter().flat_map(usize::to_ne_bytes).collect();
            let lengths: Vec<u8> =
                [4usize, 4 + (kind as usize & 2)].into_iter().flat_map(usize::to_ne_bytes).collect();
            let pointers = self.place(&each, 8, false);
            fields.extend([("address_pointers", self.bend(pointers, 8, true)), ("stride", 0)]);
            fields.push(("address_lens", self.place(&lengths, 8, false)));
        }
        for (bit, name) in [(4, "costs"), (8, "rooms")] {
            if kind & bit != 0 {
                let units = self.place(&[1, 0, 0, 0, 255, 255, 255, 255], 4, false);
                fields.push((name, self.bend(units, 4, true)));
            }
        }
        for (bit, name, bytes) in
            [(16, "permits", 16 * 64), (32, "counters", 128), (64, "tier_counters", 8 * 128)]
        {
            if kind & bit != 0 {
                let place = self.place(&vec![0; bytes], 8, true);
                fields.push((name, self.bend(place, 8, true)));
            }
        }
        if kind & 128 != 0 {
            let decision = find("tatcell_decision_t");
            let decisions: Vec<u8> = (0..2).flat_map(|_| self.content(decision, false)).collect();
            let decisions = self.place(&decisions, 8, true);
            fields.extend([
                ("decisions", self.bend(decisions, 8, true)),
                ("decision_size", self.stride(decision.size)),
            ]);
        }
        if self.data.rarely() {
            // A table of debts: it is refused.
            let (table, _) = self.good_table();
            let lengths = self.object(find("tatcell_prefix_lengths_t"), false);
            fields.extend([("overrides", self.bend(table, 8, true)), ("lengths", lengths)]);
        }
        if self.data.rarely() {
            fields[0].1 = 65 + self.data.scaled(31) as usize;
        }
        fields
    }

    /// The bytes from one structure to the next, or a number that nothing can have.
    fn stride(&mut self, good: usize) -> usize {
        if self.data.rarely() {
            self.data.pick(&[0, 1, 8, 4, 4104, 1 << 31, u32::MAX as usize, good + 1, good - 1])
        } else {
            good
        }
    }

    /// Three requests, whose keys are given in one of the ways there are.
    fn burst(&mut self) -> Vec<(&'static str, usize)> {
        let limit = self.place_limit();
        let mut fields = vec![("count", 3), ("now", 1_000_000_000)];
        let kind = self.data.byte();
        if kind & 1 == 0 {
            fields.push(("limit", self.bend(limit, 8, true)));
        } else {
            let content: Vec<u8> = [limit; 3].into_iter().flat_map(usize::to_ne_bytes).collect();
            fields.push(("limits", self.place(&content, 8, false)));
        }
        match kind >> 1 & 3 {
            0 => {
                let hashes = self.place(&[7; 24], 8, false);
                fields.push(("hashes", self.bend(hashes, 8, true)));
            }
            1 => {
                let keys = self.place(b"one two tri ", 1, false);
                fields.extend([("keys", self.bend(keys, 1, true)), ("stride", 4), ("key_len", 4)]);
            }
            // Backwards, from the last.
            2 => {
                let keys = self.place(b"one two tri ", 1, false);
                fields.extend([("keys", keys + 8), ("stride", -4isize as usize), ("key_len", 4)]);
            }
            _ => {
                let key = self.place(b"four", 1, false);
                let each: Vec<u8> = [key; 3].into_iter().flat_map(usize::to_ne_bytes).collect();
                let pointers = self.place(&each, 8, false);
                fields.extend([("key_pointers", self.bend(pointers, 8, true)), ("key_len", 4)]);
                if kind & 8 != 0 {
                    let each: Vec<u8> = [4usize, 0, 3].into_iter().flat_map(usize::to_ne_bytes).collect();
                    fields.push(("key_lens", self.place(&each, 8, false)));
                }
            }
        }
        if kind & 16 != 0 {
            let costs = self.place(&[1, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255], 4, false);
            fields.push(("costs", self.bend(costs, 4, true)));
        }
        let decision = find("tatcell_decision_t");
        if kind & 32 != 0 {
            let decisions: Vec<u8> = (0..3).flat_map(|_| self.content(decision, false)).collect();
            let decisions = self.place(&decisions, 8, true);
            fields.extend([
                ("decisions", self.bend(decisions, 8, true)),
                ("decision_size", self.stride(decision.size)),
            ]);
        }
        if kind & 64 != 0 {
            let counters = self.place(&[0; 128], 8, true);
            fields.push(("counters", self.bend(counters, 8, true)));
        }
        if self.data.rarely() {
            fields[0].1 = 65 + self.data.scaled(31) as usize;
        }
        fields
    }
}

/// Bytes in memory that is aligned as structures are.
fn words(bytes: Vec<u8>) -> Vec<u64> {
    bytes.chunks_exact(8).map(|eight| u64::from_ne_bytes(eight.try_into().unwrap_or([0; 8]))).collect()
}

//! Configurations of several limits: a chain, or the tiers of a ladder.

use std::fmt::Write;

use tatcell::{FullPolicy, Ladder, Rung as Tier};

use super::code::rust_prefix;
use super::{head, in_c_comment, rate_and_burst, Emitted, Form, Numbers, Wanted};
use crate::key::KeySpec;
use crate::limit::{Chained, Rung};

/// What is to be done, if it is several limits.
pub struct Several<'a> {
    /// The limits.
    pub limit: &'a Chained,
    /// What they count by.
    pub key: &'a KeySpec,
    /// The field that is the cost of a record, if it is not 1.
    pub cost: Option<&'a str>,
    /// What a full set does.
    pub policy: FullPolicy,
    /// The slots that are enough: of each limit, or of the one table of a ladder.
    pub slots: &'a [u64],
    /// The slots were found by counting one key in this many.
    pub one_in: u64,
}

/// Why a program cannot have several limits.
fn no_chain(form: Form) -> &'static str {
    match form {
        Form::Envoy => "Envoy's service charges each rule by itself, also if another one refuses",
        Form::Haproxy => {
            "HAProxy's script decides one limit a call, and a call cannot give back what it charged"
        }
        Form::Xdp | Form::Dpdk => "the policer has one limit for each source",
        Form::Throttled => {
            "a call of CL.THROTTLE has one limit, and charges it also if the next call is refused"
        }
        Form::Nginx | Form::C | Form::Rust => {
            "it has no ladder: write its tiers as limits with \"and\" between"
        }
    }
}

fn comment(ladder: &[Tier]) -> String {
    ladder.iter().map(|tier| format!("/{} x{}", tier.bits, tier.multiplier)).collect::<Vec<_>>().join(", ")
}

impl Several<'_> {
    /// Writes the configuration.
    pub fn emit(&self, form: Form) -> Result<Emitted, String> {
        let fail = |what: String| format!("--emit {}: {:?}: {what}", form.name(), self.limit.text);
        let text = match (form, &self.limit.ladder) {
            (Form::C, None) => self.c_chain(),
            (Form::C, Some(ladder)) => self.c_ladder(ladder),
            (Form::Rust, None) => self.rust_chain(),
            (Form::Rust, Some(ladder)) => self.rust_ladder(ladder),
            (Form::Nginx, None) => self.nginx_chain(),
            _ => Err(no_chain(form).into()),
        };
        Ok(Emitted { form: form.name(), text: text.map_err(fail)? })
    }

    /// One of the limits, as if it were alone.
    fn alone<'a>(&'a self, rung: &'a Rung, key: &'a KeySpec, at: usize) -> Wanted<'a> {
        let slots = self.slots.get(at).copied().unwrap_or(1024);
        Wanted { limit: &rung.asked, key, cost: self.cost, policy: self.policy, slots, one_in: self.one_in }
    }

    fn policy(&self) -> &'static str {
        self.alone(&self.limit.rungs[0], self.key, 0).policy()
    }

    /// The comment that says where the configuration comes from.
    fn head(&self, comment: &str) -> String {
        head(comment, &self.limit.text, self.key, self.cost, self.one_in)
    }

    /// The lengths of the prefix that each limit counts by, if the key is an address.
    fn lengths(&self) -> Result<Option<Vec<(u8, u8)>>, String> {
        let Some(all) = self.key.prefix() else {
            if self.limit.rungs.iter().all(|rung| rung.lengths.is_none()) {
                return Ok(None);
            }
            let key = self.key.words().join("+");
            return Err(format!("the function takes an address: use --key address, not {key}"));
        };
        Ok(Some(self.limit.rungs.iter().map(|rung| rung.lengths.unwrap_or(all)).collect()))
    }

    fn nginx_chain(&self) -> Result<String, String> {
        let (mut maps, mut zones, mut places) = (String::new(), String::new(), String::new());
        for (at, rung) in self.limit.rungs.iter().enumerate() {
            rate_and_burst(&rung.asked)?;
            let key = match rung.lengths {
                Some(lengths) => self.key.with_lengths(lengths)?,
                None => self.key.clone(),
            };
            let name = if at == 0 { "clients".into() } else { format!("clients{}", at + 1) };
            let zone = self.alone(rung, &key, at).zone(&name, &Numbers::of(&rung.asked)?)?;
            if !maps.contains(&zone.maps) {
                maps += &zone.maps;
            }
            zones += &zone.zone;
            places += &zone.place;
        }
        let count = self.limit.rungs.len();
        let head = self.head("#");
        let how =
            format!("# Include it in http, and put the last {count} lines where the limits are to apply.\n");
        Ok(head + &how + &maps + &zones + &places)
    }

    fn c_chain(&self) -> Result<String, String> {
        let lengths = self.lengths()?;
        let (parameter, cost) = if self.cost.is_some() { (", uint64_t cost", "cost") } else { ("", "1") };
        let key = if lengths.is_some() { "address" } else { "key" };
        let count = self.limit.rungs.len();
        let mut text = format!(
            "/*{} */\n#include <stdint.h>\n#include <tatcell.h>\n\n",
            in_c_comment(self.head("").trim_end())
        );
        for (at, slots) in self.slots.iter().enumerate() {
            let _ = writeln!(
                text,
                "static TATCELL_ALIGNED(64) unsigned char memory{at}[TATCELL_TABLE_BYTES({slots})];"
            );
        }
        let _ = write!(
            text,
            "static tatcell_table_t tables[{count}];\nstatic tatcell_limit_t limits[{count}];\n\
             static tatcell_sweeper_t sweepers[{count}]; /* of the library: each check sweeps what is due */\n\n\
             int32_t limit_start(const uint8_t seed[16]);\n\
             int32_t limit_check(uint64_t now_ns, const void *{key}, size_t length{parameter});\n\n\
             /* The seed is secret: tatcell_host_random makes one. */\n\
             int32_t limit_start(const uint8_t seed[16]) {{\n    \
                 static const uint64_t numbers[{count}][4] = {{\n        \
             /* units, ticks, burst, algorithm; ticks are nanoseconds */\n"
        );
        for rung in &self.limit.rungs {
            let ((units, period, burst), algorithm) = (rung.asked.spec.numbers(), rung.asked.c_algorithm());
            let _ = writeln!(
                text,
                "        {{UINT64_C({units}), UINT64_C({period}), UINT64_C({burst}), {algorithm}}},"
            );
        }
        text += "    };\n";
        let list = |of: &dyn Fn(usize) -> String| (0..count).map(of).collect::<Vec<_>>().join(", ");
        let _ = write!(
            text,
            "    void *const memory[{count}] = {{{}}};\n    \
             const size_t bytes[{count}] = {{{}}};\n    \
             int32_t rc = 0;\n    int i;\n    \
             for (i = 0; i < {count} && rc >= 0; i++) {{\n        \
                 tatcell_limit_spec_t spec = TATCELL_LIMIT_SPEC_INIT;\n        \
                 tatcell_table_options_t options = TATCELL_TABLE_OPTIONS_INIT;\n        \
                 spec.units = numbers[i][0], spec.period = numbers[i][1], spec.burst = numbers[i][2];\n        \
                 spec.algorithm = (uint32_t)numbers[i][3];\n        \
                 options.fastest = &spec, options.seed = seed, options.policy = TATCELL_FULL_{};\n        \
                 rc = tatcell_table_init(&tables[i], memory[i], bytes[i], &options);\n        \
                 if (rc >= 0) rc = tatcell_limit_init_table(&limits[i], &tables[i], &spec);\n    \
             }}\n    return rc;\n}}\n\n",
            list(&|at| format!("memory{at}")),
            list(&|at| format!("sizeof memory{at}")),
            self.policy().to_ascii_uppercase()
        );
        let takes = match lengths {
            Some(_) => "address: 4 or 16 bytes, in network order".into(),
            None => in_c_comment(&self.key.argument()),
        };
        let _ = write!(
            text,
            "/* {}.\n * 0: the request passes; above 0: it does not, and is charged to no limit; below 0: the caller \
             is wrong. Any\n * number of threads. */\n\
             int32_t limit_check(uint64_t now_ns, const void *{key}, size_t length{parameter}) {{\n    \
             tatcell_chain_t chain = TATCELL_CHAIN_INIT;\n    \
             tatcell_link_t links[{count}];\n",
            takes
        );
        if let Some(lengths) = &lengths {
            let bits =
                lengths.iter().map(|(v4, v6)| format!("{{{v4}, {v6}}}")).collect::<Vec<_>>().join(", ");
            let _ = write!(
                text,
                "    static const uint32_t bits[{count}][2] = {{{bits}}}; /* of IPv4, of IPv6 */\n    \
                 uint8_t keys[{count}][TATCELL_PREFIX_KEY_MAX];\n"
            );
        }
        let _ = write!(
            text,
            "    int32_t rc = 0;\n    int i;\n    for (i = 0; i < {count}; i++) {{\n        \
                 const tatcell_link_t link = TATCELL_LINK_INIT;\n        \
                 links[i] = link;\n        \
                 links[i].cost = {cost}, links[i].limit = &limits[i], links[i].table = &tables[i];\n"
        );
        text += match lengths {
            Some(_) => {
                "        rc = tatcell_address_prefix_key(address, length, bits[i][0], bits[i][1], keys[i], \
                 &links[i].key_len);\n        \
                 if (rc < 0) return rc;\n        \
                 links[i].key = keys[i];\n"
            }
            None => "        links[i].key = key, links[i].key_len = length;\n",
        };
        let _ = write!(
            text,
            "        rc = tatcell_table_sweep_due(&tables[i], &sweepers[i], now_ns);\n        \
             if (rc < 0) return rc;\n    }}\n    \
             chain.links = links, chain.count = {count}, chain.link_size = sizeof links[0];\n    \
             return tatcell_chain_check(&chain, now_ns, NULL);\n}}\n"
        );
        Ok(text)
    }

    fn c_ladder(&self, ladder: &Ladder) -> Result<String, String> {
        self.lengths()?;
        let (parameter, cost) = if self.cost.is_some() { (", uint64_t cost", "cost") } else { ("", "1") };
        let tiers = |is_v4| {
            let tiers =
                ladder.rungs(is_v4).iter().map(|tier| format!("{{{}, {}}}", tier.bits, tier.multiplier));
            (ladder.rungs(is_v4).len(), tiers.collect::<Vec<_>>().join(", "))
        };
        let ((v4_count, v4), (v6_count, v6)) = (tiers(true), tiers(false));
        Ok(format!(
            "/*{} */\n\
             #include <stdint.h>\n#include <tatcell.h>\n\n\
             static TATCELL_ALIGNED(64) unsigned char memory[TATCELL_TABLE_BYTES({})];\n\
             static tatcell_table_t table;\nstatic tatcell_ladder_t ladder;\n\
             static tatcell_sweeper_t sweeper; /* of the library: each check sweeps what is due */\n\n\
             int32_t limit_start(const uint8_t seed[16]);\n\
             int32_t limit_check(uint64_t now_ns, const void *address, size_t length{parameter});\n\n\
             /* The seed is secret: tatcell_host_random makes one. */\n\
             int32_t limit_start(const uint8_t seed[16]) {{\n    \
                 /* Lengths of prefixes, and how many times the limit of one address they have. */\n    \
                 static const tatcell_rung_t v4[{v4_count}] = {{{v4}}};\n    \
                 static const tatcell_rung_t v6[{v6_count}] = {{{v6}}};\n    \
                 tatcell_ladder_spec_t rungs = TATCELL_LADDER_SPEC_INIT;\n    \
                 tatcell_limit_spec_t spec = TATCELL_LIMIT_SPEC_INIT;\n    \
                 tatcell_limit_spec_t fastest = TATCELL_LIMIT_SPEC_INIT, slowest = TATCELL_LIMIT_SPEC_INIT;\n    \
                 tatcell_table_options_t options = TATCELL_TABLE_OPTIONS_INIT;\n    \
                 int32_t rc;\n    \
                 rungs.v4 = v4, rungs.v4_count = {v4_count}, rungs.v6 = v6, rungs.v6_count = {v6_count};\n{}    \
                 rc = tatcell_ladder_table_specs(&spec, &rungs, &fastest, &slowest);\n    \
                 if (rc < 0) return rc;\n    \
                 options.fastest = &fastest, options.slowest = &slowest, options.seed = seed;\n    \
                 options.policy = TATCELL_FULL_{};\n    \
                 rc = tatcell_table_init(&table, memory, sizeof memory, &options);\n    \
                 return rc < 0 ? rc : tatcell_ladder_init(&ladder, &table, &spec, &rungs);\n\
             }}\n\n\
             /* address: 4 or 16 bytes, in network order. 0: the request passes; above 0: it does not, and is \
             charged to no\n * tier; below 0: the caller is wrong. Any number of threads. */\n\
             int32_t limit_check(uint64_t now_ns, const void *address, size_t length{parameter}) {{\n    \
                 int32_t rc = tatcell_table_sweep_due(&table, &sweeper, now_ns);\n    \
                 if (rc < 0) return rc;\n    \
                 return tatcell_ladder_check(&ladder, &table, now_ns, address, length, {cost}, NULL, NULL, \
             NULL);\n\
             }}\n",
            in_c_comment(self.head("").trim_end()),
            self.slots.first().copied().unwrap_or(1024),
            self.limit.rungs[0].asked.c_spec(),
            self.policy().to_ascii_uppercase()
        ))
    }

    fn rust_chain(&self) -> Result<String, String> {
        let lengths = self.lengths()?;
        let (parameter, cost) = if self.cost.is_some() { (", cost: u64", "cost") } else { ("", "1") };
        let (key, import) = match lengths {
            Some(_) => ("address: &Address", "Address, "),
            None => ("key: &[u8]", ""),
        };
        let count = self.limit.rungs.len();
        let mut text = format!(
            "{}use tatcell::{{{import}Chain, Decision, FullPolicy, LimitSpec, Line, Link}};\n\
             use tatcell::{{Sweeper, Table, TableError, TableLimit, TableOptions}};\n\n",
            self.head("//")
        );
        for (at, slots) in self.slots.iter().enumerate() {
            let lines = tatcell::lines_for(usize::try_from(*slots).unwrap_or(usize::MAX));
            let _ =
                writeln!(text, "static MEMORY{at}: [Line; {lines}] = [const {{ Line::EMPTY }}; {lines}];");
        }
        let _ = write!(
            text,
            "\n/// A table for each limit; their memory is static.\n\
             pub struct Limited {{\n    each: [(Table<'static>, TableLimit, Sweeper); {count}],\n}}\n\n\
             fn start(\n    memory: &'static [Line],\n    spec: LimitSpec,\n    seed: [u8; 16],\n\
             ) -> Result<(Table<'static>, TableLimit, Sweeper), TableError> {{\n    \
                 let table = Table::init(memory, &TableOptions::new(spec).seed(seed).policy(FullPolicy::{}))?;\n    \
                 let limit = table.limit(&spec)?;\n    Ok((table, limit, Sweeper::new()))\n}}\n\n\
             impl Limited {{\n    \
                 /// Starts with no debts. The seed is secret: `tatcell::host::random_seed` makes one.\n    \
                 pub fn start(seed: [u8; 16]) -> Result<Limited, TableError> {{\n        \
                     // Units, ticks and burst; ticks are nanoseconds.\n        let each = [\n",
            self.alone(&self.limit.rungs[0], self.key, 0).full()
        );
        for (at, rung) in self.limit.rungs.iter().enumerate() {
            let _ = writeln!(text, "            start(&MEMORY{at}, {}, seed)?,", rung.asked.rust_spec());
        }
        let _ = write!(
            text,
            "        ];\n        Ok(Limited {{ each }})\n    }}\n\n    \
                 /// Decides one request: it is charged to all limits, or to none. Any number of threads may ask.\n    \
                 pub fn check(&self, now_ns: u64, {key}{parameter}) -> Result<Decision, TableError> {{\n        \
                     self.each.iter().for_each(|(table, _, sweeper)| sweeper.sweep(table, now_ns));\n        \
                     let [{}] = &self.each;\n        let links = [\n",
            (0..count).map(|at| format!("(t{at}, l{at}, _)")).collect::<Vec<_>>().join(", ")
        );
        for at in 0..count {
            let key = match &lengths {
                // An address has at least as many bits as its prefix, so there is one.
                Some(lengths) => rust_prefix(lengths[at]),
                None => "key".into(),
            };
            let _ = writeln!(text, "            Link::key(t{at}, l{at}, {key}, {cost})?,");
        }
        text += "        ];\n        \
                 // Each limit has a table of its own, so no key has two.\n        \
                 Ok(Chain::new(&links).expect(\"a table for each limit\").check(now_ns))\n    }\n}\n";
        Ok(text)
    }

    fn rust_ladder(&self, ladder: &Ladder) -> Result<String, String> {
        self.lengths()?;
        let (parameter, cost) = if self.cost.is_some() { (", cost: u64", "cost") } else { ("", "1") };
        let lines = tatcell::lines_for(
            usize::try_from(self.slots.first().copied().unwrap_or(1024)).unwrap_or(usize::MAX),
        );
        let tiers = |is_v4| {
            let tiers =
                ladder.rungs(is_v4).iter().map(|tier| format!("tier({}, {})", tier.bits, tier.multiplier));
            tiers.collect::<Vec<_>>().join(", ")
        };
        Ok(format!(
            "{}use tatcell::{{Address, Decision, FullPolicy, Ladder, LadderLimits, LimitSpec}};\n\
             use tatcell::{{Line, Rung, Sweeper, Table, TableError}};\n\n\
             static MEMORY: [Line; {lines}] = [const {{ Line::EMPTY }}; {lines}];\n\n\
             /// A table of all tiers; its memory is static.\n\
             pub struct Limited {{\n    table: Table<'static>,\n    limits: LadderLimits,\n    \
                 sweeper: Sweeper,\n}}\n\n\
             impl Limited {{\n    \
                 /// Starts with no debts. The seed is secret: `tatcell::host::random_seed` makes one.\n    \
                 pub fn start(seed: [u8; 16]) -> Result<Limited, TableError> {{\n        \
                     let tier = |bits, multiplier| Rung {{ bits, multiplier }};\n        \
                     // IPv4: {}. IPv6: {}.\n        \
                     let ladder = Ladder::new(\n            &[{}],\n            &[{}],\n        )\n        \
                     .expect(\"a ladder\");\n        \
                     // Of one address; ticks are nanoseconds.\n        \
                     let spec = {};\n        \
                     let options = ladder.table_options(&spec)?.seed(seed).policy(FullPolicy::{});\n        \
                     let table = Table::init(&MEMORY, &options)?;\n        \
                     let limits = LadderLimits::new(&table, &ladder, &spec)?;\n        \
                     Ok(Limited {{ table, limits, sweeper: Sweeper::new() }})\n    \
                 }}\n\n    \
                 /// Decides one request: it is charged to all tiers of its address, or to none. Any number of \
                 threads.\n    \
                 pub fn check(&self, now_ns: u64, address: &Address{parameter}) -> Result<Decision, TableError> \
                 {{\n        \
                     self.sweeper.sweep(&self.table, now_ns);\n        \
                     self.limits.check(&self.table, now_ns, address, {cost})\n    \
                 }}\n\
             }}\n",
            self.head("//"),
            comment(ladder.rungs(true)),
            comment(ladder.rungs(false)),
            tiers(true),
            tiers(false),
            self.limit.rungs[0].asked.rust_spec(),
            self.alone(&self.limit.rungs[0], self.key, 0).full()
        ))
    }
}

//! Files of C and Rust.

use tatcell::Algorithm;

use super::{in_c_comment, in_comment, Wanted};
use crate::key::KeySpec;
use crate::limit::Asked;

/// What a file says of a limit.
impl Asked {
    /// The name of its algorithm in C.
    pub(super) fn c_algorithm(&self) -> &'static str {
        match self.algorithm() {
            Algorithm::FixedWindow => "TATCELL_ALGORITHM_FIXED_WINDOW",
            Algorithm::SlidingCounter => "TATCELL_ALGORITHM_SLIDING_COUNTER",
            Algorithm::QuotaLinear => "TATCELL_ALGORITHM_QUOTA_LINEAR",
            Algorithm::Decay => "TATCELL_ALGORITHM_DECAY",
            _ => "TATCELL_ALGORITHM_GCRA",
        }
    }

    /// The lines of C that make its specification.
    pub(super) fn c_spec(&self) -> String {
        let (units, period, burst) = self.spec.numbers();
        let algorithm = match self.is_gcra() {
            true => String::new(),
            false => format!("    spec.algorithm = {};\n", self.c_algorithm()),
        };
        format!(
            "    spec.units = UINT64_C({units}), spec.period = UINT64_C({period}); /* ticks are nanoseconds */\n    \
             spec.burst = UINT64_C({burst});\n{algorithm}"
        )
    }

    /// The call of Rust that makes its specification.
    pub(super) fn rust_spec(&self) -> String {
        let (units, period, burst) = self.spec.numbers();
        match self.algorithm() {
            Algorithm::FixedWindow => format!("LimitSpec::fixed_window({units}, {period})"),
            Algorithm::SlidingCounter => format!("LimitSpec::sliding_counter({units}, {period})"),
            Algorithm::QuotaLinear => format!("LimitSpec::quota_linear({units}, {period})"),
            Algorithm::Decay => format!("LimitSpec::decay({units}, {period})"),
            _ => format!("LimitSpec::new({units}, {period}, {burst})"),
        }
    }
}

impl KeySpec {
    /// What the comment of a function says of its key.
    pub(super) fn argument(&self) -> String {
        match self.prefix() {
            Some((32, 128)) => "address: 4 or 16 bytes, in network order".into(),
            Some((v4, v6)) => format!(
                "address: 4 or 16 bytes, in network order; the addresses of a /{v4} of IPv4, or a /{v6} of IPv6, count \
                 as one"
            ),
            None => {
                let key = in_comment(&self.words().join(" and "));
                format!("key: the bytes of {key}, as the caller makes them")
            }
        }
    }
}

/// The prefix of an address, in Rust.
pub(super) fn rust_prefix((v4, v6): (u8, u8)) -> String {
    format!("address.prefix(if address.is_v4() {{ {v4} }} else {{ {v6} }}).as_ref()")
}

impl Wanted<'_> {
    pub(super) fn full(&self) -> String {
        let mut name = self.policy().to_owned();
        name[..1].make_ascii_uppercase();
        name
    }

    pub(super) fn c(&self) -> String {
        let (parameter, cost) = if self.cost.is_some() { (", uint64_t cost", "cost") } else { ("", "1") };
        let (key, check) = match self.key.prefix() {
            Some((v4, v6)) => (
                "address",
                format!(
                    "    uint8_t key[TATCELL_PREFIX_KEY_MAX];\n    size_t key_length = 0;\n    \
                     int32_t rc = tatcell_address_prefix_key(address, length, {v4}, {v6}, key, &key_length);\n    \
                     if (rc >= 0) rc = tatcell_table_sweep_due(&table, &sweeper, now_ns);\n    \
                     return rc < 0 ? rc : tatcell_table_check(&table, &limit, now_ns, key, key_length, {cost}, NULL);\n"
                ),
            ),
            None => (
                "key",
                format!(
                    "    int32_t rc = tatcell_table_sweep_due(&table, &sweeper, now_ns);\n    \
                     return rc < 0 ? rc : tatcell_table_check(&table, &limit, now_ns, key, length, {cost}, NULL);\n"
                ),
            ),
        };
        format!(
            "/*{} */\n\
             #include <stdint.h>\n\
             #include <tatcell.h>\n\n\
             static TATCELL_ALIGNED(64) unsigned char memory[TATCELL_TABLE_BYTES({})];\n\
             static tatcell_table_t table;\n\
             static tatcell_limit_t limit;\n\
             static tatcell_sweeper_t sweeper; /* of the library: each check sweeps what is due */\n\n\
             int32_t limit_start(const uint8_t seed[16]);\n\
             int32_t limit_check(uint64_t now_ns, const void *{key}, size_t length{parameter});\n\n\
             /* The seed is secret: tatcell_host_random makes one. */\n\
             int32_t limit_start(const uint8_t seed[16]) {{\n    \
                 tatcell_limit_spec_t spec = TATCELL_LIMIT_SPEC_INIT;\n    \
                 tatcell_table_options_t options = TATCELL_TABLE_OPTIONS_INIT;\n    \
                 int32_t rc;\n{}    \
                 options.fastest = &spec, options.seed = seed, options.policy = TATCELL_FULL_{};\n    \
                 rc = tatcell_table_init(&table, memory, sizeof memory, &options);\n    \
                 return rc < 0 ? rc : tatcell_limit_init_table(&limit, &table, &spec);\n\
             }}\n\n\
             /* {}.\n * 0: the request passes; above 0: it does not; below 0: the caller is wrong. Any number of \
             threads. */\n\
             int32_t limit_check(uint64_t now_ns, const void *{key}, size_t length{parameter}) {{\n{check}}}\n",
            in_c_comment(self.head("").trim_end()),
            self.slots,
            self.limit.c_spec(),
            self.policy().to_ascii_uppercase(),
            in_c_comment(&self.key.argument())
        )
    }

    pub(super) fn rust(&self) -> String {
        let (parameter, cost) = if self.cost.is_some() { (", cost: u64", "cost") } else { ("", "1") };
        let (import, argument, key) = match self.key.prefix() {
            Some(lengths) => ("Address, ", "address: &Address", rust_prefix(lengths)),
            None => ("", "key: &[u8]", "key".into()),
        };
        let lines = tatcell::lines_for(usize::try_from(self.slots).unwrap_or(usize::MAX));
        format!(
            "{}\
             use tatcell::{{{import}FullPolicy, LimitSpec, Line, Outcome, Sweeper}};\n\
             use tatcell::{{Table, TableError, TableLimit, TableOptions}};\n\n\
             static MEMORY: [Line; {lines}] = [const {{ Line::EMPTY }}; {lines}];\n\n\
             /// A table of one limit; its memory is static.\n\
             pub struct Limited {{\n    table: Table<'static>,\n    limit: TableLimit,\n    sweeper: Sweeper,\n}}\n\n\
             impl Limited {{\n    \
                 /// Starts with no debts. The seed is secret: `tatcell::host::random_seed` makes one.\n    \
                 pub fn start(seed: [u8; 16]) -> Result<Limited, TableError> {{\n        \
                     let spec = {}; // ticks are nanoseconds\n        \
                     let options = TableOptions::new(spec).seed(seed).policy(FullPolicy::{});\n        \
                     let table = Table::init(&MEMORY, &options)?;\n        \
                     Ok(Limited {{ limit: table.limit(&spec)?, table, sweeper: Sweeper::new() }})\n    \
                 }}\n\n    \
                 /// Decides one request, and sweeps what is due. Any number of threads may ask.\n    \
                 ///\n    /// {}.\n    \
                 pub fn check(&self, now_ns: u64, {argument}{parameter}) -> Result<Outcome, TableError> {{\n        \
                     self.sweeper.sweep(&self.table, now_ns);\n        \
                     self.table.check(&self.limit, now_ns, {key}, {cost})\n    \
                 }}\n\
             }}\n",
            self.head("//"),
            self.limit.rust_spec(),
            self.full(),
            self.key.argument().replace("address: 4 or 16 bytes, in network order", "address: of IPv4 or IPv6")
        )
    }
}

//! Files of C and Rust.

use super::Wanted;

impl Wanted<'_> {
    pub(super) fn full(&self) -> String {
        let mut name = self.policy().to_owned();
        name[..1].make_ascii_uppercase();
        name
    }

    pub(super) fn c(&self) -> String {
        let (units, period, burst) = self.limit.spec.numbers();
        let (parameter, cost) = if self.cost.is_some() { (", uint64_t cost", "cost") } else { ("", "1") };
        format!(
            "/*{} */\n\
             #include <stdint.h>\n\
             #include <tatcell.h>\n\n\
             static TATCELL_ALIGNED(64) unsigned char memory[TATCELL_TABLE_BYTES({})];\n\
             static tatcell_table_t table;\n\
             static tatcell_limit_t limit;\n\n\
             int32_t limit_start(const uint8_t seed[16]);\n\
             int32_t limit_check(uint64_t now_ns, const void *key, size_t length{parameter});\n\n\
             /* The seed is secret: tatcell_host_random makes one. */\n\
             int32_t limit_start(const uint8_t seed[16]) {{\n    \
                 tatcell_limit_spec_t spec = TATCELL_LIMIT_SPEC_INIT;\n    \
                 tatcell_table_options_t options = TATCELL_TABLE_OPTIONS_INIT;\n    \
                 int32_t rc;\n    \
                 spec.units = UINT64_C({units}), spec.period = UINT64_C({period}); /* ticks are nanoseconds */\n    \
                 spec.burst = UINT64_C({burst});\n    \
                 options.fastest = &spec, options.seed = seed, options.policy = TATCELL_FULL_{};\n    \
                 rc = tatcell_table_init(&table, memory, sizeof memory, &options);\n    \
                 return rc < 0 ? rc : tatcell_limit_init_table(&limit, &table, &spec);\n\
             }}\n\n\
             /* 0: the request passes; above 0: it does not; below 0: the caller is wrong. Any number of threads. */\n\
             int32_t limit_check(uint64_t now_ns, const void *key, size_t length{parameter}) {{\n    \
                 return tatcell_table_check(&table, &limit, now_ns, key, length, {cost}, NULL);\n\
             }}\n",
            self.head("").trim_end(),
            self.slots,
            self.policy().to_ascii_uppercase()
        )
    }

    pub(super) fn rust(&self) -> String {
        let (units, period, burst) = self.limit.spec.numbers();
        let (parameter, cost) = if self.cost.is_some() { (", cost: u64", "cost") } else { ("", "1") };
        let lines = tatcell::lines_for(usize::try_from(self.slots).unwrap_or(usize::MAX));
        format!(
            "{}\
             use tatcell::{{FullPolicy, LimitSpec, Line, Outcome, Table, TableError, TableLimit, TableOptions}};\n\n\
             static MEMORY: [Line; {lines}] = [const {{ Line::EMPTY }}; {lines}];\n\n\
             /// A table of one limit; its memory is static.\n\
             pub struct Limited {{\n    table: Table<'static>,\n    limit: TableLimit,\n}}\n\n\
             impl Limited {{\n    \
                 /// Starts with no debts. The seed is secret: `tatcell::host::random_seed` makes one.\n    \
                 pub fn start(seed: [u8; 16]) -> Result<Limited, TableError> {{\n        \
                     let spec = LimitSpec::new({units}, {period}, {burst}); // ticks are nanoseconds\n        \
                     let options = TableOptions::new(spec).seed(seed).policy(FullPolicy::{});\n        \
                     let table = Table::init(&MEMORY, &options)?;\n        \
                     Ok(Limited {{ limit: table.limit(&spec)?, table }})\n    \
                 }}\n\n    \
                 /// Decides one request of a key. Any number of threads may ask.\n    \
                 pub fn check(&self, now_ns: u64, key: &[u8]{parameter}) -> Result<Outcome, TableError> {{\n        \
                     self.table.check(&self.limit, now_ns, key, {cost})\n    \
                 }}\n\
             }}\n",
            self.head("//"),
            self.full()
        )
    }
}

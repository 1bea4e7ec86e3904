//! All rows.

use crate::suite::{Suite, Wanted};
use crate::{
    algorithms, capi, capi_chains, capi_floors, cells, costs, cpu, fixtures, floor_words, floors, foreign,
    paced, peers, per_ip, stagger, tables, thread_floors, threads,
};
#[cfg(target_arch = "x86_64")]
use crate::{floor_insert, floor_single};

/// Every row of the bench that is wanted, in the order in which a round visits them.
pub fn all(wanted: Wanted, lib: Option<&str>, cpus: Option<cpu::Cpus>) -> Suite {
    let (mut suite, mut fixtures) = (Suite::new(wanted), fixtures::Fixtures::default());
    floors::add(&mut suite);
    floor_words::add(&mut suite);
    #[cfg(target_arch = "x86_64")]
    {
        floor_single::add(&mut suite);
        floor_insert::add(&mut suite);
    }
    cells::add(&mut suite);
    tables::add(&mut suite, &mut fixtures);
    algorithms::add(&mut suite);
    stagger::add(&mut suite, &mut fixtures);
    costs::add(&mut suite, &mut fixtures);
    capi::add(&mut suite, lib);
    capi_chains::add(&mut suite, lib);
    capi_floors::add(&mut suite);
    peers::add(&mut suite);
    per_ip::add(&mut suite);
    foreign::add(&mut suite);
    threads::add(&mut suite, &mut fixtures, cpus);
    thread_floors::add(&mut suite, cpus);
    paced::add(&mut suite, &mut fixtures, cpus);
    suite
}

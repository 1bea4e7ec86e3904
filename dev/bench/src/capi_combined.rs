//! The C interface of chains and ladders, as the bench calls it: structures, functions, and where a library has them.

use std::ffi::{c_void, CString};
use std::mem::transmute;
use std::ptr::{null, null_mut};

use crate::capi::{Size, Spec};

/// tatcell_link_t, of this release: a shorter one is not decided in place.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Link {
    pub size: u32,
    pub flags: u32,
    pub cost: u64,
    pub extra: u64,
    pub hash: u64,
    pub limit: *const u64,
    pub cell: *mut u64,
    pub cell32: *mut u32,
    pub table: *const u64,
    pub key: *const c_void,
    pub key_len: usize,
    pub room: u64,
}

/// tatcell_chain_t
#[repr(C)]
pub struct Chain {
    pub size: u32,
    pub flags: u32,
    pub count: u32,
    pub link_size: u32,
    pub decision_size: u32,
    pub reserved: u32,
    pub links: *const Link,
    pub permits: *mut c_void,
    pub decisions: *mut c_void,
    pub counters: *mut c_void,
    pub link_counters: *mut c_void,
    pub reserved_pointer: *const c_void,
}

/// tatcell_chain_key_t
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Key {
    pub stride: i64,
    pub key: *const c_void,
    pub key_len: usize,
}

/// tatcell_chain_burst_t
#[derive(Clone, Copy)]
#[repr(C)]
pub struct ChainBurst {
    pub size: u32,
    pub flags: u32,
    pub count: u32,
    pub reserved: u32,
    pub now: u64,
    pub keys: *const Key,
    pub hashes: *const u64,
    pub costs: *const u64,
    pub retry_after: *mut u64,
}

/// tatcell_ladder_burst_t
#[derive(Clone, Copy)]
#[repr(C)]
pub struct LadderBurst {
    pub size: u32,
    pub flags: u32,
    pub count: u32,
    pub decision_size: u32,
    pub now: u64,
    pub stride: i64,
    pub addresses: *const c_void,
    pub address_pointers: *const c_void,
    pub address_lens: *const usize,
    pub address_len: usize,
    pub units: [*const u32; 2],
    pub overrides: *const u64,
    pub lengths: *const Lengths,
    pub told: [*mut c_void; 4],
}

pub type ChainCheck = unsafe extern "C" fn(*const Chain, u64, *mut u64) -> i32;
pub type PreparedInit = unsafe extern "C" fn(*mut u64, *const Chain) -> i32;
pub type PreparedCheck = unsafe extern "C" fn(*const u64, u64, *const Key, *const u64, *mut u64) -> i32;
pub type PreparedBurst = unsafe extern "C" fn(*const u64, *const ChainBurst, *mut u64) -> i32;
pub type LadderMany = unsafe extern "C" fn(*const u64, *const u64, *const LadderBurst, *mut u64) -> i32;
pub type LadderSpecs = unsafe extern "C" fn(*const Spec, *const c_void, *mut Spec, *mut Spec) -> i32;
pub type LadderInit = unsafe extern "C" fn(*mut u64, *const u64, *const Spec, *const c_void) -> i32;
pub type LadderCheck = unsafe extern "C" fn(
    *const u64,
    *const u64,
    u64,
    *const c_void,
    usize,
    u64,
    *mut u64,
    *mut c_void,
    *mut c_void,
) -> i32;

pub type LadderVerdict = unsafe extern "C" fn(
    *const u64,
    *const u64,
    *const u64,
    *const Lengths,
    u64,
    *const c_void,
    usize,
    u64,
) -> i32;
pub type BanAddress = unsafe extern "C" fn(*const u64, u64, *const c_void, usize, u32, u32, u64) -> i32;

/// tatcell_prefix_lengths_t
#[repr(C)]
pub struct Lengths {
    pub size: u32,
    pub flags: u32,
    pub v4_count: u32,
    pub v6_count: u32,
    pub v4: *const u8,
    pub v6: *const u8,
}

#[derive(Clone, Copy)]
pub struct Calls {
    pub chain: ChainCheck,
    pub prepare: PreparedInit,
    pub prepared: PreparedCheck,
    pub chains: PreparedBurst,
    pub prepared_size: Size,
    pub specs: LadderSpecs,
    pub init: LadderInit,
    pub ladder: LadderCheck,
    pub ladders: LadderMany,
    pub verdict: LadderVerdict,
    pub ban: BanAddress,
    pub size: Size,
}

impl Calls {
    pub fn load(path: &str) -> Option<Calls> {
        let path = CString::new(path).ok()?;
        // SAFETY: the library has no constructors, and is loaded already.
        let lib = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
        let find = |name: &str| {
            let name = CString::new(name).ok()?;
            // SAFETY: a handle from dlopen and a terminated name.
            let at = unsafe { libc::dlsym(lib, name.as_ptr()) };
            (!at.is_null()).then_some(at)
        };
        // SAFETY: the types are those of include/tatcell.h.
        unsafe {
            Some(Calls {
                chain: transmute::<*mut c_void, ChainCheck>(find("tatcell_chain_check")?),
                prepare: transmute::<*mut c_void, PreparedInit>(find("tatcell_prepared_chain_init")?),
                prepared: transmute::<*mut c_void, PreparedCheck>(find("tatcell_prepared_chain_check")?),
                chains: transmute::<*mut c_void, PreparedBurst>(find("tatcell_prepared_chain_check_burst")?),
                prepared_size: transmute::<*mut c_void, Size>(find("tatcell_prepared_chain_size")?),
                specs: transmute::<*mut c_void, LadderSpecs>(find("tatcell_ladder_table_specs")?),
                init: transmute::<*mut c_void, LadderInit>(find("tatcell_ladder_init")?),
                ladder: transmute::<*mut c_void, LadderCheck>(find("tatcell_ladder_check")?),
                ladders: transmute::<*mut c_void, LadderMany>(find("tatcell_ladder_check_burst")?),
                verdict: transmute::<*mut c_void, LadderVerdict>(find("tatcell_ladder_verdict")?),
                ban: transmute::<*mut c_void, BanAddress>(find("tatcell_table_ban_address")?),
                size: transmute::<*mut c_void, Size>(find("tatcell_ladder_size")?),
            })
        }
    }
}

/// A chain of these links, of which only the verdict is wanted.
#[inline(always)]
pub fn chain(links: &[Link]) -> Chain {
    Chain {
        size: size_of::<Chain>() as u32,
        flags: 0,
        count: links.len() as u32,
        link_size: size_of::<Link>() as u32,
        decision_size: 0,
        reserved: 0,
        links: links.as_ptr(),
        permits: null_mut(),
        decisions: null_mut(),
        counters: null_mut(),
        link_counters: null_mut(),
        reserved_pointer: null(),
    }
}

//! The same decisions through the shared library, as a C program makes them: one indirect call each. It uses the
//! functions and structures of the header, so it has its own fixtures and steps, which do the same as
//! [`fixtures`](crate::fixtures) and [`steps`](crate::steps).

use std::cell::RefCell;
use std::ffi::{c_void, CString};
use std::mem::{transmute, zeroed};
use std::ptr::null_mut;
use std::rc::Rc;

use crate::cells::{decide, BATCH, CELL, HOT, SPENT, STEADY};
use crate::fixtures::{slots_for, spec, visits, Hashing};
use crate::keys::{key, Stream};
use crate::memory::Memory;
use crate::suite::{Body, Mix, Suite, DT};

/// Keys of the small tables, and of the large one.
const FEW: u32 = 1_000;
const MANY: u32 = 1_000_000;
/// TATCELL_TABLE_EXCLUSIVE
const EXCLUSIVE: u32 = 1;
/// TATCELL_ALGORITHM_FIXED_WINDOW
const FIXED_WINDOW: u32 = 1;

/// A tatcell_limit_t or tatcell_table_t, as large as the library says that it is.
pub type Object = Box<[u64]>;

/// tatcell_limit_spec_t
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Spec {
    pub size: u32,
    pub flags: u32,
    pub units: u64,
    pub period: u64,
    pub burst: u64,
    pub soft_room_delay_debt: [u64; 4],
    pub penalty: u64,
    pub skew: u64,
    pub resolution: i32,
    pub epoch: u32,
    pub algorithm: u32,
    pub reserved: u32,
    pub phase: u64,
}

/// tatcell_table_options_t
#[repr(C)]
pub struct Options {
    pub size: u32,
    pub flags: u32,
    pub policy: u32,
    pub hash: u32,
    pub tag_bits: u32,
    pub resolution: i32,
    pub fastest: *const Spec,
    pub slowest: *const Spec,
    pub seed: *const [u8; 16],
    pub reserved: *const c_void,
    pub skew: u64,
    pub lifetime: u64,
    pub tick_hz: u64,
    pub guard: u64,
    pub overrides: u64,
}

/// tatcell_burst_t
#[repr(C)]
pub struct Burst {
    size: u32,
    flags: u32,
    count: u32,
    decision_size: u32,
    now: u64,
    pass: u64,
    prepared: u64,
    stride: i64,
    limit: *const u64,
    limits: *const *const u64,
    keys: *const [u8; 16],
    key_pointers: *const *const c_void,
    hashes: *const u64,
    key_lens: *const usize,
    key_len: usize,
    costs: *const u32,
    decisions: *mut c_void,
    counters: *mut c_void,
    scratch: [u64; 64],
}

pub type Size = unsafe extern "C" fn() -> usize;
pub type LimitInit = unsafe extern "C" fn(*mut u64, u64, u64, u64) -> i32;
pub type CellCheck = unsafe extern "C" fn(*mut u64, *const u64, u64, u64, *mut u64) -> i32;
pub type LeaseCheck = unsafe extern "C" fn(*mut u64, *mut u64, *const u64, u64, u64, *mut u64) -> i32;
pub type TableInit = unsafe extern "C" fn(*mut u64, *mut c_void, usize, *const Options) -> i32;
pub type TableLimit = unsafe extern "C" fn(*mut u64, *const u64, *const Spec) -> i32;
pub type TableCheck =
    unsafe extern "C" fn(*const u64, *const u64, u64, *const c_void, usize, u64, *mut u64) -> i32;
pub type CheckHash = unsafe extern "C" fn(*const u64, *const u64, u64, u64, u64, *mut u64) -> i32;
pub type CheckBurst = unsafe extern "C" fn(*const u64, *mut Burst, *mut Burst) -> i32;

#[derive(Clone, Copy)]
pub struct Library {
    pub limit_size: Size,
    pub handle_size: Size,
    pub limit_init: LimitInit,
    pub cell_check: CellCheck,
    pub cell_check_exclusive: CellCheck,
    pub lease_check: LeaseCheck,
    pub table_init: TableInit,
    pub table_limit: TableLimit,
    pub table_check: TableCheck,
    pub check_hash: CheckHash,
    pub burst: CheckBurst,
}

impl Library {
    pub fn object(size: Size) -> Object {
        // SAFETY: it takes nothing and answers a number.
        let bytes = unsafe { size() };
        vec![0; bytes.div_ceil(8)].into()
    }
}

pub fn load(path: &str) -> Option<Library> {
    let path = CString::new(path).ok()?;
    // SAFETY: the library has no constructors.
    let lib = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
    if lib.is_null() {
        return None;
    }
    let find = |name: &str| {
        let name = CString::new(name).ok()?;
        // SAFETY: a handle from dlopen and a terminated name.
        let at = unsafe { libc::dlsym(lib, name.as_ptr()) };
        (!at.is_null()).then_some(at)
    };
    // SAFETY: the types are those of include/tatcell.h.
    unsafe {
        Some(Library {
            limit_size: transmute::<*mut c_void, Size>(find("tatcell_limit_size")?),
            handle_size: transmute::<*mut c_void, Size>(find("tatcell_table_handle_size")?),
            limit_init: transmute::<*mut c_void, LimitInit>(find("tatcell_limit_init")?),
            cell_check: transmute::<*mut c_void, CellCheck>(find("tatcell_cell_check")?),
            cell_check_exclusive: transmute::<*mut c_void, CellCheck>(find("tatcell_cell_check_exclusive")?),
            lease_check: transmute::<*mut c_void, LeaseCheck>(find("tatcell_lease_check")?),
            table_init: transmute::<*mut c_void, TableInit>(find("tatcell_table_init")?),
            table_limit: transmute::<*mut c_void, TableLimit>(find("tatcell_limit_init_table")?),
            table_check: transmute::<*mut c_void, TableCheck>(find("tatcell_table_check")?),
            check_hash: transmute::<*mut c_void, CheckHash>(find("tatcell_table_check_hash")?),
            burst: transmute::<*mut c_void, CheckBurst>(find("tatcell_table_check_burst")?),
        })
    }
}

pub fn add(suite: &mut Suite, path: Option<&str>) {
    let Some(lib) = path.and_then(load) else {
        suite.skip("c.", "no libtatcell.so (make lib, --lib)");
        return;
    };
    let (check, exclusive) = (lib.cell_check, lib.cell_check_exclusive);
    suite.add("c.conforming", "C, cell, conforming", Mix::Pass, CELL, |_| cell(lib, check, STEADY, 5));
    suite.add("c.denied", "C, cell, denied", Mix::Deny, CELL, |_| cell(lib, check, SPENT, 1));
    suite.add("c.exclusive", "C, exclusive cell, conforming", Mix::Pass, CELL, |_| {
        cell(lib, exclusive, STEADY, 5)
    });
    suite.add("c.lease", "C, lease of 16384 over a cell, conforming", Mix::Pass, CELL, |_| lease(lib));
    let mut add = |id: &str, text: &str, case: Case, step: Step| {
        let text = format!("C, 1e3 keys, {text}");
        suite.add(id, &text, case.mix, visits(FEW), |_| {
            row(&Rc::new(RefCell::new(Fixture::new(lib, FEW, case))), step)
        });
    };
    let pass = Case::new(FEW, Mix::Pass);
    let exclusive = Case { flags: EXCLUSIVE, ..pass };
    let text = "burst of 64, next one in between";
    add("c.single1e3", "single call", pass, single::<16>);
    add("c.ahead32_1e3", "burst of 32, next one in between", pass, ahead::<32>);
    add("c.ahead64_1e3", text, pass, ahead::<64>);
    add("c.ahead64_denied_1e3", &format!("{text}, denied"), Case::new(FEW, Mix::Deny), ahead::<64>);
    add("c.exclusive_ahead64_1e3", &format!("exclusive, {text}"), exclusive, ahead::<64>);
    // Each of the others leaves the shortest path of a check at another place.
    add("c.single4_1e3", "keys of 4 bytes, single call", Case { bytes: 4, ..pass }, single::<4>);
    add("c.single12_1e3", "keys of 12 bytes, single call", Case { bytes: 12, ..pass }, single::<12>);
    add("c.hash_single1e3", "single call by hash", pass, single_hash);
    let sip = Case { hashing: Hashing::Sip, ..pass };
    add("c.sip_single1e3", "SipHash, single call", sip, single::<16>);
    add("c.exclusive_single1e3", "exclusive, single call", exclusive, single::<16>);
    let penalty = pass.limited(Spec { penalty: 5, ..pass.spec });
    add("c.penalty_single1e3", "penalty, single call", penalty, single::<16>);
    // As algorithm1e3.fixed_window: a key asks 1024 times in a window that admits twice as many.
    let (units, period) = (2 << 10, (u64::from(FEW) * DT) << 10);
    let window = pass.limited(Spec { units, period, burst: 0, algorithm: FIXED_WINDOW, ..pass.spec });
    add("c.window_single1e3", "fixed window, single call", window, single::<16>);
    // As churn.single: new keys keep a quarter of the slots busy.
    let period = slots_for(FEW as usize) as u64 / 4 * DT;
    let churn = pass.limited(Spec { period, burst: 1, ..pass.spec });
    add("c.churn1e3", "every key new, single call", churn, new_keys);
    let mut made = None;
    let mut add = |id: &str, text: &str, step: Step| {
        suite.add(id, text, Mix::Pass, visits(MANY), |_| {
            let new = || Rc::new(RefCell::new(Fixture::new(lib, MANY, Case::new(MANY, Mix::Pass))));
            row(made.get_or_insert_with(new), step)
        });
    };
    add("c.single1e6", "C, 1e6 keys, single call", single::<16>);
    add("c.next32", "C, 1e6 keys, burst of 32, next one in between", ahead::<32>);
    add("c.ahead64", "C, 1e6 keys, burst of 64, next one in between", ahead::<64>);
}

fn row(fixture: &Rc<RefCell<Fixture>>, step: Step) -> Body {
    let fixture = fixture.clone();
    Box::new(move |n| step(&mut fixture.borrow_mut(), n))
}

fn cell(lib: Library, check: CellCheck, (units, period, burst): (u64, u64, u64), debt: u32) -> Body {
    let (mut limit, mut word, mut now) = (Library::object(lib.limit_size), Box::new(0u64), DT);
    // SAFETY: every pointer is to a live object of the header's type, here and in the loop.
    unsafe {
        assert_eq!((lib.limit_init)(limit.as_mut_ptr(), units, period, burst), 0);
        for _ in 0..debt {
            check(&mut *word, limit.as_ptr(), now, 1, null_mut());
        }
    }
    Box::new(move |n| {
        let mut retry = 0;
        // SAFETY: as above.
        decide(n, &mut now, DT, |now| unsafe { check(&mut *word, limit.as_ptr(), now, 1, &mut retry) == 0 })
    })
}

/// As `cell.lease`: the lease asks the cell once in 4096 decisions.
fn lease(lib: Library) -> Body {
    let (mut limit, (units, period, burst)) = (Library::object(lib.limit_size), HOT);
    let (mut lease, mut word, mut now) = (Box::new([0u64; 8]), Box::new(0u64), DT);
    // SAFETY: every pointer is to a live object of the header's type, here and in the loop; the batch comes first.
    unsafe {
        assert_eq!((lib.limit_init)(limit.as_mut_ptr(), units, period, burst), 0);
        lease.as_mut_ptr().cast::<u32>().write(BATCH);
    }
    Box::new(move |n| {
        let mut retry = 0;
        // SAFETY: as above.
        decide(n, &mut now, DT, |now| unsafe {
            (lib.lease_check)(lease.as_mut_ptr(), &mut *word, limit.as_ptr(), now, 1, &mut retry) == 0
        })
    })
}

/// What a table is, and how it is asked.
#[derive(Clone, Copy)]
struct Case {
    mix: Mix,
    /// Of the table's options.
    flags: u32,
    hashing: Hashing,
    /// Bytes of a key: the last ones of a key of 16.
    bytes: usize,
    spec: Spec,
}

impl Case {
    fn new(keys: u32, mix: Mix) -> Case {
        let (period, burst) = spec(keys, mix);
        // SAFETY: plain old data with all-zero as "default".
        let spec = Spec { size: size_of::<Spec>() as u32, units: 1, period, burst, ..unsafe { zeroed() } };
        Case { mix, flags: 0, hashing: Hashing::Fast, bytes: 16, spec }
    }

    fn limited(self, spec: Spec) -> Case {
        Case { spec, ..self }
    }
}

type Step = fn(&mut Fixture, u64) -> u64;

struct Fixture {
    lib: Library,
    table: Object,
    limit: Object,
    stream: Stream,
    now: u64,
    /// The last new key.
    fresh: u64,
}

impl Fixture {
    fn new(lib: Library, keys: u32, case: Case) -> Fixture {
        let Case { mix, flags, hashing, bytes: key_len, spec } = case;
        let memory = Memory::new(tatcell::lines_for(slots_for(keys as usize)) * 64);
        let mut fixture = Fixture {
            lib,
            table: Library::object(lib.handle_size),
            limit: Library::object(lib.limit_size),
            stream: Stream::uniform(keys),
            now: 1 << 40,
            fresh: u64::from(keys),
        };
        // SAFETY: plain old data with all-zero as "default"; pointers to live objects of the header's types.
        unsafe {
            let mut options: Options = zeroed();
            (options.size, options.flags) = (size_of::<Options>() as u32, flags);
            options.hash = hashing.kind() as u32;
            options.fastest = &spec;
            options.seed = b"not so secret 16";
            let bytes = memory.lines().len() * 64;
            assert_eq!(
                (lib.table_init)(fixture.table.as_mut_ptr(), memory.as_ptr().cast(), bytes, &options),
                0
            );
            assert_eq!((lib.table_limit)(fixture.limit.as_mut_ptr(), fixture.table.as_ptr(), &spec), 0);
            for id in 0..u64::from(keys) {
                let key = key(id);
                (lib.table_check)(
                    fixture.table.as_ptr(),
                    fixture.limit.as_ptr(),
                    fixture.now,
                    key[16 - key_len..].as_ptr().cast(),
                    key_len,
                    1,
                    null_mut(),
                );
            }
        }
        if mix == Mix::Pass {
            fixture.now += spec.period;
        }
        fixture
    }
}

fn single<const BYTES: usize>(fixture: &mut Fixture, n: u64) -> u64 {
    let Fixture { lib, table, limit, stream, now, .. } = fixture;
    let (table, limit) = (table.as_ptr(), limit.as_ptr());
    let (mut passed, mut retry) = (0, 0);
    let (ids, turn) = stream.take(n as usize);
    for &id in ids {
        *now += DT;
        let key = key(turn.id(id));
        let at = key[16 - BYTES..].as_ptr().cast();
        // SAFETY: pointers to live objects of the header's types, and BYTES bytes of a key.
        let code = unsafe { (lib.table_check)(table, limit, *now, at, BYTES, 1, &mut retry) };
        passed += u64::from(code == 0);
    }
    passed
}

/// As [`single`], for hashes that are the keys.
fn single_hash(fixture: &mut Fixture, n: u64) -> u64 {
    let Fixture { lib, table, limit, stream, now, .. } = fixture;
    let (table, limit) = (table.as_ptr(), limit.as_ptr());
    let (mut passed, mut retry) = (0, 0);
    let (ids, turn) = stream.take(n as usize);
    for &id in ids {
        *now += DT;
        let hash = turn.id(id).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // SAFETY: pointers to live objects of the header's types.
        passed += u64::from(unsafe { (lib.check_hash)(table, limit, *now, hash, 1, &mut retry) } == 0);
    }
    passed
}

fn new_keys(fixture: &mut Fixture, n: u64) -> u64 {
    let Fixture { lib, table, limit, now, fresh, .. } = fixture;
    let (table, limit) = (table.as_ptr(), limit.as_ptr());
    let (mut passed, mut retry) = (0, 0);
    for _ in 0..n {
        *now += DT;
        *fresh += 1;
        let key = key(*fresh);
        // SAFETY: pointers to live objects of the header's types.
        let code = unsafe { (lib.table_check)(table, limit, *now, key.as_ptr().cast(), 16, 1, &mut retry) };
        passed += u64::from(code == 0);
    }
    passed
}

fn ahead<const K: usize>(fixture: &mut Fixture, n: u64) -> u64 {
    let Fixture { lib, table, limit, stream, now, .. } = fixture;
    let table = table.as_ptr();
    let mut passed = 0;
    let mut keys = [[[0u8; 16]; K]; 2];
    // SAFETY: plain old data with all-zero as "default".
    let mut bursts: [Burst; 2] = std::array::from_fn(|_| unsafe { zeroed() });
    for burst in &mut bursts {
        (burst.size, burst.limit) = (size_of::<Burst>() as u32, limit.as_ptr());
        (burst.key_len, burst.stride) = (16, 16);
    }
    let (ids, turn) = stream.take(n as usize);
    // The first call decides nothing, the last one has nothing next.
    for (turned, ids) in ids.chunks_exact(K).map(Some).chain([None]).enumerate() {
        let [first, second] = &mut bursts;
        let (burst, next) = if turned % 2 == 0 { (first, second) } else { (second, first) };
        let place = &mut keys[turned % 2];
        if let Some(ids) = ids {
            *place = std::array::from_fn(|i| key(turn.id(ids[i])));
        }
        (next.keys, next.count) = (place.as_ptr(), if ids.is_some() { K as u32 } else { 0 });
        *now += DT * u64::from(burst.count);
        burst.now = *now;
        // SAFETY: as above; `count` keys at each.
        let code = unsafe { (lib.burst)(table, burst, next) };
        assert_eq!(code, 0);
        passed += u64::from(if burst.count == 0 { 0 } else { burst.pass.count_ones() });
    }
    passed
}

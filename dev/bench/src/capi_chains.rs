//! Chains and ladders through the shared library, next to the single calls that they replace: the verdict alone, and
//! with the decision. One table for 1e3 clients; every decision takes the next client.

use std::ffi::{c_void, CString};
use std::mem::{transmute, zeroed};
use std::ptr::{null, null_mut};

use crate::capi::{load, Library, Object, Options, Spec};
use crate::fixtures::Hashing;
use crate::keys::key;
use crate::memory::Memory;
use crate::suite::{Body, Mix, Suite, DT};

const CLIENTS: u64 = 1_000;

/// tatcell_link_t, of this release: a shorter one is not decided in place.
#[derive(Clone, Copy)]
#[repr(C)]
struct Link {
    size: u32,
    flags: u32,
    cost: u64,
    extra: u64,
    hash: u64,
    limit: *const u64,
    cell: *mut u64,
    cell32: *mut u32,
    table: *const u64,
    key: *const c_void,
    key_len: usize,
    room: u64,
}

/// tatcell_chain_t
#[repr(C)]
struct Chain {
    size: u32,
    flags: u32,
    count: u32,
    link_size: u32,
    decision_size: u32,
    reserved: u32,
    links: *const Link,
    permits: *mut c_void,
    decisions: *mut c_void,
    counters: *mut c_void,
    link_counters: *mut c_void,
    reserved_pointer: *const c_void,
}

type ChainCheck = unsafe extern "C" fn(*const Chain, u64, *mut u64) -> i32;
type LadderSpecs = unsafe extern "C" fn(*const Spec, *const c_void, *mut Spec, *mut Spec) -> i32;
type LadderInit = unsafe extern "C" fn(*mut u64, *const u64, *const Spec, *const c_void) -> i32;
type LadderCheck = unsafe extern "C" fn(
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

type LadderVerdict = unsafe extern "C" fn(
    *const u64,
    *const u64,
    *const u64,
    *const Lengths,
    u64,
    *const c_void,
    usize,
    u64,
) -> i32;
type BanAddress = unsafe extern "C" fn(*const u64, u64, *const c_void, usize, u32, u32, u64) -> i32;

/// tatcell_prefix_lengths_t
#[repr(C)]
struct Lengths {
    size: u32,
    flags: u32,
    v4_count: u32,
    v6_count: u32,
    v4: *const u8,
    v6: *const u8,
}

/// What a row decides.
#[derive(Clone, Copy)]
enum Form {
    /// So many single calls.
    Singles(usize),
    /// A chain of so many keys.
    Chain(usize),
    /// A chain of so many cells.
    Cells(usize),
    /// All prefixes of an address of so many bytes.
    Ladder(usize),
    /// The same with the decision.
    Told(usize),
    /// All prefixes of an IPv6 address behind a table of overrides that holds so many, none of this address.
    Overrides(usize),
}

pub fn add(suite: &mut Suite, path: Option<&str>) {
    let Some((lib, calls)) = path.and_then(|path| Some((load(path)?, Calls::load(path)?))) else { return };
    for (id, text, mix, form) in [
        ("c.singles2", "two keys, two calls", Mix::Pass, Form::Singles(2)),
        ("c.chain2", "chain of two keys", Mix::Pass, Form::Chain(2)),
        ("c.singles3", "three keys, three calls", Mix::Pass, Form::Singles(3)),
        ("c.chain3", "chain of three keys", Mix::Pass, Form::Chain(3)),
        ("c.chain3_denied", "chain of three keys, denied", Mix::Deny, Form::Chain(3)),
        ("c.chain2_cells", "chain of two cells", Mix::Pass, Form::Cells(2)),
        ("c.chain2_cells_denied", "chain of two cells, denied", Mix::Deny, Form::Cells(2)),
        ("c.ladder4", "ladder, IPv4, 4 prefixes", Mix::Pass, Form::Ladder(4)),
        ("c.ladder4_denied", "ladder, IPv4, 4 prefixes, denied", Mix::Deny, Form::Ladder(4)),
        ("c.ladder6", "ladder, IPv6, 5 prefixes", Mix::Pass, Form::Ladder(16)),
        ("c.ladder6_denied", "ladder, IPv6, 5 prefixes, denied", Mix::Deny, Form::Ladder(16)),
        ("c.ladder6_told", "ladder, IPv6, 5 prefixes, with the decision", Mix::Pass, Form::Told(16)),
        ("c.ladder6_unused", "ladder, IPv6, 5 prefixes, no override stored", Mix::Pass, Form::Overrides(0)),
        (
            "c.ladder6_overrides",
            "ladder, IPv6, 5 prefixes, 3 asked for overrides",
            Mix::Pass,
            Form::Overrides(1),
        ),
    ] {
        let text = format!("C, 1e3 clients, {text}");
        suite.add(id, &text, mix, crate::fixtures::visits(CLIENTS as u32), |_| body(lib, calls, mix, form));
    }
}

#[derive(Clone, Copy)]
struct Calls {
    chain: ChainCheck,
    specs: LadderSpecs,
    init: LadderInit,
    ladder: LadderCheck,
    verdict: LadderVerdict,
    ban: BanAddress,
    size: unsafe extern "C" fn() -> usize,
}

impl Calls {
    fn load(path: &str) -> Option<Calls> {
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
                specs: transmute::<*mut c_void, LadderSpecs>(find("tatcell_ladder_table_specs")?),
                init: transmute::<*mut c_void, LadderInit>(find("tatcell_ladder_init")?),
                ladder: transmute::<*mut c_void, LadderCheck>(find("tatcell_ladder_check")?),
                verdict: transmute::<*mut c_void, LadderVerdict>(find("tatcell_ladder_verdict")?),
                ban: transmute::<*mut c_void, BanAddress>(find("tatcell_table_ban_address")?),
                size: transmute::<*mut c_void, unsafe extern "C" fn() -> usize>(find("tatcell_ladder_size")?),
            })
        }
    }
}

/// An address of a client. Clients share no prefix but the shortest.
fn address(client: u64) -> [u8; 16] {
    let [.., high, low] = client.to_be_bytes();
    [0x20, 1, 0xd, 0xb8, high, low, 0, 0, 0, 0, 0, 0, 0, 0, high, low]
}

fn body(lib: Library, calls: Calls, mix: Mix, form: Form) -> Body {
    let memory = Memory::new(tatcell::lines_for(16_384) * 64);
    // A client has twenty times its share, or one unit that it has used.
    let (period, burst) = if mix == Mix::Pass { (DT * CLIENTS / 20, 32) } else { (DT << 40, 1) };
    let size = size_of::<Spec>() as u32;
    // SAFETY: plain old data with all-zero as "default".
    let spec = Spec { size, units: 1, period, burst, ..unsafe { zeroed() } };
    let [mut fast, mut slow] = [Spec { ..spec }, Spec { ..spec }];
    let (mut table, mut limit, mut plain) =
        (Library::object(lib.handle_size), Library::object(lib.limit_size), Library::object(lib.limit_size));
    let mut ladder: Object = Library::object(calls.size);
    let mut cells: Box<[[u64; 8]; 8]> = Box::new([[0; 8]; 8]);
    // SAFETY: plain old data with all-zero as "default"; pointers to live objects of the header's types, here and
    // below.
    unsafe {
        assert_eq!((calls.specs)(&spec, null(), &mut fast, &mut slow), 0);
        let mut options: Options = std::mem::zeroed();
        (options.size, options.hash) = (size_of::<Options>() as u32, Hashing::Fast.kind() as u32);
        (options.fastest, options.slowest, options.seed) = (&fast, &slow, b"not so secret 16");
        let bytes = memory.lines().len() * 64;
        assert_eq!((lib.table_init)(table.as_mut_ptr(), memory.as_ptr().cast(), bytes, &options), 0);
        assert_eq!((lib.table_limit)(limit.as_mut_ptr(), table.as_ptr(), &spec), 0);
        assert_eq!((calls.init)(ladder.as_mut_ptr(), table.as_ptr(), &spec, null()), 0);
        assert_eq!(
            (lib.limit_init)(plain.as_mut_ptr(), 1, if mix == Mix::Pass { DT / 2 } else { period }, burst),
            0
        );
    }
    let bans = Memory::new(tatcell::lines_for(1_024) * 64);
    let mut banned = Library::object(lib.handle_size);
    // SAFETY: as above.
    unsafe {
        let mut options: Options = std::mem::zeroed();
        (options.size, options.hash) = (size_of::<Options>() as u32, Hashing::Fast.kind() as u32);
        (options.overrides, options.seed) = (1 << 40, b"not so secret 16");
        let bytes = bans.lines().len() * 64;
        assert_eq!((lib.table_init)(banned.as_mut_ptr(), bans.as_ptr().cast(), bytes, &options), 0);
        if matches!(form, Form::Overrides(1)) {
            let (at, other) = (banned.as_ptr(), [9u8; 16]);
            assert_eq!((calls.ban)(at, 1 << 40, other.as_ptr().cast(), 16, 32, 128, 3 << 39), 0);
        }
    }
    let (mut now, mut client) = (1u64 << 40, 0u64);
    let mut decide = move |now: u64, client: u64| {
        let _memory = &memory;
        let keys: [[u8; 16]; 3] = std::array::from_fn(|i| key((client + i as u64 * 333) % CLIENTS));
        let (count, in_cells) = match form {
            Form::Singles(n) => {
                // SAFETY: as above.
                let one = |key: &[u8; 16]| unsafe {
                    (lib.table_check)(
                        table.as_ptr(),
                        limit.as_ptr(),
                        now,
                        key.as_ptr().cast(),
                        16,
                        1,
                        null_mut(),
                    )
                };
                return keys.iter().take(n).all(|key| one(key) == 0);
            }
            Form::Ladder(length) | Form::Told(length) => {
                let whole = address(client);
                let at = if length == 4 { &[10, whole[4], whole[5], 1][..] } else { &whole };
                let mut told = [0u64; 32];
                told[0] = 144;
                let out = if matches!(form, Form::Told(_)) { told.as_mut_ptr() } else { null_mut() };
                let (ladder, table, none) = (ladder.as_ptr(), table.as_ptr(), null_mut());
                // SAFETY: as above.
                let code = unsafe {
                    (calls.ladder)(ladder, table, now, at.as_ptr().cast(), length, 1, out, none, none)
                };
                return code == 0;
            }
            Form::Overrides(_) => {
                let (_bans, whole) = (&bans, address(client));
                let (v4, v6) = ([32u8, 24, 16], [128u8, 64, 48]);
                let size = size_of::<Lengths>() as u32;
                let asked =
                    Lengths { size, flags: 0, v4_count: 3, v6_count: 3, v4: v4.as_ptr(), v6: v6.as_ptr() };
                let (ladder, table, at) = (ladder.as_ptr(), table.as_ptr(), whole.as_ptr().cast());
                // SAFETY: as above.
                let code = unsafe { (calls.verdict)(ladder, table, banned.as_ptr(), &asked, now, at, 16, 1) };
                return code == 0;
            }
            Form::Chain(n) => (n, false),
            Form::Cells(n) => (n, true),
        };
        let links: [Link; 3] = std::array::from_fn(|i| Link {
            size: size_of::<Link>() as u32,
            flags: 0,
            cost: 1,
            extra: 0,
            hash: 0,
            limit: if in_cells { plain.as_ptr() } else { limit.as_ptr() },
            cell: if in_cells { cells[i].as_mut_ptr() } else { null_mut() },
            cell32: null_mut(),
            table: if in_cells { null() } else { table.as_ptr() },
            key: if in_cells { null() } else { keys[i].as_ptr().cast() },
            key_len: if in_cells { 0 } else { 16 },
            room: 0,
        });
        let chain = Chain {
            size: size_of::<Chain>() as u32,
            flags: 0,
            count: count as u32,
            link_size: size_of::<Link>() as u32,
            decision_size: 0,
            reserved: 0,
            links: links.as_ptr(),
            permits: null_mut(),
            decisions: null_mut(),
            counters: null_mut(),
            link_counters: null_mut(),
            reserved_pointer: null(),
        };
        // SAFETY: as above.
        unsafe { (calls.chain)(&chain, now, null_mut()) == 0 }
    };
    // Every client is there, and has used its unit if it is to be denied.
    for client in 0..CLIENTS {
        decide(now, client);
    }
    now += DT * CLIENTS;
    Box::new(move |n| {
        let mut passed = 0;
        for _ in 0..n {
            now += DT * 3;
            client = (client + 1) % CLIENTS;
            passed += u64::from(decide(now, client));
        }
        passed
    })
}

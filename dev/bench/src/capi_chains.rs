//! Chains and ladders through the shared library, next to the single calls that they replace: the verdict alone, and
//! with the decision; chains that are prepared; bursts. One table for all clients; every decision takes the next
//! client.

use std::mem::zeroed;
use std::ptr::{null, null_mut};

use crate::capi::{load, Library, Object, Options, Spec};
use crate::capi_combined::{chain, Calls, ChainBurst, Key, LadderBurst, Lengths, Link};
use crate::fixtures::Hashing;
use crate::keys::key;
use crate::memory::Memory;
use crate::suite::{Body, Mix, Suite, DT};

/// Clients of the small table, and of the large ones with their slots: five prefixes of each find room.
const CLIENTS: u64 = 1_000;
const LARGE: [(&str, u64, usize); 2] = [("1e5", 100_000, 1 << 20), ("1e6", 1_000_000, 1 << 23)];
/// Requests of a burst.
const BURST: usize = 32;

/// What a row decides.
#[derive(Clone, Copy)]
enum Form {
    /// So many single calls with keys.
    Singles(usize),
    /// The same with cells.
    SingleCells(usize),
    /// A chain of this number of keys.
    Chain(usize),
    /// A chain of this number of cells.
    Cells(usize),
    /// The same two, prepared.
    Prepared(usize),
    PreparedCells(usize),
    /// A key and a cell: two calls, a chain, a prepared chain.
    SinglesMixed,
    Mixed,
    PreparedMixed,
    /// A burst of requests of a prepared chain of this number of keys.
    Chains(usize),
    /// All prefixes of an address of this number of bytes.
    Ladder(usize),
    /// The same with the decision.
    Told(usize),
    /// A burst of such addresses.
    Ladders(usize),
    /// All prefixes of an IPv6 address, of which the shortest is used up by others.
    UsedUp,
    /// All prefixes of an IPv6 address, by the call that may ask overrides and has none.
    Verdict,
    /// The same behind a table of overrides that holds so many, none of this address; and a burst of them.
    Overrides(usize),
    LaddersBehind(usize),
}

use Form::{
    Cells, Chains, Ladders, LaddersBehind, Mixed, Prepared, PreparedCells, PreparedMixed, SingleCells,
    Singles, SinglesMixed, Told, UsedUp,
};

/// The first link that is a cell, if any is.
fn first_cell(form: Form) -> usize {
    match form {
        Cells(_) | PreparedCells(_) => 0,
        Mixed | PreparedMixed => 1,
        _ => usize::MAX,
    }
}

/// Requests that one call decides.
fn step(form: Form) -> u64 {
    match form {
        Chains(_) | Ladders(_) | LaddersBehind(_) => BURST as u64,
        _ => 1,
    }
}

pub fn add(suite: &mut Suite, path: Option<&str>) {
    let Some((lib, calls)) = path.and_then(|path| Some((load(path)?, Calls::load(path)?))) else { return };
    for (id, text, mix, form) in [
        ("c.singles2", "two keys, two calls", Mix::Pass, Singles(2)),
        ("c.chain2", "chain of two keys", Mix::Pass, Form::Chain(2)),
        ("c.prepared2", "prepared chain of two keys", Mix::Pass, Prepared(2)),
        ("c.chains2", "prepared chain of two keys, burst of 32", Mix::Pass, Chains(2)),
        ("c.singles3", "three keys, three calls", Mix::Pass, Singles(3)),
        ("c.singles3_denied", "three keys, three calls, denied", Mix::Deny, Singles(3)),
        ("c.chain3", "chain of three keys", Mix::Pass, Form::Chain(3)),
        ("c.prepared3", "prepared chain of three keys", Mix::Pass, Prepared(3)),
        ("c.singles3_cells_denied", "three cells, three calls, denied", Mix::Deny, SingleCells(3)),
        ("c.singles2_cells", "two cells, two calls", Mix::Pass, SingleCells(2)),
        ("c.singles2_cells_denied", "two cells, two calls, denied", Mix::Deny, SingleCells(2)),
        ("c.chain2_cells", "chain of two cells", Mix::Pass, Cells(2)),
        ("c.prepared2_cells", "prepared chain of two cells", Mix::Pass, PreparedCells(2)),
        ("c.singles2_mixed", "a key and a cell, two calls", Mix::Pass, SinglesMixed),
        ("c.chain2_mixed", "chain of a key and a cell", Mix::Pass, Mixed),
        ("c.prepared2_mixed", "prepared chain of a key and a cell", Mix::Pass, PreparedMixed),
        ("c.singles4", "four keys, four calls", Mix::Pass, Singles(4)),
        ("c.singles5", "five keys, five calls", Mix::Pass, Singles(5)),
        ("c.ladder4", "ladder, IPv4, 4 prefixes", Mix::Pass, Form::Ladder(4)),
        ("c.ladder4_denied", "ladder, IPv4, 4 prefixes, denied", Mix::Deny, Form::Ladder(4)),
        ("c.ladder6", "ladder, IPv6, 5 prefixes", Mix::Pass, Form::Ladder(16)),
        ("c.ladder6_denied", "ladder, IPv6, 5 prefixes, first denies", Mix::Deny, Form::Ladder(16)),
        ("c.ladder6_denied5", "ladder, IPv6, 5 prefixes, last denies", Mix::Deny, UsedUp),
        ("c.ladder6_told", "ladder, IPv6, 5 prefixes, with the decision", Mix::Pass, Told(16)),
        ("c.ladder6_verdict", "ladder, IPv6, 5 prefixes, verdict call", Mix::Pass, Form::Verdict),
        ("c.ladder6_unused", "ladder, IPv6, no override stored", Mix::Pass, Form::Overrides(0)),
        ("c.ladder6_overrides", "ladder, IPv6, 3 asked for overrides", Mix::Pass, Form::Overrides(1)),
        ("c.ladders6", "ladder, IPv6, 5 prefixes, burst of 32", Mix::Pass, Ladders(16)),
        ("c.ladders6_unused", "ladder, IPv6, 32, no override stored", Mix::Pass, LaddersBehind(0)),
        ("c.ladders6_overrides", "ladder, IPv6, 32, 3 asked for overrides", Mix::Pass, LaddersBehind(1)),
    ] {
        let text = format!("C, 1e3 clients, {text}");
        let visits = crate::fixtures::visits(CLIENTS as u32);
        suite.add(id, &text, mix, visits, |_| body(lib, calls, mix, form, None, (CLIENTS, 16_384)));
    }
    for (id, text, form, count) in [
        ("c.chain3", "chain of three keys", Form::Chain(3), 3),
        ("c.prepared3", "prepared chain of three keys", Prepared(3), 3),
        ("c.chain2_cells", "chain of two cells", Cells(2), 2),
        ("c.chain3_cells", "chain of three cells", Cells(3), 3),
        ("c.prepared2_cells", "prepared chain of two cells", PreparedCells(2), 2),
        ("c.prepared3_cells", "prepared chain of three cells", PreparedCells(3), 3),
    ] {
        // The first row's name has no number.
        for denies in 0..count {
            let number = if denies == 0 { String::new() } else { (denies + 1).to_string() };
            let id = format!("{id}_denied{number}");
            let text = format!("C, 1e3 clients, {text}, link {} denies", denies + 1);
            let visits = crate::fixtures::visits(CLIENTS as u32);
            suite.add(&id, &text, Mix::Deny, visits, |_| {
                body(lib, calls, Mix::Deny, form, Some(denies), (CLIENTS, 16_384))
            });
        }
    }
    for (name, clients, slots) in LARGE {
        for (id, text, mix, form) in [
            ("c.singles2", "two keys, two calls", Mix::Pass, Singles(2)),
            ("c.chain2", "chain of two keys", Mix::Pass, Form::Chain(2)),
            ("c.prepared2", "prepared chain of two keys", Mix::Pass, Prepared(2)),
            ("c.chains2", "prepared chain of two keys, burst of 32", Mix::Pass, Chains(2)),
            ("c.singles3", "three keys, three calls", Mix::Pass, Singles(3)),
            ("c.singles3_denied", "three keys, three calls, denied", Mix::Deny, Singles(3)),
            ("c.chain3", "chain of three keys", Mix::Pass, Form::Chain(3)),
            ("c.prepared3", "prepared chain of three keys", Mix::Pass, Prepared(3)),
            ("c.singles2_mixed", "a key and a cell, two calls", Mix::Pass, SinglesMixed),
            ("c.chain2_mixed", "chain of a key and a cell", Mix::Pass, Mixed),
            ("c.prepared2_mixed", "prepared chain of a key and a cell", Mix::Pass, PreparedMixed),
            ("c.singles4", "four keys, four calls", Mix::Pass, Singles(4)),
            ("c.singles5", "five keys, five calls", Mix::Pass, Singles(5)),
            ("c.ladder4", "ladder, IPv4, 4 prefixes", Mix::Pass, Form::Ladder(4)),
            ("c.ladder6", "ladder, IPv6, 5 prefixes", Mix::Pass, Form::Ladder(16)),
            ("c.ladder6_denied", "ladder, IPv6, 5 prefixes, denied", Mix::Deny, Form::Ladder(16)),
            ("c.ladder6_told", "ladder, IPv6, 5 prefixes, with the decision", Mix::Pass, Told(16)),
            ("c.ladders6", "ladder, IPv6, 5 prefixes, burst of 32", Mix::Pass, Ladders(16)),
        ] {
            let (id, text) = (format!("{id}_{name}"), format!("C, {name} clients, {text}"));
            let visits = crate::fixtures::visits(clients as u32);
            suite.add(&id, &text, mix, visits, |_| body(lib, calls, mix, form, None, (clients, slots)));
        }
        for (id, text, form, denies) in [
            ("c.chain3_denied", "chain of three keys, link 1 denies", Form::Chain(3), 0),
            ("c.chain3_denied2", "chain of three keys, link 2 denies", Form::Chain(3), 1),
            ("c.chain3_denied3", "chain of three keys, link 3 denies", Form::Chain(3), 2),
            ("c.prepared3_denied3", "prepared chain of three keys, link 3 denies", Prepared(3), 2),
        ] {
            let (id, text) = (format!("{id}_{name}"), format!("C, {name} clients, {text}"));
            let visits = crate::fixtures::visits(clients as u32);
            suite.add(&id, &text, Mix::Deny, visits, |_| {
                body(lib, calls, Mix::Deny, form, Some(denies), (clients, slots))
            });
        }
    }
}

/// An address of a client. A thousand clients share no prefix but the shortest; more would exceed its limit, and share
/// none. Where the first prefix is to deny, a thousand share none, either.
fn address(client: u64, apart: bool) -> [u8; 16] {
    let [.., top, high, low] = client.to_be_bytes();
    let [a, b, c, d] = if apart { [0x26, top, high, low] } else { [0x20, 1, 0xd, 0xb8] };
    [a, b, c, d, high, low, 0, 0, 0, 0, 0, 0, 0, 0, high, low]
}

/// Of a chain that is denied, one link denies; without `denies` all of them do.
fn body(
    lib: Library,
    calls: Calls,
    mix: Mix,
    form: Form,
    denies: Option<usize>,
    (clients, slots): (u64, usize),
) -> Body {
    let mut world = World::new(lib, calls, mix, form, denies, (clients, slots));
    let (mut now, mut client) = (1u64 << 40, 0u64);
    let step = step(form);
    // Every client is there, and has used its unit if it is to be denied; or all together have used up what they share.
    for _ in 0..if matches!(form, UsedUp) { 4 } else { 1 } {
        for client in (0..clients).step_by(step as usize) {
            world.decide(now, client);
        }
    }
    now += DT * clients;
    Box::new(move |n| {
        let mut passed = 0;
        for _ in 0..n / step {
            now += DT * 3 * step;
            client = (client + step) % clients;
            passed += world.decide(now, client);
        }
        passed
    })
}

/// Everything that a row decides with.
struct World {
    lib: Library,
    calls: Calls,
    form: Form,
    clients: u64,
    /// Whether clients share no prefix.
    apart: bool,
    /// The only link that denies.
    denies: Option<usize>,
    /// Holds the slots.
    _memory: Memory,
    /// Holds the overrides.
    _bans: Memory,
    table: Object,
    limit: Object,
    plain: Object,
    /// The same two with room for all requests that the row makes.
    loose: Object,
    loose_plain: Object,
    /// The limit of each link: one of these four.
    of_links: [*const u64; 3],
    ladder: Object,
    banned: Object,
    prepared: Object,
    cells: Box<[[u64; 8]; 8]>,
}

impl World {
    fn new(
        lib: Library,
        calls: Calls,
        mix: Mix,
        form: Form,
        denies: Option<usize>,
        (clients, slots): (u64, usize),
    ) -> World {
        let memory = Memory::new(tatcell::lines_for(slots) * 64);
        // A client has twenty times its share, or one unit that it has used. What clients share is used up sooner than
        // what each has alone.
        let (period, burst) = match mix {
            Mix::Pass => (DT * clients / 20, 32),
            _ => (DT << 40, if matches!(form, UsedUp) { 32 } else { 1 }),
        };
        let size = size_of::<Spec>() as u32;
        // SAFETY: plain old data with all-zero as "default".
        let spec = Spec { size, units: 1, period, burst, ..unsafe { zeroed() } };
        let loose_spec = Spec { burst: 32, ..spec };
        let [mut fast, mut slow] = [Spec { ..spec }, Spec { ..spec }];
        let mut world = World {
            lib,
            calls,
            form,
            clients,
            apart: clients > CLIENTS || matches!((form, mix), (Form::Ladder(_), Mix::Deny)),
            denies,
            table: Library::object(lib.handle_size),
            limit: Library::object(lib.limit_size),
            plain: Library::object(lib.limit_size),
            loose: Library::object(lib.limit_size),
            loose_plain: Library::object(lib.limit_size),
            of_links: [null(); 3],
            ladder: Library::object(calls.size),
            banned: Library::object(lib.handle_size),
            prepared: Library::object(calls.prepared_size),
            cells: Box::new([[0; 8]; 8]),
            _memory: memory,
            _bans: Memory::new(tatcell::lines_for(1_024) * 64),
        };
        let World {
            table,
            limit,
            plain,
            loose,
            loose_plain,
            ladder,
            banned,
            _memory: memory,
            _bans: bans,
            ..
        } = &mut world;
        // SAFETY: plain old data with all-zero as "default"; pointers to live objects of the header's types, here and
        // below.
        unsafe {
            assert_eq!((calls.specs)(&loose_spec, null(), &mut fast, &mut slow), 0);
            let mut options: Options = zeroed();
            (options.size, options.hash) = (size_of::<Options>() as u32, Hashing::Fast.kind() as u32);
            (options.fastest, options.slowest, options.seed) = (&fast, &slow, b"not so secret 16");
            let bytes = memory.lines().len() * 64;
            assert_eq!((lib.table_init)(table.as_mut_ptr(), memory.as_ptr().cast(), bytes, &options), 0);
            assert_eq!((lib.table_limit)(limit.as_mut_ptr(), table.as_ptr(), &spec), 0);
            assert_eq!((lib.table_limit)(loose.as_mut_ptr(), table.as_ptr(), &loose_spec), 0);
            assert_eq!((calls.init)(ladder.as_mut_ptr(), table.as_ptr(), &spec, null()), 0);
            let period = if mix == Mix::Pass { DT / 2 } else { period };
            assert_eq!((lib.limit_init)(plain.as_mut_ptr(), 1, period, burst), 0);
            assert_eq!((lib.limit_init)(loose_plain.as_mut_ptr(), 1, period, 32), 0);
            (options.fastest, options.slowest, options.overrides) = (null(), null(), 1 << 40);
            let bytes = bans.lines().len() * 64;
            assert_eq!((lib.table_init)(banned.as_mut_ptr(), bans.as_ptr().cast(), bytes, &options), 0);
            if matches!(form, Form::Overrides(1) | LaddersBehind(1)) {
                let (table, other) = (banned.as_ptr(), [9u8; 16]);
                assert_eq!((calls.ban)(table, 1 << 40, other.as_ptr().cast(), 16, 32, 128, 3 << 39), 0);
            }
        }
        world.of_links = std::array::from_fn(|i| {
            let is_loose = denies.is_some_and(|denies| denies != i);
            let limit = match (i >= first_cell(form), is_loose) {
                (false, false) => &world.limit,
                (false, true) => &world.loose,
                (true, false) => &world.plain,
                (true, true) => &world.loose_plain,
            };
            limit.as_ptr()
        });
        let (links, mixed) = (world.links::<3>(&[[0; 16]; 3]), world.mixed(&[[0; 16]; 3]));
        let prepared = match form {
            Prepared(n) | PreparedCells(n) | Chains(n) => Some(&links[..n]),
            PreparedMixed => Some(&mixed[..]),
            _ => None,
        };
        if let Some(links) = prepared {
            // SAFETY: as above.
            unsafe { assert_eq!((calls.prepare)(world.prepared.as_mut_ptr(), &chain(links)), 0) };
        }
        world
    }

    /// The key that denies is none of the others.
    #[inline(always)]
    fn keys<const N: usize>(&self, client: u64) -> [[u8; 16]; N] {
        std::array::from_fn(|i| {
            let other = if self.denies == Some(i) { 1 << 40 } else { 0 };
            key((client + i as u64 * 333) % self.clients + other)
        })
    }

    #[inline(always)]
    fn links<const N: usize>(&mut self, keys: &[[u8; 16]; 3]) -> [Link; N] {
        let in_cells = matches!(self.form, Cells(_) | PreparedCells(_));
        std::array::from_fn(|i| Link {
            size: size_of::<Link>() as u32,
            flags: 0,
            cost: 1,
            extra: 0,
            hash: 0,
            limit: self.of_links[i],
            cell: if in_cells { self.cells[i].as_mut_ptr() } else { null_mut() },
            cell32: null_mut(),
            table: if in_cells { null() } else { self.table.as_ptr() },
            key: if in_cells { null() } else { keys[i].as_ptr().cast() },
            key_len: if in_cells { 0 } else { 16 },
            room: 0,
        })
    }

    /// A key and a cell.
    #[inline(always)]
    fn mixed(&mut self, keys: &[[u8; 16]; 3]) -> [Link; 2] {
        let [key, cell] = self.links(keys);
        let of_cell = self.cells[1].as_mut_ptr();
        [key, Link { cell: of_cell, table: null(), key: null(), key_len: 0, ..cell }]
    }

    /// Decides one request, or a burst of them, and returns how many pass.
    #[inline(always)]
    fn decide(&mut self, now: u64, client: u64) -> u64 {
        let (lib, calls, none) = (self.lib, self.calls, null_mut());
        let (table, limit, plain) = (self.table.as_ptr(), self.limit.as_ptr(), self.plain.as_ptr());
        // SAFETY: pointers to live objects of the header's types.
        let passes = unsafe {
            match self.form {
                Singles(n) => {
                    let one = |key: &[u8; 16]| {
                        (lib.table_check)(table, limit, now, key.as_ptr().cast(), 16, 1, null_mut()) == 0
                    };
                    // All of them, whatever one says.
                    if n > 3 {
                        self.keys::<5>(client).iter().take(n).fold(true, |all, key| one(key) & all)
                    } else {
                        self.keys::<3>(client).iter().take(n).fold(true, |all, key| one(key) & all)
                    }
                }
                SinglesMixed => {
                    let [key] = self.keys::<1>(client);
                    let one = (lib.table_check)(table, limit, now, key.as_ptr().cast(), 16, 1, null_mut());
                    one | (lib.cell_check)(self.cells[1].as_mut_ptr(), plain, now, 1, null_mut()) == 0
                }
                SingleCells(n) => {
                    let one =
                        |cell: &mut [u64; 8]| (lib.cell_check)(cell.as_mut_ptr(), plain, now, 1, null_mut());
                    self.cells.iter_mut().take(n).fold(true, |all, cell| (one(cell) == 0) & all)
                }
                Form::Ladder(length) | Told(length) => {
                    let whole = address(client, self.apart);
                    let at = if length == 4 {
                        &[10 ^ (client >> 16) as u8, whole[4], whole[5], 1][..]
                    } else {
                        &whole
                    };
                    let mut told = [0u64; 32];
                    told[0] = 160; // sizeof(tatcell_decision_t)
                    let out = if matches!(self.form, Told(_)) { told.as_mut_ptr() } else { none };
                    let (ladder, none) = (self.ladder.as_ptr(), null_mut());
                    (calls.ladder)(ladder, table, now, at.as_ptr().cast(), length, 1, out, none, none) == 0
                }
                UsedUp => {
                    let (at, ladder, none) = (address(client, false), self.ladder.as_ptr(), null_mut());
                    (calls.ladder)(ladder, table, now, at.as_ptr().cast(), 16, 1, null_mut(), none, none) == 0
                }
                Form::Verdict => self.verdict(now, client, null(), null()),
                Form::Overrides(_) => self.behind_overrides(now, client),
                Mixed => {
                    let keys = self.keys(client);
                    (calls.chain)(&chain(&self.mixed(&keys)), now, null_mut()) == 0
                }
                Form::Chain(2) | Cells(2) => {
                    let keys = self.keys(client);
                    (calls.chain)(&chain(&self.links::<2>(&keys)), now, null_mut()) == 0
                }
                Form::Chain(_) | Cells(_) => {
                    let keys = self.keys(client);
                    (calls.chain)(&chain(&self.links::<3>(&keys)), now, null_mut()) == 0
                }
                Prepared(_) | PreparedMixed => {
                    let keys: [[u8; 16]; 3] = self.keys(client);
                    let one = |key: &[u8; 16]| Key { stride: 0, key: key.as_ptr().cast(), key_len: 16 };
                    let keys = keys.each_ref().map(one);
                    (calls.prepared)(self.prepared.as_ptr(), now, keys.as_ptr(), null(), null_mut()) == 0
                }
                PreparedCells(_) => {
                    let keys = [const { Key { stride: 0, key: null(), key_len: 0 } }; 3];
                    (calls.prepared)(self.prepared.as_ptr(), now, keys.as_ptr(), null(), null_mut()) == 0
                }
                Chains(_) => {
                    let keys: [[[u8; 16]; 3]; BURST] = std::array::from_fn(|i| self.keys(client + i as u64));
                    let stride = size_of_val(&keys[0]) as i64;
                    let first = keys[0].each_ref();
                    let each = first.map(|key| Key { stride, key: key.as_ptr().cast(), key_len: 16 });
                    let mut burst: ChainBurst = zeroed();
                    (burst.size, burst.count) = (size_of::<ChainBurst>() as u32, BURST as u32);
                    (burst.now, burst.keys) = (now, each.as_ptr());
                    let mut pass = 0;
                    assert_eq!((calls.chains)(self.prepared.as_ptr(), &burst, &mut pass), 0);
                    return u64::from(pass.count_ones());
                }
                Ladders(length) => {
                    let at = self.addresses(client);
                    return self.ladders(now, &ladder_burst(&at, length));
                }
                LaddersBehind(_) => {
                    let (v4, v6) = ([32u8, 24, 16], [128u8, 64, 48]);
                    let (lengths, at) = (asked(&v4, &v6), self.addresses(client));
                    let overrides = self.banned.as_ptr();
                    let burst = LadderBurst { overrides, lengths: &lengths, ..ladder_burst(&at, 16) };
                    return self.ladders(now, &burst);
                }
            }
        };
        u64::from(passes)
    }

    #[inline(always)]
    fn addresses(&self, client: u64) -> [[u8; 16]; BURST] {
        std::array::from_fn(|i| address((client + i as u64) % self.clients, self.apart))
    }

    #[inline(always)]
    fn ladders(&self, now: u64, burst: &LadderBurst) -> u64 {
        let (burst, mut pass) = (LadderBurst { now, ..*burst }, 0);
        // SAFETY: pointers to live objects of the header's types.
        let code =
            unsafe { (self.calls.ladders)(self.ladder.as_ptr(), self.table.as_ptr(), &burst, &mut pass) };
        assert_eq!(code, 0);
        u64::from(pass.count_ones())
    }

    /// Out of line, so that the other forms cost what they did.
    #[inline(never)]
    fn verdict(&self, now: u64, client: u64, overrides: *const u64, asked: *const Lengths) -> bool {
        let (whole, ladder, table) = (address(client, self.apart), self.ladder.as_ptr(), self.table.as_ptr());
        // SAFETY: pointers to live objects of the header's types.
        let code = unsafe {
            (self.calls.verdict)(ladder, table, overrides, asked, now, whole.as_ptr().cast(), 16, 1)
        };
        code == 0
    }

    #[inline(never)]
    fn behind_overrides(&self, now: u64, client: u64) -> bool {
        let (v4, v6) = ([32u8, 24, 16], [128u8, 64, 48]);
        self.verdict(now, client, self.banned.as_ptr(), &asked(&v4, &v6))
    }
}

/// Three lengths of each family.
#[inline(always)]
fn asked(v4: &[u8; 3], v6: &[u8; 3]) -> Lengths {
    let size = size_of::<Lengths>() as u32;
    Lengths { size, flags: 0, v4_count: 3, v6_count: 3, v4: v4.as_ptr(), v6: v6.as_ptr() }
}

#[inline(always)]
fn ladder_burst(at: &[[u8; 16]; BURST], length: usize) -> LadderBurst {
    // SAFETY: plain old data with all-zero as "default".
    let mut burst: LadderBurst = unsafe { zeroed() };
    (burst.size, burst.count) = (size_of::<LadderBurst>() as u32, BURST as u32);
    (burst.addresses, burst.stride, burst.address_len) = (at.as_ptr().cast(), 16, length);
    burst
}

//! Peers in C++ and C: a mutex around `std::unordered_map`, and DPDK's meters behind a flow index or `rte_hash`; and
//! our own checks that a C compiler inlines into the caller's loop.
//!
//! They are libraries (`dev/bench/peers`, built by `make -C dev peers`), loaded when one of their rows runs. One call
//! decides a whole visit, with the same keys, limits and time steps. Rows of one limit share a fixture: they take
//! turns, and time stands still in between.

use std::collections::HashMap;
use std::ffi::{c_char, c_void, CStr, CString};
use std::mem::transmute;
use std::ptr::null;

use crate::cells::{CELL, SPENT, STEADY};
use crate::keys::Stream;
use crate::suite::{Body, Mix, Suite, DT};
use crate::tables::{spec, visits, zipf_spec};

/// A library, and what brings the tools to build it.
struct Source {
    name: &'static str,
    file: &'static str,
    package: &'static str,
}

const MAP: Source = Source { name: "C++", file: "libpeer_map.so", package: "g++" };
const DPDK: Source = Source { name: "DPDK", file: "libpeer_dpdk.so", package: "libdpdk-dev" };

const INLINE: Source = Source { name: "C inline", file: "libpeer_inline.so", package: "gcc" };

/// What a keyed row is called, here and in its library, and what the report says.
const KEYED: &[(&Source, &str, &str)] = &[
    (&MAP, "map", "C++, mutex, unordered_map"),
    (&MAP, "map_unlocked", "C++, unordered_map, no mutex"),
    (&DPDK, "hash_srtcm", "DPDK, rte_hash, srTCM"),
    (&DPDK, "hash_srtcm_bulk32", "DPDK, rte_hash bulk of 32, srTCM"),
    (&DPDK, "hash_trtcm_bulk32", "DPDK, rte_hash bulk of 32, trTCM"),
    (&DPDK, "index_srtcm", "DPDK, srTCM, index given"),
    (&DPDK, "index_srtcm_ahead32", "DPDK, srTCM, index given, 32 ahead"),
    (&DPDK, "index_trtcm", "DPDK, trTCM, index given"),
    (&DPDK, "index_trtcm_ahead32", "DPDK, trTCM, index given, 32 ahead"),
];

/// How keys come, and the limit that makes them pass or not.
struct Load {
    /// Before the row's own name.
    id: &'static str,
    text: &'static str,
    stream: fn(u32) -> Stream,
    spec: fn(u32, Mix) -> (u64, u64),
    /// Keys, their name, and whether there are denied rows too.
    sizes: &'static [(u32, &'static str, bool)],
}

const SIZES: &[(u32, &str, bool)] =
    &[(1_000, "1e3", true), (100_000, "1e5", false), (1_000_000, "1e6", true), (10_000_000, "1e7", false)];

const LOADS: &[Load] = &[
    Load { id: "", text: "", stream: Stream::uniform, spec, sizes: SIZES },
    Load {
        id: "zipf_",
        text: "Zipf(1.0), ",
        stream: Stream::zipf,
        spec: |keys, _| zipf_spec(keys),
        sizes: &[(1_000_000, "1e6", false)],
    },
];

type Open = unsafe extern "C" fn(u32, u64, u64, u32) -> *mut c_void;
type Kind = unsafe extern "C" fn(*mut c_void, *const c_char) -> Option<Run>;
type Run = unsafe extern "C" fn(*mut c_void, *const Visit) -> u64;
type Why = unsafe extern "C" fn() -> *const c_char;

/// struct peer_visit
#[repr(C)]
struct Visit {
    ids: *const u32,
    n: u64,
    dt: u64,
    by: u32,
}

/// dev/bench/peers/peer.h
#[derive(Clone, Copy)]
struct Library {
    open: Open,
    kind: Kind,
    why: Why,
}

/// One limit of one library, and how much each key of it owes at first.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Terms {
    keys: u32,
    period: u64,
    burst: u64,
    debt: u32,
}

/// What was loaded and built so far, or why not. Fixtures live as long as the program.
#[derive(Default)]
struct Peers {
    libraries: HashMap<&'static str, Result<Library, String>>,
    fixtures: HashMap<(&'static str, Terms), Result<*mut c_void, String>>,
}

pub fn add(suite: &mut Suite) {
    let mut peers = Peers::default();
    for (id, text, mix, (_, period, burst), debt) in
        [("conforming", "conforming", Mix::Pass, STEADY, 5), ("denied", "denied", Mix::Deny, SPENT, 1)]
    {
        let (id, text) = (format!("peer.srtcm_{id}"), format!("DPDK srTCM, one meter, {text}"));
        let terms = Terms { keys: 1, period, burst, debt };
        row(suite, &mut peers, &DPDK, (&id, &text, mix, CELL), "srtcm", terms, || None);
    }
    for (id, text, kind, mix, (_, period, burst), debt) in [
        ("", "conforming", "shared", Mix::Pass, STEADY, 5),
        ("_denied", "denied", "shared", Mix::Deny, SPENT, 1),
        ("_exclusive", "exclusive, conforming", "exclusive", Mix::Pass, STEADY, 5),
    ] {
        let (id, text) = (format!("c.inline{id}"), format!("C, cell, inline, {text}"));
        let terms = Terms { keys: 1, period, burst, debt };
        row(suite, &mut peers, &INLINE, (&id, &text, mix, CELL), kind, terms, || None);
    }
    for load in LOADS {
        for &(keys, size, denied) in load.sizes {
            keyed(suite, &mut peers, load, (keys, size), Mix::Pass, ("", ""));
            if denied {
                keyed(suite, &mut peers, load, (keys, size), Mix::Deny, ("_denied", ", denied"));
            }
        }
    }
}

/// All keyed rows of one size and limit.
fn keyed(
    suite: &mut Suite,
    peers: &mut Peers,
    load: &Load,
    (keys, size): (u32, &str),
    mix: Mix,
    tail: (&str, &str),
) {
    let (period, burst) = (load.spec)(keys, mix);
    let terms = Terms { keys, period, burst, debt: 1 };
    for (source, kind, text) in KEYED {
        let id = format!("peer{size}.{}{kind}{}", load.id, tail.0);
        let text = format!("{size} keys, {}{text}{}", load.text, tail.1);
        let stream = || Some((load.stream)(keys));
        row(suite, peers, source, (&id, &text, mix, visits(keys)), kind, terms, stream);
    }
}

/// Adds a row if it is wanted and its library can build it; says so if not.
fn row(
    suite: &mut Suite,
    peers: &mut Peers,
    source: &Source,
    (id, text, mix, visits): (&str, &str, Mix, (u64, u64)),
    kind: &str,
    terms: Terms,
    stream: impl FnOnce() -> Option<Stream>,
) {
    if !suite.wants(id) {
        return;
    }
    match peers.run(source, kind, terms) {
        Ok((fixture, run)) => suite.add(id, text, mix, visits, |_| body(fixture, run, stream())),
        Err(why) => {
            suite.absent(id, &why);
            let note =
                if peers.libraries[source.file].is_err() { why } else { format!("{id} skipped: {why}") };
            if !suite.notes.contains(&note) {
                suite.notes.push(note);
            }
        }
    }
}

fn body(fixture: *mut c_void, run: Run, stream: Option<Stream>) -> Body {
    let Some(mut stream) = stream else {
        // SAFETY: the run of a fixture that lives as long as the program; one meter reads no ids.
        return Box::new(move |n| unsafe { run(fixture, &Visit { ids: null(), n, dt: DT, by: 0 }) });
    };
    Box::new(move |n| {
        let (ids, turn) = stream.take(n as usize);
        // Number 0 is moved on to `by`.
        let visit = Visit { ids: ids.as_ptr(), n, dt: DT, by: turn.id(0) as u32 };
        // SAFETY: as above, and the run reads n ids.
        unsafe { run(fixture, &visit) }
    })
}

impl Peers {
    fn run(&mut self, source: &Source, kind: &str, terms: Terms) -> Result<(*mut c_void, Run), String> {
        let library = self.libraries.entry(source.file).or_insert_with(|| load(source)).clone()?;
        // SAFETY: the library returns terminated text that stays.
        let why = || unsafe { CStr::from_ptr((library.why)()) }.to_string_lossy().into_owned();
        let fixture = self.fixtures.entry((source.file, terms)).or_insert_with(|| {
            // SAFETY: any numbers may be given.
            let fixture = unsafe { (library.open)(terms.keys, terms.period, terms.burst, terms.debt) };
            if fixture.is_null() {
                Err(why())
            } else {
                Ok(fixture)
            }
        });
        let (fixture, name) = (fixture.clone()?, CString::new(kind).map_err(|e| e.to_string())?);
        // SAFETY: a fixture of this library and terminated text.
        let run = unsafe { (library.kind)(fixture, name.as_ptr()) };
        Ok((fixture, run.ok_or_else(why)?))
    }
}

/// The library lies in `bench/` beside the directory of this program: target/bench for target/release.
pub fn place(file: &str) -> Option<std::path::PathBuf> {
    let exe = std::env::current_exe().ok()?;
    Some(exe.ancestors().nth(2)?.join("bench").join(file))
}

fn load(source: &Source) -> Result<Library, String> {
    let Source { name, file, package } = source;
    let missing = |why: &str| {
        format!("{name} rows skipped: {file}: {why} (make -C dev peers; Debian package {package})")
    };
    let path = place(file).ok_or_else(|| missing("no place for it is known"))?;
    let path =
        CString::new(path.into_os_string().into_encoded_bytes()).map_err(|e| missing(&e.to_string()))?;
    // SAFETY: the libraries are those of dev/bench/peers; their constructors (DPDK registers itself) need nothing.
    let lib = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
    if lib.is_null() {
        return Err(missing("not there, or not to be loaded"));
    }
    let find = |name: &CStr| {
        // SAFETY: a handle from dlopen and a terminated name.
        let at = unsafe { libc::dlsym(lib, name.as_ptr()) };
        if at.is_null() {
            Err(missing("an older one"))
        } else {
            Ok(at)
        }
    };
    // SAFETY: the types are those of dev/bench/peers/peer.h.
    unsafe {
        Ok(Library {
            open: transmute::<*mut c_void, Open>(find(c"peer_open")?),
            kind: transmute::<*mut c_void, Kind>(find(c"peer_kind")?),
            why: transmute::<*mut c_void, Why>(find(c"peer_why")?),
        })
    }
}

//! What the loom models share: bounds, a small world of words, and the checks when all threads have ended.
//!
//! A model runs the shipped code on atomics that loom controls, with a load of each word for a search. It runs every
//! schedule and every stale value that a load may return, up to its preemption bound. No model here shows more than
//! loom does: loom treats a SeqCst access as acquire and release (fences are exact), reorders no load after a later
//! store (no load buffering), lets a failed swap see only the newest word, never fails a weak swap without cause, and
//! forgets all but the last seven stores of a word. Its own search would leave schedules out; `loom_atomic` says which,
//! and how they are run all the same.
//!
//! `TATCELL_LOOM=long` takes the higher of a model's two bounds, `all` takes none, and a number that number.

use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering as Plain};
use std::sync::Arc;
use std::time::Instant;

use crate::algorithms::{Kind, Op, Operation};
use crate::answer::{Permit, Tracking, Verdict};
use crate::limit::{LimitSpec, TableLimit};
use crate::sync::access::{Access, Shared};
use crate::sync::loom_atomic::spawn;
use crate::sync::{AtomicU64, Ordering};
use crate::table::calls::full_answer::Request;
use crate::table::handle::Table;
use crate::table::layout::fit::{choose, limit};
use crate::table::layout::image::Line;
use crate::table::layout::options::{AttachOptions, TableOptions};
use crate::table::layout::policy::FullPolicy;
use crate::table::layout::word::{Layout, Tag};
use crate::table::set::attempt::Done;
use crate::table::set::set::Set;

/// How many preemptions a schedule may have.
#[derive(Clone, Copy)]
pub(crate) enum Bound {
    /// Any number.
    Exhaustive,
    /// Up to these, in the daily and in the long run (`mk/rust-tests.sh loom`, `loom-long`).
    At(usize, usize),
    /// Up to this in the daily run; any number in the long run.
    First(usize),
}

/// Explores a model and reports how many executions it took.
pub(crate) fn explore(name: &str, bound: Bound, body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    let wish = std::env::var("TATCELL_LOOM").unwrap_or_default();
    builder.preemption_bound = match (wish.as_str(), bound) {
        ("", Bound::Exhaustive) | ("long", Bound::Exhaustive | Bound::First(_)) | ("all", _) => None,
        ("", Bound::First(n) | Bound::At(n, _)) | ("long", Bound::At(_, n)) => Some(n),
        (n, _) => Some(n.parse().expect("TATCELL_LOOM is long, all or a number")),
    };
    builder.max_branches = 10_000;
    let bound = builder.preemption_bound.map_or("exhaustive".into(), |n| std::format!("bound {n}"));
    let report = Report { name, bound, runs: Arc::default(), start: Instant::now() };
    let runs = Arc::clone(&report.runs);
    builder.check(move || {
        runs.fetch_add(1, Plain::Relaxed);
        body();
    });
}

/// Reports how far the search came, also if it ends at a failure.
struct Report<'a> {
    name: &'a str,
    bound: std::string::String,
    runs: Arc<AtomicUsize>,
    start: Instant,
}

impl Drop for Report<'_> {
    fn drop(&mut self) {
        let Report { name, bound, runs, start } = self;
        let (runs, time) = (runs.load(Plain::Relaxed), start.elapsed().as_secs_f32());
        let end = if std::thread::panicking() { ", the last one failed" } else { "" };
        // Bypasses the test harness, which would hold the line back until a test fails.
        let _ = writeln!(std::io::stdout(), "{name}: {bound}, {runs} executions, {time:.1} s{end}");
    }
}

/// Runs two threads, one of them the model's own.
pub(crate) fn race<A: 'static, B: 'static>(
    a: impl FnOnce() -> A + 'static,
    b: impl FnOnce() -> B + 'static,
) -> (A, B) {
    let b = spawn(1, b);
    (a(), b.join().expect("a thread of the model panicked"))
}

/// Runs three threads, one of them the model's own.
pub(crate) fn race3<A: 'static, B: 'static, C: 'static>(
    a: impl FnOnce() -> A + 'static,
    b: impl FnOnce() -> B + 'static,
    c: impl FnOnce() -> C + 'static,
) -> (A, B, C) {
    let c = spawn(2, c);
    let (a, b) = race(a, b);
    (a, b, c.join().expect("a thread of the model panicked"))
}

/// Emission interval of every limit here, q-units (= ticks).
pub(crate) const T: u64 = 4096;
/// The clock of a model. Any value would do, but old words need one far from 0.
pub(crate) const NOW: u64 = 1 << 30;

/// A limit and the layout of its words: what all threads of a model agree on.
#[derive(Clone, Copy)]
pub(crate) struct World {
    pub layout: Layout,
    pub limit: TableLimit,
    pub policy: FullPolicy,
}

impl World {
    /// Makes a world with `burst` units a key and this claim lifetime, in ticks.
    pub fn new(burst: u64, lifetime: u64, policy: FullPolicy) -> World {
        World::of(LimitSpec::new(1, T, burst), lifetime, policy)
    }

    /// Makes a world with any limit; one q-unit, or one unit of time, is a tick.
    pub fn of(spec: LimitSpec, lifetime: u64, policy: FullPolicy) -> World {
        let options = TableOptions::new(spec).caller_hash().resolution(0).claim_lifetime(lifetime);
        let geometry = choose(&options, 4).expect("geometry");
        let limit = limit(&geometry, &spec).expect("limit");
        World { layout: geometry.layout, limit, policy }
    }

    pub fn tag(&self, key: u64) -> Tag {
        self.layout.tag(key)
    }

    /// LIVE(key, tat).
    pub fn live(&self, key: u64, tat: u64) -> u64 {
        self.layout.live(self.tag(key), tat)
    }

    /// Returns what a thread leaves behind that claims an empty slot at `now` and stops there.
    pub fn claim(&self, key: u64, now: u64) -> u64 {
        self.layout.claim_of_reusable(self.tag(key), 0, now)
    }

    /// LIVE(key), expired so long ago that a sweep empties it.
    pub fn expired(&self, key: u64) -> u64 {
        self.live(key, NOW - self.layout.window - 100)
    }

    /// Empties a slot, by its number in address order, as `Table::sweep` does.
    ///
    /// An insert takes an EMPTY slot before an expired one. So threads that scan before and after the sweep choose
    /// different slots: the case that a plain compare-and-swap insert gets wrong.
    pub fn sweep<const N: usize>(&self, slots: &Slots<N>, number: usize, now: u64) {
        let slot = &slots.lines[number / N][number % N];
        // ORDERING: Relaxed; as `Table::sweep`.
        let seen = slot.load(Ordering::Relaxed);
        if self.layout.is_sweepable(seen, now) {
            let _ = Shared::replace(slot, seen, self.layout.swept(now));
        }
    }

    /// Runs one request of one unit, as `Table::check_ex` does; a `Sampled` table samples every request.
    pub fn check<A: Access, const N: usize>(&self, slots: &Slots<N>, key: u64, now: u64) -> Reply {
        let op = Op::new(&self.limit.0, Kind::Check, 1, 0);
        self.run::<A, N>(slots, key, now, &op)
    }

    pub fn run<A: Access, const N: usize>(&self, slots: &Slots<N>, key: u64, now: u64, op: &Op<'_>) -> Reply {
        self.run_as::<A, _, N>(slots, key, now, op)
    }

    /// Runs any operation of any algorithm; the clock is in ticks.
    pub fn run_as<A: Access, O: Operation, const N: usize>(
        &self,
        slots: &Slots<N>,
        key: u64,
        now: u64,
        op: &O,
    ) -> Reply {
        let now_q = self.limit.0.clock_q(now);
        Reply::of(slots.set().run::<A, _>(&self.layout, self.policy, self.tag(key), now_q, op, true))
    }

    /// Counts the LIVE words of a key.
    pub fn lives<const N: usize>(&self, words: [[u64; N]; 2], key: u64) -> usize {
        words.iter().flatten().filter(|w| self.layout.is_live_of(**w, self.tag(key))).count()
    }

    /// Checks, when all threads have ended, that there is at most one LIVE word a key and no claim.
    pub fn assert_settled<const N: usize>(&self, slots: &Slots<N>, keys: &[u64]) -> [[u64; N]; 2] {
        let words = slots.words();
        for key in keys {
            assert!(self.lives(words, *key) <= 1, "two live words of one key: {words:x?}");
            let claims = words.iter().flatten().filter(|w| self.layout.is_claim_of(**w, self.tag(*key)));
            assert_eq!(claims.count(), 0, "a claim was left behind: {words:x?}");
        }
        words
    }
}

/// A set of two lines of `N` slots. `line`: number of the key's home line.
pub(crate) struct Slots<const N: usize> {
    lines: [[AtomicU64; N]; 2],
    line: u32,
}

impl<const N: usize> Slots<N> {
    pub fn new(words: [[u64; N]; 2]) -> Arc<Slots<N>> {
        Arc::new(Slots { lines: words.map(|line| line.map(AtomicU64::new)), line: 0 })
    }

    pub fn odd(words: [[u64; N]; 2]) -> Arc<Slots<N>> {
        Arc::new(Slots { lines: words.map(|line| line.map(AtomicU64::new)), line: 1 })
    }

    pub fn set(&self) -> Set<'_, N> {
        let [first, second] = &self.lines;
        let (home, next) = if self.line == 1 { (second, first) } else { (first, second) };
        Set { home, next, line: self.line }
    }

    /// A slot by its position in search order.
    pub fn slot(&self, at: usize) -> &AtomicU64 {
        self.set().slot(at).expect("a slot")
    }

    /// One swap of a slot, by its number in address order, as of a thread that does nothing else. Did it win?
    pub fn swap(&self, number: usize, old: u64, new: u64) -> bool {
        Shared::replace(&self.lines[number / N][number % N], old, new).is_ok()
    }

    /// Returns all words in address order, once the threads have been joined.
    pub fn words(&self) -> [[u64; N]; 2] {
        // ORDERING: Relaxed; the joins order the last stores before these loads.
        self.lines.each_ref().map(|line| line.each_ref().map(|slot| slot.load(Ordering::Relaxed)))
    }
}

/// The memory of a table: a header and one set.
pub(crate) struct Memory(pub [Line; 4]);

impl Memory {
    pub fn new(spec: LimitSpec, policy: FullPolicy) -> Arc<Memory> {
        Memory::with(&TableOptions::new(spec).policy(policy))
    }

    /// Makes memory with other options.
    pub fn with(options: &TableOptions) -> Arc<Memory> {
        let memory = Arc::new(Memory(core::array::from_fn(|_| Line::new())));
        memory.init(options);
        memory
    }

    fn init(&self, options: &TableOptions) {
        Table::init(&self.0, &options.caller_hash().resolution(0)).expect("init");
    }

    pub fn table(&self) -> Table<'_> {
        self.table_as()
    }

    /// Attaches with another form of swap.
    pub fn table_as<A: Access>(&self) -> Table<'_, A> {
        Table::attach_as(&self.0, &AttachOptions::new()).expect("attach")
    }

    /// Fills all slots except `free` with claims that outlive the model.
    pub fn surround(&self, free: &[usize]) {
        let layout = self.table().geometry.layout;
        for number in (0..16).filter(|number| !free.contains(number)) {
            let tag = layout.tag(0x100 + number as u64);
            self.put(number, layout.claim_of_debt(tag, NOW + layout.window - 3 * T));
        }
    }

    /// Returns the words of all slots, once the threads have been joined.
    pub fn words(&self) -> [u64; 16] {
        // ORDERING: Relaxed; the joins order the last stores before these loads.
        core::array::from_fn(|i| self.0[2 + i / 8].words[i % 8].load(Ordering::Relaxed))
    }

    pub fn limit(&self, spec: &LimitSpec) -> TableLimit {
        self.table().limit(spec).expect("limit")
    }

    pub fn put(&self, number: usize, word: u64) {
        // ORDERING: Relaxed; before the threads of the model start.
        self.0[2 + number / 8].words[number % 8].store(word, Ordering::Relaxed);
    }

    /// Counts the live words of a key and sums their leads.
    pub fn lives(&self, key: u64, now: u64) -> (usize, u64) {
        let layout = self.table().geometry.layout;
        let words = self.0[2..].iter().flat_map(|line| &line.words);
        words
            // ORDERING: Relaxed; after the threads have been joined.
            .map(|word| word.load(Ordering::Relaxed))
            .filter(|word| layout.is_live_of(*word, layout.tag(key)))
            .fold((0, 0), |(n, lead), word| (n + 1, lead + layout.lead(word, now)))
    }

    pub fn check(&self, limit: &TableLimit, now: u64, key: u64) -> (bool, Permit) {
        let request = Request { limit, now, cost: 1, room: 0 };
        let d = self.table().check_ex(&request, key, None).expect("check");
        (d.passes(), d.permit)
    }
}

/// Makes a limit of one unit in T.
pub(crate) fn spec(burst: u64) -> LimitSpec {
    LimitSpec::new(1, T, burst)
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    /// `None` means contended.
    pub verdict: Option<Verdict>,
    pub tracking: Tracking,
    pub stored: u64,
    pub inserted: bool,
}

impl Reply {
    fn of(done: Done) -> Reply {
        let (verdict, stored) = done.answer.map_or((None, 0), |a| (Some(a.verdict), a.stored));
        Reply { verdict, tracking: done.tracking, stored, inserted: done.inserted }
    }

    pub fn passes(&self) -> bool {
        self.verdict == Some(Verdict::Conforming)
    }

    /// Returns whether the request passed and was charged to a slot.
    pub fn admitted(&self) -> bool {
        self.passes() && self.tracking != Tracking::Untracked
    }
}

/// Counts the requests that passed and were charged.
pub(crate) fn admitted(replies: &[Reply]) -> usize {
    replies.iter().filter(|r| r.admitted()).count()
}

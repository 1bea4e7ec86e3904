//! Runs every target on stable: its corpus, inputs made from it, and random ones; libFuzzer searches the same code.
//! `TATCELL_FUZZ_INPUTS` sets how many. A failure prints the input, and `TATCELL_FUZZ_INPUT` runs that one alone.

use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use data_encoding::HEXLOWER;
use tatcell_fuzz::{corpus, find, Target, TARGETS};

/// SplitMix64.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

/// Prints an input that ends a test, by a panic or by a fault.
struct Shown<'a>(&'a Target, &'a [u8]);

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{} failed with {}", self.0.name, HEXLOWER.encode(self.1));
        }
    }
}

/// The input at hand, for the handler of faults.
static AT: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());
static LENGTH: AtomicUsize = AtomicUsize::new(0);

extern "C" fn fault(signal: i32) {
    let input = AT.load(Ordering::Relaxed);
    let mut line = [b'0'; 2];
    let say = |text: &[u8]| {
        // SAFETY: a buffer with this number of bytes; write is safe in a handler.
        let _ = unsafe { libc::write(2, text.as_ptr().cast(), text.len()) };
    };
    say(b"a fault with ");
    for i in 0..LENGTH.load(Ordering::Relaxed) {
        // SAFETY: the input at hand, which outlives the run.
        let byte = unsafe { *input.add(i) };
        line.copy_from_slice(&[
            b"0123456789abcdef"[usize::from(byte >> 4)],
            b"0123456789abcdef"[usize::from(byte & 15)],
        ]);
        say(&line);
    }
    say(b"\n");
    // SAFETY: the end of this process.
    unsafe { libc::_exit(128 + signal) }
}

fn run(target: &Target, input: &[u8]) {
    AT.store(input.as_ptr().cast_mut(), Ordering::Relaxed);
    LENGTH.store(input.len(), Ordering::Relaxed);
    let _shown = Shown(target, input);
    (target.run)(input);
}

/// How many inputs beside the corpus.
fn inputs() -> usize {
    let asked = std::env::var("TATCELL_FUZZ_INPUTS").ok().and_then(|text| text.parse::<f64>().ok());
    asked.map_or(20_000, |n| n as usize)
}

/// A random input, or one of the corpus with some bytes changed, taken out, put in or moved.
fn made(rng: &mut Rng, corpus: &[Vec<u8>]) -> Vec<u8> {
    if rng.below(2) == 0 || corpus.is_empty() {
        return (0..rng.below(160)).map(|_| rng.next() as u8).collect();
    }
    let mut input = corpus[rng.below(corpus.len())].clone();
    for _ in 0..1 + rng.below(6) {
        let at = rng.below(input.len() + 1);
        match rng.below(4) {
            0 => input.insert(at, rng.next() as u8),
            1 if at < input.len() => drop(input.remove(at)),
            2 => input.rotate_left(at),
            _ if at < input.len() => input[at] = rng.next() as u8,
            _ => {}
        }
    }
    input
}

/// Inputs that each corpus has at least: fewer were lost.
const FEWEST: usize = 80;

fn replay(name: &str) {
    // SAFETY: a handler that calls nothing but write and _exit.
    unsafe { libc::signal(libc::SIGSEGV, fault as extern "C" fn(i32) as libc::sighandler_t) };
    let target = find(name).unwrap_or_else(|| panic!("there is no {name}"));
    if let Ok(line) = std::env::var("TATCELL_FUZZ_INPUT") {
        return run(target, &HEXLOWER.decode(line.as_bytes()).expect("hexadecimal digits"));
    }
    let corpus = corpus(target);
    assert!(corpus.len() >= FEWEST, "{} inputs in the corpus of {name}", corpus.len());
    corpus.iter().for_each(|input| run(target, input));
    let mut rng = Rng(name.len() as u64);
    (0..inputs()).for_each(|_| run(target, &made(&mut rng, &corpus)));
    println!("{name}: {} inputs of the corpus, {} made", corpus.len(), inputs());
}

macro_rules! targets {
    ($($name:ident),+ $(,)?) => {
        $(#[test]
        fn $name() {
            replay(stringify!($name));
        })+

        #[test]
        fn every_target_is_replayed() {
            let all: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
            assert_eq!(all, [$(stringify!($name)),+]);
        }
    };
}

targets!(decisions, counting, meters, table, image, arguments, configuration, addresses, http);

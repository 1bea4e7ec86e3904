// Appended to the library's lib.rs in the copy that has all mutants: which of them is on.
//
//   TATCELL_MUTANT=17        that one
//   TATCELL_MUTANT=reached   none; at the end of the process the numbers of those that were asked for are written to
//                            the file TATCELL_MUTANT_FILE
#[allow(warnings)]
pub(crate) mod mutant {
    use core::ffi::{c_char, c_int, c_void, CStr};
    // ORDERING: Relaxed throughout; the choice never changes once it is made, and marks are read as the process ends.
    use core::sync::atomic::{AtomicU32, AtomicU8, Ordering::Relaxed};

    const UNKNOWN: u32 = u32::MAX;
    const RECORD: u32 = u32::MAX - 1;
    static ON: AtomicU32 = AtomicU32::new(UNKNOWN);
    static REACHED: [AtomicU8; COUNT] = [const { AtomicU8::new(0) }; COUNT];

    extern "C" {
        fn getenv(name: *const c_char) -> *const c_char;
        fn atexit(f: extern "C" fn()) -> c_int;
        fn creat(path: *const c_char, mode: u32) -> c_int;
        fn write(file: c_int, from: *const c_void, len: usize) -> isize;
    }

    /// The mutant that is on, if it is one of `count` from `first` on; else 0. What is computed as the library is
    /// compiled has none.
    #[inline(always)]
    pub(crate) const fn on(first: u32, count: u32) -> u32 {
        core::intrinsics::const_eval_select((first, count), compiled, run)
    }

    #[inline(always)]
    pub(crate) const fn is(number: u32) -> bool {
        on(number, 1) != 0
    }

    const fn compiled(_: u32, _: u32) -> u32 {
        0
    }

    #[inline(always)]
    fn run(first: u32, count: u32) -> u32 {
        let on = ON.load(Relaxed);
        if on.wrapping_sub(first) < count {
            return on;
        }
        if on >= RECORD {
            record(on, first, count)
        } else {
            0
        }
    }

    #[cold]
    #[inline(never)]
    fn record(mut on: u32, first: u32, count: u32) -> u32 {
        if on == UNKNOWN {
            // SAFETY: a name that ends with 0; the environment does not change while tests run.
            let text = unsafe { getenv(c"TATCELL_MUTANT".as_ptr()) };
            // SAFETY: what getenv gives ends with 0.
            let text = if text.is_null() { &[] } else { unsafe { CStr::from_ptr(text) }.to_bytes() };
            on = match text {
                b"reached" => RECORD,
                digits => digits.iter().fold(0, |n: u32, d| n * 10 + (d - b'0') as u32),
            };
            if ON.swap(on, Relaxed) == UNKNOWN && on == RECORD {
                // SAFETY: a function of the program's life.
                unsafe { atexit(tell) };
            }
        }
        if on == RECORD {
            (first..first + count).for_each(|i| REACHED[i as usize].store(1, Relaxed));
            return 0;
        }
        if on.wrapping_sub(first) < count {
            on
        } else {
            0
        }
    }

    extern "C" fn tell() {
        // SAFETY: as above.
        let path = unsafe { getenv(c"TATCELL_MUTANT_FILE".as_ptr()) };
        if path.is_null() {
            return;
        }
        // SAFETY: a path that ends with 0, and COUNT bytes of a static.
        let file = unsafe { creat(path, 0o644) };
        // SAFETY: as above.
        unsafe { write(file, REACHED.as_ptr().cast(), COUNT) };
    }
}

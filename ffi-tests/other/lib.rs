//! Another Rust library with std, a panic handler and an allocator of its own, for archives.c.

/// 1 + 2 + ... + n, through the heap and a string that may panic, so that all of std's runtime is linked.
#[no_mangle]
pub extern "C" fn other_sum(n: u32) -> u32 {
    let words: Vec<String> = (1..=n).map(|i| format!("{i}")).collect();
    words.iter().map(|w| w.parse::<u32>().expect("a number")).sum()
}

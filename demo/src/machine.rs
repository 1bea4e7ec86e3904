//! What the machine did beside this program: waits for cores, as Linux counts them.

/// Nanoseconds for which a thread has run, and for which it has waited for a core, from its `schedstat` in /proc.
pub fn run_and_wait_ns(schedstat: &str) -> Option<(u64, u64)> {
    let text = std::fs::read_to_string(schedstat).ok()?;
    let mut numbers = text.split_whitespace().map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// Nanoseconds for which the threads of this program have waited for a core; 0 if the system does not count them.
pub fn own_wait_ns() -> u64 {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let wait = |thread: std::fs::DirEntry| run_and_wait_ns(thread.path().join("schedstat").to_str()?);
    threads.filter_map(wait).map(|(_, wait)| wait).sum()
}

/// Nanoseconds for which the host of this virtual machine had cores that the machine wanted, all cores together.
pub fn stolen_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    // SAFETY: asks for a constant of the system.
    let hertz = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    stolen_ticks(&text).saturating_mul(1_000_000_000 / hertz.max(1) as u64)
}

/// The eighth figure of the first line of /proc/stat.
fn stolen_ticks(stat: &str) -> u64 {
    let first = stat.lines().next().unwrap_or_default();
    first.split_whitespace().nth(8).and_then(|word| word.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_time_is_the_eighth_figure() {
        assert_eq!(stolen_ticks("cpu  1 2 3 4 5 6 7 88 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\n"), 88);
        assert_eq!(stolen_ticks("cpu 1 2"), 0);
    }
}

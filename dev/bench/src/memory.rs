//! Table memory on huge pages if the system gives them: of 1 GiB from the reserved pool for the largest tables, else of
//! 2 MiB, as many as the kernel finds.

use std::sync::atomic::AtomicU64;

use tatcell::Line;

const HUGE: usize = 2 << 20;
const GIANT: usize = 1 << 30;

/// Zeroed memory that lives as long as the program, aligned to 2 MiB, asked to be huge pages.
pub struct Memory {
    at: *mut u8,
    bytes: usize,
}

impl Memory {
    pub fn new(bytes: usize) -> Memory {
        Memory::on(bytes, libc::MADV_HUGEPAGE)
    }

    /// On pages of the usual size, whatever the system prefers.
    pub fn small_pages(bytes: usize) -> Memory {
        Memory::on(bytes, libc::MADV_NOHUGEPAGE)
    }

    fn on(bytes: usize, pages: libc::c_int) -> Memory {
        if pages == libc::MADV_HUGEPAGE && bytes >= GIANT / 2 {
            if let Some(at) = giant(bytes) {
                return Memory { at, bytes };
            }
        }
        let whole = bytes + HUGE;
        let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a fresh anonymous mapping.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), whole, prot, flags, -1, 0) };
        assert_ne!(base, libc::MAP_FAILED, "no memory for a table of {bytes} bytes");
        let base = base.cast::<u8>();
        let skip = base.align_offset(HUGE);
        // SAFETY: skip < HUGE, so the result and `bytes` after it lie inside the mapping.
        let at = unsafe { base.add(skip) };
        // SAFETY: the range lies inside the mapping; the advice changes no content.
        unsafe { libc::madvise(at.cast(), bytes, pages) };
        Memory { at, bytes }
    }

    pub fn lines(&self) -> &'static [Line] {
        let n = self.bytes / size_of::<Line>();
        // SAFETY: aligned, zeroed (an empty Line is all zero), never unmapped, only used through atomics.
        unsafe { std::slice::from_raw_parts(self.at.cast(), n) }
    }

    pub fn lines_mut(&mut self) -> &'static mut [Line] {
        let n = self.bytes / size_of::<Line>();
        // SAFETY: as above, and every caller asks once for memory that it owns.
        unsafe { std::slice::from_raw_parts_mut(self.at.cast(), n) }
    }

    pub fn words(&self) -> &'static [AtomicU64] {
        // SAFETY: aligned, zeroed, never unmapped, only used through atomics.
        unsafe { std::slice::from_raw_parts(self.at.cast(), self.bytes / 8) }
    }

    pub fn as_ptr(&self) -> *mut u8 {
        self.at
    }

    /// "16 of 16 MiB": how much of it, once touched, lies on huge pages; from /proc/self/smaps.
    pub fn huge_pages(&self) -> String {
        let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
        let mut inside = false;
        for line in smaps.lines() {
            let range = line.split(' ').next().and_then(|r| r.split_once('-'));
            let range = range.and_then(|(a, b)| {
                Some((usize::from_str_radix(a, 16).ok()?, usize::from_str_radix(b, 16).ok()?))
            });
            if let Some((from, to)) = range {
                inside = (from..to).contains(&(self.at as usize));
            } else if inside
                && line.strip_prefix("KernelPageSize:").is_some_and(|kib| kib.trim() == "1048576 kB")
            {
                return format!("all of a {:.1} MiB table, pages of 1 GiB", self.bytes as f64 / 1048576.0);
            } else if let (true, Some(kib)) = (inside, line.strip_prefix("AnonHugePages:")) {
                let kib: usize = kib.trim().trim_end_matches(" kB").parse().unwrap_or(0);
                // A mapping is merged with its neighbours: it may hold more than this table.
                return format!(
                    "{:.1} MiB of a {:.1} MiB table",
                    kib.min(self.bytes >> 10) as f64 / 1024.0,
                    self.bytes as f64 / 1048576.0
                );
            }
        }
        "unknown (no smaps)".into()
    }
}

/// Memory on pages of 1 GiB from the reserved pool, where there are any left.
#[cfg(target_os = "linux")]
fn giant(bytes: usize) -> Option<*mut u8> {
    let whole = bytes.next_multiple_of(GIANT);
    // 30 is log2 of 1 GiB, in the bits that mmap reads it from.
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_HUGETLB | 30 << 26;
    // SAFETY: a fresh anonymous mapping.
    let at =
        unsafe { libc::mmap(std::ptr::null_mut(), whole, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    (at != libc::MAP_FAILED).then_some(at.cast())
}

#[cfg(not(target_os = "linux"))]
fn giant(_: usize) -> Option<*mut u8> {
    None
}

/// MiB that can be had without swapping.
pub fn available_mib() -> Option<u64> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = info.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kib| kib >> 10)
}

//! Finds out which search a table uses, by the register in which the search with AVX-512 works.
//!
//! Code for plain x86-64 touches no register above 15, and a call by hash calls nothing outside the library. So what a
//! test leaves in zmm17 is gone after a call that searched with AVX-512, and stays after any other.

use tatcell::{LimitSpec, Line, Table, TableOptions};

/// Whether this processor and this build have the search with AVX-512.
pub fn expects_avx512() -> bool {
    #[cfg(tatcell_sse2)]
    return std::is_x86_feature_detected!("avx512f")
        && std::is_x86_feature_detected!("avx512bw")
        && std::is_x86_feature_detected!("avx512vbmi2");
    #[cfg(not(tatcell_sse2))]
    return false;
}

/// Whether a check of a table that is made with these options, and of every one like it, searches with AVX-512.
#[inline(never)]
pub fn takes_avx512(options: &TableOptions, spec: &LimitSpec) -> bool {
    #[cfg(tatcell_sse2)]
    if expects_avx512() {
        use std::arch::asm;
        const LEFT: u64 = 0x5eed_5eed_5eed_5eed;
        let memory = [Line::EMPTY; 4];
        let Ok(table) = Table::init(&memory, options) else { return false };
        let Ok(limit) = table.limit(spec) else { return false };
        let mut found = [0u64; 8];
        // SAFETY: the processor has AVX-512, and saves its registers.
        unsafe { asm!("vpbroadcastq zmm17, {left}", left = in(reg) LEFT, out("xmm17") _) };
        let answer = table.check_hash(&limit, 1, 1, 1);
        // SAFETY: as above; `found` is as long as the register.
        unsafe { asm!("vmovdqu64 zmmword ptr [{to}], zmm17", to = in(reg) found.as_mut_ptr()) };
        return answer.is_ok() && found != [LEFT; 8];
    }
    let _ = (options, spec);
    false
}

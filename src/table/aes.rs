//! The keyed AES hash: four AES rounds per 16 bytes of key, where the processor has them.
//!
//! ```text
//!  state = K0 ^ length
//!  for each 16-byte block, the last one padded with zeros:
//!      state = round(round(round(round(state ^ block, K1), K2), K3), K4)
//!  hash  = low 64 bits of round(state, K5)            round = SubBytes, ShiftRows, MixColumns, AddRoundKey
//! ```
//!
//! K0..K5 come from the table's 16 secret bytes through SipHash-1-3, so all of them are secret and unrelated.
//!
//! Why it is enough here: an attacker chooses keys but never sees a hash, only (through refusals) whether two keys
//! share a slot. To aim at a slot without knowing the round keys they need a difference that survives four rounds: any
//! such trail has at least 25 active S-boxes, each with probability at most 2^-6 (Daemen and Rijmen), 2^-150 together,
//! far below the 2^-52 of guessing line and tag of a table of 2^32 lines. The length is mixed in first, so padding
//! makes no two keys equal. It is not a pseudo-random function for published outputs: do not show hashes to strangers.
//!
//! The result is the same on x86-64 and aarch64. A table says in its header which hash it uses, and a process that
//! cannot compute it is refused.

/// Round keys K0..K5, as little-endian halves.
#[derive(Clone, Copy)]
pub(crate) struct AesKeys(pub [[u64; 2]; 6]);

/// Can this processor compute the hash?
#[inline]
pub(crate) fn available() -> bool {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2", not(miri)))]
    {
        // Leaf 1, ECX bit 25 is AES.
        #[allow(unused_unsafe)] // a safe function in later compilers than the oldest supported one
        // SAFETY: CPUID is there on every x86-64 processor.
        unsafe {
            core::arch::x86_64::__cpuid(1).ecx & 1 << 25 != 0
        }
    }
    #[cfg(not(all(target_arch = "x86_64", target_feature = "sse2", not(miri))))]
    {
        cfg!(all(target_arch = "aarch64", target_endian = "little", target_feature = "aes", not(miri)))
    }
}

/// Hashes a key. Must only be called where [`available`] says so; elsewhere it answers 0.
#[inline(always)]
pub(crate) fn hash(keys: &AesKeys, key: &[u8]) -> u64 {
    let [k0, k1, k2, k3, k4, k5] = &keys.0;
    let mut state = [k0[0] ^ key.len() as u64, k0[1]];
    let mut rest = key;
    loop {
        let (block, tail) = block(rest);
        state = four([state[0] ^ block[0], state[1] ^ block[1]], k1, k2, k3, k4);
        if tail.is_empty() {
            return one(state, k5)[0];
        }
        rest = tail;
    }
}

/// The first block of a key, padded with zeros, and what follows it.
#[inline(always)]
fn block(key: &[u8]) -> ([u64; 2], &[u8]) {
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0u64, |w, &b| w << 8 | b as u64);
    match (key.split_first_chunk::<16>(), key.split_first_chunk::<8>()) {
        (Some((b, tail)), _) => {
            let whole = u128::from_le_bytes(*b);
            ([whole as u64, (whole >> 64) as u64], tail)
        }
        (None, Some((low, high))) => ([u64::from_le_bytes(*low), word(high)], &[]),
        (None, None) => match key.first_chunk::<4>() {
            Some(b) if key.len() == 4 => ([u32::from_le_bytes(*b) as u64, 0], &[]),
            _ => ([word(key), 0], &[]),
        },
    }
}

/// Four rounds.
#[inline(always)]
#[allow(unused_variables)]
fn four(state: [u64; 2], k1: &[u64; 2], k2: &[u64; 2], k3: &[u64; 2], k4: &[u64; 2]) -> [u64; 2] {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2", not(miri)))]
    {
        let mut s = x86::load(&state);
        // SAFETY: the processor has AES (`available`); registers only.
        unsafe {
            core::arch::asm!(
                "aesenc {s}, {k1}", "aesenc {s}, {k2}", "aesenc {s}, {k3}", "aesenc {s}, {k4}",
                s = inout(xmm_reg) s,
                k1 = in(xmm_reg) x86::load(k1), k2 = in(xmm_reg) x86::load(k2),
                k3 = in(xmm_reg) x86::load(k3), k4 = in(xmm_reg) x86::load(k4),
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        x86::store(s)
    }
    #[cfg(not(all(target_arch = "x86_64", target_feature = "sse2", not(miri))))]
    {
        [k1, k2, k3, k4].iter().fold(state, |s, k| one(s, k))
    }
}

/// One round.
#[inline(always)]
#[allow(unused_variables)]
fn one(state: [u64; 2], key: &[u64; 2]) -> [u64; 2] {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2", not(miri)))]
    {
        let mut s = x86::load(&state);
        // SAFETY: the processor has AES (`available`); registers only.
        unsafe {
            core::arch::asm!(
                "aesenc {s}, {k}",
                s = inout(xmm_reg) s, k = in(xmm_reg) x86::load(key),
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        x86::store(s)
    }
    #[cfg(all(target_arch = "aarch64", target_endian = "little", target_feature = "aes", not(miri)))]
    {
        use core::arch::aarch64::*;
        // SAFETY: the AES extension is enabled at compile time.
        unsafe {
            let s = vreinterpretq_u8_u64(vld1q_u64(state.as_ptr()));
            let k = vld1q_u64(key.as_ptr());
            let mixed = vaesmcq_u8(vaeseq_u8(s, vdupq_n_u8(0)));
            let s = veorq_u64(vreinterpretq_u64_u8(mixed), k);
            [vgetq_lane_u64::<0>(s), vgetq_lane_u64::<1>(s)]
        }
    }
    #[cfg(not(any(
        all(target_arch = "x86_64", target_feature = "sse2", not(miri)),
        all(target_arch = "aarch64", target_endian = "little", target_feature = "aes", not(miri))
    )))]
    [0, 0]
}

#[cfg(all(target_arch = "x86_64", target_feature = "sse2", not(miri)))]
mod x86 {
    use core::arch::x86_64::*;

    #[inline(always)]
    pub fn load(v: &[u64; 2]) -> __m128i {
        // SAFETY: SSE2 is enabled; an unaligned load of 16 valid bytes.
        unsafe { _mm_loadu_si128(v.as_ptr().cast()) }
    }

    #[inline(always)]
    pub fn store(v: __m128i) -> [u64; 2] {
        let mut out = [0; 2];
        // SAFETY: SSE2 is enabled; an unaligned store of 16 valid bytes.
        unsafe { _mm_storeu_si128(out.as_mut_ptr().cast(), v) };
        out
    }
}

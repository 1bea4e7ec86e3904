//! The keyed AES hash: four AES rounds per 16 bytes of key, on processors that have AES.
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
//! Why this is enough: an attacker chooses keys but never sees a hash, only (through refusals) whether two keys share a
//! slot. To aim at a slot without the round keys, the attacker needs a difference that survives four rounds. Any such
//! trail has at least 25 active S-boxes, each with a probability of at most 2^-6 (Daemen and Rijmen). Together that is
//! 2^-150, far below the 2^-52 of guessing line and tag of a table of 2^32 lines. The length is mixed in first, so
//! zeros at the end of a key count ([`HashKind::Aes`](super::HashKind::Aes) warns of keys of several lengths). It is
//! not a pseudo-random function for published outputs: do not show hashes to strangers.
//!
//! The result is the same on x86-64 and aarch64. A table's header says which hash it uses, and refuses a process that
//! cannot compute it.

/// Round keys K0..K5, as little-endian halves.
#[derive(Clone, Copy)]
pub(crate) struct AesKeys {
    pub(super) keys: [[u64; 2]; 6],
    /// `K0 ^ 16`, the start of a key of 16 bytes; `start4` is the same for 4 bytes.
    start16: [u64; 2],
    start4: [u64; 2],
}

impl AesKeys {
    pub fn new(keys: [[u64; 2]; 6]) -> AesKeys {
        let [[low, high], ..] = keys;
        AesKeys { keys, start16: [low ^ 16, high], start4: [low ^ 4, high] }
    }
}

/// Returns whether this processor can compute the hash.
#[inline]
pub(crate) fn available() -> bool {
    crate::cpu::aes()
}

/// Hashes a key. Call it only if [`available`] is true; elsewhere it returns 0.
#[inline(always)]
pub(crate) fn hash(keys: &AesKeys, key: &[u8]) -> u64 {
    // The usual lengths as values: no loop, and a key that the caller has in registers stays there.
    match (key.first_chunk::<16>(), key.first_chunk::<4>()) {
        (Some(block), _) if key.len() == 16 => {
            let whole = u128::from_le_bytes(*block);
            one_block(keys, &keys.start16, [whole as u64, (whole >> 64) as u64])
        }
        (_, Some(block)) if key.len() == 4 => {
            one_block(keys, &keys.start4, [u32::from_le_bytes(*block) as u64, 0])
        }
        _ => any(keys, key),
    }
}

/// Does the same as [`hash`], out of line, for a key by value.
#[inline(never)]
pub(crate) fn hash_value<const N: usize>(keys: &AesKeys, key: [u8; N]) -> u64 {
    hash(keys, &key)
}

/// Returns whether [`hash_short`], [`hash16`] and [`hash4`] work. On aarch64 they need AES. On x86-64 they also need
/// AVX, whose instructions can take a round key from unaligned memory.
#[inline]
pub(crate) fn is_short() -> bool {
    available() && (cfg!(tatcell_aes_arm) || crate::cpu::avx())
}

/// Hashes one key whose round keys are in no register yet, in ten instructions less than [`hash`]; [`is_short`] must be
/// true. Returns `None` for lengths other than 4 and 16. In a loop that only hashes, [`hash`] keeps the round keys in
/// registers: bursts that were hashed by this function took 9 % longer.
#[cfg(tatcell_sse2)]
#[inline(always)]
pub(crate) fn hash_short(keys: &AesKeys, key: &[u8]) -> Option<u64> {
    match (key.len(), key.first_chunk::<16>(), key.first_chunk::<4>()) {
        (16, Some(block), _) => {
            let whole = u128::from_le_bytes(*block);
            Some(x86::block16(keys, [whole as u64, (whole >> 64) as u64]))
        }
        (4, _, Some(block)) => Some(x86::block4(keys, u32::from_le_bytes(*block))),
        _ => None,
    }
}

/// Does the same as [`hash_short`] for 16 bytes in memory.
#[cfg(tatcell_sse2)]
#[allow(dead_code)] // the C layer asks
#[inline(always)]
pub(crate) fn hash16(keys: &AesKeys, key: &[u8; 16]) -> u64 {
    x86::stored16(keys, key)
}

/// Does the same as [`hash_short`] for 4 bytes.
#[cfg(tatcell_sse2)]
#[allow(dead_code)] // as above
#[inline(always)]
pub(crate) fn hash4(keys: &AesKeys, key: &[u8; 4]) -> u64 {
    x86::block4(keys, u32::from_le_bytes(*key))
}

/// Does the same as [`hash`] for 4 or 16 bytes, on aarch64. Nobody calls it elsewhere.
#[cfg(not(tatcell_sse2))]
#[inline(always)]
pub(crate) fn hash_short(keys: &AesKeys, key: &[u8]) -> Option<u64> {
    (cfg!(tatcell_aes_arm) && matches!(key.len(), 4 | 16)).then(|| hash(keys, key))
}

/// Does the same as [`hash`] for 16 bytes.
#[cfg(not(tatcell_sse2))]
#[allow(dead_code)] // the C layer asks
#[inline(always)]
pub(crate) fn hash16(keys: &AesKeys, key: &[u8; 16]) -> u64 {
    hash(keys, key)
}

/// Does the same as [`hash`] for 4 bytes.
#[cfg(not(tatcell_sse2))]
#[allow(dead_code)] // as above
#[inline(always)]
pub(crate) fn hash4(keys: &AesKeys, key: &[u8; 4]) -> u64 {
    hash(keys, key)
}

/// Hashes a key of the length that belongs to `start`; the key is little-endian halves, padded with zeros.
#[inline(always)]
fn one_block(keys: &AesKeys, start: &[u64; 2], [low, high]: [u64; 2]) -> u64 {
    let [_, k1, k2, k3, k4, k5] = &keys.keys;
    let state = State::at(start).xor(State::of([low, State::alone(high)]));
    state.round(k1).round(k2).round(k3).round(k4).round(k5).low()
}

/// Hashes a key of any length.
#[inline(never)]
pub(super) fn any(keys: &AesKeys, key: &[u8]) -> u64 {
    let [k0, k1, k2, k3, k4, k5] = &keys.keys;
    let mut state = State::of([k0[0] ^ key.len() as u64, k0[1]]);
    let mut rest = key;
    loop {
        let (block, tail) = block(rest);
        state = state.xor(State::of(block)).round(k1).round(k2).round(k3).round(k4);
        if tail.is_empty() {
            return state.round(k5).low();
        }
        rest = tail;
    }
}

/// Returns the first block of a key, padded with zeros, and the rest of the key.
#[inline(always)]
fn block(key: &[u8]) -> ([u64; 2], &[u8]) {
    let (low, rest) = half(key);
    let (high, rest) = half(rest);
    ([low, high], rest)
}

/// Returns the first 8 bytes of a key as a little-endian word, padded with zeros, and the rest of the key. It loads no
/// bytes twice: callers often have just written a key, and a load across two recent stores waits for the cache.
#[inline(always)]
fn half(key: &[u8]) -> (u64, &[u8]) {
    if let Some((eight, rest)) = key.split_first_chunk::<8>() {
        return (u64::from_le_bytes(*eight), rest);
    }
    let (mut word, mut shift, mut rest) = (0, 0, key);
    if let Some((four, tail)) = rest.split_first_chunk::<4>() {
        (word, shift, rest) = (u32::from_le_bytes(*four) as u64, 32, tail);
    }
    if let Some((two, tail)) = rest.split_first_chunk::<2>() {
        (word, shift, rest) = (word | (u16::from_le_bytes(*two) as u64) << shift, shift + 16, tail);
    }
    if let Some((one, tail)) = rest.split_first() {
        (word, rest) = (word | (*one as u64) << shift, tail);
    }
    (word, rest)
}

#[cfg(tatcell_sse2)]
pub(super) use x86::State;

#[cfg(tatcell_sse2)]
mod x86 {
    use core::arch::x86_64::*;

    /// Makes a hash of AVX instructions; `is_short` must be true. Arguments: the start state, the instructions that
    /// load the key, their operands.
    macro_rules! short {
        ($keys:ident, $start:ident, [$($load:literal),+], $($operand:tt)+) => {{
            let hash: u64;
            // SAFETY: `is_short` is true, so the processor has AES and AVX. It loads only the round keys and the key.
            // 128-bit instructions set the upper halves of the registers to 0, so no SSE code waits for them.
            unsafe {
                core::arch::asm!(
                    $($load,)+
                    "vpxor {s}, {s}, [{k} + {start}]",
                    "vaesenc {s}, {s}, [{k} + {keys} + 16]",
                    "vaesenc {s}, {s}, [{k} + {keys} + 32]",
                    "vaesenc {s}, {s}, [{k} + {keys} + 48]",
                    "vaesenc {s}, {s}, [{k} + {keys} + 64]",
                    "vaesenc {s}, {s}, [{k} + {keys} + 80]",
                    "vmovq {hash}, {s}",
                    $($operand)+,
                    k = in(reg) $keys,
                    s = out(xmm_reg) _,
                    hash = lateout(reg) hash,
                    start = const core::mem::offset_of!(super::AesKeys, $start),
                    keys = const core::mem::offset_of!(super::AesKeys, keys),
                    options(pure, readonly, nostack, preserves_flags),
                );
            }
            hash
        }};
    }

    /// Hashes 16 bytes, as little-endian halves; `is_short` must be true. Each half is loaded by itself: see
    /// [`State::alone`].
    #[inline(always)]
    pub fn block16(keys: &super::AesKeys, [low, high]: [u64; 2]) -> u64 {
        short!(keys, start16, ["vmovq {s}, {low}", "vpinsrq {s}, {s}, {high}, 1"],
            low = in(reg) low, high = in(reg) high)
    }

    /// Hashes 16 bytes in memory; `is_short` must be true.
    #[inline(always)]
    pub fn stored16(keys: &super::AesKeys, key: &[u8; 16]) -> u64 {
        short!(keys, start16, ["vmovq {s}, qword ptr [{p}]", "vpinsrq {s}, {s}, qword ptr [{p} + 8], 1"],
            p = in(reg) key.as_ptr())
    }

    /// Hashes 4 bytes; `is_short` must be true.
    #[inline(always)]
    pub fn block4(keys: &super::AesKeys, key: u32) -> u64 {
        short!(keys, start4, ["vmovd {s}, {p:e}"], p = in(reg) key)
    }

    /// The 16 bytes between two rounds.
    #[derive(Clone, Copy)]
    pub struct State(__m128i);

    impl State {
        #[inline(always)]
        pub fn of(words: [u64; 2]) -> State {
            // SAFETY: SSE2 is enabled; registers only.
            State(unsafe { _mm_set_epi64x(words[1] as i64, words[0] as i64) })
        }

        /// Makes the same from words in memory.
        #[inline(always)]
        pub fn at(words: &[u64; 2]) -> State {
            State::of(*words)
        }

        /// Returns the same word, loaded by itself: a caller often has just written its key as two words, and a load of
        /// 16 bytes across two recent stores waits until both have reached the cache.
        #[inline(always)]
        pub fn alone(word: u64) -> u64 {
            let mut word = word;
            // SAFETY: no instruction; it only keeps the compiler from joining two loads.
            unsafe {
                core::arch::asm!("/* {0} */", inout(reg) word, options(pure, nomem, nostack, preserves_flags));
            }
            word
        }

        #[inline(always)]
        pub fn xor(self, other: State) -> State {
            // SAFETY: SSE2 is enabled; registers only.
            State(unsafe { _mm_xor_si128(self.0, other.0) })
        }

        /// Keeps the bits of this mask.
        #[inline(always)]
        pub fn and(self, mask: &[u8; 16]) -> State {
            // SAFETY: SSE2 is enabled; an unaligned load of 16 valid bytes.
            State(unsafe { _mm_and_si128(self.0, _mm_loadu_si128(mask.as_ptr().cast())) })
        }

        #[inline(always)]
        pub fn round(self, key: &[u64; 2]) -> State {
            let mut s = self.0;
            // SAFETY: the processor has AES (`available`); an unaligned load of 16 valid bytes.
            unsafe {
                let k = _mm_loadu_si128(key.as_ptr().cast());
                core::arch::asm!("aesenc {s}, {k}", s = inout(xmm_reg) s, k = in(xmm_reg) k,
                    options(pure, nomem, nostack, preserves_flags));
            }
            State(s)
        }

        #[inline(always)]
        pub fn low(self) -> u64 {
            // SAFETY: SSE2 is enabled; registers only.
            unsafe { _mm_cvtsi128_si64(self.0) as u64 }
        }
    }
}

#[cfg(tatcell_aes_arm)]
pub(super) use arm::State;

#[cfg(tatcell_aes_arm)]
mod arm {
    use core::arch::aarch64::*;

    /// The 16 bytes between two rounds: the xor of these two. A round of this processor begins with the xor of the key,
    /// a round of the hash ends with it. So each xor waits for the next round.
    #[derive(Clone, Copy)]
    pub struct State(uint8x16_t, uint8x16_t);

    impl State {
        #[inline(always)]
        pub fn of([low, high]: [u64; 2]) -> State {
            // SAFETY: NEON is enabled, as AES needs it; registers only.
            unsafe {
                State(vreinterpretq_u8_u64(vcombine_u64(vcreate_u64(low), vcreate_u64(high))), vdupq_n_u8(0))
            }
        }

        /// Makes the same from words in memory.
        #[inline(always)]
        pub fn at(words: &[u64; 2]) -> State {
            // SAFETY: as above; a load of 16 valid bytes.
            unsafe { State(vreinterpretq_u8_u64(vld1q_u64(words.as_ptr())), vdupq_n_u8(0)) }
        }

        /// Returns the same word; the x86 form explains the name.
        #[inline(always)]
        pub fn alone(word: u64) -> u64 {
            word
        }

        #[inline(always)]
        pub fn xor(self, other: State) -> State {
            // SAFETY: as above.
            State(self.0, unsafe { veorq_u8(self.1, veorq_u8(other.0, other.1)) })
        }

        /// Keeps the bits of this mask.
        #[inline(always)]
        pub fn and(self, mask: &[u8; 16]) -> State {
            // SAFETY: as above; a load of 16 valid bytes.
            unsafe {
                let mask = vld1q_u8(mask.as_ptr());
                State(vandq_u8(self.0, mask), vandq_u8(self.1, mask))
            }
        }

        #[inline(always)]
        pub fn round(self, key: &[u64; 2]) -> State {
            // SAFETY: the AES extension is enabled at compile time; a load of 16 valid bytes.
            unsafe {
                State(vaesmcq_u8(vaeseq_u8(self.0, self.1)), vreinterpretq_u8_u64(vld1q_u64(key.as_ptr())))
            }
        }

        #[inline(always)]
        pub fn low(self) -> u64 {
            // SAFETY: as above.
            unsafe { vgetq_lane_u64::<0>(vreinterpretq_u64_u8(veorq_u8(self.0, self.1))) }
        }
    }
}

#[cfg(not(any(tatcell_sse2, tatcell_aes_arm)))]
pub(super) use plain::State;

/// For processors without AES.
#[cfg(not(any(tatcell_sse2, tatcell_aes_arm)))]
mod plain {
    #[derive(Clone, Copy)]
    pub struct State;

    impl State {
        #[inline(always)]
        pub fn of(_: [u64; 2]) -> State {
            State
        }

        #[inline(always)]
        pub fn at(_: &[u64; 2]) -> State {
            State
        }

        #[inline(always)]
        pub fn alone(word: u64) -> u64 {
            word
        }

        #[inline(always)]
        pub fn xor(self, _: State) -> State {
            State
        }

        #[inline(always)]
        pub fn and(self, _: &[u8; 16]) -> State {
            State
        }

        #[inline(always)]
        pub fn round(self, _: &[u64; 2]) -> State {
            State
        }

        #[inline(always)]
        pub fn low(self) -> u64 {
            0
        }
    }
}

#[cfg(all(test, not(tatcell_loom)))]
mod tests {
    use super::*;

    /// Keys of every length around a block, at every alignment.
    #[test]
    fn one_key_alone_hashes_as_among_others() {
        if !is_short() {
            return;
        }
        let mut word = 7u64;
        let mut random = || {
            word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            word ^ word >> 31
        };
        for _ in 0..200 {
            let keys = AesKeys::new(core::array::from_fn(|_| [random(), random()]));
            let bytes: [u8; 64] = core::array::from_fn(|_| random() as u8);
            for (start, length) in (0..16).flat_map(|start| (0..40).map(move |length| (start, length))) {
                let key = &bytes[start..start + length];
                let known = hash(&keys, key);
                assert_eq!(any(&keys, key), known, "{length} bytes");
                let short = hash_short(&keys, key);
                assert_eq!(short.is_some(), [4, 16].contains(&length));
                assert_eq!(short.unwrap_or(known), known, "{length} bytes");
                match (key.try_into(), key.try_into()) {
                    (Ok(key), _) => assert_eq!(hash16(&keys, key), known),
                    (_, Ok(key)) => assert_eq!(hash4(&keys, key), known),
                    _ => {}
                }
            }
        }
    }
}

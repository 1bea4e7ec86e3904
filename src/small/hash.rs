//! HalfSipHash-1-3: a keyed hash in 32-bit arithmetic, for cores on which each 64-bit rotation of SipHash costs six
//! instructions.
//!
//! ```text
//!  hash   31          16 15            0
//!        [   set: high 16 |              ]    set = (high16 * sets) >> 16
//!        [            tag : 32           ]    the whole hash, 0 becoming 1
//! ```
//!
//! Why this is enough: an attacker wants to find keys of one set from outside, without the seed, by what a small table
//! answers. The function is Aumasson and Bernstein's SipHash with halved words. With one and three rounds, Linux uses
//! it on 32-bit machines for its own hash tables (`hsiphash`). Its key has 64 bits, too few for a message
//! authentication code; it must not be used as one. The seed is a secret of the device.
#![forbid(unsafe_code)]

/// One SipRound on 32-bit words.
#[inline(always)]
const fn round([a, b, c, d]: [u32; 4]) -> [u32; 4] {
    let (a, b) = (a.wrapping_add(b), b.rotate_left(5));
    let (a, b) = (a.rotate_left(16), b ^ a);
    let (c, d) = (c.wrapping_add(d), d.rotate_left(8));
    let d = d ^ c;
    let (a, d) = (a.wrapping_add(d), d.rotate_left(7));
    let d = d ^ a;
    let (c, b) = (c.wrapping_add(b), b.rotate_left(13));
    [a, b ^ c, c.rotate_left(16), d]
}

/// Returns HalfSipHash-1-3 of `key`, 32 bits, under the seed `[k0, k1]` (little-endian words).
#[inline(always)]
pub(crate) fn half_sip_13([k0, k1]: [u32; 2], key: &[u8]) -> u32 {
    let mut v = [k0, k1, 0x6c79_6765 ^ k0, 0x7465_6462 ^ k1];
    let words = key.chunks_exact(4);
    let mut last = (key.len() as u32) << 24;
    for (i, byte) in words.remainder().iter().enumerate() {
        last |= (*byte as u32) << (8 * i);
    }
    let words = words.map(|w| match *w {
        [a, b, c, d] => u32::from_le_bytes([a, b, c, d]),
        _ => 0,
    });
    for word in words.chain(core::iter::once(last)) {
        v[3] ^= word;
        v = round(v);
        v[0] ^= word;
    }
    v[2] ^= 0xff;
    for _ in 0..3 {
        v = round(v);
    }
    v[1] ^ v[3]
}

#[cfg(test)]
mod tests {
    use super::half_sip_13;

    /// The vectors of Linux (lib/test_siphash.c) for 32-bit machines: key 00 01 .. 07, messages 00 01 02 ..
    #[test]
    fn half_sip_13_equals_the_kernels_vectors() {
        let vectors: [u32; 12] = [
            0x5814_c896,
            0xe7e8_64ca,
            0xbc4b_0e30,
            0x0153_9939,
            0x7e05_9ea6,
            0x88e3_d89b,
            0xa008_0b65,
            0x9d38_d9d6,
            0x5779_99b1,
            0xc839_caed,
            0xe4fa_32cf,
            0x9592_46ee,
        ];
        let message: [u8; 12] = core::array::from_fn(|i| i as u8);
        for (len, vector) in vectors.into_iter().enumerate() {
            assert_eq!(half_sip_13([0x0302_0100, 0x0706_0504], &message[..len]), vector, "{len} bytes");
        }
    }
}

//! An input, read as numbers. After its end it reads as zeros, so every input is valid for every target.

/// What is left of an input.
pub struct Data<'a>(pub &'a [u8]);

impl Data<'_> {
    /// Whether anything is left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((first, rest)) => {
                self.0 = rest;
                *first
            }
            None => 0,
        }
    }

    /// So many bytes as one number.
    fn bytes(&mut self, count: u32) -> u64 {
        (0..count).fold(0, |number, _| number << 8 | u64::from(self.byte()))
    }

    /// Any 64 bits.
    pub fn word(&mut self) -> u64 {
        self.bytes(8)
    }

    /// True for half of the bytes, and not behind the end.
    pub fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// True for one byte in sixteen, and not behind the end.
    pub fn rarely(&mut self) -> bool {
        self.byte() >= 240
    }

    /// A number below `n`, which is at most 256.
    pub fn below(&mut self, n: u64) -> u64 {
        u64::from(self.byte()) % n
    }

    /// A number in `low..=high`, both near: one byte; far: eight.
    pub fn within(&mut self, low: u64, high: u64) -> u64 {
        match high - low {
            span @ 0..=255 => low + u64::from(self.byte()) % (span + 1),
            u64::MAX => self.word(),
            span => low + self.word() % (span + 1),
        }
    }

    /// One of these.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::from(self.byte()) % from.len()]
    }

    /// A number of any magnitude below `2^bits`; a quarter of them lie around a power of two.
    pub fn scaled(&mut self, bits: u32) -> u64 {
        let first = u32::from(self.byte());
        let width = first % (bits + 1);
        let most = u64::MAX.checked_shr(64 - bits).unwrap_or(0);
        let number = match first {
            0..192 => self.bytes(width.div_ceil(8)) & u64::MAX.checked_shr(64 - width).unwrap_or(0),
            _ => {
                let off = i64::from(self.byte() as i8) >> 4;
                1u64.checked_shl(width).unwrap_or(0).wrapping_add_signed(off)
            }
        };
        number & most
    }

    /// A number where programs go wrong: 0, the largest, around a power of two, any.
    pub fn sharp(&mut self) -> u64 {
        match self.byte() % 4 {
            0 => self.pick(&[
                0,
                1,
                2,
                u64::MAX,
                u64::MAX - 1,
                1 << 63,
                (1 << 63) - 1,
                u32::MAX as u64,
                1 << 32,
            ]),
            1 => self.scaled(64),
            2 => self.byte().into(),
            _ => self.word(),
        }
    }
}

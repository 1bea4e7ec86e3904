//! One record of an input: when, how much, and the values that the key is made of.

/// One request, query or packet. Readers overwrite it, so that its memory is used again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// When it began, as well as the input says, in nanoseconds since 1970.
    pub time: u64,
    /// The time as it was written: the same, or that of its end. Its decimals tell how exact the clock of the log is.
    pub stamp: u64,
    /// The units that it asks for.
    pub cost: u64,
    /// The values of [`Wants::fields`], in that order.
    pub values: Vec<Vec<u8>>,
}

/// What the plan needs of each record. A reader finds these once, when it opens an input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wants {
    /// The fields of the key, by name. `address` and `path` are names that every format of requests has.
    pub fields: Vec<String>,
    /// The field that is the cost; without one, each record costs one unit.
    pub cost: Option<String>,
    /// The field that is the time, if it is not the usual one of the format.
    pub time: Option<String>,
}

impl Record {
    /// Makes a record with room for the values.
    pub fn new(wants: &Wants) -> Record {
        Record { time: 0, stamp: 0, cost: 1, values: vec![Vec::new(); wants.fields.len()] }
    }

    /// Sets the time, for a record that was stamped at its end.
    pub fn ended(&mut self, stamp: u64, duration: u64) {
        (self.stamp, self.time) = (stamp, stamp.saturating_sub(duration));
    }

    /// Overwrites a value.
    pub fn set(&mut self, index: usize, value: &[u8]) {
        self.values[index].clear();
        self.values[index].extend_from_slice(value);
    }
}

/// Reads a cost: a whole number of units. `-` is what servers log for "nothing was sent".
pub fn cost(text: &[u8]) -> Option<u64> {
    if text == b"-" {
        return Some(0);
    }
    digits(text)
}

/// Reads a number of digits only.
pub fn digits(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u64, |sum, byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        sum.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

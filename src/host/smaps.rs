//! Asks the kernel how many bytes of a mapping lie on huge pages: reads /proc/self/smaps by line, with a small buffer.

use super::HostError;

/// Counts the bytes of `start..start + bytes` that lie on huge pages. For a mapping that reaches beyond the range it
/// counts at most the part that lies inside.
#[cfg(tatcell_linux)]
pub(crate) fn huge_bytes(start: usize, bytes: usize) -> Result<usize, HostError> {
    let mut sum = Sum { start, end: start.saturating_add(bytes), inside: 0, total: 0 };
    // SAFETY: a string with a terminating 0.
    let fd = unsafe { libc::open(c"/proc/self/smaps".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    if fd < 0 {
        return Err(super::last_error());
    }
    let (mut line, mut used) = ([0u8; 128], 0);
    let mut chunk = [0u8; 1024];
    let result = loop {
        // SAFETY: an open descriptor, and room for that many bytes.
        let got = unsafe { libc::read(fd, chunk.as_mut_ptr().cast(), chunk.len()) };
        let got = match usize::try_from(got) {
            Ok(0) => break Ok(sum.total),
            Ok(n) => n,
            Err(_) => break Err(super::last_error()),
        };
        for &byte in chunk.get(..got).unwrap_or(&[]) {
            if byte == b'\n' {
                sum.line(line.get(..used).unwrap_or(&[]));
                used = 0;
            } else if let Some(place) = line.get_mut(used) {
                // The rest of a longer line (a file name) is not needed.
                *place = byte;
                used += 1;
            }
        }
    };
    // SAFETY: the descriptor is ours.
    let _ = unsafe { libc::close(fd) };
    result
}

#[cfg(not(tatcell_linux))]
pub(crate) fn huge_bytes(_start: usize, _bytes: usize) -> Result<usize, HostError> {
    Err(HostError::Unsupported)
}

/// The sums of the lines read so far.
#[cfg(tatcell_linux)]
struct Sum {
    start: usize,
    end: usize,
    /// Bytes of the current mapping that lie in the range and are not counted yet.
    inside: usize,
    total: usize,
}

#[cfg(tatcell_linux)]
impl Sum {
    /// "7f00c0000000-7f00c0200000 rw-p ..." starts a mapping; "AnonHugePages:   2048 kB" describes it.
    fn line(&mut self, line: &[u8]) {
        let word = line.split(|&b| b == b' ').next().unwrap_or(&[]);
        match word {
            b"AnonHugePages:" | b"ShmemPmdMapped:" | b"FilePmdMapped:" | b"Shared_Hugetlb:"
            | b"Private_Hugetlb:" => {
                let digits = line.get(word.len()..).unwrap_or(&[]).iter().filter(|b| b.is_ascii_digit());
                let kib =
                    digits.fold(0usize, |n, b| n.saturating_mul(10).saturating_add((b - b'0') as usize));
                let counted = kib.saturating_mul(1024).min(self.inside);
                self.inside -= counted;
                self.total += counted;
            }
            _ => {
                let mut ends = word.splitn(2, |&b| b == b'-').map(hexadecimal);
                if let (Some(Some(low)), Some(Some(high))) = (ends.next(), ends.next()) {
                    self.inside = high.min(self.end).saturating_sub(low.max(self.start));
                }
            }
        }
    }
}

/// Parses a hexadecimal number, which must be the whole text.
#[cfg(tatcell_linux)]
fn hexadecimal(digits: &[u8]) -> Option<usize> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0usize, |n, &b| {
        let digit = (b as char).to_digit(16)?;
        n.checked_mul(16)?.checked_add(digit as usize)
    })
}

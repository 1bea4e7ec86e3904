//! Where the bytes of an input come from: a file or a pipe, compressed or not.

use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use flate2::bufread::GzDecoder;

/// A source of bytes.
pub(super) type Bytes = Box<dyn Read + Send>;

/// What is looked at to find the format.
pub(super) const HEAD: usize = 1 << 16;

/// Counts the bytes that come from the file, for the progress.
pub(super) struct Counted<R> {
    pub(super) inner: R,
    pub(super) read: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        // ORDERING: Relaxed; a single number, which nothing else depends on.
        self.read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// Ends a source with its error, also if it is asked again.
struct Broken(io::Error);

impl Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::new(self.0.kind(), self.0.to_string()))
    }
}

/// The start of an input.
pub(super) struct Head {
    pub(super) start: Vec<u8>,
    /// All of it, from its start on.
    pub(super) input: Bytes,
    /// Why it ends where the start ends. The input has this error there, too.
    pub(super) cut: Option<String>,
}

/// Reads the start of an input.
pub(super) fn head(mut input: Bytes) -> io::Result<Head> {
    let mut start = Vec::with_capacity(HEAD);
    let (end, cut): (Bytes, _) = match input.by_ref().take(HEAD as u64).read_to_end(&mut start) {
        Ok(_) => (input, None),
        Err(error) if start.is_empty() => return Err(error),
        Err(error) => {
            let cut = error.to_string();
            (Box::new(Broken(error)), Some(cut))
        }
    };
    let input = Box::new(Cursor::new(start.clone()).chain(end));
    Ok(Head { start, input, cut })
}

/// Whether an input begins as zstd does: with a frame, or with one to be skipped, as pzstd writes it.
fn is_zstd(start: &[u8]) -> bool {
    matches!(start, [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
}

/// Takes the compression away that the start of an input shows.
pub(super) fn unpack(packed: Head) -> io::Result<Head> {
    if packed.start.starts_with(&[0x1f, 0x8b]) {
        head(Box::new(Gzip(Some(GzDecoder::new(BufReader::new(packed.input))))))
    } else if is_zstd(&packed.start) {
        head(Box::new(zstd::Decoder::new(packed.input)?))
    } else {
        Ok(packed)
    }
}

/// Whether a text has two bytes for each character: it says so, or every other byte is 0.
fn is_utf16(start: &[u8]) -> bool {
    let pairs = start[..start.len().min(64)].chunks_exact(2);
    let zeros = |at: usize| pairs.clone().all(|pair| pair[at] == 0 && pair[1 - at] != 0);
    start.starts_with(&[0xff, 0xfe])
        || start.starts_with(&[0xfe, 0xff])
        || pairs.len() > 3 && (zeros(0) || zeros(1))
}

/// Says what another program must do with an input before it is read.
pub(super) fn foreign(start: &[u8], is_text: bool) -> Option<&'static str> {
    match start {
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => {
            Some("it is compressed by xz: unpack it as in xz -dc FILE | tatcell plan -")
        }
        [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, 0x59, 0x26, 0x53, 0x59, ..] => {
            Some("it is compressed by bzip2: unpack it as in bzip2 -dc FILE | tatcell plan -")
        }
        _ if is_text && is_utf16(start) => Some("the text is UTF-16: convert it by iconv -f UTF-16 -t UTF-8"),
        _ => None,
    }
}

/// gzip in one or more parts. Zeros behind a part are padding, as tapes have it.
struct Gzip(Option<GzDecoder<BufReader<Bytes>>>);

impl Read for Gzip {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(part) = &mut self.0 {
            let count = part.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            let rest = self.0.take().map(GzDecoder::into_inner);
            self.0 = rest.map(behind_padding).transpose()?.flatten().map(GzDecoder::new);
        }
        Ok(0)
    }
}

/// Passes over zeros. None at the end of the input.
fn behind_padding(mut input: BufReader<Bytes>) -> io::Result<Option<BufReader<Bytes>>> {
    loop {
        let bytes = input.fill_buf()?;
        if bytes.is_empty() {
            return Ok(None);
        }
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        let all = zeros == bytes.len();
        input.consume(zeros);
        if !all {
            return Ok(Some(input));
        }
    }
}

//! Objects between guard pages: a read or a write outside of the page faults, and a write next to the object in its
//! page is detected.
//!
//! ```text
//!  guard | pattern ......... [ object ] | guard      at the end: a byte too far faults
//!  guard | [ object ] ......... pattern | guard      at the start: a byte before faults
//! ```

/// Bytes of a page.
const PAGE: usize = 4096;
/// Bytes between the guards.
pub const ROOM: usize = 3 * PAGE;
/// How many pieces there are.
const PIECES: usize = 64;
/// What lies beside objects.
const PATTERN: u8 = 0xa5;

/// Pieces of memory, each with a guard before and behind it.
pub struct Arena {
    base: *mut u8,
    objects: Vec<Object>,
}

/// An object in the piece of its number.
struct Object {
    at: usize,
    size: usize,
    may_change: bool,
    before: Vec<u8>,
}

impl Arena {
    /// Maps the pieces.
    pub fn new() -> Arena {
        let bytes = PIECES * (ROOM + PAGE) + PAGE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a fresh anonymous mapping; checked below.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0) };
        assert_ne!(base, libc::MAP_FAILED);
        let arena = Arena { base: base.cast(), objects: Vec::new() };
        for piece in 0..PIECES {
            let both = libc::PROT_READ | libc::PROT_WRITE;
            // SAFETY: a part of the mapping made above.
            assert_eq!(unsafe { libc::mprotect(arena.piece(piece).cast(), ROOM, both) }, 0);
        }
        arena
    }

    fn piece(&self, number: usize) -> *mut u8 {
        assert!(number < PIECES, "too many objects");
        // SAFETY: inside of the mapping, by the number's bound.
        unsafe { self.base.add(PAGE + number * (ROOM + PAGE)) }
    }

    /// Forgets all objects.
    pub fn clear(&mut self) {
        self.objects.clear();
    }

    /// Puts an object of these bytes at the end or at the start of a piece, aligned.
    pub fn place(&mut self, content: &[u8], align: usize, at_end: bool, may_change: bool) -> usize {
        let (size, number) = (content.len(), self.objects.len());
        assert!(size <= ROOM && align <= PAGE);
        let piece = self.piece(number);
        let at = if at_end { (ROOM - size) / align * align } else { 0 };
        // SAFETY: a piece has ROOM bytes, which nobody else has; the object lies in it.
        unsafe {
            piece.write_bytes(PATTERN, ROOM);
            piece.add(at).copy_from_nonoverlapping(content.as_ptr(), size);
        }
        self.objects.push(Object { at, size, may_change, before: Vec::new() });
        piece as usize + at
    }

    fn bytes(&self, number: usize) -> &[u8] {
        // SAFETY: a piece has ROOM bytes, all of them written; nobody writes while this is held.
        unsafe { std::slice::from_raw_parts(self.piece(number), ROOM) }
    }

    /// Remembers every byte as it is now.
    pub fn remember(&mut self) {
        for number in 0..self.objects.len() {
            let bytes = self.bytes(number).to_vec();
            self.objects[number].before = bytes;
        }
    }

    /// Whether a byte changed that must not: beside objects, in those that are const, and, where `nothing` may, in any.
    pub fn damage(&self, nothing: bool) -> Option<String> {
        self.objects.iter().enumerate().find_map(|(number, object)| {
            let now = self.bytes(number);
            let place = now.iter().zip(&object.before).position(|(now, before)| now != before)?;
            let inside = (object.at..object.at + object.size).contains(&place);
            // The first byte that differs may be a lawful one, and a later one not.
            let beside = now[..object.at] != object.before[..object.at]
                || now[object.at + object.size..] != object.before[object.at + object.size..];
            let bad = beside || nothing || !object.may_change;
            let Object { size, may_change, .. } = object;
            let byte = place as isize - object.at as isize;
            bad.then(|| {
                format!("object {number} of {size} bytes, may change: {may_change}: byte {byte}, inside: {inside}")
            })
        })
    }
}

impl Default for Arena {
    fn default() -> Arena {
        Arena::new()
    }
}

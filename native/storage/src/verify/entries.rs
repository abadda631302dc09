//! Entries of an index file, read in order through a small buffer.

use std::fs::File;
use std::io;
use std::path::Path;

use pybroker_sys::file::read_full_at;

const ENTRIES_AT_ONCE: usize = 2048;

/// Reads entries of `SIZE` bytes.
pub(super) struct Entries<const SIZE: usize> {
    file: File,
    /// Number of complete entries in the file.
    count: u64,
    /// Bytes after the last complete entry.
    pub(super) torn: u64,
    next: u64,
    buffer: Vec<u8>,
    /// Number of the first entry in the buffer.
    start: u64,
}

impl<const SIZE: usize> Entries<SIZE> {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let len = file.metadata()?.len();
        let (count, torn) = (len / SIZE as u64, len % SIZE as u64);
        Ok(Self { file, count, torn, next: 0, buffer: Vec::new(), start: 0 })
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Returns the number of the entry that `peek` returns.
    pub(super) fn number(&self) -> u64 {
        self.next
    }

    /// Returns the next entry without consuming it; `None` after the last.
    pub(super) fn peek(&mut self) -> io::Result<Option<[u8; SIZE]>> {
        if self.next >= self.count {
            return Ok(None);
        }
        let mut at = (self.next - self.start) as usize * SIZE;
        if at >= self.buffer.len() {
            let entries = (self.count - self.next).min(ENTRIES_AT_ONCE as u64) as usize;
            self.buffer.resize(entries * SIZE, 0);
            let read = read_full_at(&self.file, &mut self.buffer, self.next * SIZE as u64)?;
            self.buffer.truncate(read / SIZE * SIZE);
            (self.start, at) = (self.next, 0);
        }
        Ok(self.buffer.get(at..at + SIZE).and_then(|bytes| bytes.try_into().ok()))
    }

    pub(super) fn advance(&mut self) {
        self.next += 1;
    }
}

/// Decodes a big-endian field.
pub(super) fn word(bytes: &[u8]) -> u32 {
    u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

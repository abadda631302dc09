//! Scans of the batches of a segment file: headers only, or complete batches. A message of format v0 or v1 counts as
//! a batch ([`BatchHeader::parse_stored`]).
//!
//! Owns the reading in chunks and the checks that keep a scan inside the file. Must not know indexes. A scan ends at
//! an incomplete batch or an invalid header; the caller decides whether that is a torn tail.

use std::fs::File;
use std::io;

use pybroker_record::{BatchHeader, HEADER_LEN, SMALLEST_BATCH};
use pybroker_sys::file::read_full_at;

const HEADER_CHUNK: usize = 4096;
/// Larger batches are skipped header by header. Smaller ones are read in chunks.
const SMALL_BATCH: usize = 1024;
/// Small enough that the bytes are still in the processor's cache when they are checked.
const BATCH_CHUNK: usize = 256 << 10;

/// Reads headers at ascending positions: one at a time, or through a small buffer where batches are small.
pub(crate) struct HeaderScan<'a> {
    file: &'a File,
    limit: u64,
    /// A single header is read to this array. The chunk buffer is allocated for the first chunk.
    header: [u8; HEADER_LEN],
    buffer: Vec<u8>,
    start: u64,
    filled: usize,
    /// Bytes to read next, derived from the size of the last batch.
    step: usize,
}

impl<'a> HeaderScan<'a> {
    /// Creates a scan of the first `limit` bytes.
    pub(crate) fn new(file: &'a File, limit: u64) -> Self {
        Self { file, limit, header: [0; HEADER_LEN], buffer: Vec::new(), start: 0, filled: 0, step: HEADER_LEN }
    }

    /// Like [`Self::new`], but reads a chunk at once: for a scan of every batch from its first position on.
    pub(crate) fn ahead(file: &'a File, limit: u64) -> Self {
        Self { step: HEADER_CHUNK, ..Self::new(file, limit) }
    }

    /// Returns the header of the batch at `position`; `None` at the limit, or when there is no complete batch.
    pub(crate) fn header_at(&mut self, position: u64) -> io::Result<Option<BatchHeader>> {
        if position.saturating_add(SMALLEST_BATCH as u64) > self.limit {
            return Ok(None);
        }
        let left = self.limit - position;
        let buffered = self.start..self.start + self.filled as u64;
        let parsed = if buffered.contains(&position) && position + left.min(HEADER_LEN as u64) <= buffered.end {
            BatchHeader::parse_stored(&self.buffer[(position - self.start) as usize..self.filled])
        } else if self.step == HEADER_LEN {
            let wanted = left.min(HEADER_LEN as u64) as usize;
            let read = read_full_at(self.file, &mut self.header[..wanted], position)?;
            BatchHeader::parse_stored(&self.header[..read])
        } else {
            let wanted = left.min(self.step as u64) as usize;
            self.buffer.resize(HEADER_CHUNK, 0);
            self.filled = read_full_at(self.file, &mut self.buffer[..wanted], position)?;
            self.start = position;
            BatchHeader::parse_stored(&self.buffer[..self.filled])
        };
        let Ok(header) = parsed else { return Ok(None) };
        self.step = if header.size() <= SMALL_BATCH { HEADER_CHUNK } else { HEADER_LEN };
        Ok((position + header.size() as u64 <= self.limit).then_some(header))
    }
}

/// Reads complete batches in order, through a buffer of the size of a chunk or the largest batch.
pub(crate) struct BatchScan<'a> {
    file: &'a File,
    limit: u64,
    position: u64,
    /// The first `filled` bytes are those of the file from `start` on. The rest is unused capacity, which is not
    /// zeroed again.
    buffer: Vec<u8>,
    filled: usize,
    start: u64,
    chunk: usize,
}

/// A batch and its position.
pub(crate) struct ScannedBatch<'a> {
    pub(crate) position: u64,
    pub(crate) header: BatchHeader,
    pub(crate) bytes: &'a [u8],
}

impl<'a> BatchScan<'a> {
    /// Creates a scan from `position` (the start of a batch) to `limit`.
    pub(crate) fn new(file: &'a File, position: u64, limit: u64) -> Self {
        Self::by_chunks(file, position, limit, BATCH_CHUNK)
    }

    /// Like [`Self::new`], but reads at most `chunk` bytes at once, unless a batch is larger.
    pub(crate) fn by_chunks(file: &'a File, position: u64, limit: u64, chunk: usize) -> Self {
        Self { file, limit, position, buffer: Vec::new(), filled: 0, start: position, chunk }
    }

    /// Returns the next complete batch; `None` at the limit, or when there is no complete batch.
    pub(crate) fn next(&mut self) -> io::Result<Option<ScannedBatch<'_>>> {
        let left = self.limit.saturating_sub(self.position);
        if left < SMALLEST_BATCH as u64 || !self.fill(left.min(HEADER_LEN as u64) as usize)? {
            return Ok(None);
        }
        let Ok(header) = BatchHeader::parse_stored(self.buffered()) else { return Ok(None) };
        let size = header.size();
        if self.position + size as u64 > self.limit || !self.fill(size)? {
            return Ok(None);
        }
        let position = self.position;
        let from = (position - self.start) as usize;
        self.position += size as u64;
        Ok(Some(ScannedBatch { position, header, bytes: &self.buffer[from..from + size] }))
    }

    fn buffered(&self) -> &[u8] {
        &self.buffer[(self.position - self.start) as usize..self.filled]
    }

    /// Ensures that at least `needed` bytes from the position on are in the buffer. They must lie below the limit.
    fn fill(&mut self, needed: usize) -> io::Result<bool> {
        let at = (self.position - self.start) as usize;
        let have = self.filled.saturating_sub(at);
        if have >= needed {
            return Ok(true);
        }
        let wanted = (self.limit - self.position).min(needed.max(self.chunk) as u64) as usize;
        self.buffer.copy_within(self.filled - have..self.filled, 0);
        if self.buffer.len() < wanted {
            self.buffer.resize(wanted, 0);
        }
        self.start = self.position;
        self.filled = have;
        self.filled += read_full_at(self.file, &mut self.buffer[have..wanted], self.position + have as u64)?;
        Ok(self.filled >= needed)
    }
}

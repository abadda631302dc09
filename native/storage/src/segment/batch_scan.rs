//! Walking the batches of a segment file: headers only, or whole batches. A message of format v0 or v1 is a batch of its
//! own here ([`BatchHeader::parse_stored`]).
//!
//! Owns the reading in chunks and the checks that keep a walk inside the file. It must not know indexes. Walks end where
//! a batch is not whole or its header makes no sense; whether that is a torn tail is for the caller to say.

use std::fs::File;
use std::io;

use pybroker_record::{BatchHeader, HEADER_LEN, SMALLEST_BATCH};
use pybroker_sys::file::read_full_at;

const HEADER_CHUNK: usize = 4096;
/// Batches larger than this are stepped over header by header; of smaller ones a chunk is read at once.
const SMALL_BATCH: usize = 1024;
/// Small enough that what was read is still in the processor's cache when it is checked.
const BATCH_CHUNK: usize = 256 << 10;

/// Reads headers at rising positions: one at a time, or through a small buffer where batches are small.
pub(crate) struct HeaderScan<'a> {
    file: &'a File,
    limit: u64,
    /// One header is read to the stack; room for a chunk is made when the first one is read.
    header: [u8; HEADER_LEN],
    buffer: Vec<u8>,
    start: u64,
    filled: usize,
    /// How much to read next: sized by the batch seen last.
    step: usize,
}

impl<'a> HeaderScan<'a> {
    /// A walk over the first `limit` bytes.
    pub(crate) fn new(file: &'a File, limit: u64) -> Self {
        Self { file, limit, header: [0; HEADER_LEN], buffer: Vec::new(), start: 0, filled: 0, step: HEADER_LEN }
    }

    /// The same, of which a chunk is read at once: for a walk that is to see every batch from its first position on.
    pub(crate) fn ahead(file: &'a File, limit: u64) -> Self {
        Self { step: HEADER_CHUNK, ..Self::new(file, limit) }
    }

    /// The header of the batch at `position`; `None` at the limit, or when no whole batch is there.
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

/// Reads whole batches in order through a buffer that is as large as a chunk or the largest batch.
pub(crate) struct BatchScan<'a> {
    file: &'a File,
    limit: u64,
    position: u64,
    /// The first `filled` bytes are those of the file from `start` on; the rest is room that is not cleared again.
    buffer: Vec<u8>,
    filled: usize,
    start: u64,
    chunk: usize,
}

/// A batch and where it starts.
pub(crate) struct ScannedBatch<'a> {
    pub(crate) position: u64,
    pub(crate) header: BatchHeader,
    pub(crate) bytes: &'a [u8],
}

impl<'a> BatchScan<'a> {
    /// A walk from `position` (the start of a batch) to `limit`.
    pub(crate) fn new(file: &'a File, position: u64, limit: u64) -> Self {
        Self::by_chunks(file, position, limit, BATCH_CHUNK)
    }

    /// The same, of which not more than `chunk` bytes are read at once, unless a batch is larger.
    pub(crate) fn by_chunks(file: &'a File, position: u64, limit: u64, chunk: usize) -> Self {
        Self { file, limit, position, buffer: Vec::new(), filled: 0, start: position, chunk }
    }

    /// The next whole batch; `None` at the limit, or when no whole batch is there.
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

    /// Makes at least `needed` bytes from the position on available; they are known to lie below the limit.
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

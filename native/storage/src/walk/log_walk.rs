//! Reads a file of batches without trusting its content, for tools: `pybroker dump-log`.
//!
//! Owns the reading in chunks, and stops where Kafka's own reader stops: before an incomplete batch, and with an
//! error at an impossible size. Unlike recovery it continues after a batch with a wrong checksum. Must not know the
//! log of the file or the output format.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::LogError;
use pybroker_record::{BatchHeader, HEADER_LEN, LOG_OVERHEAD};
use pybroker_sys::file::read_full_at;

const CHUNK: usize = 1 << 20;
/// Offset, size, four bytes that depend on the format, and the magic.
const UP_TO_MAGIC: usize = 17;
/// A record of format 0 without key and value: the minimum size of a batch.
const SMALLEST_RECORD: i32 = 14;

/// Why a walk ends before the end of the file.
#[derive(Debug, thiserror::Error)]
pub enum WalkError {
    /// The file cannot be read.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// An impossible size. The message is Kafka's.
    #[error(
        "Found record size {size} smaller than minimum record overhead ({SMALLEST_RECORD}) in file {path}.",
        path = path.display()
    )]
    TooSmall {
        /// The file.
        path: PathBuf,
        /// The size in the file.
        size: i32,
    },
    /// The file ends inside the header of a batch whose size is smaller than a header.
    #[error("Failed to load record batch at position {position} from {path}", path = path.display())]
    ShortHeader {
        /// The file.
        path: PathBuf,
        /// Position of the batch in the file.
        position: u64,
    },
}

/// The walk; see the module.
#[derive(Debug)]
pub struct LogWalk {
    path: PathBuf,
    file: File,
    /// Position of the next batch.
    position: u64,
    /// Bytes from this position on are not read.
    end: u64,
    buffer: Vec<u8>,
    /// Position in the file of the buffer's first byte.
    start: u64,
}

/// A batch as stored: of format 2 or later, or a record of an earlier format.
#[derive(Clone, Copy, Debug)]
pub struct WalkedBatch<'a> {
    /// Position of its first byte in the file.
    pub position: u64,
    /// The format.
    pub magic: i8,
    /// All of its bytes.
    pub bytes: &'a [u8],
    /// The header, for formats from 2 on. An unknown format is read as format 2, as Kafka does.
    pub header: Option<BatchHeader>,
}

/// Parses a header without checking format and length.
fn lenient_header(bytes: &[u8]) -> Option<BatchHeader> {
    let mut header: [u8; HEADER_LEN] = *bytes.first_chunk()?;
    let (length, magic) = (i32::from_be_bytes([header[8], header[9], header[10], header[11]]), header[16]);
    header[8..12].copy_from_slice(&i32::MAX.to_be_bytes());
    header[16] = 2;
    Some(BatchHeader { magic: magic as i8, batch_length: length, ..BatchHeader::parse(&header).ok()? })
}

impl LogWalk {
    /// Opens a walk over the first `limit` bytes of a file.
    ///
    /// # Errors
    /// `Io` when the file cannot be opened.
    pub fn open(path: &Path, limit: u64) -> Result<Self, LogError> {
        let file = File::open(path).map_err(LogError::io(path))?;
        let end = file.metadata().map_err(LogError::io(path))?.len().min(limit);
        Ok(Self { path: path.to_path_buf(), file, position: 0, end, buffer: Vec::new(), start: 0 })
    }

    /// Returns the position where the walk ends.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Moves to `position`, which should be the start of a batch.
    pub fn seek(&mut self, position: u64) {
        self.position = position;
    }

    /// Returns the next batch; `None` at the end, or if no complete batch follows.
    ///
    /// # Errors
    /// [`WalkError`]. The walk is then over.
    pub fn next_batch(&mut self) -> Result<Option<WalkedBatch<'_>>, WalkError> {
        let Some((size, magic)) = self.size_at(self.position, self.end, CHUNK)? else { return Ok(None) };
        let position = self.position;
        // If a batch is smaller than a header, the header extends into the following bytes.
        self.fill(position, if magic < 2 { size } else { size.max(HEADER_LEN) }, CHUNK)?;
        let bytes = &self.buffer[(position - self.start) as usize..];
        let header = if magic < 2 { None } else { lenient_header(bytes) };
        self.position += size as u64;
        Ok(Some(WalkedBatch { position, magic, bytes: &bytes[..size], header }))
    }

    /// Returns the last offset of the batch at `position`, if a complete batch lies within `limit` bytes of it. Reads
    /// only the header.
    ///
    /// # Errors
    /// [`WalkError`].
    pub fn last_offset_at(&mut self, position: u64, limit: u64) -> Result<Option<i64>, WalkError> {
        let end = position.saturating_add(limit).min(self.end);
        Ok(self.header_at(position, end)?.map(|(last_offset, _)| last_offset))
    }

    /// Returns the first batch from `position` on whose last offset is at least `offset`.
    ///
    /// # Errors
    /// [`WalkError`].
    pub fn find(&mut self, position: u64, offset: i64) -> Result<Option<WalkedBatch<'_>>, WalkError> {
        self.position = position;
        while let Some((last_offset, size)) = self.header_at(self.position, self.end)? {
            if last_offset >= offset {
                return self.next_batch();
            }
            self.position += size as u64;
        }
        Ok(None)
    }

    /// Returns last offset and size of the batch at `position`.
    fn header_at(&mut self, position: u64, end: u64) -> Result<Option<(i64, usize)>, WalkError> {
        let Some((size, magic)) = self.size_at(position, end, HEADER_LEN)? else { return Ok(None) };
        let wanted = if magic < 2 { UP_TO_MAGIC } else { HEADER_LEN };
        self.fill(position, wanted, HEADER_LEN)?;
        let bytes = &self.buffer[(position - self.start) as usize..];
        let base = bytes.first_chunk().map_or(-1, |offset| i64::from_be_bytes(*offset));
        let last_delta = match bytes.get(23..27) {
            Some(&[a, b, c, d]) if magic >= 2 => i32::from_be_bytes([a, b, c, d]),
            _ => 0,
        };
        Ok(Some((base.wrapping_add(i64::from(last_delta)), size)))
    }

    /// Returns size and magic of the batch at `position`, if it ends before `end`.
    fn size_at(&mut self, position: u64, end: u64, chunk: usize) -> Result<Option<(usize, i8)>, WalkError> {
        if position.saturating_add(UP_TO_MAGIC as u64) >= end {
            return Ok(None);
        }
        self.fill(position, UP_TO_MAGIC, chunk)?;
        let head = &self.buffer[(position - self.start) as usize..];
        let size = i32::from_be_bytes([head[8], head[9], head[10], head[11]]);
        if size < SMALLEST_RECORD {
            return Err(WalkError::TooSmall { path: self.path.clone(), size });
        }
        let size = LOG_OVERHEAD + size as usize;
        Ok((position + size as u64 <= end).then_some((size, head[UP_TO_MAGIC - 1] as i8)))
    }

    /// Ensures that `wanted` bytes from `position` on are in the buffer. Reads at least `chunk` bytes if the file has
    /// them.
    fn fill(&mut self, position: u64, wanted: usize, chunk: usize) -> Result<(), WalkError> {
        let buffered = self.start..self.start + self.buffer.len() as u64;
        if buffered.contains(&position) && position + wanted as u64 <= buffered.end {
            return Ok(());
        }
        self.buffer.resize(wanted.max(chunk), 0);
        let read = read_full_at(&self.file, &mut self.buffer, position);
        let read = read.map_err(|source| WalkError::Io { path: self.path.clone(), source })?;
        self.buffer.truncate(read);
        self.start = position;
        let short = || WalkError::ShortHeader { path: self.path.clone(), position };
        if read < wanted { Err(short()) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use pybroker_record::{BatchBuilder, Compression, set_base_offset};

    fn batch(base_offset: i64, records: usize, size: usize) -> Vec<u8> {
        let mut builder = BatchBuilder::new(Compression::None, None, usize::MAX);
        for _ in 0..records {
            builder.try_append(1, None, Some(&vec![b'x'; size]), &[]).unwrap();
        }
        let mut bytes = Vec::new();
        builder.finish(-1, -1, -1, &mut bytes).unwrap();
        set_base_offset(&mut bytes, base_offset);
        bytes
    }

    fn walk(bytes: &[u8], limit: u64) -> LogWalk {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.log");
        std::fs::write(&path, bytes).unwrap();
        LogWalk::open(&path, limit).unwrap()
    }

    fn positions(walk: &mut LogWalk) -> Vec<u64> {
        std::iter::from_fn(|| walk.next_batch().unwrap().map(|batch| batch.position)).collect()
    }

    #[test]
    fn every_whole_batch_is_met_whatever_its_checksum() {
        let mut bytes = [batch(0, 2, 10), batch(2, 1, 3 << 20), batch(3, 3, 0)].concat();
        let (second, third) = (batch(0, 2, 10).len() as u64, (bytes.len() - batch(3, 3, 0).len()) as u64);
        bytes[18] ^= 1;
        bytes.extend_from_slice(&batch(6, 1, 100)[..90]);
        assert_eq!(positions(&mut walk(&bytes, u64::MAX)), [0, second, third]);
        assert_eq!(positions(&mut walk(&bytes, third + 5)), [0, second]);
        let mut walk = walk(&bytes, u64::MAX);
        assert_eq!(walk.last_offset_at(third, 1 << 20).unwrap(), Some(5));
        assert_eq!(walk.last_offset_at(second, 1 << 20).unwrap(), None, "larger than the limit");
        assert_eq!(walk.find(0, 2).unwrap().map(|batch| batch.position), Some(second));
        assert!(walk.find(0, 6).unwrap().is_none());
    }

    #[test]
    fn a_size_that_no_batch_has_is_reported_in_kafkas_words() {
        let mut bytes = batch(0, 1, 10);
        bytes[8..12].copy_from_slice(&13i32.to_be_bytes());
        let error = walk(&bytes, u64::MAX).next_batch().unwrap_err().to_string();
        assert!(
            error.starts_with("Found record size 13 smaller than minimum record overhead (14) in file "),
            "{error}"
        );
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>, position in 0..300u64, offset: i64) {
            let mut walk = walk(&bytes, u64::MAX);
            while let Ok(Some(batch)) = walk.next_batch() {
                prop_assert!(batch.magic < 2 || batch.header.is_some());
            }
            let _ = walk.last_offset_at(position, 1000);
            let _ = walk.find(position, offset);
        }
    }
}

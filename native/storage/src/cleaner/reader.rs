//! Reads the batches of a segment in order, within the cleaner's throttle.

use std::sync::Arc;

use super::pass::{CleanError, Pass};
use crate::LogError;
use crate::segment::Segment;
use pybroker_record::{BatchHeader, HEADER_LEN, SMALLEST_BATCH, batch_crc};
use pybroker_sys::file::read_full_at;

/// Reads complete batches of a segment through a buffer that lasts for the whole pass.
///
/// The buffer has `log.cleaner.io.buffer.size` bytes and grows for a larger batch.
pub(crate) struct BatchReader {
    buffer: Vec<u8>,
    /// Start of the buffered bytes that were not returned yet.
    begin: usize,
    end: usize,
    segment: Option<Arc<Segment>>,
    /// Position in the segment of the byte at `end`.
    position: u64,
}

impl BatchReader {
    pub(crate) fn new(buffer_bytes: usize) -> Self {
        Self { buffer: vec![0; buffer_bytes.max(HEADER_LEN)], begin: 0, end: 0, segment: None, position: 0 }
    }

    /// Moves to the batch at `position` of a segment.
    pub(crate) fn seek(&mut self, segment: &Arc<Segment>, position: u64) {
        self.segment = Some(Arc::clone(segment));
        (self.begin, self.end, self.position) = (0, 0, position);
    }

    /// Returns the next batch; `None` at the end of the segment.
    ///
    /// # Errors
    /// `Corrupt` if the bytes are no complete batch, or message of an older format, with a valid checksum: the pass
    /// would write a valid checksum over damaged bytes.
    pub(crate) fn next(&mut self, pass: &Pass<'_>) -> Result<Option<(BatchHeader, &[u8])>, CleanError> {
        let Some(segment) = self.segment.clone() else { return Ok(None) };
        if self.begin == self.end && self.position >= segment.size() {
            return Ok(None);
        }
        let left = (self.end - self.begin) as u64 + segment.size() - self.position;
        // A message of an older format may be smaller than a batch header.
        self.fill(pass, &segment, left.clamp(SMALLEST_BATCH as u64, HEADER_LEN as u64) as usize)?;
        let parsed = BatchHeader::parse_stored(&self.buffer[self.begin..self.end]);
        let header = parsed.map_err(|error| self.corrupt(&segment, &error.to_string()))?;
        self.fill(pass, &segment, header.size())?;
        let from = self.begin;
        let bytes = &self.buffer[from..from + header.size()];
        if batch_crc(bytes) != header.crc {
            return Err(self.corrupt(&segment, "the checksum of the batch does not match").into());
        }
        self.begin += header.size();
        Ok(Some((header, &self.buffer[from..self.begin])))
    }

    /// Makes `needed` bytes available.
    fn fill(&mut self, pass: &Pass<'_>, segment: &Segment, needed: usize) -> Result<(), CleanError> {
        let have = self.end - self.begin;
        if have >= needed {
            return Ok(());
        }
        if segment.size() - self.position < (needed - have) as u64 {
            return Err(self.corrupt(segment, "the segment ends in the middle of a batch").into());
        }
        self.buffer.copy_within(self.begin..self.end, 0);
        (self.begin, self.end) = (0, have);
        if self.buffer.len() < needed {
            self.buffer.resize(needed, 0);
        }
        let capacity = (self.buffer.len() - have) as u64;
        let wanted = capacity.min(segment.size() - self.position) as usize;
        let read = read_full_at(&*segment.file()?, &mut self.buffer[have..have + wanted], self.position);
        let read = read.map_err(|error| segment.read_error(error))?;
        if read < wanted {
            return Err(self.corrupt(segment, "the file is shorter than the segment").into());
        }
        self.end += read;
        self.position += read as u64;
        pass.count(read)
    }

    fn corrupt(&self, segment: &Segment, reason: &str) -> LogError {
        let at = self.position - (self.end - self.begin) as u64;
        LogError::Corrupt { path: segment.path(), reason: format!("at position {at}: {reason}") }
    }
}

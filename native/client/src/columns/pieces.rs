//! A chunk that is returned in pieces, each an array of its own.
//!
//! Owns the position of the next piece: between two records, also inside a compressed batch, which is decompressed once. An
//! invalid batch is reported when it is first in a piece; the records before it were returned then.

use std::ops::{ControlFlow, Range};

use super::builder::{ColumnsBuilder, NewRow};
use super::{Pick, RecordColumns};
use crate::error::ClientError;
use crate::fetcher::chunk::{Chunk, timestamp};
use crate::fetcher::cursor::Cursor;
use pybroker_record::{
    BatchHeader, Compression, HEADER_LEN, Headers, Progress, Record, RecordError, Records, TimestampType,
    records_section, visit_records,
};

/// The limit of an array's 32-bit offsets, with a reserve for header keys that grow when converted to UTF-8.
const MOST_BYTES: usize = i32::MAX as usize / 3;
/// Messages of format v0 have no time.
const NO_TIMESTAMP: i32 = -1;

/// A batch of which some records were returned.
#[derive(Debug)]
struct OpenBatch {
    header: BatchHeader,
    /// Its range in the chunk.
    range: Range<usize>,
    progress: Progress,
}

/// Where a piece ended in a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Met {
    /// The batch's end.
    BatchEnd,
    /// At a record beyond the limits of the piece.
    Limit,
}

/// A chunk, and the position of the next piece.
#[derive(Debug)]
pub struct Pieces {
    chunk: Chunk,
    cursor: Cursor,
    open: Option<OpenBatch>,
    /// The offset at or before which the next piece begins.
    position: i64,
    done: bool,
    /// The decompressed records of the open batch.
    scratch: Vec<u8>,
}

impl Pieces {
    /// `scratch` is memory to reuse.
    pub fn new(chunk: Chunk, scratch: Vec<u8>) -> Self {
        let position = chunk.position;
        Self { chunk, cursor: Cursor::default(), open: None, position, done: false, scratch }
    }

    /// Topic and partition.
    pub fn partition(&self) -> (&str, i32) {
        (&self.chunk.topic, self.chunk.index)
    }

    /// The offset at which reading continues.
    pub fn position(&self) -> i64 {
        self.position
    }

    /// Whether all records were returned.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// The reusable memory.
    pub fn into_scratch(self) -> Vec<u8> {
        self.scratch
    }

    /// The next piece. It has no rows if no record is left or `end` is reached.
    pub fn take(&mut self, pick: Pick<'_>) -> Result<RecordColumns, ClientError> {
        let mut builder = ColumnsBuilder::new(pick.columns);
        match self.fill(&mut builder, pick) {
            Err(error) if builder.rows() == 0 => return Err(error),
            _ => {}
        }
        let (topic, index, bytes) = (std::sync::Arc::clone(&self.chunk.topic), self.chunk.index, builder.bytes());
        let array = builder.finish(&topic, index);
        Ok(RecordColumns { topic, index, bytes, next_offset: self.position, array })
    }

    fn fill(&mut self, builder: &mut ColumnsBuilder<'_>, pick: Pick<'_>) -> Result<(), ClientError> {
        let end = pick.end.unwrap_or(i64::MAX);
        let mut capacity = pick.max_bytes.min(MOST_BYTES);
        while self.position < end && builder.rows() < pick.max_rows && self.open()? {
            let Some(open) = &mut self.open else { break };
            let (header, bytes) = (open.header, &self.chunk.bytes()[open.range.clone()]);
            let mut piece = Piece { builder, position: &mut self.position, end, max_rows: pick.max_rows, capacity };
            let met = if header.magic < 2 {
                let max = self.chunk.max_decompressed_bytes;
                piece.take_old(&header, bytes, &mut self.scratch, max)
            } else {
                let plain = matches!(header.compression(), Ok(Compression::None));
                let section = if plain { &bytes[HEADER_LEN..] } else { &self.scratch[..] };
                piece.reserve(section, open, self.cursor.left(&self.chunk));
                piece.take(&header, section, &mut open.progress)
            };
            capacity = piece.capacity;
            match met.map_err(|e| self.chunk.corrupt(header.base_offset, e.to_string()))? {
                Met::Limit => return Ok(()),
                Met::BatchEnd => {
                    self.cursor.pass(&header);
                    self.position = self.position.max(header.next_offset());
                    self.open = None;
                    self.end_with(self.cursor.left(&self.chunk) == 0);
                }
            }
        }
        Ok(())
    }

    fn end_with(&mut self, done: bool) {
        if done {
            self.done = true;
            self.position = self.position.max(self.chunk.next_offset);
        }
    }

    /// Find and decompress the next batch, unless one is open; returns whether there is one.
    fn open(&mut self) -> Result<bool, ClientError> {
        if self.open.is_some() {
            return Ok(true);
        }
        let Some((header, bytes)) = self.cursor.find(&self.chunk, &mut self.scratch)? else {
            self.end_with(true);
            return Ok(false);
        };
        if header.magic >= 2 {
            records_section(&header, bytes, &mut self.scratch, self.chunk.max_decompressed_bytes)
                .map_err(|e| self.chunk.corrupt(header.base_offset, e.to_string()))?;
        }
        let begin = self.chunk.bytes().len() - self.cursor.left(&self.chunk);
        self.open = Some(OpenBatch { header, range: begin..begin + header.size(), progress: Progress::default() });
        Ok(true)
    }
}

/// One piece, while it is filled.
struct Piece<'b, 'p> {
    builder: &'b mut ColumnsBuilder<'p>,
    position: &'b mut i64,
    end: i64,
    max_rows: usize,
    /// Bytes left for further records.
    capacity: usize,
}

impl Piece<'_, '_> {
    /// Whether a record of so many bytes is within the limits of the piece.
    #[inline(always)]
    fn takes(&self, offset: i64, bytes: usize) -> bool {
        let rows = self.builder.rows();
        offset < self.end && rows < self.max_rows && (bytes <= self.capacity || rows == 0)
    }

    /// End the piece: the next record is at `offset`.
    fn stop(&mut self, offset: i64) {
        *self.position = offset.min(self.end).max(*self.position);
    }

    /// Reserve space for the rest of a batch and the batches after it.
    fn reserve(&mut self, section: &[u8], open: &OpenBatch, left: usize) {
        let records = (open.header.record_count - open.progress.records()).max(1) as usize;
        let rows = records.min(self.max_rows - self.builder.rows());
        let bytes = section.len() - open.progress.bytes();
        // As many records of that size as the piece may have, but not more than are left.
        let all = bytes.max(left).min((bytes / records + 1).saturating_mul(self.max_rows));
        self.builder.reserve(rows, all.min(self.capacity));
    }

    fn take(&mut self, header: &BatchHeader, section: &[u8], progress: &mut Progress) -> Result<Met, RecordError> {
        let mut records = Records::resume(section, header.record_count, *progress);
        let timestamp_type = i32::from(header.timestamp_type() == TimestampType::LogAppendTime);
        while let Some(record) = records.next() {
            let record = record?;
            let offset = header.base_offset + i64::from(record.offset_delta);
            let bytes = records.progress().bytes() - progress.bytes();
            if offset >= *self.position {
                if !self.takes(offset, bytes) {
                    self.stop(offset);
                    return Ok(Met::Limit);
                }
                if record.header_count > 0 && self.builder.has_headers() {
                    check_headers(&record)?;
                }
                self.builder.push(NewRow {
                    offset,
                    timestamp_ms: timestamp(header, &record),
                    timestamp_type,
                    producer_id: header.producer_id,
                    key: record.key,
                    value: record.value,
                    headers: Headers::new(&record).map_while(Result::ok),
                });
                self.capacity = self.capacity.saturating_sub(bytes);
                *self.position = offset + 1;
            }
            *progress = records.progress();
        }
        Ok(Met::BatchEnd)
    }

    /// Old formats: a wrapper message is decompressed again for each piece; they are rare and small.
    fn take_old(
        &mut self,
        header: &BatchHeader,
        bytes: &[u8],
        scratch: &mut Vec<u8>,
        max: usize,
    ) -> Result<Met, RecordError> {
        let mut met = Met::BatchEnd;
        let timestamp_type = match header.magic {
            0 => NO_TIMESTAMP,
            _ => i32::from(header.timestamp_type() == TimestampType::LogAppendTime),
        };
        visit_records(header, bytes, scratch, max, |stored| {
            let bytes = stored.key.map_or(0, <[u8]>::len) + stored.value.map_or(0, <[u8]>::len);
            if stored.offset < *self.position {
                return ControlFlow::Continue(());
            }
            if !self.takes(stored.offset, bytes) {
                self.stop(stored.offset);
                met = Met::Limit;
                return ControlFlow::Break(());
            }
            self.builder.push(NewRow {
                offset: stored.offset,
                timestamp_ms: stored.timestamp,
                timestamp_type,
                producer_id: header.producer_id,
                key: stored.key,
                value: stored.value,
                headers: std::iter::empty(),
            });
            self.capacity = self.capacity.saturating_sub(bytes);
            *self.position = stored.offset + 1;
            ControlFlow::Continue(())
        })?;
        Ok(met)
    }
}

fn check_headers(record: &Record<'_>) -> Result<(), RecordError> {
    let bad = |reason| RecordError::Record { index: record.offset_delta, reason };
    if record.headers.len() > MOST_BYTES {
        return Err(bad("its headers are too large for a column"));
    }
    let mut headers = Headers::new(record);
    headers.try_for_each(|header| header.map(|_| ()))?;
    if headers.rest().is_empty() { Ok(()) } else { Err(bad("its parts do not fill it")) }
}

//! Builds a v2 batch: records are encoded in place, and the header is written at the end.

use super::batch::{BatchHeader, HEADER_LEN, LOG_OVERHEAD, seal, seal_summed};
use super::crc::crc32c_continued;
use super::varint::{SLACK, unsigned_len, varlong_len, write_unsigned, zigzag};
use super::{Compression, RecordError, compress};

/// The key and value of a record header.
pub type RecordHeader<'a> = (&'a [u8], Option<&'a [u8]>);

/// The maximum size of a batch, so that its length fits in the header's field.
const MOST_BYTES: usize = i32::MAX as usize - (1 << 16);
/// The buffer grows by this size, so that the zeroed bytes are still in the L1 cache when they are overwritten.
const STEP: usize = 4 << 10;
/// Bytes of records to checksum at once, while they are in the L1 cache.
const SUMMED_AT_ONCE: usize = 8 << 10;
/// Most bytes that a new builder reserves.
const MOST_RESERVED: usize = 1 << 20;

/// A batch under construction. `base_offset` is 0; the leader assigns offsets.
#[derive(Debug)]
pub struct BatchBuilder {
    compression: Compression,
    level: Option<i32>,
    size_limit: usize,
    /// Space for the header, then the encoded records up to `end`. The rest is unused.
    bytes: Vec<u8>,
    /// At least [`HEADER_LEN`], at most `bytes.len()`.
    end: usize,
    /// A record that would end beyond this position needs a slow path: the buffer must grow, or records must be
    /// checksummed. Invariant: at most `bytes.len()`.
    mark: usize,
    /// The checksum of the records up to `summed`. Unused if the records are compressed at the end.
    crc: u32,
    summed: usize,
    count: i32,
    base_timestamp: i64,
    max_timestamp: i64,
}

impl BatchBuilder {
    /// Creates an empty batch of at most `size_limit` bytes before compression. Its first record may be larger.
    pub fn new(compression: Compression, level: Option<i32>, size_limit: usize) -> Self {
        Self {
            compression,
            level,
            size_limit: size_limit.min(MOST_BYTES),
            bytes: Vec::new(),
            end: HEADER_LEN,
            mark: 0,
            crc: 0,
            summed: HEADER_LEN,
            count: 0,
            base_timestamp: 0,
            max_timestamp: -1,
        }
    }

    /// Appends a record with `timestamp` in ms. Returns its index in the batch, or `None` when the batch is full. An
    /// empty batch rejects only a record that no batch can contain (2 GiB).
    #[inline]
    pub fn try_append(
        &mut self,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[RecordHeader<'_>],
    ) -> Option<i32> {
        let base = if self.count == 0 { timestamp } else { self.base_timestamp };
        let delta = zigzag(timestamp.wrapping_sub(base));
        let place = zigzag(i64::from(self.count));
        let body =
            1 + unsigned_len(delta) + unsigned_len(place) + part_len(key) + part_len(value) + headers_len(headers);
        let size = varlong_len(body as i64) + body;
        let limit = if self.count == 0 { MOST_BYTES } else { self.size_limit };
        if self.end + size > limit || self.count == i32::MAX {
            return None;
        }
        self.make_space(size);
        let bytes = &mut self.bytes[..];
        let at = write_unsigned(bytes, self.end, zigzag(body as i64));
        bytes[at] = 0;
        let at = write_unsigned(bytes, at + 1, delta);
        let at = write_unsigned(bytes, at, place);
        let at = write_part(bytes, at, key);
        let at = write_part(bytes, at, value);
        let mut at = write_unsigned(bytes, at, zigzag(headers.len() as i64));
        for (key, value) in headers {
            at = write_part(bytes, at, Some(key));
            at = write_part(bytes, at, *value);
        }
        self.end = at;
        self.base_timestamp = base;
        self.max_timestamp = self.max_timestamp.max(timestamp);
        self.count += 1;
        Some(self.count - 1)
    }

    /// Ensures capacity for `size` more bytes, and for the extra bytes that writing a varint may touch.
    #[inline(always)]
    fn make_space(&mut self, size: usize) {
        if self.end + size + SLACK > self.mark {
            self.pass_mark(self.end + size + SLACK);
        }
    }

    #[inline(never)]
    fn pass_mark(&mut self, wanted: usize) {
        if wanted > self.bytes.len() {
            if self.bytes.is_empty() {
                let ahead = self.size_limit.min(MOST_RESERVED) + STEP;
                self.bytes.reserve(wanted.max(ahead));
            }
            self.bytes.resize(wanted + STEP, 0);
        }
        self.mark = self.bytes.len();
        if self.compression == Compression::None {
            if self.end - self.summed >= SUMMED_AT_ONCE {
                self.crc = crc32c_continued(self.crc, &self.bytes[self.summed..self.end]);
                self.summed = self.end;
            }
            self.mark = self.mark.min(wanted.max(self.summed + SUMMED_AT_ONCE));
        }
    }

    /// Returns the number of records so far.
    pub fn count(&self) -> i32 {
        self.count
    }

    /// Returns whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the size so far in bytes, including the header, before compression.
    pub fn size(&self) -> usize {
        self.end
    }

    /// Appends the finished batch to `out` and resets the builder. A producer that is not idempotent passes -1 for
    /// all three fields.
    ///
    /// When `out` is empty, uncompressed records are not copied, as in [`Self::finish_with`].
    ///
    /// # Errors
    /// When the codec fails.
    pub fn finish(
        &mut self,
        producer_id: i64,
        producer_epoch: i16,
        base_sequence: i32,
        out: &mut Vec<u8>,
    ) -> Result<(), RecordError> {
        let begin = out.len();
        if self.compression == Compression::None && begin == 0 {
            *out = self.finish_with(producer_id, producer_epoch, base_sequence, std::mem::take(out))?;
            return Ok(());
        }
        self.pass_mark(self.end);
        if self.compression == Compression::None {
            out.extend_from_slice(&self.bytes[..self.end]);
        } else {
            out.resize(begin + HEADER_LEN, 0);
            compress(self.compression, self.level, &self.bytes[HEADER_LEN..self.end], out)?;
        }
        let batch = &mut out[begin..];
        self.header(batch.len(), producer_id, producer_epoch, base_sequence).write(batch);
        seal(batch);
        self.begin_again();
        Ok(())
    }

    /// Like [`Self::finish`], and returns the batch in its own buffer. The builder continues with the buffer `spare`,
    /// or returns the compressed batch in it. The content of `spare` is ignored.
    ///
    /// # Errors
    /// When the codec fails.
    pub fn finish_with(
        &mut self,
        producer_id: i64,
        producer_epoch: i16,
        base_sequence: i32,
        mut spare: Vec<u8>,
    ) -> Result<Vec<u8>, RecordError> {
        if self.compression != Compression::None {
            spare.clear();
            self.finish(producer_id, producer_epoch, base_sequence, &mut spare)?;
            return Ok(spare);
        }
        self.pass_mark(self.end);
        let mut batch = std::mem::replace(&mut self.bytes, spare);
        batch.truncate(self.end);
        self.header(batch.len(), producer_id, producer_epoch, base_sequence).write(&mut batch);
        if self.summed == HEADER_LEN {
            seal(&mut batch);
        } else {
            let crc = crc32c_continued(self.crc, &batch[self.summed..]);
            seal_summed(&mut batch, crc);
        }
        self.begin_again();
        Ok(batch)
    }

    fn begin_again(&mut self) {
        (self.end, self.count, self.base_timestamp, self.max_timestamp) = (HEADER_LEN, 0, 0, -1);
        (self.mark, self.summed, self.crc) = (0, HEADER_LEN, 0);
    }

    fn header(&self, size: usize, producer_id: i64, producer_epoch: i16, base_sequence: i32) -> BatchHeader {
        BatchHeader {
            base_offset: 0,
            batch_length: (size - LOG_OVERHEAD) as i32,
            partition_leader_epoch: -1,
            magic: 2,
            crc: 0,
            attributes: self.compression as i16,
            last_offset_delta: self.count - 1,
            base_timestamp: self.base_timestamp,
            max_timestamp: self.max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            record_count: self.count,
        }
    }
}

#[inline(always)]
fn part_len(part: Option<&[u8]>) -> usize {
    part.map_or(1, |bytes| varlong_len(bytes.len() as i64) + bytes.len())
}

#[inline(always)]
fn headers_len(headers: &[RecordHeader<'_>]) -> usize {
    let each = |(key, value): &RecordHeader<'_>| part_len(Some(key)) + part_len(*value);
    varlong_len(headers.len() as i64) + headers.iter().map(each).sum::<usize>()
}

/// Writes a length and its bytes at `at`. Returns the end.
#[inline(always)]
fn write_part(bytes: &mut [u8], at: usize, part: Option<&[u8]>) -> usize {
    let Some(part) = part else {
        bytes[at] = 1;
        return at + 1;
    };
    let at = write_unsigned(bytes, at, zigzag(part.len() as i64));
    let end = at + part.len();
    bytes[at..end].copy_from_slice(part);
    end
}

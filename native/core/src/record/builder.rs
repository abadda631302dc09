//! Building a v2 batch: records are encoded where they will lie, the header is written at the end.

use super::batch::{BatchHeader, HEADER_LEN, LOG_OVERHEAD, seal};
use super::varint::{put_unsigned, varlong_len, zigzag};
use super::{Compression, RecordError, compress};

/// A header of a record to build: key and value.
pub type RecordHeader<'a> = (&'a [u8], Option<&'a [u8]>);

/// A batch that is being built. `base_offset` is 0; the leader assigns offsets.
#[derive(Debug)]
pub struct BatchBuilder {
    compression: Compression,
    level: Option<i32>,
    size_limit: usize,
    /// Room for the header, then the encoded records.
    bytes: Vec<u8>,
    count: i32,
    base_timestamp: i64,
    max_timestamp: i64,
}

impl BatchBuilder {
    /// An empty batch of at most `size_limit` bytes before compression; its first record may be larger.
    pub fn new(compression: Compression, level: Option<i32>, size_limit: usize) -> Self {
        let mut bytes = Vec::with_capacity(size_limit.clamp(HEADER_LEN, 1 << 20));
        bytes.resize(HEADER_LEN, 0);
        Self { compression, level, size_limit, bytes, count: 0, base_timestamp: 0, max_timestamp: -1 }
    }

    /// Appends a record with `timestamp` in ms; its place in the batch, or `None` when the batch is full.
    #[inline]
    pub fn try_append(
        &mut self,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[RecordHeader<'_>],
    ) -> Option<i32> {
        let base = if self.count == 0 { timestamp } else { self.base_timestamp };
        let delta = timestamp.wrapping_sub(base);
        let body = 1
            + varlong_len(delta)
            + varlong_len(i64::from(self.count))
            + part_len(key)
            + part_len(value)
            + headers_len(headers);
        let size = varlong_len(body as i64) + body;
        if self.count > 0 && (self.bytes.len() + size > self.size_limit || self.count == i32::MAX) {
            return None;
        }
        self.base_timestamp = base;
        self.max_timestamp = self.max_timestamp.max(timestamp);
        self.bytes.reserve(size);
        put_unsigned(&mut self.bytes, zigzag(body as i64));
        self.bytes.push(0);
        put_unsigned(&mut self.bytes, zigzag(delta));
        put_unsigned(&mut self.bytes, zigzag(i64::from(self.count)));
        put_part(&mut self.bytes, key);
        put_part(&mut self.bytes, value);
        put_unsigned(&mut self.bytes, zigzag(headers.len() as i64));
        for (key, value) in headers {
            put_part(&mut self.bytes, Some(key));
            put_part(&mut self.bytes, *value);
        }
        self.count += 1;
        Some(self.count - 1)
    }

    /// Records so far.
    pub fn count(&self) -> i32 {
        self.count
    }

    /// Whether there is no record yet.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes so far, header included, before compression.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Appends the finished batch to `out`; -1 for each of the three stands for a producer that is not idempotent.
    /// The builder is empty again afterwards and keeps its buffer.
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
        if self.compression == Compression::None {
            out.extend_from_slice(&self.bytes);
        } else {
            out.resize(begin + HEADER_LEN, 0);
            compress(self.compression, self.level, &self.bytes[HEADER_LEN..], out)?;
        }
        let batch = &mut out[begin..];
        self.header(batch.len(), producer_id, producer_epoch, base_sequence).write(batch);
        seal(batch);
        self.clear();
        Ok(())
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

    fn clear(&mut self) {
        self.bytes.truncate(HEADER_LEN);
        (self.count, self.base_timestamp, self.max_timestamp) = (0, 0, -1);
    }
}

fn part_len(part: Option<&[u8]>) -> usize {
    part.map_or(1, |bytes| varlong_len(bytes.len() as i64) + bytes.len())
}

fn headers_len(headers: &[RecordHeader<'_>]) -> usize {
    let each = |(key, value): &RecordHeader<'_>| part_len(Some(key)) + part_len(*value);
    varlong_len(headers.len() as i64) + headers.iter().map(each).sum::<usize>()
}

#[inline]
fn put_part(out: &mut Vec<u8>, part: Option<&[u8]>) {
    match part {
        Some(bytes) => {
            put_unsigned(out, zigzag(bytes.len() as i64));
            out.extend_from_slice(bytes);
        }
        None => out.push(1),
    }
}

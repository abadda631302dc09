//! The v2 batch header of 61 bytes. Its checksum covers the bytes after it (KIP-98; Kafka's `DefaultRecordBatch`).

use super::crc::joined;
pub use super::header::{BatchHeader, HEADER_LEN, LOG_OVERHEAD, TimestampType};
pub(super) use super::header::{COMPRESSION_MASK, TIMESTAMP_TYPE_MASK};
use super::{Compression, RecordError, crc32, crc32c, message};

/// Size in bytes of the smallest batch in a segment: a message of format v0 with neither key nor value.
pub const SMALLEST_BATCH: usize = message::SMALLEST;
/// Position of the first byte that the checksum covers: the attributes.
const CRC_COVERS: usize = 21;

const TRANSACTIONAL_MASK: i16 = 0x10;
const CONTROL_MASK: i16 = 0x20;
const DELETE_HORIZON_MASK: i16 = 0x40;

fn field<const N: usize>(header: &[u8; HEADER_LEN], at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&header[at..at + N]);
    bytes
}

impl BatchHeader {
    /// Parses the header at the start of `bytes`. Checks magic and length, not the checksum.
    ///
    /// # Errors
    /// [`RecordError::Truncated`] below 61 bytes, [`RecordError::Magic`], [`RecordError::BatchLength`].
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<Self, RecordError> {
        let header: &[u8; HEADER_LEN] = bytes.first_chunk().ok_or(RecordError::Truncated {
            what: "a batch header",
            wanted: HEADER_LEN,
            left: bytes.len(),
        })?;
        let magic = header[16] as i8;
        if magic != 2 {
            return Err(RecordError::Magic(magic));
        }
        let batch_length = i32::from_be_bytes(field(header, 8));
        if batch_length < (HEADER_LEN - LOG_OVERHEAD) as i32 {
            return Err(RecordError::BatchLength(batch_length));
        }
        Ok(Self {
            base_offset: i64::from_be_bytes(field(header, 0)),
            batch_length,
            partition_leader_epoch: i32::from_be_bytes(field(header, 12)),
            magic,
            crc: u32::from_be_bytes(field(header, 17)),
            attributes: i16::from_be_bytes(field(header, 21)),
            last_offset_delta: i32::from_be_bytes(field(header, 23)),
            base_timestamp: i64::from_be_bytes(field(header, 27)),
            max_timestamp: i64::from_be_bytes(field(header, 35)),
            producer_id: i64::from_be_bytes(field(header, 43)),
            producer_epoch: i16::from_be_bytes(field(header, 51)),
            base_sequence: i32::from_be_bytes(field(header, 53)),
            record_count: i32::from_be_bytes(field(header, 57)),
        })
    }

    /// Parses the header at the start of `bytes` from a segment of any age: a batch, or a message of format v0 or v1
    /// as a batch of its own.
    ///
    /// A compressed message of these formats contains only its last offset, which is returned as the first one too.
    /// Comparisons of last offsets need no more; [`super::first_offset`] returns the real first offset.
    ///
    /// # Errors
    /// As [`BatchHeader::parse`].
    #[inline]
    pub fn parse_stored(bytes: &[u8]) -> Result<Self, RecordError> {
        match bytes.get(16) {
            Some(0 | 1) => message::old_header(bytes),
            _ => Self::parse(bytes),
        }
    }

    /// Writes the header to the start of `bytes`, which must have at least 61 bytes.
    pub fn write(&self, bytes: &mut [u8]) {
        bytes[0..8].copy_from_slice(&self.base_offset.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.batch_length.to_be_bytes());
        bytes[12..16].copy_from_slice(&self.partition_leader_epoch.to_be_bytes());
        bytes[16] = self.magic as u8;
        bytes[17..21].copy_from_slice(&self.crc.to_be_bytes());
        bytes[21..23].copy_from_slice(&self.attributes.to_be_bytes());
        bytes[23..27].copy_from_slice(&self.last_offset_delta.to_be_bytes());
        bytes[27..35].copy_from_slice(&self.base_timestamp.to_be_bytes());
        bytes[35..43].copy_from_slice(&self.max_timestamp.to_be_bytes());
        bytes[43..51].copy_from_slice(&self.producer_id.to_be_bytes());
        bytes[51..53].copy_from_slice(&self.producer_epoch.to_be_bytes());
        bytes[53..57].copy_from_slice(&self.base_sequence.to_be_bytes());
        bytes[57..61].copy_from_slice(&self.record_count.to_be_bytes());
    }

    /// Returns the size of the whole batch in bytes.
    pub fn size(&self) -> usize {
        LOG_OVERHEAD + self.batch_length as usize
    }

    /// Returns the offset of the last record.
    pub fn last_offset(&self) -> i64 {
        self.base_offset + i64::from(self.last_offset_delta)
    }

    /// Returns the offset after the last record.
    pub fn next_offset(&self) -> i64 {
        self.last_offset() + 1
    }

    /// Returns the sequence number of the last record. After `i32::MAX` it wraps to 0.
    pub fn last_sequence(&self) -> i32 {
        if self.base_sequence < 0 {
            return self.base_sequence;
        }
        ((i64::from(self.base_sequence) + i64::from(self.last_offset_delta)) & i64::from(i32::MAX)) as i32
    }

    /// Returns the codec of the records.
    pub fn compression(&self) -> Result<Compression, RecordError> {
        Compression::from_code((self.attributes & COMPRESSION_MASK) as i8)
    }

    /// Returns the timestamp type.
    pub fn timestamp_type(&self) -> TimestampType {
        if self.attributes & TIMESTAMP_TYPE_MASK == 0 {
            TimestampType::CreateTime
        } else {
            TimestampType::LogAppendTime
        }
    }

    /// Returns whether the batch is part of a transaction.
    pub fn is_transactional(&self) -> bool {
        self.attributes & TRANSACTIONAL_MASK != 0
    }

    /// Returns whether the batch contains control records.
    pub fn is_control(&self) -> bool {
        self.attributes & CONTROL_MASK != 0
    }

    /// Returns whether the base timestamp is the delete horizon of the batch's tombstones.
    pub fn has_delete_horizon(&self) -> bool {
        self.attributes & DELETE_HORIZON_MASK != 0
    }

    /// Returns the delete horizon, ms: the time after which compaction may remove the tombstones. `None` before the
    /// first compaction (KIP-534).
    pub fn delete_horizon_ms(&self) -> Option<i64> {
        self.has_delete_horizon().then_some(self.base_timestamp)
    }

    /// Sets the delete horizon, which becomes the base of the records' timestamp deltas.
    pub fn set_delete_horizon(&mut self, horizon_ms: i64) {
        self.attributes |= DELETE_HORIZON_MASK;
        self.base_timestamp = horizon_ms;
    }

    /// Returns the header of the batch without its records, as compaction writes it (Kafka's
    /// `DefaultRecordBatch.writeEmptyHeader`).
    #[must_use]
    pub fn emptied(&self) -> Self {
        Self {
            batch_length: (HEADER_LEN - LOG_OVERHEAD) as i32,
            attributes: self.attributes & !(COMPRESSION_MASK | DELETE_HORIZON_MASK),
            base_timestamp: -1,
            record_count: 0,
            ..*self
        }
    }

    /// Returns whether an idempotent producer sent the batch.
    pub fn has_producer_id(&self) -> bool {
        self.producer_id >= 0
    }
}

/// Computes the checksum of a complete batch, or of a message of format v0 or v1.
pub fn batch_crc(batch: &[u8]) -> u32 {
    if batch[16] < 2 { crc32(&batch[message::CRC_COVERS..]) } else { crc32c(&batch[CRC_COVERS..]) }
}

/// Writes the checksum of a complete batch to its header, and returns the checksum.
pub fn seal(batch: &mut [u8]) -> u32 {
    let crc = batch_crc(batch);
    batch[17..21].copy_from_slice(&crc.to_be_bytes());
    crc
}

/// Like [`seal`], for a batch of format v2 whose records' checksum is known.
pub(crate) fn seal_summed(batch: &mut [u8], records_crc: u32) {
    let crc = joined(crc32c(&batch[CRC_COVERS..HEADER_LEN]), records_crc, batch.len() - HEADER_LEN);
    batch[17..21].copy_from_slice(&crc.to_be_bytes());
}

/// Sets the base offset, which the checksum does not cover.
pub fn set_base_offset(batch: &mut [u8], base_offset: i64) {
    batch[0..8].copy_from_slice(&base_offset.to_be_bytes());
}

/// Sets the leader epoch, which the checksum does not cover.
pub fn set_partition_leader_epoch(batch: &mut [u8], epoch: i32) {
    batch[12..16].copy_from_slice(&epoch.to_be_bytes());
}

impl BatchHeader {
    /// Sets the append time of the broker in the batch of this header: the timestamp type and the largest timestamp.
    /// Computes the checksum again.
    pub fn set_log_append_time(&mut self, batch: &mut [u8], timestamp: i64) {
        self.attributes |= TIMESTAMP_TYPE_MASK;
        batch[21..23].copy_from_slice(&self.attributes.to_be_bytes());
        self.set_max_timestamp(batch, timestamp);
    }

    /// Corrects the largest timestamp that the producer has set in the batch. Computes the checksum again.
    pub fn set_max_timestamp(&mut self, batch: &mut [u8], timestamp: i64) {
        self.max_timestamp = timestamp;
        batch[35..43].copy_from_slice(&timestamp.to_be_bytes());
        self.crc = seal(batch);
    }

    /// Sets the codec of the records, and the new size of the batch in bytes, including the header.
    pub(super) fn set_compression(&mut self, codec: Compression, size: usize) {
        self.attributes = self.attributes & !COMPRESSION_MASK | codec as i16;
        self.batch_length = (size - LOG_OVERHEAD) as i32;
    }
}

/// Marks a transactional batch as a control batch. Computes the checksum again.
pub fn set_control(batch: &mut [u8]) {
    let attributes = i16::from_be_bytes([batch[21], batch[22]]) | CONTROL_MASK | TRANSACTIONAL_MASK;
    batch[21..23].copy_from_slice(&attributes.to_be_bytes());
    seal(batch);
}

/// Marks a batch as transactional. Computes the checksum again.
pub fn set_transactional(batch: &mut [u8]) {
    let attributes = i16::from_be_bytes([batch[21], batch[22]]) | TRANSACTIONAL_MASK;
    batch[21..23].copy_from_slice(&attributes.to_be_bytes());
    seal(batch);
}

/// Iterates over concatenated batches of a log ([`BatchHeader::parse_stored`]). Ends after the first error.
#[derive(Clone, Debug)]
pub struct Batches<'a> {
    rest: &'a [u8],
}

impl<'a> Batches<'a> {
    /// Creates an iterator over the batches in `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }
}

impl<'a> Iterator for Batches<'a> {
    type Item = Result<(BatchHeader, &'a [u8]), RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let split = BatchHeader::parse_stored(self.rest).and_then(|header| {
            let (wanted, left) = (header.size(), self.rest.len());
            let batch = self.rest.get(..wanted).ok_or(RecordError::Truncated { what: "a batch", wanted, left })?;
            Ok((header, batch))
        });
        self.rest = match &split {
            Ok((header, _)) => &self.rest[header.size()..],
            Err(_) => &[],
        };
        Some(split)
    }
}

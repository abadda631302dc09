//! The v2 batch header: 61 bytes, of which the checksum covers what follows it (KIP-98; Kafka's `DefaultRecordBatch`).

use super::crc::joined;
pub use super::header::{BatchHeader, HEADER_LEN, LOG_OVERHEAD, TimestampType};
pub(super) use super::header::{COMPRESSION_MASK, TIMESTAMP_TYPE_MASK};
use super::{Compression, RecordError, crc32, crc32c, message};

/// Bytes of the smallest thing that a segment holds: a message of format v0 with neither key nor value.
pub const SMALLEST_BATCH: usize = message::SMALLEST;
/// Where the part begins that the checksum covers: the attributes.
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
    /// Reads the header at the front of `bytes`; checks magic and length, not the checksum.
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

    /// Reads what stands at the front of `bytes` in a segment of any age: a batch, or a message of format v0 or v1 as a
    /// batch of its own.
    ///
    /// A compressed message of these formats names its last offset only, which is also given as its first: what compares
    /// last offsets needs no more, and [`super::first_offset`] finds the other.
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

    /// Writes the header over the front of `bytes`, which has at least 61.
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

    /// Bytes of the whole batch.
    pub fn size(&self) -> usize {
        LOG_OVERHEAD + self.batch_length as usize
    }

    /// The offset of the last record.
    pub fn last_offset(&self) -> i64 {
        self.base_offset + i64::from(self.last_offset_delta)
    }

    /// The offset after the last record.
    pub fn next_offset(&self) -> i64 {
        self.last_offset() + 1
    }

    /// The sequence number of the last record; after `i32::MAX` comes 0.
    pub fn last_sequence(&self) -> i32 {
        if self.base_sequence < 0 {
            return self.base_sequence;
        }
        ((i64::from(self.base_sequence) + i64::from(self.last_offset_delta)) & i64::from(i32::MAX)) as i32
    }

    /// The codec of the records.
    pub fn compression(&self) -> Result<Compression, RecordError> {
        Compression::from_code((self.attributes & COMPRESSION_MASK) as i8)
    }

    /// Whose clock the timestamps are of.
    pub fn timestamp_type(&self) -> TimestampType {
        if self.attributes & TIMESTAMP_TYPE_MASK == 0 {
            TimestampType::CreateTime
        } else {
            TimestampType::LogAppendTime
        }
    }

    /// Whether the batch is part of a transaction.
    pub fn is_transactional(&self) -> bool {
        self.attributes & TRANSACTIONAL_MASK != 0
    }

    /// Whether the batch holds control records.
    pub fn is_control(&self) -> bool {
        self.attributes & CONTROL_MASK != 0
    }

    /// Whether the base timestamp is the delete horizon of the tombstones in it.
    pub fn has_delete_horizon(&self) -> bool {
        self.attributes & DELETE_HORIZON_MASK != 0
    }

    /// When the tombstones in it may go, ms; `None` before a compaction has set that (KIP-534).
    pub fn delete_horizon_ms(&self) -> Option<i64> {
        self.has_delete_horizon().then_some(self.base_timestamp)
    }

    /// Sets when the tombstones in it may go; timestamps of its records count from there.
    pub fn set_delete_horizon(&mut self, horizon_ms: i64) {
        self.attributes |= DELETE_HORIZON_MASK;
        self.base_timestamp = horizon_ms;
    }

    /// The header of the batch without its records, as compaction leaves it (Kafka's `DefaultRecordBatch.writeEmptyHeader`).
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

    /// Whether an idempotent producer sent it.
    pub fn has_producer_id(&self) -> bool {
        self.producer_id >= 0
    }
}

/// The checksum that a whole batch, or a message of format v0 or v1, should carry.
pub fn batch_crc(batch: &[u8]) -> u32 {
    if batch[16] < 2 { crc32(&batch[message::CRC_COVERS..]) } else { crc32c(&batch[CRC_COVERS..]) }
}

/// Writes the checksum of a whole batch into it, and returns it.
pub fn seal(batch: &mut [u8]) -> u32 {
    let crc = batch_crc(batch);
    batch[17..21].copy_from_slice(&crc.to_be_bytes());
    crc
}

/// The same of one of format v2 whose records have been summed already.
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
    /// Stamps the broker's time on the batch that this is the header of: type bit and largest timestamp; the checksum is
    /// computed again.
    pub fn set_log_append_time(&mut self, batch: &mut [u8], timestamp: i64) {
        self.attributes |= TIMESTAMP_TYPE_MASK;
        batch[21..23].copy_from_slice(&self.attributes.to_be_bytes());
        self.set_max_timestamp(batch, timestamp);
    }

    /// Puts right the largest timestamp that a producer stated in the batch; the checksum is computed again.
    pub fn set_max_timestamp(&mut self, batch: &mut [u8], timestamp: i64) {
        self.max_timestamp = timestamp;
        batch[35..43].copy_from_slice(&timestamp.to_be_bytes());
        self.crc = seal(batch);
    }

    /// Says that the records are in another codec and take `size` bytes, header included, now.
    pub(super) fn set_compression(&mut self, codec: Compression, size: usize) {
        self.attributes = self.attributes & !COMPRESSION_MASK | codec as i16;
        self.batch_length = (size - LOG_OVERHEAD) as i32;
    }
}

/// Makes a batch of a transaction one of control records; the checksum is computed again.
pub fn set_control(batch: &mut [u8]) {
    let attributes = i16::from_be_bytes([batch[21], batch[22]]) | CONTROL_MASK | TRANSACTIONAL_MASK;
    batch[21..23].copy_from_slice(&attributes.to_be_bytes());
    seal(batch);
}

/// Makes a batch part of a transaction; the checksum is computed again.
pub fn set_transactional(batch: &mut [u8]) {
    let attributes = i16::from_be_bytes([batch[21], batch[22]]) | TRANSACTIONAL_MASK;
    batch[21..23].copy_from_slice(&attributes.to_be_bytes());
    seal(batch);
}

/// Iterates over concatenated batches, as a log holds them ([`BatchHeader::parse_stored`]). Ends after the first error.
#[derive(Clone, Debug)]
pub struct Batches<'a> {
    rest: &'a [u8],
}

impl<'a> Batches<'a> {
    /// The batches in `bytes`.
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

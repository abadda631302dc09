//! Validation of a producer's batch by the leader (Kafka's `LogValidator`, for format v2).
//!
//! It makes two passes over the bytes: the checksum, and one fast walk that only accepts or rejects the batch
//! ([`walk`]). A slow walk ([`blame`]) then finds the reason for a rejection.

use std::ops::RangeInclusive;

use super::batch::batch_crc;
use super::blame::blame;
use super::records::records_section;
use super::walk::walk;
use super::{BatchHeader, Compression, HEADER_LEN, InvalidBatch, RecordError, TimestampType};

/// The rules of a topic, and the current time.
#[derive(Clone, Copy, Debug)]
pub struct ValidateRules {
    pub max_message_bytes: usize,
    /// `message.timestamp.type`.
    pub timestamp_type: TimestampType,
    /// `message.timestamp.before.max.ms`.
    pub timestamp_before_max_ms: i64,
    /// `message.timestamp.after.max.ms`.
    pub timestamp_after_max_ms: i64,
    /// The broker's clock, ms since 1970.
    pub now_ms: i64,
    /// Whether every record must have a key (compacted topics).
    pub require_keys: bool,
    /// The most bytes that a compressed batch may decompress to.
    pub max_decompressed_bytes: usize,
}

impl ValidateRules {
    /// Returns the earliest and the latest allowed timestamp of a record, ms. Under LogAppendTime all are allowed.
    pub(super) fn bounds(&self) -> RangeInclusive<i64> {
        match self.timestamp_type {
            TimestampType::CreateTime => {
                self.now_ms.saturating_sub(self.timestamp_before_max_ms)
                    ..=self.now_ms.saturating_add(self.timestamp_after_max_ms)
            }
            TimestampType::LogAppendTime => i64::MIN..=i64::MAX,
        }
    }
}

/// Validates one complete batch of a producer; see [`validate_headed`].
///
/// # Errors
/// As [`validate_headed`], and the errors of [`BatchHeader::parse`].
pub fn validate_batch(batch: &[u8], rules: &ValidateRules, scratch: &mut Vec<u8>) -> Result<BatchHeader, InvalidBatch> {
    let header = BatchHeader::parse(batch).map_err(|error| match error {
        RecordError::Magic(magic) => InvalidBatch::UnsupportedFormat(magic),
        other => InvalidBatch::Corrupt(other.to_string()),
    })?;
    if header.size() != batch.len() {
        let text = format!("a batch of {} bytes in {} bytes", header.size(), batch.len());
        return Err(InvalidBatch::Corrupt(text));
    }
    validate_headed(header, batch, rules, scratch)
}

/// Validates one complete batch with a parsed header: size, checksum, attributes, offsets, counts, the structure of
/// every record, keys and timestamps. Decompresses compressed records into `scratch`.
///
/// The returned header has the true largest timestamp of the records. If the batch has another one, the caller writes
/// it to the batch ([`BatchHeader::set_max_timestamp`]), as Kafka does.
///
/// # Errors
/// The first error of the batch, or all errors of its records; see [`InvalidBatch`].
pub fn validate_headed(
    mut header: BatchHeader,
    batch: &[u8],
    rules: &ValidateRules,
    scratch: &mut Vec<u8>,
) -> Result<BatchHeader, InvalidBatch> {
    if batch.len() > rules.max_message_bytes {
        return Err(InvalidBatch::TooLarge { size: batch.len(), limit: rules.max_message_bytes });
    }
    let crc = batch_crc(batch);
    if crc != header.crc {
        let text = format!("the checksum is {crc:#010x}; the batch says {:#010x}", header.crc);
        return Err(InvalidBatch::Corrupt(text));
    }
    check_header(&header)?;
    let max = rules.max_decompressed_bytes;
    let section = records_section(&header, batch, scratch, max).map_err(|error| match error {
        RecordError::Codec(code) => InvalidBatch::UnsupportedCompression(code),
        RecordError::TooLarge { limit, .. } => InvalidBatch::DecompressedTooLarge { limit },
        other => InvalidBatch::Corrupt(other.to_string()),
    })?;
    match walk(&header, section, rules) {
        Some(max_timestamp) => header.max_timestamp = max_timestamp,
        None => return Err(blame(&header, section, rules)),
    }
    Ok(header)
}

fn refuse<T>(reason: String) -> Result<T, InvalidBatch> {
    Err(InvalidBatch::InvalidRecord { records: Vec::new(), reason })
}

/// Performs the checks that need only the header.
fn check_header(header: &BatchHeader) -> Result<(), InvalidBatch> {
    if header.base_offset != 0 {
        return refuse(format!("a batch with base offset {}; a producer's begins at 0", header.base_offset));
    }
    if header.is_control() {
        return refuse("a client may not write control records".into());
    }
    if header.record_count <= 0 {
        return refuse(format!("a batch of {} records", header.record_count));
    }
    if i64::from(header.last_offset_delta) + 1 != i64::from(header.record_count) {
        let (last, count) = (header.last_offset_delta, header.record_count);
        return refuse(format!("a batch of {count} records with a last offset delta of {last}"));
    }
    if header.has_producer_id() && header.base_sequence < 0 {
        return refuse(format!("producer id {} with sequence {}", header.producer_id, header.base_sequence));
    }
    if header.timestamp_type() == TimestampType::LogAppendTime {
        let reason = "timestamps of type LogAppendTime; a producer sends CreateTime".into();
        return Err(InvalidBatch::InvalidTimestamp { records: Vec::new(), reason });
    }
    if header.compression() == Ok(Compression::None) && header.size() < HEADER_LEN + header.record_count as usize {
        return refuse(format!("{} records in {} bytes", header.record_count, header.size()));
    }
    Ok(())
}

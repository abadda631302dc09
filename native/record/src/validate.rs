//! What a leader checks of a producer's batch before it takes it (Kafka's `LogValidator`, for format v2).
//!
//! Two passes over the bytes: the checksum, and one light walk that only says yes or no ([`walk`]). What is wrong with
//! a batch that the walk refuses is found by a second, careful one ([`blame`]).

use std::ops::RangeInclusive;

use super::batch::batch_crc;
use super::blame::blame;
use super::records::records_section;
use super::walk::walk;
use super::{BatchHeader, Compression, HEADER_LEN, InvalidBatch, RecordError, TimestampType};

/// The rules of a topic, and the time.
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
    /// Whether every record has to have a key (compacted topics).
    pub require_keys: bool,
    /// The most that a compressed batch may decompress to.
    pub max_decompressed_bytes: usize,
}

impl ValidateRules {
    /// The earliest and the latest timestamp that a record may have, ms. Under LogAppendTime any will do.
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

/// Checks one whole batch as a producer sent it; see [`validate_headed`].
///
/// # Errors
/// As [`validate_headed`], and what [`BatchHeader::parse`] refuses.
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

/// Checks one whole batch whose header has been read: size, checksum, attributes, offsets, counts, the structure of every
/// record, keys and timestamps. Compressed records are decompressed into `scratch`.
///
/// The header that comes back has the largest timestamp of the records, whatever the batch says; the caller writes it
/// into the batch where the two differ ([`BatchHeader::set_max_timestamp`]), as Kafka does.
///
/// # Errors
/// The first thing found wrong with the batch, or all that is wrong with its records; see [`InvalidBatch`].
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

/// What can be checked with the header alone.
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

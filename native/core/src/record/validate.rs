//! What a leader checks of a producer's batch before it takes it (Kafka's `LogValidator`, for format v2).

use super::batch::batch_crc;
use super::records::{Headers, Records, records_section};
use super::{BatchHeader, Compression, HEADER_LEN, InvalidBatch, RecordError, TimestampType};

/// The rules of a topic, and the time.
#[derive(Clone, Copy, Debug)]
pub struct ValidateRules {
    /// `max.message.bytes`.
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
    /// The most that a compressed batch may unfold to.
    pub max_decompressed_bytes: usize,
}

/// Checks one whole batch as a producer sent it: size, magic, checksum, attributes, counts, the structure of every
/// record, keys and timestamps. Compressed records are unfolded into `scratch`.
///
/// # Errors
/// The first thing found wrong; see [`InvalidBatch`].
pub fn validate_batch(batch: &[u8], rules: &ValidateRules, scratch: &mut Vec<u8>) -> Result<BatchHeader, InvalidBatch> {
    let header = BatchHeader::parse(batch).map_err(|error| match error {
        RecordError::Magic(magic) => InvalidBatch::UnsupportedFormat(magic),
        other => InvalidBatch::Corrupt(other.to_string()),
    })?;
    if header.size() != batch.len() {
        let text = format!("a batch of {} bytes in {} bytes", header.size(), batch.len());
        return Err(InvalidBatch::Corrupt(text));
    }
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
        other => InvalidBatch::Corrupt(other.to_string()),
    })?;
    check_records(&header, section, rules)?;
    Ok(header)
}

fn refuse<T>(reason: String) -> Result<T, InvalidBatch> {
    Err(InvalidBatch::InvalidRecord { index: None, reason })
}

/// What the header alone tells.
fn check_header(header: &BatchHeader) -> Result<(), InvalidBatch> {
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
        return Err(InvalidBatch::InvalidTimestamp {
            index: 0,
            timestamp: header.max_timestamp,
            earliest: -1,
            latest: -1,
        });
    }
    if header.compression() == Ok(Compression::None) && header.size() < HEADER_LEN + header.record_count as usize {
        return refuse(format!("{} records in {} bytes", header.record_count, header.size()));
    }
    Ok(())
}

fn check_records(header: &BatchHeader, section: &[u8], rules: &ValidateRules) -> Result<(), InvalidBatch> {
    let bounds = match rules.timestamp_type {
        TimestampType::CreateTime => (
            rules.now_ms.saturating_sub(rules.timestamp_before_max_ms),
            rules.now_ms.saturating_add(rules.timestamp_after_max_ms),
        ),
        TimestampType::LogAppendTime => (i64::MIN, i64::MAX),
    };
    let mut records = Records::new(section, header.record_count);
    let mut keyless = Vec::new();
    for (index, record) in (0_i32..).zip(records.by_ref()) {
        let record = record.map_err(|error| match error {
            RecordError::Record { index, reason } => {
                InvalidBatch::InvalidRecord { index: Some(index), reason: reason.into() }
            }
            other => InvalidBatch::InvalidRecord { index: Some(index), reason: other.to_string() },
        })?;
        let at_fault = |reason: String| Err(InvalidBatch::InvalidRecord { index: Some(index), reason });
        if record.offset_delta != index {
            return at_fault(format!("record {index} has offset delta {}", record.offset_delta));
        }
        if rules.require_keys && record.key.is_none() {
            keyless.push(index);
        }
        let timestamp = header.base_timestamp.saturating_add(record.timestamp_delta);
        if (timestamp < bounds.0 || timestamp > bounds.1) && timestamp != -1 {
            let (earliest, latest) = bounds;
            return Err(InvalidBatch::InvalidTimestamp { index, timestamp, earliest, latest });
        }
        if record.header_count > 0 {
            let mut headers = Headers::new(&record);
            if headers.by_ref().any(|header| header.is_err()) || !headers.rest().is_empty() {
                return at_fault(format!("the headers of record {index} do not fill it"));
            }
        }
    }
    match records.left() {
        0 if keyless.is_empty() => Ok(()),
        0 => Err(InvalidBatch::KeysMissing { indexes: keyless }),
        left => refuse(format!("{left} bytes after the last of {} records", header.record_count)),
    }
}

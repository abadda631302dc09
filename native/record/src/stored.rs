//! The records of a batch as it lies in a segment, of whatever format, with their absolute places.
//!
//! For what reads logs that an old Kafka has written: looking up by time, converting. What knows that it has v2 before it
//! uses [`super::Records`].

use std::ops::ControlFlow;

use super::message::Message;
use super::message_set::{Inner, decompress_set};
use super::{BatchHeader, Compression, Headers, RecordError, Records, TimestampType, records_section};

/// A record with its offset and time.
#[derive(Clone, Debug)]
pub struct StoredRecord<'a> {
    /// Its offset in the log.
    pub offset: i64,
    /// Its time, ms: the producer's or the broker's as the batch says; -1 for none.
    pub timestamp: i64,
    pub key: Option<&'a [u8]>,
    pub value: Option<&'a [u8]>,
    /// The headers; none before v2.
    pub headers: Option<Headers<'a>>,
}

impl<'a> From<Message<'a>> for StoredRecord<'a> {
    fn from(message: Message<'a>) -> Self {
        let Message { offset, timestamp, key, value, .. } = message;
        Self { offset, timestamp, key, value, headers: None }
    }
}

/// Visits the records of a whole `batch` until `visit` breaks. Compressed ones decompress into `scratch`, to at most `max`
/// bytes. Checksums are not looked at.
///
/// # Errors
/// What does not decompress, or is malformed.
pub fn visit_records(
    header: &BatchHeader,
    batch: &[u8],
    scratch: &mut Vec<u8>,
    max: usize,
    mut visit: impl FnMut(StoredRecord<'_>) -> ControlFlow<()>,
) -> Result<(), RecordError> {
    if header.magic < 2 {
        let message = Message::parse(batch)?;
        if message.compression()? == Compression::None {
            let _ = visit(message.into());
            return Ok(());
        }
        let mut inner = Inner::new(&message, decompress_set(&message, max, scratch)?)?;
        let _ = inner.try_for_each(|message| visit(message.into()));
        return Ok(());
    }
    let section = records_section(header, batch, scratch, max)?;
    for record in Records::new(section, header.record_count) {
        let record = record?;
        let timestamp = match header.timestamp_type() {
            TimestampType::CreateTime => header.base_timestamp.wrapping_add(record.timestamp_delta),
            TimestampType::LogAppendTime => header.max_timestamp,
        };
        let stored = StoredRecord {
            offset: header.base_offset.wrapping_add(i64::from(record.offset_delta)),
            timestamp,
            key: record.key,
            value: record.value,
            headers: Some(Headers::new(&record)),
        };
        if visit(stored).is_break() {
            break;
        }
    }
    Ok(())
}

/// The offset of a stored batch's first record: what a compressed message of v0 or v1 has inside only.
///
/// # Errors
/// A message that does not decompress, or is malformed.
pub fn first_offset(header: &BatchHeader, batch: &[u8], scratch: &mut Vec<u8>, max: usize) -> Result<i64, RecordError> {
    if header.magic >= 2 || header.compression()? == Compression::None {
        return Ok(header.base_offset);
    }
    let message = Message::parse(batch)?;
    Ok(Inner::new(&message, decompress_set(&message, max, scratch)?)?.first_offset())
}

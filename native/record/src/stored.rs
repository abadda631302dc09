//! The records of a stored batch of any format, with their absolute offsets.
//!
//! For readers of logs with old message formats: timestamp lookup and conversion. Code that only reads v2 uses
//! [`super::Records`].

use std::ops::ControlFlow;

use super::message::Message;
use super::message_set::{Inner, decompress_set};
use super::{BatchHeader, Compression, Headers, RecordError, Records, TimestampType, records_section};

/// A record with its offset and timestamp.
#[derive(Clone, Debug)]
pub struct StoredRecord<'a> {
    /// Its offset in the log.
    pub offset: i64,
    /// Its timestamp, ms, by the batch's timestamp type; -1 for none.
    pub timestamp: i64,
    pub key: Option<&'a [u8]>,
    pub value: Option<&'a [u8]>,
    /// The headers; `None` before v2.
    pub headers: Option<Headers<'a>>,
}

impl<'a> From<Message<'a>> for StoredRecord<'a> {
    fn from(message: Message<'a>) -> Self {
        let Message { offset, timestamp, key, value, .. } = message;
        Self { offset, timestamp, key, value, headers: None }
    }
}

/// Calls `visit` with the records of a complete `batch` until `visit` breaks. Decompresses into `scratch`, at most
/// `max` bytes. Does not verify checksums.
///
/// # Errors
/// When the batch cannot be decompressed or is malformed.
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

/// Returns the offset of a stored batch's first record. For a compressed message of v0 or v1, that requires
/// decompression.
///
/// # Errors
/// When a message cannot be decompressed or is malformed.
pub fn first_offset(header: &BatchHeader, batch: &[u8], scratch: &mut Vec<u8>, max: usize) -> Result<i64, RecordError> {
    if header.magic >= 2 || header.compression()? == Compression::None {
        return Ok(header.base_offset);
    }
    let message = Message::parse(batch)?;
    Ok(Inner::new(&message, decompress_set(&message, max, scratch)?)?.first_offset())
}

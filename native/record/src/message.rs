//! A message of format v0 or v1, as stored by brokers and sent by clients before 0.11.
//!
//! `offset: i64, size: i32, crc: u32, magic: i8, attributes: i8, [timestamp: i64 in v1,] key, value`, key and value
//! with a 32-bit length, -1 for null. The CRC-32 covers the bytes after it. A compressed message is a wrapper: its
//! value decompresses to a set of messages, and its offset is that of the last one (Kafka's `LegacyRecord` and
//! `AbstractLegacyRecordBatch`).

use super::header::{BatchHeader, COMPRESSION_MASK, LOG_OVERHEAD, TIMESTAMP_TYPE_MASK};
use super::{Compression, RecordError, TimestampType, crc32};

/// Size of the smallest message including offset and size: v0 with neither key nor value.
pub(super) const SMALLEST: usize = LOG_OVERHEAD + 14;
/// Position of the first byte that the checksum covers: the magic.
pub(super) const CRC_COVERS: usize = 16;
/// Position of the key, by magic.
const KEY_AT: [usize; 2] = [18, 26];

/// A message, borrowed from its set.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// Absolute; inside a wrapper of v1 relative to the wrapper's first offset.
    pub offset: i64,
    /// 0 or 1.
    pub magic: i8,
    /// The checksum in the message.
    pub crc: u32,
    /// Codec and timestamp type.
    pub attributes: i8,
    /// The timestamp, ms; -1 in v0.
    pub timestamp: i64,
    pub key: Option<&'a [u8]>,
    /// The value; for a wrapper, the compressed set.
    pub value: Option<&'a [u8]>,
    /// The complete message, including offset and size.
    pub bytes: &'a [u8],
}

fn word(bytes: &[u8], at: usize) -> Option<[u8; 4]> {
    bytes.get(at..)?.first_chunk().copied()
}

fn long(bytes: &[u8], at: usize) -> Option<i64> {
    bytes.get(at..)?.first_chunk().map(|found| i64::from_be_bytes(*found))
}

impl<'a> Message<'a> {
    /// Parses the message at the start of `bytes`. Checks its structure, not its checksum.
    ///
    /// # Errors
    /// [`RecordError::Truncated`] when the bytes end too early, [`RecordError::Magic`], [`RecordError::Message`].
    pub fn parse(bytes: &'a [u8]) -> Result<Self, RecordError> {
        let header = old_header(bytes)?;
        let (wanted, left) = (header.size(), bytes.len());
        let whole = bytes.get(..wanted).ok_or(RecordError::Truncated { what: "a message", wanted, left })?;
        let bad = |reason| RecordError::Message { offset: header.base_offset, reason };
        let (key, at) = part(whole, KEY_AT[header.magic as usize]).ok_or_else(|| bad("its key runs over it"))?;
        let (value, at) = part(whole, at).ok_or_else(|| bad("its value runs over it"))?;
        if at != whole.len() {
            return Err(bad("its parts do not fill it"));
        }
        Ok(Self {
            offset: header.base_offset,
            magic: header.magic,
            crc: header.crc,
            attributes: header.attributes as i8,
            timestamp: header.max_timestamp,
            key,
            value,
            bytes: whole,
        })
    }

    /// Returns the codec of the value.
    pub fn compression(&self) -> Result<Compression, RecordError> {
        Compression::from_code(self.attributes & COMPRESSION_MASK as i8)
    }

    /// Returns the timestamp type.
    pub fn timestamp_type(&self) -> TimestampType {
        if i16::from(self.attributes) & TIMESTAMP_TYPE_MASK == 0 || self.magic == 0 {
            TimestampType::CreateTime
        } else {
            TimestampType::LogAppendTime
        }
    }

    /// Verifies the checksum.
    ///
    /// # Errors
    /// [`RecordError::Checksum`].
    pub fn check_crc(&self) -> Result<(), RecordError> {
        let found = crc32(&self.bytes[CRC_COVERS..]);
        if found == self.crc { Ok(()) } else { Err(RecordError::Checksum { stated: self.crc, found }) }
    }
}

/// Reads a key or value. Returns it and its end.
fn part(bytes: &[u8], at: usize) -> Option<(Option<&[u8]>, usize)> {
    let length = i32::from_be_bytes(word(bytes, at)?);
    let begin = at + 4;
    match usize::try_from(length) {
        Ok(length) => Some((Some(bytes.get(begin..begin.checked_add(length)?)?), begin + length)),
        Err(_) if length == -1 => Some((None, begin)),
        Err(_) => None,
    }
}

/// Parses the fields before a message's key as the header of a batch with one record. For a wrapper, the number of
/// records is unknown (-1). The offset is that of the last record; the first offset is inside the wrapper.
pub(super) fn old_header(bytes: &[u8]) -> Result<BatchHeader, RecordError> {
    let truncated = |wanted| RecordError::Truncated { what: "a message", wanted, left: bytes.len() };
    let front: &[u8; KEY_AT[0]] = bytes.first_chunk().ok_or_else(|| truncated(SMALLEST))?;
    let magic = front[16] as i8;
    let at_least = match magic {
        0 => 14,
        1 => 22,
        other => return Err(RecordError::Magic(other)),
    };
    let size = i32::from_be_bytes([front[8], front[9], front[10], front[11]]);
    if size < at_least {
        return Err(RecordError::BatchLength(size));
    }
    let timestamp = match magic {
        0 => -1,
        _ => long(bytes, KEY_AT[0]).ok_or_else(|| truncated(KEY_AT[1]))?,
    };
    let attributes = i16::from(front[17] & (COMPRESSION_MASK | TIMESTAMP_TYPE_MASK) as u8);
    Ok(BatchHeader {
        base_offset: i64::from_be_bytes([
            front[0], front[1], front[2], front[3], front[4], front[5], front[6], front[7],
        ]),
        batch_length: size,
        partition_leader_epoch: -1,
        magic,
        crc: u32::from_be_bytes([front[12], front[13], front[14], front[15]]),
        attributes: if magic == 0 { attributes & COMPRESSION_MASK } else { attributes },
        last_offset_delta: 0,
        base_timestamp: timestamp,
        max_timestamp: timestamp,
        producer_id: -1,
        producer_epoch: -1,
        base_sequence: -1,
        record_count: if attributes & COMPRESSION_MASK == 0 { 1 } else { -1 },
    })
}

/// Iterates over the messages of a set, without decompressing wrappers. Ends after the first error. An incomplete
/// message at the end is an error.
#[derive(Clone, Debug)]
pub struct Messages<'a> {
    rest: &'a [u8],
}

impl<'a> Messages<'a> {
    /// Creates an iterator over the messages in `set`.
    pub fn new(set: &'a [u8]) -> Self {
        Self { rest: set }
    }
}

impl<'a> Iterator for Messages<'a> {
    type Item = Result<Message<'a>, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let message = Message::parse(self.rest);
        self.rest = match &message {
            Ok(message) => &self.rest[message.bytes.len()..],
            Err(_) => &[],
        };
        Some(message)
    }
}

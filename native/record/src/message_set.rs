//! Sets of v0 and v1 messages: the content of wrappers, and a builder.
//!
//! The inner messages of a v1 wrapper have offsets from 0 on, and the wrapper has the absolute offset of the last one
//! (KIP-31). Those of a v0 wrapper have absolute offsets. Under LogAppendTime the timestamp of a v1 wrapper applies
//! to all its messages (KIP-32).

use super::batch::{LOG_OVERHEAD, TIMESTAMP_TYPE_MASK};
use super::lz4;
use super::message::{CRC_COVERS, Message, Messages};
use super::{Compression, RecordError, TimestampType, compress, crc32, decompress};

/// Decompresses the set of a wrapper into `scratch`, at most `max` bytes, and returns it.
///
/// # Errors
/// When the wrapper has a codec that these formats do not support, has no value, or cannot be decompressed.
pub fn decompress_set<'a>(
    wrapper: &Message<'_>,
    max: usize,
    scratch: &'a mut Vec<u8>,
) -> Result<&'a [u8], RecordError> {
    let bad = |reason| RecordError::Message { offset: wrapper.offset, reason };
    let value = wrapper.value.ok_or_else(|| bad("it is compressed and has no value"))?;
    scratch.clear();
    match wrapper.compression()? {
        Compression::None => return Err(bad("it is no wrapper")),
        // These formats do not support the codec (KIP-110).
        Compression::Zstd => return Err(RecordError::Codec(Compression::Zstd as i8)),
        Compression::Lz4 => lz4::decompress_old(value, max, scratch)?,
        codec => decompress(codec, value, max, scratch)?,
    }
    Ok(scratch)
}

/// The messages in a wrapper, with absolute offsets and their own timestamps.
#[derive(Clone, Debug)]
pub struct Inner<'a> {
    messages: Messages<'a>,
    magic: i8,
    /// The offset to add to the inner offsets.
    base_offset: i64,
    /// The timestamp of all messages under LogAppendTime.
    timestamp: Option<i64>,
}

impl<'a> Inner<'a> {
    /// Creates an iterator over the messages of `set`, the decompressed content of `wrapper`.
    ///
    /// # Errors
    /// When the set is empty, malformed or of another format, or the wrapper's offset is below that of its last
    /// message.
    pub fn new(wrapper: &Message<'_>, set: &'a [u8]) -> Result<Self, RecordError> {
        let bad = |reason| RecordError::Message { offset: wrapper.offset, reason };
        let mut last = None;
        for message in Messages::new(set) {
            let message = message?;
            if message.compression()? != Compression::None {
                return Err(bad("a compressed message in a compressed message"));
            }
            if message.magic != wrapper.magic {
                return Err(bad("messages of another format in it"));
            }
            last = Some(message.offset);
        }
        let last = last.ok_or_else(|| bad("no message in it"))?;
        // Some producers leave the wrapper's offset at 0 (Kafka's `DeepRecordsIterator` mentions librdkafka).
        let base_offset = match (wrapper.magic, wrapper.offset) {
            (0, _) | (_, 0) => 0,
            (_, offset) if offset < last => return Err(bad("its offset is below that of its last message")),
            (_, offset) => offset - last,
        };
        let timestamp = (wrapper.timestamp_type() == TimestampType::LogAppendTime).then_some(wrapper.timestamp);
        Ok(Self { messages: Messages::new(set), magic: wrapper.magic, base_offset, timestamp })
    }

    /// Returns the offset of the first message.
    pub fn first_offset(&self) -> i64 {
        let first = self.messages.clone().next().and_then(Result::ok);
        self.base_offset.wrapping_add(first.map_or(0, |message| message.offset))
    }
}

impl<'a> Iterator for Inner<'a> {
    type Item = Message<'a>;

    fn next(&mut self) -> Option<Message<'a>> {
        // All messages were checked when this iterator was created.
        let message = self.messages.next()?.ok()?;
        let timestamp = self.timestamp.filter(|_| self.magic > 0).unwrap_or(message.timestamp);
        Some(Message { offset: self.base_offset.wrapping_add(message.offset), timestamp, ..message })
    }
}

/// A record for [`MessageSetBuilder`].
#[derive(Clone, Copy, Debug)]
pub struct NewMessage<'a> {
    /// The absolute offset.
    pub offset: i64,
    /// The timestamp, ms. Dropped in v0.
    pub timestamp: i64,
    pub key: Option<&'a [u8]>,
    pub value: Option<&'a [u8]>,
}

/// Builds a set: concatenated messages, or one wrapper around them.
#[derive(Debug)]
pub struct MessageSetBuilder {
    magic: i8,
    codec: Compression,
    timestamp_type: TimestampType,
    set: Vec<u8>,
    first_offset: i64,
    last_offset: i64,
    max_timestamp: i64,
}

impl MessageSetBuilder {
    /// Creates a builder for `magic` 0 or 1. Under LogAppendTime all records must have the same timestamp.
    pub fn new(magic: i8, codec: Compression, timestamp_type: TimestampType) -> Self {
        Self { magic, codec, timestamp_type, set: Vec::new(), first_offset: -1, last_offset: -1, max_timestamp: -1 }
    }

    /// Appends a record.
    pub fn append(&mut self, message: &NewMessage<'_>) {
        if self.first_offset < 0 {
            self.first_offset = message.offset;
        }
        self.last_offset = message.offset;
        self.max_timestamp = self.max_timestamp.max(message.timestamp);
        // Only messages inside a wrapper of v1 have relative offsets.
        let relative = self.magic > 0 && self.codec != Compression::None;
        let offset = if relative { message.offset - self.first_offset } else { message.offset };
        let attributes = self.attributes();
        write_message(&mut self.set, self.magic, attributes, &NewMessage { offset, ..*message });
    }

    fn attributes(&self) -> i8 {
        match self.timestamp_type {
            TimestampType::LogAppendTime if self.magic > 0 => TIMESTAMP_TYPE_MASK as i8,
            _ => 0,
        }
    }

    /// Appends the set to `out`, in a wrapper if there is a codec.
    ///
    /// # Errors
    /// When the codec fails, or these formats do not support it.
    pub fn finish(self, out: &mut Vec<u8>) -> Result<(), RecordError> {
        let mut packed = Vec::new();
        match self.codec {
            _ if self.set.is_empty() => return Ok(()),
            Compression::None => {
                out.extend_from_slice(&self.set);
                return Ok(());
            }
            Compression::Zstd => return Err(RecordError::Codec(Compression::Zstd as i8)),
            Compression::Lz4 if self.magic == 0 => lz4::compress_v0(&self.set, &mut packed)?,
            codec => compress(codec, None, &self.set, &mut packed)?,
        }
        let attributes = self.attributes() | self.codec as i8;
        let (offset, timestamp) = (self.last_offset, self.max_timestamp);
        write_message(out, self.magic, attributes, &NewMessage { offset, timestamp, key: None, value: Some(&packed) });
        Ok(())
    }
}

/// Returns the size of an uncompressed message including offset and size.
fn message_len(magic: i8, message: &NewMessage<'_>) -> usize {
    let fixed = if magic == 0 { 14 } else { 22 };
    LOG_OVERHEAD + fixed + message.key.map_or(0, <[u8]>::len) + message.value.map_or(0, <[u8]>::len)
}

fn write_message(out: &mut Vec<u8>, magic: i8, attributes: i8, message: &NewMessage<'_>) {
    let (begin, len) = (out.len(), message_len(magic, message));
    out.reserve(len);
    out.extend_from_slice(&message.offset.to_be_bytes());
    out.extend_from_slice(&((len - LOG_OVERHEAD) as i32).to_be_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&[magic as u8, attributes as u8]);
    if magic > 0 {
        out.extend_from_slice(&message.timestamp.to_be_bytes());
    }
    for part in [message.key, message.value] {
        out.extend_from_slice(&part.map_or(-1, |part| part.len() as i32).to_be_bytes());
        out.extend_from_slice(part.unwrap_or_default());
    }
    let crc = crc32(&out[begin + CRC_COVERS..]);
    out[begin + LOG_OVERHEAD..begin + CRC_COVERS].copy_from_slice(&crc.to_be_bytes());
}

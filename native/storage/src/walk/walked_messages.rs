//! The messages of a file in formats 0 and 1 for a dump: a single message, or those inside a wrapper.

use crate::walk::log_walk::WalkedBatch;
use pybroker_record::{Compression, Inner, Message, RecordError, decompress_set};

/// A message for a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalkedMessage<'a> {
    /// Its offset in the log.
    pub offset: i64,
    /// Its timestamp, ms; -1 in format 0.
    pub timestamp: i64,
    /// The checksum in the message.
    pub crc: u32,
    /// Whether the checksum is correct.
    pub is_valid: bool,
    pub key: Option<&'a [u8]>,
    pub value: Option<&'a [u8]>,
}

/// The fields before a message's key: offset, attributes, timestamp, checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageHead {
    /// The offset; for a wrapper, that of its last message.
    pub offset: i64,
    /// Codec and timestamp type.
    pub attributes: i8,
    /// The timestamp, ms; -1 in format 0.
    pub timestamp: i64,
    /// The checksum in the message.
    pub crc: u32,
}

impl<'a> WalkedMessage<'a> {
    fn of(message: &Message<'a>) -> Self {
        let Message { offset, timestamp, crc, key, value, .. } = *message;
        Self { offset, timestamp, crc, is_valid: message.check_crc().is_ok(), key, value }
    }
}

impl WalkedBatch<'_> {
    /// Returns the head of a message of format 0 or 1; `None` for later formats.
    pub fn message_head(&self) -> Option<MessageHead> {
        if self.magic >= 2 {
            return None;
        }
        let field = |at: usize| self.bytes.get(at..at + 8)?.first_chunk().map(|field| i64::from_be_bytes(*field));
        let timestamp = if self.magic == 1 { field(18).unwrap_or(-1) } else { -1 };
        let crc = self.bytes.get(12..16)?.first_chunk().map(|crc| u32::from_be_bytes(*crc))?;
        Some(MessageHead { offset: field(0)?, attributes: *self.bytes.get(17)? as i8, timestamp, crc })
    }
}

/// Reads the message in `bytes`, or its inner messages, up to `max` bytes, and calls `each` with every message.
///
/// # Errors
/// When a message cannot be read.
pub fn read_messages(bytes: &[u8], max: usize, mut each: impl FnMut(WalkedMessage<'_>)) -> Result<(), RecordError> {
    let message = Message::parse(bytes)?;
    if message.compression()? == Compression::None {
        each(WalkedMessage::of(&message));
        return Ok(());
    }
    let mut scratch = Vec::new();
    let set = decompress_set(&message, max, &mut scratch)?;
    for inner in Inner::new(&message, set)? {
        each(WalkedMessage::of(&inner));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use pybroker_record::{MessageSetBuilder, NewMessage, TimestampType};

    fn set(magic: i8, codec: Compression) -> Vec<u8> {
        let mut builder = MessageSetBuilder::new(magic, codec, TimestampType::CreateTime);
        for offset in 5..7 {
            builder.append(&NewMessage { offset, timestamp: offset * 10, key: None, value: Some(b"v") });
        }
        let mut bytes = Vec::new();
        builder.finish(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn a_wrapper_shows_what_is_in_it() {
        for magic in [0, 1] {
            let bytes = set(magic, Compression::Gzip);
            let mut shown = Vec::new();
            read_messages(&bytes, 1 << 20, |message| {
                shown.push((message.offset, message.timestamp, message.is_valid));
            })
            .unwrap();
            let times = if magic == 0 { [-1, -1] } else { [50, 60] };
            assert_eq!(shown, [(5, times[0], true), (6, times[1], true)]);
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>, magic in 0..2i8) {
            let _ = read_messages(&bytes, 1 << 16, |_| {});
            let _ = WalkedBatch { position: 0, magic, bytes: &bytes, header: None }.message_head();
        }
    }
}

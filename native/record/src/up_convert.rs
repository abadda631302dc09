//! Conversion of a set of v0 or v1 messages to one v2 batch, with validation (Kafka's `LogValidator`, where it
//! converts).
//!
//! The records' offsets are not checked: the leader assigns new ones.

use super::blame::{Fault, MOST_NAMED, refuse};
use super::message::{Message, Messages};
use super::message_set::{Inner, decompress_set};
use super::{BatchBuilder, BatchHeader, Codec, Compression, InvalidBatch, RecordError, TimestampType, ValidateRules};

/// Converts the messages of `set` to one batch and appends it to `out`, with `codec` or else with the messages' own
/// codec. Decompresses a wrapper into `scratch`.
///
/// # Errors
/// The first error of the set, or all errors of its records; see [`InvalidBatch`].
pub fn up_convert(
    set: &[u8],
    rules: &ValidateRules,
    codec: Option<Codec>,
    scratch: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<BatchHeader, InvalidBatch> {
    let begin = out.len();
    let mut records = Collected { rules, builder: None, index: 0, faults: Vec::new() };
    let mut magic = None;
    for message in Messages::new(set) {
        let message = check_message(message, rules, &mut magic)?;
        let own = message.compression().map_err(unreadable)?;
        records.begin(codec.unwrap_or(Codec { compression: own, level: None }));
        if own == Compression::None {
            records.add(&message, &message)?;
        } else if message.bytes.len() == set.len() {
            let decompressed = decompress_set(&message, rules.max_decompressed_bytes, scratch).map_err(unreadable)?;
            for inner in Inner::new(&message, decompressed).map_err(invalid)? {
                inner.check_crc().map_err(unreadable)?;
                records.add(&inner, &message)?;
            }
        } else {
            return Err(wrong("a compressed message stands alone in its set".to_owned()));
        }
    }
    records.finish(out)?;
    let header = BatchHeader::parse(&out[begin..]).map_err(unreadable)?;
    if header.size() > rules.max_message_bytes {
        return Err(InvalidBatch::TooLarge { size: header.size(), limit: rules.max_message_bytes });
    }
    Ok(header)
}

/// Performs the checks of a message that do not need decompression.
fn check_message<'a>(
    message: Result<Message<'a>, RecordError>,
    rules: &ValidateRules,
    magic: &mut Option<i8>,
) -> Result<Message<'a>, InvalidBatch> {
    let message = message.map_err(unreadable)?;
    let (size, limit) = (message.bytes.len(), rules.max_message_bytes);
    if size > limit {
        return Err(InvalidBatch::TooLarge { size, limit });
    }
    message.check_crc().map_err(unreadable)?;
    let first = *magic.get_or_insert(message.magic);
    if first != message.magic {
        return Err(wrong(format!("a message of format {} among those of format {first}", message.magic)));
    }
    Ok(message)
}

fn wrong(reason: String) -> InvalidBatch {
    InvalidBatch::InvalidRecord { records: Vec::new(), reason }
}

/// Converts an error in a decompressed set.
fn invalid(error: RecordError) -> InvalidBatch {
    match error {
        RecordError::Message { .. } => wrong(error.to_string()),
        other => unreadable(other),
    }
}

fn unreadable(error: RecordError) -> InvalidBatch {
    match error {
        RecordError::Codec(code) => InvalidBatch::UnsupportedCompression(code),
        RecordError::TooLarge { limit, .. } => InvalidBatch::DecompressedTooLarge { limit },
        other => InvalidBatch::Corrupt(other.to_string()),
    }
}

/// The records so far, and their errors.
struct Collected<'a> {
    rules: &'a ValidateRules,
    builder: Option<BatchBuilder>,
    index: i32,
    faults: Vec<Fault>,
}

impl Collected<'_> {
    fn begin(&mut self, codec: Codec) {
        self.builder.get_or_insert_with(|| BatchBuilder::new(codec.compression, codec.level, usize::MAX));
    }

    /// Adds a record, or its errors. `outer` is its wrapper, or the message itself.
    fn add(&mut self, message: &Message<'_>, outer: &Message<'_>) -> Result<(), InvalidBatch> {
        let fault = if outer.timestamp_type() == TimestampType::LogAppendTime {
            Some(Fault::of_time(self.index, "its timestamp is of type LogAppendTime; a producer sends CreateTime"))
        } else {
            Fault::of_rules(self.index, message.key.is_some(), message.timestamp, self.rules)
        };
        if self.faults.len() < MOST_NAMED {
            self.faults.extend(fault);
        }
        self.index += 1;
        let Some(builder) = self.builder.as_mut().filter(|_| self.faults.is_empty()) else { return Ok(()) };
        let limit = self.rules.max_decompressed_bytes;
        let taken = builder.try_append(message.timestamp, message.key, message.value, &[]);
        taken.map(drop).ok_or(InvalidBatch::DecompressedTooLarge { limit })
    }

    fn finish(self, out: &mut Vec<u8>) -> Result<(), InvalidBatch> {
        if !self.faults.is_empty() {
            return Err(refuse(self.faults, String::new));
        }
        let Some(mut builder) = self.builder else { return Err(wrong("a set without a message".to_owned())) };
        builder.finish(-1, -1, -1, out).map_err(unreadable)
    }
}

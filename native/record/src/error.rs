//! What is wrong with record bytes, by meaning.

use super::Compression;

/// Bytes that are not what their format says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The bytes end before the structure does.
    #[error("{what} needs {wanted} bytes and has {left}")]
    Truncated {
        /// What was read.
        what: &'static str,
        /// Bytes that it needs.
        wanted: usize,
        /// Bytes there are.
        left: usize,
    },
    /// A batch of another magic than the one that is due.
    #[error("magic {0}; only 2 is understood, and 0 and 1 in message sets")]
    Magic(i8),
    /// A length that no batch or message has.
    #[error("batch length {0}; a v2 batch has at least 49, a message of v1 22 and of v0 14")]
    BatchLength(i32),
    /// A message of format v0 or v1 that is none, or a wrapper around none.
    #[error("the message at offset {offset}: {reason}")]
    Message {
        /// The offset that it says it has.
        offset: i64,
        /// What is wrong.
        reason: &'static str,
    },
    /// Bytes that do not give the checksum beside them.
    #[error("the checksum is {found:#010x}; the message says {stated:#010x}")]
    Checksum {
        /// The checksum beside the bytes.
        stated: u32,
        /// The one that they give.
        found: u32,
    },
    /// A varint that does not end within its type.
    #[error("a varint without end")]
    Varint,
    /// A record whose parts do not fill it, or that runs over the batch.
    #[error("record {index}: {reason}")]
    Record {
        /// Its place in the batch.
        index: i32,
        /// What is wrong.
        reason: &'static str,
    },
    /// A codec number that does not exist.
    #[error("compression codec {0}; known are 0 (none) to 4 (zstd)")]
    Codec(i8),
    /// Compressed bytes that do not decompress.
    #[error("{codec:?}: {reason}")]
    Compressed {
        codec: Compression,
        /// The codec's words.
        reason: String,
    },
    /// Compressed bytes that decompress to more than is allowed.
    #[error("{codec:?}: decompresses to more than {limit} bytes")]
    TooLarge {
        codec: Compression,
        /// The bound.
        limit: usize,
    },
}

/// Why a producer's batch is refused. Each variant stands for one error code of Kafka's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidBatch {
    /// CORRUPT_MESSAGE: the checksum or the frame of the batch is wrong.
    #[error("{0}")]
    Corrupt(String),
    /// MESSAGE_TOO_LARGE.
    #[error("a batch of {size} bytes; max.message.bytes is {limit}")]
    TooLarge {
        /// The batch's size.
        size: usize,
        /// The setting.
        limit: usize,
    },
    /// MESSAGE_TOO_LARGE: compressed records decompress to more than is allowed; a producer that splits the batch succeeds.
    #[error("the records decompress to more than {limit} bytes")]
    DecompressedTooLarge {
        /// The bound.
        limit: usize,
    },
    /// UNSUPPORTED_COMPRESSION_TYPE.
    #[error("compression codec {0}; known are 0 (none) to 4 (zstd)")]
    UnsupportedCompression(i8),
    /// INVALID_RECORD: another message format than the one that Produce carries from version 3 on.
    #[error("message format {0}; only 2 is taken")]
    UnsupportedFormat(i8),
    /// INVALID_TIMESTAMP: records' times are too far from the broker's.
    #[error("{reason}")]
    InvalidTimestamp {
        /// The records to blame (KIP-467): place in the batch and text.
        records: Vec<(i32, String)>,
        /// What is wrong.
        reason: String,
    },
    /// INVALID_RECORD: records, or the batch around them, are not what a producer may send.
    #[error("{reason}")]
    InvalidRecord {
        /// The records to blame (KIP-467): place in the batch and text.
        records: Vec<(i32, String)>,
        /// What is wrong.
        reason: String,
    },
}

impl InvalidBatch {
    /// The records that are to blame, with the reason (KIP-467): place in the batch and text.
    pub fn record_errors(&self) -> Vec<(i32, Option<String>)> {
        match self {
            Self::InvalidTimestamp { records, .. } | Self::InvalidRecord { records, .. } => {
                records.iter().map(|(index, text)| (*index, Some(text.clone()))).collect()
            }
            Self::Corrupt(_)
            | Self::TooLarge { .. }
            | Self::DecompressedTooLarge { .. }
            | Self::UnsupportedCompression(_)
            | Self::UnsupportedFormat(_) => Vec::new(),
        }
    }
}

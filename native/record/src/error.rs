//! The errors of record bytes, by meaning.

use super::Compression;

/// Bytes that are not valid in their format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The bytes end before the structure.
    #[error("{what} needs {wanted} bytes and has {left}")]
    Truncated {
        /// The structure that was read.
        what: &'static str,
        /// Number of bytes needed.
        wanted: usize,
        /// Number of bytes available.
        left: usize,
    },
    /// A batch with an unexpected magic.
    #[error("magic {0}; only 2 is understood, and 0 and 1 in message sets")]
    Magic(i8),
    /// An impossible length of a batch or message.
    #[error("batch length {0}; a v2 batch has at least 49, a message of v1 22 and of v0 14")]
    BatchLength(i32),
    /// An invalid message of format v0 or v1, or an invalid wrapper.
    #[error("the message at offset {offset}: {reason}")]
    Message {
        /// The offset in the message.
        offset: i64,
        /// Description of the error.
        reason: &'static str,
    },
    /// Bytes that do not match their checksum.
    #[error("the checksum is {found:#010x}; the message says {stated:#010x}")]
    Checksum {
        /// The checksum in the bytes.
        stated: u32,
        /// The computed checksum.
        found: u32,
    },
    /// A varint that is longer than its type.
    #[error("a varint without end")]
    Varint,
    /// A record whose parts do not fill it, or that exceeds the batch.
    #[error("record {index}: {reason}")]
    Record {
        /// Its index in the batch.
        index: i32,
        /// Description of the error.
        reason: &'static str,
    },
    /// An unknown codec number.
    #[error("compression codec {0}; known are 0 (none) to 4 (zstd)")]
    Codec(i8),
    /// Compressed bytes that cannot be decompressed.
    #[error("{codec:?}: {reason}")]
    Compressed {
        codec: Compression,
        /// The codec's error message.
        reason: String,
    },
    /// Compressed bytes that decompress to more than the limit.
    #[error("{codec:?}: decompresses to more than {limit} bytes")]
    TooLarge {
        codec: Compression,
        /// The limit in bytes.
        limit: usize,
    },
}

/// Why a producer's batch is rejected. Each variant stands for one Kafka error code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidBatch {
    /// CORRUPT_MESSAGE: the checksum or the framing of the batch is wrong.
    #[error("{0}")]
    Corrupt(String),
    /// MESSAGE_TOO_LARGE.
    #[error("a batch of {size} bytes; max.message.bytes is {limit}")]
    TooLarge {
        /// The batch's size.
        size: usize,
        /// The configured limit.
        limit: usize,
    },
    /// MESSAGE_TOO_LARGE: the compressed records decompress to more than the limit. A producer that splits the batch
    /// succeeds.
    #[error("the records decompress to more than {limit} bytes")]
    DecompressedTooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// UNSUPPORTED_COMPRESSION_TYPE.
    #[error("compression codec {0}; known are 0 (none) to 4 (zstd)")]
    UnsupportedCompression(i8),
    /// INVALID_RECORD: another message format than Produce has from version 3 on.
    #[error("message format {0}; only 2 is taken")]
    UnsupportedFormat(i8),
    /// INVALID_TIMESTAMP: timestamps of records are too far from the broker's time.
    #[error("{reason}")]
    InvalidTimestamp {
        /// The invalid records (KIP-467): index in the batch and message.
        records: Vec<(i32, String)>,
        /// Description of the error.
        reason: String,
    },
    /// INVALID_RECORD: a producer may not send these records, or the batch around them.
    #[error("{reason}")]
    InvalidRecord {
        /// The invalid records (KIP-467): index in the batch and message.
        records: Vec<(i32, String)>,
        /// Description of the error.
        reason: String,
    },
}

impl InvalidBatch {
    /// Returns the invalid records with the reason (KIP-467): index in the batch and message.
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

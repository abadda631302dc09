//! The codecs by number and name, and bounded reading of decompressed data.

use std::io::Read;
use std::str::FromStr;

use super::RecordError;

/// A codec, by its number in a batch's attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compression {
    /// No compression.
    None = 0,
    /// gzip (RFC 1952).
    Gzip = 1,
    /// Snappy, in xerial's framing or unframed.
    Snappy = 2,
    /// LZ4 frames.
    Lz4 = 3,
    /// Zstandard (RFC 8878).
    Zstd = 4,
}

impl Compression {
    /// Returns the codec with a number.
    pub fn from_code(code: i8) -> Result<Self, RecordError> {
        match code {
            0 => Ok(Self::None),
            1 => Ok(Self::Gzip),
            2 => Ok(Self::Snappy),
            3 => Ok(Self::Lz4),
            4 => Ok(Self::Zstd),
            other => Err(RecordError::Codec(other)),
        }
    }

    pub(super) fn failed(self, error: impl std::fmt::Display) -> RecordError {
        RecordError::Compressed { codec: self, reason: error.to_string() }
    }
}

impl FromStr for Compression {
    type Err = String;

    /// Parses Kafka's name of a codec: none, gzip, snappy, lz4, zstd.
    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "none" => Ok(Self::None),
            "gzip" => Ok(Self::Gzip),
            "snappy" => Ok(Self::Snappy),
            "lz4" => Ok(Self::Lz4),
            "zstd" => Ok(Self::Zstd),
            other => Err(format!("compression {other:?}; known are none, gzip, snappy, lz4 and zstd")),
        }
    }
}

/// A codec and its level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Codec {
    pub compression: Compression,
    /// The level in the codec's own scale; `None` for its default.
    pub level: Option<i32>,
}

/// Appends the output of `reader` to `out`, at most `max` bytes.
pub(super) fn read_all(
    codec: Compression,
    reader: impl Read,
    max: usize,
    out: &mut Vec<u8>,
) -> Result<(), RecordError> {
    let before = out.len();
    // One byte more than allowed distinguishes a full buffer from an overflow.
    reader.take(max as u64 + 1).read_to_end(out).map_err(|error| codec.failed(error))?;
    if out.len() - before > max {
        out.truncate(before);
        return Err(RecordError::TooLarge { codec, limit: max });
    }
    Ok(())
}

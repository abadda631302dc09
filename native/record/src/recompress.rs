//! The same records in another codec, as a topic's `compression.type` may ask.

use super::{BatchHeader, Codec, HEADER_LEN, RecordError, compress, seal};

/// Appends the batch of `header` to `out` with its decompressed `section` in `codec`; the new header comes back. Records,
/// offsets, producer and timestamps stay as they are.
///
/// # Errors
/// When the codec fails.
pub fn recompress(
    header: &BatchHeader,
    section: &[u8],
    codec: Codec,
    out: &mut Vec<u8>,
) -> Result<BatchHeader, RecordError> {
    let begin = out.len();
    out.resize(begin + HEADER_LEN, 0);
    compress(codec.compression, codec.level, section, out)?;
    let batch = &mut out[begin..];
    let mut header = *header;
    header.set_compression(codec.compression, batch.len());
    header.write(batch);
    header.crc = seal(batch);
    Ok(header)
}

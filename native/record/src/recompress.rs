//! Recompression of a batch to another codec, as a topic's `compression.type` may require.

use super::{BatchHeader, Codec, HEADER_LEN, RecordError, compress, seal};

/// Compresses the decompressed `section` of a batch with `codec` and appends the new batch to `out`. Returns its
/// header. Records, offsets, producer and timestamps do not change.
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

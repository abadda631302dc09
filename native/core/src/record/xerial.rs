//! Snappy as Kafka's Java clients frame it (xerial's `SnappyOutputStream`), and bare, as librdkafka writes it.
//!
//! Frame: 8 bytes magic, two 32-bit version numbers, then blocks of a 32-bit length and a snappy block each.

use super::{Compression, RecordError};

const MAGIC: [u8; 8] = [0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0];
const HEADER: [u8; 16] = [0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0, 0, 0, 0, 1, 0, 0, 0, 1];
/// xerial's default block size.
const BLOCK: usize = 32 << 10;

/// Snappy's longest copy makes 64 bytes of three.
const MOST_FROM_A_BYTE: usize = 22;

/// Appends `source` to `out` in xerial's framing.
pub fn compress(source: &[u8], out: &mut Vec<u8>) -> Result<(), snap::Error> {
    out.extend_from_slice(&HEADER);
    let mut encoder = snap::raw::Encoder::new();
    for block in source.chunks(BLOCK) {
        let at = out.len();
        out.resize(at + 4 + snap::raw::max_compress_len(block.len()), 0);
        let written = encoder.compress(block, &mut out[at + 4..])?;
        out[at..at + 4].copy_from_slice(&(written as u32).to_be_bytes());
        out.truncate(at + 4 + written);
    }
    Ok(())
}

/// Appends what `source` unfolds to, framed or bare, to `out`; at most `max` bytes.
pub fn decompress(source: &[u8], max: usize, out: &mut Vec<u8>) -> Result<(), RecordError> {
    let before = out.len();
    let done = if source.starts_with(&MAGIC) { framed(source, max, out) } else { block(source, max, out) };
    if done.is_err() {
        out.truncate(before);
    }
    done
}

fn framed(source: &[u8], max: usize, out: &mut Vec<u8>) -> Result<(), RecordError> {
    let before = out.len();
    let bad = |reason: &str| RecordError::Compressed { codec: Compression::Snappy, reason: reason.into() };
    let mut rest = source.get(HEADER.len()..).ok_or_else(|| bad("the frame's header is cut"))?;
    while let Some((length, tail)) = rest.split_first_chunk::<4>() {
        // Streams may be strung together; a block of the length that the magic spells is impossible.
        if rest.starts_with(&MAGIC) {
            rest = rest.get(HEADER.len()..).ok_or_else(|| bad("the frame's header is cut"))?;
            continue;
        }
        let length = u32::from_be_bytes(*length) as usize;
        let packed = tail.get(..length).ok_or_else(|| bad("a block runs over the frame"))?;
        block(packed, max - (out.len() - before), out)?;
        rest = &tail[length..];
    }
    if rest.is_empty() { Ok(()) } else { Err(bad("bytes after the last block")) }
}

fn block(packed: &[u8], max: usize, out: &mut Vec<u8>) -> Result<(), RecordError> {
    let codec = Compression::Snappy;
    let failed = |error: snap::Error| RecordError::Compressed { codec, reason: error.to_string() };
    if packed.is_empty() {
        return Ok(());
    }
    let length = snap::raw::decompress_len(packed).map_err(failed)?;
    if length > max {
        return Err(RecordError::TooLarge { codec, limit: max });
    }
    // A stated length that no such block can reach is refused before memory is taken for it.
    if length > packed.len().saturating_mul(MOST_FROM_A_BYTE) {
        let reason = format!("{} bytes state that they unfold to {length}", packed.len());
        return Err(RecordError::Compressed { codec, reason });
    }
    let at = out.len();
    out.resize(at + length, 0);
    snap::raw::Decoder::new().decompress(packed, &mut out[at..]).map(drop).map_err(failed)
}

//! Snappy in the framing of Kafka's Java clients (xerial's `SnappyOutputStream`), and unframed, as librdkafka writes
//! it.
//!
//! Frame: 8 bytes magic, two 32-bit version numbers, then blocks of a 32-bit length and a snappy block each.

use super::{Compression, RecordError};

const MAGIC: [u8; 8] = [0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0];
const HEADER: [u8; 16] = [0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0, 0, 0, 0, 1, 0, 0, 0, 1];
/// xerial's default block size.
const BLOCK: usize = 32 << 10;

/// The longest copy in snappy produces 64 bytes from three.
const MOST_FROM_A_BYTE: usize = 22;

/// Compresses `source` and appends it to `out` in xerial's framing.
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

/// Decompresses `source`, framed or not, and appends it to `out`, at most `max` bytes.
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
        // Streams may be concatenated. The magic cannot be a block length.
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
    // A length that no block can reach is rejected before memory is allocated.
    if length > packed.len().saturating_mul(MOST_FROM_A_BYTE) {
        let reason = format!("{} bytes state that they decompress to {length}", packed.len());
        return Err(RecordError::Compressed { codec, reason });
    }
    let at = out.len();
    out.resize(at + length, 0);
    snap::raw::Decoder::new().decompress(packed, &mut out[at..]).map(drop).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unpacked(source: &[u8], max: usize) -> Result<Vec<u8>, RecordError> {
        let mut out = b"before".to_vec();
        let done = decompress(source, max, &mut out);
        assert!(
            out.starts_with(b"before") && (done.is_ok() || out.len() == 6),
            "what was there stays, and nothing else"
        );
        done.map(|()| out.split_off(6))
    }

    #[test]
    fn frames_are_those_of_java_and_bare_blocks_are_read_too() {
        let source = b"0123456789".repeat(10_000);
        let mut framed = Vec::new();
        compress(&source, &mut framed).unwrap();
        assert_eq!(framed[..16], *b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01");
        let first = u32::from_be_bytes([framed[16], framed[17], framed[18], framed[19]]) as usize;
        assert_eq!(snap::raw::decompress_len(&framed[20..20 + first]), Ok(32 << 10));
        assert_eq!(unpacked(&framed, source.len()), Ok(source.clone()));
        let bare = snap::raw::Encoder::new().compress_vec(&source).unwrap();
        assert_eq!(unpacked(&bare, source.len()), Ok(source.clone()));
        assert_eq!(unpacked(&[&framed[..], &framed[..]].concat(), 1 << 20), Ok(source.repeat(2)));
        assert!(matches!(unpacked(&framed, source.len() - 1), Err(RecordError::TooLarge { .. })));
        assert!(matches!(unpacked(&framed[..framed.len() - 1], 1 << 20), Err(RecordError::Compressed { .. })));
    }

    #[test]
    fn a_stated_length_that_cannot_be_takes_no_memory() {
        let claims_a_gib = [0x80, 0x80, 0x80, 0x80, 0x04, 0, b'x'];
        assert!(matches!(unpacked(&claims_a_gib, usize::MAX), Err(RecordError::Compressed { .. })));
    }

    #[test]
    fn the_densest_block_is_not_taken_for_a_false_claim() {
        let source = vec![0; 1 << 20];
        let dense = snap::raw::Encoder::new().compress_vec(&source).unwrap();
        assert_eq!(unpacked(&dense, source.len()), Ok(source));
    }
}

//! LZ4 frames as Kafka's clients write them, and the frame of message format v0. Kafka before 0.10 computed the
//! descriptor checksum of that frame over the magic number too (KAFKA-3160).
//!
//! LZ4's own library compresses blocks and reads frames. The frame around the blocks is written here, because the
//! library cannot write the wrong checksum.
//!
//! Frame: magic, flags, block size, checksum of flags and block size; blocks with a 32-bit length, whose highest bit
//! is set for an uncompressed block; a length of 0 at the end.

use std::io::Read;

use lz4::Decoder;
use lz4::block::{CompressionMode, compress_bound, compress_to_buffer};

use super::RecordError;
use super::codec::{Compression, read_all};

const MAGIC: [u8; 4] = 0x184d_2204_u32.to_le_bytes();
/// Version 1, independent blocks, no block checksums, no content size.
const FLAGS: u8 = 0x60;
const CONTENT_SIZE: u8 = 0x08;
const DICTIONARY: u8 = 0x01;
/// Blocks of 64 KiB, the only size that Kafka's clients write.
const BLOCK_SIZE: u8 = 0x40;
const BLOCK: usize = 64 << 10;
const STORED: u32 = 1 << 31;
/// Magic, flags, block size, content size, dictionary, checksum.
const LONGEST_HEADER: usize = 4 + 2 + 8 + 4 + 1;

/// The level at which Kafka uses the fast compressor, and the default of the setting (KIP-780).
pub(super) const FAST_LEVEL: i32 = 9;

fn checksum(descriptor: &[u8]) -> u8 {
    (twox_hash::XxHash32::oneshot(0, descriptor) >> 8) as u8
}

fn failed(error: impl std::fmt::Display) -> RecordError {
    RecordError::Compressed { codec: Compression::Lz4, reason: error.to_string() }
}

/// Appends a frame of `source` to `out`. Uses the fast compressor at `FAST_LEVEL`, and the slow one at any other
/// level.
pub(super) fn compress_at(level: i32, source: &[u8], out: &mut Vec<u8>) -> Result<(), RecordError> {
    let mode = if level == FAST_LEVEL { CompressionMode::DEFAULT } else { CompressionMode::HIGHCOMPRESSION(level) };
    frame(source, mode, checksum(&[FLAGS, BLOCK_SIZE]), out)
}

/// Appends a frame of `source` to `out` in the variant of format v0.
pub(super) fn compress_v0(source: &[u8], out: &mut Vec<u8>) -> Result<(), RecordError> {
    let [m0, m1, m2, m3] = MAGIC;
    frame(source, CompressionMode::DEFAULT, checksum(&[m0, m1, m2, m3, FLAGS, BLOCK_SIZE]), out)
}

fn frame(source: &[u8], mode: CompressionMode, checksum: u8, out: &mut Vec<u8>) -> Result<(), RecordError> {
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&[FLAGS, BLOCK_SIZE, checksum]);
    for block in source.chunks(BLOCK) {
        let length_at = out.len();
        let begin = length_at + 4;
        out.resize(begin + compress_bound(block.len()).map_err(failed)?, 0);
        let size = compress_to_buffer(block, Some(mode), false, &mut out[begin..]).map_err(failed)?;
        let length = if size < block.len() {
            out.truncate(begin + size);
            size as u32
        } else {
            out.truncate(begin);
            out.extend_from_slice(block);
            block.len() as u32 | STORED
        };
        out[length_at..begin].copy_from_slice(&length.to_le_bytes());
    }
    out.extend_from_slice(&[0; 4]);
    Ok(())
}

/// Decompresses a frame and appends it to `out`, at most `max` bytes.
pub(super) fn decompress(source: impl Read, max: usize, out: &mut Vec<u8>) -> Result<(), RecordError> {
    let mut decoder = Decoder::new(source).map_err(failed)?;
    let before = out.len();
    read_all(Compression::Lz4, &mut decoder, max, out)?;
    // Reading an incomplete frame returns no error, so completeness is checked here.
    decoder.finish().1.map_err(|_| {
        out.truncate(before);
        failed("the frame is cut")
    })
}

/// Decompresses the frame of a v0 or v1 message and appends it to `out`, at most `max` bytes. Ignores the descriptor
/// checksum, because the message has its own checksum.
pub(super) fn decompress_old(source: &[u8], max: usize, out: &mut Vec<u8>) -> Result<(), RecordError> {
    let flags = *source.get(4).ok_or_else(|| failed("the frame's header is cut"))?;
    let optional = if flags & CONTENT_SIZE == 0 { 0 } else { 8 } + if flags & DICTIONARY == 0 { 0 } else { 4 };
    let checksum_at = 6 + optional;
    let (front, rest) = source.split_at_checked(checksum_at + 1).ok_or_else(|| failed("the frame's header is cut"))?;
    let mut header = [0; LONGEST_HEADER];
    header[..front.len()].copy_from_slice(front);
    header[checksum_at] = checksum(&front[4..checksum_at]);
    let frame = (&header[..front.len()]).chain(rest);
    decompress(frame, max, out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::decompress;

    /// The descriptor checksums of KAFKA-3160: with the magic number, and without it.
    #[test]
    fn a_frame_of_v0_has_the_checksum_that_old_brokers_expect() {
        let (mut old, mut new) = (Vec::new(), Vec::new());
        compress_v0(b"x", &mut old).unwrap();
        compress_at(3, b"x", &mut new).unwrap();
        assert_eq!((old[6], new[6]), (0x1a, 0x82));
        assert!(decompress(Compression::Lz4, &old, 100, &mut Vec::new()).is_err(), "no sound frame to anybody else");
    }

    proptest! {
        #[test]
        fn frames_of_every_kind_come_back(source: Vec<u8>, repeat in 1_usize..3000, level in 1_i32..=17) {
            let source = source.repeat(repeat);
            let (mut old, mut new, mut out) = (Vec::new(), Vec::new(), Vec::new());
            compress_v0(&source, &mut old).unwrap();
            decompress_old(&old, source.len(), &mut out).unwrap();
            prop_assert_eq!(&out, &source);
            compress_at(level, &source, &mut new).unwrap();
            for decompress in [decompress_old, |source: &[u8], max, out: &mut Vec<u8>| decompress(Compression::Lz4, source, max, out)] {
                out.clear();
                decompress(&new, source.len(), &mut out).unwrap();
                prop_assert_eq!(&out, &source);
            }
        }

        #[test]
        fn arbitrary_bytes_never_panic(source: Vec<u8>) {
            let _ = decompress_old(&source, 1 << 16, &mut Vec::new());
        }
    }
}

//! The codecs of record batches, in the framings that Kafka's clients write and read.

use std::cell::RefCell;
use std::io::{self, Read, Write};

use super::codec::{Compression, read_all};
use super::{RecordError, lz4, xerial};

/// Compresses `source` and appends it to `out`. `level` is 1 to 9 for gzip, 1 to 17 for lz4, and zstd's own scale.
/// `None` is the codec's default. Snappy has no level.
pub fn compress(codec: Compression, level: Option<i32>, source: &[u8], out: &mut Vec<u8>) -> Result<(), RecordError> {
    let failed = |error: std::io::Error| codec.failed(error);
    match codec {
        Compression::None => out.extend_from_slice(source),
        Compression::Gzip => {
            // Kafka's level -1 is the default too.
            let level = level.and_then(|level| u32::try_from(level).ok()).map(|level| level.min(9));
            let level = level.map_or_else(flate2::Compression::default, flate2::Compression::new);
            let mut encoder = flate2::write::GzEncoder::new(out, level);
            encoder.write_all(source).and_then(|()| encoder.finish().map(drop)).map_err(failed)?;
        }
        Compression::Snappy => xerial::compress(source, out).map_err(|error| codec.failed(error))?,
        Compression::Lz4 => lz4::compress_at(level.unwrap_or(lz4::FAST_LEVEL), source, out)?,
        Compression::Zstd => {
            let level = level.unwrap_or(zstd::DEFAULT_COMPRESSION_LEVEL);
            ZSTD.with_borrow_mut(|contexts| contexts.compress(level, source, out)).map_err(failed)?;
        }
    }
    Ok(())
}

/// Decompresses `source` and appends it to `out`, at most `max` bytes.
///
/// # Errors
/// When the bytes cannot be decompressed, or decompress to more than `max` bytes.
pub fn decompress(codec: Compression, source: &[u8], max: usize, out: &mut Vec<u8>) -> Result<(), RecordError> {
    match codec {
        Compression::None if source.len() > max => Err(RecordError::TooLarge { codec, limit: max }),
        Compression::None => {
            out.extend_from_slice(source);
            Ok(())
        }
        Compression::Gzip => read_all(codec, flate2::read::MultiGzDecoder::new(source), max, out),
        Compression::Snappy => xerial::decompress(source, max, out),
        Compression::Lz4 => lz4::decompress(source, max, out),
        Compression::Zstd => ZSTD.with_borrow_mut(|contexts| {
            let decoder = contexts.decoder(source).map_err(|error| codec.failed(error))?;
            read_all(codec, decoder, max, out)
        }),
    }
}

thread_local! {
    /// Contexts are larger than most batches, so each thread keeps its own.
    static ZSTD: RefCell<ZstdContexts> = RefCell::new(ZstdContexts::default());
}

#[derive(Default)]
struct ZstdContexts {
    encoder: Option<zstd::bulk::Compressor<'static>>,
    decoder: Option<zstd::zstd_safe::DCtx<'static>>,
}

impl ZstdContexts {
    fn compress(&mut self, level: i32, source: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        let encoder = match &mut self.encoder {
            Some(encoder) => encoder,
            none => none.insert(zstd::bulk::Compressor::new(level)?),
        };
        encoder.set_compression_level(level)?;
        out.reserve(zstd::zstd_safe::compress_bound(source.len()));
        let mut end = io::Cursor::new(out);
        end.set_position(end.get_ref().len() as u64);
        encoder.compress_to_buffer(source, &mut end).map(drop)
    }

    fn decoder<'a>(&'a mut self, source: &'a [u8]) -> io::Result<impl Read + 'a> {
        let context = self.decoder.get_or_insert_with(zstd::zstd_safe::DCtx::create);
        // The previous frame may have been abandoned half way.
        let reset = context.reset(zstd::zstd_safe::ResetDirective::SessionOnly);
        reset.map_err(|code| io::Error::other(zstd::zstd_safe::get_error_name(code)))?;
        Ok(zstd::stream::read::Decoder::with_context(source, context))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALL: [Compression; 5] =
        [Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];

    /// Kafka's Java clients reject LZ4 frames of another version than 1, and frames with dependent blocks.
    #[test]
    fn lz4_frames_are_such_as_java_reads() {
        let mut packed = Vec::new();
        compress(Compression::Lz4, None, b"x", &mut packed).unwrap();
        assert_eq!(packed[..4], 0x184d_2204_u32.to_le_bytes());
        assert_eq!(packed[4] & 0b1110_0000, 0b0110_0000, "version 1, independent blocks");
        assert_eq!(packed[5], 4 << 4, "blocks of 64 KiB");
    }

    #[test]
    fn levels_are_the_codecs_own() {
        let source: Vec<u8> =
            (0..2000).flat_map(|n: u32| format!("{} levels are {n}, ", n * n % 997).into_bytes()).collect();
        let size = |codec, level| {
            let (mut packed, mut out) = (Vec::new(), Vec::new());
            compress(codec, Some(level), &source, &mut packed).unwrap();
            decompress(codec, &packed, source.len(), &mut out).unwrap();
            assert_eq!(out, source);
            packed.len()
        };
        assert!(size(Compression::Gzip, 0) > size(Compression::Gzip, 9));
        assert!(size(Compression::Gzip, -1) < size(Compression::Gzip, 1), "-1 is the default");
        assert!(size(Compression::Zstd, -5) > size(Compression::Zstd, 19));
        assert!(size(Compression::Lz4, 9) > size(Compression::Lz4, 12), "9 is the fast compressor's name (KIP-780)");
    }

    #[test]
    fn a_bomb_is_refused() {
        let zeros = vec![0; 1 << 20];
        for codec in ALL {
            let (mut packed, mut out) = (Vec::new(), Vec::new());
            compress(codec, None, &zeros, &mut packed).unwrap();
            let refused = decompress(codec, &packed, 1000, &mut out);
            assert_eq!(refused, Err(RecordError::TooLarge { codec, limit: 1000 }));
            assert!(out.is_empty());
            decompress(codec, &packed, zeros.len(), &mut out).unwrap();
            assert_eq!(out, zeros, "what was given up half way leaves no trace");
            let refused = decompress(codec, &packed[..packed.len() / 2], zeros.len(), &mut Vec::new());
            assert!(codec == Compression::None || refused.is_err());
            out.clear();
            decompress(codec, &packed, zeros.len(), &mut out).unwrap();
            assert_eq!(out, zeros);
        }
    }

    proptest! {
        #[test]
        fn every_codec_gives_the_bytes_back(source: Vec<u8>, repeat in 1_usize..2000) {
            let source = source.repeat(repeat);
            for codec in ALL {
                let (mut packed, mut out) = (Vec::new(), Vec::new());
                compress(codec, None, &source, &mut packed).unwrap();
                decompress(codec, &packed, source.len(), &mut out).unwrap();
                prop_assert_eq!(&out, &source);
            }
        }

        #[test]
        fn arbitrary_bytes_never_panic(source: Vec<u8>) {
            for codec in ALL {
                let _ = decompress(codec, &source, 1 << 16, &mut Vec::new());
            }
        }
    }
}

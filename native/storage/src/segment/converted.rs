//! A slice of a log for a client that knows older formats only: converted piece by piece while it is sent.
//!
//! The size of an answer is on the wire before its records are. So a size is promised once the first piece is converted,
//! and kept: what would go beyond it is cut, which clients of these formats take for the limit of bytes that they asked
//! for, and what is missing is filled with the beginning of a message larger than all that (Kafka's
//! `LazyDownConversionRecordsSend`). Not more than one piece is held in memory.

use std::io;

use crate::FileSlice;
use crate::segment::batch_scan::BatchScan;
use pybroker_record::{OlderFormat, RecordError, SMALLEST_BATCH, down_convert};

/// Bytes of log read, and about the bytes of messages made, at a time.
const PIECE: usize = 128 << 10;
/// The length that no message which is promised has.
const FILLER_AT_LEAST: usize = 61;

/// See the module.
#[derive(Debug)]
pub struct ConvertedSlice {
    slice: FileSlice,
    magic: i8,
    max_decompressed: usize,
    /// Where in the file the next piece begins; the slice's end when nothing more is to be converted.
    next: u64,
    /// Bytes promised and not yet sent.
    left: usize,
    len: usize,
    piece: Vec<u8>,
    /// Bytes of the piece that are sent.
    sent: usize,
    filling: bool,
}

/// Why nothing of a slice can be given.
#[derive(Debug)]
pub enum NotConverted {
    /// The first batch is in a codec that older formats do not have (UNSUPPORTED_COMPRESSION_TYPE).
    Codec,
    /// The first batch cannot be read (CORRUPT_MESSAGE).
    Corrupt(RecordError),
    /// The file cannot (KAFKA_STORAGE_ERROR).
    Io(io::Error),
}

impl ConvertedSlice {
    /// Converts the first piece of `slice` to format `magic`, 0 or 1. Batches decompress to at most `max_decompressed` bytes.
    ///
    /// # Errors
    /// Where not even the first batch can be given.
    pub fn begin(slice: FileSlice, magic: i8, max_decompressed: usize) -> Result<Self, NotConverted> {
        let next = slice.position;
        let mut converted =
            Self { slice, magic, max_decompressed, next, left: 0, len: 0, piece: Vec::new(), sent: 0, filling: false };
        while converted.piece.is_empty() && converted.next < converted.end() {
            let refused = converted.convert_piece().map_err(NotConverted::Io)?;
            match refused {
                Some(RecordError::Codec(_)) if converted.piece.is_empty() => return Err(NotConverted::Codec),
                Some(error) if converted.piece.is_empty() => return Err(NotConverted::Corrupt(error)),
                _ => {}
            }
        }
        let made = converted.piece.len();
        let whole = converted.next == converted.end();
        converted.len = if whole { made } else { made.max(converted.slice.len) };
        converted.left = converted.len;
        Ok(converted)
    }

    /// The bytes promised.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing is promised: no batch of the slice is whole, or none is for clients.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes to send next, and whether more will follow; none when all is sent.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn piece(&mut self) -> io::Result<(&[u8], bool)> {
        while self.sent == self.piece.len() && self.left > 0 {
            self.piece.clear();
            self.sent = 0;
            if self.next < self.end() {
                // A batch that cannot be converted is reported when it is the first that a client asks for.
                self.convert_piece()?;
            } else {
                self.fill_piece();
            }
        }
        let until = self.piece.len().min(self.sent + self.left);
        Ok((&self.piece[self.sent..until], self.left > until - self.sent))
    }

    /// Notes that so many bytes of the piece are sent.
    pub fn advance(&mut self, sent: usize) {
        self.sent += sent;
        self.left -= sent;
    }

    fn end(&self) -> u64 {
        self.slice.position + self.slice.len as u64
    }

    /// Converts whole batches until they make a piece; says why it had to stop before.
    fn convert_piece(&mut self) -> io::Result<Option<RecordError>> {
        let mut scan = BatchScan::by_chunks(&self.slice.file, self.next, self.end(), PIECE);
        let (mut scratch, to) = (Vec::new(), OlderFormat { magic: self.magic, from: self.slice.start_offset });
        while self.piece.len() < PIECE {
            let batch = scan.next()?;
            let Some(batch) = batch else {
                self.next = self.end();
                return Ok(None);
            };
            let made =
                down_convert(&batch.header, batch.bytes, to, &mut scratch, self.max_decompressed, &mut self.piece);
            if let Err(error) = made {
                self.next = self.end();
                return Ok(Some(error));
            }
            self.next = batch.position + batch.header.size() as u64;
        }
        Ok(None)
    }

    /// Begins, or goes on with, a message that does not end before what was promised does.
    fn fill_piece(&mut self) {
        if !self.filling {
            let length = (self.left + 1).max(FILLER_AT_LEAST) as u32;
            self.piece.extend_from_slice(&(-1_i64).to_be_bytes());
            self.piece.extend_from_slice(&length.to_be_bytes());
            self.filling = true;
        }
        self.piece.resize(self.left.clamp(SMALLEST_BATCH, PIECE), 0);
    }
}

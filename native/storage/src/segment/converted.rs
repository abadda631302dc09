//! A slice of a log in an older message format, converted in pieces while it is sent.
//!
//! The size of a response is written before its records. So a size is fixed once the first piece is converted. Bytes
//! beyond it are cut, which clients of these formats take for their byte limit. Missing bytes are filled with the
//! start of a message that is larger than the rest (Kafka's `LazyDownConversionRecordsSend`). At most one piece is in
//! memory.

use std::io;

use crate::FileSlice;
use crate::segment::batch_scan::BatchScan;
use pybroker_record::{OlderFormat, RecordError, SMALLEST_BATCH, down_convert};

/// Bytes of the log to read at a time, and approximately the bytes of converted messages.
const PIECE: usize = 128 << 10;
/// The minimum length of the filler message.
const FILLER_AT_LEAST: usize = 61;

/// The converted slice; see the module.
#[derive(Debug)]
pub struct ConvertedSlice {
    slice: FileSlice,
    magic: i8,
    max_decompressed: usize,
    /// Position in the file of the next piece; the slice's end when there is nothing left to convert.
    next: u64,
    /// Bytes of the fixed size that are not sent yet.
    left: usize,
    len: usize,
    piece: Vec<u8>,
    /// Bytes of the current piece that are sent.
    sent: usize,
    filling: bool,
}

/// Why a slice cannot be converted.
#[derive(Debug)]
pub enum NotConverted {
    /// The first batch is in a codec that older formats do not have (UNSUPPORTED_COMPRESSION_TYPE).
    Codec,
    /// The first batch cannot be read (CORRUPT_MESSAGE).
    Corrupt(RecordError),
    /// The file cannot be read (KAFKA_STORAGE_ERROR).
    Io(io::Error),
}

impl ConvertedSlice {
    /// Converts the first piece of `slice` to format `magic`, 0 or 1. Batches decompress to at most `max_decompressed` bytes.
    ///
    /// # Errors
    /// If the first batch cannot be converted.
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

    /// Returns the fixed size in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the size is 0: no batch of the slice is complete, or none has records for clients.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the bytes to send next, and whether more follow; no bytes when all are sent.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn piece(&mut self) -> io::Result<(&[u8], bool)> {
        while self.sent == self.piece.len() && self.left > 0 {
            self.piece.clear();
            self.sent = 0;
            if self.next < self.end() {
                // The error is ignored here. A fetch that starts with the failed batch reports it.
                self.convert_piece()?;
            } else {
                self.fill_piece();
            }
        }
        let until = self.piece.len().min(self.sent + self.left);
        Ok((&self.piece[self.sent..until], self.left > until - self.sent))
    }

    /// Advances by `sent` bytes of the piece.
    pub fn advance(&mut self, sent: usize) {
        self.sent += sent;
        self.left -= sent;
    }

    fn end(&self) -> u64 {
        self.slice.position + self.slice.len as u64
    }

    /// Converts complete batches up to the size of a piece. Returns the error that ended the conversion, if any.
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

    /// Starts or continues a filler message that is longer than the remaining bytes.
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

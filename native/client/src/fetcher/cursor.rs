//! A reader's position among the batches of a chunk.
//!
//! Owns the checks of a batch: its CRC (`check.crcs`), whether it is a control batch, whether its transaction was aborted
//! (`read_committed`). An invalid batch stays the next one until the reader gives up or seeks.

use super::chunk::Chunk;
use crate::error::ClientError;
use pybroker_record::{BatchHeader, Batches, Records, batch_crc, records_section};

/// The key of a control record has version and type; type 0 is an abort marker.
const ABORT_MARKER: [u8; 2] = [0, 0];

/// A position between two batches, and the aborted transactions open there. Used with one chunk only.
#[derive(Debug, Default)]
pub struct Cursor {
    /// Byte of the chunk at which the next batch begins.
    at: usize,
    /// Number of the chunk's aborted transactions that have begun.
    begun: usize,
    /// Producers in an aborted transaction whose marker has not been read.
    aborting: Vec<i64>,
}

impl Cursor {
    /// Find the next batch with records for a consumer. It stays the next one until [`Cursor::pass`]. `scratch` is memory
    /// for decompression.
    pub fn find<'c>(
        &mut self,
        chunk: &'c Chunk,
        scratch: &mut Vec<u8>,
    ) -> Result<Option<(BatchHeader, &'c [u8])>, ClientError> {
        while let Some(batch) = Batches::new(&chunk.bytes()[self.at..]).next() {
            let (header, bytes) = batch.map_err(|e| chunk.corrupt(chunk.position, e.to_string()))?;
            check_crc(chunk, &header, bytes)?;
            while let Some(transaction) =
                chunk.aborted.get(self.begun).filter(|transaction| transaction.first_offset <= header.last_offset())
            {
                self.aborting.push(transaction.producer_id);
                self.begun += 1;
            }
            if header.is_control() {
                self.take_marker(chunk, &header, bytes, scratch)?;
            } else if !(chunk.read_committed
                && header.is_transactional()
                && self.aborting.contains(&header.producer_id))
            {
                return Ok(Some((header, bytes)));
            }
            self.pass(&header);
        }
        Ok(None)
    }

    /// Advance past the batch that was found.
    pub fn pass(&mut self, header: &BatchHeader) {
        self.at += header.size();
    }

    /// Bytes of the chunk after the position.
    pub fn left(&self, chunk: &Chunk) -> usize {
        chunk.bytes().len() - self.at
    }

    fn take_marker(
        &mut self,
        chunk: &Chunk,
        header: &BatchHeader,
        bytes: &[u8],
        scratch: &mut Vec<u8>,
    ) -> Result<(), ClientError> {
        let corrupt = |e: pybroker_record::RecordError| chunk.corrupt(header.base_offset, e.to_string());
        let section = records_section(header, bytes, scratch, chunk.max_decompressed_bytes).map_err(corrupt)?;
        let first = Records::new(section, header.record_count).next().transpose().map_err(corrupt)?;
        if first.is_some_and(|r| r.key.is_some_and(|k| k.len() >= 4 && k[2..4] == ABORT_MARKER)) {
            self.aborting.retain(|producer| *producer != header.producer_id);
        }
        Ok(())
    }
}

fn check_crc(chunk: &Chunk, header: &BatchHeader, bytes: &[u8]) -> Result<(), ClientError> {
    if !chunk.check_crcs {
        return Ok(());
    }
    let computed = batch_crc(bytes);
    if computed == header.crc {
        return Ok(());
    }
    let detail = format!("the batch's CRC is {:#010x}, its bytes give {computed:#010x}", header.crc);
    Err(chunk.corrupt(header.base_offset, detail))
}

//! The first step of a pass: collects the latest offset of each key in the dirty part of the log.

use std::hint::black_box;
use std::ops::{ControlFlow, Range};

use super::offset_map::{AHEAD, KeyHash, OffsetMap};
use super::pass::{CleanError, Pass};
use super::reader::BatchReader;
use super::transactions::CleanedTransactions;
use pybroker_record::{BatchHeader, Offset, Records, records_section, visit_records};

/// Fills `map` with the keys of the dirty offsets. Returns true if the map became full first.
///
/// Records of aborted transactions are skipped. The map's latest offset is the end of the covered part.
pub(crate) fn fill_map(
    pass: &mut Pass<'_>,
    reader: &mut BatchReader,
    map: &mut OffsetMap,
    dirty: Range<Offset>,
) -> Result<bool, CleanError> {
    let (first_dirty, upper) = (dirty.start.0, dirty.end.0);
    let mut transactions = CleanedTransactions::default();
    transactions.add_aborted(pass.log.aborted_transactions(dirty)?);
    let mut keys = Keys::default();
    for (index, segment) in pass.segments.iter().enumerate() {
        let next_base = pass.segments.get(index + 1).map_or(upper, |next| next.base_offset());
        if next_base <= first_dirty {
            continue;
        }
        reader.seek(segment, segment.offset_index.floor_position(first_dirty)?);
        while let Some((header, batch)) = reader.next(pass)? {
            pass.stats.bytes_indexed += batch.len() as u64;
            let corrupt = |error| pass.corrupt(segment, &header, error);
            let skipped = if header.is_control() {
                transactions.on_control_batch(&header, batch).map_err(corrupt)?;
                true
            } else {
                transactions.on_batch(&header)
            };
            if !skipped && header.last_offset() >= first_dirty {
                keys.collect(map, &header, batch, first_dirty, pass.max_decompressed).map_err(corrupt)?;
                if !keys.put_into(map) {
                    return Ok(true);
                }
            }
            map.advance(header.last_offset());
        }
        // The range covers offsets that compaction or replication has left out.
        map.advance(next_base - 1);
    }
    Ok(false)
}

/// The keys of one batch. The buffers are reused for the next batch.
#[derive(Default)]
struct Keys {
    found: Vec<(KeyHash, i64)>,
    decompressed: Vec<u8>,
}

impl Keys {
    fn collect(
        &mut self,
        map: &OffsetMap,
        header: &BatchHeader,
        batch: &[u8],
        from: i64,
        max_decompressed: usize,
    ) -> Result<(), pybroker_record::RecordError> {
        self.found.clear();
        if header.magic < 2 {
            return visit_records(header, batch, &mut self.decompressed, max_decompressed, |record| {
                if let Some(key) = record.key.filter(|_| record.offset >= from) {
                    self.found.push((map.hash(key), record.offset));
                }
                ControlFlow::Continue(())
            });
        }
        let section = records_section(header, batch, &mut self.decompressed, max_decompressed)?;
        for record in Records::new(section, header.record_count) {
            let record = record?;
            let offset = header.base_offset + i64::from(record.offset_delta);
            if let Some(key) = record.key.filter(|_| offset >= from) {
                self.found.push((map.hash(key), offset));
            }
        }
        Ok(())
    }

    fn put_into(&self, map: &mut OffsetMap) -> bool {
        for (index, &(hash, offset)) in self.found.iter().enumerate() {
            if let Some((soon, _)) = self.found.get(index + AHEAD) {
                black_box(map.touch(*soon));
            }
            if !map.put(hash, offset) {
                return false;
            }
        }
        true
    }
}

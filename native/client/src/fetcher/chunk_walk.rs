//! Iteration over the records of a chunk that a consumer may see.

use std::ops::ControlFlow;

use super::chunk::{Chunk, Count, FetchedRecord, timestamp};
use super::cursor::Cursor;
use crate::error::ClientError;
use pybroker_record::{LeaderEpoch, RecordError, Records, records_section, visit_records};

impl Chunk {
    /// Call `visit` with every record that a consumer may see. `scratch` keeps the memory for decompression between chunks.
    pub fn for_each(&self, scratch: &mut Vec<u8>, mut visit: impl FnMut(FetchedRecord<'_>)) -> Result<(), ClientError> {
        let mut cursor = Cursor::default();
        while let Some((header, bytes)) = cursor.find(self, scratch)? {
            let corrupt = |detail: RecordError| self.corrupt(header.base_offset, detail.to_string());
            if header.magic < 2 {
                // A broker may still have segments from before Kafka 0.11, and returns them unconverted.
                visit_records(&header, bytes, scratch, self.max_decompressed_bytes, |stored| {
                    if stored.offset >= self.position {
                        visit(FetchedRecord::of_old(&header, &stored));
                    }
                    ControlFlow::Continue(())
                })
                .map_err(corrupt)?;
            } else {
                let section = records_section(&header, bytes, scratch, self.max_decompressed_bytes).map_err(corrupt)?;
                let timestamp_type = Some(header.timestamp_type());
                for record in Records::new(section, header.record_count) {
                    let record = record.map_err(corrupt)?;
                    let offset = header.base_offset + i64::from(record.offset_delta);
                    if offset >= self.position {
                        let (timestamp_ms, leader_epoch) =
                            (timestamp(&header, &record), LeaderEpoch(header.partition_leader_epoch));
                        visit(FetchedRecord { offset, timestamp_ms, timestamp_type, leader_epoch, record });
                    }
                }
            }
            cursor.pass(&header);
        }
        Ok(())
    }

    /// Read and count every record.
    pub fn count(&self, scratch: &mut Vec<u8>) -> Result<Count, ClientError> {
        let mut count = Count::default();
        self.for_each(scratch, |fetched| {
            count.records += 1;
            let record = fetched.record;
            count.bytes += (record.key.map_or(0, <[u8]>::len) + record.value.map_or(0, <[u8]>::len)) as u64;
        })?;
        Ok(count)
    }
}

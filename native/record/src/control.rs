//! Control records, which brokers write among the records of a partition to end a transaction.
//!
//! Owns the commit marker and the abort marker in Kafka's schema: key `version int16, type int16`, value `version
//! int16, coordinator epoch int32`. Knows neither producer state nor logs.

use super::{BatchBuilder, BatchHeader, Compression, ProducerId, RecordError, Records, records_section, set_control};

const ABORT: i16 = 0;
const COMMIT: i16 = 1;
/// Most bytes of a decompressed control record. Kafka never compresses one.
const MOST_BYTES: usize = 64 << 10;

/// The marker that ends a transaction of the batch's producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndMarker {
    /// Whether the transaction was committed.
    pub commit: bool,
    /// Epoch of the transaction coordinator that wrote the marker.
    pub coordinator_epoch: i32,
}

impl EndMarker {
    /// Parses the marker of a complete control batch. `None` for another kind of batch, and for one that compaction
    /// has emptied.
    ///
    /// # Errors
    /// When the batch's record is malformed.
    pub fn parse(header: &BatchHeader, batch: &[u8]) -> Result<Option<Self>, RecordError> {
        if !header.is_control() || !header.has_producer_id() {
            return Ok(None);
        }
        let mut scratch = Vec::new();
        let section = records_section(header, batch, &mut scratch, MOST_BYTES)?;
        let Some(record) = Records::new(section, header.record_count).next().transpose()? else { return Ok(None) };
        let (key, value) = (record.key.unwrap_or_default(), record.value.unwrap_or_default());
        let (Some(&[_, _, high, low]), Some(value)) = (key.first_chunk(), value.first_chunk::<6>()) else {
            return Err(RecordError::Record { index: 0, reason: "a control record is shorter than its schema" });
        };
        let kind = i16::from_be_bytes([high, low]);
        let coordinator_epoch = i32::from_be_bytes([value[2], value[3], value[4], value[5]]);
        Ok(match kind {
            ABORT | COMMIT => Some(Self { commit: kind == COMMIT, coordinator_epoch }),
            _ => None,
        })
    }

    /// Builds the control batch of the marker with base offset 0. The log assigns offset and leader epoch.
    ///
    /// # Errors
    /// The errors of the builder, which do not occur for a batch of one small record.
    pub fn build(self, producer_id: ProducerId, producer_epoch: i16, timestamp: i64) -> Result<Vec<u8>, RecordError> {
        let kind = if self.commit { COMMIT } else { ABORT };
        let key = [[0, 0], kind.to_be_bytes()].concat();
        let value = [&[0, 0][..], &self.coordinator_epoch.to_be_bytes()].concat();
        let mut builder = BatchBuilder::new(Compression::None, None, MOST_BYTES);
        builder.try_append(timestamp, Some(&key), Some(&value), &[]);
        let mut batch = Vec::new();
        builder.finish(producer_id.0, producer_epoch, -1, &mut batch)?;
        set_control(&mut batch);
        Ok(batch)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::batch_crc;
    use super::*;

    #[test]
    fn a_marker_says_what_it_was_built_of() {
        for marker in
            [EndMarker { commit: true, coordinator_epoch: 7 }, EndMarker { commit: false, coordinator_epoch: i32::MAX }]
        {
            let batch = marker.build(ProducerId(4000), 3, 99).unwrap();
            let header = BatchHeader::parse(&batch).unwrap();
            assert!(header.is_control() && header.is_transactional() && batch_crc(&batch) == header.crc);
            assert_eq!((header.producer_id, header.producer_epoch, header.base_sequence), (4000, 3, -1));
            assert_eq!((header.max_timestamp, header.record_count), (99, 1));
            assert_eq!(EndMarker::parse(&header, &batch).unwrap(), Some(marker));
        }
    }

    #[test]
    fn other_batches_hold_no_marker() {
        let mut builder = BatchBuilder::new(Compression::None, None, 100);
        builder.try_append(1, None, Some(b"v"), &[]).unwrap();
        let mut batch = Vec::new();
        builder.finish(4000, 0, 0, &mut batch).unwrap();
        assert_eq!(EndMarker::parse(&BatchHeader::parse(&batch).unwrap(), &batch).unwrap(), None);
        let marker = EndMarker { commit: true, coordinator_epoch: 7 };
        let emptied =
            BatchHeader { record_count: 0, ..BatchHeader::parse(&marker.build(ProducerId(1), 0, 5).unwrap()).unwrap() };
        assert_eq!(EndMarker::parse(&emptied, &[]).unwrap(), None);
    }

    proptest! {
        #[test]
        fn arbitrary_records_never_panic(section: Vec<u8>, count in -1_i32..3) {
            let marker = EndMarker { commit: true, coordinator_epoch: 7 }.build(ProducerId(1), 0, 5).unwrap();
            let header = BatchHeader { record_count: count, ..BatchHeader::parse(&marker).unwrap() };
            let mut batch = marker[..super::super::HEADER_LEN].to_vec();
            batch.extend_from_slice(&section);
            let _ = EndMarker::parse(&header, &batch);
        }
    }
}

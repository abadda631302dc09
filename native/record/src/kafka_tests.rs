//! Batches from Kafka's broker and producer, byte for byte.
//!
//! The bytes and their origin are in `native/storage/tests/kafka/partition.hex`. Positions and sizes are those of
//! Kafka's dump tool.

use super::*;

const FILES: &str = include_str!("../../storage/tests/kafka/partition.hex");

/// Returns the batch at a position of the log.
fn kafkas(position: usize, size: usize) -> Vec<u8> {
    let digits: String = FILES.lines().filter_map(|line| line.strip_prefix("log:")).collect();
    let byte = |at: usize| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap();
    (position..position + size).map(byte).collect()
}

/// Sets offset and epoch of a batch as the broker that wrote the log did.
fn placed(mut batch: Vec<u8>, base_offset: i64) -> Vec<u8> {
    set_base_offset(&mut batch, base_offset);
    set_partition_leader_epoch(&mut batch, 0);
    batch
}

#[test]
fn markers_are_those_of_kafka() {
    for (position, offset, producer, commit, time) in
        [(1553, 24, 6, false, 1_795_862_500_593), (1631, 25, 7, true, 1_795_862_500_608)]
    {
        let (marker, theirs) = (EndMarker { commit, coordinator_epoch: 0 }, kafkas(position, 78));
        assert_eq!(placed(marker.build(ProducerId(producer), 1, time).unwrap(), offset), theirs);
        let header = BatchHeader::parse(&theirs).unwrap();
        assert_eq!(EndMarker::parse(&header, &theirs), Ok(Some(marker)));
    }
}

#[test]
fn a_batch_is_that_of_kafkas_producer_and_of_librdkafka() {
    let headers: [RecordHeader<'_>; 2] = [(b"h", Some(b"x")), (b"none", None)];
    for (position, size, base_offset, by, producer) in
        [(0, 146, 0, "by librdkafka", (-1, -1, -1)), (640, 140, 10, "by Java", (0, 0, 0))]
    {
        let mut builder = BatchBuilder::new(Compression::None, None, 1 << 20);
        let value = format!("none{:40}{by}", "");
        builder.try_append(1_700_000_000_000, Some(b"key"), Some(value.as_bytes()), &headers).unwrap();
        builder.try_append(1_699_999_999_990, None, None, &[]).unwrap();
        let mut ours = Vec::new();
        builder.finish(producer.0, producer.1, producer.2, &mut ours).unwrap();
        assert_eq!(placed(ours, base_offset), kafkas(position, size), "{by}");
    }
}

#[test]
fn every_batch_of_the_log_has_the_checksum_that_kafka_gave_it() {
    const CHECKSUMS: [u32; 20] = [
        2831050483, 2095816951, 2409251051, 3280570440, 3977587153, 138465419, 3669022524, 4010949202, 1893104458,
        2786981324, 2201691440, 819068292, 2731776071, 3261674124, 477296178, 56759324, 1638901055, 2929472947,
        3884662213, 2437226647,
    ];
    let log = kafkas(0, 2005);
    let batches: Vec<(BatchHeader, &[u8])> = Batches::new(&log).map(|batch| batch.unwrap()).collect();
    assert_eq!(batches.iter().map(|(header, _)| header.crc).collect::<Vec<_>>(), CHECKSUMS);
    assert_eq!(batches.iter().map(|(_, bytes)| batch_crc(bytes)).collect::<Vec<_>>(), CHECKSUMS);
}

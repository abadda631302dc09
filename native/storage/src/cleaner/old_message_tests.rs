//! Cleaner passes over logs of an old Kafka: messages and wrappers of v0 and v1, alone and before v2 batches.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use proptest::prelude::*;
use rustc_hash::FxHashMap;

use super::filter::Filter;
use super::offset_map::OffsetMap;
use super::selection::Rules;
use super::tests::{DELETE_RETENTION, LIMITS, NOW, clean, open};
use crate::log_fixture::quick_directory;
use crate::{CleanLimits, CleanRange, Log, Throttle};
use pybroker_record::{
    BatchBuilder, BatchHeader, Batches, Compression, MessageSetBuilder, NewMessage, Offset, RecordError, TimestampType,
    batch_crc, visit_records,
};

/// Offset, timestamp, key and value.
type Seen = (i64, i64, Option<Vec<u8>>, Option<Vec<u8>>);

#[derive(Clone, Debug)]
struct Set {
    magic: i8,
    codec: Compression,
    append_time: bool,
    records: Vec<(Option<u8>, Option<u8>)>,
    /// Offsets left out before it, as after an earlier compaction.
    gap: i64,
    rolls: bool,
}

fn sets() -> impl Strategy<Value = Vec<Set>> {
    let key = prop_oneof![20 => (0_u8..8).prop_map(Some), 1 => Just(None)];
    let value = prop_oneof![5 => any::<u8>().prop_map(Some), 1 => Just(None)];
    let codec = prop_oneof![
        2 => Just(Compression::None),
        1 => Just(Compression::Gzip),
        1 => Just(Compression::Snappy),
        1 => Just(Compression::Lz4)
    ];
    let gap = prop_oneof![3 => Just(0), 1 => 1..30_i64];
    let records = prop::collection::vec((key, value), 1..8);
    let set = (0..2_i8, codec, any::<bool>(), records, gap, prop::bool::weighted(0.3)).prop_map(
        |(magic, codec, append_time, records, gap, rolls)| Set { magic, codec, append_time, records, gap, rolls },
    );
    prop::collection::vec(set, 1..25)
}

/// Writes the segments as an old Kafka does, without indexes. Returns the offset after them.
fn write(home: &Path, sets: &[Set]) -> i64 {
    std::fs::create_dir_all(home).unwrap();
    let (mut offset, mut base, mut bytes) = (0, 0, Vec::new());
    for set in sets {
        offset += set.gap;
        let kind = if set.append_time { TimestampType::LogAppendTime } else { TimestampType::CreateTime };
        let mut builder = MessageSetBuilder::new(set.magic, set.codec, kind);
        let begun = offset;
        for (key, value) in &set.records {
            let timestamp = NOW + if set.append_time { begun } else { offset };
            let (key, value) = (key.map(|key| [key; 3]), value.map(|value| [value; 40]));
            builder.append(&NewMessage {
                offset,
                timestamp,
                key: key.as_ref().map(<[u8; 3]>::as_slice),
                value: value.as_ref().map(<[u8; 40]>::as_slice),
            });
            offset += 1;
        }
        builder.finish(&mut bytes).unwrap();
        if set.rolls {
            std::fs::write(home.join(format!("{base:020}.log")), std::mem::take(&mut bytes)).unwrap();
            base = offset;
        }
    }
    std::fs::write(home.join(format!("{base:020}.log")), bytes).unwrap();
    offset
}

/// Returns every record of the log, and the batch headers. Checks each batch.
fn read(log: &Log) -> (Vec<Seen>, Vec<BatchHeader>) {
    let (mut seen, mut headers, mut offset) = (Vec::<Seen>::new(), Vec::new(), log.log_start_offset());
    while offset < log.log_end_offset() {
        let slice = log.plan_read(Offset(offset)..Offset::MAX, 1 << 20, true).unwrap();
        if slice.len == 0 {
            break;
        }
        let mut bytes = vec![0; slice.len];
        slice.file.read_exact_at(&mut bytes, slice.position).unwrap();
        for batch in Batches::new(&bytes) {
            let (header, bytes): (BatchHeader, &[u8]) = batch.unwrap();
            assert_eq!(batch_crc(bytes), header.crc);
            headers.push(header);
            visit_records(&header, bytes, &mut Vec::new(), 1 << 20, |record| {
                assert!(seen.last().is_none_or(|last| last.0 < record.offset), "offsets ascend");
                let (key, value) = (record.key.map(<[u8]>::to_vec), record.value.map(<[u8]>::to_vec));
                seen.push((record.offset, record.timestamp, key, value));
                ControlFlow::Continue(())
            })
            .unwrap();
            offset = header.next_offset();
        }
    }
    (seen, headers)
}

/// Appends a v2 batch and rolls, so that everything before it is cleanable.
fn append_and_roll(log: &Log, keys: &[u8]) {
    let mut builder = BatchBuilder::new(Compression::None, None, 1 << 16);
    for key in keys {
        assert!(builder.try_append(NOW, Some(&[*key; 3]), Some(b"now"), &[]).is_some());
    }
    let mut bytes = Vec::new();
    builder.finish(-1, -1, -1, &mut bytes).unwrap();
    log.append(&mut bytes, 0, NOW).unwrap();
    log.roll(NOW).unwrap();
}

/// First and last offset, attributes and number of records.
type Shape = (i64, i64, i16, i32);

/// Returns the batches that one pass makes of the retained messages of `sets`.
fn expected_shapes(sets: &[Set], stays: &BTreeMap<i64, Seen>) -> Vec<Shape> {
    const LOG_APPEND_TIME: i16 = 0x08;
    const DELETE_HORIZON: i16 = 0x40;
    let (mut shapes, mut offset) = (Vec::new(), 0);
    for set in sets {
        offset += set.gap;
        let end = offset + set.records.len() as i64;
        let kept: Vec<&Seen> = stays.range(offset..end).map(|(_, record)| record).collect();
        let batches = if set.codec == Compression::None { kept.chunks(1) } else { kept.chunks(set.records.len()) };
        for batch in batches {
            let mut attributes = set.codec as i16;
            if set.append_time && set.magic > 0 {
                attributes |= LOG_APPEND_TIME;
            }
            if batch.iter().any(|record| record.3.is_none()) {
                attributes |= DELETE_HORIZON;
            }
            shapes.push((batch[0].0, batch[batch.len() - 1].0, attributes, batch.len() as i32));
        }
        offset = end;
    }
    shapes
}

/// Returns the last record of each key.
fn last_of_each_key(records: &[Seen]) -> BTreeMap<Vec<u8>, Seen> {
    records.iter().filter_map(|record| Some((record.2.clone()?, record.clone()))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(64),
        ..ProptestConfig::default()
    })]
    #[test]
    fn a_pass_leaves_the_last_message_of_each_key_at_its_offset(
        sets in sets(),
        keys in prop::collection::vec(0_u8..8, 1..4),
        map_bytes in prop_oneof![3 => Just(LIMITS.map_bytes), 1 => 50..400_usize],
    ) {
        let directory = quick_directory();
        let home = directory.path().join("t-0");
        let end = write(&home, &sets);
        let log = open(&home, false);
        prop_assert_eq!(log.log_end_offset(), end);
        append_and_roll(&log, &keys);
        let (before, _) = read(&log);
        let limits = CleanLimits { map_bytes, ..LIMITS };
        let mut first_dirty = 0;
        while first_dirty < log.log_end_offset() {
            let cleaned = clean(&log, first_dirty, &limits, NOW).unwrap();
            prop_assert!(cleaned.end_offset > first_dirty);
            first_dirty = cleaned.end_offset;
        }
        let (after, headers) = read(&log);
        // Tombstones with a current timestamp stay.
        let expected: Vec<Seen> = last_of_each_key(&before).into_values().collect();
        let mut expected_in_order = expected.clone();
        expected_in_order.sort();
        prop_assert_eq!(&after, &expected_in_order);
        prop_assert!(headers.iter().all(|header| header.magic == 2 && header.record_count > 0));
        if map_bytes == LIMITS.map_bytes {
            let shape = |header: &BatchHeader| (header.base_offset, header.last_offset(), header.attributes, header.record_count);
            let shapes: Vec<Shape> = headers.iter().map(shape).filter(|shape| shape.0 < end).collect();
            let stays: BTreeMap<i64, Seen> = expected.into_iter().map(|record| (record.0, record)).collect();
            prop_assert_eq!(shapes, expected_shapes(&sets, &stays));
        }
        let end = log.log_end_offset();
        drop(log);
        let log = open(&home, false);
        prop_assert_eq!(log.log_end_offset(), end);
        prop_assert_eq!(&read(&log).0, &expected_in_order, "a recovery finds the same");
    }
}

fn offsets(log: &Log) -> Vec<i64> {
    read(log).0.iter().map(|record| record.0).collect()
}

#[test]
fn a_wrapper_becomes_a_batch_in_its_codec_of_what_stays() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path().join("t-0");
    let kinds = [(0, Compression::Gzip), (0, Compression::Lz4), (1, Compression::Snappy), (1, Compression::Lz4)];
    for (number, (magic, codec)) in kinds.into_iter().enumerate() {
        let home = home.join(number.to_string());
        let records =
            vec![(Some(1), Some(1)), (Some(2), Some(2)), (Some(3), Some(3)), (Some(1), Some(4)), (Some(9), Some(5))];
        let set = Set { magic, codec, append_time: false, records, gap: 100, rolls: true };
        write(&home, &[set]);
        let log = open(&home, false);
        append_and_roll(&log, &[9]);
        clean(&log, 0, &LIMITS, NOW).unwrap();
        let (seen, headers) = read(&log);
        let header = headers[0];
        assert_eq!((header.magic, header.compression()), (2, Ok(codec)));
        assert_eq!((header.base_offset, header.last_offset(), header.record_count), (101, 103, 3));
        assert_eq!((header.partition_leader_epoch, header.producer_id, header.base_sequence), (-1, -1, -1));
        let times = if magic == 0 { (-1, -1) } else { (NOW + 101, NOW + 103) };
        assert_eq!((header.base_timestamp, header.max_timestamp), times);
        assert_eq!(seen.iter().map(|record| record.0).collect::<Vec<_>>(), [101, 102, 103, 105]);
    }
}

/// Returns uncompressed messages of v1 that fill a segment.
fn segment(records: &[(Option<u8>, Option<u8>)]) -> Set {
    Set { magic: 1, codec: Compression::None, append_time: false, records: records.to_vec(), gap: 0, rolls: true }
}

#[test]
fn an_old_tombstone_gets_a_horizon_unless_its_segment_is_older_than_the_retention_by_the_last_cleaned_one() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path().join("t-0");
    write(
        &home,
        &[
            segment(&[(Some(1), None), (Some(2), Some(2))]),
            segment(&[(Some(3), None), (Some(4), Some(4))]),
            segment(&[(Some(5), None)]),
        ],
    );
    let log = open(&home, false);
    append_and_roll(&log, &[7]);
    let path = home.join(format!("{:020}.log", 2));
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(3600)).unwrap();
    let clean_to = |first_dirty, first_uncleanable, now_ms| {
        let range = CleanRange { first_dirty, first_uncleanable };
        log.clean(range, &LIMITS, &Throttle::new(f64::INFINITY), now_ms).unwrap();
    };
    clean_to(0, 2, NOW);
    assert_eq!(offsets(&log), [0, 1, 2, 3, 4, 5], "nothing was clean before, so that nothing is old");
    assert_eq!(read(&log).1[0].delete_horizon_ms(), Some(NOW + DELETE_RETENTION));
    // The next segment was changed an hour before the last clean one.
    clean_to(2, 4, NOW + 1);
    assert_eq!(offsets(&log), [0, 1, 3, 4, 5]);
    clean_to(4, log.log_end_offset(), NOW + DELETE_RETENTION);
    assert_eq!(offsets(&log), [1, 3, 4, 5], "by its horizon, as in any batch");
    let last = read(&log).1.into_iter().find(|header| header.base_offset == 4).unwrap();
    assert_eq!(last.delete_horizon_ms(), Some(NOW + 2 * DELETE_RETENTION));
}

#[test]
fn the_last_message_of_the_cleaned_part_leaves_an_empty_batch() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path().join("t-0");
    for codec in [Compression::None, Compression::Gzip] {
        let home = home.join(format!("{codec:?}"));
        let last = Set { codec, ..segment(&[(None, Some(2)), (None, Some(3))]) };
        write(&home, &[segment(&[(Some(1), Some(1))]), last]);
        let log = open(&home, false);
        clean(&log, 0, &LIMITS, NOW).unwrap();
        let (seen, headers) = read(&log);
        assert_eq!(seen.len(), 1);
        let empty = headers[headers.len() - 1];
        assert_eq!(
            (headers.len(), empty.magic, empty.record_count, empty.compression()),
            (2, 2, 0, Ok(Compression::None))
        );
        assert_eq!((empty.base_offset, empty.last_offset()), (2, 2));
        drop(log);
        let log = open(&home, false);
        assert_eq!((log.log_end_offset(), read(&log).1), (3, headers));
    }
}

/// Filters one set with the given `space_to_grow`.
fn filtered(bytes: &[u8], space_to_grow: u64) -> Result<Vec<u8>, RecordError> {
    let mut map = OffsetMap::new(LIMITS.map_bytes, LIMITS.load_factor, 10);
    map.put(map.hash(&[1; 3]), 7);
    map.advance(8);
    let rules = Rules {
        now_ms: NOW,
        delete_retention_ms: DELETE_RETENTION,
        upper: 100,
        max_decompressed: 1 << 20,
        old_tombstones_stay: true,
        space_to_grow,
    };
    let mut filter = Filter::new(&map, None, rules, FxHashMap::default());
    let mut out = b"before".to_vec();
    filter.filter(&BatchHeader::parse_stored(bytes)?, bytes, &mut out)?;
    Ok(out.split_off(6))
}

fn wrapper(magic: i8, codec: Compression, offsets: &[i64]) -> Vec<u8> {
    let mut builder = MessageSetBuilder::new(magic, codec, TimestampType::CreateTime);
    for &offset in offsets {
        builder.append(&NewMessage { offset, timestamp: NOW, key: Some(&[1; 3]), value: Some(b"v") });
    }
    let mut bytes = Vec::new();
    builder.finish(&mut bytes).unwrap();
    bytes
}

#[test]
fn a_message_stays_what_it_is_where_the_segment_has_no_room_for_a_batch() {
    for (codec, offsets) in [(Compression::None, &[8][..]), (Compression::Lz4, &[7, 8][..])] {
        let message = wrapper(0, codec, offsets);
        let batch = filtered(&message, 1000).unwrap();
        assert_eq!(BatchHeader::parse(&batch).unwrap().record_count, offsets.len() as i32);
        let growth = (batch.len() - message.len()) as u64;
        assert_eq!(filtered(&message, growth).unwrap(), batch);
        assert_eq!(filtered(&message, growth - 1).unwrap(), message);
    }
    let partly_superseded = wrapper(0, Compression::Lz4, &[6, 8]);
    let batch = filtered(&partly_superseded, 0).unwrap();
    assert!(batch.len() > partly_superseded.len());
    assert_eq!(BatchHeader::parse(&batch).unwrap().base_offset, 8);
}

#[test]
fn offsets_that_no_batch_can_have_are_refused() {
    for offsets in [&[9, 8][..], &[8, 8], &[8, 8 + (1 << 31)]] {
        let refused = filtered(&wrapper(0, Compression::Gzip, offsets), 1000);
        assert!(matches!(refused, Err(RecordError::Message { offset, .. }) if offset == offsets[1]), "{refused:?}");
    }
    assert!(filtered(&wrapper(0, Compression::Gzip, &[8, 7 + (1 << 31)]), 1000).is_ok());
}

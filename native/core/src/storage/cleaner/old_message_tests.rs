//! Passes over logs that an old Kafka has left: messages and wrappers of v0 and v1, alone and before batches of now.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use proptest::prelude::*;

use super::super::{CleanLimits, Log, Throttle};
use super::tests::{LIMITS, NOW, clean, open};
use crate::log_fixture::quick_directory;
use crate::record::{
    BatchBuilder, BatchHeader, Batches, Compression, MessageSetBuilder, NewMessage, TimestampType, batch_crc,
    visit_records,
};

/// Offset, timestamp, key and value.
type Seen = (i64, i64, Option<Vec<u8>>, Option<Vec<u8>>);

#[derive(Clone, Debug)]
struct Set {
    magic: i8,
    codec: Compression,
    append_time: bool,
    records: Vec<(Option<u8>, Option<u8>)>,
    /// Offsets left out before it, as an earlier compaction does.
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

/// Writes the segments as an old Kafka does, without indexes, and returns the offset behind them.
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

/// Every record of the log, and the formats that it is in; each batch is checked on the way.
fn read(log: &Log) -> (Vec<Seen>, Vec<i8>) {
    let (mut seen, mut formats, mut offset) = (Vec::<Seen>::new(), Vec::new(), log.log_start_offset());
    while offset < log.log_end_offset() {
        let slice = log.plan_read(offset, 1 << 20, i64::MAX, true).unwrap();
        if slice.len == 0 {
            break;
        }
        let mut bytes = vec![0; slice.len];
        slice.file.read_exact_at(&mut bytes, slice.position).unwrap();
        for batch in Batches::new(&bytes) {
            let (header, bytes): (BatchHeader, &[u8]) = batch.unwrap();
            assert_eq!(batch_crc(bytes), header.crc);
            formats.push(header.magic);
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
    (seen, formats)
}

/// A batch of now behind them, and a roll: all before the end is cleanable.
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

/// The last record of each key.
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
        map_bytes in prop_oneof![3 => Just(1_usize << 20), 1 => 50..400_usize],
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
        let (after, _) = read(&log);
        // Tombstones of today stay.
        let expected: Vec<Seen> = last_of_each_key(&before).into_values().collect();
        let mut expected_in_order = expected.clone();
        expected_in_order.sort();
        prop_assert_eq!(&after, &expected_in_order);
        let end = log.log_end_offset();
        drop(log);
        let log = open(&home, false);
        prop_assert_eq!(log.log_end_offset(), end);
        prop_assert_eq!(&read(&log).0, &expected_in_order, "a recovery finds the same");
    }
}

#[test]
fn a_wrapper_keeps_its_format_its_codec_and_the_offsets_in_it() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path().join("t-0");
    for (number, (magic, codec)) in
        [(0, Compression::Gzip), (0, Compression::Lz4), (1, Compression::Snappy), (1, Compression::Lz4)]
            .iter()
            .enumerate()
    {
        let home = home.join(number.to_string());
        let records =
            vec![(Some(1), Some(1)), (Some(2), Some(2)), (Some(3), None), (Some(1), Some(4)), (Some(9), Some(5))];
        let set = Set { magic: *magic, codec: *codec, append_time: false, records, gap: 100, rolls: true };
        write(&home, &[set]);
        let log = open(&home, false);
        append_and_roll(&log, &[9]);
        clean(&log, 0, &LIMITS, NOW).unwrap();
        let slice = log.plan_read(101, 1 << 20, i64::MAX, true).unwrap();
        let mut bytes = vec![0; slice.len];
        slice.file.read_exact_at(&mut bytes, slice.position).unwrap();
        let header = BatchHeader::parse_stored(&bytes).unwrap();
        assert_eq!((header.magic, header.compression(), header.last_offset()), (*magic, Ok(*codec), 103));
        let offsets: Vec<i64> = read(&log).0.iter().map(|record| record.0).collect();
        assert_eq!(offsets, [101, 102, 103, 105]);
    }
}

#[test]
fn an_old_tombstone_goes_when_its_segment_is_older_than_the_retention_by_the_last_cleaned_one() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path().join("t-0");
    let set = |records: &[(Option<u8>, Option<u8>)]| Set {
        magic: 1,
        codec: Compression::None,
        append_time: false,
        records: records.to_vec(),
        gap: 0,
        rolls: true,
    };
    write(&home, &[set(&[(Some(1), None), (Some(2), Some(2))]), set(&[(Some(3), None)])]);
    let set_modified = |base: i64, time: SystemTime| {
        let file = std::fs::OpenOptions::new().write(true).open(home.join(format!("{base:020}.log"))).unwrap();
        file.set_modified(time).unwrap();
    };
    let long_ago = SystemTime::now() - Duration::from_secs(3600);
    set_modified(0, long_ago);
    let log = open(&home, false);
    append_and_roll(&log, &[7]);
    clean(&log, 0, &LIMITS, NOW).unwrap();
    let offsets = |log: &Log| read(log).0.iter().map(|record| record.0).collect::<Vec<_>>();
    assert_eq!(offsets(&log), [0, 1, 2, 3], "nothing was clean before, so that nothing is old");
    set_modified(0, long_ago);
    append_and_roll(&log, &[8]);
    append_and_roll(&log, &[8]);
    // The segments were made one: it is an hour old, and the last clean one is of today.
    let range = super::super::CleanRange { first_dirty: 5, first_uncleanable: log.log_end_offset() };
    log.clean(range, &LIMITS, &Throttle::new(f64::INFINITY), NOW).unwrap();
    assert_eq!(offsets(&log), [1, 3, 5]);
}

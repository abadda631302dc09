//! A log and the formats and codecs around it: what old producers send, what old brokers have left, what old consumers get.

use std::fs;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::Path;

use pybroker_record::{
    BatchHeader, Compression, InvalidBatch, MessageSetBuilder, Messages, NewMessage, Offset, TimestampType, batch_crc,
    visit_records,
};
use pybroker_storage::{AppendError, ConvertedSlice, Log, LogConfig, NotConverted, OpenLog, Recovered};

use crate::log_fixture::{NOW, build, config};

const NOBODY: (i64, i16, i32) = (-1, -1, -1);
const SEGMENT: &str = "00000000000000000000.log";
/// Offset, timestamp and length of the value.
type Found = (i64, i64, usize);

fn open(directory: &Path, config: LogConfig, clean_shutdown: bool) -> (Log, Recovered) {
    let how = OpenLog { clean_shutdown, recovery_point: 0, log_start_offset: 0, high_watermark: 0, now_ms: NOW };
    Log::open(directory, config, how).unwrap()
}

/// Messages of these offsets, with values of rising length and times a second apart.
fn set(magic: i8, codec: Compression, offsets: std::ops::Range<i64>) -> Vec<u8> {
    let mut builder = MessageSetBuilder::new(magic, codec, TimestampType::CreateTime);
    for offset in offsets {
        let value = vec![b'v'; offset as usize];
        builder.append(&NewMessage { offset, timestamp: NOW + 1000 * offset, key: Some(b"k"), value: Some(&value) });
    }
    let mut out = Vec::new();
    builder.finish(&mut out).unwrap();
    out
}

fn expected_records(magic: i8, offsets: std::ops::Range<i64>) -> Vec<Found> {
    offsets.map(|offset| (offset, if magic == 0 { -1 } else { NOW + 1000 * offset }, offset as usize)).collect()
}

fn bytes_from(log: &Log, offset: i64, max: usize) -> Vec<u8> {
    let slice = log.plan_read(Offset(offset)..Offset::MAX, max, true).unwrap();
    let mut bytes = vec![0; slice.len];
    slice.file.read_exact_at(&mut bytes, slice.position).unwrap();
    bytes
}

/// The records of whole batches of any format; a part of one at the end is passed over.
fn records(mut stored: &[u8]) -> Vec<Found> {
    let (mut found, mut scratch) = (Vec::new(), Vec::new());
    while let Ok(header) = BatchHeader::parse_stored(stored) {
        let Some((batch, rest)) = stored.split_at_checked(header.size()) else { break };
        assert_eq!(header.crc, batch_crc(batch));
        visit_records(&header, batch, &mut scratch, 1 << 20, |record| {
            found.push((record.offset, record.timestamp, record.value.map_or(0, <[u8]>::len)));
            ControlFlow::Continue(())
        })
        .unwrap();
        stored = rest;
    }
    found
}

/// What a client gets of a slice that is converted.
fn converted(log: &Log, offset: i64, max: usize, magic: i8) -> Result<Vec<u8>, NotConverted> {
    let slice = log.plan_read(Offset(offset)..Offset::MAX, max, true).unwrap();
    let mut converted = ConvertedSlice::begin(slice, magic, 1 << 20)?;
    let (promised, mut got) = (converted.len(), Vec::new());
    loop {
        let (piece, more) = converted.piece().unwrap();
        if piece.is_empty() {
            assert!(!more);
            break;
        }
        // A socket takes what it likes.
        let taken = piece.len().div_ceil(3);
        got.extend_from_slice(&piece[..taken]);
        converted.advance(taken);
    }
    assert_eq!(got.len(), promised, "what was promised is kept");
    Ok(got)
}

/// A log as an old Kafka left it, and a batch of now.
fn old_log(directory: &Path) -> (Log, Recovered) {
    let parts = [
        set(0, Compression::None, 0..5),
        set(0, Compression::Lz4, 5..10),
        set(1, Compression::Gzip, 10..20),
        set(1, Compression::None, 20..30),
        set(1, Compression::Snappy, 35..40),
    ];
    fs::create_dir_all(directory).unwrap();
    fs::write(directory.join(SEGMENT), parts.concat()).unwrap();
    let (log, recovered) = open(directory, config(), false);
    let (mut batch, _) = build(&[1, 2, 3], 0, NOBODY, Compression::None);
    log.append(&mut batch, 3, NOW).unwrap();
    (log, recovered)
}

#[test]
fn the_segments_of_an_old_kafka_are_recovered_read_and_searched() {
    let root = tempfile::tempdir().unwrap();
    let (log, recovered) = old_log(root.path());
    assert_eq!((recovered.truncated_bytes, recovered.segments_scanned), (0, 1));
    assert_eq!(log.log_end_offset(), 43);
    for offset in 0..43 {
        let read = records(&bytes_from(&log, offset, usize::MAX));
        assert!(read.iter().any(|(found, ..)| *found >= offset), "{offset}");
        assert!(!(30..35).contains(&read[0].0), "a gap leads to what follows it");
        let first = if (10..20).contains(&offset) { 10 } else { read[0].0 };
        assert_eq!(read[0].0, first, "a wrapper is given whole");
    }
    for offset in (10..30).chain(35..40) {
        let found = log.find_timestamp(NOW + 1000 * offset - 500).unwrap().unwrap();
        assert_eq!((found.offset, found.timestamp, found.leader_epoch), (offset, NOW + 1000 * offset, -1));
    }
    assert_eq!(log.max_timestamp().unwrap().map(|found| found.offset), Some(39));
    assert_eq!(log.latest_epoch(), Some(3), "old messages have no epoch");
    log.close().unwrap();
    drop(log);
    for clean in [true, false] {
        let (log, recovered) = open(root.path(), config(), clean);
        assert_eq!((log.log_end_offset(), recovered.truncated_bytes), (43, 0));
        log.close().unwrap();
    }
}

/// Records of the first format have no timestamp. The first record of a later format is returned, with or without one.
#[test]
fn the_largest_timestamp_is_not_one_of_the_first_format() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join(SEGMENT), set(0, Compression::None, 0..5)).unwrap();
    let (log, _) = open(root.path(), config(), false);
    assert_eq!(log.max_timestamp().unwrap(), None);
    let mut builder = MessageSetBuilder::new(1, Compression::None, TimestampType::CreateTime);
    for offset in 5..7 {
        builder.append(&NewMessage { offset, timestamp: -1, key: None, value: Some(b"v") });
    }
    let mut without = Vec::new();
    builder.finish(&mut without).unwrap();
    drop(log);
    let old = set(0, Compression::None, 0..5);
    fs::write(root.path().join(SEGMENT), [old, without].concat()).unwrap();
    let (log, _) = open(root.path(), config(), false);
    assert_eq!(log.max_timestamp().unwrap().map(|found| (found.offset, found.timestamp)), Some((5, -1)));
}

#[test]
fn a_torn_or_damaged_old_message_is_cut() {
    for (damage, end) in [(true, 2), (false, 3)] {
        let root = tempfile::tempdir().unwrap();
        let mut bytes = set(1, Compression::None, 0..4);
        if damage {
            bytes[71 + 20] ^= 1
        } else {
            bytes.truncate(bytes.len() - 1)
        }
        fs::write(root.path().join(SEGMENT), &bytes).unwrap();
        let (log, recovered) = open(root.path(), config(), false);
        assert_eq!(log.log_end_offset(), end);
        assert!(recovered.truncated_bytes > 0);
    }
}

#[test]
fn a_truncation_inside_a_wrapper_takes_all_of_it() {
    let root = tempfile::tempdir().unwrap();
    let (log, _) = old_log(root.path());
    log.truncate_to(Offset(25), NOW).unwrap();
    assert_eq!(log.log_end_offset(), 25);
    log.truncate_to(Offset(15), NOW).unwrap();
    assert_eq!(log.log_end_offset(), 10);
    assert_eq!(records(&bytes_from(&log, 0, usize::MAX)), expected_records(0, 0..10));
}

#[test]
fn an_old_consumer_gets_every_record_in_a_format_that_it_knows() {
    let root = tempfile::tempdir().unwrap();
    let (log, _) = old_log(root.path());
    let expected = |magic| {
        let mut all = expected_records(0, 0..10);
        all.extend(expected_records(magic, 10..30));
        all.extend(expected_records(magic, 35..40));
        all
    };
    for (magic, max) in [(0, usize::MAX), (1, usize::MAX), (0, 300), (1, 300), (0, 1), (1, 1)] {
        let (mut all, mut offset) = (Vec::new(), 0);
        while offset < 43 {
            let got = converted(&log, offset, max, magic).unwrap();
            assert!(max == usize::MAX || got.len() < 2000, "{} bytes for {max}", got.len());
            assert!(Messages::new(&got).flatten().all(|message| message.magic <= magic));
            let fresh: Vec<Found> = records(&got).into_iter().filter(|(at, ..)| *at >= offset).collect();
            offset = fresh.last().expect("something whole").0 + 1;
            all.extend(fresh);
        }
        let batch = all.split_off(35);
        assert_eq!(all, expected(magic));
        assert_eq!(
            batch.iter().map(|(offset, _, size)| (*offset, *size)).collect::<Vec<_>>(),
            [(40, 1), (41, 2), (42, 3)]
        );
    }
}

#[test]
fn zstd_is_told_where_it_comes_first_and_left_out_where_it_follows() {
    let root = tempfile::tempdir().unwrap();
    let (log, _) = open(root.path(), config(), false);
    for codec in [Compression::Gzip, Compression::Zstd] {
        log.append(&mut build(&[200; 5], 0, NOBODY, codec).0, 0, NOW).unwrap();
    }
    let got = converted(&log, 0, usize::MAX, 1).unwrap();
    assert_eq!(records(&got).len(), 5);
    assert!(matches!(converted(&log, 5, usize::MAX, 1), Err(NotConverted::Codec)));
}

#[test]
fn a_large_slice_is_converted_piece_by_piece() {
    let root = tempfile::tempdir().unwrap();
    let large = LogConfig { segment_bytes: 1 << 30, max_message_bytes: 1 << 30, ..config() };
    let (log, _) = open(root.path(), large, false);
    for _ in 0..20 {
        // Small records: as messages they take more bytes than were asked for, and the rest is cut.
        log.append(&mut build(&[10; 3000], 0, NOBODY, Compression::None).0, 0, NOW).unwrap();
        // Compressible ones in a batch as large as several pieces.
        log.append(&mut build(&[100_000; 4], 0, NOBODY, Compression::Gzip).0, 0, NOW).unwrap();
    }
    let (mut offset, end) = (0, log.log_end_offset());
    while offset < end {
        let got = converted(&log, offset, 600_000, 1).unwrap();
        let fresh: Vec<Found> = records(&got).into_iter().filter(|(at, ..)| *at >= offset).collect();
        assert_eq!(fresh[0].0, offset, "no record is skipped");
        assert!(fresh.windows(2).all(|pair| pair[0].0 + 1 == pair[1].0));
        offset = fresh.last().unwrap().0 + 1;
    }
}

#[test]
fn what_an_old_producer_sends_is_stored_as_one_batch() {
    for (magic, codec) in
        [(0, Compression::None), (1, Compression::None), (0, Compression::Lz4), (1, Compression::Gzip)]
    {
        let root = tempfile::tempdir().unwrap();
        let (log, _) = open(root.path(), config(), false);
        log.append(&mut build(&[1, 2], 0, NOBODY, Compression::None).0, 0, NOW).unwrap();
        let appended = log.append(&mut set(magic, codec, 0..5), 7, NOW).unwrap();
        assert_eq!((appended.first_offset, appended.last_offset, appended.record_count), (2, 6, 5));
        let stored = bytes_from(&log, 2, usize::MAX);
        let header = BatchHeader::parse(&stored).unwrap();
        assert_eq!((header.magic, header.partition_leader_epoch, header.compression()), (2, 7, Ok(codec)));
        let values: Vec<(i64, usize)> = records(&stored).iter().map(|(_, time, size)| (*time, *size)).collect();
        assert_eq!(
            values,
            expected_records(magic, 0..5).iter().map(|(_, time, size)| (*time, *size)).collect::<Vec<_>>()
        );
    }
    let root = tempfile::tempdir().unwrap();
    let (log, _) = open(root.path(), LogConfig { timestamp_type: TimestampType::LogAppendTime, ..config() }, false);
    assert_eq!(log.append(&mut set(0, Compression::None, 0..5), 7, NOW).unwrap().log_append_time, NOW);
    assert!(records(&bytes_from(&log, 0, usize::MAX)).iter().all(|(_, time, _)| *time == NOW));
}

#[test]
fn batches_are_stored_in_the_codec_that_the_topic_asks_for() {
    let codecs = [Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];
    for wanted in codecs {
        let root = tempfile::tempdir().unwrap();
        let settings = LogConfig {
            compression: Some(wanted),
            compression_level: Some(3),
            timestamp_type: TimestampType::LogAppendTime,
            ..config()
        };
        let (log, _) = open(root.path(), settings, false);
        let mut sent: Vec<u8> =
            codecs.iter().enumerate().flat_map(|(n, codec)| build(&[n, 100], 0, (n as i64, 0, 0), *codec).0).collect();
        let appended = log.append(&mut sent, 4, NOW).unwrap();
        assert_eq!((appended.first_offset, appended.last_offset), (0, 9));
        let stored = bytes_from(&log, 0, usize::MAX);
        assert_eq!(stored.len(), appended.bytes);
        let (mut at, mut producer) = (0, 0);
        while at < stored.len() {
            let header = BatchHeader::parse(&stored[at..]).unwrap();
            assert_eq!((header.compression(), header.producer_id), (Ok(wanted), producer));
            assert_eq!((header.timestamp_type(), header.max_timestamp), (TimestampType::LogAppendTime, NOW));
            assert_eq!((header.base_offset, header.partition_leader_epoch), (2 * producer, 4));
            (at, producer) = (at + header.size(), producer + 1);
        }
        let sizes: Vec<usize> = records(&stored).iter().map(|(.., size)| *size).collect();
        assert_eq!(sizes, [0, 100, 1, 100, 2, 100, 3, 100, 4, 100]);
        let again = log.append(&mut build(&[0, 100], 0, (0, 0, 0), Compression::Zstd).0, 4, NOW).unwrap();
        assert!(again.duplicate, "a retry is found in whatever codec it was stored");
    }
}

#[test]
fn a_batch_may_not_grow_beyond_the_limit_by_being_recompressed() {
    let root = tempfile::tempdir().unwrap();
    let settings = LogConfig { compression: Some(Compression::None), max_message_bytes: 500, ..config() };
    let (log, _) = open(root.path(), settings, false);
    // Repeats itself, so that the codec makes little of it.
    let mut sent = build(&[200; 20], 0, NOBODY, Compression::Zstd).0;
    assert!(sent.len() < 500);
    let refused = log.append(&mut sent, 0, NOW);
    assert!(matches!(refused, Err(AppendError::Invalid(InvalidBatch::TooLarge { limit: 500, .. }))));
    assert_eq!(log.log_end_offset(), 0);
}

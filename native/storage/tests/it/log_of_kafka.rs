//! A log that Kafka wrote, byte for byte: what recovery makes of it is what Kafka wrote beside it.
//!
//! The bytes and how they were made are in `tests/kafka/partition.hex`; the numbers are those of Kafka's dump tool.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;

use pybroker_record::Offset;
use pybroker_storage::txn_index::AbortedTxn;
use pybroker_storage::{Log, LogConfig, OpenLog};

use crate::log_fixture::{NOW, config, quick_directory};

const FILES: &str = include_str!("../kafka/partition.hex");
const BASE: &str = "00000000000000000000";
const END: i64 = 30;

/// The bytes of one of Kafka's files.
fn kafkas(file: &str) -> Vec<u8> {
    let lines = FILES.lines().filter_map(|line| line.strip_prefix(file)?.strip_prefix(':'));
    let digits: String = lines.collect();
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    (0..digits.len()).step_by(2).map(byte).collect()
}

/// Opens Kafka's segment, with the indexes that are named.
fn open(directory: &Path, indexes: &[&str], clean_shutdown: bool) -> Log {
    fs::create_dir_all(directory).unwrap();
    for file in ["log"].iter().chain(indexes) {
        fs::write(directory.join(format!("{BASE}.{file}")), kafkas(file)).unwrap();
    }
    let config = LogConfig {
        segment_bytes: 1 << 30,
        segment_ms: i64::MAX,
        segment_index_bytes: 10 << 20,
        index_interval_bytes: 100,
        max_message_bytes: 1 << 20,
        ..config()
    };
    let recovery_point = if clean_shutdown { END } else { 0 };
    let how = OpenLog { clean_shutdown, recovery_point, log_start_offset: 0, high_watermark: 0, now_ms: NOW };
    let (log, recovered) = Log::open(directory, config, how).unwrap();
    assert_eq!((log.log_end_offset(), recovered.truncated_bytes), (END, 0));
    log
}

/// The entries of a snapshot by producer id, without the id; of an id that comes again the last, as Kafka reads it.
fn producers(snapshot: &[u8]) -> BTreeMap<[u8; 8], Vec<u8>> {
    assert_eq!(snapshot[..2], [0, 1], "the version");
    let entries = snapshot[10..].chunks_exact(46);
    entries.map(|entry| (entry[..8].try_into().unwrap(), entry[8..].to_vec())).collect()
}

#[test]
fn recovery_builds_the_indexes_that_kafka_wrote() {
    let root = quick_directory();
    let log = open(root.path(), &[], false);
    log.close().unwrap();
    for file in ["txnindex", "index", "timeindex"] {
        assert_eq!(fs::read(root.path().join(format!("{BASE}.{file}"))).unwrap(), kafkas(file), "{file}");
    }
}

#[test]
fn recovery_finds_the_producers_that_kafka_knew() {
    let root = quick_directory();
    let log = open(root.path(), &[], false);
    log.close().unwrap();
    let written = fs::read(root.path().join(format!("{END:020}.snapshot"))).unwrap();
    let (ours, theirs) = (producers(&written), producers(&kafkas("snapshot")));
    assert_eq!(theirs.len(), 9);
    assert_eq!(ours, theirs);
}

#[test]
fn the_aborted_transactions_and_the_stable_end_are_kafkas() {
    let aborted = |producer_id, first_offset, last_offset, last_stable_offset| AbortedTxn {
        producer_id,
        first_offset,
        last_offset,
        last_stable_offset,
    };
    for (indexes, clean) in [(&["index", "timeindex", "txnindex"][..], true), (&[], false)] {
        let root = quick_directory();
        let log = open(root.path(), indexes, clean);
        log.complete_transactions(END);
        assert_eq!(log.first_unstable_offset(), Some(29), "the transaction of producer 8 is open");
        let listed = log.aborted_transactions(Offset(0)..Offset(29)).unwrap();
        assert_eq!(listed, [aborted(6, 21, 24, 20), aborted(5, 20, 27, 26)]);
    }
}

#[test]
fn offsets_and_times_lead_to_kafkas_batches() {
    // Base offset and position of each batch.
    const BATCHES: [(i64, u64); 20] = [
        (0, 0),
        (2, 146),
        (4, 275),
        (6, 390),
        (8, 517),
        (10, 640),
        (12, 780),
        (14, 903),
        (16, 1032),
        (18, 1153),
        (20, 1273),
        (21, 1343),
        (22, 1413),
        (23, 1483),
        (24, 1553),
        (25, 1631),
        (26, 1709),
        (27, 1779),
        (28, 1857),
        (29, 1935),
    ];
    for (indexes, clean) in [(&["index", "timeindex", "txnindex"][..], true), (&[], false)] {
        let root = quick_directory();
        let log = open(root.path(), indexes, clean);
        for offset in 0..END {
            let (base, position) = BATCHES.into_iter().rfind(|(base, _)| *base <= offset).unwrap();
            let slice = log.plan_read(Offset(offset)..Offset::MAX, 1, true).unwrap();
            let mut read = [0; 8];
            slice.file.read_exact_at(&mut read, slice.position).unwrap();
            assert_eq!((i64::from_be_bytes(read), slice.position), (base, position), "offset {offset}");
        }
        let found = |target| log.find_timestamp(target).unwrap().map(|found| (found.offset, found.timestamp));
        assert_eq!(found(1_699_999_999_990), Some((0, 1_700_000_000_000)));
        assert_eq!(found(1_700_000_000_001), Some((20, 1_700_000_000_100)));
        assert_eq!(found(1_700_000_000_200), Some((23, 1_700_000_000_200)));
        assert_eq!(found(1_700_000_000_201), Some((24, 1_795_862_500_593)), "the marker that aborts B");
        assert_eq!(found(1_795_862_500_619), None);
    }
}

//! Look-ups by offset and by time against a naive oracle, over logs as replication and compaction leave them: gaps between
//! batches and inside them, emptied batches, equal and descending timestamps, records without any.

use std::os::unix::fs::FileExt;

use proptest::prelude::*;
use pybroker_record::varint::{put_varint, put_varlong};
use pybroker_record::{BatchHeader, HEADER_LEN, LOG_OVERHEAD, Offset, seal};
use pybroker_storage::{Log, LogConfig, OpenLog, ReadError, Recovered, RetentionLimits, TimestampAndOffset};

use crate::log_fixture::NOW;

fn config() -> LogConfig {
    LogConfig { segment_bytes: 1200, index_interval_bytes: 150, ..crate::log_fixture::config() }
}

/// A record of the oracle.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Known {
    offset: i64,
    timestamp: i64,
    epoch: i32,
}

#[derive(Clone, Debug)]
struct BatchPlan {
    /// Offsets left out before the batch, and behind its last record.
    gap: i64,
    tail: i64,
    /// Of each record: offsets left out before it, time since the last one.
    records: Vec<(i64, i64)>,
    newer_epoch: bool,
    padding: usize,
}

fn batch_plans() -> impl Strategy<Value = Vec<BatchPlan>> {
    let gap = || prop_oneof![5 => Just(0i64), 1 => 1..40i64];
    let step = prop_oneof![4 => 0..5i64, 2 => Just(0i64), 3 => -7..0i64, 1 => Just(i64::MIN)];
    let records = prop::collection::vec((gap(), step), 0..6);
    let plan = (gap(), gap(), records, prop::bool::weighted(0.15), 0..120usize);
    let plan = plan.prop_map(|(gap, tail, records, newer_epoch, padding)| BatchPlan {
        gap,
        tail,
        records,
        newer_epoch,
        padding,
    });
    prop::collection::vec(plan, 1..60)
}

/// Builds the log; returns it with its records and its batches' offsets.
fn build(plans: &[BatchPlan], log: &Log) -> (Vec<Known>, Vec<(i64, i64)>) {
    let (mut records, mut batches): (Vec<Known>, Vec<(i64, i64)>) = (Vec::new(), Vec::new());
    let (mut next, mut time, mut epoch) = (0, 1000, 0);
    for plan in plans {
        epoch += i32::from(plan.newer_epoch);
        let base = next + plan.gap;
        let (mut offset, mut known) = (base, Vec::new());
        for &(skipped, step) in &plan.records {
            offset += skipped;
            let timestamp = if step == i64::MIN { -1 } else { time + step };
            time = if timestamp < 0 { time } else { timestamp.max(0) };
            known.push(Known { offset, timestamp: timestamp.max(-1), epoch });
            offset += 1;
        }
        let last = (offset - 1 + plan.tail).max(base);
        let bytes = encode(base, last, epoch, &known, plan.padding);
        log.append_as_follower(&bytes, NOW).unwrap();
        records.extend(known);
        batches.push((base, last));
        next = last + 1;
    }
    (records, batches)
}

fn encode(base: i64, last: i64, epoch: i32, records: &[Known], padding: usize) -> Vec<u8> {
    let base_timestamp = records.first().map_or(-1, |record| record.timestamp);
    let mut bytes = vec![0; HEADER_LEN];
    for record in records {
        let mut body = vec![0];
        put_varlong(&mut body, record.timestamp - base_timestamp);
        put_varint(&mut body, (record.offset - base) as i32);
        put_varint(&mut body, -1);
        put_varint(&mut body, padding as i32);
        body.resize(body.len() + padding, b'x');
        body.push(0);
        put_varint(&mut bytes, body.len() as i32);
        bytes.extend_from_slice(&body);
    }
    let header = BatchHeader {
        base_offset: base,
        batch_length: (bytes.len() - LOG_OVERHEAD) as i32,
        partition_leader_epoch: epoch,
        magic: 2,
        crc: 0,
        attributes: 0,
        last_offset_delta: (last - base) as i32,
        base_timestamp,
        max_timestamp: records.iter().map(|record| record.timestamp).max().unwrap_or(-1),
        producer_id: -1,
        producer_epoch: -1,
        base_sequence: -1,
        record_count: records.len() as i32,
    };
    header.write(&mut bytes);
    seal(&mut bytes);
    bytes
}

fn known(found: Option<TimestampAndOffset>) -> Option<Known> {
    found.map(|found| Known { offset: found.offset, timestamp: found.timestamp, epoch: found.leader_epoch })
}

/// ListOffsets by time, -3 included.
fn check_times(log: &Log, records: &[Known], start: i64) {
    let visible = || records.iter().filter(move |record| record.offset >= start).copied();
    let (low, high) = visible().fold((0, 0), |(low, high), r| (r.timestamp.min(low), r.timestamp.max(high)));
    for target in (low.max(0)..=high + 1).step_by(((high - low) as usize / 60).max(1)) {
        let naive = visible().find(|record| record.timestamp >= target);
        assert_eq!(known(log.find_timestamp(target).unwrap()), naive, "target {target} from {start}");
    }
    // Of records without timestamps alone, Apache Kafka returns the first one.
    let naive = visible().reduce(|best, r| if r.timestamp > best.timestamp { r } else { best });
    assert_eq!(known(log.max_timestamp().unwrap()), naive, "largest from {start}");
}

/// Fetch: every offset leads to the first batch that reaches it.
fn check_offsets(log: &Log, batches: &[(i64, i64)], start: i64) {
    let end = log.log_end_offset();
    for offset in start..end {
        let slice = log.plan_read(Offset(offset)..Offset::MAX, 1, true).unwrap();
        let naive = batches.iter().find(|(_, last)| *last >= offset).unwrap();
        let mut base = [0; 8];
        slice.file.read_exact_at(&mut base, slice.position).unwrap();
        assert_eq!(i64::from_be_bytes(base), naive.0, "offset {offset}");
    }
    for outside in [start - 1, end + 1] {
        assert!(matches!(
            log.plan_read(Offset(outside)..Offset::MAX, 1, true),
            Err(ReadError::OffsetOutOfRange { .. })
        ));
    }
}

/// OffsetForLeaderEpoch.
fn check_epochs(log: &Log, plans: &[BatchPlan], batches: &[(i64, i64)]) {
    let epochs: Vec<i32> = plans
        .iter()
        .scan(0, |epoch, plan| {
            *epoch += i32::from(plan.newer_epoch);
            Some(*epoch)
        })
        .collect();
    let latest = epochs[epochs.len() - 1];
    for epoch in epochs[0]..=latest {
        let end = epochs.iter().zip(batches).find(|(newer, _)| **newer > epoch).map(|(_, (base, _))| *base);
        assert_eq!(log.end_offset_for_epoch(epoch), (epoch, end.unwrap_or(log.log_end_offset())));
    }
    assert_eq!(log.end_offset_for_epoch(latest + 1), (-1, -1));
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(96),
        max_shrink_iters: 3000,
        ..ProptestConfig::default()
    })]
    #[test]
    fn look_ups_find_what_a_walk_finds(plans in batch_plans(), part in 0.0..1.0f64, clean: bool) {
        let directory = tempfile::tempdir().unwrap();
        let open = |clean_shutdown, recovery_point, log_start_offset| {
            let how = OpenLog { clean_shutdown, recovery_point, log_start_offset, high_watermark: 0, now_ms: NOW };
            Log::open(&directory.path().join("t-0"), config(), how).unwrap().0
        };
        let log = open(true, 0, 0);
        let (records, batches) = build(&plans, &log);
        check_times(&log, &records, 0);
        check_offsets(&log, &batches, 0);
        check_epochs(&log, &plans, &batches);
        let start = (log.log_end_offset() as f64 * part) as i64;
        log.advance_log_start(start).unwrap();
        check_times(&log, &records, start);
        check_offsets(&log, &batches, start);
        // What is remembered of segments while they are written has to come back from their files.
        log.close().unwrap();
        let recovery_point = if clean { log.recovery_point() } else { 0 };
        let log = open(clean, recovery_point, start);
        check_times(&log, &records, start);
        check_offsets(&log, &batches, start);
    }
}

/// A damaged entry of a time index leads to no later record than an intact one.
#[test]
fn a_time_index_entry_that_contradicts_its_batch_is_not_trusted() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path().join("t-0");
    let config = LogConfig { segment_bytes: 1 << 20, ..config() };
    let open = || {
        let how =
            OpenLog { clean_shutdown: true, recovery_point: 0, log_start_offset: 0, high_watermark: 0, now_ms: NOW };
        Log::open(&home, config.clone(), how).unwrap().0
    };
    let log = open();
    let plan = |_| BatchPlan { gap: 0, tail: 0, records: vec![(0, 3)], newer_epoch: false, padding: 60 };
    let (records, _) = build(&(0..60).map(plan).collect::<Vec<_>>(), &log);
    log.close().unwrap();
    drop(log);
    let path = home.join("00000000000000000000.timeindex");
    let intact = std::fs::read(&path).unwrap();
    let entries = intact.len() / 12;
    assert!(entries > 5, "{entries}");
    for entry in 0..entries - 1 {
        for bit in 0..6 {
            let mut damaged = intact.clone();
            damaged[entry * 12 + 11] ^= 1 << bit;
            std::fs::write(&path, damaged).unwrap();
            let log = open();
            check_times(&log, &records, 0);
            drop(log);
        }
    }
}

/// Timestamps ascend in a log, or fall after its middle, so that the last entry of the time index names a batch that is not
/// among the last ones. The last entry gets timestamps below its own, down to the one of the entry before it and to zero.
#[test]
fn a_last_time_index_entry_that_is_too_early_hides_no_segment() {
    for falls_from in [60, 30] {
        let directory = tempfile::tempdir().unwrap();
        let home = directory.path().join("t-0");
        let config =
            LogConfig { segment_bytes: 1 << 20, segment_ms: i64::MAX, segment_index_bytes: 1 << 16, ..config() };
        let open = || {
            let (clean_shutdown, recovery_point, log_start_offset, high_watermark) = (true, 120, 0, 120);
            let how = OpenLog { clean_shutdown, recovery_point, log_start_offset, high_watermark, now_ms: NOW };
            Log::open(&home, config.clone(), how).unwrap()
        };
        let (log, _) = open();
        let plan = |n| {
            let step = if n < falls_from { 100 } else { -3 };
            BatchPlan { gap: 0, tail: 0, records: vec![(0, step)], newer_epoch: false, padding: 60 }
        };
        let (mut records, _) = build(&(0..60).map(plan).collect::<Vec<_>>(), &log);
        log.roll(NOW).unwrap();
        let late = |known: &Known| Known { offset: known.offset + 60, epoch: 0, ..*known };
        for known in records.iter().map(late).collect::<Vec<_>>() {
            log.append_as_follower(&encode(known.offset, known.offset, 0, &[known], 60), NOW).unwrap();
            records.push(known);
        }
        log.close().unwrap();
        drop(log);
        let largest: i64 = 1000 + 100 * falls_from;
        for name in ["00000000000000000000.timeindex", "00000000000000000060.timeindex"] {
            let path = home.join(name);
            let intact = std::fs::read(&path).unwrap();
            let last = intact.len() - 12;
            assert_eq!(intact[last..last + 8], largest.to_be_bytes(), "the entry of the largest timestamp");
            let before = i64::from_be_bytes(intact[last - 12..last - 4].try_into().unwrap());
            for timestamp in [0, 1, 1100, before - 1, before, before + 1, largest - 1, largest + 1] {
                let mut damaged = intact.clone();
                damaged[last..last + 8].copy_from_slice(&timestamp.to_be_bytes());
                std::fs::write(&path, damaged).unwrap();
                let (log, recovered) = open();
                assert_eq!(recovered.indexes_rebuilt, 1, "{timestamp} in {name}");
                let named = |text: &String| text.starts_with(&name[..20]) && text.contains(".timeindex");
                assert!(recovered.warnings.iter().all(named) && recovered.warnings.len() == 1, "{recovered:?}");
                check_times(&log, &records, 0);
                // The youngest record is exactly as old as records may be.
                let (retention_ms, now_ms) = (Some(5000), largest + 5000);
                let limits = RetentionLimits { high_watermark: 120, now_ms, retention_ms, retention_bytes: None };
                assert_eq!(log.delete_old_segments(&limits).unwrap().0.total(), 0, "{timestamp} in {name}");
                log.close().unwrap();
                drop(log);
                assert_eq!(std::fs::read(&path).unwrap(), intact, "built as it was");
                assert_eq!(open().1, Recovered::default(), "{timestamp} in {name}");
            }
        }
    }
}

/// The log start lies in an emptied batch, and the records behind it, in later segments, have no timestamps.
#[test]
fn the_first_record_without_a_timestamp_may_be_in_a_later_segment() {
    let directory = tempfile::tempdir().unwrap();
    let how = OpenLog { clean_shutdown: true, recovery_point: 0, log_start_offset: 0, high_watermark: 0, now_ms: NOW };
    let log = Log::open(&directory.path().join("t-0"), config(), how).unwrap().0;
    let emptied = BatchPlan { gap: 0, tail: 0, records: Vec::new(), newer_epoch: false, padding: 0 };
    let without = BatchPlan { records: vec![(0, i64::MIN)], padding: 60, ..emptied.clone() };
    let plans: Vec<BatchPlan> = [vec![emptied; 40], vec![without; 40]].concat();
    let (records, _) = build(&plans, &log);
    assert_eq!(known(log.max_timestamp().unwrap()), Some(Known { offset: 40, timestamp: -1, epoch: 0 }));
    check_times(&log, &records, 0);
    log.advance_log_start(60).unwrap();
    check_times(&log, &records, 60);
}

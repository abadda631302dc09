//! Retention against a naive oracle: random logs, random limits; and what readers, restarts and crashes see of it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::UNIX_EPOCH;

use proptest::prelude::*;
use pybroker_record::{BatchBuilder, Batches, Compression, Offset};
use pybroker_storage::{Log, LogConfig, OpenLog, ReadError, RetentionLimits};

use crate::log_fixture::{NOW, build, config};

const NOBODY: (i64, i16, i32) = (-1, -1, -1);

fn open(directory: &Path, log_start_offset: i64, clean_shutdown: bool) -> Log {
    let how = OpenLog { clean_shutdown, recovery_point: 0, log_start_offset, high_watermark: 0, now_ms: NOW };
    Log::open(directory, config(), how).unwrap().0
}

fn append(log: &Log, sizes: &[usize], time: i64) {
    log.append(&mut build(sizes, time, NOBODY, Compression::None).0, 0, NOW).unwrap();
}

/// No limits, and everything committed.
fn limits() -> RetentionLimits {
    RetentionLimits { high_watermark: i64::MAX, now_ms: NOW, retention_ms: None, retention_bytes: None }
}

/// The files of the directory with this suffix, by offset, and their bytes.
fn files(directory: &Path, suffix: &str) -> BTreeMap<i64, Vec<u8>> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries
        .filter_map(|path| {
            let name = path.file_name()?.to_str()?;
            let offset = name.strip_suffix(suffix)?.parse().ok()?;
            Some((offset, fs::read(&path).unwrap()))
        })
        .collect()
}

fn offsets(directory: &Path, suffix: &str) -> Vec<i64> {
    files(directory, suffix).into_keys().collect()
}

#[derive(Debug)]
struct Old {
    base: i64,
    end: i64,
    size: u64,
    youngest: i64,
}

/// Segments as their files show.
fn segments(directory: &Path, log_end: i64) -> Vec<Old> {
    let files = files(directory, ".log");
    let bases: Vec<i64> = files.keys().copied().chain([log_end]).collect();
    let old = |((base, bytes), end): ((&i64, &Vec<u8>), &i64)| Old {
        base: *base,
        end: *end,
        size: bytes.len() as u64,
        youngest: Batches::new(bytes).map(|batch| batch.unwrap().0.max_timestamp).max().unwrap_or(-1),
    };
    files.iter().zip(&bases[1..]).map(old).collect()
}

type Rule<'a> = dyn Fn(&[Old]) -> bool + 'a;

/// Retention as one would do it by hand: again and again the first segment, as long as a rule lets it go.
fn naive(mut log: Vec<Old>, log_start: i64, limits: RetentionLimits) -> (Vec<i64>, i64, bool) {
    let rules: [&Rule<'_>; 3] = [
        &|log| log.len() > 1 && log[0].end <= log_start,
        &|log| {
            let behind: u64 = log[1..].iter().map(|one| one.size).sum();
            limits.retention_bytes.is_some_and(|most| behind >= most)
        },
        &|log| limits.retention_ms.is_some_and(|limit| limits.now_ms - log[0].youngest > limit),
    ];
    let end = log.last().unwrap().end;
    let mut rolled = false;
    for rule in rules {
        while log[0].end <= limits.high_watermark && (log.len() > 1 || log[0].size > 0) && rule(&log) {
            log.remove(0);
            if log.is_empty() {
                log.push(Old { base: end, end, size: 0, youngest: -1 });
                rolled = true;
            }
        }
    }
    let start = log_start.max(log[0].base);
    (log.into_iter().map(|one| one.base).collect(), start, rolled)
}

#[derive(Clone, Debug)]
enum Step {
    Append(Vec<usize>, i64),
    Roll,
    Start(f64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        10 => (prop::collection::vec(0..600usize, 1..5), 0..3000i64).prop_map(|(sizes, time)| Step::Append(sizes, time)),
        2 => Just(Step::Roll),
        1 => (0.0..1.0).prop_map(Step::Start),
    ];
    prop::collection::vec(step, 1..40)
}

fn some_limits() -> impl Strategy<Value = (Option<i64>, Option<u64>, i64, f64)> {
    let watermark = prop_oneof![Just(1.0), 0.0..1.0];
    (prop::option::of(0..4000i64), prop::option::of(0..20_000u64), 0..4000i64, watermark)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(64),
        ..ProptestConfig::default()
    })]

    #[test]
    fn what_goes_is_what_goes_by_hand(steps in steps(), rounds in prop::collection::vec(some_limits(), 1..4)) {
        let root = tempfile::tempdir().unwrap();
        let mut log = open(root.path(), 0, true);
        for step in steps {
            match step {
                Step::Append(sizes, time) => append(&log, &sizes, time),
                Step::Roll => log.roll(NOW).unwrap(),
                Step::Start(part) => {
                    let to = log.log_start_offset() + ((log.log_end_offset() - log.log_start_offset()) as f64 * part) as i64;
                    log.advance_log_start(to).unwrap();
                }
            }
        }
        for (retention_ms, retention_bytes, later, committed) in rounds {
            let (start, end) = (log.log_start_offset(), log.log_end_offset());
            let high_watermark = start + ((end - start) as f64 * committed) as i64;
            let limits = RetentionLimits { high_watermark, now_ms: NOW + later, retention_ms, retention_bytes };
            let before = segments(root.path(), end);
            let sizes: BTreeMap<i64, u64> = before.iter().map(|one| (one.base, one.size)).collect();
            let (kept, new_start, _) = naive(before, start, limits);
            let (expired, removed) = log.delete_old_segments(&limits).unwrap();

            prop_assert_eq!(offsets(root.path(), ".log"), kept.clone());
            prop_assert_eq!(log.log_start_offset(), new_start);
            prop_assert_eq!(removed.log_start_offset, new_start);
            prop_assert!(new_start <= high_watermark.max(start));
            prop_assert_eq!(log.log_end_offset(), end);
            let dropped: BTreeMap<i64, u64> = sizes.into_iter().filter(|(base, _)| !kept.contains(base)).collect();
            prop_assert_eq!((removed.segments, removed.bytes), (dropped.len(), dropped.values().sum::<u64>()));
            prop_assert_eq!(expired.total(), dropped.len());
            let marked = |base: &i64| {
                let name = format!("{base:020}.log.deleted");
                removed.files.iter().any(|file| file.ends_with(&name))
            };
            prop_assert!(dropped.keys().all(marked));
            prop_assert!(removed.files.iter().all(|file| file.exists()));
            // Again with the same limits nothing is left to do.
            prop_assert_eq!(log.delete_old_segments(&limits).unwrap().1.segments, 0);
            check_reads(&log);

            drop(log);
            log = open(root.path(), 0, false);
            prop_assert_eq!(log.log_start_offset(), kept[0]);
            prop_assert_eq!(log.log_end_offset(), end);
            prop_assert!(offsets(root.path(), ".log.deleted").is_empty());
            log.advance_log_start(new_start).unwrap();
        }
    }
}

fn check_reads(log: &Log) {
    let (start, end) = (log.log_start_offset(), log.log_end_offset());
    if start > 0 {
        let below = log.plan_read(Offset(start - 1)..Offset::MAX, 1 << 20, true);
        assert!(matches!(below, Err(ReadError::OffsetOutOfRange { .. })), "{below:?}");
    }
    let slice = log.plan_read(Offset(start)..Offset::MAX, 1 << 20, true).unwrap();
    assert_eq!(slice.len > 0, start < end);
    append(log, &[1], 0);
    assert!(log.plan_read(Offset(end)..Offset::MAX, 1 << 20, true).unwrap().len > 0);
    log.truncate_to(Offset(end), NOW).unwrap();
}

#[test]
fn an_expired_active_segment_is_rolled_and_goes() {
    let root = tempfile::tempdir().unwrap();
    let log = open(root.path(), 0, true);
    append(&log, &[10, 10, 10], 0);
    let now = RetentionLimits { now_ms: NOW + 5000, retention_ms: Some(1000), ..limits() };
    let (expired, removed) = log.delete_old_segments(&now).unwrap();
    assert_eq!((expired.by_time, removed.log_start_offset), (1, 3));
    assert_eq!(offsets(root.path(), ".log"), [3]);
    assert_eq!((log.log_start_offset(), log.log_end_offset(), log.size_bytes()), (3, 3, 0));
    append(&log, &[1], 5000);
    assert_eq!(log.log_end_offset(), 4);
}

#[test]
fn the_files_of_a_segment_are_renamed_together_and_stay_readable() {
    let root = tempfile::tempdir().unwrap();
    let log = open(root.path(), 0, true);
    (0..8).for_each(|_| append(&log, &[900], 0));
    log.roll(NOW).unwrap();
    let slice = log.plan_read(Offset(0)..Offset::MAX, 1 << 20, true).unwrap();
    let mut removed = log.advance_log_start(8).unwrap();
    let suffixes = [".log.deleted", ".index.deleted", ".timeindex.deleted"];
    assert!(removed.segments > 1);
    for suffix in suffixes {
        assert_eq!(offsets(root.path(), suffix).len(), removed.segments, "{suffix}");
    }
    removed.files.drain(..).for_each(|file| fs::remove_file(file).unwrap());
    let mut bytes = vec![0; slice.len];
    slice.file.read_exact_at(&mut bytes, slice.position).unwrap();
    assert_eq!(Batches::new(&bytes).next().unwrap().unwrap().0.base_offset, 0);
}

#[test]
fn a_flush_does_not_stumble_over_segments_that_went_meanwhile() {
    let root = tempfile::tempdir().unwrap();
    let log = open(root.path(), 0, true);
    std::thread::scope(|threads| {
        let appending = threads.spawn(|| {
            for _ in 0..60 {
                append(&log, &[3000], 0);
                log.roll(NOW).unwrap();
            }
        });
        while !appending.is_finished() {
            for file in log.advance_log_start(log.log_end_offset()).unwrap().files {
                fs::remove_file(file).unwrap();
            }
            log.flush().unwrap();
        }
    });
    assert_eq!(log.flush().unwrap(), 60);
    assert!(!log.is_offline());
}

#[test]
fn a_look_up_by_time_does_not_stumble_over_segments_that_went_meanwhile() {
    let root = tempfile::tempdir().unwrap();
    let written = open(root.path(), 0, true);
    for _ in 0..200 {
        append(&written, &[500], 0);
        written.roll(NOW).unwrap();
    }
    written.close().unwrap();
    drop(written);
    // Opened anew, segments open their files on first use.
    let log = open(root.path(), 0, true);
    std::thread::scope(|threads| {
        let looking =
            threads.spawn(|| (0..200).for_each(|_| assert!(log.find_timestamp(NOW + 9000).unwrap().is_none())));
        for offset in 1..200 {
            for file in log.advance_log_start(offset).unwrap().files {
                fs::remove_file(file).unwrap();
            }
            log.max_timestamp().unwrap();
        }
        looking.join().unwrap();
    });
}

#[test]
fn records_without_timestamps_are_as_old_as_their_file() {
    let root = tempfile::tempdir().unwrap();
    let log = open(root.path(), 0, true);
    let mut builder = BatchBuilder::new(Compression::None, None, 1 << 20);
    builder.try_append(-1, None, Some(b"v"), &[]).unwrap();
    let mut bytes = Vec::new();
    builder.finish(-1, -1, -1, &mut bytes).unwrap();
    log.append(&mut bytes, 0, NOW).unwrap();
    let changed = fs::metadata(root.path().join(format!("{:020}.log", 0))).unwrap().modified().unwrap();
    let changed_ms = changed.duration_since(UNIX_EPOCH).unwrap().as_millis() as i64;
    let at = |now_ms| RetentionLimits { now_ms, retention_ms: Some(100), ..limits() };
    assert_eq!(log.delete_old_segments(&at(changed_ms + 100)).unwrap().1.segments, 0);
    assert_eq!(log.delete_old_segments(&at(changed_ms + 101)).unwrap().1.segments, 1);
}

#[test]
fn an_index_has_its_size_while_it_is_written_and_that_of_its_entries_afterwards() {
    let root = tempfile::tempdir().unwrap();
    let how = OpenLog { clean_shutdown: true, recovery_point: 0, log_start_offset: 0, high_watermark: 0, now_ms: NOW };
    let config = LogConfig { segment_index_bytes: 1003, segment_bytes: 100_000, ..config() };
    let log = Log::open(root.path(), config, how).unwrap().0;
    (0..5).for_each(|_| append(&log, &[300], 0));
    let len = |suffix: &str| fs::metadata(root.path().join(format!("{:020}{suffix}", 0))).unwrap().len();
    assert_eq!((len(".index"), len(".timeindex")), (1000, 996));
    log.roll(NOW).unwrap();
    assert_eq!(len(".index") % 8, 0);
    assert!((8..=32).contains(&len(".index")) && (12..=60).contains(&len(".timeindex")));
}

//! What a crash or a damaged file may leave, and what opening makes of it.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use pybroker_record::{BatchHeader, Compression, Offset, set_base_offset};
use pybroker_storage::{
    AppendError, Log, LossCause, OpenLog, REPORT_FILE, ReadError, Recovered, is_set_aside, set_aside_files,
};

use crate::log_fixture::{NOW, build, config};

const BATCHES: usize = 30;

fn open(directory: &Path, clean_shutdown: bool, recovery_point: i64) -> (Log, Recovered) {
    let how = OpenLog { clean_shutdown, recovery_point, log_start_offset: 0, high_watermark: 0, now_ms: NOW };
    Log::open(directory, config(), how).unwrap()
}

fn append(log: &Log, producer: (i64, i16, i32), sizes: &[usize]) -> Vec<u8> {
    let (mut bytes, _) = build(sizes, log.log_end_offset(), producer, Compression::None);
    log.append(&mut bytes, 3, NOW).unwrap();
    bytes
}

/// Three segments of ten batches of two records; every third batch is of producer 7. Left without a close.
fn fill(directory: &Path) -> Vec<Vec<u8>> {
    let (log, _) = open(directory, true, 0);
    let mut batches = Vec::new();
    for n in 0..BATCHES {
        if n % 10 == 0 {
            log.roll(NOW).unwrap();
        }
        let producer = if n % 3 == 0 { (7, 0, n as i32 / 3 * 2) } else { (-1, -1, -1) };
        batches.push(append(&log, producer, &[100, 150]));
    }
    batches
}

fn read_all(log: &Log) -> Vec<u8> {
    let mut all = Vec::new();
    let mut offset = log.log_start_offset();
    while offset < log.log_end_offset() {
        let slice = log.plan_read(Offset(offset)..Offset::MAX, usize::MAX, true).unwrap();
        let mut at = all.len();
        all.resize(at + slice.len, 0);
        slice.file.read_exact_at(&mut all[at..], slice.position).unwrap();
        while at < all.len() {
            let header = BatchHeader::parse(&all[at..]).unwrap();
            offset = header.next_offset();
            at += header.size();
        }
    }
    all
}

fn files(directory: &Path, extension: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|found| found == extension));
    files.sort();
    files
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
}

fn shorten(path: &Path, len: u64) {
    OpenOptions::new().write(true).open(path).unwrap().set_len(len).unwrap();
}

#[test]
fn a_log_cut_at_any_byte_of_its_last_batches_keeps_the_whole_ones() {
    let root = tempfile::tempdir().unwrap();
    let whole = root.path().join("t-0");
    let batches = fill(&whole);
    let last_log = files(&whole, "log").pop().unwrap();
    let size = fs::metadata(&last_log).unwrap().len();
    let last_two: usize = batches[BATCHES - 2..].iter().map(Vec::len).sum();
    for cut in (size - last_two as u64)..=size {
        let torn = root.path().join("t-1");
        copy(&whole, &torn);
        shorten(&torn.join(last_log.file_name().unwrap()), cut);
        let (log, recovered) = open(&torn, false, 50);
        let mut kept = BATCHES;
        let mut end = size;
        while end > cut {
            kept -= 1;
            end -= batches[kept].len() as u64;
        }
        assert_eq!(recovered.truncated_bytes, cut - end, "cut at {cut}");
        assert_eq!(recovered.segments_scanned, 1);
        assert_eq!(log.log_end_offset(), kept as i64 * 2);
        assert_eq!(read_all(&log), batches[..kept].concat());
        append(&log, (-1, -1, -1), &[1]);
        fs::remove_dir_all(&torn).unwrap();
    }
}

#[test]
fn a_flipped_bit_ends_the_log_and_what_follows_it_is_set_aside() {
    let root = tempfile::tempdir().unwrap();
    let batches = fill(root.path());
    let second = &files(root.path(), "log")[1];
    let position: usize = batches[10..14].iter().map(Vec::len).sum();
    let file = OpenOptions::new().write(true).open(second).unwrap();
    file.write_all_at(&[0xff], position as u64 + 100).unwrap();
    let (log, recovered) = open(root.path(), false, 0);
    assert_eq!(log.log_end_offset(), 28);
    assert_eq!((recovered.segments_scanned, recovered.segments_removed), (2, 1));
    assert_eq!(recovered.truncated_bytes as usize, batches[14..].iter().map(Vec::len).sum::<usize>());
    let [loss] = &recovered.losses[..] else { panic!("{recovered:?}") };
    assert_eq!((loss.cause, loss.from_offset, loss.place), (LossCause::Damage, 28, Some((20, position as u64))));
    assert_eq!(loss.set_aside, ["00000000000000000020.log.tail-1", "00000000000000000040.log.aside-1"]);
    assert_eq!(loss.bytes, recovered.truncated_bytes);
    let kept = |name: &str| fs::read(root.path().join(name)).unwrap();
    assert_eq!(kept(&loss.set_aside[0])[61 + 100..], batches[14..20].concat()[61 + 100..]);
    assert_eq!(kept(&loss.set_aside[1]), batches[20..].concat());
    let report = fs::read_to_string(root.path().join(REPORT_FILE)).unwrap();
    assert!(report.contains(&loss.text()), "{report}");
    assert_eq!(read_all(&log), batches[..14].concat());
    assert_eq!(log.end_offset_for_epoch(3), (3, 28));
    // Producer 7 continues where its last whole batch (the 13th: number 12) ended.
    append(&log, (7, 0, 10), &[1]);
}

#[test]
fn segments_that_were_set_aside_are_neither_loaded_nor_removed_and_can_be_brought_back() {
    let root = tempfile::tempdir().unwrap();
    let batches = fill(root.path());
    let first = &files(root.path(), "log")[0];
    let middle: usize = batches[..4].iter().map(Vec::len).sum();
    OpenOptions::new().write(true).open(first).unwrap().write_all_at(&[0xff], middle as u64 + 100).unwrap();
    let (log, recovered) = open(root.path(), false, 0);
    assert_eq!((log.log_end_offset(), recovered.segments_removed), (8, 2));
    log.close().unwrap();
    drop(log);
    let aside = set_aside_files(root.path()).unwrap();
    for clean in [false, true] {
        let (log, recovered) = open(root.path(), clean, 8);
        assert_eq!((log.log_end_offset(), recovered.losses.len()), (8, 0));
        log.close().unwrap();
        assert_eq!(set_aside_files(root.path()).unwrap(), aside);
    }
    for entry in fs::read_dir(root.path()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if let Some((old, _)) = name.split_once(".aside-") {
            assert!(is_set_aside(&name));
            fs::rename(&path, root.path().join(old)).unwrap();
        }
    }
    fs::remove_file(root.path().join("leader-epoch-checkpoint")).unwrap();
    let (log, recovered) = open(root.path(), true, 8);
    let holes: Vec<_> = recovered.losses.iter().map(|loss| (loss.cause, loss.from_offset, loss.known_end)).collect();
    assert_eq!((log.log_end_offset(), holes), (60, vec![(LossCause::Hole, 8, Some(20))]));
    assert_eq!(read_all(&log), [batches[..4].concat(), batches[10..].concat()].concat());
    assert_eq!(log.end_offset_for_epoch(3), (3, 60));
}

#[test]
fn a_torn_write_is_said_and_kept_nowhere() {
    let root = tempfile::tempdir().unwrap();
    let batches = fill(root.path());
    let last = files(root.path(), "log").pop().unwrap();
    let size = fs::metadata(&last).unwrap().len();
    shorten(&last, size - 10);
    let (_, recovered) = open(root.path(), false, 50);
    let [loss] = &recovered.losses[..] else { panic!("{recovered:?}") };
    assert_eq!((loss.cause, loss.from_offset), (LossCause::TornWrite, 58));
    assert_eq!(loss.bytes, batches[29].len() as u64 - 10);
    assert_eq!(set_aside_files(root.path()).unwrap(), []);
}

#[test]
fn bytes_that_were_acknowledged_are_set_aside_although_nothing_valid_follows() {
    for (clean_shutdown, recovery_point, high_watermark) in [(false, 60, 0), (false, 0, 60), (true, 0, 0)] {
        let root = tempfile::tempdir().unwrap();
        fill(root.path());
        let last = files(root.path(), "log").pop().unwrap();
        let size = fs::metadata(&last).unwrap().len();
        OpenOptions::new().write(true).open(&last).unwrap().write_all_at(&[0xff; 30], size - 30).unwrap();
        let how = OpenLog { clean_shutdown, recovery_point, log_start_offset: 0, high_watermark, now_ms: NOW };
        let (log, recovered) = Log::open(root.path(), config(), how).unwrap();
        assert_eq!(log.log_end_offset(), 58);
        let [loss] = &recovered.losses[..] else { panic!("{recovered:?}") };
        assert_eq!((loss.cause, loss.set_aside.len()), (LossCause::Damage, 1));
        assert_eq!(loss.known_end, if clean_shutdown { None } else { Some(60) });
    }
}

#[test]
fn an_end_that_a_checkpoint_knows_and_the_log_has_not_is_said() {
    for clean_shutdown in [true, false] {
        let root = tempfile::tempdir().unwrap();
        fill(root.path());
        fs::remove_file(files(root.path(), "log").pop().unwrap()).unwrap();
        let (log, recovered) = open(root.path(), clean_shutdown, 60);
        assert_eq!(log.log_end_offset(), 40);
        let [loss] = &recovered.losses[..] else { panic!("{recovered:?}") };
        assert_eq!((loss.cause, loss.from_offset, loss.known_end), (LossCause::EndMissing, 40, Some(60)));
    }
}

#[test]
fn a_log_start_beyond_the_end_deletes_nothing() {
    for (clean_shutdown, start, end) in [(true, 0, 60), (false, 100, 100)] {
        let root = tempfile::tempdir().unwrap();
        let batches = fill(root.path());
        let (log, _) = open(root.path(), false, 0);
        log.close().unwrap();
        drop(log);
        let how =
            OpenLog { clean_shutdown, recovery_point: 60, log_start_offset: 100, high_watermark: 60, now_ms: NOW };
        let (log, recovered) = Log::open(root.path(), config(), how).unwrap();
        assert_eq!((log.log_start_offset(), log.log_end_offset()), (start, end));
        assert_eq!(recovered.losses[0].cause, LossCause::StartBeyondEnd);
        let kept: u64 =
            set_aside_files(root.path()).unwrap().iter().filter(|it| it.0.contains(".log.")).map(|it| it.1).sum();
        assert_eq!(kept, if clean_shutdown { 0 } else { batches.concat().len() as u64 });
    }
}

#[test]
fn a_beginning_that_is_missing_after_a_clean_stop_is_said() {
    let root = tempfile::tempdir().unwrap();
    fill(root.path());
    let (log, _) = open(root.path(), false, 0);
    log.close().unwrap();
    drop(log);
    fs::remove_file(&files(root.path(), "log")[0]).unwrap();
    let (log, recovered) = open(root.path(), true, 60);
    assert_eq!((log.log_start_offset(), log.log_end_offset()), (20, 60));
    let [loss] = &recovered.losses[..] else { panic!("{recovered:?}") };
    assert_eq!((loss.cause, loss.from_offset, loss.known_end), (LossCause::BeginningMissing, 0, Some(20)));
}

#[test]
fn a_clean_log_opens_without_a_scan_and_with_trimmed_indexes() {
    let root = tempfile::tempdir().unwrap();
    let batches = fill(root.path());
    let (log, recovered) = open(root.path(), false, 0);
    assert_eq!(recovered.segments_scanned, 3);
    log.close().unwrap();
    drop(log);
    for index in files(root.path(), "index") {
        let len = fs::metadata(&index).unwrap().len();
        assert!(len > 0 && len % 8 == 0 && len < 8 * 15, "{len}");
    }
    let (log, recovered) = open(root.path(), true, 0);
    assert_eq!(recovered, Recovered::default());
    assert_eq!(log.recovery_point(), 60);
    assert_eq!(read_all(&log), batches.concat());
    let (mut again, _) = build(&[100, 150], 54, (7, 0, 18), Compression::None);
    let appended = log.append(&mut again, 3, NOW).unwrap();
    assert!(appended.duplicate && appended.first_offset == 54, "the producer's last batch is known from the snapshot");
}

#[test]
fn indexes_that_are_missing_empty_or_garbage_are_made_anew() {
    let root = tempfile::tempdir().unwrap();
    let whole = root.path().join("t-0");
    let batches = fill(&whole);
    let (log, _) = open(&whole, false, 0);
    let expected_time = log.find_timestamp(NOW + 30).unwrap().unwrap();
    log.close().unwrap();
    drop(log);
    type Damage = fn(&Path);
    let damages: [Damage; 5] = [
        |path| fs::remove_file(path).unwrap(),
        |path| fs::write(path, [0xab; 7]).unwrap(),
        |path| fs::write(path, [0xff; 24]).unwrap(),
        |path| fs::write(path, [0; 48]).unwrap(),
        |path| fs::write(path, []).unwrap(),
    ];
    for (number, damage) in damages.into_iter().enumerate() {
        for extension in ["index", "timeindex"] {
            let copied = root.path().join("t-1");
            copy(&whole, &copied);
            files(&copied, extension).iter().for_each(|path| damage(path));
            let (log, recovered) = open(&copied, true, 60);
            // An empty offset index is a valid one: every search starts at the segment's beginning.
            let expected = if number == 4 && extension == "index" { 0 } else { 3 };
            assert_eq!(recovered.indexes_rebuilt, expected, "damage {number} to {extension}");
            assert_eq!(read_all(&log), batches.concat());
            assert_eq!(log.find_timestamp(NOW + 30).unwrap().unwrap(), expected_time);
            fs::remove_dir_all(&copied).unwrap();
        }
    }
}

#[test]
fn an_epoch_that_has_written_nothing_outlives_a_start_and_its_file_is_left_alone() {
    for clean_shutdown in [true, false] {
        let root = tempfile::tempdir().unwrap();
        let (log, _) = open(root.path(), true, 0);
        log.begin_epoch(3).unwrap();
        append(&log, (-1, -1, -1), &[1, 1]);
        log.begin_epoch(5).unwrap();
        log.close().unwrap();
        drop(log);
        let file = root.path().join("leader-epoch-checkpoint");
        assert_eq!(fs::read_to_string(&file).unwrap(), "0\n2\n3 0\n5 2\n");
        let written = fs::metadata(&file).unwrap().ino();
        let (log, _) = open(root.path(), clean_shutdown, 0);
        assert_eq!((log.latest_epoch(), log.end_offset_for_epoch(4)), (Some(5), (3, 2)));
        log.begin_epoch(5).unwrap();
        assert_eq!(fs::metadata(&file).unwrap().ino(), written);
    }
}

#[test]
fn an_epoch_that_begins_beyond_the_end_is_forgotten() {
    let root = tempfile::tempdir().unwrap();
    let batches = fill(root.path());
    let file = root.path().join("leader-epoch-checkpoint");
    fs::write(&file, "0\n3\n3 0\n5 58\n6 60\n").unwrap();
    let last = &files(root.path(), "log")[2];
    let end: usize = batches[20..].iter().map(Vec::len).sum();
    OpenOptions::new().write(true).open(last).unwrap().set_len(end as u64 - 1).unwrap();
    let (log, _) = open(root.path(), false, 0);
    assert_eq!((log.log_end_offset(), log.latest_epoch()), (58, Some(5)));
    assert_eq!(fs::read_to_string(&file).unwrap(), "0\n2\n3 0\n5 58\n");
}

#[test]
fn foreign_files_are_left_alone_and_leftovers_removed() {
    let root = tempfile::tempdir().unwrap();
    let batches = fill(root.path());
    let keep = ["notes.txt", "5.log", "00000000000000000007.log.bak"];
    let remove = ["00000000000000000007.log.deleted", "00000000000000000007.index", "00000000000000000009.timeindex"];
    keep.iter().chain(&remove).for_each(|name| fs::write(root.path().join(name), b"x").unwrap());
    fs::write(root.path().join("leader-epoch-checkpoint"), b"garbage").unwrap();
    fs::write(root.path().join("00000000000000000020.snapshot"), b"garbage").unwrap();
    let (log, _) = open(root.path(), false, 20);
    assert!(keep.iter().all(|name| root.path().join(name).exists()));
    assert!(!remove.iter().any(|name| root.path().join(name).exists()));
    assert_eq!(read_all(&log), batches.concat());
    assert_eq!(log.end_offset_for_epoch(3), (3, 60));
    let (mut again, _) = build(&[100, 150], 54, (7, 0, 18), Compression::None);
    assert!(log.append(&mut again, 3, NOW).unwrap().duplicate, "producers are read from the log where snapshots fail");
}

#[test]
fn a_claim_of_a_clean_shutdown_is_not_believed_of_a_torn_log() {
    let root = tempfile::tempdir().unwrap();
    let batches = fill(root.path());
    let (log, _) = open(root.path(), false, 0);
    log.close().unwrap();
    drop(log);
    let last_log = files(root.path(), "log").pop().unwrap();
    shorten(&last_log, fs::metadata(&last_log).unwrap().len() - 1);
    let (log, recovered) = open(root.path(), true, 60);
    assert_eq!((log.log_end_offset(), recovered.segments_scanned), (58, 1));
    assert_eq!(read_all(&log), batches[..BATCHES - 1].concat());
}

#[test]
fn damage_that_appears_later_is_told_to_the_reader_and_hides_nothing() {
    let root = tempfile::tempdir().unwrap();
    let batches = fill(root.path());
    let (log, _) = open(root.path(), false, 0);
    let file = OpenOptions::new().write(true).open(&files(root.path(), "log")[0]).unwrap();
    file.write_all_at(&[0; 20], batches[..4].concat().len() as u64).unwrap();
    assert!(log.plan_read(Offset(7)..Offset::MAX, 10, true).is_ok());
    assert!(matches!(log.plan_read(Offset(8)..Offset::MAX, 10, true), Err(ReadError::Corrupt { .. })));
    assert!(log.plan_read(Offset(20)..Offset::MAX, 10, true).is_ok());
}

#[test]
fn a_log_that_lost_everything_restarts_at_its_start_offset() {
    let root = tempfile::tempdir().unwrap();
    fill(root.path());
    files(root.path(), "log").iter().for_each(|path| shorten(path, 0));
    let how =
        OpenLog { clean_shutdown: false, recovery_point: 0, log_start_offset: 45, high_watermark: 0, now_ms: NOW };
    let (log, _) = Log::open(root.path(), config(), how).unwrap();
    assert_eq!((log.log_start_offset(), log.log_end_offset()), (45, 45));
    append(&log, (-1, -1, -1), &[1]);
    assert_eq!(log.log_end_offset(), 46);
}

#[test]
fn blocks_reserved_ahead_are_given_back_at_roll_close_and_recovery() {
    let root = tempfile::tempdir().unwrap();
    let big = |segment_bytes| {
        let mut config = config();
        (config.segment_bytes, config.max_message_bytes, config.segment_ms) = (segment_bytes, 1 << 20, i64::MAX);
        config
    };
    let how = OpenLog { clean_shutdown: true, recovery_point: 0, log_start_offset: 0, high_watermark: 0, now_ms: NOW };
    let (log, _) = Log::open(root.path(), big(64 << 20), how).unwrap();
    let reserved = || {
        let files = files(root.path(), "log");
        let bytes = |path: &PathBuf| fs::metadata(path).map(|m| (m.blocks() * 512).saturating_sub(m.len())).unwrap();
        files.iter().map(bytes).sum::<u64>()
    };
    for _ in 0..5 {
        append(&log, (-1, -1, -1), &[100_000]);
    }
    // Where the file system cannot reserve there is nothing to give back, and the rest holds all the same.
    log.roll(NOW).unwrap();
    assert!(reserved() < 8192, "{}", reserved());
    for _ in 0..5 {
        append(&log, (-1, -1, -1), &[100_000]);
    }
    let end = log.log_end_offset();
    drop(log);
    let (log, recovered) = Log::open(root.path(), big(64 << 20), OpenLog { clean_shutdown: false, ..how }).unwrap();
    assert_eq!((log.log_end_offset(), recovered.truncated_bytes), (end, 0));
    assert!(reserved() < 8192, "{}", reserved());
    append(&log, (-1, -1, -1), &[100_000]);
    log.close().unwrap();
    assert!(reserved() < 8192, "{}", reserved());
}

#[test]
fn a_deleted_log_takes_no_appends_and_leaves_nothing() {
    let root = tempfile::tempdir().unwrap();
    let directory = root.path().join("topic-3");
    fill(&directory);
    let (log, _) = open(&directory, false, 0);
    log.delete().unwrap();
    let (mut bytes, _) = build(&[1], 0, (-1, -1, -1), Compression::None);
    assert!(matches!(log.append(&mut bytes, 0, NOW), Err(AppendError::Offline { .. })));
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
    log.delete().unwrap();
}

#[test]
fn a_gap_that_a_truncation_has_cut_is_no_hole_after_a_roll() {
    let root = tempfile::tempdir().unwrap();
    let home = root.path().join("t-0");
    let (log, _) = open(&home, true, 0);
    let (mut first, _) = build(&[100; 10], 0, (-1, -1, -1), Compression::None);
    let first_len = first.len();
    log.append(&mut first, 3, NOW).unwrap();
    let (mut far, _) = build(&[100; 10], 40, (-1, -1, -1), Compression::None);
    set_base_offset(&mut far, 40);
    log.append_as_follower(&far, NOW).unwrap();
    // In the gap from 10 to 40, flushed there: the recovery point lies beyond the records.
    log.truncate_to(Offset(25), NOW).unwrap();
    assert_eq!((log.log_end_offset(), log.flush().unwrap()), (25, 25));
    log.roll(NOW).unwrap();
    assert_eq!(files(&home, "log")[1].file_name().unwrap(), "00000000000000000010.log");
    let behind = append(&log, (-1, -1, -1), &[100, 150]);
    assert_eq!(log.log_end_offset(), 27);
    for offset in [10, 24, 25, 26] {
        let slice = log.plan_read(Offset(offset)..Offset::MAX, usize::MAX, true).unwrap();
        assert_eq!((slice.position, slice.len), (0, behind.len()), "{offset}");
    }
    drop(log);
    for recovery_point in [0, 25] {
        let (again, recovered) = open(&home, false, recovery_point);
        assert_eq!((again.log_end_offset(), recovered.segments_removed), (27, 0), "{recovery_point}");
        assert_eq!(read_all(&again).len(), first_len + behind.len());
    }
}

/// Closed segments are cut here at a batch's edge, at every byte of a batch, to nothing, and removed.
#[test]
fn records_that_a_closed_segment_has_lost_are_reported_once_and_passed_over() {
    let root = tempfile::tempdir().unwrap();
    let original = root.path().join("original");
    let batches = fill(&original);
    let (log, _) = open(&original, false, 0);
    log.close().unwrap();
    drop(log);
    let middle = "00000000000000000020.log";
    let size_of = |count: usize| batches[10..10 + count].concat().len() as u64;
    let cuts = [None, Some(0), Some(1), Some(size_of(4)), Some(size_of(4) + 1), Some(size_of(5) - 1), Some(size_of(9))];
    for (at, cut) in cuts.into_iter().enumerate() {
        for (clean, recovery_point) in [(true, 60), (false, 60)] {
            let home = root.path().join(format!("cut-{at}-{clean}"));
            copy(&original, &home);
            match cut {
                Some(len) => shorten(&home.join(middle), len),
                None => fs::remove_file(home.join(middle)).unwrap(),
            }
            let kept = (0..=10).rev().find(|count| size_of(*count) <= cut.unwrap_or(0)).unwrap();
            let (log, recovered) = open(&home, clean, recovery_point);
            let holes: Vec<_> =
                recovered.losses.iter().map(|loss| (loss.cause, loss.from_offset, loss.known_end)).collect();
            assert_eq!(holes, [(LossCause::Hole, 20 + 2 * kept as i64, Some(40))], "{cut:?} {clean}");
            let expected = [&batches[..10 + kept], &batches[20..]].concat().concat();
            assert!(read_all(&log) == expected, "{cut:?} {clean}");
            let torn = cut.map_or(0, |len| len - size_of(kept));
            let aside: u64 = set_aside_files(&home).unwrap().iter().map(|(_, bytes)| bytes).sum();
            assert_eq!(aside, torn, "{cut:?} {clean}");
            let removed = "removed indexes whose segments are missing: 00000000000000000020.index, \
                           00000000000000000020.timeindex";
            assert_eq!(recovered.warnings.iter().any(|text| text == removed), cut.is_none(), "{recovered:?}");
            log.close().unwrap();
            drop(log);
            let (again, recovered) = open(&home, true, 60);
            assert_eq!((recovered.losses, recovered.warnings), (vec![], vec![]), "{cut:?} {clean}");
            assert!(read_all(&again) == expected, "{cut:?} {clean}");
        }
    }
}

/// Its indexes lead to the damage, or are built anew once and lead to it then: later starts do not scan the segment.
#[test]
fn a_closed_segment_that_is_damaged_within_is_not_scanned_at_each_start() {
    let root = tempfile::tempdir().unwrap();
    let original = root.path().join("original");
    let batches = fill(&original);
    let (log, _) = open(&original, false, 0);
    log.close().unwrap();
    drop(log);
    let middle = "00000000000000000020";
    // The indexes have an entry of every batch but the first: those of the third case name the damaged one.
    let cases = [(9, true, 1), (3, true, 1), (9, false, 1), (10, false, 0)];
    for (damaged, without_indexes, rebuilt) in cases {
        let home = root.path().join(format!("{damaged}-{without_indexes}"));
        copy(&original, &home);
        let at = batches[10..10 + damaged].concat().len() as u64;
        let path = home.join(format!("{middle}.log"));
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        file.write_all_at(&[0xff; 30], at).unwrap();
        // A valid batch is behind the damage.
        file.write_all_at(&batches[0], fs::metadata(&path).unwrap().len()).unwrap();
        if without_indexes {
            fs::remove_file(home.join(format!("{middle}.index"))).unwrap();
        }
        let size = fs::metadata(&path).unwrap().len();
        let warning = format!("{}: there is no valid batch at byte {at} of {size}", path.display());
        for start in 0..3 {
            let (log, recovered) = open(&home, true, 60);
            assert_eq!(recovered.indexes_rebuilt, if start == 0 { rebuilt } else { 0 }, "{damaged} at start {start}");
            assert_eq!(recovered.warnings.last(), Some(&warning), "{damaged} at start {start}");
            assert_eq!((recovered.losses, log.log_end_offset()), (vec![], 60));
            for offset in 0..20 + 2 * damaged as i64 {
                assert!(log.plan_read(Offset(offset)..Offset::MAX, 1, true).is_ok(), "{offset} of {damaged}");
            }
            for offset in 20 + 2 * damaged as i64..40 {
                let read = log.plan_read(Offset(offset)..Offset::MAX, 1, true);
                assert!(matches!(read, Err(ReadError::Corrupt { .. })), "{offset} of {damaged}");
            }
            assert!(log.plan_read(Offset(40)..Offset::MAX, 1, true).is_ok());
            log.close().unwrap();
        }
    }
}

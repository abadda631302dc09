//! What an append answers, what it refuses, and what is left when the disk does.

use std::fs;
use std::os::unix::fs::{FileExt, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use pybroker_record::{BatchHeader, Batches, Compression, InvalidBatch, Offset, TimestampType};
use pybroker_storage::{AppendError, Log, LogConfig, LogError, OpenLog};

use crate::log_fixture::{NOW, build, config};

const NOBODY: (i64, i16, i32) = (-1, -1, -1);

fn open(directory: &Path, config: LogConfig) -> Log {
    let how = OpenLog { clean_shutdown: true, recovery_point: 0, log_start_offset: 0, high_watermark: 0, now_ms: NOW };
    Log::open(directory, config, how).unwrap().0
}

fn batch(sizes: &[usize]) -> Vec<u8> {
    build(sizes, 0, NOBODY, Compression::None).0
}

#[test]
fn several_batches_of_one_append_are_placed_one_after_the_other() {
    let root = tempfile::tempdir().unwrap();
    let log = open(root.path(), config());
    let mut bytes = [batch(&[1, 2]), batch(&[3]), batch(&[4, 5, 6])].concat();
    let appended = log.append(&mut bytes, 9, NOW).unwrap();
    assert_eq!((appended.first_offset, appended.last_offset, appended.record_count), (0, 5, 6));
    assert_eq!((appended.bytes, appended.log_append_time, appended.rolled), (bytes.len(), -1, false));
    let slice = log.plan_read(Offset(0)..Offset::MAX, usize::MAX, true).unwrap();
    let mut read = vec![0; slice.len];
    slice.file.read_exact_at(&mut read, slice.position).unwrap();
    assert_eq!(read, bytes, "what is in the file is what was patched in place");
    let headers: Vec<BatchHeader> = Batches::new(&read).map(|batch| batch.unwrap().0).collect();
    assert_eq!(headers.iter().map(|header| header.base_offset).collect::<Vec<_>>(), [0, 2, 3]);
    assert!(headers.iter().all(|header| header.partition_leader_epoch == 9));
}

#[test]
fn a_leader_whose_epoch_is_over_appends_nothing() {
    let root = tempfile::tempdir().unwrap();
    let log = open(root.path(), config());
    log.begin_epoch(3).unwrap();
    log.append(&mut batch(&[1]), 3, NOW).unwrap();
    log.fence_leaders_before(4);
    log.fence_leaders_before(2);
    let refused = log.append(&mut batch(&[1]), 3, NOW);
    assert!(matches!(refused, Err(AppendError::LeaderFenced { epoch: 3, oldest: 4 })), "{refused:?}");
    let refused = log.append_as_coordinator(&mut batch(&[1]), 3, NOW);
    assert!(matches!(refused, Err(AppendError::LeaderFenced { epoch: 3, oldest: 4 })), "{refused:?}");
    assert_eq!((log.log_end_offset(), log.latest_epoch()), (1, Some(3)), "a fence begins no epoch");
    log.append(&mut batch(&[1]), 4, NOW).unwrap();
    log.begin_epoch(6).unwrap();
    assert!(matches!(log.append(&mut batch(&[1]), 5, NOW), Err(AppendError::LeaderFenced { epoch: 5, oldest: 6 })));
}

#[test]
fn log_append_time_is_stamped_and_the_checksum_follows() {
    let root = tempfile::tempdir().unwrap();
    let log = open(root.path(), LogConfig { timestamp_type: TimestampType::LogAppendTime, ..config() });
    let (mut bytes, _) = build(&[10, 20], 0, (5, 0, 0), Compression::Lz4);
    let mut again = bytes.clone();
    assert_eq!(log.append(&mut bytes, 0, NOW + 77).unwrap().log_append_time, NOW + 77);
    let retried = log.append(&mut again, 0, NOW + 99).unwrap();
    assert!(retried.duplicate);
    assert_eq!(retried.log_append_time, NOW + 77, "a retry gets the time of the first append");
    let found = log.find_timestamp(NOW + 77).unwrap().unwrap();
    assert_eq!((found.timestamp, found.offset), (NOW + 77, 0));
    drop(log);
    let how = OpenLog { clean_shutdown: false, recovery_point: 0, log_start_offset: 0, high_watermark: 0, now_ms: NOW };
    assert_eq!(Log::open(root.path(), config(), how).unwrap().1.truncated_bytes, 0);
}

#[test]
fn bad_batches_are_refused_and_leave_nothing() {
    let root = tempfile::tempdir().unwrap();
    let log = open(root.path(), LogConfig { max_message_bytes: 1000, ..config() });
    let good = batch(&[10]);
    let refused = |mut bytes: Vec<u8>| match log.append(&mut bytes, 0, NOW) {
        Err(AppendError::Invalid(reason)) => reason,
        other => panic!("{other:?}"),
    };
    let mut flipped = good.clone();
    flipped[70] ^= 1;
    assert!(matches!(refused(flipped), InvalidBatch::Corrupt(_)));
    for cut in 1..good.len() {
        let reason = refused(good[..cut].to_vec());
        assert!(matches!(reason, InvalidBatch::Corrupt(_) | InvalidBatch::InvalidRecord { .. }), "{reason}");
    }
    let followed = [good.clone(), good[..30].to_vec()].concat();
    assert!(matches!(refused(followed), InvalidBatch::InvalidRecord { .. }), "what is cut is no batch");
    let mut old = good.clone();
    old[16] = 1;
    assert!(matches!(refused(old), InvalidBatch::Corrupt(_)), "as a message it has another checksum");
    assert!(matches!(refused(batch(&[2000])), InvalidBatch::TooLarge { .. }));
    let mut huge = [batch(&[900]), batch(&[900]), batch(&[900]), batch(&[900]), batch(&[900])].concat();
    assert!(matches!(log.append(&mut huge, 0, NOW), Err(AppendError::TooLarge { limit: 4000, .. })));
    assert_eq!((log.log_end_offset(), log.size_bytes()), (0, 0));
    assert_eq!(log.append(&mut [], 0, NOW).unwrap().bytes, 0);
}

#[test]
fn a_follower_keeps_offsets_and_epochs_and_refuses_damage() {
    let root = tempfile::tempdir().unwrap();
    let (leader, follower) = (open(&root.path().join("l-0"), config()), open(&root.path().join("f-0"), config()));
    let mut bytes = [batch(&[1, 2]), batch(&[3])].concat();
    leader.append(&mut bytes, 4, NOW).unwrap();
    let mut damaged = bytes.clone();
    *damaged.last_mut().unwrap() ^= 1;
    assert!(matches!(follower.append_as_follower(&damaged, NOW), Err(AppendError::Invalid(_))));
    assert_eq!(follower.append_as_follower(&bytes, NOW).unwrap().last_offset, 2);
    assert!(matches!(
        follower.append_as_follower(&bytes, NOW),
        Err(AppendError::UnexpectedOffset { expected: 3, found: 0 })
    ));
    assert_eq!(follower.end_offset_for_epoch(4), (4, 3));
}

#[test]
fn forced_flushes_move_the_recovery_point() {
    let root = tempfile::tempdir().unwrap();
    let log = open(root.path(), LogConfig { flush_messages: 3, ..config() });
    log.append(&mut batch(&[1, 1]), 0, NOW).unwrap();
    assert_eq!(log.recovery_point(), 0);
    log.append(&mut batch(&[1, 1]), 0, NOW).unwrap();
    assert_eq!(log.recovery_point(), 4);
}

/// A log whose active file is replaced by a device before it is opened for the first time.
fn log_on_device(root: &Path, device: &str) -> Log {
    open(root, config()).close().unwrap();
    let log = open(root, config());
    let file = root.join("00000000000000000000.log");
    fs::remove_file(&file).unwrap();
    symlink(device, &file).unwrap();
    log
}

#[test]
fn a_write_that_cannot_be_undone_takes_the_log_offline() {
    let root = tempfile::tempdir().unwrap();
    let log = log_on_device(root.path(), "/dev/full");
    match log.append(&mut batch(&[1]), 0, NOW) {
        Err(AppendError::Io { path, .. }) => assert!(path.ends_with("00000000000000000000.log")),
        other => panic!("{other:?}"),
    }
    assert!(matches!(log.append(&mut batch(&[1]), 0, NOW), Err(AppendError::Offline { .. })));
    assert!(log.is_offline());
    assert_eq!(log.log_end_offset(), 0);
}

#[test]
fn a_sync_that_failed_is_never_tried_again_as_success() {
    let root = tempfile::tempdir().unwrap();
    let log = log_on_device(root.path(), "/dev/null");
    log.append(&mut batch(&[1]), 0, NOW).unwrap();
    assert!(matches!(log.flush(), Err(LogError::Io { .. })));
    assert!(matches!(log.flush(), Err(LogError::Offline { .. })));
    assert!(matches!(log.close(), Err(LogError::Offline { .. })));
    assert!(matches!(log.append(&mut batch(&[1]), 0, NOW), Err(AppendError::Offline { .. })));
    assert_eq!(log.recovery_point(), 0);
}

/// A small tmpfs, unmounted when it goes.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount(bytes: u64) -> Option<Self> {
        let root = tempfile::tempdir().unwrap();
        let size = format!("size={bytes}");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(root.path()).output();
        mounted.is_ok_and(|output| output.status.success()).then_some(Self(root))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).output();
    }
}

#[test]
fn a_full_disk_refuses_the_append_that_does_not_fit_and_harms_nothing() {
    let Some(disk) = SmallDisk::mount(1 << 20) else {
        eprintln!("skipped: needs the right to mount a tmpfs");
        return;
    };
    let large = LogConfig { segment_bytes: 1 << 30, max_message_bytes: 1 << 20, ..config() };
    let log = open(&disk.0.path().join("t-0"), large.clone());
    let mut fitted = 0;
    let full = loop {
        let (mut bytes, _) = build(&[150_000], 0, (1, 0, fitted), Compression::None);
        match log.append(&mut bytes, 0, NOW) {
            Ok(_) => fitted += 1,
            Err(error) => break error,
        }
    };
    assert!(
        matches!(&full, AppendError::Io { source, .. } if source.kind() == std::io::ErrorKind::StorageFull),
        "{full}"
    );
    assert!(fitted >= 4);
    assert_eq!(log.log_end_offset(), i64::from(fitted));
    let file = disk.0.path().join("t-0/00000000000000000000.log");
    assert_eq!(fs::metadata(&file).unwrap().len(), log.size_bytes());
    // The producer goes on with the same sequence number when there is room for it.
    let (mut small, _) = build(&[10], 0, (1, 0, fitted), Compression::None);
    assert!(!log.append(&mut small, 0, NOW).unwrap().duplicate);
    drop(log);
    let how = OpenLog { clean_shutdown: false, recovery_point: 0, log_start_offset: 0, high_watermark: 0, now_ms: NOW };
    let (log, recovered) = Log::open(&disk.0.path().join("t-0"), large, how).unwrap();
    assert_eq!((log.log_end_offset(), recovered.truncated_bytes), (i64::from(fitted) + 1, 0));
}

#[test]
fn readers_see_whole_batches_while_others_append_and_roll() {
    let root = tempfile::tempdir().unwrap();
    let log = open(root.path(), config());
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..3)
            .map(|id| {
                let log = &log;
                scope.spawn(move || {
                    for n in 0..300 {
                        let (mut bytes, _) = build(&[n as usize % 90, 40], 0, (id, 0, n * 2), Compression::None);
                        assert!(!log.append(&mut bytes, 0, NOW).unwrap().duplicate);
                    }
                })
            })
            .collect();
        for _ in 0..2 {
            scope.spawn(|| {
                let mut offset = 0;
                while offset < 1800 {
                    offset = read_from(&log, offset);
                    assert!(!done.load(Ordering::Acquire) || offset <= log.log_end_offset());
                }
            });
        }
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        done.store(true, Ordering::Release);
    });
    assert_eq!(log.log_end_offset(), 1800);
    assert!(log.segment_count() > 5);
}

/// Reads what follows `offset` now, checks that batches are whole and in order; returns the next offset.
fn read_from(log: &Log, mut offset: i64) -> i64 {
    let slice = log.plan_read(Offset(offset)..Offset::MAX, 3000, true).unwrap();
    let mut bytes = vec![0; slice.len];
    slice.file.read_exact_at(&mut bytes, slice.position).unwrap();
    for batch in Batches::new(&bytes) {
        let Ok((header, _)) = batch else { break };
        assert_eq!(header.base_offset, offset);
        offset = header.next_offset();
    }
    offset
}

#[test]
fn a_roll_forgets_no_producer_however_old_its_records_are() {
    let root = tempfile::tempdir().unwrap();
    let log = open(root.path(), LogConfig { producer_id_expiration_ms: 1000, ..config() });
    let old = build(&[10], -1_000_000, (5, 0, 0), Compression::None).0;
    log.append(&mut old.clone(), 0, NOW).unwrap();
    log.roll(NOW).unwrap();
    assert!(log.append(&mut old.clone(), 0, NOW).unwrap().duplicate);
    log.forget_old(NOW);
    assert!(!log.append(&mut old.clone(), 0, NOW).unwrap().duplicate);
}

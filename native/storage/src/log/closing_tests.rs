//! Closing many logs: the syncs, their number, and the state after a power failure.

use std::io;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::close_all;
use crate::producer::producer_snapshot;
use crate::{Log, LogError, OpenLog};
use pybroker_record::{Compression, Offset};
use pybroker_sys::faults::{Crash, Done, FaultLayer};
use pybroker_sys::file_system::FileSystem;

use crate::log_fixture::{NOW, build, config, quick_directory};

const SHARED_FROM: usize = 8;
const THREADS: NonZeroUsize = NonZeroUsize::new(3).unwrap();

fn open(root: &Path, index: usize, clean_shutdown: bool) -> Log {
    let how = OpenLog { clean_shutdown, recovery_point: 0, log_start_offset: 0, high_watermark: 0, now_ms: NOW };
    Log::open(&root.join(format!("t-{index}")), config(), how).unwrap().0
}

fn append(log: &Log) {
    log.append(&mut build(&[100, 150], 0, (7, 0, 0), Compression::None).0, 3, NOW).unwrap();
}

fn close(logs: &[Log], root: &Path) -> Vec<Result<(), LogError>> {
    let logs: Vec<&Log> = logs.iter().collect();
    close_all(&logs, Some(&FileSystem::assumed(root)), SHARED_FROM, THREADS)
}

/// Records the changes below `root` from this call on.
fn watch(layer: &FaultLayer) -> Arc<Mutex<Vec<Done>>> {
    let seen: Arc<Mutex<Vec<Done>>> = Arc::default();
    let into = Arc::clone(&seen);
    layer.fail_when(move |done| {
        into.lock().push(done.clone());
        None
    });
    seen
}

fn count(seen: &Mutex<Vec<Done>>, wanted: impl Fn(&Done) -> bool) -> usize {
    seen.lock().iter().filter(|done| wanted(done)).count()
}

fn is_sync(done: &Done) -> bool {
    matches!(done, Done::Sync(_) | Done::SyncDirectory(_))
}

#[test]
fn many_logs_are_synced_once_together_and_few_each_by_itself() {
    for (number, shared) in [(20, true), (SHARED_FROM - 1, false)] {
        let root = quick_directory();
        let logs: Vec<Log> = (0..number).map(|index| open(root.path(), index, true)).collect();
        logs.iter().for_each(append);
        let layer = FaultLayer::over(root.path());
        let seen = watch(&layer);
        assert!(close(&logs, root.path()).iter().all(Result::is_ok));
        let together = count(&seen, |done| matches!(done, Done::SyncFileSystem(_)));
        let alone = count(&seen, is_sync);
        assert_eq!((together, alone == 0), if shared { (1, true) } else { (0, false) }, "{number} logs: {alone} syncs");
        assert!(logs.iter().all(|log| log.is_offline() && log.recovery_point() == 2));
    }
}

#[test]
fn a_log_that_was_not_written_to_is_closed_without_a_look_at_its_files() {
    let root = quick_directory();
    let logs: Vec<Log> = (0..SHARED_FROM * 2).map(|index| open(root.path(), index, true)).collect();
    // Every other log has no records; its leader has only assigned the epoch.
    logs.iter().step_by(2).for_each(append);
    logs.iter().for_each(|log| log.begin_epoch(5).unwrap());
    assert!(close(&logs, root.path()).iter().all(Result::is_ok));
    drop(logs);
    let logs: Vec<Log> = (0..SHARED_FROM * 2).map(|index| open(root.path(), index, true)).collect();
    let layer = FaultLayer::over(root.path());
    let seen = watch(&layer);
    assert!(close(&logs, root.path()).iter().all(Result::is_ok));
    assert_eq!(*seen.lock(), []);
}

#[test]
fn what_was_closed_together_survives_the_loss_of_power() {
    let root = quick_directory();
    let logs: Vec<Log> = (0..SHARED_FROM).map(|index| open(root.path(), index, true)).collect();
    let layer = FaultLayer::over(root.path());
    layer.record();
    logs.iter().for_each(append);
    assert!(close(&logs, root.path()).iter().all(Result::is_ok));
    let left = layer.crash(layer.count(), Crash::LosingAll);
    let after = quick_directory();
    for (path, bytes) in left {
        let path = after.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    for index in 0..SHARED_FROM {
        let log = open(after.path(), index, true);
        assert_eq!((log.log_end_offset(), log.recovery_point()), (2, 2));
        let duplicate = build(&[100, 150], 0, (7, 0, 0), Compression::None).0;
        assert!(log.plan_read(Offset(0)..Offset::MAX, 1 << 20, true).unwrap().len >= duplicate.len());
    }
}

#[test]
fn a_shared_sync_that_fails_closes_none_of_its_logs() {
    let root = quick_directory();
    let logs: Vec<Log> = (0..SHARED_FROM).map(|index| open(root.path(), index, true)).collect();
    logs.iter().for_each(append);
    let layer = FaultLayer::over(root.path());
    layer.fail_when(|done| matches!(done, Done::SyncFileSystem(_)).then(|| io::Error::from_raw_os_error(libc::EIO)));
    let closed = close(&logs, root.path());
    assert!(closed.iter().all(|closed| matches!(closed, Err(LogError::Io { .. }))), "{closed:?}");
    assert!(logs.iter().all(|log| log.recovery_point() == 0 && log.close().is_err()));
}

#[test]
fn a_log_that_lacked_a_descriptor_is_closed_after_the_others() {
    let root = quick_directory();
    let logs: Vec<Log> = (0..SHARED_FROM).map(|index| open(root.path(), index, true)).collect();
    logs.iter().for_each(append);
    let layer = FaultLayer::over(root.path());
    let mut left = 3;
    layer.fail_when(move |done| {
        let hit = left > 0 && matches!(done, Done::Create(_) | Done::Open(_));
        left -= usize::from(hit);
        hit.then(|| io::Error::from_raw_os_error(libc::EMFILE))
    });
    assert!(close(&logs, root.path()).iter().all(Result::is_ok));
    assert!(logs.iter().all(|log| log.recovery_point() == 2));
}

fn append_next(log: &Log, sequence: i32) {
    log.append(&mut build(&[100, 150], 0, (7, 0, sequence), Compression::None).0, 3, NOW).unwrap();
}

#[test]
fn old_snapshots_wait_for_housekeeping_after_a_clean_stop_and_not_without_bound() {
    let root = quick_directory();
    let snapshots = || producer_snapshot::offsets(&root.path().join("t-0")).unwrap();
    for restarts in 1..=10 {
        let log = open(root.path(), 0, true);
        let layer = FaultLayer::over(root.path());
        let seen = watch(&layer);
        append_next(&log, (restarts - 1) * 2);
        assert_eq!(0, count(&seen, |done| matches!(done, Done::Remove(_))));
        log.close().unwrap();
        // The newest, the one before it, and seven that an opening has left.
        let ends: Vec<i64> = (1..=i64::from(restarts)).map(|n| n * 2).collect();
        assert_eq!(ends[ends.len().saturating_sub(9)..], snapshots());
    }
    let log = open(root.path(), 0, true);
    assert_eq!(vec![6, 8, 10, 12, 14, 16, 18, 20], snapshots());
    log.forget_old(NOW);
    assert_eq!(vec![20], snapshots());
    append_next(&log, 20);
    drop(log);
    drop(open(root.path(), 0, false));
    assert_eq!(Vec::<i64>::new(), snapshots(), "what an unclean stop has left is not trusted");
}

#[test]
fn an_old_snapshot_that_is_the_newest_again_is_kept() {
    let root = quick_directory();
    for restarts in 0..3 {
        let log = open(root.path(), 0, true);
        append_next(&log, restarts * 2);
        log.close().unwrap();
    }
    let log = open(root.path(), 0, true);
    log.truncate_to(Offset(4), NOW).unwrap();
    log.forget_old(NOW);
    assert_eq!(vec![4], producer_snapshot::offsets(&root.path().join("t-0")).unwrap());
}

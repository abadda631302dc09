//! Shared syncs: the requests that wait for each sync, and the effects of a failing disk.

use std::path::Path;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use super::super::{Awaited, Leadership, Partition, Standing, Waiter, WaitingProduce};
use super::{FlushListener, GroupFlush};
use pybroker_record::Compression;
use pybroker_storage::{Log, LogConfig, LogError, OpenLog};
use pybroker_sys::faults::{Done, FaultLayer};

use crate::log_fixture::{NOW, build, config, quick_directory};

/// The listener's calls, and a method to wait for one.
#[derive(Default)]
struct Calls {
    state: Mutex<(Vec<Waiter>, Vec<String>)>,
    changed: Condvar,
}

impl Calls {
    fn wait(&self, until: impl Fn(&(Vec<Waiter>, Vec<String>)) -> bool) {
        let mut state = self.state.lock();
        while !until(&state) {
            self.changed.wait(&mut state);
        }
    }
}

impl FlushListener for Calls {
    fn wake(&self, waiter: Waiter) {
        self.state.lock().0.push(waiter);
        self.changed.notify_all();
    }

    fn failed(&self, directory: &Path, error: &LogError) {
        self.state.lock().1.push(format!("{}: {error}", directory.display()));
        self.changed.notify_all();
    }
}

fn partition(directory: &Path, index: i32) -> Arc<Partition> {
    let mut config = config();
    config.flush_group = true;
    open(directory, index, config)
}

fn open(directory: &Path, index: i32, config: LogConfig) -> Arc<Partition> {
    let how = OpenLog { clean_shutdown: true, recovery_point: 0, log_start_offset: 0, high_watermark: 0, now_ms: NOW };
    let (log, _) = Log::open(&directory.join(format!("t-{index}")), config, how).unwrap();
    let partition = Partition::new("t".into(), index, [1; 16], directory.to_path_buf(), log, 0);
    partition.become_leader(Leadership::alone(0), NOW, &mut |_| ()).unwrap();
    Arc::new(partition)
}

/// Appends a record with acks=all. Returns the missing conditions for its acknowledgement.
fn append(partition: &Partition) -> Awaited {
    let (mut bytes, _) = build(&[100], 0, (-1, -1, -1), Compression::None);
    let produced = partition.append(&mut bytes, true, NOW, &mut |waiter| panic!("{waiter:?} was woken early")).unwrap();
    produced.awaited.expect("it is not synced")
}

fn waiting(waiter: Waiter, awaited: &Awaited) -> Arc<WaitingProduce> {
    WaitingProduce::new(waiter, awaited.waits())
}

#[test]
fn an_append_is_committed_and_shown_when_a_sync_has_covered_it() {
    let root = quick_directory();
    let (partition, calls) = (partition(root.path(), 0), Arc::new(Calls::default()));
    let awaited = append(&partition);
    assert_eq!((awaited.end_offset, awaited.committed, awaited.durable), (1, true, true));
    assert_eq!((partition.high_watermark(), partition.log().log_end_offset()), (0, 1));
    let waiter = Waiter { connection: 1, request: 2 };
    let produce = waiting(waiter, &awaited);
    partition.await_acknowledgement(&awaited, &produce, &mut |_| panic!("woken before the sync"));
    let group = GroupFlush::new(Arc::clone(&calls) as Arc<dyn FlushListener>);
    group.request(&partition);
    calls.wait(|(woken, _)| *woken == [waiter]);
    assert_eq!((partition.high_watermark(), partition.log().recovery_point()), (1, 1));
    drop(group);
    assert_eq!(partition.unacknowledged(), (0, 0));
}

#[test]
fn a_deferred_append_whose_sync_is_due_is_settled_in_the_background() {
    let root = quick_directory();
    let mut every = config();
    every.flush_messages = 2;
    let (partition, calls) = (open(root.path(), 0, every), Arc::new(Calls::default()));
    let append = || {
        let (mut bytes, _) = build(&[100], 0, (-1, -1, -1), Compression::None);
        partition
            .append_as_leader_unsynced(&mut bytes, NOW, &mut |waiter| panic!("{waiter:?} was woken"))
            .unwrap()
            .last_offset
            + 1
    };
    assert!(partition.has_completed(append()), "one record may wait for the second");
    let end_offset = append();
    assert!(partition.has_committed(end_offset) && !partition.has_completed(end_offset));
    let waiter = Waiter { connection: 1, request: 2 };
    let awaited = partition.awaited_to_complete(end_offset);
    partition.await_acknowledgement(&awaited, &waiting(waiter, &awaited), &mut |_| panic!("woken before the sync"));
    let group = GroupFlush::new(Arc::clone(&calls) as Arc<dyn FlushListener>);
    group.request(&partition);
    calls.wait(|(woken, _)| *woken == [waiter]);
    assert!(partition.has_completed(end_offset));
    assert_eq!(partition.log().recovery_point(), 2);
}

#[test]
fn a_request_that_awaits_a_partition_that_went_away_is_woken_at_once() {
    let root = quick_directory();
    let partition = partition(root.path(), 0);
    let awaited = append(&partition);
    partition.log().close().unwrap();
    partition.retire(&mut |waiter| panic!("{waiter:?} was woken"));
    let (waiter, mut woken) = (Waiter { connection: 1, request: 2 }, Vec::new());
    let beyond = Awaited { end_offset: awaited.end_offset + 1, ..awaited };
    partition.await_acknowledgement(&beyond, &waiting(waiter, &beyond), &mut |waiter| woken.push(waiter));
    assert_eq!((woken, partition.standing(&beyond)), (vec![waiter], Standing::NotLeader));
    assert_eq!(partition.unacknowledged(), (0, 0));
}

#[test]
fn appends_that_gather_while_a_sync_runs_share_the_next_one() {
    let root = tempfile::tempdir().unwrap().keep().canonicalize().unwrap();
    let (first, second, calls) = (partition(&root, 0), partition(&root, 1), Arc::new(Calls::default()));
    let layer = FaultLayer::over(&root);
    let (entered, go) = (Arc::new(Mutex::new(0)), Arc::new((Mutex::new(false), Condvar::new())));
    let (counted, gate) = (Arc::clone(&entered), Arc::clone(&go));
    layer.fail_when(move |done| {
        if matches!(done, Done::Sync(path) if path.extension().is_some_and(|end| end == "log")) {
            *counted.lock() += 1;
        }
        None
    });
    let group = GroupFlush::new(Arc::new(Gated { calls: Arc::clone(&calls), gate }) as Arc<dyn FlushListener>);
    let wait_for = |request: u64, partition: &Arc<Partition>| {
        let awaited = append(partition);
        let produce = waiting(Waiter { connection: 1, request }, &awaited);
        partition.await_acknowledgement(&awaited, &produce, &mut |_| panic!("woken before the sync"));
        group.request(partition);
    };
    // The first wake-up blocks the directory's thread: later requests wait for one common sync.
    wait_for(0, &first);
    calls.wait(|(woken, _)| woken.len() == 1);
    (1..=20).for_each(|request| wait_for(request, &second));
    *go.0.lock() = true;
    go.1.notify_all();
    calls.wait(|(woken, _)| woken.len() == 21);
    assert_eq!(*entered.lock(), 2, "one sync for the first append, one for the twenty others");
    assert_eq!((group.counts().syncs, group.counts().requests), (2, 21));
    drop(layer);
    std::fs::remove_dir_all(root).unwrap();
}

/// Forwards every call, and blocks the thread at the first wake-up until the gate opens.
struct Gated {
    calls: Arc<Calls>,
    gate: Arc<(Mutex<bool>, Condvar)>,
}

impl FlushListener for Gated {
    fn wake(&self, waiter: Waiter) {
        self.calls.wake(waiter);
        let mut open = self.gate.0.lock();
        while !*open {
            self.gate.1.wait(&mut open);
        }
    }

    fn failed(&self, directory: &Path, error: &LogError) {
        self.calls.failed(directory, error);
    }
}

#[test]
fn a_sync_that_fails_is_reported_and_never_tried_again_as_if_it_could_succeed() {
    let root = quick_directory();
    let path = root.path().canonicalize().unwrap();
    let (partition, calls) = (partition(&path, 0), Arc::new(Calls::default()));
    let layer = FaultLayer::over(&path);
    let mut failed = false;
    layer.fail_when(move |done| {
        let first = matches!(done, Done::Sync(_)) && !std::mem::replace(&mut failed, true);
        first.then(|| std::io::Error::from_raw_os_error(5))
    });
    let group = GroupFlush::new(Arc::clone(&calls) as Arc<dyn FlushListener>);
    let awaited = append(&partition);
    let waiter = Waiter { connection: 1, request: 2 };
    let produce = waiting(waiter, &awaited);
    partition.await_acknowledgement(&awaited, &produce, &mut |_| panic!("woken before the sync"));
    group.request(&partition);
    calls.wait(|(woken, failures)| *woken == [waiter] && !failures.is_empty());
    assert!(calls.state.lock().1[0].starts_with(&path.display().to_string()));
    assert!(partition.standing(&awaited) == Standing::Offline);
    // The device works again, but the page is lost.
    group.request(&partition);
    calls.wait(|(_, failures)| failures.len() == 2);
    assert_eq!((partition.high_watermark(), partition.log().recovery_point()), (0, 0));
    // A later request does not wait for an event that can never occur.
    let mut woken = Vec::new();
    let late = Waiter { connection: 3, request: 4 };
    partition.await_acknowledgement(&awaited, &waiting(late, &awaited), &mut |waiter| woken.push(waiter));
    assert_eq!(woken, [late]);
}

#[test]
fn a_log_that_is_deleted_meanwhile_fails_nobody() {
    let root = quick_directory();
    let (partition, calls) = (partition(root.path(), 0), Arc::new(Calls::default()));
    append(&partition);
    partition.log().delete().unwrap();
    partition.sync(&mut |_| ()).unwrap();
    assert!(calls.state.lock().1.is_empty());
}

#[test]
fn what_recovery_found_is_synced_before_a_leader_shows_it() {
    let root = quick_directory();
    let first = partition(root.path(), 0);
    append(&first);
    drop(first);
    let mut config = config();
    config.flush_group = true;
    let how = OpenLog { clean_shutdown: false, recovery_point: 0, log_start_offset: 0, high_watermark: 0, now_ms: NOW };
    let (log, _) = Log::open(&root.path().join("t-0"), config, how).unwrap();
    assert_eq!((log.log_end_offset(), log.recovery_point()), (1, 0));
    let again = Partition::new("t".into(), 0, [1; 16], root.path().to_path_buf(), log, 0);
    again.become_leader(Leadership::alone(1), NOW, &mut |_| ()).unwrap();
    assert_eq!((again.high_watermark(), again.log().recovery_point()), (1, 1));
}

#[test]
fn a_sync_that_lacks_a_descriptor_is_tried_again_and_acknowledges_then() {
    let root = quick_directory();
    let path = root.path().canonicalize().unwrap();
    let (partition, calls) = (partition(&path, 0), Arc::new(Calls::default()));
    let awaited = append(&partition);
    // As after a period without use.
    assert_eq!((partition.log().close_idle_files(), partition.log().close_idle_files()), (0, 1));
    let layer = FaultLayer::over(&path);
    let mut left = 2;
    layer.fail_when(move |done| {
        let hit = left > 0 && matches!(done, Done::Open(_) | Done::Create(_));
        left -= usize::from(hit);
        hit.then(|| std::io::Error::from_raw_os_error(libc::EMFILE))
    });
    let group = GroupFlush::new(Arc::clone(&calls) as Arc<dyn FlushListener>);
    let waiter = Waiter { connection: 1, request: 2 };
    let produce = waiting(waiter, &awaited);
    partition.await_acknowledgement(&awaited, &produce, &mut |_| panic!("woken before the sync"));
    group.request(&partition);
    calls.wait(|(woken, _)| *woken == [waiter]);
    assert!(partition.standing(&awaited) == Standing::Reached && !partition.log().is_offline());
    assert_eq!(calls.state.lock().1.len(), 2, "each of both was reported");
}

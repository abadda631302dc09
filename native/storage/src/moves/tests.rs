//! Moves of logs with all kinds of content, with concurrent appends, retention and failures.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::copier::Copier;
use super::{LogMove, MoveError, MovedLog, move_count, prepare};
use crate::directory::partition_metadata;
use crate::log_fixture::{NOW, build, config, quick_directory};
use crate::{Log, LogConfig, OpenLog, Throttle};
use pybroker_record::{BatchHeader, Compression, EndMarker, Offset, ProducerId, set_transactional};
use pybroker_sys::faults::{Done, FaultLayer};

pub(super) const ID: [u8; 16] = [7; 16];
const UNPACED: f64 = f64::MAX;

/// Two log directories, and a log in the first one.
pub(super) struct Shelf {
    root: PathBuf,
}

/// The log, and its expected content.
pub(super) struct Filled {
    pub(super) log: Log,
    rounds: Cell<i32>,
    sequence: Cell<i32>,
    batches: Cell<usize>,
}

pub(super) fn open(home: &Path) -> Log {
    let how = OpenLog { clean_shutdown: false, recovery_point: 0, log_start_offset: 0, high_watermark: 0, now_ms: NOW };
    Log::open(home, config(), how).unwrap().0
}

/// Returns the bytes of every batch of the log.
pub(super) fn contents(log: &Log) -> Vec<Vec<u8>> {
    let (mut batches, mut offset) = (Vec::new(), log.log_start_offset());
    while offset < log.log_end_offset() {
        let slice = log.plan_read(Offset(offset)..Offset::MAX, 1, true).unwrap();
        let mut bytes = vec![0; slice.len];
        slice.file.read_exact_at(&mut bytes, slice.position).unwrap();
        offset = BatchHeader::parse(&bytes).unwrap().next_offset();
        batches.push(bytes);
    }
    batches
}

impl Shelf {
    pub(super) fn new(root: &Path) -> Self {
        fs::create_dir_all(root.join("a")).unwrap();
        fs::create_dir_all(root.join("b")).unwrap();
        Self { root: root.canonicalize().unwrap() }
    }

    pub(super) fn log(&self) -> Filled {
        let home = self.root.join("a/t-0");
        let log = open(&home);
        partition_metadata::write(&home, &ID).unwrap();
        Filled { log, rounds: Cell::new(0), sequence: Cell::new(0), batches: Cell::new(0) }
    }

    pub(super) fn prepare(&self, log: &Log) -> PathBuf {
        let there = if log.directory().starts_with(self.root.join("a")) { "b" } else { "a" };
        let future = self.root.join(there).join("t-0.0f-future");
        prepare(&log.directory(), &future).unwrap();
        future
    }

    fn move_log(&self, log: &Log) -> Result<MovedLog, MoveError> {
        let future = self.prepare(log);
        log.move_to(&future, &LogMove::default(), &Throttle::new(UNPACED), "0d", |_| {})
    }
}

impl Filled {
    pub(super) fn batches(&self) -> usize {
        self.batches.get()
    }

    pub(super) fn flush(&self) {
        self.log.flush().unwrap();
    }

    /// Appends batches of an idempotent producer, of no producer, and of transactions that are committed, aborted and
    /// left open.
    pub(super) fn fill(&self, rounds: i32) {
        self.append_counting(rounds, || 0, &mut Vec::new());
    }

    fn note(&self, change: impl Fn() -> usize, counts: &mut Vec<(usize, usize)>) {
        self.batches.set(self.batches.get() + 1);
        counts.push((change(), self.batches.get()));
    }

    /// Appends batches, and records after each the number of batches and the change that began it.
    pub(super) fn append_counting(&self, rounds: i32, change: impl Fn() -> usize, counts: &mut Vec<(usize, usize)>) {
        for _ in 0..rounds {
            let round = self.rounds.replace(self.rounds.get() + 1);
            if round % 20 == 0 {
                self.log.begin_epoch(round / 20).unwrap();
            }
            let time = self.log.log_end_offset() * 3;
            let sequence = self.sequence.replace(self.sequence.get() + if round % 2 == 0 { 2 } else { 0 });
            let producer = if round % 2 == 0 { (7, 0, sequence) } else { (-1, -1, -1) };
            let (mut bytes, _) = build(&[100 + round as usize, 150], time, producer, Compression::None);
            self.log.append(&mut bytes, round / 20, NOW).unwrap();
            self.note(&change, counts);
            let mut bytes = match round % 10 {
                3 | 7 => {
                    let sequence = round / 10 * 2 + (round % 10) / 7;
                    let (mut bytes, _) = build(&[90], time, (20, 0, sequence), Compression::None);
                    set_transactional(&mut bytes);
                    bytes
                }
                5 | 9 => {
                    let marker = EndMarker { commit: round % 10 == 5, coordinator_epoch: 1 };
                    marker.build(ProducerId(20), 0, NOW + time).unwrap()
                }
                _ => continue,
            };
            self.log.append_as_coordinator(&mut bytes, round / 20, NOW).unwrap();
            self.note(&change, counts);
        }
    }
}

/// Returns the results of all queries of a log.
fn responses(log: &Log) -> impl PartialEq + std::fmt::Debug + use<> {
    let (start, end) = (log.log_start_offset(), log.log_end_offset());
    let times: Vec<_> =
        (0..end).step_by(3).map(|at| log.find_timestamp(NOW + at * 3).unwrap().map(|found| found.offset)).collect();
    let epochs: Vec<_> = (0..9).map(|epoch| log.end_offset_for_epoch(epoch)).collect();
    let aborted: Vec<_> =
        log.aborted_transactions(Offset(start)..Offset(end)).unwrap().iter().map(|txn| txn.first_offset).collect();
    (start, end, log.size_bytes(), log.segment_count(), times, epochs, aborted, log.first_unstable_offset())
}

fn files(directory: &Path, suffix: &str) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let named = entries.filter(|path| path.to_str().unwrap().ends_with(suffix));
    named.map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(&path).unwrap())).collect()
}

#[test]
fn a_moved_log_is_the_same_log_byte_for_byte() {
    let root = quick_directory();
    let shelf = Shelf::new(root.path());
    let log = shelf.log();
    log.fill(70);
    assert!(log.log.segment_count() > 5);
    let (before, expected) = (contents(&log.log), responses(&log.log));
    let moved = shelf.move_log(&log.log).unwrap();
    let home = shelf.root.join("b/t-0");
    assert_eq!(*log.log.directory(), *home);
    assert!(moved.left.is_none());
    assert!(contents(&log.log) == before);
    assert_eq!(responses(&log.log), expected);
    for suffix in [".log", ".txnindex", ".snapshot", "leader-epoch-checkpoint", "partition.metadata"] {
        assert!(files(&home, suffix) == files(&moved.old, suffix) && !files(&home, suffix).is_empty(), "{suffix}");
    }
    for suffix in [".index", ".timeindex"] {
        let (new, old) = (files(&home, suffix), files(&moved.old, suffix));
        // The old file of the active segment has preallocated space, the new one does not.
        assert!(new.iter().all(|(name, bytes)| old[name].starts_with(bytes) && !old[name].is_empty()), "{suffix}");
    }
    assert_eq!((move_count(&home).unwrap(), log.log.recovery_point()), (1, log.log.log_end_offset()));
    fs::remove_dir_all(&moved.old).unwrap();
    log.fill(30);
    log.log.complete_transactions(log.log.log_end_offset());
    let (all, expected) = (contents(&log.log), responses(&log.log));
    assert_eq!(all.len(), log.batches());
    log.flush();
    log.log.close().unwrap();
    drop(log);
    let how = OpenLog { clean_shutdown: true, recovery_point: 0, log_start_offset: 0, high_watermark: 0, now_ms: NOW };
    for clean_shutdown in [true, false] {
        let again = Log::open(&home, config(), OpenLog { clean_shutdown, ..how }).unwrap().0;
        again.complete_transactions(again.log_end_offset());
        assert!(contents(&again) == all, "clean: {clean_shutdown}");
        assert_eq!(responses(&again), expected, "clean: {clean_shutdown}");
    }
}

#[test]
fn a_producer_that_nobody_remembers_but_the_log_is_known_after_the_move() {
    let root = quick_directory();
    let shelf = Shelf::new(root.path());
    let log = shelf.log();
    log.fill(1);
    let (mut first, _) = build(&[10], 0, (99, 0, 0), Compression::None);
    let again = first.clone();
    log.log.append(&mut first, 0, NOW).unwrap();
    log.log.roll(NOW).unwrap();
    log.log.advance_log_start(log.log.log_end_offset()).unwrap();
    assert_eq!(log.log.segment_count(), 1);
    shelf.move_log(&log.log).unwrap();
    assert!(log.log.append(&mut again.clone(), 0, NOW).unwrap().duplicate);
    log.log.close().unwrap();
    let log = open(&shelf.root.join("b/t-0"));
    assert!(log.append(&mut again.clone(), 0, NOW).unwrap().duplicate, "by the snapshot that came along");
}

#[test]
fn appends_and_reads_go_on_while_a_log_is_moved_to_and_fro() {
    let root = quick_directory();
    let shelf = Shelf::new(root.path());
    // Large segments, because copying a segment costs more than copying its bytes.
    let roomy = LogConfig { segment_bytes: 1 << 20, segment_ms: i64::MAX, segment_index_bytes: 1 << 16, ..config() };
    let how = OpenLog { clean_shutdown: false, recovery_point: 0, log_start_offset: 0, high_watermark: 0, now_ms: NOW };
    let log = Log::open(&shelf.root.join("a/t-0"), roomy, how).unwrap().0;
    partition_metadata::write(&log.directory(), &ID).unwrap();
    let (done, all_written) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut appended = 0;
            while !done.load(Ordering::Acquire) {
                let (mut bytes, _) = build(&[200, 300], appended * 3, (-1, -1, -1), Compression::None);
                let at = log.append(&mut bytes, 0, NOW).unwrap();
                assert_eq!(at.first_offset, appended);
                appended += 2;
            }
            appended
        });
        let reader = scope.spawn(|| {
            let mut offset = 0;
            while !all_written.load(Ordering::Acquire) || offset < log.log_end_offset() {
                let slice = log.plan_read(Offset(offset)..Offset::MAX, 1, true).unwrap();
                if slice.len > 0 {
                    let mut bytes = vec![0; slice.len];
                    slice.file.read_exact_at(&mut bytes, slice.position).unwrap();
                    let header = BatchHeader::parse(&bytes).unwrap();
                    assert_eq!(header.base_offset, offset);
                    offset = header.next_offset();
                }
            }
            offset
        });
        for count in 1..=12 {
            // At least one record is written before each move, however fast the moves are.
            let before = log.log_end_offset();
            while log.log_end_offset() == before && !writer.is_finished() {
                std::thread::yield_now();
            }
            let moved = shelf.move_log(&log).unwrap();
            assert!(moved.left.is_none());
            fs::remove_dir_all(&moved.old).unwrap();
            assert_eq!(move_count(&log.directory()).unwrap(), count);
            log.flush().unwrap();
        }
        done.store(true, Ordering::Release);
        let appended = writer.join().unwrap();
        all_written.store(true, Ordering::Release);
        assert!(appended >= 12 * 2);
        assert_eq!(reader.join().unwrap(), appended);
    });
    let end = log.log_end_offset();
    drop(log);
    assert_eq!(open(&shelf.root.join("a/t-0")).log_end_offset(), end);
}

#[test]
fn what_retention_takes_meanwhile_does_not_come_along() {
    let root = quick_directory();
    let shelf = Shelf::new(root.path());
    let log = shelf.log();
    log.fill(60);
    let future = shelf.prepare(&log.log);
    let (state, throttle) = (LogMove::default(), Throttle::new(UNPACED));
    let mut copier = Copier::new(&log.log, &future, &state, &throttle);
    copier.copy(&log.log.view.load_full()).unwrap();
    assert_eq!(state.bytes(), log.log.size_bytes());
    assert_eq!(state.end_offset(), log.log.log_end_offset());
    let start = log.log.log_end_offset() / 2;
    let removed = log.log.advance_log_start(start).unwrap();
    assert!(removed.segments > 2);
    log.log.switch(copier, "0d", |_| {}).unwrap();
    assert_eq!(log.log.log_start_offset(), start);
    let home = shelf.root.join("b/t-0");
    let mut bases: Vec<_> = files(&home, ".log").into_keys().collect();
    bases.sort();
    assert_eq!(bases.len(), log.log.segment_count());
    assert!(files(&home, ".deleted").is_empty());
    log.fill(5);
    assert!(contents(&log.log).len() > 5);
}

#[test]
fn a_move_that_is_made_again_writes_only_what_differs() {
    let root = quick_directory();
    let shelf = Shelf::new(root.path());
    let log = shelf.log();
    log.fill(80);
    let future = shelf.prepare(&log.log);
    let (state, throttle) = (LogMove::default(), Throttle::new(UNPACED));
    Copier::new(&log.log, &future, &state, &throttle).copy(&log.log.view.load_full()).unwrap();
    let segments = log.log.segment_count();
    // As if the log has grown elsewhere since, or the device has lost a part.
    let damaged = future.join("00000000000000000000.log");
    let file = fs::OpenOptions::new().write(true).open(&damaged).unwrap();
    file.write_all_at(b"other", 100).unwrap();
    fs::write(future.join("00000000000000999999.log"), b"of nobody").unwrap();
    let written = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let (layer, noted) = (FaultLayer::over(&shelf.root.join("b")), Arc::clone(&written));
    layer.fail_when(move |done| {
        if let Done::Write(path) = done {
            noted.lock().push(path.clone());
        }
        None
    });
    shelf.move_log(&log.log).unwrap();
    let logs = written.lock().iter().filter(|path| path.extension().is_some_and(|suffix| suffix == "log")).count();
    assert_eq!(logs, 1, "of {segments}: the damaged one");
    assert!(contents(&log.log) == contents(&open(&shelf.root.join("b/t-0"))));
    assert!(!shelf.root.join("b/t-0/00000000000000999999.log").exists());
}

#[test]
fn a_move_that_is_cancelled_or_in_the_way_of_a_close_ends() {
    let root = quick_directory();
    let shelf = Shelf::new(root.path());
    let log = shelf.log();
    log.fill(60);
    let future = shelf.prepare(&log.log);
    let state = LogMove::default();
    state.cancel();
    let ended = log.log.move_to(&future, &state, &Throttle::new(UNPACED), "0d", |_| panic!("moved"));
    assert!(matches!(ended, Err(MoveError::Ended)));
    log.fill(5);
    let (slow, state) = (Throttle::new(1000.0), LogMove::default());
    std::thread::scope(|scope| {
        let moving = scope.spawn(|| log.log.move_to(&future, &state, &slow, "0d", |_| panic!("moved")));
        while state.bytes() == 0 {
            std::thread::yield_now();
        }
        log.log.close().unwrap();
        assert!(matches!(moving.join().unwrap(), Err(MoveError::Ended)));
    });
    assert_eq!(contents(&open(&shelf.root.join("a/t-0"))).len(), log.batches());
}

#[test]
fn whatever_fails_in_the_new_place_the_log_is_whole_in_one_of_them() {
    let mut seen = [0, 0];
    for failing in 0.. {
        let root = quick_directory();
        let shelf = Shelf::new(root.path());
        let log = shelf.log();
        log.fill(25);
        log.flush();
        let future = shelf.prepare(&log.log);
        let (layer, mut left) = (FaultLayer::over(&shelf.root.join("b")), failing);
        layer.fail_when(move |_| {
            left -= 1;
            (left < 0).then(|| std::io::Error::from_raw_os_error(5))
        });
        let moved = log.log.move_to(&future, &LogMove::default(), &Throttle::new(UNPACED), "0d", |_| {});
        layer.fail_when(|_| None);
        let there = log.log.directory().starts_with(shelf.root.join("b"));
        let before = contents(&log.log);
        assert_eq!(before.len(), log.batches(), "change {failing}: reads go on");
        if moved.is_ok() {
            assert!(failing > 20 && there);
            assert!(seen.iter().all(|times| *times > 0), "{seen:?}");
            return;
        }
        assert_eq!(log.log.is_offline(), there, "change {failing}: a log that did not move goes on");
        seen[usize::from(there)] += 1;
        if !there {
            log.fill(3);
        }
        let end = log.log.log_end_offset();
        let home = log.log.directory();
        drop(log);
        assert_eq!(open(&home).log_end_offset(), end, "change {failing}");
    }
}

#[test]
fn an_old_directory_that_cannot_be_renamed_is_out_of_date() {
    let root = quick_directory();
    let shelf = Shelf::new(root.path());
    let log = shelf.log();
    log.fill(25);
    let layer = FaultLayer::over(&shelf.root.join("a"));
    layer.fail_when(|done| matches!(done, Done::Rename(..)).then(|| std::io::Error::from_raw_os_error(5)));
    let moved = shelf.move_log(&log.log).unwrap();
    assert!(moved.left.is_some() && moved.old == shelf.root.join("a/t-0"));
    log.fill(5);
    log.flush();
    assert!(!log.log.is_offline());
    assert_eq!(move_count(&shelf.root.join("a/t-0")).unwrap(), 0);
    assert_eq!(move_count(&shelf.root.join("b/t-0")).unwrap(), 1);
    assert_eq!(contents(&open(&shelf.root.join("b/t-0"))).len(), log.batches());
}

//! Crashes at every point: a log's file changes are recorded and cut after each one. The files that a crash may leave
//! must open as a log with all flushed records, and with no record that was never written.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::directory::checkpoint::{OffsetCheckpoint, replace_file};
use crate::{Log, OpenLog};
use pybroker_record::{BatchHeader, Compression, EndMarker, Offset, ProducerId, set_base_offset, set_transactional};
use pybroker_sys::faults::{Crash, FaultLayer};
use pybroker_sys::file;

use crate::log_fixture::{NOW, build, config, quick_directory};

const RECOVERY_POINTS: &str = "recovery-point-offset-checkpoint";
const LOG_STARTS: &str = "log-start-offset-checkpoint";
const CLEAN_SHUTDOWN: &str = ".kafka_cleanshutdown";
const SEEDS: u64 = 4;

/// A stored batch, and the timestamps of its records.
#[derive(Debug)]
struct Stored {
    bytes: Vec<u8>,
    times: Vec<i64>,
}

impl Stored {
    fn header(&self) -> BatchHeader {
        BatchHeader::parse(&self.bytes).unwrap()
    }
}

/// The log's content from the change with this number on (or in the middle of it).
struct Version {
    since: usize,
    batches: Vec<Arc<Stored>>,
    log_start: i64,
}

/// A log whose changes are recorded, and the offsets that were flushed.
struct Recording {
    layer: Arc<FaultLayer>,
    root: PathBuf,
    log: Option<Log>,
    epoch: i32,
    sequence: i32,
    versions: Vec<Version>,
    /// From the change with this number on, everything below the offset is on the device.
    promises: Vec<(usize, i64)>,
}

fn open(root: &Path) -> Log {
    let offset = |name: &str| {
        let checkpoint = OffsetCheckpoint::read(&root.join(name)).unwrap();
        checkpoint.offsets.first().map_or(0, |entry| entry.2)
    };
    let clean_shutdown = root.join(CLEAN_SHUTDOWN).exists();
    let how = OpenLog {
        clean_shutdown,
        recovery_point: offset(RECOVERY_POINTS),
        log_start_offset: offset(LOG_STARTS),
        high_watermark: 0,
        now_ms: NOW,
    };
    if clean_shutdown {
        file::remove(&root.join(CLEAN_SHUTDOWN)).unwrap();
        file::sync_directory(root).unwrap();
    }
    Log::open(&root.join("t-0"), config(), how).unwrap().0
}

impl Recording {
    fn begin(root: &Path) -> Self {
        let root = root.canonicalize().unwrap();
        let layer = FaultLayer::over(&root);
        layer.record();
        let log = Some(open(&root));
        let versions = vec![Version { since: 0, batches: Vec::new(), log_start: 0 }];
        Self { layer, root, log, epoch: 0, sequence: 0, versions, promises: vec![(0, 0)] }
    }

    fn log(&self) -> &Log {
        self.log.as_ref().unwrap()
    }

    fn change(&mut self, change: impl FnOnce(&mut Vec<Arc<Stored>>, &mut i64)) {
        let last = self.versions.last().unwrap();
        let (mut batches, mut log_start) = (last.batches.clone(), last.log_start);
        change(&mut batches, &mut log_start);
        self.versions.push(Version { since: self.layer.count(), batches, log_start });
    }

    fn lead(&mut self, epoch: i32) {
        self.epoch = epoch;
        self.log().begin_epoch(epoch).unwrap();
    }

    fn append(&mut self, count: usize) {
        for number in 0..count {
            let time = self.log().log_end_offset() * 3 - 40 * (number as i64 % 3);
            let producer = if number % 2 == 0 { (7, 0, self.sequence) } else { (-1, -1, -1) };
            self.sequence += if number % 2 == 0 { 2 } else { 0 };
            let (sent, times) = build(&[100 + number, 150], time, producer, Compression::None);
            let since = self.layer.count();
            let mut bytes = sent;
            self.log().append(&mut bytes, self.epoch, NOW).unwrap();
            self.change(|batches, _| batches.push(Arc::new(Stored { bytes, times })));
            // A crash may occur between the write and the response.
            self.versions.last_mut().unwrap().since = since;
        }
    }

    /// Appends a transactional record of this producer, or a marker as the coordinator does.
    fn transact(&mut self, producer: i64, sequence: i32) {
        let time = self.log().log_end_offset() * 3;
        let (mut bytes, times) = build(&[120], time, (producer, 0, sequence), Compression::None);
        set_transactional(&mut bytes);
        self.append_as_coordinator(bytes, times);
    }

    fn end(&mut self, producer: i64, commit: bool) {
        let time = NOW + self.log().log_end_offset() * 3;
        let marker = EndMarker { commit, coordinator_epoch: 1 };
        self.append_as_coordinator(marker.build(ProducerId(producer), 0, time).unwrap(), vec![time]);
    }

    fn append_as_coordinator(&mut self, mut bytes: Vec<u8>, times: Vec<i64>) {
        let since = self.layer.count();
        self.log().append_as_coordinator(&mut bytes, self.epoch, NOW).unwrap();
        self.change(|batches, _| batches.push(Arc::new(Stored { bytes, times })));
        self.versions.last_mut().unwrap().since = since;
    }

    fn checkpoint(&self, name: &str, offset: i64) {
        let checkpoint = OffsetCheckpoint { offsets: vec![("t".into(), 0, offset)] };
        checkpoint.write(&self.root.join(name)).unwrap();
    }

    fn flush(&mut self) {
        let end = self.log().flush().unwrap();
        assert_eq!(end, self.log().log_end_offset());
        self.promises.push((self.layer.count(), end));
        self.checkpoint(RECOVERY_POINTS, end);
    }

    fn roll(&self) {
        self.log().roll(NOW).unwrap();
    }

    fn truncate(&mut self, offset: i64) {
        let since = self.layer.count();
        let flushed = self.promises.last().unwrap().1;
        self.promises.push((since, flushed.min(offset)));
        self.log().truncate_to(Offset(offset), NOW).unwrap();
        let end = self.log().log_end_offset();
        self.promises.push((since, flushed.min(end)));
        self.change(|batches, _| batches.retain(|batch| batch.header().base_offset < end));
        let last = self.versions.last_mut().unwrap();
        last.since = since;
        let newest = last.batches.iter().map(|batch| batch.header()).rfind(|header| header.producer_id == 7);
        self.sequence = newest.map_or(0, |header| header.base_sequence + header.record_count);
        // Written before the next append, as a follower's broker does.
        self.checkpoint(RECOVERY_POINTS, self.log().recovery_point());
    }

    fn advance_start(&mut self, offset: i64) {
        let since = self.layer.count();
        self.log().advance_log_start(offset).unwrap();
        self.change(|_, log_start| *log_start = offset);
        self.versions.last_mut().unwrap().since = since;
        self.checkpoint(LOG_STARTS, offset);
    }

    fn restart(&mut self) {
        self.log().close().unwrap();
        let end = self.log().log_end_offset();
        self.promises.push((self.layer.count(), end));
        self.log = None;
        self.checkpoint(RECOVERY_POINTS, end);
        replace_file(&self.root.join(CLEAN_SHUTDOWN), b"{}", true).unwrap();
        self.log = Some(open(&self.root));
        assert_eq!(self.log().log_end_offset(), end);
    }

    /// Performs every operation that changes a log's files, each before and after a flush.
    fn run(&mut self) {
        self.lead(3);
        self.append(5);
        self.flush();
        self.append(14);
        self.flush();
        self.roll();
        self.append(3);
        self.lead(4);
        self.append(4);
        self.roll();
        self.append(3);
        self.flush();
        self.append(2);
        self.roll();
        self.append(2);
        self.truncate(45);
        self.lead(5);
        self.append(16);
        self.truncate(50);
        self.lead(6);
        self.append(6);
        self.flush();
        self.advance_start(30);
        self.append(3);
        self.restart();
        self.append(5);
        self.roll();
        self.append(2);
        self.flush();
        self.append(3);
    }

    /// Performs transactions that are committed, aborted and left open across rolls, flushes, truncations and a
    /// restart.
    fn run_transactions(&mut self) {
        self.lead(3);
        self.append(3);
        self.transact(21, 0);
        self.transact(22, 0);
        self.flush();
        self.end(21, false);
        self.roll();
        self.transact(21, 1);
        self.append(2);
        self.end(22, true);
        self.flush();
        self.end(21, false);
        self.transact(23, 0);
        self.roll();
        self.append(2);
        self.transact(22, 1);
        self.end(22, false);
        self.flush();
        self.transact(21, 2);
        self.end(21, false);
        let end = self.log().log_end_offset();
        self.truncate(end - 2);
        self.append(2);
        self.restart();
        self.transact(22, 2);
        self.end(23, false);
        self.roll();
        self.end(22, false);
        self.flush();
        self.append(2);
    }

    /// Compares the index of aborted transactions and the producer state with the batches.
    fn check_transactions(log: &Log, found: &[Vec<u8>], what: &str) {
        let mut open: BTreeMap<i64, i64> = BTreeMap::new();
        let mut aborted = Vec::new();
        for bytes in found {
            let header = BatchHeader::parse(bytes).unwrap();
            match EndMarker::parse(&header, bytes).unwrap() {
                Some(marker) => {
                    let first = open.remove(&header.producer_id);
                    if let Some(first) = first.filter(|_| !marker.commit) {
                        aborted.push((header.producer_id, first, header.base_offset));
                    }
                }
                None if header.is_transactional() => {
                    open.entry(header.producer_id).or_insert(header.base_offset);
                }
                None => {}
            }
        }
        log.complete_transactions(log.log_end_offset());
        assert_eq!(log.first_unstable_offset(), open.values().min().copied(), "{what}: what is unstable");
        let found = log.aborted_transactions(Offset(log.log_start_offset())..Offset(log.log_end_offset())).unwrap();
        let found: Vec<_> = found.iter().map(|txn| (txn.producer_id, txn.first_offset, txn.last_offset)).collect();
        assert_eq!(found, aborted, "{what}: what was aborted");
    }

    /// Opens the files that a crash has left, and compares the log with the flushed offsets and with all earlier
    /// versions.
    fn check(&self, cut: usize, left: &BTreeMap<PathBuf, Vec<u8>>, what: &str) {
        let place = lay_out(left);
        let log = open(place.path());
        let (_, promised) = *self.promises.iter().rfind(|(since, _)| *since <= cut).unwrap();
        let found = read_all(&log, what);
        let end = log.log_end_offset();
        assert!(end >= promised, "{what}: the log ends at {end}, {promised} was flushed");
        let versions = || self.versions.iter().rev().filter(|version| version.since <= cut);
        let started = versions().map(|version| version.log_start).max().unwrap();
        assert!(log.log_start_offset() <= started, "{what}: begins at {}, not {started}", log.log_start_offset());
        let Some(version) = versions().find(|version| is_part(&found, &version.batches)) else {
            panic!("{what}: the log holds {:?}, which it never did", offsets(&found));
        };
        if log.log_start_offset() == 0 {
            // If the log begins later, a transaction may have begun before its start.
            Self::check_transactions(&log, &found, what);
        }
        self.check_look_ups(&log, &found, &version.batches, what);
    }

    fn check_look_ups(&self, log: &Log, found: &[Vec<u8>], stored: &[Arc<Stored>], what: &str) {
        let (start, end) = (log.log_start_offset(), log.log_end_offset());
        for offset in start..end {
            let slice = log.plan_read(Offset(offset)..Offset(end), 1, true).unwrap();
            let mut bytes = vec![0; slice.len];
            slice.file.read_exact_at(&mut bytes, slice.position).unwrap();
            let header = BatchHeader::parse(&bytes).unwrap();
            assert!((header.base_offset..header.next_offset()).contains(&offset), "{what}: offset {offset}");
        }
        let records = || {
            let inside = |batch: &&Arc<Stored>| batch.header().base_offset < end;
            let each = |batch: &Arc<Stored>| {
                let base = batch.header().base_offset;
                batch.times.iter().enumerate().map(move |(n, time)| (*time, base + n as i64)).collect::<Vec<_>>()
            };
            stored.iter().filter(inside).flat_map(each).filter(|(_, offset)| *offset >= start)
        };
        for target in records().map(|(time, _)| time).step_by(5) {
            let expected = records().find(|(time, _)| *time >= target);
            let response = log.find_timestamp(target).unwrap().map(|at| (at.timestamp, at.offset));
            assert_eq!(response, expected, "{what}: time {target}");
        }
        for epoch in 3..=6 {
            let headers = || found.iter().map(|bytes| BatchHeader::parse(bytes).unwrap());
            let first_later = headers().find(|header| header.partition_leader_epoch > epoch);
            if headers().any(|header| header.partition_leader_epoch == epoch) {
                let expected = first_later.map_or(end, |header| header.base_offset);
                assert_eq!(log.end_offset_for_epoch(epoch), (epoch, expected), "{what}: epoch {epoch}");
            }
        }
        let newest = stored.iter().rfind(|batch| {
            let header = batch.header();
            header.producer_id == 7 && (start..end).contains(&header.base_offset)
        });
        if let Some(newest) = newest {
            let mut again = newest.bytes.clone();
            set_base_offset(&mut again, 0);
            let again = log.append(&mut again, 9, NOW).unwrap();
            let header = newest.header();
            assert!(again.duplicate && again.first_offset == header.base_offset, "{what}: {again:?} is {header:?}");
        }
    }
}

/// Writes the files that a crash has left.
pub(crate) fn lay_out(left: &BTreeMap<PathBuf, Vec<u8>>) -> tempfile::TempDir {
    let place = quick_directory();
    for (path, bytes) in left {
        let path = place.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    place
}

fn read_all(log: &Log, what: &str) -> Vec<Vec<u8>> {
    let mut batches = Vec::new();
    let mut offset = log.log_start_offset();
    while offset < log.log_end_offset() {
        let slice = log.plan_read(Offset(offset)..Offset::MAX, 1, true).unwrap();
        assert!(slice.len > 0, "{what}: nothing is read at {offset} of {}", log.log_end_offset());
        let mut bytes = vec![0; slice.len];
        slice.file.read_exact_at(&mut bytes, slice.position).unwrap();
        offset = BatchHeader::parse(&bytes).unwrap().next_offset();
        batches.push(bytes);
    }
    batches
}

fn offsets(batches: &[Vec<u8>]) -> Vec<(i64, i32)> {
    let offset_and_epoch = |header: BatchHeader| (header.base_offset, header.partition_leader_epoch);
    batches.iter().map(|bytes| offset_and_epoch(BatchHeader::parse(bytes).unwrap())).collect()
}

/// Returns whether the batches found are consecutive stored batches.
fn is_part(found: &[Vec<u8>], stored: &[Arc<Stored>]) -> bool {
    let Some(first) = found.first() else { return true };
    let from = stored.iter().position(|batch| batch.bytes == *first);
    from.is_some_and(|from| {
        found.len() <= stored.len() - from
            && found.iter().zip(&stored[from..]).all(|(found, stored)| *found == stored.bytes)
    })
}

fn crashes(cut: usize) -> impl Iterator<Item = Crash> {
    let torn = (0..SEEDS).map(move |seed| Crash::Torn(cut as u64 * SEEDS + seed));
    [Crash::OfTheProcess, Crash::LosingAll].into_iter().chain(torn)
}

#[test]
fn a_crash_after_any_change_leaves_a_log_with_everything_flushed() {
    let root = quick_directory();
    let mut recording = Recording::begin(root.path());
    recording.run();
    let count = recording.layer.count();
    assert!(count > 250, "{count}");
    for cut in 0..=count {
        for crash in crashes(cut) {
            recording.check(cut, &recording.layer.crash(cut, crash), &format!("{crash:?} after change {cut}"));
        }
    }
}

#[test]
fn a_crash_after_any_change_leaves_the_transactions_that_the_log_holds() {
    let root = quick_directory();
    let mut recording = Recording::begin(root.path());
    recording.run_transactions();
    let count = recording.layer.count();
    assert!(count > 80, "{count}");
    for cut in 0..=count {
        for crash in crashes(cut) {
            recording.check(cut, &recording.layer.crash(cut, crash), &format!("{crash:?} after change {cut}"));
        }
    }
}

#[test]
fn a_crash_in_the_middle_of_a_recovery_loses_nothing_more() {
    let root = quick_directory();
    let mut recording = Recording::begin(root.path());
    recording.run();
    for cut in (0..=recording.layer.count()).step_by(9) {
        let place = lay_out(&recording.layer.crash(cut, Crash::Torn(cut as u64 + 1000)));
        let path = place.path().canonicalize().unwrap();
        let layer = FaultLayer::over(&path);
        layer.record();
        drop(open(&path));
        for again in 0..=layer.count() {
            for crash in [Crash::OfTheProcess, Crash::LosingAll, Crash::Torn(again as u64)] {
                let what = format!("{crash:?} after change {again} of the recovery from a crash after {cut}");
                recording.check(cut, &layer.crash(again, crash), &what);
            }
        }
    }
}

#[test]
fn a_change_that_fails_is_reported_and_leaves_everything_flushed() {
    for failing in 0.. {
        let root = quick_directory();
        let mut recording = Recording::begin(root.path());
        recording.lead(3);
        recording.append(5);
        recording.flush();
        let mut left = failing;
        recording.layer.fail_when(move |_| {
            left -= 1;
            (left < 0).then(|| std::io::Error::from_raw_os_error(5))
        });
        let failed = append_and_flush(recording.log()).is_err();
        if !failed {
            assert!(failing > 5, "the layer has failed changes");
            return;
        }
        recording.layer.fail_when(|_| None);
        let offline = recording.log().is_offline();
        let again = append_and_flush(recording.log());
        assert_eq!(again.is_err(), offline, "a log takes appends exactly while it is not in doubt");
        let log = open(&recording.root);
        assert!(log.log_end_offset() >= 10);
        assert!(is_part(&read_all(&log, "after a failure")[..5], &recording.versions.last().unwrap().batches));
    }
}

/// A failure in a flush must take the log offline. A failure before it may leave the log online.
fn append_and_flush(log: &Log) -> Result<(), String> {
    for number in 0..3 {
        let (mut bytes, _) = build(&[200], number, (-1, -1, -1), Compression::None);
        log.append(&mut bytes, 3, NOW).map_err(|error| error.to_string())?;
        log.roll(NOW).map_err(|error| error.to_string())?;
    }
    let flushed = log.flush().map_err(|error| error.to_string());
    assert_eq!(flushed.is_err(), log.is_offline());
    flushed.map(|_| ())
}

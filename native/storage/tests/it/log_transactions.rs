//! Transactions in the log against a model: what is stable, what a `read_committed` reader has to leave out, and that
//! rolls, truncations, crashes and restarts change nothing of it.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use pybroker_record::{BatchHeader, Batches, Compression, EndMarker, Offset, ProducerId, set_transactional};
use pybroker_storage::txn_index::{self, AbortedTxn};
use pybroker_storage::{AppendError, Log, LogConfig, OpenLog};

use crate::log_fixture::{NOW, build};
use crate::log_verification::append_verified;

const PRODUCERS: std::ops::Range<i64> = 1..5;

fn config() -> LogConfig {
    LogConfig { segment_bytes: 1500, ..crate::log_fixture::config() }
}

#[derive(Clone, Debug)]
enum Step {
    Plain { records: usize },
    Transactional { producer: i64, records: usize },
    End { producer: i64, commit: bool },
    Roll,
    Flush,
    Complete,
    Truncate { part: f64 },
    AdvanceStart { part: f64 },
    Crash { garbage: Vec<u8>, damage_index: bool },
    Restart,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (1..4usize).prop_map(|records| Step::Plain { records }),
        8 => (PRODUCERS, 1..4usize).prop_map(|(producer, records)| Step::Transactional { producer, records }),
        6 => (PRODUCERS, any::<bool>()).prop_map(|(producer, commit)| Step::End { producer, commit }),
        1 => Just(Step::Roll),
        1 => Just(Step::Flush),
        2 => Just(Step::Complete),
        1 => (0.3..1.1).prop_map(|part| Step::Truncate { part }),
        1 => (0.0..0.6).prop_map(|part| Step::AdvanceStart { part }),
        1 => (prop::collection::vec(any::<u8>(), 0..100), any::<bool>())
            .prop_map(|(garbage, damage_index)| Step::Crash { garbage, damage_index }),
        1 => Just(Step::Restart),
    ];
    prop::collection::vec(step, 1..60)
}

/// A batch of the model.
#[derive(Clone, Debug)]
struct ModelBatch {
    header: BatchHeader,
    marker: Option<EndMarker>,
}

/// A transaction of the model: first offset, and the marker that ended it.
#[derive(Clone, Copy, Debug)]
struct ModelTxn {
    producer_id: i64,
    first_offset: i64,
    end: Option<(i64, bool)>,
}

struct Harness {
    directory: PathBuf,
    log: Option<Log>,
    batches: Vec<ModelBatch>,
    log_start: i64,
    completed: i64,
}

impl Harness {
    fn new(directory: &Path) -> Self {
        let directory = directory.to_path_buf();
        let mut harness = Self { directory, log: None, batches: Vec::new(), log_start: 0, completed: 0 };
        harness.open(true, 0);
        harness
    }

    fn log(&self) -> &Log {
        self.log.as_ref().unwrap()
    }

    fn open(&mut self, clean_shutdown: bool, recovery_point: i64) {
        let how = OpenLog {
            clean_shutdown,
            recovery_point,
            log_start_offset: self.log_start,
            high_watermark: 0,
            now_ms: NOW,
        };
        self.log = Some(Log::open(&self.directory, config(), how).unwrap().0);
        self.complete();
    }

    fn complete(&mut self) {
        self.completed = self.log().log_end_offset();
        self.log().complete_transactions(self.completed);
    }

    fn next_sequence(&self, producer: i64) -> i32 {
        let mine = |batch: &&ModelBatch| batch.header.producer_id == producer && batch.marker.is_none();
        self.batches.iter().rev().find(mine).map_or(0, |batch| batch.header.last_sequence() + 1)
    }

    fn take(&mut self, bytes: &[u8]) {
        let header = BatchHeader::parse(bytes).unwrap();
        let marker = EndMarker::parse(&header, bytes).unwrap();
        self.batches.push(ModelBatch { header, marker });
    }

    fn append(&mut self, mut bytes: Vec<u8>) {
        self.log().append_as_coordinator(&mut bytes, 0, NOW).unwrap();
        self.take(&bytes);
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Plain { records } => {
                let (bytes, _) = build(&vec![20; records], 0, (-1, -1, -1), Compression::None);
                self.append(bytes);
            }
            Step::Transactional { producer, records } => {
                let next = (producer, 0, self.next_sequence(producer));
                let (mut bytes, _) = build(&vec![30; records], 0, next, Compression::Lz4);
                set_transactional(&mut bytes);
                append_verified(self.log(), &mut bytes).unwrap();
                self.take(&bytes);
            }
            Step::End { producer, commit } => {
                let marker = EndMarker { commit, coordinator_epoch: 5 };
                self.append(marker.build(ProducerId(producer), 0, NOW).unwrap());
            }
            Step::Roll => self.log().roll(NOW).unwrap(),
            Step::Flush => _ = self.log().flush().unwrap(),
            Step::Complete => self.complete(),
            Step::Truncate { part } => {
                let end = self.log().log_end_offset();
                let offset = self.log_start + ((end - self.log_start) as f64 * part) as i64;
                self.log().truncate_to(Offset(offset), NOW).unwrap();
                self.batches.retain(|batch| batch.header.last_offset() < offset);
                self.complete();
            }
            Step::AdvanceStart { part } => {
                // Up to the high watermark only, as everybody who deletes records does.
                let offset = self.log_start + ((self.completed - self.log_start).max(0) as f64 * part) as i64;
                self.log().advance_log_start(offset).unwrap();
                self.log_start = offset;
            }
            Step::Crash { garbage, damage_index } => self.crash(&garbage, damage_index),
            Step::Restart => {
                self.log().close().unwrap();
                let recovery_point = self.log().recovery_point();
                self.log = None;
                self.open(true, recovery_point);
            }
        }
    }

    fn crash(&mut self, garbage: &[u8], damage_index: bool) {
        let recovery_point = self.log().recovery_point();
        self.log = None;
        let mut logs: Vec<PathBuf> = self.files("log");
        logs.sort();
        OpenOptions::new().append(true).open(logs.last().unwrap()).unwrap().write_all(garbage).unwrap();
        if damage_index {
            for index in self.files("txnindex").into_iter().step_by(2) {
                fs::write(index, b"torn").unwrap();
            }
        }
        self.open(false, recovery_point);
    }

    fn files(&self, extension: &str) -> Vec<PathBuf> {
        let files = fs::read_dir(&self.directory).unwrap().map(|entry| entry.unwrap().path());
        files.filter(|path| path.extension().is_some_and(|found| found == extension)).collect()
    }

    /// Every transaction that the batches belong to.
    fn transactions(&self) -> Vec<ModelTxn> {
        let mut open: BTreeMap<i64, usize> = BTreeMap::new();
        let mut all: Vec<ModelTxn> = Vec::new();
        for ModelBatch { header, marker } in &self.batches {
            let producer_id = header.producer_id;
            match marker {
                Some(marker) => {
                    if let Some(at) = open.remove(&producer_id) {
                        all[at].end = Some((header.base_offset, marker.commit));
                    }
                }
                None if header.is_transactional() => {
                    open.entry(producer_id).or_insert_with(|| {
                        all.push(ModelTxn { producer_id, first_offset: header.base_offset, end: None });
                        all.len() - 1
                    });
                }
                None => {}
            }
        }
        all
    }

    fn check(&self) {
        let log = self.log();
        let transactions = self.transactions();
        let unstable_yet = |txn: &&ModelTxn| txn.end.is_none_or(|(marker, _)| marker >= self.completed);
        let unstable = transactions.iter().filter(unstable_yet).map(|txn| txn.first_offset.max(self.log_start)).min();
        assert_eq!(log.first_unstable_offset(), unstable);
        let stable = unstable.unwrap_or(i64::MAX).min(self.completed).min(log.log_end_offset());
        let aborted: HashSet<(i64, i64)> = transactions
            .iter()
            .filter(|txn| txn.end.is_some_and(|(_, commit)| !commit))
            .map(|txn| (txn.producer_id, txn.first_offset))
            .collect();
        for from in self.log_start..stable {
            self.check_read(from, stable, (from as usize * 37) % 700, &aborted);
        }
        self.check_files(&transactions);
    }

    /// Reads as a consumer does, and compares with the model what it sees.
    fn check_read(&self, from: i64, stable: i64, max_bytes: usize, aborted: &HashSet<(i64, i64)>) {
        let (slice, listed) = self.log().plan_read_committed(Offset(from)..Offset(stable), max_bytes, true).unwrap();
        for txn in &listed {
            assert!(aborted.contains(&(txn.producer_id, txn.first_offset)), "{txn:?} was not aborted");
        }
        let mut bytes = vec![0; slice.len];
        slice.file.read_exact_at(&mut bytes, slice.position).unwrap();
        let mut waiting: Vec<&AbortedTxn> = listed.iter().collect();
        waiting.sort_by_key(|txn| txn.first_offset);
        let (mut hidden, mut seen, mut reached) = (HashSet::new(), Vec::new(), from);
        for (header, batch) in Batches::new(&bytes).map_while(Result::ok) {
            while waiting.first().is_some_and(|txn| txn.first_offset <= header.last_offset()) {
                hidden.insert(waiting.remove(0).producer_id);
            }
            reached = header.next_offset();
            if header.is_control() {
                if EndMarker::parse(&header, batch).unwrap().is_some_and(|marker| !marker.commit) {
                    hidden.remove(&header.producer_id);
                }
            } else if !(header.is_transactional() && hidden.contains(&header.producer_id)) {
                seen.push(header.base_offset);
            }
        }
        assert!(reached > from, "no progress at {from}");
        let visible = |batch: &&ModelBatch| {
            let ModelBatch { header, marker } = batch;
            header.last_offset() >= from && header.last_offset() < reached && marker.is_none() && {
                let begun = self.transactions().into_iter().rev().find(|txn| {
                    header.is_transactional()
                        && txn.producer_id == header.producer_id
                        && txn.first_offset <= header.base_offset
                });
                begun.is_none_or(|txn| txn.end.is_some_and(|(_, commit)| commit))
            }
        };
        let expected: Vec<i64> = self.batches.iter().filter(visible).map(|batch| batch.header.base_offset).collect();
        assert_eq!(seen, expected, "from {from} to {reached} of {stable}, listed {listed:?}");
    }

    /// The index files hold every aborted transaction whose marker is in their segment, with a last stable offset below
    /// which nothing was open.
    fn check_files(&self, transactions: &[ModelTxn]) {
        let mut files = self.files("txnindex");
        files.sort();
        let entries: Vec<AbortedTxn> =
            files.iter().flat_map(|file| txn_index::decode(&fs::read(file).unwrap()).unwrap()).collect();
        let first_kept = self.files("log").iter().map(|path| base_offset(path)).min().unwrap();
        let mut expected: Vec<AbortedTxn> = Vec::new();
        for txn in transactions {
            let Some((marker, false)) = txn.end else { continue };
            let open = |other: &&ModelTxn| other.first_offset < marker && other.end.is_none_or(|(end, _)| end > marker);
            let stable = transactions.iter().filter(open).map(|other| other.first_offset).min();
            expected.push(AbortedTxn {
                producer_id: txn.producer_id,
                first_offset: txn.first_offset,
                last_offset: marker,
                last_stable_offset: stable.unwrap_or(marker + 1),
            });
        }
        expected.retain(|txn| txn.last_offset >= first_kept);
        expected.sort_by_key(|txn| txn.last_offset);
        assert_eq!(entries, expected);
        assert_eq!(self.log().aborted_transactions(Offset(self.log_start)..Offset::MAX).unwrap(), {
            expected.retain(|txn| txn.last_offset >= self.log_start);
            expected
        });
    }
}

fn base_offset(path: &Path) -> i64 {
    path.file_stem().unwrap().to_str().unwrap().parse().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(64),
        max_shrink_iters: 2000,
        ..ProptestConfig::default()
    })]
    #[test]
    fn readers_of_committed_records_see_what_the_model_says(steps in steps()) {
        let directory = tempfile::tempdir().unwrap();
        let mut harness = Harness::new(&directory.path().join("t-0"));
        for step in steps {
            harness.step(step);
            harness.check();
        }
    }
}

#[test]
fn a_damaged_index_is_built_anew_even_after_a_clean_shutdown() {
    let directory = tempfile::tempdir().unwrap();
    let mut harness = Harness::new(&directory.path().join("t-0"));
    for producer in PRODUCERS {
        harness.step(Step::Transactional { producer, records: 2 });
    }
    for producer in PRODUCERS {
        harness.step(Step::End { producer, commit: producer == 2 });
        harness.step(Step::Roll);
    }
    harness.log().close().unwrap();
    let recovery_point = harness.log().recovery_point();
    harness.log = None;
    let files = harness.files("txnindex");
    assert_eq!(files.len(), 3);
    fs::write(&files[0], b"torn").unwrap();
    harness.open(true, recovery_point);
    harness.check();
}

#[test]
fn fenced_producers_and_coordinators_change_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let mut harness = Harness::new(&directory.path().join("t-0"));
    harness.step(Step::Transactional { producer: 1, records: 1 });
    harness.step(Step::End { producer: 1, commit: false });
    let log = harness.log();
    let mut zombie = EndMarker { commit: true, coordinator_epoch: 4 }.build(ProducerId(1), 0, NOW).unwrap();
    let refused = log.append_as_coordinator(&mut zombie, 0, NOW);
    assert!(matches!(refused, Err(AppendError::CoordinatorFenced { current: 5, found: 4, .. })), "{refused:?}");
    let mut newer = EndMarker { commit: true, coordinator_epoch: 6 }.build(ProducerId(1), 3, NOW).unwrap();
    log.append_as_coordinator(&mut newer, 0, NOW).unwrap();
    let (mut old, _) = build(&[1], 0, (1, 0, 1), Compression::None);
    let refused = log.append(&mut old, 0, NOW);
    assert!(matches!(refused, Err(AppendError::InvalidProducerEpoch { current: 3, found: 0, .. })), "{refused:?}");
    assert_eq!(log.log_end_offset(), 3);
}

/// The marker may be among the records that are missing between the end of the log and its start.
#[test]
fn a_log_that_begins_anew_has_no_open_transaction_after_a_crash() {
    for clean_shutdown in [true, false] {
        let directory = crate::log_fixture::quick_directory();
        let mut harness = Harness::new(&directory.path().join("t-0"));
        harness.step(Step::Transactional { producer: 1, records: 3 });
        assert_eq!(harness.log().first_unstable_offset(), Some(0));
        harness.log().close().unwrap();
        harness.log = None;
        harness.log_start = 22;
        harness.open(clean_shutdown, 22);
        assert_eq!((harness.log().log_start_offset(), harness.log().log_end_offset()), (22, 22));
        assert_eq!(harness.log().first_unstable_offset(), None, "clean shutdown: {clean_shutdown}");
    }
}

//! A compacted log against a model of its records: random sequences of appends, rolls, passes, truncations, removals, crashes
//! and restarts leave the last record of each key, at its offset, and nothing that was never written. Some logs begin with
//! segments of formats v0 and v1. Some records are of transactions: what a reader of committed records sees is compared, up to
//! the first transaction that is open.
//!
//! `PROPTEST_CASES` sets the number of sequences. Without it few are checked after each step, and four thousand when they
//! are over.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::OpenOptions;
use std::io::Write;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use pybroker_record::{
    BatchBuilder, Batches, Compression, EndMarker, MessageSetBuilder, NewMessage, Offset, ProducerId, TimestampType,
    batch_crc, set_base_offset, set_partition_leader_epoch, set_transactional, visit_records,
};
use pybroker_storage::{CleanLimits, CleanRange, Log, LogConfig, OpenLog, Throttle};

use crate::log_fixture::{NOW, config};

/// What a record says: key and value.
type Reported = (Option<u8>, Option<u8>);

#[derive(Clone, Debug)]
enum Step {
    Append { records: Vec<Reported>, codec: Compression, gap: i64, producer: i64 },
    End { producer: i64, commit: bool },
    Roll,
    Flush,
    Clean { map_bytes: usize },
    Wait { ms: i64 },
    Truncate { part: f64 },
    AdvanceStart { part: f64 },
    Crash { garbage: Vec<u8> },
    Restart,
}

/// Producers of this id and larger ones send in transactions.
const FIRST_TRANSACTIONAL: i64 = 3;
const PRODUCERS: i64 = 5;

/// A transaction of the model: the first offset and the end, which is the marker's offset and whether it commits.
#[derive(Clone, Copy, Debug)]
struct ModelTxn {
    producer: i64,
    first_offset: i64,
    end: Option<(i64, bool)>,
}

/// What an old Kafka has written at once.
#[derive(Clone, Debug)]
struct OldSet {
    magic: i8,
    codec: Compression,
    records: Vec<Reported>,
    gap: i64,
}

fn reported() -> impl Strategy<Value = Reported> {
    let key = prop_oneof![30 => (0_u8..9).prop_map(Some), 1 => Just(None)];
    let value = prop_oneof![4 => any::<u8>().prop_map(Some), 1 => Just(None)];
    (key, value)
}

/// The segments that a log begins with; mostly none.
fn old_segments() -> impl Strategy<Value = Vec<Vec<OldSet>>> {
    let codec = prop_oneof![2 => Just(Compression::None), 1 => Just(Compression::Snappy), 1 => Just(Compression::Lz4)];
    let gap = prop_oneof![4 => Just(0), 1 => 1..30_i64];
    let set = (0..2_i8, codec, prop::collection::vec(reported(), 1..6), gap)
        .prop_map(|(magic, codec, records, gap)| OldSet { magic, codec, records, gap });
    prop_oneof![2 => Just(Vec::new()), 1 => prop::collection::vec(prop::collection::vec(set, 1..5), 1..5)]
}

fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    let codec = prop_oneof![3 => Just(Compression::None), 1 => Just(Compression::Lz4), 1 => Just(Compression::Zstd)];
    let append =
        (prop::collection::vec(reported(), 1..9), codec, prop_oneof![6 => Just(0), 1 => 1..90_i64], -1..PRODUCERS);
    let step = prop_oneof![
        14 => append.prop_map(|(records, codec, gap, producer)| Step::Append { records, codec, gap, producer }),
        4 => (FIRST_TRANSACTIONAL..PRODUCERS, any::<bool>())
            .prop_map(|(producer, commit)| Step::End { producer, commit }),
        3 => Just(Step::Roll),
        1 => Just(Step::Flush),
        4 => prop_oneof![3 => Just(1 << 20), 1 => 50..500_usize].prop_map(|map_bytes| Step::Clean { map_bytes }),
        1 => (0..1500_i64).prop_map(|ms| Step::Wait { ms }),
        1 => (0.0..1.0).prop_map(|part| Step::Truncate { part }),
        1 => (0.0..1.0).prop_map(|part| Step::AdvanceStart { part }),
        1 => prop::collection::vec(any::<u8>(), 0..100).prop_map(|garbage| Step::Crash { garbage }),
        1 => Just(Step::Restart),
    ];
    prop::collection::vec(step, 1..most)
}

struct Harness {
    directory: PathBuf,
    log: Option<Log>,
    /// Every record that was written and not truncated, by offset.
    written: BTreeMap<i64, Reported>,
    log_start: i64,
    end: i64,
    /// Records of format v0 were written below, which have no time.
    old_end: i64,
    first_dirty: i64,
    /// Nothing below is truncated: it is committed, as a pass or a removal has acted on it.
    committed: i64,
    now_ms: i64,
    sequences: HashMap<i64, i32>,
    transactions: Vec<ModelTxn>,
    /// By offset of a record of a transaction, its place in `transactions`.
    transaction_of: BTreeMap<i64, usize>,
    /// The last offset of each batch that was appended, by its first.
    batches: BTreeMap<i64, i64>,
}

impl Harness {
    fn new(directory: &Path, old: &[Vec<OldSet>]) -> Self {
        let mut harness = Self {
            directory: directory.to_path_buf(),
            log: None,
            written: BTreeMap::new(),
            log_start: 0,
            end: 0,
            old_end: 0,
            first_dirty: 0,
            committed: 0,
            now_ms: NOW,
            sequences: HashMap::new(),
            transactions: Vec::new(),
            transaction_of: BTreeMap::new(),
            batches: BTreeMap::new(),
        };
        harness.write_old(old);
        harness.open(old.is_empty(), 0);
        harness
    }

    /// Writes segments as an old Kafka does, without indexes.
    fn write_old(&mut self, segments: &[Vec<OldSet>]) {
        std::fs::create_dir_all(&self.directory).unwrap();
        for sets in segments {
            let (base, mut bytes) = (self.end, Vec::new());
            for set in sets {
                let mut builder = MessageSetBuilder::new(set.magic, set.codec, TimestampType::CreateTime);
                self.end += set.gap;
                for &(key, value) in &set.records {
                    let (key_bytes, value_bytes) =
                        (key.map(|key| [key; 4]), value.map(|value| vec![value; usize::from(value)]));
                    builder.append(&NewMessage {
                        offset: self.end,
                        timestamp: NOW + self.end % 7,
                        key: key_bytes.as_ref().map(<[u8; 4]>::as_slice),
                        value: value_bytes.as_deref(),
                    });
                    self.written.insert(self.end, (key, value));
                    self.end += 1;
                }
                builder.finish(&mut bytes).unwrap();
            }
            std::fs::write(self.directory.join(format!("{base:020}.log")), bytes).unwrap();
        }
        self.old_end = self.end;
    }

    fn log(&self) -> &Log {
        self.log.as_ref().unwrap()
    }

    fn open(&mut self, clean_shutdown: bool, recovery_point: i64) {
        self.log = None;
        let how = OpenLog {
            clean_shutdown,
            recovery_point,
            log_start_offset: self.log_start,
            high_watermark: 0,
            now_ms: self.now_ms,
        };
        // A compacted log, that is one whose gaps are no holes; it takes records without keys as one did that was not yet.
        let compacted = LogConfig { require_keys: true, ..config() };
        self.log = Some(Log::open(&self.directory, compacted, how).unwrap().0);
        self.log().set_config(config());
        // A truncation may have left the end in a gap.
        assert!(self.log().log_end_offset() <= self.end);
        assert!(self.log().log_end_offset() > self.written.keys().next_back().copied().unwrap_or(-1));
        self.end = self.log().log_end_offset();
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Append { records, codec, gap, producer } => self.append(&records, codec, gap, producer),
            Step::End { producer, commit } => self.end_transaction(producer, commit),
            Step::Roll => self.log().roll(self.now_ms).unwrap(),
            Step::Flush => drop(self.log().flush().unwrap()),
            Step::Clean { map_bytes } => self.clean(map_bytes),
            Step::Wait { ms } => self.now_ms += ms,
            Step::Truncate { part } => {
                let offset = self.committed.max(self.log_start) + ((self.end - self.committed) as f64 * part) as i64;
                self.log().truncate_to(Offset(offset), self.now_ms).unwrap();
                self.end = self.log().log_end_offset();
                self.written.split_off(&self.end);
                // A batch goes whole, also one that has its first records below the start of the log, where the log ends now.
                let cut = self.batches.range(..=offset).next_back().filter(|(_, last)| **last >= offset);
                if let Some((&first, _)) = cut.filter(|(first, _)| **first < self.log_start) {
                    self.transaction_of.split_off(&first);
                    self.batches.split_off(&first);
                }
                self.forget_transactions();
                // As far as the log knows, these were never sent.
                self.sequences.clear();
            }
            Step::AdvanceStart { part } => {
                // A log may forget an open transaction without records at a crash, or not: no more than what is stable goes.
                let offset = self.log_start + ((self.complete() - self.log_start) as f64 * part) as i64;
                self.log().advance_log_start(offset).unwrap();
                self.log_start = self.log().log_start_offset();
                // Stable records are committed, and so are the markers of their transactions.
                self.commit_markers_of_transactions_below(self.log_start);
            }
            Step::Crash { garbage } => {
                let recovery_point = self.log().recovery_point();
                self.log = None;
                let logs = std::fs::read_dir(&self.directory).unwrap().map(|entry| entry.unwrap().path());
                let last = logs.filter(|path| path.extension().is_some_and(|extension| extension == "log")).max();
                OpenOptions::new().append(true).open(last.unwrap()).unwrap().write_all(&garbage).unwrap();
                self.open(false, recovery_point);
            }
            Step::Restart => {
                self.log().close().unwrap();
                self.open(true, self.end);
            }
        }
    }

    fn append(&mut self, records: &[Reported], codec: Compression, gap: i64, producer: i64) {
        let mut builder = BatchBuilder::new(codec, None, 1 << 20);
        let base = self.end + gap;
        for (&(key, value), offset) in records.iter().zip(base..) {
            let (key, value) = (key.map(|key| vec![key; 4]), value.map(|value| vec![value; usize::from(value)]));
            builder.try_append(self.now_ms + offset % 7, key.as_deref(), value.as_deref(), &[]).unwrap();
        }
        let next = self.sequences.entry(producer).or_default();
        let identity = if producer < 0 { (-1, -1, -1) } else { (producer, 0, *next) };
        *next += records.len() as i32;
        let mut bytes = Vec::new();
        builder.finish(identity.0, identity.1, identity.2, &mut bytes).unwrap();
        set_base_offset(&mut bytes, base);
        set_partition_leader_epoch(&mut bytes, 1);
        if producer >= FIRST_TRANSACTIONAL {
            set_transactional(&mut bytes);
            let place = self.open_transaction(producer).unwrap_or_else(|| {
                self.transactions.push(ModelTxn { producer, first_offset: base, end: None });
                self.transactions.len() - 1
            });
            self.transaction_of.extend((base..base + records.len() as i64).map(|offset| (offset, place)));
        }
        self.log().append_as_follower(&bytes, self.now_ms).unwrap();
        self.batches.insert(base, base + records.len() as i64 - 1);
        self.written.extend((base..).zip(records.iter().copied()));
        self.end = base + records.len() as i64;
    }

    fn open_transaction(&self, producer: i64) -> Option<usize> {
        self.transactions.iter().position(|txn| txn.producer == producer && txn.end.is_none())
    }

    /// Appends a marker, also where there is nothing to end.
    fn end_transaction(&mut self, producer: i64, commit: bool) {
        let marker = EndMarker { commit, coordinator_epoch: 1 };
        let mut bytes = marker.build(ProducerId(producer), 0, self.now_ms).unwrap();
        set_base_offset(&mut bytes, self.end);
        set_partition_leader_epoch(&mut bytes, 1);
        self.log().append_as_follower(&bytes, self.now_ms).unwrap();
        if let Some(place) = self.open_transaction(producer) {
            self.transactions[place].end = Some((self.end, commit));
        }
        self.end += 1;
    }

    /// Opens the transactions whose markers are gone with the end of the log.
    fn forget_transactions(&mut self) {
        self.transaction_of.split_off(&self.end);
        let end = self.end;
        for txn in &mut self.transactions {
            txn.end = txn.end.filter(|(marker, _)| *marker < end);
        }
        let places: HashSet<usize> = self.transaction_of.values().copied().collect();
        for (place, txn) in self.transactions.iter_mut().enumerate() {
            // Nothing of it is left: it is never open again.
            if !places.contains(&place) {
                txn.end = Some((-1, true));
            }
        }
    }

    /// Up to where readers of committed records may read; all that is written is committed.
    fn complete(&self) -> i64 {
        self.log().complete_transactions(self.end);
        let open = self.transactions.iter().filter(|txn| txn.end.is_none()).map(|txn| txn.first_offset);
        let stable = open.min().map_or(self.end, |first| first.max(self.log_start));
        assert_eq!(self.log().first_unstable_offset().unwrap_or(self.end), stable);
        stable
    }

    /// Where the cleaner has to stop: at the active segment, or at the segment with the first record that is not stable.
    fn first_uncleanable(&self) -> i64 {
        let stable = self.complete();
        let bases = self.log().survey().into_iter().map(|segment| segment.base_offset);
        bases.take_while(|base| *base <= stable).last().unwrap_or(self.log_start)
    }

    fn is_aborted(&self, offset: i64) -> bool {
        let txn = self.transaction_of.get(&offset).map(|place| self.transactions[*place]);
        txn.is_some_and(|txn| txn.end.is_some_and(|(_, commit)| !commit))
    }

    fn clean(&mut self, map_bytes: usize) {
        let first_uncleanable = self.first_uncleanable();
        let first_dirty = if self.first_dirty < self.log_start { self.log_start } else { self.first_dirty };
        let limits = CleanLimits { map_bytes, load_factor: 0.9, buffer_bytes: 500 };
        let range = CleanRange { first_dirty, first_uncleanable };
        let cleaned = self.log().clean(range, &limits, &Throttle::new(f64::MAX), self.now_ms).unwrap();
        assert!(cleaned.end_offset <= first_uncleanable.max(first_dirty));
        assert!(cleaned.end_offset > first_dirty || first_dirty >= first_uncleanable);
        self.first_dirty = cleaned.end_offset;
        // What a pass acts on is committed, the markers of its transactions too.
        self.committed = self.committed.max(first_uncleanable);
        self.commit_markers_of_transactions_below(first_uncleanable);
        // Superseded records are gone from the part that was looked at.
        let mut latest = HashMap::new();
        for (offset, (key, _)) in self.read().into_iter().filter(|(offset, _)| *offset < cleaned.end_offset) {
            assert!(!self.is_aborted(offset), "{offset} was aborted and is still there");
            assert_eq!(
                latest.insert(key.expect("records without a key are gone"), offset),
                None,
                "{key:?} is there twice"
            );
        }
    }

    /// Keeps truncations from the markers of transactions that begin below an offset.
    fn commit_markers_of_transactions_below(&mut self, offset: i64) {
        let begun = self.transactions.iter().filter(|txn| txn.first_offset < offset);
        let markers = begun.filter_map(|txn| txn.end).map(|(marker, _)| marker + 1);
        self.committed = markers.chain([self.committed]).max().unwrap_or(0);
    }

    /// Every record that a reader finds, from the log's start.
    fn read(&self) -> Vec<(i64, Reported)> {
        let (mut found, mut offset) = (Vec::new(), self.log_start);
        while offset < self.end {
            let slice = self.log().plan_read(Offset(offset)..Offset::MAX, 1 << 20, true).unwrap();
            if slice.len == 0 {
                break;
            }
            let mut bytes = vec![0; slice.len];
            slice.file.read_exact_at(&mut bytes, slice.position).unwrap();
            for batch in Batches::new(&bytes) {
                let (header, bytes) = batch.unwrap();
                assert_eq!(batch_crc(bytes), header.crc);
                offset = header.next_offset();
                if header.is_control() {
                    continue;
                }
                visit_records(&header, bytes, &mut Vec::new(), 1 << 20, |record| {
                    let (at, time) = (record.offset, record.timestamp);
                    let known = (0..10_000_000).contains(&(time - NOW)) || (time == -1 && at < self.old_end);
                    assert!(known && (time <= header.max_timestamp));
                    let value = record.value.map(|value| value.len() as u8);
                    found.push((at, (record.key.map(|key| key[0]), value)));
                    ControlFlow::Continue(())
                })
                .unwrap();
            }
        }
        found.retain(|(at, _)| *at >= self.log_start);
        found
    }

    /// The offsets that a reader of committed records is given below `stable`, in one read or several.
    fn read_committed(&self, stable: i64) -> HashSet<i64> {
        let (mut seen, mut from) = (HashSet::new(), self.log_start);
        while from < stable {
            let (slice, mut listed) = self.log().plan_read_committed(Offset(from)..Offset(stable), 700, true).unwrap();
            if slice.len == 0 {
                break;
            }
            let mut bytes = vec![0; slice.len];
            slice.file.read_exact_at(&mut bytes, slice.position).unwrap();
            listed.sort_by_key(|txn| txn.first_offset);
            let (mut waiting, mut hidden) = (listed.into_iter().peekable(), HashSet::new());
            let begun = from;
            for (header, batch) in Batches::new(&bytes).map_while(Result::ok) {
                while let Some(txn) = waiting.next_if(|txn| txn.first_offset <= header.last_offset()) {
                    hidden.insert(txn.producer_id);
                }
                from = header.next_offset();
                if header.is_control() {
                    if EndMarker::parse(&header, batch).unwrap().is_some_and(|marker| !marker.commit) {
                        hidden.remove(&header.producer_id);
                    }
                } else if !(header.is_transactional() && hidden.contains(&header.producer_id)) {
                    visit_records(&header, batch, &mut Vec::new(), 1 << 20, |record| {
                        seen.insert(record.offset);
                        ControlFlow::Continue(())
                    })
                    .unwrap();
                }
            }
            assert!(from > begun, "no progress at {from}");
        }
        seen
    }

    fn check(&self) {
        assert_eq!((self.log().log_start_offset(), self.log().log_end_offset()), (self.log_start, self.end));
        let found = self.read();
        assert!(found.windows(2).all(|pair| pair[0].0 < pair[1].0), "offsets ascend");
        for (offset, reported) in &found {
            assert_eq!(self.written.get(offset), Some(reported), "{offset}");
        }
        let state = |records: &mut dyn Iterator<Item = (i64, Reported)>| -> BTreeMap<u8, (i64, Option<u8>)> {
            let mut state = BTreeMap::new();
            for (offset, (key, value)) in records {
                let Some(key) = key else { continue };
                match value {
                    Some(_) => state.insert(key, (offset, value)),
                    None => state.remove(&key),
                };
            }
            state
        };
        let stable = self.complete();
        let seen = self.read_committed(stable);
        let committed = |offset: &i64| *offset < stable && !self.is_aborted(*offset);
        assert!(seen.iter().filter(|offset| **offset >= self.log_start).all(&committed), "aborted");
        let written = &mut self.written.range(self.log_start..).map(|(offset, reported)| (*offset, *reported));
        let written = &mut written.filter(|(offset, _)| committed(offset));
        assert_eq!(state(&mut found.into_iter().filter(|(offset, _)| seen.contains(offset))), state(written));
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(32),
        max_shrink_iters: 2000,
        ..ProptestConfig::default()
    })]
    #[test]
    fn a_compacted_log_holds_what_its_model_does(old in old_segments(), steps in steps(70)) {
        let directory = tempfile::tempdir().unwrap();
        let mut harness = Harness::new(&directory.path().join("t-0"), &old);
        for step in steps {
            harness.step(step);
            harness.check();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(4000),
        max_shrink_iters: 2000,
        ..ProptestConfig::default()
    })]
    #[test]
    fn a_compacted_log_is_what_its_model_is_when_all_is_done(old in old_segments(), steps in steps(30)) {
        let directory = crate::log_fixture::quick_directory();
        let mut harness = Harness::new(&directory.path().join("t-0"), &old);
        steps.into_iter().for_each(|step| harness.step(step));
        harness.check();
    }
}

/// In the snapshot of the first restart a transaction is open. Its marker is below the log start, and is lost with the log.
#[test]
fn a_log_that_begins_anew_has_no_open_transaction() {
    let directory = crate::log_fixture::quick_directory();
    let mut harness = Harness::new(&directory.path().join("t-0"), &[]);
    let append = |producer: i64, gap: i64| Step::Append {
        records: vec![(Some(0), Some(0))],
        codec: Compression::None,
        gap,
        producer,
    };
    let ended = [append(3, 0), Step::Restart, Step::End { producer: 3, commit: false }];
    let cut_in_a_gap = [append(0, 10), Step::AdvanceStart { part: 0.9 }, Step::Truncate { part: 0.1 }, Step::Restart];
    for step in ended.into_iter().chain(cut_in_a_gap).chain([append(0, 0)]) {
        harness.step(step);
        harness.check();
    }
    assert_eq!(harness.log().first_unstable_offset(), None);
}

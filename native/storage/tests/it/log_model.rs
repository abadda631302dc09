//! The log against a model: a vector of batches. Random sequences of appends, reads, rolls, truncations, removals, crashes
//! with a torn tail and clean restarts have to leave both with the same answers.
//!
//! `PROPTEST_CASES` sets the number of sequences. Without it few are checked at every offset after each step, and six
//! thousand when they are over; `log_compaction` has the four thousand that make them ten.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use pybroker_record::{BatchHeader, Compression, Offset, set_base_offset, set_partition_leader_epoch};
use pybroker_storage::{AppendError, Log, OpenLog, ReadError};

use crate::log_fixture::{NOW, build, config};

#[derive(Clone, Debug)]
enum Step {
    Append { producer: Option<i64>, sizes: Vec<usize>, time: i64, compressed: bool },
    AppendAsFollower { gap: i64, sizes: Vec<usize>, time: i64 },
    Retry { producer: i64, back: usize },
    SkipSequence { producer: i64 },
    NewEpoch,
    Roll,
    Flush,
    Truncate { part: f64 },
    AdvanceStart { part: f64 },
    Crash { garbage: Vec<u8>, damage_index: bool },
    Restart,
}

fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    let sizes = || prop::collection::vec(0..400usize, 1..6);
    let producer = || prop::option::of(1..4i64);
    let step = prop_oneof![
        12 => (producer(), sizes(), 0..3000i64, any::<bool>())
            .prop_map(|(producer, sizes, time, compressed)| Step::Append { producer, sizes, time, compressed }),
        2 => (0..20i64, sizes(), 0..3000i64).prop_map(|(gap, sizes, time)| Step::AppendAsFollower { gap, sizes, time }),
        3 => (1..4i64, 0..6usize).prop_map(|(producer, back)| Step::Retry { producer, back }),
        1 => (1..4i64).prop_map(|producer| Step::SkipSequence { producer }),
        2 => Just(Step::NewEpoch),
        1 => Just(Step::Roll),
        1 => Just(Step::Flush),
        1 => (-0.1..1.1).prop_map(|part| Step::Truncate { part }),
        1 => (0.0..1.1).prop_map(|part| Step::AdvanceStart { part }),
        1 => (prop::collection::vec(any::<u8>(), 0..200), any::<bool>())
            .prop_map(|(garbage, damage_index)| Step::Crash { garbage, damage_index }),
        1 => Just(Step::Restart),
    ];
    prop::collection::vec(step, 1..most)
}

#[derive(Clone, Debug)]
struct ModelBatch {
    header: BatchHeader,
    bytes: Vec<u8>,
    times: Vec<i64>,
}

struct Harness {
    directory: PathBuf,
    log: Option<Log>,
    batches: Vec<ModelBatch>,
    log_start: i64,
    end: i64,
    epoch: i32,
    producer_epochs: HashMap<i64, i16>,
}

impl Harness {
    fn new(directory: &Path) -> Self {
        let mut harness = Self {
            directory: directory.to_path_buf(),
            log: None,
            batches: Vec::new(),
            log_start: 0,
            end: 0,
            epoch: 0,
            producer_epochs: HashMap::new(),
        };
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
    }

    fn last_of(&self, producer: i64) -> Option<&ModelBatch> {
        self.batches.iter().rev().find(|batch| batch.header.producer_id == producer)
    }

    /// Id, epoch and next sequence; a producer of whom the log may have forgotten everything starts a new epoch.
    fn next_of(&mut self, producer: i64) -> (i64, i16, i32) {
        let last = self.last_of(producer).map(|batch| (batch.header.producer_epoch, batch.header.last_sequence()));
        let epoch = self.producer_epochs.entry(producer).or_insert(-1);
        match last {
            Some((last_epoch, sequence)) if last_epoch == *epoch => (producer, *epoch, sequence + 1),
            _ => {
                *epoch += 1;
                (producer, *epoch, 0)
            }
        }
    }

    fn take(&mut self, bytes: Vec<u8>, times: Vec<i64>) {
        let header = BatchHeader::parse(&bytes).unwrap();
        self.end = header.next_offset();
        self.batches.push(ModelBatch { header, bytes, times });
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Append { producer, sizes, time, compressed } => {
                let next = producer.map_or((-1, -1, -1), |producer| self.next_of(producer));
                let compression = if compressed { Compression::Zstd } else { Compression::None };
                let (mut bytes, times) = build(&sizes, time, next, compression);
                let appended = self.log().append(&mut bytes, self.epoch, NOW).unwrap();
                assert_eq!((appended.first_offset, appended.duplicate), (self.end, false));
                assert_eq!(appended.record_count, sizes.len());
                self.take(bytes, times);
                assert_eq!(appended.last_offset, self.end - 1);
            }
            Step::AppendAsFollower { gap, sizes, time } => {
                let (mut bytes, times) = build(&sizes, time, (-1, -1, -1), Compression::None);
                set_partition_leader_epoch(&mut bytes, self.epoch);
                if self.end > 0 {
                    set_base_offset(&mut bytes, self.end - 1);
                    assert!(matches!(
                        self.log().append_as_follower(&bytes, NOW),
                        Err(AppendError::UnexpectedOffset { .. })
                    ));
                }
                set_base_offset(&mut bytes, self.end + gap);
                self.log().append_as_follower(&bytes, NOW).unwrap();
                self.take(bytes, times);
            }
            Step::Retry { producer, back } => self.retry(producer, back),
            Step::SkipSequence { producer } => {
                let Some(last) = self.last_of(producer).filter(|last| last.header.base_offset >= self.log_start) else {
                    return;
                };
                let next = (producer, last.header.producer_epoch, last.header.last_sequence() + 2);
                let (mut bytes, _) = build(&[1], 0, next, Compression::None);
                let refused = self.log().append(&mut bytes, self.epoch, NOW);
                assert!(matches!(refused, Err(AppendError::OutOfOrderSequence { .. })), "{refused:?}");
            }
            Step::NewEpoch => self.epoch += 1,
            Step::Roll => self.log().roll(NOW).unwrap(),
            Step::Flush => assert_eq!(self.log().flush().unwrap(), self.end),
            Step::Truncate { part } => self.truncate(self.offset_at(part)),
            Step::AdvanceStart { part } => {
                let offset = self.offset_at(part);
                self.log().advance_log_start(offset).unwrap();
                self.log_start = self.log_start.max(offset.min(self.end));
            }
            Step::Crash { garbage, damage_index } => self.crash(&garbage, damage_index),
            Step::Restart => {
                self.log().close().unwrap();
                assert!(matches!(self.log().append(&mut [], 0, NOW), Err(AppendError::Offline { .. })));
                let recovery_point = self.log().recovery_point();
                assert_eq!(recovery_point, self.end);
                self.log = None;
                self.open(true, recovery_point);
                self.complete_end();
            }
        }
    }

    fn offset_at(&self, part: f64) -> i64 {
        (self.log_start + ((self.end - self.log_start + 1) as f64 * part) as i64).max(0)
    }

    fn retry(&mut self, producer: i64, back: usize) {
        let sent: Vec<ModelBatch> =
            self.batches.iter().rev().filter(|batch| batch.header.producer_id == producer).cloned().collect();
        let Some(batch) = sent.get(back).filter(|batch| batch.header.base_offset >= self.log_start) else { return };
        if batch.header.producer_epoch != self.producer_epochs[&producer] {
            return;
        }
        let mut bytes = batch.bytes.clone();
        // As the producer sent it.
        set_base_offset(&mut bytes, 0);
        match self.log().append(&mut bytes, self.epoch, NOW) {
            Ok(appended) => {
                assert!(appended.duplicate);
                assert_eq!(appended.first_offset, batch.header.base_offset);
                assert_eq!(appended.last_offset, batch.header.last_offset());
            }
            // A restart keeps only the newest batch of each producer, and five are kept at most.
            Err(AppendError::OutOfOrderSequence { .. }) => assert!(back > 0),
            Err(error) => panic!("{error}"),
        }
    }

    fn truncate(&mut self, offset: i64) {
        self.log().truncate_to(Offset(offset), NOW).unwrap();
        if offset >= self.end {
            return;
        }
        if offset < self.log_start {
            self.batches.clear();
            self.log_start = offset;
        }
        self.end = offset;
        while let Some(last) = self.batches.last().filter(|last| last.header.last_offset() >= offset) {
            self.end = last.header.base_offset.min(offset).max(self.log_start);
            self.batches.pop();
        }
    }

    fn crash(&mut self, garbage: &[u8], damage_index: bool) {
        let recovery_point = self.log().recovery_point();
        self.log = None;
        let mut logs: Vec<PathBuf> = std::fs::read_dir(&self.directory).unwrap().map(|e| e.unwrap().path()).collect();
        logs.retain(|path| path.extension().is_some_and(|extension| extension == "log"));
        logs.sort();
        OpenOptions::new().append(true).open(logs.last().unwrap()).unwrap().write_all(garbage).unwrap();
        if damage_index {
            std::fs::write(logs[0].with_extension("index"), garbage).unwrap();
            std::fs::remove_file(logs[logs.len() / 2].with_extension("timeindex")).ok();
        }
        self.open(false, recovery_point);
        self.complete_end();
    }

    /// A truncation may have left the end in a gap; after a restart it may be where the batches before the gap end.
    fn complete_end(&mut self) {
        let last = self.batches.last().map_or(0, |last| last.header.next_offset());
        let end = self.log().log_end_offset();
        assert!((last..=self.end).contains(&end), "{last} {end} {}", self.end);
        self.end = end;
    }

    fn check(&self) {
        let log = self.log();
        assert_eq!((log.log_start_offset(), log.log_end_offset()), (self.log_start, self.end));
        assert!(log.recovery_point() <= self.end);
        for offset in self.log_start..self.end {
            self.check_read(offset);
        }
        let at_end = log.plan_read(Offset(self.end)..Offset::MAX, 1000, true).unwrap();
        assert_eq!(at_end.len, 0);
        for outside in [self.log_start - 1, self.end + 1] {
            assert!(matches!(
                log.plan_read(Offset(outside)..Offset::MAX, 1, true),
                Err(ReadError::OffsetOutOfRange { .. })
            ));
        }
        self.check_times();
        self.check_epochs();
    }

    /// Reads from one offset with bounds that vary with it, and compares bytes.
    fn check_read(&self, offset: i64) {
        let first = self.batches.partition_point(|batch| batch.header.last_offset() < offset);
        let end = match offset % 3 {
            0 => i64::MAX,
            1 => offset + 1 + offset % 17,
            _ => self.end,
        };
        let visible = self.batches[first..].iter().take_while(|batch| batch.header.last_offset() < end);
        let expected: Vec<u8> = visible.flat_map(|batch| batch.bytes.iter().copied()).collect();
        let (max_bytes, min_one) = ((offset as usize * 131) % 1500, offset % 2 == 0);
        let slice = self.log().plan_read(Offset(offset)..Offset(end), max_bytes, min_one).unwrap();
        let mut bytes = vec![0; slice.len];
        slice.file.read_exact_at(&mut bytes, slice.position).unwrap();
        assert!(expected.starts_with(&bytes), "offset {offset} end {end}");
        assert_eq!(slice.start_offset, offset);
        let least = if expected.is_empty() { 0 } else { self.batches[first].bytes.len() };
        assert!(slice.len <= if min_one { max_bytes.max(least) } else { max_bytes });
        assert!(slice.len >= if min_one || least <= max_bytes { least } else { 0 }, "progress at {offset}");
        assert!(slice.len == 0 || slice.len >= least, "a part of the first batch at {offset}");
        assert_eq!(self.log().bytes_between(Offset(offset)..Offset(end)), expected.len() as u64);
    }

    fn records(&self) -> impl Iterator<Item = (i64, i64, i32)> {
        let all = self.batches.iter().flat_map(|batch| {
            let header = batch.header;
            let numbered = batch.times.iter().zip(header.base_offset..);
            numbered.map(move |(&time, offset)| (time, offset, header.partition_leader_epoch))
        });
        all.filter(|&(_, offset, _)| offset >= self.log_start)
    }

    fn check_times(&self) {
        let found = |found: Option<pybroker_storage::TimestampAndOffset>| {
            found.map(|found| (found.timestamp, found.offset, found.leader_epoch))
        };
        let targets: Vec<i64> = self.records().map(|(time, ..)| time).step_by(5).chain([0, i64::MAX]).collect();
        for target in targets.into_iter().flat_map(|target| [target, target.saturating_add(1)]) {
            let expected = self.records().find(|&(time, ..)| time >= target);
            assert_eq!(found(self.log().find_timestamp(target).unwrap()), expected, "target {target}");
        }
        let largest = self.records().reduce(|best, next| if next.0 > best.0 { next } else { best });
        assert_eq!(found(self.log().max_timestamp().unwrap()), largest);
    }

    fn check_epochs(&self) {
        let mut starts: Vec<(i32, i64)> = Vec::new();
        for batch in self.batches.iter().filter(|batch| batch.header.last_offset() >= self.log_start) {
            if starts.last().is_none_or(|last| batch.header.partition_leader_epoch > last.0) {
                starts.push((batch.header.partition_leader_epoch, batch.header.base_offset.max(self.log_start)));
            }
        }
        let Some(&(latest, _)) = starts.last() else { return };
        assert_eq!(self.log().latest_epoch(), Some(latest));
        assert_eq!(self.log().end_offset_for_epoch(latest), (latest, self.end));
        assert_eq!(self.log().end_offset_for_epoch(latest + 1), (-1, -1));
        for pair in starts.windows(2) {
            assert_eq!(self.log().end_offset_for_epoch(pair[1].0 - 1), (pair[0].0, pair[1].1));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(64),
        max_shrink_iters: 2000,
        ..ProptestConfig::default()
    })]
    #[test]
    fn the_log_answers_as_the_model_does(steps in steps(50)) {
        let directory = tempfile::tempdir().unwrap();
        let mut harness = Harness::new(&directory.path().join("t-0"));
        for step in steps {
            harness.step(step);
            harness.check();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(6000),
        max_shrink_iters: 2000,
        ..ProptestConfig::default()
    })]
    #[test]
    fn the_log_is_what_the_model_is_when_all_is_done(steps in steps(25)) {
        let directory = crate::log_fixture::quick_directory();
        let mut harness = Harness::new(&directory.path().join("t-0"));
        steps.into_iter().for_each(|step| harness.step(step));
        harness.check();
    }
}

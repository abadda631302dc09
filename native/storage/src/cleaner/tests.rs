//! Cleaner passes over random logs, compared with a naive replay, and crashes at every change of a file.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::os::unix::fs::FileExt;
use std::path::Path;

use proptest::prelude::*;

use crate::producer::producer_state::BATCHES_KEPT;
use crate::{CleanError, CleanLimits, CleanRange, Cleaned, Log, LogConfig, OpenLog, Throttle};
use pybroker_record::{
    BatchBuilder, BatchHeader, Batches, Compression, EndMarker, Offset, ProducerId, Records, TimestampType, batch_crc,
    records_section, set_base_offset, set_partition_leader_epoch, set_transactional,
};

pub(super) const NOW: i64 = 1_700_000_000_000;
pub(super) const DELETE_RETENTION: i64 = 1000;

fn config() -> LogConfig {
    LogConfig {
        segment_bytes: 3000,
        segment_ms: i64::MAX,
        segment_jitter_ms: 0,
        segment_index_bytes: 8 * 60,
        index_interval_bytes: 200,
        max_message_bytes: 3000,
        compression: None,
        compression_level: None,
        timestamp_type: TimestampType::CreateTime,
        timestamp_before_max_ms: i64::MAX,
        timestamp_after_max_ms: i64::MAX,
        // As for a compacted topic: gaps between its segments are no holes.
        require_keys: true,
        preallocate: false,
        delete_retention_ms: DELETE_RETENTION,
        flush_messages: i64::MAX,
        flush_ms: i64::MAX,
        flush_group: false,
        producer_id_expiration_ms: i64::MAX,
        max_decompressed_bytes: 1 << 20,
        file_delete_delay_ms: 0,
    }
}

pub(super) const LIMITS: CleanLimits = CleanLimits { map_bytes: 1 << 20, load_factor: 0.9, buffer_bytes: 700 };

pub(super) fn open(directory: &Path, clean_shutdown: bool) -> Log {
    let how = OpenLog { clean_shutdown, recovery_point: 0, log_start_offset: 0, high_watermark: 0, now_ms: NOW };
    Log::open(directory, config(), how).unwrap().0
}

/// A reader's view of a record: offset, timestamp, key and value.
pub(super) type Seen = (i64, i64, Option<Vec<u8>>, Option<Vec<u8>>);

/// A stored batch, and a reader's view of its records.
#[derive(Clone, Debug)]
pub(super) struct SeenBatch {
    pub(super) header: BatchHeader,
    pub(super) records: Vec<Seen>,
}

/// Reads the log as a consumer does, and checks every batch.
pub(super) fn read(log: &Log) -> Vec<SeenBatch> {
    let (mut seen, mut offset) = (Vec::new(), log.log_start_offset());
    while offset < log.log_end_offset() {
        let slice = log.plan_read(Offset(offset)..Offset::MAX, 1 << 20, true).unwrap();
        if slice.len == 0 {
            break;
        }
        let mut bytes = vec![0; slice.len];
        slice.file.read_exact_at(&mut bytes, slice.position).unwrap();
        for batch in Batches::new(&bytes) {
            let (header, bytes) = batch.unwrap();
            assert_eq!(batch_crc(bytes), header.crc);
            assert!(header.base_offset >= offset || seen.is_empty(), "offsets ascend");
            offset = header.next_offset();
            seen.push(SeenBatch { header, records: records_of(&header, bytes) });
        }
    }
    seen
}

fn records_of(header: &BatchHeader, bytes: &[u8]) -> Vec<Seen> {
    let mut scratch = Vec::new();
    let section = records_section(header, bytes, &mut scratch, 1 << 20).unwrap();
    let records: Result<Vec<_>, _> = Records::new(section, header.record_count).collect();
    let seen = |record: &pybroker_record::Record<'_>| {
        let offset = header.base_offset + i64::from(record.offset_delta);
        let time = header.base_timestamp + record.timestamp_delta;
        (offset, time, record.key.map(<[u8]>::to_vec), record.value.map(<[u8]>::to_vec))
    };
    records.unwrap().iter().map(seen).collect()
}

/// Returns the last record of each key, without deleted keys.
pub(super) fn replay(batches: &[SeenBatch]) -> BTreeMap<Vec<u8>, Seen> {
    let mut state = BTreeMap::new();
    for record in batches.iter().filter(|batch| !batch.header.is_control()).flat_map(|batch| &batch.records) {
        let Some(key) = record.2.clone() else { continue };
        match record.3 {
            Some(_) => drop(state.insert(key, record.clone())),
            None => drop(state.remove(&key)),
        }
    }
    state
}

#[derive(Clone, Debug)]
struct Made {
    /// Key and value (`None`: a tombstone). Some records have no key.
    records: Vec<(Option<u8>, Option<u8>)>,
    codec: Compression,
    gap: i64,
    producer: Option<i64>,
    /// Whether its producer's transaction ends after the batch: with a commit, or an abort.
    end: Option<bool>,
    roll: bool,
}

/// Producers with this id or a larger one send transactions.
const FIRST_TRANSACTIONAL: i64 = 3;

fn made() -> impl Strategy<Value = Vec<Made>> {
    let key = prop_oneof![20 => (0_u8..12).prop_map(Some), 1 => Just(None)];
    let value = prop_oneof![5 => any::<u8>().prop_map(Some), 1 => Just(None)];
    let codec = prop_oneof![
        4 => Just(Compression::None),
        1 => Just(Compression::Gzip),
        1 => Just(Compression::Snappy),
        1 => Just(Compression::Lz4),
        1 => Just(Compression::Zstd)
    ];
    let gap = prop_oneof![4 => Just(0), 1 => 1..40_i64];
    let producer = prop::option::of(1..FIRST_TRANSACTIONAL + 2);
    let end = prop::option::of(any::<bool>());
    let batch = (prop::collection::vec((key, value), 1..8), codec, gap, producer, end, prop::bool::weighted(0.2))
        .prop_map(|(records, codec, gap, producer, end, roll)| Made { records, codec, gap, producer, end, roll });
    prop::collection::vec(batch, 1..60)
}

/// Appends batches as a leader does.
struct Writer {
    sequences: HashMap<i64, i32>,
    count: i64,
    /// The offsets of the records of each producer's open transaction.
    open: HashMap<i64, Vec<i64>>,
    ended: Vec<Ended>,
}

/// A completed transaction.
struct Ended {
    producer: i64,
    commit: bool,
    records: Vec<i64>,
    marker: i64,
}

impl Writer {
    fn new() -> Self {
        Self { sequences: HashMap::new(), count: 0, open: HashMap::new(), ended: Vec::new() }
    }

    /// Returns the offsets of the records of aborted transactions.
    fn aborted(&self) -> HashSet<i64> {
        self.ended.iter().filter(|ended| !ended.commit).flat_map(|ended| ended.records.iter().copied()).collect()
    }

    fn append(&mut self, log: &Log, made: &Made) {
        let mut builder = BatchBuilder::new(made.codec, None, 1 << 20);
        for (key, value) in &made.records {
            self.count += 1;
            let key = key.map(|key| vec![key; 3 + usize::from(key)]);
            let value = value.map(|value| vec![value; usize::from(value)]);
            builder.try_append(NOW + self.count * 7 % 50, key.as_deref(), value.as_deref(), &[]).unwrap();
        }
        let (id, epoch, sequence) = match made.producer {
            None => (-1, -1, -1),
            Some(id) => {
                let next = self.sequences.entry(id).or_default();
                let sequence = *next;
                *next += made.records.len() as i32;
                (id, 0, sequence)
            }
        };
        let mut bytes = Vec::new();
        builder.finish(id, epoch, sequence, &mut bytes).unwrap();
        set_base_offset(&mut bytes, log.log_end_offset() + made.gap);
        set_partition_leader_epoch(&mut bytes, 1);
        if made.roll {
            log.roll(NOW).unwrap();
        }
        let transactional = made.producer.filter(|id| *id >= FIRST_TRANSACTIONAL);
        if let Some(producer) = transactional {
            set_transactional(&mut bytes);
            let base = log.log_end_offset() + made.gap;
            self.open.entry(producer).or_default().extend(base..base + made.records.len() as i64);
        }
        log.append_as_follower(&bytes, NOW).unwrap();
        if let (Some(producer), Some(commit)) = (transactional, made.end) {
            let (records, marker) = (self.open.remove(&producer).unwrap(), log.log_end_offset());
            append(log, end_marker(producer, commit));
            self.ended.push(Ended { producer, commit, records, marker });
        }
    }
}

pub(super) fn end_marker(producer: i64, commit: bool) -> Vec<u8> {
    EndMarker { commit, coordinator_epoch: 1 }.build(ProducerId(producer), 0, NOW).unwrap()
}

/// Returns the end of the cleanable part: the active segment, or the segment with the first record of an open
/// transaction. All records are committed.
fn end_of_cleanable(log: &Log) -> i64 {
    log.complete_transactions(log.log_end_offset());
    let stable = log.first_unstable_offset().unwrap_or(i64::MAX);
    let bases = log.survey().into_iter().map(|segment| segment.base_offset);
    bases.take_while(|base| *base <= stable).last().unwrap()
}

pub(super) fn clean(log: &Log, first_dirty: i64, limits: &CleanLimits, now_ms: i64) -> Result<Cleaned, CleanError> {
    let range = CleanRange { first_dirty, first_uncleanable: end_of_cleanable(log) };
    log.clean(range, limits, &Throttle::new(f64::MAX), now_ms)
}

/// Checks the log after a pass over all records below `end_offset`. `aborted` are offsets of records.
fn check_cleaned(before: &[SeenBatch], after: &[SeenBatch], aborted: &HashSet<i64>, cleaned: &Cleaned, now_ms: i64) {
    let keyed = |batches: &[SeenBatch]| -> Vec<Seen> {
        let of_clients = batches.iter().filter(|batch| !batch.header.is_control());
        of_clients.flat_map(|batch| batch.records.iter().cloned()).collect()
    };
    let rewritten = cleaned.segments_read > 0;
    let (had, has) = (keyed(before), keyed(after));
    let mut latest: HashMap<&[u8], i64> = HashMap::new();
    for record in had.iter().filter(|record| record.0 < cleaned.end_offset && !aborted.contains(&record.0)) {
        if let Some(key) = &record.2 {
            latest.insert(key, record.0);
        }
    }
    let horizons: HashMap<i64, i64> = after
        .iter()
        .flat_map(|batch| batch.records.iter().map(move |record| (record.0, batch)))
        .filter_map(|(offset, batch)| Some((offset, batch.header.delete_horizon_ms()?)))
        .collect();
    let mut remaining = has.iter().peekable();
    for record in &had {
        let stays = match &record.2 {
            _ if record.0 >= cleaned.end_offset => true,
            _ if aborted.contains(&record.0) => false,
            None => false,
            Some(key) => latest[key.as_slice()] == record.0,
        };
        match remaining.peek() {
            Some(found) if found.0 == record.0 => {
                assert!(stays, "{record:?} is superseded and still there");
                assert_eq!(**found, *record);
                assert!(
                    !rewritten || record.0 >= cleaned.end_offset || record.3.is_some() || horizons[&record.0] > now_ms,
                    "a tombstone without a horizon"
                );
                remaining.next();
            }
            // The last record of a key may only be removed if it is a tombstone past its delete horizon, or an
            // aborted record of a segment that is only partly in the map.
            _ => assert!(!stays || record.3.is_none() || aborted.contains(&record.0), "{record:?} is gone"),
        }
    }
    assert!(remaining.next().is_none(), "a record that was never written");
    assert_eq!(replay(&without(after, aborted)), replay(&without(before, aborted)));
}

/// Returns the batches without these records.
fn without(batches: &[SeenBatch], aborted: &HashSet<i64>) -> Vec<SeenBatch> {
    let mut left = batches.to_vec();
    left.iter_mut().for_each(|batch| batch.records.retain(|record| !aborted.contains(&record.0)));
    left
}

/// Checks that readers of a transaction's record also find its marker, and that it is reported as aborted if it was.
fn check_markers(log: &Log, after: &[SeenBatch], ended: &[Ended]) {
    let records: HashSet<i64> = after.iter().flat_map(|batch| batch.records.iter().map(|record| record.0)).collect();
    let listed = log.aborted_transactions(Offset(0)..Offset::MAX).unwrap();
    for Ended { producer, commit, records: of_transaction, marker } in ended {
        let left: Vec<i64> = of_transaction.iter().copied().filter(|offset| records.contains(offset)).collect();
        let Some(first) = left.first() else { continue };
        assert!(records.contains(marker), "the marker {marker} of the records {left:?} is gone");
        let is_listed = listed.iter().any(|aborted| {
            aborted.producer_id == *producer && aborted.first_offset <= *first && aborted.last_offset == *marker
        });
        assert_eq!(is_listed, !commit, "the aborted transactions of readers of {left:?}");
    }
}

fn check_producers(before: &[SeenBatch], after: &[SeenBatch]) {
    let last = |batches: &[SeenBatch]| -> HashMap<i64, Vec<(i64, i32)>> {
        let mut last: HashMap<i64, Vec<(i64, i32)>> = HashMap::new();
        for header in batches.iter().map(|batch| &batch.header).filter(|it| it.producer_id >= 0 && !it.is_control()) {
            last.entry(header.producer_id).or_default().push((header.last_offset(), header.last_sequence()));
        }
        for (id, batches) in &mut last {
            let kept = if *id < FIRST_TRANSACTIONAL { BATCHES_KEPT } else { 1 };
            batches.drain(..batches.len().saturating_sub(kept));
        }
        last
    };
    assert_eq!(last(after), last(before), "the last batches of each producer are known");
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(24),
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_pass_leaves_the_last_record_of_each_key(
        made in made(),
        more in made(),
        map_bytes in prop_oneof![Just(1_usize << 20), 100_usize..2000],
        later in 0..2 * DELETE_RETENTION,
    ) {
        let directory = tempfile::tempdir().unwrap();
        let home = directory.path().join("t-0");
        let log = open(&home, true);
        let mut writer = Writer::new();
        let limits = CleanLimits { map_bytes, ..LIMITS };
        let (mut first_dirty, mut now_ms) = (0, NOW);
        for part in [&made, &more] {
            part.iter().for_each(|made| writer.append(&log, made));
            let mut passes = 0;
            loop {
                let before = read(&log);
                let cleaned = clean(&log, first_dirty, &limits, now_ms).unwrap();
                let after = read(&log);
                check_cleaned(&before, &after, &writer.aborted(), &cleaned, now_ms);
                check_markers(&log, &after, &writer.ended);
                check_producers(&before, &after);
                prop_assert!(cleaned.end_offset > first_dirty || !cleaned.map_full);
                first_dirty = cleaned.end_offset;
                passes += 1;
                prop_assert!(passes < 600);
                if !cleaned.map_full {
                    break;
                }
            }
            prop_assert_eq!(first_dirty, end_of_cleanable(&log));
            now_ms += later;
        }
        let (before, end) = (read(&log), log.log_end_offset());
        drop(log);
        let reopened = open(&home, false);
        prop_assert_eq!(reopened.log_end_offset(), end);
        let after = read(&reopened);
        prop_assert_eq!(format!("{after:?}"), format!("{before:?}"));
        for batch in &after {
            for offset in batch.header.base_offset..=batch.header.last_offset() {
                let slice = reopened.plan_read(Offset(offset)..Offset::MAX, 1, true).unwrap();
                let mut bytes = vec![0; 61];
                slice.file.read_exact_at(&mut bytes, slice.position).unwrap();
                prop_assert_eq!(BatchHeader::parse(&bytes).unwrap().base_offset, batch.header.base_offset);
            }
        }
    }
}

pub(super) fn batch(codec: Compression, records: &[(&str, Option<&str>)], producer: (i64, i16, i32)) -> Vec<u8> {
    let mut builder = BatchBuilder::new(codec, None, 1 << 20);
    for (index, (key, value)) in (0..).zip(records) {
        builder.try_append(NOW + index, Some(key.as_bytes()), value.map(str::as_bytes), &[]).unwrap();
    }
    let mut bytes = Vec::new();
    builder.finish(producer.0, producer.1, producer.2, &mut bytes).unwrap();
    bytes
}

pub(super) fn append(log: &Log, mut bytes: Vec<u8>) {
    set_base_offset(&mut bytes, log.log_end_offset());
    set_partition_leader_epoch(&mut bytes, 1);
    log.append_as_follower(&bytes, NOW).unwrap();
}

pub(super) fn keys_and_values(batches: &[SeenBatch]) -> Vec<(String, Option<String>)> {
    let text = |bytes: &Vec<u8>| String::from_utf8(bytes.clone()).unwrap();
    let records = batches.iter().filter(|batch| !batch.header.is_control()).flat_map(|batch| &batch.records);
    records.map(|record| (text(record.2.as_ref().unwrap()), record.3.as_ref().map(text))).collect()
}

fn pairs(pairs: &[(&str, Option<&str>)]) -> Vec<(String, Option<String>)> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), value.map(str::to_owned))).collect()
}

#[test]
fn a_tombstone_goes_when_its_horizon_has_passed_and_not_before() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(&directory.path().join("t-0"), true);
    for codec in [Compression::None, Compression::Zstd] {
        append(&log, batch(codec, &[("a", Some("1")), ("b", Some("1"))], (-1, -1, -1)));
        append(&log, batch(codec, &[("a", None), ("c", Some("1"))], (-1, -1, -1)));
        log.roll(NOW).unwrap();
        let first = clean(&log, 0, &LIMITS, NOW).unwrap();
        let left = read(&log);
        let horizon = left.iter().find(|batch| batch.records.iter().any(|record| record.3.is_none())).unwrap();
        assert_eq!(horizon.header.delete_horizon_ms(), Some(NOW + DELETE_RETENTION));
        assert_eq!(horizon.header.max_timestamp, NOW + 1, "timestamps are what they were");
        clean(&log, 0, &LIMITS, NOW + DELETE_RETENTION - 1).unwrap();
        assert_eq!(keys_and_values(&read(&log)), keys_and_values(&left));
        let second = clean(&log, 0, &LIMITS, NOW + DELETE_RETENTION).unwrap();
        assert_eq!(first.end_offset, second.end_offset);
        assert_eq!(keys_and_values(&read(&log)), pairs(&[("b", Some("1")), ("c", Some("1"))]));
    }
}

#[test]
fn the_last_batch_of_a_producer_and_of_the_cleaned_part_stay_without_records() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(&directory.path().join("t-0"), true);
    append(&log, batch(Compression::Gzip, &[("a", Some("1")), ("b", Some("1"))], (7, 2, 5)));
    append(&log, batch(Compression::None, &[("a", Some("2"))], (-1, -1, -1)));
    append(&log, batch(Compression::None, &[("b", Some("2")), ("b", Some("3"))], (-1, -1, -1)));
    log.roll(NOW).unwrap();
    clean(&log, 0, &LIMITS, NOW).unwrap();
    let left = read(&log);
    let header = left[0].header;
    assert_eq!((header.base_offset, header.last_offset(), header.record_count), (0, 1, 0));
    assert_eq!((header.producer_id, header.producer_epoch, header.base_sequence, header.last_sequence()), (7, 2, 5, 6));
    assert_eq!((header.compression(), header.base_timestamp, header.size()), (Ok(Compression::None), -1, 61));
    assert_eq!(keys_and_values(&left), pairs(&[("a", Some("2")), ("b", Some("3"))]));
    append(&log, batch(Compression::None, &[("a", Some("4")), ("b", Some("4"))], (-1, -1, -1)));
    log.roll(NOW).unwrap();
    append(&log, batch(Compression::None, &[("c", Some("1"))], (7, 2, 7)));
    clean(&log, 5, &LIMITS, NOW).unwrap();
    let bases: Vec<i64> = read(&log).iter().map(|batch| batch.header.base_offset).collect();
    assert_eq!(bases, [0, 5, 7], "both of the batches of the producer are among its last");
}

#[test]
fn a_retry_of_each_of_the_last_five_batches_is_known_after_a_kill() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path().join("t-0");
    let log = open(&home, true);
    let sent = |sequence: i32| batch(Compression::None, &[("a", Some("1"))], (7, 0, sequence));
    (0..7).for_each(|sequence| append(&log, sent(sequence)));
    log.roll(NOW).unwrap();
    append(&log, batch(Compression::None, &[("a", Some("2"))], (-1, -1, -1)));
    log.roll(NOW).unwrap();
    clean(&log, 0, &LIMITS, NOW).unwrap();
    let left: Vec<(i64, i32)> = read(&log).iter().map(|b| (b.header.base_offset, b.header.record_count)).collect();
    assert_eq!(left, [(2, 0), (3, 0), (4, 0), (5, 0), (6, 0), (7, 1)]);
    drop(log);
    let log = open(&home, false);
    for sequence in 2..7 {
        let appended = log.append(&mut sent(sequence), 1, NOW).unwrap();
        assert_eq!((appended.duplicate, appended.last_offset), (true, i64::from(sequence)));
    }
    assert!(log.append(&mut sent(1), 1, NOW).is_err(), "six are not on the way");
    assert!(!log.append(&mut sent(7), 1, NOW).unwrap().duplicate);
}

#[test]
fn a_log_of_nothing_but_old_records_keeps_its_offsets() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path().join("t-0");
    let log = open(&home, true);
    for round in 0..50 {
        append(&log, batch(Compression::None, &[("a", None)], (-1, -1, -1)));
        if round % 5 == 4 {
            log.roll(NOW).unwrap();
        }
    }
    clean(&log, 0, &LIMITS, NOW).unwrap();
    assert_eq!(log.segment_count(), 3, "ten segments were as large as two");
    clean(&log, 0, &LIMITS, NOW).unwrap();
    assert_eq!(log.segment_count(), 2, "what is left of them fits one");
    let cleaned = clean(&log, 0, &LIMITS, NOW + DELETE_RETENTION).unwrap();
    assert_eq!((cleaned.end_offset, cleaned.records_written), (50, 0));
    let left = read(&log);
    assert_eq!(left.len(), 1);
    assert_eq!((left[0].header.base_offset, left[0].header.record_count), (49, 0));
    drop(log);
    let log = open(&home, true);
    assert_eq!((log.log_start_offset(), log.log_end_offset()), (0, 50));
}

#[test]
fn aborted_records_go_and_their_marker_follows_them_when_nobody_asks_for_it() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(&directory.path().join("t-0"), true);
    let transactional = |value: &str, producer: i64, sequence: i32| {
        let mut bytes = batch(Compression::None, &[("k", Some(value))], (producer, 0, sequence));
        set_transactional(&mut bytes);
        bytes
    };
    append(&log, batch(Compression::None, &[("k", Some("before"))], (-1, -1, -1)));
    append(&log, transactional("aborted", 1, 0));
    append(&log, transactional("committed", 2, 0));
    append(&log, end_marker(2, true));
    append(&log, transactional("aborted", 1, 1));
    append(&log, end_marker(1, false));
    append(&log, batch(Compression::None, &[("other", Some("1"))], (1, 0, 2)));
    append(&log, batch(Compression::None, &[("other", Some("2"))], (2, 0, 1)));
    log.roll(NOW).unwrap();
    clean(&log, 0, &LIMITS, NOW).unwrap();
    let left = read(&log);
    assert_eq!(keys_and_values(&left), pairs(&[("k", Some("committed")), ("other", Some("2"))]));
    let markers = |left: &[SeenBatch]| -> Vec<(i64, i64, Option<i64>)> {
        let control = left.iter().filter(|batch| batch.header.is_control());
        control.map(|b| (b.header.producer_id, b.header.base_offset, b.header.delete_horizon_ms())).collect()
    };
    assert_eq!(markers(&left), [(2, 3, None), (1, 5, None)], "batches of both were met in this pass");
    assert_eq!(
        log.aborted_transactions(Offset(0)..Offset(100)).unwrap().len(),
        1,
        "a reader of the marker's range still knows"
    );
    append(&log, batch(Compression::None, &[("k", Some("after"))], (-1, -1, -1)));
    log.roll(NOW).unwrap();
    clean(&log, 8, &LIMITS, NOW).unwrap();
    let horizon = Some(NOW + DELETE_RETENTION);
    assert_eq!(
        markers(&read(&log)),
        [(2, 3, None), (1, 5, horizon)],
        "the committed batch was met, the aborted were not"
    );
    clean(&log, 8, &LIMITS, NOW).unwrap();
    assert_eq!(markers(&read(&log)), [(2, 3, horizon), (1, 5, horizon)]);
    assert!(log.aborted_transactions(Offset(0)..Offset(100)).unwrap().is_empty());
    clean(&log, 8, &LIMITS, NOW + DELETE_RETENTION).unwrap();
    assert_eq!(markers(&read(&log)), []);
    assert_eq!(keys_and_values(&read(&log)), pairs(&[("other", Some("2")), ("k", Some("after"))]));
}

#[test]
fn damage_ends_a_pass_and_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path().join("t-0");
    let log = open(&home, true);
    for _ in 0..3 {
        append(&log, batch(Compression::None, &[("a", Some("1"))], (-1, -1, -1)));
        log.roll(NOW).unwrap();
    }
    let path = home.join("00000000000000000001.log");
    let mut bytes = std::fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let refused = clean(&log, 0, &LIMITS, NOW);
    assert!(matches!(&refused, Err(CleanError::Log(super::super::LogError::Corrupt { .. }))), "{refused:?}");
    assert_eq!(log.segment_count(), 4);
    let names: Vec<String> =
        std::fs::read_dir(&home).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!(!names.iter().any(|name| name.ends_with(".cleaned")), "{names:?}");
}

#[test]
fn a_pass_ends_when_the_log_is_cut_closed_or_deleted() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(&directory.path().join("t-0"), true);
    for _ in 0..200 {
        append(&log, batch(Compression::None, &[("a", Some("1"))], (-1, -1, -1)));
    }
    let slow = Throttle::new(1.0);
    let range = CleanRange { first_dirty: 0, first_uncleanable: end_of_cleanable(&log) };
    std::thread::scope(|scope| {
        let pass = scope.spawn(|| log.clean(range, &LIMITS, &slow, NOW));
        while !log.cleaning.is_locked() {
            std::thread::yield_now();
        }
        log.truncate_to(Offset(199), NOW).unwrap();
        assert!(matches!(pass.join().unwrap(), Err(CleanError::Aborted)));
    });
    assert_eq!(log.log_end_offset(), 199);
    log.close().unwrap();
    assert!(matches!(log.clean(range, &LIMITS, &Throttle::new(f64::MAX), NOW), Err(CleanError::Aborted)));
}

#[test]
fn a_pass_whose_segments_are_deleted_meanwhile_is_ended_and_no_failure() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(&directory.path().join("t-0"), true);
    for _ in 0..4 {
        append(&log, batch(Compression::None, &[("a", Some("1"))], (-1, -1, -1)));
        log.roll(NOW).unwrap();
    }
    let slow = Throttle::new(100.0);
    let range = CleanRange { first_dirty: 0, first_uncleanable: end_of_cleanable(&log) };
    std::thread::scope(|scope| {
        let pass = scope.spawn(|| log.clean(range, &LIMITS, &slow, NOW));
        while !log.cleaning.is_locked() {
            std::thread::yield_now();
        }
        log.advance_log_start(4).unwrap();
        slow.set_pace(f64::MAX);
        assert!(matches!(pass.join().unwrap(), Err(CleanError::Aborted)));
    });
    assert_eq!((log.segment_count(), log.is_offline()), (1, false));
}

/// Reads, appends and retention continue during passes. A reader never sees a record twice or out of order, and never
/// misses the last record of a key.
#[test]
fn readers_and_appends_go_on_meanwhile() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(&directory.path().join("t-0"), true);
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for n in 0..6000 {
                let (key, value) = (format!("k{}", n % 40), n.to_string());
                append(&log, batch(Compression::None, &[(&key, Some(&value))], (-1, -1, -1)));
            }
            done.store(true, std::sync::atomic::Ordering::SeqCst);
        });
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::SeqCst) {
                    let end = log.log_end_offset();
                    let keys: HashMap<_, _> = keys_and_values(&read(&log)).into_iter().collect();
                    assert!(keys.len() as i64 >= end.min(40), "{} keys at {end}", keys.len());
                }
            });
        }
        let (mut first_dirty, mut passes) = (0, 0);
        while !done.load(std::sync::atomic::Ordering::SeqCst) || passes == 0 {
            first_dirty = clean(&log, first_dirty, &LIMITS, NOW).unwrap().end_offset;
            log.flush().unwrap();
            passes += 1;
        }
        writer.join().unwrap();
    });
    let state = replay(&read(&log));
    assert_eq!(state.len(), 40);
    assert!(state.iter().all(|(_, record)| record.0 >= 6000 - 40));
}

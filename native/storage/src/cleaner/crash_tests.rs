//! A pass that a crash of the process or a power failure interrupts after each change of a file. The opened log must
//! have its content from before the pass, or the result of the pass, for each group.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::tests::{LIMITS, NOW, SeenBatch, append, batch, clean, end_marker, keys_and_values, open, read, replay};
use crate::{CleanLimits, Log};
use pybroker_record::{Compression, set_transactional};
use pybroker_sys::faults::{Crash, FaultLayer};

const TORN: u64 = 2;
/// The producer id of aborted transactions.
const ABORTING: i64 = 9;
const COMMITTING: i64 = 8;

/// Appends segments that form several groups, with records of transactions and of active producers.
fn fill(log: &Log) {
    let value = "v".repeat(150);
    for round in 0..28 {
        let (key, id) = (format!("k{}", round % 7), i64::from(round % 3));
        let records = [(key.as_str(), Some(value.as_str())), ("often", (round % 5 > 0).then_some("w"))];
        append(log, batch(Compression::None, &records, (id, 0, (round / 3) * 2)));
        for (producer, due, value) in [(ABORTING, 8, "aborted"), (COMMITTING, 4, "committed")] {
            if round % 9 == due {
                let mut part = batch(Compression::Lz4, &[("k1", Some(value))], (producer, 0, round / 9));
                set_transactional(&mut part);
                append(log, part);
                append(log, end_marker(producer, producer == COMMITTING));
            }
        }
        if round % 4 == 3 {
            log.roll(NOW).unwrap();
        }
    }
    log.roll(NOW).unwrap();
}

fn restore(left: &BTreeMap<PathBuf, Vec<u8>>, root: &Path) {
    for (path, bytes) in left {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
}

#[test]
fn a_crash_at_any_change_leaves_every_record_that_counts() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path().join("t-0");
    let log = open(&home, true);
    fill(&log);
    log.flush().unwrap();
    let (before, end) = (read(&log), log.log_end_offset());
    let layer = FaultLayer::over(directory.path());
    layer.record();
    let limits = CleanLimits { buffer_bytes: 2000, ..LIMITS };
    let cleaned = clean(&log, 0, &limits, NOW).unwrap();
    assert!(cleaned.segments_written > 1 && cleaned.segments_read > cleaned.segments_written);
    let after = read(&log);
    drop(log);
    let (all, left) = (keys_and_values(&before), keys_and_values(&after));
    assert!(left.len() < all.len() / 2);
    let mut seen = [0, 0, 0];
    for cut in 0..=layer.count() {
        for how in [Crash::OfTheProcess, Crash::LosingAll].into_iter().chain((0..TORN).map(Crash::Torn)) {
            let place = tempfile::tempdir().unwrap();
            restore(&layer.crash(cut, how), place.path());
            let openings = if matches!(how, Crash::OfTheProcess) { 2 } else { 1 };
            for _ in 0..openings {
                check(&place.path().join("t-0"), &before, end, &mut seen, left.len(), &format!("cut {cut}, {how:?}"));
            }
        }
    }
    assert!(seen.iter().all(|count| *count > 0), "before, between and after the groups: {seen:?}");
}

/// Returns the batches without those of aborted transactions.
fn committed(batches: &[SeenBatch]) -> Vec<SeenBatch> {
    batches.iter().filter(|batch| batch.header.producer_id != ABORTING).cloned().collect()
}

/// Opens the files that a crash has left, and counts in `seen` whether the log is that before the pass, after it, or
/// in between.
fn check(home: &Path, before: &[SeenBatch], end: i64, seen: &mut [usize; 3], after: usize, what: &str) {
    let log = open(home, false);
    let found = read(&log);
    assert_eq!(log.log_end_offset(), end, "{what}");
    assert!(replay(&committed(&found)) == replay(&committed(before)), "{what}: another state");
    let mut rest = before.iter().flat_map(|batch| &batch.records);
    let mut records = found.iter().flat_map(|batch| &batch.records);
    assert!(records.all(|record| rest.any(|had| had == record)), "{what}: another order, or a new record");
    let (all, count) = (keys_and_values(before).len(), keys_and_values(&found).len());
    seen[usize::from(count < all) + usize::from(count == after)] += 1;
    let names = std::fs::read_dir(home).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let half_done = |name: &String| [".cleaned", ".swap", ".deleted"].iter().any(|suffix| name.ends_with(suffix));
    assert_eq!(names.filter(half_done).count(), 0, "{what}");
}

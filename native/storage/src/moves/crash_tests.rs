//! A move that a crash of the process or a power failure interrupts after each change of a file. Exactly one of the
//! directories left is the log, with all durable records, and the move can be repeated.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::copier::Copier;
use super::tests::{ID, Shelf, contents, open};
use super::{LogMove, move_count};
use crate::directory::partition_metadata;
use crate::log::crash_tests::lay_out;
use crate::{Log, Throttle};
use pybroker_sys::faults::{Crash, FaultLayer};

use crate::log_fixture::quick_directory;

const SEEDS: u64 = 2;
/// A repeated move takes longer than all other checks, so only every fifth change is checked with one.
const AGAIN_EVERY: usize = 5;

/// A move with appends, flushes and rolls before, during and after it.
struct Recording {
    layer: std::sync::Arc<FaultLayer>,
    /// The batches of the log at the end of the recording.
    batches: Vec<Vec<u8>>,
    /// From the change with this number on, this number of bytes of batches is on the device.
    promises: Vec<(usize, usize)>,
    /// From the change with this number on, this number has been written.
    written: Vec<(usize, usize)>,
    /// The change after which the future replica was complete.
    filled: usize,
}

impl Recording {
    fn make(root: &Path) -> Self {
        let root = root.canonicalize().unwrap();
        let shelf = Shelf::new(&root);
        let log = shelf.log();
        log.fill(24);
        log.flush();
        let layer = FaultLayer::over(&root);
        layer.record();
        let (mut promises, mut written) = (vec![(0, log.batches())], vec![(0, log.batches())]);
        let future = shelf.prepare(&log.log);
        let (state, throttle) = (LogMove::default(), Throttle::new(f64::MAX));
        let mut copier = Copier::new(&log.log, &future, &state, &throttle);
        copier.copy(&log.log.view.load_full()).unwrap();
        log.append_counting(9, || layer.count(), &mut written);
        log.flush();
        promises.push((layer.count(), log.batches()));
        log.log.roll(crate::log_fixture::NOW).unwrap();
        log.append_counting(3, || layer.count(), &mut written);
        copier.copy(&log.log.view.load_full()).unwrap();
        log.append_counting(2, || layer.count(), &mut written);
        let before = layer.count();
        let moved = log.log.switch(copier, "0123", |_| {}).unwrap();
        assert!(moved.left.is_none() && moved.old.ends_with("t-0.0123-delete"));
        log.append_counting(7, || layer.count(), &mut written);
        log.flush();
        promises.push((layer.count(), log.batches()));
        let batches = contents(&log.log);
        assert_eq!(batches.len(), log.batches());
        Self { layer, batches, promises, written, filled: before }
    }

    fn check(&self, cut: usize, crash: Crash) -> usize {
        let what = format!("{crash:?} after change {cut}");
        let place = lay_out(&self.layer.crash(cut, crash));
        let home = counting(place.path(), &what);
        let log = open(&home);
        let found = contents(&log);
        let at = |list: &[(usize, usize)]| list.iter().rfind(|(since, _)| *since <= cut).unwrap().1;
        assert!(found.len() >= at(&self.promises), "{what}: {} of {} flushed", found.len(), at(&self.promises));
        assert!(found[..] == self.batches[..found.len()], "{what}: other batches");
        if matches!(crash, Crash::OfTheProcess) {
            // A batch is written before the last change of its append.
            assert!(found.len() - at(&self.written) <= 1, "{what}: what was written");
        }
        assert_eq!(partition_metadata::read(&home).unwrap(), Some(ID), "{what}: whose it is");
        if cut.is_multiple_of(AGAIN_EVERY) {
            move_again(&log, place.path(), &home, &found, &what);
        }
        usize::from(home.starts_with(place.path().join("b")))
    }
}

/// Returns the directory of the log: of two, the one with the higher move count.
fn counting(root: &Path, what: &str) -> PathBuf {
    let here = ["a", "b"].into_iter().map(|name| root.join(name).join("t-0")).filter(|path| path.exists());
    let counted: BTreeMap<u64, PathBuf> = here.map(|path| (move_count(&path).unwrap(), path)).collect();
    counted.into_values().next_back().unwrap_or_else(|| panic!("{what}: no log is left"))
}

/// The move can be repeated after every crash, also back to the original directory.
fn move_again(log: &Log, root: &Path, home: &Path, batches: &[Vec<u8>], what: &str) {
    let there = if home.starts_with(root.join("a")) { "b" } else { "a" };
    let there = root.join(there);
    fs::create_dir_all(&there).unwrap();
    let stale = there.join("t-0");
    if stale.exists() {
        fs::remove_dir_all(&stale).unwrap();
    }
    let future = there.join("t-0.f-future");
    super::prepare(home, &future).unwrap();
    log.move_to(&future, &LogMove::default(), &Throttle::new(f64::MAX), "4567", |_| {}).unwrap();
    assert!(contents(log) == batches, "{what}: moved again");
    assert!(contents(&open(&stale)) == batches, "{what}: moved again, and opened");
    assert_eq!(log.log_end_offset(), open(&stale).log_end_offset(), "{what}");
}

#[test]
fn a_crash_after_any_change_leaves_the_old_log_or_the_new_one() {
    let root = quick_directory();
    let recording = Recording::make(root.path());
    let count = recording.layer.count();
    assert!(count > 60 && recording.filled < count - 10, "{count}");
    let mut in_new = [0, 0];
    for cut in 0..=count {
        let torn = (0..SEEDS).map(|seed| Crash::Torn(cut as u64 * SEEDS + seed));
        for crash in [Crash::OfTheProcess, Crash::LosingAll].into_iter().chain(torn) {
            in_new[recording.check(cut, crash)] += 1;
        }
    }
    assert!(in_new.iter().all(|times| *times > 10), "in the old place and in the new one: {in_new:?}");
}

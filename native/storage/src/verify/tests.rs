use std::fs;
use std::path::{Path, PathBuf};

use super::*;
use crate::log_fixture::{NOW, build, config};
use crate::{Log, OpenLog};
use pybroker_record::{Compression, EndMarker, ProducerId, set_transactional};

fn open(directory: &Path) -> Log {
    let how = OpenLog { clean_shutdown: true, recovery_point: 0, log_start_offset: 0, high_watermark: 0, now_ms: NOW };
    Log::open(directory, config(), how).unwrap().0
}

/// Writes three segments of batches and transactions, and closes the log. Returns the log end offset.
fn fill(directory: &Path) -> i64 {
    fill_thirds(directory, 10)
}

/// Writes three segments with this number of rounds each, and one epoch each. A round is three batches.
fn fill_thirds(directory: &Path, rounds: i32) -> i64 {
    let log = open(directory);
    log.begin_epoch(3).unwrap();
    for number in 0..3 * rounds {
        let epoch = 3 + number / rounds;
        if number > 0 && number % rounds == 0 {
            log.roll(NOW).unwrap();
            log.begin_epoch(epoch).unwrap();
        }
        let (mut bytes, _) = build(&[100, 150], i64::from(number) * 9, (7, 0, number * 2), Compression::None);
        log.append(&mut bytes, epoch, NOW).unwrap();
        let (mut bytes, _) = build(&[50], i64::from(number) * 9, (21, 0, number), Compression::None);
        set_transactional(&mut bytes);
        log.append_as_coordinator(&mut bytes, epoch, NOW).unwrap();
        let marker = EndMarker { commit: number % 2 == 0, coordinator_epoch: 1 };
        let mut bytes = marker.build(ProducerId(21), 0, NOW).unwrap();
        log.append_as_coordinator(&mut bytes, epoch, NOW).unwrap();
    }
    let end = log.log_end_offset();
    partition_metadata::write(directory, &[7; 16]).unwrap();
    log.close().unwrap();
    end
}

fn look(directory: &Path, end: i64) -> VerifyLog<'_> {
    VerifyLog {
        directory,
        clean_shutdown: true,
        recovery_point: end,
        log_start_offset: 0,
        high_watermark: end,
        compacted_to: 0,
        is_partition: true,
    }
}

fn files(directory: &Path, suffix: &str) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.to_str().unwrap().ends_with(suffix));
    files.sort();
    files
}

fn damage(verified: &Verified) -> Vec<&Finding> {
    verified.findings.iter().filter(|finding| finding.severity == Severity::Damage).collect()
}

#[test]
fn a_whole_log_has_no_findings_whether_it_was_closed_or_not() {
    let root = tempfile::tempdir().unwrap();
    let end = fill(root.path());
    let verified = verify_log(look(root.path(), end)).unwrap();
    assert_eq!(verified.findings, []);
    assert_eq!((verified.segments, verified.batches, verified.log_end_offset), (6, 90, end));
    let log = open(root.path());
    let (mut bytes, _) = build(&[100; 20], 1000, (7, 0, 60), Compression::None);
    log.append(&mut bytes, 5, NOW).unwrap();
    let killed = VerifyLog { clean_shutdown: false, ..look(root.path(), end) };
    assert_eq!(verify_log(killed).unwrap().findings, []);
}

#[test]
fn every_flipped_byte_of_the_records_and_the_snapshots_is_found() {
    let root = tempfile::tempdir().unwrap();
    let end = fill_thirds(root.path(), 3);
    for path in files(root.path(), ".log").into_iter().chain(files(root.path(), ".snapshot")) {
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            fs::write(&path, &bytes).unwrap();
            let verified = verify_log(look(root.path(), end)).unwrap();
            assert!(!damage(&verified).is_empty(), "byte {at} of {}", path.display());
        }
        fs::write(&path, &whole).unwrap();
    }
}

#[test]
fn what_is_missing_cut_zero_or_garbage_is_named_by_its_file() {
    let root = tempfile::tempdir().unwrap();
    let end = fill(root.path());
    let suffixes =
        [".log", ".index", ".timeindex", ".txnindex", ".snapshot", "leader-epoch-checkpoint", "partition.metadata"];
    type Harm = fn(&Path, &[u8]);
    let harms: [(&str, Harm); 4] = [
        ("removed", |path, _| fs::remove_file(path).unwrap()),
        ("cut", |path, whole| fs::write(path, &whole[..whole.len() - 3]).unwrap()),
        ("garbage", |path, whole| fs::write(path, vec![0xa5; whole.len().max(8) / 8 * 8]).unwrap()),
        ("longer", |path, whole| fs::write(path, [whole, &[0xff; 7]].concat()).unwrap()),
    ];
    for suffix in suffixes {
        let path = files(root.path(), suffix)[0].clone();
        let whole = fs::read(&path).unwrap();
        for (what, harm) in harms {
            harm(&path, &whole);
            let verified = verify_log(look(root.path(), end)).unwrap();
            // A snapshot may be missing: the one before it and the log have the same state.
            let harmless = what == "removed" && suffix == ".snapshot";
            let named = path.file_name().unwrap().to_str().unwrap();
            let found = damage(&verified);
            let by_name = what == "removed" && suffix == ".log" || found.iter().any(|finding| finding.file == named);
            assert!(harmless || (!found.is_empty() && by_name), "{named} {what}: {found:?}");
            fs::write(&path, &whole).unwrap();
        }
    }
}

#[test]
fn a_damaged_batch_is_walked_around_and_the_missing_offsets_are_named() {
    let root = tempfile::tempdir().unwrap();
    let end = fill(root.path());
    let second = &files(root.path(), ".log")[1];
    let mut bytes = fs::read(second).unwrap();
    bytes[100] ^= 1;
    fs::write(second, &bytes).unwrap();
    let verified = verify_log(look(root.path(), end)).unwrap();
    let [finding] = damage(&verified)[..] else { panic!("{:?}", verified.findings) };
    assert!(finding.text.contains("bytes 0 to ") && finding.text.contains("offsets from 28 to 30"), "{}", finding.text);
    assert_eq!((verified.batches, verified.log_end_offset), (89, end));
}

#[test]
fn a_torn_write_of_a_killed_broker_is_a_note_and_of_a_stopped_one_damage() {
    let root = tempfile::tempdir().unwrap();
    let end = fill(root.path());
    let last = files(root.path(), ".log").pop().unwrap();
    let whole = fs::read(&last).unwrap();
    fs::write(&last, [&whole[..], &whole[..70]].concat()).unwrap();
    let killed = VerifyLog { clean_shutdown: false, ..look(root.path(), end) };
    let severities = |log| verify_log(log).unwrap().findings.iter().map(|it| it.severity).collect::<Vec<_>>();
    assert_eq!(severities(killed), [Severity::Note]);
    assert_eq!(severities(look(root.path(), end)), [Severity::Damage]);
}

#[test]
fn gaps_are_damage_unless_compaction_may_have_left_them() {
    let root = tempfile::tempdir().unwrap();
    let end = fill(root.path());
    for suffix in [".log", ".index", ".timeindex", ".txnindex"] {
        fs::remove_file(&files(root.path(), suffix)[1]).unwrap();
    }
    let verified = verify_log(look(root.path(), end)).unwrap();
    assert!(damage(&verified)[0].text.contains("offsets from 28 to 40"), "{:?}", verified.findings);
    let compacted = VerifyLog { compacted_to: 40, ..look(root.path(), end) };
    let verified = verify_log(compacted).unwrap();
    assert!(damage(&verified).iter().all(|finding| finding.kind == FindingKind::Snapshot), "{:?}", verified.findings);
}

#[test]
fn looking_changes_nothing() {
    let root = tempfile::tempdir().unwrap();
    let end = fill(root.path());
    fs::write(&files(root.path(), ".index")[0], [1; 9]).unwrap();
    fs::write(root.path().join("00000000000000000999.index"), [1; 9]).unwrap();
    let before: Vec<_> = files(root.path(), "").into_iter().map(|path| (fs::read(&path).unwrap(), path)).collect();
    verify_log(look(root.path(), end)).unwrap();
    let after: Vec<_> = files(root.path(), "").into_iter().map(|path| (fs::read(&path).unwrap(), path)).collect();
    assert_eq!(before, after);
}

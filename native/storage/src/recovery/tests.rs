//! The number of files that an opening touches. A broker with many partitions waits for each of them at its start.

use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::log_fixture::{NOW, build, config, quick_directory};
use crate::{Log, OpenLog};
use pybroker_record::Compression;
use pybroker_sys::faults::{Done, FaultLayer};

fn open(home: &Path, clean_shutdown: bool) -> Log {
    let how = OpenLog { clean_shutdown, recovery_point: 0, log_start_offset: 0, high_watermark: 0, now_ms: NOW };
    Log::open(home, config(), how).unwrap().0
}

fn append(log: &Log, sizes: &[usize]) {
    let (mut bytes, _) = build(sizes, log.log_end_offset(), (-1, -1, -1), Compression::None);
    log.append(&mut bytes, 3, NOW).unwrap();
}

/// Returns the file operations of opening the log in `home`, by file name.
fn touched(home: &Path, clean_shutdown: bool) -> Vec<String> {
    let layer = FaultLayer::over(home);
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let noted = Arc::clone(&seen);
    layer.fail_when(move |done| {
        let (what, path) = match done {
            Done::Open(path) => ("open", path.clone()),
            Done::Remove(path) => ("remove", path.clone()),
            Done::Resize(path) => ("resize", path.clone()),
            other => panic!("{other:?}"),
        };
        let name = path.file_name().unwrap().to_string_lossy();
        noted.lock().push(format!("{what} {}", name.trim_start_matches('0')));
        None
    });
    drop(open(home, clean_shutdown));
    seen.lock().clone()
}

#[test]
fn a_small_log_that_was_closed_is_opened_by_five_files() {
    let root = quick_directory();
    let home = root.path().join("t-0");
    let log = open(&home, true);
    append(&log, &[1]);
    log.close().unwrap();
    drop(log);
    let expected = ["open t-0", "open leader-epoch-checkpoint", "open .timeindex", "open .log", "open 1.snapshot"];
    assert_eq!(touched(&home, true), expected);
    // A log larger than the interval of index entries has an offset index to read.
    let log = open(&home, true);
    append(&log, &[200]);
    append(&log, &[200]);
    log.close().unwrap();
    drop(log);
    let expected =
        ["open t-0", "open leader-epoch-checkpoint", "open .index", "open .timeindex", "open .log", "open 3.snapshot"];
    assert_eq!(touched(&home, true), expected);
}

#[test]
fn a_recovery_removes_no_file_that_is_not_there() {
    let root = quick_directory();
    let home = root.path().join("t-0");
    let log = open(&home, true);
    append(&log, &[1]);
    drop(log);
    assert_eq!(touched(&home, false), ["open t-0", "open leader-epoch-checkpoint", "open .log", "resize .log"]);
}

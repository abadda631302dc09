//! Lack of file descriptors, memory and mappings: every operation of a log runs with each required resource refused
//! in turn. It fails as exhausted or does not need the resource. The log stays consistent and works again when
//! resources are available.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, Ordering};

use crate::log_fixture::{NOW, build, config, quick_directory};
use crate::{AppendError, Log, LogError, OpenLog, ReadError, RetentionLimits};
use pybroker_record::{Compression, Offset};
use pybroker_sys::faults::{Done, FaultLayer};

/// Refuses the nth request for a file descriptor, memory or mapping and all later ones, until it is lifted.
struct Famine {
    layer: Arc<FaultLayer>,
    /// The number of requests that are still granted; negative after a refusal.
    left: Arc<AtomicIsize>,
}

const LIFTED: isize = isize::MAX / 2;

impl Famine {
    fn over(root: &Path) -> Self {
        Self { layer: FaultLayer::over(root), left: Arc::new(AtomicIsize::new(LIFTED)) }
    }

    fn begin(&self, granted: isize, errno: i32) {
        self.left.store(granted, Ordering::SeqCst);
        let left = Arc::clone(&self.left);
        self.layer.fail_when(move |done| {
            let needs = match done {
                Done::Open(_) | Done::Create(_) => true,
                Done::Map(_) | Done::MakeDirectory(_) => errno == libc::ENOMEM,
                _ => false,
            };
            (needs && left.fetch_sub(1, Ordering::SeqCst) <= 0).then(|| io::Error::from_raw_os_error(errno))
        });
    }

    /// Stops refusing. Returns whether any request was refused.
    fn lift(&self) -> bool {
        self.left.swap(LIFTED, Ordering::SeqCst) < 0
    }
}

fn ensure(holds: bool, error: String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(error) }
}

fn of_log<T>(done: Result<T, LogError>) -> Result<bool, String> {
    match done {
        Ok(_) => Ok(true),
        Err(error) => ensure(error.is_exhausted(), format!("{error:?}")).map(|()| false),
    }
}

fn of_append<T>(done: Result<T, AppendError>) -> Result<bool, String> {
    match done {
        Ok(_) => Ok(true),
        Err(error) => ensure(matches!(error, AppendError::Exhausted { .. }), format!("{error:?}")).map(|()| false),
    }
}

fn of_read<T>(done: Result<T, ReadError>) -> Result<bool, String> {
    match done {
        Ok(_) => Ok(true),
        Err(error) => ensure(matches!(error, ReadError::Exhausted { .. }), format!("{error:?}")).map(|()| false),
    }
}

/// The name of a step, and a function that returns whether the step was done.
type Step = (&'static str, fn(&Log) -> Result<bool, String>);

/// The operations, in order.
const STEPS: [Step; 11] = [
    ("append", |log| of_append(append(log, 0))),
    ("append in a new epoch", |log| of_append(append(log, 1))),
    ("read from the beginning", |log| of_read(log.plan_read(Offset(0)..Offset::MAX, 1 << 20, true))),
    ("roll", |log| of_log(log.roll(NOW))),
    ("append to a new segment", |log| of_append(append(log, 1))),
    ("flush", |log| of_log(log.flush())),
    ("look up a time", |log| of_read(log.find_timestamp(NOW + 5))),
    ("lead", |log| of_log(log.begin_epoch(9))),
    ("delete old segments", |log| {
        let limits =
            RetentionLimits { high_watermark: i64::MAX, now_ms: NOW, retention_ms: None, retention_bytes: Some(1) };
        of_log(log.delete_old_segments(&limits))
    }),
    ("append again", |log| of_append(append(log, 9))),
    ("close", |log| of_log(log.close())),
];

fn append(log: &Log, epoch: i32) -> Result<crate::Appended, AppendError> {
    // Large enough to require index entries.
    log.append(&mut build(&[1500, 1500], NOW, (-1, -1, -1), Compression::None).0, epoch, NOW)?;
    log.append(&mut build(&[1500, 1500], NOW, (-1, -1, -1), Compression::None).0, epoch, NOW)
}

/// Like [`append`], but so small that no segment is full.
fn append_small(log: &Log) -> Result<crate::Appended, AppendError> {
    log.append(&mut build(&[10], NOW, (-1, -1, -1), Compression::None).0, 0, NOW)
}

fn open(root: &Path, clean_shutdown: bool) -> Result<Log, LogError> {
    let how = OpenLog { clean_shutdown, recovery_point: 0, log_start_offset: 0, high_watermark: 0, now_ms: NOW };
    Log::open(&root.join("t-0"), config(), how).map(|(log, _)| log)
}

#[test]
fn every_operation_without_descriptors_or_memory_is_refused_and_succeeds_later() {
    for errno in [libc::EMFILE, libc::ENFILE, libc::ENOMEM] {
        for (at, (name, step)) in STEPS.iter().enumerate() {
            for granted in 0.. {
                let root = quick_directory();
                let log = open(root.path(), true).unwrap();
                for (name, before) in &STEPS[..at] {
                    assert_eq!(before(&log), Ok(true), "{name}");
                }
                // As after a period without use.
                log.close_idle_files();
                log.close_idle_files();
                let famine = Famine::over(root.path());
                famine.begin(granted, errno);
                let end = log.log_end_offset();
                let done = step(&log).unwrap_or_else(|error| panic!("{name}, {granted} granted: {error}"));
                let refused = famine.lift();
                if !done {
                    assert!(refused, "{name}");
                    assert!(!log.is_offline(), "{name}, {granted} granted");
                    let appended = log.log_end_offset();
                    assert!(appended == end || appended == end + 2, "{name}: all of a batch or nothing");
                    assert_eq!(step(&log), Ok(true), "{name} later, {granted} granted");
                }
                for (name, after) in &STEPS[at + 1..] {
                    assert_eq!(after(&log), Ok(true), "{name}");
                }
                let (start, end) = (log.log_start_offset(), log.log_end_offset());
                drop(log);
                let again = open(root.path(), true).unwrap();
                assert_eq!((again.log_start_offset(), again.log_end_offset()), (start, end), "{name}");
                if !refused {
                    break;
                }
            }
        }
    }
}

#[test]
fn an_opening_without_descriptors_or_memory_changes_nothing_and_succeeds_later() {
    for (errno, clean) in [(libc::EMFILE, true), (libc::EMFILE, false), (libc::ENOMEM, true), (libc::ENOMEM, false)] {
        for granted in 0.. {
            let root = quick_directory();
            let log = open(root.path(), true).unwrap();
            STEPS[..6].iter().for_each(|(name, step)| assert_eq!(step(&log), Ok(true), "{name}"));
            if clean {
                log.close().unwrap();
            }
            let end = log.log_end_offset();
            drop(log);
            let famine = Famine::over(root.path());
            famine.begin(granted, errno);
            let opened = open(root.path(), clean);
            if !famine.lift() {
                assert_eq!(opened.unwrap().open_files(), 0, "an idle log holds no file");
                break;
            }
            assert!(matches!(opened, Err(LogError::Exhausted { .. })), "{granted} granted: {opened:?}");
            assert_eq!(open(root.path(), clean).unwrap().log_end_offset(), end, "{granted} granted");
        }
    }
}

#[test]
fn a_flush_neither_uses_files_nor_opens_them_for_good() {
    let root = quick_directory();
    let log = open(root.path(), true).unwrap();
    append_small(&log).unwrap();
    log.roll(NOW).unwrap();
    append_small(&log).unwrap();
    assert_eq!((log.close_idle_files(), log.open_files()), (0, 2), "both were used");
    log.flush().unwrap();
    assert_eq!((log.close_idle_files(), log.open_files()), (2, 0), "nothing but a flush has used them since");
    append_small(&log).unwrap();
    log.close_idle_files();
    log.close_idle_files();
    assert_eq!(log.open_files(), 0);
    log.flush().unwrap();
    assert_eq!((log.open_files(), log.recovery_point()), (0, log.log_end_offset()));
}

#[test]
fn idle_files_are_closed_and_opened_again_on_their_next_use() {
    let root = quick_directory();
    let log = open(root.path(), true).unwrap();
    assert_eq!(log.open_files(), 0, "a new log holds no file");
    append_small(&log).unwrap();
    log.roll(NOW).unwrap();
    append_small(&log).unwrap();
    assert_eq!(log.open_files(), 2);
    assert_eq!((log.close_idle_files(), log.open_files()), (0, 2), "both were used");
    append_small(&log).unwrap();
    assert_eq!((log.close_idle_files(), log.open_files()), (1, 1), "one was used since");
    let slice = log.plan_read(Offset(0)..Offset::MAX, 1 << 20, true).unwrap();
    log.close_idle_files();
    log.close_idle_files();
    assert_eq!(log.open_files(), 0);
    assert!(slice.file.metadata().unwrap().len() > 0, "a thread that reads goes on");
    append_small(&log).unwrap();
    assert_eq!(log.open_files(), 1);
}

//! The small files beside the records, with any bytes in them: a log opens, and no record is hidden or changed.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use pybroker_record::{Compression, Offset};
use pybroker_storage::{Log, OpenLog, Recovered};

use crate::log_fixture::{NOW, build, config, quick_directory};

const FILES: [&str; 7] = [
    "00000000000000000000.index",
    "00000000000000000000.timeindex",
    "00000000000000000010.index",
    "00000000000000000010.timeindex",
    "00000000000000000020.snapshot",
    "leader-epoch-checkpoint",
    "recovery-report",
];

fn open(home: &Path, clean_shutdown: bool) -> (Log, Recovered) {
    let how = OpenLog { clean_shutdown, recovery_point: 20, log_start_offset: 0, high_watermark: 20, now_ms: NOW };
    Log::open(home, config(), how).unwrap()
}

/// Two segments of five batches of two records, closed; the timestamp of each record.
fn fill(home: &Path) -> Vec<i64> {
    let (log, _) = open(home, true);
    let mut all = Vec::new();
    for n in 0..10 {
        if n == 5 {
            log.roll(NOW).unwrap();
        }
        let (mut bytes, times) = build(&[100, 150], n * 20, (7, 0, n as i32 * 2), Compression::None);
        log.append(&mut bytes, 3, NOW).unwrap();
        all.extend(times);
    }
    log.close().unwrap();
    all
}

fn check(log: &Log, times: &[i64]) {
    assert_eq!((log.log_start_offset(), log.log_end_offset()), (0, 20));
    for offset in 0..20 {
        let read = log.plan_read(Offset(offset)..Offset::MAX, 1, true).unwrap();
        // Batches have two records each, all of one size.
        assert_eq!(read.position, (offset % 10) as u64 / 2 * read.len as u64, "{offset}");
    }
    for target in times.iter().flat_map(|time| [time - 1, *time, time + 1]) {
        let expected = times.iter().position(|time| *time >= target);
        let found = log.find_timestamp(target).unwrap();
        assert_eq!(found.map(|found| found.offset as usize), expected, "{target}");
    }
}

fn content() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![Just(0_u8), Just(1), Just(0x7f), Just(0xff), Just(b'0'), Just(b'\n'), any::<u8>()];
    let number = prop_oneof![Just(0_u32), 0..30_u32, any::<u32>()];
    prop_oneof![
        prop::collection::vec(byte, 0..120),
        prop::collection::vec(number, 0..24).prop_map(|words| words.into_iter().flat_map(u32::to_be_bytes).collect()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, max_shrink_iters: 500, ..ProptestConfig::default() })]
    #[test]
    fn a_log_opens_whatever_its_small_files_hold(file in prop::sample::select(&FILES[..]), content in content(), clean: bool) {
        let root = quick_directory();
        let home = root.path().join("t-0");
        let times = fill(&home);
        fs::write(home.join(file), content).unwrap();
        let (log, _) = open(&home, clean);
        check(&log, &times);
        log.close().unwrap();
        drop(log);
        let (log, recovered) = open(&home, true);
        check(&log, &times);
        // What was damaged is mended, and reported by one start alone.
        prop_assert_eq!((recovered.indexes_rebuilt, recovered.warnings), (0, vec![]));
    }
}

#[test]
fn a_flipped_bit_of_an_index_hides_no_record() {
    let root = quick_directory();
    let home = root.path().join("t-0");
    let times = fill(&home);
    for file in &FILES[..4] {
        let path = home.join(file);
        let intact = fs::read(&path).unwrap();
        assert!(intact.len() > 24, "{file}");
        for bit in 0..intact.len() * 8 {
            let mut damaged = intact.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, damaged).unwrap();
            let (log, _) = open(&home, true);
            check(&log, &times);
        }
        fs::write(&path, intact).unwrap();
    }
}

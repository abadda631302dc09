//! A follower whose closed segment was truncated fetches the missing records from the leader.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::tests::{Broker, no_limit, read};
use crate::log_fixture::{config, quick_directory};
use pybroker_record::Batches;
use pybroker_storage::LogConfig;

const RECORDS: usize = 40;
/// Space for about five batches of one record of 20 bytes.
const SEGMENT_BYTES: u64 = 500;

fn closed_segments(directory: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(directory.join("t-0")).unwrap().map(|entry| entry.unwrap().path());
    let mut logs: Vec<_> = files.filter(|path| path.extension().is_some_and(|it| it == "log")).collect();
    logs.sort();
    logs.pop();
    logs
}

/// Returns offset and epoch of each batch of all segments.
fn batches(broker: &Broker) -> Vec<(i64, i32)> {
    let mut found: Vec<(i64, i32)> = Vec::new();
    loop {
        let from = found.last().map_or(0, |&(offset, _)| offset + 1);
        let bytes = read(&broker.partition, from);
        let before = found.len();
        found
            .extend(Batches::new(&bytes).map(|it| it.unwrap().0).map(|it| (it.base_offset, it.partition_leader_epoch)));
        if found.len() == before {
            return found;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn a_follower_fetches_what_its_closed_segments_have_lost(cuts in prop::collection::vec((0_usize..100, 0_u64..SEGMENT_BYTES), 1..4)) {
        let (one_at, two_at) = (quick_directory(), quick_directory());
        let small = || LogConfig { segment_bytes: SEGMENT_BYTES, ..config() };
        let one = Broker::with(1, one_at.path(), small(), no_limit());
        let mut two = Broker::with(2, two_at.path(), small(), no_limit());
        one.lead(1, &[2]);
        one.append(RECORDS);
        two.follow(1, 1);
        two.catch_up(&one);
        two.partition.log().close().unwrap();
        let segments = closed_segments(two_at.path());
        prop_assert!(segments.len() > 3);
        let mut cut = 0;
        for (segment, at) in cuts {
            let path = &segments[segment % segments.len()];
            let size = fs::metadata(path).unwrap().len();
            if at < size {
                fs::OpenOptions::new().write(true).open(path).unwrap().set_len(at).unwrap();
                cut += 1;
            }
        }
        let mut two = two.restart(two_at.path(), RECORDS as i64);
        prop_assert_eq!(two.partition.log().is_missing_records(), cut > 0);
        prop_assert_eq!(two.end(), RECORDS as i64);
        one.lead(2, &[2]);
        one.append(2);
        two.follow(2, 1);
        two.catch_up(&one);
        let expected: Vec<_> = (0..RECORDS as i64 + 2).map(|at| (at, 1 + i32::from(at >= RECORDS as i64))).collect();
        prop_assert_eq!(batches(&two), expected);
        prop_assert_eq!(two.reported.0.len(), cut.min(1));
        prop_assert!(two.reported.0.iter().all(|line| line.contains("where records are missing")));
        prop_assert_eq!(two.partition.log().hole(), None);
    }
}

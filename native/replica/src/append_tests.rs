//! A leader epoch that rises during an append.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use super::super::{BrokerId, Following, LeaderEpoch, Leadership, NotAppended, Partition};
use super::RequiredIsr;
use crate::log_fixture::{NOW, build, config, quick_directory};
use pybroker_record::Compression;
use pybroker_storage::{Log, OpenLog};

const EPOCH: i32 = 3;

fn open(directory: &Path) -> Partition {
    let how = OpenLog { clean_shutdown: true, recovery_point: 0, log_start_offset: 0, high_watermark: 0, now_ms: NOW };
    let (log, _) = Log::open(&directory.join("t-0"), config(), how).unwrap();
    Partition::new("t".into(), 0, [1; 16], directory.to_path_buf(), log, 0)
}

fn lead(partition: &Partition, epoch: i32) {
    partition.become_leader(Leadership::alone(epoch), NOW, &mut |_| ()).unwrap();
}

fn batch() -> Vec<u8> {
    build(&[100], 0, (-1, -1, -1), Compression::None).0
}

/// Appends, and calls `between` after the epoch was read. Returns the result, and the epochs that were tried.
fn append_across(partition: &Partition, between: impl Fn()) -> (Result<LeaderEpoch, NotAppended>, Vec<i32>) {
    let (mut bytes, mut tried) = (batch(), Vec::new());
    let append = |epoch| {
        if tried.is_empty() {
            between();
        }
        tried.push(epoch);
        partition.log.append_as_coordinator(&mut bytes, epoch, NOW)
    };
    let appended = partition.append_in_epoch(RequiredIsr::Any, append, &mut |_| ());
    (appended.map(|(_, epoch)| epoch), tried)
}

#[test]
fn a_leader_that_stays_leader_appends_at_the_new_epoch() {
    let root = quick_directory();
    let partition = open(root.path());
    lead(&partition, EPOCH);
    let (appended, tried) = append_across(&partition, || lead(&partition, EPOCH + 1));
    assert_eq!((appended.unwrap(), tried), (LeaderEpoch(EPOCH + 1), vec![EPOCH, EPOCH + 1]));
    assert_eq!((partition.log.log_end_offset(), partition.log.latest_epoch()), (1, Some(EPOCH + 1)));
}

#[test]
fn one_that_leads_no_more_appends_nothing() {
    let root = quick_directory();
    let partition = open(root.path());
    lead(&partition, EPOCH);
    let following = Following { leader: BrokerId(2), leader_epoch: LeaderEpoch(EPOCH + 1) };
    let (appended, tried) =
        append_across(&partition, || drop(partition.become_follower(following, &mut |_| ()).unwrap()));
    assert!(matches!(appended, Err(NotAppended::NotLeader)), "{appended:?}");
    assert_eq!((tried, partition.log.log_end_offset()), (vec![EPOCH], 0));
}

#[test]
fn one_whose_new_epoch_never_came_appends_nothing() {
    let root = quick_directory();
    let partition = open(root.path());
    lead(&partition, EPOCH);
    let (appended, tried) = append_across(&partition, || partition.log.begin_epoch(EPOCH + 1).unwrap());
    assert!(matches!(appended, Err(NotAppended::NotLeader)), "{appended:?}");
    assert_eq!((tried, partition.log.log_end_offset()), (vec![EPOCH], 0));
}

#[test]
fn no_append_is_refused_while_epochs_grow() {
    let root = quick_directory();
    let partition = open(root.path());
    lead(&partition, EPOCH);
    let has_ended = AtomicBool::new(false);
    let appended = std::thread::scope(|scope| {
        let appending = scope.spawn(|| {
            let mut appended = 0;
            while !has_ended.load(Ordering::Relaxed) {
                partition.append(&mut batch(), true, NOW, &mut |_| ()).unwrap();
                appended += 1;
            }
            appended
        });
        (1..500).for_each(|step| lead(&partition, EPOCH + step));
        has_ended.store(true, Ordering::Relaxed);
        appending.join().unwrap()
    });
    assert_eq!(partition.log.log_end_offset(), appended);
}

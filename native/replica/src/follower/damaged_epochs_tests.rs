//! A damaged `leader-epoch-checkpoint` on one of three replicas: whatever it contains, no replica loses a committed record.

use std::fmt::Write as _;
use std::path::Path;

use proptest::prelude::*;

use super::tests::Broker;
use crate::log_fixture::quick_directory;

const FILE: &str = "t-0/leader-epoch-checkpoint";

/// Writes a list of epochs in Kafka's format.
fn write_epochs(directory: &Path, starts: &[(i32, i64)]) {
    let mut text = format!("0\n{}\n", starts.len());
    for (epoch, start_offset) in starts {
        writeln!(text, "{epoch} {start_offset}").unwrap();
    }
    std::fs::write(directory.join(FILE), text).unwrap();
}

/// Creates three brokers with the same log, which has the given number of records per epoch. Broker 1 was the leader
/// in all epochs.
fn replicated(directories: &[&Path; 3], history: &[(i32, usize)]) -> [Broker; 3] {
    let [one, mut two, mut three] = [1, 2, 3].map(|id| Broker::start(id, directories[id as usize - 1]));
    for &(epoch, records) in history {
        one.lead(epoch, &[2, 3]);
        one.append(records);
        for follower in [&mut two, &mut three] {
            follower.follow(epoch, 1);
            follower.catch_up(&one);
        }
    }
    [one, two, three]
}

/// Generates histories of epochs 1, 3, 5 and so on, each with its number of records.
fn history() -> impl Strategy<Value = Vec<(i32, usize)>> {
    prop::collection::vec(1_usize..5, 1..5)
        .prop_map(|records| records.iter().enumerate().map(|(at, &n)| (2 * at as i32 + 1, n)).collect())
}

/// Generates any list that the file can contain: epochs ascend, and offsets do not decrease.
fn any_epochs() -> impl Strategy<Value = Vec<(i32, i64)>> {
    let epoch = prop_oneof![4 => 0_i32..12, 1 => any::<i32>().prop_map(|epoch| epoch & i32::MAX)];
    prop::collection::vec((epoch, 0_i64..25), 0..6).prop_map(|starts| {
        let (mut epochs, mut offsets): (Vec<_>, Vec<_>) = starts.into_iter().unzip();
        epochs.sort_unstable();
        epochs.dedup();
        offsets.sort_unstable();
        epochs.into_iter().zip(offsets).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_replica_loses_a_committed_record(
        history in history(),
        damage in any_epochs(),
        damaged in 0_usize..3,
        leader in 0_usize..3,
        later in 1_i32..3,
    ) {
        let directories = [quick_directory(), quick_directory(), quick_directory()];
        let paths = [directories[0].path(), directories[1].path(), directories[2].path()];
        let brokers = replicated(&paths, &history);
        let committed = brokers[0].batches();
        let end = brokers[0].end();
        let mut at = 0;
        let mut brokers = brokers.map(|broker| {
            let path = paths[at];
            let broker = if at == damaged {
                broker.partition.log().close().unwrap();
                write_epochs(path, &damage);
                broker.restart(path, end)
            } else {
                broker
            };
            at += 1;
            broker
        });
        let epoch = history.last().unwrap().0 + later;
        let others: Vec<i32> = (0..3).filter(|one| *one != leader).map(|one| one as i32 + 1).collect();
        brokers[leader].lead(epoch, &others);
        brokers[leader].append(2);
        for follower in (0..3).filter(|one| *one != leader) {
            let mut one = std::mem::replace(&mut brokers[follower], Broker::start(9, directories[0].path().join("none").as_path()));
            one.follow(epoch, leader as i32 + 1);
            for _ in 0..20 {
                if one.fetch(&brokers[leader]).is_none() {
                    break;
                }
                prop_assert!(one.end() >= end, "broker {} was truncated to {}", follower + 1, one.end());
            }
            brokers[follower] = one;
        }
        let expected: Vec<_> = committed.into_iter().chain([(end, epoch), (end + 1, epoch)]).collect();
        for broker in &brokers {
            prop_assert_eq!(&broker.batches(), &expected);
        }
    }
}

#[test]
fn an_epoch_from_the_future_is_repaired_when_its_broker_leads_and_reported() {
    let directories = [quick_directory(), quick_directory(), quick_directory()];
    let paths = [directories[0].path(), directories[1].path(), directories[2].path()];
    let [one, ..] = replicated(&paths, &[(1, 3), (3, 2)]);
    one.partition.log().close().unwrap();
    write_epochs(paths[0], &[(1, 0), (1_000_003, 3)]);
    let one = one.restart(paths[0], 5);
    let leadership = crate::Leadership { leader_epoch: crate::LeaderEpoch(4), ..crate::Leadership::alone(0) };
    let repaired = one.partition.become_leader(leadership, 0, &mut |_| ()).unwrap().unwrap();
    assert_eq!(
        repaired.to_string(),
        "leader-epoch-checkpoint had epoch 1 at 0, epoch 1000003 at 3, which contradicts the log; read from its batches: \
         epoch 1 at 0, epoch 3 at 3"
    );
    let text = std::fs::read_to_string(paths[0].join(FILE)).unwrap();
    assert_eq!(text, "0\n3\n1 0\n3 3\n4 5\n");
}

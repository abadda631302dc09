//! A leader of several replicas: committed records, waiting requests, and the effects of a role change.

use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;

use super::super::{
    Awaited, BrokerId, Eligibility, FollowerInSync, FollowerPosition, Following, Isolation, LeaderCheck, LeaderEpoch,
    Leadership, NotAppended, NotBecome, Partition, PositionRefused, RoleKind, RoleRefused, Standing, Waiter,
    WaitingFetch, WaitingProduce,
};
use crate::log_fixture::{NOW, build, config, quick_directory};
use pybroker_record::Compression;
use pybroker_storage::{Log, LogConfig, OpenLog};

const WAITER: Waiter = Waiter { connection: 1, request: 2 };
const EPOCH: LeaderEpoch = LeaderEpoch(3);

fn open(directory: &Path, config: LogConfig) -> Partition {
    let how = OpenLog { clean_shutdown: true, recovery_point: 0, log_start_offset: 0, high_watermark: 0, now_ms: NOW };
    let (log, _) = Log::open(&directory.join("t-0"), config, how).unwrap();
    Partition::new("t".into(), 0, [1; 16], directory.to_path_buf(), log, 0)
}

fn leadership(LeaderEpoch(epoch): LeaderEpoch, followers: &[(i32, bool)]) -> Leadership {
    let followers = followers.iter().map(|&(id, in_sync)| FollowerInSync { id: BrokerId(id), in_sync }).collect();
    Leadership { leader_epoch: LeaderEpoch(epoch), partition_epoch: 0, followers, min_in_sync: 2 }
}

fn lead(partition: &Partition, epoch: LeaderEpoch, followers: &[(i32, bool)]) -> Vec<Waiter> {
    let mut woken = Vec::new();
    partition.become_leader(leadership(epoch, followers), NOW, &mut |waiter| woken.push(waiter)).unwrap();
    woken
}

fn follow(partition: &Partition, leader: i32, leader_epoch: LeaderEpoch) -> Result<Vec<Waiter>, NotBecome> {
    let mut woken = Vec::new();
    let following = Following { leader: BrokerId(leader), leader_epoch };
    partition.become_follower(following, &mut |waiter| woken.push(waiter)).map(|_| woken)
}

fn append(partition: &Partition, all: bool) -> Result<Option<Awaited>, NotAppended> {
    let (mut bytes, _) = build(&[100], 0, (-1, -1, -1), Compression::None);
    partition.append(&mut bytes, all, NOW, &mut |_| ()).map(|produced| produced.awaited)
}

fn at(replica: i32, leader_epoch: LeaderEpoch, log_end_offset: i64) -> FollowerPosition {
    let replica = BrokerId(replica);
    FollowerPosition {
        replica,
        broker_epoch: -1,
        leader_epoch,
        log_end_offset,
        log_start_offset: 0,
        eligible: Eligibility::Unknown,
    }
}

fn fetched(partition: &Partition, replica: i32, log_end_offset: i64) -> Vec<Waiter> {
    let (leader_epoch, mut woken) = (LeaderEpoch(partition.leader_epoch()), Vec::new());
    let position = at(replica, leader_epoch, log_end_offset);
    partition.update_replica_position(position, NOW, &mut |waiter| woken.push(waiter)).unwrap();
    woken
}

/// Registers a request for the conditions of an append. No request is woken.
fn wait(partition: &Partition, awaited: &Awaited) -> Arc<WaitingProduce> {
    let produce = WaitingProduce::new(WAITER, awaited.waits());
    partition.await_acknowledgement(awaited, &produce, &mut |waiter| panic!("{waiter:?} was woken early"));
    produce
}

#[test]
fn acks_all_waits_for_every_replica_in_sync_and_acks_1_for_none() {
    let root = quick_directory();
    let partition = open(root.path(), config());
    lead(&partition, EPOCH, &[(2, true), (3, true), (4, false)]);
    assert_eq!(append(&partition, false).unwrap(), None, "acks=1 is acknowledged when it is appended");
    let awaited = append(&partition, true).unwrap().unwrap();
    let expected = Awaited { leader_epoch: EPOCH, end_offset: 2, committed: true, durable: false };
    assert_eq!((awaited, partition.standing(&awaited)), (expected, Standing::Waiting));
    wait(&partition, &awaited);
    assert_eq!(fetched(&partition, 2, 2), []);
    assert_eq!(fetched(&partition, 3, 1), []);
    assert_eq!(partition.high_watermark(), 1, "the slowest in sync decides; one out of sync does not");
    assert_eq!(fetched(&partition, 3, 2), [WAITER]);
    assert_eq!((partition.high_watermark(), partition.standing(&awaited)), (2, Standing::Reached));
    assert_eq!(partition.log().recovery_point(), 0, "committed is not durable");
}

#[test]
fn a_group_flush_waits_for_its_own_device_with_either_acks_and_for_the_others_with_all() {
    let root = quick_directory();
    let partition = open(root.path(), LogConfig { flush_group: true, ..config() });
    lead(&partition, EPOCH, &[(2, true)]);
    let one = append(&partition, false).unwrap().unwrap();
    assert_eq!((one.committed, one.durable), (false, true));
    let all = append(&partition, true).unwrap().unwrap();
    assert_eq!((all.committed, all.durable), (true, true));
    let (first, second) = (wait(&partition, &one), wait(&partition, &all));
    let mut woken = Vec::new();
    partition.sync(&mut |waiter| woken.push(waiter)).unwrap();
    assert_eq!(woken, [WAITER]);
    assert!(!first.claim(), "it was woken: the other replica has nothing yet");
    assert_eq!((partition.standing(&one), partition.standing(&all)), (Standing::Reached, Standing::Waiting));
    assert_eq!(fetched(&partition, 2, 2), [WAITER]);
    assert!(!second.claim() && partition.standing(&all) == Standing::Reached);
}

#[test]
fn nothing_is_committed_beyond_what_a_group_flush_has_synced() {
    let root = quick_directory();
    let partition = open(root.path(), LogConfig { flush_group: true, ..config() });
    lead(&partition, EPOCH, &[(2, true)]);
    let awaited = append(&partition, true).unwrap().unwrap();
    assert_eq!((fetched(&partition, 2, 1), partition.high_watermark()), (vec![], 0));
    partition.sync(&mut |_| ()).unwrap();
    assert_eq!((partition.high_watermark(), partition.standing(&awaited)), (1, Standing::Reached));
}

#[test]
fn a_replica_that_leaves_the_in_sync_ones_lets_those_wait_no_longer() {
    let root = quick_directory();
    let partition = open(root.path(), config());
    lead(&partition, EPOCH, &[(2, true), (3, true)]);
    let awaited = append(&partition, true).unwrap().unwrap();
    wait(&partition, &awaited);
    fetched(&partition, 2, 1);
    assert_eq!(lead(&partition, EPOCH, &[(2, true), (3, false)]), [WAITER]);
    assert_eq!(partition.standing(&awaited), Standing::Reached);
    let late = append(&partition, true).unwrap().unwrap();
    wait(&partition, &late);
    assert_eq!(lead(&partition, EPOCH, &[(2, false), (3, false)]), []);
    assert_eq!(partition.standing(&late), Standing::Waiting, "this broker alone has it, and two are asked for");
    assert_eq!(partition.standing(&awaited), Standing::TooFewInSync);
    assert!(matches!(append(&partition, true), Err(NotAppended::NotEnoughReplicas { in_sync: 1, wanted: 2 })));
    append(&partition, false).unwrap();
    assert_eq!(partition.high_watermark(), 1, "an eligible leader may lack what this broker alone has (KIP-966)");
}

#[test]
fn no_more_replicas_are_asked_for_than_there_are() {
    let root = quick_directory();
    let partition = open(root.path(), config());
    lead(&partition, EPOCH, &[]);
    append(&partition, true).unwrap();
    assert_eq!(partition.high_watermark(), 1, "min.insync.replicas=2 of one replica");
}

#[test]
fn a_waiting_fetch_is_woken_by_the_follower_that_commits_what_it_waits_for() {
    let root = quick_directory();
    let partition = open(root.path(), config());
    lead(&partition, EPOCH, &[(2, true)]);
    let fetch = WaitingFetch::new(WAITER, 1);
    partition.wait(&fetch, Isolation::HighWatermark, 0);
    append(&partition, false).unwrap();
    assert!(!fetched(&partition, 2, 0).contains(&WAITER));
    assert_eq!(fetched(&partition, 2, 1), [WAITER]);
}

#[test]
fn a_follower_takes_no_appends_and_answers_all_who_waited() {
    let root = quick_directory();
    let partition = open(root.path(), config());
    lead(&partition, EPOCH, &[(2, true)]);
    let awaited = append(&partition, true).unwrap().unwrap();
    wait(&partition, &awaited);
    let fetch = WaitingFetch::new(Waiter { connection: 5, request: 6 }, 1);
    partition.wait(&fetch, Isolation::HighWatermark, 0);
    let woken = follow(&partition, 2, LeaderEpoch(4)).unwrap();
    assert_eq!(woken, [Waiter { connection: 5, request: 6 }, WAITER]);
    assert_eq!(partition.standing(&awaited), Standing::NotLeader);
    assert_eq!(partition.check_leader(LeaderEpoch(-1)), LeaderCheck::NotLeader);
    assert!(matches!(append(&partition, false), Err(NotAppended::NotLeader)));
    let position = at(2, EPOCH, 1);
    let refused = partition.update_replica_position(position, NOW, &mut |_| ());
    assert_eq!((refused, partition.high_watermark()), (Err(PositionRefused::NotLeader), 0));
    // A request that registers later does not wait for an event that can never occur.
    let mut woken = Vec::new();
    partition.await_acknowledgement(&awaited, &WaitingProduce::new(WAITER, 1), &mut |waiter| woken.push(waiter));
    assert_eq!((woken, partition.unacknowledged()), (vec![WAITER], (0, 0)));
    lead(&partition, LeaderEpoch(5), &[(2, true)]);
    assert_eq!(partition.standing(&awaited), Standing::NotLeader, "another leader may have cut it off meanwhile");
}

#[test]
fn a_leader_that_stays_one_goes_on_with_those_who_wait() {
    let root = quick_directory();
    let partition = open(root.path(), config());
    lead(&partition, EPOCH, &[(2, true)]);
    let awaited = append(&partition, true).unwrap().unwrap();
    wait(&partition, &awaited);
    assert_eq!(lead(&partition, LeaderEpoch(4), &[(2, true)]), []);
    assert_eq!(fetched(&partition, 2, 1), [WAITER]);
    assert_eq!(partition.standing(&awaited), Standing::Reached);
}

#[test]
fn a_change_that_is_refused_changes_nothing() {
    let root = quick_directory();
    let partition = open(root.path(), config());
    lead(&partition, EPOCH, &[(2, true)]);
    let refused = follow(&partition, 2, EPOCH).unwrap_err();
    assert!(matches!(refused, NotBecome::Refused(RoleRefused::Unlisted { .. })), "{refused:?}");
    let refused = partition.become_none(LeaderEpoch(2), &mut |_| ()).unwrap_err();
    assert_eq!(refused.to_string(), "leader epoch 2 is over: 3 is in force");
    append(&partition, false).unwrap();
    partition.become_none(EPOCH, &mut |_| ()).unwrap();
    assert_eq!((partition.role().kind(), partition.leader_epoch()), (RoleKind::None, 3));
    assert!(matches!(append(&partition, false), Err(NotAppended::NotLeader)));
    let refused = partition.become_leader(leadership(EPOCH, &[]), NOW, &mut |_| ()).unwrap_err();
    assert!(matches!(refused, NotBecome::Refused(RoleRefused::Unlisted { .. })), "{refused:?}");
    lead(&partition, LeaderEpoch(4), &[]);
    assert_eq!(partition.high_watermark(), 1, "a leader alone commits what it has");
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Append,
    /// A follower fetches this number of additional records.
    Fetch(usize, i64),
    /// A follower leaves the ISR, or joins it again if it has all committed records.
    Toggle(usize),
    NewEpoch,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => Just(Step::Append),
        6 => (0..3_usize, 0..5_i64).prop_map(|(follower, more)| Step::Fetch(follower, more)),
        2 => (0..3_usize).prop_map(Step::Toggle),
        1 => Just(Step::NewEpoch),
    ];
    prop::collection::vec(step, 1..60)
}

/// The leader's state of the others, in its simplest form.
#[derive(Default)]
struct Model {
    /// Position in this epoch (-1: none yet), its real log end, and whether it is in sync.
    followers: [(i64, i64, bool); 3],
    end_offset: i64,
    committed: i64,
}

impl Model {
    fn members(&self) -> Vec<(i32, bool)> {
        (2..).zip(self.followers).map(|(id, (_, _, in_sync))| (id, in_sync)).collect()
    }

    fn commit(&mut self) {
        if !self.followers.iter().any(|(_, _, in_sync)| *in_sync) {
            return;
        }
        let slowest = self.followers.iter().filter(|(_, _, in_sync)| *in_sync).map(|(position, _, _)| *position).min();
        self.committed = self.committed.max(slowest.unwrap_or(i64::MAX).min(self.end_offset));
    }
}

#[test]
fn a_new_leader_lags_its_epoch_until_all_that_older_ones_may_have_committed_is_committed() {
    let root = quick_directory();
    let partition = open(root.path(), config());
    lead(&partition, EPOCH, &[(2, true)]);
    assert!(!partition.lags_its_epoch(), "nothing is before it");
    append(&partition, false).unwrap();
    append(&partition, false).unwrap();
    follow(&partition, 2, LeaderEpoch(EPOCH.0 + 1)).unwrap();
    assert!(!partition.lags_its_epoch(), "it leads nothing");
    lead(&partition, LeaderEpoch(EPOCH.0 + 2), &[(2, true)]);
    append(&partition, false).unwrap();
    assert!(partition.lags_its_epoch());
    fetched(&partition, 2, 1);
    assert!(partition.lags_its_epoch());
    fetched(&partition, 2, 2);
    assert!(!partition.lags_its_epoch(), "what is beyond its epoch's start nobody has seen");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_high_watermark_rises_with_the_slowest_in_sync_and_never_beyond_it(steps in steps()) {
        let root = quick_directory();
        let partition = open(root.path(), config());
        let (mut model, mut epoch) = (Model { followers: [(-1, 0, true); 3], ..Model::default() }, EPOCH);
        lead(&partition, epoch, &model.members());
        let mut waiting: Vec<(Awaited, Arc<WaitingProduce>)> = Vec::new();
        for step in steps {
            match step {
                Step::Append => {
                    let alone = model.followers.iter().all(|(_, _, in_sync)| !in_sync);
                    match append(&partition, true) {
                        Ok(awaited) => {
                            model.end_offset += 1;
                            model.commit();
                            prop_assert_eq!(awaited.is_none(), model.committed == model.end_offset);
                            waiting.extend(awaited.map(|awaited| (awaited, wait(&partition, &awaited))));
                        }
                        Err(_) => prop_assert!(alone),
                    }
                }
                Step::Fetch(at, more) => {
                    let (position, has, in_sync) = &mut model.followers[at];
                    *has = (*has + more).min(model.end_offset);
                    *position = *has;
                    let (position, in_sync) = (*position, *in_sync);
                    model.commit();
                    let id = at as i32 + 2;
                    fetched(&partition, id, position);
                    if !in_sync {
                        // A replica that catches up would count for the high watermark; its join is rejected here.
                        partition.stop_joining(&[BrokerId(id)], &mut |_| ());
                    }
                }
                Step::Toggle(at) => {
                    let (position, _, in_sync) = &mut model.followers[at];
                    *in_sync = !*in_sync && *position >= model.committed;
                    model.commit();
                    lead(&partition, epoch, &model.members());
                }
                Step::NewEpoch => {
                    epoch = LeaderEpoch(epoch.0 + 1);
                    model.followers.iter_mut().for_each(|(position, _, _)| *position = -1);
                    model.commit();
                    lead(&partition, epoch, &model.members());
                }
            }
            prop_assert_eq!(partition.high_watermark(), model.committed);
            prop_assert!(model.followers.iter().all(|(_, has, in_sync)| !in_sync || model.committed <= *has));
            // Exactly those requests have been woken whose appends are committed.
            waiting.retain(|(awaited, produce)| awaited.end_offset > model.committed || produce.claim());
            prop_assert!(waiting.iter().all(|(awaited, _)| awaited.end_offset > model.committed));
            prop_assert_eq!(partition.unacknowledged(), (waiting.len(), 0));
        }
    }
}

//! The leader's state of the other replicas.

use super::*;

fn leadership(epoch: i32, followers: &[(i32, bool)]) -> Leadership {
    let followers = followers.iter().map(|&(id, in_sync)| FollowerInSync { id: BrokerId(id), in_sync }).collect();
    Leadership { leader_epoch: LeaderEpoch(epoch), partition_epoch: 0, followers, min_in_sync: 2 }
}

fn state(leader: &Leader, id: i32) -> (i64, Option<i64>, bool) {
    let state = leader.replicas().find(|state| state.id == BrokerId(id)).unwrap();
    (state.log_end_offset, state.caught_up_ms, state.in_sync)
}

fn at(replica: i32, log_end_offset: i64) -> FollowerPosition {
    let leader_epoch = LeaderEpoch(3);
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

#[test]
fn a_fetch_is_of_a_process_that_is_gone_by_what_is_registered_alone() {
    let leader = Leader::new(leadership(3, &[(2, true)]), None, Offset(0), 0);
    let of = |broker_epoch, registered, end| {
        let position = FollowerPosition { broker_epoch, eligible: registered, ..at(2, end) };
        leader.update_position(position, Offset(9), 1)
    };
    assert_eq!(of(i64::MAX, Eligibility::At(7), 5), Ok(()));
    assert_eq!(of(7, Eligibility::At(7), 6), Ok(()), "what another Fetch named shuts nobody out");
    assert_eq!(of(6, Eligibility::At(7), 9), Err(PositionRefused::StaleBroker));
    assert_eq!(state(&leader, 2).0, 6);
    assert_eq!((of(-1, Eligibility::At(7), 7), of(6, Eligibility::Unknown, 8)), (Ok(()), Ok(())));
    assert_eq!(of(6, Eligibility::None, 9), Ok(()), "it counts for nothing, and says what to send");
}

#[test]
fn a_replica_that_is_out_of_sync_does_not_hold_the_high_watermark_back() {
    let leader = Leader::new(leadership(3, &[(2, true), (3, false)]), None, Offset(0), 0);
    assert_eq!((leader.in_sync(), leader.high_watermark(9)), (2, UNKNOWN));
    leader.update_position(at(2, 5), Offset(9), 1).unwrap();
    assert_eq!(leader.high_watermark(9), 5);
    assert_eq!(leader.update_position(at(4, 5), Offset(9), 1), Err(PositionRefused::NotAReplica));
}

#[test]
fn a_replica_has_caught_up_when_it_has_what_the_leader_had_at_its_last_fetch() {
    let leader = Leader::new(leadership(3, &[(2, true), (3, false)]), None, Offset(0), 100);
    assert_eq!((state(&leader, 2), state(&leader, 3)), ((-1, Some(100), true), (-1, None, false)));
    leader.update_position(at(3, 0), Offset(10), 200).unwrap();
    assert_eq!(state(&leader, 3), (0, None, false));
    leader.update_position(at(3, 9), Offset(20), 300).unwrap();
    assert_eq!(state(&leader, 3), (9, None, false), "it lacks a record that was there at 200");
    leader.update_position(at(3, 20), Offset(30), 400).unwrap();
    assert_eq!(state(&leader, 3), (20, Some(300), false));
    leader.update_position(at(3, 30), Offset(30), 500).unwrap();
    assert_eq!(state(&leader, 3), (30, Some(500), false));
}

/// The replica has all records of its last Fetch, but not those committed since. It does not join the ISR, and may be
/// down.
#[test]
fn the_high_watermark_does_not_wait_for_a_replica_that_may_not_be_in_sync() {
    let leader = Leader::new(leadership(3, &[(2, true), (3, false)]), None, Offset(0), 0);
    for (log_end_offset, own) in [(0, 10), (10, 20)] {
        leader
            .update_position(FollowerPosition { eligible: Eligibility::None, ..at(3, log_end_offset) }, Offset(own), 1)
            .unwrap();
    }
    leader.update_position(at(2, 20), Offset(20), 2).unwrap();
    assert_eq!(leader.high_watermark(20), 20);
    leader.update_position(at(3, 20), Offset(20), 3).unwrap();
    leader.update_position(at(2, 30), Offset(30), 4).unwrap();
    assert_eq!(leader.high_watermark(30), 20, "its broker is unfenced");
    leader.update_position(FollowerPosition { eligible: Eligibility::None, ..at(3, 20) }, Offset(30), 5).unwrap();
    assert_eq!(leader.high_watermark(30), 30);
}

/// Its log may have failed after its last Fetch, which had all records of that time.
#[test]
fn what_a_replica_had_before_it_left_the_in_sync_ones_does_not_make_it_count() {
    let before = Leader::new(leadership(3, &[(2, true), (3, true)]), None, Offset(0), 0);
    before.update_position(at(3, 7), Offset(7), 1).unwrap();
    let leader = Leader::new(leadership(3, &[(2, true), (3, false)]), Some(&before), Offset(8), 2);
    leader.update_position(at(3, 7), Offset(8), 3).unwrap();
    leader.update_position(at(2, 8), Offset(8), 4).unwrap();
    assert_eq!(leader.high_watermark(8), 8);
    leader.update_position(at(3, 8), Offset(8), 5).unwrap();
    leader.update_position(at(2, 9), Offset(9), 6).unwrap();
    assert_eq!(leader.high_watermark(9), 8, "it has caught up again");
}

#[test]
fn positions_outlive_a_change_of_the_replicas_and_end_with_the_epoch() {
    let first = Leader::new(leadership(3, &[(2, true), (3, false)]), None, Offset(0), 0);
    first.update_position(at(3, 7), Offset(7), 50).unwrap();
    let grown = Leader::new(leadership(3, &[(3, true), (4, true)]), Some(&first), Offset(0), 60);
    assert_eq!((state(&grown, 3), state(&grown, 4)), ((7, Some(50), true), (-1, Some(60), true)));
    first.update_position(at(3, 8), Offset(8), 70).unwrap();
    assert_eq!(state(&grown, 3).0, 8, "a Fetch that found the older role");
    let next = Leader::new(leadership(4, &[(3, true), (4, true)]), Some(&grown), Offset(0), 80);
    assert_eq!(state(&next, 3), (-1, Some(80), true));
    assert_eq!(next.update_position(at(3, 9), Offset(9), 90), Err(PositionRefused::NotLeader), "of the epoch before");
    assert!(next.has_led_since(LeaderEpoch(3)) && !next.has_led_since(LeaderEpoch(2)));
}

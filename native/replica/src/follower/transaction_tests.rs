//! Transactions over several replicas: the last stable offset of each, and an open transaction after leader changes.

use super::tests::Broker;
use crate::log_fixture::{NOW, build, quick_directory};
use crate::{EndedTransaction, NotAppended, Produced};
use pybroker_record::{Compression, EndMarker, Offset, SentRecords, set_transactional};
use pybroker_storage::{
    AppendError, BeginningTransaction, ConfirmedTransaction, TransactionCheck, TransactionalIdHash, VerificationGuard,
};

const PRODUCER: i64 = 7;

fn beginning(sequence: i32) -> BeginningTransaction {
    let transactional_id = Some(TransactionalIdHash::of("t"));
    BeginningTransaction { producer_id: PRODUCER, producer_epoch: 0, sequence, bumps_epoch: false, transactional_id }
}

fn guard(broker: &Broker, sequence: i32) -> Option<VerificationGuard> {
    broker.partition.begin_verification(beginning(sequence), NOW).unwrap()
}

fn confirm(broker: &Broker) {
    let transactional_id = TransactionalIdHash::of("t");
    let confirmed =
        ConfirmedTransaction { transactional_id, producer_id: PRODUCER, producer_epoch: 0, coordinator_epoch: 3 };
    broker.partition.confirm_transaction(confirmed, NOW);
}

/// Appends a batch of one record of the producer's transaction.
fn send(broker: &Broker, sequence: i32, guard: Option<VerificationGuard>) -> Result<Produced, NotAppended> {
    let (mut bytes, _) = build(&[20], 0, (PRODUCER, 0, sequence), Compression::None);
    set_transactional(&mut bytes);
    let sent = SentRecords::find(&mut bytes).unwrap();
    broker.partition.append_as_leader(sent, false, NOW, TransactionCheck::Guarded(guard), &mut |_| ())
}

fn send_verified(broker: &Broker, sequence: i32) {
    send(broker, sequence, guard(broker, sequence)).unwrap();
}

fn end(broker: &Broker, commit: bool, coordinator_epoch: i32) -> Result<(), NotAppended> {
    let marker = EndMarker { commit, coordinator_epoch };
    let ended = EndedTransaction { marker, producer_id: PRODUCER, producer_epoch: 0, bumped: false };
    broker.partition.append_marker(&ended, NOW, &mut |_| ()).map(|_| ())
}

fn stable(broker: &Broker) -> i64 {
    broker.partition.last_stable_offset()
}

/// Returns first and last offset of each aborted transaction.
fn aborted(broker: &Broker) -> Vec<(i64, i64)> {
    let all = Offset(0)..Offset(broker.end());
    let found = broker.partition.log().aborted_transactions(all).unwrap();
    found.iter().map(|aborted| (aborted.first_offset, aborted.last_offset)).collect()
}

#[test]
fn a_marker_counts_on_each_replica_once_it_is_committed() {
    let (a, b) = (quick_directory(), quick_directory());
    let (one, mut two) = (Broker::start(1, a.path()), Broker::start(2, b.path()));
    one.lead(1, &[2]);
    two.follow(1, 1);
    one.append(1);
    send_verified(&one, 0);
    two.catch_up(&one);
    assert_eq!((one.partition.high_watermark(), stable(&one), stable(&two)), (2, 1, 1));
    end(&one, false, 0).unwrap();
    assert_eq!(stable(&one), 1, "the other replica does not have the marker");
    two.fetch(&one);
    assert_eq!(stable(&two), 1, "it does not know yet that the marker is committed");
    two.catch_up(&one);
    assert_eq!((stable(&one), stable(&two)), (3, 3));
    assert_eq!((aborted(&one), aborted(&two)), (vec![(1, 2)], vec![(1, 2)]));
}

#[test]
fn a_new_leader_goes_on_with_what_is_open_and_verifies_what_begins() {
    let (a, b) = (quick_directory(), quick_directory());
    let (mut one, mut two) = (Broker::start(1, a.path()), Broker::start(2, b.path()));
    one.lead(1, &[2]);
    two.follow(1, 1);
    send_verified(&one, 0);
    two.catch_up(&one);
    two.lead(2, &[1]);
    one.follow(2, 2);
    assert!(matches!(one.partition.begin_verification(beginning(1), NOW), Err(NotAppended::NotLeader)));
    assert_eq!(guard(&two, 1), None);
    send(&two, 1, None).unwrap();
    end(&two, true, 3).unwrap();
    one.catch_up(&two);
    assert_eq!((stable(&one), stable(&two)), (3, 3));
    let refused = send(&two, 2, None);
    assert!(matches!(refused, Err(NotAppended::Log(AppendError::NotVerified { .. }))), "{refused:?}");
    // The new leader has the coordinator's epoch from the other broker's log.
    one.lead(3, &[2]);
    let refused = end(&one, true, 2);
    assert!(matches!(refused, Err(NotAppended::Log(AppendError::CoordinatorFenced { .. }))), "{refused:?}");
}

#[test]
fn what_a_leader_was_confirmed_ends_by_the_marker_of_another_leader() {
    let (a, b) = (quick_directory(), quick_directory());
    let (mut one, mut two) = (Broker::start(1, a.path()), Broker::start(2, b.path()));
    one.lead(1, &[2]);
    two.follow(1, 1);
    confirm(&one);
    confirm(&two);
    assert_eq!(guard(&one, 0), None);
    two.lead(2, &[1]);
    one.follow(2, 2);
    assert!(guard(&two, 0).is_some(), "it was no leader when it was confirmed");
    end(&two, false, 3).unwrap();
    one.catch_up(&two);
    one.lead(3, &[2]);
    two.follow(3, 1);
    assert!(matches!(send(&one, 0, None), Err(NotAppended::Log(AppendError::NotVerified { .. }))));
    assert!(guard(&one, 0).is_some());
}

#[test]
fn a_log_that_was_cut_inside_of_a_transaction_has_it_open_again() {
    let (a, b) = (quick_directory(), quick_directory());
    let (mut one, mut two) = (Broker::start(1, a.path()), Broker::start(2, b.path()));
    one.lead(1, &[2]);
    two.follow(1, 1);
    send_verified(&one, 0);
    two.catch_up(&one);
    // Only the leader has the marker and the records after it.
    end(&one, true, 0).unwrap();
    one.append(1);
    two.lead(2, &[1]);
    assert_eq!(stable(&two), 0);
    end(&two, false, 1).unwrap();
    one.follow(2, 2);
    one.catch_up(&two);
    assert_eq!(one.batches(), [(0, 1), (1, 2)]);
    one.catch_up(&two);
    assert_eq!((stable(&one), stable(&two)), (2, 2));
    assert_eq!((aborted(&one), aborted(&two)), (vec![(0, 1)], vec![(0, 1)]));
}

#[test]
fn what_a_log_has_open_survives_its_process() {
    let (a, b) = (quick_directory(), quick_directory());
    let (one, mut two) = (Broker::start(1, a.path()), Broker::start(2, b.path()));
    one.lead(1, &[2]);
    two.follow(1, 1);
    one.append(2);
    send_verified(&one, 0);
    two.catch_up(&one);
    let (one, two) = (one.restart(a.path(), 0), two.restart(b.path(), 3));
    two.lead(2, &[]);
    assert_eq!((stable(&one), stable(&two)), (0, 2));
    assert_eq!(guard(&two, 1), None, "the transaction is open");
    end(&two, true, 0).unwrap();
    assert_eq!(stable(&two), 4);
}

//! Produces of transactions over real sockets: the control plane is asked once for each partition and transaction, and
//! markers end them.

use std::collections::HashSet;
use std::io::Write;
use std::net::TcpStream;

use pybroker_net::{Authorization, Event, TransactionQuery, UnresolvedRequest};
use pybroker_record::EndMarker;
use pybroker_replica::{BrokerId, EndedTransaction, Following, LeaderEpoch, Leadership, Offset, Waiter};
use pybroker_wire::primitives::{Reader, Writer};
use pybroker_wire::{ErrorCode, TopicRef};

use super::read_committed::transactional;
use super::support::{Plane, batch, frame, read_frame};

/// A Produce of version 7 by a transactional id.
fn produce(correlation: i32, id: Option<&str>, topics: &[&str], records: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    let mut writer = Writer::new(&mut body, false);
    writer.nullable_string(id);
    writer.i16(-1);
    writer.i32(30_000);
    writer.array_len(topics.len());
    for topic in topics {
        writer.string(topic);
        writer.array_len(1);
        writer.i32(0);
        writer.bytes(records);
    }
    frame(0, 7, correlation, &body)
}

/// What the coordinator is asked for the request that was sent last, and which request it is.
fn requested(plane: &Plane) -> (Waiter, TransactionQuery) {
    let event = plane.event(|event| matches!(event, Event::Unresolved(_)));
    let Event::Unresolved(UnresolvedRequest { connection, request, transaction, .. }) = event else { unreachable!() };
    (Waiter { connection, request }, transaction.unwrap())
}

/// The error of the first partition.
fn error_of(socket: &mut TcpStream, correlation: i32) -> ErrorCode {
    let frame = read_frame(socket);
    let mut reader = Reader::new(&frame, 0, false);
    assert_eq!(reader.i32(), Ok(correlation));
    assert!(reader.array_len().unwrap() > 0);
    reader.string().unwrap();
    assert_eq!(reader.array_len(), Ok(1));
    reader.i32().unwrap();
    reader.error_code().unwrap()
}

fn end(plane: &Plane, producer_id: i64, producer_epoch: i16, commit: bool) -> Vec<ErrorCode> {
    let marker = EndMarker { commit, coordinator_epoch: 0 };
    let ended = EndedTransaction { marker, producer_id, producer_epoch, bumped: false };
    let (markers, is_awaited) = plane.data_plane().append_markers(vec![(plane.partition("t", 0), ended)], 5);
    assert!(!is_awaited, "one replica commits at once");
    markers.error_codes()
}

#[test]
fn the_coordinator_is_asked_once_for_a_transaction_and_again_for_the_next() {
    let plane = Plane::start();
    plane.topic("t", 1);
    let mut producer = plane.connect();
    for round in 0..3 {
        let sequence = round * 2;
        producer.write_all(&produce(1, Some("x"), &["t"], &transactional(7, sequence, "a"))).unwrap();
        let (waiter, transaction) = requested(&plane);
        let expected = TransactionQuery {
            transactional_id: "x".into(),
            producer_id: 7,
            producer_epoch: 0,
            api_version: 7,
            partitions: vec![("t".into(), 0)],
        };
        assert_eq!(transaction, expected);
        plane.data_plane().verified(waiter, vec![None]);
        assert_eq!(error_of(&mut producer, 1), ErrorCode::NONE);
        producer.write_all(&produce(2, Some("x"), &["t"], &transactional(7, sequence + 1, "b"))).unwrap();
        assert_eq!(error_of(&mut producer, 2), ErrorCode::NONE);
        assert!(!plane.has_seen(|event| matches!(event, Event::Unresolved(_))));
        assert_eq!(end(&plane, 7, 0, round % 2 == 0), [ErrorCode::NONE]);
        assert_eq!(plane.partition("t", 0).last_stable_offset(), i64::from(round + 1) * 3);
    }
}

#[test]
fn what_the_coordinator_refuses_is_not_appended_and_the_rest_is() {
    let plane = Plane::start();
    plane.topic("t", 1);
    plane.topic("u", 2);
    let mut producer = plane.connect();
    producer.write_all(&produce(1, Some("x"), &["t", "u"], &transactional(7, 0, "a"))).unwrap();
    let (waiter, transaction) = requested(&plane);
    assert_eq!(transaction.partitions, [("t".into(), 0), ("u".into(), 0)]);
    plane.data_plane().verified(waiter, vec![Some((ErrorCode::NOT_ENOUGH_REPLICAS, None)), None]);
    assert_eq!(error_of(&mut producer, 1), ErrorCode::NOT_ENOUGH_REPLICAS);
    let ends = ["t", "u"].map(|topic| plane.partition(topic, 0).log().log_end_offset());
    assert_eq!(ends, [0, 1]);
    // An answer about fewer partitions verifies none of the others.
    producer.write_all(&produce(2, Some("x"), &["t"], &transactional(7, 0, "a"))).unwrap();
    let (waiter, _) = requested(&plane);
    plane.data_plane().verified(waiter, vec![]);
    assert_eq!(error_of(&mut producer, 2), ErrorCode::INVALID_TXN_STATE);
}

#[test]
fn a_partition_that_was_not_led_when_the_coordinator_was_asked_stays_refused_when_it_is_led() {
    let plane = Plane::start();
    plane.topic("t", 1);
    plane.topic("u", 2);
    let following = Following { leader: BrokerId(2), leader_epoch: LeaderEpoch(1) };
    plane.partition("u", 0).become_follower(following, &mut |_| ()).unwrap();
    let mut producer = plane.connect();
    producer.write_all(&produce(1, Some("x"), &["u", "t"], &transactional(7, 0, "a"))).unwrap();
    let (waiter, transaction) = requested(&plane);
    assert_eq!(transaction.partitions, [("t".into(), 0)]);
    let alone = Leadership { leader_epoch: LeaderEpoch(2), ..Leadership::alone(0) };
    plane.partition("u", 0).become_leader(alone, 0, &mut |_| ()).unwrap();
    plane.data_plane().verified(waiter, vec![None]);
    assert_eq!(error_of(&mut producer, 1), ErrorCode::NOT_LEADER_OR_FOLLOWER);
    let ends = ["u", "t"].map(|topic| plane.partition(topic, 0).log().log_end_offset());
    assert_eq!(ends, [0, 1]);
    // The producer retries the partition, and the coordinator is asked about it.
    producer.write_all(&produce(2, Some("x"), &["u"], &transactional(7, 0, "a"))).unwrap();
    let (waiter, transaction) = requested(&plane);
    assert_eq!(transaction.partitions, [("u".into(), 0)]);
    plane.data_plane().verified(waiter, vec![None]);
    assert_eq!(error_of(&mut producer, 2), ErrorCode::NONE);
}

#[test]
fn a_verification_that_a_leader_change_has_removed_is_retried() {
    let plane = Plane::start();
    plane.topic("t", 1);
    let mut producer = plane.connect();
    producer.write_all(&produce(1, Some("x"), &["t"], &transactional(7, 0, "a"))).unwrap();
    let (waiter, _) = requested(&plane);
    let partition = plane.partition("t", 0);
    let following = Following { leader: BrokerId(2), leader_epoch: LeaderEpoch(1) };
    partition.become_follower(following, &mut |_| ()).unwrap();
    partition.log().truncate_fully_and_start_at(Offset(0), 5).unwrap();
    let alone = Leadership { leader_epoch: LeaderEpoch(2), ..Leadership::alone(0) };
    partition.become_leader(alone, 0, &mut |_| ()).unwrap();
    plane.data_plane().verified(waiter, vec![None]);
    assert_eq!(error_of(&mut producer, 1), ErrorCode::NOT_LEADER_OR_FOLLOWER);
    assert_eq!(partition.log().log_end_offset(), 0);
}

#[test]
fn a_marker_while_the_coordinator_is_asked_refuses_the_batch() {
    let plane = Plane::start();
    plane.topic("t", 1);
    let mut producer = plane.connect();
    producer.write_all(&produce(1, Some("x"), &["t"], &transactional(7, 0, "a"))).unwrap();
    let (waiter, _) = requested(&plane);
    assert_eq!(end(&plane, 7, 0, false), [ErrorCode::NONE]);
    plane.data_plane().verified(waiter, vec![None]);
    assert_eq!(error_of(&mut producer, 1), ErrorCode::INVALID_TXN_STATE);
    assert_eq!(plane.partition("t", 0).last_stable_offset(), 1);
}

#[test]
fn a_batch_of_a_transaction_without_a_transactional_id_is_refused() {
    let plane = Plane::start();
    plane.topic("t", 1);
    let mut producer = plane.connect();
    producer.write_all(&produce(1, None, &["t"], &transactional(7, 0, "a"))).unwrap();
    assert_eq!(error_of(&mut producer, 1), ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED);
    // Bytes that are no batch are none of a transaction, whatever they say.
    producer.write_all(&produce(3, None, &["t"], &(100..140).collect::<Vec<u8>>())).unwrap();
    assert!(matches!(error_of(&mut producer, 3), ErrorCode::CORRUPT_MESSAGE | ErrorCode::INVALID_RECORD));
    // A plain batch of a client that names one is plain.
    producer.write_all(&produce(2, Some("x"), &["t"], &batch(&["a"]))).unwrap();
    assert_eq!(error_of(&mut producer, 2), ErrorCode::NONE);
    assert!(!plane.has_seen(|event| matches!(event, Event::Unresolved(_))));
}

#[test]
fn nobody_is_asked_where_verification_is_off() {
    let plane = Plane::start();
    plane.topic("t", 1);
    plane.data_plane().verify_transactions(false);
    let mut producer = plane.connect();
    producer.write_all(&produce(1, Some("x"), &["t"], &transactional(7, 0, "a"))).unwrap();
    assert_eq!(error_of(&mut producer, 1), ErrorCode::NONE);
    plane.data_plane().verify_transactions(true);
    assert_eq!(end(&plane, 7, 0, true), [ErrorCode::NONE]);
    producer.write_all(&produce(2, Some("x"), &["t"], &transactional(7, 1, "b"))).unwrap();
    plane.data_plane().verified(requested(&plane).0, vec![None]);
    assert_eq!(error_of(&mut producer, 2), ErrorCode::NONE);
}

#[test]
fn a_topic_that_is_not_known_yet_is_looked_for_before_the_coordinator_is_asked() {
    let plane = Plane::start();
    let mut producer = plane.connect();
    producer.write_all(&produce(1, Some("x"), &["t"], &transactional(7, 0, "a"))).unwrap();
    let event = plane.event(|event| matches!(event, Event::Unresolved(found) if found.transaction.is_none()));
    let Event::Unresolved(found) = event else { unreachable!() };
    assert_eq!(found.topics, ["t"]);
    plane.topic("t", 1);
    plane.retry(found.connection, found.request);
    let (waiter, _) = requested(&plane);
    plane.data_plane().verified(waiter, vec![None]);
    assert_eq!(error_of(&mut producer, 1), ErrorCode::NONE);
}

/// What the client of the request that was sent last is to be judged for, and which request it is.
fn checked(plane: &Plane) -> (Waiter, Option<String>) {
    let event = plane.event(|event| matches!(event, Event::Unresolved(found) if found.check.is_some()));
    let Event::Unresolved(found) = event else { unreachable!() };
    (Waiter { connection: found.connection, request: found.request }, found.transactional_id)
}

#[test]
fn the_right_to_a_transactional_id_is_asked_for_once_and_remembered() {
    let plane = Plane::start();
    plane.topic("t", 1);
    plane.data_plane().set_rights(1000, 1);
    let allowed = HashSet::from([TopicRef::Name("t".into())]);
    let decision = |transactional_id| Authorization { allowed: allowed.clone(), version: 1, transactional_id };
    let mut producer = plane.connect();
    producer.write_all(&produce(1, Some("x"), &["t"], &transactional(7, 0, "a"))).unwrap();
    let (waiter, id) = checked(&plane);
    assert_eq!(id.as_deref(), Some("x"));
    plane.data_plane().retry(waiter, decision(true));
    plane.data_plane().verified(requested(&plane).0, vec![None]);
    assert_eq!(error_of(&mut producer, 1), ErrorCode::NONE);
    producer.write_all(&produce(2, Some("x"), &["t"], &transactional(7, 1, "b"))).unwrap();
    assert_eq!(error_of(&mut producer, 2), ErrorCode::NONE);
    assert!(!plane.has_seen(|event| matches!(event, Event::Unresolved(_))));
    // A right to another id is none to this one, and that of the topic is not asked for again alone.
    producer.write_all(&produce(3, Some("y"), &["t"], &transactional(8, 0, "c"))).unwrap();
    let (waiter, id) = checked(&plane);
    assert_eq!(id.as_deref(), Some("y"));
    plane.data_plane().retry(waiter, decision(false));
    assert_eq!(error_of(&mut producer, 3), ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED);
    producer.write_all(&produce(4, Some("y"), &["t"], &transactional(8, 0, "c"))).unwrap();
    assert_eq!(error_of(&mut producer, 4), ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED);
    // What is not of a transaction needs no right to the id that it names.
    producer.write_all(&produce(5, Some("y"), &["t"], &batch(&["d"]))).unwrap();
    assert_eq!(error_of(&mut producer, 5), ErrorCode::NONE);
    assert!(!plane.has_seen(|event| matches!(event, Event::Unresolved(_))));
    assert_eq!(plane.partition("t", 0).log().log_end_offset(), 3);
}

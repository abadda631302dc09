//! A partition with other replicas, over real sockets: who waits for them, and what a change of role answers.

use std::io::Write;
use std::sync::Arc;

use super::support::{Fetched, Plane, Produced, batch, fetch_request, frame, produce_request, read_frame, values};
use pybroker_replica::{
    BrokerId, Eligibility, FollowerInSync, FollowerPosition, Following, LeaderEpoch, Leadership, Topic, TopicTable,
};
use pybroker_wire::BrokerEndpoint;
use pybroker_wire::primitives::{Reader, Writer};

const NOT_LEADER_OR_FOLLOWER: i16 = 6;

/// A topic of which this broker leads a partition at epoch 3, with one other replica that is in sync.
fn replicated(plane: &Plane, name: &str) {
    plane.topic(name, 1);
    let followers = vec![FollowerInSync { id: BrokerId(2), in_sync: true }];
    let leadership = Leadership { leader_epoch: LeaderEpoch(3), partition_epoch: 0, followers, min_in_sync: 1 };
    plane.partition(name, 0).become_leader(leadership, 0, &mut |waiter| plane.wake(waiter)).unwrap();
}

fn follower_fetched(plane: &Plane, name: &str, log_end_offset: i64) {
    let (replica, leader_epoch) = (BrokerId(2), LeaderEpoch(3));
    let (broker_epoch, log_start_offset) = (-1, 0);
    let position = FollowerPosition {
        replica,
        broker_epoch,
        leader_epoch,
        log_end_offset,
        log_start_offset,
        eligible: Eligibility::Unknown,
    };
    plane.partition(name, 0).update_replica_position(position, 0, &mut |waiter| plane.wake(waiter)).unwrap();
}

fn follow(plane: &Plane, name: &str) {
    let following = Following { leader: BrokerId(2), leader_epoch: LeaderEpoch(4) };
    plane.partition(name, 0).become_follower(following, &mut |waiter| plane.wake(waiter)).unwrap();
}

#[test]
fn acks_all_is_answered_when_the_follower_has_it_and_acks_1_at_once() {
    let plane = Plane::start();
    replicated(&plane, "t");
    let (mut all, mut one, mut reader) = (plane.connect(), plane.connect(), plane.connect());
    all.write_all(&produce_request(1, "t", 0, -1, &batch(&["a"]))).unwrap();
    plane.wait_until(|| plane.partition("t", 0).unacknowledged() == (1, 0));
    one.write_all(&produce_request(2, "t", 0, 1, &batch(&["b"]))).unwrap();
    let response = Produced::read(&mut one, 2);
    assert_eq!((response.error, response.base_offset), (0, 1));
    reader.write_all(&fetch_request(3, "t", 0, 0, 1, 0)).unwrap();
    assert_eq!(Fetched::read(&mut reader, 3).records.len(), 0, "what is not committed is not shown");
    reader.write_all(&fetch_request(4, "t", 0, 0, 1, 60_000)).unwrap();
    plane.wait_until(|| plane.partition("t", 0).waiting() == 1);
    follower_fetched(&plane, "t", 1);
    let response = Produced::read(&mut all, 1);
    assert_eq!((response.error, response.base_offset), (0, 0));
    assert_eq!(values(&Fetched::read(&mut reader, 4).records), ["a"]);
}

#[test]
fn requests_that_wait_are_answered_when_the_leader_becomes_a_follower() {
    let plane = Plane::start();
    replicated(&plane, "t");
    let (mut producer, mut reader) = (plane.connect(), plane.connect());
    producer.write_all(&produce_request(1, "t", 0, -1, &batch(&["a"]))).unwrap();
    reader.write_all(&fetch_request(2, "t", 0, 0, 1, 60_000)).unwrap();
    plane.wait_until(|| plane.partition("t", 0).unacknowledged() == (1, 0));
    plane.wait_until(|| plane.partition("t", 0).waiting() == 1);
    follow(&plane, "t");
    assert_eq!(Produced::read(&mut producer, 1).error, NOT_LEADER_OR_FOLLOWER);
    assert_eq!(Fetched::read(&mut reader, 2).error, NOT_LEADER_OR_FOLLOWER);
    producer.write_all(&produce_request(3, "t", 0, 1, &batch(&["b"]))).unwrap();
    assert_eq!(Produced::read(&mut producer, 3).error, NOT_LEADER_OR_FOLLOWER);
    reader.write_all(&fetch_request(4, "t", 0, 0, 1, 60_000)).unwrap();
    assert_eq!(Fetched::read(&mut reader, 4).error, NOT_LEADER_OR_FOLLOWER);
    assert_eq!(plane.partition("t", 0).log().log_end_offset(), 1);
}

/// Produce of version 10 with acks=all, the first whose answer names leaders.
fn produce_named(correlation: i32, topic: &str, records: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    let mut writer = Writer::new(&mut body, true);
    writer.tags_none();
    writer.nullable_string(None);
    writer.i16(-1);
    writer.i32(30_000);
    writer.array_len(1);
    writer.string(topic);
    writer.array_len(1);
    writer.i32(0);
    writer.bytes(records);
    writer.tags_none();
    writer.tags_none();
    writer.tags_none();
    frame(0, 10, correlation, &body)
}

/// The current leader, its epoch, and the host of its endpoint, which close a Produce answer of version 10.
fn named(response: &[u8]) -> (i16, i32, i32, String) {
    let mut reader = Reader::new(response, 4, true);
    reader.tags().unwrap();
    assert_eq!(reader.array_len(), Ok(1));
    reader.string().unwrap();
    assert_eq!(reader.array_len(), Ok(1));
    reader.i32().unwrap();
    let error = reader.i16().unwrap();
    for _ in 0..3 {
        reader.i64().unwrap();
    }
    assert_eq!((reader.array_len(), reader.nullable_string()), (Ok(0), Ok(None)));
    assert_eq!((reader.uvarint(), reader.uvarint(), reader.uvarint()), (Ok(1), Ok(0), Ok(9)));
    let (leader, epoch) = (reader.i32().unwrap(), reader.i32().unwrap());
    reader.tags().unwrap();
    reader.tags().unwrap();
    reader.i32().unwrap();
    assert_eq!((reader.uvarint(), reader.uvarint()), (Ok(1), Ok(0)));
    reader.uvarint().unwrap();
    assert_eq!((reader.array_len(), reader.i32()), (Ok(1), Ok(leader)));
    (error, leader, epoch, reader.string().unwrap().to_owned())
}

#[test]
fn an_answer_that_waited_names_the_new_leader_also_before_the_table_does() {
    let plane = Plane::start();
    replicated(&plane, "t");
    let at = |host: &str| vec![BrokerEndpoint { id: 2, host: host.to_owned(), port: 9092, rack: None }];
    let brokers = vec![("INSIDE".to_owned(), at("inside")), ("PLAINTEXT".to_owned(), at("there"))];
    let slots = plane.table().by_name("t").unwrap().partitions.clone();
    let topic = Topic { name: "t".into(), id: [1; 16], internal: false, partitions: slots, counters: Arc::default() };
    plane.publish(Arc::new(TopicTable::new(brokers).replace([topic], &[])));
    let mut producer = plane.connect();
    producer.write_all(&produce_named(1, "t", &batch(&["a"]))).unwrap();
    plane.wait_until(|| plane.partition("t", 0).unacknowledged() == (1, 0));
    follow(&plane, "t");
    assert_eq!(named(&read_frame(&mut producer)), (NOT_LEADER_OR_FOLLOWER, 2, 4, "there".to_owned()));
}

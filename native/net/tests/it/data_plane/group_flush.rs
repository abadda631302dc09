//! `flush=group` over real sockets: nothing is acknowledged or shown before it is synced, and nobody else waits for it.

use std::io::Write;
use std::sync::Arc;

use super::support::{Fetched, Plane, Produced, batch, fetch_request, produce_request, values};
use pybroker_replica::TopicTable;

const STORAGE_ERROR: i16 = 56;

#[test]
fn a_produce_is_acknowledged_when_it_is_on_the_device() {
    let plane = Plane::start();
    plane.topic_with("t", 1, |config| config.flush_group = true);
    let mut socket = plane.connect();
    for (number, acks) in [(0, -1), (1, 1)] {
        socket.write_all(&produce_request(number, "t", 0, acks, &batch(&["a"]))).unwrap();
        let response = Produced::read(&mut socket, number);
        assert_eq!((response.error, response.base_offset), (0, i64::from(number)));
        let partition = plane.partition("t", 0);
        assert!(partition.log().recovery_point() > i64::from(number));
        assert_eq!(partition.high_watermark(), i64::from(number) + 1);
    }
    assert_eq!((plane.flush_counts().syncs, plane.flush_counts().requests), (2, 2));
}

#[test]
fn pipelined_produces_are_answered_in_their_order_and_share_syncs() {
    let plane = Plane::start();
    plane.topic_with("group", 1, |config| config.flush_group = true);
    plane.topic("plain", 2);
    let mut socket = plane.connect();
    let count = 200;
    for number in 0..count {
        let topic = if number % 10 == 9 { "plain" } else { "group" };
        socket.write_all(&produce_request(number, topic, 0, -1, &batch(&["a"]))).unwrap();
    }
    for number in 0..count {
        assert_eq!(Produced::read(&mut socket, number).error, 0);
    }
    let counts = plane.flush_counts();
    assert_eq!(counts.requests, 180);
    assert!(counts.syncs <= counts.requests);
}

#[test]
fn a_waiting_fetch_sees_a_batch_when_it_is_synced_even_if_nobody_asked_for_an_answer() {
    let plane = Plane::start();
    plane.topic_with("t", 1, |config| config.flush_group = true);
    let (mut consumer, mut producer) = (plane.connect(), plane.connect());
    consumer.write_all(&fetch_request(1, "t", 0, 0, 1, 60_000)).unwrap();
    plane.wait_until(|| plane.partition("t", 0).waiting() == 1);
    producer.write_all(&produce_request(2, "t", 0, 0, &batch(&["x"]))).unwrap();
    assert_eq!(values(&Fetched::read(&mut consumer, 1).records), ["x"]);
    assert_eq!(plane.partition("t", 0).log().recovery_point(), 1);
}

#[test]
fn a_topic_whose_directory_failed_is_told_so_and_others_are_served() {
    let plane = Plane::start();
    plane.topic("lost", 1);
    plane.topic("kept", 2);
    let (mut socket, mut waiting) = (plane.connect(), plane.connect());
    waiting.write_all(&fetch_request(1, "lost", 0, 0, 1, 60_000)).unwrap();
    let partition = plane.partition("lost", 0);
    plane.wait_until(|| partition.waiting() == 1);
    let table = offline(&plane, "lost");
    plane.publish(std::sync::Arc::new(table));
    partition.fail(&mut |waiter| plane.wake(waiter));
    assert_eq!(Fetched::read(&mut waiting, 1).error, STORAGE_ERROR);
    socket.write_all(&produce_request(2, "lost", 0, -1, &batch(&["x"]))).unwrap();
    assert_eq!(Produced::read(&mut socket, 2).error, STORAGE_ERROR);
    socket.write_all(&fetch_request(3, "lost", 0, 0, 1, 0)).unwrap();
    assert_eq!(Fetched::read(&mut socket, 3).error, STORAGE_ERROR);
    socket.write_all(&produce_request(4, "kept", 0, -1, &batch(&["x"]))).unwrap();
    assert_eq!(Produced::read(&mut socket, 4).error, 0);
}

/// The table with one topic's partition without its replica.
fn offline(plane: &Plane, name: &str) -> TopicTable {
    use pybroker_replica::{BrokerId, LeaderEpoch, PartitionSlot, Topic};
    let slot = PartitionSlot { partition: None, offline: true, leader: BrokerId(1), leader_epoch: LeaderEpoch(0) };
    let id = *plane.partition(name, 0).topic_id();
    plane.table().replace(
        [Topic { name: name.into(), id, internal: false, partitions: vec![Some(slot)], counters: Arc::default() }],
        &[],
    )
}

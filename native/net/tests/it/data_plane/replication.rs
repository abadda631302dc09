//! Two brokers over real sockets: one leads, one follows, and they change places.

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::support::{Plane, Produced, batch, produce_request};
use pybroker_net::{Event, FetchSource, ReplicationSettings};
use pybroker_replica::{
    BrokerId, FetcherSettings, FollowerInSync, Following, LeaderEpoch, Leadership, Partition, ThrottleLimit,
};

const TOPIC: &str = "t";

/// A broker that replicates, with a topic.
fn broker(id: i32) -> Plane {
    let plane = Plane::with(|settings| settings.node_id = id);
    plane.topic(TOPIC, 1);
    plane.data_plane().set_replication(replication(id));
    plane
}

fn replication(id: i32) -> ReplicationSettings {
    let fetcher = FetcherSettings {
        replica: BrokerId(id),
        broker_epoch: 10,
        min_bytes: 1,
        max_wait_ms: 60_000,
        max_bytes: 1 << 20,
        response_max_bytes: 10 << 20,
        first_backoff_ms: 1,
        backoff_ms: 20,
    };
    ReplicationSettings {
        fetcher,
        fetchers: 1,
        socket_timeout_ms: 120_000,
        path_timeout_ms: 2_000,
        socket_receive_buffer_bytes: 65_536,
        leader_throttle: ThrottleLimit::NONE,
        follower_throttle: ThrottleLimit::NONE,
        eager_high_watermark: false,
    }
}

fn source(id: i32, plane: &Plane) -> FetchSource {
    FetchSource { id: BrokerId(id), host: "127.0.0.1".into(), port: plane.port(), broker_epoch: 10 }
}

fn lead(plane: &Plane, topic: &str, epoch: i32, followers: &[(i32, bool)], min_in_sync: usize) {
    let followers = followers.iter().map(|&(id, in_sync)| FollowerInSync { id: BrokerId(id), in_sync }).collect();
    let leadership = Leadership { leader_epoch: LeaderEpoch(epoch), partition_epoch: epoch, followers, min_in_sync };
    let partition = plane.partition(topic, 0);
    partition.become_leader(leadership, 0, &mut |waiter| plane.wake(waiter)).unwrap();
    plane.data_plane().roles_changed([partition]);
}

fn follow(plane: &Plane, topic: &str, epoch: i32, leader: i32) {
    let partition = plane.partition(topic, 0);
    let following = Following { leader: BrokerId(leader), leader_epoch: LeaderEpoch(epoch) };
    partition.become_follower(following, &mut |waiter| plane.wake(waiter)).unwrap();
    plane.data_plane().roles_changed([partition]);
}

fn log_bytes(partition: &Partition) -> Vec<u8> {
    let mut files: Vec<_> =
        std::fs::read_dir(partition.log().directory()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "log"));
    files.sort();
    files.iter().flat_map(|path| std::fs::read(path).unwrap()).collect()
}

fn same_logs(one: &Plane, other: &Plane) {
    let (one, other) = (one.partition(TOPIC, 0), other.partition(TOPIC, 0));
    assert_eq!(one.log().log_end_offset(), other.log().log_end_offset());
    assert!(log_bytes(&one) == log_bytes(&other), "the logs differ");
}

fn end(plane: &Plane) -> i64 {
    plane.partition(TOPIC, 0).log().log_end_offset()
}

#[test]
fn acks_all_is_acknowledged_when_the_follower_has_it_and_their_logs_are_alike() {
    let (leader, follower) = (broker(1), broker(2));
    lead(&leader, TOPIC, 1, &[(2, true)], 2);
    let mut producer = leader.connect();
    producer.write_all(&produce_request(1, TOPIC, 0, -1, &batch(&["a", "b"]))).unwrap();
    leader.wait_until(|| leader.partition(TOPIC, 0).unacknowledged() == (1, 0));
    assert_eq!(leader.partition(TOPIC, 0).high_watermark(), 0);
    follower.data_plane().set_fetch_sources(vec![source(1, &leader)]);
    follow(&follower, TOPIC, 1, 1);
    assert_eq!(Produced::read(&mut producer, 1).error, 0);
    for correlation in 2..50 {
        producer.write_all(&produce_request(correlation, TOPIC, 0, -1, &batch(&["c"]))).unwrap();
        assert_eq!(Produced::read(&mut producer, correlation).error, 0);
        assert_eq!(end(&follower), end(&leader), "what is acknowledged is on both");
    }
    same_logs(&leader, &follower);
    let [state] = leader.partition(TOPIC, 0).replicas()[..] else { panic!("one other replica") };
    assert!(state.in_sync && state.log_end_offset == end(&leader));
}

#[test]
fn brokers_change_places_and_what_only_the_old_leader_had_is_cut_off() {
    let (one, two) = (broker(1), broker(2));
    for plane in [&one, &two] {
        plane.data_plane().set_fetch_sources(vec![source(1, &one), source(2, &two)]);
    }
    lead(&one, TOPIC, 1, &[(2, true)], 1);
    follow(&two, TOPIC, 1, 1);
    let mut producer = one.connect();
    producer.write_all(&produce_request(1, TOPIC, 0, -1, &batch(&["both"]))).unwrap();
    assert_eq!(Produced::read(&mut producer, 1).error, 0);
    // The follower is elected; the old leader does not know it yet and appends what nobody else will have.
    lead(&two, TOPIC, 2, &[(1, true)], 1);
    producer.write_all(&produce_request(2, TOPIC, 0, 1, &batch(&["lost", "lost too"]))).unwrap();
    assert_eq!(Produced::read(&mut producer, 2).error, 0);
    assert_eq!(end(&one), 3);
    let mut other = two.connect();
    other.write_all(&produce_request(1, TOPIC, 0, 1, &batch(&["kept"]))).unwrap();
    assert_eq!(Produced::read(&mut other, 1).base_offset, 1);
    follow(&one, TOPIC, 2, 2);
    other.write_all(&produce_request(2, TOPIC, 0, -1, &batch(&["and on"]))).unwrap();
    assert_eq!(Produced::read(&mut other, 2).error, 0);
    same_logs(&one, &two);
    assert_eq!(two.partition(TOPIC, 0).high_watermark(), 3);
    // The follower learns what is committed with what comes next.
    other.write_all(&produce_request(3, TOPIC, 0, -1, &batch(&["more"]))).unwrap();
    assert_eq!(Produced::read(&mut other, 3).error, 0);
    assert_eq!(one.partition(TOPIC, 0).high_watermark(), 3);
}

#[test]
fn a_partition_that_comes_is_fetched_at_once_though_a_request_waits() {
    let (leader, follower) = (broker(1), broker(2));
    follower.data_plane().set_fetch_sources(vec![source(1, &leader)]);
    lead(&leader, TOPIC, 1, &[(2, true)], 2);
    follow(&follower, TOPIC, 1, 1);
    leader.wait_until(|| leader.partition(TOPIC, 0).waiting() == 1);
    for plane in [&leader, &follower] {
        plane.topic("second", 2);
    }
    lead(&leader, "second", 1, &[(2, true)], 2);
    follow(&follower, "second", 1, 1);
    let mut producer = leader.connect();
    producer.write_all(&produce_request(1, "second", 0, -1, &batch(&["a"]))).unwrap();
    assert_eq!(Produced::read(&mut producer, 1).error, 0);
    assert_eq!(follower.data_plane().fetcher_threads(), 1);
}

#[test]
fn a_follower_that_has_caught_up_is_reported_once_and_counts_from_then_on() {
    let (leader, follower) = (broker(1), broker(2));
    follower.data_plane().set_fetch_sources(vec![source(1, &leader)]);
    lead(&leader, TOPIC, 1, &[(2, false)], 1);
    let mut producer = leader.connect();
    producer.write_all(&produce_request(1, TOPIC, 0, -1, &batch(&["a"]))).unwrap();
    assert_eq!(Produced::read(&mut producer, 1).error, 0, "the leader is the only one in sync");
    follow(&follower, TOPIC, 1, 1);
    let Event::ReplicaCaughtUp(caught_up) = leader.event(|event| matches!(event, Event::ReplicaCaughtUp(_))) else {
        panic!("another event")
    };
    assert_eq!((caught_up.index.0, caught_up.leader_epoch.0), (0, 1));
    assert_eq!((caught_up.replica.0, caught_up.broker_epoch), (2, 10));
    producer.write_all(&produce_request(2, TOPIC, 0, -1, &batch(&["b"]))).unwrap();
    assert_eq!(Produced::read(&mut producer, 2).error, 0);
    assert_eq!((end(&follower), leader.has_seen(|event| matches!(event, Event::ReplicaCaughtUp(_)))), (2, false));
    let (partition, removed): (Arc<Partition>, _) = (leader.partition(TOPIC, 0), [BrokerId(2)]);
    partition.stop_joining(&removed, &mut |waiter| leader.wake(waiter));
    producer.write_all(&produce_request(3, TOPIC, 0, -1, &batch(&["c"]))).unwrap();
    leader.event(|event| matches!(event, Event::ReplicaCaughtUp(_)));
}

#[test]
fn a_leader_that_comes_back_elsewhere_is_fetched_from_there() {
    let (leader, follower) = (broker(1), broker(2));
    follower.data_plane().set_fetch_sources(vec![source(1, &leader)]);
    lead(&leader, TOPIC, 1, &[(2, true)], 2);
    follow(&follower, TOPIC, 1, 1);
    leader.wait_until(|| leader.partition(TOPIC, 0).waiting() == 1);
    leader.data_plane().close_connections();
    leader.wait_until(|| leader.partition(TOPIC, 0).waiting() == 1);
    let again = broker(1);
    lead(&again, TOPIC, 2, &[(2, true)], 2);
    follower.data_plane().set_fetch_sources(vec![source(1, &again)]);
    follow(&follower, TOPIC, 2, 1);
    let mut producer = again.connect();
    producer.write_all(&produce_request(1, TOPIC, 0, -1, &batch(&["a"]))).unwrap();
    assert_eq!(Produced::read(&mut producer, 1).error, 0);
    same_logs(&again, &follower);
}

#[test]
fn a_deletion_goes_to_a_follower_at_once_and_comes_back_as_an_event() {
    let (leader, follower) = (broker(1), broker(2));
    follower.data_plane().set_fetch_sources(vec![source(1, &leader)]);
    lead(&leader, TOPIC, 1, &[(2, true)], 2);
    follow(&follower, TOPIC, 1, 1);
    let mut producer = leader.connect();
    producer.write_all(&produce_request(1, TOPIC, 0, -1, &batch(&["a", "b", "c"]))).unwrap();
    assert_eq!(Produced::read(&mut producer, 1).error, 0);
    let partition = leader.partition(TOPIC, 0);
    leader.wait_until(|| partition.waiting() == 1);
    partition.await_deletion(true);
    partition.log().advance_log_start(2).unwrap();
    partition.wake_followers(&mut |waiter| leader.wake(waiter));
    // Its requests wait for a minute: an answer that says nothing of records comes all the same.
    leader.event(|event| matches!(event, Event::ReplicaDeletedRecords { .. }));
    assert_eq!(follower.partition(TOPIC, 0).log().log_start_offset(), 2);
    assert_eq!(partition.low_watermark(&[BrokerId(2)]), 2);
    partition.await_deletion(false);
    partition.log().advance_log_start(3).unwrap();
    partition.wake_followers(&mut |waiter| leader.wake(waiter));
    leader.wait_until(|| partition.low_watermark(&[BrokerId(2)]) == 3);
    assert!(!leader.has_seen(|event| matches!(event, Event::ReplicaDeletedRecords { .. })), "nobody waits");
}

/// Each answer is beyond the limit, which is forgotten after a window of 50 ms.
const LITTLE: ThrottleLimit = ThrottleLimit { bytes_per_second: 1, samples: 1, sample_ms: 50 };
const RESPONSES: u32 = 4;

/// Has a follower that is not in sync fetch `ANSWERS` batches one by one, and says how long that takes.
fn fetched_within(of_leader: ThrottleLimit, of_follower: ThrottleLimit, throttled: bool) -> Duration {
    let (leader, follower) = (broker(1), broker(2));
    let settings = |id| {
        let mut settings = replication(id);
        settings.fetcher.max_bytes = 1;
        (settings.leader_throttle, settings.follower_throttle) = (of_leader, of_follower);
        settings
    };
    leader.data_plane().set_replication(settings(1));
    follower.data_plane().set_replication(settings(2));
    follower.data_plane().set_fetch_sources(vec![source(1, &leader)]);
    lead(&leader, TOPIC, 1, &[(2, false)], 1);
    for plane in [&leader, &follower] {
        plane.partition(TOPIC, 0).throttled().set(throttled, throttled);
    }
    let mut producer = leader.connect();
    for correlation in 1..=RESPONSES as i32 {
        producer.write_all(&produce_request(correlation, TOPIC, 0, -1, &batch(&["some bytes"]))).unwrap();
        assert_eq!(Produced::read(&mut producer, correlation).error, 0);
    }
    let began = Instant::now();
    follow(&follower, TOPIC, 1, 1);
    follower.wait_until(|| end(&follower) == i64::from(RESPONSES));
    began.elapsed()
}

#[test]
fn a_throttled_follower_takes_as_long_as_the_limit_of_its_leader_asks_for() {
    // The clock of the limits counts whole milliseconds: a window of 50 is longer than 49.
    let windows = Duration::from_millis(49) * (RESPONSES - 1);
    assert!(fetched_within(LITTLE, ThrottleLimit::NONE, true) >= windows);
}

#[test]
fn a_throttled_follower_takes_as_long_as_its_own_limit_asks_for() {
    // The clock of the limits counts whole milliseconds: a window of 50 is longer than 49.
    let windows = Duration::from_millis(49) * (RESPONSES - 1);
    assert!(fetched_within(ThrottleLimit::NONE, LITTLE, true) >= windows);
}

#[test]
fn replicas_that_no_setting_names_are_not_throttled() {
    let endless = ThrottleLimit { bytes_per_second: 0, samples: 1_000_000, sample_ms: 1_000 };
    fetched_within(endless, endless, false);
}

#[test]
fn fetchers_end_that_are_one_too_many() {
    let (leader, follower) = (broker(1), broker(2));
    follower.data_plane().set_fetch_sources(vec![source(1, &leader)]);
    follower.data_plane().set_replication(ReplicationSettings { fetchers: 8, ..replication(2) });
    let names: Vec<String> = (0..20).map(|number| format!("dealt-{number}")).collect();
    for (id, name) in (2..).zip(&names) {
        for plane in [&leader, &follower] {
            plane.topic(name, id);
        }
        lead(&leader, name, 1, &[(2, true)], 2);
        follow(&follower, name, 1, 1);
    }
    assert!(follower.data_plane().fetcher_threads() > 1);
    follower.data_plane().set_replication(replication(2));
    assert_eq!(follower.data_plane().fetcher_threads(), 1);
    let mut producer = leader.connect();
    for (correlation, name) in (1..).zip(&names) {
        producer.write_all(&produce_request(correlation, name, 0, -1, &batch(&["a"]))).unwrap();
        assert_eq!(Produced::read(&mut producer, correlation).error, 0);
    }
}

//! The state after leader changes: producer retries, truncated logs, power failures, and exceeded limits.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::FetchState;
use super::tests::{Broker, Reported, TOPIC_ID, no_limit};
use crate::log_fixture::{NOW, build, config, quick_directory};
use crate::{NotAppended, Produced, ReplicationThrottle, ThrottleLimit};
use pybroker_record::Compression;
use pybroker_storage::{AppendError, Log, OpenLog};
use pybroker_sys::faults::{Crash, Done, FaultLayer};

const PRODUCER: i64 = 7;
const KEY: ([u8; 16], i32) = (TOPIC_ID, 0);

/// Appends a batch of two records of an idempotent producer.
fn send(broker: &Broker, first_sequence: i32) -> Result<Produced, NotAppended> {
    let (mut bytes, _) = build(&[20, 20], 0, (PRODUCER, 0, first_sequence), Compression::None);
    broker.partition.append(&mut bytes, false, NOW, &mut |_| ())
}

/// Returns the first offset, and whether the batch is a duplicate.
fn sent(broker: &Broker, first_sequence: i32) -> (i64, bool) {
    let produced = send(broker, first_sequence).unwrap();
    (produced.appended.first_offset, produced.appended.duplicate)
}

fn is_out_of_order(outcome: &Result<Produced, NotAppended>) -> bool {
    matches!(outcome, Err(NotAppended::Log(AppendError::OutOfOrderSequence { .. })))
}

#[test]
fn what_is_sent_again_to_a_new_leader_that_has_it_is_not_appended_again() {
    let (a, b) = (quick_directory(), quick_directory());
    let (mut one, mut two) = (Broker::start(1, a.path()), Broker::start(2, b.path()));
    one.lead(1, &[2]);
    two.follow(1, 1);
    assert_eq!((sent(&one, 0), sent(&one, 2)), ((0, false), (2, false)));
    two.catch_up(&one);
    two.lead(2, &[1]);
    one.follow(2, 2);
    assert_eq!((sent(&two, 2), sent(&two, 0)), ((2, true), (0, true)));
    assert_eq!(two.end(), 4);
    assert!(is_out_of_order(&send(&two, 6)));
    assert_eq!(sent(&two, 4), (4, false));
    one.catch_up(&two);
    assert_eq!(one.batches(), two.batches());
}

/// The state of a producer is that of the log: truncated batches are forgotten, and their replacements are known.
#[test]
fn a_log_that_was_cut_forgets_what_producers_had_in_it() {
    let (a, b) = (quick_directory(), quick_directory());
    let (mut one, mut two) = (Broker::start(1, a.path()), Broker::start(2, b.path()));
    one.lead(1, &[2]);
    two.follow(1, 1);
    sent(&one, 0);
    two.catch_up(&one);
    // The new leader does not have these batches. The producer sends the first of them again there.
    assert_eq!((sent(&one, 2), sent(&one, 4)), ((2, false), (4, false)));
    two.lead(2, &[1]);
    assert_eq!(sent(&two, 2), (2, false));
    one.follow(2, 2);
    one.catch_up(&two);
    assert_eq!(one.batches(), [(0, 1), (2, 2)]);
    one.lead(3, &[2]);
    two.follow(3, 1);
    assert_eq!(sent(&one, 2), (2, true));
    assert!(is_out_of_order(&send(&one, 6)), "4 and 5 were cut off");
    assert_eq!(sent(&one, 4), (4, false));
    two.catch_up(&one);
    assert_eq!(one.batches(), two.batches());
}

#[test]
fn a_follower_that_restarts_has_the_producers_of_its_log() {
    let (a, b) = (quick_directory(), quick_directory());
    let (one, mut two) = (Broker::start(1, a.path()), Broker::start(2, b.path()));
    one.lead(1, &[2]);
    two.follow(1, 1);
    (0..30).for_each(|batch| assert_eq!(sent(&one, 2 * batch), (i64::from(2 * batch), false)));
    two.catch_up(&one);
    assert_eq!(two.end(), 60);
    let two = two.restart(b.path(), 60);
    two.lead(2, &[1]);
    assert_eq!((sent(&two, 58), sent(&two, 60)), ((58, true), (60, false)));
}

#[test]
fn a_follower_says_at_once_that_it_has_deleted_what_its_leader_deleted() {
    let (a, b) = (quick_directory(), quick_directory());
    let (mut one, two) = (Broker::start(1, a.path()), Broker::start(2, b.path()));
    two.lead(1, &[1]);
    two.append(4);
    one.follow(1, 2);
    one.catch_up(&two);
    two.partition.log().advance_log_start(3).unwrap();
    assert_eq!(two.partition.low_watermark(&[crate::BrokerId(1)]), 0);
    one.fetch(&two);
    assert_eq!(one.partition.log().log_start_offset(), 3);
    let named = one.fetch(&two).unwrap().partitions;
    assert_eq!(named.iter().map(|partition| partition.log_start_offset).collect::<Vec<_>>(), [3]);
    assert_eq!(two.partition.low_watermark(&[crate::BrokerId(1)]), 3);
}

/// Opens the files that a crash has left, and returns the log end.
fn end_after(left: BTreeMap<PathBuf, Vec<u8>>) -> i64 {
    let root = quick_directory();
    for (path, bytes) in left {
        let path = root.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    let how = OpenLog { clean_shutdown: false, recovery_point: 0, log_start_offset: 0, high_watermark: 0, now_ms: NOW };
    let (log, _) = Log::open(&root.path().join("t-0"), config(), how).unwrap();
    log.log_end_offset()
}

/// Creates a broker whose logs are synced before the acknowledgement, on a disk that can lose power.
fn durable(id: i32, directory: &Path) -> (Broker, Arc<FaultLayer>) {
    let mut config = config();
    config.flush_group = true;
    let broker = Broker::with(id, directory, config, no_limit());
    broker.partition.log().flush().unwrap();
    let layer = FaultLayer::over(directory);
    layer.record();
    (broker, layer)
}

/// `flush=group` over replicas (docs/adr/0012): committed records are on the devices of `min.insync.replicas`
/// brokers, so all brokers may lose power at once.
#[test]
fn what_is_committed_outlives_the_power_of_every_replica() {
    let (a, b) = (quick_directory(), quick_directory());
    let (a, b) = (a.path().canonicalize().unwrap(), b.path().canonicalize().unwrap());
    let ((one, first), (mut two, second)) = (durable(1, &a), durable(2, &b));
    one.lead(1, &[2]);
    two.follow(1, 1);
    for record in 1..=5 {
        one.append(1);
        assert_eq!(one.partition.high_watermark(), record - 1, "nobody has synced it");
        two.fetch(&one);
        assert_eq!(
            end_after(second.crash_now(Crash::LosingAll)),
            record,
            "it is synced before the next request says so"
        );
        two.fetch(&one);
        assert_eq!(one.partition.high_watermark(), record - 1, "the leader has not synced it");
        one.partition.sync(&mut |_| ()).unwrap();
        assert_eq!(one.partition.high_watermark(), record);
        for seed in 0..4 {
            for layer in [&first, &second] {
                assert!(end_after(layer.crash_now(Crash::Torn(seed))) >= record);
            }
        }
        for layer in [&first, &second] {
            assert!(end_after(layer.crash_now(Crash::LosingAll)) >= record);
        }
    }
}

#[test]
fn a_follower_whose_device_fails_a_sync_does_not_count() {
    let (a, b) = (quick_directory(), quick_directory());
    let (a, b) = (a.path().canonicalize().unwrap(), b.path().canonicalize().unwrap());
    let ((one, _), (mut two, second)) = (durable(1, &a), durable(2, &b));
    one.lead(1, &[2]);
    two.follow(1, 1);
    one.append(1);
    one.partition.sync(&mut |_| ()).unwrap();
    second.fail_when(|done| matches!(done, Done::Sync(_)).then(|| std::io::Error::from_raw_os_error(5)));
    let request = two.fetcher.next_request(NOW).unwrap();
    let frame = one.respond(&request, &request.partitions);
    let mut failed = Failed::default();
    two.fetcher.take_response(&frame, NOW, &mut failed).unwrap();
    assert_eq!((failed.0.len(), two.fetcher.state(&KEY)), (1, Some(FetchState::Failed)));
    assert!(two.fetcher.next_request(NOW + 10_000).is_none(), "it asks for nothing more, and so says nothing");
    assert_eq!(one.partition.high_watermark(), 0);
}

#[derive(Default)]
struct Failed(Vec<String>);

impl super::FollowerListener for Failed {
    fn wake(&mut self, _waiter: crate::Waiter) {}

    fn log_failed(&mut self, _partition: &crate::Partition, error: &str) {
        self.0.push(error.to_owned());
    }

    fn exhausted(&mut self, error: &str) {
        panic!("{error}");
    }

    fn not_taken(&mut self, _partition: &crate::Partition, why: &str) {
        panic!("{why}");
    }

    fn notice(&mut self, _partition: &crate::Partition, notice: &crate::FollowerNotice) {
        panic!("{notice}");
    }
}

/// A full disk stores nothing of a response, and the failure of the log directory is reported.
#[test]
fn a_follower_whose_disk_is_full_says_so_and_has_nothing_of_the_answer() {
    let (a, b) = (quick_directory(), quick_directory());
    let b = b.path().canonicalize().unwrap();
    let (one, mut two) = (Broker::start(1, a.path()), Broker::start(2, &b));
    one.lead(1, &[2]);
    two.follow(1, 1);
    one.append(1);
    let layer = FaultLayer::over(&b);
    layer.fail_when(|done| matches!(done, Done::Write(_)).then(|| std::io::Error::from_raw_os_error(libc::ENOSPC)));
    let request = two.fetcher.next_request(NOW).unwrap();
    let frame = one.respond(&request, &request.partitions);
    let mut failed = Failed::default();
    two.fetcher.take_response(&frame, NOW, &mut failed).unwrap();
    assert_eq!((failed.0.len(), two.end()), (1, 0));
    assert!(failed.0[0].contains("No space left"), "{}", failed.0[0]);
    drop(layer);
    // The control plane decides about the directory. A partition that has not failed continues when there is space.
    let due = two.fetcher.due_ms().unwrap();
    let again = two.fetcher.next_request(due).unwrap();
    let frame = one.respond(&again, &request.partitions);
    two.fetcher.take_response(&frame, due, &mut Reported::default()).unwrap();
    assert_eq!(two.end(), 1);
}

fn limited(bytes_per_second: i64) -> Arc<ReplicationThrottle> {
    Arc::new(ReplicationThrottle::new(ThrottleLimit { bytes_per_second, samples: 11, sample_ms: 1000 }))
}

#[test]
fn a_replica_that_has_all_that_is_committed_is_never_held() {
    let (a, b) = (quick_directory(), quick_directory());
    let throttle = limited(50);
    let (one, mut two) = (Broker::start(1, a.path()), Broker::with(2, b.path(), config(), Arc::clone(&throttle)));
    one.lead(1, &[2]);
    two.partition.throttled().set(false, true);
    two.follow(1, 1);
    one.append(3);
    two.fetch(&one);
    assert_eq!((two.end(), throttle.is_exceeded(NOW)), (3, true));
    one.append(1);
    two.fetch(&one);
    assert_eq!((two.end(), two.fetcher.state(&KEY)), (4, Some(FetchState::Fetching)));
}

#[test]
fn a_throttled_follower_is_held_while_the_limit_is_exceeded_and_others_are_not() {
    let (a, b) = (quick_directory(), quick_directory());
    let throttle = limited(50);
    let (one, mut two) = (Broker::start(1, a.path()), Broker::with(2, b.path(), config(), Arc::clone(&throttle)));
    one.lead(1, &[2]);
    two.partition.throttled().set(false, true);
    throttle.record(500, NOW);
    two.follow(1, 1);
    one.append(1);
    assert!(two.fetcher.next_request(NOW).is_none(), "it is not known to be in sync");
    assert_eq!(two.fetcher.state(&KEY), Some(FetchState::BackingOff { until_ms: NOW + 1000, tries: 0 }));
    assert_eq!(two.fetcher.due_ms(), Some(NOW + 1000), "no longer than replica.fetch.backoff.ms at a time");
    assert!(two.fetcher.next_request(NOW + 1000).is_none());
    assert!(two.fetcher.next_request(NOW + 9_000).is_none());
    let request = two.fetcher.next_request(NOW + 10_000).expect("500 bytes in 10 s are 50 a second");
    assert_eq!(request.partitions.len(), 1);
    // Without the topic's setting the follower is not throttled, whatever others have fetched.
    two.fetcher.disconnected();
    throttle.record(5_000, NOW + 10_000);
    assert!(two.fetcher.next_request(NOW + 10_000).is_none());
    two.partition.throttled().set(false, false);
    assert!(two.fetcher.next_request(NOW + 11_000).is_some());
}

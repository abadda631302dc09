//! The anomalies of truncation by high watermark (KIP-101, KIP-279). Each history runs with this follower's
//! truncation by epochs, and with truncation by the watermark, which exists only here and fails all three.

use std::sync::atomic::Ordering;

use super::tests::Broker;
use crate::log_fixture::{NOW, quick_directory};

/// Offset and epoch of each batch of a log.
type Batches = Vec<(i64, i32)>;

/// KIP-101, scenario 1: a follower restarts before it knows that its last record is committed, and is elected at
/// once. Returns its log as the leader; two records were committed.
fn log_of_a_follower_that_restarts_and_leads(by_watermark: bool) -> Batches {
    let (a, b) = (quick_directory(), quick_directory());
    let (mut one, two) = (Broker::start(1, a.path()).truncating(by_watermark), Broker::start(2, b.path()));
    two.lead(1, &[1]);
    one.follow(1, 2);
    two.append(2);
    one.fetch(&two);
    // Its fetch offset shows that both records are committed. The response with the new high watermark is lost.
    let request = one.fetcher.next_request(NOW).unwrap();
    let requested: Vec<_> = request.partitions.clone();
    two.respond(&request, &requested);
    assert_eq!((two.partition.high_watermark(), one.partition.high_watermark()), (2, 0));
    let mut one = one.restart(a.path(), 0);
    assert_eq!(one.end(), 2);
    one.follow(2, 2);
    one.lead(3, &[2]);
    one.batches()
}

/// KIP-101, scenario 2: both processes end. The broker with the shorter log becomes leader and appends at the same
/// offset. Returns the follower's log and the leader's, after the follower has fetched everything.
fn logs_that_part_at_one_offset(by_watermark: bool) -> (Batches, Batches) {
    let (a, b) = (quick_directory(), quick_directory());
    let one = Broker::start(1, a.path()).truncating(by_watermark);
    let mut two = Broker::start(2, b.path()).truncating(by_watermark);
    one.lead(1, &[2]);
    two.follow(1, 1);
    one.append(1);
    two.catch_up(&one);
    one.append(1);
    // Only broker one has the second record when both lose power. Broker two starts first and becomes leader.
    let mut one = one.restart(a.path(), 1);
    let mut two = two.restart(b.path(), 1);
    two.lead(2, &[1]);
    two.append(1);
    assert_eq!((one.batches(), two.batches()), (vec![(0, 1), (1, 1)], vec![(0, 1), (1, 2)]));
    // Truncation by high watermark removes nothing if broker one's is 2 already.
    one.partition.high_watermark.store(2, Ordering::Release);
    one.follow(2, 2);
    one.catch_up(&two);
    two.fetcher.disconnected();
    (one.batches(), two.batches())
}

/// KIP-279: three leaders in a row whose logs diverge twice. One truncation by the leader's last epoch is not enough.
/// Returns the follower's log and the leader's, after the follower has fetched everything.
fn logs_that_part_twice(by_watermark: bool) -> (Batches, Batches) {
    let (a, b) = (quick_directory(), quick_directory());
    let mut one = Broker::start(1, a.path()).truncating(by_watermark);
    let two = Broker::start(2, b.path()).truncating(by_watermark);
    // Both have epoch 0 up to offset 1. Broker one was leader of epochs 1 and 3, broker two of 2 and 4.
    for broker in [&one, &two] {
        broker.lead(0, &[]);
        broker.append(1);
    }
    one.lead(1, &[]);
    one.append(2);
    one.lead(3, &[]);
    one.append(3);
    two.lead(2, &[]);
    two.append(3);
    two.lead(4, &[1]);
    two.append(1);
    one.follow(4, 2);
    one.catch_up(&two);
    (one.batches(), two.batches())
}

#[test]
fn a_committed_record_survives_a_follower_that_restarts_and_leads() {
    assert_eq!(log_of_a_follower_that_restarts_and_leads(false), [(0, 1), (1, 1)]);
}

#[test]
fn cut_at_the_watermark_the_log_has_no_committed_record() {
    assert_eq!(log_of_a_follower_that_restarts_and_leads(true), []);
}

#[test]
fn logs_that_part_at_one_offset_are_made_alike_by_epoch() {
    let (one, two) = logs_that_part_at_one_offset(false);
    assert_eq!(one, two);
    assert_eq!(one, [(0, 1), (1, 2)]);
}

#[test]
fn cut_at_the_watermark_the_logs_differ_at_one_offset_for_ever() {
    let (one, two) = logs_that_part_at_one_offset(true);
    assert_eq!((one[1], two[1]), ((1, 1), (1, 2)));
}

#[test]
fn a_log_that_parts_twice_is_cut_twice() {
    let (one, two) = logs_that_part_twice(false);
    assert_eq!(one, two);
    assert_eq!(one, [(0, 0), (1, 2), (2, 2), (3, 2), (4, 4)]);
}

#[test]
fn cut_at_the_watermark_a_log_that_parts_twice_stays_another_one() {
    let (one, two) = logs_that_part_twice(true);
    assert_eq!(two, [(0, 0), (1, 2), (2, 2), (3, 2), (4, 4)]);
    assert_eq!(one[..5], [(0, 0), (1, 1), (2, 1), (3, 3), (4, 3)]);
}

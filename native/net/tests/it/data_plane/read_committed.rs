//! `read_committed` over real sockets: a fetch that waits is woken by the marker that ends a transaction, not by the
//! transaction's records.

use std::io::Write;

use pybroker_record::{BatchBuilder, Compression, EndMarker, ProducerId, set_transactional};

use super::support::{Fetched, Plane, Produced, batch, fetch_isolated, fetch_request, produce_request, values};

const COMMITTED: i8 = 1;
const PATIENT_MS: i32 = 60_000;

pub fn transactional(producer: i64, sequence: i32, value: &str) -> Vec<u8> {
    let mut builder = BatchBuilder::new(Compression::None, None, 1 << 20);
    assert!(builder.try_append(1, None, Some(value.as_bytes()), &[]).is_some());
    let mut bytes = Vec::new();
    builder.finish(producer, 0, sequence, &mut bytes).unwrap();
    set_transactional(&mut bytes);
    bytes
}

fn marker(producer: i64, commit: bool) -> Vec<u8> {
    EndMarker { commit, coordinator_epoch: 0 }.build(ProducerId(producer), 0, 1).unwrap()
}

/// Appends as a coordinator does, and says how many it woke.
fn append(plane: &Plane, mut bytes: Vec<u8>) -> usize {
    let mut woken = Vec::new();
    plane.partition("t", 0).append_as_coordinator(&mut bytes, 1, &mut |waiter| woken.push(waiter)).unwrap();
    let count = woken.len();
    woken.into_iter().for_each(|waiter| plane.wake(waiter));
    count
}

#[test]
fn a_waiting_fetch_is_woken_by_the_marker_and_not_by_records_of_the_open_transaction() {
    let plane = Plane::start();
    plane.topic("t", 1);
    let mut consumer = plane.connect();
    for (correlation, commit) in [(1, true), (2, false)] {
        let begun = plane.partition("t", 0).log().log_end_offset();
        consumer.write_all(&fetch_isolated(correlation, ("t", 0), begun, 1, PATIENT_MS, COMMITTED)).unwrap();
        plane.wait_until(|| plane.partition("t", 0).waiting() == 1);
        let sequence = correlation * 2 - 2;
        assert_eq!(append(&plane, transactional(7, sequence, "a")), 0);
        assert_eq!(append(&plane, transactional(7, sequence + 1, "b")), 0);
        assert_eq!(plane.partition("t", 0).last_stable_offset(), begun);
        assert_eq!(append(&plane, marker(7, commit)), 1);
        let response = Fetched::read(&mut consumer, correlation);
        assert_eq!((response.error, response.high_watermark), (0, begun + 3));
        assert_eq!(response.aborted, if commit { vec![] } else { vec![(7, begun)] });
        let without_marker = &response.records[..response.records.len() - marker(7, commit).len()];
        assert_eq!(values(without_marker), ["a", "b"]);
    }
    assert_eq!(plane.partition("t", 0).waiting(), 0);
}

#[test]
fn what_a_transaction_holds_back_counts_towards_the_bytes_asked_for() {
    let plane = Plane::start();
    plane.topic("t", 1);
    let (mut consumer, mut producer) = (plane.connect(), plane.connect());
    let held = transactional(7, 0, &"x".repeat(500));
    let wanted = (held.len() + marker(7, true).len() + 10) as i32;
    consumer.write_all(&fetch_isolated(1, ("t", 0), 0, wanted, PATIENT_MS, COMMITTED)).unwrap();
    plane.wait_until(|| plane.partition("t", 0).waiting() == 1);
    assert_eq!(append(&plane, held), 0);
    assert_eq!(append(&plane, marker(7, true)), 0, "ten bytes are missing");
    // Without open transactions a plain append counts at once.
    producer.write_all(&produce_request(2, "t", 0, -1, &batch(&["y"]))).unwrap();
    assert_eq!(Produced::read(&mut producer, 2).error, 0);
    assert_eq!(Fetched::read(&mut consumer, 1).records.len(), wanted as usize - 10 + batch(&["y"]).len());
}

#[test]
fn two_transactions_keep_a_fetch_waiting_until_the_first_has_ended() {
    let plane = Plane::start();
    plane.topic("t", 1);
    let (mut committed, mut uncommitted) = (plane.connect(), plane.connect());
    committed.write_all(&fetch_isolated(1, ("t", 0), 0, 1, PATIENT_MS, COMMITTED)).unwrap();
    plane.wait_until(|| plane.partition("t", 0).waiting() == 1);
    append(&plane, transactional(1, 0, "first"));
    append(&plane, transactional(2, 0, "second"));
    assert_eq!(append(&plane, marker(2, true)), 0, "the first is still open");
    uncommitted.write_all(&fetch_request(2, "t", 0, 0, 1, PATIENT_MS)).unwrap();
    Fetched::read(&mut uncommitted, 2);
    assert_eq!(append(&plane, marker(1, false)), 1);
    assert_eq!(Fetched::read(&mut committed, 1).high_watermark, 4);
}

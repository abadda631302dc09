//! Written messages read back equal in every version, and no length leads past the end.

use proptest::prelude::*;

use super::*;
use crate::leaders::tests::{endpoints, leader};
use crate::topics::tests::topic;

const VERSIONS: std::ops::RangeInclusive<i16> = 0..=18;

/// A number if the version has the field, else the value for none.
fn since<T: Clone + std::fmt::Debug + 'static>(
    has_it: bool,
    some: impl Strategy<Value = T> + 'static,
    none: T,
) -> BoxedStrategy<T> {
    if has_it { some.boxed() } else { Just(none).boxed() }
}

fn requested(version: i16) -> impl Strategy<Value = FetchPartition> {
    let epoch = |since_version| since(version >= since_version, any::<i32>(), -1).prop_map(LeaderEpoch);
    let epochs = (epoch(9), epoch(12));
    let log_start = since(version >= 5, any::<i64>(), -1);
    let index = any::<i32>().prop_map(PartitionIndex);
    let numbers = (index, any::<i64>(), any::<i32>(), epochs, log_start);
    (topic(version >= BY_ID), numbers).prop_map(
        |(topic, (index, fetch_offset, max_bytes, epochs, log_start_offset))| {
            let (leader_epoch, last_fetched_epoch) = epochs;
            FetchPartition { topic, index, fetch_offset, max_bytes, leader_epoch, last_fetched_epoch, log_start_offset }
        },
    )
}

fn request(version: i16) -> impl Strategy<Value = FetchRequest<'static>> {
    let id = since(version < WITH_REPLICA_STATE, any::<i32>(), -1);
    let state = (any::<i32>(), any::<i64>()).prop_map(|(id, epoch)| ReplicaState { id, epoch });
    let replica = if version < WITH_REPLICA_STATE {
        id.prop_map(|id| ReplicaState { id, epoch: -1 }).boxed()
    } else {
        prop_oneof![Just(ReplicaState::CONSUMER), state].boxed()
    };
    let bounds = (any::<i32>(), any::<i32>(), since(version >= 3, any::<i32>(), i32::MAX));
    let session = since(version >= 7, (any::<i32>(), any::<i32>()), (0, -1));
    let partitions = prop::collection::vec(requested(version), 0..6);
    let forgotten = (topic(version >= BY_ID), any::<i32>().prop_map(PartitionIndex));
    let forgotten = prop::collection::vec(forgotten, 0..if version >= 7 { 4 } else { 1 });
    let rack = since(version >= 11, prop_oneof![Just(""), Just("rack-1")], "");
    (replica, bounds, since(version >= 4, any::<bool>(), false), session, partitions, forgotten, rack).prop_map(
        |(replica, bounds, read_committed, session, partitions, forgotten, rack)| FetchRequest {
            replica,
            max_wait_ms: bounds.0,
            min_bytes: bounds.1,
            max_bytes: bounds.2,
            read_committed,
            session_id: session.0,
            session_epoch: session.1,
            partitions,
            forgotten,
            rack,
        },
    )
}

fn responded(version: i16, read_committed: bool) -> impl Strategy<Value = FetchedPartition> {
    let transaction = (any::<i64>(), any::<i64>());
    let transaction =
        transaction.prop_map(|(producer_id, first_offset)| AbortedTransaction { producer_id, first_offset });
    let aborted = prop::collection::vec(transaction, 0..if read_committed { 3 } else { 1 });
    let stable = since(version >= 4, any::<i64>(), -1);
    let numbers = (any::<i32>(), any::<i16>(), any::<i64>(), stable, since(version >= 5, any::<i64>(), -1));
    let diverging = (any::<i32>(), any::<i64>()).prop_map(|(epoch, end_offset)| DivergingEpoch { epoch, end_offset });
    let preferred = since(version >= 11, any::<i32>(), -1);
    let tags = (prop::option::of(diverging), leader(), preferred);
    (topic(version >= BY_ID), numbers, aborted, 0_usize..40, tags).prop_map(
        move |(topic, numbers, aborted, records, (diverging, leader, preferred_read_replica))| {
            let (index, error, high_watermark, last_stable_offset, log_start_offset) = numbers;
            let diverging = diverging.filter(|_| version >= FLEXIBLE);
            FetchedPartition {
                topic,
                index,
                error: ErrorCode(error),
                high_watermark,
                last_stable_offset,
                log_start_offset,
                aborted,
                preferred_read_replica: BrokerId(preferred_read_replica),
                records,
                diverging,
                // Only one of the two is written: a partition with a current leader has no diverging epoch.
                current_leader: leader.filter(|_| version >= FLEXIBLE && diverging.is_none()),
            }
        },
    )
}

/// Returns a response as sent: its fields with the records between them (each byte is its partition's number).
fn spliced(version: i16, head: FetchedHead, sent: &[FetchedPartition], endpoints: &[BrokerEndpoint]) -> Vec<u8> {
    let (mut fields, mut placed) = (vec![0xee; 4], Vec::new());
    let endpoints: Vec<&BrokerEndpoint> = endpoints.iter().collect();
    write_response(&mut fields, version, head, sent, &endpoints, &mut |at, partition| placed.push((at, partition)));
    for (at, partition) in placed.into_iter().rev() {
        fields.splice(at..at, std::iter::repeat_n(partition as u8, sent[partition].records));
    }
    fields
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes: Vec<u8>, body in 0_usize..20, version in VERSIONS) {
        let _ = FetchRequest::parse(&bytes, body, version);
        let _ = FetchResponse::parse(&bytes, body, version);
    }

    #[test]
    fn a_request_is_read_as_it_was_written(
        (version, request) in VERSIONS.prop_flat_map(|version| (Just(version), request(version))),
        cut: prop::sample::Index,
    ) {
        let mut frame = vec![0xee; 7];
        request.write(&mut frame, version);
        let end = 7 + cut.index(frame.len() - 7);
        prop_assert!(FetchRequest::parse(&frame[..end], 7, version).is_err());
        prop_assert_eq!(FetchRequest::parse(&frame, 7, version), Ok(request));
    }

    #[test]
    fn a_response_is_read_as_it_was_written(
        (version, read_committed, sent, endpoints) in (VERSIONS, any::<bool>()).prop_flat_map(|(version, committed)| {
            let committed = committed && version >= 4;
            let partitions = prop::collection::vec(responded(version, committed), 0..5);
            (Just(version), Just(committed), partitions, endpoints(version >= 16))
        }),
        error: i16, session_id: i32, throttle_time_ms: i32, cut: prop::sample::Index,
    ) {
        let (error, session_id) = if version >= 7 { (ErrorCode(error), session_id) } else { (ErrorCode::NONE, 0) };
        let frame = spliced(version, FetchedHead { throttle_time_ms, error, session_id, read_committed }, &sent, &endpoints);
        let found = FetchResponse::parse(&frame, 4, version).unwrap();
        prop_assert_eq!((found.error, found.session_id, found.endpoints), (error, session_id, endpoints));
        for (number, received) in found.partitions.iter().enumerate() {
            prop_assert!(frame[received.records.clone()].iter().all(|byte| usize::from(*byte) == number));
        }
        let found: Vec<FetchedPartition> = found.partitions.into_iter().map(|received| received.partition).collect();
        prop_assert_eq!(found, sent);
        prop_assert!(FetchResponse::parse(&frame[..4 + cut.index(frame.len() - 4)], 4, version).is_err());
    }
}

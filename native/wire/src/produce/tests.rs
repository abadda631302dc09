//! Written messages read back equal in every version, and no length leads past the end.

use proptest::prelude::*;

use super::*;
use crate::leaders::tests::{endpoints, leader};
use crate::topics::tests::topic;

fn batches(version: i16) -> impl Strategy<Value = Vec<PartitionBatch>> {
    let records = prop::collection::vec(any::<u8>(), 0..30).prop_map(Arc::new);
    let batch = (topic(version >= BY_ID), any::<i32>(), records);
    let batch = batch.prop_map(|(topic, index, records)| PartitionBatch { topic, index, records });
    prop::collection::vec(batch, 0..6)
}

fn partition(version: i16) -> impl Strategy<Value = ProducedPartition> {
    let since = move |first: i16| -> BoxedStrategy<i64> {
        if version >= first { any::<i64>().boxed() } else { Just(-1).boxed() }
    };
    let text = || prop::option::of(".{0,9}");
    let errors = if version >= 8 { 0..3 } else { 0..1 };
    let errors = prop::collection::vec((any::<i32>(), text()), errors);
    let numbers = (any::<i32>(), any::<i16>(), any::<i64>(), since(2), since(5));
    (numbers, errors, text(), leader()).prop_map(move |(numbers, record_errors, text, leader)| {
        let (index, error, base_offset, log_append_time, log_start_offset) = numbers;
        ProducedPartition {
            index,
            error: ErrorCode(error),
            base_offset,
            log_append_time,
            log_start_offset,
            record_errors,
            error_message: text.filter(|_| version >= 8),
            current_leader: leader.filter(|_| version >= WITH_LEADERS),
        }
    })
}

fn response(version: i16) -> impl Strategy<Value = ProduceResponse> {
    let partitions = prop::collection::vec(partition(version), 0..4);
    let topics = prop::collection::vec((topic(version >= BY_ID), partitions), 0..4);
    let endpoints = endpoints(version >= WITH_LEADERS);
    (topics, endpoints).prop_map(|(topics, endpoints)| ProduceResponse { topics, endpoints })
}

fn written(version: i16, head: ProduceHead<'_>, batches: &[PartitionBatch]) -> Vec<u8> {
    let mut frame = vec![0xee; 7];
    write_request(&mut frame, version, head, batches, |out, batch| out.extend_from_slice(&batch.records));
    frame
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes: Vec<u8>, body in 0_usize..20, version in 0_i16..=13) {
        let _ = ProduceRequest::parse(&bytes, body, version);
        let _ = ProduceResponse::parse(&bytes, body, version);
    }

    #[test]
    fn a_request_is_read_as_it_was_written(
        (version, batches) in (0_i16..=13).prop_flat_map(|version| (Just(version), batches(version))),
        acks: i16, timeout_ms: i32, id in prop::option::of(".{0,9}"), cut: prop::sample::Index,
    ) {
        let head = ProduceHead { transactional_id: id.as_deref(), acks, timeout_ms };
        let frame = written(version, head, &batches);
        let request = ProduceRequest::parse(&frame, 7, version).unwrap();
        prop_assert_eq!((request.acks, request.timeout_ms), (acks, timeout_ms));
        prop_assert_eq!(request.transactional_id, id.clone().filter(|_| version >= 3));
        let flat = |topic: ProduceTopic| {
            let found = topic.partitions.into_iter().map(|(index, records)| (index, records.map(|at| frame[at].to_vec())));
            found.map(|(index, records)| (topic.topic.clone(), index, records)).collect::<Vec<_>>()
        };
        let found: Vec<_> = request.topics.into_iter().flat_map(flat).collect();
        let sent = batches.iter().map(|it| (it.topic.clone(), it.index, Some(it.records.to_vec())));
        prop_assert_eq!(found, sent.collect::<Vec<_>>());
        prop_assert!(ProduceRequest::parse(&frame[..7 + cut.index(frame.len() - 7)], 7, version).is_err());
    }

    #[test]
    fn a_response_is_read_as_it_was_written(
        (version, sent) in (0_i16..=13).prop_flat_map(|version| (Just(version), response(version))),
        throttle_time_ms: i32, cut: prop::sample::Index,
    ) {
        let mut frame = vec![0xee; 4];
        let endpoints: Vec<_> = sent.endpoints.iter().collect();
        write_response(&mut frame, version, &sent.topics, &endpoints, throttle_time_ms);
        let found = ProduceResponse::parse(&frame, 4, version).unwrap();
        prop_assert_eq!((found.topics, found.endpoints), (sent.topics, sent.endpoints));
        prop_assert!(ProduceResponse::parse(&frame[..4 + cut.index(frame.len() - 4)], 4, version).is_err());
    }
}

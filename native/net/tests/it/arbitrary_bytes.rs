//! Every decoder on arbitrary and on damaged bytes: a value or an error, never a panic, never memory for a length that
//! the bytes only claim. The same entry points as the fuzz targets', without a nightly toolchain.

#[path = "../../../fuzz/decoders/batch.rs"]
mod batch;
#[path = "../../../fuzz/decoders/follower_fetch.rs"]
mod follower_fetch;
#[path = "../../../fuzz/decoders/frame.rs"]
mod frame;
#[path = "../../../fuzz/decoders/key_material.rs"]
mod key_material;
#[path = "../../../fuzz/decoders/message.rs"]
mod message;
#[path = "../../../fuzz/decoders/message_set.rs"]
mod message_set;
#[path = "../../../fuzz/decoders/response.rs"]
mod response;
#[path = "../../../fuzz/decoders/snapshot.rs"]
mod snapshot;
#[path = "../../../fuzz/decoders/tls_session.rs"]
mod tls_session;
#[path = "../../../fuzz/decoders/txn_index.rs"]
mod txn_index;

use proptest::prelude::*;
use pybroker_record::{BatchBuilder, BrokerId, Compression, LeaderEpoch, MessageSetBuilder, NewMessage, TimestampType};
use pybroker_wire::fetch::{AbortedTransaction, FetchedHead, FetchedPartition, write_response as write_fetched};
use pybroker_wire::produce::{ProducedPartition, write_response as write_produced};
use pybroker_wire::{BrokerEndpoint, ErrorCode, LeaderAndEpoch, TopicRef};

/// A valid batch of some records with headers.
fn valid_batch(codec: Compression, values: &[Vec<u8>]) -> Vec<u8> {
    let mut builder = BatchBuilder::new(codec, None, 1 << 20);
    for (index, value) in values.iter().enumerate() {
        let key = (index % 2 == 0).then_some(&value[..value.len() / 2]);
        let headers: &[(&[u8], Option<&[u8]>)] = if index % 3 == 0 { &[(b"h", None), (b"", Some(b"v"))] } else { &[] };
        builder.try_append(1 << 40, key, Some(value), headers).expect("room for it");
    }
    let mut out = Vec::new();
    builder.finish(1, 2, 3, &mut out).expect("the codec takes any bytes");
    out
}

fn codec() -> impl Strategy<Value = Compression> {
    (0_i8..5).prop_map(|code| Compression::from_code(code).expect("a known code"))
}

/// Bytes in which 0, 1, -1 and continued varints are frequent, as they are in what decoders meet.
fn likely_bytes() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![Just(0_u8), Just(1), Just(2), Just(0x7f), Just(0x80), Just(0xff), any::<u8>()];
    prop::collection::vec(byte, 0..400)
}

/// A frame with the head of a Produce or Fetch.
fn headed(api_key: u8, version: u8, body: &[u8]) -> Vec<u8> {
    [&[0, api_key, 0, version, 0, 0, 0, 1, 0xff, 0xff], body].concat()
}

proptest! {
    #[test]
    fn arbitrary_bytes(bytes in likely_bytes(), api_key in 0_u8..2, version in 0_u8..19) {
        batch::decode(&bytes);
        follower_fetch::decode(&bytes);
        frame::decode(&bytes);
        frame::decode(&headed(api_key, version, &bytes));
        message::decode(&bytes);
        message_set::decode(&bytes);
        response::decode(&bytes);
        snapshot::decode(&bytes);
        txn_index::decode(&bytes);
        key_material::decode(&bytes);
    }

    /// Records of TLS with a head as there is one, and texts with the marks of PEM around what they say.
    #[test]
    fn what_begins_as_it_should(kind in 0x14_u8..0x18, message in 0_u8..25, bytes in likely_bytes()) {
        let length = (bytes.len() as u16 + 4).to_be_bytes();
        let inner = [message, 0, (bytes.len() >> 8) as u8, bytes.len() as u8];
        tls_session::decode(&[&[kind, 3, 3], &length[..], &inner, &bytes].concat());
        for name in ["CERTIFICATE", "PRIVATE KEY", "ENCRYPTED PRIVATE KEY", "EC PRIVATE KEY"] {
            let text = [b"-----BEGIN ", name.as_bytes(), b"-----\n", &bytes, b"\n-----END ", name.as_bytes(), b"-----\n"];
            key_material::decode(&text.concat());
        }
    }

    /// Files of the right length and version, whatever their fields say.
    #[test]
    fn whole_entries(
        entries in prop::collection::vec(any::<[u8; 34]>(), 0..6),
        producers in prop::collection::vec(prop::collection::vec(any::<u8>(), 46..=46), 0..6),
    ) {
        let index: Vec<u8> = entries.iter().flat_map(|entry| [&[0, 0], &entry[2..]].concat()).collect();
        txn_index::decode(&index);
        let count = (producers.len() as i32).to_be_bytes();
        snapshot::decode(&[&[0, 1, 0, 0, 0, 0], &count[..], &producers.concat()].concat());
    }

    #[test]
    fn damaged_message_sets(
        magic in 0_i8..2, code in 0_i8..4,
        values in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 1..20),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..5),
    ) {
        let codec = Compression::from_code(code).expect("a known code");
        let mut builder = MessageSetBuilder::new(magic, codec, TimestampType::CreateTime);
        for (offset, value) in (7..).zip(&values) {
            builder.append(&NewMessage { offset, timestamp: 1 << 40, key: None, value: Some(value) });
        }
        let mut bytes = Vec::new();
        builder.finish(&mut bytes).expect("the codec takes any bytes");
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        message_set::decode(&bytes);
    }

    #[test]
    fn damaged_batches(
        codec in codec(),
        values in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 1..20),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..5),
        cut in any::<prop::sample::Index>(),
        is_cut: bool,
    ) {
        let mut bytes = valid_batch(codec, &values);
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if is_cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        batch::decode(&bytes);
        // At the end of the follower's log; its checksum does not cover where a batch lies.
        let (numbers, end) = ([0, 9, 0, 0, 0, 0, 0, 0], 2_i64.to_be_bytes());
        follower_fetch::decode(&[&numbers, &end, bytes.get(8..).unwrap_or_default()].concat());
    }

    #[test]
    fn damaged_requests(
        version in 0_u8..14, index: i32, length in -2_i32..40, records in likely_bytes(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let mut body = if version < 3 { Vec::new() } else { vec![0xff, 0xff] };
        body.extend([0xff, 0xff, 0, 0, 0, 9, 0, 0, 0, 1, 0, 1, b't', 0, 0, 0, 1]);
        body.extend(index.to_be_bytes());
        body.extend(length.to_be_bytes());
        body.extend(records);
        for (at, byte) in damage {
            let at = at.index(body.len());
            body[at] = byte;
        }
        frame::decode(&headed(0, version, &body));
    }
}

/// A Fetch response, and a Produce response, of one partition each.
fn responses(version: i16, partition: &FetchedPartition) -> [Vec<u8>; 2] {
    let (topic, index, error, leader) = (&partition.topic, partition.index, partition.error, partition.current_leader);
    let host = BrokerEndpoint { id: 1, host: "host".into(), port: 9092, rack: None };
    let (mut fetched, mut produced) = (vec![0; 4], vec![0; 4]);
    let head = FetchedHead { throttle_time_ms: 0, error, session_id: 1, read_committed: true };
    write_fetched(&mut fetched, version, head, std::slice::from_ref(partition), &[&host], &mut |_, _| {});
    let (base_offset, log_append_time, log_start_offset) = (1, 2, 3);
    let (record_errors, error_message) = (vec![(1, Some("bad".into()))], None);
    let reply = ProducedPartition {
        index,
        error,
        base_offset,
        log_append_time,
        log_start_offset,
        record_errors,
        error_message,
        current_leader: leader,
    };
    write_produced(&mut produced, version.min(13), &[(topic.clone(), vec![reply])], &[&host], 0);
    [fetched, produced]
}

proptest! {
    #[test]
    fn damaged_responses(
        version in 0_i16..=18, index: i32, error: i16, producer_id: i64, epoch: i32,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..5),
    ) {
        let topic = if version < 13 { TopicRef::Name("t".into()) } else { TopicRef::Id([7; 16]) };
        let partition = FetchedPartition {
            topic,
            index,
            error: ErrorCode(error),
            high_watermark: 1,
            last_stable_offset: 2,
            log_start_offset: 3,
            aborted: vec![AbortedTransaction { producer_id, first_offset: 4 }],
            preferred_read_replica: BrokerId(index),
            records: 0,
            diverging: None,
            current_leader: Some(LeaderAndEpoch { id: BrokerId(1), epoch: LeaderEpoch(epoch) }),
        };
        for mut bytes in responses(version, &partition) {
            for (at, byte) in &damage {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            response::decode(&bytes);
        }
    }
}

/// Memory for a length that only the bytes claim would show at once: gibibytes are named in a few dozen bytes.
#[test]
fn claimed_lengths_take_no_memory() {
    let snappy_of_two_gib = [0xff, 0xff, 0xff, 0xff, 0x07, 0, b'x'];
    batch::decode(&snappy_of_two_gib);
    let record_of_two_gib = [0xfe, 0xff, 0xff, 0xff, 0x0f, 0, 0, 0, 1, 1, 0];
    batch::decode(&record_of_two_gib);
    frame::decode(&headed(0, 3, &[0xff, 0xff, 0, 1, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff]));
    message::decode(&[0xff; 64]);
    response::decode(&[&[0; 4], &i32::MAX.to_be_bytes()[..], &[0xff; 64]].concat());
}

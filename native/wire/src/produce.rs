//! Produce (API key 0), versions 0 to 13, as the hot path needs it: where the record batches lie, and the answer's bytes.
//!
//! Nothing is copied out of the frame but topic names: batches are patched where they are. Version notes: 1 adds the
//! throttle time, 2 the append time (KIP-32), 3 the transactional id and v2 batches (KIP-98), 5 the log start offset, 8 per-record errors (KIP-467), 9 is flexible, 10 adds the current leader (KIP-951), 13 names topics by
//! id (KIP-516). Source: Kafka's `ProduceRequest` and `ProduceResponse` schemas.

use std::ops::Range;

use super::primitives::{Malformed, Reader, Writer};
use super::{BrokerEndpoint, TopicRef};

/// First flexible version.
const FLEXIBLE: i16 = 9;
/// First version that names topics by id.
const BY_ID: i16 = 13;

/// Elements that room is made for before they are read: an announced count is not a reason to take memory.
const EXPECTED: usize = 64;

/// A Produce request.
#[derive(Debug)]
pub struct ProduceRequest {
    /// Whether it names a transactional id.
    pub transactional: bool,
    /// 0: no answer, 1: the leader has it, -1: every in-sync replica has it.
    pub acks: i16,
    /// How long to wait for the replicas.
    pub timeout_ms: i32,
    /// The topics in their order.
    pub topics: Vec<ProduceTopic>,
}

/// A topic of a Produce request.
#[derive(Debug)]
pub struct ProduceTopic {
    /// By name or by id.
    pub topic: TopicRef,
    /// Partition index, and where in the frame its batches lie (`None`: null).
    pub partitions: Vec<(i32, Option<Range<usize>>)>,
}

impl ProduceRequest {
    /// Reads the message that begins at `body` of `frame`.
    ///
    /// # Errors
    /// When a length runs over the frame or a name is not UTF-8.
    pub fn parse(frame: &[u8], body: usize, version: i16) -> Result<Self, Malformed> {
        let flexible = version >= FLEXIBLE;
        let mut reader = Reader::new(frame, body, flexible);
        reader.header_tags()?;
        let transactional = version >= 3 && reader.nullable_string()?.is_some();
        let acks = reader.i16()?;
        let timeout_ms = reader.i32()?;
        let count = reader.array_len()?;
        let mut topics = Vec::with_capacity(count.min(EXPECTED));
        for _ in 0..count {
            let topic =
                if version >= BY_ID { TopicRef::Id(reader.uuid()?) } else { TopicRef::Name(reader.string()?.into()) };
            let count = reader.array_len()?;
            let mut partitions = Vec::with_capacity(count.min(EXPECTED));
            for _ in 0..count {
                let index = reader.i32()?;
                partitions.push((index, reader.nullable_bytes_range()?));
                reader.tags()?;
            }
            reader.tags()?;
            topics.push(ProduceTopic { topic, partitions });
        }
        reader.tags()?;
        Ok(Self { transactional, acks, timeout_ms, topics })
    }
}

/// What became of one partition's batches.
#[derive(Debug)]
pub struct ProducedPartition {
    /// The partition index.
    pub index: i32,
    /// Kafka's error code.
    pub error: i16,
    /// The offset of the first record, -1 on error.
    pub base_offset: i64,
    /// The broker's append time, -1 with CreateTime.
    pub log_append_time: i64,
    /// The log start offset, -1 when not known.
    pub log_start_offset: i64,
    /// Records that were refused: index in the batch, and why.
    pub record_errors: Vec<(i32, Option<String>)>,
    /// What was wrong with all of it.
    pub error_message: Option<String>,
    /// The leader and its epoch, returned with errors that say "not here".
    pub current_leader: Option<(i32, i32)>,
}

/// Writes a Produce answer behind the correlation id in `out`.
pub fn write_response(
    out: &mut Vec<u8>,
    version: i16,
    topics: &[(TopicRef, Vec<ProducedPartition>)],
    endpoints: &[&BrokerEndpoint],
    throttle_time_ms: i32,
) {
    let mut writer = Writer::new(out, version >= FLEXIBLE);
    writer.tags_none();
    writer.array_len(topics.len());
    for (topic, partitions) in topics {
        super::write_topic(&mut writer, topic);
        writer.array_len(partitions.len());
        for partition in partitions {
            write_partition(&mut writer, version, partition);
        }
        writer.tags_none();
    }
    if version >= 1 {
        writer.i32(throttle_time_ms);
    }
    super::write_endpoints(&mut writer, version >= 10, endpoints);
}

fn write_partition(writer: &mut Writer<'_>, version: i16, partition: &ProducedPartition) {
    writer.i32(partition.index);
    writer.i16(partition.error);
    writer.i64(partition.base_offset);
    if version >= 2 {
        writer.i64(partition.log_append_time);
    }
    if version >= 5 {
        writer.i64(partition.log_start_offset);
    }
    if version >= 8 {
        writer.array_len(partition.record_errors.len());
        for (index, message) in &partition.record_errors {
            writer.i32(*index);
            writer.nullable_string(message.as_deref());
            writer.tags_none();
        }
        writer.nullable_string(partition.error_message.as_deref());
    }
    match partition.current_leader {
        Some((leader, epoch)) if version >= 10 => super::write_leader_tag(writer, 0, leader, epoch),
        _ => writer.tags_none(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>, body in 0_usize..20, version in 0_i16..=13) {
            let _ = ProduceRequest::parse(&bytes, body, version);
        }

        #[test]
        fn what_is_found_lies_in_the_frame(
            records: Vec<u8>, index: i32, name in "[a-z]{1,9}", cut: prop::sample::Index, version in 0_i16..=12,
        ) {
            let mut frame = Vec::new();
            let mut writer = Writer::new(&mut frame, version >= FLEXIBLE);
            writer.tags_none();
            if version >= 3 {
                writer.nullable_string(None);
            }
            writer.i16(-1);
            writer.i32(30_000);
            writer.array_len(1);
            writer.string(&name);
            writer.array_len(1);
            writer.i32(index);
            writer.bytes(&records);
            for _ in 0..3 {
                writer.tags_none();
            }
            let request = ProduceRequest::parse(&frame, 0, version).unwrap();
            let (found, range) = request.topics[0].partitions[0].clone();
            prop_assert_eq!(found, index);
            prop_assert_eq!(&frame[range.unwrap()], &records[..]);
            prop_assert!(ProduceRequest::parse(&frame[..cut.index(frame.len())], 0, version).is_err());
        }
    }
}

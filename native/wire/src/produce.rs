//! Produce (API key 0), versions 0 to 13: the positions of record batches, and the result per partition.
//!
//! A request is parsed in place: only topic names are copied, and batches are changed in the frame. When a request is
//! written, its batches are sent beside the fields, without a copy. Version notes: 1 adds the throttle time, 2 the
//! append time (KIP-32), 3 the transactional id and v2 batches (KIP-98), 5 the log start offset, 8 per-record errors
//! (KIP-467), 9 is flexible, 10 adds the current leader (KIP-951), 13 names topics by id (KIP-516). Source: Kafka's
//! `ProduceRequest` and `ProduceResponse` schemas.

use std::ops::Range;
use std::sync::Arc;

use super::leaders::{BrokerEndpoint, LeaderAndEpoch, read_endpoints, write_endpoints};
use super::primitives::{Malformed, Reader, Writer};
use super::{EXPECTED, ErrorCode, TopicRef};

/// First flexible version.
const FLEXIBLE: i16 = 9;
/// The first version whose response has `throttle_time_ms`.
const WITH_THROTTLE_TIME: i16 = 1;
/// The first version whose response has `log_append_time_ms`.
const WITH_LOG_APPEND_TIME: i16 = 2;
/// The first version with `transactional_id` (KIP-98).
const WITH_TRANSACTIONAL_ID: i16 = 3;
/// The first version whose response has `log_start_offset`.
const WITH_LOG_START_OFFSET: i16 = 5;
/// The first version whose response has `record_errors` and `error_message` (KIP-467).
const WITH_RECORD_ERRORS: i16 = 8;
/// First version that names topics by id.
const BY_ID: i16 = 13;
/// First version whose responses contain the current leader.
const WITH_LEADERS: i16 = 10;
/// The tag of the current leader.
const LEADER_TAG: u32 = 0;

/// A Produce request.
#[derive(Debug)]
pub struct ProduceRequest {
    /// The version of the request.
    pub version: i16,
    /// The transactional id of the producer, if it has one.
    pub transactional_id: Option<String>,
    /// Required acknowledgements. 0: no response, 1: the leader, -1: every in-sync replica.
    pub acks: i16,
    /// How long to wait for the replicas, ms.
    pub timeout_ms: i32,
    /// The topics in request order.
    pub topics: Vec<ProduceTopic>,
}

/// A topic of a Produce request.
#[derive(Debug)]
pub struct ProduceTopic {
    /// The topic's name or id.
    pub topic: TopicRef,
    /// Partition index, and the range of its batches in the frame (`None`: null).
    pub partitions: Vec<(i32, Option<Range<usize>>)>,
}

impl ProduceRequest {
    /// Parses the message at `body` of `frame`.
    ///
    /// # Errors
    /// When a length exceeds the frame or a name is not UTF-8.
    pub fn parse(frame: &[u8], body: usize, version: i16) -> Result<Self, Malformed> {
        let mut reader = Reader::new(frame, body, version >= FLEXIBLE);
        reader.header_tags()?;
        let transactional_id =
            if version >= WITH_TRANSACTIONAL_ID { reader.nullable_string()?.map(str::to_owned) } else { None };
        let acks = reader.i16()?;
        let timeout_ms = reader.i32()?;
        let count = reader.array_len()?;
        let mut topics = Vec::with_capacity(count.min(EXPECTED));
        for _ in 0..count {
            let topic = TopicRef::read(&mut reader, version >= BY_ID)?;
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
        Ok(Self { version, transactional_id, acks, timeout_ms, topics })
    }
}

/// The fields of a request before its batches.
#[derive(Clone, Copy, Debug)]
pub struct ProduceHead<'a> {
    /// Written from version 3 on.
    pub transactional_id: Option<&'a str>,
    pub acks: i16,
    pub timeout_ms: i32,
}

/// One partition's batch of a request to send.
#[derive(Clone, Debug)]
pub struct PartitionBatch {
    pub topic: TopicRef,
    pub index: i32,
    pub records: Arc<Vec<u8>>,
}

/// Appends a request's message after its header in `out`. Batches of one topic must be adjacent.
///
/// Calls `place(out, batch)` at the position of a batch's records. It may take the content of `out` so far.
pub fn write_request(
    out: &mut Vec<u8>,
    version: i16,
    head: ProduceHead<'_>,
    batches: &[PartitionBatch],
    mut place: impl FnMut(&mut Vec<u8>, &PartitionBatch),
) {
    let mut writer = Writer::new(out, version >= FLEXIBLE);
    writer.tags_none();
    if version >= WITH_TRANSACTIONAL_ID {
        writer.nullable_string(head.transactional_id);
    }
    writer.i16(head.acks);
    writer.i32(head.timeout_ms);
    let topics = batches.chunk_by(|a, b| a.topic == b.topic);
    writer.array_len(topics.clone().count());
    for batches in topics {
        batches[0].topic.write(&mut writer);
        writer.array_len(batches.len());
        for batch in batches {
            writer.i32(batch.index);
            writer.bytes_len(batch.records.len());
            place(writer.buffer(), batch);
            writer.tags_none();
        }
        writer.tags_none();
    }
    writer.tags_none();
}

/// The result for one partition's batches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProducedPartition {
    /// The partition index.
    pub index: i32,
    /// Kafka's error code.
    pub error: ErrorCode,
    /// The offset of the first record, -1 on error.
    pub base_offset: i64,
    /// The broker's append time, ms; -1 with CreateTime.
    pub log_append_time: i64,
    /// The log start offset; -1 when unknown.
    pub log_start_offset: i64,
    /// Rejected records: index in the batch, and reason.
    pub record_errors: Vec<(i32, Option<String>)>,
    /// The error message for all batches.
    pub error_message: Option<String>,
    /// Returned with errors after which the client must use another leader.
    pub current_leader: Option<LeaderAndEpoch>,
}

/// Appends a Produce response after the correlation id in `out`.
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
        topic.write(&mut writer);
        writer.array_len(partitions.len());
        for partition in partitions {
            write_partition(&mut writer, version, partition);
        }
        writer.tags_none();
    }
    if version >= WITH_THROTTLE_TIME {
        writer.i32(throttle_time_ms);
    }
    write_endpoints(&mut writer, version >= WITH_LEADERS, endpoints);
}

fn write_partition(writer: &mut Writer<'_>, version: i16, partition: &ProducedPartition) {
    writer.i32(partition.index);
    writer.error_code(partition.error);
    writer.i64(partition.base_offset);
    if version >= WITH_LOG_APPEND_TIME {
        writer.i64(partition.log_append_time);
    }
    if version >= WITH_LOG_START_OFFSET {
        writer.i64(partition.log_start_offset);
    }
    if version >= WITH_RECORD_ERRORS {
        writer.array_len(partition.record_errors.len());
        for (index, message) in &partition.record_errors {
            writer.i32(*index);
            writer.nullable_string(message.as_deref());
            writer.tags_none();
        }
        writer.nullable_string(partition.error_message.as_deref());
    }
    match partition.current_leader {
        Some(leader) if version >= WITH_LEADERS => leader.write_tag(writer, LEADER_TAG),
        _ => writer.tags_none(),
    }
}

/// A Produce response.
#[derive(Debug)]
pub struct ProduceResponse {
    /// The topics in response order.
    pub topics: Vec<(TopicRef, Vec<ProducedPartition>)>,
    /// The endpoints of the leaders in the response.
    pub endpoints: Vec<BrokerEndpoint>,
}

impl ProduceResponse {
    /// Parses the message at `body` of `frame`.
    ///
    /// # Errors
    /// When a length exceeds the frame or a text is not UTF-8.
    pub fn parse(frame: &[u8], body: usize, version: i16) -> Result<Self, Malformed> {
        let mut reader = Reader::new(frame, body, version >= FLEXIBLE);
        reader.header_tags()?;
        let count = reader.array_len()?;
        let mut topics = Vec::with_capacity(count.min(EXPECTED));
        for _ in 0..count {
            let topic = TopicRef::read(&mut reader, version >= BY_ID)?;
            let count = reader.array_len()?;
            let mut partitions = Vec::with_capacity(count.min(EXPECTED));
            for _ in 0..count {
                partitions.push(read_partition(&mut reader, version)?);
            }
            reader.tags()?;
            topics.push((topic, partitions));
        }
        if version >= WITH_THROTTLE_TIME {
            reader.i32()?; // throttle_time_ms
        }
        Ok(Self { topics, endpoints: read_endpoints(&mut reader)? })
    }
}

fn read_partition(reader: &mut Reader<'_>, version: i16) -> Result<ProducedPartition, Malformed> {
    let mut partition = ProducedPartition {
        index: reader.i32()?,
        error: reader.error_code()?,
        base_offset: reader.i64()?,
        log_append_time: if version >= WITH_LOG_APPEND_TIME { reader.i64()? } else { -1 },
        log_start_offset: if version >= WITH_LOG_START_OFFSET { reader.i64()? } else { -1 },
        record_errors: Vec::new(),
        error_message: None,
        current_leader: None,
    };
    if version >= WITH_RECORD_ERRORS {
        for _ in 0..reader.array_len()? {
            let index = reader.i32()?;
            partition.record_errors.push((index, reader.nullable_string()?.map(str::to_owned)));
            reader.tags()?;
        }
        partition.error_message = reader.nullable_string()?.map(str::to_owned);
    }
    reader.each_tag(|tag, field| {
        if tag == LEADER_TAG {
            partition.current_leader = Some(LeaderAndEpoch::read(field)?);
        }
        Ok(())
    })?;
    Ok(partition)
}

#[cfg(test)]
mod tests;

//! Fetch (API key 1), versions 0 to 18: the request of a consumer or follower, and the positions of records in the
//! response.
//!
//! [`write_response`] writes a response around the record bytes and reports the position of each partition's slice of
//! the log file. Version notes: 1 adds the throttle time, 2 v1 messages (KIP-32), 3 the size limit of the whole
//! response (KIP-74), 4 v2 batches and the isolation level (KIP-98), 5 adds the log start offset, 7 sessions
//! (KIP-227), 9 the leader epoch, 11 the rack (KIP-392), 12 is flexible and adds the diverging epoch (KIP-595), 13
//! names topics by id (KIP-516), 15 moves the replica id into a tag (KIP-903), 16 adds leader endpoints (KIP-951), 17
//! and 18 add tags of followers, which are skipped. Source: Kafka's `FetchRequest` and `FetchResponse` schemas.

mod versions;

use std::ops::Range;

use self::versions::{
    BY_ID, FLEXIBLE, WITH_ISOLATION_LEVEL, WITH_LAST_FETCHED_EPOCH, WITH_LEADER_EPOCH, WITH_LOG_START_OFFSET,
    WITH_MAX_BYTES, WITH_NODE_ENDPOINTS, WITH_RACK, WITH_REPLICA_STATE, WITH_SESSIONS, WITH_THROTTLE_TIME,
};
use super::leaders::{BrokerEndpoint, LeaderAndEpoch, read_endpoints, write_endpoints};
use super::primitives::{Malformed, Reader, Writer};
use super::{ErrorCode, TopicRef};
use pybroker_record::{BrokerId, LeaderEpoch, PartitionIndex};

/// The tag of the replica's state.
const REPLICA_STATE_TAG: u32 = 1;
/// The tag of a partition's diverging epoch.
const DIVERGING_TAG: u32 = 0;
/// The tag of a partition's current leader.
const LEADER_TAG: u32 = 1;

/// The sender of a Fetch: a follower's broker id and epoch (KIP-903), or a consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaState {
    pub id: i32,
    /// The broker epoch; -1 if the version lacks it.
    pub epoch: i64,
}

impl ReplicaState {
    /// A consumer, not a replica.
    pub const CONSUMER: Self = Self { id: -1, epoch: -1 };
}

/// One partition of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchPartition {
    /// The topic's name or id in the request.
    pub topic: TopicRef,
    pub index: PartitionIndex,
    /// The offset to read from.
    pub fetch_offset: i64,
    /// The most bytes to return for this partition.
    pub max_bytes: i32,
    /// The client's leader epoch; -1 for none.
    pub leader_epoch: LeaderEpoch,
    /// The epoch of the client's last record; -1 for none (KIP-595).
    pub last_fetched_epoch: LeaderEpoch,
    /// The log start offset of a follower; -1 for a consumer.
    pub log_start_offset: i64,
}

/// A Fetch request.
#[derive(Debug, PartialEq, Eq)]
pub struct FetchRequest<'a> {
    /// The follower or consumer that sends the request.
    pub replica: ReplicaState,
    /// Most milliseconds to wait for `min_bytes`.
    pub max_wait_ms: i32,
    /// The bytes to wait for.
    pub min_bytes: i32,
    /// Most bytes to return.
    pub max_bytes: i32,
    /// Whether to return only records of committed transactions.
    pub read_committed: bool,
    /// The session id; 0 for none.
    pub session_id: i32,
    /// The session epoch: -1 ends the session, 0 begins one.
    pub session_epoch: i32,
    /// The partitions in request order. Those of one topic are adjacent.
    pub partitions: Vec<FetchPartition>,
    /// Partitions to remove from the session. Those of one topic are adjacent.
    pub forgotten: Vec<(TopicRef, PartitionIndex)>,
    /// The consumer's rack (KIP-392); empty for none.
    pub rack: &'a str,
}

/// Returns the newest message format that a version supports, if it is older than v2 (Kafka's `FetchRequest`).
pub fn newest_format(version: i16) -> Option<i8> {
    match version {
        ..=1 => Some(0),
        2 | 3 => Some(1),
        _ => None,
    }
}

/// Returns whether a version names topics by id.
pub fn names_by_id(version: i16) -> bool {
    version >= BY_ID
}

impl<'a> FetchRequest<'a> {
    /// Parses the message at `body` of `frame`.
    ///
    /// # Errors
    /// When a length exceeds the frame or a name is not UTF-8.
    pub fn parse(frame: &'a [u8], body: usize, version: i16) -> Result<Self, Malformed> {
        let mut reader = Reader::new(frame, body, version >= FLEXIBLE);
        reader.header_tags()?;
        let mut replica = ReplicaState::CONSUMER;
        if version < WITH_REPLICA_STATE {
            replica.id = reader.i32()?;
        }
        let max_wait_ms = reader.i32()?;
        let min_bytes = reader.i32()?;
        let max_bytes = if version >= WITH_MAX_BYTES { reader.i32()? } else { i32::MAX };
        let read_committed = version >= WITH_ISOLATION_LEVEL && reader.i8()? == 1;
        let (session_id, session_epoch) =
            if version >= WITH_SESSIONS { (reader.i32()?, reader.i32()?) } else { (0, -1) };
        let partitions = read_partitions(&mut reader, version)?;
        let forgotten = if version >= WITH_SESSIONS { read_forgotten(&mut reader, version)? } else { Vec::new() };
        let rack = if version >= WITH_RACK { reader.string()? } else { "" };
        reader.each_tag(|tag, field| {
            if tag == REPLICA_STATE_TAG && version >= WITH_REPLICA_STATE {
                replica = ReplicaState { id: field.i32()?, epoch: field.i64()? };
            }
            Ok(())
        })?;
        Ok(Self {
            replica,
            max_wait_ms,
            min_bytes,
            max_bytes,
            read_committed,
            session_id,
            session_epoch,
            partitions,
            forgotten,
            rack,
        })
    }

    /// Appends the message after its header in `out`.
    pub fn write(&self, out: &mut Vec<u8>, version: i16) {
        let mut writer = Writer::new(out, version >= FLEXIBLE);
        writer.tags_none();
        if version < WITH_REPLICA_STATE {
            writer.i32(self.replica.id);
        }
        writer.i32(self.max_wait_ms);
        writer.i32(self.min_bytes);
        if version >= WITH_MAX_BYTES {
            writer.i32(self.max_bytes);
        }
        if version >= WITH_ISOLATION_LEVEL {
            writer.i8(self.read_committed.into());
        }
        if version >= WITH_SESSIONS {
            writer.i32(self.session_id);
            writer.i32(self.session_epoch);
        }
        write_partitions(&mut writer, version, &self.partitions);
        if version >= WITH_SESSIONS {
            write_forgotten(&mut writer, &self.forgotten);
        }
        if version >= WITH_RACK {
            writer.string(self.rack);
        }
        if version >= WITH_REPLICA_STATE && self.replica != ReplicaState::CONSUMER {
            write_replica_state(&mut writer, self.replica);
        } else {
            writer.tags_none();
        }
    }
}

/// Writes the tagged section of a follower's request: `{replica_id: i32, replica_epoch: i64}`.
fn write_replica_state(writer: &mut Writer<'_>, replica: ReplicaState) {
    writer.uvarint(1);
    writer.uvarint(REPLICA_STATE_TAG);
    writer.uvarint(13);
    writer.i32(replica.id);
    writer.i64(replica.epoch);
    writer.uvarint(0);
}

fn read_partitions(reader: &mut Reader<'_>, version: i16) -> Result<Vec<FetchPartition>, Malformed> {
    let mut partitions = Vec::new();
    for _ in 0..reader.array_len()? {
        let topic = TopicRef::read(reader, version >= BY_ID)?;
        for _ in 0..reader.array_len()? {
            let index = PartitionIndex(reader.i32()?);
            let leader_epoch = LeaderEpoch(if version >= WITH_LEADER_EPOCH { reader.i32()? } else { -1 });
            let fetch_offset = reader.i64()?;
            let last_fetched_epoch = LeaderEpoch(if version >= WITH_LAST_FETCHED_EPOCH { reader.i32()? } else { -1 });
            let log_start_offset = if version >= WITH_LOG_START_OFFSET { reader.i64()? } else { -1 };
            let max_bytes = reader.i32()?;
            reader.tags()?;
            partitions.push(FetchPartition {
                topic: topic.clone(),
                index,
                fetch_offset,
                max_bytes,
                leader_epoch,
                last_fetched_epoch,
                log_start_offset,
            });
        }
        reader.tags()?;
    }
    Ok(partitions)
}

fn write_partitions(writer: &mut Writer<'_>, version: i16, partitions: &[FetchPartition]) {
    let topics = partitions.chunk_by(|a, b| a.topic == b.topic);
    writer.array_len(topics.clone().count());
    for partitions in topics {
        partitions[0].topic.write(writer);
        writer.array_len(partitions.len());
        for partition in partitions {
            writer.i32(partition.index.0);
            if version >= WITH_LEADER_EPOCH {
                writer.i32(partition.leader_epoch.0);
            }
            writer.i64(partition.fetch_offset);
            if version >= WITH_LAST_FETCHED_EPOCH {
                writer.i32(partition.last_fetched_epoch.0);
            }
            if version >= WITH_LOG_START_OFFSET {
                writer.i64(partition.log_start_offset);
            }
            writer.i32(partition.max_bytes);
            writer.tags_none();
        }
        writer.tags_none();
    }
}

fn read_forgotten(reader: &mut Reader<'_>, version: i16) -> Result<Vec<(TopicRef, PartitionIndex)>, Malformed> {
    let mut forgotten = Vec::new();
    for _ in 0..reader.array_len()? {
        let topic = TopicRef::read(reader, version >= BY_ID)?;
        for _ in 0..reader.array_len()? {
            forgotten.push((topic.clone(), PartitionIndex(reader.i32()?)));
        }
        reader.tags()?;
    }
    Ok(forgotten)
}

fn write_forgotten(writer: &mut Writer<'_>, forgotten: &[(TopicRef, PartitionIndex)]) {
    let topics = forgotten.chunk_by(|a, b| a.0 == b.0);
    writer.array_len(topics.clone().count());
    for partitions in topics {
        partitions[0].0.write(writer);
        writer.array_len(partitions.len());
        for (_, index) in partitions {
            writer.i32(index.0);
        }
        writer.tags_none();
    }
}

/// The divergence of a reader's log from the leader's (KIP-595): the leader's largest epoch at or below the reader's last
/// one, and its end offset on the leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DivergingEpoch {
    pub epoch: i32,
    pub end_offset: i64,
}

impl DivergingEpoch {
    /// Writes the fields as the only field of a tagged section.
    fn write_tag(self, writer: &mut Writer<'_>) {
        writer.uvarint(1);
        writer.uvarint(DIVERGING_TAG);
        writer.uvarint(13);
        writer.i32(self.epoch);
        writer.i64(self.end_offset);
        writer.uvarint(0);
    }
}

/// A transaction whose records a `read_committed` consumer skips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AbortedTransaction {
    pub producer_id: i64,
    pub first_offset: i64,
}

/// The result for one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedPartition {
    /// The topic's name or id in the request.
    pub topic: TopicRef,
    /// The partition index.
    pub index: i32,
    /// Kafka's error code.
    pub error: ErrorCode,
    /// The high watermark; -1 on error.
    pub high_watermark: i64,
    /// The last stable offset; -1 on error.
    pub last_stable_offset: i64,
    /// The log start offset; -1 on error.
    pub log_start_offset: i64,
    /// Aborted transactions among the records, in log order.
    pub aborted: Vec<AbortedTransaction>,
    /// The broker whose replica the consumer should read from (KIP-392); -1 for this one.
    pub preferred_read_replica: BrokerId,
    /// Bytes of record batches. The last batch may be incomplete.
    pub records: usize,
    /// The divergence of the client's log from the leader's.
    pub diverging: Option<DivergingEpoch>,
    /// Returned with errors after which the client must use another leader.
    pub current_leader: Option<LeaderAndEpoch>,
}

/// The fields of a Fetch response before its topics.
#[derive(Clone, Copy, Debug)]
pub struct FetchedHead {
    /// How long the client must wait because of a quota (KIP-219).
    pub throttle_time_ms: i32,
    /// The error of the whole request.
    pub error: ErrorCode,
    /// The session id; 0 for none.
    pub session_id: i32,
    /// Whether the client reads only committed records. It then gets the list of aborted transactions.
    pub read_committed: bool,
}

/// Appends a Fetch response after the correlation id in `out`. Partitions of one topic must be adjacent.
///
/// Calls `place(out_len, partition)` at the position of the records of `partitions[partition]`.
pub fn write_response(
    out: &mut Vec<u8>,
    version: i16,
    head: FetchedHead,
    partitions: &[FetchedPartition],
    endpoints: &[&BrokerEndpoint],
    place: &mut dyn FnMut(usize, usize),
) {
    let mut writer = Writer::new(out, version >= FLEXIBLE);
    writer.tags_none();
    if version >= WITH_THROTTLE_TIME {
        writer.i32(head.throttle_time_ms);
    }
    if version >= WITH_SESSIONS {
        writer.error_code(head.error);
        writer.i32(head.session_id);
    }
    let topics = partitions.chunk_by(|a, b| a.topic == b.topic);
    writer.array_len(topics.clone().count());
    let mut at = 0;
    for topic in topics {
        topic[0].topic.write(&mut writer);
        writer.array_len(topic.len());
        for partition in topic {
            write_partition(&mut writer, version, head, partition, at, place);
            at += 1;
        }
        writer.tags_none();
    }
    write_endpoints(&mut writer, version >= WITH_NODE_ENDPOINTS, endpoints);
}

/// Writes the aborted transactions among the records, for a client that reads only committed records.
fn write_aborted(writer: &mut Writer<'_>, head: FetchedHead, partition: &FetchedPartition) {
    if !head.read_committed {
        return writer.array_null();
    }
    writer.array_len(partition.aborted.len());
    for transaction in &partition.aborted {
        writer.i64(transaction.producer_id);
        writer.i64(transaction.first_offset);
        writer.tags_none();
    }
}

fn write_partition(
    writer: &mut Writer<'_>,
    version: i16,
    head: FetchedHead,
    partition: &FetchedPartition,
    at: usize,
    place: &mut dyn FnMut(usize, usize),
) {
    writer.i32(partition.index);
    writer.error_code(partition.error);
    writer.i64(partition.high_watermark);
    if version >= WITH_ISOLATION_LEVEL {
        writer.i64(partition.last_stable_offset);
    }
    if version >= WITH_LOG_START_OFFSET {
        writer.i64(partition.log_start_offset);
    }
    if version >= WITH_ISOLATION_LEVEL {
        write_aborted(writer, head, partition);
    }
    if version >= WITH_RACK {
        writer.i32(partition.preferred_read_replica.0);
    }
    writer.bytes_len(partition.records);
    if partition.records > 0 {
        place(writer.len(), at);
    }
    let leader = partition.current_leader.filter(|_| version >= FLEXIBLE);
    match (partition.diverging.filter(|_| version >= FLEXIBLE), leader) {
        (Some(diverging), _) => diverging.write_tag(writer),
        (None, Some(leader)) => leader.write_tag(writer, LEADER_TAG),
        (None, None) => writer.tags_none(),
    }
}

/// The result for one partition, and the range of its records in the frame.
#[derive(Debug)]
pub struct ReceivedPartition {
    pub partition: FetchedPartition,
    pub records: Range<usize>,
}

/// A Fetch response.
#[derive(Debug)]
pub struct FetchResponse {
    /// The error of the whole request.
    pub error: ErrorCode,
    /// The session id; 0 for none.
    pub session_id: i32,
    /// The partitions in response order.
    pub partitions: Vec<ReceivedPartition>,
    /// The endpoints of the leaders in the response.
    pub endpoints: Vec<BrokerEndpoint>,
}

impl FetchResponse {
    /// Parses the message at `body` of `frame`.
    ///
    /// # Errors
    /// When a length exceeds the frame or a name is not UTF-8.
    pub fn parse(frame: &[u8], body: usize, version: i16) -> Result<Self, Malformed> {
        let mut reader = Reader::new(frame, body, version >= FLEXIBLE);
        reader.header_tags()?;
        if version >= WITH_THROTTLE_TIME {
            reader.i32()?; // throttle_time_ms
        }
        let (error, session_id) =
            if version >= WITH_SESSIONS { (reader.error_code()?, reader.i32()?) } else { (ErrorCode::NONE, 0) };
        let mut partitions = Vec::new();
        for _ in 0..reader.array_len()? {
            let topic = TopicRef::read(&mut reader, version >= BY_ID)?;
            for _ in 0..reader.array_len()? {
                partitions.push(read_partition(&mut reader, version, &topic)?);
            }
            reader.tags()?;
        }
        Ok(Self { error, session_id, partitions, endpoints: read_endpoints(&mut reader)? })
    }
}

fn read_partition(reader: &mut Reader<'_>, version: i16, topic: &TopicRef) -> Result<ReceivedPartition, Malformed> {
    let (index, error, high_watermark) = (reader.i32()?, reader.error_code()?, reader.i64()?);
    let last_stable_offset = if version >= WITH_ISOLATION_LEVEL { reader.i64()? } else { -1 };
    let log_start_offset = if version >= WITH_LOG_START_OFFSET { reader.i64()? } else { -1 };
    let aborted = if version >= WITH_ISOLATION_LEVEL { read_aborted(reader)? } else { Vec::new() };
    let preferred_read_replica = BrokerId(if version >= WITH_RACK { reader.i32()? } else { -1 });
    let records = reader.nullable_bytes_range()?.unwrap_or_default();
    let (mut diverging, mut current_leader) = (None, None);
    reader.each_tag(|tag, field| {
        match tag {
            DIVERGING_TAG => diverging = Some(DivergingEpoch { epoch: field.i32()?, end_offset: field.i64()? }),
            LEADER_TAG => current_leader = Some(LeaderAndEpoch::read(field)?),
            _ => {}
        }
        Ok(())
    })?;
    let partition = FetchedPartition {
        topic: topic.clone(),
        index,
        error,
        high_watermark,
        last_stable_offset,
        log_start_offset,
        aborted,
        preferred_read_replica,
        records: records.len(),
        diverging,
        current_leader,
    };
    Ok(ReceivedPartition { partition, records })
}

fn read_aborted(reader: &mut Reader<'_>) -> Result<Vec<AbortedTransaction>, Malformed> {
    let mut aborted = Vec::new();
    for _ in 0..reader.nullable_array_len()?.unwrap_or(0) {
        aborted.push(AbortedTransaction { producer_id: reader.i64()?, first_offset: reader.i64()? });
        reader.tags()?;
    }
    Ok(aborted)
}

#[cfg(test)]
mod tests;

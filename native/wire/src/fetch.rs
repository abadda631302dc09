//! Fetch (API key 1), versions 0 to 18, as the hot path needs it.
//!
//! The answer is written around the record bytes: [`write_response`] leaves a note where each partition's slice of the
//! log file goes. Version notes: 1 adds the throttle time, 2 v1 messages (KIP-32), 3 the bound on the whole answer
//! (KIP-74), 4 v2 batches and the isolation level (KIP-98), 5 adds the log start offset, 7 sessions (KIP-227), 9 the leader epoch, 11 the rack
//! (KIP-392), 12 is flexible and adds the diverging epoch (KIP-595), 13 names topics by id (KIP-516), 15 moves the replica
//! id into a tag (KIP-903), 16 adds leader endpoints (KIP-951), 17 and 18 add tags of followers. Source: Kafka's
//! `FetchRequest` and `FetchResponse` schemas.

use super::primitives::{Malformed, Reader, Writer};
use super::{BrokerEndpoint, TopicRef};

/// First flexible version.
const FLEXIBLE: i16 = 12;
/// First version that names topics by id.
const BY_ID: i16 = 13;

/// One partition of a request.
#[derive(Clone, Debug)]
pub struct FetchPartition {
    /// The topic as the client names it.
    pub topic: TopicRef,
    /// The partition index.
    pub index: i32,
    /// The offset to read from.
    pub fetch_offset: i64,
    /// The most bytes to answer for this partition.
    pub max_bytes: i32,
    /// The leader epoch the client believes in, -1 for none.
    pub leader_epoch: i32,
    /// The epoch of the last record the client has, -1 for none (KIP-595).
    pub last_fetched_epoch: i32,
}

/// A Fetch request.
#[derive(Debug)]
pub struct FetchRequest {
    /// Most milliseconds to wait for `min_bytes`.
    pub max_wait_ms: i32,
    /// Bytes worth answering for.
    pub min_bytes: i32,
    /// Most bytes to answer with.
    pub max_bytes: i32,
    /// Whether only committed transactions are wanted.
    pub read_committed: bool,
    /// The session, 0 for none.
    pub session_id: i32,
    /// The session's epoch: -1 ends it, 0 begins one.
    pub session_epoch: i32,
    /// The partitions in their order.
    pub partitions: Vec<FetchPartition>,
    /// Partitions that leave the session.
    pub forgotten: Vec<(TopicRef, i32)>,
}

/// The newest message format that a version can carry, where that is not v2 (Kafka's `FetchRequest`).
pub fn newest_format(version: i16) -> Option<i8> {
    match version {
        ..=1 => Some(0),
        2 | 3 => Some(1),
        _ => None,
    }
}

/// Whether a version names topics by id.
pub fn names_by_id(version: i16) -> bool {
    version >= BY_ID
}

impl FetchRequest {
    /// Reads the message that begins at `body` of `frame`.
    ///
    /// # Errors
    /// When a length runs over the frame or a name is not UTF-8.
    pub fn parse(frame: &[u8], body: usize, version: i16) -> Result<Self, Malformed> {
        let mut reader = Reader::new(frame, body, version >= FLEXIBLE);
        reader.header_tags()?;
        if version <= 14 {
            reader.i32()?; // replica_id: consumers say -1; followers of this broker do not exist yet
        }
        let max_wait_ms = reader.i32()?;
        let min_bytes = reader.i32()?;
        let max_bytes = if version >= 3 { reader.i32()? } else { i32::MAX };
        let read_committed = version >= 4 && reader.i8()? == 1;
        let (session_id, session_epoch) = if version >= 7 { (reader.i32()?, reader.i32()?) } else { (0, -1) };
        let partitions = read_partitions(&mut reader, version)?;
        let forgotten = if version >= 7 { read_forgotten(&mut reader, version)? } else { Vec::new() };
        if version >= 11 {
            reader.string()?; // rack_id
        }
        reader.tags()?;
        Ok(Self { max_wait_ms, min_bytes, max_bytes, read_committed, session_id, session_epoch, partitions, forgotten })
    }
}

fn read_topic(reader: &mut Reader<'_>, version: i16) -> Result<TopicRef, Malformed> {
    Ok(if version >= BY_ID { TopicRef::Id(reader.uuid()?) } else { TopicRef::Name(reader.string()?.into()) })
}

fn read_partitions(reader: &mut Reader<'_>, version: i16) -> Result<Vec<FetchPartition>, Malformed> {
    let mut partitions = Vec::new();
    for _ in 0..reader.array_len()? {
        let topic = read_topic(reader, version)?;
        for _ in 0..reader.array_len()? {
            let index = reader.i32()?;
            let leader_epoch = if version >= 9 { reader.i32()? } else { -1 };
            let fetch_offset = reader.i64()?;
            let last_fetched_epoch = if version >= 12 { reader.i32()? } else { -1 };
            if version >= 5 {
                reader.i64()?; // log_start_offset of a follower
            }
            let max_bytes = reader.i32()?;
            reader.tags()?;
            partitions.push(FetchPartition {
                topic: topic.clone(),
                index,
                fetch_offset,
                max_bytes,
                leader_epoch,
                last_fetched_epoch,
            });
        }
        reader.tags()?;
    }
    Ok(partitions)
}

fn read_forgotten(reader: &mut Reader<'_>, version: i16) -> Result<Vec<(TopicRef, i32)>, Malformed> {
    let mut forgotten = Vec::new();
    for _ in 0..reader.array_len()? {
        let topic = read_topic(reader, version)?;
        for _ in 0..reader.array_len()? {
            forgotten.push((topic.clone(), reader.i32()?));
        }
        reader.tags()?;
    }
    Ok(forgotten)
}

/// What one partition is answered with.
#[derive(Clone, Debug)]
pub struct FetchedPartition {
    /// The topic as the client names it.
    pub topic: TopicRef,
    /// The partition index.
    pub index: i32,
    /// Kafka's error code.
    pub error: i16,
    /// The high watermark, -1 on error.
    pub high_watermark: i64,
    /// The last stable offset, -1 on error.
    pub last_stable_offset: i64,
    /// The log start offset, -1 on error.
    pub log_start_offset: i64,
    /// Aborted transactions that a `read_committed` client has to leave out: producer and first offset.
    pub aborted: Vec<(i64, i64)>,
    /// Bytes of record batches.
    pub records: usize,
    /// Where the client's log leaves the leader's: epoch and end offset (KIP-595).
    pub diverging: Option<(i32, i64)>,
    /// The leader and its epoch, returned with errors that say "not here".
    pub current_leader: Option<(i32, i32)>,
}

/// What stands before the topics of a Fetch answer.
#[derive(Clone, Copy, Debug)]
pub struct FetchedHead {
    /// How long the client is to wait, as a quota demands (KIP-219).
    pub throttle_time_ms: i32,
    /// The error of the whole request.
    pub error: i16,
    /// The session, 0 for none.
    pub session_id: i32,
    /// Whether the client asked for committed data only: it gets the list of aborted transactions then.
    pub read_committed: bool,
}

/// Writes a Fetch answer behind the correlation id in `out`. Partitions of one topic stand together.
///
/// `place(out_len, partition)` is called where the records of `partitions[partition]` go.
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
    if version >= 1 {
        writer.i32(head.throttle_time_ms);
    }
    if version >= 7 {
        writer.i16(head.error);
        writer.i32(head.session_id);
    }
    let topics = partitions.chunk_by(|a, b| a.topic == b.topic);
    writer.array_len(topics.clone().count());
    let mut at = 0;
    for topic in topics {
        super::write_topic(&mut writer, &topic[0].topic);
        writer.array_len(topic.len());
        for partition in topic {
            write_partition(&mut writer, version, head, partition, at, place);
            at += 1;
        }
        writer.tags_none();
    }
    super::write_endpoints(&mut writer, version >= 16, endpoints);
}

/// The aborted transactions among the records, for a client that reads committed data only.
fn write_aborted(writer: &mut Writer<'_>, head: FetchedHead, partition: &FetchedPartition) {
    if !head.read_committed {
        return writer.array_null();
    }
    writer.array_len(partition.aborted.len());
    for &(producer_id, first_offset) in &partition.aborted {
        writer.i64(producer_id);
        writer.i64(first_offset);
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
    writer.i16(partition.error);
    writer.i64(partition.high_watermark);
    if version >= 4 {
        writer.i64(partition.last_stable_offset);
    }
    if version >= 5 {
        writer.i64(partition.log_start_offset);
    }
    if version >= 4 {
        write_aborted(writer, head, partition);
    }
    if version >= 11 {
        writer.i32(-1); // preferred_read_replica
    }
    writer.bytes_len(partition.records);
    if partition.records > 0 {
        place(writer.len(), at);
    }
    let leader = partition.current_leader.filter(|_| version >= FLEXIBLE);
    match (partition.diverging.filter(|_| version >= FLEXIBLE), leader) {
        (Some((epoch, end_offset)), _) => super::write_diverging_tag(writer, epoch, end_offset),
        (None, Some((leader, epoch))) => super::write_leader_tag(writer, 1, leader, epoch),
        (None, None) => writer.tags_none(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>, body in 0_usize..20, version in 0_i16..=18) {
            let _ = FetchRequest::parse(&bytes, body, version);
        }
    }
}

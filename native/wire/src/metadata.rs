//! Metadata (API key 3), versions 1 to 13: brokers, and the leaders of the partitions of some topics.
//!
//! Version notes: 2 adds the cluster id, 3 the throttle time, 4 whether topics are created, 5 offline replicas, 7
//! leader epochs, 8 authorized operations (KIP-430), 9 is flexible, 10 adds topic ids (KIP-516), 11 removes the
//! cluster's authorized operations, 12 makes topic names nullable, 13 adds an error of the whole response (KIP-1102).
//! Source: Kafka's `MetadataRequest` and `MetadataResponse` schemas.

use super::primitives::{Malformed, Reader, Writer};
use super::{ErrorCode, TopicId, ZERO_TOPIC_ID};
use pybroker_record::{BrokerId, LeaderEpoch, PartitionIndex};

/// First flexible version.
const FLEXIBLE: i16 = 9;
/// The first version whose response has `cluster_id`.
const WITH_CLUSTER_ID: i16 = 2;
/// The first version whose response has `throttle_time_ms`.
const WITH_THROTTLE_TIME: i16 = 3;
/// The first version with `allow_auto_topic_creation`.
const WITH_CREATION_CHOICE: i16 = 4;
/// The first version whose response has `offline_replicas`.
const WITH_OFFLINE_REPLICAS: i16 = 5;
/// The first version whose response has `leader_epoch` (KIP-320).
const WITH_LEADER_EPOCH: i16 = 7;
/// The first version with authorized operations (KIP-430).
const WITH_OPERATIONS: i16 = 8;
/// The last version with the authorized operations of the cluster (KIP-700).
const LAST_WITH_CLUSTER_OPERATIONS: i16 = 10;
/// First version with topic ids.
const WITH_TOPIC_IDS: i16 = 10;
/// First version with an error of the whole response.
const WITH_ERROR: i16 = 13;

/// Appends a request for topics by name (none: brokers only) after its header in `out`. Absent topics are created if
/// `create` is true and the broker allows it. Before version 4 only the broker's setting counts.
pub fn write_request<'a>(
    out: &mut Vec<u8>,
    version: i16,
    create: bool,
    topics: impl ExactSizeIterator<Item = &'a str>,
) {
    let mut writer = Writer::new(out, version >= FLEXIBLE);
    writer.tags_none();
    writer.array_len(topics.len());
    for topic in topics {
        if version >= WITH_TOPIC_IDS {
            writer.uuid(&ZERO_TOPIC_ID);
        }
        writer.string(topic);
        writer.tags_none();
    }
    if version >= WITH_CREATION_CHOICE {
        writer.bool(create);
    }
    if (WITH_OPERATIONS..=LAST_WITH_CLUSTER_OPERATIONS).contains(&version) {
        writer.bool(false); // include_cluster_authorized_operations
    }
    if version >= WITH_OPERATIONS {
        writer.bool(false); // include_topic_authorized_operations
    }
    writer.tags_none();
}

/// A broker's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerMetadata {
    pub id: i32,
    pub host: String,
    pub port: i32,
}

/// One partition in a Metadata response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionMetadata {
    pub error: ErrorCode,
    pub index: PartitionIndex,
    /// The leader; -1 for none.
    pub leader: BrokerId,
    /// The leader's epoch; -1 before version 7.
    pub leader_epoch: LeaderEpoch,
}

/// One topic in a Metadata response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicMetadata {
    pub error: ErrorCode,
    /// The name; empty if the topic is identified only by its id.
    pub name: String,
    /// The id; all zero before version 10.
    pub id: TopicId,
    pub partitions: Vec<PartitionMetadata>,
}

/// A Metadata response, with the fields that a client needs to find leaders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetadataResponse {
    pub brokers: Vec<BrokerMetadata>,
    pub topics: Vec<TopicMetadata>,
    /// `REBOOTSTRAP_REQUIRED` if the client must reconnect to its bootstrap servers (KIP-1102).
    pub error: ErrorCode,
}

impl MetadataResponse {
    /// Parses the message at `body` of `frame`.
    ///
    /// # Errors
    /// When a length exceeds the frame or a text is not UTF-8.
    pub fn parse(frame: &[u8], body: usize, version: i16) -> Result<Self, Malformed> {
        let mut reader = Reader::new(frame, body, version >= FLEXIBLE);
        reader.header_tags()?;
        let mut response = Self::default();
        if version >= WITH_THROTTLE_TIME {
            reader.i32()?; // throttle_time_ms
        }
        for _ in 0..reader.array_len()? {
            response.brokers.push(read_broker(&mut reader)?);
        }
        if version >= WITH_CLUSTER_ID {
            reader.nullable_string()?; // cluster_id
        }
        reader.i32()?; // controller_id
        for _ in 0..reader.array_len()? {
            response.topics.push(read_topic(&mut reader, version)?);
        }
        if (WITH_OPERATIONS..=LAST_WITH_CLUSTER_OPERATIONS).contains(&version) {
            reader.i32()?; // cluster_authorized_operations
        }
        if version >= WITH_ERROR {
            response.error = reader.error_code()?;
        }
        reader.tags()?;
        Ok(response)
    }
}

fn read_broker(reader: &mut Reader<'_>) -> Result<BrokerMetadata, Malformed> {
    let (id, host, port) = (reader.i32()?, reader.string()?.to_owned(), reader.i32()?);
    reader.nullable_string()?; // rack
    reader.tags()?;
    Ok(BrokerMetadata { id, host, port })
}

fn read_topic(reader: &mut Reader<'_>, version: i16) -> Result<TopicMetadata, Malformed> {
    let (error, name) = (reader.error_code()?, reader.nullable_string()?.unwrap_or_default().to_owned());
    let id = if version >= WITH_TOPIC_IDS { reader.uuid()? } else { ZERO_TOPIC_ID };
    reader.bool()?; // is_internal
    let mut partitions = Vec::new();
    for _ in 0..reader.array_len()? {
        partitions.push(read_partition(reader, version)?);
    }
    if version >= WITH_OPERATIONS {
        reader.i32()?; // topic_authorized_operations
    }
    reader.tags()?;
    Ok(TopicMetadata { error, name, id, partitions })
}

fn read_partition(reader: &mut Reader<'_>, version: i16) -> Result<PartitionMetadata, Malformed> {
    let (error, index) = (reader.error_code()?, PartitionIndex(reader.i32()?));
    let leader = BrokerId(reader.i32()?);
    let leader_epoch = LeaderEpoch(if version >= WITH_LEADER_EPOCH { reader.i32()? } else { -1 });
    // Replicas, in-sync replicas, and from version 5 on offline replicas.
    for _ in 0..if version >= WITH_OFFLINE_REPLICAS { 3 } else { 2 } {
        let nodes = reader.array_len()?;
        reader.take(nodes * size_of::<i32>())?;
    }
    reader.tags()?;
    Ok(PartitionMetadata { error, index, leader, leader_epoch })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn write_response(version: i16, response: &MetadataResponse) -> Vec<u8> {
        let mut frame = vec![0xee; 4];
        let mut writer = Writer::new(&mut frame, version >= FLEXIBLE);
        writer.tags_none();
        if version >= 3 {
            writer.i32(0);
        }
        writer.array_len(response.brokers.len());
        for broker in &response.brokers {
            writer.i32(broker.id);
            writer.string(&broker.host);
            writer.i32(broker.port);
            writer.nullable_string(Some("rack"));
            writer.tags_none();
        }
        if version >= 2 {
            writer.nullable_string(None);
        }
        writer.i32(1);
        writer.array_len(response.topics.len());
        for topic in &response.topics {
            write_topic(&mut writer, version, topic);
        }
        if (8..=10).contains(&version) {
            writer.i32(i32::MIN);
        }
        if version >= WITH_ERROR {
            writer.error_code(response.error);
        }
        writer.tags_none();
        frame
    }

    fn write_topic(writer: &mut Writer<'_>, version: i16, topic: &TopicMetadata) {
        writer.error_code(topic.error);
        writer.string(&topic.name);
        if version >= WITH_TOPIC_IDS {
            writer.uuid(&topic.id);
        }
        writer.bool(true);
        writer.array_len(topic.partitions.len());
        for partition in &topic.partitions {
            writer.error_code(partition.error);
            writer.i32(partition.index.0);
            writer.i32(partition.leader.0);
            if version >= 7 {
                writer.i32(partition.leader_epoch.0);
            }
            for nodes in [&[1, 2, 3][..], &[1], &[]].iter().take(if version >= 5 { 3 } else { 2 }) {
                writer.array_len(nodes.len());
                nodes.iter().for_each(|node| writer.i32(*node));
            }
            writer.tags_none();
        }
        if version >= 8 {
            writer.i32(i32::MIN);
        }
        writer.tags_none();
    }

    fn response(version: i16) -> impl Strategy<Value = MetadataResponse> {
        let broker = (any::<i32>(), "[a-z.]{0,9}", any::<i32>());
        let broker = broker.prop_map(|(id, host, port)| BrokerMetadata { id, host, port });
        let epoch = if version >= 7 { any::<i32>().boxed() } else { Just(-1).boxed() };
        let partition = (any::<i16>(), any::<i32>(), any::<i32>(), epoch);
        let partition = partition.prop_map(|(error, index, leader, leader_epoch)| PartitionMetadata {
            error: ErrorCode(error),
            index: PartitionIndex(index),
            leader: BrokerId(leader),
            leader_epoch: LeaderEpoch(leader_epoch),
        });
        let id = if version >= WITH_TOPIC_IDS { any::<TopicId>().boxed() } else { Just(ZERO_TOPIC_ID).boxed() };
        let topic = (any::<i16>(), "[a-z]{0,9}", id, prop::collection::vec(partition, 0..4));
        let topic = topic.prop_map(|(error, name, id, partitions)| TopicMetadata {
            error: ErrorCode(error),
            name,
            id,
            partitions,
        });
        let (brokers, topics) = (prop::collection::vec(broker, 0..4), prop::collection::vec(topic, 0..4));
        let error = if version >= WITH_ERROR { any::<i16>().boxed() } else { Just(0).boxed() };
        (brokers, topics, error).prop_map(|(brokers, topics, error)| MetadataResponse {
            brokers,
            topics,
            error: ErrorCode(error),
        })
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>, body in 0_usize..20, version in 1_i16..=13) {
            let _ = MetadataResponse::parse(&bytes, body, version);
        }

        #[test]
        fn a_response_is_read_as_it_was_written(
            (version, sent) in (1_i16..=13).prop_flat_map(|version| (Just(version), response(version))),
            cut: prop::sample::Index,
        ) {
            let frame = write_response(version, &sent);
            prop_assert!(MetadataResponse::parse(&frame[..4 + cut.index(frame.len() - 4)], 4, version).is_err());
            prop_assert_eq!(MetadataResponse::parse(&frame, 4, version), Ok(sent));
        }

        #[test]
        fn a_request_names_its_topics(
            version in 1_i16..=13, create: bool, topics in prop::collection::vec("[a-z]{1,9}", 0..4),
        ) {
            let mut out = Vec::new();
            write_request(&mut out, version, create, topics.iter().map(String::as_str));
            let mut reader = Reader::new(&out, 0, version >= FLEXIBLE);
            reader.header_tags().unwrap();
            prop_assert_eq!(reader.array_len().unwrap_or(0), topics.len());
            for topic in &topics {
                if version >= WITH_TOPIC_IDS {
                    prop_assert_eq!(reader.uuid().unwrap(), ZERO_TOPIC_ID);
                }
                prop_assert_eq!(reader.string().unwrap(), topic);
                reader.tags().unwrap();
            }
            prop_assert!(version < 4 || reader.bool().unwrap() == create);
            for _ in 0..match version { 8..=10 => 2, 11.. => 1, _ => 0 } {
                prop_assert!(!reader.bool().unwrap());
            }
            reader.tags().unwrap();
            prop_assert_eq!(reader.left(), 0);
        }
    }
}

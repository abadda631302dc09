//! Metadata (key 3): brokers, and the leaders of the partitions of some topics.

use super::fields::{FieldError, FieldWriter};
use super::header::METADATA;
use pybroker_wire::ErrorCode;

/// A broker's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broker {
    pub node_id: i32,
    pub host: String,
    pub port: i32,
}

/// One partition as metadata describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionMetadata {
    pub error_code: ErrorCode,
    pub index: i32,
    /// -1: none.
    pub leader: i32,
    /// -1 before version 7.
    pub leader_epoch: i32,
}

/// One topic as metadata describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicMetadata {
    pub error_code: ErrorCode,
    pub name: String,
    pub partitions: Vec<PartitionMetadata>,
}

/// The whole answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MetadataResponse {
    pub brokers: Vec<Broker>,
    pub topics: Vec<TopicMetadata>,
}

/// Ask for some topics by name (none: for the brokers only). Topics that lack are created where `create` says so and the
/// broker allows it; before version 4 the broker alone decides.
pub fn write_request<'a>(
    out: &mut Vec<u8>,
    version: i16,
    create: bool,
    topics: impl ExactSizeIterator<Item = &'a str>,
) {
    let mut body = FieldWriter::new(out, METADATA.flexible(version));
    body.array(topics.len());
    for topic in topics {
        if version >= 10 {
            body.uuid(&[0; 16]);
        }
        body.string(topic);
        body.end();
    }
    if version >= 4 {
        body.bool(create);
    }
    if (8..=10).contains(&version) {
        body.bool(false);
    }
    if version >= 8 {
        body.bool(false);
    }
    body.end();
}

/// Read the answer.
pub fn read_response(frame: &[u8], version: i16) -> Result<MetadataResponse, FieldError> {
    let (_, mut body) = METADATA.response_body(version, frame)?;
    let mut answer = MetadataResponse::default();
    if version >= 3 {
        body.i32()?;
    }
    for _ in 0..body.array()? {
        let (node_id, host, port) = (body.i32()?, body.string()?.to_owned(), body.i32()?);
        body.nullable_string()?;
        body.end()?;
        answer.brokers.push(Broker { node_id, host, port });
    }
    if version >= 2 {
        body.nullable_string()?;
    }
    body.i32()?;
    for _ in 0..body.array()? {
        let (error_code, name) = (ErrorCode(body.i16()?), body.string()?.to_owned());
        if version >= 10 {
            body.uuid()?;
        }
        body.bool()?;
        let mut partitions = Vec::new();
        for _ in 0..body.array()? {
            let (error_code, index, leader) = (ErrorCode(body.i16()?), body.i32()?, body.i32()?);
            let leader_epoch = if version >= 7 { body.i32()? } else { -1 };
            for _ in 0..if version >= 5 { 3 } else { 2 } {
                let nodes = body.array()?;
                body.raw(nodes * 4)?;
            }
            body.end()?;
            partitions.push(PartitionMetadata { error_code, index, leader, leader_epoch });
        }
        if version >= 8 {
            body.i32()?;
        }
        body.end()?;
        answer.topics.push(TopicMetadata { error_code, name, partitions });
    }
    Ok(answer)
}

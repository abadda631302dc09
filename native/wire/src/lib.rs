//! Kafka's wire format: the head of a frame, the primitives that messages are made of, and the codec of the messages
//! that Python declares.
//!
//! Knows bytes and versions; must not know sockets or logs.

mod api_key;
pub mod codec;
mod error_code;
pub mod fetch;
pub mod frame;
pub mod primitives;
pub mod produce;
pub mod schema;
mod topics;
pub mod tree;

pub use api_key::ApiKey;
pub use error_code::ErrorCode;
use primitives::Writer;
pub use topics::{BrokerEndpoint, TopicId, TopicRef, ZERO_TOPIC_ID};

/// A topic as this version names it.
fn write_topic(writer: &mut Writer<'_>, topic: &TopicRef) {
    match topic {
        TopicRef::Name(name) => writer.string(name),
        TopicRef::Id(id) => writer.uuid(id),
    }
}

/// A tagged section with the current leader (KIP-951): `{leader_id: i32, leader_epoch: i32}` under `tag`.
fn write_leader_tag(writer: &mut Writer<'_>, tag: u32, leader: i32, epoch: i32) {
    writer.uvarint(1);
    writer.uvarint(tag);
    writer.uvarint(9);
    writer.i32(leader);
    writer.i32(epoch);
    writer.uvarint(0);
}

/// A tagged section with the diverging epoch (KIP-595): `{epoch: i32, end_offset: i64}` under tag 0.
fn write_diverging_tag(writer: &mut Writer<'_>, epoch: i32, end_offset: i64) {
    writer.uvarint(1);
    writer.uvarint(0);
    writer.uvarint(13);
    writer.i32(epoch);
    writer.i64(end_offset);
    writer.uvarint(0);
}

/// The closing tagged section of an answer: where the leaders that it names are (KIP-951), if the version has that.
fn write_endpoints(writer: &mut Writer<'_>, has_endpoints: bool, endpoints: &[&BrokerEndpoint]) {
    if !has_endpoints || endpoints.is_empty() {
        writer.tags_none();
        return;
    }
    let mut inner = Vec::new();
    let mut fields = Writer::new(&mut inner, true);
    fields.array_len(endpoints.len());
    for endpoint in endpoints {
        fields.i32(endpoint.id);
        fields.string(&endpoint.host);
        fields.i32(i32::from(endpoint.port));
        fields.nullable_string(endpoint.rack.as_deref());
        fields.tags_none();
    }
    writer.uvarint(1);
    writer.uvarint(0);
    writer.uvarint(inner.len() as u32);
    writer.raw(&inner);
}

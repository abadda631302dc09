//! Kafka's wire format: the head of a frame, the primitives that messages are made of, the messages that native code
//! speaks, and the codec of the messages that Python declares.
//!
//! A message has one file, with both directions of its request and of its response: a broker reads requests and writes
//! responses, a client or a follower writes requests and reads responses. Where only one direction is spoken natively,
//! the tests have the other. Knows bytes and versions; must not know sockets or logs.

mod api_key;
pub mod api_versions;
pub mod codec;
mod error_code;
pub mod fetch;
pub mod frame;
pub mod init_producer_id;
mod leaders;
pub mod list_offsets;
pub mod metadata;
pub mod primitives;
pub mod produce;
pub mod sasl;
pub mod schema;
mod topics;
pub mod tree;

pub use api_key::ApiKey;
pub use error_code::ErrorCode;
pub use leaders::{BrokerEndpoint, LeaderAndEpoch};
pub use topics::{TopicId, TopicRef, ZERO_TOPIC_ID};

/// Elements that room is made for before they are read: an announced count is not a reason to take memory.
const EXPECTED: usize = 64;

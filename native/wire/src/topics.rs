//! Topics and brokers as messages name them.

use std::sync::Arc;

/// A topic's id (KIP-516): 16 bytes; all zero means "none".
pub type TopicId = [u8; 16];

/// The topic id that stands for "no id".
pub const ZERO_TOPIC_ID: TopicId = [0; 16];

/// A topic as a request names it: by name (Fetch and Produce up to 12) or by id (from 13 on).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TopicRef {
    /// By name.
    Name(Arc<str>),
    /// By id.
    Id(TopicId),
}

/// Where clients reach a broker (KIP-951: sent with errors that say "not here").
#[derive(Clone, Debug)]
pub struct BrokerEndpoint {
    /// The broker's id.
    pub id: i32,
    /// The advertised host.
    pub host: String,
    /// The advertised port.
    pub port: u16,
    /// The broker's rack, if it has one.
    pub rack: Option<String>,
}

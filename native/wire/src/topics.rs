//! The topic names and ids in messages.

use std::sync::Arc;

use super::primitives::{Malformed, Reader, Writer};

/// A topic's id (KIP-516): 16 bytes; all zero for "no id".
pub type TopicId = [u8; 16];

/// The topic id for "no id".
pub const ZERO_TOPIC_ID: TopicId = [0; 16];

/// A topic in a request: by name (Fetch and Produce up to 12) or by id (from 13 on).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TopicRef {
    Name(Arc<str>),
    Id(TopicId),
}

impl TopicRef {
    /// Returns whether this reference is by name, and the name is `topic`.
    pub fn is_named(&self, topic: &str) -> bool {
        matches!(self, Self::Name(name) if **name == *topic)
    }

    pub(crate) fn write(&self, writer: &mut Writer<'_>) {
        match self {
            Self::Name(name) => writer.string(name),
            Self::Id(id) => writer.uuid(id),
        }
    }

    pub(crate) fn read(reader: &mut Reader<'_>, by_id: bool) -> Result<Self, Malformed> {
        Ok(if by_id { Self::Id(reader.uuid()?) } else { Self::Name(reader.string()?.into()) })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::TopicRef;

    /// Generates one of a few topics, so that neighbours are often equal.
    pub fn topic(by_id: bool) -> impl Strategy<Value = TopicRef> {
        (0_u8..3).prop_map(move |number| match by_id {
            true => TopicRef::Id([number; 16]),
            false => TopicRef::Name(format!("topic-{number}").into()),
        })
    }
}

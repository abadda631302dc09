//! Kafka's wire format: the head of a frame, the primitives that messages are made of, and the codec of the messages
//! that Python declares.
//!
//! Knows bytes and versions; must not know sockets or logs.

pub mod codec;
pub mod frame;
pub mod primitives;
pub mod schema;
pub mod tree;

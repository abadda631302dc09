//! Kafka's wire format: the head of a frame, and the primitives that messages are made of.
//!
//! Knows bytes and versions; must not know sockets or logs.

pub mod frame;
pub mod primitives;

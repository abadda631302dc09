//! Reads the batches, messages and records of log files for tools, without opening a log.

pub(crate) mod log_walk;
pub(crate) mod walked_messages;
pub(crate) mod walked_records;

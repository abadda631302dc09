//! Identifiers of partitions.

pub use pybroker_record::{BrokerId, LeaderEpoch, Offset, PartitionIndex};

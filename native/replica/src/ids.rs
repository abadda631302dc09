//! The identifiers that partitions go by.

pub use pybroker_record::{BrokerId, LeaderEpoch, Offset, PartitionIndex};
